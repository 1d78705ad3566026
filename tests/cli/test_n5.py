"""N5 that zarr-python 2, TensorStore and z5 wrote, read in place and copied to Zarr."""

import json
import struct
import tarfile
import unittest

import numpy as np

from program import GOLDEN, ProgramTest, main

VOLUME = np.load(GOLDEN / "n5" / "volume.npy")
SETS = {"zarr.n5/types/u4": "<u4", "tensorstore.n5/s0": "<u2", "z5.n5/deep/volume": "<u2"}


class N5(ProgramTest):
    def setUp(self):
        super().setUp()
        with tarfile.open(GOLDEN / "n5" / "sets.tar.xz") as archive:
            archive.extractall(self.folder)

    def values(self, path):
        self.tessera("copy", path, "out.npy", "--overwrite", "--quiet")
        return np.load(self.folder / "out.npy")

    def document(self, name):
        return json.loads((self.folder / name).read_text())

    def made(self, name, block=b"", **members):
        """A data set with one block at 0/0."""
        folder = self.folder / name
        (folder / "0").mkdir(parents=True)
        whole = {"dimensions": [3, 2], "blockSize": [3, 2], "dataType": "uint8", "compression": {"type": "raw"}} | members
        (folder / "attributes.json").write_text(json.dumps(whole))
        (folder / "0" / "0").write_bytes(block)
        return name


class Reading(N5):
    def test_data_sets_of_all_writers(self):
        for name, dtype in SETS.items():
            with self.subTest(name):
                np.testing.assert_array_equal(self.values(name), VOLUME)
                self.assertEqual(self.values("n5:" + name).dtype, np.dtype(dtype).newbyteorder(">"))
                self.assertEqual(self.tessera("get", name, "6, 4, 8").strip(), str(VOLUME[6, 4, 8]))
                self.assertIn("sound", self.tessera("verify", name))

    def test_codecs_and_types(self):
        expected = VOLUME.copy()
        expected[6:] = 0  # its blocks are not there
        for name in "raw gzip zlib bzip2 xz blosc zstd lz4".split():
            with self.subTest(name):
                np.testing.assert_array_equal(self.values(f"zarr.n5/codecs/{name}"), expected)
        for kind in "i1 u4 i8 f4 f8".split():
            with self.subTest(kind):
                np.testing.assert_array_equal(self.values(f"zarr.n5/types/{kind}"), VOLUME.astype(kind))

    def test_a_copy_is_zarr_that_others_read(self):
        for name, form in ("zarr.n5", "v3"), ("z5.n5", "v3"), ("z5.n5", "v2"):
            copy = f"{name}-{form}"
            self.tessera("copy", name, copy, "--format", form, "--quiet")
            self.tessera("diff", name, copy)
            self.assertIn("sound", self.tessera("verify", copy))
        # Whole blocks are taken as they are, without their headers.
        block = (self.folder / "zarr.n5" / "codecs" / "zstd" / "1" / "0" / "0").read_bytes()
        self.assertEqual((self.folder / "zarr.n5-v3" / "codecs" / "zstd" / "c" / "0" / "0" / "1").read_bytes(), block[16:])
        self.assertEqual(self.document("z5.n5-v3/deep/zarr.json")["attributes"], {"of": "a group without the version"})
        try:
            import zarr
        except ImportError:
            return
        if zarr.__version__.startswith("2."):
            read = zarr.open(str(self.folder / "z5.n5-v2"), mode="r")["deep/volume"][:]
            np.testing.assert_array_equal(read, VOLUME)

    def test_attributes_and_names_of_dimensions(self):
        self.assertEqual(self.tessera_json("attrs", "zarr.n5"), {"title": "written by zarr-python"})
        self.assertEqual(self.tessera_json("attrs", "z5.n5/deep/volume"), {"offset": [1, 2, 3]})
        for name in "zarr.n5/types/f4", "zarr.n5/types/f8", "tensorstore.n5/s0":
            self.assertEqual(self.tessera_json("info", name)["dimension_names"], ["z", "y", "x"], name)
        attributes = self.tessera_json("attrs", "zarr.n5/types/f4")
        self.assertEqual(attributes["resolution"], [4.0, 4.0, 40.0])  # as it stands there

    def test_other_commands(self):
        tree = self.tessera("tree", "zarr.n5")
        self.assertEqual((tree.count("7×5×9"), "codecs/  v3 group" in tree), (13, True))
        self.assertEqual(self.tessera_json("stats", "z5.n5/deep/volume")["max"], int(VOLUME.max()))
        facts = self.tessera_json("info", "zarr.n5/codecs/raw")
        self.assertEqual((facts["chunks"], facts["chunks_stored"], facts["chunks_possible"]), ([3, 4, 2], 20, 30))
        self.tessera("view", "tensorstore.n5/s0")
        self.tessera("copy", "tensorstore.n5/s0", "same.zarr", "--format", "v2", "--quiet")
        self.assertEqual(*(self.tessera("digest", name).split()[0] for name in ("tensorstore.n5/s0", "same.zarr")))

    def test_it_is_not_written_to(self):
        before = (self.folder / "z5.n5" / "deep" / "volume" / "attributes.json").read_bytes()
        name = "z5.n5/deep/volume"
        for words in (["set", name, "0", "1"], ["attrs", name, "set", "a", "1"], ["resize", name, "8,8,8"], ["rm", name],
                      ["append", name, name], ["seal", "z5.n5"], ["set", f"n5:{name}", "0", "1"],
                      ["copy", name, "n5:new.n5"]):
            with self.subTest(" ".join(words)):
                self.refused(*words, says="N5 is only read")
        self.assertEqual((self.folder / "z5.n5" / "deep" / "volume" / "attributes.json").read_bytes(), before)


class Hostile(N5):
    def test_what_is_not_read_is_named(self):
        for number, (members, said) in enumerate((
                ({"dataType": "string"}, 'member "dataType"'), ({"dataType": 7}, 'member "dataType"'),
                ({"compression": {"type": "jpeg"}}, "jpeg"), ({"compression": {"type": "lz4", "blockSize": 65536}}, "Java's frames"),
                ({"compression": 7}, 'member "compression"'), ({"dimensions": []}, "one at least"),
                ({"dimensions": [3, -1]}, 'member "dimensions"'), ({"blockSize": [0, 1]}, 'member "blockSize"'),
                ({"blockSize": [3]}, "shape"), ({"dimensions": [1 << 62] * 2, "blockSize": [1 << 62] * 2}, ""),
                ({"dimensions": [1] * 40, "blockSize": [1] * 40}, "32"))):
            with self.subTest(str(members)):
                self.refused("get", self.made(f"set{number}", **members), ":", says=said)

    def test_headers_that_lie(self):
        for number, (block, said) in enumerate((
                (b"", "too few for a block's header"), (b"\0" * 11, "too few for a block's header"),
                (struct.pack(">HHIII", 1, 2, 3, 2, 6) + bytes(6), "of elements that vary in length"),
                (struct.pack(">HHI", 2, 0, 6) + bytes(6), "of objects"),
                (struct.pack(">HHIII", 0, 3, 3, 2, 1) + bytes(6), "3 dimensions, expected 2"),
                (struct.pack(">HHII", 0, 2, 0xffffffff, 0xffffffff) + bytes(6), "expected at most"),
                (struct.pack(">HHII", 0, 2, 3, 0), "expected at most"), (struct.pack(">HHII", 0, 2, 2, 3) + bytes(6), "at most"),
                (struct.pack(">HHII", 0, 2, 2, 2) + bytes(3), "3 bytes"), (struct.pack(">HHII", 0, 2, 3, 2) + bytes(5), ""))):
            with self.subTest(said):
                name = self.made(f"set{number}", block)
                self.refused("get", name, ":", says=said)
                self.assertIn("unchecked" if "of " in said else "damage", self.run_program("verify", name).stdout)

    def test_cut_blocks(self):
        name = self.made("set", struct.pack(">HHII", 0, 2, 2, 1) + b"\x07\x08")
        np.testing.assert_array_equal(self.values(name), [[7, 8, 0], [0, 0, 0]])

    def test_other_files_of_that_name(self):
        """They are of plain folders, of which nothing changes."""
        self.tessera("create", "plain/a", "--shape", "2", "--dtype", "<i4", "--quiet")
        for text in '{"title": "x"}', "no JSON", "[1]":
            (self.folder / "plain" / "attributes.json").write_text(text)
            self.assertIn("zmeta", self.tessera("tree", "plain"))

    def test_links(self):
        (self.folder / "z5.n5" / "again").symlink_to("..", target_is_directory=True)
        self.assertEqual(self.tessera("tree", "z5.n5").count("7×5×9"), 1)
        outside = self.made("outside", struct.pack(">HHII", 0, 2, 3, 2) + bytes(6))
        name = self.made("z5.n5/linked", b"")
        (self.folder / name / "0" / "0").unlink()
        (self.folder / name / "0" / "0").symlink_to(self.folder / outside / "0" / "0")
        self.refused("get", name, ":", says="leads out of")
        self.tessera("get", name, ":", "--follow-links")


if __name__ == "__main__":
    main()
