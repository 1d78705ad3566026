#!/usr/bin/env python3
"""The examples in the docstrings of the Python module run (its page: tests/cli/test_pages.py), and mypy finds nothing in it."""
import doctest
import importlib
import os
import pkgutil
import shutil
import subprocess
import sys

import module
import numpy as np
from module import tessera

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def test_docstrings():
    ran = 0
    for info in pkgutil.iter_modules(tessera.__path__):
        if info.name in ("_tessera", "_xarray"):
            continue
        part = importlib.import_module(f"tessera.{info.name}")
        finder = doctest.DocTestFinder()
        for test in finder.find(part, globs={"tessera": tessera, "np": np}):
            if not test.examples:
                continue
            os.mkdir(test.name)
            os.chdir(test.name)
            result = doctest.DocTestRunner(optionflags=OPTIONS).run(test)
            os.chdir("..")
            assert result.failed == 0, test.name
            ran += result.attempted
    assert ran > 40, ran


def test_everything_public_has_a_docstring():
    bare = []
    for name in tessera.__all__:
        thing = getattr(tessera, name)
        members = vars(thing).items() if isinstance(thing, type) else []
        for path, member in [(name, thing), *((f"{name}.{m}", v) for m, v in members if not m.startswith("_"))]:
            if not (getattr(member, "__doc__", None) or "").strip() and path not in (
                    f"Cached.{p}" for p in ("chunks", "fill_value", "format", "info")):
                bare.append(path)
    assert not bare, bare


def test_types():
    """mypy, where it is installed."""
    if shutil.which("mypy") is None:
        print("  left out: no mypy", file=sys.stderr)
        return
    package = os.path.join(os.environ["TESSERA_SOURCE"], "tools/python/tessera")
    done = subprocess.run(["mypy", "--strict", "--cache-dir", os.getcwd(), package], stdout=subprocess.PIPE, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout


if __name__ == "__main__":
    module.run(dict(globals()))
