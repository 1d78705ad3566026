"""Array files changed in place, and what an export would write."""

import os

import numpy as np

from program import ProgramTest, main

VALUES = np.arange(600, dtype="<i4").reshape(20, 30)


class InPlace(ProgramTest):
    def set(self, name, selection, value, code=0):
        return self.tessera("set", name, selection, value, "--quiet", code=code)

    def test_npy_in_every_order(self):
        for order in "CF":
            for dtype in ("<i4", ">f8", "<M8[s]", "<U3", "S2", "?", [("a", "<i4"), ("b", ">f8")]):
                with self.subTest(order=order, dtype=dtype):
                    values = np.zeros((4, 5), dtype, order=order)
                    self.save("x.npy", values)
                    header = (self.folder / "x.npy").read_bytes()[:128]
                    value = {"<M8[s]": "2020-01-02", "<U3": "abc", "S2": "ab", "?": "true"}.get(str(dtype), "5")
                    wanted = {"<M8[s]": np.datetime64("2020-01-02"), "<U3": "abc", "S2": b"ab", "?": True}.get(str(dtype), 5)
                    if isinstance(dtype, list):
                        value, wanted = "[5, 5]", (5, 5)
                    for selection, key in (("0,0", (0, 0)), ("1", 1), ("::2, 1:3", np.s_[::2, 1:3]),
                                           ("::-3, -1", np.s_[::-3, -1])):
                        self.set("x.npy", selection, value)
                        values[key] = wanted
                    np.testing.assert_array_equal(np.load(self.folder / "x.npy"), values)
                    self.assertEqual((self.folder / "x.npy").read_bytes()[:128], header)

    def test_from_a_file_and_in_parts(self):
        self.save("x.npy", np.zeros((2000, 500)))
        part = np.random.default_rng(1).normal(size=(1000, 500))
        self.save("part.npy", part)
        self.tessera("set", "x.npy", "::2", "part.npy", "--max-memory", "4M", "--quiet")
        np.testing.assert_array_equal(np.load(self.folder / "x.npy")[::2], part)
        self.assertFalse(np.load(self.folder / "x.npy")[1::2].any())

    def test_raw_arrays(self):
        self.save("x.npy", VALUES)
        self.tessera("copy", "x.npy", "x.ra", "--quiet")
        before = self.exported("x.ra")
        self.set("x.ra", "3, 4:6", "7")
        before[3, 4:6] = 7
        np.testing.assert_array_equal(self.exported("x.ra"), before)

    def test_it_says_that_undo_cannot(self):
        self.save("x.npy", VALUES)
        done = self.run_program("set", "x.npy", "0,0", "5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("cannot take it back", done.stderr)
        self.assertEqual(np.load(self.folder / "x.npy")[0, 0], 5)

    def test_refusals_change_nothing(self):
        self.save("x.npy", VALUES)
        np.savez(self.folder / "x.npz", a=VALUES)
        np.save(self.folder / "o.npy", np.array(["a", None], dtype=object), allow_pickle=True)
        self.save("small.npy", VALUES[:2])
        before = {p.name: p.read_bytes() for p in self.folder.iterdir()}
        self.refused("set", "x.npy", "20", "5", says="x.npy")
        self.refused("set", "x.npy", "0", "text", says="text")
        self.refused("set", "x.npy", "0:3", "small.npy", says="shape")
        self.refused("set", "x.npz", "0,0", "5", says="only .npy and .ra")
        self.refused("set", "x.npz::a", "0,0", "5", says="in place")
        self.refused("set", "o.npy", "0", "5", says="o.npy")
        self.refused("set", "none.npy", "0", "5", says="none.npy")
        self.assertEqual({p.name: p.read_bytes() for p in self.folder.iterdir()}, before)

    def test_a_sealed_file_is_refused(self):
        self.save("x.npy", VALUES)
        self.tessera("seal", "x.npy", "--quiet")
        self.refused("set", "x.npy", "0,0", "5", says="sealed")
        np.testing.assert_array_equal(np.load(self.folder / "x.npy"), VALUES)
        self.tessera("set", "x.npy", "0,0", "5", "--break-seal", "--quiet")
        self.assertEqual(np.load(self.folder / "x.npy")[0, 0], 5)


class DryRun(ProgramTest):
    def test_export_says_what_it_would_write(self):
        self.save("x.npy", VALUES)
        self.tessera("import", "x.npy", "x.zarr", "--quiet")
        before = sorted(os.listdir(self.folder))
        self.assertEqual(self.tessera("export", "x.zarr", "y.npy", "--sel", "0:2", "--dry-run"),
                         "y.npy would hold 2×30 <i4 (240 bytes)\n")
        report = self.tessera_json("export", "x.zarr", "y.csv", "--dry-run")
        self.assertEqual((report["dry_run"], report["arrays"][0]["shape"]), (True, [20, 30]))
        self.refused("export", "x.zarr", "y.csv", "--sel", "0,0", "--dry-run", says="dimensions")
        self.refused("export", "x.zarr", "x.npy", "--dry-run", says="x.npy")
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_of_a_group(self):
        self.save("x.npy", VALUES)
        self.tessera("group", "g.zarr", "--quiet")
        for name in ("a", "b"):
            self.tessera("copy", "x.npy", f"g.zarr/{name}", "--quiet")
        shown = self.tessera("export", "g.zarr", "all.npz", "--dry-run")
        self.assertEqual(shown.count("would hold 20×30 <i4"), 2, shown)
        self.assertFalse((self.folder / "all.npz").exists())
        self.refused("export", "g.zarr", "all.npy", "--dry-run", says="only one")


if __name__ == "__main__":
    main()
