"""How often commands wait for the disk (fsync, fdatasync, syncfs), by strace: a few times, however many chunks or arrays
they change."""

import json
import os
import re
import shutil
import subprocess
import unittest

import numpy as np

from program import PROGRAM, ProgramTest, main


@unittest.skipIf(shutil.which("strace") is None, "no strace")
class Waits(ProgramTest):
    def waits(self, *words):
        """The waits of a command, which has to succeed."""
        trace = self.folder / "trace"
        # LeakSanitizer cannot work below another tracer, and fails the program.
        options = os.environ | {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        subprocess.run(["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync,syncfs", "-o", trace, PROGRAM,
                        *map(str, words), "--quiet"], cwd=self.folder, env=options, check=True, capture_output=True)
        return len(re.findall(r"(?:fsync|fdatasync|syncfs)\(", trace.read_text()))

    def test_writing_into_many_chunks(self):
        for name, options in {"zmeta": [], "v2": ["--format", "v2", "--separator", "/"], "v3": ["--format", "v3"],
                              "sharded": ["--format", "v3", "--shard", "8,8"]}.items():
            with self.subTest(name):
                self.tessera("create", name, "--shape", "40,40", "--chunks", "4,4", "--dtype", "<i4", *options,
                             "--quiet")
                new = self.waits("set", name, "...", 5)
                changed = self.waits("set", name, "1:-1,1:-1", 6)
                self.assertGreater(new, 0)
                self.assertLessEqual(new, 4)
                self.assertGreater(changed, 0)
                self.assertLessEqual(changed, 4)
                expected = np.full((40, 40), 5)
                expected[1:-1, 1:-1] = 6
                self.assertEqual(json.loads(self.tessera("get", name, "...", "--json")), expected.tolist())
                self.assertEqual(self.waits("set", name, "...", 7, "--durability", "none"), 0)

    def test_copying_many_arrays(self):
        waits = {}
        for count in 1, 20:
            self.tessera("group", f"from{count}", "--format", "v2", "--quiet")
            for i in range(count):
                self.tessera("group", f"from{count}/g{i}", "--format", "v2", "--quiet")
                place = f"from{count}/g{i}/a"
                self.tessera("create", place, "--shape", "4", "--dtype", "<i4", "--format", "v2", "--quiet")
                self.tessera("set", place, "...", i + 1, "--quiet")
            waits[count] = self.waits("copy", f"from{count}", f"to{count}", "--format", "v3")
            self.assertEqual(self.tessera("get", f"to{count}/g{count - 1}/a", "...").strip(),
                             str([count] * 4).replace(",", ""))
        self.assertEqual(waits[1], waits[20])
        self.assertLessEqual(waits[20], 8)

    def test_appending(self):
        np.save(self.folder / "row.npy", np.arange(6, dtype="<i4").reshape(1, 6))
        self.tessera("create", "series", "--shape", "0,6", "--chunks", "100,6", "--dtype", "<i4", "--quiet")
        waits = [self.waits("append", "series", "row.npy") for _ in range(3)]
        self.assertLessEqual(waits[0], 5)  # one of them for the folder that it makes
        self.assertLessEqual(waits[1], 4)
        self.assertEqual(waits[1], waits[2])


if __name__ == "__main__":
    main()
