"""Commands that show and set single values: by what elements stand for, beside xarray and netCDF4-python."""

import json
import sys
import unittest
import warnings

import numpy as np

from program import ProgramTest, main

try:
    import xarray as xr
    import netCDF4
except ImportError:
    print("xarray or netCDF4 is not installed")
    sys.exit(77)

RANDOM = np.random.default_rng(55)
COUNTS = RANDOM.integers(-3000, 3000, (5, 8)).astype("i2")
COUNTS[0, 0], COUNTS[2, 3], COUNTS[4, 7] = -32767, -32768, -32767  # two markers


class Meanings(ProgramTest):
    def setUp(self):
        super().setUp()
        with netCDF4.Dataset(self.path("m.nc"), "w") as file:
            file.createDimension("y", 5)
            file.createDimension("x", 8)

            def add(name, values, dims=("y", "x"), fill=None, **attributes):
                variable = file.createVariable(name, values.dtype, dims, fill_value=fill)
                variable.set_auto_maskandscale(False)
                variable.setncatts(attributes)
                variable[...] = values
            add("packed", COUNTS, fill=-32767, missing_value=np.int16(-32768), scale_factor=0.01, add_offset=273.15,
                valid_range=np.array([-2500, 2500], "i2"))
            add("unsigned", np.array([1, -1, -128, 0, 5, 6, 7, 8], "i1"), ("x",), fill=-1, _Unsigned="true",
                valid_max=np.int8(-100))
            real = RANDOM.normal(size=8).astype("f4")
            real[2:4] = 1e20, np.nan
            add("real", real, ("x",), fill=np.float32(1e20))
            add("plain", np.arange(40, dtype="i4").reshape(5, 8))
            add("wide", np.array([2**53 + 1, -7, 3, 4, 5], "i8"), ("y",), fill=-7)
            add("y", np.array([0, 12, 24, 36, 48], "i4"), ("y",), units="hours since 2000-02-28")
            add("noleap", np.array([0, 12, 24, 36, 48], "i4"), ("y",), units="hours since 2000-02-28", calendar="noleap")
        self.tessera("copy", "m.nc", "m.zarr", "--format", "v3", "--quiet")

    def opened(self, name="m.nc"):
        kind = {} if name.endswith(".nc") else {"engine": "zarr", "consolidated": False}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with xr.open_dataset(self.path(name), **kind) as data:
                return data.load()

    # ---- stats

    def test_statistics(self):
        wanted = self.opened()
        for variable in ("packed", "unsigned", "real", "plain"):
            values = wanted[variable].values.astype("f8")
            for path in (f"m.nc::{variable}", f"m.zarr/{variable}"):
                with self.subTest(path=path):
                    found = self.tessera_json("stats", path, "--with", "median")
                    self.assertEqual(found["missing"], np.isnan(values).sum())
                    self.assertEqual(found["count"], values.size)
                    for word, of in (("min", np.nanmin), ("max", np.nanmax), ("mean", np.nanmean), ("deviation", np.nanstd)):
                        self.assertAlmostEqual(found[word], of(values), places=4)
                    self.assertAlmostEqual(found["further"]["median"], np.nanmedian(values), places=4)
        found = self.tessera_json("stats", "m.nc::packed")
        self.assertEqual((found["dtype"], found["stored_dtype"], found["nan"]), ("<f8", "<i2", 3))
        rows = self.tessera_json("stats", "m.nc::packed", "--axis", "y")["positions"]
        np.testing.assert_allclose([row["mean"] for row in rows], wanted["packed"].mean("x").values)
        self.assertEqual([row["missing"] for row in rows], [1, 0, 1, 0, 1])
        self.assertRegex(self.tessera("stats", "m.nc::packed"), r"(?m)^dtype +<f8 \(stored as <i2\)$")
        self.assertRegex(self.tessera("stats", "m.nc::packed"), r"(?m)^missing +3$")

    def test_statistics_of_codes(self):
        found = self.tessera_json("stats", "m.nc::packed", "--raw")
        self.assertEqual((found["dtype"], found["min"], found["missing"]), ("<i2", -32768, 0))
        self.assertRegex(self.tessera("stats", "m.nc::packed", "--raw"), r"(?m)^NaN +0$")

    def test_statistics_outside_of_what_is_valid(self):
        outside = ((COUNTS < -2500) | (COUNTS > 2500)) & (COUNTS > -32767)
        for words in ((), ("--raw",), ("--axis", "y")):
            self.assertEqual(self.tessera_json("stats", "m.zarr/packed", *words)["outside_valid"], outside.sum())
        self.assertEqual(self.tessera_json("stats", "m.nc::packed", "--sel", "1")["outside_valid"], outside[1].sum())
        self.assertRegex(self.tessera("stats", "m.nc::packed"), rf"(?m)^outside +{outside.sum()} of what valid_range")
        self.assertEqual(self.tessera_json("stats", "m.nc::unsigned")["outside_valid"], 0)
        self.assertIsNone(self.tessera_json("stats", "m.nc::plain")["outside_valid"])

    def test_statistics_of_marked_integers(self):
        for words, least, missing in (((), 3, 1), (("--raw",), -7, 0)):
            found = self.tessera_json("stats", "m.nc::wide", *words)
            self.assertEqual((found["min"], found["max"], found["missing"]), (least, 2**53 + 1, missing))
            self.assertEqual(found["dtype"], "<i8")

    def test_statistics_of_times(self):
        found = self.tessera_json("stats", "m.nc::y")
        self.assertEqual((found["min"], found["max"], found["mean"]), ("2000-02-28T00", "2000-03-01T00", "2000-02-29T00:00:00"))
        found = self.tessera_json("stats", "m.nc::noleap")
        self.assertEqual((found["min"], found["max"], found["mean"]), ("2000-02-28", "2000-03-02", "2000-03-01"))
        self.assertEqual(found["dtype"], "<i4")
        self.assertRegex(self.tessera("stats", "m.nc::noleap"), r"(?m)^mean +2000-03-01$")
        self.assertEqual(self.tessera_json("stats", "m.nc::noleap", "--raw")["max"], 48)


if __name__ == "__main__":
    main()
