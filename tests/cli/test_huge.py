"""Arrays of huge shapes of which next to nothing is stored: what is absent costs by the run."""

import hashlib
import json
import unittest

import numpy as np

from program import ProgramTest, main

try:
    import h5py
except ImportError:
    h5py = None

LENGTH = (1 << 40) + 12_345  # more leaves of a digest than are kept in a list
LEAF = LENGTH
while LEAF > 1 << 20:
    LEAF = -(-LEAF // 2)


def expected():
    """The digest by its definition: the SHA-256 of a header and of the sums of all leaves."""
    def leaf(size, *changes):
        values = np.full(size, 7, "u1")
        for place, value in changes:
            values[place] = value
        return hashlib.sha256(values).digest()

    whole = leaf(LEAF)
    hasher = hashlib.sha256(f"tessera1\n|u1\n({LENGTH},)\n".encode())
    hasher.update(leaf(LEAF, (slice(5, 9), 200)))
    for _ in range(-(-LENGTH // LEAF) - 2):
        hasher.update(whole)
    hasher.update(leaf((LENGTH - 1) % LEAF + 1, (slice(-2, None), 1)))
    return "tessera1:" + hasher.hexdigest()


class HugeTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.make("a", "3000")

    def make(self, name, chunks):
        self.tessera("create", name, "--shape", LENGTH, "--dtype", "u1", "--chunks", chunks, "--fill", "7", "--format", "v3",
                     "--quiet")
        self.tessera("set", name, "5:9", "200", "--quiet")
        self.tessera("set", name, "-2:", "1", "--quiet")

    def test_digest(self):
        self.assertEqual(self.tessera("digest", "a").split()[0], expected())

    def test_copy_and_diff(self):
        self.tessera("copy", "a", "b", "--chunks", "5000", "--codec", "zstd", "--quiet")
        self.assertEqual(self.tessera_json("info", "b")["chunks_stored"], 2)
        self.tessera("diff", "a", "b", "--quiet")
        self.tessera("set", "b", str(LENGTH // 2), "8", "--quiet")
        self.assertIn("1 of", self.tessera("diff", "a", "b", code=1))
        self.assertEqual(self.tessera("get", "b", "3:7").strip(), "[  7   7 200 200]")

    def test_stats(self):
        found = self.tessera_json("stats", "a")
        self.assertEqual((found["count"], found["fill"], found["min"], found["max"]), (LENGTH, LENGTH - 6, 1, 200))
        self.assertAlmostEqual(found["mean"], 7 + (4 * 193 - 2 * 6) / LENGTH, delta=1e-9)

    def test_verify(self):
        self.assertEqual(json.loads(self.tessera("verify", "a", "--json"))["chunks"], 2)


@unittest.skipIf(h5py is None, "h5py is not installed")
class Hdf5Test(ProgramTest):
    SHAPE = (20, 10**12)

    def make(self, libver=None, values=True, **options):
        with h5py.File(self.folder / "x.h5", "w", libver=libver) as f:
            array = f.create_dataset("p", self.SHAPE, "<f2", **options)
            if values:
                array[3, 5:9] = 2

    def look(self, fill, stored):
        self.assertIn("x.h5: sound", self.tessera("verify", "x.h5"))
        found = self.tessera_json("stats", "x.h5::p")
        values = [fill, *([2] if stored else [])]
        self.assertEqual((found["count"], found["min"], found["max"]), (20 * 10**12, min(values), max(values)))
        self.tessera("copy", "x.h5::p", "z", "--chunks", "20,3000", "--codec", "zstd", "--format", "v3", "--overwrite",
                     "--quiet")
        info = self.tessera_json("info", "z")
        self.assertEqual((info["chunks_stored"], info["fill_value"]), (stored, fill))
        self.tessera("diff", "x.h5::p", "z", "--quiet")

    def test_every_index_of_chunks(self):
        unlimited = {"earliest": [(20, None)], "latest": [None, (20, None), (None, None)]}
        for libver, lengths in unlimited.items():
            for maxshape in lengths:
                with self.subTest(libver=libver, maxshape=maxshape):
                    # libhdf5 would write the whole list that tells where the chunks of a fixed array lie.
                    values = (libver, maxshape) != ("latest", None)
                    self.make(libver, values, chunks=(20, 30), maxshape=maxshape)
                    self.look(0, int(values))

    def test_filters_and_fill(self):
        self.make(chunks=(20, 30), compression="gzip", shuffle=True, fillvalue=7)
        self.look(7, 1)

    def test_contiguous(self):
        self.make(values=False, fillvalue=7)
        self.look(7, 0)

    def test_virtual(self):
        with h5py.File(self.folder / "x.h5", "w") as f:
            f["q"] = np.full((3, 4), 2, "<f2")
            layout = h5py.VirtualLayout(self.SHAPE, "<f2")
            layout[4:7, 100:104] = h5py.VirtualSource(f["q"])
            layout[4:7, 10**11:10**11 + 4] = h5py.VirtualSource(f["q"])
            f.create_virtual_dataset("p", layout, fillvalue=-3)
        self.look(-3, 2)
        self.assertEqual(self.tessera("get", "x.h5::p", "6,103:105").strip(), "[ 2.0 -3.0]")

    def test_digest(self):
        with h5py.File(self.folder / "x.h5", "w") as f:
            array = f.create_dataset("p", (LENGTH,), "u1", chunks=(3000,), fillvalue=7)
            array[5:9] = 200
        self.tessera("copy", "x.h5::p", "a", "--chunks", "3000", "--format", "v3", "--quiet")
        self.tessera("set", "a", "-2:", "1", "--quiet")
        self.assertEqual(self.tessera("digest", "a").split()[0], expected())
        self.tessera("set", "a", "-2:", "7", "--quiet")
        self.assertEqual(self.tessera("digest", "a").split()[0], self.tessera("digest", "x.h5::p").split()[0])


if __name__ == "__main__":
    main()
