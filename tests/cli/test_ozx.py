""".ozx: OME-Zarr in one file (NGFF's RFC-9), as Python's zipfile and zarr see it."""

import json
import struct
import unittest
import zipfile

import numpy as np

import program
from program import ProgramTest


class Ozx(ProgramTest):
    def pyramid(self, name, *words):
        self.save("a.npy", np.arange(3 * 40 * 50, dtype="<u2").reshape(3, 40, 50))
        return self.tessera("pyramid", "a.npy", name, "--levels", "3", "--axes", "c,y,x", "--chunks", "1,20,20", *words)

    def check(self, name):
        with zipfile.ZipFile(self.folder / name) as archive:
            self.assertIsNone(archive.testzip())
            names = [info.filename for info in archive.infolist()]
            self.assertEqual(names[0], "zarr.json")
            documents = [n for n in names if n.endswith("zarr.json")]
            self.assertEqual(names[:len(documents)], documents)
            self.assertEqual([n.count("/") for n in documents], sorted(n.count("/") for n in documents))
            places = [info.header_offset for info in archive.infolist()]
            self.assertEqual(places, sorted(places))
            self.assertEqual({info.compress_type for info in archive.infolist()}, {zipfile.ZIP_STORED})
            content = (self.folder / name).read_bytes()
            for place in places:  # ZIP64 whatever the size
                self.assertGreaterEqual(struct.unpack_from("<H", content, place + 4)[0], 45)
            self.assertEqual(len(set(names)), len(names))
            version = json.loads(archive.read("zarr.json"))["attributes"]["ome"]["version"]
            self.assertEqual(json.loads(archive.comment),
                             {"ome": {"version": version, "zipFile": {"centralDirectory": {"jsonFirst": True}}}})
        self.assertEqual([p.name for p in self.folder.iterdir() if "tessera-tmp" in p.name], [])

    def test_a_pyramid_in_one_file(self):
        self.pyramid("a.ozx", "--format", "v3")
        self.check("a.ozx")
        np.testing.assert_array_equal(self.exported("a.ozx/0"), np.load(self.folder / "a.npy"))
        self.assertIn("sound", self.tessera("verify", "a.ozx"))
        self.assertIn("a.ozx", self.tessera("tree", "."))

    def test_there_and_back(self):
        self.pyramid("a.zarr", "--format", "v3")
        self.tessera("copy", "a.zarr", "b.ozx", "--quiet")
        self.check("b.ozx")
        self.tessera("copy", "b.ozx", "c.zarr", "--quiet")
        self.tessera("diff", "a.zarr", "c.zarr")
        self.assertEqual(program.digest(self.folder / "a.zarr"), program.digest(self.folder / "c.zarr"))
        self.refused("copy", "a.zarr", "b.ozx", says=["b.ozx", "--overwrite"])
        self.tessera("copy", "a.zarr", "b.ozx", "--overwrite", "--quiet")
        self.check("b.ozx")

    def test_only_v3(self):
        self.pyramid("a.zarr", "--format", "v2")
        self.refused("copy", "a.zarr", "b.ozx", says=["b.ozx", "zarr.json", "--format v3"])
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a.npy", "a.zarr"])


if __name__ == "__main__":
    program.main()
