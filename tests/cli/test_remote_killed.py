"""What kill -9 leaves in S3, at every request that writes: each command goes on from there."""

import contextlib
import shutil
import subprocess
import unittest

import numpy as np

import program
import remote


class KilledTest(remote.InBucket, program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.old, self.new = (np.arange(100, dtype="<i4").reshape(10, 10) * sign for sign in (1, -1))
        self.save("old.npy", self.old)
        self.save("new.npy", self.new)
        self.copy = ["copy", "new.npy", "s3://bucket/x", "--format", "v2", "--chunks", "5,10", "--quiet"]

    def keys(self):
        return sorted(str(file.relative_to(self.bucket)) for file in self.bucket.rglob("*") if file.is_file())

    def make(self):
        self.tessera("copy", "old.npy", "s3://bucket/x", "--format", "v3", "--chunks", "5,10", "--overwrite", "--quiet")

    @contextlib.contextmanager
    def place_of(self, before):
        """What lies in the bucket is that of a folder."""
        shutil.rmtree(self.bucket)
        shutil.copytree(before, self.bucket)
        self.double.objects.clear()
        yield

    def killed(self, words):
        """Kills a command before each of its requests that write, and keeps what it leaves, until one is not killed."""
        before = self.folder / "before"
        shutil.copytree(self.bucket, before)
        for number in range(1, 100):
            with self.place_of(before):
                done = 0

                def answer(request):
                    nonlocal done
                    if request.command in ("GET", "HEAD"):
                        return False
                    with self.double.lock:
                        done += 1
                        mine = done
                    if mine < number:
                        return False
                    process.kill()
                    request.close_connection = True
                    return None

                self.double.faults.answer = answer
                process = subprocess.Popen([program.PROGRAM, *words], cwd=self.folder, stderr=subprocess.DEVNULL,
                                           env={**self.environment, **self.double.environment})
                process.wait()
                self.double.settle()
                self.double.faults.answer = None
                self.double.faults.age = 100  # its lease has ended
                if done < number:
                    return
                left = self.folder / f"left-{number}"
                shutil.copytree(self.bucket, left)
                yield number, left
        self.fail("it never ends")

    def goes_on(self, words):
        points = removals = 0
        for number, left in self.killed(words):
            points += 1
            with self.subTest(number):
                names = [str(file.relative_to(left)) for file in left.rglob("*") if file.is_file()]
                marker = left / "x/.tessera/unfinished.json"
                there = {"x/zarr.json", "x/.zarray"} & set(names)
                removed = marker.exists() and "removal" in marker.read_text() and not there
                removals += removed
                with self.place_of(left):
                    self.tessera(*self.copy, "--overwrite")
                    np.testing.assert_array_equal(self.exported("s3://bucket/x"), self.new)
                if set(names) <= {"x/.tessera/lease"}:
                    continue
                with self.place_of(left):
                    self.tessera("rm", "s3://bucket/x", "--quiet")
                    self.assertEqual(self.keys(), [])
                if not there:
                    with self.place_of(left):
                        self.tessera(*self.copy, "--resume")
                        np.testing.assert_array_equal(self.exported("s3://bucket/x"), self.new)
                if removed:
                    with self.place_of(left):
                        self.refused("get", "s3://bucket/x", says="being removed")
                        self.tessera("create", "s3://bucket/x", "--shape", "4", "--dtype", "i4", "--fill", "7", "--quiet")
                        self.assertEqual(self.exported("s3://bucket/x").tolist(), [7] * 4)
                    with self.place_of(left):
                        self.tessera("repair", "s3://bucket/x", "--quiet")
                        self.assertEqual([key for key in self.keys() if "lease" not in key], [])
                # What a reader sees is an array or none.
                with self.place_of(left):
                    result = self.run_program("export", "s3://bucket/x", "seen.npy", "--overwrite", "--quiet")
                    if result.returncode == 0:
                        values = np.load(self.folder / "seen.npy")
                        self.assertTrue((values == (self.old if "x/zarr.json" in names else self.new)).all())
        self.assertGreater(points, 4)
        self.assertGreater(removals, 2)

    def test_overwriting(self):
        self.make()
        self.goes_on([*self.copy, "--overwrite"])

    def test_removing(self):
        self.make()
        self.goes_on(["rm", "s3://bucket/x", "--quiet"])

    def test_removing_a_group(self):
        self.tessera("group", "s3://bucket/g", "--format", "v2", "--quiet")
        self.tessera("attrs", "s3://bucket/g", "set", "a", "1", "--quiet")
        for name in ("a", "b/c"):
            self.tessera("import", "old.npy", f"s3://bucket/g/{name}", "--format", "v2", "--chunks", "5,10", "--quiet")
        points = 0
        for _, left in self.killed(["rm", "s3://bucket/g", "--recursive", "--quiet"]):
            points += 1
            if not any("lease" not in str(file) for file in left.rglob("*") if file.is_file()):
                continue
            with self.place_of(left):
                result = self.run_program("rm", "s3://bucket/g", "--recursive", "--quiet")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(self.keys(), [])
        self.assertGreater(points, 8)


if __name__ == "__main__":
    program.main()
