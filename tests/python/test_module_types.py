#!/usr/bin/env python3
"""Whatever type an argument of a public function has, the error is in words, and nothing has changed."""
import inspect
import os
import re
import shutil
import warnings

import module
import numpy as np
from module import raises, tessera

# What takes a package that may be missing is given nothing that it would need that for.
WRONG = [3, b"x", object(), [object()], np.arange(3.0) > 1, len]
OPTIONS = ["chunks", "shards", "fill_value", "codec", "format", "order", "separator", "structures", "dims", "deflate"]
NOT_IN_WORDS = re.compile(r"argument types|PYBIND|Unable to cast|C\+\+|std::|_tessera\.|_handle|has no attribute")


def plan(**options):
    return tessera.plan("copy", "a.zarr", "new.zarr", out="j.json", **options)


def array():
    return tessera.open("a.zarr", "r+")


def group():
    return tessera.open("g.zarr", "r+")


def keys():
    return tessera.KeyStore("keys")


CALLS = {
    "add_codec": lambda: (tessera.add_codec, {"codec": None}),
    "add_store": lambda: (tessera.add_store, {"scheme":"toy", "open":lambda p: {}}),
    "calc": lambda: (tessera.calc, dict(destination=None, expression="a+1", operands={"a": "a.zarr"})),
    "calc2": lambda: (tessera.calc, dict(destination="new.zarr", expression="a+1", operands={"a": "a.zarr"})),
    "calc3": lambda: (tessera.calc, dict(destination="a.zarr", expression="a+1", operands={"a": "a.zarr"}, in_place=True)),
    "regrid": lambda: (tessera.regrid, dict(array="a.zarr", destination="new.zarr", to="lat=0:1:1")),
    "coarsen": lambda: (tessera.coarsen, dict(array="a.zarr", destination="new.zarr", by=(2,2))),
    "concat": lambda: (tessera.concat, dict(arrays=["a.zarr", "a.zarr"], destination="new.zarr")),
    "convert": lambda: (tessera.convert, dict(source="a.zarr", destination="new.zarr", format="v2")),
    "copy": lambda: (tessera.copy, dict(source="a.zarr", destination="new.zarr")),
    "copytree": lambda: (tessera.copy, dict(source="g.zarr", destination="new.zarr")),
    "create": lambda: (tessera.create, dict(path="new.zarr", shape=(3,4), dtype="f4")),
    "create_data": lambda: (tessera.create, dict(path="new.zarr", data=[1,2])),
    "create_group": lambda: (tessera.create_group, dict(path="new.zarr")),
    "dask_run": lambda: (tessera.dask_run, dict(job=None, client=None)),
    "diff": lambda: (tessera.diff, dict(a="a.zarr", b="a.zarr")),
    "diff_sums": lambda: (tessera.diff_sums, dict(a="a.zarr", b="a.zarr")),
    "digest": lambda: (tessera.digest, dict(array="a.zarr")),
    "find": lambda: (tessera.find, dict(array="a.zarr", condition="value > 1")),
    "fixity": lambda: (tessera.fixity, dict(path="a.zarr")),
    "full": lambda: (tessera.full, dict(path="new.zarr", shape=(3,4), fill_value=7)),
    "zeros": lambda: (tessera.zeros, dict(path="new.zarr", shape=(3,4), dtype="f4")),
    "open_new": lambda: (tessera.open, dict(path="new.zarr", mode="a", shape=(3,4), dtype="f4")),
    "advise": lambda: (tessera.advise, dict(array="a.zarr", reads="0=1")),
    "index": lambda: (tessera.index, dict(array="a.zarr")),
    "info": lambda: (tessera.info, dict(path="a.zarr")),
    "load": lambda: (tessera.load, dict(path="a.zarr")),
    "mount": lambda: (tessera.mount, dict(path="a.zarr", folder="new")),
    "open": lambda: (tessera.open, dict(path="a.zarr")),
    "open_array": lambda: (tessera.open_array, dict(path="a.zarr")),
    "open_group": lambda: (tessera.open_group, dict(path="g.zarr")),
    "package": lambda: (tessera.package, dict(path="a.zarr", folder="new", size="1M")),
    "plan": lambda: (tessera.plan, dict(command="copy", source="a.zarr", target="new.zarr", out="j.json")),
    "plan_reduce": lambda: (tessera.plan, dict(command="reduce", source="a.zarr", target="new.zarr", out="j.json", how="mean", axis=0)),
    "pyramid": lambda: (tessera.pyramid, dict(array="a.zarr", destination="new.zarr")),
    "read_in_process": lambda: (tessera.read_in_process, dict()),
    "reduce": lambda: (tessera.reduce, dict(array="a.zarr", how="mean")),
    "reduce2": lambda: (tessera.reduce, dict(array="a.zarr", destination="new.zarr", how="mean")),
    "refs": lambda: (tessera.refs, dict(path="p.npy")),
    "remove_snapshot": lambda: (tessera.remove_snapshot, dict(path="a.zarr", name="s1")),
    "repair": lambda: (tessera.repair, dict(path="a.zarr")),
    "restore": lambda: (tessera.restore, dict(path="a.zarr", name="s1")),
    "save": lambda: (tessera.save, dict(path="new.zarr", values=[1,2])),
    "save_file": lambda: (tessera.save, dict(path="new.npz", values=[1,2])),
    "seal": lambda: (tessera.seal, dict(path="a.zarr")),
    "seal_ocfl": lambda: (tessera.seal_ocfl, dict(path="a.zarr", root="ocfl", id="urn:example:a")),
    "serve": lambda: (tessera.serve, dict(paths="a.zarr")),
    "snapshot": lambda: (tessera.snapshot, dict(path="a.zarr", name="s2")),
    "snapshots": lambda: (tessera.snapshots, dict(path="a.zarr")),
    "stack": lambda: (tessera.stack, dict(arrays=["a.zarr", "a.zarr"], destination="new.zarr")),
    "stats": lambda: (tessera.stats, dict(array="a.zarr")),
    "store": lambda: (tessera.store, dict(source=None, target="new.zarr")),
    "thumbnails": lambda: (tessera.thumbnails, dict()),
    "to_zarr": lambda: (tessera.to_zarr, dict(dataset=None, path="new.zarr")),
    "undo": lambda: (tessera.undo, dict(array="a.zarr")),
    "unstack": lambda: (tessera.unstack, dict(array="a.zarr", pattern="u{}.zarr")),
    "verify": lambda: (tessera.verify, dict(path="a.zarr")),
    "zarr_view": lambda: (tessera.zarr_view, dict(path="a.zarr")),
    "KeyStore": lambda: (tessera.KeyStore, dict(path="keys")),
    "KeyStore.get": lambda: (keys().__getitem__, dict(key="a")),
    "KeyStore.set": lambda: (keys().__setitem__, dict(key="a", value=b"1")),
    "KeyStore.del": lambda: (keys().__delitem__, dict(key="a")),
    "KeyStore.listdir": lambda: (keys().listdir, dict()),
    "KeyStore.rename": lambda: (keys().rename, dict(src_path="a", dst_path="b")),
    "KeyStore.rmdir": lambda: (keys().rmdir, dict()),
    "KeyStore.getsize": lambda: (keys().getsize, dict()),
    "ZarrView.get": lambda: (tessera.zarr_view("a.zarr").__getitem__, dict(key=".zarray")),
    "ZarrView.listdir": lambda: (tessera.zarr_view("a.zarr").listdir, dict()),
    "Job": lambda: (tessera.Job, dict(path="j.json")),
    "Job.units": lambda: (plan(parts=2).units, dict(part=0)),
    "Job.run": lambda: (plan().run, dict(unit=0)),
    "Job.finish": lambda: (plan().finish, dict()),
    "Picture.save": lambda: (array().view().save, dict(path="x.png")),
    "Array.append": lambda: (array().append, dict(values=np.zeros((1, 6), "f4"))),
    "Array.as_zarr": lambda: (array().as_zarr, dict()),
    "Array.astype": lambda: (lambda dtype: array().astype(dtype)[:], dict(dtype="f8")),
    "Array.cached": lambda: (array().cached, dict()),
    "Array.chunk_stats": lambda: (array().chunk_stats, dict()),
    "Array.dims": lambda: (lambda dims: setattr(array(), "dims", dims), dict(dims=("y", "x"))),
    "Array.edit": lambda: (array().edit, dict()),
    "Array.find": lambda: (array().find, dict(condition="value > 1")),
    "Array.isel": lambda: (array().isel, dict(x=1)),
    "Array.iter_chunks": lambda: (lambda shards: list(array().iter_chunks(shards)), dict(shards=False)),
    "Array.read": lambda: (array().read, dict()),
    "Array.resize": lambda: (lambda shape: array().resize(shape), dict(shape=(4,6))),
    "Array.sel": lambda: (array().sel, dict(x=1)),
    "Array.show": lambda: (array().show, dict()),
    "Array.to_dask": lambda: (array().to_dask, dict()),
    "Array.update": lambda: (array().update, dict(sel=..., function=lambda v: v)),
    "Array.view": lambda: (array().view, dict()),
    "Array.where": lambda: (tessera.open("t.csv").where, dict(condition="x > 1")),
    "Array.write": lambda: (array().write, dict(sel=..., values=3)),
    "Array.get": lambda: (array().__getitem__, dict(key=1)),
    "Array.set": lambda: (array().__setitem__, dict(key=1, value=1)),
    "vindex.get": lambda: (array().vindex.__getitem__, dict(key=1)),
    "vindex.set": lambda: (array().vindex.__setitem__, dict(key=1, value=1)),
    "oindex.get": lambda: (array().oindex.__getitem__, dict(key=1)),
    "oindex.set": lambda: (array().oindex.__setitem__, dict(key=1, value=1)),
    "attrs.get": lambda: (array().attrs.__getitem__, dict(name="a")),
    "attrs.set": lambda: (array().attrs.__setitem__, dict(name="a", value=1)),
    "Group.append": lambda: (group().append, dict(source="g.zarr", dimension="x")),
    "Group.as_zarr": lambda: (group().as_zarr, dict()),
    "Group.create_array": lambda: (group().create_array, dict(name="n", shape=3, dtype="f4")),
    "Group.create_array_data": lambda: (group().create_array, dict(name="n", data=[1])),
    "Group.create_group": lambda: (group().create_group, dict(name="n")),
    "Group.edit": lambda: (group().edit, dict()),
    "Group.get": lambda: (group().__getitem__, dict(name="v")),
    "Group.get_": lambda: (group().get, dict(key="v")),
    "Group.set": lambda: (group().__setitem__, dict(name="n", value=[1])),
    "Group.contains": lambda: (group().__contains__, dict(name="v")),
    "Group.move": lambda: (group().move, dict(old="v", new="w")),
    "Group.remove": lambda: (group().remove, dict(name="v")),
    "Group.require_array": lambda: (group().require_array, dict(name="n", shape=3, dtype="f4")),
    "Group.require_group": lambda: (group().require_group, dict(name="n")),
    "GroupEdit.get": lambda: (group().edit().__getitem__, dict(name="v")),
    "Members.get": lambda: (tessera.open("m.npz").__getitem__, dict(name="a")),
}


def make_files():
    tessera.create("a.zarr", data=np.arange(24, dtype="f4").reshape(4, 6), chunks=(2, 3), dims=("y", "x"), format="v3")
    made = tessera.create_group("g.zarr")
    made["v"] = np.arange(6.0)
    made.create_group("sub")
    with open("t.csv", "w") as file:
        file.write("x,y\n1,2\n3,4\n")
    np.save("p.npy", np.arange(5))
    np.savez("m.npz", a=[1, 2], b=[3])
    tessera.snapshot("a.zarr", "s1")


def state():
    """Every file, and which one it is."""
    return {os.path.join(folder, name): os.stat(os.path.join(folder, name)).st_mtime_ns
            for folder, _, names in os.walk(".") for name in names if ".tessera" not in folder}


def parameters(function, given):
    found = inspect.signature(function).parameters.values()
    names = [p.name for p in found if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    more = OPTIONS if any(p.kind is p.VAR_KEYWORD and p.annotation != "Any" for p in found) else []
    return list(dict.fromkeys([*names, *more, *given]))


def attempt(make, name, value):
    """The error of a call with one argument of another type; None if it is taken."""
    function, given = make()
    given = {**given, name: value}
    before = state()
    try:
        result = function(given.pop("paths"), **given) if "paths" in given else function(**given)
        getattr(result, "close", lambda: None)()
    except Exception as error:
        assert not isinstance(error, TypeError) or state() == before, (name, value, error)
        return error
    return None


def test_wrong_types():
    os.mkdir("old")
    os.chdir("old")
    make_files()
    os.chdir("..")
    top = os.getcwd()
    calls = 0
    for call, make in CALLS.items():
        shutil.copytree("old", "new")
        os.chdir("new")
        names = parameters(*make())
        for name in names:
            for value in WRONG:
                os.chdir(top)
                shutil.rmtree("new")
                shutil.copytree("old", "new")
                os.chdir("new")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    error = attempt(make, name, value)
                calls += 1
                assert error is None or isinstance(error, (TypeError, ValueError, LookupError, tessera.Error)), (call, name, value, error)
                assert not NOT_IN_WORDS.search(str(error)), (call, name, value, error)
        os.chdir(top)
        shutil.rmtree("new")
    assert calls > 3000, calls


def test_every_function_is_called():
    functions = {name for name in tessera.__all__ if inspect.isfunction(getattr(tessera, name))}
    methods = {f"{kind.__name__}.{name}" for kind in (tessera.Array, tessera.Group, tessera.Job, tessera.Picture)
               for name, member in inspect.getmembers(kind, inspect.isfunction)
               if not name.startswith("_") and len(inspect.signature(member).parameters) > 1}
    assert functions | methods <= set(CALLS), (functions | methods) - set(CALLS)


def test_types_in_words():
    make_files()
    a = array()
    for text, function in {
        "Array.where(): condition: expected text, found array([[": lambda: a.where(a[:] > 3),
        "reduce(): how: expected text or None, found 3 (int)": lambda: tessera.reduce("a.zarr", how=3),
        "convert(): format: expected text, found 3 (int)": lambda: tessera.convert("p.npy", "q.zarr", 3),
        "open(): path: expected text or a path, found 3 (int)": lambda: tessera.open(3),
        "create(): dims: expected a list or None, found 3 (int)": lambda: tessera.create("b.zarr", 3, "i4", dims=3),
        "Array.cached(): max_memory: expected an integer or text, found None (NoneType)": lambda: a.cached(None),
        "Array.update(): function: expected a function, found 3 (int)": lambda: a.update(..., 3),
        "diff(): b: expected text, a path, tessera.Array, tessera.Group, tessera.Members, tessera.View or numpy.ndarray, found [1] (list)": lambda: tessera.diff(a, [1]),
        "calc(): operands: expected a dict or None, found 3 (int)": lambda: tessera.calc(None, "a", 3),
        "verify(): threads: expected an integer, found 'all' (str)": lambda: tessera.verify("a.zarr", threads="all"),
        "Group.move(): new: expected text, found 3 (int)": lambda: group().move("v", 3),
    }.items():
        with raises(TypeError, text):
            function()


def test_errors_of_functions_that_are_given_stay():
    make_files()

    def wrong(*_):
        raise TypeError("of their own")

    with raises(TypeError, "of their own"):
        array().update(..., wrong, threads=np.int64(1))
    def lacks(*_):
        raise AttributeError("of their own")

    with raises(AttributeError, "of their own"):
        array().update(..., lacks, progress=None)
    with raises(TypeError, "of their own"):
        tessera.copy("a.zarr", "b.zarr", progress=wrong)


if __name__ == "__main__":
    module.run(dict(globals()))
