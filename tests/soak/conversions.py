#!/usr/bin/python3
"""Hierarchies of random arrays taken from format to format, at random, until every pair of formats has had its share.

    conversions.py PROGRAM [--arrays 1000] [--seed 1] [--folder DIR]

After each step every array of the hierarchy is exported and compared with what NumPy made of it at the beginning, to
the last bit but for byte order. --arrays says how many arrays each pair of formats converts at least. The same seed
draws the same arrays and chains.
"""
import argparse
import itertools
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

FORMATS = ["zmeta", "v1", "v2", "v3"]
STRUCTURE = [("a", ">i4"), ("b", "<f8"), ("c", "S3")]
# What every format holds, and what v2 and v3 hold besides.
DTYPES = ["b1", "i1", "u1", "<i2", ">i2", "<u4", ">i8", "<f2", ">f4", "<f8", ">f8", "<c8", ">c16", "<M8[s]", ">m8[10ms]",
          "S5", "<U4", ">U3", STRUCTURE]
CODECS = {"zmeta": ["blosc:lz4:5:shuffle", "blosc:zlib:1:noshuffle", "blosc:zstd:3:shuffle"],
          "v1": ["none", "zlib:3", "bz2:1", "lzma", "blosc:lz4:5:bitshuffle", "blosc:zstd:3:shuffle"],
          "v2": ["none", "zlib:1", "zstd:3", "gzip:1,crc32", "blosc:lz4:5:shuffle", "blosc:zstd:3:bitshuffle", "lz4"],
          "v3": ["none", "gzip:1", "zstd:3,crc32c", "blosc:lz4:5:shuffle", "blosc:zstd:3:bitshuffle"]}
FILTERS = {"i": ["delta"], "u": ["delta"], "f": ["shuffle"], "M": ["delta"], "m": ["delta"], "b": ["packbits"]}


def one_of(rng, choices):
    return choices[rng.integers(len(choices))]


def same(expected, got):
    """Equal to the last bit, but for byte order."""
    if expected.shape != got.shape:
        return False
    if expected.dtype.names:
        return expected.dtype.names == got.dtype.names and all(same(expected[n], got[n]) for n in expected.dtype.names)
    if expected.dtype.kind in "SUO":
        return expected.tolist() == got.tolist()
    native = expected.dtype.newbyteorder("=")
    return native == got.dtype.newbyteorder("=") and expected.astype(native).tobytes() == got.astype(native).tobytes()


def draw_array(rng, fmt, everything):
    rank = int(rng.integers(0 if everything else 1, 4))
    shape = [int(n) for n in rng.integers(1, [1, 30, 9, 6][rank] + 1, rank)]
    count = int(np.prod(shape))
    if everything and rng.random() < 0.2:
        words = [["", "a", "fünf", "no"], [b"", b"a", b"\xff\x01", b"no"]][rng.integers(2)]
        return np.array([words[n] for n in rng.integers(0, 4, count)] + [None], dtype=object)[:-1].reshape(shape)
    # A structure begins with a fill of null: zmeta and v1 cannot say zeros, and a new array of v3 cannot say null.
    dtype = np.dtype(one_of(rng, [d for d in DTYPES if d is not STRUCTURE or fmt != "v3" or everything]))
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "SU":
        return np.array(["", "a", "xyz", "no"], dtype)[rng.integers(0, 4, count)].reshape(shape)
    if dtype.names:
        array = np.zeros(count, dtype)
        array["a"], array["b"], array["c"] = rng.integers(-9, 9, count), rng.normal(size=count), b"xy"
        return array.reshape(shape)
    array = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).copy()
    array[rng.random(count) < rng.random()] = np.zeros((), dtype)
    return array.reshape(shape)


class Soak:
    def __init__(self, options, folder):
        self.program, self.seed, self.folder = options.program, options.seed, folder
        self.converted = dict.fromkeys(itertools.permutations(FORMATS, 2), 0)

    def tessera(self, *words):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{self.where}: tessera {' '.join(map(str, words))}\nended with {done.returncode}: {done.stderr}")

    def draw_hierarchy(self, rng, path, fmt, everything):
        arrays = {}
        for number in range(int(rng.integers(20, 41))):
            array = draw_array(rng, fmt, everything)
            name = one_of(rng, ["", "sub/"]) + f"a{number}"
            np.save(self.folder / "array.npy", array, allow_pickle=True)
            kind = array.dtype.kind
            codec = one_of(rng, CODECS[fmt])
            if fmt in ("v2", "v3") and kind in FILTERS and rng.random() < 0.4:
                codec = ",".join([one_of(rng, FILTERS[kind])] + [codec] * (codec != "none"))
            words = ["--format", fmt, "--codec", codec]
            if array.ndim:
                chunks = [int(rng.integers(1, n + 2)) for n in array.shape]
                words += ["--chunks", ",".join(map(str, chunks))]
                if fmt == "v3" and rng.random() < 0.3:
                    words += ["--shard", ",".join(str(2 * n) for n in chunks)]
                if fmt in ("v2", "v3") and rng.random() < 0.3:
                    words += ["--dims", ",".join("xyz"[: array.ndim])]
            if fmt != "v3" and (rng.random() < 0.3 or array.dtype.names):
                words += ["--fill", "null"]
            elif kind in "iuf" and rng.random() < 0.3:
                words += ["--fill", "3"]
            if array.dtype.names and fmt == "v3":
                array = array.astype([("a", "<i4"), ("b", "<f8"), ("c", "S3")])
                np.save(self.folder / "array.npy", array)
            self.tessera("import", self.folder / "array.npy", path / name, *words)
            arrays[name] = array
        if fmt in ("v2", "v3"):
            self.tessera("group", path, "--format", fmt)
        return arrays

    def check(self, path, arrays):
        self.tessera("export", path, self.folder / "all.npz", "--object-strings", "--overwrite")
        with np.load(self.folder / "all.npz", allow_pickle=True) as found:
            if sorted(found.files) != sorted(arrays):
                sys.exit(f"{self.where}: {path} holds {found.files}, expected {sorted(arrays)}")
            for name, array in arrays.items():
                if not same(array, found[name]):
                    sys.exit(f"{self.where}: {name} reads otherwise:\n{array!r}\n{found[name]!r}")

    def chain(self, number):
        rng = np.random.default_rng([self.seed, number])
        everything = rng.random() < 0.3
        formats = ["v2", "v3"] if everything else FORMATS
        present = one_of(rng, formats)
        self.where = f"seed {self.seed}, chain {number}, {present}"
        path = self.folder / "0"
        arrays = self.draw_hierarchy(rng, path, present, everything)
        self.check(path, arrays)
        for step in range(1, 9):
            following = min((f for f in formats if f != present), key=lambda f: (self.converted[present, f], f))
            self.where += f" → {following}"
            self.tessera("copy", path, self.folder / str(step), "--format", following)
            shutil.rmtree(path)
            path = self.folder / str(step)
            self.check(path, arrays)
            self.converted[present, following] += len(arrays)
            present = following
        shutil.rmtree(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--arrays", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tessera-soak-", dir=options.folder) as folder:
        soak = Soak(options, pathlib.Path(folder))
        for number in itertools.count():
            if min(soak.converted.values()) >= options.arrays:
                break
            soak.chain(number)
    for (one, other), count in soak.converted.items():
        print(f"{one} → {other}: {count} arrays")


main()
