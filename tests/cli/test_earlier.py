"""What commit 135c6a5d left on the disk, finished and unfinished: it opens, verifies, is undone, restored and finished."""

import re

import numpy as np

from earlier import UnpackedTest
from program import main

VALUES = np.arange(20 * 21, dtype="<i4").reshape(20, 21) * 37 % 1000
EDITED = VALUES.copy()  # by tests/golden/earlier/make.py
EDITED[0:7, 0], EDITED[19, 20] = 5, 6


class Earlier(UnpackedTest):
    def holds(self, path, values=VALUES):
        np.testing.assert_array_equal(self.exported(path), values, str(path))

    def sound(self, *paths):
        for path in paths:
            self.tessera("verify", path, "--quiet")

    def test_arrays(self):
        self.unpack("arrays", "texts.npy", "table.npy")
        for kind in ("zmeta", "v1", "v2", "v2-nested", "v3", "sharded", "rectilinear"):
            path = f"arrays/{kind}.zarr"
            self.holds(path)
            self.sound(path)
            self.tessera("set", path, "3:9,4", "-1", "--quiet")
            self.tessera("undo", path, "--quiet")
            self.holds(path)
            self.assertIn("import values.npy", self.tessera("log", path))
        for path in "arrays/v3.zip", "arrays/v2.json":
            self.holds(path)
            self.sound(path)
        self.assertEqual(self.tessera_json("get", "arrays/texts.zarr"), np.load(self.path("texts.npy")).tolist())
        np.testing.assert_array_equal(self.exported("arrays/table.zarr"), np.load(self.path("table.npy")))
        self.sound("arrays/texts.zarr", "arrays/table.zarr")

    def test_a_group(self):
        self.unpack("group/")
        self.holds("group/heat")
        self.holds("group/inner/rain")
        self.assertEqual(self.tessera_json("attrs", "group"), {"title": "made before"})
        self.assertEqual(self.tessera_json("attrs", "group/heat"), {"units": "K"})
        self.tessera("consolidate", "group", "--check")
        self.sound("group")

    def test_seals(self):
        self.unpack("sealed.zarr", "parity.zarr", "bag/")
        self.sound("sealed.zarr", "parity.zarr", "bag")
        for name in ("sealed.zarr", "parity.zarr"):
            self.refused("set", name, "0,0", "1", says="seal")
        self.holds("bag/data/bagged.zarr")
        chunk = self.folder / "parity.zarr/c/1/1"
        whole = chunk.read_bytes()
        chunk.unlink()
        self.tessera("verify", "parity.zarr", "--quiet", code=1)
        self.tessera("repair", "parity.zarr", "--quiet")
        self.assertEqual(chunk.read_bytes(), whole)
        self.sound("parity.zarr")
        (self.folder / "sealed.zarr/c/1/1").write_bytes(whole[:-1])
        (self.folder / "bag/data/bagged.zarr/c/1/1").write_bytes(whole[:-1])
        for name in ("sealed.zarr", "bag"):
            self.tessera("verify", name, "--quiet", code=1)

    def test_snapshots(self):
        self.unpack("snaps.zarr")
        self.assertEqual({(s["name"], s["sums"]) for s in self.tessera_json("snapshot", "snaps.zarr", "list")},
                         {("plain", False), ("sums", True)})
        changed = VALUES.copy()
        changed[3, 4] = -1
        for name in ("plain", "sums"):
            self.sound(f"snaps.zarr.snapshots/{name}")
            self.holds(f"snaps.zarr.snapshots/{name}")
        self.holds("snaps.zarr", changed)
        self.tessera("snapshot", "snaps.zarr", "restore", "plain", "--quiet")
        self.holds("snaps.zarr")
        self.tessera("set", "snaps.zarr", "...", "0", "--quiet")
        self.tessera("snapshot", "snaps.zarr", "restore", "sums", "--quiet")
        self.holds("snaps.zarr")
        self.sound("snaps.zarr", "snaps.zarr.snapshots/plain", "snaps.zarr.snapshots/sums")

    def test_undo(self):
        self.unpack("undo-")
        self.holds("undo-batch.zarr", EDITED)
        for name in ("undo-set.zarr", "undo-batch.zarr"):
            self.tessera("undo", name, "--quiet")
            self.holds(name)
            self.sound(name)
        self.assertEqual(self.tessera_json("attrs", "undo-batch.zarr"), {})
        self.tessera("undo", "undo-batch.zarr", "--quiet")  # of the undo
        self.holds("undo-batch.zarr", EDITED)
        self.tessera("undo", "undo-group", "--quiet")
        self.holds("undo-group/heat")
        self.holds("undo-group/inner/rain")
        self.sound("undo-group")

    def test_an_interrupted_command_is_not_undone_after_a_restart(self):
        self.unpack("undo-killed.zarr")
        record = self.folder / "undo-killed.zarr/.tessera/undo/changes"
        record.write_text(re.sub(r'"boot": "[^"]*"', '"boot": "earlier"', record.read_text()))  # on any day but the first
        self.refused("undo", "undo-killed.zarr", says="the system was restarted since")
        changed = VALUES.copy()
        changed[:5] = -1
        self.holds("undo-killed.zarr", changed)
        self.sound("undo-killed.zarr")

    def test_a_recorded_batch_is_finished(self):
        self.unpack("pending.zarr")
        self.assertIn("3 of its 4 changes are in place", self.tessera("verify", "pending.zarr"))
        self.tessera("set", "pending.zarr", "10,10", int(VALUES[10, 10]), "--quiet", "--no-undo")
        self.holds("pending.zarr", EDITED)
        self.assertEqual(self.tessera_json("attrs", "pending.zarr"), {"note": 1})
        self.sound("pending.zarr")
        self.assertFalse((self.folder / "pending.zarr/.tessera/batch/journal").exists())

    def test_a_recorded_batch_is_read_and_undone(self):
        self.unpack("pending.zarr")
        self.holds("pending.zarr", EDITED)  # laid over what is there
        self.tessera("repair", "pending.zarr", "--quiet")
        self.holds("pending.zarr", EDITED)
        self.tessera("undo", "pending.zarr", "--quiet")
        self.holds("pending.zarr")

    def test_a_recorded_batch_is_given_up(self):
        self.unpack("pending")
        for path, arrays in {"pending.zarr": ["pending.zarr"], "pending-group": ["pending-group/heat"]}.items():
            self.tessera("repair", path, "--give-up-batches", "--quiet")
            for array in arrays:
                self.holds(array)
            self.sound(path)

    def test_a_batch_over_a_group_is_finished(self):
        self.unpack("pending-group")
        heat, rain = VALUES.copy(), VALUES.copy()
        heat[0, 0], rain[19, 20] = 5, 6
        self.holds("pending-group/inner/rain", rain)
        self.holds("pending-group/heat", heat)
        self.tessera("repair", "pending-group", "--quiet")
        self.assertEqual([*(self.folder / "pending-group").rglob(".tessera/batch/journal")], [])
        self.holds("pending-group/inner/rain", rain)
        self.holds("pending-group/heat", heat)
        self.sound("pending-group")
        self.tessera("undo", "pending-group", "--quiet")
        self.holds("pending-group/inner/rain")
        self.holds("pending-group/heat")

    def test_a_copy_goes_on(self):
        self.unpack("values.npy", "resumed.zarr", ".resumed")
        self.refused("get", "resumed.zarr", says="unfinished")
        left = self.folder / "resumed.zarr/c/.tessera-tmp-1-1-killed"
        left.write_bytes(b"a part of a chunk")
        self.tessera("import", "values.npy", "resumed.zarr", "--format", "v3", "--chunks", "5,7", "--resume", "--quiet")
        self.assertFalse(left.exists())
        self.holds("resumed.zarr")
        self.sound("resumed.zarr")

    def test_a_job_is_finished(self):
        self.unpack("arrays/v3.zarr", "job.json", "worked.zarr")
        self.assertEqual(self.tessera_json("job", "job.json", code=1)["units_done"], 1)
        self.assertEqual(self.tessera_json("finish", "job.json", code=1)["missing_units"], "0,2")
        self.tessera("work", "job.json", "--units", "0,2", "--quiet")
        self.assertTrue(self.tessera_json("finish", "job.json")["finished"])
        self.holds("worked.zarr")
        self.sound("worked.zarr")

    def test_a_cache_of_the_network(self):
        self.unpack("cache", "arrays/v3.zarr")
        digest = self.tessera("digest", self.made["url"], "--cache", "cache", "--offline").split()[0]
        self.assertEqual(digest, self.tessera("digest", "arrays/v3.zarr").split()[0])


if __name__ == "__main__":
    main()
