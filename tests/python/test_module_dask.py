#!/usr/bin/env python3
"""dask reads and writes arrays block by block: aligned, by deterministic names, and without losing anything."""
import os
import pickle
import sys
import time

import module
import numpy as np
from module import tessera

try:
    import dask
    import dask.array as da
    from dask.base import tokenize
except ImportError:
    print("skipped: no dask (Debian: python3-dask)")
    sys.exit(77)

INCREMENTS = int(os.environ.get("TESSERA_MODULE_INCREMENTS", 25))  # of each of eight processes


def aged(path):
    """As if it was written long ago: what is too young has no token of its own."""
    for folder, _, files in os.walk(path):
        for name in files:
            os.utime(os.path.join(folder, name), ns=(0, 1_600_000_000_123_456_789))
    if os.path.isfile(path):
        os.utime(path, ns=(0, 1_600_000_000_123_456_789))


def aligned(blocks, units, shape):
    return all(sum(lengths) == n and all(length % unit == 0 for length in lengths[:-1])
               for lengths, unit, n in zip(blocks, units, shape))


def test_blocks_are_aligned():
    values = np.arange(350 * 220, dtype="<i4").reshape(350, 220)
    for options in ({}, {"format": "v3", "shards": (60, 64)}):
        tessera.save("a.zarr", values, chunks=(30, 16), overwrite=True, **options)
        a = tessera.open("a.zarr")
        for lazy in (a.to_dask(), a.to_dask(limit=20_000), a.to_dask(limit=1)):
            assert aligned(lazy.chunks, a.shards or a.chunks, a.shape), lazy.chunks
            assert np.array_equal(lazy.compute(), values) and lazy.dtype == values.dtype
        with dask.config.set({"array.chunk-size": "20kB"}):
            assert aligned(da.from_array(a).chunks, a.chunks, a.shape), da.from_array(a).chunks
        assert a.to_dask(limit=1).numblocks == tuple(-(-n // c) for n, c in zip(a.shape, a.shards or a.chunks))
        assert a.to_dask(chunks=(100, 220)).chunks == ((100, 100, 100, 50), (220,))
    np.save("a.npy", values)
    assert np.array_equal(tessera.open("a.npy").to_dask(limit="50kB").sum(0).compute(), values.sum(0))
    for shape in ((), (0, 3)):
        tessera.create("e.zarr", shape, "f4", overwrite=True)
        assert tessera.open("e.zarr").to_dask().compute().shape == shape


def test_reads_what_numpy_would():
    values = np.arange(50 * 40).reshape(50, 40)
    tessera.save("a.zarr", values, chunks=(7, 9))
    a = tessera.open("a.zarr")
    for lazy in (da.from_array(a), da.from_array(a, chunks=(14, 18)), a.to_dask(limit=500)):
        for key in ((slice(None, None, 3), 5), ([3, 1, 45],), (slice(4, 9), [0, 39]), (slice(None), np.arange(40) % 2 == 0)):
            assert np.array_equal(lazy[key].compute(), values[key]), key
        assert lazy.sum().compute() == values.sum()
        assert np.array_equal(lazy.rechunk((50, 3)).T.compute(), values.T)
    tessera.save("words.zarr", np.array(["a", "ü", "long" * 9], dtype=object), format="v3", chunks=2)
    assert tessera.open("words.zarr").to_dask(limit=1).compute().tolist() == ["a", "ü", "long" * 9]


def test_where():
    """As dask's own masks, and what cannot match is never read."""
    values = np.rint(np.random.default_rng(5).normal(size=(50, 41)) * 9)
    values[33:36, 12] = 99
    for dtype, options in (("f4", {}), ("i2", {"shards": (14, 18)}), ("i2", {"attrs": {"_FillValue": -3, "scale_factor": 0.5}})):
        a = tessera.create("a.zarr", data=values.astype(dtype), chunks=(7, 9), format="v3", overwrite=True, **options)
        plain = a.decoded[...]
        for indexed in False, True:
            if indexed:
                time.sleep(0.15)
                tessera.index(a)
            for condition, meets in (("value > 40", plain > 40), ("(value > 3) & (value < 9)", (plain > 3) & (plain < 9))):
                for blocks in None, (14, 18), (10, 41):
                    lazy = a.to_dask(chunks=blocks, limit=500, where=condition)
                    assert lazy.shape == a.shape and lazy.dtype == plain.dtype
                    found = lazy.compute()
                    np.testing.assert_array_equal(np.ma.getmaskarray(found), ~meets)
                    np.testing.assert_array_equal(found.compressed(), plain[meets])
                    assert np.isclose(lazy.mean().compute(), plain[meets].mean(dtype="f8"))
        read = [task for task in dict(a.to_dask(chunks=(7, 9), where="value > 45").dask).values() if task[0].__name__ == "_read"]
        assert len(read) == 2, len(read)  # of 40 blocks
    dask.compute(pickle.loads(pickle.dumps(lazy)).sum(), scheduler="threads")
    with module.raises(tessera.InvalidArgument):
        a.to_dask(where="value + 1")
    for shape in ((), (0, 3)):
        empty = tessera.create("e.zarr", shape, "f4", fill_value=2, overwrite=True)
        assert empty.to_dask(where="value > 1").compute().count() == int(np.prod(shape))


def test_tokens():
    values = np.arange(40.0).reshape(4, 10)
    places = {"a.zarr": {}, "v3.zarr": {"format": "v3", "shards": (2, 10)}, "a.npy": None}
    for path, options in places.items():
        tessera.save(path, values, **({} if options is None else {"chunks": (2, 5), **options}))
        a = tessera.open(path)
        assert tokenize(a) != tokenize(a), "of what was written just now nobody knows whether it changes"
        aged(path)
        token = tokenize(a)
        assert token == tokenize(a) == tokenize(tessera.open(path)) == tokenize(pickle.loads(pickle.dumps(a)))
        assert a.to_dask().name == tessera.open(path).to_dask().name
        # The same bytes, written later, and other metadata, are other versions.
        tessera.open(path, "r+")[0, 0] = 0.0 if options is None else 3.0
        aged_but_later = time.time_ns() - 5_000_000_000
        for folder, _, files in os.walk(path):
            for name in files:
                if os.stat(os.path.join(folder, name)).st_mtime_ns > aged_but_later:
                    os.utime(os.path.join(folder, name), ns=(0, aged_but_later))
        if options is None:
            os.utime(path, ns=(0, aged_but_later))
        assert tokenize(a) == tokenize(a) != token, path
    tessera.save("other.zarr", values, chunks=(2, 5))
    aged("other.zarr")
    assert tokenize(tessera.open("other.zarr")) != tokenize(tessera.open("a.zarr"))
    with tessera.open("other.zarr", "r+").cached() as fast, tessera.open("a.zarr", "r+").edit() as batch:
        assert tokenize(fast) != tokenize(fast) and tokenize(batch) != tokenize(batch)


def test_store_from_threads_and_processes_loses_nothing():
    values = np.arange(70 * 61, dtype="<i8").reshape(70, 61)
    for options in ({}, {"format": "v3", "shards": (20, 32)}):
        for scheduler in ("threads", "processes"):
            # Blocks that share chunks and shards with others on all sides.
            a = tessera.create("a.zarr", values.shape, values.dtype, (10, 16), overwrite=True, durability="none", **options)
            blocks = da.from_array(values, chunks=(7, 9))
            with dask.config.set(scheduler=scheduler, num_workers=4):
                da.store(blocks, a, lock=False)
            assert np.array_equal(a[...], values), (options, scheduler)
            tessera.create("b.zarr", (100, 100), "i8", (10, 16), overwrite=True, **options)
            with dask.config.set(scheduler=scheduler, num_workers=4):
                da.store(blocks, tessera.open("b.zarr", "r+"), regions=(slice(13, 83), slice(5, 66)), lock=False)
            expected = np.zeros((100, 100), "i8")
            expected[13:83, 5:66] = values
            assert np.array_equal(tessera.load("b.zarr"), expected), (options, scheduler)


def add_one(path, number):
    array = tessera.open(path, "r+", durability="none")
    rng = np.random.default_rng(number)
    for _ in range(INCREMENTS):
        low = rng.integers(0, array.shape)
        box = tuple(slice(int(a), int(a) + 9) for a in low)
        array.update(box, lambda values: values + 1)
    return number


def test_no_increment_is_lost():
    for options in ({}, {"format": "v3", "shards": (14, 20)}):
        tessera.create("a.zarr", (50, 45), "i8", (7, 10), overwrite=True, **options)
        tasks = [dask.delayed(add_one)("a.zarr", number) for number in range(8)]
        assert dask.compute(*tasks, scheduler="processes", num_workers=8) == tuple(range(8))
        expected = np.zeros((50, 45), "i8")
        for number in range(8):
            rng = np.random.default_rng(number)
            for _ in range(INCREMENTS):
                low = rng.integers(0, expected.shape)
                expected[tuple(slice(int(a), int(a) + 9) for a in low)] += 1
        assert np.array_equal(tessera.load("a.zarr"), expected), options


def test_xarray_in_blocks():
    try:
        import xarray
    except ImportError:
        return
    tessera.create("a.zarr", (20, 30), "f4", (8, 16), format="v3", dims=["y", "x"])[...] = np.arange(600).reshape(20, 30)
    found = xarray.open_dataset("a.zarr", engine="tessera", chunks={})["a"]
    assert found.chunks == ((8, 8, 4), (16, 14)), found.chunks
    assert float(found.sum()) == 600 * 599 / 2


if __name__ == "__main__":
    module.run(dict(globals()))
