"""The program with an array file, a codec, a dialect and a command more: see CMakeLists.txt."""

import os
import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(os.environ["TESSERA_SOURCE"]) / "tests" / "cli"))
from program import ProgramTest


class Toys(ProgramTest):
    def test_the_program_knows_them(self):
        self.assertEqual(self.tessera("greet", "you"), "hello you\n")
        self.assertEqual(self.tessera_json("greet", "you"), {"hello": "you"})
        self.assertIn("greet", self.tessera("--help"))
        formats = self.tessera_json("formats")
        self.assertIn("toy", [row["name"] for row in formats["formats"]])
        self.assertIn({"scheme": "toy", "about": "a store of toys"}, formats["stores"])
        self.assertIn("toy:PATH", self.tessera("formats"))
        self.assertIn(".toy", [row["name"] for row in formats["array_files"]])
        self.assertIn("numcodecs.toy", [row["name"] for row in formats["codecs"]])
        for command in "create", "copy":
            self.assertIn("v3 or toy", " ".join(self.tessera(command, "--help").split()))

    def test_the_codec(self):
        values = np.arange(70, dtype="<i4").reshape(10, 7)
        self.save("values.npy", values)
        for name in "v2", "v3":
            self.tessera("import", "values.npy", name, "--format", name, "--chunks", "4,3", "--codec", "delta,toy:7",
                         "--quiet")
            self.assertIn("toy:7", self.tessera("info", name))
            self.tessera("export", name, f"{name}.npy", "--quiet")
            np.testing.assert_array_equal(np.load(self.path(f"{name}.npy")), values)
            self.tessera("verify", name)
        self.tessera("copy", "v2", "zmeta", "--format", "zmeta", "--quiet")
        self.tessera("diff", "v3", "zmeta")

    def test_the_file(self):
        values = np.arange(70, dtype=">i2").reshape(10, 7)
        self.save("values.npy", values)
        self.tessera("copy", "values.npy", "values.toy", "--quiet")
        self.assertEqual((self.folder / "values.toy").read_bytes(), b"toy\t>i2\t(10, 7)\n" + values.tobytes())
        self.assertIn("toy", self.tessera("info", "values.toy"))
        self.tessera("import", "values.toy", "g/a", "--chunks", "4,3", "--quiet")
        self.tessera("diff", "g/a", "values.npy")
        self.tessera("export", "g/a", "part.toy", "--sel", "2:4, ::3", "--quiet")
        self.tessera("copy", "part.toy", "part.npy", "--quiet")
        np.testing.assert_array_equal(np.load(self.path("part.npy")), values[2:4, ::3])
        self.tessera("set", "g/a", "0:2, 0:3", "part.toy")
        self.tessera("verify", "values.toy")
        self.tessera("import", "values.toy", "g/b", "--quiet")
        self.refused("export", "g", "all.toy", says=["all.toy can hold only one", "ends in .npz or .mldf"])
        self.refused("copy", "values.npy", "other.toy", "--deflate", "3", says="--deflate")
        whole = (self.folder / "values.toy").read_bytes()
        (self.folder / "values.toy").write_bytes(whole[:-1])
        self.tessera("verify", "values.toy", code=1)
        self.refused("get", "values.toy", says="bytes of elements were expected")

    def test_the_dialect(self):
        values = np.arange(70, dtype="<f8").reshape(10, 7)
        self.save("values.npy", values)
        self.tessera("import", "values.npy", "a", "--format", "toy", "--chunks", "4,3", "--quiet")
        self.tessera("attrs", "a", "set", "units", '"m"')
        self.assertIn("toy", self.tessera("info", "a"))
        self.tessera("set", "a", "0, 0", "5")
        self.tessera("resize", "a", "12,7")
        self.tessera("resize", "a", "10,7")
        self.tessera("snapshot", "a", "create", "first")
        self.tessera("set", "a", "0, 0", "0")
        self.tessera("diff", "a", "values.npy")
        self.tessera("copy", "a", "a.zip", "--quiet")
        self.tessera("diff", "a", "a.zip")
        for name in "zmeta", "v1", "v2", "v3":
            self.tessera("copy", "a", name, "--format", name, "--quiet")
            self.tessera("copy", name, f"{name}-back", "--format", "toy", "--quiet")
            self.tessera("diff", f"{name}-back", "values.npy")
            self.assertEqual(self.tessera("attrs", f"{name}-back", "get", "units").strip(), '"m"')
        self.tessera("seal", "a", "--quiet")
        self.tessera("verify", "a")
        (self.folder / "v3-back" / "tiles" / "0.0").write_bytes(b"torn")
        self.tessera("verify", "v3-back", code=1)
        self.assertIn("not restored: 12 elements", self.tessera("repair", "v3-back", code=1))
        self.tessera("verify", "v3-back")
        self.tessera("rm", "v2-back")
        self.assertFalse((self.folder / "v2-back").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
