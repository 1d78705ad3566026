"""What is refused: one line that says what and where, exit 2, and everything as it was."""

import os
import resource
import subprocess
import zipfile

import numpy as np

import program
from program import EXAMPLES, digest

DEM = EXAMPLES / "jacksboro_fault_dem.npz"


class BadInput(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.tessera("create", "a", "--shape", "20,30", "--dtype", "<i4", "--chunks", "7,8", "--attrs", '{"k": 1}')
        self.tessera("set", "a", "...", "5")
        self.save("x.npy", np.arange(600, dtype="<i4").reshape(20, 30))
        (self.folder / "plain").mkdir()
        (self.folder / "plain" / "notes.txt").write_text("kept")
        self.before = digest(self.folder)

    def refused(self, *words, says=(), **options):
        line = super().refused(*words, says=says, **options)
        self.assertEqual(digest(self.folder), self.before, f"tessera {words} changed something")
        return line

    def test_command_line(self):
        self.refused(says="no command")
        self.refused("make", says=["make", "--help"])
        self.refused("create", says="PATH")
        self.refused("info", "a", "--frob", says=["--frob", "tessera info --help"])
        self.refused("info", "b", says="b")
        for text in "0", "-1", "two", "1.5":
            self.refused("info", "a", "--threads", text, says=["--threads", text, "1 to"])
        for text in "0", "12X", "M", "-5", "1.5G", "1e6", "99999999999999999999", "16777216T", "5 M":
            self.refused("info", "a", "--max-memory", text, says=["--max-memory", text, "512M"])

    def test_what_could_mean_two_things(self):
        for text in "[1,2]", "[1, -2]", "[1,2], 3", "0, [1,2]":
            self.refused("get", "a", text, says=[text, '"1, 2" is one element', '"1:3"'])
        self.assertEqual(self.tessera("get", "a", "[1, 2:4]"), self.tessera("get", "a", "1, 2:4"))
        for name in "out.xlsx", "out.JPG", "sub/out.hdf":
            for words in ["import", "x.npy", name], ["copy", "a", name], ["create", name, "--shape", "3", "--dtype", "<i4"]:
                self.refused(*words, says=[name, "are not written", ".npz", f"{name}/"])

    def test_what_another_format_can(self):
        for words in (["import", "x.npy", "out", "--codec", "zstd:9"], ["import", "x.npy", "out", "--shard", "20,30"],
                      ["copy", "a", "out", "--codec", "zstd:9"],
                      ["create", "out", "--shape", "4", "--dtype", "<i4", "--shard", "2", "--chunks", "1"]):
            self.assertNotIn("v3", self.refused(*words, "--format", "v1" if "zstd:9" not in words else "zmeta"))
            result = self.run_program(*words)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("v3", result.stdout)
            self.assertRegex(result.stderr, "^tessera: note: .*out.*made in format v3, because .*; --format chooses another\n$")
            self.tessera("rm", "out")

    def test_missing_and_wrong_paths(self):
        for words in [["info", "b"], ["tree", "b"], ["attrs", "b"], ["get", "b", "0"], ["set", "b", "0", "1"],
                      ["append", "b", "x.npy"], ["resize", "b", "3"], ["copy", "b", "c"], ["export", "b", "c.npy"],
                      ["import", "b.npy", "c"]]:
            self.refused(*words, says="b")
        for words in [["get", "plain", "0"], ["set", "plain", "0", "1"], ["export", "plain", "c.npy"],
                      ["attrs", "plain"], ["get", "plain/notes.txt"], ["copy", "plain", "c"]]:
            self.refused(*words, says="plain")
        for place in "s4://bucket/x", "az://c/x", "ftp://host/x":
            for words in (["import", "x.npy", place], ["info", place], ["copy", place, "c"], ["group", place]):
                self.refused(*words, says=[place, "no kind of store", f"./{place}"])
        self.refused("diff", ".", "b", says="b: no such")
        self.refused("set", "x.csv", "0", "1", says="x.csv")
        self.refused("get", f"{DEM}", says=["elevation", "ymax"])
        self.refused("get", f"{DEM}::height", says=["height", "elevation"])
        self.refused("export", ".", "all.npy", says=["tessera tree", "1 array"])
        self.refused("import", "x.npy", "a/__zmeta__/b", says="__zmeta__")
        self.refused("export", "a", "no/such/folder/x.npy", says="no/such/folder")
        self.refused("export", "a", "a.hdf", says=["a.hdf", ".npy", ".npz"])
        self.refused("import", "x.npy", "y.npy", says=["y.npy", "tessera copy"])
        self.refused("import", "x.npy", "/proc/nothing/a", says="/proc/nothing/a")

    def test_create(self):
        def create(shape="3", dtype="<i4", *more, says):
            self.refused("create", "new", "--shape", shape, "--dtype", dtype, *more, says=says)

        create("3,-1", says="-1")
        create("3,x", says=["--shape", "x"])
        create("4294967296,4294967296,4294967296", says="4294967296")
        create("99999999999999999999", says="99999999999999999999")
        create(",".join(["1"] * 33), says="32")
        create("3", "<i3", says=["--dtype", "<i3"])
        create("3", "O", says="O")
        create("3", "[('a', '<i4'", says="[('a', '<i4'")
        create("3", "<i4", "--chunks", "0", says=["chunk", "0"])
        create("3", "<i4", "--chunks", "1,1", says="chunk")
        create("3", "<i4", "--fill", "red", says="red")
        create("3", "<c8", "--fill", "[1, 2]", "--format", "zmeta", says="fill")
        create("3", "<i4", "--codec", "gzip", "--format", "zmeta", says=["gzip", "blosc"])
        create("3", "<i4", "--codec", "blosc:lz5", says=["lz5", "lz4"])
        create("3", "<i4", "--codec", "blosc:lz4:10", says="10")
        create("3", "<i4", "--format", "v9", says=["v9", "zmeta"])
        create("3,4", "<i4", "--order", "F", "--format", "zmeta", says=["transpose", "zmeta"])
        create("3", "<i4", "--order", "K", says=["--order", "K"])
        create("3", "<i4", "--attrs", "[1]", says=["--attrs", "object"])
        create("3", "<i4", "--attrs", "{", says="--attrs")

    def test_overwrite(self):
        new = ["--shape", "3", "--dtype", "<i4"]
        self.refused("create", "a", *new, says=["a", "--overwrite"])
        self.refused("import", "x.npy", "a", says=["a", "--overwrite"])
        self.refused("export", "a", "x.npy", says=["x.npy", "--overwrite"])
        for words in [["create", "plain", *new], ["import", "x.npy", "plain"]]:
            self.refused(*words, "--overwrite", says="plain")
        self.refused("create", "x.npy", *new, "--overwrite", says="x.npy")
        os.mkdir(self.folder / "dir.npy")
        self.refused("export", "a", "dir.npy", "--overwrite", says="directory")
        (self.folder / "a" / "notes.txt").write_text("mine")
        self.before = digest(self.folder)
        self.refused("import", "x.npy", "a", "--overwrite", says="notes.txt")
        # A source that fails leaves the old array.
        os.remove(self.folder / "a" / "notes.txt")
        self.save("x.npy", np.arange(6))
        with open(self.folder / "x.npy", "r+b") as file:
            file.truncate(130)
        self.before = digest(self.folder)
        self.refused("import", "x.npy", "a", "--overwrite", says="x.npy")

    def test_edits(self):
        self.save("short.npy", np.zeros((19, 30), "<i4"))
        self.save("float.npy", np.zeros((20, 30), "<f4"))
        self.before = digest(self.folder)
        self.refused("get", "a", "20", says=["20", "dimension 0"])
        self.refused("get", "a", "0, 0, 0", says="0, 0, 0")
        self.refused("get", "a", "::0", says="0")
        self.refused("set", "a", "0, -31", "1", says="-31")
        self.refused("set", "a", "0", "1.5", says="1.5")
        self.refused("set", "a", "0", "2147483648", says="2147483648")
        self.refused("set", "a", "0", "nan", says=["nan", "<i4"])
        self.refused("set", "a", "...", "short.npy", says=["short.npy", "(19, 30)", "(20, 30)"])
        self.refused("set", "a", "...", "float.npy", says=["float.npy", "<f4", "<i4"])
        self.refused("set", "a", "...", "none.npy", says="none.npy")
        self.refused("set", "a", "...", "@none", says="none")
        self.refused("append", "a", "float.npy", says=["float.npy", "<f4"])
        self.refused("append", "a", "short.npy", "--axis", "1", says="short.npy")
        self.refused("append", "a", "x.npy", "--axis", "2", says=["--axis", "2"])
        self.refused("resize", "a", "20", says="(20, 30)")
        self.refused("resize", "a", "20,-1", says="-1")
        self.refused("resize", "a", "20,x", says="x")
        self.refused("copy", "a", "b", "--deflate", "3", says=["--deflate", "b"])
        self.refused("copy", "a", "b.npy", "--chunks", "3,3", says=["--chunks", "b.npy"])
        self.refused("export", "a", "b.npy", "--deflate", "3", says=["--deflate", "b.npy"])
        self.refused("export", "a", "b.npz", "--deflate", "12", says=["--deflate", "12"])
        self.refused("rechunk", "a", "b", says="--chunks")
        self.refused("rechunk", "a", "b", "--chunks", "0,5", says="0")
        self.refused("import", "x.npy", "b", "--chunks", "20,30", "--max-memory", "1K", says="--max-memory")

    def test_hostile_npz(self):
        member = (self.folder / "x.npy").read_bytes()
        with zipfile.ZipFile(self.folder / "evil.npz", "w") as archive:
            archive.writestr("fine.npy", member)
            archive.writestr("../../outside.npy", member)
        self.before = digest(self.folder)
        self.refused("import", "evil.npz", "out/in", says="../../outside")
        self.assertFalse((self.folder / "out").exists())

    def test_python_objects(self):
        np.savez(self.folder / "mixed.npz", one=np.arange(3), two=np.array([{}], dtype=object))
        self.before = digest(self.folder)
        self.refused("import", "mixed.npz", "out", says=["mixed.npz::two", "objects"])
        self.assertFalse((self.folder / "out").exists())

    def test_damaged_metadata(self):
        good = (self.folder / "a" / "__zmeta__").read_bytes()
        for bad in b"", good[:50], good.replace(b"20", b"-20"), good.replace(b'"<i4"', b'"<i5"'), \
                good.replace(b"7", b"0"), good.replace(b'"shape"', b'"size"'), good.replace(b"30", b'"30"'), b"\x80\x03":
            with self.subTest(bad=bad):
                (self.folder / "a" / "__zmeta__").write_bytes(bad)
                self.before = digest(self.folder)
                for words in [["info", "a"], ["get", "a"], ["set", "a", "0", "1"], ["export", "a", "b.npy"]]:
                    self.refused(*words, says=["a", "__zmeta__"])
                self.assertEqual(self.run_program("tree").returncode, 1)

    def test_damaged_chunk(self):
        chunk = self.folder / "a" / "__zdata__" / "0.0.blosc"
        chunk.write_bytes(chunk.read_bytes()[:-3])
        self.before = digest(self.folder)
        for words in [["get", "a", "0, 0"], ["export", "a", "b.npy"], ["copy", "a", "b", "--verify"], ["set", "a", "0, 0", "1"]]:
            self.refused(*words, says=["a", "0.0"])
        self.assertEqual(self.tessera("get", "a", "-1, -1"), "5\n")

    def test_full_disk(self):
        """No file may grow beyond 4 KiB: the errors of write are reported, and nothing half-written is left."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        rng = np.random.default_rng(1)
        self.save("noise.npy", rng.integers(0, 2**31, (300, 30), "<i4"))
        self.before = digest(self.folder)
        self.refused("export", "noise.npy", "b.npy", says="b.npy", preexec_fn=limit)
        self.refused("import", "noise.npy", "b", says="b", preexec_fn=limit)
        self.refused("import", "noise.npy", "a", "--overwrite", says="a", preexec_fn=limit)
        with open("/dev/full", "w") as full:
            result = subprocess.run([program.PROGRAM, "get", "x.npy", "--all"], stdout=full, text=True,
                                            stderr=subprocess.PIPE, cwd=self.folder)
        self.assertEqual(result.returncode, 2)
        self.assertIn("standard output", result.stderr)


if __name__ == "__main__":
    program.main()
