"""Other people's permissions: folders in which this user may not write, and arrays that several users write."""

import os
import shutil
import stat
import subprocess
import unittest

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


def below(root):
    """What lies below a folder, with its mode and group."""
    return {str(p.relative_to(root)): (stat.S_IMODE(p.lstat().st_mode), p.lstat().st_gid) for p in root.rglob("*")}


class SharedGroup(program.ProgramTest):
    """An array of a group of people: whatever one of them writes, the others can read and write."""

    GROUP, ALICE, BOB = 40100, 40001, 40002  # with groups of their own, of the same numbers
    FORMATS = ["zmeta", "v1", "v2", "v3"]

    def become(self, user, *groups, mask=0o022):
        def change():
            if os.getuid() == 0:
                os.setgroups(groups)
                os.setgid(user)
                os.setuid(user)
            os.umask(mask)
        return change

    def setUp(self):
        super().setUp()
        self.root = self.folder / "shared"
        self.root.mkdir()
        self.group = self.GROUP if os.getuid() == 0 else os.getgid()
        os.chown(self.folder, -1, self.group)
        os.chown(self.root, -1, self.group)
        self.folder.chmod(0o777)
        self.root.chmod(0o2775)
        self.alice = {"preexec_fn": self.become(self.ALICE, self.GROUP, mask=0o002)}
        self.bob = {"preexec_fn": self.become(self.BOB, self.GROUP, mask=0o077)}
        self.save("ones.npy", np.ones(8, "<i4"))
        (self.folder / "ones.npy").chmod(0o644)
        (self.folder / "script").write_text("set 0 5\nset 7 6\nattr b 1\n")
        if self.run_program("version", **self.bob).returncode != 0:
            self.skipTest("other users cannot run the program")

    def array(self, form, *words):
        path = self.root / f"{form}.zarr"
        self.tessera("create", path, "--shape", "8", "--chunks", "2", "--dtype", "<i4", "--format", form, "--quiet",
                     *words, **self.alice)
        self.tessera("set", path, ":4", "1", "--quiet", **self.alice)
        return path

    def check(self, root):
        for name, (mode, group) in below(root).items():
            wanted = 0o2775 if (root / name).is_dir() else 0o664
            self.assertEqual((oct(mode), group), (oct(wanted), self.group), f"{root.name}/{name}")

    def test_a_members_mask_locks_nobody_out(self):
        for form in self.FORMATS:
            with self.subTest(form):
                path = self.array(form)
                for words in [("set", path, "...", "3"), ("set", path, "0", "4", "--no-undo"), ("append", path, "ones.npy"),
                              ("attrs", path, "set", "units", '"m"'), ("edit", path, "--script", "script"),
                              ("undo", path), ("resize", path, "21"), ("set", path, "16:", "9"),
                              ("calc", path, "a + 1", f"a={path}", "--in-place"), ("seal", path, "--parity", "20%")]:
                    self.tessera(*words, "--quiet", **self.bob)
                    self.check(path)
                self.tessera("verify", path, "--quiet", **self.alice)
                self.tessera("set", path, ":", "7", "--quiet", "--break-seal", **self.alice)
                self.tessera("edit", path, "--script", "script", "--quiet", **self.alice)
                self.tessera("undo", path, "--quiet", **self.alice)
                self.check(path)

    def test_a_killed_snapshot_locks_nobody_out(self):
        """A folder that was made under a mask of 077, and not yet shared."""
        path = self.array("v3")
        folder = self.root / "v3.zarr.snapshots"
        for left in folder, folder / ".x.tessera-new", folder / ".x.tessera-new/.tessera":
            with self.subTest(str(left.relative_to(self.root))):
                shutil.rmtree(folder, ignore_errors=True)
                for made in reversed([left, *left.parents]):
                    if not made.is_relative_to(folder):
                        continue
                    made.mkdir()
                    os.chown(made, self.BOB if os.getuid() == 0 else -1, self.group)
                    made.chmod(0o700 if made == left else 0o2775)
                self.tessera("snapshot", path, "create", "one", "--quiet", **self.alice)
                self.tessera("snapshot", path, "create", "x", "--quiet", **self.alice)
                self.check(self.root)

    @unittest.skipUnless(os.getuid() == 0, "takes root: two users")
    def test_a_lock_file_of_a_killed_run_is_named(self):
        """One that was made under a mask of 077, and not yet shared."""
        path = self.array("v3")
        for lock, words in ((path / ".tessera/lock", ("set", path, "0", "4")),
                            (self.root / ".new.zarr.tessera-lock", ("copy", path, self.root / "new.zarr"))):
            lock.unlink(missing_ok=True)
            lock.touch()
            os.chown(lock, self.BOB, self.group)
            lock.chmod(0o600)
            self.refused(*words, "--quiet", says=["killed", "remove it", str(lock)], **self.alice)
            lock.unlink()
            self.tessera(*words, "--quiet", **self.alice)
            self.check(path)

    def test_snapshots_and_replacements(self):
        for form in self.FORMATS:
            with self.subTest(form):
                path = self.array(form)
                self.tessera("snapshot", path, "create", "one", "--quiet", **self.bob)
                self.check(self.root)
                self.tessera("set", path, "0", "9", "--quiet", **self.alice)
                self.tessera("snapshot", path, "restore", "one", "--quiet", **self.bob)
                self.check(self.root)
                self.tessera("set", path, "1", "9", "--quiet", **self.alice)
                self.tessera("copy", "ones.npy", path, "--overwrite", "--format", form, "--chunks", "2", "--quiet",
                             **self.bob)
                self.check(self.root)
                self.tessera("set", path, "1", "9", "--quiet", **self.alice)
                self.tessera("snapshot", path, "rm", "one", "--quiet", **self.alice)

    def test_groups_and_files(self):
        group = self.root / "g"
        self.tessera("group", group, "--format", "v2", "--quiet", **self.alice)
        self.tessera("create", group / "a", "--shape", "4", "--dtype", "<i4", "--quiet", **self.alice)
        self.tessera("consolidate", group, "--quiet", **self.bob)
        self.tessera("attrs", group, "set", "k", "1", "--quiet", **self.bob)
        self.tessera("seal", group, "--parity", "20%", "--quiet", **self.bob)
        self.check(self.root)
        self.tessera("export", group / "a", self.root / "a.npy", "--quiet", **self.alice)
        self.tessera("export", group / "a", self.root / "a.npy", "--overwrite", "--quiet", **self.bob)
        self.tessera("seal", self.root / "a.npy", "--parity", "20%", "--quiet", **self.bob)
        self.check(self.root)

    def test_modes_are_kept_one_by_one(self):
        path = self.array("v2")
        (path / "0").chmod(0o640)
        (path / "1").chmod(0o600)
        (path / ".zattrs").write_text("{}")
        os.chown(path / ".zattrs", *([self.ALICE, self.GROUP] if os.getuid() == 0 else [-1, -1]))
        (path / ".zattrs").chmod(0o660)
        for words in [("set", path, "...", "3"), ("edit", path, "--script", "script"),
                      ("attrs", path, "set", "k", "1")]:
            self.tessera(*words, "--quiet", **self.alice)
            modes = {name: oct(mode) for name, (mode, _) in below(path).items() if ".tessera" not in name}
            self.assertEqual(modes, {".zarray": "0o664", ".zattrs": "0o660", "0": "0o640", "1": "0o600", "2": "0o664",
                                     "3": "0o664"})

    @unittest.skipUnless(os.getuid() == 0, "takes root: two users")
    def test_a_group_that_cannot_be_given(self):
        path = self.array("v2")
        os.chmod(path, 0o777)
        for p in path.rglob("*"):
            p.chmod(0o777 if p.is_dir() else 0o666)
        os.chmod(path, 0o777)  # without setgid
        stranger = {"preexec_fn": self.become(self.BOB, mask=0o077)}
        result = self.run_program("set", path, "...", "3", **stranger)
        self.assertEqual((result.returncode, result.stderr.count("no member of its group")), (0, 1), result.stderr)
        self.assertEqual(below(path)["0"], (0o606, self.BOB))

    @unittest.skipUnless(os.getuid() == 0, "takes root: an owner who is somebody else")
    def test_root_leaves_the_owner(self):
        path = self.array("v3")
        for words in [("set", path, "...", "3"), ("edit", path, "--script", "script"), ("attrs", path, "set", "k", "1")]:
            self.tessera(*words, "--quiet")
            self.assertEqual({p.stat().st_uid for p in path.rglob("*")}, {self.ALICE}, words)
        self.check(path)

    def access_lists(self, path):
        shown = subprocess.run(["getfacl", "-cn", path], capture_output=True, text=True)
        return shown.stdout.split()

    def test_access_lists(self):
        path = self.array("v2")
        try:
            subprocess.run(["setfacl", "-m", "u:12345:rw", path / "0", path / ".zarray"], check=True, capture_output=True)
        except (OSError, subprocess.SubprocessError):
            self.skipTest("takes setfacl, and a file system with access lists")
        chunk, document = self.access_lists(path / "0"), self.access_lists(path / ".zarray")
        self.assertIn("user:12345:rw-", chunk)
        for words in [("set", path, "...", "3"), ("edit", path, "--script", "script"), ("resize", path, "12")]:
            self.tessera(*words, "--quiet", **self.alice)
            self.assertEqual(self.access_lists(path / "0"), chunk, words)
            self.assertEqual(self.access_lists(path / ".zarray"), document, words)
        self.tessera("set", path, "8:", "3", "--quiet", **self.bob)
        self.assertEqual(self.access_lists(path / "5"), document)  # a new chunk: as the metadata
        self.assertNotIn("user:12345:rw-", self.access_lists(path / "1"))

    def test_a_list_for_new_files(self):
        path = self.array("v3")
        works = shutil.which("setfacl") and subprocess.run(["setfacl", "-R", "-d", "-m", "u:12345:rwX", path], capture_output=True).returncode == 0
        if not works:
            self.skipTest("takes setfacl, and a file system with access lists")
        before = self.access_lists(path / "c/0")
        self.tessera("set", path, "...", "3", "--quiet", **self.bob)
        self.assertEqual(self.access_lists(path / "c/0"), before)  # replaced: as it was
        self.assertIn("user:12345:rw", " ".join(self.access_lists(path / "c/3")))  # new: as the list says


if __name__ == "__main__":
    program.main()
