"""What reads while it writes: an array that is set from itself, by any way that leads to it; arrays in arrays."""

import json
import os

import numpy as np

from program import ProgramTest, main


class OverlapTest(ProgramTest):
    VALUES = np.arange(1_000_000, dtype="<i4")

    def setUp(self):
        super().setUp()
        np.save(self.folder / "x.npy", self.VALUES)
        self.tessera("copy", "x.npy", "a", "--chunks", "10000", "--format", "v2", "--codec", "none", "--quiet")
        (self.folder / "a.refs.json").write_text(self.tessera("refs", "a"))

    def set_from(self, target, source):
        """In blocks that are much smaller than the array."""
        self.tessera("set", target, "::-1", "@" + source, "--max-memory", "4M", "--quiet")
        np.testing.assert_array_equal(self.get(target), self.VALUES[::-1])

    def get(self, path):
        self.tessera("get", path, "--out", "out.npy", "--overwrite")
        return np.load(self.folder / "out.npy")

    def test_an_array_is_set_from_itself(self):
        self.set_from("a", "a")
        self.assertIn("is taken back", self.tessera("undo", "a"))
        np.testing.assert_array_equal(self.get("a"), self.VALUES)

    def test_through_a_link(self):
        os.symlink("a", self.folder / "link")
        self.set_from("a", "link")

    def test_through_references(self):
        self.set_from("a", "a.refs.json")

    def test_a_file_from_itself_and_through_a_hard_link(self):
        os.link(self.folder / "x.npy", self.folder / "y.npy")
        self.set_from("x.npy", "y.npy")

    def test_a_field(self):
        table = np.zeros(500_000, [("a", "<i4"), ("b", "<i4")])
        table["a"] = np.arange(500_000)
        np.save(self.folder / "t.npy", table)
        self.tessera("copy", "t.npy", "t", "--chunks", "2000", "--quiet")
        self.tessera("set", "t::b", "::-1", "@t::a", "--max-memory", "6M")
        self.tessera("set", "t::a", "::-1", "@t::a", "--max-memory", "6M")
        done = self.get("t")
        np.testing.assert_array_equal(done["a"], table["a"][::-1])
        np.testing.assert_array_equal(done["b"], table["a"][::-1])

    def test_texts(self):
        self.tessera("create", "s", "--shape", "5000", "--dtype", "string", "--format", "v3", "--chunks", "100", "--quiet")
        (self.folder / "script").write_text("".join(f"set {i * 500}:{i * 500 + 500} text{i}\n" for i in range(10)))
        self.tessera("edit", "s", "--script", "script")
        self.tessera("set", "s", "::-1", "@s")
        self.assertEqual(json.loads(self.tessera("get", "s", "::500", "--json")), [f"text{i}" for i in range(9, -1, -1)])

    def test_append(self):
        self.tessera("append", "a", "a")
        self.tessera("append", "a", "a.refs.json")
        np.testing.assert_array_equal(self.get("a"), np.tile(self.VALUES, 3))

    def test_what_would_go_on_beside_itself_is_refused(self):
        for words in (["sync", "a.refs.json", "a"], ["sync", "a", "a"],
                      ["calc", "a", "x + 1", "x=a.refs.json", "--overwrite"], ["reduce", "a.refs.json", "a", "--with", "sum", "--overwrite"]):
            with self.subTest(words=words):
                self.refused(*words, says="they overlap")
        np.testing.assert_array_equal(self.get("a"), self.VALUES)

    def test_nothing_lies_in_an_array(self):
        os.mkdir(self.folder / "g")
        self.tessera("copy", "a", "g/v", "--quiet")
        before = sorted(str(path) for path in (self.folder / "g").rglob("*"))
        for words in (["copy", "g/v", "g/v/in"], ["copy", "x.npy", "g/v/deep/in"],
                      ["create", "g/v/in", "--shape", "3", "--dtype", "u1"], ["copy", "g/v", "g/v/in.npy"],
                      ["copy", "g/v", "g/v/in.zarr.zip"], ["calc", "g/v/c/in.npy", "x + 1", "x=a"],
                      ["plan", "copy", "a", "g/v/in", "--out", "job.json"]):
            with self.subTest(words=words):
                self.refused(*words, says="nothing can lie in an array")
                self.assertEqual(sorted(str(path) for path in (self.folder / "g").rglob("*")), before)

    def test_no_group_is_copied_into_itself(self):
        self.tessera("group", "g", "--quiet")
        self.tessera("copy", "a", "g/v", "--quiet")
        for place in ("g/in", "g/deep/in", "./g/../g/in"):
            self.refused("copy", "g", place, says="lies in g, which is copied")
        self.tessera("copy", "g", "g2", "--quiet")
        self.assertEqual(sorted(os.listdir(self.folder / "g")), sorted(os.listdir(self.folder / "g2")))


if __name__ == "__main__":
    main()
