#!/usr/bin/env python3
"""tools/examples/jacksboro.py, from an .npz file to a sealed bag; tools/docs/dask.md shows pieces of it."""
import os
import subprocess
import sys

import module
from module import tessera

try:
    import dask  # noqa: F401
    import xarray  # noqa: F401
except ImportError:
    print("skipped: no dask or no xarray (Debian: python3-dask, python3-xarray)")
    sys.exit(77)

SCRIPT = os.path.join(os.environ["TESSERA_SOURCE"], "tools/examples/jacksboro.py")


def test_jacksboro():
    path = os.pathsep.join(filter(None, (os.environ["TESSERA_MODULE"], os.environ.get("PYTHONPATH"))))
    done = subprocess.run([sys.executable, "-B", SCRIPT, os.getcwd()], stdout=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0 and "sealed:" in done.stdout, done
    assert list(tessera.open("survey.zarr")) == ["elevation", "lat", "lon", "slope"]
    assert tessera.verify("survey.zarr")["sound"]
    subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "manifest-sha256.txt"], cwd="survey-bag", check=True)


if __name__ == "__main__":
    module.run(dict(globals()))
