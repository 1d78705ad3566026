"""--max-memory binds for everything whose size a file dictates: peak memory of the program, measured."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program
from program import PROGRAM, ProgramTest

BESIDE = 16  # MiB that the program takes beside what it counts


class Ended:
    """How a run of the program ended: its code, what it printed, and the most memory that it took, in MiB."""

    def __init__(self, words, folder):
        with open(folder / "stdout", "w+", encoding="utf-8") as out, open(folder / "stderr", "w+", encoding="utf-8") as err:
            # A preexec_fn, so that the process is forked: one that shares this one's memory would be given its peak.
            child = subprocess.Popen([PROGRAM, *map(str, words)], stdout=out, stderr=err, cwd=folder,
                                     preexec_fn=lambda: None)
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = self.code = os.waitstatus_to_exitcode(status)
        self.out = (folder / "stdout").read_text(encoding="utf-8")
        self.err = (folder / "stderr").read_text(encoding="utf-8")
        self.peak = used.ru_maxrss / 1024
        self.shown = f"tessera {words}: {self.code}, {self.peak:.0f} MiB\n{self.out[:2000]}{self.err[:2000]}"


class MemoryTest(ProgramTest):
    def within(self, budget, *words, codes=(0,)):
        """Runs a command, which must end with one of `codes` and take no more than its budget, in MiB."""
        ended = Ended([*words, "--max-memory", f"{budget}M"], self.folder)
        self.assertIn(ended.code, codes, ended.shown)
        self.assertLess(ended.peak, budget + BESIDE, ended.shown)
        return ended

    def refused_within(self, budget, *words, says, code=2):
        """Likewise one that must be refused in one line."""
        ended = self.within(budget, *words, codes=(code,))
        line = ended.err if code == 2 else ended.out
        for text in says:
            self.assertIn(text, line, ended.shown)
        return line

    def sparse(self, name, size):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as file:
            file.truncate(size)


class Lists(MemoryTest):
    """Files of Tessera's own: sparse ones of a size that no array needs are refused by their first bytes."""

    def setUp(self):
        super().setUp()
        self.tessera("create", "a.zarr", "--shape", "8", "--chunks", "4", "--dtype", "<i4", "--quiet")
        self.tessera("set", "a.zarr", "0:4", "1", "--quiet")

    def test_a_journal(self):
        for size in (100 << 20, 100 << 30):
            self.sparse("a.zarr/.tessera/batch/journal", size)
            for words in (["info"], ["get"], ["set", "0", "2"], ["stats"], ["digest"]):
                self.refused_within(16, words[0], "a.zarr", *words[1:], says=["a.zarr/.tessera/batch/journal"])
            self.refused_within(16, "verify", "a.zarr", says=[".tessera/batch/journal"], code=1)
        self.within(16, "repair", "a.zarr")
        self.assertEqual(self.tessera("get", "a.zarr", "0"), "1\n")

    def test_the_journal_of_undo(self):
        for size in (100 << 20, 100 << 30):
            self.sparse("a.zarr/.tessera/undo/journal", size)
            self.refused_within(16, "undo", "a.zarr", says=["a.zarr/.tessera/undo/journal"])
            self.within(16, "get", "a.zarr")

    def test_a_seal(self):
        self.tessera("seal", "a.zarr", "--quiet")
        for size in (100 << 20, 100 << 30):
            self.sparse("a.zarr/.tessera/sha256sums.txt", size)
            self.refused_within(16, "verify", "a.zarr", says=["sha256sums.txt", "line 1"], code=1)
            self.refused_within(16, "seal", "a.zarr", says=["sha256sums.txt", "line 1"])

    def test_the_lists_of_a_snapshot(self):
        self.tessera("snapshot", "a.zarr", "create", "s", "--quiet")
        folder = self.folder / "a.zarr.snapshots" / "s"
        files = (folder / ".tessera/snapshot-files.txt").read_bytes()
        for size in (100 << 20, 100 << 30):
            self.sparse("a.zarr.snapshots/s/.tessera/snapshot-files.txt", size)
            self.refused_within(16, "verify", "a.zarr.snapshots/s", says=[".tessera/snapshot-files.txt", "line 1"], code=1)
            self.refused_within(16, "snapshot", "a.zarr", "restore", "s", says=[".tessera/snapshot-files.txt", "line 1"])
        (folder / ".tessera/snapshot-files.txt").write_bytes(files)
        self.sparse("a.zarr.snapshots/s/.tessera/snapshot.json", 60 << 20)
        self.refused_within(16, "snapshot", "a.zarr", "restore", "s", says=[".tessera/snapshot.json", "1048576"])


if __name__ == "__main__":
    program.main()
