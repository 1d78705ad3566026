"""`tessera undo` of plain commands: each is taken back to the byte and made again, for every format; what somebody else
wrote since is never lost; what cannot be kept is said."""
import json
import os
import shutil
import signal
import subprocess
import time

import numpy as np

from program import FEWER, PROGRAM, ProgramTest, chosen, digest, main, zarr

LAYOUTS = {
    "zmeta": ["--format", "zmeta"],
    "v1": ["--format", "v1"],
    "v2": ["--format", "v2"],
    "v2plain": ["--format", "v2", "--codec", "none"],
    "v3": ["--format", "v3"],
    "sharded": ["--format", "v3", "--shard", "16,16"],
}


class Undo(ProgramTest):
    def create(self, name="a.zarr", layout="v2", shape="30,20"):
        chunks = "8,8"
        self.tessera("create", name, "--shape", shape, "--chunks", chunks, "--dtype", "<i4", "--fill", "7", "--quiet",
                     "--attrs", '{"units": "m", "old": 1}', *LAYOUTS[layout])
        self.save("all.npy", np.arange(600, dtype="<i4").reshape(30, 20))
        self.tessera("set", name, "...", "all.npy", "--quiet", "--no-undo")
        return name

    def kept(self, name="a.zarr"):
        return sorted(p.name for p in (self.folder / name / ".tessera").glob("undo/*"))

    def test_each_command_is_taken_back_and_made_again(self):
        self.save("rows.npy", np.full((5, 20), -3, "<i4"))
        self.save("columns.npy", np.full((30, 3), -4, "<i4"))
        self.save("block.npy", np.arange(1000, 1000 + 27 * 17, dtype="<i4").reshape(27, 17))
        self.tessera("create", "other.zarr", "--shape", "1", "--chunks", "1", "--dtype", "<i4", "--attrs",
                     '{"more": [1, 2]}', "--quiet")
        commands = [
            ["set", "2:20, 3:", "5"],
            ["set", "3:, 3:", "block.npy"],
            ["set", "3:, 3:", "block.npy", "--max-memory", "64K"],  # in parts that cut chunks
            ["set", "...", "7"],  # the fill: chunks go
            ["append", "rows.npy"],
            ["append", "columns.npy", "--axis", "1"],
            ["resize", "9,9"],
            ["resize", "41,37"],
            ["resize", "41,9"],
            ["attrs", "set", "x", "[1]"],
            ["attrs", "rm", "old"],
            ["attrs", "mv", "old", "new"],
            ["attrs", "copy", "other.zarr"],
            ["dims", "y,x"],
            ["calc", "x + 1", "x=a.zarr", "--in-place", "--sel", ":9"],
        ]
        for number, layout in enumerate(LAYOUTS):
            shutil.rmtree(self.folder / "a.zarr", ignore_errors=True)
            self.create(layout=layout)
            # Every command in one layout, and in each layout every third.
            for verb, *words in chosen(commands if layout == "v2" else commands[number % 3::3]):
                with self.subTest(layout=layout, command=[verb, *words]):
                    before = digest(self.folder / "a.zarr")
                    self.tessera(verb, "a.zarr", *words, "--quiet")
                    after = digest(self.folder / "a.zarr")
                    self.assertNotEqual(after, before)
                    for expected in (before, after, before):
                        self.tessera("undo", "a.zarr", "--quiet")
                        self.assertEqual(digest(self.folder / "a.zarr"), expected)
            self.tessera("verify", "a.zarr", "--quiet")

    def test_a_field_of_a_table(self):
        self.save("table.npy", np.zeros(10, [("a", "<i4"), ("b", "<f8")]))
        self.tessera("import", "table.npy", "t.zarr", "--format", "v2", "--quiet")
        before = digest(self.folder / "t.zarr")
        self.tessera("set", "t.zarr::b", "2:5", "1.5", "--quiet")
        said = self.tessera("undo", "t.zarr")
        self.assertEqual(said, "t.zarr: `tessera set t.zarr::b 2:5 1.5 --quiet` is taken back, 1 file written or removed; another undo "
                               "makes it again\n")
        self.assertEqual(digest(self.folder / "t.zarr"), before)

    def test_an_undo_of_an_undo_says_what_is_made_again(self):
        self.create()
        (self.folder / "script").write_text("set '0:9, :' 1\n")
        self.tessera("group", "g.zarr", "--format", "v3", "--quiet")
        for path, words in (("a.zarr", ("set", "a.zarr", "0,0", "-1", "--quiet")),
                            ("a.zarr", ("attrs", "a.zarr", "set", "units", "m", "--quiet")),
                            ("g.zarr", ("attrs", "g.zarr", "set", "units", "m", "--quiet")),
                            ("a.zarr", ("edit", "a.zarr", "--script", "script", "--quiet"))):
            self.tessera(*words)
            what = "the last batch" if words[0] == "edit" else f"`tessera {' '.join(words)}`"
            for now, then in (("taken back", "makes it again"), ("made again", "takes it back")) * 2:
                self.assertRegex(self.tessera("undo", path), f"^{path}: {what} is {now}, .*; another undo {then}\n$")
            report = self.tessera_json("undo", path)
            self.assertEqual(report["made_again"], None)
            self.assertEqual(report["taken_back"], None if words[0] == "edit" else what.strip("`"))
            report = self.tessera_json("undo", path)
            self.assertEqual(report["taken_back"], None)
            self.assertEqual(report["made_again"], None if words[0] == "edit" else what.strip("`"))

    def test_only_the_last_change_is_taken_back(self):
        self.create()
        self.tessera("set", "a.zarr", "0, 0", "-1", "--quiet")
        first = digest(self.folder / "a.zarr")
        self.tessera("set", "a.zarr", "20, 10", "-2", "--quiet")
        second = digest(self.folder / "a.zarr")
        self.tessera("undo", "a.zarr", "--quiet")
        self.assertEqual(digest(self.folder / "a.zarr"), first)
        self.tessera("undo", "a.zarr", "--quiet")
        self.assertEqual(digest(self.folder / "a.zarr"), second)
        # What fails, and what changes nothing, leaves the last change to be taken back.
        self.refused("set", "a.zarr", "0, 0", "no number")
        self.refused("resize", "a.zarr", "3")
        self.tessera("set", "a.zarr", "0:0, 0", "5", "--quiet")
        self.tessera("undo", "a.zarr", "--quiet")
        self.assertEqual(digest(self.folder / "a.zarr"), first)

    def test_a_batch_after_a_command_and_a_command_after_a_batch(self):
        self.create()
        states = [digest(self.folder / "a.zarr")]
        (self.folder / "script").write_text("set '0:9, :' 1\nattr done true\n")
        for words in (["set", "a.zarr", ":, 0", "3"], ["edit", "a.zarr", "--script", "script"],
                      ["set", "a.zarr", ":, 0", "4"]):
            self.tessera(*words, "--quiet")
            states.append(digest(self.folder / "a.zarr"))
            self.tessera("undo", "a.zarr", "--quiet")
            self.assertEqual(digest(self.folder / "a.zarr"), states[-2])
            self.tessera("undo", "a.zarr", "--quiet")
            self.assertEqual(digest(self.folder / "a.zarr"), states[-1])

    def test_an_old_value_that_was_changed_is_not_put_back(self):
        (self.folder / "script").write_text("set 0:5,0:5 1\n")
        for words in [("set", "a.zarr", "0:5,0:5", "1"), ("edit", "a.zarr", "--script", "script")]:
            for change in [lambda data: b"", lambda data: data[:-1], lambda data: data]:
                with self.subTest(words=words[0]):
                    shutil.rmtree(self.folder / "a.zarr", ignore_errors=True)
                    self.create(layout="v2plain")
                    self.tessera(*words, "--quiet")
                    after = digest(self.folder / "a.zarr")
                    kept = next(self.folder.glob("a.zarr/.tessera/undo/*.0"))
                    kept.write_bytes(change(kept.read_bytes()))
                    self.refused("undo", "a.zarr", says=[kept.name, "changed since", "it had 256 bytes"])
                    self.assertEqual(digest(self.folder / "a.zarr"), after)

    def test_what_others_wrote_since_is_not_lost(self):
        self.create()
        self.tessera("set", "a.zarr", ":16, :8", "5", "--quiet")
        other = zarr.open(str(self.folder / "a.zarr"), "r+")
        other[20, 10] = 99  # another chunk: it stays, and the change is taken back
        self.tessera("undo", "a.zarr", "--quiet")
        expected = np.arange(600, dtype="<i4").reshape(30, 20)
        expected[20, 10] = 99
        np.testing.assert_array_equal(other[...], expected)
        self.tessera("set", "a.zarr", ":16, :8", "5", "--quiet")
        other[9, 0] = 98
        self.refused("undo", "a.zarr", says="1.0 was changed after the command; taking the command back would lose that")
        self.assertEqual(other[9, 0], 98)
        self.assertEqual(other[0, 0], 5)
        self.tessera("resize", "a.zarr", "10,10", "--quiet")
        zarr.open(str(self.folder / "a.zarr"), "r+").resize(12, 12)
        self.refused("undo", "a.zarr", says=".zarray was changed after the command")

    def test_a_writer_between_two_writes_of_a_command(self):
        self.create()
        record = self.folder / "a.zarr/.tessera/undo/changes"
        self.tessera("set", "a.zarr", ":8, :8", "5", "--quiet")
        # A record with two changes of one chunk, of which the second replaced what another one had written.
        header, change = record.read_text().splitlines()
        own = json.loads(header)["id"]
        zarr.open(str(self.folder / "a.zarr"), "r+")[0, 0] = 99
        os.link(self.folder / "a.zarr/0.0", record.with_name(f"{own}.1"))
        self.tessera("set", "a.zarr", ":8, :8", "6", "--quiet", "--no-log")
        last = json.loads(record.read_text().splitlines()[1]) if record.exists() else None
        kept = {p.name: p for p in record.parent.glob("*.*")}
        self.assertIsNotNone(last)
        # Put together again under one id: what the first change kept is gone by now, so its old value is the present one.
        for name, path in kept.items():
            path.rename(record.with_name(f"{own}.1"))
        os.link(self.folder / "a.zarr/0.1", record.with_name(f"{own}.0"))
        last["n"] = 1
        record.write_text("\n".join([json.dumps({**json.loads(header), "end": 2}), change, json.dumps(last), ""]))
        self.refused("undo", "a.zarr", says="0.0 was changed after the command")

    def test_without_undo_nothing_is_kept(self):
        self.create()
        for words in (["set", "a.zarr", "0, 0", "1"], ["append", "a.zarr", "all.npy"], ["resize", "a.zarr", "20,20"],
                      ["attrs", "a.zarr", "set", "k", "1"], ["attrs", "a.zarr", "rm", "k"], ["dims", "a.zarr", "y,x"],
                      ["calc", "a.zarr", "x+1", "x=a.zarr", "--in-place", "--raw"]):
            self.tessera("set", "a.zarr", "0, 0", "2", "--quiet")
            self.assertNotEqual(self.kept(), [])
            self.tessera(*words, "--no-undo", "--quiet")
            self.assertEqual(self.kept(), [], words)
            self.refused("undo", "a.zarr", says="a.zarr: nothing to take back")
        self.refused("calc", "b.zarr", "x+1", "x=a.zarr", "--no-undo", says="--no-undo: only with --in-place")

    def test_info_says_what_room_it_takes(self):
        self.create(layout="v2plain")
        self.assertEqual(self.tessera_json("info", "a.zarr")["undo_bytes"], 0)
        self.assertNotIn("undo", self.tessera("info", "a.zarr"))
        self.tessera("set", "a.zarr", ":16, :8", "5", "--quiet")
        report = self.tessera_json("info", "a.zarr")
        self.assertEqual(report["undo_values"], 2)
        record = (self.folder / "a.zarr/.tessera/undo/changes").stat().st_size
        self.assertEqual(report["undo_bytes"], 2 * 256 + record)
        self.assertRegex(self.tessera("info", "a.zarr"), "kept for undo +2 old values in .tessera/undo, .*`tessera undo a.zarr`")
        # They are links: the second takes no room, and the first goes with it.
        self.tessera("set", "a.zarr", ":8, :8", "6", "--quiet")
        self.assertEqual(self.tessera_json("info", "a.zarr")["undo_values"], 1)
        self.tessera("group", "g", "--quiet")
        self.tessera("copy", "a.zarr", "g/a", "--quiet")
        self.assertEqual(self.tessera_json("info", "g")["undo_values"], 0)  # a copy takes none along
        self.tessera("set", "g/a", "0, 0", "6", "--quiet")
        self.assertEqual(self.tessera_json("info", "g")["undo_values"], 1)
        self.assertIn("kept for undo", self.tessera("info", "g"))

    def test_what_cannot_be_taken_back_is_said(self):
        self.create()
        self.refused("undo", "a.zarr", says="a.zarr: nothing to take back: only the last change can be")
        self.tessera("copy", "a.zarr", "a.zip", "--quiet")
        self.refused("undo", "a.zip")
        self.tessera("group", "g", "--quiet")
        self.refused("undo", "g", says="g: nothing to take back: of a group only the last batch over its arrays or change of its attributes")
        os.mkdir(self.folder / "plain")
        self.refused("undo", "plain")

    def test_what_is_refused_leaves_nothing(self):
        group = zarr.open_group(str(self.folder / "zg"), mode="w")
        group.array("v", np.arange(12).reshape(3, 4), chunks=(2, 2))
        group.create_group("sub")
        before = sorted(str(path) for path in self.folder.rglob("*"))
        for words in (["dims", "zg/v", "x"], ["dims", "zg/v", "x,x"], ["undo", "zg/v"], ["undo", "zg"],
                      ["attrs", "zg/v", "mv", "none", "other"], ["attrs", "zg", "mv", "none", "other"]):
            self.refused(*words)
            self.assertEqual(sorted(str(path) for path in self.folder.rglob("*")), before, words)
        self.tessera("repair", "zg", "--quiet")
        self.assertEqual(sorted(str(path) for path in self.folder.rglob("*")), before)

    def test_in_a_hierarchy(self):
        self.tessera("group", "g", "--quiet")
        self.create("g/a", "v2")
        self.create("g/b", "v2")
        before = digest(self.folder / "g")
        self.tessera("set", "g/a", "...", "1", "--quiet")
        self.tessera("set", "g/b", "...", "2", "--quiet")
        self.assertEqual(self.kept("g"), [])
        self.tessera("undo", "g/a", "--quiet")
        self.tessera("undo", "g/b", "--quiet")
        self.assertEqual(digest(self.folder / "g"), before)

    def test_what_is_sealed_and_snapshots(self):
        self.create()
        before = digest(self.folder / "a.zarr")
        self.tessera("set", "a.zarr", ":9", "1", "--quiet")
        after = digest(self.folder / "a.zarr")
        self.tessera("seal", "a.zarr", "--quiet")
        self.assertNotIn("undo", (self.folder / "a.zarr/.tessera/sha256sums.txt").read_text())
        self.refused("undo", "a.zarr", says="sealed")
        self.assertEqual(digest(self.folder / "a.zarr"), after)
        self.tessera("undo", "a.zarr", "--break-seal", "--quiet")
        self.assertEqual(digest(self.folder / "a.zarr"), before)
        self.tessera("set", "a.zarr", ":9", "1", "--quiet", "--break-seal")
        self.tessera("undo", "a.zarr", "--quiet", "--break-seal")
        self.assertEqual(digest(self.folder / "a.zarr"), before)
        self.tessera("snapshot", "a.zarr", "create", "one", "--quiet")
        self.assertFalse((self.folder / "a.zarr.snapshots/one/.tessera/undo").exists())
        self.tessera("set", "a.zarr", ":9", "1", "--quiet", "--break-seal")
        self.tessera("undo", "a.zarr", "--quiet", "--break-seal")
        self.tessera("verify", "a.zarr.snapshots/one", "--quiet")
        self.assertEqual(self.tessera("diff", "a.zarr", "a.zarr.snapshots/one").count("\n"), 1)
        self.tessera("set", "a.zarr", ":9", "1", "--quiet", "--break-seal")
        self.tessera("snapshot", "a.zarr", "restore", "one", "--quiet", "--break-seal")
        self.refused("undo", "a.zarr", "--break-seal", says="nothing to take back")

    def test_it_is_moved_with_the_array(self):
        self.create()
        before = digest(self.folder / "a.zarr")
        self.tessera("set", "a.zarr", ":9", "1", "--quiet")
        (self.folder / "a.zarr").rename(self.folder / "b.zarr")
        self.tessera("undo", "b.zarr", "--quiet")
        self.assertEqual(digest(self.folder / "b.zarr"), before)

    def test_commands_at_the_same_time(self):
        self.create(layout="v2plain")
        start = np.arange(600, dtype="<i4").reshape(30, 20)
        for turn in range(max(2, 12 // FEWER)):
            self.tessera("set", "a.zarr", "...", "all.npy", "--no-undo", "--quiet")
            parts = [np.s_[:15, :], np.s_[12:, 3:18], np.s_[:, 5:7], np.s_[29:, :]]  # they share chunks
            texts = [":15", "12:, 3:18", ":, 5:7", "29:"]
            running = [subprocess.Popen([PROGRAM, "set", "a.zarr", text, str(-1 - i), "--quiet"], cwd=self.folder)
                       for i, text in enumerate(texts)]
            for process in running:
                self.assertEqual(process.wait(60), 0)
            written = zarr.open(str(self.folder / "a.zarr"), "r")[...]
            owner = self.tessera_json("info", "a.zarr")
            self.assertLessEqual(owner["undo_values"], 12)
            result = self.run_program("undo", "a.zarr", "--json")
            now = zarr.open(str(self.folder / "a.zarr"), "r")[...]
            if result.returncode == 2:
                self.assertRegex(result.stderr, "was changed after the command|nothing to take back")
                np.testing.assert_array_equal(now, written)
                continue
            # Of the elements that the last one wrote, each has the value from before; all others are as they were.
            taken = json.loads(result.stdout)["taken_back"]
            mine = next(i for i, text in enumerate(texts) if f" {-1 - i} " in taken + " ")
            changed = now != written
            self.assertTrue(np.all(written[changed] == -1 - mine))
            self.assertFalse(np.any(now == -1 - mine))
            untouched = np.ones_like(start, bool)
            for part in parts:
                untouched[part] = False
            np.testing.assert_array_equal(now[untouched], start[untouched])
            self.tessera("verify", "a.zarr", "--quiet")

    def test_a_killed_command_is_taken_back_as_far_as_it_came(self):
        self.tessera("create", "big.zarr", "--shape", "4000,400", "--chunks", "10,400", "--dtype", "<f8", "--format",
                     "v2", "--quiet")
        self.save("big.npy", np.random.default_rng(1).random((4000, 400)))
        self.tessera("set", "big.zarr", "...", "big.npy", "--no-undo", "--quiet", "--durability", "none")
        before = digest(self.folder / "big.zarr")
        for sent in (signal.SIGKILL, signal.SIGTERM):
            shutil.rmtree(self.folder / "big.zarr/.tessera/undo", ignore_errors=True)
            running = subprocess.Popen([PROGRAM, "set", "big.zarr", "...", "2", "--durability", "each"],
                                       cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            while len(self.kept("big.zarr")) < 20 and running.poll() is None:
                time.sleep(0.001)
            running.send_signal(sent)
            said = running.communicate()[1]
            if running.returncode == 130:
                self.assertIn("`tessera undo` takes back what was changed", said)
            self.tessera("repair", "big.zarr", "--quiet")  # only what was half written goes
            self.tessera("undo", "big.zarr", "--quiet")
            self.assertEqual(digest(self.folder / "big.zarr"), before)

    def test_a_record_that_is_cut_short_takes_back_nothing(self):
        self.create()
        before = digest(self.folder / "a.zarr")
        self.tessera("set", "a.zarr", "...", "5", "--quiet")
        after = digest(self.folder / "a.zarr")
        record = self.folder / "a.zarr/.tessera/undo/changes"
        whole = record.read_bytes()
        ends = [n + 1 for n, byte in enumerate(whole[:-1]) if byte == ord("\n")]
        for end in [0, 50, len(whole) - 1, *ends, *(end + 30 for end in ends)]:
            record.write_bytes(whole[:end])
            self.refused("undo", "a.zarr", says="the last change cannot be taken back")
            self.assertEqual(digest(self.folder / "a.zarr"), after)
        record.write_bytes(whole)
        self.tessera("undo", "a.zarr", "--quiet")
        self.assertEqual(digest(self.folder / "a.zarr"), before)

    def earlier(self, text):
        """A record as earlier versions wrote it: the number of changes is its last line."""
        header, *changes = text.splitlines(keepends=True)
        header = json.loads(header)
        end = {"end": header.pop("end")}
        return json.dumps(header) + "\n", *changes, json.dumps(end) + "\n"

    def test_after_a_restart_an_interrupted_record_is_not_trusted(self):
        self.create()
        self.tessera("set", "a.zarr", ":16, :8", "5", "--quiet")
        record = self.folder / "a.zarr/.tessera/undo/changes"
        lines = self.earlier(record.read_text())
        header = json.loads(lines[0])
        after = digest(self.folder / "a.zarr")
        for boot, end in ((header["boot"], lines[-1].replace("2", "3")), ("another", "")):
            record.write_text("".join([json.dumps({**header, "boot": boot}) + "\n", *lines[1:-1], end]))
            self.refused("undo", "a.zarr")
            self.assertEqual(digest(self.folder / "a.zarr"), after)
        living = header["writer"].replace(header["writer"].split("-")[2], str(os.getpid()))
        record.write_text("".join([json.dumps({**header, "writer": living}) + "\n", *lines[1:-1]]))
        self.refused("undo", "a.zarr", says="it has not ended")
        record.write_text("".join([json.dumps({**header, "boot": "another"}) + "\n", *lines[1:-1]]))
        self.refused("undo", "a.zarr", says="the system was restarted since")
        record.write_text("".join([json.dumps({**header, "boot": "another"}) + "\n", *lines[1:]]))
        self.tessera("undo", "a.zarr", "--quiet")

    def test_a_hostile_record(self):
        self.create()
        (self.folder / "victim").write_text("mine")
        self.tessera("set", "a.zarr", ":16, :8", "5", "--quiet")
        undo = self.folder / "a.zarr/.tessera/undo"
        record = undo / "changes"
        header, *_, end = (part.strip() for part in self.earlier(record.read_text()))
        after = digest(self.folder / "a.zarr")
        present = (self.folder / "a.zarr/0.0").stat()

        def line(**members):
            return json.dumps({"n": 0, "size": present.st_size, "modified": present.st_mtime_ns, "inode": present.st_ino,
                               "old": False, "key": "0.0"} | members)

        for text in ("", "\n", "{}\n", "[]\n", "\0" * 500, header + "\n\n", header + "\n[1]\n",
                     *(f"{header}\n{line(key=key)}\n{{\"end\": 1}}\n" for key in (
                         "../../victim", "/etc/passwd", ".tessera/lock", "..", "0.0/../../x", "x", "", "0.0.0")),
                     f"{header}\n{json.dumps({'n': 0, 'old': False, 'key': '.zarray'})}\n{{\"end\": 1}}\n",
                     f"{header}\n{line(n=-1)}\n", f"{header}\n{line(size='x')}\n", f"{header}\n{line(old=1)}\n",
                     header.replace('"tessera_changes": 1', '"tessera_changes": 2') + "\n" + end + "\n",
                     header.replace(json.loads(header)["id"], "../../../../x") + "\n" + end + "\n"):
            with self.subTest(text=text[:300]):
                record.write_text(text)
                self.refused("undo", "a.zarr")
                self.assertEqual(digest(self.folder / "a.zarr"), after)
                self.assertEqual((self.folder / "victim").read_text(), "mine")
        record.unlink()
        record.symlink_to(self.folder / "victim")
        self.refused("undo", "a.zarr")
        self.tessera("set", "a.zarr", "0, 0", "1", "--quiet")  # the link goes, not what it leads to
        self.assertEqual((self.folder / "victim").read_text(), "mine")
        shutil.rmtree(undo)
        (self.folder / "elsewhere").mkdir()
        (self.folder / "elsewhere/file").write_text("mine")
        undo.symlink_to(self.folder / "elsewhere")
        self.tessera("set", "a.zarr", "0, 0", "2", "--quiet", "--follow-links")
        self.assertEqual([p.name for p in (self.folder / "elsewhere").iterdir()], ["file"])


class GroupUndo(ProgramTest):
    def test_attributes_of_a_group(self):
        for fmt in "v2", "v3":
            with self.subTest(fmt=fmt):
                self.tessera("group", fmt, "--format", fmt, "--quiet")
                self.refused("undo", fmt, says="nothing to take back")
                self.tessera("attrs", fmt, "set", "title", '"one"')
                self.tessera("attrs", fmt, "set", "title", '"two"')
                self.assertIn(f"`tessera attrs {fmt} set title ", self.tessera("undo", fmt))
                self.assertEqual(self.tessera_json("attrs", fmt), {"title": "one"})
                self.tessera("undo", fmt)
                self.assertEqual(self.tessera_json("attrs", fmt), {"title": "two"})
                self.tessera("attrs", fmt, "rm", "title")
                self.tessera("undo", fmt)
                self.assertEqual(self.tessera_json("attrs", fmt), {"title": "two"})
                self.assertTrue(self.tessera_json("verify", fmt)["sound"])
                # A change that nobody kept is not lost.
                self.tessera("attrs", fmt, "set", "units", '"m"')
                self.assertEqual(self.tessera_json("info", fmt)["undo_values"], 1)
                name = {"v2": ".zattrs", "v3": "zarr.json"}[fmt]
                document = self.folder / fmt / name
                document.write_text(document.read_text().replace('"m"', '"km"'))
                self.refused("undo", fmt, says="changed after")
                self.assertEqual(self.tessera_json("attrs", fmt)["units"], "km")
                self.tessera("attrs", fmt, "set", "units", '"m"', "--no-undo")
                self.refused("undo", fmt, says="nothing to take back")

    def test_a_group_and_its_arrays_are_apart(self):
        values = np.arange(12, dtype="f4").reshape(3, 4)
        self.save("a.npy", values)
        self.tessera("group", "g", "--quiet")
        self.tessera("import", "a.npy", "g/a", "--quiet")
        self.tessera("attrs", "g", "set", "title", "1")
        self.tessera("set", "g/a", "0", "7", "--quiet")
        self.tessera("undo", "g", "--quiet")
        self.assertEqual(self.tessera_json("attrs", "g"), {})
        self.assertEqual(self.exported("g/a")[0].tolist(), [7, 7, 7, 7])
        self.tessera("undo", "g/a", "--quiet")
        np.testing.assert_array_equal(self.exported("g/a"), values)

    def test_a_record_from_elsewhere_changes_nothing_else(self):
        self.tessera("group", "g", "--quiet")
        self.tessera("attrs", "g", "set", "title", "1")
        record = self.folder / "g/.tessera/undo/changes"
        text = record.read_text()
        for key in "a/zarr.json", "zarr.json2", "../x", ".tessera/log":
            record.write_text(text.replace('"key":"zarr.json"', json.dumps({"key": key})[1:-1].replace(": ", ":")))
            self.refused("undo", "g")
        self.assertEqual(self.tessera_json("attrs", "g"), {"title": 1})


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    main()
