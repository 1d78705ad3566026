"""--max-memory binds for everything whose size a file dictates: peak memory of the program, measured."""

import bz2
import functools
import hashlib
import json
import lzma
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import zipfile
import zlib

import numcodecs
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program
from program import PROGRAM, ProgramTest

BESIDE = 8  # MiB beside what the program counts and what it takes to do nothing, most of that its own code


# Runs a program and says, on a file that it was given, how it ended and the most memory that it took. A process of its
# own, because a child is given the peak of the one that it was forked from.
MEASURE = """
import os, sys
child = os.fork()
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
_, status, used = os.wait4(child, 0)
os.write(int(sys.argv[1]), b"%d %d" % (os.waitstatus_to_exitcode(status), used.ru_maxrss))
"""


class Ended:
    """How a run of the program ended: its code, what it printed, and the most memory that it took, in MiB."""

    def __init__(self, words, folder):
        there, here = os.pipe()
        result = subprocess.run([sys.executable, "-S", "-E", "-c", MEASURE, str(here), PROGRAM, *map(str, words)],
                                capture_output=True, text=True, cwd=folder, timeout=300, pass_fds=[here])
        os.close(here)
        with open(there, encoding="ascii") as measured:
            self.code, peak = map(int, measured.read().split())
        self.out, self.err, self.peak = result.stdout, result.stderr, peak / 1024
        self.shown = f"tessera {words}: {self.code}, {self.peak:.0f} MiB\n{self.out[:2000]}{self.err[:2000]}"


@functools.cache
def idle():
    """What the program takes that does nothing, in MiB."""
    return Ended(["version"], "/").peak


class MemoryTest(ProgramTest):
    def within(self, budget, *words, codes=(0,)):
        """Runs a command, which must end with one of `codes` and take no more than its budget, in MiB."""
        ended = Ended([*words, "--max-memory", f"{budget}M"], self.folder)
        self.assertIn(ended.code, codes, ended.shown)
        self.assertLess(ended.peak, budget + idle() + BESIDE, ended.shown)
        return ended

    def refused_within(self, budget, *words, says, code=2):
        """Likewise one that must be refused in one line."""
        ended = self.within(budget, *words, codes=(code,))
        line = ended.err if code == 2 else ended.out
        for text in says:
            self.assertIn(text, line, ended.shown)
        return line

    def sparse(self, name, size):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as file:
            file.truncate(size)


class Lists(MemoryTest):
    """Files of Tessera's own: sparse ones of a size that no array needs are refused by their first bytes."""

    def setUp(self):
        super().setUp()
        self.tessera("create", "a.zarr", "--shape", "8", "--chunks", "4", "--dtype", "<i4", "--quiet")
        self.tessera("set", "a.zarr", "0:4", "1", "--quiet")

    def test_a_journal(self):
        for size in (100 << 20, 100 << 30):
            self.sparse("a.zarr/.tessera/batch/journal", size)
            for words in (["info"], ["get"], ["set", "0", "2"], ["stats"], ["digest"]):
                self.refused_within(16, words[0], "a.zarr", *words[1:], says=["a.zarr/.tessera/batch/journal"])
            self.refused_within(16, "verify", "a.zarr", says=[".tessera/batch/journal"], code=1)
        self.within(16, "repair", "a.zarr")
        self.assertEqual(self.tessera("get", "a.zarr", "0"), "1\n")

    def test_the_record_of_a_batch(self):
        for folder, words in ("batch/journal", ["get"]), ("undo/changes", ["undo"]):
            record = self.folder / "a.zarr/.tessera" / folder
            header = '{"tessera_changes":1,"id":"0000000000000001","keeps_old":true,"what":""}\n'
            for size in (100 << 20, 100 << 30):
                self.sparse(f"a.zarr/.tessera/{folder}", size)
                with open(record, "r+") as file:
                    file.write(header)
                self.refused_within(16, *words, "a.zarr", says=[f"a.zarr/.tessera/{folder}"])
                # What its last line claims takes no memory, either, before the sum was found right.
                with open(record, "a") as file:
                    file.write('\n{"committed":%d,"sha256":"%s"}\n' % (2**60, "0" * 64))
                self.refused_within(16, *words, "a.zarr", says=[f"a.zarr/.tessera/{folder}"])
            # Nor do lines without anything in them.
            data = header.encode() + bytes(b"\n") * (30 << 20)
            record.write_bytes(data + b'{"committed":%d,"sha256":"%s"}\n'
                               % (30 << 20, hashlib.sha256(data).hexdigest().encode()))
            self.refused_within(16, *words, "a.zarr", says=["--max-memory"])
            self.refused_within(100, *words, "a.zarr", says=[f"a.zarr/.tessera/{folder}", "line 2"])
            record.unlink()
        self.within(16, "get", "a.zarr")

    def test_the_record_of_a_command(self):
        record = self.folder / "a.zarr/.tessera/undo/changes"
        header, change = record.read_text().splitlines()
        running = header.replace('"end": 1   ', '"end": null')  # as a killed command leaves it
        for size in (100 << 20, 100 << 30):
            self.sparse("a.zarr/.tessera/undo/changes", size)
            self.refused_within(16, "undo", "a.zarr", says=["a.zarr/.tessera/undo/changes", "line 1"])
            self.within(16, "info", "a.zarr")
            with open(record, "r+") as file:
                file.write(header + "\n")
            self.refused_within(16, "undo", "a.zarr", says=["a.zarr/.tessera/undo/changes"])
        with open(record, "w") as file:
            file.write(running + "\n")
            for n in range(200_000):
                file.write(change.replace('"n":0', f'"n":{n}') + "\n")
        self.refused_within(16, "undo", "a.zarr", says=["--max-memory"])
        record.write_text(f"{header}\n{change}\n")
        self.within(16, "undo", "a.zarr")

    def test_a_seal(self):
        self.tessera("seal", "a.zarr", "--quiet")
        for size in (100 << 20, 100 << 30):
            self.sparse("a.zarr/.tessera/sha256sums.txt", size)
            self.refused_within(16, "verify", "a.zarr", says=["sha256sums.txt", "line 1"], code=1)
            self.refused_within(16, "seal", "a.zarr", says=["sha256sums.txt", "line 1"])

    def test_the_lists_of_a_snapshot(self):
        self.tessera("snapshot", "a.zarr", "create", "s", "--quiet")
        folder = self.folder / "a.zarr.snapshots" / "s"
        files = (folder / ".tessera/snapshot-files.txt").read_bytes()
        for size in (100 << 20, 100 << 30):
            self.sparse("a.zarr.snapshots/s/.tessera/snapshot-files.txt", size)
            self.refused_within(16, "verify", "a.zarr.snapshots/s", says=[".tessera/snapshot-files.txt"], code=1)
            self.refused_within(16, "snapshot", "a.zarr", "restore", "s", says=[".tessera/snapshot-files.txt"])
        (folder / ".tessera/snapshot-files.txt").write_bytes(files)
        self.sparse("a.zarr.snapshots/s/.tessera/snapshot.json", 60 << 20)
        self.refused_within(16, "snapshot", "a.zarr", "restore", "s", says=[".tessera/snapshot.json", "1048576"])


MIB = 1 << 20
BLOSC = {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
COMMANDS = {"info": ["info", "A"], "get": ["get", "A", "0"], "get all": ["get", "A", "--all"],
            "set": ["set", "A", "0", "1"], "stats": ["stats", "A"], "digest": ["digest", "A"], "diff": ["diff", "A", "A"],
            "verify": ["verify", "A"], "repair": ["repair", "A"], "seal": ["seal", "A"], "copy": ["copy", "A", "b.zarr"],
            "rechunk": ["rechunk", "A", "c.zarr", "--chunks", "1"], "export": ["export", "A", "d.npy"],
            "append": ["append", "A", "A"], "resize": ["resize", "A", "5"]}


def array(folder, name, encoded, **members):
    """An array of v2 whose chunks are these bytes."""
    meta = {"zarr_format": 2, "order": "C", "filters": None, "fill_value": 0, "compressor": None, **members}
    (folder / name).mkdir()
    (folder / name / ".zarray").write_text(json.dumps(meta), encoding="utf-8")
    for key, chunk in encoded.items():
        (folder / name / key).write_bytes(chunk)


def compressed(compressor, head, size):
    """`head` and zeros, `size` bytes in all, compressed without holding them."""
    parts = [compressor.compress(head)]
    left = size - len(head)
    while left > 0:
        n = min(left, MIB)
        parts.append(compressor.compress(bytes(n)))
        left -= n
    return b"".join(parts) + compressor.flush()


class Attacks(MemoryTest):
    """Small files that decode to far more than the budget."""

    SIZE = 96 * MIB
    BUDGET = 24

    def attack(self, name, skip=()):
        """Every command on an array: within its budget, or refused with what it takes, and then nothing is changed."""
        ended = {}
        for what, words in COMMANDS.items():
            if what in skip:
                continue
            with self.subTest(array=name, command=what):
                copy = self.folder / "x.zarr"
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(self.folder / name, copy)
                before = program.digest(copy)
                ended[what] = one = self.within(self.BUDGET, *["x.zarr" if word == "A" else word for word in words],
                                                codes=(0, 1, 2))
                if one.code == 2:
                    self.assertIn("--max-memory", one.err, one.shown)
                    self.assertEqual(program.digest(copy), before, one.shown)
                    self.assertEqual(one.out, "", one.shown)
                for left in ("b.zarr", "c.zarr", "d.npy"):
                    self.assertTrue(one.code == 0 or not (self.folder / left).exists(), one.shown)
                    shutil.rmtree(self.folder / left, ignore_errors=True)
                    (self.folder / left).unlink(missing_ok=True)
                self.assertEqual([p.name for p in self.folder.iterdir() if p.name.startswith((".", "b.", "c.", "d."))], [])
        self.assertEqual(ended["info"].code, 0)
        return ended


class Chunks(Attacks):
    def test_chunks_of_fixed_size(self):
        zeros = bytes(self.SIZE)
        encoded = {"zlib": compressed(zlib.compressobj(9), b"", self.SIZE),
                   "gzip": compressed(zlib.compressobj(9, wbits=31), b"", self.SIZE),
                   "bz2": compressed(bz2.BZ2Compressor(), b"", self.SIZE),
                   "zstd": numcodecs.Zstd(3).encode(zeros),
                   "lz4": numcodecs.LZ4().encode(zeros),
                   "blosc": numcodecs.Blosc("zstd", 5).encode(zeros),
                   "lzma": compressed(lzma.LZMACompressor(preset=1), b"", self.SIZE)}
        del zeros
        for codec, chunk in encoded.items():
            name = f"{codec}.zarr"
            array(self.folder, name, {"0": chunk}, shape=[self.SIZE], chunks=[self.SIZE], dtype="|u1",
                  compressor={"id": codec, **BLOSC} if codec == "blosc" else {"id": codec})
            # What can be decoded in parts would be printed, a hundred million elements.
            ended = self.attack(name, skip=("get all",) if codec == "blosc" else ())
            if codec != "blosc":  # which decodes a part by itself
                for what in ("get", "set"):
                    for text in ("x.zarr", "chunk (0,)", "MiB of memory are needed", "the limit is 24 MiB"):
                        self.assertIn(text, ended[what].err, ended[what].shown)
            self.within(256, "get", name, "0")
            self.within(512, "set", name, "0", "1")
            self.assertEqual(self.tessera("get", name, ":2"), "[1 0]\n")

    def test_a_chunk_that_takes_what_it_says(self):
        array(self.folder, "z.zarr", {"0": zlib.compress(bytes(self.SIZE))}, shape=[self.SIZE], chunks=[self.SIZE],
              dtype="|u1", compressor={"id": "zlib", "level": 1})
        for words in (["get", "z.zarr", "0"], ["set", "z.zarr", "0", "1"]):
            line = self.refused_within(24, *words, says=["chunk (0,)"])
            enough = int(line.split("give --max-memory ")[1].split("M")[0])
            self.within(enough, *words)

    def test_a_chunk_without_a_codec(self):
        array(self.folder, "n.zarr", {}, shape=[self.SIZE], chunks=[self.SIZE], dtype="|u1")
        self.sparse("n.zarr/0", self.SIZE)
        self.attack("n.zarr", skip=("get all",))

    def test_codecs_within_codecs(self):
        inner = compressed(zlib.compressobj(9), b"", self.SIZE)
        array(self.folder, "t.zarr", {"0": zlib.compress(inner)}, shape=[4], chunks=[4], dtype="|u1",
              filters=[{"id": "zlib", "level": 1}], compressor={"id": "zlib", "level": 1})
        for words in (["get", "t.zarr"], ["set", "t.zarr", "0", "1"], ["stats", "t.zarr"], ["digest", "t.zarr"]):
            self.refused_within(self.BUDGET, *words, says=["numcodecs.zlib: the data decode to more than the"])
        self.within(self.BUDGET, "verify", "t.zarr", codes=(1,))

    def test_elements_of_absurd_size(self):
        array(self.folder, "s.zarr", {}, shape=[4], chunks=[1], dtype=f"|S{self.SIZE}", fill_value=None)
        for words in (["get", "s.zarr"], ["stats", "s.zarr"], ["copy", "s.zarr", "b.zarr"]):
            self.within(self.BUDGET, *words, codes=(0, 2))

    def test_chunks_of_several_threads(self):
        """What fits once does not fit for each thread at once: it is done by fewer."""
        size = 12 * MIB
        encoded = zlib.compress(bytes(size))
        array(self.folder, "w.zarr", {str(i): encoded for i in range(16)}, shape=[16 * size], chunks=[size], dtype="|u1",
              compressor={"id": "zlib", "level": 1})
        for words in (["set", "w.zarr", "1::1000000", "0"], ["stats", "w.zarr"], ["digest", "w.zarr"],
                      ["verify", "w.zarr"], ["get", "w.zarr", f"::{size}"]):
            self.within(80, *words, "--threads", 8)


class Strings(Attacks):
    """The same of elements whose length the file says."""

    def strings(self, name, lengths, per_chunk, compressor, encode):
        chunks = {}
        for c in range(0, len(lengths), per_chunk):
            chunk = struct.pack("<I", per_chunk)
            for n in lengths[c:c + per_chunk]:
                chunk += struct.pack("<I", n) + b"a" * n
            chunks[str(c // per_chunk)] = encode(chunk)
        array(self.folder, name, chunks, shape=[len(lengths)], chunks=[per_chunk], dtype="|O", fill_value="",
              filters=[{"id": "vlen-utf8"}], compressor=compressor)

    def test_long_strings(self):
        """Four strings, each of which is too large, and four of which one is not."""
        zstd, deflate, blosc = numcodecs.Zstd(3).encode, zlib.compress, numcodecs.Blosc("lz4", 5).encode
        for length, codec, encode in ((60 * MIB, "zlib", deflate), (60 * MIB, "blosc", blosc), (16 * MIB, "zstd", zstd),
                                      (7 * MIB, "zstd", zstd), (7 * MIB, "zlib", deflate), (7 * MIB, "blosc", blosc)):
            with self.subTest(length=length, codec=codec):
                name = f"{codec}{length // MIB}.zarr"
                self.strings(name, [length] * 4, 1, {"id": codec, **(BLOSC if codec == "blosc" else {})}, encode)
                ended = self.attack(name, skip=("set",))
                if length == 60 * MIB:
                    self.assertIn("chunk (", ended["stats"].err, ended["stats"].shown)
                if length == 7 * MIB:
                    for what in ("digest", "verify", "copy"):  # not export: as <U, each takes 28 MiB
                        self.assertEqual(ended[what].code, 0, ended[what].shown)

    def test_a_chunk_of_many_empty_strings(self):
        count = 8 * MIB
        chunk = compressed(zlib.compressobj(9), struct.pack("<I", count), 4 + 4 * count)
        array(self.folder, "e.zarr", {"0": chunk}, shape=[count], chunks=[count], dtype="|O", fill_value="",
              filters=[{"id": "vlen-utf8"}], compressor={"id": "zlib", "level": 1})
        self.attack("e.zarr", skip=("rechunk", "get all"))

    def test_json_of_many_values(self):
        text = b'["' + b'","' * (6 * MIB) + b'","|O",[1]]'
        array(self.folder, "j.zarr", {"0": zlib.compress(text)}, shape=[1], chunks=[1], dtype="|O", fill_value="",
              filters=[{"id": "json2"}], compressor={"id": "zlib", "level": 1})
        self.attack("j.zarr")

    def test_many_strings_that_do_not_fit_at_once(self):
        """Three times the budget in one array whose chunks fit: everything works, and gives what a large budget does."""
        self.strings("m.zarr", [100_000 + i for i in range(720)], 10, {"id": "zstd", "level": 1}, numcodecs.Zstd(1).encode)
        self.tessera("copy", "m.zarr", "all.zarr", "--max-memory", "1G", "--quiet")
        digest = self.tessera("digest", "all.zarr", "--max-memory", "1G").split()[0]
        self.tessera("export", "all.zarr", "all.npy", "--max-memory", "1G", "--quiet")
        exported = (self.folder / "all.npy").read_bytes()
        for threads in (1, 2):
            self.assertEqual(self.within(24, "digest", "m.zarr", "--threads", threads).out.split()[0], digest)
            self.within(24, "stats", "m.zarr", "--threads", threads)
            self.within(24, "verify", "m.zarr", "--threads", threads)
            self.within(24, "diff", "m.zarr", "all.zarr", "--threads", threads)
            self.within(24, "copy", "m.zarr", "copy.zarr", "--threads", threads, "--overwrite", "--chunks", "7")
            self.assertEqual(self.tessera("digest", "copy.zarr", "--max-memory", "1G").split()[0], digest)
            self.within(24, "export", "m.zarr", "out.npy", "--threads", threads, "--overwrite")
            self.assertEqual((self.folder / "out.npy").read_bytes(), exported)
        self.within(24, "get", "m.zarr", ":300", "--json")
        self.within(24, "append", "copy.zarr", "m.zarr")
        self.within(24, "set", "copy.zarr", "0:720", "m.zarr")


class Tables(MemoryTest):
    """Array files whose rows, headers or lists are as long as they say."""

    def table(self, text, size=0):
        with open(self.folder / "a.csv", "wb") as file:
            file.write(text)
            if size:
                file.truncate(size)

    def refused_everywhere(self, budget, name, says="--max-memory"):
        for words in (["info", name], ["get", name, "0"], ["copy", name, "b.zarr"], ["digest", name]):
            with self.subTest(words=words):
                self.refused_within(budget, *words, says=[name, says])
        for words in (["tree", name], ["verify", name]):
            with self.subTest(words=words):
                self.within(budget, *words, codes=(1,))

    def test_lines_of_a_table(self):
        for text, size in ((b"", 8 << 30), (b"1" * (40 * MIB), 0), (b'"' + b"a" * (40 * MIB), 0), (b"," * (12 * MIB), 0),
                           (b"1," * MIB + b"1\n", 0), (b"a," * MIB + b"b\n" + b"1," * MIB + b"1\n", 0)):
            with self.subTest(text=text[:3], size=size):
                self.table(text, size)
                self.refused_everywhere(16, "a.csv")

    def test_a_wide_table_that_fits(self):
        columns = 20_000
        names = ",".join(f"n{i}" for i in range(columns))
        self.table((names + "\n" + ",".join(["1"] * columns) + "\n").encode())
        self.within(64, "info", "a.csv", "--json")
        self.within(64, "get", "a.csv", "0")
        self.table((",".join(["7"] * 200_000) + "\n").encode() * 3)
        self.assertEqual(json.loads(self.within(64, "info", "a.csv", "--json").out)["shape"], [3, 200_000])
        self.assertEqual(self.within(64, "get", "a.csv", "1, 199999").out, "7\n")

    def picture(self, width, parts=b""):
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        rows = compressed(zlib.compressobj(9), b"", width + 1)
        (self.folder / "a.png").write_bytes(
            b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, 1, 8, 0, 0, 0, 0))
            + b"".join(chunk(b"zTXt", b"k\0\0" + part) for part in parts) + chunk(b"IDAT", rows) + chunk(b"IEND", b""))

    def test_a_picture_with_one_long_row(self):
        self.picture(150 * MIB)
        self.refused_everywhere(24, "a.png")

    def test_texts_in_a_picture(self):
        """They are skipped, however many there are."""
        self.picture(4, [zlib.compress(b"a" * (7 * MIB))] * 12)
        self.assertEqual(self.within(24, "get", "a.png", "0").out, "[0 0 0 0]\n")

    def test_headers(self):
        def header(text):
            return b"\x93NUMPY\2\0" + struct.pack("<I", len(text)) + text
        for text in (b"{'descr': [" + b",".join(b"('f%d','<i4')" % i for i in range(200_000))
                     + b"], 'fortran_order': False, 'shape': (1,), }\n",
                     b"{'descr': '<i4', 'fortran_order': False, 'shape': (" + b"1," * MIB + b"), }\n"):
            (self.folder / "a.npy").write_bytes(header(text) + bytes(800_000))
            self.refused_everywhere(16, "a.npy")

    def test_members(self):
        with zipfile.ZipFile(self.folder / "a.npz", "w") as archive:
            for i in range(60_000):
                archive.writestr(f"m{i}.npy", b"")
        for words in (["info", "a.npz"], ["get", "a.npz::m1.npy"]):
            self.refused_within(16, *words, says=["a.npz", "--max-memory"])


class Advice(ProgramTest):
    """The budget that a message names works, as a person types it."""

    MADE = (("plain", "2048,1024", ["--codec", "none"]), ("packed", "1024,2048", ["--codec", "blosc:lz4:5:shuffle"]),
            ("thin", "2048,512", ["--codec", "zstd:1"]),
            ("sharded", "256,1024", ["--codec", "gzip:1", "--shard", "2048,2048"]))

    def advised(self, words):
        """Runs a command that must end well, at once or with the budget that it names; whether it named one."""
        result = self.run_program(*words, "--max-memory", "64K", "--threads", "2")
        if result.returncode == 0:
            return False
        text = result.stdout + result.stderr
        found = re.search(r"--max-memory (\d+M)", text)
        self.assertIsNotNone(found, f"{words}\n{text}")
        again = self.run_program(*words, "--max-memory", found[1], "--threads", "2")
        self.assertEqual(again.returncode, 0, f"{words}\n{text}{found[1]}: {again.stdout}{again.stderr}")
        return True

    def test_advised_budgets_suffice(self):
        self.save("in.npy", np.arange(2048 * 2048, dtype="<f4").reshape(2048, 2048) % 1000)
        advised = 0
        for name, chunks, options in self.MADE:
            self.tessera("import", "in.npy", name, "--format", "v3", "--chunks", chunks, *options, "--quiet")
            for words in (["reduce", name, "o", "--with", "mean", "--axis", "0"], ["reduce", name, "o", "--with", "std"],
                          ["reduce", name, "o", "--with", "median", "--axis", "-1"],
                          ["calc", "o", "a * 2 + a", f"a={name}"], ["calc", "o.npy", "a + 1", f"a={name}"],
                          ["calc", name, "a + 1", f"a={name}", "--in-place"], ["coarsen", name, "o", "--by", "2"],
                          ["pyramid", name, "p", "--levels", "2"], ["copy", name, "o"], ["copy", name, "o", "--verify"],
                          ["copy", name, "o", "--codec", "gzip:1"], ["copy", name, "o", "--dtype", "<f8"],
                          ["rechunk", name, "o", "--chunks", "64,64"], ["export", name, "o.npy"],
                          ["import", "in.npy", "o", "--chunks", chunks], ["stats", name], ["digest", name],
                          ["verify", name], ["diff", "in.npy", "in.npy"], ["get", name, "0, 0"],
                          ["set", name, "0, 0", "5"], ["set", name, "0", "5"], ["set", name, "..., 0", "5"]):
                with self.subTest(array=name, words=words):
                    if words[0] in ("reduce", "calc", "coarsen", "pyramid", "copy", "rechunk", "export", "import"):
                        words = words if "--in-place" in words else [*words, "--overwrite"]
                    advised += self.advised(words)
        self.assertGreater(advised, 20)  # else nothing was tried


class Imports(MemoryTest):
    def test_thin_chunks(self):
        """A plain file straight into chunks across its order."""
        values = np.lib.format.open_memmap(self.folder / "a.npy", mode="w+", dtype="<f4", shape=(512, 512, 256))
        values[:] = np.arange(256, dtype="<f4")
        values.flush()
        del values
        for threads in (1, 2):
            self.within(64, "import", "a.npy", "a.zarr", "--chunks", "512,512,1", "--threads", threads, "--overwrite")


if __name__ == "__main__":
    program.main()
