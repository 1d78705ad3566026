"""Chunks that differ in length, from the command line: made, shown, grown, checked, copied, and refused by name."""
import json
import unittest

import numpy as np

from program import ProgramTest, main

try:
    import h5py
except ImportError:
    h5py = None


class Rectilinear(ProgramTest):
    def made(self, name="a.zarr", chunks="[10,10,5],32", shape=(25, 40), *more):
        self.tessera("create", name, "--shape", ",".join(map(str, shape)), "--chunks", chunks, "--dtype", "<i4", "--quiet", *more)
        values = np.arange(np.prod(shape), dtype="<i4").reshape(shape)
        np.save(self.folder / "values.npy", values)
        self.tessera("set", name, "...", "values.npy", "--quiet")
        return values

    def grid(self, name="a.zarr"):
        return json.loads((self.folder / name / "zarr.json").read_text())["chunk_grid"]["configuration"]["chunk_shapes"]

    def test_made_shown_and_grown(self):
        self.assertIn("chunks [10,10,5],32, ", self.tessera(
            "create", "b.zarr", "--shape", "25,40", "--chunks", "[10,10,5],32", "--dtype", "<i4", "--format", "v3"))
        values = self.made()
        np.testing.assert_array_equal(self.exported("a.zarr"), values)
        self.assertEqual(self.grid(), [[[10, 2], 5], 32])
        self.assertIn("of different lengths, [10,10,5],32; at most 10×32", self.tessera("info", "a.zarr"))
        self.assertEqual(self.tessera_json("info", "a.zarr")["chunk_lengths"], "[10,10,5],32")
        self.tessera("append", "a.zarr", "values.npy", "--quiet")
        self.assertEqual(self.grid(), [[[10, 2], [5, 6]], 32])
        np.testing.assert_array_equal(self.exported("a.zarr"), np.concatenate([values, values]))
        self.tessera("undo", "a.zarr")
        self.assertEqual(self.grid(), [[[10, 2], 5], 32])
        np.testing.assert_array_equal(self.exported("a.zarr"), values)
        self.tessera("resize", "a.zarr", "12,41", "--quiet")
        self.tessera("resize", "a.zarr", "26,40", "--quiet")
        self.assertEqual(self.grid(), [[[10, 2], [5, 2]], 32])
        values[12:] = 0
        np.testing.assert_array_equal(self.exported("a.zarr"), np.concatenate([values, np.zeros((1, 40), "<i4")]))
        self.assertIn("sound", self.tessera("verify", "a.zarr"))

    def test_damage_is_found_where_it_lies(self):
        values = self.made()
        (self.folder / "a.zarr/c/2/0").write_bytes((self.folder / "a.zarr/c/1/0").read_bytes())  # of another length
        (self.folder / "a.zarr/c/3").mkdir()
        (self.folder / "a.zarr/c/3/0").write_bytes(b"x")
        found = self.tessera_json("verify", "a.zarr", code=1)["findings"]
        self.assertEqual(sorted(f["key"] for f in found), ["c/2/0", "c/3/0"])
        self.tessera("repair", "a.zarr", code=1)
        self.assertIn("sound", self.tessera("verify", "a.zarr"))
        values[20:, :32] = 0
        np.testing.assert_array_equal(self.exported("a.zarr"), values)

    def test_shards(self):
        values = self.made("a.zarr", "5,8", (25, 40), "--shard", "[10,10,5],[32,8]")
        self.assertEqual(self.grid(), [[[10, 2], 5], [32, 8]])
        self.assertIn("shards         of different lengths, [10,10,5],[32,8]; at most 10×32", self.tessera("info", "a.zarr"))
        self.tessera("set", "a.zarr", "7:22, 30:35", "-1", "--quiet")
        values[7:22, 30:35] = -1
        for way in ((), ("--format", "v2"), ("--shard", "none"), ("--chunks", "25,[20]*2", "--shard", "none")):
            self.tessera("copy", "a.zarr", "b.zarr", "--overwrite", "--quiet", *way)
            np.testing.assert_array_equal(self.exported("b.zarr"), values)
        self.assertIn("sound", self.tessera("verify", "a.zarr"))

    def test_copied(self):
        values = self.made()
        self.assertIn("chunk files are copied as they are", self.tessera("copy", "a.zarr", "b.zarr", "--dry-run"))
        self.tessera("copy", "a.zarr", "b.zip", "--quiet")
        np.testing.assert_array_equal(self.exported("b.zip"), values)
        done = self.run_program("copy", "a.zarr", "c.zarr", "--format", "v2")
        self.assertIn("the chunks, which differ in length, become chunks of (10, 32)", done.stderr)
        self.tessera("rechunk", "c.zarr", "d.zarr", "--chunks", "[20]+[5],[13]*4", "--format", "v3", "--quiet")
        self.assertEqual(self.grid("d.zarr"), [[20, 5], [[13, 4]]])
        np.testing.assert_array_equal(self.exported("d.zarr"), values)
        self.tessera("copy", "a.zarr", "e.zarr", "--sel", "3:20", "--quiet")
        np.testing.assert_array_equal(self.exported("e.zarr"), values[3:20])

    def test_what_cannot_be_is_refused(self):
        def create(chunks, *more, shape="25", says):
            self.refused("create", "x.zarr", "--shape", shape, "--chunks", chunks, "--dtype", "u1", *more, says=says)
            self.assertFalse((self.folder / "x.zarr").exists())

        create("[10,10,4],", says="add up to 24, and the array has 25")
        create("[10,0,15],", says="from 1 to")
        create("[10,15],3", says="dimensions")
        create("[10,15],", "--format", "v2", says=["v2", "differ in length", "--format v3"])
        create("[10,15],", "--shard", "25", says="one shape")
        create("10", "--shard", "[10,15],", says="length 15 along dimension 0 is no multiple")
        create("0", "--shard", "[10,15],", says="length 0")
        create("[9223372036854775807]*2", says="")
        create("[1,2]*999999999999", says="more than")
        self.made()
        self.refused("refs", "a.zarr", says="differ in length")
        self.refused("plan", "copy", "a.zarr", "x.zarr", "--out", "job.json", says=["differ in length", "--chunks"])
        self.assertFalse((self.folder / "x.zarr").exists())

    def test_endless_runs_cost_nothing(self):
        values = self.made("a.zarr", "[1]*1000000000000000000,7", (3, 9))
        np.testing.assert_array_equal(self.exported("a.zarr"), values)
        self.assertEqual(self.grid(), [[[1, 10**18]], 7])
        self.assertIn("sound", self.tessera("verify", "a.zarr"))

    @unittest.skipIf(h5py is None, "h5py is not installed")
    def test_files_are_joined_in_place(self):
        rng = np.random.default_rng(39)
        parts = [rng.integers(0, 999, (n, 6)).astype("<i4") for n in (31, 28, 31, 7)]
        for n, part in enumerate(parts):
            with h5py.File(self.folder / f"{n}.h5", "w") as f:
                f.create_dataset("d", data=part, chunks=(len(part) if n < 3 else 5, 4), compression="gzip", shuffle=True)
        names = [f"{n}.h5::d" for n in range(4)]
        made = self.tessera_json("concat", *names, "c.json", "--virtual", "--dims", "time,x")
        self.assertEqual((made["shape"], made["chunks"]), ([97, 6], [[31, 28, 31, [5, 2]], 4]))
        np.testing.assert_array_equal(self.exported("c.json"), np.concatenate(parts))
        self.assertIn("[31,28,31,5,5],4", self.tessera("info", "c.json"))
        self.tessera("copy", "c.json", "c.zarr", "--quiet")
        np.testing.assert_array_equal(self.exported("c.zarr"), np.concatenate(parts))
        # Along the other axis, and where a chunk is cut off in the middle.
        self.refused("concat", *names[:2], "x.json", "--virtual", "--axis", "1", says=["1.h5", "chunk shape"])
        self.refused("concat", *reversed(names), "x.json", "--virtual", says=["3.h5", "its length 7 is no multiple"])


if __name__ == "__main__":
    main()
