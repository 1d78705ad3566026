"""What elements stand for, in what is computed: random files of netCDF4-python, beside xarray."""

import contextlib
import json
import warnings

import netCDF4
import numpy as np
import xarray as xr

from program import FEWER, Absent, ProgramTest, main

try:
    from osgeo import gdal
except ImportError:
    gdal = Absent("GDAL's module is not installed")

RANDOM = np.random.default_rng(55)
PACKINGS = [{}, {"scale_factor": 0.01}, {"add_offset": 260.0}, {"scale_factor": 0.002, "add_offset": 260.0},
            {"scale_factor": 0.5, "add_offset": 1000000.0}]


def code_range(dtype):
    return (-1000, 1000) if dtype.kind == "f" else (np.iinfo(dtype).min // 2, np.iinfo(dtype).max // 2)


class Meaning(ProgramTest):
    def random_file(self, name, dtype, packing, markers, share):
        """A variable of codes, as netCDF4-python writes them, of which some are missing."""
        shape = (int(RANDOM.integers(1, 9)), int(RANDOM.integers(1, 9)))
        low, high = code_range(dtype)
        low, high = max(low, -30000), min(high, 30000)
        codes = RANDOM.integers(low, high, shape).astype(dtype)
        lacking = RANDOM.random(shape) < share
        if lacking.all():
            lacking[0, 0] = False
        for marker in markers:
            codes[(codes == marker)] = 1
        if markers:
            codes[lacking] = RANDOM.choice(np.array(markers, dtype), int(lacking.sum()))
        with netCDF4.Dataset(self.path(name), "w") as file:
            file.createDimension("t", shape[0])
            file.createDimension("x", shape[1])
            v = file.createVariable("v", dtype, ("t", "x"), fill_value=markers[0] if markers else False, zlib=True)
            v.set_auto_maskandscale(False)
            v.setncatts({key: np.float64(value) for key, value in packing.items()})
            if len(markers) > 1:
                v.setncattr("missing_value", np.array(markers[1:], dtype))
            v.setncattr("units", "K")
            v[:] = codes
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with xr.open_dataset(self.path(name)) as data:
                return data.v.load()

    @contextlib.contextmanager
    def case(self, n):
        dtype = np.dtype(str(RANDOM.choice(["i1", "u1", "i2", "u2", "i4", "f4", "f8"])))
        packing = PACKINGS[n % len(PACKINGS)]
        top = 127 if dtype.itemsize == 1 else 30001
        markers = [[], [top], [top, top - 1]][n % 3]
        share = [0.0, 0.3, 0.9][int(RANDOM.integers(3))]
        with self.subTest(n=n, dtype=dtype.str, packing=packing, markers=markers, share=share):
            yield self.random_file("f.nc", dtype, packing, markers, share)

    def assert_close(self, got, wanted, values):
        """xarray has float32 for what is float32 or small; its sums are then no better."""
        limit = 1e-6 if "f4" in (got.dtype, values.dtype) else 1e-9
        atol = limit * np.nanmax(np.abs(values.values), initial=1)
        np.testing.assert_allclose(got, wanted, rtol=limit, atol=atol)

    def computed(self, *words):
        self.tessera(*words, "--overwrite", "--quiet")
        return np.load(self.path("out.npy"))

    def test_reductions_beside_xarray(self):
        for n in range(60 // min(FEWER, 4)):
            with self.case(n) as values:
                wide = values.astype("f8")
                for word in "mean", "min", "max", "std", "var", "sum", "median", "count":
                    given = {"skipna": True} if word not in ("count",) else {}
                    if word == "sum":
                        given["min_count"] = 1
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        wanted = getattr(wide, word)("t", **given)
                    got = self.computed("reduce", "f.nc::v", "out.npy", "--axis", "t", "--with", word)
                    self.assert_close(got, wanted.values, values)

    def test_windows_beside_xarray(self):
        for n in range(40 // min(FEWER, 4)):
            with self.case(n) as values:
                for word in "mean", "min", "max":
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        windows = values.astype("f8").coarsen(t=2, x=3, boundary="pad")
                        wanted = getattr(windows, word)().values
                    if values.dtype.kind in "iu" and word == "mean":
                        wanted = np.round(wanted)
                    got = self.computed("coarsen", "f.nc::v", "out.npy", "--by", "2,3", "--with", word)
                    self.assert_close(got, wanted, values)

    def test_expressions_beside_xarray(self):
        for n in range(40 // min(FEWER, 4)):
            with self.case(n) as values:
                wide = values.astype("f8")
                for expression, wanted in (("v - 273.15", wide - 273.15), ("where(v > 5.0, v, 0.0)", wide.where(wide > 5, 0))):
                    got = self.computed("calc", "out.npy", expression, "v=f.nc::v")
                    # NaN is above nothing, so that `where` has its other side.
                    self.assert_close(got, wanted.values, values)

    def test_codes_when_they_are_wanted(self):
        self.random_file("f.nc", np.dtype("i2"), PACKINGS[3], [-5], 0.3)
        with netCDF4.Dataset(self.path("f.nc")) as file:
            file.set_auto_maskandscale(False)
            codes = file["v"][:]
        np.testing.assert_array_equal(self.computed("reduce", "f.nc::v", "out.npy", "--axis", "t", "--with", "sum", "--raw"),
                                      codes.sum(axis=0, dtype="i8"))
        np.testing.assert_array_equal(self.computed("calc", "out.npy", "v + 0", "v=f.nc::v", "--raw"), codes)
        self.assertEqual(self.computed("coarsen", "f.nc::v", "out.npy", "--by", "1", "--raw").dtype, codes.dtype)

    def test_integers_of_64_bits_stay_integers(self):
        values = np.array([[2**53 + 1, -7, 5], [2**53 + 3, 99, 99]], "i8")
        self.save("a.npy", values)
        self.tessera("import", "a.npy", "a.zarr", "--format", "v3", "--dims", "y,x", "--quiet")
        self.tessera("attrs", "a.zarr", "set", "_FillValue", "99", "--quiet")
        for word, wanted in ("max", [2**53 + 3, -7, 5]), ("min", [2**53 + 1, -7, 5]), ("sum", [2**54 + 4, -7, 5]), \
                ("count", [2, 1, 1]):
            got = self.computed("reduce", "a.zarr", "out.npy", "--axis", "y", "--with", word)
            self.assertEqual((got.dtype, got.tolist()), (np.dtype("i8"), wanted))
        got = self.computed("coarsen", "a.zarr", "out.npy", "--by", "2,1", "--with", "max")
        self.assertEqual(got.tolist(), [[2**53 + 3, -7, 5]])
        self.refused("calc", "out.npy", "a + 1", "a=a.zarr", "--overwrite", says=[str(2**53 + 1), "digits", "f8"])
        got = self.computed("calc", "out.npy", "a * 2", "a=a.zarr", "--dtype", "f8")
        np.testing.assert_array_equal(got, [[2.0**54, -14, 10], [2.0**54 + 8, np.nan, np.nan]])
        # What is missing in all is missing, and said to be so.
        said = self.run_program("reduce", "a.zarr", "r.npy", "--axis", "x", "--with", "max").stderr
        self.assertIn(f"r.npy: missing elements are {-2**63} there", said)
        self.assertIn("--dtype f8", said)
        self.assertNotIn("there", self.run_program("reduce", "a.zarr", "t.csv", "--axis", "x", "--with", "max").stderr)
        self.tessera("reduce", "a.zarr", "r.zarr", "--axis", "x", "--with", "max", "--quiet")
        self.tessera("calc", "a.zarr", "where(a < 99, a, a)", "a=a.zarr", "--in-place", "--raw", "--quiet")

    def test_marked_integers_are_neither_true_nor_false(self):
        self.save("a.npy", np.array([[99, 0, 5], [99, 99, 0]], "i8"))
        self.tessera("import", "a.npy", "a.zarr", "--format", "v3", "--dims", "y,x", "--quiet")
        self.tessera("attrs", "a.zarr", "set", "_FillValue", "99", "--quiet")
        for word, wanted in ("any", [False, False, True]), ("all", [True, False, False]):
            self.assertEqual(self.computed("reduce", "a.zarr", "out.npy", "--axis", "y", "--with", word).tolist(), wanted)
            kept = self.computed("reduce", "a.zarr", "out.npy", "--axis", "y", "--with", word, "--keep-missing").tolist()
            self.assertEqual(kept, [True, word == "any", word == "any"])
        self.save("b.npy", np.array([2**53 + 1, 99], "i8"))
        self.tessera("import", "b.npy", "b.zarr", "--format", "v3", "--quiet")
        self.tessera("attrs", "b.zarr", "set", "_FillValue", "99", "--quiet")
        self.refused("calc", "no.npy", "b / 2", "b=b.zarr", says="--dtype f8 takes it")

    def test_results_without_dimensions_are_opened_by_xarray(self):
        """It requires an empty list of names."""
        self.random_file("f.nc", np.dtype("i2"), PACKINGS[3], [-5], 0.3)
        with netCDF4.Dataset(self.path("s.nc"), "w") as file:
            file.createVariable("s", "f4", ())[...] = 2
        for n, (words, wanted) in enumerate((
                (("reduce", "f.nc::v", "DST", "--with", "count"), ()), (("reduce", "f.nc::v", "DST", "--with", "any"), ()),
                (("reduce", "f.nc::v", "DST", "--with", "mean"), ()), (("calc", "DST", "s + 1", "s=s.nc::s"), ()),
                (("stack", "s.nc::s", "s.nc::s", "DST", "--dims", "n"), ("n",)))):
            for kind in "v2", "v3":
                self.tessera("group", f"{n}.{kind}", "--format", kind, "--quiet")
                self.tessera(*[f"{n}.{kind}/r" if word == "DST" else word for word in words], "--quiet")
                if kind == "v3":
                    document = json.loads((self.folder / f"{n}.v3/r/zarr.json").read_text())
                    self.assertEqual((document["dimension_names"], document["attributes"].get("_ARRAY_DIMENSIONS")),
                                     (list(wanted), None))
                    continue
                with xr.open_zarr(self.path(f"{n}.v2"), consolidated=False) as data:
                    self.assertEqual(data.r.dims, wanted)

    def test_in_place_packs_what_it_computes(self):
        self.random_file("f.nc", np.dtype("i2"), PACKINGS[3], [-5], 0.3)
        self.tessera("copy", "f.nc", "f.zarr", "--format", "v2", "--quiet")

        def opened():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with xr.open_zarr(self.path("f.zarr"), consolidated=False) as data:
                    return data.v.load().values

        before = opened()
        self.tessera("calc", "f.zarr/v", "v + 1", "v=f.zarr/v", "--in-place", "--quiet")
        np.testing.assert_allclose(opened(), before + 1, atol=0.001)
        self.refused("calc", "f.zarr/v", "v + 1e6", "v=f.zarr/v", "--in-place", says="does not hold")

    def test_bytes_that_mean_unsigned_ones(self):
        codes = np.array([[0, 127, -128, -2], [5, -1, 6, 9]], "i1")  # 0, 127, 128, 254; 5, missing, 6, 9
        with netCDF4.Dataset(self.path("f.nc"), "w") as file:
            file.createDimension("t", 2)
            file.createDimension("x", 4)
            v = file.createVariable("v", "i1", ("t", "x"), fill_value=-1)
            v.set_auto_maskandscale(False)
            v.setncattr("_Unsigned", "true")
            v[:] = codes
        np.testing.assert_array_equal(self.computed("reduce", "f.nc::v", "out.npy", "--axis", "t", "--with", "max"),
                                      [5, 127, 128, 254])
        for format in "v2", "v3":
            self.tessera("copy", "f.nc", "f.zarr", "--format", format, "--overwrite", "--quiet")
            self.tessera("calc", "f.zarr/v", "v - 0", "v=f.zarr/v", "--in-place", "--quiet")
            np.testing.assert_array_equal(self.exported("f.zarr/v"), codes)
            self.tessera("calc", "f.zarr/v", "minimum(v + 100, 250)", "v=f.zarr/v", "--in-place", "--quiet")
            np.testing.assert_array_equal(self.exported("f.zarr/v").view("u1"), [[100, 227, 228, 250], [105, 255, 106, 109]])
            self.tessera("pyramid", "f.zarr/v", f"{format}.zarr", "--levels", "2", "--axes", "y,x", "--with", "max",
                         "--quiet")
            got = self.exported(f"{format}.zarr/1")
            self.assertEqual((got.dtype, got.view("u1").tolist()), (codes.dtype, [[227, 250]]))

    def test_markers_of_bytes_that_mean_unsigned_ones(self):
        """_FillValue is an element as it is stored; missing_value is compared with the sign that is meant."""
        for name, value, missing in (("_FillValue", -2, [2]), ("missing_value", -2, []), ("missing_value", 3, [3])):
            with self.subTest(name=name, value=value):
                with netCDF4.Dataset(self.path("f.nc"), "w") as file:
                    file.createDimension("x", 4)
                    v = file.createVariable("v", "i1", ("x",), fill_value=value if name == "_FillValue" else False)
                    v.set_auto_maskandscale(False)
                    v.setncattr("_Unsigned", "true")
                    if name == "missing_value":
                        v.setncattr(name, np.int8(value))
                    v[:] = np.array([1, -1, -2, 3], "i1")
                with xr.open_dataset(self.path("f.nc")) as data:
                    wanted = np.where(np.isnan(data.v.values), None, data.v.values).tolist()
                self.assertEqual([n for n, one in enumerate(wanted) if one is None], missing)
                got = json.loads(self.tessera("get", "f.nc::v", "--json"))
                self.assertEqual(got["values"] if isinstance(got, dict) else got, wanted)

    def test_a_pyramid_is_packed_as_its_array(self):
        values = self.random_file("f.nc", np.dtype("i2"), PACKINGS[3], [-5], 0.3)
        self.tessera("copy", "f.nc", "f.zarr", "--format", "v3", "--quiet")
        self.tessera("pyramid", "f.zarr/v", "p.zarr", "--levels", "2", "--axes", "y,x", "--by", "2,2", "--quiet")
        self.assertEqual(self.tessera_json("info", "p.zarr/1")["dtype"], "<i2")
        self.tessera("export", "p.zarr/1", "level.npy", "--decode-cf", "--overwrite", "--quiet")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = values.astype("f8").coarsen(t=2, x=2, boundary="pad").mean().values
        np.testing.assert_allclose(np.load(self.path("level.npy")), wanted, atol=0.0011)

    def test_levels_keep_their_marks_in_each_format(self):
        """The fill of Zarr v2 marks nothing in an image: the attribute does."""
        with netCDF4.Dataset(self.path("f.nc"), "w") as file:
            file.createDimension("y", 4)
            file.createDimension("x", 4)
            for name, packing in ("v", {}), ("p", {"scale_factor": 0.5}):
                v = file.createVariable(name, "i2", ("y", "x"), fill_value=-99)
                v.set_auto_maskandscale(False)
                v.setncatts(packing)
                v[:] = np.where(np.arange(16).reshape(4, 4) % 8 < 2, -99, 4)
                v[2:, 2:] = -99
        for kind in "v2", "v3":
            for name, value in ("v", 4.0), ("p", 2.0):
                self.tessera("pyramid", f"f.nc::{name}", f"{kind}.zarr", "--levels", "2", "--by", "2,2", "--axes", "y,x",
                             "--format", kind, "--overwrite", "--quiet")
                self.assertEqual(self.tessera_json("get", f"{kind}.zarr/1"), [[value, value], [value, None]])
                self.assertEqual(self.tessera_json("stats", f"{kind}.zarr/0")["missing"], 8)
        self.tessera("copy", "v3.zarr", "two.zarr", "--format", "v2", "--quiet")
        self.assertEqual(self.tessera_json("stats", "two.zarr/0")["missing"], 8)
        self.tessera("coarsen", "f.nc::v", "c.zarr", "--by", "1,1", "--with", "nearest", "--format", "v2", "--dims", "a,b", "--quiet")
        self.assertEqual(self.tessera_json("stats", "c.zarr")["missing"], 8)

    def test_bounds_count_as_their_coordinate(self):
        with netCDF4.Dataset(self.path("f.nc"), "w") as file:
            for name, length in ("time", 3), ("nv", 2):
                file.createDimension(name, length)
            time = file.createVariable("time", "f8", ("time",))
            time.setncatts({"units": "days since 2020-01-01", "calendar": "standard", "bounds": "time_bnds"})
            time[:] = [0, 1, 2]
            file.createVariable("time_bnds", "f8", ("time", "nv"))[:] = [[0, 1], [1, 2], [2, 3]]
            file.createVariable("others", "f8", ("time", "nv"))[:] = [[0, 1], [1, 2], [2, 3]]
        self.tessera("copy", "f.nc", "f.zarr", "--quiet")
        for path in "f.nc::time_bnds", "f.zarr/time_bnds":
            got = self.computed("calc", "out.npy", "b - datetime64('2020-01-01')", f"b={path}")
            np.testing.assert_array_equal(got.astype("m8[D]").astype(int), [[0, 1], [1, 2], [2, 3]])
        self.assertEqual(self.computed("calc", "out.npy", "b + 1", "b=f.nc::others").dtype, np.dtype("f8"))
        # A sum of dates is none: xarray refuses it.
        self.tessera("reduce", "f.nc::time", "sum.zarr", "--with", "sum", "--quiet")
        self.assertEqual(self.tessera_json("attrs", "sum.zarr").get("units"), "days")

    def test_results_say_what_they_are(self):
        self.random_file("f.nc", np.dtype("i2"), PACKINGS[3], [-5], 0.3)
        for word, units, method in ("mean", "K", "t: mean"), ("std", "K", "t: standard_deviation"), \
                ("var", "(K)2", "t: variance"), ("count", None, None):
            self.tessera("reduce", "f.nc::v", "r.nc", "--axis", "t", "--with", word, "--overwrite", "--quiet")
            with netCDF4.Dataset(self.path("r.nc")) as file:
                attributes = file["data"].__dict__
            self.assertEqual((attributes.get("units"), attributes.get("cell_methods")), (units, method))
            self.assertFalse({"scale_factor", "add_offset", "missing_value"} & attributes.keys())

    def test_what_is_left_of_a_plane_lies_nowhere(self):
        gdal.UseExceptions()
        raster = gdal.GetDriverByName("GTiff").Create(self.path("r.tif"), 6, 4, 3, gdal.GDT_Float32)
        raster.SetGeoTransform((400000, 30, 0, 5300000, 0, -30))
        raster = None
        for axis, stays in ("y", False), ("band", True):
            for words in [], ["--keep-dims"]:
                self.tessera("reduce", "r.tif", "r.zarr", "--axis", axis, "--with", "mean", "--format", "v3", *words,
                             "--overwrite", "--quiet")
                self.assertEqual("spatial:transform" in self.tessera_json("attrs", "r.zarr"), stays, axis)
                if stays:
                    self.tessera("verify", "--geo", "r.zarr", "--quiet")

    def test_nodata_of_rasters_beside_gdal(self):
        gdal.UseExceptions()
        for n in range(24 // min(FEWER, 4)):
            kind, code, nodata = [("u1", gdal.GDT_Byte, 255), ("i2", gdal.GDT_Int16, -32768), ("i4", gdal.GDT_Int32, -99999),
                                  ("f4", gdal.GDT_Float32, -9999), ("f4", gdal.GDT_Float32, -3.4028234663852886e38),
                                  ("f8", gdal.GDT_Float64, -1e20)][n % 6]
            rows, columns = 2 * int(RANDOM.integers(2, 20)), 2 * int(RANDOM.integers(2, 20))
            values = RANDOM.integers(0, 200, (rows, columns)).astype(kind)
            values[RANDOM.random(values.shape) < [0.0, 0.3, 0.8][n % 3]] = nodata
            values[0, 0] = 7
            raster = gdal.GetDriverByName("GTiff").Create(self.path("r.tif"), columns, rows, 1, code)
            raster.SetGeoTransform((400000, 30, 0, 5300000, 0, -30))
            raster.GetRasterBand(1).SetNoDataValue(nodata)
            raster.GetRasterBand(1).WriteArray(values)
            wanted = raster.GetRasterBand(1).ComputeStatistics(False)
            raster = None
            with self.subTest(n=n, kind=kind, nodata=nodata):
                for word, value in zip(("min", "max", "mean", "std"), wanted):
                    got = self.computed("reduce", "r.tif", "out.npy", "--with", word)
                    np.testing.assert_allclose(got, value, rtol=1e-5, err_msg=word)
                gdal.Translate(self.path("half.tif"), self.path("r.tif"), width=columns // 2, height=rows // 2,
                               resampleAlg="average", outputType=gdal.GDT_Float64)
                half = gdal.Open(self.path("half.tif")).ReadAsArray()
                got = self.computed("coarsen", "r.tif", "out.npy", "--by", "2,2")
                if kind[0] == "f":  # GDAL rounds means of integers
                    np.testing.assert_allclose(np.where(np.isnan(got), nodata, got), half, rtol=1e-5)
                self.tessera("coarsen", "r.tif", "out.tif", "--by", "2,2", "--overwrite", "--quiet")
                made = gdal.Open(self.path("out.tif"))
                self.assertEqual(made.GetGeoTransform(), (400000, 60, 0, 5300000, 0, -60))
                self.assertTrue(np.isnan(made.GetRasterBand(1).GetNoDataValue()))


if __name__ == "__main__":
    main()
