"""Commands that show and set single values: by what elements stand for, beside xarray and netCDF4-python."""

import json
import sys
import unittest
import warnings

import numpy as np

from program import ProgramTest, main, module_folder

try:
    import xarray as xr
    import netCDF4
except ImportError:
    print("xarray or netCDF4 is not installed")
    sys.exit(77)

RANDOM = np.random.default_rng(55)
COUNTS = RANDOM.integers(-3000, 3000, (5, 8)).astype("i2")
COUNTS[0, 0], COUNTS[2, 3], COUNTS[4, 7] = -32767, -32768, -32767  # two markers


class Base(ProgramTest):
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


class Meanings(Base):
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

    # ---- get

    def test_elements(self):
        wanted = self.opened()
        for variable in ("packed", "unsigned", "plain"):
            for path in (f"m.nc::{variable}", f"m.zarr/{variable}"):
                with self.subTest(path=path):
                    found = np.array(self.tessera_json("get", path), "f8")  # null becomes NaN
                    np.testing.assert_allclose(found, wanted[variable].values.astype("f8"), rtol=1e-6)
        self.assertEqual(self.tessera_json("get", "m.nc::packed", "0, :3", "--raw"), COUNTS[0, :3].tolist())
        self.assertEqual(self.tessera_json("get", "m.nc::packed", "0, 0"), None)
        self.assertEqual(self.tessera_json("get", "m.nc::plain", "1, 2"), 10)
        self.assertEqual(self.tessera("get", "m.nc::unsigned").split(), "[ 1.0 -- 128.0 0.0 5.0 6.0 7.0 8.0]".split())

    def test_nan_that_is_no_marker(self):
        found = self.tessera_json("get", "m.nc::real")
        self.assertEqual(found[2:4], [None, "NaN"])
        self.tessera("import", self.save("n.npy", np.array([1.0, np.nan])), "n.zarr")
        self.assertEqual(self.tessera_json("get", "n.zarr"), [1.0, "NaN"])
        self.tessera("attrs", "n.zarr", "set", "_FillValue", "NaN")
        self.assertEqual(self.tessera_json("get", "n.zarr"), [1.0, None])

    def test_marked_integers(self):
        self.assertEqual(self.tessera_json("get", "m.zarr/wide"), [2**53 + 1, None, 3, 4, 5])
        self.assertEqual(self.tessera("get", "m.zarr/wide", "1:3"), "[--  3]\n")
        self.assertEqual(self.tessera("get", "m.zarr/wide", "--csv").splitlines()[:3], [str(2**53 + 1), '""', "3"])
        self.tessera("get", "m.zarr/wide", "--out", "w.npy", "--quiet")
        np.testing.assert_array_equal(np.load(self.path("w.npy")), [2**53 + 1, -7, 3, 4, 5])

    def test_times(self):
        self.assertEqual(self.tessera_json("get", "m.nc::y", "1:3"), ["2000-02-28T12", "2000-02-29T00"])
        self.assertEqual(self.tessera_json("get", "m.nc::noleap", "1:3"), ["2000-02-28T12:00", "2000-03-01"])
        self.assertEqual(self.tessera("get", "m.nc::noleap", "1:3"), "[2000-02-28T12:00       2000-03-01]\n")
        self.assertEqual(self.tessera("get", "m.nc::noleap", "1:3", "--csv"), "2000-02-28T12:00\n2000-03-01\n")
        self.assertEqual(self.tessera_json("get", "m.nc::noleap", "1:3", "--raw"), [12, 24])

    def test_months_and_years_of_one_length(self):
        """As xarray counts them; others stay numbers, and --decode-cf says so."""
        for n, (units, calendar, wanted) in enumerate((
                ("months since 1960-01-01", "360_day", ["1960-01-16", "1960-02-16"]),
                ("common_years since 1999-01-01", "noleap", ["1999-07-02T12:00", "2000-07-02T12:00"]),
                ("months since 1960-01-01", "standard", None), ("weeks since 1960-01-01", None, None),
                ("days since 1960-01-01", "360", None))):
            with netCDF4.Dataset(self.path(f"{n}.nc"), "w") as file:
                file.createDimension("t", 2)
                variable = file.createVariable("t", "f8", ("t",))
                variable.setncatts({"units": units, **({"calendar": calendar} if calendar else {})})
                variable[:] = [0.5, 1.5]
            self.assertEqual(self.tessera_json("get", f"{n}.nc::t"), wanted or [0.5, 1.5])
            note = self.run_program("copy", f"{n}.nc::t", f"{n}.npy", "--decode-cf").stderr
            self.assertIn("stay numbers", note)
            if wanted is None:
                self.assertIn(f"'{units}'", note)
        self.tessera("create", "text.zarr", "--shape", "2", "--dtype", "i2", "--attrs", '{"scale_factor": "0.1"}', "--quiet")
        self.assertIn("scale_factor is text", self.run_program("copy", "text.zarr", "text.npy", "--decode-cf").stderr)

    def test_text_and_files(self):
        wanted = self.opened()["packed"].values
        text = self.tessera("get", "m.nc::packed", "--csv")
        np.testing.assert_allclose(np.genfromtxt(text.splitlines(), delimiter=","), wanted)
        self.assertTrue(text.startswith(","))
        for words in (("get", "m.zarr/packed", "--out", "p.csv"), ("copy", "m.zarr/packed", "p.csv", "--overwrite"),
                      ("export", "m.nc::packed", "p.csv", "--overwrite")):
            self.tessera(*words, "--quiet")
            np.testing.assert_allclose(np.genfromtxt(self.path("p.csv"), delimiter=","), wanted)
        self.tessera("get", "m.zarr/packed", "--out", "p.npy", "--quiet")
        np.testing.assert_allclose(np.load(self.path("p.npy")), wanted)
        self.tessera("get", "m.zarr/packed", "--out", "p.npy", "--overwrite", "--raw", "--quiet")
        np.testing.assert_array_equal(np.load(self.path("p.npy")), COUNTS)
        self.tessera("get", "m.zarr/packed", "--out", "p.csv", "--overwrite", "--raw", "--quiet")
        np.testing.assert_array_equal(np.loadtxt(self.path("p.csv"), delimiter=","), COUNTS)

        self.assertTrue(self.tessera("copy", "m.zarr/packed", "-", "--as", "csv").startswith(","))

    def test_points(self):
        self.save("at.npy", np.array([[2, 3], [0, 1]]))
        found = self.tessera_json("get", "m.zarr/packed", "--points", "at.npy")
        self.assertEqual(found[0], None)
        self.assertAlmostEqual(found[1], self.opened()["packed"].values[0, 1], 3)

    # ---- view

    def cells(self, *words):
        """What is shown, NaN where it is missing."""
        shown = self.tessera_json("view", *words, "--size", "80x20")
        return shown, np.array(shown["values"], "f8")

    def test_pictures(self):
        wanted = self.opened()
        for variable in ("packed", "unsigned", "real", "plain"):
            for path in (f"m.nc::{variable}", f"m.zarr/{variable}"):
                with self.subTest(path=path):
                    _, cells = self.cells(path)
                    values = wanted[variable].values.astype("f8")
                    np.testing.assert_allclose(cells, values.reshape(cells.shape), rtol=1e-6)
        shown, _ = self.cells("m.nc::packed")
        self.assertEqual((shown["dtype"], shown["stored_dtype"]), ("<f8", "<i2"))
        self.assertAlmostEqual(shown["range"][0], np.nanmin(wanted["packed"].values), 4)
        self.assertIn("blank: missing", self.tessera("view", "m.nc::packed", "--size", "80x20"))
        shown, cells = self.cells("m.nc::packed", "--raw")
        np.testing.assert_array_equal(cells, COUNTS)
        self.assertEqual((shown["dtype"], shown["stored_dtype"]), ("<i2", "<i2"))
        self.assertEqual(self.cells("m.zarr/unsigned", "--raw")[1].tolist(), [[1, -1, -128, 0, 5, 6, 7, 8]])
        _, cells = self.cells("m.nc::packed", "--missing", f"{COUNTS[1, 1] * 0.01 + 273.15:.2f}")
        self.assertEqual(np.argwhere(np.isnan(cells)).tolist(), np.argwhere(COUNTS == COUNTS[1, 1]).tolist())

    def test_pictures_of_scalars_and_marked_nan(self):
        line = self.tessera("view", "m.nc::packed", "1, 1").splitlines()
        self.assertTrue(line[0].endswith("<f8"), line)
        self.assertAlmostEqual(float(line[-1].split()[1]), self.opened()["packed"].values[1, 1], 4)
        self.assertEqual(int(self.tessera("view", "m.nc::packed", "1, 1", "--raw").split()[-1]), COUNTS[1, 1])
        self.tessera("import", self.save("n.npy", np.array([[1.0, np.nan]])), "n.zarr")
        self.assertEqual(self.tessera_json("view", "n.zarr")["values"], [[1.0, "NaN"]])
        self.tessera("attrs", "n.zarr", "set", "_FillValue", "NaN")
        self.assertEqual(self.tessera_json("view", "n.zarr")["values"], [[1.0, None]])

    def test_pictures_of_extremes(self):
        """A negative scale turns the least code into the greatest value."""
        with netCDF4.Dataset(self.path("n.nc"), "w") as file:
            file.createDimension("y", 4)
            file.createDimension("x", 6)
            variable = file.createVariable("v", "i2", ("y", "x"), fill_value=-9)
            variable.scale_factor = -0.5
            variable[...] = -0.5 * np.arange(24).reshape(4, 6)
        values = self.opened("n.nc")["v"].values
        for word, function in (("min", np.min), ("max", np.max), ("mean", np.mean)):
            shown = self.tessera_json("view", "n.nc::v", "--size", "6x2", "--with", word)
            self.assertEqual((shown["rows"]["window"], shown["columns"]["window"]), (2, 2))
            wanted = function(values.reshape(2, 2, 3, 2).transpose(0, 2, 1, 3).reshape(2, 3, 4), axis=2)
            np.testing.assert_allclose(np.array(shown["values"], "f8"), wanted)

    def test_pictures_of_times(self):
        wanted = self.opened()["y"].values.astype("M8[h]").astype("i8")
        shown, cells = self.cells("m.nc::y")
        self.assertEqual((shown["dtype"], shown["stored_dtype"], shown["units"]), ("<M8[h]", "<i4", ""))
        np.testing.assert_array_equal(cells[0], wanted)
        self.assertIn("2000-03-01 ", self.tessera("view", "m.nc::y", "--size", "60x4"))
        self.assertEqual(self.cells("m.nc::y", "--raw")[1].tolist(), [[0, 12, 24, 36, 48]])
        self.assertEqual(self.cells("m.nc::noleap")[0]["dtype"], "<i4")

    def test_pictures_of_marks_in_other_formats(self):
        self.save("dem.npy", np.array([[1, 2, -9999], [-9999, 5, 6]], "f4"))
        self.tessera("import", "dem.npy", "dem.zarr", "--format", "v3", "--quiet")
        self.tessera("attrs", "dem.zarr", "set", "_FillValue", "-9999", "--quiet")
        self.tessera("copy", "dem.zarr", "dem.tif", "--quiet")
        for path in ("dem.zarr", "dem.tif"):
            self.assertEqual(self.tessera_json("view", path)["values"], [[1, 2, None], [None, 5, 6]])
        # Zarr v2's fill of packed numbers marks them where xarray opens the array, zero too.
        self.save("codes.npy", np.array([[0, 1], [2, 0]], "i2"))
        self.tessera("import", "codes.npy", "g/v", "--format", "v2", "--fill", "0", "--dims", "y,x", "--quiet")
        self.tessera("attrs", "g/v", "set", "scale_factor", "0.5", "--quiet")
        self.assertEqual(self.tessera_json("view", "g/v")["values"], [[None, 0.5], [1, None]])

    # ---- set

    def codes(self, variable="packed"):
        return np.array(self.tessera_json("get", f"m.zarr/{variable}", "--raw"))

    def test_setting_packs(self):
        for value, code in ((273.16, 1), ("273.155", 0), ("273.165", 2), ("null", -32767), ("NaN", -32767)):
            self.tessera("set", "m.zarr/packed", "1, 1", value, "--quiet")
            self.assertEqual(self.codes()[1, 1], code)
        before = self.codes()
        for value, says in ((1e6, "does not hold"), (273.15 - 327.67, "stands for a missing element"), ("warm", "warm")):
            self.refused("set", "m.zarr/packed", "1, :", "--", value, says=says)
        self.refused("set", "m.zarr/plain", "1, 1", "NaN", says="NaN")
        np.testing.assert_array_equal(self.codes(), before)
        self.tessera("set", "m.zarr/packed", "1, 1", "--raw", "--quiet", "--", -32768)
        self.assertEqual(self.codes()[1, 1], -32768)
        self.tessera("copy", "m.zarr", "back.nc", "--quiet")
        wanted = self.opened("back.nc")["packed"].values
        np.testing.assert_allclose(np.array(self.tessera_json("get", "m.zarr/packed"), "f8"), wanted)

    def test_what_get_prints_is_what_set_takes(self):
        for variable in ("packed", "unsigned", "real", "wide", "plain", "y", "noleap"):
            before = self.codes(variable)
            for form in ("npy", "csv"):
                if form == "csv" and variable == "noleap":
                    continue
                with self.subTest(variable=variable, form=form):
                    self.tessera("get", f"m.zarr/{variable}", "--out", f"p.{form}", "--overwrite", "--quiet")
                    self.tessera("set", f"m.zarr/{variable}", "...", f"p.{form}", "--quiet")
                    np.testing.assert_array_equal(self.codes(variable), before)

    def test_codes_that_stand_for_one_value_stay(self):
        """Unpacking rounds wide integers, and floats with an offset: what is set as it is keeps its code."""
        codes = {"wide": np.array([10500172982046736435, 7, 2**63 + 12345, 2**53 + 1], "u8"),
                 "real": np.array([1e-7, 3.3e-12, 5.0, -2.2e-7], "f4"), "double": np.array([0.1, 1 / 3, 1e-17, 7e5], "f8")}
        packing = {"wide": (-0.1, 0), "real": (1, 260), "double": (0.3, 0)}
        for name, values in codes.items():
            scale, offset = packing[name]
            self.tessera("import", self.save("c.npy", values), f"{name}.zarr", "--format", "v3", "--quiet")
            for key, value in ("scale_factor", scale), ("add_offset", offset):
                self.tessera("attrs", f"{name}.zarr", "set", key, str(value), "--quiet")
            self.tessera("get", f"{name}.zarr", "--out", "p.npy", "--overwrite", "--quiet")
            self.tessera("set", f"{name}.zarr", "...", "p.npy", "--quiet")
            np.testing.assert_array_equal(self.exported(f"{name}.zarr"), values)
            self.tessera("set", f"{name}.zarr", "1", "--quiet", "--", np.load(self.path("p.npy"))[3])
            shown = np.array(self.tessera_json("get", f"{name}.zarr"))
            self.assertEqual(shown[1], shown[3])

    def test_setting_marks(self):
        self.tessera("set", "m.zarr/packed", "...", "NaN", "--quiet")
        codes = self.codes()
        self.assertEqual(codes[2, 3], -32768)  # was missing, and is marked as before
        self.assertEqual((codes == -32767).sum(), codes.size - 1)
        self.tessera("set", "m.zarr/real", "...", "NaN", "--quiet")
        self.assertEqual(self.tessera_json("get", "m.zarr/real"), [None, None, None, "NaN", None, None, None, None])
        self.tessera("set", "m.zarr/wide", "0", "null", "--quiet")
        self.assertEqual(self.codes("wide").tolist(), [-7, -7, 3, 4, 5])
        self.refused("set", "m.zarr/wide", "2", "--", -7, says="stands for a missing element")

    def test_setting_times_and_signs(self):
        self.tessera("set", "m.zarr/y", "1", "2000-02-28T13", "--quiet")
        self.tessera("set", "m.zarr/noleap", "1", "2000-03-02T01:00", "--quiet")
        self.tessera("set", "m.zarr/unsigned", "1:3", 200, "--quiet")
        self.assertEqual((self.codes("y")[1], self.codes("noleap")[1]), (13, 49))
        self.assertEqual(self.codes("unsigned").tolist(), [1, -56, -56, 0, 5, 6, 7, 8])
        self.refused("set", "m.zarr/y", "1", 5, says=("expected a time", "raw"))
        self.refused("set", "m.zarr/y", "1", "2000-02-28T13:30", says="2000-02-28T13:30")
        self.refused("set", "m.zarr/noleap", "1", "2000-02-29", says="2000-02-29")
        self.tessera("set", "m.zarr/y", "1", 5, "--raw", "--quiet")
        self.assertEqual(self.codes("y")[1], 5)

    def test_scripts(self):
        self.tessera("edit", "m.zarr/packed", "--script", "-", "--quiet", input="set 0,1 273.16\nset 0,2 7 raw\n")
        self.assertEqual(self.codes()[0, 1:3].tolist(), [1, 7])

    def test_files_are_set_by_their_meaning(self):
        before = self.codes()
        with netCDF4.Dataset(self.path("other.nc"), "w") as file:
            file.createDimension("x", 8)
            variable = file.createVariable("v", "i4", ("x",), fill_value=-1)
            variable.scale_factor = 0.1
            variable[:] = np.ma.masked_equal([270, 271, 272, 273, 274, 275, 276, 277], 273)
        self.tessera("set", "m.zarr/packed", "1, :", "other.nc::v", "--quiet")
        self.assertEqual(self.codes()[1].tolist(), [-315, -215, -115, -32767, 85, 185, 285, 385])
        np.testing.assert_array_equal(self.codes()[2:], before[2:])


class Compared(Base):
    """diff compares what elements stand for."""

    def write(self, name, values, dtype, fill=None, **attributes):
        with netCDF4.Dataset(self.path(name), "w") as file:
            for n, length in enumerate(np.shape(values)):
                file.createDimension(f"d{n}", length)
            v = file.createVariable("v", dtype, [f"d{n}" for n in range(np.ndim(values))], fill_value=fill)
            v.set_auto_maskandscale(False)
            v.setncatts(attributes)
            v[...] = values
        return f"{name}::v"

    def difference(self, a, b, *words):
        result = self.run_program("diff", a, b, *words)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        shown = json.loads(self.run_program("diff", a, b, *words, "--json").stdout)
        self.assertEqual(shown["equal"], result.returncode == 0)
        return result.stdout, shown

    def test_other_packings(self):
        a = self.write("a.nc", [100, 200, -999, -1], "i2", -999, scale_factor=0.1, add_offset=273.15)
        b = self.write("b.nc", [1000, 2000, -1, -10], "i4", -1, scale_factor=0.01, add_offset=273.15)
        text, found = self.difference(a, b)
        self.assertEqual(text, "all 4 elements are equal\ntheir stored codes are not (--raw): <i2 is not <i4\n")
        self.assertTrue(found["equal"])
        self.assertIn("is not", found["codes"])
        self.assertFalse(self.difference(a, b, "--raw")[1]["equal"])
        self.assertFalse(self.difference(a, b, "--sel", "0:2", "--raw")[1]["equal"])
        self.assertTrue(self.difference(a, b, "--sel", "0:2")[1]["equal"])
        c = self.write("c.nc", [1000, 2000, 5, -10], "i4", -1, scale_factor=0.01, add_offset=273.15)
        text, found = self.difference(a, c)
        self.assertEqual([(place["index"], place["a"]) for place in found["first"]], [([2], None)])
        self.assertIn("--", text)
        self.tessera("copy", a, "decoded.zarr", "--decode-cf", "--quiet")
        text, found = self.difference(a, "decoded.zarr")
        self.assertTrue(found["equal"], text)
        self.assertEqual(self.difference(a, a)[1]["codes"], None)

    def test_a_tolerance_is_that_of_values(self):
        a = self.write("a.nc", [1.0, 2], "f4", scale_factor=100.0)
        b = self.write("b.nc", [1.05, 2], "f4", scale_factor=100.0)
        self.assertEqual(self.difference(a, b, "--atol", "0.1")[1]["different"], 1)
        found = self.difference(a, b, "--atol", "6")[1]
        self.assertEqual((found["equal"], found["codes"]), (True, "1 of 2 differ"))
        self.assertTrue(self.difference(a, b, "--atol", "0.1", "--raw")[1]["equal"])

    def test_markers_and_signs(self):
        a = self.write("a.nc", [1, -1, -2], "i2", -1, missing_value=np.int16(-2))
        b = self.write("b.nc", [1, -2, -1], "i2", -1, missing_value=np.int16(-2))
        text, found = self.difference(a, b)
        self.assertEqual((found["equal"], found["codes"]), (True, "2 of 3 differ"))
        self.assertEqual(self.difference(a, b, "--raw")[1]["different"], 2)
        a = self.write("u.nc", [-1, 1], "i1", _Unsigned="true")
        np.save(self.path("u.npy"), np.array([255, 1], "u1"))
        self.assertTrue(self.difference(a, "u.npy")[1]["equal"])
        # --raw agrees with digest.
        for x, y in ((a, "u.npy"), ("a.nc::v", "b.nc::v"), ("a.nc::v", "a.nc::v")):
            same = len(set(line.split()[0] for line in self.tessera("digest", x, y).splitlines())) == 1
            self.assertEqual(self.difference(x, y, "--raw")[1]["equal"], same)

    def test_times_and_units(self):
        a = self.write("a.nc", [0, 24], "i4", units="hours since 2000-01-01")
        b = self.write("b.nc", [1.0, 2.0], "f8", units="days since 1999-12-31")
        self.assertTrue(self.difference(a, b)[1]["equal"])
        c = self.write("c.nc", [0, 25], "i4", units="hours since 2000-01-01")
        found = self.difference(a, c)[1]
        self.assertEqual([place["b"] for place in found["first"]], ["2000-01-02T01"])
        d = self.write("d.nc", [0, 24], "i4", units="hours since 2000-01-01", calendar="noleap")
        self.assertFalse(self.difference(a, d)[1]["equal"])
        self.assertTrue(self.difference(d, d)[1]["equal"])
        kelvin, celsius = (self.write(f"{unit}.nc", [1.0, 2.0], "f4", units=unit) for unit in ("K", "degC"))
        text, found = self.difference(kelvin, celsius)
        self.assertEqual((found["equal"], found["different"]), (False, 0))
        self.assertIn("units 'K' are not 'degC'", text)

    def test_groups_and_python(self):
        for name, scale in (("a", 1), ("b", 10)):
            self.write(f"{name}.nc", np.array([1, 2]) * scale, "i2", scale_factor=0.5 / scale)
            self.tessera("copy", f"{name}.nc", f"{name}.zarr", "--quiet")
        text = self.run_program("diff", "a.zarr", "b.zarr").stdout
        self.assertIn("v: the elements are equal, their stored codes are not: 2 of 2 differ", text)
        self.assertIn("v: the attributes differ", text)
        sys.path.insert(0, module_folder())
        import tessera
        found = tessera.diff(self.path("a.zarr/v"), self.path("b.zarr/v"))
        self.assertEqual((found.equal, found.codes), (True, "2 of 2 differ"))
        self.assertFalse(tessera.diff(self.path("a.zarr/v"), self.path("b.zarr/v"), raw=True).equal)


class Results(Base):
    def test_computed_text(self):
        self.tessera("calc", "c.csv", "v * 2", "v=m.nc::packed", "--quiet")
        wanted = self.opened()["packed"].values * 2
        rows = [line.split(",") for line in (self.folder / "c.csv").read_text().splitlines()]
        for row, values in zip(rows, wanted):
            for cell, value in zip(row, values):
                self.assertEqual(cell == "", np.isnan(value))
                if cell:
                    self.assertAlmostEqual(float(cell), value, places=3)
        self.tessera("reduce", "m.nc::packed", "r.csv", "--axis", "x", "--with", "mean", "--keep-missing", "--quiet")
        self.assertEqual((self.folder / "r.csv").read_text().splitlines()[0], '""')  # in a single column
        self.tessera("calc", "p.csv", "v / 0", "v=m.nc::plain", "--quiet", "--overwrite")
        self.assertTrue((self.folder / "p.csv").read_text().startswith("nan,inf"))

    def test_characters_are_texts(self):
        words = ["Graz", "Köln", "Århus", ""]
        for encoding in ("utf-8", "latin-1", "ISO8859-1"):
            with netCDF4.Dataset(self.path("s.nc"), "w") as file:
                file.createDimension("n", 4)
                file.createDimension("length", 8)
                variable = file.createVariable("s", "S1", ("n", "length"))
                variable.set_auto_chartostring(False)
                variable._Encoding = encoding
                variable[...] = np.frombuffer(b"".join(word.encode(encoding).ljust(8, b"\0") for word in words),
                                              "S1").reshape(4, 8)
            self.assertEqual(self.tessera_json("get", "s.nc::s"), words)
            self.assertEqual(json.loads(self.run_program("get", "s.nc::s", "n@1", "--json").stdout), words[1])
            self.assertEqual(self.tessera("get", "s.nc::s", "--csv").splitlines(), words[:3] + ['""'])
            self.assertEqual(np.shape(self.tessera_json("get", "s.nc::s", "--raw")), (4, 8))
            with xr.open_dataset(self.path("s.nc")) as data:
                self.assertEqual([str(word) for word in data["s"].values], words)

    def test_info_names_the_valid_range(self):
        self.assertIn("stored values from -2500 to 2500 are valid", self.tessera("info", "m.zarr/packed"))
        self.assertIn("stored values from any to -100 are valid", self.tessera("info", "m.zarr/unsigned"))
        self.assertNotIn("are valid", self.tessera("info", "m.zarr/real"))

    def test_a_fill_is_what_it_stands_for(self):
        self.tessera("copy", "m.nc::packed", "f.zarr", "--fill", "273.25", "--format", "v3", "--quiet")
        self.assertEqual(self.tessera_json("info", "f.zarr")["fill_value"], 10)
        self.tessera("copy", "m.nc::packed", "g.zarr", "--fill", "nan", "--format", "v3", "--quiet")
        self.assertEqual(self.tessera_json("info", "g.zarr")["fill_value"], -32767)
        self.tessera("copy", "m.nc::unsigned", "h.zarr", "--fill", "200", "--format", "v3", "--quiet")
        self.assertEqual(self.tessera_json("info", "h.zarr")["fill_value"], -56)
        self.tessera("copy", "m.nc::real", "i.zarr", "--fill", "1e20", "--format", "v3", "--quiet")
        self.refused("copy", "m.nc::packed", "j.zarr", "--fill", "-9999", "--format", "v3", "--quiet", says="does not hold")
        self.tessera("copy", "m.nc", "k.zarr", "--fill", "packed=273.25", "--format", "v3", "--quiet")
        self.assertEqual(self.tessera_json("info", "k.zarr/packed")["fill_value"], 10)
        sys.path.insert(0, module_folder())
        import tessera
        with tessera.open(self.path("m.zarr/packed")) as array:
            tessera.copy(array, self.path("l.zarr"), fill_value=273.25)
        self.assertEqual(self.tessera_json("info", "l.zarr")["fill_value"], 10)


if __name__ == "__main__":
    main()
