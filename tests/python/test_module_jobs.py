#!/usr/bin/env python3
"""tessera.plan, Job, dask_run and store: one copy or computation in units, in threads, processes and on a dask cluster."""
import concurrent.futures
import os
import pickle
import shutil
import sys

import module
import numpy as np
import tessera


def cube():
    values = np.random.default_rng(3).integers(0, 99, (12, 96, 80)).astype("<i4")
    values[:, :40] = 0
    tessera.save("cube.zarr", values, chunks=(1, 48, 40), overwrite=True)
    return values


def planned(command="rechunk", source="cube.zarr", **options):
    for place in ("out.zarr",):
        shutil.rmtree(place, ignore_errors=True)
    if os.path.exists("job.json"):
        os.remove("job.json")
    return tessera.plan(command, source, "out.zarr", out="job.json", parts=3, **options)


def test_units():
    values = cube()
    job = planned(chunks=(12, 16, 16))
    units = job.units()
    assert len(units) >= 3 and [u.number for part in range(3) for u in job.units(part)] == list(range(len(units)))
    assert pickle.loads(pickle.dumps(units[1])) == units[1] and len(pickle.dumps(job.run)) < 300
    assert repr(pickle.loads(pickle.dumps(job))) == repr(job)
    for unit in job.units(1):
        assert not job.run(unit).before
    assert job.run(job.units(1)[0]).before
    with module.raises(tessera.Unfinished, "units are missing") as raised:
        job.finish()
    found = raised.error.state
    assert not found.finished and found.missing_parts == "0,2" and found.units_done == job.state().units_done, found
    again = pickle.loads(pickle.dumps(raised.error))
    assert str(again) == str(raised.error) and again.state == found and isinstance(again.state, tessera.types.JobState)
    assert not os.path.exists("out.zarr/zarr.json")
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        done = list(pool.map(job.run, units))
    assert sum(not unit.before for unit in done) == found["units"] - found["units_done"]
    assert job.finish(read=True)["finished"] and job.state()["finished"]
    assert (tessera.load("out.zarr") == values).all() and tessera.open("out.zarr").chunks == (12, 16, 16)
    with module.raises(tessera.InvalidArgument, "none of"):
        job.run(tessera.Unit("/elsewhere.json", 0))
    with module.raises(TypeError, "unexpected"):
        tessera.plan("copy", "cube.zarr", "no.zarr", out="no.json", chunk=(1, 2, 3))
    with module.raises(tessera.InvalidArgument, "expected copy"):
        tessera.plan("resize", "cube.zarr", "no.zarr", out="no.json")
    assert not os.path.exists("no.zarr")


def test_lost_units_are_done_again():
    values = cube()
    job = planned(chunks=(12, 16, 16))
    for unit in job.units():
        job.run(unit)
    os.remove(next(os.path.join(place, name) for place, _, names in os.walk("out.zarr/c") for name in names))
    with module.raises(tessera.Unfinished, "1 of") as raised:
        job.finish()
    missing = int(raised.error.state.missing_units)
    assert not job.run(missing).before  # by the worker that had done it
    assert job.finish()["finished"] and (tessera.load("out.zarr") == values).all()


def test_commands():
    values = cube()
    for command, source, options, wanted in (
            ("copy", "cube.zarr", {"sel": "2:5, ::2", "dtype": "f4", "chunks": (1, 16, 16)}, values[2:5, ::2].astype("f4")),
            ("calc", "a + b", {"operands": {"a": "cube.zarr", "b": "cube.zarr"}, "chunks": (4, 16, 16)}, values * 2),
            ("reduce", "cube.zarr", {"how": "max", "axis": 0, "chunks": (16, 16)}, values.max(0)),
            ("coarsen", "cube.zarr", {"how": "max", "by": (1, 2, 2), "chunks": (1, 16, 16)},
             values.reshape(12, 48, 2, 40, 2).max((2, 4))),
            ("stack", ["cube.zarr", "cube.zarr"], {"axis": 1, "chunks": (4, 2, 16, 16)}, np.stack([values, values], 1)),
            ("concat", ["cube.zarr", "cube.zarr"], {"axis": 1, "chunks": (4, 16, 16)}, np.concatenate([values, values], 1))):
        job = planned(command, source, **options)
        for unit in reversed(job.units()):
            job.run(unit)
        assert job.finish()["finished"]
        got = tessera.load("out.zarr")
        assert got.dtype == wanted.dtype and (got == wanted).all(), command


def test_failures_and_changes():
    cube()
    chunk = "cube.zarr/c/3/1/1"
    good = open(chunk, "rb").read()
    with open(chunk, "wb") as file:
        file.write(b"damaged")
    job = planned(chunks=(1, 16, 16))
    failed = 0
    for unit in job.units():
        try:
            job.run(unit)
        except tessera.Corrupt as error:
            assert "c/3/1/1" in str(error)
            failed += 1
    with module.raises(tessera.Unfinished, "c/3/1/1") as raised:
        job.finish()
    found = raised.error.state
    assert failed == len(found["failures"]) >= 1 and not found["finished"]
    with open(chunk, "wb") as file:
        file.write(good)
    with module.raises(tessera.InvalidArgument, "after the job was planned"):
        job.finish()


def test_processes():
    values = cube()
    job = planned(chunks=(12, 16, 16), codec="zstd:3")
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        for done in pool.map(job.run, job.units()):
            assert not done.before
    assert job.finish()["finished"] and (tessera.load("out.zarr") == values).all()


def cluster():
    try:
        import distributed
    except ImportError:
        print("  skipped: no distributed")
        return None
    return distributed.LocalCluster(n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None)


def test_dask_run():
    made = cluster()
    if made is None:
        return
    import distributed
    values = cube()
    with made, distributed.Client(made) as client:
        job = planned(chunks=(12, 16, 16), shards=(12, 48, 32))
        assert tessera.dask_run(job, client)["finished"]
        assert (tessera.load("out.zarr") == values).all()
        with open("cube.zarr/c/3/1/1", "wb") as file:
            file.write(b"damaged")
        job = planned(chunks=(12, 16, 16))
        with module.raises(tessera.Corrupt, "c/3/1/1"):
            tessera.dask_run(job, client, retries=0)
        assert not os.path.exists("out.zarr/zarr.json")


def test_store():
    """Blocks that end anywhere never make two tasks write one shard."""
    try:
        import dask
        import dask.array
    except ImportError:
        print("  skipped: no dask")
        return
    values = np.arange(100 * 70).reshape(100, 70)
    source = dask.array.from_array(values, chunks=((13, 40, 47), (9, 61)))
    written = []
    original = sys.modules["tessera._dask_store"]._write

    def noting(target, begin, block):
        written.append((begin, block.shape))
        return original(target, begin, block)

    sys.modules["tessera._dask_store"]._write = noting
    try:
        with dask.config.set(scheduler="threads"):
            tessera.store(source, "stored.zarr", chunks=(5, 7), shards=(20, 14))
            assert (tessera.load("stored.zarr") == values).all()
            owners = {}
            for number, (begin, shape) in enumerate(written):
                for i in range(begin[0] // 20, (begin[0] + shape[0] - 1) // 20 + 1):
                    for j in range(begin[1] // 14, (begin[1] + shape[1] - 1) // 14 + 1):
                        assert owners.setdefault((i, j), number) == number
            assert len(owners) == 5 * 5 and len(written) > 1
            target = tessera.open("stored.zarr", "r+")
            part = dask.array.full((30, 20), 7, dtype="i8", chunks=(11, 20))
            later = tessera.store(part, target, region=(slice(15, 45), slice(50, 70)), compute=False)
            assert (tessera.load("stored.zarr") == values).all()
            later.compute()
            values[15:45, 50:70] = 7
            assert (tessera.load("stored.zarr") == values).all()
            for wrong, says in ((part[:5], "does not fit"), (part.astype("f8") + 0.5, "would lose")):
                with module.raises(tessera.InvalidArgument, says):
                    tessera.store(wrong, target, region=(slice(15, 45), slice(50, 70)))
            with module.raises(tessera.InvalidArgument, "not known"):
                tessera.store(part[part > 3], "unknown.zarr")
    finally:
        sys.modules["tessera._dask_store"]._write = original
    tessera.store(dask.array.zeros((0, 4), chunks=(1, 4)), "empty.zarr", chunks=(2, 2))
    assert tessera.open("empty.zarr").shape == (0, 4)


def test_to_zarr():
    try:
        import dask.array
        import xarray
    except ImportError:
        print("  skipped: no xarray")
        return
    holes = np.random.default_rng(1).random((8, 10))
    holes[2, 3] = np.nan
    data = xarray.Dataset(
        {"t": (("time", "x"), dask.array.from_array(holes, chunks=(3, 10)), {"units": "K"}),
         "n": (("time",), np.arange(8, dtype="i2")), "flag": ((), np.int8(3)), "name": (("x",), np.array(list("abcdefghij"), object))},
        {"time": np.arange("2020-01-01", "2020-01-09", dtype="M8[D]").astype("M8[ns]"), "x": np.arange(10.0)}, {"title": "all"})
    again = data.assign_coords(time=data.time + np.timedelta64(8, "D"))
    for format in ("v3", "v2"):
        place = f"set.{format}"
        shards = {"shards": {"time": 4, "x": 10}} if format == "v3" else {}
        tessera.to_zarr(data, place, format=format, chunks={"time": 2, "x": 5}, **shards)
        opened = lambda: xarray.open_dataset(place, engine="tessera").load()
        assert opened().identical(data.load()), (opened(), data)
        stored = tessera.open(place)["t"]
        assert stored.chunks == (2, 5) and stored.shards == ((4, 10) if shards else None)
        tessera.to_zarr(again, place, append_dim="time")
        assert opened().identical(xarray.concat([data, again], "time", data_vars="minimal").load())
        part = (again[["t", "n"]] * 0 + 5).astype(again[["t", "n"]].dtypes).drop_vars("x")
        tessera.to_zarr(part, place, region={"time": slice(4, 12)})
        found = opened()
        assert (found.t[4:12].isnull() == np.isnan(holes)).all() and (found.n[4:12] == 5).all() and found.n[3] == 3
        assert (found.time[4:12].values == part.time.values).all()
        for wrong, how, says in ((data, {"region": {"time": slice(0, 8)}}, "leave it out"),
                                 (data.rename(t="u"), {"append_dim": "time"}, "has no array 'u'"),
                                 (part[["n"]] + 0.5, {"region": {"time": slice(0, 8)}}, "would lose")):
            with module.raises(tessera.InvalidArgument, says):
                tessera.to_zarr(wrong, place, **how)
        assert opened().identical(found)


if __name__ == "__main__":
    module.run(dict(globals()))
