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

    def month(self, name, first, values, zarr):
        """A group of two arrays along time, with its coordinate, and one array without it."""
        arrays = {"t": (values, "time,x"), "n": (values.T.astype("<i2"), "x,time"),
                  "time": (np.arange(first, first + len(values), dtype="<i4"), "time"), "x": (np.arange(3.0), "x")}
        self.tessera("group", name, "--format", zarr, "--quiet")
        for path, (elements, dims) in arrays.items():
            self.save("part.npy", elements)
            chunks = ",".join("3" if one == "time" else "2" for one in dims.split(","))
            self.tessera("import", "part.npy", f"{name}/{path}", "--format", zarr, "--dims", dims, "--chunks", chunks,
                         "--quiet")
        self.tessera("attrs", f"{name}/time", "set", "units", "days since 2000-01-01", "--quiet")
        self.tessera("consolidate", name, "--quiet")

    def lengths(self):
        """What a reader sees; the values are those that were appended."""
        lengths = []
        for path, axis in (("t", 0), ("n", 1), ("time", 0)):
            values = self.exported(f"s3://bucket/g/{path}")
            lengths.append(values.shape[axis])
            if path == "time":
                np.testing.assert_array_equal(values, np.arange(lengths[-1]))
            else:
                np.testing.assert_array_equal(values, self.all[:lengths[-1]] if path == "t" else self.all[:lengths[-1]].T)
        return set(lengths)

    def appends_all_or_nothing(self, zarr):
        self.all = np.arange(33, dtype="<i4").reshape(11, 3)
        self.month("jan.zarr", 0, self.all[:4], zarr)
        self.month("feb.zarr", 4, self.all[4:9], zarr)
        self.month("mar.zarr", 9, self.all[9:], zarr)
        self.tessera("copy", "jan.zarr", "s3://bucket/g", "--quiet")
        append = ["append", "s3://bucket/g", "feb.zarr", "--axis", "time", "--quiet"]
        seen = []
        for number, left in self.killed(append):
            with self.subTest(number):
                begun = any("batch" in str(file) for file in left.rglob("*"))
                with self.place_of(left):
                    seen.append(self.lengths())
                    self.assertIn(seen[-1], ({4}, {9}))
                    # Cron comes again.
                    self.tessera(*append, "--skip-old")
                    self.assertEqual(self.lengths(), {9})
                    self.assertEqual([key for key in self.keys() if "batch" in key], [])
                if not begun or zarr == "v2":
                    continue
                with self.place_of(left):
                    # A writer of one array finds it as readers do.
                    self.tessera("set", "s3://bucket/g/t", "0,1", "1", "--quiet")
                    self.assertEqual(self.lengths(), seen[-1])
                with self.place_of(left):
                    self.tessera("repair", "s3://bucket/g", "--quiet")
                    self.assertEqual(self.lengths(), seen[-1])
                    self.assertEqual([key for key in self.keys() if "batch" in key], [])
        self.assertEqual(seen, sorted(seen, key=max))
        self.assertGreater(seen.count({4}), 15)
        self.assertGreater(seen.count({9}), 5)
        self.assertEqual(self.lengths(), {9})
        self.tessera("verify", "s3://bucket/g")
        return append

    def test_appending_a_group(self):
        append = self.appends_all_or_nothing("v3")
        self.tessera(*append[:2], "feb.zarr", "mar.zarr", *append[3:], "--skip-old")
        self.assertEqual(self.lengths(), {11})
        self.refused(*append, says="does not go on")
        self.assertEqual(self.lengths(), {11})

    def test_appending_a_group_of_v2(self):
        append = self.appends_all_or_nothing("v2")
        self.tessera(*append[:2], "mar.zarr", *append[3:], "--single-writer")
        self.assertEqual(self.lengths(), {11})

    def test_another_program_appends_at_the_same_time(self):
        """Who was late changes nothing, and says so; the group's arrays stay alike."""
        self.all = np.arange(27, dtype="<i4").reshape(9, 3)
        self.month("jan.zarr", 0, self.all[:4], "v3")
        self.month("feb.zarr", 4, self.all[4:], "v3")
        self.tessera("copy", "jan.zarr", "s3://bucket/g", "--quiet")
        self.save("one.npy", np.full((1, 3), 5, "<i4"))
        told = []

        def answer(request):
            # Before the parts are recorded another writer changes the attributes of an array.
            if request.command == "PUT" and "/t/.tessera/batch/journal" in request.path and not told:
                told.append(request.path)
                self.double.faults.answer = None
                self.tessera("attrs", "s3://bucket/g/t", "set", "a", "1", "--quiet")
            return False

        self.double.faults.answer = answer
        self.refused("append", "s3://bucket/g", "feb.zarr", "--axis", "time", says=["another writer", "can be repeated"])
        self.assertTrue(told)
        self.assertEqual(self.lengths(), {4})
        self.assertEqual([key for key in self.keys() if "batch" in key], [])
        self.tessera("append", "s3://bucket/g", "feb.zarr", "--axis", "time", "--quiet")
        self.assertEqual(self.lengths(), {9})
        self.assertEqual(self.tessera_json("attrs", "s3://bucket/g/t", "--json")["a"], 1)


if __name__ == "__main__":
    program.main()
