"""Datasets that grow along a dimension, compared with xarray's concat."""

import json
import shutil
import subprocess
import sys
import unittest
import warnings

import numpy as np

from program import ProgramTest, digest, main

try:
    import netCDF4  # noqa: F401
    import xarray as xr
except ImportError:
    print("xarray with netCDF4 is not installed")
    sys.exit(77)

RANDOM = np.random.default_rng(35)


def month(start, days, units="days since 2000-01-01", **attributes):
    times = np.datetime64(start, "ns") + np.arange(days) * np.timedelta64(1, "D")
    values = RANDOM.normal(280, 5, (days, 5, 6)).astype("f4")
    values[1, 2, 3] = np.nan
    data = xr.Dataset({"t": (("time", "lat", "lon"), values, {"units": "K", **attributes}),
                       "n": (("lon", "time"), RANDOM.integers(0, 9, (6, days))),
                       "height": (("lat", "lon"), np.ones((5, 6)))},
                      {"time": times, "lat": np.linspace(10, -10, 5), "lon": np.arange(6) * 2.5})
    data.time.encoding = {"units": units, "calendar": "proleptic_gregorian", "dtype": "i4"}
    return data


class Growing(ProgramTest):
    def setUp(self):
        super().setUp()
        warnings.simplefilter("ignore")
        self.data = month("2020-01-01", 31)
        self.more = month("2020-02-01", 29)
        self.data.to_netcdf(self.path("jan.nc"))
        self.more.to_netcdf(self.path("feb.nc"))
        self.tessera("copy", "jan.nc", "g.zarr", "--format", "v2", "--quiet")

    def check(self, *months):
        wanted = months[0] if len(months) == 1 else xr.concat(months, "time", data_vars="minimal")
        with xr.open_zarr(self.path("g.zarr"), chunks=None) as got:
            xr.testing.assert_equal(got.load(), wanted)
        self.tessera("verify", "g.zarr", "--quiet")

    def refused_unchanged(self, *words, says):
        before = digest(self.folder / "g.zarr")
        self.refused("append", "g.zarr", *words, says=says)
        self.assertEqual(digest(self.folder / "g.zarr"), before)

    def test_months(self):
        said = json.loads(self.tessera("append", "g.zarr", "feb.nc", "--axis", "time", "--json"))
        self.assertEqual([(one["path"], one["axis"], one["old_shape"], one["shape"]) for one in said["arrays"]],
                         [("n", 1, [6, 31], [6, 60]), ("t", 0, [31, 5, 6], [60, 5, 6]), ("time", 0, [31], [60])])
        self.check(self.data, self.more)
        self.assertEqual(self.tessera("undo", "g.zarr", "--quiet"), "")
        self.tessera("consolidate", "g.zarr", "--quiet")
        self.check(self.data)
        self.tessera("copy", "feb.nc", "feb.zarr", "--format", "v3", "--quiet")  # a group of another format
        self.assertIn("time 31 → 60, 3 arrays", self.tessera("append", "g.zarr", "feb.zarr", "--axis", "time"))
        self.check(self.data, self.more)

    def test_the_note_of_an_undo(self):
        self.tessera("append", "g.zarr", "feb.nc", "--axis", "time", "--quiet")
        self.assertIn("consolidated metadata of g.zarr are stale", self.run_program("undo", "g.zarr").stderr)

    def test_metadata_that_cannot_be_renewed(self):
        """The error says that the arrays have grown, so that nobody appends twice."""
        metadata = self.folder / "g.zarr/.zmetadata"
        if not shutil.which("chattr") or subprocess.run(["chattr", "+i", metadata], capture_output=True).returncode != 0:
            self.skipTest("takes root, and a file system with immutable files")
        self.addCleanup(subprocess.run, ["chattr", "-i", metadata])
        self.refused("append", "g.zarr", "feb.nc", "--axis", "time", code=3,
                     says=["have grown", "must not be appended to again", ".zmetadata"])
        subprocess.run(["chattr", "-i", metadata], check=True)
        self.tessera("consolidate", "g.zarr", "--quiet")
        self.check(self.data, self.more)

    def test_times_in_other_units(self):
        other = month("2020-02-01", 29, "hours since 2020-02-01")
        other.to_netcdf(self.path("other.nc"))
        self.tessera("append", "g.zarr", "other.nc", "--axis", "time", "--quiet")
        self.check(self.data, other)
        self.assertEqual(json.loads(self.tessera("attrs", "g.zarr/time", "--json"))["units"], "days since 2000-01-01")
        between = month("2020-03-01T06", 3, "hours since 2020-03-01")
        between.to_netcdf(self.path("between.nc"))
        self.refused_unchanged("between.nc", "--axis", "time", says=["2020-03-01T06", "between two counts"])
        # In an array as another program makes it, a refused append leaves nothing of its own.
        own = [path for path in self.folder.joinpath("g.zarr").rglob(".tessera")]
        for path in own:
            shutil.rmtree(path)
        self.refused_unchanged("between.nc", "--axis", "time", says="between two counts")
        self.refused("append", "g.zarr/t", "other.nc::n", "--cast", "same_kind", says="cannot append")
        self.assertEqual(list(self.folder.joinpath("g.zarr").rglob(".tessera")), [])

    def test_what_does_not_fit(self):
        cases = [(self.more.drop_vars("n"), ["g.zarr/n", "has no array n", "shorter"]),
                 (self.more.assign(extra=self.more.t), ["extra", "is along time", "copy it there first"]),
                 (self.more.assign_coords(lat=self.more.lat + 1), ["lat", "not that of", "tessera diff"]),
                 (self.more.rename(time="t2"), ["n", "has no dimension time"]),
                 (month("2020-02-01", 29, units="days since 2000-01-01").assign(
                     t=self.more.t.assign_attrs(units="degC")), ["units", '"K"', '"degC"']),
                 (self.more.assign(t=self.more.t.astype("f8")), ["<f8", "--cast"])]
        for number, (data, says) in enumerate(cases):
            data.to_netcdf(self.path(f"{number}.nc"))
            with self.subTest(says=says):
                self.refused_unchanged(f"{number}.nc", "--axis", "time", says=says)
        packed = self.more.copy()
        packed.t.encoding = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 280, "_FillValue": -9999}
        packed.to_netcdf(self.path("packed.nc"))
        self.refused_unchanged("packed.nc", "--axis", "time", says=["would mean others"])
        self.refused_unchanged("feb.nc", says="--axis time")
        self.refused_unchanged("feb.nc", "--axis", "0", says="--axis time")
        self.refused_unchanged("feb.nc", "--axis", "tme", says=["no array has a dimension 'tme'", "lat, lon, time"])
        self.refused_unchanged("jan.nc::t", "--axis", "time", says="one array")
        self.tessera("append", "g.zarr", "5.nc", "--axis", "time", "--cast", "same_kind", "--quiet")
        self.check(self.data, self.more)


if __name__ == "__main__":
    main()
