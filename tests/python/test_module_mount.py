#!/usr/bin/env python3
"""tessera.mount: the program's command as an object of a process."""
import gc
import os
import pathlib
import subprocess
import sys

import module
import numpy as np
from module import raises, tessera

os.environ["PATH"] = os.path.dirname(os.environ["TESSERA_PROGRAM"]) + os.pathsep + os.environ["PATH"]
if not os.access("/dev/fuse", os.R_OK | os.W_OK):
    print("skipped: no /dev/fuse")
    sys.exit(77)
VALUES = np.arange(24.0).reshape(4, 6)


def made():
    os.mkdir("shown")
    return tessera.save("a.zarr", VALUES, chunks=(2, 3))


def mounted(*words, **options):
    try:
        return tessera.mount(*words, **options)
    except (tessera.Unsupported, tessera.IoError) as error:
        print("skipped:", error)
        sys.exit(77)


def test_a_statement():
    made()
    with mounted("a.zarr", "shown", order="F") as shown:
        assert np.array_equal(np.load(shown / "a.npy", mmap_mode="r"), VALUES)
        assert np.load(shown / "a.npy", mmap_mode="r").flags.f_contiguous
        assert os.listdir(shown) and not shown.closed and os.path.ismount("shown")
    assert shown.closed and "closed" in repr(shown) and not os.path.ismount("shown")
    shown.close()


def test_writing_and_an_array_that_is_open():
    made()
    with mounted(tessera.open("a.zarr"), pathlib.Path("shown"), write=True, max_memory="64M", threads=1) as shown:
        values = np.load(shown / "a.npy", mmap_mode="r+")
        values[1, 2] = 99
    assert tessera.load("a.zarr")[1, 2] == 99  # what mapped files hold is stored before the end


def test_it_ends_with_its_object_and_with_the_process():
    made()
    shown = mounted("a.zarr", "shown")
    del shown
    gc.collect()
    assert not os.path.ismount("shown")
    code = "import tessera, os; kept = tessera.mount('a.zarr', 'shown'); assert os.path.ismount('shown')"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.environ["TESSERA_MODULE"]})
    assert not os.path.ismount("shown")


def test_refusals():
    made()
    with raises(FileNotFoundError, "nothing"):
        tessera.mount("nothing", "shown")
    with raises(tessera.NotFound, "mkdir"):
        tessera.mount("a.zarr", "absent")
    with raises(ValueError, "must be empty"):
        tessera.mount("a.zarr", ".")
    with raises(ValueError, "order is"):
        tessera.mount("a.zarr", "shown", order="D")
    path = os.environ.pop("PATH")
    os.environ["PATH"] = "/nowhere"
    try:
        with raises(tessera.Unsupported, "not installed"):
            tessera.mount("a.zarr", "shown")
    finally:
        os.environ["PATH"] = path


if __name__ == "__main__":
    module.run(globals())
