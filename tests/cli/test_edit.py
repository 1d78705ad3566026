"""`tessera edit` and `tessera undo` as a person uses them: all of a script or nothing of it, and back again."""
import json
import os
import pathlib
import signal
import subprocess
import time

import numpy as np

from program import PROGRAM, ProgramTest, digest, main, zarr

SCRIPT = """\
# a morning's corrections
set '0:10, :' 7
set "20:25, 2:4" block.npy   # a file
resize 130,50
append more.npy 0
attr reviewed true
attr by "J. \\"Bob\\" Doe"
attr note plain-text
unattr draft
"""


class Edits(ProgramTest):
    def setUp(self):
        super().setUp()
        self.tessera("create", "grid.zarr", "--shape", "100,50", "--chunks", "30,30", "--dtype", "<i4", "--fill", "42",
                     "--format", "v2", "--attrs", '{"draft": 1}')
        np.save(self.folder / "block.npy", np.arange(10, dtype="<i4").reshape(5, 2))
        np.save(self.folder / "more.npy", np.full((3, 50), -5, "<i4"))
        (self.folder / "script").write_text(SCRIPT)
        self.old = np.full((100, 50), 42, "<i4")
        self.new = np.full((133, 50), 42, "<i4")
        self.new[:10] = 7
        self.new[20:25, 2:4] = np.arange(10).reshape(5, 2)
        self.new[130:] = -5

    def check(self, expected, attributes):
        opened = zarr.open(str(self.folder / "grid.zarr"), "r")  # Python's own
        np.testing.assert_array_equal(opened[...], expected)
        self.assertEqual(dict(opened.attrs), attributes)

    def test_all_edits_take_effect_and_are_taken_back(self):
        after = {"reviewed": True, "by": 'J. "Bob" Doe', "note": "plain-text"}
        done = self.tessera("edit", "grid.zarr", "--script", "script")
        self.assertRegex(done, r"^edited grid\.zarr: 8 edits, \d+ files written or removed\n$")
        self.check(self.new, after)
        self.assertIn("the last batch is taken back", self.tessera("undo", "grid.zarr"))
        self.check(self.old, {"draft": 1})
        self.tessera("undo", "grid.zarr")
        self.check(self.new, after)
        self.tessera("verify", "grid.zarr")

    def test_a_bad_line_changes_nothing(self):
        before = digest(self.folder / "grid.zarr")
        for line, words in [
            ("sett 0 1", "'sett' is none of: set SELECTION VALUE|FILE"),
            ("set 0:5", "expected set SELECTION VALUE|FILE [raw], found 2 words"),
            ("set '0:5, : 1", "a ' is not closed"),
            ("set 0:5,: 3.5", "3.5"),
            ("append nowhere.npy", "nowhere.npy"),
            ("resize 5", "number of dimensions"),
            ("unattr missing", "no attribute 'missing'"),
        ]:
            with self.subTest(line=line):
                (self.folder / "bad").write_text("set 0:50,: 1\n\n" + line + "\n")
                self.refused("edit", "grid.zarr", "--script", "bad", says=["bad:3: nothing was changed", words])
                self.assertEqual(digest(self.folder / "grid.zarr"), before)
        self.assertFalse((self.folder / "grid.zarr/.tessera/batch").exists())
        self.assertIn("nothing to take back", self.refused("undo", "grid.zarr"))

    def test_a_value_is_a_text_unless_it_names_a_file(self):
        self.tessera("create", "text.zarr", "--shape", "2", "--dtype", "<U400", "--format", "v2")
        np.save(self.folder / "two.npy", np.array(["from", "file"], "<U400"))
        (self.folder / "notes.md").write_text("no array")
        for value in "a" * 300, "folder/two.npy", "notes.md", ".", "missing.npy":  # the first is too long for a name
            self.tessera("set", "text.zarr", "0", value)
            self.assertEqual(json.loads(self.tessera("get", "text.zarr", "0")), value)
        for value in "two.npy", "@two.npy":
            self.tessera("set", "text.zarr", ":", "old")
            self.tessera("set", "text.zarr", ":", value)
            self.assertEqual(json.loads(self.tessera("get", "text.zarr", "--json")), ["from", "file"])
        self.refused("set", "grid.zarr", "...", "missing.npy", says=["missing.npy: no such array file"])

    def test_from_standard_input_with_a_report_in_json(self):
        done = subprocess.run([PROGRAM, "edit", "grid.zarr", "--script", "-", "--json"], cwd=self.folder, text=True,
                              input="set 0,0 1\nset 99,49 2\n", capture_output=True, check=True)
        self.assertEqual(json.loads(done.stdout), {"path": "grid.zarr", "edits": 2, "values_changed": 2})
        self.old[0, 0], self.old[99, 49] = 1, 2
        self.check(self.old, {"draft": 1})

    def test_undo_does_not_lose_what_came_after(self):
        self.tessera("edit", "grid.zarr", "--script", "script")
        with_library = zarr.open(str(self.folder / "grid.zarr"), "r+")
        with_library[0, 0] = 8
        self.assertIn("0.0 was changed after the batch", self.refused("undo", "grid.zarr"))
        self.assertEqual(zarr.open(str(self.folder / "grid.zarr"), "r")[0, 0], 8)
        self.assertFalse((self.folder / "grid.zarr/.tessera/batch").exists())

    def test_a_failed_append_leaves_nothing(self):
        values = np.random.default_rng(1).integers(0, 1 << 30, (4000, 50), "<i4")
        np.save(self.folder / "more.npy", values)
        self.tessera("import", "more.npy", "more.zarr", "--chunks", "100,50", "--format", "v2", "--quiet")
        (self.folder / "more.zarr/39.0").write_bytes(b"no chunk")
        self.tessera("create", "a.zarr", "--shape", "5,50", "--chunks", "10,50", "--dtype", "<i4", "--format", "v2",
                     "--quiet")
        before = sorted(p.name for p in (self.folder / "a.zarr").iterdir() if p.name != ".tessera")
        self.refused("append", "a.zarr", "more.zarr", "--max-memory", "1M")
        self.assertEqual(self.tessera_json("info", "a.zarr")["shape"], [5, 50])
        self.assertEqual(sorted(p.name for p in (self.folder / "a.zarr").iterdir() if p.name != ".tessera"), before)
        self.assertNotIn("leftover", self.tessera("verify", "a.zarr"))

    def test_without_undo_nothing_is_kept(self):
        self.tessera("edit", "grid.zarr", "--script", "script", "--no-undo")
        self.assertEqual(list((self.folder / "grid.zarr/.tessera").glob("undo/*")), [])
        self.assertIn("nothing to take back", self.refused("undo", "grid.zarr"))

    def test_writers_wait_for_a_batch_and_a_killed_one_leaves_nothing(self):
        editing = subprocess.Popen([PROGRAM, "edit", "grid.zarr", "--script", "-"], cwd=self.folder, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        editing.stdin.write("set 0:50,: 1\n")
        editing.stdin.flush()
        batch = self.folder / "grid.zarr/.tessera/batch"
        while not list(batch.glob("[0-9a-f]*")):
            self.assertIsNone(editing.poll())
            time.sleep(0.01)
        # Readers go on, and see the old values.
        self.assertEqual(self.tessera("get", "grid.zarr", "0,0"), "42\n")
        waiting = subprocess.Popen([PROGRAM, "set", "grid.zarr", "60:70,:", "3"], cwd=self.folder,
                                   stdout=subprocess.DEVNULL)
        with self.assertRaises(subprocess.TimeoutExpired):
            waiting.wait(1)
        editing.send_signal(signal.SIGKILL)
        editing.communicate()
        self.assertEqual(waiting.wait(60), 0)
        self.old[60:70] = 3
        self.check(self.old, {"draft": 1})


class GroupEdits(ProgramTest):
    """A time series of three arrays, changed together."""

    NAMES = ("time", "level", "sub/heat")

    def setUp(self):
        super().setUp()
        for name in self.NAMES:
            self.tessera("create", f"g.zarr/{name}", "--shape", "4", "--chunks", "3", "--dtype", "<i4", "--fill", "1",
                         "--format", "v2", "--quiet")
        np.save(self.folder / "more.npy", np.array([5, 6], "<i4"))
        (self.folder / "script").write_text("".join(f"array {name}\nappend more.npy\n" for name in self.NAMES))

    def shapes(self):
        return {zarr.open(str(self.folder / "g.zarr" / name), "r").shape for name in self.NAMES}

    def test_all_arrays_or_none(self):
        for metadata in False, True:  # a plain folder, and a group with metadata
            with self.subTest(metadata=metadata):
                if metadata:
                    self.tessera("group", "g.zarr", "--format", "v2", "--quiet")
                self.assertEqual(self.shapes(), {(4,)})
                done = self.tessera_json("edit", "g.zarr", "--script", "script")
                self.assertEqual((done["edits"], done["arrays"], done["values_changed"]), (3, 3, 6))
                self.assertEqual(self.shapes(), {(6,)})
                self.assertEqual(zarr.open(str(self.folder / "g.zarr/time"), "r")[3:].tolist(), [1, 5, 6])
                self.assertIn("`tessera undo` of the group", self.refused("undo", "g.zarr/time"))
                self.assertIn("the last batch is taken back", self.tessera("undo", "g.zarr"))
                self.assertEqual(self.shapes(), {(4,)})
                self.tessera("verify", "g.zarr")

    def test_a_bad_line_changes_nothing(self):
        before = digest(self.folder / "g.zarr/time")
        for line, words in [
            ("append more.npy", "first name the array, by a line array PATH"),
            ("array", "expected array PATH, found 1 words"),
            ("array nothing\nappend more.npy", "g.zarr/nothing"),
            ("array ../g.zarr/time", "bad:1"),
            ("array time\nappend more.npy\narray level\nappend nowhere.npy", "bad:4: nothing was changed"),
        ]:
            with self.subTest(line=line):
                (self.folder / "bad").write_text(line + "\n")
                self.refused("edit", "g.zarr", "--script", "bad", says=[words])
                self.assertEqual(self.shapes(), {(4,)})
                self.assertEqual(digest(self.folder / "g.zarr/time"), before)
        (self.folder / "bad").write_text("array time\n")
        self.assertIn("'array' is none of", self.refused("edit", "g.zarr/time", "--script", "bad"))
        self.refused("edit", "nowhere", "--script", "bad", says=["nowhere"])

    def test_writers_of_all_arrays_wait(self):
        with subprocess.Popen([PROGRAM, "edit", "g.zarr", "--script", "-", "--quiet"], cwd=self.folder, text=True,
                              stdin=subprocess.PIPE) as editing:
            editing.stdin.write("array time\nset : 7\n")
            editing.stdin.flush()
            while not list(self.folder.glob("g.zarr/time/.tessera/batch/*.*")):
                self.assertIsNone(editing.poll())
                time.sleep(0.01)
            with subprocess.Popen([PROGRAM, "set", "g.zarr/level", ":", "3", "--quiet"], cwd=self.folder) as waiting:
                with self.assertRaises(subprocess.TimeoutExpired):
                    waiting.wait(0.5)
                self.assertEqual(self.tessera("get", "g.zarr/time", "0"), "1\n")
                editing.stdin.close()
                self.assertEqual((editing.wait(60), waiting.wait(60)), (0, 0))
        self.assertEqual(self.tessera("get", "g.zarr/time", "0"), "7\n")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    main()
