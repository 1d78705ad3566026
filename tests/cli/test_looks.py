"""How often commands look at the file or the array that they are given, by strace: once, and what they find is passed
on. A count below says how often, and a look more fails the test."""

import collections
import os
import re
import shutil
import subprocess
import unittest

import numpy as np

from program import PROGRAM, ProgramTest, main

CALL = re.compile(r"^\d+ +(?P<name>\w+)\((?P<arguments>.*)\) = (?P<result>.*)$")
# A file or folder, relative to a descriptor or not, and a descriptor itself. strace -y adds the path of each: 3</a/b>.
OPENED = re.compile(r"\d+<(?P<path>[^>]*)>, ")
NAMED = re.compile(r'(?:(?:AT_FDCWD|\d+)<(?P<folder>[^>]*)>, )?"(?P<name>[^"]*)"')
STATS = {"newfstatat", "stat", "lstat", "fstat", "statx", "access", "faccessat", "faccessat2"}
OPENS = {"open", "openat", "openat2"}


def calls_for(path, trace):
    """The numbers of calls about exactly this path: "open" and "stat" by its name, "fstat" of it when it is open."""
    found = collections.Counter()
    for line in trace.splitlines():
        call = CALL.match(line)
        if call and call["name"] == "fstat":  # what newer C libraries call in place of newfstatat
            found["fstat"] += OPENED.match(call["arguments"])["path"] == path
            continue
        named = NAMED.match(call["arguments"]) if call else None
        if named is None:
            continue
        about = os.path.normpath(os.path.join(named["folder"] or "", named["name"]))
        if about != path:
            continue
        if call["name"] in OPENS:
            found["open"] += 1
        elif call["name"] in STATS:
            found["stat" if named["name"] else "fstat"] += 1
    return {name: count for name, count in found.items() if count}


@unittest.skipIf(shutil.which("strace") is None, "no strace")
class Looks(ProgramTest):
    def setUp(self):
        super().setUp()
        self.folder = self.folder.resolve()
        self.save("x.npy", np.arange(24, dtype="<i4").reshape(4, 6))

    def looks(self, name, *words):
        """How often a command, which has to succeed, opens and stats a file or folder in the test's folder."""
        trace = self.folder / "trace"
        # LeakSanitizer cannot work below another tracer, and fails the program.
        options = os.environ | {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        subprocess.run(["strace", "-f", "-y", "-qq", "-s", "4096", "-e", "signal=none", "-e",
                        "trace=file,openat2,%%stat", "-o", trace, PROGRAM, *map(str, words)],
                       cwd=self.folder, env=options, check=True, capture_output=True)
        return calls_for(str(self.folder / name), trace.read_text())

    def test_an_array_file(self):
        once = {"stat": 1, "open": 1, "fstat": 1}
        for words in (["import", "x.npy", "y.zarr"], ["copy", "x.npy", "y.zip"], ["export", "x.npy", "y.npz"],
                      ["info", "x.npy"], ["info", "x.npy", "--json"], ["get", "x.npy"], ["get", "x.npy", ":2", "--json"],
                      ["digest", "x.npy"], ["stats", "x.npy"], ["tree", "x.npy"], ["view", "x.npy"],
                      ["diff", "x.npy", "y.zarr"], ["attrs", "y.zarr", "copy", "x.npy"],
                      ["set", "y.zarr", "...", "@x.npy"]):
            with self.subTest(" ".join(words)):
                self.assertEqual(self.looks("x.npy", *words), once)
        # Another look before the path is resolved: whether a value is a path at all; which file is there, to run the
        # command again if it is replaced.
        for words in ["set", "y.zarr", "...", "x.npy"], ["refs", "x.npy"]:
            with self.subTest(" ".join(words)):
                self.assertEqual(self.looks("x.npy", *words), once | {"stat": 2})

    def test_an_array(self):
        """Its metadata document is read once, for everything; so is its folder opened."""
        once = {"open": 1, "fstat": 1}
        # Whether the array is still there, where it has no attributes.
        there = once | {"stat": 1}
        # The same, and the time by which --resume knows the source again.
        copied = once | {"stat": 2}
        # The attributes of v3 are in the document, and are read in their present version.
        twice = {"open": 2, "fstat": 2}
        for form, document, info, copy in (("zmeta", "__zmeta__", there, copied), ("v2", ".zarray", there, copied),
                                           ("v3", "zarr.json", twice, twice | {"stat": 1})):
            array = f"{form}.zarr"
            self.tessera("import", "x.npy", array, "--format", form, "--quiet")
            # Attributes say what elements stand for, which a .npy does not keep; `stats` takes them for its values, its
            # dates and the valid range, and for the index of chunks once before and once after, so that they are those
            # by which it was decoded. Before it writes the index, the document is the one that it read at first.
            meant = {look: 4 * n for look, n in twice.items()} | {"stat": 2} if form == "v3" else twice | {"stat": 8}
            # `info` takes the range of values from that index, for which it asks for the attributes likewise.
            ranged = {look: 3 * n for look, n in twice.items()} | {"stat": 2} if form == "v3" else twice | {"stat": 6}
            for counts, words in ((info, ["get", array]), (info, ["info", array]), (meant, ["stats", array]),
                                  (once, ["digest", array]), (ranged, ["info", array]), (info, ["export", array, f"{form}.npy"]),
                                  (copy, ["copy", array, f"{form}-copy.zarr"]),
                                  (copy, ["rechunk", array, f"{form}-cut.zarr", "--chunks", "2,2"])):
                with self.subTest(" ".join(words)):
                    self.assertEqual(self.looks(f"{array}/{document}", *words), counts)
            for words in ["get", array], ["export", array, f"{form}-again.npy"]:
                with self.subTest("the folder: " + " ".join(words)):
                    self.assertEqual(self.looks(array, *words), {"stat": 1, "open": 1})
            # `stats` also asks which file system it is, whose the folder is and whether it is sealed, and writes there. The
            # chunks of v2 lie in the folder itself, and are listed.
            with self.subTest("the folder: stats " + array):
                self.assertEqual(self.looks(array, "stats", array),
                                 {"stat": 3, "open": 4, "fstat": 1} if form == "v2" else {"stat": 3, "open": 3})

    def test_attributes(self):
        """The document by which the node was found is read once, and that of its attributes in its present version."""
        once, twice = {"open": 1, "fstat": 1}, {"open": 2, "fstat": 2}
        self.tessera("group", "group.zarr", "--format", "v3", "--attrs", '{"title": "x"}')
        for form in "v2", "v3":
            self.tessera("import", "x.npy", f"{form}.zarr", "--format", form, "--quiet")
            self.tessera("attrs", f"{form}.zarr", "set", "title", '"x"')
        for name, document, counts in (("v2.zarr", ".zarray", once), ("v3.zarr", "zarr.json", twice)):
            for words in ["attrs", name], ["attrs", name, "get", "title"]:
                with self.subTest(" ".join(words)):
                    self.assertEqual(self.looks(f"{name}/{document}", *words), counts)
                    self.assertEqual(self.looks(name, *words), {"stat": 1, "open": 1})
        # zarr.json is looked into twice, because it may be an array's or a group's.
        self.assertEqual(self.looks("group.zarr/zarr.json", "attrs", "group.zarr"), {"open": 3, "fstat": 3})

    def test_chunks_that_are_written(self):
        """For the permissions of its predecessor, which a chunk in a folder that was just made cannot have."""
        self.tessera("create", "v3.zarr", "--shape", "4,6", "--chunks", "2,3", "--dtype", "<i4", "--format", "v3")
        chunk = self.folder / "v3.zarr" / "c" / "0" / "1"
        self.assertEqual(self.looks("v3.zarr/c/0/1", "set", "v3.zarr", "...", "7", "--no-undo", "--threads", "1"), {})
        chunk.chmod(0o640)
        self.assertEqual(self.looks("v3.zarr/c/0/1", "set", "v3.zarr", "...", "8", "--no-undo", "--threads", "1"), {"stat": 1})
        self.assertEqual(chunk.stat().st_mode & 0o777, 0o640)
        chunk.unlink()
        self.assertEqual(self.looks("v3.zarr/c/0/1", "set", "v3.zarr", "...", "9", "--no-undo", "--threads", "1"), {"stat": 1})

    def test_the_counting(self):
        trace = ('7 openat(AT_FDCWD</a>, "b", O_RDONLY) = 3</a/b>\n'
                 '7 newfstatat(3</a/b>, "", {st_mode=S_IFREG|0644, st_size=2, ...}, AT_EMPTY_PATH) = 0\n'
                 '7 newfstatat(AT_FDCWD</a>, "/a/b", {st_mode=S_IFREG|0644, st_size=2, ...}, 0) = 0\n'
                 '7 openat(AT_FDCWD</a>, "b", O_RDONLY|O_DIRECTORY) = -1 ENOTDIR (Not a directory)\n'
                 '7 openat(AT_FDCWD</a>, "bc", O_RDONLY) = 4</a/bc>\n')
        self.assertEqual(calls_for("/a/b", trace), {"open": 2, "stat": 1, "fstat": 1})


if __name__ == "__main__":
    main()
