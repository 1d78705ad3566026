"""The index of chunks: what it says is what a full read says, whoever changed the array meanwhile, and however."""

import itertools
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time
import unittest

import numpy as np

from program import FEWER, PROGRAM, ProgramTest, chosen, main, zarr

SETTLED = 0.15  # seconds after which a change is older than any clock's grain


def files_of(folder):
    """The chunks' files."""
    return sorted(p for p in pathlib.Path(folder).rglob("*")
                  if p.is_file() and ".tessera" not in p.parts and p.name[0].isdigit() and p.stat().st_size)


class Index(ProgramTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(11)
        self.values = self.random.normal(size=(60, 50)).astype("<f4")
        self.values[3, 4] = np.nan
        self.values[20:30, 20:30] = 0

    def make(self, values=None, *words):
        self.save("values.npy", self.values if values is None else values)
        self.tessera("import", "values.npy", "a.zarr", "--chunks", "10,10", "--quiet", "--overwrite", *words)
        time.sleep(SETTLED)

    def stats(self, *words):
        return self.tessera_json("stats", "a.zarr", *words)

    def require_equal(self, *words, says=None):
        """What the index says is what a full read says, to the last bit."""
        found = self.stats(*words)
        self.assertEqual(found, self.stats("--no-index", *words), says)
        return found

    def index(self, path="a.zarr"):
        return self.tessera_json("index", path)

    def chunks_opened(self, *words):
        """The files of chunks that a command opens."""
        trace = self.folder / "trace"
        options = os.environ | {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        subprocess.run(["strace", "-f", "-qq", "-e", "signal=none", "-e", "trace=open,openat,openat2", "-o", trace, PROGRAM,
                        *map(str, words)], cwd=self.folder, env=options, check=True, capture_output=True)
        opened = set()
        for line in trace.read_text().splitlines():
            name = line.split('"')[1] if '"' in line else ""
            if "O_DIRECTORY" not in line and any(name.endswith(f.relative_to(self.folder / "a.zarr").as_posix())
                                                 for f in files_of(self.folder / "a.zarr")):
                opened.add(name)
        return opened

    def test_missing_integers_meet_no_comparison(self):
        """Of every width, with an index and without; int64 has no NaN in which they could be told apart."""
        for dtype in ("<i2", "<i4", "<i8", ">u8", "|u1"):
            with self.subTest(dtype):
                self.save("m.npy", np.array([[27, 84, 27], [27, 5, 84]], dtype))
                self.tessera("import", "m.npy", "m.zarr", "--format", "v3", "--chunks", "1,3", "--overwrite", "--quiet")
                self.tessera("attrs", "m.zarr", "set", "_FillValue", "84", "--quiet")
                time.sleep(0.2)
                self.tessera("index", "m.zarr", "--quiet")
                for condition, want in (("value < 0", []), ("value < 6", [[1, 1]]), ("value == 84", []),
                                        ("value > 6", [[0, 0], [0, 2], [1, 0]]),
                                        ("value != 27", [[0, 1], [1, 1], [1, 2]]), ("isnan(value)", [[0, 1], [1, 2]])):
                    for words in ([], ["--no-index"]):
                        found = self.tessera_json("find", "m.zarr", condition, *words)
                        self.assertEqual(found["indices"], want, (condition, words))
                        self.assertEqual([v for v in found["values"] if v is None or float(v) not in (27, 5)],
                                         [None] * sum(i in ([0, 1], [1, 2]) for i in want), condition)
                self.assertIn("--", self.run_program("find", "m.zarr", "isnan(value)").stdout)
        # Beside missing ones an integer that no float64 is equal to cannot be compared: this is said.
        self.save("m.npy", np.array([[27, 84, 2**53 + 1]], "<i8"))
        self.tessera("import", "m.npy", "m.zarr", "--format", "v3", "--overwrite", "--quiet")
        self.tessera("attrs", "m.zarr", "set", "_FillValue", "84", "--quiet")
        self.refused("find", "m.zarr", "value < 0", says=["9007199254740993", "raw"])
        self.assertEqual(self.tessera_json("find", "m.zarr", "value == 84", "--raw")["indices"], [[0, 1]])

    def test_only_what_changed_is_read(self):
        if shutil.which("strace") is None:
            self.skipTest("no strace")
        for words in (), ("--format", "v3", "--shards", "20,20"):
            with self.subTest(words=words):
                self.make(None, *words)
                stored = len(files_of(self.folder / "a.zarr"))
                self.assertEqual(len(self.chunks_opened("stats", "a.zarr")), stored)
                made = self.index()
                self.assertEqual((made["chunks"], made["read"], made["unsettled"]), (stored, stored, 0))
                self.assertEqual(self.chunks_opened("stats", "a.zarr"), set())
                for place in "5,5", "25,45", "55,15":
                    self.tessera("set", "a.zarr", place, "7.5")
                self.assertEqual(len(self.chunks_opened("stats", "a.zarr")), 3)
                self.assertEqual(len(self.chunks_opened("stats", "a.zarr", "--no-index")), stored)
                # A part: the chunks that it cuts are read.
                self.assertLessEqual(len(self.chunks_opened("stats", "a.zarr", "--sel", "20:40, 5:20")), 2 + 3)
                self.require_equal("--sel", "20:40, 5:20")
                time.sleep(SETTLED)
                made = self.index()
                self.assertEqual(made["read"] + made["kept"], stored)
                self.assertLessEqual(made["read"], 3)  # none of those that had settled before `stats` counted them
                self.assertEqual(self.chunks_opened("stats", "a.zarr"), set())

    def test_numpy_says_the_same(self):
        for dtype in "<f4", ">f8", "<i2", "<u8", "<i8", "|b1", "<f2", "<M8[s]":
            values = np.rint(np.nan_to_num(self.values) * 3) if dtype[1] in "uiM" else self.values
            if dtype[1:] == "u8":
                values = np.abs(values)
            values = values.astype(dtype)
            with self.subTest(dtype=dtype):
                self.make(values)
                self.index()
                found = self.require_equal()
                self.assertEqual(found["count"], values.size)
                self.require_equal("--bins", "0")
                self.require_equal("--sel", "::2")
                if dtype[1] in "ui":
                    self.assertEqual((found["min"], found["max"]), (values.min(), values.max()))
                if dtype[1] == "f":
                    extremes = tuple(values.dtype.type(found[name]) for name in ("min", "max"))
                    self.assertEqual(extremes, (np.nanmin(values), np.nanmax(values)))
                    self.assertEqual(found["nan"], 1)
                    self.assertAlmostEqual(found["mean"], np.nanmean(values.astype("f8")), places=12)

    def test_sparse_packed_and_infinite(self):
        self.tessera("create", "a.zarr", "--shape", "100,100", "--chunks", "10,10", "--dtype", "<i2", "--fill", "9",
                     "--format", "v3")
        self.tessera("set", "a.zarr", "5:25,5:25", "100")
        time.sleep(SETTLED)
        self.index()
        self.assertEqual(self.require_equal()["fill"], 10_000 - 400)
        for name, value in ("scale_factor", "0.5"), ("_FillValue", "9"), ("scale_factor", "0.25"):
            self.tessera("attrs", "a.zarr", "set", name, value)
            self.require_equal(says=(name, value))
            self.require_equal("--raw")
            self.index()
            found = self.require_equal()
            self.assertEqual(found["max"], 100 * float(self.tessera("attrs", "a.zarr", "get", "scale_factor")))
        self.assertEqual(found["missing"], 10_000 - 400)
        self.make(np.array([[np.inf, 1], [-np.inf, np.nan]], "<f8"))
        self.index()
        self.require_equal()

    def test_info_knows_the_range(self):
        for words in (), ("--format", "v3", "--shards", "20,20"):
            self.make(None, *words)
            self.assertIsNone(self.tessera_json("info", "a.zarr")["range"])
            self.index()
            def expected():
                found = self.stats("--no-index")
                return [found["min"], found["max"]]
            self.assertEqual(self.tessera_json("info", "a.zarr")["range"], expected())
            self.assertRegex(self.tessera("info", "a.zarr"), r"range +-\d.* to \d.*, by the index of chunks")
            if shutil.which("strace"):
                opened = self.chunks_opened("info", "a.zarr")
                self.assertEqual(len(opened), 9 if words else 0)  # of shards the index of each, as ever
            # Not of what one chunk says nothing of.
            path = files_of(self.folder / "a.zarr")[0]
            os.utime(path)
            self.assertIsNone(self.tessera_json("info", "a.zarr")["range"])
            time.sleep(SETTLED)
            self.index()
            self.assertEqual(self.tessera_json("info", "a.zarr")["range"], expected())
            path.unlink()  # it reads as zeros, between the others
            self.assertEqual(self.tessera_json("info", "a.zarr")["range"], expected())
            self.tessera("attrs", "a.zarr", "set", "scale_factor", "0.5")
            self.assertIsNone(self.tessera_json("info", "a.zarr")["range"])
            self.index()
            self.assertEqual(self.tessera_json("info", "a.zarr")["range"], expected())
        self.make(np.full((20, 20), np.nan))
        self.index()
        self.assertIsNone(self.tessera_json("info", "a.zarr")["range"])

    def index_files(self):
        folder = self.folder / "a.zarr" / ".tessera" / "index"
        return sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []

    def test_statistics_make_it_in_passing(self):
        self.make()
        self.assertEqual(self.index_files(), [])
        read = self.stats("--no-index")
        self.reduced("--with", "mean")
        self.assertEqual(self.index_files(), [])
        self.assertEqual(self.stats("--sel", "5:25, 5:25")["count"], 400)
        self.assertEqual(self.index_files(), ["0"])
        self.assertEqual(self.stats(), read)
        self.assertEqual(self.index_files(), ["0"])
        if shutil.which("strace"):
            self.assertEqual(self.chunks_opened("stats", "a.zarr"), set())
            self.assertEqual(self.chunks_opened("reduce", "a.zarr", "r.npy", "--with", "max", "--overwrite"), set())
            # Sums are none of the statistics. The index has them once it was made; what changes gets them from then on.
            self.assertTrue(self.chunks_opened("reduce", "a.zarr", "r.npy", "--with", "mean", "--overwrite"))
            self.assertEqual(self.index()["kept"], 0)
            for last in ("stats",), ("reduce", "r.npy", "--with", "max", "--overwrite"):
                self.tessera("set", "a.zarr", "25,45", "7.5")
                time.sleep(SETTLED)
                self.assertEqual(self.chunks_opened(last[0], "a.zarr", *last[1:]), {"__zdata__/2.4.blosc"})
                self.assertEqual(self.chunks_opened("stats", "a.zarr"), set())
                self.assertEqual(self.chunks_opened("reduce", "a.zarr", "r.npy", "--with", "mean", "--overwrite"), set())
            self.assertEqual(self.index()["read"], 0)
        self.require_reduced("--with", "mean")

    def test_statistics_change_nothing_that_is_not_theirs(self):
        """And an index that cannot be written is no reason to fail."""
        self.make()
        read = self.stats("--no-index")
        own = self.folder / "a.zarr" / ".tessera"
        (own / "index").write_text("in its place")
        self.assertEqual(self.stats(), read)
        (own / "index").unlink()
        self.tessera("seal", "a.zarr")
        self.assertEqual(self.stats(), read)
        self.assertEqual(self.index_files(), [])
        self.tessera("verify", "a.zarr")
        shutil.rmtree(own)
        own.mkdir()
        if os.geteuid() == 0:
            os.chown(own, 65534, -1)
            self.assertEqual(self.stats(), read)
            self.assertEqual(self.index_files(), [])
        shutil.rmtree(own)
        self.assertEqual(self.stats(), read)
        self.assertFalse(own.exists())

    def reduced(self, *words):
        self.tessera("reduce", "a.zarr", "r.npy", "--overwrite", "--quiet", *words)
        return np.load(self.folder / "r.npy")

    def require_reduced(self, *words, says=None):
        """A reduction by the index is that of a full read, to the last bit."""
        found, read = self.reduced(*words), self.reduced("--no-index", *words)
        self.assertEqual((found.dtype, found.shape, found.tobytes()), (read.dtype, read.shape, read.tobytes()), (words, says))
        return found

    def test_reductions(self):
        words = ["min", "max", "mean", "sum", "count", "any", "all"]
        for dtype in "<f4", ">f8", "<i2", "<u8", "<i8", "|b1", "<f2", "<M8[s]":
            for shards in [(), ("--format", "v3", "--shards", "20,20")][:2 if dtype in ("<f4", "<i8") else 1]:
                values = np.rint(np.nan_to_num(self.values) * 3) if dtype[1] in "iuM" else self.values
                values = (np.abs(values) if dtype[1] == "u" else values).astype(dtype)
                if dtype == "<M8[s]":
                    values[7, 7] = np.datetime64("NaT")
                self.make(values, *shards)
                self.index()
                some = words if dtype[1] != "M" else ["min", "max", "count"]
                parts = (), ("--sel", "3:40, 7:33"), ("--sel", "12, 1:"), ("--keep-missing",), ("--keep-dims",), ("--axis", "1")
                for word, more in chosen(itertools.product(some, parts)):
                    with self.subTest(dtype=dtype, word=word, more=more):
                        self.require_reduced("--with", word, *more)
                if dtype[1] == "f":
                    self.assertEqual(self.reduced("--with", "max"), np.nanmax(values))
                    self.assertEqual(self.reduced("--with", "count"), values.size - 1)
                    np.testing.assert_allclose(self.reduced("--with", "sum").astype("f8"), np.nansum(values.astype("f8")), rtol=1e-3)
                elif dtype[1] in "iu":
                    self.assertEqual([self.reduced("--with", word) for word in some], [getattr(np, word)(values) for word in some[:4]]
                                     + [values.size, values.any(), values.all()])

    def test_reductions_read_only_what_is_not_known(self):
        if shutil.which("strace") is None:
            self.skipTest("no strace")
        self.make()
        self.index()
        reduce = ("reduce", "a.zarr", "r.npy", "--overwrite", "--quiet", "--with")
        for word in "min", "max", "mean", "sum", "count", "any":
            self.assertEqual(self.chunks_opened(*reduce, word), set(), word)
        stored = len(files_of(self.folder / "a.zarr"))
        self.assertEqual(len(self.chunks_opened(*reduce, "mean", "--no-index")), stored)
        # Chunks without any number have nothing to sum up.
        for words in (), ("--format", "v3", "--shards", "20,20"):
            values = self.values.copy()
            values[:10] = values[:, :10] = np.nan
            self.make(values, *words)
            self.index()
            for word in "mean", "sum", "max", "count":
                self.assertEqual(self.chunks_opened(*reduce, word), set(), (words, word))
                self.require_reduced("--with", word)
        self.make()
        self.index()
        self.assertEqual(len(self.chunks_opened(*reduce, "mean", "--axis", "0")), stored)  # chunks belong to several results
        self.assertLessEqual(len(self.chunks_opened(*reduce, "mean", "--sel", "20:40, 5:20")), 3)
        self.tessera("set", "a.zarr", "25,45", "7.5")
        self.assertEqual(self.chunks_opened(*reduce, "max"), {"__zdata__/2.4.blosc"})
        # Each chunk belongs to one time.
        self.values = self.random.normal(size=(6, 40, 50)).astype("<f4")
        self.save("values.npy", self.values)
        self.tessera("import", "values.npy", "a.zarr", "--chunks", "1,20,50", "--quiet", "--overwrite")
        time.sleep(SETTLED)
        self.index()
        self.assertEqual(self.chunks_opened(*reduce, "mean", "--axis", "1,2"), set())
        self.assertEqual(self.require_reduced("--with", "mean", "--axis", "1,2").shape, (6,))
        self.require_reduced("--with", "mean", "--axis", "1,2", "--sel", "1:4, 3:, :")
        self.require_reduced("--with", "sum", "--axis", "-1,1", "--keep-dims")
        self.require_reduced("--with", "max", "--axis", "2")

    def test_reductions_that_reading_alone_tells(self):
        """Of zeros of both signs, of NaN that is not left out; and of sums that doubles lose."""
        wide = self.random.normal(size=4000) * 10.0 ** self.random.integers(-300, 300, 4000)
        for values in (np.array([0.0, -0.0, -1.0]), np.array([-0.0, 0.0, 1.0]), np.array([-0.0, -0.0]), np.zeros(3),
                       np.array([np.nan, -np.nan, 1]), np.array([np.nan, np.nan]), np.array([np.inf, 1, -np.inf]),
                       np.array([1e308, 1e308, 3]), np.concatenate([wide, [1e-250], -wide]), np.array([-2.0, 3.0]),
                       np.array([2**63 - 1, 5, 2**62]), np.array([2**64 - 1, 5], "<u8"), np.array([-2**63, 4])):
            self.save("values.npy", values)
            self.tessera("import", "values.npy", "a.zarr", "--chunks", "700", "--quiet", "--overwrite")
            time.sleep(SETTLED)
            self.index()
            for word in chosen(("min", "max", "mean", "sum", "count", "any", "all")):
                for more in (), ("--keep-missing",):
                    self.require_reduced("--with", word, *more, says=values[:4])
        # Packed, with a marker: integers without one are taken as floats.
        for dtype, scale in ("<i2", "0.25"), ("<i8", None):
            self.make(np.rint(np.nan_to_num(self.values) * 9).astype(dtype))
            self.tessera("attrs", "a.zarr", "set", "_FillValue", "3")
            if scale:
                self.tessera("attrs", "a.zarr", "set", "scale_factor", scale)
            time.sleep(SETTLED)
            self.index()
            for word in "min", "max", "mean", "sum", "count", "any", "all":
                for more in (), ("--keep-missing",), ("--raw",):
                    self.require_reduced("--with", word, *more, says=dtype)
        # What is not stored.
        self.tessera("create", "a.zarr", "--shape", "100,100", "--chunks", "10,10", "--dtype", "<f4", "--fill", "0.1", "--overwrite")
        self.tessera("set", "a.zarr", "5:25,5:25", "-100")
        time.sleep(SETTLED)
        self.index()
        for word in "min", "max", "mean", "sum", "count", "any", "all":
            self.require_reduced("--with", word)
            self.require_reduced("--with", word, "--sel", "50:, 50:")
        self.tessera("attrs", "a.zarr", "set", "_FillValue", "0.1")
        for word in "max", "mean", "sum", "count":
            self.require_reduced("--with", word)

    def write_past(self, path, how):
        """Changes a chunk as programs do that know nothing of the index."""
        data = path.read_bytes()
        before = path.stat()
        if how == "in place, with its old time":
            other = next(p for p in files_of(self.folder / "a.zarr") if p != path)
            with open(path, "r+b") as file:
                file.write(other.read_bytes())
                file.truncate()
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        elif how == "another file with the old time":
            other = self.random.choice(files_of(self.folder / "a.zarr"))
            shutil.copy(other, path.with_name("x.tmp"))
            os.utime(path.with_name("x.tmp"), ns=(before.st_atime_ns, before.st_mtime_ns))
            os.replace(path.with_name("x.tmp"), path)
        elif how == "whole seconds":
            shutil.copy(self.random.choice(files_of(self.folder / "a.zarr")), self.folder / "x.tmp")
            path.write_bytes((self.folder / "x.tmp").read_bytes())
            os.utime(path, (int(before.st_mtime), int(before.st_mtime)))
        elif how == "gone":
            path.unlink()
        elif how == "touched":
            os.utime(path)
        elif how == "cut off":
            path.write_bytes(data[:len(data) // 2])
            return data
        return None

    def test_histories(self):
        """Writers that know the index and those that do not: after each step all answers are those of a full read."""
        ways = ["in place, with its old time", "another file with the old time", "whole seconds", "gone", "touched", "cut off"]
        for seed in range(3):
            chance = random.Random(seed)
            self.make(None, *(("--format", "v2") if seed != 1 else ("--format", "v3", "--shards", "20,20")))
            rows = 60
            for step in range(11 if FEWER == 1 else 3):
                does = chance.choice(["set", "append", "resize", "zarr", "undo", *ways])
                cut = None
                if does == "set":
                    self.tessera("set", "a.zarr", f"{chance.randrange(rows)}, :{chance.randrange(1, 50)}",
                                 chance.choice(["3.5", "nan", "-1e30", "0"]))
                elif does == "append":
                    self.save("more.npy", self.values[:chance.randrange(1, 25)])
                    self.tessera("append", "a.zarr", "more.npy", "--quiet")
                    rows = self.tessera_json("info", "a.zarr")["shape"][0]
                elif does == "resize":
                    rows = chance.randrange(20, 80)
                    self.tessera("resize", "a.zarr", f"{rows},50")
                elif does == "zarr" and seed != 1:
                    zarr.open(self.path("a.zarr"), mode="r+")[chance.randrange(rows):, 7] = step
                elif does == "undo":
                    self.run_program("undo", "a.zarr")
                    rows = self.tessera_json("info", "a.zarr")["shape"][0]
                elif does in ways:
                    path = chance.choice(files_of(self.folder / "a.zarr"))
                    cut = self.write_past(path, does)
                if cut is not None:
                    self.assertNotEqual(self.run_program("stats", "a.zarr").returncode, 0)
                    path.write_bytes(cut)
                self.require_equal(says=(seed, step, does))
                self.require_equal("--sel", "3:17, 12:40", says=(seed, step, does))
                for word in "min", "max", "mean", "sum", "count", "any", "all":
                    self.require_reduced("--with", word, says=(seed, step, does))
                self.require_reduced("--with", "mean", "--sel", "3:17, 12:40", says=(seed, step, does))
                for condition in "value > 1.5", "(value < 0.1) & (value > -0.1)":
                    known, read = self.find(condition), self.find(condition, "--no-index")
                    self.assertEqual(known["indices"], read["indices"], (seed, step, does))
                    self.assertEqual(known["values"], read["values"], (seed, step, does))
                if chance.random() < 0.5:
                    if chance.random() < 0.5:
                        time.sleep(SETTLED)
                    self.index()
                    found = self.require_equal(says=(seed, step, does))
                    full = self.exported("a.zarr")
                    self.assertEqual(found["nan"], np.isnan(full).sum())
                    self.assertEqual((np.float32(found["min"]), np.float32(found["max"])), (np.nanmin(full), np.nanmax(full)))

    def test_a_change_within_a_tick_is_not_missed(self):
        """An entry is made only of what is older than the clock's grain."""
        self.make()
        self.index()
        chunk = files_of(self.folder / "a.zarr")[0]
        grain = 100_000_000  # ns
        for _ in range(20):
            os.utime(chunk)
            made = self.index()
            # On a machine that has other work, more than the grain may lie between the two.
            within = time.time_ns() - chunk.stat().st_ctime_ns < grain
            self.assertEqual(made["read"], 1)
            self.assertIn(made["unsettled"], (1,) if within else (0, 1))

    def test_another_array_in_its_place(self):
        self.make()
        self.index()
        for words in ("--dtype", "<f8"), ("--format", "v3"), ("--fill", "3"):
            kept = self.folder / "kept"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(self.folder / "a.zarr" / ".tessera" / "index", kept)
            self.tessera("copy", "values.npy", "a.zarr", "--chunks", "10,10", "--overwrite", "--quiet", *words)
            shutil.copytree(kept, self.folder / "a.zarr" / ".tessera" / "index", dirs_exist_ok=True)
            self.require_equal(says=words)
            time.sleep(SETTLED)
            self.index()

    def test_damage_is_passed_over(self):
        self.make()
        self.index()
        whole = self.require_equal()
        file = self.folder / "a.zarr" / ".tessera" / "index" / "0"
        good = file.read_bytes()
        for n in range(0, len(good), max(1, len(good) * FEWER // 60)):
            for bad in good[:n], good[:n] + bytes([good[n] ^ 0x55]) + good[n + 1:], good + good[:n]:
                file.write_bytes(bad)
                self.assertEqual(self.stats(), whole)
        file.unlink()
        file.mkdir()
        self.assertEqual(self.stats(), whole)
        file.rmdir()
        file.symlink_to(self.folder / "values.npy")
        self.assertEqual(self.stats(), whole)

    def test_killed(self):
        """Whenever it is killed, what is there is right, and the next run goes on."""
        self.make()
        for n in range(12):
            shutil.rmtree(self.folder / "a.zarr" / ".tessera" / "index", ignore_errors=True)
            run = subprocess.Popen([PROGRAM, "index", "a.zarr"], cwd=self.folder, stdout=subprocess.DEVNULL)
            time.sleep(0.002 * n)
            run.send_signal(signal.SIGKILL)
            run.wait()
            self.require_equal()
        self.assertEqual(self.index()["unsettled"], 0)
        self.assertEqual([p.name for p in (self.folder / "a.zarr" / ".tessera" / "index").iterdir()
                          if not p.name.startswith(".")], ["0"])

    def test_nobody_takes_it_along(self):
        self.make()
        self.tessera("seal", "a.zarr")
        dandi = self.tessera("digest", "--dandi", "a.zarr")
        shutil.rmtree(self.folder / "a.zarr" / ".tessera")
        self.index()
        self.assertEqual(self.tessera("digest", "--dandi", "a.zarr"), dandi)
        self.assertNotIn("index", self.tessera("verify", "a.zarr", "--json"))
        self.tessera("copy", "a.zarr", "b.zarr", "--quiet")
        self.tessera("sync", "a.zarr", "c.zarr", "--quiet")
        self.tessera("copy", "a.zarr", "d.zip", "--quiet")
        self.tessera("copy", "d.zip", "e.zarr", "--quiet")
        self.tessera("snapshot", "a.zarr", "create", "one")
        self.tessera("seal", "a.zarr", "--bagit", "bag")
        self.tessera("seal", "a.zarr")
        self.assertNotIn("index", (self.folder / "a.zarr" / ".tessera" / "sha256sums.txt").read_text())
        made = [p for p in self.folder.rglob("index") if ".tessera" in p.parts]
        self.assertEqual(made, [self.folder / "a.zarr" / ".tessera" / "index"])
        self.refused("index", "a.zarr", says=["no index of its chunks", "it is sealed"])
        self.require_equal()

    def find(self, condition, *words):
        return self.tessera_json("find", "a.zarr", condition, *words)

    def test_find(self):
        """What NumPy finds; and chunks in which nothing can match are not opened."""
        for dtype, words in ("<f4", ()), (">f8", ("--format", "v3", "--shards", "20,20")), ("<i2", ()), ("<u8", ()), ("<f2", ()):
            values = self.values * 10
            values[12, 13] = 1000
            values = (np.abs(np.nan_to_num(values)) if dtype[1] in "iu" else values).astype(dtype)
            self.make(values, *words)
            self.index()
            native = values.astype(values.dtype.newbyteorder("="))
            for condition in ("value > 40", "40 < value", "value>=1000", "(value > 3) & (value <= 5)", "value == 0", "value == 1000",
                              "value > 9999", "(value < 1) | (value > 90)", "value != 0",
                              "value < 0.1" if dtype[1] == "f" else "value < 1", "((value > 7)) & ((value < 8))", "value * 2 > 60"):
                with self.subTest(dtype=dtype, condition=condition):
                    with np.errstate(invalid="ignore", over="ignore"):
                        expected = np.argwhere(eval(condition, {"value": native}))
                    found = self.find(condition)
                    self.assertEqual(found["indices"], expected.tolist())
                    self.assertEqual(found["found"], len(expected))
                    np.testing.assert_array_equal(np.array(found["values"], native.dtype), native[tuple(expected.T)])
                    everything = self.find(condition, "--no-index")
                    self.assertEqual({**found, "left_out": 0}, {**everything, "left_out": 0})
                    part = self.find(condition, "--sel", "5:33, 7:41")["indices"]
                    self.assertEqual(part, [p for p in expected.tolist() if 5 <= p[0] < 33 and 7 <= p[1] < 41])
            self.assertGreaterEqual(self.find("value == 1000")["left_out"], 28)  # of zeros no chunk may be stored
        if shutil.which("strace"):
            self.make(values)
            self.index()
            self.assertEqual(self.chunks_opened("find", "a.zarr", "value >= 1000"), {"__zdata__/1.1.blosc"})
            self.tessera("set", "a.zarr", "55,45", "2000")
            self.assertEqual(self.chunks_opened("find", "a.zarr", "value >= 1000"),
                             {"__zdata__/1.1.blosc", "__zdata__/5.4.blosc"})
            self.assertEqual(self.find("value >= 1000")["indices"], [[12, 13], [55, 45]])

    def test_find_in_what_is_sparse(self):
        """What is not stored is one element: it is asked once whether that matches, not for each of 10^10 chunks."""
        for words in ((), ("--shards", "1000,1000")):
            self.tessera("create", "wide.zarr", "--shape", "10000000,10000000", "--chunks", "100,100", "--dtype", "<f4", "--fill", "1",
                         "--format", "v3", "--overwrite", *words)
            for place, value in ("5,5", "7"), ("9999999,9999999", "8"), ("4000123,77", "0.5"):
                self.tessera("set", "wide.zarr", place, value)
            for more in [], ["--no-index"]:
                self.assertEqual(self.tessera_json("find", "wide.zarr", "value > 6", *more)["indices"], [[5, 5], [9999999, 9999999]])
                self.assertEqual(self.tessera_json("find", "wide.zarr", "(value < 1) | (value > 7)", *more)["indices"],
                                 [[4000123, 77], [9999999, 9999999]])
            found = self.tessera_json("find", "wide.zarr", "value != 1", "--sel", "4000000:4200000, :200")
            self.assertEqual((found["indices"], found["left_out"]), ([[4000123, 77]], 4000 - (20 if words else 1)))
        # Packed, and where it matches.
        self.tessera("create", "s.zarr", "--shape", "20,20", "--chunks", "5,5", "--dtype", "<i2", "--fill", "3", "--format", "v3")
        self.tessera("attrs", "s.zarr", "set", "scale_factor", "0.5")
        self.tessera("set", "s.zarr", "7,7", "10")
        full = np.full((20, 20), 1.5)
        full[7, 7] = 10
        for condition in "value > 9", "value == 1.5", "value < 2", "value > 1":
            for part in ((0, 20), (3, 9), (5, 10)):
                expected = [p for p in np.argwhere(eval(condition, {"value": full})).tolist() if all(part[0] <= i < part[1] for i in p)]
                found = self.tessera_json("find", "s.zarr", condition, "--sel", f"{part[0]}:{part[1]}, {part[0]}:{part[1]}")
                self.assertEqual(found["indices"], expected, (condition, part))
        self.assertEqual(self.tessera_json("find", "s.zarr", "value > 9")["left_out"], 15)
        self.assertEqual(self.tessera_json("find", "s.zarr", "value < 2")["left_out"], 0)

    def test_find_shows(self):
        self.make(np.arange(6, dtype="<i2").reshape(2, 3))
        self.assertEqual(self.run_program("find", "a.zarr", "value > 3").stdout, "axis 0  axis 1  value\n     1       1      4\n     1       2      5\n")
        self.assertEqual(self.tessera("find", "a.zarr", "value > 3", "--csv"), "axis 0,axis 1,value\n1,1,4\n1,2,5\n")
        self.tessera("find", "a.zarr", "value % 2 == 1", "--out", "odd.npy")
        np.testing.assert_array_equal(np.load(self.folder / "odd.npy"), [[0, 1], [1, 0], [1, 2]])
        self.assertEqual(self.find("value > 9")["indices"], [])
        self.refused("find", "a.zarr", "value + 1", says="has to be true or false")
        self.refused("find", "a.zarr", "x > 1", says="x")
        self.refused("find", "a.zarr", "value > 1", "--sel", ":, ::2", says="without steps")
        # Packed, with a marker, and coordinates.
        self.tessera("group", "g.zarr")
        self.save("lat.npy", np.array([10.5, 20.5]))
        self.tessera("import", "values.npy", "g.zarr/t", "--dims", "lat,x", "--quiet")
        self.tessera("import", "lat.npy", "g.zarr/lat", "--dims", "lat", "--quiet")
        self.tessera("attrs", "g.zarr/t", "set", "scale_factor", "0.5")
        self.tessera("attrs", "g.zarr/t", "set", "_FillValue", "5")
        self.assertEqual(self.tessera("find", "g.zarr/t", "value >= 1.5", "--csv"),
                         "index of lat,x,lat,value\n1,0,20.5,1.5\n1,1,20.5,2.0\n")
        self.assertEqual(self.tessera_json("find", "g.zarr/t", "value >= 4", "--raw")["values"], [4, 5])
        self.assertEqual(self.tessera_json("find", "g.zarr/t", "value >= 1.5")["coordinates"], {"lat": [20.5, 20.5]})

    def test_arrays_of_nothing_and_of_one(self):
        for shape in "0,5", "5,0", "1", "":
            shutil.rmtree(self.folder / "a.zarr", ignore_errors=True)
            self.tessera("create", "a.zarr", "--shape", shape, "--dtype", "<f4", "--fill", "3", "--format", "v3")
            self.index()
            self.require_equal(says=shape)
            self.find("value > 2")
            if shape in ("1", ""):
                self.tessera("set", "a.zarr", "...", "5")
                time.sleep(SETTLED)
                self.index()
                self.assertEqual(self.require_equal()["max"], 5)
                self.assertEqual(self.find("value > 2")["values"], [5])
                self.assertEqual(self.find("value < 2")["values"], [])

    def test_what_has_none(self):
        self.save("text.npy", np.array(["a", "b"]))
        self.tessera("import", "text.npy", "text.zarr", "--quiet")
        self.refused("index", "text.zarr", says="neither real numbers nor times")
        self.refused("index", "text.npy", says="it is no stored array")
        self.make()
        if os.geteuid() == 0:
            os.chown(self.folder / "a.zarr", 65534, -1)
            self.refused("index", "a.zarr", says="it belongs to another user")
            self.assertFalse((self.folder / "a.zarr" / ".tessera" / "index").exists())


if __name__ == "__main__":
    main()
