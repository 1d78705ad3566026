"""What the tests of the Python module share: the module itself, from the build tree, and a folder to work in."""
import os
import signal
import sys
import tempfile

_folder = os.environ.get("TESSERA_MODULE")
if not _folder:
    print("skipped: the Python module was not built (pybind11-dev, python3-dev)")
    sys.exit(77)
sys.path.insert(0, _folder)
try:
    import numpy  # noqa: F401
except ImportError:
    print("skipped: no NumPy")
    sys.exit(77)
# What the person who runs the tests prefers is not tested.
for _setting in ("FORMAT", "CODEC", "DURABILITY", "MAX_MEMORY", "THREADS", "COLOR", "CACHE", "CACHE_SIZE", "CACHE_AGE",
                 "OFFLINE", "ABSENT"):
    os.environ.pop(f"TESSERA_{_setting}", None)
os.environ["TESSERA_CONFIG"] = ""
# What a shell starts in the background ignores Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
import tessera  # noqa: E402

golden = os.environ["TESSERA_GOLDEN"]


def run(tests):
    """Runs functions by name, each in a folder of its own; all named on the command line, or all there are."""
    wanted = sys.argv[1:]
    for name, function in sorted(tests.items()):
        if not name.startswith("test_") or not callable(function) or (wanted and name not in wanted):
            continue
        print(name, flush=True)
        before = os.getcwd()
        # In memory, where there is such a place: what is made durable is tested elsewhere, and takes most of the time here.
        place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.TemporaryDirectory(dir=place) as folder:
            os.chdir(folder)
            try:
                function()
            finally:
                os.chdir(before)


class raises:
    """with raises(IndexError, "out of bounds"): ..."""

    def __init__(self, kind, text=""):
        self.kind, self.text = kind, text

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.error = error
        assert error is not None, f"expected {self.kind}, nothing was raised"
        if not isinstance(error, self.kind):
            return False
        assert self.text in str(error), f"expected {self.text!r} in {error}"
        return True


__all__ = ["golden", "raises", "run", "tessera"]
