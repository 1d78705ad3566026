"""tessera log: a line for each command, never mixed with another, in a file that nothing else looks at."""
import datetime
import os
import pwd
import re
import shlex
import socket
import subprocess

import numpy as np

from program import PROGRAM, ProgramTest, digest, main

LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\t([^\t]*)\t(tessera [^\t]*)\n")


class Log(ProgramTest):
    def lines(self, path):
        text = (self.folder / path / ".tessera/log").read_text()
        found = LINE.findall(text)
        self.assertEqual("".join("\t".join(line) + "\n" for line in found), text, "nothing but whole lines")
        return [shlex.split(line[2])[1:] for line in found]

    def test_a_line_for_each_command_that_changes_something(self):
        self.save("a.npy", np.arange(12.0).reshape(3, 4))
        begin = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
        commands = [["import", "a.npy", "g/a", "--chunks", "2,2", "--quiet"], ["set", "g/a", "0, ::2", "7", "--quiet"],
                    ["append", "g/a", "a.npy", "--quiet"], ["resize", "g/a", "4,4", "--quiet"],
                    ["attrs", "g/a", "set", "units", '"m"', "--quiet"], ["attrs", "g/a", "mv", "units", "unit", "--quiet"],
                    ["dims", "g/a", "y,x", "--quiet"], ["calc", "g/a", "a + 1", "a=g/a", "--in-place", "--quiet"],
                    ["snapshot", "g/a", "create", "one", "--quiet"]]
        for command in commands:
            self.tessera(*command)
        for command in (["get", "g/a", "0"], ["attrs", "g/a"], ["attrs", "g/a", "get", "unit"], ["dims", "g/a"],
                        ["info", "g/a"], ["snapshot", "g/a", "list"], ["verify", "g/a"], ["set", "g/a", "0", "1", "--no-log"],
                        ["repair", "g/a", "--dry-run"], ["repair", "g/a"], ["copy", "g/a", "g/b", "--dry-run"], ["log", "g/a"]):
            self.tessera(*command)
        self.refused("set", "g/a", "99", "1", says="99")
        self.assertEqual(self.lines("g/a"), commands)
        found = self.tessera_json("log", "g/a")["changes"]
        self.assertEqual([shlex.split(one["command"])[1:] for one in found], commands)
        who = f"{pwd.getpwuid(os.geteuid()).pw_name}@{socket.gethostname()}"
        for one in found:
            time = datetime.datetime.fromisoformat(one["time"].replace("Z", "+00:00"))
            self.assertTrue(begin <= time <= datetime.datetime.now(datetime.timezone.utc))
            self.assertEqual((one["node"], one["who"]), ("", who))
        shown = self.tessera("log", "g").splitlines()
        self.assertEqual(len(shown), len(commands))
        self.assertTrue(all(line.endswith("[a]") for line in shown), shown)

    def test_a_repair_is_noted_if_it_mends(self):
        self.save("a.npy", np.arange(12.0))
        self.tessera("import", "a.npy", "a", "--format", "v3", "--quiet", "--no-log")
        self.tessera("repair", "a", "--quiet")
        self.assertFalse((self.folder / "a/.tessera/log").exists())
        (self.folder / "a/c/0").write_bytes(b"damaged")
        self.tessera("repair", "a", "--quiet", code=1)
        self.assertEqual([line[0] for line in self.lines("a")], ["repair"])

    def test_what_is_made_and_replaced(self):
        self.save("a.npy", np.arange(12).reshape(3, 4))
        self.tessera("import", "a.npy", "a", "--quiet")
        self.tessera("copy", "a", "b", "--quiet")
        self.assertEqual(self.lines("b"), [["copy", "a", "b", "--quiet"]], "the log of the source is the source's")
        self.tessera("copy", "a", "b", "--overwrite", "--quiet")
        self.assertEqual([line[0] for line in self.lines("b")], ["copy", "copy"], "history outlives what is replaced")
        self.tessera("mv", "b", "c", "--quiet")
        self.assertEqual([line[0] for line in self.lines("c")], ["copy", "copy", "mv"])
        for words in (["reduce", "a", "d", "--with", "max"], ["stack", "a", "a", "e"], ["coarsen", "a", "f", "--by", "2"],
                      ["group", "h"], ["create", "i", "--shape", "3", "--dtype", "f4"]):
            self.tessera(*words, "--quiet")
            place = {"reduce": "d", "stack": "e", "coarsen": "f", "group": "h", "create": "i"}[words[0]]
            self.assertEqual(self.lines(place), [[*words, "--quiet"]])
        self.tessera("snapshot", "c", "create", "s", "--quiet")
        self.tessera("set", "c", "0, 0", "99", "--quiet")
        self.tessera("snapshot", "c", "restore", "s", "--quiet")
        self.assertEqual([line[0] for line in self.lines("c")][-3:], ["snapshot", "set", "snapshot"])
        for file in "a.npz", "a.zip", "a.csv":
            self.tessera("copy", "a", file, "--quiet")
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name == ".tessera"], [])

    def test_a_job_is_noted_once_it_is_finished(self):
        self.save("a.npy", np.arange(12.0).reshape(3, 4))
        self.tessera("import", "a.npy", "a", "--chunks", "1,4", "--quiet")
        self.tessera("plan", "copy", "a", "b", "--out", "job.json", "--quiet")
        self.tessera("work", "job.json", "--units", "0-1", "--quiet")
        self.tessera("finish", "job.json", "--quiet", code=1)
        self.assertFalse((self.folder / "b/.tessera/log").exists())
        self.tessera("work", "job.json", "--part", "0/1", "--quiet")
        self.tessera("finish", "job.json", "--quiet")
        self.assertEqual(self.lines("b"), [["finish", "job.json", "--quiet"]])
        self.refused("finish", "none.json", says="none.json")

    def test_what_has_no_log_is_noted_in_its_group(self):
        self.save("a.npy", np.arange(12).reshape(3, 4))
        self.tessera("group", "g", "--quiet")
        self.tessera("group", "g/sub", "--quiet")
        self.tessera("import", "a.npy", "g/a", "--quiet")
        self.assertEqual(self.lines("g"), [["group", "g", "--quiet"]])
        commands = [["rm", "g/a", "--quiet"], ["export", "a.npy", "g/b.npz", "--quiet"], ["rm", "./g//sub/", "--quiet"],
                    ["unstack", "a.npy", "g/step-{}.npy", "--quiet"], ["copy", "a.npy", "g/c.zip", "--quiet"],
                    ["copy", "a.npy", "g/c.zip", "--quiet", "--overwrite"]]
        for command in commands:
            self.tessera(*command)
        self.tessera("export", "a.npy", "g/d.npy", "--quiet", "--no-log")
        self.refused("export", "a.npy", "g/d.npy")
        self.refused("rm", "g/nothing")
        self.assertEqual(self.lines("g")[1:], commands)
        self.assertEqual(len(self.tessera("log", "g").splitlines()), 1 + len(commands))
        # A folder that is no group gets no log, and neither does one that is not there any more.
        self.tessera("unstack", "a.npy", "frames/step-{}.npy", "--quiet")
        for file in ("b.npz", "c.zip", "d.npy", *(f"step-{n}.npy" for n in range(3))):
            (self.folder / "g" / file).unlink()
        self.tessera("rm", "g", "--recursive", "--quiet")
        self.assertEqual([p for p in (self.folder, self.folder / "frames") if (p / ".tessera").exists()], [])

    def test_nothing_else_looks_at_it(self):
        self.save("a.npy", np.arange(12).reshape(3, 4))
        for name, words in ("with", []), ("without", ["--no-log"]):
            self.tessera("import", "a.npy", name, "--format", "v2", "--quiet", *words)
        self.assertTrue((self.folder / "with/.tessera/log").exists())
        self.assertEqual([f.name for f in (self.folder / "without/.tessera").iterdir()], ["stored"])
        self.assertEqual(digest(self.folder / "with"), digest(self.folder / "without"))
        self.tessera("diff", "with", "without")
        self.assertEqual(self.tessera("digest", "with").split()[0], self.tessera("digest", "without").split()[0])
        self.assertEqual(self.tessera("verify", "with").replace("with", ""), self.tessera("verify", "without").replace(
            "without", ""))
        self.tessera("seal", "with", "--quiet")
        self.tessera("set", "with", "0, 0", "0", "--break-seal", "--quiet")
        self.assertIn("sound", self.tessera("verify", "with"))
        self.tessera("copy", "with", "x.zip", "--quiet")
        names = subprocess.run(["python3", "-m", "zipfile", "-l", "x.zip"], cwd=self.folder, stdout=subprocess.PIPE,
                               text=True, check=True).stdout
        self.assertNotIn(".tessera", names)
        self.tessera("rm", "with", "--break-seal", "--quiet")
        self.assertFalse((self.folder / "with").exists())

    def test_lines_of_many_writers_do_not_mix(self):
        self.tessera("create", "a", "--shape", "100", "--dtype", "i4", "--quiet", "--no-log")
        script = ("for i in $(seq 15); do \"$0\" attrs a set key-$1-$i \"\\\"$2\\\"\" --quiet --durability none || exit 1; "
                  "done")
        writers = [subprocess.Popen(["bash", "-c", script, PROGRAM, str(n), "x" * 100 * n], cwd=self.folder)
                   for n in range(8)]
        self.assertEqual([w.wait() for w in writers], [0] * 8)
        found = sorted(line[3] for line in self.lines("a"))
        self.assertEqual(found, sorted(f"key-{n}-{i}" for n in range(8) for i in range(1, 16)))

    def test_names_are_escaped_and_long_lines_cut(self):
        self.tessera("create", "a", "--shape", "3", "--dtype", "i4", "--quiet", "--no-log")
        nasty = "x\n2026-01-01T00:00:00Z\troot@host\ttessera rm a\x1b[31m\\"
        self.tessera("attrs", "a", "set", nasty, "1", "--quiet")
        (self.folder / "a/.tessera/log").read_text().encode("ascii")
        line, = self.lines("a")
        self.assertEqual(line[3], nasty.replace("\\", "\\\\").replace("\n", "\\x0a").replace("\t", "\\x09").replace(
            "\x1b", "\\x1b"))
        self.assertEqual(len(self.tessera("log", "a").splitlines()), 1)
        self.tessera("attrs", "a", "set", "long", '"' + "é" * 20_000 + '"', "--quiet")
        text = (self.folder / "a/.tessera/log").read_text().splitlines()[1]
        self.assertTrue(text.endswith("é…"), text[-5:])
        self.assertLessEqual(len(text.encode()), 4096)
        with open(self.folder / "a/.tessera/log", "ab") as log:
            log.write(b"no line\n\x1b[2J\tevil\x1b[31m\ttessera \xff\nunfinished\tline\t")
        shown = self.tessera("log", "a")
        self.assertNotIn("\x1b", shown)
        self.assertEqual(len(shown.splitlines()), 3)

    def test_it_leads_nowhere_and_fails_no_command(self):
        outside = self.folder / "outside"
        outside.mkdir()
        (outside / "log").write_text("mine\n")
        self.tessera("create", "a", "--shape", "3", "--dtype", "i4", "--quiet", "--no-log")
        own = self.folder / "a/.tessera"
        own.mkdir(exist_ok=True)
        (own / "log").symlink_to(outside / "log")
        self.tessera("set", "a", "0", "1", "--quiet")
        self.assertEqual((outside / "log").read_text(), "mine\n")
        self.assertEqual(self.tessera("log", "a"), "")
        (own / "log").unlink()
        os.mkfifo(own / "log")
        self.tessera("set", "a", "0", "2", "--quiet")
        self.assertEqual(self.tessera("log", "a"), "")
        (own / "log").unlink()
        (own / "log").mkdir()
        self.tessera("set", "a", "0", "3", "--quiet")
        (own / "log").rmdir()
        (self.folder / "link").symlink_to("a")
        self.tessera("set", "link", "0", "4", "--quiet")
        self.assertEqual(self.lines("a"), [["set", "link", "0", "4", "--quiet"]])
        self.save("a.npy", np.zeros(3))
        self.refused("log", "a.npy", says="a.npy")
        self.refused("log", "gone", says="gone")

    def test_it_waits_for_no_disk(self):
        self.tessera("create", "a", "--shape", "3", "--dtype", "i4", "--quiet")
        self.tessera("set", "a", "0", "6", "--quiet")  # which makes the folder of the locks
        counts = []
        for words in [], ["--no-log"]:
            try:
                done = subprocess.run(["strace", "-f", "-e", "trace=fsync,fdatasync,sync,syncfs,sync_file_range", "-o",
                                       "trace", PROGRAM, "set", "a", "0", "7", "--quiet", *words], cwd=self.folder,
                                      stderr=subprocess.PIPE, check=False)
            except FileNotFoundError:
                self.skipTest("no strace")
            if done.returncode != 0:
                self.skipTest("strace cannot trace here")
            counts.append(len(re.findall(r"sync\w*\(", (self.folder / "trace").read_text())))
        self.assertEqual(counts[0], counts[1])
        self.assertGreater(counts[0], 0)


if __name__ == "__main__":
    main()
