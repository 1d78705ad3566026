"""References in Parquet that kerchunk and fsspec wrote, read in place."""

import json
import random
import shutil
import tarfile
import unittest

import numpy as np

from program import FEWER, GOLDEN, ProgramTest, main

VOLUME = (np.arange(42) * 7919 % 251).reshape(7, 6).astype("<u2")
EXPECTED = VOLUME.copy()
EXPECTED[2:4, 3:] = 0  # a chunk that is not stored


class Unpacked(ProgramTest):
    def setUp(self):
        super().setUp()
        with tarfile.open(GOLDEN / "parquet" / "references.tar.xz") as archive:
            archive.extractall(self.folder)

    def values(self, path, *words):
        self.tessera("copy", path, "out.npy", "--overwrite", "--quiet", *words)
        return np.load(self.folder / "out.npy")


class References(Unpacked):
    def test_those_of_all_writers(self):
        for name in "kerchunk.parq", "fastparquet.parq", "pyarrow.parq":
            with self.subTest(name):
                np.testing.assert_array_equal(self.values(f"{name}/v"), EXPECTED)
                np.testing.assert_array_equal(self.values(f"{name}/g/many")[:, 0], np.arange(3000))
                np.testing.assert_array_equal(self.values(f"{name}/raw"), VOLUME[0])
                self.assertEqual(self.values(f"{name}/scalar"), 2.5)
                self.assertEqual(self.tessera_json("info", name)["attributes"], {"title": "t"})
                tree = self.tessera("tree", name)
                self.assertEqual([tree.count(text) for text in ("v2 group", "3000×1", "7×6")], [2, 1, 1])
                self.assertIn("3010 of 3,011 chunks stored", self.tessera("verify", name))

    def test_a_copy_needs_them_no_more(self):
        self.tessera("copy", "kerchunk.parq", "copy.zarr", "--format", "v3", "--quiet")
        self.tessera("diff", "kerchunk.parq", "copy.zarr")
        (self.folder / "chunks.bin").unlink()
        np.testing.assert_array_equal(self.values("copy.zarr/v"), EXPECTED)
        self.refused("get", "kerchunk.parq/v", says="it is not there")

    def test_what_they_lead_to_is_not_overwritten(self):
        (self.folder / "same.npy").hardlink_to(self.folder / "chunks.bin")
        self.refused("calc", "same.npy", "a + 1", "a=kerchunk.parq/v", "--overwrite", says="they overlap")
        self.assertTrue((self.folder / "same.npy").samefile(self.folder / "chunks.bin"))

    def test_they_are_not_changed(self):
        for words in ["set", "kerchunk.parq/v", "0", "1"], ["attrs", "kerchunk.parq", "set", "a", "1"]:
            self.refused(*words, says="references are never changed")

    def test_other_folders_with_consolidated_metadata(self):
        self.tessera("copy", "kerchunk.parq", "two.zarr", "--format", "v2", "--quiet")
        self.tessera("consolidate", "two.zarr", "--quiet")
        self.tessera("attrs", "two.zarr", "set", "record_size", "7", "--quiet")
        np.testing.assert_array_equal(self.values("two.zarr/v"), EXPECTED)
        self.assertEqual(self.tessera("attrs", "two.zarr", "get", "record_size"), "7\n")


class Hostile(Unpacked):
    def change_document(self, change):
        path = self.folder / "kerchunk.parq" / ".zmetadata"
        document = json.loads(path.read_text())
        change(document)
        path.write_text(json.dumps(document))

    def test_documents(self):
        def separator(document):
            document["metadata"]["v/.zarray"]["dimension_separator"] = "/"

        def shape(document):
            document["metadata"]["v/.zarray"]["shape"] = [1 << 62, 1 << 62]

        for change, said in ((separator, 'separator "/"'), (shape, ""), (lambda d: d.update(record_size=0), "record_size is 0"),
                             (lambda d: d.update(metadata=7), ""), (lambda d: d["metadata"].update({"a/../b": {}}), "not a key")):
            kept = (self.folder / "kerchunk.parq" / ".zmetadata").read_bytes()
            self.change_document(change)
            self.refused("get", "kerchunk.parq/v", says=said)
            (self.folder / "kerchunk.parq" / ".zmetadata").write_bytes(kept)

    def test_files_elsewhere(self):
        """Paths keep to the folder in which the references lie, as those of JSON do."""
        (self.folder / "below").mkdir()
        shutil.move(self.folder / "kerchunk.parq", self.folder / "below")
        self.refused("get", "below/kerchunk.parq/v", says="it is not there")
        (self.folder / "below" / "chunks.bin").symlink_to("../chunks.bin")
        self.refused("get", "below/kerchunk.parq/v", says="do not lead through symbolic links")
        np.testing.assert_array_equal(self.values("below/kerchunk.parq/v", "--allow-outside"), EXPECTED)

    def test_damaged_records(self):
        """Whatever a byte is changed to, the answer is that of the file, other elements or an error, and nothing else."""
        draw = random.Random(11)
        for name, array in ("kerchunk.parq", "v"), ("pyarrow.parq", "g/many"):
            file = self.folder / name / array / "refs.0.parq"
            whole = file.read_bytes()
            for n in range(40 // FEWER + 1):
                damaged = bytearray(whole)
                if n % 4 == 0:
                    del damaged[draw.randrange(len(whole)):]
                else:  # the metadata at the end are most of the file
                    damaged[draw.randrange(len(whole))] = draw.randrange(256)
                file.write_bytes(damaged)
                result = self.run_program("stats", f"{name}/{array}", "--max-memory", "64M")
                self.assertIn(result.returncode, (0, 1, 2), result.stderr)
                self.assertNotIn("internal", result.stderr)
            file.write_bytes(whole)

    def test_other_codecs_are_named(self):
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise unittest.SkipTest("pyarrow is not installed") from None
        table = pyarrow.parquet.read_table(self.folder / "pyarrow.parq" / "v" / "refs.0.parq")
        pyarrow.parquet.write_table(table, self.folder / "pyarrow.parq" / "v" / "refs.0.parq", compression="snappy")
        self.refused("get", "pyarrow.parq/v", says="compressed by snappy")


if __name__ == "__main__":
    main()
