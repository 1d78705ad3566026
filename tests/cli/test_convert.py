"""Moving data between the formats of Zarr, in directories and zips, as a person does it."""

import json
import os
import warnings
import zipfile

import numpy as np

import program
from program import ProgramTest, digest, zarr

FORMATS = ["zmeta", "v1", "v2", "v3"]
METADATA = {"zmeta": "__zmeta__", "v1": "meta", "v2": ".zarray", "v3": "zarr.json"}
GRID = np.arange(12 * 10, dtype="<i4").reshape(12, 10)


class Convert(ProgramTest):
    def make(self, name, array, *options):
        self.save("made.npy", array)
        self.tessera("import", "made.npy", name, *options)
        return name

    def content(self, name):
        """Its digest by the program, which knows neither chunks nor formats."""
        return self.tessera_json("digest", name)[0]["digest"]

    def files(self, name):
        """Without what Tessera keeps for itself."""
        return {str(p.relative_to(self.folder / name)): p for p in (self.folder / name).rglob("*")
                if p.is_file() and ".tessera" not in p.parts}

    def zarr_json(self, name):
        return json.loads((self.folder / name / "zarr.json").read_text())

    def test_settings_of_an_encoder_do_not_matter_for_reading(self):
        for shards in ("8,8", None):
            name = "sharded.zarr" if shards else "whole.zarr"
            self.make(name, GRID, "--format", "v3", "--chunks", "4,4", "--codec", "zstd:3",
                      *(["--shard", shards] if shards else []))
            document = self.folder / name / "zarr.json"
            text = document.read_text()
            self.assertIn('"level": 3', text)
            document.write_text(text.replace('"level": 3', '"level": 100'))
            before = digest(self.folder / name)
            np.testing.assert_array_equal(self.exported(name), GRID)
            says = ["zstd: level is 100, expected", "; such chunks are read, but none is written: a copy can have"]
            for change in (["set", name, "0,0", "3"], ["append", name, "made.npy"],
                           ["rechunk", name, "r", "--chunks", "2,2"]):
                self.refused(*change, says=says)
            self.assertEqual(digest(self.folder / name), before)
            self.tessera("copy", name, "copied", "--overwrite")
            self.assertEqual(self.content("copied"), self.content(name))
            self.tessera("rechunk", name, "again", "--chunks", "2,2", "--codec", "zstd:3", "--overwrite")
            self.assertEqual(self.content("again"), self.content(name))
            codec = ["--codec", '[{"name": "zstd", "configuration": {"level": 100}}]']
            self.refused("create", "new", "--shape", "4", "--dtype", "i4", "--format", "v3", *codec,
                         says='codec "zstd": level is 100')
            self.assertFalse((self.folder / "new").exists())

    def test_a_size_of_elements_that_is_null(self):
        """numcodecs 0.15 writes it to v2's blosc: it says nothing, and no format says it again."""
        self.save("a.npy", np.arange(12, dtype="<i4").reshape(3, 4))
        self.tessera("import", "a.npy", "a.zarr", "--format", "v2", "--codec", "blosc", "--quiet")
        document = json.loads((self.folder / "a.zarr/.zarray").read_text())
        document["compressor"]["typesize"] = None
        (self.folder / "a.zarr/.zarray").write_text(json.dumps(document))
        for format in "v2", "v3", "v1", "zmeta":
            self.tessera("copy", "a.zarr", format, "--format", format, "--quiet")
            self.tessera("diff", "a.zarr", format)
        self.assertEqual(json.loads((self.folder / "v2/.zarray").read_text())["compressor"].get("typesize"), None)
        self.assertIn('"typesize": 4', (self.folder / "v3/zarr.json").read_text())

    def test_structures_become_little_endian_in_v3_from_files_too(self):
        table = np.array([(1, 2.5), (3, 4.5)], [("a", ">i4"), ("b", ">f8")])
        note = "the fields become little-endian"
        self.save("q.npy", table)
        self.assertIn(note, self.run_program("import", "q.npy", "imported", "--format", "v3").stderr)
        self.make("v2", table, "--format", "v2")
        self.assertIn(note, self.run_program("copy", "v2", "copied", "--format", "v3").stderr)
        self.assertEqual(self.content("imported"), self.content("copied"))
        np.testing.assert_array_equal(self.exported("imported"), table)

    def test_every_format_becomes_every_other_and_comes_back(self):
        for start in FORMATS:
            first = self.make(f"{start}_first", GRID, "--format", start, "--chunks", "5,4", "--fill", "7")
            self.tessera("attrs", first, "set", "units", '"m"')
            self.tessera("resize", first, "14,10")
            expected = np.vstack([GRID, np.full((2, 10), 7, "<i4")])
            for to in FORMATS:
                if to == start:
                    continue
                there, back = f"{start}_{to}", f"{start}_{to}_{start}"
                self.tessera("copy", first, there, "--format", to)
                self.assertTrue((self.folder / there / METADATA[to]).is_file())
                self.assertEqual(self.tessera_json("info", there)["format"], to)
                np.testing.assert_array_equal(self.exported(there), expected)
                self.assertEqual(self.tessera_json("attrs", there), {"units": "m"})
                self.tessera("copy", there, back, "--format", start)
                self.assertEqual(self.content(back), self.content(first))
                self.assertEqual(self.tessera_json("info", back)["fill_value"], 7)
                # Nothing was encoded anew: the chunk files are those of the first.
                self.assertEqual({p.read_bytes() for p in self.files(back).values() if p.name not in METADATA.values()},
                                 {p.read_bytes() for p in self.files(first).values() if p.name not in METADATA.values()})

    def test_a_dry_run_writes_nothing_and_says_what_would_be(self):
        first = self.make("first", GRID, "--format", "v2", "--chunks", "5,4", "--codec", "zlib:3", "--fill", "0")
        before = digest(self.folder)
        text = self.tessera("copy", first, "second", "--format", "v3", "--dry-run")
        self.assertIn("first → second: 12×10 <i4, v3, chunks 5×4, zlib:3", text)
        self.assertIn("copied as they are", text)
        self.assertIn("linked as they are", self.tessera("copy", first, "second", "--format", "v3", "--dry-run",
                                                         "--link"))
        text = self.tessera("copy", first, "second", "--format", "zmeta", "--dry-run")
        self.assertIn("encoded anew: the codecs bytes + zlib:3 become bytes + blosc:zlib:3:shuffle", text)
        self.assertIn("zmeta", text)
        (plan,) = self.tessera_json("copy", first, "second", "--format", "v3", "--dry-run")["arrays"]
        self.assertEqual((plan["path"], plan["format"], plan["chunks"], plan["codec"]), ("second", "v3", [5, 4], "zlib:3"))
        self.assertTrue(plan["chunks_copied_as_they_are"])
        self.assertIsNone(plan["because"])
        self.assertEqual(plan["changes"], [])
        (plan,) = self.tessera_json("copy", first, "second", "--chunks", "6,5", "--dry-run")["arrays"]
        self.assertFalse(plan["chunks_copied_as_they_are"])
        self.assertIn("5", plan["because"])
        self.assertEqual(digest(self.folder), before)

    def test_links_are_the_same_files(self):
        first = self.make("first", GRID, "--format", "v2", "--chunks", "5,4", "--fill", "0")
        self.tessera("copy", first, "linked", "--format", "v3", "--link")
        self.tessera("copy", first, "copied", "--format", "v3")
        inodes = {p.stat().st_ino for p in self.files(first).values()}
        linked = [p for name, p in self.files("linked").items() if name != "zarr.json"]
        self.assertEqual(len(linked), 9)
        self.assertTrue(all(p.stat().st_ino in inodes and p.stat().st_nlink == 2 for p in linked))
        self.assertTrue(all(p.stat().st_nlink == 1 for p in self.files("copied").values()))
        # A write replaces files: what is linked to them keeps its content.
        self.tessera("set", "linked", "...", "0")
        np.testing.assert_array_equal(self.exported(first), GRID)
        np.testing.assert_array_equal(self.exported("linked"), np.zeros_like(GRID))

    def test_files_that_stay_valid_are_copied_without_a_look(self):
        first = self.make("first", GRID, "--format", "v2", "--chunks", "5,4", "--fill", "-1")
        damaged = self.files(first)["0.0"]
        whole = damaged.read_bytes()
        damaged.write_bytes(b"X" * len(whole))
        self.tessera("copy", first, "copied", "--format", "v3")
        self.assertEqual(self.files("copied")["0.0"].read_bytes(), b"X" * len(whole))
        self.refused("copy", first, "checked", "--format", "v3", "--verify", says="0.0")
        self.refused("copy", first, "checked", "--link", "--verify", says="0.0")

    def test_links_that_cannot_be_are_told(self):
        first = self.make("first", GRID, "--format", "v2", "--chunks", "5,4", "--codec", "zlib:3")
        done = self.run_program("copy", first, "second", "--format", "zmeta", "--link")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nothing is linked: the codecs bytes + zlib:3 become bytes + blosc", done.stdout + done.stderr)
        np.testing.assert_array_equal(self.exported("second"), GRID)

    def test_concessions_are_printed(self):
        first = self.make("first", GRID, "--format", "v3", "--chunks", "2,5", "--shard", "4,10", "--codec",
                          "delta,zstd:3,crc32c")
        for to, says in [("v2", ["shards of (4, 10) become chunks of (2, 5)"]),
                         ("v1", ["shards of", "delta", "zstd:3 becomes blosc:zlib:3:shuffle"]),
                         ("zmeta", ["shards of", "delta", "blosc:zlib"])]:
            done = self.run_program("copy", first, to, "--format", to)
            self.assertEqual(done.returncode, 0, done.stderr)
            for text in says:
                self.assertIn(text, done.stdout + done.stderr)
            (plan,) = self.tessera_json("copy", first, f"{to}_dry", "--format", to, "--dry-run")["arrays"]
            self.assertIn(says[0], " ".join(plan["changes"]))
            self.assertEqual(self.content(to), self.content(first))

    def test_what_is_asked_for_is_not_conceded(self):
        first = self.make("first", GRID, "--format", "v2", "--chunks", "5,4")
        self.refused("copy", first, "second", "--format", "zmeta", "--codec", "zlib:3", says=["zmeta", "zlib:3"])
        self.assertFalse((self.folder / "second").exists())

    def test_refusals_name_the_member(self):
        words = self.make("words", np.array(["a", "bc"]), "--format", "v2", "--fill", "")
        self.tessera("create", "nan", "--shape", "4", "--dtype", "<f4", "--format", "v3")
        metadata = self.zarr_json("nan")
        metadata["fill_value"] = "0x7fc00001"
        (self.folder / "nan" / "zarr.json").write_text(json.dumps(metadata))
        self.tessera("create", "complex", "--shape", "4", "--dtype", "<c8", "--format", "v2", "--fill", "[1, 2]")
        self.tessera("create", "text", "--shape", "4", "--dtype", "string", "--format", "v3")
        self.tessera("create", "single", "--shape", "", "--dtype", "<i4", "--format", "v2")
        self.tessera("create", "double", "--shape", "3", "--dtype", "<f16", "--format", "v2")
        before = digest(self.folder)
        for name, to, says in [("nan", "v2", "fill_value"), ("nan", "zmeta", "fill_value"),
                               ("complex", "v1", "fill_value"), ("text", "zmeta", "elements of type string"),
                               ("single", "v1", "without dimensions"), ("double", "v3", "data_type")]:
            line = self.refused("copy", name, "refused", "--format", to, says=[name, says])
        self.assertEqual(digest(self.folder), before)
        self.tessera("copy", words, "words_v3", "--format", "v3")

    def test_fill_values_survive_to_the_last_bit(self):
        self.tessera("create", "nan", "--shape", "4", "--dtype", "<f4", "--format", "v3")
        metadata = self.zarr_json("nan")
        metadata["fill_value"] = "0x7fc00001"
        (self.folder / "nan" / "zarr.json").write_text(json.dumps(metadata))
        self.tessera("copy", "nan", "again", "--chunks", "2")
        self.assertEqual(self.zarr_json("again")["fill_value"], "0x7fc00001")
        self.assertEqual(self.exported("again").tobytes(), b"\1\0\xc0\x7f" * 4)
        for dtype, fill in [("<f8", "NaN"), ("<f8", "-Infinity"), ("<f4", "0.1"), ("<M8[s]", "NaT"), ("S3", "ab"),
                            ("<U3", "é"), ("b1", "true"), ("<u8", "18446744073709551615")]:
            self.tessera("create", "z", "--shape", "3", "--dtype", dtype, "--fill=" + fill, "--overwrite")
            whole = self.exported("z").tobytes()
            for to in "v1", "v2", "v3":
                self.tessera("copy", "z", to, "--format", to, "--overwrite")
                self.assertEqual(self.exported(to).tobytes(), whole, (dtype, fill, to))
                # Python's own reading of JSON would hide a bare NaN.
                if to in ("v2", "v3"):
                    json.loads((self.folder / to / METADATA[to]).read_text(), parse_constant=self.fail)
            self.tessera("copy", "v3", "back", "--format", "zmeta", "--overwrite")
            self.assertEqual(self.exported("back").tobytes(), whole, (dtype, fill))

    def test_new_fill_values_are_spelt_as_json_has_them(self):
        for fmt in "v2", "v3":
            for dtype, fill, stored in [("<f4", "NaN", "NaN"), ("<f8", "-Infinity", "-Infinity"), ("<i4", "3.0", 3),
                                        ("<c8", "[1.5, NaN]", [1.5, "NaN"])]:
                self.tessera("create", "z", "--shape", "3", "--dtype", dtype, "--format", fmt, "--fill=" + fill,
                             "--overwrite")
                text = (self.folder / "z" / METADATA[fmt]).read_text()
                self.assertEqual(json.loads(text, parse_constant=self.fail)["fill_value"], stored)
                self.tessera("copy", "z", "again", "--fill=" + fill, "--overwrite")
                self.assertEqual((self.folder / "again" / METADATA[fmt]).read_text(), text)

    def test_dimension_names_become_xarrays_attribute_and_come_back(self):
        first = self.make("first", GRID, "--format", "v3")
        self.tessera("create", "named", "--shape", "12,10", "--dtype", "<i4", "--format", "v3", "--dims", "lat,lon",
                     "--attrs", '{"units": "m"}')
        done = self.run_program("copy", "named", "v2", "--format", "v2")
        self.assertIn("dimension_names become the attribute _ARRAY_DIMENSIONS", done.stdout + done.stderr)
        self.assertEqual(self.tessera_json("attrs", "v2"), {"units": "m", "_ARRAY_DIMENSIONS": ["lat", "lon"]})
        self.run_program("copy", "v2", "back", "--format", "v3")
        self.assertEqual(self.zarr_json("back")["dimension_names"], ["lat", "lon"])
        self.assertEqual(self.tessera_json("attrs", "back"), {"units": "m"})
        self.assertNotIn("dimension_names", self.zarr_json(first))


class Groups(ProgramTest):
    def make_survey(self, path, fmt="v3"):
        self.tessera("group", path, "--format", fmt, "--attrs", '{"title": "Survey"}')
        self.tessera("group", f"{path}/2026", "--attrs", '{"year": 2026}')
        self.save("grid.npy", GRID)
        self.save("line.npy", np.linspace(0, 1, 30))
        for name, at, chunks in ("grid", "2026/grid", "5,4"), ("line", "line", "7"):
            self.tessera("import", f"{name}.npy", f"{path}/{at}", "--format", fmt, "--chunks", chunks, "--codec", "gzip:5",
                         "--fill", "0")

    def check_survey(self, path, at="{}/{}"):
        np.testing.assert_array_equal(self.exported(at.format(path, "2026/grid")), GRID)
        np.testing.assert_array_equal(self.exported(at.format(path, "line")), np.linspace(0, 1, 30))

    def test_a_group_goes_from_v3_to_v2_and_zarr_python_reads_it(self):
        self.make_survey("survey")
        self.tessera("copy", "survey", "old", "--format", "v2")
        self.check_survey("old")
        root = zarr.open_group(self.path("old"), mode="r")
        self.assertEqual(dict(root.attrs), {"title": "Survey"})
        self.assertEqual(dict(root["2026"].attrs), {"year": 2026})
        np.testing.assert_array_equal(root["2026/grid"][...], GRID)
        self.tessera("copy", "old", "new", "--format", "v3")
        self.check_survey("new")
        self.assertEqual(self.tessera_json("attrs", "new/2026"), {"year": 2026})

    def test_consolidated_metadata_and_seals_are_not_dropped_without_a_word(self):
        self.tessera("group", "g", "--format", "v2", "--quiet")
        self.save("x.npy", GRID)
        self.tessera("import", "x.npy", "g/a", "--quiet")
        self.tessera("consolidate", "g", "--quiet")
        self.tessera("copy", "g", "h", "--format", "v3", "--quiet")
        self.assertIn("match the nodes", self.tessera("consolidate", "h", "--check"))
        self.tessera("seal", "g", "--quiet")
        done = self.run_program("copy", "g", "i")
        self.assertIn("g is sealed, and i is not; `tessera seal i` seals it", done.stderr)
        self.assertTrue((self.folder / "i" / ".zmetadata").exists())
        self.assertIn("are not copied", self.run_program("copy", "g", "g.zip").stderr)

    def test_a_dry_run_of_a_group_lists_its_arrays(self):
        self.make_survey("survey")
        before = digest(self.folder)
        plans = self.tessera_json("copy", "survey", "old", "--format", "v2", "--dry-run")["arrays"]
        self.assertEqual({p["path"]: p["chunks_copied_as_they_are"] for p in plans},
                         {"old/2026/grid": True, "old/line": True})
        plans = self.tessera_json("copy", "survey", "old", "--format", "v2", "--codec", "zstd:3", "--dry-run")["arrays"]
        self.assertEqual([p["chunks_copied_as_they_are"] for p in plans], [False, False])
        self.assertEqual(digest(self.folder), before)

    def test_groups_without_a_place_for_attributes_are_refused(self):
        self.make_survey("survey")
        line = self.refused("copy", "survey", "old", "--format", "zmeta", says=["zmeta has no groups", "attributes"])
        self.assertIn("survey", line)
        self.assertFalse((self.folder / "old").exists())

    def test_a_plain_folder_of_the_oldest_arrays_becomes_groups(self):
        self.save("grid.npy", GRID)
        for name in "a", "sub/b":
            self.tessera("import", "grid.npy", f"plain/{name}", "--format", "zmeta", "--chunks", "5,4")
        self.tessera("copy", "plain", "grouped", "--format", "v2", "--link")
        root = zarr.open_group(self.path("grouped"), mode="r")
        np.testing.assert_array_equal(root["sub/b"][...], GRID)
        self.assertEqual((self.folder / "grouped/sub/b/0.0").stat().st_ino,
                         (self.folder / "plain/sub/b/__zdata__/0.0.blosc").stat().st_ino)

    def test_zips_are_written_as_python_takes_them(self):
        self.make_survey("survey", "v2")
        self.tessera("copy", "survey", "survey.zip")
        with zipfile.ZipFile(self.folder / "survey.zip") as archive:
            self.assertIsNone(archive.testzip())
            names = archive.namelist()
            self.assertEqual(len(names), len(set(names)))
            self.assertEqual({info.compress_type for info in archive.infolist()}, {zipfile.ZIP_STORED})
        store = zarr.ZipStore(self.path("survey.zip"), mode="r")
        root = zarr.open_group(store, mode="r")
        self.assertEqual(dict(root["2026"].attrs), {"year": 2026})
        np.testing.assert_array_equal(root["2026/grid"][...], GRID)
        store.close()
        self.check_survey("survey.zip")
        self.refused("copy", "survey", "survey.zip", says="--overwrite")

    def test_a_zip_of_very_many_chunks(self):
        """More members than the end of a small archive can count."""
        values = np.arange(65_540, dtype="u1")
        self.save("a.npy", values)
        self.tessera("import", "a.npy", "a.zip", "--chunks", "1", "--codec", "none", "--fill", "null", "--format", "v2", "--quiet")
        with zipfile.ZipFile(self.folder / "a.zip") as archive:
            self.assertGreater(len(archive.infolist()), 65_535)
            self.assertEqual(archive.read("65539"), bytes([65_539 % 256]))
        self.tessera("export", "a.zip", "b.npy", "--quiet")
        np.testing.assert_array_equal(np.load(self.folder / "b.npy"), values)

    def test_a_zip_is_a_source_too(self):
        self.make_survey("survey", "v2")
        store = zarr.ZipStore(self.path("python.zip"), mode="w")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it writes attributes twice; the last ones count
            zarr.copy_all(zarr.open_group(self.path("survey"), mode="r"), zarr.open_group(store, mode="w"))
            store.close()
        self.tessera("copy", "python.zip", "unpacked", "--format", "v3")
        self.check_survey("unpacked")
        self.assertEqual(self.tessera_json("attrs", "unpacked"), {"title": "Survey"})
        self.tessera("copy", "python.zip", "again.zip")
        with zipfile.ZipFile(self.folder / "again.zip") as archive:
            self.assertEqual(len(archive.namelist()), len(set(archive.namelist())))
        self.tessera("copy", "python.zip/2026/grid", "grid")
        np.testing.assert_array_equal(self.exported("grid"), GRID)


class FollowingFormats(ProgramTest):
    """A format that follows from what is asked, and fills that other programs do not take for values."""

    def format_of(self, path):
        return self.tessera_json("info", path)["format"]

    def made(self, *words, **options):
        """Runs a command that makes `out`; its line, its notes and the format."""
        result = self.run_program(*words, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        found = self.format_of("out")
        self.tessera("rm", "out", "--recursive")
        return result.stdout, result.stderr, found

    def test_v3_where_the_default_cannot_say_it(self):
        self.save("x.npy", GRID)
        self.tessera("import", "x.npy", "a", "--quiet")
        create = ["create", "out", "--shape", "4,6", "--dtype", "<i4"]
        for words in (create, ["import", "x.npy", "out"], ["copy", "a", "out"], ["calc", "out", "a + 1", "a=a"],
                      ["reduce", "a", "out", "--axis", "0", "--with", "max"], ["stack", "x.npy", "x.npy", "out"]):
            line, notes, found = self.made(*words)
            self.assertEqual((notes, found), ("", "zmeta"), words)
            self.assertIn("zmeta", line)
            for more in (["--codec", "zstd:3"], ["--chunks", "2,3", "--shard", "4,6"], ["--dims", "y,x"]):
                if words[0] in ("reduce", "stack", "calc") and more[0] != "--codec":
                    continue
                line, notes, found = self.made(*words, *more)
                self.assertEqual(found, "v3", (words, more))
                self.assertIn("v3", line)
                self.assertEqual(notes.count("made in format v3, because zmeta"), 1, notes)
        self.tessera("group", "older", "--format", "v2", "--quiet")  # is no default
        self.refused("create", "older/out", "--shape", "4", "--dtype", "<i4", "--shard", "4", "--chunks", "2",
                     says="; --format v3 can")
        np.savez(self.folder / "two.npz", x=GRID, y=GRID[0])
        result = self.run_program("import", "two.npz", "out", "--codec", "zstd:3")
        self.assertEqual((result.returncode, result.stderr.count("made in format v3")), (0, 1), result.stderr)
        self.assertEqual([self.format_of(f"out/{name}") for name in "xy"], ["v3", "v3"])

    def test_attributes_of_groups_where_there_is_no_place(self):
        self.tessera("group", "g", "--format", "v3", "--quiet")
        self.save("x.npy", GRID)
        self.tessera("import", "x.npy", "g/a", "--codec", "blosc:lz4:5", "--quiet")
        self.tessera("attrs", "g", "set", "title", "survey")
        self.tessera("attrs", "g/a", "set", "units", "m")
        self.refused("copy", "g", "h", "--format", "zmeta", says=["attributes", "--drop-attributes"])
        self.assertFalse((self.folder / "h").exists())
        done = self.run_program("copy", "g", "h", "--format", "zmeta", "--drop-attributes")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("left out, because zmeta has no groups: title", done.stderr)
        np.testing.assert_array_equal(self.exported("h/a"), GRID)
        self.assertEqual(self.tessera_json("attrs", "h/a"), {"units": "m"})
        self.assertEqual(self.tessera_json("attrs", "g"), {"title": "survey"})

    def test_a_codec_that_is_asked_for_is_used(self):
        """Other levels and compressors would decode the old chunks, too: they are encoded anew all the same."""
        noise = np.random.default_rng(3).integers(0, 40, (64, 64)).astype("<i4")
        for form, old, new in (("v2", "blosc:lz4:1:shuffle", "blosc:zstd:9:bitshuffle"), ("v3", "zstd:1", "zstd:19"),
                               ("zmeta", "blosc:lz4:1", "blosc:zlib:9"), ("v2", "zlib:1", "zlib:9")):
            with self.subTest(form, new=new):
                self.save("n.npy", noise)
                self.tessera("import", "n.npy", "old", "--format", form, "--codec", old, "--overwrite", "--quiet")
                self.tessera("copy", "old", "new", "--codec", new, "--overwrite", "--quiet")
                self.tessera("import", "n.npy", "fresh", "--format", form, "--codec", new, "--overwrite", "--quiet")
                np.testing.assert_array_equal(self.exported("new"), noise)
                chunks = [path.relative_to(self.folder / "fresh") for path in (self.folder / "fresh").rglob("*")
                          if path.is_file() and path.name not in METADATA.values() and ".tessera" not in path.parts]
                self.assertTrue(chunks)
                for chunk in chunks:
                    self.assertEqual((self.folder / "new" / chunk).read_bytes(), (self.folder / "fresh" / chunk).read_bytes())
                (plan,) = self.tessera_json("copy", "old", "x", "--codec", old, "--dry-run")["arrays"]
                self.assertTrue(plan["chunks_copied_as_they_are"])

    def test_another_default(self):
        self.save("x.npy", GRID)
        for words in (["create", "out", "--shape", "4,6", "--dtype", "<i4"], ["import", "x.npy", "out"],
                      ["group", "out"]):
            for form in ("v2", "v3"):
                line, notes, found = self.made(*words, env={**os.environ, "TESSERA_FORMAT": form})
                self.assertEqual((notes, found), ("", form))
                self.assertIn(form, line)
        self.refused("import", "x.npy", "out", env={**os.environ, "TESSERA_FORMAT": "v9"}, says=["TESSERA_FORMAT", "v9", "v3"])

    def test_data_without_a_fill_have_none_in_v2(self):
        zeros = np.zeros((4, 6), "<f4")
        zeros[0, 0] = 1
        self.save("z.npy", zeros)
        self.tessera("import", "z.npy", "z", "--format", "v2", "--dims", "a,b")
        self.assertIsNone(json.loads((self.folder / "z/.zarray").read_text())["fill_value"])
        np.testing.assert_array_equal(zarr.open(self.path("z"), mode="r")[:], zeros)
        self.tessera("calc", "c", "a * 0", "a=z.npy", "--format", "v2")
        self.assertIsNone(json.loads((self.folder / "c/.zarray").read_text())["fill_value"])
        np.testing.assert_array_equal(zarr.open(self.path("c"), mode="r")[:], zeros * 0)
        self.tessera("import", "z.npy", "f", "--format", "v2", "--fill", "0")
        self.assertEqual(json.loads((self.folder / "f/.zarray").read_text())["fill_value"], 0)

    def test_elements_without_a_value_are_named(self):
        words = ["create", "n", "--shape", "4,6", "--chunks", "4,3", "--dtype", "<f4", "--format", "v2", "--dims", "a,b"]
        result = self.run_program(*words)
        self.assertIn("the fill value is null", result.stderr)
        self.assertIn("--fill", result.stderr)
        self.assertIsNone(json.loads((self.folder / "n/.zarray").read_text())["fill_value"])
        said = "2 chunks were never stored"
        self.assertIn(said, self.tessera("info", "n"))
        self.assertIn(said, self.tessera("verify", "n"))
        self.tessera("set", "n", "...", "0", "--quiet")
        self.assertNotIn("never stored", self.tessera("info", "n") + self.tessera("verify", "n"))
        self.assertIn("the new elements have no value", self.run_program("resize", "n", "4,9").stderr)
        self.assertEqual(self.run_program("resize", "n", "4,3").stderr, "")
        (self.folder / "s").write_text("resize 4,6\n")
        self.assertIn("the new elements have no value", self.run_program("edit", "n", "--script", "s").stderr)
        self.tessera(*words, "--fill", "0", "--overwrite")
        self.assertNotIn("never stored", self.tessera("info", "n"))
        self.assertEqual(self.run_program("resize", "n", "4,9").stderr, "")



class Notes(ProgramTest):
    def test_a_note_about_several_arrays_is_one_line(self):
        self.save("x.npy", np.arange(6, dtype="<i4"))
        self.tessera("group", "g.zarr", "--format", "v3", "--quiet")
        for n in range(5):
            self.tessera("copy", "x.npy", f"g.zarr/a{n}", "--codec", "zstd:3", "--format", "v3", "--quiet")
        self.tessera("copy", "x.npy", "g.zarr/b", "--codec", "gzip:3", "--format", "v3", "--quiet")
        notes = self.run_program("copy", "g.zarr", "h.zarr", "--format", "zmeta").stderr.splitlines()
        shared = [line for line in notes if "a0" in line]
        self.assertTrue(shared and all("a0, a1, a2 and" in line and "arrays: " in line for line in shared), notes)
        self.assertEqual(len(notes), len(set(notes)))
        self.assertEqual([line for line in notes if "/a3" in line or "/a4" in line], [])
        each = self.run_program("copy", "g.zarr", "i.zarr", "--format", "zmeta", "--json").stderr.splitlines()
        self.assertGreater(len(each), len(notes), "--json has each by itself")


if __name__ == "__main__":
    program.main()
