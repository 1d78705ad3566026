#!/usr/bin/env python3
"""The examples in the docstrings of the Python module run (its page: tests/cli/test_pages.py), mypy finds nothing in it, and
its files import only those beneath them."""
import ast
import doctest
import graphlib
import importlib
import inspect
import os
import pathlib
import pkgutil
import shutil
import subprocess
import sys

import module
import numpy as np
from module import tessera

FOLDER = pathlib.Path(os.environ["TESSERA_SOURCE"], "tools", "python", "tessera")
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


class Finder(doctest.DocTestFinder):
    """Finds the examples of decorated functions, too."""

    def _from_module(self, module, object):
        return super()._from_module(module, inspect.unwrap(object) if callable(object) else object)


def test_docstrings():
    if not np.__version__.startswith("1."):
        np.set_printoptions(legacy="1.25")  # scalars without their types
    ran = 0
    for info in pkgutil.iter_modules(tessera.__path__):
        if info.name in ("_tessera", "_xarray", "zarr", "_zarr_pipeline", "_zarr_store", "_zarr_engine"):  # the last four take zarr 3
            continue
        part = importlib.import_module(f"tessera.{info.name}")
        finder = Finder()
        for test in finder.find(part, globs={"tessera": tessera, "np": np}):
            if not test.examples:
                continue
            os.mkdir(test.name)
            os.chdir(test.name)
            result = doctest.DocTestRunner(optionflags=OPTIONS).run(test)
            os.chdir("..")
            assert result.failed == 0, test.name
            ran += result.attempted
    assert ran > 120, ran


def test_everything_public_has_a_docstring():
    bare = []
    for name in tessera.__all__:
        thing = getattr(tessera, name)
        members = {}
        for base in reversed(thing.__mro__ if isinstance(thing, type) else ()):
            members.update(vars(base) if base.__module__.startswith("tessera.") else {})
        for path, member in [(name, thing), *((f"{name}.{m}", v) for m, v in members.items() if not m.startswith("_"))]:
            if not (getattr(member, "__doc__", None) or "").strip() and path not in (
                    f"Cached.{p}" for p in ("chunks", "fill_value", "format", "info")):
                bare.append(path)
    assert not bare, bare


def imported(tree):
    """The files of the package that one of them imports, anywhere in it: in functions and for types, too."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(filter(None, ("tessera" if node.level else "", node.module)))
            names = [f"{base}.{alias.name}" for alias in node.names]
        for package, _, rest in (each.partition(".") for each in names):
            name = rest.partition(".")[0]
            if package == "tessera" and name != "_tessera":  # which is compiled
                yield name if (FOLDER / f"{name}.py").is_file() else "__init__"


def test_files_import_only_those_beneath():
    arrows = {path.stem: set(imported(ast.parse(path.read_text()))) for path in FOLDER.glob("*.py")}
    assert "_node" in arrows["_describe"], arrows
    list(graphlib.TopologicalSorter(arrows).static_order())  # a CycleError names the files of a circle


def test_types():
    """mypy, where it is installed."""
    if shutil.which("mypy") is None:
        print("  left out: no mypy", file=sys.stderr)
        return
    done = subprocess.run(["mypy", "--strict", "--cache-dir", os.getcwd(), FOLDER], stdout=subprocess.PIPE, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout


RIGHT = """
import numpy as np
import tessera

a = tessera.create("a.zarr", shape=(3, 3), dtype="i4", chunks=(2, 2), format="v3")
a[[0, 2]] = 1
node = tessera.open("a.zarr")
if isinstance(node, tessera.Array):
    print(node[a[:] > 0], node.codec)
found = tessera.verify("a.zarr")
print(found.sound, found["sound"], tessera.stats(a).mean, a.info.codec, tessera.diff(a, tessera.open_array("a.zarr")).equal)
with tessera.open_group("g") as g:
    g["x"] = np.arange(3)
    g.create_array("y", (2,), "f4", codec="zstd:3")
tessera.save("b.zarr", np.zeros(3), chunks=2, overwrite=True)
print(tessera.reduce(a, how="mean", axis=0, keepdims=True).sum(), tessera.reduce("a.zarr", how="max").dtype)
tessera.reduce(a, "b.zarr", how="mean", overwrite=True, chunks=2)
print(tessera.calc(None, "a + 1", {"a": a}).sum(), tessera.coarsen(a, by=(2, 2), dtype="f4").sum())
print(tessera.stack([a, "a.zarr"], axis=1).ndim, tessera.concat(["a.zarr"], max_memory="1M").size)
tessera.calc("b.zarr", "a + 1", {"a": a}, overwrite=True, chunks=2)
tessera.calc(a, "a + 1", {"a": a}, in_place=True, sel=slice(1, 3))
tessera.coarsen(a, "b.zarr", by={"y": 2}, overwrite=True, codec="zstd:3")
print(tessera.reduce(a, "p95", axis=0).sum(), tessera.stats(a, how=["median", "p97.5"]).further)
tessera.create("c.zarr", (3, 4), "i4", (-1, None), dims=("y", "x"), shards={"y": 3}, attributes={"a": 1}, compressors=None)
tessera.open("d.zarr", mode="w", overwrite=True, shape=3, dtype="i4", chunks=-1, format="v2")
def total(array: tessera.types.AnyArray) -> float:
    return float(np.asarray(array.T.lazy[0]).sum() if isinstance(array, tessera.View) else array[0])

print(total(a) + total(a.lazy[::2, 1]) + total(a.T))
found_types: tessera.types.Verification = tessera.verify("a.zarr")
print(tessera.zeros("z.zarr", 3, codec="none").shape, tessera.Verification, a.blocks[0], tessera.digest(np.arange(3)))
"""
WRONG = """
import tessera
tessera.create("a.zarr", shape=3, dtype="i4", chunk=3)
tessera.save("a.zarr", [1], chunk=3)
tessera.reduce("a.zarr", "b.zarr", how="max", chunk=3)
tessera.convert("a.zarr", "b.zarr", "v3", codecs="zstd")
tessera.open_group("g").create_array("x", (3,), "i4", fill=3)
tessera.open("a.zarr").chunks
tessera.verify("a.zarr").sond
tessera.unstack("a", "b{}", chunk=(1,))
tessera.coarsen("a.zarr", "b.zarr", by=2, chunk=3)
tessera.stack(["a.zarr"], "b.zarr").ndim
tessera.open("a.zarr", mode="x")
tessera.reduce("a.zarr", "average")
tessera.reduce("a.zarr", "b.zarr", how="average")
tessera.create("a.zarr", 3, "i4", format="v4")
tessera.plan("resize", "a.zarr", "b.zarr", out="j.json")
tessera.zeros("a.zarr", 3, fill_value=1)
"""


def test_types_of_a_users_script():
    """mypy --strict passes what is right, and names each line that is wrong."""
    if shutil.which("mypy") is None:
        print("  left out: no mypy", file=sys.stderr)
        return
    for name, text in ("right.py", RIGHT), ("wrong.py", WRONG):
        with open(name, "w") as file:
            file.write(text)
    done = subprocess.run(["mypy", "--strict", "--no-error-summary", "--cache-dir", os.getcwd(), "right.py", "wrong.py"],
                          env={**os.environ, "MYPYPATH": str(FOLDER.parent)}, stdout=subprocess.PIPE, text=True, check=False)
    errors = [line.split(":") for line in done.stdout.splitlines() if ": error:" in line]
    assert {error[0] for error in errors} == {"wrong.py"}, done.stdout
    assert sorted({int(error[1]) for error in errors}) == list(range(3, 3 + WRONG.count("tessera."))), done.stdout


if __name__ == "__main__":
    module.run(dict(globals()))
