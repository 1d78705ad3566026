#!/usr/bin/env python3
"""Weighted means, anomalies and other grids: as xarray and CDO have them, also of packed data with missing cells."""
import os
import shutil
import subprocess
import warnings

import module
import numpy as np
import xarray as xr
from module import raises, tessera

RANDOM = np.random.default_rng(20261201)
UNEVEN = np.array([-90.0, -60, -58, 10, 30, 85])
PACKED = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768}


def data_set(lat=UNEVEN, lon=np.arange(0, 360, 45.0), days=400, name="d.nc", encoding=PACKED, step="D"):
    """As xarray reads it back. Some elements are missing, one column everywhere."""
    time = np.datetime64("2001-01-01", "h") + np.arange(days) * np.timedelta64(1, step)
    values = 280 + 10 * RANDOM.normal(size=(days, len(lat), len(lon)))
    values[RANDOM.random(values.shape) < 0.1] = np.nan
    values[:, 1, 2] = np.nan
    data = xr.Dataset({"t": (("time", "lat", "lon"), values, {"units": "K"})},
                      {"time": time.astype("M8[ns]"), "lat": ("lat", lat, {"units": "degrees_north"}),
                       "lon": ("lon", lon, {"units": "degrees_east"})})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data.to_netcdf(name, encoding={"t": encoding})
    with xr.open_dataset(name, mask_and_scale=False) as raw:
        codes = raw.t.load()
    lacks = np.isnan(codes) if codes.dtype.kind == "f" else codes == -32768
    lacks |= codes == encoding.get("_FillValue", np.nan)
    data["t"] = codes.astype("f8").where(~lacks) * encoding.get("scale_factor", 1.0) + encoding.get("add_offset", 0.0)
    return data


def cdo(*words):
    """Whether it is installed."""
    if not shutil.which("cdo"):
        return False
    subprocess.run(["cdo", "-s", "-O", "-b", "F64", *words], check=True, stderr=subprocess.DEVNULL)
    return True


def cell_areas(lat, lon):
    """Of cells whose corners lie half-way between, joined by great circles."""
    def edges(v):
        inner = (v[1:] + v[:-1]) / 2
        return np.r_[2 * v[0] - inner[0], inner, 2 * v[-1] - inner[-1]]
    north = edges(lat)
    for end in 0, -1:
        if abs(north[end]) > 88:
            north[end] = np.sign(north[end]) * 90
    half = np.tan(np.deg2rad(np.diff(edges(lon))) / 2)
    below = 2 * np.arctan(half[None, :] * np.sin(np.deg2rad(north))[:, None])
    return np.abs(np.diff(below, axis=0))


def test_weighted_means():
    for lat, lon in ((UNEVEN, np.arange(0, 360, 45.0)), (np.array([88.75, 88.25, 80, 20]), np.array([0.0, 1, 2, 4, 7])),
                     (np.linspace(90, -90, 13), np.arange(-180, 180, 20.0))):
        data = data_set(lat, lon, 30)
        areas = xr.DataArray(cell_areas(lat, lon), dims=("lat", "lon"))
        cosines = np.cos(np.deg2rad(data.lat)).clip(0)
        tessera.copy("d.nc", "d.zarr", overwrite=True)
        for path in "d.nc::t", "d.zarr/t":
            for name, weights in ("area", areas), ("lat", cosines), (np.asarray(areas), areas):
                weighted = data.t.weighted(weights)
                for how in "mean", "sum", "std", "var":
                    for axis in ("lat", "lon"), ("lat",), None:
                        wanted = getattr(weighted, how)(axis)
                        if how == "sum":  # of nothing but missing elements there is none here
                            wanted = wanted.where(data.t.notnull().any(axis))
                        got = tessera.reduce(path, how=how, axis=axis, weights=name)
                        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-6, err_msg=f"{path} {name} {how} {axis}")
        if cdo("fldmean", "d.nc", "m.nc"):
            with xr.open_dataset("m.nc") as mean:
                np.testing.assert_allclose(tessera.reduce("d.nc::t", how="mean", axis=("lat", "lon"), weights="area"),
                                           mean.t.values.ravel(), rtol=1e-6)
    kept = tessera.reduce("d.nc::t", how="mean", axis=("lat", "lon"), weights="area", keep_missing=True)
    assert np.isnan(kept).all()
    days = tessera.reduce("d.nc::t", how="mean", by="month", weights=np.arange(30.0).reshape(30, 1, 1))
    np.testing.assert_allclose(days[0], data.t.weighted(xr.DataArray(np.arange(30.0), dims="time")).mean("time"), rtol=1e-9)


def test_weights_of_bounds_and_files():
    data = data_set(days=3)
    bounds = np.array([[-90, -70], [-70, -59], [-59, -20], [-20, 20], [20, 60], [60, 90.0]])
    wide = data.assign(lat_bnds=(("lat", "nv"), bounds), area=(("lon", "lat"), RANDOM.random((8, 6))))
    wide.lat.attrs["bounds"] = "lat_bnds"
    for name in data.variables:
        wide[name].encoding = {}
    wide.to_netcdf("b.nc")
    half = np.tan(np.deg2rad(45 / 2))
    weights = np.diff(np.arctan(half * np.sin(np.deg2rad(bounds))), axis=1)[:, 0]
    np.testing.assert_allclose(tessera.reduce("b.nc::t", how="mean", axis=("lat", "lon"), weights="area"),
                               data.t.weighted(xr.DataArray(weights, dims="lat")).mean(("lat", "lon")), rtol=1e-9)
    np.testing.assert_allclose(tessera.reduce("d.nc::t", how="mean", axis=("lat", "lon"), weights="b.nc::area"),
                               data.t.weighted(wide.area).mean(("lat", "lon")), rtol=1e-9)
    data.isel(lat=slice(None, None, -1)).to_netcdf("turned.nc", encoding={"t": {"_FillValue": -1.0}})
    for keywords, says in (({"weights": "turned.nc::t"}, "other cells"), ({"weights": "area", "how": "max"}, "only for mean"),
                           ({"weights": "area", "axis": "time"}, "no dimension that is reduced"), ({"weights": "time"}, "degrees"),
                           ({"weights": "height"}, "./height"), ({"weights": np.ones(5)}, "same lengths"),
                           ({"weights": -np.ones(8)}, "from 0 on"), ({"weights": np.full(8, np.nan)}, "from 0 on")):
        with raises(tessera.Error, says):
            tessera.reduce("d.nc::t", **{"how": "mean", **keywords})


def test_data_sets_in_memory():
    data = data_set(days=70)
    tessera.copy("d.nc", "set.zarr", overwrite=True)
    group = tessera.open("set.zarr")
    mean = tessera.reduce(group, dims="time", how="mean")
    assert isinstance(mean, tessera.DataSet) and set(mean) == {"t", "lat", "lon"} and mean.dims["t"] == ("lat", "lon")
    assert mean.attrs["t"]["units"] == "K" and "t: float64 (6, 8), lat, lon" in repr(mean)
    made = mean.to_xarray()
    np.testing.assert_allclose(made.t, data.t.mean("time"), rtol=1e-9)
    np.testing.assert_array_equal(made.lat, data.lat)
    months = tessera.reduce("d.nc", how="max", by="month").to_xarray()
    wanted = data.t.resample(time="MS").max()
    np.testing.assert_allclose(months.t, wanted, rtol=1e-9)
    np.testing.assert_array_equal(months.month, wanted.time)
    coarse = tessera.coarsen(group, by={"lat": 2}, only="t", sel="time=2001-02").to_xarray()
    np.testing.assert_allclose(coarse.t, data.t.sel(time="2001-02").coarsen(lat=2).mean(), rtol=1e-9)
    np.testing.assert_array_equal(coarse.time, data.time.sel(time="2001-02"))
    np.testing.assert_allclose(tessera.calc("t - 273.15", t=group).to_xarray().t, data.t - 273.15, atol=1e-9)


def test_parts_and_steps_of_data_sets():
    data = data_set(days=5)
    tessera.copy("d.nc", "part.nc", sel="time=2001-01-01T01:2001-01-03, lon=-90:50", overwrite=True)
    with xr.open_dataset("part.nc") as made:
        np.testing.assert_array_equal(made.lon, [-90, -45, 0, 45])
        np.testing.assert_allclose(made.t, data.t.roll(lon=2, roll_coords=True).sel(time=slice("2001-01-01T01", "2001-01-03"))[..., :4])
    paths = tessera.unstack("part.nc", "steps/{}.nc", axis="time")
    assert len(paths) == 3 - 1 and os.path.basename(paths[1]) == "1.nc"
    with xr.open_dataset(paths[1]) as step, xr.open_dataset("part.nc") as whole:
        np.testing.assert_array_equal(step.t, whole.t[1])
        assert step.time.values == whole.time.values[1]
    with raises(tessera.Error, "name a dimension"):
        tessera.unstack("part.nc", "steps/x-{}.nc", axis=0)
    with raises(tessera.Error, "name the dimensions"):
        tessera.copy("part.nc", "other.nc", sel=slice(2))


def test_tables_become_arrays():
    data = data_set(days=3)
    table = data.t.to_dataframe().reset_index().to_records(index=False)
    table = table.astype([("time", "M8[s]"), ("lat", "f8"), ("lon", "f8"), ("t", "f8")])
    tessera.copy(table, "table.zarr", dims=("time", "lat", "lon"), format="v2", overwrite=True)
    tessera.copy("d.nc::t", "t.csv", coordinates=True, overwrite=True)
    tessera.copy("t.csv", "csv.zarr", dims=("time", "lat", "lon"), format="v2", overwrite=True)
    for path in "table.zarr", "csv.zarr":
        made = xr.open_zarr(path)
        np.testing.assert_array_equal(made.t, data.t)
        for name in "time", "lat", "lon":
            np.testing.assert_array_equal(made[name], data[name])


def test_anomalies():
    for encoding in PACKED, {"dtype": "f4", "_FillValue": np.float32(-999)}, {"dtype": "f8"}:
        data = data_set(days=800, encoding=encoding).t
        month, season = data.groupby("time.month"), data.groupby("time.season")
        for expression, wanted in (
                ("t - mean(t, by=month)", month - month.mean()), ("t - mean(t, by=month-of-year)", month - month.mean()),
                ("t - mean(t, by='year')", data.groupby("time.year") - data.groupby("time.year").mean()),
                ("t - max(t, time, by=dayofyear)", data.groupby("time.dayofyear") - data.groupby("time.dayofyear").max()),
                ("(t - mean(t, time)) / std(t, time)", (data - data.mean("time")) / data.std("time")),
                ("t - t.mean(axis=(1, 2))", data - data.mean(("lat", "lon"))),
                ("t - nanmin(t * 2, -1, lat)", data - (data * 2).min(("lat", "lon"))),
                ("where(p95(t, by=season) < t, 1, 0)", (season - season.quantile(0.95) > 0).astype("i8")),
                ("t - mean(t - mean(t, lon), time)", data - (data - data.mean("lon")).mean("time")),
                ("t - p2.5(t, time)", data - data.quantile(0.025, "time")),
                ("t - percentile(t, 25, time)", data - data.quantile(0.25, "time"))):
            got = tessera.calc(expression, t="d.nc::t")
            wanted = np.asarray(wanted.transpose("time", "lat", "lon"))
            tolerance = 1e-4 if encoding["dtype"] == "f4" else 1e-9
            np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance, err_msg=expression)
    hours = data_set(days=60, step="h").t
    np.testing.assert_allclose(tessera.calc("t - mean(t, by=hour)", t="d.nc::t"),
                               hours.groupby("time.hour") - hours.groupby("time.hour").mean(), atol=1e-9)


def test_anomalies_of_all_faces():
    data = data_set(days=200).t
    wanted = data.groupby("time.month") - data.groupby("time.month").mean()
    tessera.copy("d.nc", "d.zarr", chunks="time=30,lat=2")
    tessera.calc("o.zarr", "t - mean(t, by=month)", {"t": "d.zarr/t"}, max_memory="2M")
    np.testing.assert_allclose(tessera.load("o.zarr"), wanted, atol=1e-9)
    job = tessera.plan("calc", "t - mean(t, by=month)", "j.zarr", operands={"t": "d.zarr/t"}, out="job.json")
    for unit in job.units():
        job.run(unit)
    assert job.finish()["finished"] and np.array_equal(tessera.load("j.zarr"), tessera.load("o.zarr"), equal_nan=True)
    assert tessera.open("o.zarr").dims == ("time", "lat", "lon")
    # What memory does not hold lies in a file meanwhile.
    plain = RANDOM.random((4, 700, 700))
    np.save("p.npy", plain)
    tessera.calc("q.npy", "a - mean(a, 0)", {"a": "p.npy"}, max_memory="8M")
    np.testing.assert_allclose(np.load("q.npy"), plain - plain.mean(0), atol=1e-12)
    a = tessera.open("o.zarr", "r+")
    tessera.calc(a, "a - max(a, time)", {"a": a}, in_place=True)
    np.testing.assert_allclose(a[:], wanted - wanted.max("time"), atol=1e-9)
    np.save("table.npy", np.zeros(3, [("x", "f8")]))
    with raises(tessera.InvalidArgument, "of some elements"):
        tessera.copy("table.npy", "r.npy", where="x > mean(x)")
    for expression, says in (("t - mean(t, height)", "height"), ("mean(t, by=week)", "week"), ("mean(3)", "array"),
                             ("mean()", "an array"), ("mean(t, over=time)", "over="), ("t - mean(t, time, lat, by=month)", "one dimension"),
                             ("sqrt(t, by=month)", "only reductions"), ("t - mean(by=month)", "an array"), ("p101(t)", "unknown function")):
        with raises(tessera.InvalidArgument, says):
            tessera.calc(expression, t="d.nc::t")


def test_rolling():
    data = data_set(days=60).t
    tessera.copy("d.nc", "d.zarr", chunks="time=7,lat=2")
    for how in "mean", "sum", "min", "max", "std", "var", "median":
        for options, keywords in (({"time": 5}, {}), ({"time": 8, "center": True}, {}), ({"time": 6, "min_periods": 2}, {}),
                                  ({"lon": 3}, {}), ({"time": 60}, {"max_memory": "1M"})):
            dimension = next(iter(options))
            wanted = getattr(data.rolling(**options), how)()
            got = tessera.reduce("d.zarr/t", how=how, rolling={dimension: options[dimension]}, center=options.get("center", False),
                                 min_count=options.get("min_periods"), **keywords)
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-6, err_msg=f"{how} {options}")
    tessera.reduce("d.zarr/t", "r.zarr", how="mean", rolling="time=5", max_memory="2M")
    again = tessera.open("r.zarr")
    assert (again.dims, again.chunks, again.shape) == (("time", "lat", "lon"), (7, 2, 8), data.shape)
    np.testing.assert_allclose(again[:], data.rolling(time=5).mean(), rtol=1e-9)
    whole = np.arange(12).reshape(2, 6)
    np.testing.assert_array_equal(tessera.reduce(whole, how="p50", rolling="1=3")[:, 2:], whole[:, 1:5])
    assert tessera.reduce(whole, how="count", rolling="1=3", min_count=0).tolist() == [[1, 2, 3, 3, 3, 3]] * 2
    for keywords, says in (({"rolling": "time=99"}, "1 to 60"), ({"rolling": "time"}, "time=30"), ({"rolling": "time=3", "axis": 0}, "not with"),
                           ({"rolling": "time=3", "min_count": 4}, "0 to 3"), ({"min_count": 4}, "only with"),
                           ({"rolling": "time=3", "how": "argmax"}, "of windows"), ({"rolling": "height=3"}, "height")):
        with raises(tessera.Error, says):
            tessera.reduce("d.zarr/t", **{"how": "mean", **keywords})


def remapped(method, lat, lon):
    """By CDO, from d.nc; None where it is not installed."""
    with open("grid.txt", "w") as file:
        file.write(f"gridtype=lonlat\nxsize={len(lon)}\nysize={len(lat)}\nxvals={' '.join(map(str, lon))}\nyvals={' '.join(map(str, lat))}\n")
    if not cdo(f"remap{method},grid.txt", "d.nc", "m.nc"):
        return None
    with xr.open_dataset("m.nc") as made:
        return made.t.values.astype("f8")


def test_other_grids_as_cdo_has_them():
    targets = (("-90:90:10", "0:359:10"), ("85:-85:-7.5", "-180:175:12.5"), ("-33:47:1.5", "20:80:3"), ("-90:90:5", "0:355:5"))
    sources = ((np.arange(-85.0, 86, 10), np.arange(0, 360, 15.0)), (np.arange(90.0, -91, -15), np.arange(-180, 180, 20.0)),
               (np.arange(-30.0, 60, 5), np.arange(10.0, 90, 5)))
    for lat, lon in sources:
        data_set(lat, lon, 3, encoding={"dtype": "f8", "_FillValue": -999.0})
        for rows, columns in targets:
            first, last, step = map(float, rows.split(":"))
            west, east, width = map(float, columns.split(":"))
            new_lat, new_lon = (a + d * np.arange(int((b - a) / d + 1e-6) + 1) for a, b, d in ((first, last, step), (west, east, width)))
            for word, method in ("bil", "bilinear"), ("con", "conservative"), ("nn", "nearest"):
                got = tessera.regrid("d.nc::t", to=f"lat={rows},lon={columns}", method=method)
                assert got.shape == (3, len(new_lat), len(new_lon)) and np.isfinite(got).any(), (method, lat[:2], rows, columns)
                wanted = remapped(word, new_lat, new_lon)
                if wanted is None:
                    continue
                if method == "nearest":  # halves are rounded to either side
                    assert np.mean(~np.isclose(got, wanted, equal_nan=True)) < 0.35, (rows, columns)
                    continue
                if method == "bilinear" and lon[0] < 0:  # CDO rounds longitudes that it turns, so that one may lie beside itself
                    apart = ~np.isin(new_lon % 360, lon % 360)
                    got, wanted = got[..., apart], wanted[..., apart]
                np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted), err_msg=f"{method} {lat[:2]} {rows} {columns}")
                np.testing.assert_allclose(got, wanted, rtol=1e-6, err_msg=f"{method} {lat[:2]} {rows} {columns}")


def test_other_grids():
    lat, lon = np.arange(-85.0, 86, 10), np.arange(0, 360, 15.0)
    data = data_set(lat, lon, 40)
    tessera.copy("d.nc", "d.zarr", chunks="time=8")
    tessera.create_group("g.zarr", format="v2")
    tessera.regrid("d.zarr/t", "g.zarr/t", to="lat=-80:80:20,lon=-172.5:172.5:15", max_memory="4M")
    with xr.open_zarr("g.zarr", consolidated=False) as made:
        turned = np.roll(data.t.values, -12, 2)
        columns = (turned + np.roll(turned, -1, 2)) / 2
        wanted = (columns[:, :-1:2] + columns[:, 1::2]) / 2
        np.testing.assert_allclose(made.t.values, wanted, atol=1e-9)
        assert made.lon[0] == -172.5 and made.lat.attrs["units"] == "degrees_north" and (made.time.values == data.time.values).all()
    tessera.regrid("d.nc::t", "g.zarr/u", like="g.zarr/t", method="conservative")
    job = tessera.plan("regrid", "d.zarr/t", "j.zarr", to="lat=-80:80:20,lon=-172.5:172.5:15", out="job.json")
    for unit in job.units():
        job.run(unit)
    assert job.finish()["finished"]
    np.testing.assert_array_equal(tessera.load("j.zarr"), tessera.load("g.zarr/t"))
    kinds = np.arange(18 * 24, dtype="i4").reshape(18, 24)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xr.Dataset({"kind": (("lat", "lon"), kinds)}, {"lat": lat, "lon": lon}).to_netcdf("k.nc")
    near = tessera.regrid("k.nc::kind", to="lat=-84:86:10,lon=-4:341:15", method="nearest")
    assert near.dtype == "i4" and np.array_equal(near, kinds)
    area = tessera.regrid("k.nc::kind", to="lat=-75:75:30,lon=22.5:352.5:45", method="conservative")
    weights = np.cos(np.deg2rad(lat)).reshape(6, 3, 1)
    blocks = (np.roll(kinds, 0, 1).reshape(6, 3, 24) * weights).sum(1) / weights.sum(1)
    np.testing.assert_allclose(area[:, 0], (blocks[:, 0] * 0.5 + blocks[:, 1] + blocks[:, 2] + blocks[:, 3] * 0.5) / 3, rtol=1e-9)
    with raises(tessera.InvalidArgument, "other values"):
        tessera.regrid("d.zarr/t", "g.zarr/v", to="lat=-80:80:10,lon=-180:165:15")
    assert not os.path.exists("g.zarr/v")
    for keywords, says in (({}, "choose it or"), ({"to": "lat=0:10:0,lon=0:10:1"}, "a step"), ({"to": "lat=0:100:10"}, "-90 to 90"),
                           ({"to": "height=0:1:1"}, "expected lat="), ({"to": "lat=0:10:1", "method": "cubic"}, "bilinear"),
                           ({"like": np.zeros((3, 4))}, "no dimension has lo")):
        with raises(tessera.InvalidArgument, says):
            tessera.regrid("d.zarr/t", **keywords)


if __name__ == "__main__":
    module.run(globals())
