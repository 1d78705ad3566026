#!/usr/bin/env python3
"""Names and values that users of zarr and NumPy guess, compared with what zarr and NumPy make of them."""
import itertools
import os
import pickle
import subprocess
import sys
import types

import module
import numpy as np
from module import raises, tessera

try:
    import zarr
except ImportError:
    zarr = None
MODERN = zarr is not None and not zarr.__version__.startswith("2.")


def made(name="x.zarr", shape=(30, 40), **options):
    return tessera.create(name, shape=shape, dtype="i4", overwrite=True, **options)


def test_lengths_of_chunks():
    for shape in (30, 40), (7,), (30, 40, 5), ():
        for chunks in (10, -1, np.int64(10), (-1, 10, 5)[:len(shape)], (None, 10, 5)[:len(shape)], (10, -1, -1)[:len(shape)]):
            wanted = zarr.create(shape=shape, dtype="i4", chunks=chunks).chunks if zarr else None
            found = made(shape=shape, chunks=chunks).chunks
            assert wanted is None or found == wanted, (shape, chunks, found, wanted)
    assert made(chunks=10).chunks == (10, 10) and made(chunks=(-1, 10)).chunks == (30, 10)
    assert made(chunks="auto").chunks == made().chunks == made(chunks=True).chunks
    assert made(chunks=False).chunks == made(chunks=-1).chunks == (30, 40)
    assert made(shape=(0, 4), chunks=-1).chunks == (1, 4)
    assert made(chunks=np.array([10, 20])).chunks == (10, 20) and made(shape=np.array([3, 4])).shape == (3, 4)
    assert made(chunks=[[10, 20], -1]).chunk_lengths == ((10, 20), (40,))
    for wrong in (0, -2, (-2, 10), (10,), (10, 10, 10), 10.0, "10,-1", (True, "auto")):
        with raises((ValueError, TypeError)):
            made("wrong.zarr", chunks=wrong)
        assert not os.path.exists("wrong.zarr"), wrong


def test_lengths_by_names():
    assert made(dims=("y", "x"), chunks={"x": 8}).chunks == (30, 8)
    assert made(dims=np.array(["y", "x"]), chunks={"x": -1, "y": 5}).chunks == (5, 40)
    array = made(dims=("y", "x"), chunks=7, shards={"y": 14})
    assert array.chunks == (7, 7) and array.shards == (14, 42)
    assert made(chunks=7, shards=-1).shards == (35, 42) and made(chunks=5, shards=10).shards == (10, 10)
    with raises(tessera.InvalidArgument, "'z' is none of the dimensions y, x"):
        made(dims=("y", "x"), chunks={"z": 8})
    with raises(tessera.InvalidArgument, "dims"):
        made(chunks={"x": 8})
    group = tessera.create_group("g.zarr")
    assert group.create_array("a", (30, 40), "i4", chunks={"y": 3}, dimension_names=["y", "x"]).chunks == (3, 40)
    tessera.save("s.zarr", np.zeros((4, 6)), chunks=(2, -1))
    assert tessera.open("s.zarr").chunks == (2, 6)


def test_names_of_zarr():
    array = made(attributes={"units": "m"}, dimension_names=["y", "x"])
    assert dict(array.attrs) == {"units": "m"} and array.dims == ("y", "x")
    with raises(tessera.InvalidArgument, "attrs, attributes: say one"):
        made("wrong.zarr", attributes={}, attrs={"a": 1})
    delta, zlib = {"id": "delta", "dtype": "<i4"}, {"id": "zlib", "level": 3}
    blosc = {"id": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 2, "blocksize": 0}
    for format in "v2", "v3":
        usual = made(format=format).codec
        for options, wanted in (
                ({"compressors": None}, "none"), ({"compressors": ()}, "none"), ({"compressor": None}, "none"),
                ({"compressors": "auto"}, usual), ({"filters": "auto"}, usual), ({"filters": None}, usual),
                ({"compressors": {"name": "zstd", "configuration": {"level": 3}}}, "zstd:3"),
                ({"compressors": [zlib]}, "zlib:3"), ({"compressor": zlib}, "zlib:3"), ({"compressor": blosc}, "blosc:zstd:3:bitshuffle"),
                ({"filters": [delta]}, "delta," + usual), ({"filters": delta, "compressors": None}, "delta"),
                ({"filters": [delta], "compressor": zlib}, "delta,zlib:3")):
            assert made(format=format, **options).codec == wanted, (format, options)
    for options, text in (({"compressors": 3}, "found 3"), ({"compressors": "zstd"}, "codec takes text"), ({"filters": [delta], "codec": "none"}, "say one"),
                          ({"compressor": None, "compressors": None}, "say one"), ({"compressors": {"name": "nothing"}}, "nothing")):
        with raises((ValueError, TypeError, NotImplementedError), text):
            made("wrong.zarr", **options)
    assert not os.path.exists("wrong.zarr")


def test_codecs_of_zarr_and_numcodecs():
    if zarr is None:
        return
    import numcodecs

    values = np.arange(1200, dtype="i4").reshape(30, 40)
    compressors = [numcodecs.Zstd(level=2), numcodecs.Blosc("lz4", 4), numcodecs.GZip(3), numcodecs.Zlib(2), numcodecs.LZ4(), None]
    for filters, compressor in itertools.product([None, [numcodecs.Delta("<i4")]], compressors):
        array = made(format="v2", filters=filters, compressor=compressor)
        array[...] = values
        read = zarr.open("x.zarr", mode="r")
        assert np.array_equal(read[...], values)
        stored = (read.compressors[0] if read.compressors else None) if MODERN else read.compressor
        assert stored == compressor and list(read.filters or []) == (filters or []), (stored, compressor, read.filters)
    if not MODERN:
        return
    from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

    for chain in ([ZstdCodec(level=2)], [BloscCodec(cname="zstd", clevel=4, shuffle="bitshuffle", typesize=4)], [BloscCodec()],
                  [GzipCodec(level=3), Crc32cCodec()], ()):
        for filters in (), [TransposeCodec(order=(1, 0))]:
            array = made(filters=filters, compressors=chain)
            array[...] = values
            read = zarr.open("x.zarr", mode="r")
            assert np.array_equal(read[...], values) and read.filters == tuple(filters)
            assert [c.to_dict()["name"] for c in read.compressors] == [c.to_dict()["name"] for c in chain]
            for mine, theirs in zip(read.compressors, chain):
                wanted = theirs.to_dict().get("configuration", {})
                found = mine.to_dict().get("configuration", {})
                assert all(found[key] == value for key, value in wanted.items() if value is not None and key != "typesize"), (found, wanted)


def test_modes():
    options = {"shape": 3, "dtype": "i4"}
    for mode in "a", "w-":
        assert tessera.open(f"{mode}.zarr", mode, **options).mode == "r+"
    with raises(tessera.AlreadyExists):
        tessera.open("a.zarr", "w-", **options)
    tessera.open("a.zarr", "a")[1] = 7
    assert tessera.open("a.zarr", "a", **options)[...].tolist() == [0, 7, 0]
    with raises(tessera.InvalidArgument, "expected int32 and (4,)"):
        tessera.open("a.zarr", "a", shape=4, dtype="i4")
    with raises(tessera.InvalidArgument, "overwrite=True"):
        tessera.open("a.zarr", "w", **options)
    assert tessera.open("a.zarr")[1] == 7
    assert tessera.open("a.zarr", "w", overwrite=True, **options)[1] == 0
    for mode, extra in (("r", options), ("r+", {"overwrite": True}), ("x", {})):
        with raises(tessera.InvalidArgument):
            tessera.open("a.zarr", mode, **extra)
    assert isinstance(tessera.open("g.zarr", "a"), tessera.Group) and isinstance(tessera.open_group("g.zarr", "a"), tessera.Group)
    tessera.open("g.zarr", "a")["v"] = np.arange(3)
    assert list(tessera.open_group("g.zarr", "a")) == ["v"]
    with raises(tessera.AlreadyExists):
        tessera.open_group("g.zarr", "w-")
    with raises(tessera.InvalidArgument, "overwrite=True"):
        tessera.open_group("g.zarr", "w")
    assert list(tessera.open("g.zarr")) == ["v"]
    group = tessera.open_group("g.zarr", "w", overwrite=True, attrs={"title": "new"}, format="v2")
    assert list(group) == [] and dict(group.attrs) == {"title": "new"} and group.format == "v2"
    with raises(TypeError, "no chunks"):
        tessera.open("h.zarr", "w-", chunks=3)
    with raises(tessera.InvalidArgument, "expected an array"):
        tessera.open("g.zarr", "a", **options)
    with raises(TypeError, "shape and dtype"):
        tessera.open_array("h.zarr", "a")
    with raises(tessera.AlreadyExists):
        tessera.open_array("g.zarr", "w", overwrite=True, **options)
    assert not os.path.exists("h.zarr") and tessera.open_group("g.zarr").format == "v2"


def test_zeros_and_full():
    for dtype in ("f8", "i2", "bool", "M8[D]", "S3", "U4", "c8", [("a", "i4"), ("b", "f4")]):
        assert np.array_equal(tessera.zeros("z.zarr", (2, 3), dtype, overwrite=True)[...], np.zeros((2, 3), dtype)), dtype
    assert tessera.zeros("z.zarr", 3, overwrite=True).dtype == np.zeros(3).dtype
    assert tessera.zeros("z.zarr", 2, str, overwrite=True)[...].tolist() == ["", ""]
    for value in 7, 2.5, True, 1 + 2j, "text", np.float32(3):
        found, wanted = tessera.full("f.zarr", (2, 2), value, overwrite=True, chunks=-1), np.full((2, 2), value)
        assert found.dtype == wanted.dtype and np.array_equal(found[...], wanted), value
    assert tessera.full("f.zarr", 2, 7, "f4", overwrite=True, attributes={"a": 1}).attrs["a"] == 1
    assert not os.path.exists("f.zarr/c")


def test_blocks():
    values = np.arange(7 * 5).reshape(7, 5)
    arrays = [made(shape=(7, 5), chunks=(3, 2)), made("y.zarr", shape=(7, 5), chunks=[[4, 1, 2], [2, 3]])]
    for array in arrays:
        array[...] = values
    theirs = None
    if hasattr(getattr(zarr, "Array", None), "blocks"):
        theirs = zarr.array(values, chunks=(3, 2))
    keys = [0, -1, (1, 2), (slice(1, None), 0), (slice(None), slice(-1, None)), ..., (..., 1), (2, ...), slice(2, 1), (0, slice(0, 9))]
    for key in keys:
        if theirs is not None and key != slice(2, 1):  # of which zarr takes the chunk before
            assert np.array_equal(arrays[0].blocks[key], theirs.blocks[key]), key
        starts = [[0, 4, 5, 7], [0, 2, 5]]
        numbers = np.arange(6).reshape(3, 2)[key] if arrays[1].blocks.shape == (3, 2) and key != (1, 2) else None
        if numbers is not None:
            wanted = np.isin(np.repeat(np.repeat(np.arange(6).reshape(3, 2), np.diff(starts[0]), 0), np.diff(starts[1]), 1), numbers)
            assert np.array_equal(np.sort(arrays[1].blocks[key].ravel()), values[wanted]), key
    arrays[0].blocks[0, 1:] = -1
    values[:3, 2:] = -1
    assert np.array_equal(arrays[0][...], values) and arrays[0].blocks.shape == (3, 3)
    for wrong in (3, -4, (0, 3), (0, 0, 0), slice(None, None, 2), [0, 1], True, "a", None):
        with raises(IndexError):
            arrays[0].blocks[wrong]


def test_names_of_groups():
    group = tessera.create_group("g.zarr")
    for name in "b", "a":
        group[name] = np.arange(3)
        group.create_group("in_" + name)
    assert group.array_keys() == ["a", "b"] and group.group_keys() == ["in_a", "in_b"]
    assert group._ipython_key_completions_() == list(group)
    if zarr is not None:
        theirs = zarr.open_group("g.zarr", mode="r") if MODERN else None
        assert theirs is None or (sorted(theirs.array_keys()) == group.array_keys() and sorted(theirs.group_keys()) == group.group_keys())
    np.savez("m.npz", x=1, y=2)
    assert tessera.open("m.npz")._ipython_key_completions_() == ["x", "y"]


def test_arrays_in_memory():
    values = np.arange(24.0).reshape(4, 6)
    values[1, 2] = np.nan
    tessera.save("v.zarr", values, chunks=(2, 3))
    assert tessera.reduce(values, "mean") == tessera.reduce("v.zarr", how="mean") == np.nanmean(values)
    assert np.array_equal(tessera.reduce("v.zarr", "max", axis=0), np.nanmax(values, 0))
    for array in values, np.asfortranarray(values), values.astype(">f8"), values[::-1][::-1]:
        assert tessera.digest(array) == tessera.digest("v.zarr") or array.dtype != values.dtype
        assert tessera.stats(array).mean == tessera.stats("v.zarr").mean
        assert tessera.diff(array, "v.zarr").equal or array.dtype != values.dtype
        tessera.copy(array, "c.zarr", overwrite=True, chunks=(2, 2))
        assert np.array_equal(tessera.load("c.zarr"), values, equal_nan=True) and tessera.open("c.zarr").chunks == (2, 2)
    assert tessera.diff(values + 1, values).different == 23
    tessera.copy(values, "part.zarr", np.s_[1:, ::2])
    assert np.array_equal(tessera.load("part.zarr"), values[1:, ::2], equal_nan=True)
    with raises(tessera.Unsupported, "tessera.save"):
        tessera.stats(np.array(["a"], object))
    with raises(tessera.InvalidArgument, "save it first"):
        tessera.plan("copy", values, "p.zarr", out="p.json")
    with raises(tessera.InvalidArgument, "how: expected min"):
        tessera.reduce("v.zarr", "avg")
    with raises(TypeError, 'reduce(a, "mean")'):
        tessera.reduce("v.zarr")


def test_dlpack():
    values = np.arange(12, dtype="f4").reshape(3, 4)
    for dtype in "f4", ">f4", "i2", "c8":
        array = tessera.create("d.zarr", data=values.astype(dtype), overwrite=True)
        found = np.from_dlpack(array)
        assert found.dtype == np.dtype(dtype).newbyteorder("=") and np.array_equal(found, values)
    assert array.__dlpack_device__() == values.__dlpack_device__()
    with raises(BufferError):
        array.__dlpack__(copy=False)
    tessera.create("t.zarr", data=["a", "b"], dtype=str)
    with raises(BufferError):
        np.from_dlpack(tessera.open("t.zarr"))


def test_any_mapping():
    options = types.MappingProxyType({"anon": True, "client_kwargs": types.MappingProxyType({"region_name": "eu"})})
    attributes = types.MappingProxyType({"a": types.MappingProxyType({"b": 1})})
    array = made(attrs=attributes, storage_options=options)
    assert dict(array.attrs) == {"a": {"b": 1}} and pickle.loads(pickle.dumps(array)) == array
    assert dict(made("y.zarr", attrs=array.attrs).attrs) == {"a": {"b": 1}}
    assert dict(tessera.create_group("g.zarr", attrs=attributes).attrs) == {"a": {"b": 1}}
    array.attrs["c"] = types.MappingProxyType({"d": [1]})
    assert array.attrs["c"] == {"d": [1]}
    for function in tessera.open, tessera.info, tessera.load, tessera.digest, tessera.stats, tessera.verify:
        assert function("x.zarr", storage_options=options) is not None
    with raises(tessera.InvalidArgument, "there is no 'nothing'"):
        tessera.open("x.zarr", storage_options=types.MappingProxyType({"nothing": 1}))
    with raises(TypeError):
        tessera.open("x.zarr", storage_options=[1])


def test_what_the_module_shows():
    shown = [name for name in dir(tessera) if not name.startswith("_")]
    assert shown == sorted(tessera.__all__) and not {"Any", "TYPE_CHECKING", "annotations", "in_words"} & set(shown)
    for name in tessera.types.__all__:
        assert getattr(tessera, name, getattr(tessera.types, name)) is getattr(tessera.types, name), name
    assert type(tessera.verify(made().path)) is tessera.types.Verification is tessera.Verification
    found = pickle.loads(pickle.dumps(tessera.stats("x.zarr")))
    assert found == tessera.stats("x.zarr") and found.mean == 0
    program = "import sys, tessera; from tessera.types import *; assert 'zarr' not in sys.modules; from tessera import *; ArrayInfo, zeros"
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONPATH": os.environ["TESSERA_MODULE"]})


if __name__ == "__main__":
    module.run(dict(globals()))
