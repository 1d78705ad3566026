"""Versions of OME-Zarr: written by pyramid, and upgraded without touching a chunk."""

import json
import unittest

import numpy as np

import program
from program import ProgramTest


def document(folder):
    return json.loads((folder / "zarr.json").read_text())["attributes"]


class Ome(ProgramTest):
    def pyramid(self, name, *words):
        if not (self.folder / "a.npy").exists():
            self.save("a.npy", np.arange(2 * 40 * 50, dtype="<u2").reshape(2, 40, 50))
        self.tessera("pyramid", "a.npy", name, "--levels", "2", "--axes", "c,y,x", "--scale", "1,0.5,0.25", "--units",
                     ",micrometer,micrometer", "--quiet", *words)

    def image(self, name):
        ome = document(self.folder / name)["ome"]
        self.assertEqual(len(ome["multiscales"]), 1)
        return ome["version"], ome["multiscales"][0]

    def check_0_6(self, image):
        """As the specification of 0.6rc0 says it in `examples/multiscales_strict`."""
        self.assertNotIn("axes", image)
        systems = {system["name"]: system["axes"] for system in image["coordinateSystems"]}
        self.assertEqual(systems["intrinsic"], [{"name": "c", "type": "channel"},
                                                {"name": "y", "type": "space", "unit": "micrometer"},
                                                {"name": "x", "type": "space", "unit": "micrometer"}])
        for n, level in enumerate(image["datasets"]):
            [transformation] = level["coordinateTransformations"]
            self.assertEqual(transformation["input"], {"path": level["path"]})
            self.assertEqual(transformation["output"], {"name": "intrinsic"})
            self.assertEqual(transformation["type"], "sequence")
            scale, translation = transformation["transformations"]
            by = 2 ** n
            self.assertEqual(scale, {"type": "scale", "scale": [1, 0.5 * by, 0.25 * by]})
            self.assertEqual(translation,
                             {"type": "translation", "translation": [0, (by - 1) / 2 * 0.5, (by - 1) / 2 * 0.25]})

    def test_each_version_is_written(self):
        self.pyramid("4.zarr", "--ome", "0.4")
        attributes = json.loads((self.folder / "4.zarr" / ".zattrs").read_text())
        self.assertEqual(attributes["multiscales"][0]["version"], "0.4")
        self.pyramid("5.zarr", "--ome", "0.5")
        version, image = self.image("5.zarr")
        self.assertEqual(version, "0.5")
        self.assertNotIn("version", image)
        self.assertEqual([axis["name"] for axis in image["axes"]], ["c", "y", "x"])
        self.pyramid("6.zarr", "--ome", "0.6")
        version, image = self.image("6.zarr")
        self.assertEqual(version, "0.6rc0")
        self.check_0_6(image)
        self.refused("pyramid", "a.npy", "x.zarr", "--ome", "0.6", "--format", "v2", says=["--format", "0.6", "v3"])
        self.refused("pyramid", "a.npy", "x.zarr", "--ome", "0.7", says=["--ome", "0.7"])
        self.refused("pyramid", "a.npy", says="DST")

    def test_upgrades_touch_no_chunk(self):
        self.pyramid("4.zarr", "--ome", "0.4")
        self.refused("pyramid", "4.zarr", "--upgrade", says=["4.zarr", "v2", "copy"])
        self.tessera("copy", "4.zarr", "g.zarr", "--format", "v3", "--quiet", "--fill", "0=0", "--fill", "1=0")
        self.tessera("attrs", "g.zarr", "set", "project", "p")
        chunks = {p: (p.stat().st_mtime_ns, p.stat().st_ino, p.read_bytes())
                  for p in (self.folder / "g.zarr").rglob("*") if p.is_file() and p.parent.name not in ("g.zarr", ".tessera")
                  and ".tessera" not in p.parts}
        self.assertIn("1 group upgraded to OME-Zarr 0.5", self.tessera("pyramid", "g.zarr", "--upgrade"))
        self.assertEqual(document(self.folder / "g.zarr")["project"], "p")
        self.assertNotIn("multiscales", document(self.folder / "g.zarr"))
        self.pyramid("5.zarr", "--ome", "0.5")
        self.assertEqual(self.image("g.zarr"), self.image("5.zarr"))
        self.tessera("pyramid", "g.zarr", "--upgrade", "--ome", "0.6")
        version, image = self.image("g.zarr")
        self.assertEqual(version, "0.6rc0")
        self.check_0_6(image)
        self.assertIn("0 groups", self.tessera("pyramid", "g.zarr", "--upgrade", "--ome", "0.6"))
        self.refused("pyramid", "g.zarr", "--upgrade", "--ome", "0.5", says=["g.zarr", "0.6rc0", "0.5"])
        for path, (time, inode, content) in chunks.items():
            self.assertEqual((path.stat().st_mtime_ns, path.stat().st_ino, path.read_bytes()), (time, inode, content))

    def test_groups_below_and_other_attributes(self):
        self.tessera("group", "p.zarr", "--format", "v3")
        self.tessera("attrs", "p.zarr", "set", "plate", '{"version": "0.4", "columns": [{"name": "1"}], "name": "n"}')
        self.tessera("group", "p.zarr/A/1/labels")
        self.tessera("attrs", "p.zarr/A/1", "set", "well", '{"version": "0.4", "images": [{"path": "0"}]}')
        self.tessera("attrs", "p.zarr/A/1/labels", "set", "labels", '["nuclei"]')
        self.tessera("consolidate", "p.zarr", "--quiet")
        self.assertIn("3 groups", self.tessera("pyramid", "p.zarr", "--upgrade"))
        self.assertEqual(document(self.folder / "p.zarr"),
                         {"ome": {"version": "0.5", "plate": {"columns": [{"name": "1"}], "name": "n"}}})
        self.assertEqual(document(self.folder / "p.zarr/A/1"), {"ome": {"version": "0.5", "well": {"images": [{"path": "0"}]}}})
        self.assertEqual(document(self.folder / "p.zarr/A/1/labels"), {"ome": {"version": "0.5", "labels": ["nuclei"]}})
        self.tessera("consolidate", "p.zarr", "--check", "--quiet")

    def test_what_is_not_upgraded(self):
        self.tessera("group", "g.zarr", "--format", "v3")
        self.refused("pyramid", "g.zarr", "--upgrade", says=["g.zarr", "no group here"])
        self.tessera("attrs", "g.zarr", "set", "multiscales", '[{"version": "0.2", "datasets": []}]')
        before = program.digest(self.folder / "g.zarr")
        self.refused("pyramid", "g.zarr", "--upgrade", says=["g.zarr", "0.2"])
        self.tessera("attrs", "g.zarr", "set", "multiscales", '[{"version": "0.4", "axes": [], "datasets": [{}]}]')
        self.refused("pyramid", "g.zarr", "--upgrade", "--ome", "0.6", says=["g.zarr", "datasets"])
        self.refused("pyramid", "g.zarr", "h.zarr", "--upgrade", says=["--upgrade", "h.zarr"])
        self.assertNotEqual(before, program.digest(self.folder / "g.zarr"))


if __name__ == "__main__":
    program.main()
