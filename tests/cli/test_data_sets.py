"""Jobs over whole data sets, beside xarray: each array that has the dimensions, with coordinates, in one command."""

import json
import os
import re
import subprocess
import sys

import numpy as np

from program import PROGRAM, ProgramTest, main

try:
    import netCDF4  # noqa: F401 (of which xarray reads and writes files)
    import pandas as pd
    import xarray as xr
except ImportError:
    print("xarray or netCDF4 is not installed")
    sys.exit(77)


def program(*words, fails=False):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    if fails:
        assert done.returncode != 0, f"{words}: succeeded: {done.stdout}"
        return done.stderr
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def days(path, first, count):
    """Some days of a packed variable with missing elements, another one, and all kinds of coordinates."""
    rng = np.random.default_rng(first)
    data = xr.Dataset(
        {"t": (("time", "lat", "lon"), 280 + 10 * rng.standard_normal((count, 7, 8))),
         "u": (("time", "lat", "lon"), rng.standard_normal((count, 7, 8)).astype("f4")),
         "orography": (("lat", "lon"), np.arange(56.0).reshape(7, 8)),
         "time_bounds": (("time", "ends"), first + np.stack([np.arange(count), np.arange(count) + 1], 1).astype("f8"))},
        coords={"time": ("time", first + np.arange(count), {"units": "days since 2001-01-01", "calendar": "standard",
                                                            "bounds": "time_bounds"}),
                "lat": ("lat", np.arange(90, -91, -30.0), {"units": "degrees_north"}),
                "lon": ("lon", np.arange(0, 360, 45.0), {"units": "degrees_east"}), "height": 2.0,
                "area": (("lat", "lon"), np.ones((7, 8)))})
    data.t[0, 0, 0] = np.nan
    data.attrs["title"] = "days"
    data.to_netcdf(path, encoding={"t": {"dtype": "i2", "scale_factor": 1 / 64, "add_offset": 256.0, "_FillValue": -32768}})


class DataSets(ProgramTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.path("."))
        days("a.nc", 0, 60)
        self.a = xr.open_dataset("a.nc")
        self.addCleanup(self.a.close)

    def opened(self, path):
        data = xr.open_dataset(path) if path.endswith((".nc", ".nc4")) else xr.open_zarr(path, consolidated=False)
        self.addCleanup(data.close)
        return data

    def test_a_mean_over_time_keeps_what_has_no_time(self):
        for out, options in ("mean.nc", []), ("mean.zarr", ["--format", "v2"]), ("plain.zarr", []):
            program("reduce", "a.nc", out, "--with", "mean", "--axis", "time", *options)
            if out == "plain.zarr":  # v3, which this xarray may not read
                self.assertEqual(json.loads(program("attrs", out))["title"], "days")
                continue
            made = self.opened(out)
            wanted = self.a.mean("time")
            xr.testing.assert_allclose(made.t, wanted.t, rtol=1e-6)
            xr.testing.assert_allclose(made.u, wanted.u, rtol=1e-6)
            xr.testing.assert_equal(made.orography.load(), self.a.orography.load())
            self.assertEqual(set(made.coords), {"lat", "lon", "height", "area"})
            self.assertEqual(made.attrs["title"], "days")
            self.assertNotIn("time_bounds", made)

    def test_means_of_months_have_months(self):
        program("reduce", "a.nc", "months.nc", "--with", "mean", "--by", "month")
        made = self.opened("months.nc")
        wanted = self.a.t.resample(time="MS").mean()
        np.testing.assert_allclose(made.t, wanted, rtol=1e-6)
        np.testing.assert_array_equal(made.month, wanted.time)
        program("reduce", "a.nc", "seasons.nc", "--with", "max", "--by", "season", "--only", "t")
        made = self.opened("seasons.nc")
        wanted = self.a.t.groupby("time.season").max()
        self.assertEqual([str(s) for s in made.season.values.astype(str)], list(wanted.season.values))
        np.testing.assert_allclose(made.t, wanted, rtol=1e-6)
        self.assertNotIn("u", made)

    def test_coarse_cells_lie_in_the_middle(self):
        program("coarsen", "a.nc", "coarse.nc", "--by", "lat=2,lon=2,time=7")
        made = self.opened("coarse.nc")
        wanted = self.a.coarsen(lat=2, lon=2, time=7, boundary="pad").mean()
        np.testing.assert_allclose(made.t, wanted.t, rtol=1e-6)
        for name in "lat", "lon":
            np.testing.assert_array_equal(made[name], wanted[name])
        # By the bounds, which end half a day after the last time.
        np.testing.assert_array_equal(made.time, wanted.time + np.timedelta64(12, "h"))

    def test_bounds_of_coarse_cells(self):
        def coarsened(bounds, out="o.nc", options=("--overwrite",), **encoding):
            lat = np.float32(bounds).mean(1)
            data = xr.Dataset({"t": (("lat", "lon"), np.arange(15.0).reshape(5, 3))},
                              {"lat": ("lat", lat, {"units": "degrees_north", "bounds": "lat_bnds"}),
                               "lat_bnds": (("lat", "nv"), bounds), "area": (("lat", "lon"), np.ones((5, 3))),
                               "place": (("lat", "lon"), np.ones((5, 3)), {"units": "degrees_east"})})
            data.to_netcdf("cells.nc", encoding={"lat_bnds": encoding})
            said = subprocess.run([PROGRAM, "coarsen", "cells.nc", out, "--by", "lat=2", *options], capture_output=True, text=True)
            self.assertEqual(said.returncode, 0, said.stderr)
            return xr.load_dataset(out, decode_coords=False) if out.endswith(".nc") else None, said.stderr
        rising = np.array([[-90, -50], [-50, 0], [0, 10], [10, 40], [40, 90.0]])
        for bounds, wanted in ((rising, [[-90, 0], [0, 40], [40, 90]]), (rising[::-1], [[10, 90], [-50, 10], [-90, -50]]),
                               (-rising, [[90, 0], [0, -40], [-40, -90]])):
            made, said = coarsened(bounds)
            np.testing.assert_array_equal(made.lat_bnds, wanted)
            np.testing.assert_array_equal(made.lat, np.mean(wanted, 1).astype("f4"))
            self.assertEqual((made.lat.dtype, made.lat.attrs["bounds"]), (np.dtype("f4"), "lat_bnds"))
            # What has no counterpart is left out, and said.
            self.assertNotIn("area", made)
            self.assertNotIn("place", made)
            self.assertEqual([name in said for name in ("area", "place", "lat_bnds")], [True, True, False])
        made, _ = coarsened(rising, dtype="i2", scale_factor=0.5, _FillValue=-9)
        np.testing.assert_array_equal(made.lat_bnds, [[-90, 0], [0, 40], [40, 90]])
        made, said = coarsened(rising, options=("--overwrite", "--with", "nearest"))
        np.testing.assert_array_equal(made.lat_bnds, rising[::2])
        np.testing.assert_array_equal(made.lat, rising[::2].mean(1).astype("f4"))
        apart = rising.copy()
        apart[1, 0] = -40
        made, said = coarsened(apart)
        self.assertNotIn("lat_bnds", made)
        self.assertNotIn("bounds", made.lat.attrs)
        self.assertIn("lat_bnds", said)
        np.testing.assert_array_equal(made.lat, [-45, 15, 65])
        coarsened(rising)
        program("plan", "coarsen", "cells.nc", "job.zarr", "--by", "lat=2", "--out", "job.json", "--sel", "lat=-60:50")
        program("work", "job.json", "--quiet")
        program("finish", "job.json")
        self.assertEqual(json.loads(program("get", "job.zarr/lat_bnds", ":", "--json")), [[-50, 10], [10, 40]])
        program("coarsen", "cells.nc::t", "t.nc", "--by", "2,1")
        np.testing.assert_array_equal(xr.load_dataset("t.nc").lat_bnds, [[-90, 0], [0, 40], [40, 90]])
        program("reduce", "cells.nc::t", "mean.nc", "--with", "mean", "--axis", "-1")
        np.testing.assert_array_equal(xr.load_dataset("mean.nc").lat_bnds, rising)

    def test_a_part_alone(self):
        program("reduce", "a.nc", "part.nc", "--with", "max", "--axis", "lon", "--sel", "time=2001-02, lat=-30:30")
        made = self.opened("part.nc")
        wanted = self.a.sel(time="2001-02", lat=slice(30, -30)).max("lon")
        xr.testing.assert_allclose(made.t, wanted.t, rtol=1e-6)
        np.testing.assert_array_equal(made.time, wanted.time)
        program("calc", "part2.nc", "x * 2", "x=a.nc", "--sel", "time=2001-02", "--only", "t")
        np.testing.assert_allclose(self.opened("part2.nc").t, 2 * self.a.t.sel(time="2001-02"))
        program("reduce", "a.nc::t", "part3.nc", "--with", "mean", "--by", "month", "--sel", "time=2001-01-20:2001-02-10")
        np.testing.assert_allclose(self.opened("part3.nc").t,
                                   self.a.t.sel(time=slice("2001-01-20", "2001-02-10")).resample(time="MS").mean(), rtol=1e-6)

    def test_files_of_months_become_one(self):
        days("b.nc", 60, 31)
        days("c.nc", 91, 10)
        program("concat", "a.nc", "b.nc", "c.nc", "all.zarr", "--axis", "time", "--format", "v2")
        made = self.opened("all.zarr")
        wanted = xr.concat([xr.open_dataset(name) for name in ("a.nc", "b.nc", "c.nc")], "time", data_vars="minimal",
                           coords="minimal", compat="override")
        for name in "t", "u", "orography", "lat", "area":
            xr.testing.assert_equal(made[name].load(), wanted[name].load())
        np.testing.assert_array_equal(made.time, wanted.time)
        with xr.open_dataset("b.nc") as other:
            other.load().assign_coords(lat=other.lat + 1).to_netcdf("moved.nc")
        self.assertIn("moved.nc::lat", program("concat", "a.nc", "moved.nc", "no.zarr", "--axis", "time", fails=True))
        self.assertFalse(os.path.exists("no.zarr"))

    def test_joined_arrays_keep_their_coordinates(self):
        days("b.nc", 60, 31)
        other = xr.open_dataset("b.nc").load()
        other.close()
        wanted = xr.concat([self.a.t, other.t], "time")
        program("concat", "a.nc::t", "b.nc::t", "all.nc", "--axis", "0")
        made = self.opened("all.nc")
        xr.testing.assert_equal(made.t.load(), wanted.load())
        self.assertEqual(made.attrs["title"], "days")
        program("copy", "a.nc", "g", "--only", "orography", "--except", "lat", "--format", "v2")
        program("concat", "a.nc::t", "b.nc::t", "g/t", "--axis", "time")
        made = self.opened("g")
        np.testing.assert_array_equal(made.time, wanted.time)
        np.testing.assert_array_equal(made.lat, wanted.lat)
        np.testing.assert_array_equal(made.t, wanted)
        program("concat", "a.nc::t", "a.nc::t", "g/twice", "--axis", "lon")
        with self.assertRaises(ValueError):
            self.opened("g")  # another length of lon
        # What differs along other dimensions is no coordinate of the result.
        other.assign_coords(lat=other.lat + 1).to_netcdf("moved.nc")
        program("concat", "a.nc::t", "moved.nc::t", "mixed.nc", "--axis", "time")
        made = self.opened("mixed.nc")
        self.assertNotIn("lat", made.coords)
        np.testing.assert_array_equal(made.t, wanted)
        program("stack", "a.nc::t", "a.nc::t", "pair.nc")
        made = self.opened("pair.nc")
        np.testing.assert_array_equal(made.t[1], self.a.t)
        np.testing.assert_array_equal(made.time, self.a.time)

    def test_other_grids(self):
        program("regrid", "a.nc", "fine.nc", "--to", "lat=-75:75:15,lon=0:315:15")
        made = self.opened("fine.nc")
        self.assertEqual((set(made.data_vars) - {"time_bounds"}, set(made.coords)),
                         ({"t", "u", "orography"}, {"lat", "lon", "time", "height"}))
        for name in "t", "u", "orography":
            wanted = self.a[name].interp(lat=made.lat, lon=made.lon)
            there = slice(1, None) if name == "t" else slice(None)  # the first has a missing element
            np.testing.assert_allclose(made[name][there], wanted[there], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(made.time, self.a.time)
        self.assertEqual((made.lat.attrs["units"], made.attrs["title"]), ("degrees_north", "days"))
        # The same coordinates to the last bit, of one array, and of a part.
        near = np.float32([-75.1, 0.3, 44.7])
        xr.Dataset({"z": (("y", "x"), np.zeros((3, 2)))}, {"y": ("y", near, {"units": "degrees_north"}),
                                                          "x": ("x", [355.5, 3.25], {"units": "degrees_east"})}).to_netcdf("grid.nc")
        program("regrid", "a.nc::t", "like.nc", "--like", "grid.nc", "--method", "nearest", "--sel", "time=2001-02-03")
        made = self.opened("like.nc")
        np.testing.assert_array_equal(made.lat, near)
        np.testing.assert_array_equal(made.lon, [355.5, 3.25])
        np.testing.assert_array_equal(made.t, self.a.t.sel(time="2001-02-03", lat=[-90, 0, 30], lon=[0, 0]))
        program("regrid", "a.nc", "z", "--like", "grid.nc", "--only", "t", "--format", "v2")
        np.testing.assert_array_equal(self.opened("z").lat, near)
        self.a.load().assign(zonal=self.a.t.mean("lon")).to_netcdf("zonal.nc")
        self.assertIn("--except zonal", program("regrid", "zonal.nc", "o.nc", "--like", "grid.nc", fails=True))
        self.assertIn("none of its arrays", program("regrid", "a.nc", "o.nc", "--like", "grid.nc", "--only", "time_bounds", fails=True))
        xr.open_dataset("grid.nc").rename(y="p", x="q", z="w").merge(xr.open_dataset("grid.nc")).to_netcdf("two.nc")
        self.assertIn("two.nc::w, two.nc::z", program("regrid", "a.nc", "o.nc", "--like", "two.nc", fails=True))
        self.assertFalse(os.path.exists("o.nc"))

    def test_one_variable_has_its_name_and_coordinates(self):
        program("copy", "a.nc::t", "t.nc", "--sel", "lat=0")
        made = self.opened("t.nc")
        np.testing.assert_array_equal(made.t, self.a.t.sel(lat=0))
        self.assertEqual(list(made.data_vars), ["t", "time_bounds"] if "time_bounds" in made.data_vars else ["t"])
        np.testing.assert_array_equal(made.time, self.a.time)
        program("copy", "a.nc", "g.zarr", "--format", "v3")
        program("reduce", "g.zarr/t", "mean.nc", "--with", "mean", "--axis", "time")
        xr.testing.assert_allclose(self.opened("mean.nc").t, self.a.t.mean("time"), rtol=1e-6)

    def test_dimensions_in_another_order(self):
        for out, options in ("t.nc", []), ("t.zarr", ["--format", "v2"]), ("t.npy", ["--decode-cf"]):
            program("copy", "a.nc::t", out, "--dims", "lon,time,lat", *options)
        wanted = self.a.t.transpose("lon", "time", "lat")
        made = self.opened("t.nc").t
        self.assertEqual(made.dims, wanted.dims)
        np.testing.assert_array_equal(made, wanted)
        np.testing.assert_array_equal(np.load("t.npy"), wanted)
        self.assertIn("another order", program("copy", "a.nc::t", "o.nc", "--dims", "x,y,z", fails=True))
        program("copy", "a.nc::t", "part.npy", "--dims", "lat,lon,time", "--sel", "time=2001-02, lat=0", "--decode-cf")
        np.testing.assert_array_equal(np.load("part.npy"), self.a.t.sel(time="2001-02", lat=0).transpose("lon", "time"))

    def test_a_data_set_in_another_order(self):
        for out, options in ("t.nc", []), ("t.zarr", ["--format", "v2"]), ("t3.zarr", ["--format", "v3"]):
            program("copy", "a.nc", out, "--dims", "lon,time,lat", *options)
        for out in "t.nc", "t.zarr":
            made = self.opened(out)
            self.assertEqual(made.t.dims, ("lon", "time", "lat"))
            xr.testing.assert_equal(made, self.a.transpose("lon", "time", "lat", ...).load())
        self.assertEqual(program("digest", "t3.zarr/t").split()[0], program("digest", "t.nc::t").split()[0])
        self.assertIn("lat, lon, time", program("copy", "a.nc", "o.nc", "--dims", "x,y,z", fails=True))

    def test_parts_keep_what_marks_missing_elements(self):
        """Of Zarr v2 the fill alone says so."""
        values = np.arange(36.).reshape(3, 12)
        values[0, :2] = values[:, 11] = np.nan
        lon = ("lon", np.arange(12) * 30., {"units": "degrees_east"})
        xr.Dataset({"t": (("y", "lon"), values)}, {"y": [1., 2, 3], "lon": lon}).to_zarr(
            "f.zarr", encoding={"t": {"_FillValue": -999.}})
        t = xr.open_zarr("f.zarr").t.load()
        for part, wanted in ("y=1:2", t[:2]), ("lon=-60:60", t[:, [10, 11, 0, 1, 2]]), ("y@0", t[0]):
            program("copy", "f.zarr/t", "part.nc", "--sel", part, "--overwrite")
            np.testing.assert_array_equal(self.opened("part.nc").t, wanted)
            program("copy", "f.zarr/t", "part.zarr", "--sel", part, "--overwrite", "--format", "v3")
            program("reduce", "part.zarr", "least.npy", "--with", "min", "--overwrite")
            self.assertEqual(np.load("least.npy"), wanted.min())
            program("reduce", "f.zarr/t", "least.npy", "--with", "min", "--sel", part, "--overwrite")
            self.assertEqual(np.load("least.npy"), wanted.min())
        program("copy", "f.zarr/t", "turned.nc", "--dims", "lon,y")
        np.testing.assert_array_equal(self.opened("turned.nc").t, t.T)

    def test_tables_with_coordinates(self):
        program("copy", "a.nc::t", "t.csv", "--coordinates", "--sel", "time=2001-01-01:2001-01-03, lat=30:90")
        with open("t.csv") as file:
            rows = [line.split(",") for line in file.read().splitlines()]
        self.assertEqual(rows[0], ["time", "lat", "lon", "t"])
        wanted = self.a.t.sel(time=slice("2001-01-01", "2001-01-03"), lat=slice(90, 30)).to_dataframe().reset_index()
        self.assertEqual(len(rows) - 1, len(wanted))
        for row, (_, expected) in zip(rows[1:], wanted.iterrows()):
            self.assertEqual((row[0], float(row[1]), float(row[2])), (str(expected.time.date()), expected.lat, expected.lon))
            if np.isnan(expected.t):
                self.assertEqual(row[3], "")
            else:
                self.assertEqual(float(row[3]), expected.t)

    def test_unlimited_dimensions_stay(self):
        self.a.load().to_netcdf("u.nc", unlimited_dims=["time"])
        self.a.to_netcdf("u3.nc", unlimited_dims=["time"], format="NETCDF3_64BIT")
        for source in "u.nc", "u3.nc":
            for ending in "nc", "nc4":
                for number, words in enumerate(([source], [f"{source}::t"], [f"{source}::u", "--sel", "time=2001-02"],
                                                [source, "--except", "time_bounds"], [source, "--only", "time"])):
                    out = f"{source}-{number}.{ending}"
                    program("copy", words[0], out, *words[1:])
                    wanted = self.a.sel(time="2001-02") if "--sel" in words else self.a
                    with netCDF4.Dataset(out, "a") as made:
                        self.assertEqual([name for name, d in made.dimensions.items() if d.isunlimited()], ["time"], words)
                        grows = made.variables["time"].dtype.isnative  # netCDF4-python 1.6 does not swap a single number
                        if grows:
                            made.variables["time"][len(wanted.time)] = 400
                    made = self.opened(out)
                    self.assertEqual(len(made.time), len(wanted.time) + grows)
                    for name in set(made.variables) - {"time_bounds"}:
                        values = made[name].values
                        np.testing.assert_array_equal(values[:len(wanted.time)] if "time" in wanted[name].dims else values, wanted[name])
                out = f"mean-of-{source}.{ending}"
                program("reduce", source, out, "--with", "mean", "--axis", "lon")
                with netCDF4.Dataset(out) as made:
                    self.assertTrue(made.dimensions["time"].isunlimited())
                    np.testing.assert_allclose(made.variables["t"][1:], self.a.t.mean("lon")[1:], rtol=1e-6)
        program("reduce", "u.nc", "o.nc", "--with", "mean", "--axis", "time", "--overwrite")
        with netCDF4.Dataset("o.nc") as made:
            self.assertFalse(any(d.isunlimited() for d in made.dimensions.values()))

    def test_unlimited_dimensions_are_asked_for(self):
        program("copy", "a.nc", "g.zarr", "--format", "v3")
        for source in "a.nc", "g.zarr", "g.zarr/u":
            for out in "o.nc", "o.nc4":
                program("copy", source, out, "--unlimited", "time", "--overwrite")
                with netCDF4.Dataset(out) as made:
                    self.assertEqual([name for name, d in made.dimensions.items() if d.isunlimited()], ["time"])
                    np.testing.assert_array_equal(made.variables["u"], self.a.u)
        program("copy", "a.nc", "o.nc4", "--unlimited", "lat,lon", "--overwrite")
        with netCDF4.Dataset("o.nc4") as made:
            self.assertEqual({name for name, d in made.dimensions.items() if d.isunlimited()}, {"lat", "lon"})
            np.testing.assert_array_equal(made.variables["u"], self.a.u)
        program("attrs", "g.zarr/u", "set", "_UNLIMITED_DIMENSIONS", '["time"]')
        program("copy", "g.zarr/u", "o.nc", "--overwrite")
        with netCDF4.Dataset("o.nc") as made:
            self.assertTrue(made.dimensions["time"].isunlimited())
            self.assertNotIn("_UNLIMITED_DIMENSIONS", made.variables["u"].ncattrs())
        bytes_ = np.arange(21, dtype="i1").reshape(7, 3)  # a single variable of records is not padded
        program("create", "b.zarr", "--shape", "7,3", "--dtype", "i1", "--dims", "n,x", "--format", "v3")
        np.save("b.npy", bytes_)
        program("copy", "b.npy", "b.zarr", "--overwrite", "--dims", "n,x", "--format", "v3")
        program("copy", "b.zarr", "b.nc", "--unlimited", "n")
        with netCDF4.Dataset("b.nc") as made:
            np.testing.assert_array_equal(made.variables["data" if "data" in made.variables else "b"], bytes_)
        program("get", "b.nc", ":", "--json")
        for words, says in ((["a.nc", "o.nc", "--unlimited", "lat"], ".nc4 has any"), (["a.nc", "o.nc", "--unlimited", "z"], "no dimension 'z'"),
                            (["a.nc::u", "o.npy", "--unlimited", "time"], "only for .nc"),
                            (["a.nc", "o.nc", "--unlimited", "time,lat"], ".nc4 has any")):
            self.assertIn(says, program("copy", *words, "--overwrite", fails=True))

    def test_differences_of_whole_files(self):
        program("copy", "a.nc", "v2.zarr", "--format", "v2")
        program("copy", "a.nc", "v3.zarr", "--format", "v3")
        program("copy", "a.nc", "n4.nc4")
        program("copy", "a.nc", "n3.nc")
        for a, b in (("a.nc", "n3.nc"), ("a.nc", "n4.nc4"), ("n3.nc", "n4.nc4"), ("v2.zarr", "a.nc"), ("a.nc", "v3.zarr")):
            self.assertIn("are equal", program("diff", a, b), (a, b))
        changed = self.a.load().copy(deep=True)
        changed.u[3, 2, 1] += 1
        changed.attrs["title"] = "other"
        changed = changed.drop_vars(["area"]).assign(extra=("lat", np.zeros(7)))
        changed.to_netcdf("c.nc")
        done = subprocess.run([PROGRAM, "diff", "a.nc", "c.nc", "--json"], capture_output=True, text=True)
        found = json.loads(done.stdout)
        self.assertEqual((done.returncode, found["only_in_a"], found["only_in_b"]), (1, ["area"], ["extra"]))
        self.assertIn("", found["attributes"])
        self.assertEqual([(one["path"], one["different"]) for one in found["different"]], [("u", 1)])
        self.assertIn("u: 1 of", subprocess.run([PROGRAM, "diff", "a.nc", "c.nc"], capture_output=True, text=True).stdout)
        self.assertIn("--sel", program("diff", "a.nc", "c.nc", "--sel", "0", fails=True))

    def test_steps_of_whole_data_sets(self):
        program("copy", "a.nc", "g.zarr", "--format", "v2", "--sel", "time@:4")
        for source, pattern in ("a.nc", "days/{}.nc"), ("g.zarr", "steps/step-{}.zarr"):
            program("unstack", source, pattern, "--axis", "time")
            count, digits = (60, 2) if source == "a.nc" else (4, 1)
            for i in range(count):
                made = self.opened(pattern.replace("{}", f"{i:0{digits}}"))
                wanted = self.a.isel(time=i)
                for name in "t", "u", "orography", "lat", "area":
                    np.testing.assert_array_equal(made[name], wanted[name])
                self.assertEqual(made.t.dims, ("lat", "lon"))
                self.assertEqual(made.time.values, wanted.time.values)
                self.assertIn("time", made.t.coords)
        self.assertEqual(len(os.listdir("days")), 60)
        # And back: the coordinate that each has one value of runs along the new dimension, which gets its name.
        for out, options in ("o.nc", []), ("o.zarr", ["--format", "v2"]):
            program("stack", "days/*.nc", out, "--only", "t,u", *options)
            xr.testing.assert_equal(self.opened(out)[["t", "u"]], self.a[["t", "u"]])
        program("stack", "days/*.nc", "last.nc", "--only", "t", "--axis", "2")
        self.assertEqual(self.opened("last.nc").t.dims, ("lat", "lon", "time"))
        for words, says in ((["g.zarr", "x/{}.nc"], "name a dimension; there are"), (["g.zarr", "x/{}.nc", "--axis", "z"], "name a dimension"),
                            (["g.zarr", "steps/step-{}.zarr", "--axis", "time"], "exists"),
                            (["g.zarr", "x/{}.npy", "--axis", "time"], "only one"),
                            (["g.zarr", "x/{}.nc", "--axis", "time", "--resume"], "--resume"),
                            (["g.zarr/t", "x/{}.nc", "--axis", "time", "--only", "t"], "only of a group")):
            self.assertIn(says, program("unstack", *words, fails=True))
            self.assertFalse(os.path.exists("x"))
        for options, names in (["--only", "t"], {"t"}), (["--except", "t"], set(self.a.data_vars) - {"t"}):
            program("unstack", "g.zarr", "x/{}.nc", "--axis", "time", "--overwrite", *options)
            made = self.opened("x/0.nc")
            self.assertLessEqual(names, set(made.variables))
            self.assertEqual("t" in made.variables, "t" in names)
            np.testing.assert_array_equal(made.lat, self.a.lat)

    def test_operands_by_the_names_of_their_dimensions(self):
        random = np.random.default_rng(5)
        coordinates = {"time": np.arange(4.), "lat": np.linspace(-60, 60, 4), "lon": np.arange(4) * 90.}  # a cube
        t = xr.DataArray(random.random((4, 4, 4)), coordinates, ("time", "lat", "lon"), name="t")
        arrays = {"t": t, "c": t.mean("time").transpose("lon", "lat"), "turned": t.transpose("lon", "time", "lat"),
                  "w": t.lat * 1.0, "n": xr.DataArray(random.random(4), {"time": np.arange(4.)}, ("time",)),
                  "half": t[:, :2], "moved": t.assign_coords(lat=t.lat + 1), "fine": t.assign_coords(lat=t.lat.astype("f4"))}
        for name, array in arrays.items():
            array.rename(name).to_netcdf(f"{name}.nc")
            array.rename(name).to_dataset().to_zarr(f"{name}.zarr")
        t, c, turned, w, n = (arrays[name] for name in ("t", "c", "turned", "w", "n"))
        for expression, wanted in (("t - c", t - c), ("c - t", (c - t).transpose(*t.dims)), ("t * w", t * w), ("t - turned", t * 0),
                                   ("turned - t", t * 0), ("w * n", w * n), ("n * w", w * n), ("t * n * w", t * n * w),
                                   ("mean(t, time) - c", t.mean("time").expand_dims("time") * 0), ("t + fine", t * 2),
                                   ("mean(t * w, (lat))", (t * w).mean("lat").expand_dims("lat", 1)),
                                   ("t - mean(turned, time)", t - t.mean("time"))):
            for kind in ("{0}={0}.nc::{0}", "{0}={0}.zarr/{0}"):
                names = [name for name in arrays if re.search(rf"\b{name}\b", expression)]
                program("calc", "o.nc", expression, *[kind.format(name) for name in names], "--overwrite")
                made = xr.open_dataset("o.nc")
                made = made[list(made.data_vars)[-1]].load()
                self.assertEqual(made.dims, wanted.dims, expression)
                np.testing.assert_allclose(made, wanted, atol=1e-12, err_msg=expression)
        for expression, names, says in (("t - half", ("t", "half"), "lat has the length"), ("t - moved", ("t", "moved"), "other values")):
            self.assertIn(says, program("calc", "p.nc", expression, *[f"{name}={name}.nc::{name}" for name in names], fails=True))
        program("calc", "t.zarr/t", "t - c", "t=t.zarr/t", "c=c.zarr/c", "--in-place")
        np.testing.assert_allclose(xr.open_zarr("t.zarr").t, t - c, atol=1e-12)
        self.assertIn("dimensions", program("calc", "w.zarr/w", "w * n", "w=w.zarr/w", "n=n.zarr/n", "--in-place", fails=True))

    def test_what_is_stacked_along_one_step_keeps_its_coordinate(self):
        for i in range(3):
            program("copy", "a.nc", f"one{i}.nc", "--only", "t", "--sel", f"time@{i}:{i + 1}")
        program("stack", "one0.nc::t", "one1.nc::t", "one2.nc::t", "o.nc")
        xr.testing.assert_equal(self.opened("o.nc").t, self.a.t[:3])
        # Of data sets, only what each has one value of is known to grow.
        self.assertIn("time", program("stack", "one0.nc", "one1.nc", "p.nc", fails=True))
        for i in range(3):
            program("copy", "a.nc", f"row{i}.nc", "--only", "t", "--sel", f"lat@2:3, time@{i}")
        program("stack", "row0.nc", "row1.nc", "row2.nc", "rows.nc")
        xr.testing.assert_equal(self.opened("rows.nc").t, self.a.t[:3, 2:3])

    def test_tables_become_arrays_again(self):
        program("copy", "a.nc::t", "t.csv", "--coordinates")
        for out, options in ("o.nc", []), ("o.nc4", []), ("o.zarr", ["--format", "v2"]):
            said = program("copy", "t.csv", out, "--dims", "time,lat,lon", *options)
            made = self.opened(out)
            np.testing.assert_array_equal(made.t, self.a.t)
            self.assertEqual(made.t.dims, ("time", "lat", "lon"))
            for name in "time", "lat", "lon":
                np.testing.assert_array_equal(made[name], self.a[name], said)
        with open("t.csv") as pipe:  # other orders of the rows, and some that are not there
            header, *rows = pipe.read().splitlines()
        np.random.default_rng(3).shuffle(rows)
        with open("part.csv", "w") as file:
            file.write("\n".join([header, *rows[:900]]) + "\n")
        for words in ("copy", "part.csv", "part.zarr"), ("copy", "-", "piped.zarr", "--as", "csv"):
            with open("part.csv") as pipe:
                subprocess.run([PROGRAM, *words, "--dims", "time,lat,lon", "--format", "v2", "--quiet"], stdin=pipe, check=True)
            made = self.opened(words[2])
            wanted = pd.read_csv("part.csv", parse_dates=["time"]).set_index(["time", "lat", "lon"]).to_xarray()
            xr.testing.assert_equal(made.load(), wanted)

    def test_tables_of_stations(self):
        text = ("station,day,n,kind,when\nWien,2001-01-01,NA,wet,2001-05-06\nGöß,2001-01-02,,dry,\n"
                "Wien,2001-01-02,3,wet,2001-05-05T12:00\n")
        with open("s.csv", "w") as file:
            file.write(text)
        for out, options in ("s.nc", []), ("s.nc4", []), ("s.zarr", ["--format", "v2"]):
            program("copy", "s.csv", out, "--dims", "day,station", *options)
            made = self.opened(out).load()
            self.assertEqual(list(made.station.values.astype(str)), ["Göß", "Wien"])
            np.testing.assert_array_equal(made.day, np.array(["2001-01-01", "2001-01-02"], "M8[ns]"))
            np.testing.assert_array_equal(made.n, [[np.nan, np.nan], [np.nan, 3]])
            self.assertEqual(made.kind.values.astype(str).tolist(), [["", "wet"], ["dry", "wet"]])
            self.assertEqual(made.when.values[1, 1], np.datetime64("2001-05-05T12:00"))
            np.testing.assert_array_equal(np.isnat(made.when), [[True, False], [True, False]])
        program("copy", "s.csv", "marked.nc", "--dims", "day,station", "--missing", "-9")
        with xr.open_dataset("marked.nc", mask_and_scale=False, decode_times=False) as raw:
            np.testing.assert_array_equal(raw.n, [[-9, -9], [-9, 3]])
            self.assertEqual(raw.n.attrs["_FillValue"], -9)
        program("copy", "s.csv", "wet.zarr", "--dims", "day,station", "--where", "kind == 'wet'", "--format", "v2")
        self.assertEqual(self.opened("wet.zarr").n.shape, (2, 1))

    def test_tables_that_are_no_arrays_are_refused(self):
        rows = "".join(f"{i},{i * 0.5},{-i},1\n" for i in range(5000))
        big = f"{2**53 + 1}"
        for text, dims, says in (("t,x,v\n1,2,3\n\"1\",3,4\n1,2,5\n", "t,x", "line 2 and line 4 are of one cell, t=1, x=2"),
                                 ("t,x,v\n1,2,3\n1,NA,4\n", "t,x", "line 3 has no x"),
                                 ("t,x,v\n1,2,3\n", "t,y", "no column 'y'; its columns are t, x, v"),
                                 ("t,x\n1,2\n", "t,x", "none is left that has values"),
                                 ("t,x,a/b\n1,2,3\n", "t,x", "no array of a group has such a name"),
                                 (f"t,x,v\n1,2,{big}\n2,3,4\n", "t,x", "float64, which has NaN, does not hold"),
                                 ("t,x,v\n1,2,true\n2,3,false\n", "t,x", "some cells have no row"),
                                 ("a,b,c,v\n" + rows, "a,b,c", "5000 rows for 1.25e+11 cells (5000 of a, 5000 of b, 5000 of c)")):
            with open("t.csv", "w") as file:
                file.write(text)
            self.assertIn(says, program("copy", "t.csv", "o.zarr", "--dims", dims, fails=True))
            self.assertFalse(os.path.exists("o.zarr"))
        self.assertIn("--sel", program("copy", "t.csv", "o.zarr", "--dims", "a,b", "--sel", ":3", fails=True))
        with open("t.csv", "w") as file:
            file.write("i,j,v\n" + "".join(f"{i * 7919 % 500},{i // 500},{i}\n" for i in range(250_000)))
        self.assertIn("memory", program("copy", "t.csv", "o.zarr", "--dims", "i,j", "--max-memory", "4M", fails=True))
        program("copy", "t.csv", "o.zarr", "--dims", "i,j", "--max-memory", "32M", "--format", "v2")
        wanted = pd.read_csv("t.csv").set_index(["i", "j"]).to_xarray()
        xr.testing.assert_equal(self.opened("o.zarr").load(), wanted)

    def test_statistics_of_all(self):
        found = {one["path"]: one["mean"] for one in json.loads(program("stats", "a.nc", "--json"))}
        self.assertEqual(set(found), {"a.nc::t", "a.nc::u", "a.nc::orography"})
        self.assertAlmostEqual(found["a.nc::t"], float(self.a.t.astype("f8").mean()), places=9)

    def test_arithmetic_with_data_sets(self):
        days("b.nc", 60, 60)
        program("calc", "sum.nc", "(a + b) / 2", "a=a.nc", "b=b.nc")
        with xr.open_dataset("b.nc") as other:
            np.testing.assert_allclose(self.opened("sum.nc").t, (self.a.t.values + other.t.values) / 2)

    def test_a_reduction_alone_keeps_names_and_coordinates(self):
        wanted = self.a.mean("time")
        for source, only in ("a.nc::t", []), ("a.nc", ["--only", "t"]), ("a.nc", ["--only", "t,u"]):
            program("calc", "mean.nc", "mean(t, time)", f"t={source}", "--overwrite", *only)
            made = self.opened("mean.nc")
            self.assertEqual(made.t.dims, ("time", "lat", "lon"))
            np.testing.assert_allclose(made.t[0], wanted.t, rtol=1e-6)
            np.testing.assert_array_equal(made.time, [self.a.time.mean().values])
            np.testing.assert_array_equal(made.lat, self.a.lat)
            self.assertNotIn("time_bounds", made)
            made.close()
        program("calc", "mean.zarr", "mean(t, time) * 2", "t=a.nc::t", "--format", "v3")
        self.assertEqual(json.loads(program("info", "mean.zarr", "--json"))["dimension_names"], ["time", "lat", "lon"])

    def test_several_variables_in_one_expression(self):
        program("calc", "both.nc", "t * 2 - u + z", "z=a.nc::orography", "t=a.nc::t", "u=a.nc::u")
        made = self.opened("both.nc")
        np.testing.assert_allclose(made.data, self.a.t * 2 - self.a.u + self.a.orography, rtol=1e-5)
        for name in "time", "lat", "lon":
            np.testing.assert_array_equal(made[name], self.a[name])
        days("b.nc", 60, 60)
        program("calc", "change.nc", "b - a", "a=a.nc::t", "b=b.nc::t")
        self.assertEqual(self.opened("change.nc").t.dims, ("time", "lat", "lon"))

    def test_both_words_for_months(self):
        days("years.nc", 0, 500)
        with xr.open_dataset("years.nc") as data:
            each, all_of_them = data.t.resample(time="MS").mean(), data.t.groupby("time.month").mean()
            for word, wanted in ("month", each), ("year-month", each), ("month-of-year", all_of_them):
                program("reduce", "years.nc::t", "o.npy", "--with", "mean", "--by", word, "--overwrite")
                np.testing.assert_allclose(np.load("o.npy"), wanted, rtol=1e-6)
            month, year_month = data.t.groupby("time.month"), data.t.groupby(data.time.dt.strftime("%Y-%m"))
            for word, groups, noted in ("month", month, True), ("month-of-year", month, False), ("year-month", year_month, False):
                done = subprocess.run([PROGRAM, "calc", "o.npy", f"t - mean(t, by={word})", "t=years.nc::t", "--overwrite"],
                                      capture_output=True, text=True)
                self.assertEqual((done.returncode, "all Januaries" in done.stderr), (0, noted), done.stderr)
                np.testing.assert_allclose(np.load("o.npy"), groups - groups.mean(), atol=1e-4)
        # In one year both are the same.
        done = subprocess.run([PROGRAM, "calc", "o.npy", "mean(t, by=month)", "t=a.nc::t", "--overwrite"], capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_what_does_not_fit_is_refused_and_leaves_nothing(self):
        for words, says in ((["reduce", "a.nc", "o.nc", "--with", "mean", "--axis", "0"], "name the dimension"),
                            (["reduce", "a.nc", "o.nc", "--with", "mean", "--axis", "depth"], "depth"),
                            (["reduce", "a.nc", "o.nc", "--with", "mean", "--axis", "time", "--only", "v"], "no array 'v'"),
                            (["reduce", "a.nc", "o.npy", "--with", "mean", "--axis", "time"], "only one"),
                            (["reduce", "a.nc::t", "o.zarr", "--with", "mean", "--only", "t"], "--only"),
                            (["coarsen", "a.nc", "o.nc", "--by", "2,2"], "by names"),
                            (["pyramid", "a.nc", "o.zarr"], "holds 9 arrays")):
            self.assertIn(says, program(*words, fails=True), words)
            self.assertEqual([name for name in os.listdir() if name.startswith("o.")], [], words)


class Append(ProgramTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.path("."))
        for name, first, count in ("a", 0, 31), ("b", 31, 28), ("c", 59, 31), ("mixed", 50, 20):
            days(f"{name}.nc", first, count)
        program("copy", "a.nc", "g", "--format", "v3")

    def length(self):
        return json.loads(program("info", "g/t", "--json"))["shape"][0]

    def test_times_go_on(self):
        program("append", "g", "b.nc", "c.nc", "--axis", "time")
        self.assertEqual(self.length(), 90)
        says = program("append", "g", "b.nc", "--axis", "time", fails=True)
        self.assertIn("2001-02-01 does not go on from 2001-03-31", says)
        self.assertIn("--skip-old", says)
        self.assertEqual(self.length(), 90)

    def test_twice_by_cron(self):
        for _ in range(2):
            program("append", "g", "a.nc", "b.nc", "--axis", "time", "--skip-old")
            self.assertEqual(self.length(), 59)
        program("append", "g", "mixed.nc", "--axis", "time", "--skip-old")
        self.assertEqual(self.length(), 70)
        self.assertEqual(json.loads(program("get", "g/time", ":", "--raw", "--json")), list(range(70)))
        program("undo", "g")
        self.assertEqual(self.length(), 59)

    def test_one_time_that_is_there_and_an_earlier_one(self):
        days("last.nc", 30, 1)
        days("earlier.nc", 12, 1)
        program("copy", "last.nc", "one", "--format", "v3")
        says = program("append", "one", "earlier.nc", "--axis", "time", fails=True)
        self.assertIn("2001-01-13 does not go on from 2001-01-31", says)
        self.assertEqual(json.loads(program("get", "one/time", ":", "--raw", "--json")), [30])
        program("append", "one", "earlier.nc", "b.nc", "--axis", "time", "--skip-old")
        self.assertEqual(json.loads(program("get", "one/time", ":2", "--raw", "--json")), [30, 31])

    def test_all_or_nothing(self):
        program("append", "g", "b.nc", "a.nc", "--axis", "time", fails=True)
        self.assertEqual(self.length(), 31)


if __name__ == "__main__":
    main()
