"""The fixity log, and repair from another copy: `verify --record`, `--due`, `--sample`, `log --fixity`, `repair --from`."""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

import numpy as np

from program import PROGRAM, ProgramTest, main, module_folder

VALUES = np.arange(24 * 30, dtype="<i4").reshape(24, 30)


class FixityTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.save("values.npy", VALUES)
        self.tessera("import", "values.npy", "a.zarr", "--chunks", "6,10", "--format", "v3", "--codec", "gzip:1", "--quiet")
        self.log = self.folder / "a.zarr/.tessera/fixity.jsonl"

    def records(self, path="a.zarr"):
        return json.loads(self.run_program("log", path, "--fixity", "--json").stdout)

    def flip(self, path, at=-3):
        file = self.folder / path
        content = bytearray(file.read_bytes())
        content[at] ^= 0x40
        file.write_bytes(content)


class Recorded(FixityTest):
    def test_each_check_and_change_is_a_line(self):
        first = self.tessera_json("verify", "a.zarr", "--record")["recorded"]
        self.tessera("seal", "a.zarr", "--quiet")
        self.tessera("repair", "a.zarr", "--quiet")  # has nothing to mend, and so nothing to record
        found = self.records()
        self.assertEqual([r["what"] for r in found["records"]], ["verify", "seal"])
        self.assertTrue(found["intact"])
        self.assertEqual(found["records"][0]["hash"], first)
        self.assertEqual((found["records"][0]["chunks"], found["records"][0]["damage"], found["records"][0]["sound"]),
                         (12, 0, True))
        # As the page of formats describes it, without Tessera.
        before = "0" * 64
        for line in self.log.read_bytes().splitlines():
            self.assertEqual(json.loads(line)["before"], before)
            before = hashlib.sha256(line).hexdigest()
        self.assertEqual(found["last"], before)
        # It is no part of what is sealed, nor of what is compared.
        self.tessera("verify", "a.zarr")
        self.assertNotIn("fixity", (self.folder / "a.zarr/.tessera/sha256sums.txt").read_text())

    def test_a_line_taken_out_changed_or_cut_off_shows(self):
        hashes = [self.tessera_json("verify", "a.zarr", "--record")["recorded"] for _ in range(3)]
        lines = self.log.read_text().splitlines(keepends=True)
        self.tessera("log", "a.zarr", "--fixity", "--expect", hashes[2])
        self.assertIn('"damage": 0', lines[0])
        for damaged, line in ((lines[:1] + lines[2:], 2), (lines[1:], 1),
                              ([lines[0].replace('"damage": 0', '"damage": 1'), *lines[1:]], 2)):
            self.log.write_text("".join(damaged))
            said = self.tessera("log", "a.zarr", "--fixity", code=1)
            self.assertIn(f"line {line} does not follow", said)
            self.refused("verify", "a.zarr", "--record", says=f"line {line} does not follow")
            self.assertEqual(self.log.read_text(), "".join(damaged))
        # A tail that was cut off is a whole log: only the hash that somebody kept tells.
        self.log.write_text("".join(lines[:2]))
        self.tessera("log", "a.zarr", "--fixity")
        self.assertIn("cut off", self.tessera("log", "a.zarr", "--fixity", "--expect", hashes[2], code=1))
        self.tessera("log", "a.zarr", "--fixity", "--expect", hashes[1])

    def test_a_line_that_a_killed_writer_began_is_written_over(self):
        self.tessera("verify", "a.zarr", "--record")
        with self.log.open("a") as log:
            log.write('{"time": "2026-')
        self.assertEqual(len(self.records()["records"]), 1)
        self.tessera("verify", "a.zarr", "--record")
        self.assertEqual([r["what"] for r in self.records()["records"]], ["verify", "verify"])
        self.assertTrue(self.records()["intact"])

    def test_many_writers_lose_no_line(self):
        workers = [subprocess.Popen([PROGRAM, "verify", "a.zarr", "--record", "--quiet"], cwd=self.folder) for _ in range(8)]
        self.assertEqual([w.wait() for w in workers], [0] * 8)
        found = self.records()
        self.assertTrue(found["intact"])
        self.assertEqual(len(found["records"]), 8)

    def test_a_link_in_its_place_is_not_followed(self):
        victim = self.folder / "victim"
        victim.write_text("mine\n")
        self.log.parent.mkdir(exist_ok=True)
        self.log.symlink_to(victim)
        self.assertEqual(self.run_program("verify", "a.zarr", "--record").returncode, 2)
        self.assertEqual(victim.read_text(), "mine\n")

    def test_what_is_due(self):
        self.tessera("verify", "a.zarr", "--due", "1d", "--record", "--quiet")  # nothing is recorded yet
        self.assertEqual(len(self.records()["records"]), 1)
        self.assertIn("not due", self.tessera("verify", "a.zarr", "--due", "1d", "--record"))
        self.assertEqual(len(self.records()["records"]), 1)
        self.tessera("verify", "a.zarr", "--due", "0s", "--record")
        self.assertGreaterEqual(len(self.records()["records"]), 1)
        # A complete check was not made, and one of metadata is none.
        self.assertNotIn("not due", self.tessera("verify", "a.zarr", "--due", "1d", "--complete"))
        self.tessera("verify", "a.zarr", "--complete", "--record", "--quiet")
        self.assertIn("not due", self.tessera("verify", "a.zarr", "--due", "1d", "--complete"))
        self.refused("verify", "a.zarr", "--ome", "--record", says=["--record", "--ome"])
        # What was not sound is due at once.
        self.flip("a.zarr/c/0/0")
        self.tessera("verify", "a.zarr", "--record", code=1)
        self.tessera("verify", "a.zarr", "--due", "1d", code=1)

    def test_samples_take_turns_until_all_was_read(self):
        for chunk in self.folder.glob("a.zarr/c/*/*"):
            self.flip(chunk.relative_to(self.folder))
        found = []
        for _ in range(4):
            report = json.loads(self.run_program("verify", "a.zarr", "--sample", "25%", "--record", "--json").stdout)
            found.append({f["key"] for f in report["findings"] if f["kind"] == "damage"})
        self.assertEqual(len(set().union(*found)), 12)
        self.assertEqual(sum(map(len, found)), 12)
        self.assertLess(max(map(len, found)), 12)
        self.assertIn("a sample: part 1 of 10 ", self.run_program("verify", "a.zarr", "--sample", "10%").stdout)
        self.assertIn("sample 25%", self.tessera("log", "a.zarr", "--fixity"))
        self.assertNotIn("not due", self.run_program("verify", "a.zarr", "--due", "1d").stdout)
        self.refused("verify", "a.zarr", "--sample", "7", says=["--sample", "5%"])

    def test_events_of_premis(self):
        recorded = self.tessera_json("verify", "a.zarr", "--record")["recorded"]
        self.flip("a.zarr/c/1/1")
        self.tessera("verify", "a.zarr", "--record", code=1)
        root = ElementTree.fromstring(self.tessera("log", "a.zarr", "--fixity", "--premis"))
        names = {"premis": "http://www.loc.gov/premis/v3"}
        outcomes = [e.text for e in root.findall(".//premis:eventOutcome", names)]
        self.assertEqual(outcomes, ["pass", "fail"])
        self.assertEqual(root.find(".//premis:eventIdentifierValue", names).text, recorded)

    def test_restoring_a_snapshot_keeps_the_log(self):
        self.tessera("verify", "a.zarr", "--record")
        self.tessera("snapshot", "a.zarr", "create", "one", "--quiet")
        self.tessera("set", "a.zarr", "0:3, 0:3", "9", "--quiet")
        self.tessera("snapshot", "a.zarr", "restore", "one", "--quiet")
        self.assertEqual([r["what"] for r in self.records()["records"]], ["verify", "restore"])
        self.assertTrue(self.records()["intact"])

    def test_what_has_no_log_says_so(self):
        self.refused("verify", "values.npy", "--record", says="directory")
        self.tessera("seal", "a.zarr", "--bagit", "bag", "--quiet")
        self.refused("verify", "bag", "--record", says="bag")


class FromACopy(FixityTest):
    def sealed_pair(self, *words):
        self.tessera("seal", "a.zarr", *words, "--quiet")
        shutil.copytree(self.folder / "a.zarr", self.folder / "b.zarr")
        self.digest = self.tessera("digest", "a.zarr").split()[0]

    def test_both_may_be_damaged_in_different_places(self):
        self.sealed_pair()
        self.flip("a.zarr/c/0/0")
        (self.folder / "a.zarr/c/1/2").unlink()
        self.flip("b.zarr/c/2/1")
        planned = self.tessera_json("repair", "a.zarr", "--from", "b.zarr", "--dry-run")
        self.assertEqual(planned["done"], 2)
        self.assertFalse((self.folder / "a.zarr/c/1/2").exists())
        report = self.tessera_json("repair", "a.zarr", "--from", "b.zarr")
        self.assertEqual(report["done"], 2)
        self.assertTrue(report["mended"])
        self.assertEqual(self.tessera("digest", "a.zarr").split()[0], self.digest)
        self.tessera("verify", "a.zarr")
        # And the other one from this.
        self.tessera("repair", "b.zarr", "--from", "a.zarr")
        self.tessera("verify", "b.zarr")
        # What was damaged is still there.
        self.assertEqual(len(list(self.folder.glob("a.zarr/.tessera/damaged/c/0/0*"))), 1)

    def test_what_is_damaged_in_both_is_refused_by_name_and_left(self):
        self.sealed_pair()
        self.flip("a.zarr/c/0/0")
        self.flip("b.zarr/c/0/0", -4)
        (self.folder / "a.zarr/c/1/0").unlink()
        (self.folder / "b.zarr/c/1/0").unlink()
        damaged = (self.folder / "a.zarr/c/0/0").read_bytes()
        said = self.tessera("repair", "a.zarr", "--from", "b.zarr", code=1)
        self.assertIn("not as it was sealed, either", said)
        self.assertIn("b.zarr/c/1/0 is not there", said)
        self.assertEqual((self.folder / "a.zarr/c/0/0").read_bytes(), damaged)

    def test_metadata_come_first_and_then_what_they_show(self):
        self.sealed_pair()
        (self.folder / "a.zarr/zarr.json").unlink()
        self.flip("a.zarr/c/3/2")
        self.tessera("repair", "a.zarr", "--from", "b.zarr")
        self.assertEqual(self.tessera("digest", "a.zarr").split()[0], self.digest)

    def test_a_possible_edit_is_left_unless_asked_for(self):
        self.tessera("import", "values.npy", "a.zarr", "--chunks", "6,10", "--format", "v3", "--codec", "none", "--overwrite",
                     "--quiet")
        self.sealed_pair()
        self.flip("a.zarr/c/0/0")  # without a checksum: another number
        said = self.tessera("repair", "a.zarr", "--from", "b.zarr", code=1)
        self.assertIn("possibly edited", said)
        self.tessera("repair", "a.zarr", "--from", "b.zarr", "--to-seal")
        self.assertEqual(self.tessera("digest", "a.zarr").split()[0], self.digest)

    def test_without_a_seal_nothing_says_what_is_right(self):
        shutil.copytree(self.folder / "a.zarr", self.folder / "b.zarr")
        self.flip("a.zarr/c/0/0")
        said = self.tessera("repair", "a.zarr", "--from", "b.zarr", code=1)
        self.assertIn("no seal", said)
        self.tessera("verify", "a.zarr", code=1)

    def test_parity_comes_first(self):
        self.sealed_pair("--parity", "1")
        shutil.rmtree(self.folder / "b.zarr/c/0")
        self.flip("a.zarr/c/0/1")
        (self.folder / "a.zarr/c/2/2").unlink()
        (self.folder / "a.zarr/c/2/1").unlink()  # more than parity gives
        self.tessera("repair", "a.zarr", "--from", "b.zarr", code=1)
        self.tessera("repair", "a.zarr", "--from", "b.zarr", code=0)
        self.assertEqual(self.tessera("digest", "a.zarr").split()[0], self.digest)

    def test_copies_of_other_kinds(self):
        self.sealed_pair()
        self.tessera("copy", "b.zarr", "c.zip", "--quiet")
        self.tessera("seal", "b.zarr", "--bagit", "bag", "--quiet")
        for copy in ("c.zip", "bag", "bag/data/b.zarr"):
            with self.subTest(copy):
                self.flip("a.zarr/c/0/0")
                self.tessera("repair", "a.zarr", "--from", copy)
                self.assertEqual(self.tessera("digest", "a.zarr").split()[0], self.digest)
        server = subprocess.Popen([sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"], cwd=self.folder,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(lambda: (server.kill(), server.wait(), server.stdout.close()))
        port = server.stdout.readline().split(" port ")[1].split()[0]
        self.flip("a.zarr/c/0/0")
        self.tessera("repair", "a.zarr", "--from", f"http://127.0.0.1:{port}/b.zarr")
        self.assertEqual(self.tessera("digest", "a.zarr").split()[0], self.digest)

    def test_the_module_does_the_same(self):
        self.sealed_pair()
        self.flip("a.zarr/c/0/0")
        text = ("import tessera\n"
                "assert not tessera.verify('a.zarr', record=True).sound\n"
                "assert tessera.repair('a.zarr', from_copy='b.zarr').mended\n"
                "found = tessera.verify('a.zarr', record=True)\n"
                "log = tessera.fixity('a.zarr')\n"
                "assert found.sound and log['last'] == found.recorded and log['intact']\n"
                "assert [r['what'] for r in log['records']] == ['seal', 'verify', 'repair', 'verify'], log\n")
        done = subprocess.run([sys.executable, "-B", "-c", text], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": module_folder()})
        self.assertEqual(done.returncode, 0, done.stderr)


class Packages(FixityTest):
    def test_nothing_is_written_into_what_a_package_lists(self):
        self.tessera("seal", "a.zarr", "--bagit", "f/bag", "--quiet")
        self.tessera("seal", "a.zarr", "--ocfl", "f/root", "--id", "urn:x", "--quiet")
        (mark,) = (self.folder / "f/root").rglob("0=ocfl_object*")
        for package, content in ("f/bag", "f/bag/data/a.zarr"), (mark.parent, mark.parent / "v1/content"):
            self.refused("set", content, "0,0", "8", says="lists name each of its files")
            for path in package, content:
                self.refused("seal", path, says="must not hold anything else")
                self.refused("verify", path, "--record", says="fixity log")
        self.tessera("seal", "f", "--quiet")
        self.assertEqual([*(self.folder / "f/bag").rglob(".tessera"), *(self.folder / "f/root").rglob(".tessera")], [])
        self.tessera("verify", "f", "--quiet")


class Scrubbing(FixityTest):
    """`verify --rate`, `--nice`, `--summary`."""

    def wait_for_handler(self, pid):
        """Until it says what becomes of Ctrl-C."""
        for _ in range(6000):
            status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
            if (int(status["SigCgt"], 16) | int(status["SigBlk"], 16)) & 1 << signal.SIGINT - 1:
                return
            time.sleep(0.01)
        self.fail("nothing waits for SIGINT")

    def test_a_slow_check_lets_others_go_first_and_stops(self):
        # At 10 bytes a second each chunk takes longer than the test.
        slow = subprocess.Popen([PROGRAM, "verify", "a.zarr", "--rate", "10", "--nice", "--record", "--summary"], cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (slow.kill(), slow.communicate()))
        tasks = pathlib.Path(f"/proc/{slow.pid}/task")
        niceness = []
        while slow.poll() is None and 19 not in niceness:
            niceness = [int((task / "stat").read_text().rpartition(")")[2].split()[16]) for task in tasks.iterdir()]
        self.assertIn(19, niceness)
        self.wait_for_handler(slow.pid)
        if shutil.which("ionice"):
            ionice = [subprocess.run(["ionice", *words], capture_output=True, text=True).stdout
                      for words in (["-p", str(slow.pid)], ["-c", "3", "ionice"])]  # some containers have no such classes
            self.assertEqual(ionice[0], ionice[1])
        slow.send_signal(signal.SIGINT)
        said, error = slow.communicate(timeout=120)
        self.assertEqual((slow.returncode, said), (130, "0 paths checked, chunks of 0 bytes; stopped before the end\n"), error)
        self.assertFalse(self.log.exists())  # what was interrupted is no check

    def test_the_rate_changes_nothing_else(self):
        self.assertEqual(self.tessera_json("verify", "a.zarr", "--rate", "500M"), self.tessera_json("verify", "a.zarr"))
        self.flip("a.zarr/c/0/0")
        self.assertEqual(json.loads(self.run_program("verify", "a.zarr", "--rate", "1G", "--nice", "--json").stdout),
                         json.loads(self.run_program("verify", "a.zarr", "--json").stdout))
        self.refused("verify", "a.zarr", "--rate", "0", says="--rate")
        self.refused("verify", "a.zarr", "--rate", "fast", says="--rate")

    def test_a_summary_to_mail(self):
        for name in ("b.zarr", "c.zarr"):
            shutil.copytree(self.folder / "a.zarr", self.folder / name)
        self.tessera("verify", "b.zarr", "--record", "--quiet")
        said = self.tessera("verify", "a.zarr", "b.zarr", "c.zarr", "--due", "90d", "--record", "--summary")
        self.assertRegex(said, r"^2 paths checked, chunks of [^;]*; 1 not due; all sound\n$")
        self.flip("c.zarr/c/0/0")
        found = self.run_program("verify", "a.zarr", "c.zarr", "gone.zarr", "--summary")
        self.assertEqual(found.returncode, 2)
        lines = found.stdout.splitlines()
        self.assertIn("c/0/0", lines[0])
        self.assertRegex(lines[-1], r"^2 paths checked, .*; NOT SOUND: c.zarr, gone.zarr$")
        self.assertNotIn("a.zarr", found.stdout)
        self.assertIn("gone.zarr", found.stderr)
        self.assertEqual(self.run_program("verify", "c.zarr", "--summary", "--quiet").stdout, "")

    def test_the_module_does_the_same(self):
        text = ("import tessera\n"
                "assert tessera.verify('a.zarr', rate='500M') == tessera.verify('a.zarr')\n"
                "for wrong in (0, 'fast'):\n"
                "    try: tessera.verify('a.zarr', rate=wrong)\n"
                "    except tessera.InvalidArgument as e: assert 'rate' in str(e)\n"
                "    else: raise AssertionError(wrong)\n")
        done = subprocess.run([sys.executable, "-B", "-c", text], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": module_folder()})
        self.assertEqual(done.returncode, 0, done.stderr)


class Sums(FixityTest):
    def setUp(self):
        super().setUp()
        self.tessera("seal", "a.zarr", "--quiet")
        shutil.copytree(self.folder / "a.zarr", self.folder / "b.zarr")

    def test_two_copies_by_their_seals(self):
        self.assertIn("13 files have the same sums", self.tessera("diff", "a.zarr", "b.zarr", "--sums"))
        # The data are not read: damage is for verify.
        self.flip("b.zarr/c/0/0")
        (self.folder / "b.zarr/c/1/1").chmod(0)
        self.tessera("diff", "a.zarr", "b.zarr", "--sums")
        (self.folder / "b.zarr/c/1/1").chmod(0o644)
        shutil.rmtree(self.folder / "b.zarr")
        shutil.copytree(self.folder / "a.zarr", self.folder / "b.zarr")
        self.tessera("set", "b.zarr", "0,0", "7", "--break-seal", "--quiet")
        self.refused("diff", "a.zarr", "b.zarr", "--sums", says=("b.zarr", "seal was broken"))
        (self.folder / "b.zarr/c/3/2").unlink()
        self.tessera("seal", "b.zarr", "--overwrite", "--unchecked", "--readme", "--quiet")
        found = self.tessera_json("diff", "a.zarr", "b.zarr", "--sums", code=1)
        self.assertEqual(found, {"equal": False, "same": 11, "different": ["c/0/0"], "only_in_a": ["c/3/2"], "only_in_b": []})
        self.assertEqual(self.tessera("diff", "b.zarr", "a.zarr", "--sums", code=1).splitlines(),
                         ["c/0/0: the sums differ", "c/3/2: only in B", "11 files have the same sums by both seals"])

    def test_what_has_no_seal(self):
        self.tessera("import", "values.npy", "c.zarr", "--quiet")
        self.refused("diff", "a.zarr", "c.zarr", "--sums", says=("c.zarr", "has no seal"))
        self.refused("diff", "a.zarr", "nothing", "--sums", says="nothing")
        self.assertIn("--raw excludes --sums", self.run_program("diff", "a.zarr", "b.zarr", "--sums", "--raw").stderr)

    def test_files_with_their_seals_beside_them(self):
        for name in ("c.zip", "d.zip"):
            self.tessera("copy", "a.zarr", name, "--quiet")
            self.tessera("seal", name, "--quiet")
        # A seal of one zip has its name.
        found = self.tessera_json("diff", "c.zip", "d.zip", "--sums", code=1)
        self.assertEqual((found["same"], found["only_in_a"], found["only_in_b"]), (0, ["c.zip"], ["d.zip"]))

    def test_the_module_does_the_same(self):
        text = ("import tessera\n"
                "assert tessera.diff_sums('a.zarr', 'b.zarr') == {'equal': True, 'same': 13, 'different': [], 'only_in_a': [],\n"
                "                                                 'only_in_b': []}\n")
        done = subprocess.run([sys.executable, "-B", "-c", text], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": module_folder()})
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main()
