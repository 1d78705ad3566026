"""`tessera sync`: the destination becomes like the source, and only what differs is carried."""

import os
import random
import shutil
import subprocess
import time
import unittest

import numpy as np

import program
import remote


class SyncTest(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.values = np.arange(100 * 90, dtype="<i4").reshape(100, 90)
        self.save("a.npy", self.values)
        (self.folder / "far").mkdir()
        context = remote.serving(self.folder / "far")
        self.double = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def run_program(self, *words, env=None, **options):
        seen = self.double.environment if hasattr(self, "double") else {}
        return super().run_program(*words, env={**os.environ, **seen, **(env or {})}, **options)

    def make(self, place, *words):
        self.tessera("import", "a.npy", place, "--chunks", "10,9", "--quiet", *words)

    def sync(self, source, destination, *words):
        done = self.tessera_json("sync", source, destination, *words)
        return done["carried"], done["same"], done["erased"]

    def alike(self, source, destination):
        self.tessera("diff", source, destination)
        self.assertEqual(self.tessera_json("attrs", source), self.tessera_json("attrs", destination))
        self.tessera("verify", destination)

    def test_chunks_that_differ_in_length_and_grow(self):
        self.tessera("import", "a.npy", "src", "--chunks", "[10]*4+[30]*2,90", "--format", "v3", "--quiet")
        self.sync("src", "dst")
        self.tessera("append", "src", "a.npy", "--quiet")
        self.sync("src", "dst")
        self.alike("src", "dst")
        self.tessera("resize", "src", "55,90")
        self.sync("src", "dst")
        self.alike("src", "dst")

    def test_only_what_differs(self):
        places = {"local": "src.zarr", "s3": "s3://bucket/src.zarr"}
        goals = {"local": "dst", "s3": "s3://bucket/dst"}
        for kind, words in {"v2": ["--format", "v2"], "v3": ["--format", "v3"], "z": ["--format", "zmeta"],
                            "shards": ["--format", "v3", "--shard", "50,45"]}.items():
            values = 4 if kind == "shards" else 100
            ways = [("local", "local"), ("local", "s3"), ("s3", "local"), ("s3", "s3")]
            for a, b in ways if kind == "shards" else ways[1:3] if kind == "v2" else ways[:1]:
                source, goal = places[a] + kind + b, goals[b] + kind + a
                self.make(source, *words)
                self.assertEqual(self.sync(source, goal), (values, 0, 0))
                self.alike(source, goal)
                self.double.reset()
                self.assertEqual(self.sync(source, goal), (0, values, 0))
                chunks = [path for method, path, _ in self.double.requests if method in ("GET", "PUT")
                          and path.split("?")[0].rpartition("/")[2].replace(".", "").replace("blosc", "").isdigit()]
                self.assertEqual(chunks, [], f"{kind} {a} {b}")  # the listings have the sums
                self.tessera("set", source, "0:3,0:3", "-1", "--quiet")
                self.tessera("attrs", source, "set", "title", '"new"', "--quiet")
                self.assertEqual(self.sync(source, goal, "--dry-run"), (1, values - 1, 0))
                self.assertEqual(self.sync(source, goal), (1, values - 1, 0))
                self.alike(source, goal)

    def test_growing_and_shrinking(self):
        for source, goal in (("s", "d"), ("s3://bucket/s", "d2"), ("t", "s3://bucket/d3")):
            self.make(source, "--format", "v2")
            self.sync(source, goal)
            self.tessera("append", source, "a.npy", "--quiet")
            carried, same, erased = self.sync(source, goal)
            self.assertEqual((carried, erased), (100, 0))
            self.alike(source, goal)
            self.tessera("resize", source, "55,90", "--quiet")
            carried, same, erased = self.sync(source, goal)
            self.assertEqual((carried + same, erased), (60, 140))
            self.alike(source, goal)
            self.tessera("resize", source, "100,90", "--quiet")
            self.sync(source, goal)
            self.alike(source, goal)

    def test_groups(self):
        self.tessera("group", "g", "--format", "v3", "--quiet")
        for name in ("a", "b/c"):
            self.make(f"g/{name}")
        self.sync("g", "s3://bucket/g")
        self.tessera("set", "g/a", "0,0", "7", "--quiet")
        self.make("g/new")
        self.tessera("attrs", "g", "set", "about", '"all"', "--quiet")
        self.make("s3://bucket/g/only-there")
        self.assertEqual(self.sync("g", "s3://bucket/g"), (101, 199, 0))
        self.tessera("diff", "g/a", "s3://bucket/g/a")
        self.tessera("diff", "g/new", "s3://bucket/g/new")
        self.assertEqual(self.tessera_json("attrs", "s3://bucket/g")["about"], "all")
        self.tessera("info", "s3://bucket/g/only-there")
        # Back, by HTTP, which lists nothing: by the consolidated metadata.
        self.tessera("consolidate", "s3://bucket/g", "--quiet")
        self.tessera("sync", self.double.origin + "/files/g", "back", "--quiet")
        self.tessera("diff", "g/a", "back/a")
        self.assertEqual(self.sync(self.double.origin + "/files/g/a", "back/a"), (0, 100, 0))

    def bytes_of(self, place):
        return {p.relative_to(self.folder / place).as_posix(): p.read_bytes() for p in (self.folder / place).rglob("*")
                if p.is_file() and ".tessera" not in p.parts}

    def test_what_is_known_to_be_equal_is_not_read(self):
        for words in ("--format", "v2"), ("--format", "v3", "--shard", "50,45"):
            with self.subTest(words=words):
                shutil.rmtree(self.folder / "src", ignore_errors=True)
                shutil.rmtree(self.folder / "dst", ignore_errors=True)
                self.make("src", *words)
                self.sync("src", "dst")
                time.sleep(0.2)
                sync = ("sync", "src", "dst")
                read = self.tessera_json(*sync)
                values = read["same"]
                self.assertEqual((read["unread"], read["carried"]), (0, 0))
                self.assertEqual(self.tessera_json(*sync, "--dry-run")["unread"], values)
                record = self.folder / "dst" / ".tessera" / "equal"
                before = record.stat().st_mtime_ns
                self.assertEqual(self.tessera_json(*sync)["unread"], values)
                self.assertEqual(record.stat().st_mtime_ns, before)
                self.assertIn("the same (all known by their stamps; --all reads them)", self.tessera(*sync))
                if shutil.which("strace"):
                    trace = self.folder / "trace"
                    options = os.environ | {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
                    subprocess.run(["strace", "-f", "-qq", "-e", "signal=none", "-e", "trace=openat,openat2,open", "-o", trace,
                                    program.PROGRAM, *sync], cwd=self.folder, env=options, check=True, capture_output=True)
                    opened = [line.split('"')[1] for line in trace.read_text().splitlines()
                              if '"' in line and "O_DIRECTORY" not in line]
                    keys = [key for key in self.bytes_of("src") if key[-1].isdigit()]
                    self.assertEqual([name for name in opened if any(name == key or name.endswith("/" + key) for key in keys)], [])
                    self.assertEqual(len(keys), values)
                everything = self.tessera_json(*sync, "--all")
                self.assertEqual((everything["unread"], everything["same"]), (0, values))
                # A copy that was damaged, with its old size and time of modification.
                chunk = max((p for p in (self.folder / "dst").rglob("*") if p.is_file() and ".tessera" not in p.parts
                             and p.name[0].isdigit()), key=lambda p: p.stat().st_size)
                seen = chunk.stat()
                with open(chunk, "r+b") as file:
                    file.seek(20)
                    file.write(bytes([file.read(1)[0] ^ 1]))
                os.utime(chunk, ns=(seen.st_atime_ns, seen.st_mtime_ns))
                self.assertNotEqual(self.bytes_of("src"), self.bytes_of("dst"))
                mended = self.tessera_json(*sync)
                self.assertEqual((mended["carried"], mended["unread"]), (1, values - 1))
                self.assertEqual(self.bytes_of("src"), self.bytes_of("dst"))
                # A damaged record is none.
                good = record.read_bytes()
                for bad in (b"", good[:-1], good[:30] + bytes([good[30] ^ 1]) + good[31:], b"x" * 400):
                    record.write_bytes(bad)
                    self.assertEqual(self.tessera_json(*sync, "--dry-run")["unread"], 0)
                record.unlink()
                record.mkdir()
                self.assertEqual(self.tessera_json(*sync)["unread"], 0)
                record.rmdir()
                self.tessera("verify", "dst")

    def test_histories_of_what_is_known(self):
        """Whoever changes either side, and however: afterwards the bytes are the same."""
        ways = ["set", "in place, with its old time", "another file with the old time", "touched", "gone", "append", "other"]
        for seed in range(2):
            chance = random.Random(seed)
            for place in "src", "dst", "two":
                shutil.rmtree(self.folder / place, ignore_errors=True)
            self.make("src", "--format", "v2")
            self.make("two", "--format", "v2")
            known = 0
            for step in range(12):
                side = chance.choice(["src", "dst"] if step else ["src"])
                files = sorted(p for p in (self.folder / side).rglob("*") if p.is_file() and p.name[0].isdigit()
                               and ".tessera" not in p.parts)
                path = chance.choice(files)
                before = path.stat()
                does = chance.choice(ways)
                if does == "set":
                    self.tessera("set", side, f"{chance.randrange(100)},{chance.randrange(90)}", str(step), "--quiet")
                elif does.startswith("in place"):
                    with open(path, "r+b") as file:
                        file.write(chance.choice(files).read_bytes())
                        file.truncate()
                    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
                elif does.startswith("another file"):
                    shutil.copy(chance.choice(files), self.folder / "x.tmp")
                    os.utime(self.folder / "x.tmp", ns=(before.st_atime_ns, before.st_mtime_ns))
                    os.replace(self.folder / "x.tmp", path)
                elif does == "touched":
                    os.utime(path)
                elif does == "gone":
                    path.unlink()
                elif does == "append" and side == "src":
                    self.save("more.npy", self.values[:7])
                    self.tessera("append", "src", "more.npy", "--quiet")
                elif does == "other":
                    self.sync("two", "dst")
                    self.assertEqual(self.bytes_of("two"), self.bytes_of("dst"), (seed, step, does))
                if chance.random() < 0.5:
                    time.sleep(0.15)
                known += self.tessera_json("sync", "src", "dst")["unread"]
                self.assertEqual(self.bytes_of("src"), self.bytes_of("dst"), (seed, step, does))
            self.assertGreater(known, 50)

    def test_refusals(self):
        self.make("a.zarr", "--format", "v2")
        self.make("b.zarr", "--format", "v3")
        self.tessera("import", "a.npy", "c.zarr", "--format", "v2", "--chunks", "20,20", "--quiet")
        before = program.digest(self.folder / "b.zarr"), program.digest(self.folder / "c.zarr")
        self.refused("sync", "a.zarr", "b.zarr", says=["format v2 there, v3 here"])
        self.refused("sync", "a.zarr", "c.zarr", says="chunks of")
        self.refused("sync", "a.npy", "d.zarr", says="only arrays and groups")
        self.refused("sync", "nothing", "d.zarr", says="no array or group")
        self.assertEqual((program.digest(self.folder / "b.zarr"), program.digest(self.folder / "c.zarr")), before)
        self.assertFalse((self.folder / "d.zarr").exists())
        self.tessera("copy", "a.zarr", "e.zarr", "--quiet")
        self.tessera("seal", "e.zarr", "--quiet")
        self.tessera("set", "a.zarr", "0,0", "9", "--quiet")
        self.refused("sync", "a.zarr", "e.zarr", says="sealed")


if __name__ == "__main__":
    program.main()
