"""RawArray files and object arrays through the program."""

import hashlib

import numpy as np

import program
from program import GOLDEN, ProgramTest


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


if __name__ == "__main__":
    program.main()
