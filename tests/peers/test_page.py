"""The page about zarr-python, and the examples in the docstrings of tessera.zarr, run."""
import doctest
import os
import pathlib
import re

import numpy as np
import tessera
import tessera.zarr
import zarr

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "tools" / "docs" / "zarr.md"
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def test_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace, count = {}, 0
    with zarr.config.set({}):
        for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE):
            count += 1
            if language == "python":
                exec(compile(text, str(PAGE), "exec"), namespace)  # noqa: S102
            else:
                test = doctest.DocTestParser().get_doctest(text, {}, "page", str(PAGE), 0)
                test.globs = namespace
                assert doctest.DocTestRunner(optionflags=OPTIONS).run(test, clear_globs=False).failed == 0
    assert count >= 6


def test_docstrings(tmp_path):
    ran = 0
    for test in doctest.DocTestFinder().find(tessera.zarr.Store, globs={"tessera": tessera, "np": np, "zarr": zarr}):
        os.chdir(tmp_path)
        result = doctest.DocTestRunner(optionflags=OPTIONS).run(test)
        assert result.failed == 0
        ran += result.attempted
    assert ran
