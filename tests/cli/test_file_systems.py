"""Batches of edits, undo and repair where the file system is in the way: parts of an array on another one, what cannot
be replaced, file systems that keep whole seconds. What takes root, or a mount of one's own, says so where it cannot be
had."""

import os
import shutil
import shlex
import subprocess
import sys
import time
import unittest

import numpy as np

from program import PROGRAM, ProgramTest, digest, main

SCRIPT = "set '...' 1\nattr reviewed true\n"


def works(*words):
    try:
        return subprocess.run(words, capture_output=True, timeout=60).returncode == 0
    except OSError:
        return False


class Batches(ProgramTest):
    def setUp(self):
        super().setUp()
        self.tessera("create", "x.zarr", "--shape", "20,20", "--chunks", "5,5", "--dtype", "<i4", "--format", "v2",
                     "--separator", "/", "--quiet")
        self.tessera("set", "x.zarr", "...", "5", "--quiet")
        (self.folder / "script").write_text(SCRIPT)
        self.root = self.folder / "x.zarr"

    def edit(self, **options):
        return self.run_program("edit", "x.zarr", "--script", "script", **options)

    def check(self, value, path="x.zarr"):
        np.testing.assert_array_equal(self.exported(path), np.full((20, 20), value, "<i4"))

    def usable(self):
        """Whether everything else still works."""
        self.tessera("set", "x.zarr", "10,10", "9", "--quiet")
        self.tessera("attrs", "x.zarr", "set", "k", "1", "--quiet")
        self.tessera("resize", "x.zarr", "9,9", "--quiet")

    def test_a_directory_named_like_a_chunk(self):
        shutil.rmtree(self.root / "2")
        (self.root / "2/2/inside").mkdir(parents=True)
        before = digest(self.root)
        self.refused("edit", "x.zarr", "--script", "script", says=["x.zarr", "nothing was changed", "2/2", "directory"])
        self.assertEqual(digest(self.root), before)
        self.assertFalse((self.root / ".tessera/batch/journal").exists())
        self.assertEqual([p.name for p in (self.root / ".tessera").glob("undo/*")], ["changes"])  # of a `set` before
        self.tessera("set", "x.zarr", "0,0", "9", "--quiet")
        (self.root / "2/2/inside").rmdir()
        (self.root / "2/2").rmdir()
        self.assertEqual(self.edit().returncode, 0)
        self.check(1)

    def test_a_file_named_like_a_folder_of_chunks(self):
        shutil.rmtree(self.root / "2")
        (self.root / "2").write_bytes(b"")
        self.refused("edit", "x.zarr", "--script", "script", says="nothing was changed")
        (self.root / "2").unlink()
        self.assertEqual(self.edit().returncode, 0)
        self.check(1)

    @unittest.skipIf(os.geteuid() == 0, "root may write anywhere")
    def test_a_folder_that_cannot_be_written(self):
        (self.root / "3").chmod(0o555)
        self.addCleanup((self.root / "3").chmod, 0o755)
        self.refused("edit", "x.zarr", "--script", "script", says=["nothing was changed", "x.zarr/3"])
        (self.root / "3").chmod(0o755)
        self.assertEqual(self.edit().returncode, 0)

    def test_an_immutable_chunk(self):
        chunk = self.root / "3/3"
        if os.geteuid() != 0 or not works("chattr", "+i", chunk):
            self.skipTest("takes root, and a file system with attributes of files")
        self.addCleanup(works, "chattr", "-i", chunk)
        self.refused("edit", "x.zarr", "--script", "script", says=["nothing was changed", "3/3", "immutable"])
        self.tessera("set", "x.zarr", "0,0", "9", "--quiet")
        self.assertTrue(works("chattr", "-i", chunk))
        self.assertEqual(self.edit().returncode, 0)
        self.check(1)

    # ---- on another file system

    def in_a_namespace(self, script):
        """Runs a shell script in a name space of mounts of its own; its output."""
        for way in (["unshare", "-m"], ["unshare", "-r", "-m"]):
            if works(*way, "mount", "-t", "tmpfs", "none", self.folder):
                return subprocess.run([*way, "sh", "-ec", script], cwd=self.folder, capture_output=True, text=True,
                                      timeout=120, env={**os.environ, "T": PROGRAM})
        self.skipTest("takes a name space of mounts of one's own (unshare -m)")

    def test_a_full_disk_under_files_of_libhdf5(self):
        """An error and no crash, in the program and in Python, whose end closes libhdf5; what was there stays."""
        np.save(self.folder / "noise.npy", np.random.default_rng(1).integers(0, 2**31, (200, 200), "<i4"))
        (self.folder / "save.py").write_text(
            "import sys, numpy, tessera\n"
            "try:\n"
            "    tessera.save(sys.argv[1], numpy.load('noise.npy'), overwrite=True)\n"
            "except tessera.IoError as error:\n"
            "    sys.exit(f'refused: {error}')\n")
        module = os.environ.get("TESSERA_MODULE")
        python = f"PYTHONPATH={shlex.quote(module)} {sys.executable} -B save.py" if module else "$T export noise.npy --overwrite --quiet"
        result = self.in_a_namespace(f"""
            mkdir full
            for name in a.h5 a.nc; do for there in "" small; do for k in 20 100; do
                mount -t tmpfs -o size=${{k}}k none full
                [ -z "$there" ] || $T export x.zarr full/$name --quiet
                ls -l --time-style=+ full > before
                code=0; $T export noise.npy full/$name --overwrite --quiet 2> said || code=$?
                echo "$code $(cat said)"
                code=0; {python} full/$name 2> said || code=$?
                echo "$code $(cat said)"
                ls -lA --time-style=+ full | cmp - before
                umount full
            done; done; done""")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        self.assertEqual(len(lines), 16, lines)
        for line in lines:
            self.assertRegex(line, "^[12] .*full/a.*No space left on device")

    def test_a_part_of_the_array_on_another_file_system(self):
        result = self.in_a_namespace("""
            mkdir aside; mv x.zarr/3 aside; mkdir x.zarr/3; mount -t tmpfs none x.zarr/3; cp -p aside/3/* x.zarr/3
            $T edit x.zarr --script script --quiet; $T export x.zarr 1.npy --quiet
            $T verify x.zarr > verified
            $T undo x.zarr --quiet; $T export x.zarr 5.npy --quiet
            $T undo x.zarr --quiet; $T export x.zarr again.npy --quiet
            mv x.zarr/.tessera/undo undo
            $T set x.zarr 16,16 7 --quiet
            if $T undo x.zarr 2> no_link; then exit 9; fi
            rm -r x.zarr/.tessera/undo; mv undo x.zarr/.tessera/undo
            if $T undo x.zarr 2> refused; then exit 9; fi
            $T get x.zarr 16,16 > got
            ls -A x.zarr/3 > left
            """)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        for name, value in [("1.npy", 1), ("5.npy", 5), ("again.npy", 1)]:
            np.testing.assert_array_equal(np.load(self.folder / name), np.full((20, 20), value, "<i4"))
        self.assertIn("no hard link could be made (Invalid cross-device link)", (self.folder / "no_link").read_text())
        self.assertIn("3/3 was changed after the batch", (self.folder / "refused").read_text())
        self.assertEqual((self.folder / "got").read_text().strip(), "7")
        self.assertEqual((self.folder / "left").read_text().split(), ["0", "1", "2", "3"])

    def test_whole_seconds(self):
        for kind, make in [("ext2", ["mke2fs", "-q", "-F", "-t", "ext2", "-I", "128"]),
                           ("ext4", ["mke2fs", "-q", "-F", "-t", "ext4", "-I", "128"]),
                           ("vfat", ["mkfs.vfat"])]:
            with self.subTest(kind):
                image = self.folder / f"{kind}.img"
                with open(image, "wb") as file:
                    file.truncate(32 << 20)
                place = self.folder / kind
                place.mkdir()
                if os.geteuid() != 0 or not works(*make, image) or not works("mount", "-o", "loop", image, place):
                    self.skipTest(f"takes root, a loop device and {make[0]}")
                try:
                    self.check_whole_seconds(place)
                finally:
                    self.assertTrue(works("umount", place))

    def check_whole_seconds(self, place):
        array = place / "s.zarr"
        self.tessera("create", array, "--shape", "20,20", "--chunks", "20,20", "--dtype", "<i4", "--codec", "none",
                     "--format", "v2", "--quiet")
        self.tessera("set", array, "...", "5", "--quiet")
        self.tessera("edit", array, "--script", "script", "--quiet")
        self.tessera("undo", array, "--quiet")
        self.check(5, array)
        self.tessera("undo", array, "--quiet")
        self.check(1, array)
        (array / ".tessera/undo").rename(place / "undo")
        self.tessera("set", array, "0,0", "55", "--quiet")
        self.tessera("set", array, "0,1", "66", "--quiet")
        self.refused("undo", array, says="no nanoseconds")
        shutil.rmtree(array / ".tessera/undo")
        (place / "undo").rename(array / ".tessera/undo")
        self.refused("undo", array, says="was changed after the batch")
        self.assertEqual(self.tessera("get", array, "0,0:3").split(), ["[55", "66", "1]"])
        self.tessera("verify", array)

    # ---- journals

    def journal(self, change):
        """A batch that is recorded, with a journal that `change` makes other than it should be."""
        header = '{"tessera_changes":1,"id":"0000000000000007","keeps_old":false,"what":""}\n'
        folder = self.root / ".tessera/batch"
        folder.mkdir(parents=True)
        (folder / "journal").write_text(change(header))
        (folder / "0").write_bytes(b"new")

    def test_a_damaged_journal_is_set_aside(self):
        self.journal(lambda journal: journal)
        for words in [("set", "x.zarr", "0,0", "9"), ("get", "x.zarr", "0,0"), ("undo", "x.zarr")]:
            self.refused(*words, says=["journal", "damaged", "`tessera repair`"])
        self.assertIn("journal", self.tessera("verify", "x.zarr", code=1))
        self.assertIn("would be set aside", self.tessera("repair", "x.zarr", "--dry-run"))
        self.assertTrue((self.root / ".tessera/batch/journal").exists())
        self.assertIn("set aside as .tessera/damaged/batch.1", self.tessera("repair", "x.zarr"))
        self.assertEqual((self.root / ".tessera/damaged/batch.1/0").read_bytes(), b"new")
        self.check(5)
        self.usable()

    def test_the_journal_of_a_newer_version(self):
        self.journal(lambda journal: journal.replace(":1,", ":3,"))
        self.refused("set", "x.zarr", "0,0", "9", says=["version 3", "--give-up-batches"])
        self.tessera("repair", "x.zarr", code=1)
        self.assertTrue((self.root / ".tessera/batch/journal").exists())
        self.assertIn("would be set aside", self.tessera("repair", "x.zarr", "--give-up-batches", "--dry-run"))
        self.assertTrue((self.root / ".tessera/batch/journal").exists())
        self.tessera("repair", "x.zarr", "--give-up-batches")
        self.check(5)
        self.usable()


class OtherKinds(ProgramTest):
    """File systems that rename deleted files, or cannot rename folders."""

    def in_a_namespace(self, script, mount):
        if os.geteuid() != 0 or not works("unshare", "-m", "sh", "-ec", f"{mount}; umount {self.folder}/mounted"):
            self.skipTest(f"takes root, and: {mount}")
        command = f"{mount}; {script}"
        result = subprocess.run(["unshare", "-m", "sh", "-ec", command], cwd=self.folder, capture_output=True, text=True,
                                timeout=300, env={**os.environ, "T": PROGRAM})
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        return result.stdout

    def test_deleted_open_files_are_renamed(self):
        """FUSE: a folder with such a file cannot be removed."""
        for folder in ("source", "mounted"):
            (self.folder / folder).mkdir()
        self.save("ones.npy", np.ones(8, "<i4"))
        make = "create mounted/a --shape 8 --chunks 2 --dtype '<i4' --quiet"
        shown = self.in_a_namespace(f"""
            trap 'umount mounted' EXIT
            $T {make}; $T set mounted/a ... 5 --quiet
            $T snapshot mounted/a create one --quiet; $T set mounted/a 0 6 --quiet
            $T snapshot mounted/a restore one --quiet; $T get mounted/a
            $T copy ones.npy mounted/a --overwrite --chunks 4 --quiet; $T get mounted/a
            $T snapshot mounted/a rm one --quiet
            $T rm mounted/a; rm -d mounted/a.snapshots; $T {make}; $T get mounted/a
            $T group mounted/g --quiet; $T copy mounted/a mounted/g/a --quiet; $T mv mounted/g/a mounted/g/b --quiet
            $T verify mounted --quiet; $T rm mounted/g --recursive --quiet; $T rm mounted/a --quiet
            sleep 0.1; find mounted -mindepth 1
            """, f"bindfs {self.folder}/source {self.folder}/mounted")
        lines = [line for line in shown.splitlines() if line.startswith("[")]
        self.assertEqual(lines, ["[5 5 5 5 5 5 5 5]", "[1 1 1 1 1 1 1 1]", "[0 0 0 0 0 0 0 0]"])
        self.assertEqual(shown.splitlines()[-1], lines[-1], "something is left")

    def test_deleted_files_of_others(self):
        """A folder stays while another program has a file in it open."""
        for folder in ("source", "mounted"):
            (self.folder / folder).mkdir()
        shown = self.in_a_namespace("""
            trap 'umount mounted' EXIT
            $T create mounted/a --shape 8 --dtype '<i4' --quiet; $T set mounted/a ... 5 --quiet
            exec 9<mounted/a/.tessera/lock
            $T rm mounted/a --quiet; $T create mounted/a --shape 4 --dtype '<i4' --quiet; $T get mounted/a
            exec 9<&-
            """, f"bindfs {self.folder}/source {self.folder}/mounted")
        self.assertEqual(shown.split(), ["[0", "0", "0", "0]"])

    def test_wrong_sizes_after_a_link(self):
        """gocryptfs names the size of the encrypted file right after a link or rename."""
        for folder in ("source", "mounted"):
            (self.folder / folder).mkdir()
        (self.folder / "word").write_text("secret\n")
        if not works("gocryptfs", "-q", "-init", "-scryptn", "10", "-passfile", self.folder / "word", self.folder / "source"):
            self.skipTest("takes gocryptfs")
        shown = self.in_a_namespace("""
            trap 'umount mounted' EXIT
            $T create mounted/a --shape 8 --chunks 2 --dtype '<i4' --quiet; $T set mounted/a ... 5 --quiet
            $T snapshot mounted/a create one --quiet; sleep 1.1; $T verify mounted/a.snapshots/one --quiet
            $T set mounted/a ... 6 --quiet; $T snapshot mounted/a restore one --quiet; $T get mounted/a
            """, f"gocryptfs -q -passfile {self.folder}/word {self.folder}/source {self.folder}/mounted")
        self.assertEqual(shown.strip(), "[5 5 5 5 5 5 5 5]")

    def test_folders_of_a_lower_layer(self):
        """overlayfs, as in containers, renames no folder that lies in a lower layer."""
        for folder in ("lower", "upper", "mounted"):
            (self.folder / folder).mkdir()
        self.save("ones.npy", np.ones(8, "<i4"))
        for name in ("a", "b", "c"):
            self.tessera("create", f"lower/{name}", "--shape", "8", "--chunks", "2", "--dtype", "<i4", "--quiet")
            self.tessera("set", f"lower/{name}", "...", "5", "--quiet")
        self.tessera("snapshot", "lower/c", "create", "one", "--quiet")
        self.tessera("set", "lower/c", "0", "6", "--quiet")
        (self.folder / "lower/a").chmod(0o750)
        before = {p.name: p.stat().st_mtime_ns for p in (self.folder / "lower/a").iterdir() if p.is_file()}
        mount = ("mount -t tmpfs none upper; mkdir upper/u upper/w; "
                 "mount -t overlay overlay -o lowerdir=lower,upperdir=upper/u,workdir=upper/w mounted")
        shown = self.in_a_namespace("""
            $T mv mounted/a mounted/moved --quiet; $T get mounted/moved; test ! -e mounted/a; $T verify mounted/moved
            stat -c '%a %n' mounted/moved
            stat -c '%n %.Y' mounted/moved/__zmeta__
            $T set mounted/moved 0 1 --quiet
            $T copy ones.npy mounted/b --overwrite --chunks 4 --quiet; $T get mounted/b; $T verify mounted/b
            $T snapshot mounted/c restore one --quiet; $T get mounted/c; $T verify mounted/c
            $T snapshot mounted/c rm one --quiet; $T rm mounted/c --quiet
            find mounted -name '.*tessera-*'
            """, f"cd {self.folder}; {mount}")
        self.assertEqual([line for line in shown.splitlines() if line.startswith("[")],
                         ["[5 5 5 5 5 5 5 5]", "[1 1 1 1 1 1 1 1]", "[5 5 5 5 5 5 5 5]"])
        self.assertIn("750 mounted/moved", shown)
        self.assertIn(f"{before['__zmeta__'] // 10**9}.{before['__zmeta__'] % 10**9:09d}", shown)
        self.assertNotIn("tessera-", shown)


class Seals(ProgramTest):
    def test_a_seal_waits_for_writers(self):
        self.tessera("create", "s.zarr", "--shape", "40,40", "--chunks", "20,20", "--dtype", "<i4", "--quiet")
        self.tessera("set", "s.zarr", "...", "1", "--quiet")
        for words in [("seal", "s.zarr"), ("seal", "s.zarr", "--bagit", "bag")]:
            with subprocess.Popen([PROGRAM, "edit", "s.zarr", "--script", "-", "--break-seal", "--quiet"], cwd=self.folder,
                                  stdin=subprocess.PIPE, text=True) as writer:
                writer.stdin.write("set '...' 2\nset '0:20,:' 3\n")
                writer.stdin.flush()
                # All four, whichever numbers they have: those of the second line take the place of two.
                while len(list(self.folder.glob("s.zarr/.tessera/batch/*.[0-9]"))) < 4:
                    self.assertIsNone(writer.poll(), "the writer has ended")
                    time.sleep(0.01)
                with subprocess.Popen([PROGRAM, *words, "--quiet"], cwd=self.folder) as sealer:
                    try:
                        sealer.wait(0.5)  # it should not, and then the seal would be of what is no more
                    except subprocess.TimeoutExpired:
                        pass
                    writer.stdin.close()
                    self.assertEqual((writer.wait(), sealer.wait()), (0, 0))
            self.tessera("verify", "s.zarr", "--quiet")
        self.tessera("diff", "s.zarr", "bag/data/s.zarr", "--quiet")


if __name__ == "__main__":
    main()
