"""What is moved from one format to another means the same to xarray and GDAL on either side."""

import base64
import itertools
import json
import shutil
import struct
import subprocess
import sys
import unittest
import warnings

import numpy as np

from program import Absent, PROGRAM, ProgramTest, chosen, main, module_folder, zarr

try:
    import netCDF4
    import xarray as xr
except ImportError:
    print("netCDF4 or xarray is not installed")
    sys.exit(77)

try:
    from osgeo import gdal, osr
    gdal.UseExceptions()
except ImportError:
    gdal = Absent("GDAL's module is not installed")


class Seen(ProgramTest):
    def zarr3(self, path):
        """A group of Zarr v3 as xarray decodes it since 2024.10: floats' _FillValue is the base64 of a double."""
        variables = {}
        for file in sorted((self.folder / path).glob("*/zarr.json")):
            document = json.loads(file.read_text())
            attributes = document["attributes"]
            self.assertEqual(document["zarr_format"], 3)
            if "_FillValue" in attributes and document["data_type"].startswith("float"):
                attributes["_FillValue"] = struct.unpack("<d", base64.b64decode(attributes["_FillValue"]))[0]
            values = self.exported(f"{path}/{file.parent.name}")
            if "_FillValue" in attributes:
                attributes["_FillValue"] = values.dtype.type(attributes["_FillValue"])
            variables[file.parent.name] = (document.get("dimension_names") or [], values, attributes)
        return xr.decode_cf(xr.Dataset(variables))

    def seen(self, path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if (self.folder / path / "zarr.json").exists():
                return self.zarr3(path)
            kind = {"engine": "zarr", "consolidated": False} if (self.folder / path).is_dir() else {"engine": "netcdf4"}
            with xr.open_dataset(self.path(path), **kind) as data:
                return data.load()

    def exported(self, path):
        self.tessera("export", path, "exported.npy", "--quiet", "--overwrite")
        return np.load(self.folder / "exported.npy")

    def assert_same(self, found, wanted, words):
        self.assertEqual(sorted(found.variables), sorted(wanted.variables), words)
        for name, variable in wanted.variables.items():
            self.assertEqual(found[name].dims, variable.dims, (words, name))
            np.testing.assert_array_equal(found[name].values, variable.values, f"{words} {name}")
            self.assertEqual(found[name].attrs, variable.attrs, (words, name))


def write(path, zlib):
    with netCDF4.Dataset(path, "w") as data:
        data.createDimension("time", None)
        data.createDimension("x", 4)
        time = data.createVariable("time", "i4", ("time",), zlib=zlib)
        time.units, time.calendar, time[:] = "days since 2020-01-01", "standard", np.arange(6)
        codes = np.arange(24).reshape(6, 4)

        def add(name, dtype, fill=None, **attributes):
            v = data.createVariable(name, dtype, ("time", "x"), fill_value=fill, zlib=zlib, chunksizes=(2, 4))
            v.set_auto_maskandscale(False)
            v.setncatts(attributes)
            v[:] = codes
            return v
        add("packed", "i2", 7, scale_factor=0.5, add_offset=10.0, units="K")
        add("zero", "u1", 0, units="m")
        add("packed_zero", "u1", scale_factor=0.5)  # whose zeros are numbers
        add("float", "f4", -999.9)[0, :2] = -999.9, 0
        add("double", "f8", -999.9)[0, :2] = -999.9, 0
        add("nan", "f4", np.nan)[0, 1] = np.nan
        add("listed", "i4", missing_value=np.int32(5))
        add("zeros", "i4")
        add("signed", "i1", -1, _Unsigned="true")
        data.createVariable("scalar", "i4", ())[...] = 0


class Datasets(Seen):
    def test_each_pair_of_formats(self):
        zarr.open  # noqa: B018
        kinds = {"nc": (".nc", []), "nc4": (".nc4", []), "v2": (".zarr", ["--format", "v2"]),
                 "v3": (".zarr", ["--format", "v3"]), "default": (".zarr", []), "zmeta": (".zarr", ["--format", "zmeta"])}
        for zlib in (False, True):
            write(self.path("source.nc4"), zlib)
            wanted = self.seen("source.nc4")
            for name in wanted.variables:
                wanted[name].attrs.pop("_Netcdf4Dimid", None)
            for first, (extension, words) in kinds.items():
                self.tessera("copy", "source.nc4", first + extension, "--quiet", "--overwrite", *words)
                if first != "zmeta":
                    self.assert_same(self.seen(first + extension), wanted, (zlib, first))
            for (first, (one, _)), (second, (two, words)) in chosen(itertools.product(kinds.items(), kinds.items())):
                if second == "zmeta" or (first, second) == ("zmeta", "default"):
                    continue  # which xarray does not read
                copy = f"{first}-{second}{two}"
                self.tessera("copy", first + one, copy, "--quiet", "--overwrite", *words)
                self.assert_same(self.seen(copy), wanted, (zlib, first, second))

    def test_files_become_one_v3_group(self):
        """All arrays of a copy have one format, whatever is compressed; xarray finds consolidated metadata."""
        write(self.path("a.nc"), True)
        for words, environment in ([], {}), ([], {"TESSERA_FORMAT": "v3"}), (["--format", "v3"], {}):
            self.tessera("copy", "a.nc", "a.zarr", "--quiet", "--overwrite", *words, env=environment)
            formats = {json.loads(f.read_text())["zarr_format"] for f in (self.folder / "a.zarr").glob("**/zarr.json")}
            self.assertEqual((formats, list((self.folder / "a.zarr").glob("**/.z*"))), ({3}, []))
            self.assertIn("consolidated_metadata", json.loads((self.folder / "a.zarr/zarr.json").read_text()))
        self.tessera("copy", "a.nc", "b.zarr", "--quiet", env={"TESSERA_FORMAT": "v2"})
        self.assertEqual(list((self.folder / "b.zarr").glob("**/zarr.json")), [])

    def test_v3_marks_to_v2_and_back(self):
        """In v2 xarray takes the fill for missing elements: it is what v3's attribute says, or null."""
        mark = base64.b64encode(struct.pack("<d", -5.0)).decode()
        self.tessera("group", "g.zarr", "--format", "v3", "--quiet")
        for name, dtype, fill, attributes in [("f", "<f4", "0", {"_FillValue": mark}), ("i", "<i4", "0", {}),
                                              ("n", "<f8", "NaN", {}), ("p", "<i2", "0", {"_FillValue": 0, "scale_factor": 2.0})]:
            self.save("v.npy", np.array([0, -5, 2, 3], dtype))
            self.tessera("import", "v.npy", f"g.zarr/{name}", "--fill", fill, "--dims", "x", "--chunks", "2", "--quiet")
            for key, value in attributes.items():
                self.tessera("attrs", f"g.zarr/{name}", "set", key, json.dumps(value), "--quiet")
        (self.folder / "g.zarr/i/c/1").unlink()
        self.save("s.npy", np.int32(0))
        self.tessera("import", "s.npy", "g.zarr/s", "--quiet")
        wanted = self.seen("g.zarr")
        self.tessera("copy", "g.zarr", "two.zarr", "--format", "v2", "--quiet")
        self.assert_same(self.seen("two.zarr"), wanted, "v2")
        self.tessera("copy", "two.zarr", "three.zarr", "--format", "v3", "--quiet")
        self.assert_same(self.seen("three.zarr"), wanted, "v2, v3")
        self.assertNotIn("_TESSERA_FILL_VALUE", (self.folder / "three.zarr/i/zarr.json").read_text())

    def test_pixels_of_an_image_keep_their_fill(self):
        """Below OME-NGFF's multiscales a fill of 0 marks nothing, and absent chunks stay absent."""
        self.tessera("group", "g.zarr", "--format", "v3", "--attrs", '{"ome": {"multiscales": []}}', "--quiet")
        self.tessera("create", "g.zarr/0", "--shape", "8", "--chunks", "2", "--dtype", "u1", "--dims", "x", "--quiet")
        self.tessera("copy", "g.zarr", "two.zarr", "--format", "v2", "--quiet")
        self.assertEqual(json.loads((self.folder / "two.zarr/0/.zarray").read_text())["fill_value"], 0)


class Names(Seen):
    def test_variables_named_like_a_dimension(self):
        """netCDF-4 stores them under another name; ours as netCDF4-python's."""
        with netCDF4.Dataset(self.path("a.nc"), "w") as data:
            data.createDimension("lat", 3)
            data.createDimension("len", 4)
            data.createVariable("lat", "i4", ())[...] = 3
            data.createVariable("vvv", "f4", ("lat",))[:] = [0, 10, 20]
            data.createVariable("len", "i4", ("lat", "len"))[:] = np.arange(12).reshape(3, 4)
        self.tessera("copy", "a.nc", "a.zarr", "--quiet")
        self.tessera("copy", "a.zarr", "b.nc4", "--quiet")
        self.tessera("copy", "a.zarr", "c.nc", "--quiet")
        for name in ("a.nc", "b.nc4", "c.nc"):
            self.assertEqual(self.tessera("get", f"{name}::lat").strip(), "3")
            np.testing.assert_array_equal(self.exported(f"{name}::len"), np.arange(12).reshape(3, 4))
            with netCDF4.Dataset(self.path(name)) as data:
                self.assertEqual(data["lat"][...], 3)
                self.assertEqual(data["len"].dimensions, ("lat", "len"))
                np.testing.assert_array_equal(data["len"][:], np.arange(12).reshape(3, 4))
                self.assertEqual(data["vvv"].dimensions, ("lat",))

    def test_a_variable_is_as_long_as_its_dimension(self):
        """What was not written along an unlimited dimension is the fill, in copies, too."""
        for zlib in (False, True):
            with netCDF4.Dataset(self.path("u.nc"), "w") as data:
                data.createDimension("t", None)
                data.createDimension("x", 3)
                data.createVariable("v", "i4", ("t",), fill_value=-1, zlib=zlib)[:2] = 1
                data.createVariable("w", "f8", ("x", "t"), zlib=zlib, chunksizes=(2, 2))[:, :5] = np.arange(15).reshape(3, 5)
                data.createVariable("s", str, ("t",))[0] = "x"
                data.createVariable("t", "i4", ("t",), zlib=zlib)[:3] = [4, 5, 6]
                data.createVariable("never", "f4", ("t", "x"), fill_value=9, zlib=zlib)
            self.tessera("copy", "u.nc", "u.zarr", "--quiet", "--overwrite")
            self.tessera("copy", "u.zarr", "u2.nc4", "--quiet", "--overwrite")
            with netCDF4.Dataset(self.path("u.nc")) as data, netCDF4.Dataset(self.path("u2.nc4")) as copy:
                for file in (data, copy):
                    file.set_auto_mask(False)
                for name in ("v", "w", "t", "never"):
                    wanted = data[name][:]
                    np.testing.assert_array_equal(self.exported(f"u.nc::{name}"), wanted, name)
                    np.testing.assert_array_equal(copy[name][:], wanted, name)
            self.assertEqual(self.tessera("get", "u.nc::v", "1:4", "--raw").strip(), "[ 1 -1 -1]")
            self.assertEqual(json.loads(self.tessera("get", "u.zarr/s", "--json")), ["x", "", "", "", ""])


class BareCodes(ProgramTest):
    """Where attributes have no place, a note says that codes go without what they stand for."""

    def setUp(self):
        super().setUp()
        with netCDF4.Dataset(self.path("m.nc"), "w") as file:
            file.createDimension("x", 3)

            def add(name, values, fill=None, **attributes):
                variable = file.createVariable(name, values.dtype, ("x",), fill_value=fill)
                variable.set_auto_maskandscale(False)
                variable.setncatts(attributes)
                variable[...] = values
            add("packed", np.array([1, 2, -1], "i2"), fill=-1, scale_factor=0.5)
            add("unsigned", np.array([1, 2, -1], "i1"), _Unsigned="true")
            add("marked", np.array([1, 2, -1], "i8"), fill=-1)
            add("plain", np.array([1, 2, 3], "i4"), units="m")
            add("times", np.array([0, 1, 2], "i4"), units="hours since 2000-01-01")
            add("noleap", np.array([0, 1, 2], "i4"), units="hours since 2000-01-01", calendar="noleap")
        for variable in ("packed", "plain"):
            self.tessera("copy", f"m.nc::{variable}", f"{variable}.zarr", "--quiet")

    def notes(self, *words):
        result = self.run_program(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr.splitlines()

    def test_each_place_and_kind(self):
        for target in ("t.npy", "t.npz", "t.ra", "t.safetensors", "t.mldf"):
            for source in ("m.nc::packed", "packed.zarr", "m.nc::unsigned", "m.nc::times"):
                lines = self.notes("copy", source, target, "--overwrite")
                self.assertEqual(len(lines), 1, (source, target))
                self.assertIn(f"{source}: the stored codes are copied", lines[0])
                self.assertIn("--decode-cf copies what they stand for", lines[0])
                if target[2:] in ("npy", "npz") or "times" not in source:  # others hold no times
                    self.assertEqual(self.notes("copy", source, target, "--overwrite", "--decode-cf"), [])
                self.assertEqual(self.notes("copy", source, target, "--overwrite", "--quiet"), [])
            for source in ("m.nc::plain", "plain.zarr"):
                self.assertEqual(self.notes("copy", source, target, "--overwrite"), [])
            for source in ("m.nc::marked", "m.nc::noleap"):  # which --decode-cf does not help
                lines = self.notes("copy", source, target, "--overwrite")
                self.assertIn("the stored codes are copied", lines[0])
                self.assertNotIn("--decode-cf", lines[0])
        for target in ("t.nc", "t.h5", "t2.zarr", "t.csv"):
            self.assertEqual([line for line in self.notes("copy", "m.nc::packed", target, "--overwrite") if "codes" in line], [])
        self.assertEqual(self.notes("get", "m.nc::packed", "--out", "t.npy", "--overwrite"), [])
        self.assertEqual(self.notes("get", "m.nc::packed", "--out", "t.npy", "--overwrite", "--raw"), [])

    def test_several_arrays(self):
        lines = self.notes("copy", "m.nc", "t.npz", "--overwrite")
        advised = [line for line in lines if "--decode-cf" in line]
        self.assertEqual(len(advised), 1, lines)
        self.assertIn("(3 arrays: ", advised[0])
        for name in ("packed", "unsigned", "times"):
            self.assertIn(name, advised[0])

    def test_pipes_and_stacks(self):
        for words in (("export", "packed.zarr", "-", "--as", "npy"), ("stack", "m.nc::packed", "m.nc::packed", "t.npy")):
            result = subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, check=True)
            self.assertIn(b"--decode-cf", result.stderr, words)
        for words in (("export", "plain.zarr", "-", "--as", "npy"), ("export", "packed.zarr", "-", "--as", "csv")):
            result = subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, check=True)
            self.assertEqual(result.stderr, b"", words)

    def test_python(self):
        sys.path.insert(0, module_folder())
        import tessera
        told = tessera.copy(self.path("packed.zarr"), self.path("p.npy"))
        self.assertIn('cf="decode" copies what they stand for', " ".join(told))
        self.assertEqual(tessera.copy(self.path("plain.zarr"), self.path("q.npy")), [])
        with self.assertWarnsRegex(UserWarning, "the stored codes are copied"):
            tessera.stack([self.path("packed.zarr")] * 2, self.path("s.npy"))


class PartsOfGroups(ProgramTest):
    """What groups and grid mappings say of the place is that of the part."""

    TRANSFORM = "400000.0 30.0 0.0 5300000.0 0.0 -30.0"

    def make(self, name, transform=TRANSFORM, rows=8):
        with netCDF4.Dataset(self.path(name), "w") as file:
            for dimension, length in (("y", rows), ("x", 6)):
                file.createDimension(dimension, length)
            v = file.createVariable("v", "i2", ("y", "x"))
            v[...] = np.arange(rows * 6).reshape(rows, 6)
            v.grid_mapping = "crs"
            crs = file.createVariable("crs", "i4", ())
            crs.setncatts({"GeoTransform": transform, "grid_mapping_name": "transverse_mercator"})

    def transform(self, path):
        if path.endswith(".nc"):
            with netCDF4.Dataset(self.path(path)) as file:
                text = file["crs"].GeoTransform
        else:
            text = json.loads(self.tessera("attrs", f"{path}/crs", "--json"))["GeoTransform"]
        return [float(number) for number in text.split()]

    def test_selected(self):
        self.make("g.nc")
        for form in ("v3", "v2"):
            self.tessera("copy", "g.nc", f"{form}.zarr", "--format", form, "--quiet")
        for source in ("g.nc", "v3.zarr", "v2.zarr"):
            for target in ("p.zarr", "p.nc"):
                self.tessera("copy", source, target, "--sel", "y@2:8:2, x@3:6", "--overwrite", "--quiet")
                self.assertEqual(self.transform(target), [400090, 30, 0, 5299940, 0, -60], (source, target))
                self.tessera("copy", source, target, "--overwrite", "--quiet")
                self.assertEqual(self.transform(target), [float(n) for n in self.TRANSFORM.split()])

    def test_attributes_of_a_group(self):
        self.make("g.nc")
        self.tessera("copy", "g.nc", "g.zarr", "--format", "v3", "--quiet")
        for name, value in (("spatial:dimensions", ["y", "x"]), ("spatial:transform", [30.0, 0, 400000, 0, -30.0, 5300000]),
                            ("spatial:shape", [8, 6]), ("proj:code", "EPSG:32633")):
            self.tessera("attrs", "g.zarr", "set", name, json.dumps(value), "--quiet")
        self.tessera("copy", "g.zarr", "p.zarr", "--sel", "y@2:8, x@3:6", "--quiet")
        found = json.loads(self.tessera("attrs", "p.zarr", "--json"))
        self.assertEqual(found["spatial:transform"], [30, 0, 400090, 0, -30, 5299940])
        self.assertEqual(found["spatial:shape"], [6, 3])

    def test_joined_places(self):
        self.make("a.nc")
        self.make("b.nc", "400000.0 30.0 0.0 5299760.0 0.0 -30.0")  # below it
        self.tessera("concat", "a.nc::v", "b.nc::v", "c.zarr", "--axis", "y", "--quiet")
        self.refused("concat", "a.nc::v", "a.nc::v", "d.zarr", "--axis", "y", "--quiet", says="georeference")
        self.tessera("stack", "a.nc::v", "a.nc::v", "s.zarr", "--quiet")
        self.refused("stack", "a.nc::v", "b.nc::v", "d.zarr", "--quiet", says="georeference")


class ChunksByNames(ProgramTest):
    def setUp(self):
        super().setUp()
        self.data = xr.Dataset({"t": (("time", "lat"), np.arange(24.0).reshape(6, 4)), "orog": (("lat",), np.ones(4)),
                                "scalar": ((), 5.0)},
                               coords={"time": np.arange(6), "lat": np.arange(4.0)})
        self.data.to_netcdf(self.path("d.nc"))
        for form in ("v2", "v3"):
            self.tessera("copy", "d.nc", f"{form}.zarr", "--format", form, "--quiet")

    def chunks(self, path):
        return {name: self.tessera_json("info", f"{path}/{name}")["chunks"] for name in ("t", "orog", "time", "lat")}

    def test_groups(self):
        for source in ("v2.zarr", "v3.zarr", "d.nc"):
            self.tessera("rechunk", source, "r.zarr", "--chunks", "time=3,lat=2", "--overwrite", "--quiet")
            self.assertEqual(self.chunks("r.zarr"), {"t": [3, 2], "orog": [2], "time": [3], "lat": [2]})
            self.tessera("copy", source, "c.zarr", "--chunks", "lat=100", "--overwrite", "--quiet")
            found = self.chunks("c.zarr")
            self.assertEqual((found["t"][1], found["lat"], found["orog"]), (4, [4], [4]))
            np.testing.assert_array_equal(np.array(self.tessera_json("get", "r.zarr/t")), self.data.t)
        self.tessera("copy", "v3.zarr", "s.zarr", "--chunks", "time=2", "--sel", "time=0:3", "--quiet")
        self.assertEqual(self.chunks("s.zarr")["t"], [2, 4])

    def test_arrays(self):
        self.tessera("rechunk", "v3.zarr/t", "t.zarr", "--chunks", "lat=3", "--quiet")
        self.assertEqual(self.tessera_json("info", "t.zarr")["chunks"], [6, 3])
        self.tessera("reduce", "v3.zarr/t", "m.zarr", "--axis", "time", "--with", "mean", "--chunks", "lat=2", "--quiet")
        self.assertEqual(self.tessera_json("info", "m.zarr")["chunks"], [2])
        self.tessera("create", "n.zarr", "--shape", "6,4", "--dtype", "f4", "--dims", "time,y", "--chunks", "time=2", "--quiet")
        self.assertEqual(self.tessera_json("info", "n.zarr")["chunks"], [2, 4])

    def test_other_words_are_refused(self):
        self.refused("rechunk", "v3.zarr", "x.zarr", "--chunks", "depth=3", "--quiet", says=("'depth'", "lat, time"))
        self.refused("rechunk", "v3.zarr/t", "x.zarr", "--chunks", "depth=3", "--quiet", says=("'depth'", "lat, time"))
        self.refused("create", "x.zarr", "--shape", "6", "--dtype", "f4", "--dims", "time", "--chunks", "depth=2", "--quiet",
                     says=("'depth'", "time"))
        for wrong in ("time=", "time=0", "=3", "time=2,5", "time=a"):
            self.refused("rechunk", "v3.zarr", "x.zarr", "--chunks", wrong, "--quiet", says="--chunks")
        self.assertFalse((self.folder / "x.zarr").exists())

    def test_python(self):
        sys.path.insert(0, module_folder())
        import tessera
        for chunks in ({"time": 3, "lat": 2}, "time=3,lat=2"):
            tessera.copy(self.path("v3.zarr"), self.path("p.zarr"), chunks=chunks, overwrite=True)
            self.assertEqual(self.chunks("p.zarr")["t"], [3, 2])
            tessera.stack([self.path("v3.zarr/t")] * 2, self.path("q.zarr"), chunks={"lat": 2}, overwrite=True)
            self.assertEqual(self.tessera_json("info", "q.zarr")["chunks"][-1], 2)


@unittest.skipUnless(shutil.which("gdal_translate"), "GDAL is not installed")
class Rasters(ProgramTest):
    def make(self, name, values, nodata, options=()):
        kinds = {"float32": gdal.GDT_Float32, "float64": gdal.GDT_Float64, "int16": gdal.GDT_Int16, "uint8": gdal.GDT_Byte}
        file = gdal.GetDriverByName("GTiff").Create(self.path(name), values.shape[1], values.shape[0], 1,
                                                    kinds[values.dtype.name], list(options))
        file.SetGeoTransform((400000, 30, 0, 5300000, 0, -30))
        system = osr.SpatialReference()
        system.ImportFromEPSG(32633)
        file.SetProjection(system.ExportToWkt())
        file.GetRasterBand(1).SetNoDataValue(nodata)
        file.GetRasterBand(1).WriteArray(values)

    def facts(self, name):
        told = json.loads(subprocess.run(["gdalinfo", "-json", "-checksum", name], cwd=self.folder, capture_output=True,
                                         check=True).stdout)
        band = told["bands"][0]
        return (told["size"], told["geoTransform"], told["coordinateSystem"]["wkt"], band["type"],
                str(band.get("noDataValue")), band["checksum"])

    def test_there_and_back(self):
        ways = (["v3"], ["v2"], ["zmeta"], ["v2", "v3"], ["v3", "v2"])
        for dtype, nodata in (("f4", -9999), ("f8", np.nan), ("i2", -32768), ("u1", 0), ("f4", np.nan)):
            for options in ((), ("TILED=YES", "BLOCKXSIZE=32", "BLOCKYSIZE=32", "COMPRESS=DEFLATE")):
                values = np.arange(70 * 64).reshape(70, 64).astype(dtype)
                values[:10, :10] = nodata
                self.make("d.tif", values, nodata, options)
                for way in chosen(ways):
                    before = "d.tif"
                    for n, kind in enumerate(way):
                        self.tessera("copy", before, f"{n}.zarr", "--format", kind, "--quiet", "--overwrite")
                        before = f"{n}.zarr"
                    self.tessera("copy", before, "back.tif", "--quiet", "--overwrite")
                    self.assertEqual(self.facts("back.tif"), self.facts("d.tif"), (dtype, nodata, options, way))

    def test_a_part_lies_where_it_lay(self):
        values = np.arange(70 * 64, dtype="f4").reshape(70, 64)
        self.make("d.tif", values, -9999)
        subprocess.run(["gdal_translate", "-q", "-srcwin", "30", "20", "20", "15", "d.tif", "wanted.tif"], cwd=self.folder,
                       check=True)
        self.tessera("copy", "d.tif", "part.tif", "--sel", "20:35, 30:50", "--quiet")
        for way in ("v3", "v2"):
            self.tessera("copy", "d.tif", f"{way}.zarr", "--sel", "y@20:35, x@30:50", "--format", way, "--quiet")
            self.tessera("verify", "--geo", f"{way}.zarr")
            self.tessera("copy", f"{way}.zarr", f"{way}.tif", "--quiet")
        self.tessera("copy", "d.tif", "whole.zarr", "--quiet")
        self.tessera("copy", "whole.zarr", "zarr.tif", "--sel", "20:35, 30:50", "--quiet")
        for name in ("part.tif", "v3.tif", "v2.tif", "zarr.tif"):
            self.assertEqual(self.facts(name), self.facts("wanted.tif"), name)
        self.tessera("copy", "whole.zarr", "step.tif", "--sel", "1:50:2, 60:0:-4", "--quiet")
        self.assertEqual(self.facts("step.tif")[1], [401830, -120, 0, 5299970, 0, -60])
        self.tessera("copy", "whole.zarr", "row.zarr", "--sel", "20", "--quiet")
        attributes = json.loads((self.folder / "row.zarr/zarr.json").read_text())["attributes"]
        self.assertEqual([name for name in attributes if name.startswith("spatial")], [])
        self.assertEqual([entry["name"] for entry in attributes["zarr_conventions"]], ["proj"])
        self.tessera("verify", "--geo", "row.zarr")

    def test_growing_along_y_and_x(self):
        values = np.arange(70 * 64, dtype="f4").reshape(70, 64)
        self.make("d.tif", values, -9999)
        for form in ("v3", "v2"):
            self.tessera("copy", "d.tif", f"{form}.zarr", "--format", form, "--quiet")
            attributes = lambda: json.loads(self.tessera("attrs", f"{form}.zarr", "--json"))
            self.tessera("attrs", f"{form}.zarr", "set", "spatial:bbox", "[400000, 5297900, 401920, 5300000]", "--quiet")
            self.tessera("append", f"{form}.zarr", self.save("more.npy", values[:10]), "--axis", "y", "--quiet")
            self.assertEqual(attributes()["spatial:shape"], [80, 64])
            self.assertEqual(attributes()["spatial:bbox"], [400000, 5297600, 401920, 5300000])
            self.tessera("undo", f"{form}.zarr", "--quiet")
            self.assertEqual(attributes()["spatial:shape"], [70, 64])
            self.tessera("verify", "--geo", f"{form}.zarr")
            self.tessera("resize", f"{form}.zarr", "70,60", "--quiet")
            self.assertEqual(attributes()["spatial:shape"], [70, 60])
            self.tessera("verify", "--geo", f"{form}.zarr")

    def test_nodata_of_few_digits(self):
        """As GDAL compares where the text has fewer digits than the dtype."""
        values = np.array([[1, -9999, -9999.001, -9999.002], [2, -9999.01, -9998.9, np.nan]], "f4")
        self.make("d.tif", values, -9999)
        file = gdal.Open(self.path("d.tif"))
        mask = file.GetRasterBand(1).GetMaskBand().ReadAsArray() == 0
        self.assertEqual((mask & ~np.isnan(values)).sum(), 3)
        mask |= np.isnan(values)  # which some GDAL leave
        self.tessera("copy", "d.tif", "d.zarr", "--quiet")
        for path in ("d.tif", "d.zarr"):
            found = self.tessera_json("get", path)
            np.testing.assert_array_equal([[cell in (None, "NaN") for cell in row] for row in found], mask)


if __name__ == "__main__":
    main()
