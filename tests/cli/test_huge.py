"""Arrays of huge shapes of which next to nothing is stored: what is absent costs by the run."""

import hashlib
import json

import numpy as np

from program import ProgramTest, main

LENGTH = (1 << 40) + 12_345  # more leaves of a digest than are kept in a list
LEAF = LENGTH
while LEAF > 1 << 20:
    LEAF = -(-LEAF // 2)


class HugeTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.make("a", "3000")

    def make(self, name, chunks):
        self.tessera("create", name, "--shape", LENGTH, "--dtype", "u1", "--chunks", chunks, "--fill", "7", "--format", "v3",
                     "--quiet")
        self.tessera("set", name, "5:9", "200", "--quiet")
        self.tessera("set", name, "-2:", "1", "--quiet")

    def expected(self):
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

    def test_digest(self):
        self.assertEqual(self.tessera("digest", "a").split()[0], self.expected())

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


if __name__ == "__main__":
    main()
