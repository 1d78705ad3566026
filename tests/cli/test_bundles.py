"""Data sets of several arrays: MLDF files, and directories of arrays exported into one file."""

import io
import json
import struct
import warnings
import zipfile

import numpy as np

import program
from program import GOLDEN, ProgramTest

MLDF = GOLDEN / "mldf"


def expected(name, field):
    return [sample[field] for sample in json.loads((MLDF / f"{name}.expected.json").read_text())["samples"]]


class Mldf(ProgramTest):
    def test_info_shows_the_header_and_the_fields(self):
        info = self.tessera_json("info", MLDF / "stride_204.mldf")
        self.assertEqual(info["format"], "mldf")
        header = info["header"]
        self.assertEqual(header["version"], "1.0")
        self.assertEqual(header["descriptor_size"], 204)
        self.assertEqual(header["pointers"]["data"], 1536)
        self.assertEqual([f["type"] for f in header["fields"]], ["INT", "BYTES", "NDARRAY", "IMAGE_RAW", "TEXT_RAW", "JSON"])
        self.assertEqual(header["problem_count"], 0)
        self.assertIn("204", header["warnings"][0])
        text = self.tessera("info", MLDF / "all_fields.mldf")
        self.assertIn("::vec  5×2×3  <f4", text)

    def test_info_shows_what_is_wrong(self):
        header = self.tessera_json("info", GOLDEN / "bad" / "mldf" / "allocations_overlap.mldf")["header"]
        self.assertGreater(header["problem_count"], 0)
        self.assertIn("overlaps", "".join(header["problems"]))
        self.refused("info", MLDF / "error_magic_crlf.mldf", says="CR LF")

    def test_one_field_is_an_array(self):
        self.tessera("import", f"{MLDF}/other_fields.mldf::score", "score")
        np.testing.assert_array_equal(self.exported("score"), expected("other_fields", "score"))
        self.tessera("copy", f"{MLDF}/all_fields.mldf::text", "text.npy")
        self.assertEqual(np.load(self.folder / "text.npy").tolist(), expected("all_fields", "text"))
        self.refused("copy", MLDF / "all_fields.mldf", "all.npy", says="label, blob, vec")

    def test_a_data_set_becomes_arrays_and_again_a_data_set(self):
        rng = np.random.default_rng(1)
        arrays = {
            "label": rng.integers(-9, 9, 700),
            "score": rng.random(700),
            "vec": rng.random((700, 3, 2)).astype("<f4"),
            "word": np.array(["a", "bc"] * 350),
        }
        np.savez(self.folder / "first.npz", **arrays)
        for name in arrays:
            self.tessera("import", f"first.npz::{name}", f"first/{name}")
        self.tessera("export", "first", "first.mldf")
        fields = self.tessera_json("info", "first.mldf")["header"]["fields"]
        self.assertEqual([(f["name"], f["type"]) for f in fields],
                         [("label", "INT"), ("score", "FLOAT"), ("vec", "NDARRAY"), ("word", "NDARRAY")])
        report = self.tessera("import", "first.mldf", "second")
        self.assertEqual(len(report.splitlines()), 4)
        for name, array in arrays.items():
            np.testing.assert_array_equal(self.exported(f"second/{name}"), array)
        # With a budget of a few samples at a time the file is the same.
        self.tessera("export", "second", "second.mldf", "--max-memory", "4K")
        self.assertEqual((self.folder / "second.mldf").read_bytes(), (self.folder / "first.mldf").read_bytes())
        self.assertEqual([p.name for p in self.folder.glob(".tessera*")], [])

    def test_what_makes_no_data_set_is_refused(self):
        self.save("a.npy", np.zeros(3))
        self.save("b.npy", np.zeros(4))
        for name in "a", "b":
            self.tessera("import", f"{name}.npy", f"set/{name}")
        self.refused("export", "set", "set.mldf", says="first lengths must be equal")
        self.refused("export", "set", "set.npy", says=["2 arrays", ".npz or .mldf"])
        self.refused("export", "set", "set.npz::a", says="2 arrays")
        self.refused("export", "set", "set.npz", "--sel", "0", says="time@0:10")
        self.assertEqual([p.name for p in self.folder.glob("*set.*")], [])


class Npz(ProgramTest):
    def test_members_that_cannot_lie_beside_each_other_are_refused(self):
        for first, second in [("a", "a/c"), ("a/c/0", "a"), ("a", "a"), ("zarr.json", "b"), ("b", "g/.zgroup")]:
            for fmt in ("zmeta", "v2", "v3"):
                with self.subTest((first, second, fmt)):
                    with zipfile.ZipFile(self.folder / "two.npz", "w") as file, warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        for name in (first, second):
                            content = io.BytesIO()
                            np.save(content, np.arange(4))
                            file.writestr(name + ".npy", content.getvalue())
                    self.refused("import", "two.npz", "out", "--format", fmt, says=["two.npz", "import"])
                    self.assertFalse((self.folder / "out").exists())

    def test_two_members_of_one_name_are_called_that(self):
        with zipfile.ZipFile(self.folder / "two.npz", "w") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for array in np.arange(4), np.ones((2, 2)):
                content = io.BytesIO()
                np.save(content, array)
                file.writestr("a.npy", content.getvalue())
        self.assertIn("a  npz: one of two members of this name", self.tessera("tree", "two.npz", code=1))
        self.assertIn("::a  one of two members of this name", self.tessera("info", "two.npz"))
        for command in ("copy", "import"):
            self.refused(command, "two.npz", "out", says="two.npz holds two members of the name a")
        self.refused("copy", "two.npz", "out.npz", says="two.npz holds two members of the name a")
        self.assertEqual(self.tessera_json("get", "two.npz::a"), [[1.0, 1.0], [1.0, 1.0]])

    def test_a_file_without_fields_shows_its_header(self):
        content = bytearray((MLDF / "one_field_label.mldf").read_bytes())
        struct.pack_into("<Q", content, 9 + 8, 0)   # num_samples
        struct.pack_into("<H", content, 9 + 16, 0)  # num_fields
        (self.folder / "none.mldf").write_bytes(content)
        self.assertEqual(self.tessera_json("info", "none.mldf")["header"]["num_fields"], 0)
        self.assertIn("page_size", self.tessera("info", "none.mldf"))
        np.savez(self.folder / "none.npz")
        self.assertEqual(self.tessera_json("info", "none.npz")["header"]["members"], [])

    def test_a_directory_of_arrays_becomes_an_npz(self):
        arrays = {"x": np.arange(5), "deep/y": np.ones((2, 3), order="F"), "z": np.float64(2)}
        for name, array in arrays.items():
            self.save("one.npy", array)
            self.tessera("import", "one.npy", f"set/{name}")
        self.assertIn("3 arrays", self.tessera("export", "set", "set.npz", "--deflate", "6"))
        with np.load(self.folder / "set.npz") as npz:
            self.assertEqual(sorted(npz.files), sorted(arrays))
            for name, array in arrays.items():
                np.testing.assert_array_equal(npz[name], array)
        self.refused("export", "set", "set.npz", says="--overwrite")
        value = self.tessera_json("export", "set", "set.npz", "--overwrite")
        self.assertEqual(sorted(m["path"] for m in value["arrays"]), sorted(f"set.npz::{name}" for name in arrays))
        self.assertEqual(value["stored_bytes"], (self.folder / "set.npz").stat().st_size)
        # And back.
        self.tessera("import", "set.npz", "again")
        np.testing.assert_array_equal(self.exported("again/deep/y"), arrays["deep/y"])


program.main()
