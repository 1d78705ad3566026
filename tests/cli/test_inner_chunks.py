"""Whether inner chunks of shards that were stored are there."""

import json
import struct

import numpy as np

from program import ProgramTest, main


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def lose(path, chunks, which):
    """Marks an inner chunk of a shard as absent, in an index whose checksum is right."""
    data = bytearray(path.read_bytes())
    size = 16 * chunks
    index = data[-size - 4:-4]
    index[16 * which:16 * which + 16] = b"\xff" * 16
    path.write_bytes(data[:-size - 4] + index + struct.pack("<I", crc32c(index)))


class InnerChunksTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.values = np.arange(1, 8101, dtype="<i4").reshape(90, 90)
        np.save(self.folder / "x.npy", self.values)
        self.make("a")

    def make(self, name, *more):
        self.tessera("copy", "x.npy", name, "--format", "v3", "--chunks", "10,10", "--shards", "30,30", "--quiet", *more)

    def verify(self, *words):
        return json.loads(self.run_program("verify", *words, "--json").stdout)

    def absent(self, *words):
        return [(f["key"], f.get("inner")) for f in self.verify("a", *words)["findings"] if f["kind"] == "absent"]

    def test_a_lost_one_is_missed(self):
        self.assertEqual((self.verify("a")["chunks"], self.absent(), self.absent("--complete")), (81, [], []))
        lose(self.folder / "a/c/0/1", 9, 4)
        for words in ([], ["--complete"]):
            self.assertEqual(self.absent(*words), [("c/0/1", [1, 1])])
            found = self.verify("a", *words)
            self.assertEqual((found["sound"], found["absent"], found["chunks"], found["missing"]), (False, 1, 80, 1))
        self.assertIn("80 of 81 chunks stored", self.run_program("verify", "a").stdout)
        info = self.tessera_json("info", "a")
        self.assertEqual([info[name] for name in ("chunks_stored", "chunks_possible", "shards_stored", "shards_possible")],
                         [80, 81, 9, 9])

    def test_a_lost_shard_is_one_finding(self):
        (self.folder / "a/c/2/2").unlink()
        self.assertEqual(self.absent(), [("c/2/2", None)])
        self.assertEqual(self.verify("a")["absent"], 9)

    def test_what_is_set_to_the_fill_is_not_missed(self):
        self.tessera("set", "a", "0:10,0:20", "0")
        self.tessera("set", "a", "30:60,30:60", "0")
        (self.folder / "script").write_text("set 60:70,60:70 0\n")
        self.tessera("edit", "a", "--script", "script")
        self.assertEqual((self.verify("a")["chunks"], self.absent()), (81 - 2 - 9 - 1, []))
        self.tessera("undo", "a")
        self.assertEqual(self.absent(), [])
        lose(self.folder / "a/c/2/2", 9, 8)
        self.assertEqual(self.absent(), [("c/2/2", [2, 2])])

    def test_resizing(self):
        self.tessera("resize", "a", "45,90")
        self.tessera("resize", "a", "90,90")
        self.assertEqual(self.absent(), [])
        lose(self.folder / "a/c/0/0", 9, 0)
        self.assertEqual(self.absent(), [("c/0/0", [0, 0])])

    def test_what_sync_replaces(self):
        self.tessera("copy", "a", "b", "--quiet")
        self.tessera("set", "b", "0:10,0:10", "0")
        self.tessera("sync", "b", "a")
        self.assertEqual(self.absent(), [])

    def test_the_record_of_an_earlier_version(self):
        record = self.folder / "a/.tessera/stored"
        record.write_text('{"tessera_stored": 1, "grid": [3, 3], "chunks": [30, 30], "key": "c/0/0"}\n0-8\nend\n-c/1/1\n')
        self.assertEqual(self.verify("a")["findings"], [])
        for name in ("0/2", "1/1"):
            (self.folder / "a/c" / name).unlink()
        self.assertEqual(self.absent(), [("c/0/2", None)])


if __name__ == "__main__":
    main()
