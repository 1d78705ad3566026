"""--decode-cf and --encode-cf: what xarray decodes, and the same array back."""

import json
import sys
import unittest
import warnings

import numpy as np

from program import Absent, ProgramTest, main, zarr

try:
    import xarray as xr
except ImportError:
    print("xarray is not installed")
    sys.exit(77)

RANDOM = np.random.default_rng(38)


class Decoding(ProgramTest):
    def packed(self, name):
        shape = (20, 7)
        temperature = RANDOM.normal(280, 10, shape)
        temperature[RANDOM.random(shape) < 0.1] = np.nan
        times = np.datetime64("2020-01-01", "ns") + np.arange(20) * np.timedelta64(6, "h")
        dims = ("time", "x")
        data = xr.Dataset(
            {"offset": (dims, temperature, {"units": "K"}), "scale": (dims, temperature / 100),
             "filled": (dims, np.where(temperature > 280, np.nan, 5.0)), "plain": (dims, np.arange(140).reshape(shape)),
             "float": (dims, temperature.astype("f4")), "when": (("x",), times[:7] + np.timedelta64(1, "s"))},
            {"time": times, "x": np.arange(7.0)})
        encoding = {"offset": {"dtype": "i2", "scale_factor": 0.002, "add_offset": 250.0, "_FillValue": -32768},
                    "scale": {"dtype": "i2", "scale_factor": 0.001, "_FillValue": -1},
                    "filled": {"dtype": "u1", "_FillValue": 255}, "float": {"_FillValue": np.float32(-9.0)},
                    "when": {"units": "seconds since 2020-01-01", "dtype": "i4"},
                    "time": {"units": "days since 1900-01-01", "dtype": "f8"}}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if name.endswith(".nc"):
                data.to_netcdf(self.path(name), encoding=encoding)
            else:
                data.to_zarr(self.path(name), encoding=encoding, consolidated=False)

    def opened(self, name, **options):
        kind = {} if name.endswith(".nc") else {"engine": "zarr", "consolidated": False}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with xr.open_dataset(self.path(name), **kind, **options) as data:
                return data.load()

    def assert_decoded(self, got, values):
        """What is packed becomes float64, as in xarray of 2024 and later; earlier ones gave float32 to small integers."""
        if got.dtype == "f8" and values.dtype == "f4":
            np.testing.assert_allclose(got, values, rtol=1e-6)
        else:
            np.testing.assert_array_equal(got, values)

    def test_as_xarray_and_back(self):
        for name in ("p.zarr", "p.nc"):
            self.packed(name)
            wanted = self.opened(name)
            for format in ("v2", "v3"):
                self.tessera("copy", name, "d.zarr", "--decode-cf", "--format", format, "--overwrite", "--quiet")
                for variable in wanted.variables:
                    with self.subTest(name=name, format=format, variable=variable):
                        got = self.exported(f"d.zarr/{variable}")
                        values = wanted[variable].values
                        if values.dtype.kind == "M":
                            self.assertEqual(got.dtype.kind, "M")
                        elif values.dtype.kind != "f":
                            self.assertEqual(got.dtype, values.dtype)
                        self.assert_decoded(got, values)
                self.tessera("copy", "d.zarr", "e.zarr", "--encode-cf", "--format", format, "--overwrite", "--quiet")
                raw = self.opened(name, decode_cf=False)
                for variable in raw.variables:
                    with self.subTest(name=name, format=format, back=variable):
                        np.testing.assert_array_equal(self.exported(f"e.zarr/{variable}"), raw[variable].values)
                        self.assertEqual(self.exported(f"e.zarr/{variable}").dtype, raw[variable].dtype)
                        attributes = self.tessera_json("info", f"e.zarr/{variable}")["attributes"]
                        self.assertNotIn("cf_encoding", attributes)
                        for key in ("scale_factor", "add_offset", "units", "calendar"):
                            self.assertEqual(attributes.get(key), raw[variable].attrs.get(key))
            # In v2 xarray takes a fill for missing, and what zarr-python 3 writes has one.
            format = "v3" if isinstance(zarr, Absent) else "v2"
            self.tessera("copy", name, "d.zarr", "--decode-cf", "--format", format, "--overwrite", "--quiet")
            self.tessera("copy", "d.zarr", "e.zarr", "--encode-cf", "--format", format, "--overwrite", "--quiet")
            back = self.opened("e.zarr")
            for variable in wanted.variables:
                np.testing.assert_array_equal(back[variable].values, wanted[variable].values)

    def test_the_fill_of_floats_in_v3_is_xarrays_text(self):
        """xarray since 2024.10 writes it as the base64 of a double, and opens no array that has a number there."""
        text = "AAAAAAAAIsA="  # of -9
        values = np.array([1, -9, 3], "<f4")
        self.save("a.npy", values)
        self.tessera("import", "a.npy", "x.zarr", "--format", "v3", "--fill", "7", "--quiet")
        self.tessera("attrs", "x.zarr", "set", "_FillValue", f'"{text}"', "--quiet")
        self.tessera("export", "x.zarr", "d.npy", "--decode-cf", "--quiet")
        np.testing.assert_array_equal(np.load(self.path("d.npy")), [1, np.nan, 3])
        # Elsewhere it is a number, and a fill.
        self.tessera("copy", "x.zarr", "x.nc", "--quiet")
        self.assertEqual(self.tessera_json("info", "x.nc::data")["header"]["attributes"]["_FillValue"], -9)
        self.tessera("copy", "x.zarr", "m.zarr", "--format", "zmeta", "--quiet")
        self.assertEqual(self.tessera_json("attrs", "m.zarr")["_FillValue"], -9)
        # And in v3 this text.
        for source in "x.nc::data", "m.zarr", "x.zarr":
            self.tessera("copy", source, "v3.zarr", "--format", "v3", "--overwrite", "--quiet")
            self.assertEqual(self.tessera_json("attrs", "v3.zarr")["_FillValue"], text, source)

    def test_part(self):
        self.packed("p.zarr")
        wanted = self.opened("p.zarr")
        result = self.run_program("export", "p.zarr/offset", "part.npy", "--decode-cf", "--sel", "time=2020-01-02, x=3")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count("x=3 means index 3"), 1)
        self.assert_decoded(np.load(self.path("part.npy")), wanted.offset.sel(time="2020-01-02", x=3).values)
        self.assertEqual(json.loads(self.tessera("info", "p.zarr/offset", "--json"))["dtype"], "<i2")

    def test_calendars(self):
        self.tessera("group", "g.zarr", "--format", "v2", "--quiet")
        for calendar, start in [("noleap", "2000-01-01"), ("standard", "1500-01-01"), ("standard", "2000-01-01")]:
            self.save("t.npy", np.arange(3))
            self.tessera("import", "t.npy", "g.zarr/t", "--overwrite", "--quiet")
            self.tessera("attrs", "g.zarr/t", "set", "units", f'"days since {start}"', "--quiet")
            self.tessera("attrs", "g.zarr/t", "set", "calendar", f'"{calendar}"', "--quiet")
            if start == "1500-01-01":
                self.refused("copy", "g.zarr/t", "d.npy", "--decode-cf", "--overwrite",
                             says=["g.zarr/t", "1500-01-01", "1582-10-15"])
                continue
            result = self.run_program("copy", "g.zarr/t", "d.npy", "--decode-cf", "--overwrite")
            self.assertEqual(result.returncode, 0, result.stderr)
            got = np.load(self.path("d.npy"))
            if calendar == "noleap":
                self.assertIn("calendar noleap stay numbers", result.stderr)
                np.testing.assert_array_equal(got, np.arange(3))
            else:
                np.testing.assert_array_equal(got, np.array(["2000-01-01", "2000-01-02", "2000-01-03"], "M8[D]"))

    def test_refused(self):
        self.save("a.npy", np.array([1.5, np.nan, 400.0]))
        self.tessera("copy", "a.npy", "a.zarr", "--quiet", "--format", "v3")

        def encoded(encoding, *says):
            self.tessera("attrs", "a.zarr", "set", "cf_encoding", json.dumps(encoding), "--quiet")
            self.refused("copy", "a.zarr", "b.zarr", "--encode-cf", says=says)
            self.assertFalse((self.folder / "b.zarr").exists())

        encoded({"dtype": "<i2", "scale_factor": 0.5}, "a.zarr", "_FillValue")
        encoded({"dtype": "|i1", "_FillValue": -1}, "400")
        encoded({"dtype": "<U3"}, "cf_encoding")
        encoded({"dtype": "nonsense"}, "cf_encoding")
        encoded({"dtype": "<i2", "scale_factor": 0}, "scale_factor")
        self.refused("copy", "a.zarr", "b.zarr", "--encode-cf", "--decode-cf", says="choose one")
        times = np.array(["2020-01-01T06", "2020-01-02"], "M8[h]")
        self.save("t.npy", times)
        for file in ["t.nc", "t.h5"]:
            self.refused("copy", "t.npy", file, says=["data: ", "no elements of type <M8[h]", "--encode-cf"])
            self.tessera("copy", "t.npy", file, "--encode-cf", "--quiet")
        self.tessera("copy", "t.npy", "t.zarr", "--encode-cf", "--quiet", "--format", "v2")
        self.assertEqual(self.tessera_json("info", "t.zarr")["attributes"]["units"], "hours since 1970-01-01")
        np.testing.assert_array_equal(self.exported("t.zarr"), times.astype("i8"))
        self.tessera("copy", "t.npy", "u.zarr", "--quiet", "--format", "v2")
        self.tessera("attrs", "u.zarr", "set", "cf_encoding", '{"dtype": "<i4", "units": "days since 2020-01-01"}',
                     "--quiet")
        self.refused("copy", "u.zarr", "b.zarr", "--encode-cf", says=["2020-01-01T06:00", "between"])


if __name__ == "__main__":
    main()
