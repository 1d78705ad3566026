"""RawArray, safetensors, netCDF-3, HDF5 and object arrays through the program."""

import hashlib
import json
import struct
import unittest

import numpy as np

import program
from program import GOLDEN, ProgramTest

try:
    import h5py
except ImportError:
    h5py = None
try:
    import netCDF4
except ImportError:
    netCDF4 = None
try:
    import xarray
except ImportError:
    xarray = None


class RawArray(ProgramTest):
    def test_info_shows_the_header(self):
        info = self.tessera_json("info", GOLDEN / "ra" / "trailing_metadata.ra")
        self.assertEqual(info["format"], "ra")
        self.assertEqual(info["shape"], [5, 3])
        self.assertEqual(info["header"]["trailing_bytes"], 15)
        self.assertEqual(info["header"]["flags"], 0)

    def test_through_an_array_and_back_are_the_same_bytes(self):
        source = GOLDEN / "ra" / "repo_test.ra"
        for words in [], ["--reverse-dims"]:
            self.tessera("import", source, "a.zarr", "--overwrite", *words)
            self.tessera("export", "a.zarr", "back.ra", "--overwrite", *words)
            back = (self.folder / "back.ra").read_bytes()
            self.assertEqual(hashlib.md5(back).hexdigest(), "1dd9f98a0d57ec3c4d8ad50343bd20cd")

    def test_bfloat16_is_widened_for_numpy(self):
        self.tessera("export", GOLDEN / "ra" / "bfloat16.ra", "b.npy")
        expected = np.load(GOLDEN / "ra" / "bfloat16.expected.npy")
        np.testing.assert_array_equal(np.load(self.folder / "b.npy"), expected)

    def test_what_stands_behind_the_data_survives_a_replacement(self):
        old = (GOLDEN / "ra" / "trailing_metadata.ra").read_bytes()
        (self.folder / "a.ra").write_bytes(old)
        self.save("new.npy", np.arange(5, dtype="<f8"))
        done = self.run_program("copy", "new.npy", "a.ra", "--overwrite")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("a.ra: the 15 bytes behind the data of the old file are kept", done.stderr)
        self.assertEqual((self.folder / "a.ra").read_bytes()[-15:], old[-15:])
        np.testing.assert_array_equal(self.exported("a.ra"), np.arange(5.0))
        # What is no .ra leaves nothing.
        (self.folder / "a.ra").write_bytes(b"rawarray" + b"\xff" * 90)
        self.tessera("copy", "new.npy", "a.ra", "--overwrite")
        self.assertEqual(self.tessera_json("info", "a.ra")["header"]["trailing_bytes"], 0)

    def test_what_it_cannot_hold_is_refused(self):
        np.save(self.folder / "s.npy", np.array(["a", "b"]))
        self.refused("copy", "s.npy", "s.ra", says=["<U1", ".ra"])
        self.assertFalse((self.folder / "s.ra").exists())


class ObjectArrays(ProgramTest):
    def test_strings_fixed_or_as_objects(self):
        source = GOLDEN / "npy" / "object_str.npy"
        self.assertEqual(self.tessera_json("info", source)["dtype"], "string")
        self.tessera("copy", source, "fixed.npy")
        strings = np.load(source, allow_pickle=True)
        fixed = np.load(self.folder / "fixed.npy")
        self.assertEqual(fixed.dtype, np.dtype("<U300"))
        self.assertEqual(fixed.tolist(), strings.tolist())
        self.tessera("copy", source, "objects.npy", "--object-strings")
        self.assertEqual((self.folder / "objects.npy").read_bytes(), source.read_bytes())
        self.tessera("copy", source, "objects.npz", "--object-strings", "--deflate", "6")
        with np.load(self.folder / "objects.npz", allow_pickle=True) as z:
            self.assertEqual(z["arr_0"].tolist(), strings.tolist())
        self.tessera("get", source, "--out", "got.npy", "--object-strings")
        self.assertEqual((self.folder / "got.npy").read_bytes(), source.read_bytes())
        self.tessera("get", source, "--out", "got.npy", "--overwrite")
        self.assertEqual(np.load(self.folder / "got.npy").dtype, np.dtype("<U300"))

    def test_formats_without_strings_say_which_has_them(self):
        for source in GOLDEN / "npy" / "object_str.npy", GOLDEN / "mldf" / "all_fields.mldf":
            for form in "zmeta", "v1":
                self.refused("import", source, "x", "--format", form, says=["no elements of type", "--format v3"])
        self.assertFalse((self.folder / "x").exists())
        self.tessera("import", GOLDEN / "mldf" / "all_fields.mldf", "x", "--format", "v2")
        self.tessera("import", GOLDEN / "npy" / "object_str.npy", "y", "--format", "v3")

    def test_other_objects_show_their_header_and_are_refused(self):
        source = GOLDEN / "npy" / "object_mixed.npy"
        self.assertEqual(self.tessera_json("info", source)["dtype"], "|O")
        for words in ["import", source, "x.zarr"], ["copy", source, "x.npy"], ["get", source]:
            self.refused(*words, says="a dict at element 1")


def safetensors(tensors, metadata=None, pad=b""):
    """A file as Hugging Face's library writes it. `tensors`: name → (type, shape, bytes)."""
    header, data = ({"__metadata__": metadata} if metadata else {}), b""
    for name, (kind, shape, raw) in tensors.items():
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data + pad


class Safetensors(ProgramTest):
    weights = np.arange(6, dtype="<f4").reshape(2, 3)

    def write(self, name, *arguments, **options):
        (self.folder / name).write_bytes(safetensors(*arguments, **options))

    def test_each_type_there_and_back(self):
        types = {"BOOL": "?", "U8": "u1", "I8": "i1", "I16": "<i2", "U16": "<u2", "F16": "<f2", "I32": "<i4", "U32": "<u4",
                 "F32": "<f4", "F64": "<f8", "I64": "<i8", "U64": "<u8", "C64": "<c8"}
        arrays = {f"layer.{name}": np.array([[0, 1, 1], [1, 0, 1]], dtype) for name, dtype in types.items()}
        arrays["none"], arrays["one"] = np.zeros((0, 4), "<f4"), np.array(7, "<i8")
        names = {np.dtype(dtype): name for name, dtype in types.items()}
        self.write("m.safetensors", {n: (names[a.dtype], a.shape, a.tobytes()) for n, a in arrays.items()}, {"format": "pt"})
        self.assertEqual(self.tessera_json("info", "m.safetensors")["header"]["metadata"], {"format": "pt"})
        self.tessera("copy", "m.safetensors", "m.zarr", "--quiet")
        self.tessera("copy", "m.zarr", "again.safetensors", "--quiet")
        for path in "m.safetensors::", "m.zarr/", "again.safetensors::":
            for name, array in arrays.items():
                found = self.exported(path + name)
                self.assertEqual((found.dtype, found.tolist()), (array.dtype, array.tolist()), path + name)
        again = (self.folder / "again.safetensors").read_bytes()
        header = json.loads(again[8:8 + struct.unpack("<Q", again[:8])[0]])
        self.assertEqual(header["__metadata__"], {"format": "pt"})
        for name, facts in header.items():
            if name != "__metadata__":
                self.assertEqual(facts["data_offsets"][0] % arrays[name].dtype.itemsize, 0, name)
        self.tessera("verify", "again.safetensors")

    def test_references_lead_into_the_file(self):
        self.write("m.safetensors", {"w": ("F32", (2, 3), self.weights.tobytes())}, {"format": "pt"})
        self.tessera("refs", "m.safetensors", "--out", "m.refs.json")
        np.testing.assert_array_equal(self.exported("m.refs.json/w"), self.weights)

    def test_bfloat16_and_types_without_a_dtype(self):
        self.write("m.safetensors", {"b": ("BF16", (2,), np.array([0x3F80, 0x4040], "<u2").tobytes()),
                                     "f8": ("F8_E4M3", (4,), b"abcd")})
        self.assertEqual(self.exported("m.safetensors::b").tolist(), [1, 3])
        self.refused("get", "m.safetensors::f8", says=["m.safetensors::f8", "F8_E4M3"])
        done = self.run_program("copy", "m.safetensors", "m.zarr")
        self.assertEqual(done.returncode, 1)
        self.assertIn("f8 is left out", done.stderr)
        self.assertEqual(self.exported("m.zarr/b").tolist(), [1, 3])

    def test_damage_is_named(self):
        good = ("F32", (2, 3), self.weights.tobytes())
        for name, data, says in [
                ("long", struct.pack("<Q", 99_000_000) + b'{"a":1}   ', "99000000"),
                ("shape", safetensors({"w": ("F32", (2, 4), self.weights.tobytes())}), "needs 32 bytes"),
                ("huge", safetensors({"w": ("F32", (2**40, 2**40), b"")}), "w"),
                ("torn", safetensors({"w": good})[:-4], "24"),
                ("json", struct.pack("<Q", 8) + b'{"a":1, ' + b"x" * 8, "JSON"),
                ("kind", struct.pack("<Q", 8) + b'{"a":1}  ', "")]:
            (self.folder / f"{name}.safetensors").write_bytes(data)
            self.refused("get", f"{name}.safetensors::w", says=[f"{name}.safetensors", says])
            self.assertIn(self.run_program("verify", f"{name}.safetensors").returncode, (1, 2), name)
        self.write("tail.safetensors", {"w": good}, pad=b"more")
        self.assertIn("4 bytes after", self.tessera("verify", "tail.safetensors", code=1))

    def test_what_it_cannot_hold_is_refused(self):
        self.save("s.npy", np.array(["a", "b"]))
        self.refused("copy", "s.npy", "s.safetensors", says="<U1")
        self.assertFalse((self.folder / "s.safetensors").exists())


@unittest.skipIf(netCDF4 is None, "no netCDF4")
class Attributes(ProgramTest):
    def test_those_of_files_are_shown_and_not_changed(self):
        for form, extension in ("NETCDF3_CLASSIC", "nc"), ("NETCDF4", "nc4"):
            name = f"f.{extension}"
            with netCDF4.Dataset(self.folder / name, "w", format=form) as data:
                data.title = "of the file"
                data.createDimension("x", 3)
                variable = data.createVariable("t", "f4", ("x",))
                variable.units = "K"
            before = (self.folder / name).read_bytes()
            self.assertEqual(self.tessera_json("attrs", f"{name}::t")["units"], "K")
            self.assertEqual(self.tessera("attrs", f"{name}::t", "get", "units"), '"K"\n')
            self.assertEqual(self.tessera_json("attrs", name)["title"], "of the file")
            self.refused("attrs", f"{name}::t", "get", "nothing", says="no attribute 'nothing'")
            self.refused("attrs", f"{name}::u", says="u")
            for words in (["attrs", f"{name}::t", "set", "units", "m"], ["resize", f"{name}::t", "3"], ["undo", f"{name}::t"]):
                refused = self.refused(*words, says=[f"a part of the array file {name}", f"`tessera copy {name}::t"])
                self.assertNotIn("()", refused)
            self.assertEqual((self.folder / name).read_bytes(), before)
        self.save("p.npy", np.zeros(3))
        self.assertEqual(self.tessera_json("attrs", "p.npy"), {})


class NetCDF3(ProgramTest):
    def write(self, name, form, records=4):
        """Every type of the form; fixed and record variables, attributes of each kind."""
        rng = np.random.default_rng(7)
        types = ["i1", "S1", "i2", "i4", "f4", "f8"] + (["u1", "u2", "u4", "i8", "u8"] if form.endswith("DATA") else [])
        arrays = {}
        with netCDF4.Dataset(self.folder / name, "w", format=form) as data:
            data.title, data.numbers, data.scale = "Höhen", np.arange(3, dtype="i2"), np.float32(0.1)
            for dimension, length in ("time", None), ("y", 3), ("x", 5):
                data.createDimension(dimension, length)
            for kind in types:
                for dimensions, shape in ((("y", "x"), (3, 5)), (("time", "x"), (records, 5)), ((), ())):
                    variable = data.createVariable(f"{kind}_{len(shape)}_{dimensions[:1] == ('time',)}", kind, dimensions)
                    values = (rng.integers(97, 120, shape).astype("u1").view("S1") if kind == "S1" and shape
                              else np.array(b"q", "S1") if kind == "S1" else rng.integers(0, 100, shape).astype(kind))
                    if shape or kind != "S1":
                        variable[...] = values
                    else:
                        variable[0] = b"q"
                    variable.units = "m"
                    arrays[variable.name] = np.asarray(values)
        return arrays

    def test_equal_to_what_netcdf_reads(self):
        for form in "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA":
            arrays = self.write("a.nc", form)
            with self.subTest(form):
                self.tessera("verify", "a.nc")
                self.tessera("copy", "a.nc", "a.zarr", "--quiet", "--overwrite")
                self.tessera("copy", "a.zarr", "b.nc", "--quiet", "--overwrite")
                self.tessera("refs", "a.nc", "--out", "a.refs.json")
                self.assertEqual(self.tessera_json("info", "a.nc")["header"]["dimensions"], {"time": 4, "y": 3, "x": 5})
                for name, array in arrays.items():
                    for path in "a.nc::", "a.zarr/", "b.nc::", "a.refs.json/":
                        np.testing.assert_array_equal(self.exported(path + name), array, path + name)
                with netCDF4.Dataset(self.folder / "b.nc") as written:
                    written.set_auto_mask(False)
                    self.assertEqual(written.title, "Höhen")
                    self.assertEqual(written.numbers.tolist(), [0, 1, 2])
                    for name, array in arrays.items():
                        np.testing.assert_array_equal(written[name][...], array, name)
                        self.assertEqual(written[name].units, "m")

    def test_one_record_variable_has_no_padding(self):
        with netCDF4.Dataset(self.folder / "a.nc", "w", format="NETCDF3_CLASSIC") as data:
            data.createDimension("t", None)
            data.createDimension("x", 3)
            data.createVariable("v", "i1", ("t", "x"))[...] = np.arange(15).reshape(5, 3)
        self.assertEqual(self.exported("a.nc").tolist(), np.arange(15).reshape(5, 3).tolist())

    def test_an_array_is_added_to_a_file(self):
        with h5py.File(self.folder / "a.h5", "w") as file:
            file.attrs["title"] = "kept"
            file.create_dataset("old", data=np.arange(100).reshape(10, 10), chunks=(3, 4), compression="gzip")
            file["g/lat"] = np.arange(3.0)
            file["g/lat"].make_scale("lat")
            file["g/inner/x"] = np.arange(2)
            file["g/k"] = np.arange(2)
            file["g/k"].attrs["CLASS"] = np.bytes_("IMAGE")  # no dimension scale
        before = (self.folder / "a.h5").read_bytes()
        self.save("b.npy", np.arange(12.0).reshape(3, 4))
        self.tessera("import", "b.npy", "b.zarr", "--format", "v3", "--dims", "lat,lon", "--quiet")
        self.tessera("copy", "b.zarr", "a.h5::g/b", "--deflate", "3", "--quiet")
        with h5py.File(self.folder / "a.h5") as file:
            self.assertEqual((file.attrs["title"], sorted(file), sorted(file["g"])),
                             ("kept", ["g", "old"], ["b", "inner", "k", "lat", "lon"]))
            np.testing.assert_array_equal(file["old"], np.arange(100).reshape(10, 10))
            np.testing.assert_array_equal(file["g/b"], np.arange(12.0).reshape(3, 4))
            self.assertEqual([dim[0].name for dim in file["g/b"].dims], ["/g/lat", "/g/lon"])
        for name in "c.h5::one", "c.h5::two", "c.h5::g/one", "c.h5::g/two", "c.h5::two":  # files of its own making
            self.tessera("copy", "b.zarr", name, "--quiet", "--overwrite")
        with h5py.File(self.folder / "c.h5") as file:
            for name in "one", "two", "g/one", "g/two":
                self.assertEqual([dim[0].name.split("/")[-1] for dim in file[name].dims], ["lat", "lon"])
        self.refused("copy", "b.npy", "a.h5::old", says=["a.h5::old exists", "--overwrite"])
        self.tessera("copy", "b.npy", "a.h5::old", "--overwrite", "--quiet")
        with h5py.File(self.folder / "a.h5") as file:
            np.testing.assert_array_equal(file["old"], np.arange(12.0).reshape(3, 4))
            np.testing.assert_array_equal(file["g/lat"], np.arange(3.0))
        # What cannot be added changes nothing.
        (self.folder / "a.h5").write_bytes(before)
        self.refused("copy", "b.npy", "a.h5::g/inner", "--overwrite", says="a.h5::g/inner")
        self.save("c.npy", np.zeros((5, 2)))
        self.tessera("import", "c.npy", "c.zarr", "--format", "v3", "--dims", "lat,k", "--quiet")
        self.refused("copy", "c.zarr", "a.h5::g/c", says=["lat", "length 5"])
        self.save("d.npy", np.zeros((3, 2)))
        self.tessera("import", "d.npy", "d.zarr", "--format", "v3", "--dims", "lat,k", "--quiet")
        self.refused("copy", "d.zarr", "a.h5::g/d", says="its dimension k has the name of an array")
        self.save("t.npy", np.array([(1, "a")], [("n", "<i4"), ("text", "<U1")]))
        self.refused("copy", "t.npy", "a.h5::t", says="<U1")
        self.assertEqual((self.folder / "a.h5").read_bytes(), before)
        (self.folder / "cut.h5").write_bytes(before[:len(before) // 2])
        self.refused("copy", "b.npy", "cut.h5::b", says="cut.h5")
        self.assertEqual((self.folder / "cut.h5").read_bytes(), before[:len(before) // 2])
        self.assertEqual([p.name for p in self.folder.iterdir() if "tessera" in p.name], [])

    def test_deflated_chunks_are_read_by_h5py(self):
        """Chunks are deflated by all threads, and libhdf5 takes them as they are: edges and every level included."""
        rng = np.random.default_rng(38)
        dtypes = ["<i1", ">u2", "<i4", ">f4", "<f8", "<c16", "S5", "<f2", np.dtype([("a", "<i2"), ("b", ">f8")])]
        for number in range(40 // program.FEWER):
            dtype = np.dtype(dtypes[number % len(dtypes)])
            shape = tuple(int(n) for n in rng.integers(1, 40, rng.integers(1, 4)))
            chunks = tuple(int(rng.integers(1, n + 3)) for n in shape)
            values = rng.integers(65, 91, (*shape, dtype.itemsize)).astype("u1").view(dtype)[..., 0]
            self.save("a.npy", values)
            self.tessera("import", "a.npy", "g/a", "--overwrite", "--quiet", "--chunks", ",".join(map(str, chunks)),
                         *([] if dtype.names or rng.random() < 0.5 else ["--format", "v3", "--shard", ",".join(str(2 * c) for c in chunks)]))
            level = int(rng.integers(1, 10))
            words = ["--threads", str(rng.integers(1, 4)), "--deflate", str(level)]
            with self.subTest(number=number, dtype=dtype, shape=shape, chunks=chunks, words=words):
                self.tessera("copy", "g", "b.h5", "--overwrite", "--quiet", *words)
                with h5py.File(self.folder / "b.h5") as file:
                    d = file["a"]
                    self.assertEqual(d[...].tobytes(), values.tobytes())
                    self.assertEqual((d.compression, d.compression_opts, d.shuffle), ("gzip", level, True))
                    self.assertEqual(d.chunks, tuple(min(c, n) for c, n in zip(chunks, shape)))
                self.tessera("verify", "b.h5")
                self.tessera("copy", "b.h5", "back.npy", "--overwrite", "--quiet")
                self.assertEqual(np.load(self.folder / "back.npy").tobytes(), values.tobytes())

    @unittest.skipIf(xarray is None, "no xarray")
    def test_xarray_sees_the_same(self):
        with netCDF4.Dataset(self.folder / "a.nc", "w", format="NETCDF3_CLASSIC") as data:
            data.createDimension("time", None)
            data.createDimension("x", 3)
            time = data.createVariable("time", "i4", ("time",))
            time.units, time[:] = "hours since 2000-01-01", [0, 6]
            packed = data.createVariable("t", "i2", ("time", "x"), fill_value=-9)
            packed.set_auto_maskandscale(False)
            packed.scale_factor, packed.add_offset, packed[:] = np.float32(0.1), 1.0, [[1, -9, 3], [0, 5, 6]]
            data.createVariable("f", "f4", ("x",))[:] = [0, 1, np.nan]
            data.createVariable("flag", "i1", ())[...] = 3
        self.tessera("copy", "a.nc", "a.zarr", "--format", "v2", "--quiet")
        for decode in True, False:
            expected = xarray.open_dataset(self.folder / "a.nc", decode_cf=decode).load()
            found = xarray.open_dataset(self.folder / "a.zarr", engine="zarr", consolidated=False, decode_cf=decode).load()
            self.assertTrue(found.identical(expected), f"{found}\n{expected}")
            self.tessera("copy", "a.zarr", "b.nc", "--quiet", "--overwrite")
            again = xarray.open_dataset(self.folder / "b.nc", decode_cf=decode).load()
            self.assertTrue(again.identical(expected), f"{again}\n{expected}")

    def test_damage_is_named(self):
        self.write("a.nc", "NETCDF3_CLASSIC")
        whole = (self.folder / "a.nc").read_bytes()
        (self.folder / "short.nc").write_bytes(whole[:-40])
        self.refused("get", "short.nc::f8_2_True", says=["short.nc::f8_2_True", "the file has"])
        (self.folder / "torn.nc").write_bytes(whole[:100])
        self.refused("info", "torn.nc", says="torn.nc")
        (self.folder / "many.nc").write_bytes(whole[:12] + b"\xff" * 4 + whole[16:])
        self.refused("info", "many.nc", says="4294967295 dimensions")
        (self.folder / "new.nc").write_bytes(b"CDF\x04" + whole[4:])
        self.refused("info", "new.nc", says="new.nc")

    def test_what_it_cannot_hold_is_refused(self):
        self.save("c.npy", np.zeros(2, "c8"))
        self.refused("copy", "c.npy", "c.nc", says=["<c8", "netCDF-3"])
        self.assertFalse((self.folder / "c.nc").exists())


@unittest.skipIf(netCDF4 is None or h5py is None, "no netCDF4 or no h5py")
class HDF5(ProgramTest):
    def test_every_type_layout_and_filter_as_h5py_reads_it(self):
        rng = np.random.default_rng(3)
        filters = [{}, {"compression": "gzip"}, {"compression": "gzip", "shuffle": True, "fletcher32": True},
                   {"shuffle": True, "chunks": (2, 3)}, {"scaleoffset": 0}]
        arrays = {}
        with h5py.File(self.folder / "a.h5", "w") as file:
            file.attrs["title"] = "Höhen"
            for n, dtype in enumerate(["<i1", ">i2", "<i4", ">i8", "u1", ">u4", "<f2", ">f4", "<f8", "<c8", ">c16", "?", "S3",
                                       [("a", "<i4"), ("b", ">f8", (2,))], "V5"]):
                values = np.frombuffer(rng.integers(0, 100, 4 * 5 * 64).astype("u1").tobytes(), "u1")
                values = (rng.integers(0, 100, (4, 5)).astype(dtype) if np.dtype(dtype).kind in "iufcb"
                          else values[:20 * np.dtype(dtype).itemsize].view(dtype).reshape(4, 5))
                for m, options in enumerate(filters):
                    if m == 4 and np.dtype(dtype).kind not in "iu":
                        continue
                    name = f"group/t{n}/f{m}"
                    file.create_dataset(name, data=values, **options)
                    arrays[name] = values
            file["scalar"] = np.float32(0.5)
            arrays["scalar"] = np.float32(0.5)
            file.create_dataset("never", (3, 4), "<i4", chunks=(2, 2), fillvalue=7)
            arrays["never"] = np.full((3, 4), 7, "<i4")
            file["group/up"] = h5py.SoftLink("/")  # a cycle
        self.tessera("verify", "a.h5")
        for name, array in program.chosen(arrays.items()):
            found = self.exported(f"a.h5::{name}")
            self.assertEqual(found.dtype, array.dtype, name)
            self.assertEqual(found.tobytes(), np.ascontiguousarray(array).tobytes(), name)
        self.assertEqual(self.tessera("get", "a.h5::group/t2/f1", "1:3, ::2").split(),
                         self.tessera("get", "a.h5::group/t2/f0", "1:3, ::2").split())
        self.tessera("copy", "a.h5", "a.zarr", "--quiet")
        self.assertEqual(self.tessera_json("attrs", "a.zarr")["title"], "Höhen")
        for name in program.chosen(arrays):
            self.tessera("diff", f"a.h5::{name}", f"a.zarr/{name}", "--quiet")

    def test_what_it_cannot_hold_is_refused(self):
        self.save("t.npy", np.zeros(3, "M8[D]"))
        self.refused("copy", "t.npy", "t.h5", says="tessera: t.h5::data: HDF5 has no elements of type <M8[D]")

    def test_strings_of_fixed_length_have_a_character_set(self):
        texts = np.array(["é", "z", "", "größe"])
        with h5py.File(self.folder / "t.h5", "w") as file:
            kind = h5py.string_dtype("utf-8", 8)
            file.create_dataset("s", (4,), dtype=kind)[...] = np.array([t.encode() for t in texts], dtype=kind)
            part = file.create_dataset("part", (6,), dtype=kind, chunks=(2,))
            part[0] = "Łódź".encode()
            file["latin"] = np.array([b"\xe9", b"z"])
        self.assertEqual(json.loads(self.tessera("get", "t.h5::s", "--json")), texts.tolist())
        self.tessera("export", "t.h5::s", "s.csv", "--quiet")
        self.assertEqual((self.folder / "s.csv").read_text().split("\n"), ["é", "z", '""', "größe", ""])
        self.assertEqual(json.loads(self.tessera("get", "t.h5::part", "--json")), ["Łódź", "", "", "", "", ""])
        self.assertEqual(json.loads(self.tessera("get", "t.h5::latin", "--json")), ["é", "z"])
        self.tessera("copy", "t.h5", "t.zarr", "--quiet")
        self.tessera("copy", "t.zarr", "back.h5", "--quiet")
        with h5py.File(self.folder / "back.h5") as file:
            self.assertEqual(file["s"].asstr()[:].tolist(), texts.tolist())
        for name in ("s", "part"):
            self.tessera("diff", f"t.h5::{name}", f"t.zarr/{name}", "--quiet")

    def test_strings_of_any_length(self):
        with h5py.File(self.folder / "s.h5", "w") as file:
            file["text"] = ["a", "", "größer", "x" * 5000]
        self.tessera("export", "s.h5::text", "s.npy", "--object-strings", "--quiet")
        self.assertEqual(np.load(self.folder / "s.npy", allow_pickle=True).tolist(), ["a", "", "größer", "x" * 5000])

    def test_other_files_are_not_followed(self):
        with h5py.File(self.folder / "secret.h5", "w") as file:
            file["x"] = [1, 2]
        with h5py.File(self.folder / "a.h5", "w") as file:
            file["mine"] = [3, 4]
            file["theirs"] = h5py.ExternalLink("secret.h5", "/x")
            file["soft"] = h5py.SoftLink("/theirs")
            layout = h5py.VirtualLayout((2,), "i8")
            layout[:] = h5py.VirtualSource(str(self.folder / "secret.h5"), "x", (2,))
            file.create_virtual_dataset("view", layout)
            file.create_dataset("raw", (2,), "i8", external=[(str(self.folder / "secret.h5"), 0, 16)])
        self.refused("get", "a.h5::theirs", says=["a.h5::theirs", "secret.h5"])
        self.refused("get", "a.h5::view", says=["a.h5::view", "secret.h5", "--allow-outside"])
        self.refused("get", "a.h5::raw", says=["a.h5::raw", "secret.h5", "--allow-outside"])
        self.refused("get", "a.h5::soft", says="a.h5::soft")
        done = self.run_program("copy", "a.h5", "a.zarr")
        self.assertEqual(done.returncode, 1)
        for name in "theirs", "view", "raw":
            self.assertIn(f"{name} is left out", done.stderr)
        self.assertEqual(self.exported("a.zarr/mine").tolist(), [3, 4])

    def test_damage_is_named(self):
        with h5py.File(self.folder / "a.h5", "w") as file:
            file.create_dataset("x", data=np.arange(1000), chunks=(100,), compression="gzip", fletcher32=True)
            offset = file["x"].id.get_chunk_info(3).byte_offset
        whole = bytearray((self.folder / "a.h5").read_bytes())
        whole[offset + 20] ^= 0xFF
        (self.folder / "flipped.h5").write_bytes(whole)
        self.refused("get", "flipped.h5::x", says=["flipped.h5::x", "checksum"])
        self.assertIn("flipped.h5::x", self.tessera("verify", "flipped.h5", code=1))
        (self.folder / "short.h5").write_bytes(whole[:200])
        self.refused("info", "short.h5", says=["short.h5", "libhdf5"])

    def test_what_is_written_is_read_by_h5py(self):
        arrays = {f"g/{np.dtype(d).name}_{n}": (np.arange(60).reshape(3, 4, 5) % 7).astype(d)
                  for n, d in enumerate(["<i1", ">i2", "<u4", "<i8", "<f2", ">f4", "<f8", "<c8", ">c16", "S3"])}
        arrays["g/pair"] = np.zeros(3, [("a", "<i4"), ("b", ">f8", (2,))])
        arrays["top"], arrays["none"], arrays["one"] = np.arange(7.0), np.zeros((0, 3), "i4"), np.array(5, "u2")
        with h5py.File(self.folder / "a.h5", "w") as file:
            for name, array in arrays.items():
                file[name] = array
            file["text"] = ["a", "größer", ""]
        for options in [], ["--deflate", "4"]:
            self.tessera("copy", "a.h5", "b.h5", "--quiet", "--overwrite", *options)
            with h5py.File(self.folder / "b.h5") as file:
                for name, array in arrays.items():
                    self.assertEqual((file[name].dtype, file[name][...].tobytes()), (array.dtype, array.tobytes()), name)
                self.assertEqual(file["text"].asstr()[...].tolist(), ["a", "größer", ""])
                self.assertEqual(file["top"].compression, "gzip" if options else None)
            self.tessera("verify", "b.h5")
        for name in "one.h5", "one.nc4", "one.nc", "one.safetensors":
            self.tessera("copy", "a.h5::top", name, "--quiet")
            self.assertEqual(self.exported(name).tolist(), list(range(7)), name)
            (self.folder / name).unlink()
        (self.folder / "exported.npy").unlink()
        self.save("x.npy", np.array([(1, "a")], [("n", "<i4"), ("text", "<U1")]))
        self.refused("copy", "x.npy", "x.h5", says="<U1")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a.h5", "b.h5", "x.npy"])

    @unittest.skipIf(xarray is None, "no xarray")
    def test_xarray_sees_the_same(self):
        with netCDF4.Dataset(self.folder / "a.nc", "w") as data:
            data.title = "everything"
            data.createDimension("time", None)
            data.createDimension("x", 3)
            data.createDimension("bare", 2)
            time = data.createVariable("time", "i4", ("time",))
            time.units, time[:] = "hours since 2000-01-01", [0, 6]
            packed = data.createVariable("t", "i2", ("time", "x"), fill_value=-9, zlib=True, chunksizes=(1, 2))
            packed.set_auto_maskandscale(False)
            packed.scale_factor, packed.add_offset, packed[:] = np.float32(0.1), 1.0, [[1, -9, 3], [0, 5, 6]]
            data.createVariable("f", "f4", ("x", "bare"))[:] = [[0, 1], [np.nan, 2], [3, 4]]
            data.createVariable("flag", "i1", ())[...] = 3
            data.createVariable("name", str, ("bare",))[:] = np.array(["a", "größer"], dtype=object)
            data.createGroup("sub").createVariable("x", "u8", ("x",))[:] = [1, 2, 3]
            data["sub"].history = "made"
        self.tessera("copy", "a.nc", "a.zarr", "--format", "v2", "--quiet")
        self.tessera("copy", "a.zarr", "b.nc4", "--quiet", "--deflate", "1")
        def seen(name, **options):
            with xarray.open_dataset(self.folder / name, **options) as data:
                return data.load()

        for group in None, "sub":
            for decode in True, False:
                options = {"group": group, "decode_cf": decode}
                expected = seen("a.nc", **options)
                for found in (seen("a.zarr", engine="zarr", consolidated=False, **options),
                              seen("b.nc4", engine="netcdf4", **options)):
                    self.assertTrue(found.identical(expected), f"{found}\n{expected}")
        with netCDF4.Dataset(self.folder / "b.nc4") as data:
            self.assertEqual(data["t"].dimensions, ("time", "x"))
            self.assertEqual(data["f"].dimensions, ("x", "bare"))
            self.assertTrue(data["t"].filters()["zlib"])


if __name__ == "__main__":
    program.main()
