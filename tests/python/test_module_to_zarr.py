#!/usr/bin/env python3
"""tessera.to_zarr beside xarray's own to_zarr: regions, templates, trees and encodings; and killed at each step."""
import os
import pickle
import shutil
import sys

import module
import numpy as np
from module import raises, tessera

try:
    import dask
    import dask.array
    import xarray
except ImportError:
    print("skipped: no xarray or no dask")
    sys.exit(77)
try:
    import zarr

    THEIRS = not zarr.__version__.startswith("2.")
except ImportError:
    THEIRS = False
TREES = hasattr(xarray, "DataTree")


def dataset(lazy=True):
    holes = np.random.default_rng(1).random((8, 10))
    holes[2, 3] = np.nan
    return xarray.Dataset(
        {"t": (("time", "x"), dask.array.from_array(holes, chunks=(3, 10)) if lazy else holes, {"units": "K"}),
         "n": (("time",), np.arange(8, dtype="i2")), "flag": ((), np.int8(3))},
        {"time": np.arange("2020-01-01", "2020-01-09", dtype="M8[D]").astype("M8[ns]"), "x": np.arange(10.0)}, {"title": "all"})


def sevens(data):
    return data.assign({name: (data[name].fillna(0) * 0 + 7).astype(data[name].dtype) for name in data})


def opened(path, **options):
    return xarray.open_dataset(path, engine="tessera", **options).load()


def written(path="set.zarr", lazy=True, **options):
    shutil.rmtree(path, ignore_errors=True)
    data = dataset(lazy)
    tessera.to_zarr(data, path, **options)
    return data.load()


def test_regions_are_found():
    """Wherever xarray finds one, too, and with its result."""
    part = sevens(dataset()[["t", "n"]].isel(time=slice(2, 5), x=slice(3, 6)))
    of_time, of_x = slice(2, 5), slice(3, 6)
    cases = [(part[["t"]], "auto"), (part, {"time": "auto"}), (part[["t"]], {"time": "auto", "x": of_x}), (part[["t"]], {"time": of_time, "x": "auto"}),
             (part[["t"]].drop_vars("x").isel(x=0), {"time": "auto"}), (part[["n"]], "auto")]
    for lazy in True, False:
        for data, region in cases:
            expected = written(lazy=lazy)
            target = expected.copy(deep=True)
            wanted_error = None
            if THEIRS:
                shutil.rmtree("theirs.zarr", ignore_errors=True)
                expected.to_zarr("theirs.zarr")
                try:
                    data.load().to_zarr("theirs.zarr", region=dict(region) if isinstance(region, dict) else region)
                    target = xarray.open_zarr("theirs.zarr").load()
                except ValueError as error:
                    wanted_error = error
            else:
                for name in data.data_vars:
                    if name == "t" and "x" in data.dims:
                        target["t"][of_time, of_x] = 7
                    elif name == "n":
                        target["n"][of_time] = 7
            given = dict(region) if isinstance(region, dict) else region
            fits = all("x" not in data.variables[n].dims or "x" in (given if isinstance(given, dict) else data.dims) for n in data.data_vars)
            if wanted_error is not None or not fits or (data.sizes.get("x") is None and "t" in data):
                with raises((ValueError, tessera.Error)):
                    tessera.to_zarr(data, "set.zarr", region=given)
                assert opened("set.zarr").identical(expected)
                continue
            tessera.to_zarr(data if lazy else data.load(), "set.zarr", region=given)
            assert opened("set.zarr").identical(target), (data, region, opened("set.zarr"), target)
            assert given == region  # which stays as it was


def test_regions_that_are_none():
    expected = written()
    part = dataset()[["t"]].isel(time=slice(2, 5))
    for data, region, text in (
            (part.assign_coords(time=part.time + np.timedelta64(90, "D")), "auto", "lacks 2020-04-02"),
            (part.isel(time=[0, 2]), "auto", "lie apart"), (part.isel(time=[1, 0]), {"time": "auto"}, "another order"),
            (part, {"time": slice(0, 2)}, "do not fit"), (part, {"y": "auto"}, "none of the dimensions"), (part, {"time": slice(0, 6, 2)}, "step 1"),
            (part, {"time": 3}, "a slice"), (dataset()[["t", "flag"]], "auto", "leave it out")):
        with raises(tessera.InvalidArgument, text):
            tessera.to_zarr(data, "set.zarr", region=region)
    with raises(TypeError, "expected \"auto\""):
        tessera.to_zarr(part, "set.zarr", region="car")
    with raises(tessera.InvalidArgument, "only for a new group"):
        tessera.to_zarr(part, "set.zarr", region="auto", encoding={"t": {"dtype": "f4"}})
    assert opened("set.zarr").identical(expected)


def test_templates():
    wanted = dataset().load()
    for options in {}, {"shards": {"time": 6}}, {"chunks": {"time": 2, "x": 4}}, {"format": "v2"}, {"encoding": {"t": {"dtype": "f4"}}}:
        shutil.rmtree("set.zarr", ignore_errors=True)
        left = tessera.to_zarr(dataset(), "set.zarr", compute=False, **options)
        template = opened("set.zarr")
        assert template.drop_vars("t").identical(wanted.drop_vars("t")) and template.t.shape == wanted.t.shape
        assert not os.path.exists("set.zarr/t/c") and len(left.units()) > 1 and {unit.name for unit in left.units()} == {"t"}
        again = pickle.loads(pickle.dumps(left))
        assert again.units() == left.units() and sum(again.run(unit) for unit in reversed(left.units())) == wanted.t.size
        assert again.run(left.units()[0]) > 0
        expected = wanted.assign(t=wanted.t.astype("f4")) if "encoding" in options else wanted
        assert opened("set.zarr").identical(expected), options
        owners = {}
        array = tessera.open("set.zarr/t")
        unit = array.shards or array.chunks
        for number, (name, block) in enumerate(left.units()):
            begin, shape = left._blocks[name]._begin(block), left._blocks[name]._blocks.blocks[block].shape
            for index in np.ndindex(*[-(-(b + n) // u) for b, n, u in zip(begin, shape, unit)]):
                if all(i >= b // u for i, b, u in zip(index, begin, unit)):
                    assert owners.setdefault(index, number) == number, index
    shutil.rmtree("set.zarr")
    tessera.to_zarr(dataset(), "set.zarr", compute=False).compute()
    assert opened("set.zarr").identical(wanted)
    with raises(tessera.InvalidArgument, "compute=False"):
        tessera.to_zarr(dataset(), "set.zarr", append_dim="time", compute=False)
    assert not os.path.exists("in_memory.zarr") and tessera.to_zarr(dataset(False), "in_memory.zarr", compute=False).units() == []


def test_trees():
    if not TREES:
        print("  left out: no DataTree in this xarray")
        return
    data = dataset()
    tree = xarray.DataTree.from_dict({"/": data[["flag"]].drop_vars(["time", "x"], errors="ignore"), "/fine": data, "/coarse/x2": data.isel(x=slice(0, 10, 2))})
    tessera.to_zarr(tree, "tree.zarr", chunks={"time": 4}, encoding={"/fine": {"t": {"dtype": "f4"}}})

    def now():
        return xarray.open_datatree("tree.zarr", engine="tessera").load()

    fine = data.assign(t=data.t.astype("f4"))
    expected = xarray.DataTree.from_dict({"/": tree["/"].to_dataset(), "/fine": fine, "/coarse/x2": tree["/coarse/x2"].to_dataset()})
    assert now().identical(expected.load())
    if THEIRS:
        assert xarray.open_datatree("tree.zarr", engine="zarr").load().identical(expected)
    later = xarray.DataTree.from_dict({path: (ds.assign_coords(time=ds.time + np.timedelta64(8, "D")) if "time" in ds else ds) for path, ds in tree.to_dict().items()})
    tessera.to_zarr(later, "tree.zarr", append_dim="time")
    found = now()
    for path in "/fine", "/coarse/x2":
        assert found[path].sizes["time"] == 16
        assert found[path].to_dataset().isel(time=slice(8, None)).identical(later[path].to_dataset().load().assign(t=later[path]["t"].astype(found[path]["t"].dtype).load()))
    assert tessera.undo("tree.zarr") > 0 and now().identical(expected)
    broken = later.copy()
    broken["/coarse/x2"] = xarray.DataTree(later["/coarse/x2"].to_dataset().isel(x=slice(0, 3)))
    for wrong, how in ((broken, {"append_dim": "time"}), (later, {"append_dim": "y"}), (later, {"region": {"time": slice(0, 8)}})):
        with raises(tessera.InvalidArgument):
            tessera.to_zarr(wrong, "tree.zarr", **how)
    with raises(tessera.InvalidArgument, "no node 'nowhere'"):
        tessera.to_zarr(tree, "other.zarr", encoding={"/nowhere": {}})
    assert now().identical(expected) and not os.path.exists("other.zarr")


def test_encodings():
    """As xarray stores them."""
    encoding = {"t": {"dtype": "i2", "scale_factor": 0.001, "add_offset": 0.5, "_FillValue": -9, "chunks": (2, 5)},
                "n": {"chunks": (4,), "fill_value": 3}, "time": {"units": "hours since 2019-01-01", "dtype": "i4"}}
    tessera.to_zarr(dataset(), "ours.zarr", encoding=encoding)
    ours = tessera.open("ours.zarr")
    assert ours["t"].chunks == (2, 5) and ours["t"].dtype == "i2" and ours["n"].fill_value == 3
    assert ours["time"].attrs["units"] == "hours since 2019-01-01" and ours["time"].dtype == "i4"
    if THEIRS:
        dataset().load().to_zarr("theirs.zarr", encoding=encoding)
        theirs = tessera.open("theirs.zarr")
        for name in theirs:
            a, b = ours[name], theirs[name]
            assert (a.chunks, a.dtype, a.shape, dict(a.attrs)) == (b.chunks, b.dtype, b.shape, dict(b.attrs)), name
            assert tessera.digest(a) == tessera.digest(b), name
        assert xarray.open_zarr("ours.zarr").load().identical(xarray.open_zarr("theirs.zarr").load())
        from zarr.codecs import BloscCodec, ZstdCodec

        for format in 3, 2:
            codecs = {3: {"compressors": [ZstdCodec(level=4)]}, 2: {"compressors": [__import__("numcodecs").Zstd(4)]}}[format]
            dataset().load().to_zarr("a.zarr", encoding={"t": codecs}, mode="w", zarr_format=format, consolidated=False)
            for engine in "zarr", "tessera":
                shutil.rmtree("b.zarr", ignore_errors=True)
                tessera.to_zarr(xarray.open_dataset("a.zarr", engine=engine, consolidated=False) if engine == "zarr" else xarray.open_dataset("a.zarr", engine=engine),
                                "b.zarr", format=f"v{format}")
                assert tessera.open("b.zarr/t").codec == tessera.open("a.zarr/t").codec == "zstd:4", (format, engine)
        shutil.rmtree("b.zarr")
        tessera.to_zarr(dataset(), "b.zarr", encoding={"t": {"compressors": [BloscCodec(cname="zstd", clevel=2)], "shards": (6, 10), "chunks": (3, 10)}})
        assert tessera.open("b.zarr/t").shards == (6, 10) and tessera.open("b.zarr/t").codec.startswith("blosc:zstd:2")
    for wrong, text in (({"t": {"compression": 3}}, "unexpected compression"), ({"u": {}}, "no variable 'u'"), ({"t": {"compressors": 3}}, "codecs of zarr")):
        with raises((ValueError, TypeError), text):
            tessera.to_zarr(dataset(), "wrong.zarr", encoding=wrong)
    assert not os.path.exists("wrong.zarr") and not [name for name in os.listdir(".") if name.startswith(".")]


def test_a_variable_without_a_name():
    data = xarray.Dataset({None: ("x", [1.0, 2.0])})
    tessera.to_zarr(data, "none.zarr")
    assert opened("none.zarr").identical(data) and list(tessera.open("none.zarr")) == ["__values__"]
    if THEIRS:
        assert xarray.open_zarr("none.zarr").identical(data)


def test_what_was_read_keeps_its_shards():
    written(chunks={"time": 2, "x": 5}, shards={"time": 4, "x": 10})
    tessera.to_zarr(xarray.open_dataset("set.zarr", engine="tessera"), "again.zarr")
    assert tessera.open("again.zarr/t").shards == (4, 10) and tessera.open("again.zarr/t").chunks == (2, 5)
    tessera.to_zarr(xarray.open_dataset("set.zarr", engine="tessera"), "v2.zarr", format="v2")
    assert tessera.open("v2.zarr/t").chunks == (2, 5) and opened("v2.zarr").identical(opened("set.zarr"))


def killed_at(step, work):
    """Whether the child that does some work was killed at that call of the library."""
    child = os.fork()
    if child == 0:
        count = 0

        def kill(frame, event, argument):
            nonlocal count
            if event == "c_call" and (str(getattr(argument, "__module__", "")).startswith("tessera") or type(getattr(argument, "__self__", None)).__module__.startswith(("tessera", "pybind11"))
                                      or argument is os.rename or argument is os.mkdir):
                count += 1
                if count == step:
                    os.kill(os.getpid(), 9)

        sys.setprofile(kill)
        try:
            with dask.config.set(scheduler="synchronous"):
                work()
        except BaseException:  # noqa: B902
            os._exit(3)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -9), status
    return status == -9


def every_step(prepare, work, before, after, look):
    """A process is killed at each call in turn: the group is as before or as after, and the next one does the whole."""
    step, seen = 1, set()
    while True:
        prepare()
        killed = killed_at(step, work)
        found = look()
        is_after = found is not None and found.identical(after)
        assert is_after or (found is None and before is None) or (found is not None and before is not None and found.identical(before)), (step, found)
        seen.add(is_after)
        if not killed:
            assert is_after
            break
        step += max(1, step // 12)
    assert seen == {False, True} and step > 10, (step, seen)


def test_killed():
    data = dataset()
    later = data.assign_coords(time=data.time + np.timedelta64(8, "D"))

    def look():
        return opened("set.zarr") if os.path.exists("set.zarr") else None

    def remove():
        shutil.rmtree("set.zarr", ignore_errors=True)

    every_step(remove, lambda: tessera.to_zarr(data, "set.zarr"), None, data.load(), look)
    remove()
    assert killed_at(12, lambda: tessera.to_zarr(data, "set.zarr"))
    left = [name for name in os.listdir(".") if name.startswith(".tessera-tmp-")]
    tessera.save("other.zarr", np.zeros(3))
    assert len(left) == 1 and list(tessera.open(".")) == ["other.zarr"]  # nobody sees what it left
    remove()
    tessera.to_zarr(dataset(), "set.zarr")  # which takes away what the killed ones left
    assert not [name for name in os.listdir(".") if name.startswith(".")], os.listdir(".")
    shutil.copytree("set.zarr", "kept.zarr")

    def restore():
        remove()
        shutil.copytree("kept.zarr", "set.zarr")

    before = opened("kept.zarr")
    every_step(restore, lambda: tessera.to_zarr(later, "set.zarr", append_dim="time"), before,
               xarray.concat([before, later.load()], "time", data_vars="minimal"), look)
    part = sevens(data[["t", "n"]].isel(time=slice(1, 7))).drop_vars("x")
    after = before.copy(deep=True)
    after["t"][1:7] = part.t.load()
    after["n"][1:7] = 7
    every_step(restore, lambda: tessera.to_zarr(part, "set.zarr", region={"time": "auto"}), before, after, look)


if __name__ == "__main__":
    module.run(dict(globals()))
