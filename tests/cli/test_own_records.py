"""What Tessera writes down for itself: with any bit of it flipped, or any part cut off, `verify` does not call damage sound that
the whole record shows, and nothing wrong is put back. Each record stands before damage that only the record tells: a changed bit
of a chunk without a codec, under its old size and time."""
import os
import random
import shutil

import numpy as np

from program import FEWER, ProgramTest, main

VALUES = np.arange(40, dtype="<i4")


def damage(file, change):
    """Changes bytes of a file under its old time."""
    times = file.stat()
    file.write_bytes(change(file.read_bytes()))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def rot(chunk):
    damage(chunk, lambda whole: bytes([whole[0] ^ 6]) + whole[1:])


def changes(file, flips=12):
    """Nothing left, cut, a line gone, and bits flipped, in the last byte of a line, too."""
    whole = file.read_bytes()
    draw = random.Random(f"{file.suffix} 52")
    lines = whole.splitlines(keepends=True)
    yield "emptied", b""
    for size in {len(whole) - 1, len(whole) // 2, draw.randrange(len(whole))}:
        yield f"cut after {size}", whole[:size]
    for n in range(min(len(lines), 5)):
        yield f"without line {n}", b"".join(lines[:n] + lines[n + 1:])
        if len(lines[n]) < 2:  # of bytes that are no text
            continue
        yield f"with another end of line {n}", b"".join(lines[:n] + [lines[n][:-2] + bytes([lines[n][-2] ^ 1]) + b"\n"] + lines[n + 1:])
    for _ in range(max(flips // FEWER, 3)):
        at, bit = draw.randrange(len(whole)), 1 << draw.randrange(8)
        yield f"bit {bit} of byte {at}", whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1:]


class OwnRecords(ProgramTest):
    def make(self, *words):
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.save("values.npy", VALUES)
        self.tessera("import", "values.npy", "a.zarr", "--chunks", "8", "--format", "v2", "--codec", "none", "--quiet")
        for line in words:
            self.tessera(*line, "--quiet")
        return self.folder / "a.zarr"

    def is_noticed(self, file, path, take=None, right=None):
        """`path` does not verify, whatever becomes of `file`; after the command `take`, right(its exit code) holds."""
        self.assertEqual(self.run_program("verify", path).returncode, 1, "with the whole record")
        whole = shutil.copytree(self.folder, self.folder.with_suffix(".whole"))
        self.addCleanup(shutil.rmtree, whole, ignore_errors=True)
        for what, content in changes(file):
            with self.subTest(f"{file.name}: {what}"):
                damage(file, lambda _, new=content: new)
                result = self.run_program("verify", path)
                self.assertIn(result.returncode, (1, 2), result.stdout + result.stderr)
                if take is not None:
                    result = self.run_program(*take)
                    self.assertIn(result.returncode, (0, 1, 2), result.stderr)
                    self.assertTrue(right(result.returncode), result.stdout + result.stderr)
                    shutil.rmtree(self.folder)
                    shutil.copytree(whole, self.folder)
        shutil.rmtree(whole)

    def test_of_a_snapshot(self):
        for name in "snapshot.json", "snapshot-files.txt", "snapshot-sums.txt":
            root = self.make(("snapshot", "a.zarr", "create", "one", "--sums"), ("set", "a.zarr", "...", "0"))
            snapshot = root.parent / "a.zarr.snapshots/one"
            rot(snapshot / "1")
            self.is_noticed(snapshot / ".tessera" / name, snapshot, ("snapshot", "a.zarr", "restore", "one"),
                            lambda code: code != 0 and not self.exported("a.zarr").any())

    def test_of_a_seal(self):
        root = self.make(("seal", "a.zarr"))
        rot(root / "1")
        self.is_noticed(root / ".tessera/sha256sums.txt", root)

    def test_of_a_seal_with_parity(self):
        for part in "sha256sums.txt", "parity/root.0", "parity/*.000":
            root = self.make(("seal", "a.zarr", "--parity", "30%"))
            rot(root / "1")
            self.is_noticed(next((root / ".tessera").glob(part)), root, ("repair", "a.zarr"),
                            lambda code: code != 0 or (self.exported("a.zarr") == VALUES).all())

    def test_of_a_bag(self):
        for name in "manifest-sha256.txt", "tagmanifest-sha256.txt":
            root = self.make(("seal", "a.zarr", "--bagit", "bag")).parent / "bag"
            rot(root / "data/a.zarr/1")
            self.is_noticed(root / name, root)

    def test_of_undo(self):
        """Flipped bits only: a record that was cut is that of a command that was killed, which undo takes back as far as it goes."""
        for command in ("set", "a.zarr", "3:20", "7"), ("append", "a.zarr", "values.npy"):
            for what, content in changes(self.make(command) / ".tessera/undo/changes"):
                record = self.make(command) / ".tessera/undo/changes"
                if not what.startswith("bit"):
                    continue
                with self.subTest(f"{command[0]}: {what}"):
                    bit, at = (int(word) for word in what.split() if word.isdigit())
                    after = self.exported("a.zarr")
                    damage(record, lambda whole: whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1:])
                    result = self.run_program("undo", "a.zarr")
                    self.assertIn(result.returncode, (0, 2), result.stderr)
                    np.testing.assert_array_equal(self.exported("a.zarr"), after if result.returncode else VALUES)


if __name__ == "__main__":
    main()
