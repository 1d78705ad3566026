#!/usr/bin/env python3
"""Array.sel and isel: what xarray's give."""
import datetime
import sys

import module
import numpy as np
from module import tessera

try:
    import xarray
except ImportError:
    print("skipped: no xarray")
    sys.exit(77)


def dataset():
    shape = (60, 7, 5)
    return xarray.Dataset(
        {"t": (("time", "lat", "it's"), np.arange(np.prod(shape), dtype="f8").reshape(shape))},
        {"time": np.datetime64("2020-01-01", "ns") + np.arange(60) * np.timedelta64(36, "h"),
         "lat": np.arange(90.0, -91, -30).astype("f4"), "it's": np.arange(5) / 10})


def same(got, wanted):
    np.testing.assert_array_equal(got, wanted.values)


def test_sel():
    data = dataset()
    data.to_zarr("g.zarr")
    a, t = tessera.open("g.zarr")["t"], data.t
    for values in (dict(time="2020-02"), dict(time=slice("2020-01-10", "2020-02")), dict(lat=60),
                   dict(lat=slice(60, -30)), dict(lat=slice(None, 0), time="2020-01-02T12"),
                   dict(time=slice("2020-01-10", None, 3)), {"it's": slice(0.1, 0.3)},
                   dict(time=np.datetime64("2020-01-04T00:00"), lat=np.float32(-60)),
                   dict(time=slice(datetime.datetime(2020, 1, 5, 6, 30), datetime.date(2020, 1, 20)))):
        wanted = {k: v for k, v in values.items()}
        if isinstance(values.get("time"), slice) and isinstance(values["time"].start, datetime.datetime):
            wanted["time"] = slice("2020-01-05T06:30", "2020-01-20")
        same(a.sel(**values), t.sel(wanted))
    same(a.sel(lat=44, time="2020-01-07T01", method="nearest"), t.sel(lat=44, time="2020-01-07T01", method="nearest"))
    same(a.sel("lat~44, time@3:5"), t.sel(lat=44, method="nearest")[3:5])
    same(a.isel(lat=2, time=slice(10, None, -2)), t.isel(lat=2, time=slice(10, None, -2)))
    same(a.isel(lat=[4, 1]), t.isel(lat=[4, 1]))
    same(a.isel(time=-1), t.isel(time=-1))
    with module.raises(IndexError, "neighbours"):
        a.sel(lat=44)
    with module.raises(ValueError, "height"):
        a.sel(height=1)
    with module.raises(TypeError, "oindex"):
        a.sel(lat=[30, 60])
    with module.raises(ValueError, "nearest"):
        a.sel(lat=44, method="pad")
    with module.raises(ValueError, "height"):
        a.isel(height=1)


def test_axes():
    data = dataset()
    data.to_zarr("g.zarr")
    a = tessera.open("g.zarr")["t"]
    same(tessera.reduce(a, how="mean", axis="time"), data.t.mean("time"))
    same(tessera.reduce(a, how="max", axis=("time", -1)), data.t.max(["time", "it's"]))
    same(tessera.coarsen(a, by={"lat": 7, "time": 2}, how="max"), data.t.coarsen(lat=7, time=2).max())
    same(tessera.concat([a, a], axis="lat"), xarray.concat([data.t, data.t], "lat").transpose("time", ...))
    same(tessera.reduce(a, how="max", by="month"), data.t.resample(time="1MS").max())
    np.testing.assert_array_equal(tessera.reduce(a, how="p25", by=np.arange(60) % 2, axis="time")[1],
                                  np.percentile(data.t.values[1::2], 25, axis=0))
    further = tessera.stats(a, how=["p95", "median"]).further
    np.testing.assert_allclose(further["p95"], np.percentile(data.t.values, 95), rtol=1e-12)
    np.testing.assert_allclose(further["median"], np.median(data.t.values), rtol=1e-12)
    grown = tessera.create("n.zarr", (2, 0), "f8", dims=["y", "time"])
    assert grown.append([[1.0], [2.0]], axis="time") == 0 and grown.shape == (2, 1)
    with module.raises(ValueError, "height"):
        grown.append([[1.0], [2.0]], axis="height")


def test_rows_that_meet_a_condition():
    with open("days.csv", "w", encoding="utf-8") as file:
        file.write("day,close,volume\n2026-01-01,99,7\n2026-01-02,101,0\n2026-01-03,120,5\n")
    table = tessera.open("days.csv")
    rows = table.where("(close > 100) & (volume > 0)")
    assert rows.dtype == table.dtype and rows["day"].tolist() == [np.datetime64("2026-01-03").item()]
    assert len(table.where("close > 1000")) == 0
    tessera.copy("days.csv", "few.zarr", where="close > 100")
    np.testing.assert_array_equal(tessera.open("few.zarr")["close"], [101, 120])
    tessera.copy(table, "few.csv", where="volume == 7")
    assert tessera.open("few.csv")["close"].tolist() == [99]
    with module.raises(tessera.InvalidArgument, "nothing"):
        table.where("nothing > 1")
    with module.raises(tessera.InvalidArgument, "true or false"):
        tessera.copy("days.csv", "x.zarr", where="close + 1")


def test_attributes_without_a_place():
    group = tessera.create_group("g", attrs={"title": "survey"})
    group.create_array("a", (3,), "f4")
    with module.raises(tessera.Unsupported, "drop_attributes=True"):
        tessera.copy("g", "h", format="zmeta", codec="blosc:lz4:5")
    changes = tessera.copy("g", "h", format="zmeta", codec="blosc:lz4:5", drop_attributes=True)
    assert any("zmeta has no groups: title" in change for change in changes), changes
    assert tessera.open("h/a").format == "zmeta"


if __name__ == "__main__":
    module.run(globals())
