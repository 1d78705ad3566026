#!/usr/bin/env python3
"""The engine "tessera" of xarray: a data set in any format is the one that was written."""
import os
import subprocess
import sys

import module
import numpy as np
from module import tessera

try:
    import numcodecs
    import xarray
    import zarr
except ImportError:
    print("skipped: no xarray or no zarr")
    sys.exit(77)


MODERN = not zarr.__version__.startswith("2.")
V2 = {"zarr_format": 2} if MODERN else {}


def dataset():
    rng = np.random.default_rng(1)
    holes = rng.random((4, 6))
    holes[1, 2:4] = np.nan
    return xarray.Dataset(
        {"t": (("y", "x"), holes, {"units": "K"}),
         "n": (("y", "x"), np.arange(24, dtype="i2").reshape(4, 6)),
         "packed": (("x",), np.array([0.5, 1, np.nan, 2, 2.5, 3], "f4")),
         "flag": ((), np.int8(3)),
         "name": (("y",), np.array(["a", "bc", "", "ü"], dtype=object)),
         "when": (("x",), np.array(["2020-01-01T06", "NaT"] + ["2021-05-06"] * 4, "M8[ns]"))},
        {"y": [10, 20, 30, 40], "x": np.arange(6.0), "label": ("y", [1, 0, 1, 0])}, {"title": "everything"})


def write(path, **options):
    data = dataset()
    packing = {"packed": {"dtype": "i2", "scale_factor": 0.5, "add_offset": 1.0, "_FillValue": -9}}
    data.to_zarr(path, encoding=packing, **(options or V2))
    return data


def opened(path, **options):
    return xarray.open_dataset(path, engine="tessera", **options)


def test_each_format():
    data = write("v2.zarr")
    assert opened("v2.zarr").load().identical(xarray.open_zarr("v2.zarr").load())
    assert opened("v2.zarr").load().identical(data), opened("v2.zarr").load()
    if MODERN:
        write("v3.zarr", zarr_format=3, consolidated=False)
        assert opened("v3.zarr").load().identical(data), opened("v3.zarr").load()
    for format in ("v3", "v2"):
        subprocess.run([os.environ["TESSERA_PROGRAM"], "copy", "v2.zarr", f"new.{format}", "--format", format, "--quiet"],
                       check=True)
        assert opened(f"new.{format}").load().identical(data), (format, opened(f"new.{format}").load())
    # Of the older formats no group has attributes, and none has text of any length; v1 has no arrays without dimensions.
    os.mkdir("old")
    for format in ("zmeta", "v1"):
        left_out = ["name"] if format == "zmeta" else ["name", "flag"]
        for name, array in tessera.open("v2.zarr").arrays():
            if name not in left_out:
                tessera.copy(array, f"old/{name}", format=format, overwrite=True)
        if format == "v1":
            tessera.open("old", "r+").remove("flag")
        found = opened("old").load().set_coords("label")
        expected = data.drop_vars(left_out)
        expected.attrs = {}
        assert found.identical(expected), (format, found)


def test_the_fill_marks_missing_elements_in_v2_alone():
    """As xarray's engine for Zarr does; that of other formats is what was never written."""
    elements = {"flags": np.array([True, False, True]), "long": np.array([2**53 + 1, 5, 7]), "real": np.array([1.5, 2, 3])}
    fills = {"flags": True, "long": 5, "real": 2.0}
    for format in ("v3", "zmeta", "v1", "v2"):
        os.mkdir(format)
        if format in ("v2", "v3"):
            tessera.create_group(format, format)
        for name, values in elements.items():
            tessera.create(f"{format}/{name}", data=values, fill_value=fills[name], format=format, dims=("x",))
        found = opened(format).load()
        for name, values in elements.items():
            if format == "v2":
                assert np.isnan(found[name].values.astype("f8")).tolist() == (values == fills[name]).tolist(), (format, name)
            else:
                assert found[name].dtype == values.dtype and np.array_equal(found[name], values), (format, name)
        for mask in (False, True):
            assert (opened(format, use_zarr_fill_value_as_mask=mask)["real"].isnull().sum() == 1) == mask, format
        if format != "v2":
            continue
        theirs = xarray.open_zarr(format, consolidated=False)
        assert found.identical(theirs.load()), (found, theirs)


def test_the_attribute_marks_missing_elements_everywhere():
    values = np.array([1, -9, 3], "i2")
    for format in ("v3", "zmeta", "v1", "v2"):
        fill = None if format == "v2" else 7
        tessera.create(f"{format}.zarr", data=values, fill_value=fill, format=format, dims=("x",),
                       attrs={"_FillValue": -9, "scale_factor": 0.5})
        assert np.array_equal(opened(f"{format}.zarr")[format], [0.5, np.nan, 1.5], equal_nan=True), format
        tessera.copy(f"{format}.zarr", f"{format}.v3", format="v3")
        assert np.array_equal(opened(f"{format}.v3")[format], [0.5, np.nan, 1.5], equal_nan=True), format
    assert opened("v3.zarr")["v3"].encoding.get("fill_value", 7) == 7


def test_what_a_fill_marks_goes_with_a_copy_to_v3_and_back():
    tessera.create_group("a.zarr", "v2")
    for name, values in {"t": np.array([1.5, -999.9, 3], "f4"), "n": np.array([1, -9, 3], "i4"),
                         "zero": np.array([0, 1, 2], "i2")}.items():
        fill = {"t": np.float32(-999.9), "n": -9, "zero": 0}[name]
        tessera.create(f"a.zarr/{name}", data=values, fill_value=fill, format="v2", dims=("x",))
    tessera.copy("a.zarr", "b.zarr", format="v3")
    found = opened("b.zarr")
    assert found["t"].isnull().values.tolist() == found["n"].isnull().values.tolist() == [False, True, False]
    assert found["zero"].values.tolist() == [0, 1, 2] and found["zero"].dtype == "i2"
    if MODERN:
        assert xarray.open_zarr("b.zarr", consolidated=False).load().identical(found.load())
    tessera.copy("b.zarr", "c.zarr", format="v2")
    for name in "t", "n", "zero":
        a, c = tessera.open(f"a.zarr/{name}"), tessera.open(f"c.zarr/{name}")
        # By itself zero marks nothing; null says so where xarray would take it for a mark. The attribute stays beside the
        # fill, which is no mark in images.
        attributes = c.attrs.asdict()
        mark = attributes.pop("_FillValue", None)
        wanted = None if name == "zero" else a.fill_value
        assert a.attrs.asdict() == attributes and c.fill_value == wanted, name
        assert mark is None if wanted is None else a.dtype.type(mark) == wanted, (name, mark)
    assert opened("c.zarr").identical(found)


def test_trees_and_groups():
    """As xarray's engine for Zarr opens them."""
    if not hasattr(xarray, "DataTree"):
        print("  left out: no DataTree in this xarray")
        return
    data = dataset()
    tree = xarray.DataTree.from_dict({"/": data[["flag"]], "/fine": data.drop_vars("label"), "/coarse/x2": data.isel(x=slice(None, None, 2)), "/empty": xarray.Dataset()})
    for options in ({"zarr_format": 2}, {"zarr_format": 3}) if MODERN else ({},):
        tree.to_zarr("tree.zarr", mode="w", **options)
        theirs = xarray.open_datatree("tree.zarr", engine="zarr", chunks=None)
        ours = xarray.open_datatree("tree.zarr", engine="tessera")
        assert ours.identical(theirs) and list(ours.subtree_with_keys) != [], (ours, theirs)
        groups = xarray.open_groups("tree.zarr", engine="tessera")
        assert {path: found.load() for path, found in groups.items()}.keys() == xarray.open_groups("tree.zarr", engine="zarr").keys()
        assert groups["/coarse/x2"].identical(opened("tree.zarr", group="coarse/x2"))
        assert xarray.open_datatree("tree.zarr", engine="tessera", group="coarse").identical(xarray.open_datatree("tree.zarr", engine="zarr", group="coarse", chunks=None))
        codecs = {name: variable.encoding.get("compressors") for name, variable in opened("tree.zarr", group="fine").variables.items()}
        assert codecs == {name: variable.encoding.get("compressors") for name, variable in xarray.open_zarr("tree.zarr", group="fine").variables.items()}
    with module.raises(tessera.Unsupported, "has no group"):
        xarray.open_dataset("tree.zarr/flag", engine="tessera", group="x")


def test_coroutines_read():
    import asyncio

    data = write("a.zarr")
    if not hasattr(data, "load_async"):
        print("  left out: no load_async in this xarray")
        return

    async def read():
        lazy = [opened("a.zarr"), opened("a.zarr").isel(y=[2, 0], x=slice(1, 4)), opened("a.zarr").isel(x=xarray.DataArray([0, 3], dims="p"), y=xarray.DataArray([1, 1], dims="p"))]
        return await asyncio.gather(*(part.load_async() for part in lazy))

    whole, outer, points = asyncio.run(read())
    assert whole.identical(data) and outer.identical(data.isel(y=[2, 0], x=slice(1, 4)))
    assert points.identical(data.isel(x=xarray.DataArray([0, 3], dims="p"), y=xarray.DataArray([1, 1], dims="p")))


def test_codecs_are_looked_up_once():
    """Most arrays of a data set have the same."""
    write("a.zarr")
    opened("a.zarr")
    backend = sys.modules["tessera._xarray"]
    original, asked = backend._codec_objects, []
    backend._codec_objects = lambda array, *rest: asked.append(array.path) or original(array, *rest)
    try:
        first = opened("a.zarr")
        assert asked == []
        shared = first["t"].encoding.get("filters")
        if isinstance(shared, list):
            shared.append("of the caller")
        assert "of the caller" not in (opened("a.zarr")["t"].encoding.get("filters") or [])
    finally:
        backend._codec_objects = original


def test_is_lazy_and_indexes():
    data = write("a.zarr")
    found = opened("a.zarr")
    array = found["t"].variable._data
    assert "LazilyIndexed" in repr(array) or "Copy" in repr(array), repr(array)
    for pick in ({"x": 2}, {"y": slice(1, 3), "x": [5, 0, 0]}, {"y": [3, 1], "x": [0, 2]}, {"x": slice(None, None, -2)}):
        assert found.isel(pick)["t"].load().identical(data.isel(pick)["t"]), pick
    points = {"y": xarray.DataArray([0, 3], dims="p"), "x": xarray.DataArray([1, 2], dims="p")}
    assert found["t"].isel(points).load().identical(data["t"].isel(points))
    assert found["t"].encoding["preferred_chunks"] == {"y": 4, "x": 6}


def test_encoding_keeps_how_zarr_3_stores():
    if not MODERN:
        return
    tessera.create_group("a.zarr")
    for name, codec in (("t", "zstd:3"), ("n", "none"), ("when", "gzip:1,crc32c")):
        tessera.create(f"a.zarr/{name}", (4, 6), "f4", (3, 4), codec=codec, dims=("y", "x"), data=np.arange(24).reshape(4, 6), format="v3",
                       shards=(6, 8) if name == "n" else None)
    ours, theirs = opened("a.zarr"), xarray.open_zarr("a.zarr", chunks=None, consolidated=False)
    for name in theirs.variables:
        for kept in "chunks", "preferred_chunks", "compressors", "filters", "serializer", "shards":
            assert ours[name].encoding[kept] == theirs[name].encoding[kept], (name, kept, ours[name].encoding)
    ours.to_zarr("b.zarr", consolidated=False)
    for name in theirs.variables:
        a, b = tessera.open(f"a.zarr/{name}"), tessera.open(f"b.zarr/{name}")
        assert (a.codec, a.chunks, a.shards) == (b.codec, b.chunks, b.shards) and (a[:] == b[:]).all()


def test_encoding_keeps_how_it_is_stored():
    if MODERN:
        return
    coding = {"t": {"chunks": (3, 4), "compressor": numcodecs.Zstd(3)},
              "n": {"compressor": None, "filters": [numcodecs.Delta("i2")]}}
    dataset().to_zarr("a.zarr", encoding=coding)
    ours, theirs = opened("a.zarr"), xarray.open_zarr("a.zarr", chunks=None)
    for name in theirs.variables:
        for kept in "chunks", "preferred_chunks", "compressor", "filters":
            expected = None if (name, kept) == ("name", "filters") else theirs[name].encoding[kept]
            assert ours[name].encoding[kept] == expected, (name, kept, ours[name].encoding)
        assert ours[name].encoding["shards"] is None
    ours.to_zarr("b.zarr")
    assert opened("b.zarr").load().identical(dataset())
    assert (tessera.open("b.zarr/t").codec, tessera.open("b.zarr/n").codec) == ("zstd:3", "delta") and tessera.open("b.zarr/t").chunks == (3, 4)
    tessera.create("s.zarr", (8, 8), "i4", (2, 2), shards=(4, 4), format="v3", codec="zstd:1")
    found = opened("s.zarr")["s"].encoding
    assert found["chunks"] == (2, 2) and found["shards"] == (4, 4)


def test_groups_files_and_names():
    data = write("g.zarr")
    data[["t"]].to_zarr("g.zarr", group="sub", mode="a", **V2)
    assert opened("g.zarr", group="sub").load().identical(data[["t"]])
    np.save("plain.npy", np.arange(6).reshape(2, 3))
    assert opened("plain.npy")["plain"].dims == ("plain_dim_0", "plain_dim_1")
    np.savez("two.npz", a=[1, 2], b=[[3.5]])
    assert opened("two.npz")["b"].values.tolist() == [[3.5]]
    a = tessera.create("v3.zarr", (2, 3), "i4", format="v3", dims=["y", None])
    a[0] = 5
    found = xarray.open_dataset(a, engine="tessera")["v3"]
    # Zero, which every array of v3 has as its fill, is no missing value.
    assert found.dtype == "i4" and found.dims == ("y", "v3_dim_1") and found.values.tolist() == [[5] * 3, [0] * 3]


if __name__ == "__main__":
    module.run(dict(globals()))
