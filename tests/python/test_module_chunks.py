#!/usr/bin/env python3
"""What each chunk amounts to, beside NumPy; and what is left out by it."""
import time

import module
import numpy as np
from module import raises, tessera

SETTLED = 0.15  # seconds after which a change is older than any clock's grain


def require_chunks(a, values, fill_absent=(), **options):
    """`values`: what elements stand for; masked or NaN where they are missing."""
    found = a.chunk_stats(**options)
    steps = a.chunks
    grid = tuple(-(-n // c) for n, c in zip(a.shape, steps))
    assert found.min.shape == found.stored.shape == grid, (found.min.shape, grid)
    for at in np.ndindex(*grid):
        part = values[tuple(slice(i * c, (i + 1) * c) for i, c in zip(at, steps))]
        lacks = np.ma.getmaskarray(part) | (np.isnat(part) if part.dtype.kind in "mM" else
                                            np.isnan(part) if part.dtype.kind == "f" else False)
        some = np.ma.getdata(part)[~lacks]
        assert (found.count[at], found.missing[at]) == (some.size, lacks.sum()), at
        for mine, theirs in (found.min, np.min), (found.max, np.max):
            assert mine.dtype == part.dtype
            if some.size:
                assert mine[at] == theirs(some), (at, mine[at])
            elif mine.dtype.kind in "fmM":
                assert mine[at] != mine[at]
            else:
                assert mine[at] is np.ma.masked
        if some.size and some.dtype.kind not in "mM":
            assert np.isclose(found.mean[at], some.mean(dtype="f8"), rtol=1e-12, atol=1e-12)
            assert np.isclose(found.sum[at], some.sum(dtype="f8"), rtol=1e-12, atol=1e-9)
        elif not some.size:
            assert np.isnan(found.mean[at]) and found.sum[at] == 0
    return found


def test_beside_numpy():
    chance = np.random.default_rng(3)
    for dtype in "<f4", ">f8", "<f2", "<i2", "<u8", "<i8", "|b1", "<M8[s]":
        values = chance.normal(size=(25, 31)) * 9
        values = (np.abs(values) if dtype[1] in "ub" else values)
        values = (np.rint(values) if dtype[1] in "uiM" else values).astype(dtype)
        if dtype[1] in "fM":
            values[:10, 10:20] = "NaT" if dtype[1] == "M" else np.nan
            values[12, 3] = values[0, 10]
        for options in ({}, {"format": "v3", "shards": (20, 20)}):
            native = values.astype(values.dtype.newbyteorder("="))
            a = tessera.create("a.zarr", data=values, chunks=(10, 10), overwrite=True, **options)
            plain = require_chunks(a, native)
            time.sleep(SETTLED)
            tessera.index(a)
            by_index = require_chunks(a, native)
            a[3, 3] = a[4, 4]
            native[3, 3] = native[4, 4]
            changed = require_chunks(a, native)
            full = require_chunks(a, native, index=False)
            for name in "stored", "stored_bytes", "count", "missing", "min", "max", "mean":
                np.testing.assert_array_equal(getattr(plain, name), getattr(by_index, name), name)
                np.testing.assert_array_equal(getattr(changed, name), getattr(full, name), name)


def test_what_is_stored():
    for shards in None, (20, 20):
        a = tessera.create("a.zarr", (45, 45), "<i4", chunks=(10, 10), shards=shards, format="v3", fill_value=7, overwrite=True)
        a[12, 33] = 1
        a[40:, 40:] = 3
        values = np.full((45, 45), 7, "<i4")
        values[12, 33], values[40:, 40:] = 1, 3
        found = require_chunks(a, values)
        stored = np.zeros((5, 5), bool)
        stored[1, 3] = stored[4, 4] = True
        np.testing.assert_array_equal(found.stored, stored)
        np.testing.assert_array_equal(found.stored_bytes > 0, stored)
        if shards is None:
            assert found.stored_bytes.sum() == a.info.stored_bytes
        else:  # beside the index of each shard
            assert 0 < found.stored_bytes.sum() < a.info.stored_bytes
    # In memory and in a zip there is no index, and all is read.
    tessera.copy("a.zarr", "a.zip", format="v3")
    packed = tessera.open("a.zip")
    np.testing.assert_array_equal(require_chunks(packed, values).stored, stored)


def test_meaning():
    codes = np.array([[1, 2, -1, -1], [3, 9, -1, -1]], "<i2")
    a = tessera.create("p.zarr", data=codes, chunks=(2, 2), format="v3", attrs={"_FillValue": -1, "scale_factor": 0.5})
    values = np.where(codes == -1, np.nan, codes * 0.5)
    require_chunks(a, values.astype(a.decoded.dtype))
    require_chunks(a, codes, raw=True)
    wide = tessera.create("w.zarr", data=codes.astype("<i8"), chunks=(2, 2), format="v3", attrs={"_FillValue": -1})
    found = require_chunks(wide, np.ma.masked_equal(codes.astype("<i8"), -1))
    assert isinstance(found.min, np.ma.MaskedArray)
    assert not isinstance(wide.chunk_stats(raw=True).min, np.ma.MaskedArray)


def test_where():
    chance = np.random.default_rng(4)
    for dtype in "<f4", ">f8", "<i2", "|u1", "<u8", "<i8", "<M8[s]":
        values = np.rint(np.abs(chance.normal(size=(25, 31)) * 9)).astype(dtype)
        if dtype[1] == "f":
            values[3, 4] = np.nan
        native = values.astype(values.dtype.newbyteorder("="))
        condition = "value > datetime64('1970-01-01T00:00:10')" if dtype[1] == "M" else "value > 10"
        meets = native > np.array(10, native.dtype)
        a = tessera.create("a.zarr", data=values, chunks=(10, 10), format="v3", overwrite=True)
        for indexed in False, True:
            if indexed:
                time.sleep(SETTLED)
                tessera.index(a)
            found = a.where(condition)
            assert found.dtype == a.decoded.dtype
            np.testing.assert_array_equal(np.ma.getmaskarray(found), ~meets)
            np.testing.assert_array_equal(found.compressed(), native[meets])
    packed = tessera.create("p.zarr", data=np.array([1, 2, 9, 7], "i2"), format="v3", attrs={"_FillValue": 9, "scale_factor": 0.5})
    assert packed.where("value >= 1").tolist() == [None, 1.0, None, 3.5]
    assert packed.where("value != 1").tolist() == [0.5, None, None, 3.5]
    table = tessera.create("t.zarr", data=np.array([(1, 2.5), (3, 4.5)], "i4,f8"))
    assert table.where("f0 > 1").tolist() == [(3, 4.5)]
    for wrong in "value + 1", "x > 1", "":
        with raises(tessera.InvalidArgument):
            packed.where(wrong)
    with raises(tessera.Unsupported, "no element can be missing"):
        tessera.create("b.zarr", data=np.array([True])).where("value")


def test_other_elements():
    for values in np.array([1j, 2]), np.array(["a", "bc"]), np.array([(1, 2.5)], "i4,f8"):
        a = tessera.create("o.zarr", data=values, chunks=1, format="v3", overwrite=True)
        found = a.chunk_stats()
        assert found.stored.all() and found.min is None and found.sum is None
    np.save("plain.npy", np.arange(3))
    with raises(tessera.Unsupported):
        tessera.open("plain.npy").chunk_stats()
    for shape in (), (0, 3), (3, 0):
        found = tessera.create("e.zarr", shape, "f4", fill_value=2, overwrite=True).chunk_stats()
        assert found.count.sum() == int(np.prod(shape))
    damaged = tessera.create("d.zarr", data=np.arange(8.0), chunks=4, format="v3")
    with open("d.zarr/c/1", "wb") as file:
        file.write(b"no chunk")
    with raises(tessera.Corrupt):
        damaged.chunk_stats()


def test_lengths_that_differ():
    a = tessera.create("r.zarr", shape=25, dtype="i4", chunks=[[10, 10, 5]], format="v3")
    a[:] = np.arange(25)
    np.testing.assert_array_equal(a.chunk_stats().max, [9, 19, 24])


if __name__ == "__main__":
    module.run(dict(globals()))
