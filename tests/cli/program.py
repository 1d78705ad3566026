"""What the tests of the program share: running it as a person would, in a folder of their own."""

import faulthandler
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

PROGRAM = os.environ["TESSERA_PROGRAM"]
GOLDEN = pathlib.Path(os.environ["TESSERA_GOLDEN"])
EXAMPLES = pathlib.Path(os.environ["TESSERA_SOURCE"]) / "tools" / "examples"


# How often a test that draws its cases draws. Under a sanitizer one in eight finds what only a sanitizer would.
FEWER = int(os.environ.get("TESSERA_FEWER_CASES", "1"))


def chosen(cases):
    """The cases of a test that goes through all of them. Under a sanitizer a third, always the same: they differ in what comes
    out, which other builds look at, and seldom in what is done to memory."""
    cases = list(cases)
    if FEWER == 1:
        return cases
    some = set(random.Random(33).sample(range(len(cases)), (len(cases) + 2) // 3))
    return [case for number, case in enumerate(cases) if number in some]


# What the person who runs the tests prefers is not tested.
for setting in ("FORMAT", "CODEC", "DURABILITY", "MAX_MEMORY", "THREADS", "COLOR", "CACHE", "CACHE_SIZE", "CACHE_AGE",
                "OFFLINE", "ABSENT"):
    os.environ.pop(f"TESSERA_{setting}", None)
os.environ["TESSERA_CONFIG"] = ""


class Absent:
    """In place of a module that is not here: a test that takes it is skipped."""

    def __init__(self, why):
        self.why = why

    def __getattr__(self, name):
        raise unittest.SkipTest(self.why)


# zarr-python 2, which Debian 12 has. Newer ones, of Debian 13 too, have other interfaces: tests/peers takes them.
try:
    import zarr
    if not zarr.__version__.startswith("2."):
        zarr = Absent(f"zarr-python {zarr.__version__} is not 2")
except ImportError:
    zarr = Absent("zarr-python is not installed")
NUMPY_1 = np.__version__.startswith("1.")


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return str(self.folder / name)

    def run_program(self, *words, **options):
        return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, cwd=self.folder, timeout=300,
                              **options)

    def tessera(self, *words, code=0, **options):
        """Runs a command that must end with `code`; returns its standard output."""
        result = self.run_program(*words, **options)
        self.assertEqual(result.returncode, code, f"tessera {words}\n{result.stdout}{result.stderr}")
        if code == 0:
            self.assertEqual(result.stderr, "")
        return result.stdout

    def tessera_json(self, *words, **options):
        return json.loads(self.tessera(*words, "--json", **options))

    def refused(self, *words, says=(), code=2, **options):
        """Runs a command that must fail with one line that holds every text of `says`; returns the line."""
        result = self.run_program(*words, **options)
        shown = f"tessera {words}\n{result.stdout}{result.stderr}"
        self.assertEqual(result.returncode, code, shown)
        self.assertEqual(result.stdout, "", shown)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, shown)
        self.assertTrue(lines[0].startswith("tessera: "), shown)
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, lines[0])
        return lines[0]

    def save(self, name, array):
        np.save(self.folder / name, array)
        return name

    def exported(self, array_path, *words):
        """The array's content, by way of export and NumPy."""
        self.tessera("export", array_path, "exported.npy", "--overwrite", "--quiet", *words)
        return np.load(self.folder / "exported.npy")


def module_folder():
    """The folder of the Python module, to start a Python with; skips the test where the module is left out of the build."""
    if "TESSERA_MODULE" not in os.environ:
        raise unittest.SkipTest("the Python module was not built")
    return os.environ["TESSERA_MODULE"]


def digest(folder):
    """A hash of every file below a folder, with its name."""
    total = hashlib.sha256()
    for file in sorted(p for p in pathlib.Path(folder).rglob("*") if p.is_file() and ".tessera" not in p.parts):
        total.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return total.hexdigest()


def show_what_hangs():
    """Says where this test and the programs that it runs are, before the time for it is over: the test is then ended
    with no word of it."""
    faulthandler.dump_traceback()
    for task in sorted(pathlib.Path("/proc").glob("[0-9]*/task/[0-9]*")):
        try:
            words = (task / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if PROGRAM not in words or os.getpid() in (int(task.parent.parent.name), int(task.name)):
                continue
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
            print(f"{task}: {state} {(task / 'wchan').read_text()} {(task / 'syscall').read_text().strip()}\n  {words}",
                  file=sys.stderr, flush=True)
        except OSError:
            pass  # it has ended meanwhile, or the system does not tell


def main():
    watch = threading.Timer(540, show_what_hangs)  # ctest waits for 600 s
    watch.daemon = True
    watch.start()
    sys.exit(not unittest.main(exit=False, verbosity=2).result.wasSuccessful())
