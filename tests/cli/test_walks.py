"""Walks end: each real folder is gone into once, links that double the ways to it and folders without end are named."""

import json
import os
import shutil
import subprocess
import zipfile

import numpy as np

from program import PROGRAM, ProgramTest, main

ARRAY = json.dumps({"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "<i4", "compressor": None, "fill_value": 7,
                    "filters": None, "order": "C"})


class Walks(ProgramTest):
    def group(self, name):
        self.tessera("group", name, "--format", "v2", "--quiet")

    def array(self, name, value=5):
        self.tessera("create", name, "--shape", "4", "--dtype", "<i4", "--format", "v2", "--quiet")
        self.tessera("set", name, "...", value, "--quiet")

    def link(self, name, target):
        (self.folder / name).symlink_to(target)

    def doubling(self, arrays):
        """24 folders of which each has two links to the next; with an array in the last."""
        (self.folder / "bomb").mkdir()
        for i in range(1, 25):
            (self.folder / f"bomb/d{i}").mkdir()
        for i in range(1, 24):
            for name in "a", "b":
                self.link(f"bomb/d{i}/{name}", f"../d{i + 1}")
        if arrays:
            self.array("bomb/d24/x")

    def test_links_that_double_the_ways(self):
        self.doubling(arrays=False)
        self.assertEqual(self.tessera("tree", "bomb"), "bomb\n(no arrays)\n")
        self.assertIn("without arrays", self.tessera("info", "bomb"))
        self.refused("verify", "bomb", says="no array or group")
        self.refused("copy", "bomb", "out", says="bomb")
        self.array("bomb/d24/x")
        tree = self.tessera("tree", "bomb").splitlines()
        self.assertEqual(sum("→ d24" in line for line in tree), 2)
        self.assertEqual(sum("another path to" in line for line in tree), 2, "others lead to nothing that is shown")
        self.assertEqual(self.tessera_json("info", "bomb")["arrays"], 1)
        self.assertEqual(self.tessera_json("verify", "bomb")["arrays"], 1)
        self.tessera("copy", "bomb", "out", "--quiet")
        self.assertEqual(self.tessera("get", "out/d23/b/x"), "[5 5 5 5]\n")
        self.assertEqual(os.readlink(self.folder / "out/d23/a"), "../d24")
        self.tessera("seal", "bomb", "--quiet")
        self.tessera("verify", "bomb", "--quiet")
        self.tessera("snapshot", "bomb", "create", "s", "--quiet")

    def test_ways_between_all(self):
        for i in range(10):
            self.array(f"web/d{i}/x")
        for i in range(10):
            for j in range(10):
                self.link(f"web/d{i}/l{j}", f"../d{j}")
        tree = self.tessera("tree", "web").splitlines()
        self.assertEqual(len(tree), 1 + 10 * (1 + 1 + 10))
        self.assertEqual(self.tessera_json("info", "web")["arrays"], 10)
        self.tessera("copy", "web", "out", "--quiet")
        self.assertEqual(self.tessera("tree", "out").splitlines()[1:], tree[1:])

    def test_links_out(self):
        self.group("g")
        self.array("g/a")
        self.array("far/one", 1)
        self.group("group")
        self.array("group/two", 2)
        self.link("g/root", "/")
        self.link("g/far", "../far")
        self.link("g/one", "../far/one")
        self.link("g/group", "../group")
        self.link("g/gone", "nowhere")
        self.link("g/self", "self")
        self.link("g/up", "..")
        tree = self.tessera("tree", "g")
        self.assertEqual(len(tree.splitlines()), 8, tree)
        for name in "root", "far", "up":
            self.assertRegex(tree, f"{name}  → .*not followed")
        self.assertEqual(self.tessera_json("info", "g")["arrays"], 3)
        self.assertEqual(self.tessera_json("verify", "g")["arrays"], 3)
        self.assertIn("a symbolic link to /", self.tessera("verify", "g"))
        result = self.run_program("copy", "g", "out")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(sorted(line.split()[2] for line in result.stderr.splitlines()),
                         ["g/far", "g/gone", "g/root", "g/self", "g/up"])
        self.assertEqual(self.tessera("get", "out/group/two"), "[2 2 2 2]\n")
        self.assertEqual(self.tessera("get", "out/one"), "[1 1 1 1]\n")
        self.assertEqual(sorted(p for p in os.listdir(self.folder / "out") if p[0] != "."), ["a", "group", "one"])
        left = json.loads(self.run_program("copy", "g", "again", "--json").stdout)["left_out"]
        self.assertEqual(len(left), 5)
        self.assertEqual(self.run_program("export", "g", "out.npz").returncode, 1)
        self.assertEqual(sorted(np.load(self.folder / "out.npz")), ["a", "group/two", "one"])
        self.tessera("rm", "out", "--recursive")

    def test_a_zip_has_no_links(self):
        self.doubling(arrays=True)
        result = self.run_program("copy", "bomb", "out.zip")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(result.stderr.splitlines()), 2, result.stderr)
        self.assertIn("bomb/d23/a is left out: → d24", result.stderr)

    def test_deep_folders(self):
        for depth, code in (256, 0), (257, 1), (3000, 1):
            with self.subTest(depth=depth):
                (self.folder / "deep").mkdir()
                at = os.open(self.folder / "deep", os.O_RDONLY)
                for _ in range(depth):
                    os.mkdir("a", dir_fd=at)
                    below = os.open("a", os.O_RDONLY, dir_fd=at)
                    os.close(at)
                    at = below
                with os.fdopen(os.open(".zarray", os.O_WRONLY | os.O_CREAT, dir_fd=at), "w") as file:
                    file.write(ARRAY)
                os.close(at)
                tree = self.tessera("tree", "deep", code=code)
                self.assertEqual("deeper than 256 folders" in tree, code == 1)
                self.assertLess(len(tree.splitlines()), 260)
                self.assertEqual("deeper than 256 levels" in self.tessera("info", "deep", code=code), code == 1)
                self.tessera("verify", "deep", code=code)
                if code == 0:
                    self.tessera("copy", "deep", "out", "--quiet")
                    self.tessera("digest", "out" + "/a" * depth)
                else:
                    copied = self.run_program("copy", "deep", "out")
                    self.assertIn(copied.returncode, (1, 2))
                    self.assertIn("deeper than 256", copied.stderr)
                shutil.rmtree(self.folder / "out", ignore_errors=True)
                place = self.folder / "deep"
                while place.exists():  # deeper than what Python's rmtree does
                    tail = self.folder / "deep" / "/".join(["a"] * min(depth, 200))
                    if tail.exists() and depth > 200:
                        tail.rename(self.folder / "next")
                    shutil.rmtree(place)
                    depth -= 200
                    if (self.folder / "next").exists():
                        (self.folder / "next").rename(place)

    def test_deep_and_wide_archives(self):
        with zipfile.ZipFile(self.folder / "deep.zip", "w") as archive:
            archive.writestr("a/" * 2000 + ".zarray", ARRAY)
        self.assertIn("deeper than 256 folders", self.tessera("tree", "deep.zip", code=1))
        self.assertIn("deeper than 256", self.tessera("verify", "deep.zip", code=1))
        for words in ["info", "deep.zip"], ["copy", "deep.zip", "out"]:
            self.refused(*words, says="deep.zip: no array")
            self.refused(*words, says="deeper than 256 levels was not looked at")
        with zipfile.ZipFile(self.folder / "wide.zip", "w") as archive:
            for i in range(300):
                archive.writestr(f"g{i}/.zarray", ARRAY)
        trace = self.folder / "trace"
        opened = {}
        for count in 10, 300:
            if count == 10:
                with zipfile.ZipFile(self.folder / "few.zip", "w") as archive:
                    for i in range(count):
                        archive.writestr(f"g{i}/.zarray", ARRAY)
            opened[count] = self.times_opened("few.zip" if count == 10 else "wide.zip", trace)
        self.assertEqual(opened[10], opened[300], "however many arrays an archive holds")

    def test_more_arrays_than_can_be_open(self):
        with zipfile.ZipFile(self.folder / "wide.zip", "w") as archive:
            for i in range(300):
                archive.writestr(f"g{i}/.zarray", ARRAY)
                archive.writestr(f"g{i}/0", np.full(4, i, "<i4").tobytes())
        limited = ["bash", "-c", 'ulimit -n 256 && exec "$@"', "limited", PROGRAM]
        for words in ([], ["--overwrite"]):  # new, and in the place of what is there
            subprocess.run([*limited, "copy", "wide.zip", "out", "--quiet", "--no-log", *words], cwd=self.folder, check=True)
            self.assertEqual(self.tessera_json("verify", "out")["arrays"], 300)
            for i in 0, 31, 32, 299:
                self.assertEqual(self.tessera("get", f"out/g{i}", "0:1"), f"[{i}]\n")
            self.assertEqual([name for name in os.listdir(self.folder / "out") if name.startswith(".")], [])
            self.assertEqual(len(list((self.folder / "out").rglob("*"))), 5 * 300,
                             "an array's folder, its two files and the record of its chunks")
        # What cannot be read at the end takes back what was written before, also what rests.
        with zipfile.ZipFile(self.folder / "wide.zip", "a") as archive:
            archive.writestr("h/.zarray", ARRAY)
            archive.writestr("h/0", b"short")
        (self.folder / "refuse").mkdir()
        (self.folder / "refuse/h").write_text("in the way")
        done = subprocess.run([*limited, "copy", "wide.zip", "refuse", "--quiet"], cwd=self.folder, capture_output=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(os.listdir(self.folder / "refuse"), ["h"])

    def test_a_folder_in_the_place_of_an_archived_chunk(self):
        with zipfile.ZipFile(self.folder / "odd.zip", "w") as archive:
            archive.writestr(".zarray", ARRAY)
            archive.writestr("0/x", b"1234")
        self.refused("get", "odd.zip", says="odd.zip/0 is a directory")

    def times_opened(self, archive, trace):
        """How often copying an archive opens it, by strace where there is one."""
        if shutil.which("strace") is None:
            self.skipTest("no strace")
        # LeakSanitizer cannot work below another tracer, and fails the program.
        options = os.environ | {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        subprocess.run(["strace", "-f", "-qq", "-e", "trace=openat", "-o", trace, PROGRAM, "copy", archive, archive + ".out",
                        "--quiet"], cwd=self.folder, env=options, check=True, capture_output=True)
        return sum(f'"{archive}"' in line for line in trace.read_text().splitlines())


if __name__ == "__main__":
    main()
