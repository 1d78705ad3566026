"""HDF5 and netCDF-4 behind HTTP and in S3: read by ranges, by our own chunks where they can be, and by libhdf5 elsewhere."""

import os
import unittest

import numpy as np

import program
import remote

try:
    import h5py
except ImportError:
    h5py = None


@unittest.skipIf(h5py is None, "h5py is not installed")
class RemoteHdf5(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.double = None
        rng = np.random.default_rng(7)
        self.arrays = {
            "packed": rng.integers(0, 50, (300, 70), "<i4"),
            "many": rng.integers(0, 9, (500, 40)).astype(">u2"),
            "plain": rng.normal(size=(200, 300)),
            "chunks": rng.normal(size=(90, 80)).astype("<f4"),
            "left": rng.integers(0, 4, (60, 50), "<i2"),
            "g/text": np.array(["ä", "", "long " * 40], object),
        }
        with h5py.File(self.folder / "x.nc", "w") as f:
            f.attrs["title"] = "far away"
            f.create_dataset("packed", data=self.arrays["packed"], chunks=(64, 32), compression="gzip", shuffle=True)
            f.create_dataset("many", data=self.arrays["many"], chunks=(4, 8), compression="gzip")
            f["plain"] = self.arrays["plain"]
            f.create_dataset("chunks", data=self.arrays["chunks"], chunks=(20, 30))
            f.create_dataset("left", data=self.arrays["left"], chunks=(20, 30), scaleoffset=2)  # Zarr has no such filter
            f["g/text"] = self.arrays["g/text"]
            f["packed"].attrs["units"] = "m"
        context = remote.serving(self.folder)
        self.double = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.places = ["s3://bucket", self.double.origin + "/files"]

    def run_program(self, *words, env=None, **options):
        seen = self.double.environment if self.double else {}
        return super().run_program(*words, env={**os.environ, **seen, **(env or {})}, **options)

    def test_every_variable(self):
        for place in self.places:
            for name in self.arrays:
                with self.subTest(place=place, name=name):
                    for command in ["digest"], ["info", "--json"], ["get", "--all"]:
                        words = [*command]
                        far = self.tessera(*words, f"{place}/x.nc::{name}")
                        near = self.tessera(*words, f"x.nc::{name}")
                        self.assertEqual(far.replace(f"{place}/x.nc", "x.nc"), near)
            tree = self.tessera("tree", f"{place}/x.nc")
            for name in self.arrays:
                self.assertIn(name.rsplit("/", 1)[-1], tree)

    def test_copies_and_checks(self):
        for i, place in enumerate(self.places):
            self.tessera("verify", f"{place}/x.nc")
            self.tessera("copy", f"{place}/x.nc", f"{i}.zarr", "--quiet")
            self.tessera("copy", "x.nc", f"near{i}.zarr", "--quiet")
            self.tessera("diff", f"{i}.zarr", f"near{i}.zarr")
            self.assertIn("far away", self.tessera("attrs", f"{i}.zarr"))

    def test_references_lead_there(self):
        """To the chunks where they lie; what references cannot say is refused, or left out with a note."""
        for i, place in enumerate(self.places):
            for name in "packed", "plain":
                self.tessera("refs", f"{place}/x.nc::{name}", "--out", f"{name}{i}.json")
                self.refused("digest", f"{name}{i}.json", says="--allow-outside")
                far = self.tessera("digest", f"{name}{i}.json", "--allow-outside").split()[0]
                self.assertEqual(far, self.tessera("digest", f"x.nc::{name}").split()[0])
            self.refused("refs", f"{place}/x.nc", says="x.nc::")
            result = self.run_program("refs", f"{place}/x.nc", "--skip-bad", "--out", f"all{i}.json")
            self.assertEqual(result.returncode, 0, result.stderr)
            for name in "left", "g/text":
                self.assertRegex(result.stderr, f"left out: .*x.nc::{name}")
            self.assertEqual(len(result.stderr.splitlines()), 2, result.stderr)
            for name in "packed", "many", "plain", "chunks":
                far = self.tessera("digest", f"all{i}.json/{name}", "--allow-outside").split()[0]
                self.assertEqual(far, self.tessera("digest", f"x.nc::{name}").split()[0])
            self.assertIn("far away", self.tessera("attrs", f"all{i}.json", "--allow-outside"))
            np.savez(self.folder / "x.npz", a=self.arrays["plain"])
            self.refused("refs", f"{place}/x.npz", says="only on this machine")
            self.tessera("concat", f"{place}/x.nc::plain", f"{place}/x.nc::plain", f"twice{i}.json", "--virtual", "--quiet")
            self.tessera("export", f"twice{i}.json", f"twice{i}.npy", "--allow-outside", "--quiet")
            np.testing.assert_array_equal(np.load(self.folder / f"twice{i}.npy"), np.tile(self.arrays["plain"], (2, 1)))
            self.tessera("copy", "x.nc::packed", f"d{i}.zarr", "--format", "v2", "--quiet")
        self.tessera("refs", "s3://bucket/d0.zarr", "--out", "d.json")
        self.tessera("diff", "d.json", "d0.zarr", "--allow-outside")
        self.refused("refs", self.places[1] + "/d0.zarr", says="does not say which chunks there are")
        self.refused("refs", self.places[1] + "/x.nc?sig=hush", says="may be a secret")

    def test_few_requests(self):
        """Chunks are asked for together, and the pieces of libhdf5's own reading come out of blocks."""
        place = self.places[1]
        for name, most in ("packed", 26), ("many", 30), ("chunks", 26), ("plain", 26):
            self.double.reset()
            self.tessera("digest", f"{place}/x.nc::{name}")
            self.assertLess(len(self.double.requests), most, name)

    def test_a_server_that_fails(self):
        self.double.faults.cut = 0.3
        self.double.faults.busy = 0.2
        for name in "packed", "left":
            near = self.tessera("digest", f"x.nc::{name}").split()[0]
            self.assertEqual(self.tessera("digest", f"{self.places[1]}/x.nc::{name}").split()[0], near)

    def test_other_files_are_not_looked_for_from_far_away(self):
        with h5py.File(self.folder / "lead.h5", "w") as f:
            f["link"] = h5py.ExternalLink("x.nc", "/packed")
            f.create_dataset("raw", (4,), "<i4", external=[("/etc/passwd", 0, 16)])
        for place in self.places:
            for name in "link", "raw":
                self.refused("digest", f"{place}/lead.h5::{name}", "--allow-outside")

    def test_damage(self):
        data = bytearray((self.folder / "x.nc").read_bytes())
        (self.folder / "cut.nc").write_bytes(data[:len(data) // 2])
        for place in self.places:
            self.refused("info", f"{place}/cut.nc", says="libhdf5")
            self.refused("info", f"{place}/x.nc::none", says="no such array")


if __name__ == "__main__":
    unittest.main()
