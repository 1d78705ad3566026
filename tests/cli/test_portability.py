"""Commands where the kernel or the file system lacks a call that only Linux has, or only a new Linux: each is switched off
by strace, and what commands leave is the same as with it. tools/docs/portability.md lists the calls."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import numpy as np

from program import PROGRAM, ProgramTest, main

# What a file system or kernel without the call answers.
MISSING = {"renameat2": "ENOSYS", "copy_file_range": "EXDEV", "openat2": "ENOSYS", "ioctl": "ENOTTY",
           "fadvise64": "ENOSYS", "flistxattr,fgetxattr,fsetxattr": "EOPNOTSUPP"}
STEPS = [
    ["create", "a", "--shape", "100,70", "--chunks", "30,30", "--dtype", "<i4"],
    ["set", "a", ":50", "3"],
    ["copy", "a", "b"],
    ["copy", "a", "b", "--overwrite"],
    ["copy", "a", "v3", "--format", "v3", "--shard", "60,60"],
    ["snapshot", "a", "create", "one"],
    ["set", "a", "60:", "4"],
    ["snapshot", "a", "restore", "one"],
    ["set", "a", "...", "7"],
    ["append", "a", "rows.npy"],
    ["mv", "b", "c"],
    ["rm", "c"],
    ["seal", "a", "--parity", "5%"],
    ["verify", "a"],
]


SOURCE = pathlib.Path(os.environ["TESSERA_SOURCE"])
# What core/system_calls.cpp alone may name.
LINUX = re.compile(r"\b(renameat2|RENAME_(NOREPLACE|EXCHANGE)|statx|STATX_\w+|syncfs|copy_file_range|FICLONE|fallocate|O_TMPFILE|O_PATH|"
                   r"F_OFD_\w+|F_ADD_SEALS|memfd_create|prlimit|prctl|getauxval|[fl]?(get|set|remove|list)xattr|syscall)\s*[(,;|)]|"
                   r"#include <(linux/|sys/(xattr|prctl|auxv|vfs|syscall)\.h)")


class OneFile(unittest.TestCase):
    def test_the_library_calls_linux_in_one_source(self):
        for room in ("core", "codecs", "store"):
            for file in sorted([*(SOURCE / room).rglob("*.cpp"), *(SOURCE / room).rglob("*.h")]):
                for number, line in enumerate(file.read_text().splitlines(), 1):
                    if file.name != "system_calls.cpp" and not line.lstrip().startswith("//"):
                        self.assertIsNone(LINUX.search(line.partition("  //")[0]), f"{file}:{number}: has its place in core/system_calls.cpp")


@unittest.skipIf(shutil.which("strace") is None, "no strace")
class Portability(ProgramTest):
    def run_without(self, call, error, *words, folder):
        command = [PROGRAM, *words, "--quiet"]
        if call:
            command = ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"inject={call}:error={error}", *command]
        # LeakSanitizer cannot work below another tracer, and fails the program.
        environment = os.environ | {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, timeout=300)

    def left_by_steps(self, call=None, error=None):
        """What the steps leave without a call: each file of an array but Tessera's own, and its digest."""
        folder = self.folder / (call or "all").split(",")[0]
        folder.mkdir()
        np.save(folder / "rows.npy", np.full((3, 70), 9, "<i4"))
        for step in STEPS:
            result = self.run_without(call, error, *step, folder=folder)
            self.assertEqual((result.returncode, result.stderr), (0, ""), f"{step} without {call}\n{result.stdout}")
        return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
                for file in sorted(folder.rglob("*")) if file.is_file() and ".tessera" not in str(file.relative_to(folder))}

    def test_calls_that_may_be_missing(self):
        whole = self.left_by_steps()
        self.assertIn("a.snapshots/one/__zmeta__", whole)
        for call, error in MISSING.items():
            with self.subTest(call):
                self.assertEqual(self.left_by_steps(call, error), whole)

    def test_without_hard_links(self):
        """There is no undo of `set` then, and it says so; everything else works."""
        folder = self.folder
        for step in [["create", "a", "--shape", "9", "--dtype", "<i4"], ["set", "a", "...", "3"], ["set", "a", ":4", "5"],
                     ["snapshot", "a", "create", "one"], ["copy", "a", "b", "--format", "v2"]]:
            result = self.run_without("linkat", "EPERM", *step, folder=folder)
            self.assertEqual(result.returncode, 0, f"{step}\n{result.stderr}")
        self.assertEqual(self.tessera("get", "b", "...").strip(), "[5 5 5 5 3 3 3 3 3]")
        undone = self.run_without("linkat", "EPERM", "undo", "a", folder=folder)
        self.assertEqual(undone.returncode, 2)
        self.assertIn("no hard link could be made", undone.stderr)
        self.assertEqual(self.tessera("get", "a", "...").strip(), "[5 5 5 5 3 3 3 3 3]")

    def test_locks_are_never_left_out_in_silence(self):
        """Without locks of open files a writer refuses, unless it is told that there is no other."""
        self.tessera("create", "a", "--shape", "9", "--dtype", "<i4", "--quiet")
        refused = self.run_without("fcntl", "EINVAL", "set", "a", "...", "3", folder=self.folder)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--no-locks", refused.stderr)
        done = self.run_without("fcntl", "EINVAL", "set", "a", "...", "3", "--no-locks", folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main()
