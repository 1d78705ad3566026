"""Stores that xarray, zarr-python, netCDF and zarrita wrote, taken to other formats and back by the program, and read
again by those who wrote them: tests/golden/exchange."""

import json
import shutil
import subprocess
import unittest
import warnings

import numcodecs
import numpy as np

from program import GOLDEN, ProgramTest, zarr

try:
    import xarray
except ImportError:
    xarray = None

EXCHANGE = GOLDEN / "exchange"


def with_chunk_files(path, prefix="c"):
    return sorted(p.name for p in path.rglob("*") if p.is_file() and p.name[0] not in ".z_" and ".tessera" not in p.parts)


class ExchangeTest(ProgramTest):
    def setUp(self):
        super().setUp()
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.filterwarnings("ignore", category=DeprecationWarning)

    def fixture(self, name):
        shutil.copytree(EXCHANGE / name, self.folder / name)
        return name

    def noted(self, *words, code=0):
        """Runs a command; what it says on standard error."""
        result = self.run_program(*words)
        self.assertEqual(result.returncode, code, f"tessera {words}\n{result.stdout}{result.stderr}")
        return result.stderr

    def document(self, name):
        return json.loads((self.folder / name).read_text())


@unittest.skipIf(xarray is None, "python3-xarray is not installed")
class Xarray(ExchangeTest):
    def opened(self, name, **options):
        with xarray.open_zarr(self.path(name), **options) as dataset:
            return dataset.load()

    def check_round_trip(self, name, consolidated):
        source = self.opened(name, consolidated=consolidated)
        notes = self.noted("copy", name, "three", "--format", "v3")
        # Of numbers with names of dimensions null says that none is missing, as 0 does in v3.
        self.assertIn('the fill_value null becomes ""', notes)
        self.assertEqual(self.document("three/crs/zarr.json")["dimension_names"], [])
        self.assertEqual(self.document("three/x/zarr.json")["dimension_names"], ["x"])
        self.noted("copy", "three", "two", "--format", "v2")
        if consolidated:
            self.noted("consolidate", "two")
        self.assertTrue(self.opened("two", consolidated=consolidated).identical(source))
        for array in source.variables:
            before = self.document(f"{name}/{array}/.zarray")
            after = self.document(f"two/{array}/.zarray")
            self.assertEqual(after["fill_value"], before["fill_value"], array)
            self.assertEqual(self.document(f"two/{array}/.zattrs"), self.document(f"{name}/{array}/.zattrs"))
            # Others read what is absent as anything where the fill is null.
            if before["fill_value"] is None:
                chunks = -(-np.array(before["shape"] or [1]) // np.array(before["chunks"] or [1])).prod()
                self.assertEqual(len(with_chunk_files(self.folder / "two" / array)), abs(chunks))

    def test_to_v3_and_back(self):
        self.check_round_trip(self.fixture("xarray_cf"), False)

    def test_to_v3_and_back_consolidated(self):
        self.check_round_trip(self.fixture("xarray_cf_consolidated"), True)

    def test_datasets_of_today(self):
        self.assertTrue(zarr.__version__)  # of 2, with which xarray writes v2
        rng = np.random.default_rng(3)
        for number in range(4):
            with self.subTest(number):
                dataset = xarray.Dataset(
                    {"grid": (("y", "x"), rng.integers(0, 3, (5, 4)).astype(["u1", "<i2", ">i4", "<i8"][number])),
                     "field": (("y", "x"), rng.normal(size=(5, 4)).astype(["<f4", "<f8", ">f4", "<f4"][number])),
                     "flag": (("y",), rng.random(5) < 0.5),
                     "label": (("x",), np.array(["a", "", "fünf", "no"])),
                     "crs": ((), np.int32(0)), "offset": ((), 0.0)},
                    coords={"x": np.arange(4), "y": np.linspace(0, 1, 5),
                            "time": (("y",), np.datetime64("2020-01-01", "ns") + np.arange(5))},
                    attrs={"title": f"number {number}"})
                dataset.grid.attrs["grid_mapping"] = "crs"
                consolidated = bool(number % 2)
                dataset.to_zarr(self.path(f"data{number}"), consolidated=consolidated)
                self.check_round_trip_of(f"data{number}", consolidated)

    def check_round_trip_of(self, name, consolidated):
        source = self.opened(name, consolidated=consolidated)
        for there, format_there in (("three", "v3"), ("other", "v2")):
            self.noted("copy", name, f"{name}.{there}", "--format", format_there)
            self.noted("copy", f"{name}.{there}", f"{name}.{there}.back", "--format", "v2")
            if consolidated:
                self.noted("consolidate", f"{name}.{there}.back")
            self.assertTrue(self.opened(f"{name}.{there}.back", consolidated=consolidated).identical(source), there)

    def test_scalars_without_names_open(self):
        self.fixture("group_scalars")
        notes = self.noted("copy", "group_scalars", "two", "--format", "v2")
        self.assertIn("members that only v3 has are left out: survey_extension", notes)
        self.assertEqual(self.document("two/crs/.zattrs")["_ARRAY_DIMENSIONS"], [])
        dataset = self.opened("two", consolidated=False)
        self.assertEqual(int(dataset.crs), 4326)
        self.assertEqual(dataset.elevation.dims, ("y", "x"))

    def test_zeros_are_not_missing(self):
        np.save(self.folder / "a.npy", np.arange(4, dtype="<i4"))
        self.tessera("import", "a.npy", "a.zarr", "--format", "zmeta", "--quiet")
        notes = self.noted("copy", "a.zarr", "masked/a", "--format", "v2", "--dims", "x")
        self.assertIn("--fill null", notes)
        notes = self.noted("import", "a.npy", "kept/a", "--format", "v2", "--dims", "x")  # data without a fill
        self.assertEqual(notes, "")
        self.tessera("group", "masked", "--quiet")
        self.tessera("group", "kept", "--quiet")
        self.assertTrue(np.isnan(self.opened("masked", consolidated=False).a.values[0]))
        self.assertEqual(self.opened("kept", consolidated=False).a.values.tolist(), [0, 1, 2, 3])


class Groups(ExchangeTest):
    def test_unknown_members_stay(self):
        self.fixture("group_scalars")
        self.tessera("copy", "group_scalars", "copy", "--quiet")
        self.assertEqual(self.document("copy/zarr.json")["survey_extension"],
                         self.document("group_scalars/zarr.json")["survey_extension"])
        # One that must be understood is not carried on by who does not understand it.
        group = self.document("copy/zarr.json")
        group["survey_extension"]["must_understand"] = True
        (self.folder / "copy" / "zarr.json").write_text(json.dumps(group))
        self.refused("copy", "copy", "again", says="survey_extension")

    def test_nczarr_stays_nczarr(self):
        self.fixture("nczarr_q")
        self.tessera("copy", "nczarr_q", "copy", "--quiet")
        for name in ".zgroup", "q/.zarray", "y/.zarray":
            self.assertEqual(self.document(f"copy/{name}"), self.document(f"nczarr_q/{name}"), name)
        if shutil.which("ncdump"):
            shown = [subprocess.run(["ncdump", f"file://{self.path(name)}#mode=nczarr,file"], capture_output=True,
                                    text=True).stdout.split("{", 1)[-1] for name in ("nczarr_q", "copy")]
            self.assertIn("q(y, x)", shown[0])
            self.assertEqual(sorted(shown[1].splitlines()), sorted(shown[0].splitlines()))  # newer ones keep the order

    def test_fills_of_single_arrays(self):
        self.fixture("xarray_cf")
        self.noted("copy", "xarray_cf", "three", "--format", "v3", "--fill", "mask=7", "--fill", "name=none")
        self.assertEqual(self.document("three/mask/zarr.json")["fill_value"], 7)
        self.assertEqual(self.document("three/name/zarr.json")["fill_value"], "none")
        self.assertEqual(self.document("three/x/zarr.json")["fill_value"], 0)
        self.refused("copy", "xarray_cf", "other", "--format", "v3", "--fill", "nowhere=7", says="no array nowhere")
        # What was chosen is not taken back.
        self.noted("copy", "three", "two", "--format", "v2", "--fill", "x=0")
        self.assertEqual(self.document("two/mask/.zarray")["fill_value"], 7)
        self.assertEqual(self.document("two/x/.zarray")["fill_value"], 0)
        self.assertIsNone(self.document("two/time/.zarray")["fill_value"])

    def hierarchy_with_a_bad_array(self):
        root = zarr.open_group(self.path("h"), mode="w")
        root.create_dataset("good", data=np.arange(6), chunks=3)
        root.create_dataset("torn", data=np.arange(6), chunks=3, compressor=zarr.Blosc())
        root.create_dataset("strange", data=np.arange(6), chunks=3)
        (self.folder / "h" / "torn" / "1").write_bytes(b"nothing that blosc knows")
        strange = self.document("h/strange/.zarray") | {"dtype": "|O"}
        (self.folder / "h" / "strange" / ".zarray").write_text(json.dumps(strange))

    def test_one_bad_array_does_not_stop_the_others(self):
        self.hierarchy_with_a_bad_array()
        notes = self.noted("copy", "h", "copy", "--verify", code=1)
        self.assertIn("h/torn is left out: ", notes)
        self.assertIn("h/strange is left out: ", notes)
        self.assertEqual(zarr.open_group(self.path("copy"))["good"][:].tolist(), list(range(6)))
        self.assertEqual(sorted(p.name for p in (self.folder / "copy").iterdir()), [".tessera", ".zgroup", "good"])

    def test_an_incomplete_copy_replaces_nothing(self):
        self.hierarchy_with_a_bad_array()
        for name in "one", "two":
            zarr.open_group(self.path(name), mode="w").create_dataset("good", data=np.zeros(3))
        notes = self.noted("copy", "h", "one", "--verify", "--overwrite", code=1)
        self.assertIn("one was not replaced", notes)
        self.assertIn("the copy is in one.incomplete", notes)
        self.assertEqual(zarr.open_group(self.path("one"))["good"][:].tolist(), [0, 0, 0])
        self.assertEqual(zarr.open_group(self.path("one.incomplete"))["good"][:].tolist(), list(range(6)))
        self.noted("copy", "h", "two", "--verify", "--overwrite", "--skip-bad", code=1)
        self.assertEqual(zarr.open_group(self.path("two"))["good"][:].tolist(), list(range(6)))

    def test_an_incomplete_zip(self):
        self.hierarchy_with_a_bad_array()
        notes = self.noted("copy", "h", "new.zip", "--verify", code=1)
        self.assertIn("h/torn is left out: ", notes)
        self.assertIn("h/strange is left out: ", notes)
        self.assertEqual(self.tessera_json("get", "new.zip/good"), list(range(6)))
        self.refused("get", "new.zip/torn", says="torn")
        np.savez(self.folder / "plain.npz", good=np.zeros(3))
        self.tessera("import", "plain.npz", "plain/good", "--quiet")
        self.tessera("copy", "plain", "old.zip", "--quiet")
        before = (self.folder / "old.zip").read_bytes()
        notes = self.noted("copy", "h", "old.zip", "--verify", "--overwrite", code=1)
        self.assertIn("old.zip was not replaced", notes)
        self.assertIn("the copy is in old.zip.incomplete.zip", notes)
        self.assertEqual((self.folder / "old.zip").read_bytes(), before)
        self.assertEqual(self.tessera_json("get", "old.zip.incomplete.zip/good"), list(range(6)))
        self.noted("copy", "h", "old.zip", "--verify", "--overwrite", "--skip-bad", code=1)
        self.assertEqual(self.tessera_json("get", "old.zip/good"), list(range(6)))
        self.assertEqual([p.name for p in self.folder.iterdir() if "tessera-tmp" in p.name], [])

    def test_an_incomplete_file_of_several(self):
        self.hierarchy_with_a_bad_array()
        for name in "new.npz", "new.mldf":
            with self.subTest(name):
                notes = self.noted("export", "h", name, code=1)
                self.assertIn("h/torn is left out: ", notes)
                self.assertIn("h/strange is left out: ", notes)
                self.assertEqual(self.tessera_json("get", f"{name}::good"), list(range(6)))
        before = (self.folder / "new.npz").read_bytes()
        notes = self.noted("export", "h", "new.npz", "--overwrite", code=1)
        self.assertIn("new.npz was not replaced", notes)
        self.assertIn("the copy is in new.npz.incomplete.npz", notes)
        self.assertEqual((self.folder / "new.npz").read_bytes(), before)
        self.assertEqual(np.load(self.folder / "new.npz.incomplete.npz").files, ["good"])
        done = json.loads(self.run_program("export", "h", "new.npz", "--overwrite", "--skip-bad", "--json").stdout)
        self.assertEqual(sorted(a["source"] for a in done["left_out"]), ["h/strange", "h/torn"])
        self.assertEqual([a["path"] for a in done["arrays"]], ["new.npz::good"])
        # What is not about one of the arrays stops it all, as before.
        shutil.rmtree(self.folder / "h" / "good")
        self.refused("export", "h", "none.npz", says="strange")
        self.assertFalse((self.folder / "none.npz").exists())

    def test_files_of_several_to_files_of_several(self):
        arrays = {"x": np.arange(4), "deep/y": np.ones((4, 3), ">f4"), "..": np.array(["a", "bcd", "", "d"])}
        np.savez(self.folder / "a.npz", **arrays)
        self.assertIn("3 arrays", self.tessera("copy", "a.npz", "b.npz"))
        with np.load(self.folder / "b.npz") as npz:
            self.assertEqual(sorted(npz.files), sorted(arrays))
            for name, array in arrays.items():
                np.testing.assert_array_equal(npz[name], array)
                self.assertEqual(npz[name].dtype, array.dtype)
        self.tessera("copy", "a.npz", "c.mldf", "--quiet")
        self.assertEqual(self.tessera_json("get", "c.mldf::x"), [0, 1, 2, 3])
        np.savez(self.folder / "one.npz", only=np.arange(2))
        self.tessera("copy", "one.npz", "two.npz", "--quiet")
        self.assertEqual(np.load(self.folder / "two.npz").files, ["only"])
        self.tessera("copy", "a.npz::x", "three.npz", "--quiet")
        self.assertEqual(np.load(self.folder / "three.npz").files, ["x"])
        self.tessera("import", "one.npz", "array", "--quiet")
        self.assertEqual(self.tessera_json("get", "array"), [0, 1])

    def test_a_separator_that_was_lost(self):
        store = zarr.NestedDirectoryStore(self.path("a"))
        array = zarr.open_array(store, mode="w", shape=(4, 4), chunks=(2, 2), dtype="<i4", dimension_separator="/")
        array[...] = 7
        array.append(np.ones((2, 4), "<i4"))
        self.assertNotIn("dimension_separator", self.document("a/.zarray"))  # what zarr-python 2.13 does
        report = self.tessera("verify", "a", code=1)
        self.assertIn('0/0: is a chunk by the dimension_separator "/", which .zarray does not say', report)
        self.assertIn("zarr-python 2.13", report)
        self.assertEqual(report.count("dimension_separator \"/\""), 1, "once for all chunks")
        # A folder with another name, and one of an array that has no such chunks, is none.
        self.tessera("create", "b", "--shape", "4,4", "--chunks", "2,2", "--dtype", "<i4", "--format", "v2", "--quiet")
        (self.folder / "b" / "0").mkdir()
        (self.folder / "b" / "0" / "notes").write_text("x")
        self.assertNotIn("dimension_separator", self.tessera("verify", "b"))

    def test_a_node_takes_the_format_of_its_group(self):
        np.save(self.folder / "a.npy", np.arange(4))
        zarr.open_group(self.path("g"), mode="w")
        self.tessera("copy", "a.npy", "plain", "--quiet")
        self.assertIn("in format v2, like the group around it", self.noted("import", "a.npy", "g/imported"))
        self.assertIn("in format v2, like the group around it", self.noted("copy", "plain", "g/copied"))
        self.tessera("create", "g/created", "--shape", "3", "--dtype", "<i4")
        self.tessera("group", "g/sub")
        self.noted("copy", "a.npy", "g/mine", "--format", "zmeta")
        self.assertTrue((self.folder / "g/mine/__zmeta__").exists())
        self.assertEqual(sorted(zarr.open_group(self.path("g")).keys()), ["copied", "created", "imported", "sub"])
        self.assertTrue((self.folder / "plain/__zmeta__").exists())
        # A group takes the format of what is in it.
        self.tessera("create", "h/a", "--shape", "3", "--dtype", "<i4", "--format", "v2")
        self.tessera("group", "h")
        self.assertEqual(sorted(zarr.open_group(self.path("h")).keys()), ["a"])


class Arrays(ExchangeTest):
    def test_empty_bytes_stay_bytes(self):
        self.fixture("vlen_bytes_empty")
        self.tessera("copy", "vlen_bytes_empty", "copy", "--chunks", "3", "--quiet")
        self.tessera("set", "copy", "3", "", "--quiet")
        self.tessera("set", "vlen_bytes_empty", "2:4", "", "--quiet")
        for name in "copy", "vlen_bytes_empty":
            values = list(zarr.open(self.path(name), mode="r")[:])
            self.assertEqual(values[:2] + values[3:], [b"", b"", b""])
            self.assertTrue(all(isinstance(v, bytes) for v in values), values)

    def test_null_in_json_is_read_as_such(self):
        self.fixture("json2_null")
        before = (self.folder / "json2_null" / "0").read_bytes()
        self.assertIn("null", self.tessera("get", "json2_null", "1"))
        self.refused("set", "json2_null", "0", "x", says="element (1,) is no text")
        self.tessera("copy", "json2_null", "copy", "--verify", "--quiet")
        self.assertEqual((self.folder / "copy" / "0").read_bytes(), before)
        self.tessera("copy", "json2_null", "texts", "--format", "v3", "--quiet")
        self.assertIn("null", self.tessera("get", "texts", "1"))
        self.assertEqual((self.folder / "json2_null" / "0").read_bytes(), before)
        self.tessera("set", "json2_null", "4", "x", "--quiet")
        self.tessera("set", "json2_null", "1", "y", "--quiet")
        self.assertEqual(list(zarr.open(self.path("json2_null"), mode="r")[:]), ["ab", "y", "cd", "", "x"])

    def test_json_in_fortran_order(self):
        """The blob holds the rows as they were written; zarr-python 2 itself reads them back otherwise."""
        values = np.array([[f"{i}.{j}" for j in range(4)] for i in range(6)], dtype=object)
        for chunks in (2, 4), (4, 4), (3, 2):
            with self.subTest(chunks=chunks):
                name = f"f{chunks[0]}{chunks[1]}"
                made = zarr.open(self.path(name), mode="w", shape=(6, 4), chunks=chunks, dtype=object,
                                 object_codec=numcodecs.JSON(), order="F")
                made[:] = values
                self.assertEqual(self.tessera_json("get", name, "--all"), values.tolist())
                self.assertEqual(self.tessera_json("get", name, "4, 1:3"), values[4, 1:3].tolist())
                info = self.tessera_json("info", name)
                self.assertTrue([r for r in info["remarks"] if "another order than it wrote" in r], info)
                self.tessera("verify", name)
                before = {p.name: p.read_bytes() for p in (self.folder / name).iterdir() if p.is_file()}
                for words in (["set", name, "0, 0", "x"], ["resize", name, "7,4"], ["append", name, name]):
                    self.refused(*words, says=[name, "order F with json2"])
                self.assertEqual({p.name: p.read_bytes() for p in (self.folder / name).iterdir() if p.is_file()}, before)
                self.tessera("attrs", name, "set", "note", "1")
                for number, words in enumerate(([], ["--format", "v3"], ["--chunks", "6,1"])):
                    copy = f"{name}.{number}"
                    self.tessera("copy", name, copy, "--quiet", *words)
                    self.assertEqual(self.tessera_json("get", copy, "--all"), values.tolist())
                    if not words or "--chunks" in words:
                        self.assertEqual(zarr.open(self.path(copy), mode="r")[:].tolist(), values.tolist())
        self.refused("create", "new", "--shape", "6,4", "--dtype", "string", "--format", "v2", "--order", "F",
                     "--codec", "numcodecs.json2", says="order F with json2")

    def test_zmeta_and_v1_get_no_zstd(self):
        np.save(self.folder / "a.npy", np.arange(40))
        for codec in "zstd:3", "blosc:zstd:5:shuffle", "bz2:1", "lzma":
            self.tessera("import", "a.npy", "a", "--format", "v2", "--codec", codec, "--quiet", "--overwrite")
            for name in "zmeta", "v1":
                self.noted("copy", "a", name, "--format", name, "--overwrite")
                self.assertNotIn("zstd", self.tessera_json("info", name)["codec"], codec)
        notes = self.noted("copy", "a", "asked", "--format", "zmeta", "--codec", "blosc:zstd:5:shuffle")
        self.assertIn("zarr 0.4 cannot read chunks compressed with zstd", notes)
        self.assertEqual(self.document("asked/__zmeta__")["cname"], "zstd")
        self.noted("import", "a.npy", "one", "--format", "v1", "--codec", "blosc:zstd:5:shuffle")
        self.assertIn("will not read the chunks that change", self.noted("set", "one", "3", "9"))
        self.assertIn("zstd 0.7", self.tessera("info", "one"))

    def test_shards_go_where_there_are_none(self):
        np.save(self.folder / "a.npy", np.arange(48).reshape(8, 6))
        self.tessera("import", "a.npy", "a", "--format", "v3", "--chunks", "2,2", "--shard", "4,6", "--quiet")
        self.assertIn("shards", self.noted("copy", "a", "two", "--format", "v2", "--chunks", "3,5"))
        self.assertEqual(zarr.open(self.path("two"), mode="r").chunks, (3, 5))
        np.testing.assert_array_equal(zarr.open(self.path("two"), mode="r")[:], np.arange(48).reshape(8, 6))
        self.refused("copy", "a", "three", "--chunks", "3,5", says="multiple of chunks")

    def test_structures_become_little_endian(self):
        dtype = np.dtype([("a", ">i4"), ("b", [("c", ">f8"), ("d", "<i2")]), ("e", "S3")])
        values = np.zeros(5, dtype)
        values["a"], values["b"]["c"], values["b"]["d"], values["e"] = range(5), np.arange(5) / 3, range(5), b"xy"
        array = zarr.open(self.path("s"), mode="w", shape=5, chunks=2, dtype=dtype, fill_value=None)
        array[...] = values
        self.assertIn("little-endian", self.noted("copy", "s", "three", "--format", "v3"))
        self.noted("copy", "three", "two", "--format", "v2")
        back = zarr.open(self.path("two"), mode="r")
        self.assertEqual(back[:].tolist(), values.tolist())
        self.assertIsNone(back.fill_value)

    def test_structures_have_the_name_that_is_asked_for(self):
        # As zarr-python 3.1.0 and 3.1.5 write it.
        older = {"name": "structured", "configuration": {"fields": [
            ["a", "int32"], ["b", {"name": "structured", "configuration": {"fields": [
                ["c", {"name": "null_terminated_bytes", "configuration": {"length_bytes": 2}}],
                ["d", {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}]]}}]]}}
        dtype = "[('a', '<i4'), ('b', [('c', 'S2'), ('d', '<M8[s]')])]"
        values = np.array([(1, (b"x", 5)), (2, (b"yz", 6))], np.dtype([("a", "<i4"), ("b", [("c", "S2"), ("d", "<M8[s]")])]))
        self.save("t.npy", values)

        def document(path):
            return json.loads((self.folder / path / "zarr.json").read_text())

        self.tessera("create", "new", "--shape", "3", "--dtype", dtype, "--format", "v3", "--fill", '[1, ["x", 5]]',
                     "--structures", "structured", "--codec", "none", "--quiet")
        self.assertEqual(document("new")["data_type"], older)
        self.assertEqual(document("new")["fill_value"], "AQAAAHgABQAAAAAAAAA=")
        self.assertEqual(document("new")["codecs"], [{"name": "bytes"}])
        self.tessera("import", "t.npy", "a", "--format", "v3", "--structures", "structured", "--quiet")
        self.tessera("copy", "a", "kept", "--chunks", "1", "--quiet")
        self.tessera("copy", "a", "newer", "--structures", "struct", "--quiet")
        self.assertEqual([document(p)["data_type"]["name"] for p in ("a", "kept", "newer")],
                         ["structured", "structured", "struct"])
        for path in ("a", "kept", "newer"):
            np.testing.assert_array_equal(self.exported(path), values)
        self.refused("copy", "a", "two", "--format", "v2", "--structures", "structured", says="only v3 has names")
        self.refused("copy", "a", "two", "--structures", "list", says="expected struct or structured")
        self.refused("copy", "a", "t2.npy", "--structures", "struct", says="--structures: only for arrays")

    def test_a_fill_that_works_is_shown(self):
        self.tessera("create", "a", "--shape", "3", "--dtype", "V3", "--format", "v2", "--fill", "0x010203", "--quiet")
        line = self.refused("copy", "a", "b", "--format", "zmeta", says="--fill null works")
        self.noted("copy", "a", "b", "--format", "zmeta", "--fill", "null")
        self.assertIn("fill_value", line)

    def test_names_of_dimensions(self):
        np.save(self.folder / "a.npy", np.zeros((2, 3)))
        self.noted("import", "a.npy", "three", "--format", "v3", "--dims", "y, x")
        self.assertEqual(self.document("three/zarr.json")["dimension_names"], ["y", "x"])
        self.noted("copy", "three", "two", "--format", "v2", "--dims", "lat,lon")
        self.assertEqual(self.document("two/.zattrs")["_ARRAY_DIMENSIONS"], ["lat", "lon"])
        self.refused("copy", "three", "other", "--dims", "y", says="1 names were given for 2 dimensions")
        # In v3 they are no attribute.
        self.assertIn("metadata", self.noted("attrs", "three", "set", "dimension_names", '["u", null]'))
        self.assertEqual(self.document("three/zarr.json")["dimension_names"], ["u", None])
        self.assertEqual(self.document("three/zarr.json")["attributes"], {})
        self.assertEqual(self.tessera("attrs", "three", "get", "dimension_names"), '["u", null]\n')
        self.refused("attrs", "three", "set", "dimension_names", '"y"', says="a list of names")
        self.refused("attrs", "three", "set", "dimension_names", '["y"]', says="1 names were given for 2 dimensions")
        self.tessera("attrs", "three", "rm", "dimension_names")
        self.assertNotIn("dimension_names", self.document("three/zarr.json"))

    def test_relatives_are_named(self):
        (self.folder / "draft").mkdir()
        (self.folder / "draft" / "zarr.json").write_text(
            '{"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0", "extensions": []}')
        self.refused("get", "draft", ":", says="a draft of v3")

    def test_what_zarr_1_fails_at(self):
        self.tessera("create", "a", "--shape", "0,3", "--dtype", "<i4", "--format", "v1", "--quiet")
        self.assertIn("a length of 0", self.tessera("info", "a"))

    def test_null_of_zarrita_stays(self):
        self.fixture("zarrita_null_u1")
        self.tessera("set", "zarrita_null_u1", "0,0", "9", "--quiet")
        self.assertIsNone(self.document("zarrita_null_u1/zarr.json")["fill_value"])
        self.noted("copy", "zarrita_null_u1", "two", "--format", "v2")
        expected = np.load(EXCHANGE / "zarrita_null_u1.expected.npy")
        expected[0, 0] = 9
        array = zarr.open(self.path("two"), mode="r")
        self.assertIsNone(array.fill_value)
        np.testing.assert_array_equal(array[:], expected)


if __name__ == "__main__":
    unittest.main()
