"""The C++ programs in tools/examples do what their first lines say; NumPy and the documents on the disk are the judges."""
import json
import os
import subprocess
import unittest

import numpy as np

from program import ProgramTest


class Examples(ProgramTest):
    def example(self, name, *words):
        program = f"{os.environ['TESSERA_EXAMPLES']}/example_{name}"
        return subprocess.run([program, *words], cwd=self.folder, check=True, capture_output=True, text=True).stdout

    def test_stencil(self):
        rng = np.random.default_rng(1)
        grid = rng.random((67, 41), np.float32)
        self.save("grid.npy", grid)
        self.tessera("import", "grid.npy", "grid.zarr", "--chunks", "16,16")
        self.assertIn("smoothed (67, 41) in 15 blocks", self.example("stencil", "grid.zarr", "smooth.zarr"))
        self.tessera("export", "smooth.zarr", "smooth.npy")
        padded = np.pad(grid.astype("f8"), 1)
        ones = np.pad(np.ones(grid.shape), 1)
        windows = [np.s_[r:r + 67, c:c + 41] for r in range(3) for c in range(3)]
        expected = sum(padded[w] for w in windows) / sum(ones[w] for w in windows)
        np.testing.assert_allclose(np.load(self.folder / "smooth.npy"), expected, rtol=1e-5)

    def test_stations(self):
        self.example("stations", "survey.zarr", "north", "south")
        said = self.example("stations", "survey.zarr", "north")
        self.assertEqual(said, 'north/temperature (48,) {"units": "degC"}\n')
        meta = json.loads((self.folder / "survey.zarr/north/temperature/zarr.json").read_text())
        self.assertEqual((meta["shape"], meta["dimension_names"]), ([48], ["time"]))
        self.assertEqual(json.loads((self.folder / "survey.zarr/zarr.json").read_text())["attributes"], {"title": "Temperatures"})
        self.tessera("export", "survey.zarr/north/temperature", "north.npy")
        hours = np.arange(48) % 24
        np.testing.assert_array_equal(np.load(self.folder / "north.npy"),
                                      (10 + np.arange(48) // 24 - 0.5 * np.abs(hours - 14)).astype("f4"))

    def test_records(self):
        table = np.zeros(1000, [("time", "i8"), ("x", "f4"), ("y", "f4")])
        table["time"] = np.arange(1000) - 500
        table["x"], table["y"] = np.random.default_rng(2).normal(size=(2, 1000))
        self.save("table.npy", table)
        self.tessera("import", "table.npy", "table.zarr", "--chunks", "300")
        self.example("records", "table.zarr", "distances.zarr")
        self.tessera("export", "distances.zarr", "distances.npy")
        distances = np.load(self.folder / "distances.npy")
        np.testing.assert_array_equal(distances["time"], table["time"])
        np.testing.assert_allclose(distances["distance"], np.hypot(table["x"].astype("f8"), table["y"]), rtol=1e-15)

    def test_frames(self):
        frames = np.random.default_rng(3).normal(size=(4, 30, 20)).astype("f4")
        names = [self.save(f"frame-{i}.npy", frame) for i, frame in enumerate(frames)]
        said = self.example("frames", *names, "change.zarr").splitlines()
        self.assertEqual((said[0], said[2]), ("stacked (4, 30, 20) <f4", "wrote change.zarr, 1 chunks"))
        self.assertAlmostEqual(float(said[1].split()[-1]), frames[:, 0, 0].max(), places=5)
        np.testing.assert_array_equal(self.exported("change.zarr"), abs(frames[3] - frames[0]))

    def test_snapshots(self):
        values = np.arange(2000, dtype="f4").reshape(40, 50)
        self.save("a.npy", values)
        self.tessera("import", "a.npy", "a.zarr", "--chunks", "16,16", "--quiet")
        said = self.example("snapshots", "a.zarr").splitlines()
        self.assertEqual(said[1:3], ["2000 elements differ", "0 elements differ"])
        self.assertTrue(said[0].endswith("files in before") and said[3].startswith("before, made 2"), said)
        np.testing.assert_array_equal(self.exported("a.zarr"), values)
        np.testing.assert_array_equal(self.exported("a.zarr.snapshots/before"), values)

    def test_extensions(self):
        values = np.zeros((4, 6), "<i4")
        values[1::2, :3] = [[1, 2, 3], [4, 5, 6]]
        said = self.example("extensions", "copy.zarr")
        self.assertEqual(said, f"{values}\nwrote copy.zarr, encoded by xor:7\n")
        meta = json.loads((self.folder / "copy.zarr/.zarray").read_text())
        self.assertEqual(meta["compressor"], {"id": "xor", "key": 7})
        raw = np.frombuffer((self.folder / "copy.zarr/0/0").read_bytes(), "u1") ^ 7
        np.testing.assert_array_equal(raw.view("<i4").reshape(2, 3), values[:2, :3])
        # The program does not have this codec: it says so, and names those that it has.
        self.refused("get", "copy.zarr", "0", says="xor")

    def test_picture(self):
        if "png" not in self.tessera("formats"):
            self.skipTest("without libpng")
        values = np.add.outer(np.arange(90.0), np.arange(120.0))[None] + np.zeros((3, 1, 1))
        self.save("a.npy", values)
        said = self.example("picture", "a.npy", "1", "a.png").splitlines()
        self.assertTrue(said[0].startswith("a.npy [1, 0:90, 0:120]"), said)
        pixels = self.exported("a.png")
        self.assertEqual(said[1], f"drew {pixels.shape}")
        self.assertGreater(len(np.unique(pixels.reshape(-1, 3), axis=0)), 100, "a bar of colours")


if __name__ == "__main__":
    unittest.main()
