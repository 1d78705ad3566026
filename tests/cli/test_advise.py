"""`tessera advise`: layouts tried on a part of an array."""

import unittest

import numpy as np

from program import ProgramTest, main


class Advise(ProgramTest):
    def setUp(self):
        super().setUp()
        t, y, x = np.ogrid[:120, :90, :100]
        noise = np.random.default_rng(3).normal(size=(120, 90, 100))
        self.values = np.round(10 * np.sin(t / 9) + y / 7 + np.cos(x / 11) + noise, 1).astype("<f4")
        self.save("t.npy", self.values)
        self.tessera("import", "t.npy", "t.zarr", "--format", "v3", "--chunks", "10,45,50", "--codec", "blosc:zstd:1:shuffle",
                     "--dims", "time,lat,lon", "--quiet")

    def advise(self, path, *words):
        return self.tessera_json("advise", path, *words)

    def stored(self, path):
        return self.tessera_json("info", path)["stored_bytes"]

    def test_what_is_said_is_so(self):
        found = self.advise("t.zarr", "--reads", "time=1; lat=…, lon=1")
        self.assertEqual([read["shape"] for read in found["reads"]], [[1, 90, 100], [120, 1, 1]])
        layouts = found["layouts"]
        now = [one for one in layouts if one["present"]]
        self.assertEqual([(one["chunks"], one["codec"], one["values"]) for one in now], [([10, 45, 50], "blosc:zstd:1:shuffle", 48)])
        self.assertAlmostEqual(now[0]["stored_bytes_about"] / self.stored("t.zarr"), 1, delta=0.1)
        costs = [one["cost"] for one in layouts]
        self.assertEqual(costs, sorted(costs))

        def beside(of):
            return [of(one) / min(of(other) for other in layouts) for one in layouts]

        again = zip(beside(lambda one: sum(one["read_seconds"])), beside(lambda one: one["stored_bytes_about"]),
                    beside(lambda one: one["write_seconds"]))
        np.testing.assert_allclose(costs, [read + size + write / 4 for read, size, write in again], rtol=1e-3)
        # The best one and the smallest can be made, and are as large as was said.
        for n, one in enumerate([layouts[0], min(layouts, key=lambda one: one["stored_bytes_about"])]):
            self.tessera("copy", "t.zarr", f"new{n}.zarr", *one["options"].split(), "--quiet")
            self.tessera("diff", "t.zarr", f"new{n}.zarr")
            made = self.tessera_json("info", f"new{n}.zarr")
            self.assertEqual((made["chunks"], made["codec"].replace(" + ", ",")), (one["chunks"], one["codec"]))
            self.assertAlmostEqual(one["stored_bytes_about"] / made["stored_bytes"], 1, delta=0.15)
        text = self.tessera("advise", "t.zarr", "--reads", "time=1; lat=1,lon=1")
        self.assertRegex(text, r"chunks +shards +codec +stored +values +time=1 +lat=1,lon=1 +write\n")
        self.assertRegex(text, r"(?m)^now +10×45×50 .* 48 ")
        self.assertRegex(text, r"best: tessera copy t.zarr NEW --chunks [0-9,]+ --codec \S+\n$|the present layout is the best")

    def test_chunks_follow_the_reads(self):
        # A map of one time wants flat chunks, a series long ones; of both neither is.
        def shapes(reads):
            return [one["chunks"] for one in self.advise("t.npy", "--reads", reads)["layouts"]]

        flat = [chunks for chunks in shapes("0=1") if np.prod(chunks) < 1e5]
        self.assertTrue(flat and all(chunks[0] <= 10 for chunks in flat), flat)
        self.assertTrue(all(chunks[0] == 120 for chunks in shapes("1=1,2=1")))
        between = [chunks for chunks in shapes("0=1; 1=1,2=1") if np.prod(chunks) < 1e5]
        self.assertTrue(between and all(1 < chunks[0] < 120 for chunks in between), between)
        self.assertEqual([read["text"] for read in self.advise("t.zarr")["reads"]], ["time=1", "lat=1", "lon=1", "lat=1,lon=1"])
        self.assertEqual([read["text"] for read in self.advise("t.npy")["reads"]], ["0=1", "1=1", "2=1", "1=1,2=1"])

    def test_many_chunks_get_shards(self):
        self.tessera("create", "wide.zarr", "--shape", "60000,60000", "--chunks", "200,200", "--dtype", "<f4", "--format", "v3")
        self.tessera("set", "wide.zarr", "29000:30000, 29000:30000", "7")
        layouts = self.advise("wide.zarr")["layouts"]
        sharded = [one for one in layouts if one["shards"]]
        self.assertTrue(sharded)
        for one in sharded:
            self.assertEqual([s % c for s, c in zip(one["shards"], one["chunks"])], [0, 0])
            plain = next(p for p in layouts if p["chunks"] == one["chunks"] and p["codec"] == one["codec"] and not p["shards"])
            self.assertLess(one["values"], plain["values"])
        self.tessera("copy", "wide.zarr", "new.zarr", *sharded[0]["options"].split(), "--quiet")
        self.assertEqual(self.tessera_json("info", "new.zarr")["shards"], sharded[0]["shards"])
        self.tessera("diff", "wide.zarr", "new.zarr", "--sel", "28900:30100, 28900:30100")

    def test_any_elements(self):
        for dtype in "|b1", ">i2", "<M8[s]", "<c16", "<f2", "S5", "<U3", [("a", "<i4"), ("b", "<f8")]:
            with self.subTest(dtype=dtype):
                self.save("x.npy", np.arange(7000).astype("<i2").view("<i2").astype(dtype) if not isinstance(dtype, list)
                          else np.zeros(7000, dtype))
                self.assertTrue(self.advise("x.npy")["layouts"])
        self.save("x.npy", np.array(3.5))
        self.assertEqual(self.advise("x.npy")["layouts"][0]["chunks"], [])
        before = {p: p.stat().st_mtime_ns for p in (self.folder / "t.zarr").rglob("*")}
        self.advise("t.zarr", "--max-memory", "4M")
        self.assertEqual({p: p.stat().st_mtime_ns for p in (self.folder / "t.zarr").rglob("*")}, before)

    def test_tiny_chunks(self):
        self.tessera("create", "tiny.zarr", "--shape", "3000000000,3000000000", "--chunks", "1,1", "--dtype", "u1", "--format", "v3")
        found = self.advise("tiny.zarr")
        self.assertLessEqual(np.prod(found["part"]["shape"]), 20_000)
        self.assertEqual([one["chunks"] for one in found["layouts"] if one["present"]], [[1, 1]])
        self.assertFalse(found["layouts"][0]["present"])

    def test_refusals(self):
        for reads, says in ("depth=1", "depth"), ("time", "expected DIM=N"), ("time=0", "how many indices"), ("time=x", "--reads"):
            self.refused("advise", "t.zarr", "--reads", reads, says=says)
        self.tessera("create", "empty.zarr", "--shape", "0,5", "--dtype", "<f4", "--format", "v3")
        self.refused("advise", "empty.zarr", says="no elements")
        self.tessera("create", "words.zarr", "--shape", "5", "--dtype", "string", "--format", "v3")
        self.refused("advise", "words.zarr", says="variable length")
        self.tessera("group", "g.zarr", "--quiet")
        self.refused("advise", "g.zarr", says="g.zarr")


if __name__ == "__main__":
    main()
