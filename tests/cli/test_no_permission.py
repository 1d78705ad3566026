"""A folder in which this user may not write: every command says so at once, and makes nothing."""

import os
import subprocess

import numpy as np

import program
from program import PROGRAM

NOBODY = 65534


def become_nobody():
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


class NoPermission(program.ProgramTest):
    def setUp(self):
        super().setUp()
        try:
            subprocess.run([PROGRAM, "version"], preexec_fn=become_nobody, capture_output=True, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            self.skipTest(f"nobody cannot run the program: {error}")
        self.save("a.npy", np.arange(12, dtype="<i4").reshape(3, 4))
        np.savez(self.folder / "two.npz", x=np.arange(3), y=np.arange(4))
        self.tessera("group", "g.zarr", "--format", "v2", "--quiet")
        self.tessera("copy", "a.npy", "g.zarr/a", "--format", "v2", "--quiet")
        self.tessera("copy", "a.npy", "a.zarr", "--quiet")
        self.before = {p: p.is_file() and p.read_bytes() for p in self.folder.rglob("*")}
        for path in [self.folder, *self.folder.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)

    def tearDown(self):
        for path in [self.folder, *self.folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)

    COMMANDS = (["import", "a.npy", "new.zarr"], ["import", "two.npz", "new.zarr"], ["export", "a.zarr", "new.npy"],
                ["export", "a.zarr", "new.csv"], ["export", "g.zarr", "new.npz"], ["copy", "a.zarr", "new.zarr"],
                ["copy", "a.zarr", "new.zarr.zip"], ["copy", "a.npy", "a.zarr", "--overwrite"],
                ["create", "new.zarr", "--shape", "3", "--dtype", "f8"], ["group", "new.zarr"],
                ["create", "g.zarr/new", "--shape", "3", "--dtype", "f8"], ["rm", "g.zarr/a"], ["rm", "a.zarr"],
                ["mv", "g.zarr/a", "g.zarr/b"], ["get", "a.zarr", ":", "--out", "new.npy"],
                ["reduce", "a.zarr", "new.zarr", "--axis", "0", "--with", "mean"], ["calc", "new.zarr", "a + 1", "a=a.npy"],
                ["stack", "a.npy", "a.npy", "new.zarr"], ["snapshot", "a.zarr", "create", "monday"],
                ["set", "a.zarr", "0, 0", "1"], ["append", "a.zarr", "a.npy"], ["seal", "a.zarr"],
                ["attrs", "a.zarr", "set", "units", '"m"'], ["seal", "a.npy", "--parity", "5%"])

    def test_it_is_said_at_once(self):
        for words in self.COMMANDS:
            with self.subTest(" ".join(words)):
                self.refused(*words, says="ermi", preexec_fn=become_nobody)
        after = {p: p.is_file() and p.read_bytes() for p in self.folder.rglob("*")}
        self.assertEqual([str(p) for p in after.keys() | self.before.keys() if after.get(p) != self.before.get(p)], [])


if __name__ == "__main__":
    program.main()
