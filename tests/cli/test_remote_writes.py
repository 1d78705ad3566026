"""Arrays in S3 are written without losing a value: through a server of our own that holds conditions as S3 does, and that
loses, cuts, delays and refuses answers when a test says so.
"""

import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import unittest

import numpy as np

import program
import remote

WRITER = """
import sys
sys.path.insert(0, {module!r})
import tessera
what, place, count, seed = sys.argv[1:5]
array = tessera.open(place, "r+")
for i in range(int(count)):
    if what == "attrs":
        array.attrs[f"by-{{seed}}-{{i}}"] = i
    elif what == "append":
        import numpy as np
        array.append(np.full((1, 4), int(seed) * 1000 + i, array.dtype))
    else:
        def change(part):
            part += 1
        array.update(slice(*map(int, what.split(":"))), change)
    print(i, flush=True)
"""


class RemoteWriteTest(remote.InBucket, program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.values = np.arange(100 * 90, dtype="<i4").reshape(100, 90)
        self.save("a.npy", self.values)

    def read(self, path):
        self.tessera("export", path, "out.npy", "--quiet", "--overwrite")
        return np.load(self.path("out.npy"))

    def keys(self, below=""):
        return sorted(str(file.relative_to(self.bucket)) for file in (self.bucket / below).rglob("*") if file.is_file())

    # ---- what the commands do there

    def test_import_and_copy(self):
        for number, words in enumerate((["--format", "v2"], ["--format", "v3"], ["--format", "zmeta"], ["--format", "v1"],
                                        ["--format", "v3", "--shard", "50,45"])):
            place = f"s3://bucket/g/{number}"
            self.tessera("import", "a.npy", place, "--chunks", "10,9", "--quiet", *words)
            np.testing.assert_array_equal(self.read(place), self.values)
            self.tessera("copy", place, f"s3://bucket/copies/{number}", "--quiet")
            np.testing.assert_array_equal(self.read(f"s3://bucket/copies/{number}"), self.values)
            self.tessera("verify", place)
        self.assertEqual([key for key in self.keys() if ".tessera" in key], [])
        # What other programs of this machine read.
        np.testing.assert_array_equal(self.read(self.bucket / "g" / "1"), self.values)

    def test_overwrite(self):
        self.tessera("import", "a.npy", "s3://bucket/x", "--format", "v2", "--chunks", "10,9", "--quiet")
        self.refused("import", "a.npy", "s3://bucket/x", says="--overwrite")
        result = self.run_program("import", "a.npy", "s3://bucket/x", "--format", "v3", "--overwrite")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("the old array was removed", result.stderr)
        self.assertNotIn("x/.zarray", self.keys())
        np.testing.assert_array_equal(self.read("s3://bucket/x"), self.values)
        (self.bucket / "y").mkdir()
        (self.bucket / "y" / "note.txt").write_text("mine")
        self.refused("import", "a.npy", "s3://bucket/y", says="left alone")

    def test_parts(self):
        self.tessera("import", "a.npy", "s3://bucket/x", "--format", "v3", "--chunks", "10,9", "--shard", "50,45", "--quiet")
        values = self.values.copy()
        for text, key in (("3:7,2:80", np.s_[3:7, 2:80]), ("0,0", np.s_[0, 0]), ("::9,::7", np.s_[::9, ::7])):
            self.tessera("set", "s3://bucket/x", text, "--", "-5")
            values[key] = -5
            np.testing.assert_array_equal(self.read("s3://bucket/x"), values)

    def test_fill_is_written_where_a_value_was(self):
        for words in ([], ["--shard", "50,45"]):
            self.tessera("import", "a.npy", "s3://bucket/x", "--format", "v3", "--chunks", "10,9", "--fill", "0", "--overwrite",
                         "--quiet", *words)
            before = self.keys("x")
            self.tessera("set", "s3://bucket/x", ":,:", "0")
            self.assertEqual(self.keys("x"), before)
            self.assertFalse(self.read("s3://bucket/x").any())
            self.tessera("verify", "s3://bucket/x")

    # ---- costs

    def chunks_asked(self, *words):
        """What was asked of chunks, by method, and the number of all requests."""
        self.double.reset()
        self.double.page = 1000
        self.tessera(*words)
        methods = [method for method, path, _ in self.double.requests if "/c/" in path]
        return {method: methods.count(method) for method in methods}, len(self.double.requests)

    def test_whole_chunks_are_set_without_a_look(self):
        count = 25 * 10  # chunks
        self.tessera("import", "a.npy", "local", "--format", "v3", "--chunks", "4,9", "--quiet")
        for words in (["import", "a.npy", "s3://bucket/made", "--format", "v3", "--chunks", "4,9", "--quiet"],
                      ["copy", "local", "s3://bucket/copied", "--quiet"]):
            chunks, requests = self.chunks_asked(*words)
            self.assertEqual(chunks, {"PUT": count}, words)
            self.assertLess(requests, count + 100, words)
        self.tessera("create", "s3://bucket/x", "--shape", "100,90", "--dtype", "<i4", "--format", "v3", "--chunks", "4,9")
        self.double.faults.delay = 0.01
        chunks, requests = self.chunks_asked("set", "s3://bucket/x", ":,:", "a.npy")
        self.assertEqual(chunks, {"HEAD": 1, "PUT": count})  # the first shows that nothing is there
        self.assertLess(requests, count + 16)
        self.assertGreater(self.double.most_in_flight, 16)
        self.double.faults.delay = 0
        np.testing.assert_array_equal(self.read("s3://bucket/x"), self.values)
        # What replaces a value carries the ids of its writes on, so it is looked at.
        self.save("more.npy", self.values + 1)
        chunks, _ = self.chunks_asked("set", "s3://bucket/x", ":,:", "more.npy")
        self.assertEqual(chunks["HEAD"], count)
        self.assertLessEqual(chunks["PUT"], count + 1)
        np.testing.assert_array_equal(self.read("s3://bucket/x"), self.values + 1)

    def test_chunks_are_there_where_none_was_expected(self):
        self.tessera("import", "a.npy", "s3://bucket/x", "--format", "v3", "--chunks", "4,9", "--quiet")
        draws = np.random.default_rng(11)
        for round_ in range(4):
            for file in sorted((self.bucket / "x" / "c").rglob("*")):
                if file.is_file() and draws.random() < round_ / 4:
                    file.unlink()
            self.double.faults.lose = 0.1 * (round_ % 2)  # answers, after the work
            self.save("more.npy", self.values + round_)
            self.tessera("set", "s3://bucket/x", ":,:", "more.npy")
            self.double.faults.__init__()
            np.testing.assert_array_equal(self.read("s3://bucket/x"), self.values + round_)

    def test_a_killed_ones_lease_is_told_at_once(self):
        self.tessera("import", "a.npy", "s3://bucket/x", "--format", "v3", "--chunks", "10,9", "--quiet")
        (self.bucket / "x" / ".tessera").mkdir(exist_ok=True)
        (self.bucket / "x" / ".tessera" / "lease").write_text("as a killed command leaves it")
        with subprocess.Popen([program.PROGRAM, "append", "s3://bucket/x", "a.npy", "--axis", "0"], cwd=self.folder,
                              env=self.environment, stderr=subprocess.PIPE, text=True) as process:
            self.assertRegex(process.stderr.readline(), r"waiting for s3://bucket/x, which .* killed \(then for [56]\d s\)")
            self.double.faults.age = 120  # it was last renewed so long ago
            self.assertEqual(process.wait(), 0, process.stderr.read())
        self.double.faults.age = 0
        self.assertEqual(self.read("s3://bucket/x").shape, (200, 90))

    def test_append_and_resize(self):
        for words in (["--chunks", "8,9"], ["--chunks", "4,9", "--shard", "8,45"]):
            self.tessera("import", "a.npy", "s3://bucket/x", "--format", "v3", "--overwrite", "--quiet", *words)
            self.tessera("append", "s3://bucket/x", "a.npy", "--axis", "0")
            np.testing.assert_array_equal(self.read("s3://bucket/x"), np.concatenate([self.values, self.values]))
            self.tessera("resize", "s3://bucket/x", "30,90")
            self.tessera("resize", "s3://bucket/x", "60,90")
            right = np.zeros((60, 90), "<i4")
            right[:30] = self.values[:30]
            np.testing.assert_array_equal(self.read("s3://bucket/x"), right)
            self.assertEqual([key for key in self.keys() if ".tessera" in key], [])

    def test_a_stale_chunk_never_shows(self):
        # As a killed append leaves it.
        self.tessera("import", "a.npy", "s3://bucket/x", "--format", "v2", "--chunks", "10,90", "--fill", "0", "--quiet")
        for n in (10, 11, 12):
            (self.bucket / "x" / f"{n}.0").write_bytes((self.bucket / "x" / "3.0").read_bytes())
        self.save("zeros.npy", np.zeros((10, 90), "<i4"))
        self.tessera("append", "s3://bucket/x", "zeros.npy", "--axis", "0")
        self.assertFalse(self.read("s3://bucket/x")[100:].any())
        self.tessera("resize", "s3://bucket/x", "130,90")
        self.assertFalse(self.read("s3://bucket/x")[100:].any())

    def test_groups_and_attributes(self):
        self.tessera("group", "s3://bucket/g", "--format", "v3")
        self.tessera("import", "a.npy", "s3://bucket/g/x", "--quiet")
        for place in ("s3://bucket/g", "s3://bucket/g/x"):
            self.tessera("attrs", place, "set", "units", "m")
            self.assertIn("m", self.tessera("attrs", place, "get", "units"))
        self.tessera("dims", "s3://bucket/g/x", "y,x")
        self.tessera("consolidate", "s3://bucket/g")
        self.assertIn("x", self.tessera("tree", "s3://bucket/g"))
        self.refused("rm", "s3://bucket/g", says="")
        self.tessera("rm", "s3://bucket/g", "--recursive")
        self.assertEqual(self.keys(), [])

    def test_computed(self):
        self.tessera("import", "a.npy", "s3://bucket/x", "--chunks", "20,30", "--format", "v3", "--quiet")
        self.tessera("calc", "s3://bucket/double", "a * 2", "a=s3://bucket/x", "--quiet")
        np.testing.assert_array_equal(self.read("s3://bucket/double"), self.values * 2)
        for words in (["reduce", "s3://bucket/x", "DST", "--with", "max", "--axis", "0"],
                      ["coarsen", "s3://bucket/x", "DST", "--by", "2,2"],
                      ["pyramid", "s3://bucket/x", "DST"], ["stack", "s3://bucket/x", "a.npy", "DST"],
                      ["concat", "s3://bucket/x", "a.npy", "DST"]):
            there, here = f"s3://bucket/{words[0]}", words[0]
            self.tessera(*[there if word == "DST" else word for word in words], "--quiet")
            self.tessera(*[here if word == "DST" else word for word in words], "--quiet")
            self.tessera("diff", there, here)
        self.tessera("rechunk", "s3://bucket/x", "s3://bucket/other", "--chunks", "50,9", "--quiet")
        np.testing.assert_array_equal(self.read("s3://bucket/other"), self.values)

    def test_long_values_go_in_parts(self):
        values = np.random.default_rng(1).integers(0, 255, (90 << 20,), dtype="u1")
        self.save("long.npy", values)
        self.double.faults.error_in_answer = 1
        self.tessera("import", "long.npy", "s3://bucket/x", "--format", "v3", "--chunks", "1048576", "--shard", str(90 << 20),
                     "--codec", "none", "--quiet")
        self.assertTrue(any("partNumber" in path for _, path, _ in self.double.requests))
        self.assertEqual(self.double.uploads, {})
        np.testing.assert_array_equal(self.read("s3://bucket/x"), values)

    def test_uploads_of_killed_imports(self):
        """What was sent of a value in parts, which no listing shows, is found and abandoned, page by page."""
        self.save("long.npy", np.zeros(90 << 20, "u1"))
        words = ["import", "long.npy", "s3://bucket/x", "--format", "v3", "--chunks", "1048576", "--shard", str(90 << 20),
                 "--codec", "none", "--fill", "1", "--quiet"]
        for end in (["rm", "s3://bucket/x", "--quiet"], [*words, "--resume"], [*words, "--overwrite"]):
            with self.subTest(end[-1]):
                process = subprocess.Popen([program.PROGRAM, *words], env=self.environment, cwd=self.folder,
                                           stderr=subprocess.DEVNULL)
                while not self.double.uploads and process.poll() is None:
                    time.sleep(0.001)
                process.kill()
                process.wait()
                self.double.settle()
                self.assertTrue(self.double.uploads)
                for number in range(5):
                    self.double.uploads[f"x{number}"] = (f"x/c/{number}", {}, {})
                self.double.uploads["another"] = ("xy/c/0", {}, {})
                self.double.faults.age = 100  # the lease has ended
                self.tessera(*end)
                self.double.faults.age = 0
                self.assertEqual(list(self.double.uploads), ["another"])
                self.double.uploads.clear()
                if end[0] != "rm":
                    self.tessera("rm", "s3://bucket/x", "--quiet")

    def test_an_empty_shard_is_an_error(self):
        self.tessera("import", "a.npy", "s3://bucket/x", "--format", "v3", "--chunks", "10,9", "--shard", "50,45", "--quiet")
        (self.bucket / "x" / "c" / "0" / "0").write_bytes(b"")
        self.refused("set", "s3://bucket/x", "0,0", "1", says=["c/0/0", "0"])

    def test_a_zip_of_chunks_is_refused(self):
        self.tessera("copy", "a.npy", "a.zip", "--quiet")
        (self.bucket / "a.zip").write_bytes((self.folder / "a.zip").read_bytes())
        for command in ("digest", "info"):
            self.refused(command, "s3://bucket/a.zip", says="fetch it first")
        self.assertIn("fetch it first", self.tessera("verify", "s3://bucket/a.zip", code=1))

    def test_an_interrupted_copy_does_not_open_and_goes_on(self):
        self.double.faults.busy = 0
        process = subprocess.Popen([program.PROGRAM, "import", "a.npy", "s3://bucket/x", "--format", "v2",
                                    "--chunks", "2,9", "--quiet"], env=self.environment, cwd=self.folder, stderr=subprocess.DEVNULL)
        while self.double.written < 20 and process.poll() is None:
            time.sleep(0.001)
        process.kill()
        process.wait()
        self.double.settle()
        if ".zarray" in str(self.keys("x")):
            self.skipTest("was faster than the test")
        self.refused("get", "s3://bucket/x", says="unfinished")
        self.double.faults.age = 100  # the lease has ended
        self.tessera("import", "a.npy", "s3://bucket/x", "--format", "v2", "--chunks", "2,9", "--resume", "--quiet")
        np.testing.assert_array_equal(self.read("s3://bucket/x"), self.values)

    def test_many_at_once(self):
        self.save("b.npy", np.arange(1 << 12, dtype="<i8"))
        self.double.faults.delay = 0.02
        self.tessera("import", "b.npy", "s3://bucket/b", "--format", "v2", "--chunks", "16", "--codec", "none", "--threads",
                     "1", "--quiet")
        self.assertGreater(self.double.most_in_flight, 16)
        np.testing.assert_array_equal(self.read("s3://bucket/b"), np.arange(1 << 12))

    def test_a_value_that_is_refused_in_the_end(self):
        # None of the chunks that were sent together may be missing: then there is no array.
        self.double.faults.busy = 0.3
        self.double.faults.most = 1 << 30
        result = self.run_program("import", "a.npy", "s3://bucket/x", "--format", "v2", "--chunks", "10,9", "--quiet")
        self.double.faults.__init__()
        if result.returncode == 0:
            np.testing.assert_array_equal(self.read("s3://bucket/x"), self.values)
        else:
            self.assertNotIn("x/.zarray", self.keys())

    def test_python(self):
        script = f"""
import sys
sys.path.insert(0, {program.module_folder()!r})
import numpy as np
import tessera
a = tessera.create("s3://bucket/py", shape=(20, 20), dtype="f4", chunks=(5, 5), fill_value=0)
a[3:9, 4:] = 7
a.attrs["x"] = 3
a.update((slice(0, 5), slice(0, 5)), lambda values: values + 1)
a.append(np.ones((2, 20), "f4"))
right = np.zeros((22, 20), "f4")
right[3:9, 4:] = 7
right[:5, :5] += 1
right[20:] = 1
assert (a[:] == right).all() and dict(a.attrs) == {{"x": 3}}
store = tessera.KeyStore("s3://bucket/keys")
store["a"] = b"123"
assert bytes(store["a"]) == b"123" and list(store) == ["a"]
"""
        done = subprocess.run([sys.executable, "-c", script], env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.bucket / "keys/a").read_bytes(), b"123")

    # ---- what cannot be done there

    def test_refused_by_name(self):
        self.tessera("import", "a.npy", "s3://bucket/x", "--quiet")
        before = {key: (self.bucket / key).read_bytes() for key in self.keys()}
        pathlib.Path(self.path("script")).write_text("set 0,0 1\n")
        for words in (["edit", "s3://bucket/x", "--script", "script"], ["calc", "s3://bucket/x", "a + 1", "a=s3://bucket/x", "--in-place"], ["seal", "s3://bucket/x", "--parity", "10"],
                      ["snapshot", "create", "s3://bucket/x", "s"]):
            result = self.run_program(*words)
            self.assertEqual(result.returncode, 2, f"{words}\n{result.stdout}{result.stderr}")
            self.assertIn("s3", result.stderr)
        self.assertEqual(before, {key: (self.bucket / key).read_bytes() for key in self.keys()})

    def test_servers_that_hold_less(self):
        faults = self.double.faults
        self.tessera("import", "a.npy", "s3://bucket/x", "--format", "v2", "--chunks", "10,9", "--fill", "0", "--quiet")
        for switch, promise in (("ignore_conditions", "none"), ("refuse_conditions", "none"),
                                ("ignore_matches", "create-only")):
            faults.__init__()
            self.double.forget()
            setattr(faults, switch, True)
            self.refused("set", "s3://bucket/x", "0,0", "7", says=["If-Match", "--no-locks"])
            self.refused("attrs", "s3://bucket/x", "set", "a", "1", says="If-Match")
            self.tessera("set", "s3://bucket/x", "0:10,0:9", "7")  # a whole chunk
            self.tessera("set", "s3://bucket/x", "0,0", "8", "--single-writer")
            self.assertIn("8 7", self.tessera("get", "s3://bucket/x", "0,0:2"))
            self.assertIn(promise, self.tessera("info", "s3://bucket/x"))
            self.tessera("import", "a.npy", f"s3://bucket/{switch}", "--quiet")
            np.testing.assert_array_equal(self.read(f"s3://bucket/{switch}"), self.values)

    def test_a_server_that_holds_less_than_yesterday(self):
        self.tessera("import", "a.npy", "s3://bucket/x", "--format", "v2", "--chunks", "10,9", "--quiet")
        self.tessera("set", "s3://bucket/x", "0,0", "7")
        self.double.faults.ignore_conditions = True
        self.refused("set", "s3://bucket/x", "0,0", "8", says=["does not hold the condition", "when it was tested"])
        self.refused("set", "s3://bucket/x", "0,0", "9", says=["If-Match", "--no-locks"])
        self.double.faults.ignore_conditions = False
        self.double.forget()
        self.tessera("set", "s3://bucket/x", "0,0", "9")

    def test_etags_without_quotes(self):
        self.double.faults.bare_etags = True
        self.tessera("import", "a.npy", "s3://bucket/x", "--format", "v2", "--chunks", "10,9", "--quiet")
        self.tessera("set", "s3://bucket/x", "0,0", "7")
        self.assertEqual(self.tessera("get", "s3://bucket/x", "0,0").split(), ["7"])
        self.assertIn("full", self.tessera("info", "s3://bucket/x"))

    # ---- several writers

    def writer(self, what, place, count, seed):
        script = WRITER.format(module=program.module_folder())
        return subprocess.Popen([sys.executable, "-c", script, what, place, str(count), str(seed)], text=True,
                                env={**self.environment, **self.double.environment}, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def writers(self, count, each, what, place):
        """Lets so many processes write so often, at once; each write must be acknowledged."""
        processes = [self.writer(what, place, each, seed) for seed in range(count)]
        for process in processes:
            out, error = process.communicate()
            self.assertEqual(process.returncode, 0, error)
            self.assertEqual(len(out.split()), each)

    def killed(self, process):
        """Kills a process; returns how many writes it had acknowledged that nobody has read of."""
        process.kill()
        out = process.stdout.read()  # communicate() would pass over the lines that readline() has read ahead
        process.communicate()
        return len(out.split())

    def killed_writers(self, count, rounds, what, place):
        """Kills each process with -9 after some writes; returns how many were acknowledged, and how many processes
        may have begun one more."""
        acknowledged = []
        draws = np.random.default_rng(5)

        def run(seed, lives):
            for life in lives:
                process = self.writer(what, place, 1 << 20, seed)
                for _ in range(life):
                    process.stdout.readline()
                acknowledged.append(life + self.killed(process))

        threads = [threading.Thread(target=run, args=(seed, draws.integers(1, 6, rounds))) for seed in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(acknowledged), len(acknowledged)

    def disturb(self, chance=0.025):
        faults = self.double.faults
        faults.most = 1 << 30
        for name in ("lose", "cut", "reset", "busy", "collide", "pause"):
            setattr(faults, name, chance)

    def test_increments(self):
        writers, each = (8, int(os.environ.get("TESSERA_REMOTE_INCREMENTS", "12")))
        for words in (["--chunks", "4"], ["--chunks", "2", "--shard", "4"]):
            self.save("zeros.npy", np.zeros(6, "<i8"))
            self.double.faults.__init__()
            self.tessera("import", "zeros.npy", "s3://bucket/n", "--format", "v3", "--fill", "0", "--overwrite", "--quiet",
                         *words)
            self.disturb()
            self.writers(writers, each, "1:5", "s3://bucket/n")
            self.double.faults.__init__()
            np.testing.assert_array_equal(self.read("s3://bucket/n"), [0] + [writers * each] * 4 + [0])

    def test_increments_of_killed_writers(self):
        for words in (["--chunks", "4"], ["--chunks", "2", "--shard", "4"]):
            self.save("zeros.npy", np.zeros(6, "<i8"))
            self.double.faults.__init__()
            self.tessera("import", "zeros.npy", "s3://bucket/n", "--format", "v3", "--fill", "0", "--overwrite", "--quiet",
                         *words)
            self.disturb()
            done, begun = self.killed_writers(4, int(os.environ.get("TESSERA_REMOTE_ROUNDS", "2")), "1:4", "s3://bucket/n")
            self.double.faults.__init__()
            values = self.read("s3://bucket/n")
            self.assertTrue((values[1:4] >= done).all() and (values[1:4] <= done + begun).all(), (values, done, begun))
            self.assertEqual(list(values[[0, 4, 5]]), [0, 0, 0])

    def test_a_killed_append_never_shows(self):
        self.save("row.npy", np.full((1, 4), -1, "<i8"))
        self.tessera("import", "row.npy", "s3://bucket/r", "--format", "v3", "--chunks", "3,4", "--fill", "0", "--quiet")
        right = [-1]
        for seed in range(1, 4):
            process = self.writer("append", "s3://bucket/r", 1 << 20, seed)
            written = self.double.written
            for _ in range(2):
                process.stdout.readline()
            while self.double.written < written + 9 + seed:
                time.sleep(0.001)
            done = 2 + self.killed(process)
            self.double.faults.age = 100  # its lease has ended
            rows = self.read("s3://bucket/r")[:, 0]
            self.assertIn(len(rows) - len(right), (done, done + 1))
            self.assertEqual(list(rows[:len(right)]), right)
            self.assertEqual(list(rows[len(right):]), [seed * 1000 + i for i in range(len(rows) - len(right))])
            right = list(rows)
            self.tessera("append", "s3://bucket/r", "row.npy", "--axis", "0")
            right.append(-1)
            self.tessera("resize", "s3://bucket/r", f"{len(right) + 5},4")
            self.assertEqual(list(self.read("s3://bucket/r")[:, 0]), [*right, 0, 0, 0, 0, 0])
            self.tessera("resize", "s3://bucket/r", f"{len(right)},4")
            self.double.faults.age = 0

    def test_who_was_overtaken_sets_no_shape(self):
        # Another program may take over from one that was too slow. It changes the version of the metadata first.
        self.save("row.npy", np.full((1, 4), -1, "<i8"))
        self.tessera("import", "row.npy", "s3://bucket/r", "--format", "v3", "--chunks", "3,4", "--fill", "0", "--quiet")
        self.double.faults.age = 100
        processes = [self.writer("append", "s3://bucket/r", 3, seed) for seed in range(1, 4)]
        done = 0
        for process in processes:
            out, error = process.communicate()
            done += len(out.split())
            if process.returncode != 0:
                self.assertRegex(error, "took over|meanwhile|was overtaken")
        self.double.faults.age = 0
        self.assertEqual(len(self.read("s3://bucket/r")), 1 + done)

    def test_who_was_overtaken_writes_no_row(self):
        # Another program takes over while this one is about to read the chunk at the edge, and ends.
        for name in ("one.npy", "two.npy"):
            self.save(name, np.full((1, 4), {"one.npy": 1, "two.npy": 2}[name], "<i8"))
        self.tessera("import", "one.npy", "s3://bucket/r", "--format", "v3", "--chunks", "3,4", "--fill", "0", "--quiet")
        self.double.faults.age = 100
        state = {"began": False, "held": False}
        overtaken = threading.Event()

        def answer(request):
            if request.command == "PUT" and "/r/zarr.json" in request.path:
                state["began"] = True
            elif state["began"] and not state["held"] and "/r/c/0/0" in request.path:
                state["held"] = True
                overtaken.wait()
            return False

        self.double.faults.answer = answer
        with subprocess.Popen([program.PROGRAM, "append", "s3://bucket/r", "one.npy", "--axis", "0"], cwd=self.folder,
                              env={**self.environment, **self.double.environment}, stderr=subprocess.PIPE, text=True) as late:
            while not state["held"] and late.poll() is None:
                time.sleep(0.001)
            self.tessera("append", "s3://bucket/r", "two.npy", "--axis", "0")
            overtaken.set()
            self.assertRegex(late.communicate()[1], "took over|meanwhile")
            self.assertEqual(late.returncode, 2)
        self.assertEqual(self.read("s3://bucket/r").tolist(), [[1] * 4, [2] * 4])

    def test_how_long_a_killed_one_is_waited_for(self):
        self.tessera("import", "a.npy", "s3://bucket/x", "--format", "v2", "--chunks", "10,9", "--quiet")
        (self.bucket / "x/.tessera").mkdir(exist_ok=True)
        (self.bucket / "x/.tessera/lease").write_bytes(b"somebody")
        self.double.faults.age = 59
        result = self.run_program("rm", "s3://bucket/x")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"waiting for s3://bucket/x, .* killed \(then for [12] s\)")

    def test_a_lease_is_taken_by_one(self):
        # Servers know values by the sums of their content.
        self.tessera("import", "a.npy", "s3://bucket/x", "--format", "v2", "--chunks", "10,9", "--fill", "0",
                     "--quiet")
        leases = set()

        def answer(request):
            if request.command == "PUT" and request.path.endswith("lease"):
                leases.add(request.body)
            return False

        self.double.faults.answer = answer
        for rows in (110, 120, 130):
            self.tessera("resize", "s3://bucket/x", f"{rows},90")
        self.assertEqual(len(leases), 3)

    def test_what_collides_is_tried_again(self):
        self.tessera("import", "a.npy", "s3://bucket/x", "--format", "v2", "--chunks", "10,9", "--quiet")
        for code in ("ConditionalRequestConflict", "OperationAborted"):
            for words in (["set", "s3://bucket/x", "0,0", "7"], ["set", "s3://bucket/x", "0:10,0:9", "8", "--single-writer"],
                          ["rm", "s3://bucket/x", "--quiet"]):
                self.double.forget()  # so that the test of the server collides, too
                seen = set()

                def answer(request, seen=seen, code=code):
                    what = request.command, request.path.partition("probe")[0], request.headers.get("If-Match")
                    with self.double.lock:
                        if request.command in ("GET", "HEAD") or what in seen:
                            return False
                        seen.add(what)
                    request.error(409, code)
                    return None

                self.double.faults.answer = answer
                self.tessera(*words)
                self.double.faults.answer = None
            self.tessera("import", "a.npy", "s3://bucket/x", "--format", "v2", "--chunks", "10,9", "--quiet")

    def test_an_answer_that_nobody_can_explain(self):
        # The metadata of values are dropped on the way: a lost answer is then an error, and not a second increment.
        self.tessera("import", "a.npy", "s3://bucket/x", "--format", "v2", "--chunks", "10,9", "--quiet")
        self.tessera("set", "s3://bucket/x", "0,0", "1")
        self.double.faults.forget_metadata = True
        self.double.faults.lose = 1
        self.double.faults.most = 1
        self.refused("set", "s3://bucket/x", "0,0", "2", says=["may have taken effect", "states no writes"])

    def test_attributes(self):
        writers, each = (4, int(os.environ.get("TESSERA_REMOTE_INCREMENTS", "6")))
        for form in ("v2", "v3"):
            self.double.faults.__init__()
            self.tessera("import", "a.npy", f"s3://bucket/{form}", "--format", form, "--quiet")
            self.disturb()
            self.writers(writers, each, "attrs", f"s3://bucket/{form}")
            self.double.faults.__init__()
            attributes = json.loads(self.tessera("attrs", f"s3://bucket/{form}", "--json"))
            for seed in range(writers):
                for i in range(each):
                    self.assertIn(f"by-{seed}-{i}", str(attributes))

    def test_appended_rows(self):
        writers, each = (4, int(os.environ.get("TESSERA_REMOTE_INCREMENTS", "3")))
        self.save("row.npy", np.full((1, 4), -1, "<i8"))
        self.tessera("import", "row.npy", "s3://bucket/r", "--format", "v3", "--chunks", "3,4", "--quiet")
        self.disturb(0.01)
        self.writers(writers, each, "append", "s3://bucket/r")
        self.double.faults.__init__()
        rows = self.read("s3://bucket/r")
        self.assertTrue((rows == rows[:, :1]).all(), rows)
        self.assertEqual(sorted(rows[1:, 0]), sorted(seed * 1000 + i for seed in range(writers) for i in range(each)))


if __name__ == "__main__":
    unittest.main()
