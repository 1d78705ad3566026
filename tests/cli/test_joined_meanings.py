"""What concat, stack and append make of parts that are packed, marked, counted or placed in other ways, beside xarray."""

import json
import subprocess
import sys
import unittest
import warnings

import netCDF4
import numpy as np
import xarray as xr

from program import FEWER, ProgramTest, digest, main, module_folder

RANDOM = np.random.default_rng(4)
PLACE = {"spatial:dimensions": ["y", "x"], "spatial:transform": [30.0, 0, 400000, 0, -30.0, 5300000], "proj:code": "EPSG:32633"}


class Joined(ProgramTest):
    def setUp(self):
        super().setUp()
        warnings.simplefilter("ignore")

    def write(self, name, codes, fill=False, **attributes):
        """A variable v of codes along (time, x, …)."""
        with netCDF4.Dataset(self.path(name), "w") as file:
            codes = np.asarray(codes)
            names = ("time", "x")[:codes.ndim]
            for dimension, length in zip(names, codes.shape):
                file.createDimension(dimension, None if dimension == "time" else length)
            v = file.createVariable("v", codes.dtype, names, fill_value=fill)
            v.set_auto_maskandscale(False)
            v.setncatts(attributes)
            v[:] = codes
        return f"{name}::v"

    def months(self):
        codes = np.array([[1, 2], [3, 4]], "i2")
        packed = [self.write(f"{name}.nc", codes, -32767, scale_factor=scale, add_offset=offset, units="K")
                  for name, scale, offset in (("a", 0.1, 10.0), ("b", 0.2, 20.0), ("c", 0.15, 20.0))]
        return [*packed, np.array([[10.1, 10.2], [10.3, 10.4]]), np.array([[20.2, 20.4], [20.6, 20.8]]),
                np.array([[20.15, 20.3], [20.45, 20.6]])]

    def shown(self, name):
        return xr.open_dataset(self.path(name))["data"].values if name.endswith(".nc") else np.load(self.path(name))

    def test_random_parts_as_xarray(self):
        """Each pair is joined as xarray joins them, or refused in words; decoded, all of them are joined."""
        refused = 0
        for number in range(60 // FEWER):
            parts = []
            dtype = RANDOM.choice(["i1", "i2", "i4", "f4", "f8"])
            for name in "ab":
                if RANDOM.random() < 0.3:
                    dtype = RANDOM.choice(["i1", "i2", "i4", "f4", "f8"])
                packing = {"scale_factor": float(RANDOM.choice([0.5, 0.25, 0.1])),
                           "add_offset": float(RANDOM.choice([0, 10, 12.5]))} if RANDOM.random() < 0.7 else {}
                fill = RANDOM.choice(np.array([-9, 77], dtype)) if RANDOM.random() < 0.7 else False
                codes = RANDOM.integers(-5, 30, (int(RANDOM.integers(1, 4)), 3)).astype(dtype)
                if fill is not False:
                    codes[RANDOM.random(codes.shape) < 0.2] = fill
                parts.append(self.write(f"{name}{number}.nc", codes, fill, **packing))
            wanted = np.concatenate([xr.open_dataset(self.path(part[:-3]))["v"].values for part in parts])
            with self.subTest(parts=[subprocess.getoutput(f"ncdump -h {self.path(part[:-3])}") for part in parts]):
                result = self.run_program("concat", *parts, f"{number}.nc", "--quiet")
                if result.returncode == 0:
                    np.testing.assert_allclose(self.shown(f"{number}.nc"), wanted, rtol=1e-6)
                else:
                    refused += 1
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertIn(f"a{number}.nc", result.stderr)
                    self.assertIn(f"b{number}.nc", result.stderr)
                self.tessera("concat", *parts, f"{number}.npy", "--decode-cf", "--quiet")
                np.testing.assert_allclose(self.shown(f"{number}.npy"), wanted, rtol=1e-6)
        self.assertTrue(0 < refused < 50 // FEWER, refused)

    def test_other_packing(self):
        a, b, c, first, second, third = self.months()
        self.tessera("concat", a, b, "out.nc", "--quiet")  # whole steps of a.nc's
        np.testing.assert_allclose(self.shown("out.nc"), [*first, *second])
        self.assertEqual(self.tessera_json("attrs", "out.nc::data")["scale_factor"], 0.1)
        for command in "concat", "stack":
            says = ["c.nc", "scale_factor", "0.15", "a.nc", "0.1", "--decode-cf decodes"]
            self.refused(command, a, c, "no.zarr", says=says)
            self.assertFalse((self.folder / "no.zarr").exists())
            join = np.concatenate if command == "concat" else np.stack
            for words in ["out.npy"], ["out.zarr", "--format", "v3"]:
                self.tessera(command, a, c, b, *words, "--decode-cf", "--overwrite", "--quiet")
                np.testing.assert_allclose(self.exported(words[0]), join([first, third, second]))
        self.tessera("concat", a, self.write("big.nc", np.array([[1, 30000]], "i2"), -32767, scale_factor=1.0, units="K"),
                     "no.npy", code=2)
        self.refused("concat", a, "big.nc::v", "no.npy", says=["big.nc", "30000", "299900", "<i2", "stored as", "a.nc"])

    def test_markers(self):
        a = self.write("a.nc", np.array([1, -9, 3], "i2"), -9)
        b = self.write("b.nc", np.array([4, 77, 6], "i2"), 77)
        self.tessera("concat", a, b, "out.npy", "--quiet")
        self.assertEqual(self.shown("out.npy").tolist(), [1, -9, 3, 4, -9, 6])
        plain = self.write("plain.nc", np.array([4, -9], "i2"))
        self.refused("concat", a, plain, "no.npy", says=["plain.nc", "-9", "a missing element", "a.nc"])
        self.tessera("concat", a, plain, "out.npy", "--decode-cf", "--overwrite", "--quiet")
        np.testing.assert_array_equal(self.shown("out.npy"), np.array([1, np.nan, 3, 4, -9], "f4"))
        self.refused("concat", plain, b, "no.npy", says=["b.nc", "_FillValue", "plain.nc"])
        unsigned = self.write("u.nc", np.array([5, -1], "i1"), _Unsigned="true")
        self.tessera("concat", unsigned, self.write("s.nc", np.array([7], "i1")), "out.nc", "--quiet")
        self.assertEqual(self.shown("out.nc").tolist(), [5, 255, 7])
        self.refused("concat", "s.nc::v", unsigned, "no.npy", says=["u.nc", "255", "s.nc"])

    def test_times(self):
        hours = self.write("a.nc", np.array([0, 1], "i4"), units="hours since 2000-01-01", calendar="standard")
        days = self.write("d.nc", np.array([1, 2], "i2"), units="days since 2000-01-02", calendar="gregorian")
        minutes = self.write("m.nc", np.array([35], "i4"), units="minutes since 2000-01-01", calendar="standard")
        self.tessera("concat", hours, days, "out.nc", "--quiet")
        np.testing.assert_array_equal(self.shown("out.nc"), np.array(
            ["2000-01-01T00", "2000-01-01T01", "2000-01-03", "2000-01-04"], "M8[ns]"))
        self.refused("concat", hours, minutes, "no.npy", says=["m.nc", "2000-01-01T00:35", "hours since", "a.nc"])
        self.tessera("concat", hours, minutes, "out.npy", "--decode-cf", "--quiet")
        self.assertEqual(self.shown("out.npy").astype("M8[m]").tolist()[-1].minute, 35)
        noleap = [self.write(f"{start}.nc", np.array([0.0, 59]), units=f"days since {start}-01-01", calendar="noleap")
                  for start in (2000, 2001)]
        self.tessera("concat", *noleap, "out.npy", "--overwrite", "--quiet")
        self.assertEqual(self.shown("out.npy").tolist(), [0, 59, 365, 424])
        other = self.write("o.nc", np.array([0.0, 59]), units="days since 2000-01-01", calendar="360_day")
        self.refused("concat", noleap[0], other, "no.npy", says=["calendar", "noleap", "360_day"])
        self.refused("concat", noleap[0], self.write("n.nc", np.array([1.0]), units="m"), "no.npy", says="units")

    def test_units_and_places(self):
        kelvin = self.write("k.nc", np.array([1.0]), units="K")
        self.refused("concat", kelvin, self.write("c.nc", np.array([1.0]), units="degC"), "no.npy",
                     says=["c.nc", "degC", "k.nc", '"K"'])
        self.save("codes.npy", np.array([2.0]))  # of a format without a place for units
        self.tessera("concat", kelvin, "codes.npy", "out.npy", "--quiet")

        def place(name, **other):
            self.tessera("create", name, "--shape", "4,5", "--dtype", "f4", "--dims", "y,x", "--format", "v3", "--quiet",
                         "--attrs", json.dumps({**PLACE, "spatial:shape": [4, 5], **other}))
            return name
        first = place("first")
        below = place("below", **{"spatial:transform": [30.0, 0, 400000, 0, -30.0, 5299880]})
        right = place("right", **{"spatial:transform": [30.0, 0, 400150, 0, -30.0, 5300000]})
        coarse = place("coarse", **{"spatial:transform": [60.0, 0, 400000, 0, -60.0, 5300000]})
        elsewhere = place("elsewhere", **{"proj:code": "EPSG:32634"})
        self.tessera("concat", first, below, "rows.zarr", "--quiet")
        self.assertEqual(self.tessera_json("attrs", "rows.zarr")["spatial:shape"], [8, 5])
        self.tessera("concat", first, right, "columns.zarr", "--axis", "x", "--quiet")
        self.assertEqual(self.tessera_json("attrs", "columns.zarr")["spatial:transform"], PLACE["spatial:transform"])
        self.tessera("stack", first, first, "time.zarr", "--quiet")
        for words in (["concat", first, right], ["concat", first, first], ["stack", first, coarse], ["stack", first, below],
                      ["concat", first, below, "--axis", "x"]):
            self.refused(*words[:3], "no.zarr", *words[3:], says=["first", "georeference"])
        self.refused("stack", first, elsewhere, "no.zarr", says=["EPSG:32634", "EPSG:32633"])
        self.tessera("append", first, below, "--quiet")
        self.refused("append", first, below, says=["georeference"])

    def test_references(self):
        a, b, *_ = self.months()
        self.tessera("stack", a, a, "same.json", "--virtual", "--quiet")
        self.tessera("stack", a, a, "same.zarr", "--format", "v2", "--quiet")
        told = self.tessera_json("attrs", "same.zarr")
        self.assertEqual(told.pop("_FillValue"), -32767)  # which the fill of references says
        self.assertEqual(self.tessera_json("attrs", "same.json"), told)
        self.assertEqual(self.tessera_json("get", "same.json"), self.tessera_json("get", "same.zarr"))
        self.tessera("concat", a, a, "same.json", "--virtual", "--overwrite", "--quiet")
        self.assertEqual(self.tessera_json("attrs", "same.json")["add_offset"], 10.0)
        self.assertIn("time", self.tessera("dims", "same.json"))
        for command in "stack", "concat":
            self.refused(command, a, b, "no.json", "--virtual", says=["b.nc", "0.2", "a.nc", "0.1", "without --virtual"])
            self.refused(command, a, a, "no.json", "--virtual", "--decode-cf", says="--decode-cf")
        times = [self.write(f"{day}.nc", np.array([0], "i4"), units=f"hours since 2000-01-0{day}") for day in (1, 2)]
        self.refused("concat", *times, "no.json", "--virtual", says=["2.nc", "units", "1.nc"])

    def test_append(self):
        a, b, c, first, second, third = self.months()
        self.tessera("copy", a, "q.zarr", "--quiet")
        self.tessera("append", "q.zarr", b, "--quiet")
        self.tessera("copy", "q.zarr", "q.npy", "--decode-cf", "--quiet")
        np.testing.assert_allclose(np.load(self.path("q.npy")), [*first, *second])
        before = digest(self.folder / "q.zarr")
        self.refused("append", "q.zarr", c, says=["c.nc", "scale_factor", "q.zarr", "--decode-cf"])
        self.write("big.nc", np.array([[1, 30000]], "i2"), -32767, scale_factor=1.0)
        self.refused("append", "q.zarr", "big.nc::v", says=["big.nc", "30000", "q.zarr"])
        self.assertEqual(digest(self.folder / "q.zarr"), before)
        self.tessera("copy", a, "values.zarr", "--decode-cf", "--quiet")
        self.tessera("append", "values.zarr", c, "--quiet")
        np.testing.assert_allclose(self.exported("values.zarr"), [*first, *third])
        self.save("codes.npy", np.array([[7, 8]], "i2"))
        self.tessera("append", "q.zarr", "codes.npy", "--quiet")
        self.assertEqual(self.exported("q.zarr")[-1].tolist(), [7, 8])

    def test_jobs_and_python(self):
        a, b, c, first, second, third = self.months()
        self.tessera("plan", "concat", a, b, "job.zarr", "--out", "j.json", "--parts", "2", "--quiet")
        self.tessera("work", "j.json", "--quiet")
        self.tessera("finish", "j.json", "--quiet")
        self.tessera("concat", a, b, "own.zarr", "--quiet")
        np.testing.assert_array_equal(self.exported("job.zarr"), self.exported("own.zarr"))
        program = ("import json, tessera\n"
                   "tessera.stack(['a.nc::v', 'b.nc::v'], 's.zarr')\n"
                   "s = tessera.open('s.zarr')\n"
                   "try: tessera.concat(['a.nc::v', 'c.nc::v'])\n"
                   "except tessera.InvalidArgument as e: said = str(e)\n"
                   "print(json.dumps([dict(s.attrs), s[1].tolist(), said,\n"
                   "                  tessera.concat(['a.nc::v', 'c.nc::v'], cf='decode').tolist()]))\n")
        result = subprocess.run([sys.executable, "-c", program], cwd=self.folder, capture_output=True, text=True,
                                env={"PYTHONPATH": module_folder()}, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        attributes, codes, said, values = json.loads(result.stdout)
        self.assertEqual((attributes["scale_factor"], attributes["units"]), (0.1, "K"))
        self.assertEqual(codes, [[102, 104], [106, 108]])
        self.assertIn('cf="decode"', said)
        np.testing.assert_allclose(values, [*first, *third])


if __name__ == "__main__":
    main()
