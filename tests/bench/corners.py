#!/usr/bin/env python3
"""Selections that touch much of their chunks and want little of it, drawn with a fixed seed: thin chunks, planes
across every axis, strides in every axis, boxes near whole, points of every density, partial writes, with every codec.

    /usr/bin/python3 tests/bench/corners.py [--module build/release/tools/python] [--folder /dev/shm]
                                            [--rounds 5] [--from 0] [--to 300] [--worst 10]

Each case is compared with reading its chunks whole (a write: with reading and writing them whole), and with
zarr-python 2 doing the same. All run alternately in one process, with one thread, with durability "none", into memory
that was touched before; the figures are ratios of the rounds' least processor times. Prints a line for each case:
beside whole chunks, beside zarr, its milliseconds, number and text; then the worst of both. Nothing is asserted but
that the two programs agree.
"""
import argparse
import os
import random
import shutil
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--module", help="the folder of the package (default: where Python finds it)")
parser.add_argument("--folder", default="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--from", dest="first", type=int, default=0)
parser.add_argument("--to", type=int, default=300)
parser.add_argument("--worst", type=int, default=10)
parser.add_argument("--list", action="store_true", help="only print the cases")
options = parser.parse_args()
if options.module:
    sys.path.insert(0, options.module)

import numcodecs  # noqa: E402
import numpy as np  # noqa: E402
import tessera  # noqa: E402
import zarr  # noqa: E402

numcodecs.blosc.use_threads = False

CODECS = {
    "blosc:lz4:5:shuffle": lambda: numcodecs.Blosc("lz4", 5, numcodecs.Blosc.SHUFFLE),
    "blosc:lz4:5:shuffle:65536": lambda: numcodecs.Blosc("lz4", 5, numcodecs.Blosc.SHUFFLE, 65536),
    "blosc:lz4:5:bitshuffle": lambda: numcodecs.Blosc("lz4", 5, numcodecs.Blosc.BITSHUFFLE),
    "blosc:lz4:5:noshuffle": lambda: numcodecs.Blosc("lz4", 5, numcodecs.Blosc.NOSHUFFLE),
    "blosc:blosclz:5:shuffle": lambda: numcodecs.Blosc("blosclz", 5, numcodecs.Blosc.SHUFFLE),
    "blosc:zstd:3:shuffle": lambda: numcodecs.Blosc("zstd", 3, numcodecs.Blosc.SHUFFLE),
    "blosc:zlib:1:shuffle": lambda: numcodecs.Blosc("zlib", 1, numcodecs.Blosc.SHUFFLE),
    "zstd:1": lambda: numcodecs.Zstd(1),
    "lz4:1": lambda: numcodecs.LZ4(1),
    "zlib:1": lambda: numcodecs.Zlib(1),
    "gzip:1": lambda: numcodecs.GZip(1),
    "bz2:1": lambda: numcodecs.BZ2(1),
    "none": lambda: None,
}
SLOW = {"bz2:1", "gzip:1", "zlib:1", "blosc:zlib:1:shuffle"}
KINDS = ["plane", "plane", "stride", "stride", "stride", "near", "box", "points", "write", "write"]


def draw_chunks(rng, rank):
    """Long and thin, cubic, or of odd lengths; about 2**15 to 2**19 elements."""
    wanted = 1 << rng.randint(15, 19)
    if rank == 1:
        return (wanted,)
    shape = [1.0] * rank
    way = rng.randrange(4)
    if way == 0:  # long in one dimension, thin in the others
        thin = rng.choice([2, 4, 17])
        shape = [float(thin)] * rank
        shape[rng.randrange(rank)] = wanted / thin ** (rank - 1)
    elif way == 1:  # thin in one dimension
        thin = rng.choice([1, 3, 17])
        shape = [(wanted / thin) ** (1 / (rank - 1))] * rank
        shape[rng.randrange(rank)] = float(thin)
    else:
        shape = [wanted ** (1 / rank)] * rank
    lengths = [max(1, round(n)) for n in shape]
    return tuple(n + rng.randrange(1 + n // 8) for n in lengths) if way == 3 else tuple(lengths)


def draw(number):
    """A case as a dictionary."""
    rng = random.Random(0x7E55E7A + number)
    rank = rng.choice([1, 2, 2, 3, 3, 3, 4])
    chunks = draw_chunks(rng, rank)
    dtype = rng.choice(["|u1", "<i2", "<i2", "<f4", "<f4", ">f4", "<f8", "<i8"])
    codec = rng.choice(list(CODECS) + ["blosc:lz4:5:shuffle"] * 5 + ["zstd:1"] * 2)
    goal = (2 if codec in SLOW else 12) << 20
    shape = list(chunks)
    while np.prod(shape, dtype=float) * np.dtype(dtype).itemsize < goal:
        d = rng.randrange(rank)
        shape[d] += chunks[d] if rng.random() < 0.7 else max(1, chunks[d] // 3)
    kind = rng.choice(KINDS)
    order = "F" if rank > 1 and rng.random() < 0.1 else "C"
    case = {"number": number, "kind": kind, "shape": tuple(shape), "chunks": chunks, "dtype": dtype, "codec": codec,
            "order": order}
    if kind == "points":
        case["count"] = round(10 ** rng.uniform(0.5, 5.7))
    else:
        case["selection"] = draw_selection(rng, kind, shape)
    return case


def draw_selection(rng, kind, shape):
    axes = [slice(0, n) for n in shape]
    if kind == "plane":
        d = rng.randrange(len(shape))
        i = rng.randrange(shape[d])
        axes[d] = slice(i, i + 1)
    elif kind == "stride":
        for d in rng.sample(range(len(shape)), rng.randint(1, len(shape))):
            step = rng.choice([2, 3, 5, 7, 11, 50])
            axes[d] = slice(rng.randrange(min(step, shape[d])), shape[d], step)
    elif kind == "near":
        axes = [slice(min(n - 1, rng.randint(0, 3)), max(min(n, rng.randint(0, 3) + 1), n - rng.randint(0, 3)))
                for n in shape]
    else:  # a box, often to be written
        for d, n in enumerate(shape):
            length = max(1, int(n * rng.uniform(0.2, 0.95)))
            begin = rng.randrange(n - length + 1)
            axes[d] = slice(begin, begin + length)
        if kind == "write" and rng.random() < 0.3:
            d = rng.randrange(len(shape))
            axes[d] = slice(axes[d].start, axes[d].stop, rng.choice([2, 3, 7]))
    return tuple(axes)


def text(case):
    what = f"{case['count']} points" if case["kind"] == "points" else ",".join(
        f"{s.start}:{s.stop}" + (f":{s.step}" if s.step else "") for s in case["selection"])
    return (f"{case['kind']} {'x'.join(map(str, case['shape']))} {'x'.join(map(str, case['chunks']))} {case['dtype']} "
            f"{case['codec']} {case['order']} {what}")


def field(shape, dtype):
    """A smooth field with noise."""
    rng = np.random.default_rng(1)
    values = np.zeros(shape)
    for d, n in enumerate(shape):
        wave = np.sin(np.arange(n) / (20 + 30 * d))
        values += 40 * wave.reshape([-1 if e == d else 1 for e in range(len(shape))])
    values = np.round(values) + 100
    values += rng.integers(0, 4, shape)
    return values.astype(dtype)


def cost(function):
    """Seconds of processor time of one call; of several calls if one is short."""
    begin = time.process_time()
    calls = 0
    while True:
        function()
        calls += 1
        spent = time.process_time() - begin
        if spent > 2e-3 or calls == 50:
            return spent / calls


def touched(case, indices=None):
    """The box of chunks that the selection touches, in elements, and how much of its chunks are touched."""
    chunks, shape = case["chunks"], case["shape"]
    if indices is not None:
        numbers = np.zeros(len(indices[0]), np.int64)
        for index, length, n in zip(indices, chunks, shape):
            numbers = numbers * -(-n // length) + index // length
        count = int(np.prod([-(-n // length) for n, length in zip(shape, chunks)]))
        return tuple(slice(0, n) for n in shape), len(np.unique(numbers)) / count
    box, part = [], 1.0
    for s, length, n in zip(case["selection"], chunks, shape):
        places = np.unique(np.arange(s.start, s.stop, s.step or 1) // length)
        box.append(slice(int(places[0]) * length, min(n, (int(places[-1]) + 1) * length)))
        part *= len(places) / (places[-1] - places[0] + 1)
    return tuple(box), part


def measure(case):
    """Ratios beside whole chunks and beside zarr-python, and seconds."""
    values = field(case["shape"], case["dtype"])
    theirs = zarr.open("z", mode="w", shape=case["shape"], chunks=case["chunks"], dtype=case["dtype"],
                       compressor=CODECS[case["codec"]](), order=case["order"], fill_value=0)
    theirs[...] = values
    shutil.copytree("z", "t")
    ours = tessera.open("t", "r+", durability="none")
    indices = None
    if case["kind"] == "points":
        rng = np.random.default_rng(case["number"])
        indices = tuple(rng.integers(0, n, case["count"]) for n in case["shape"])
    box, part = touched(case, indices)
    block = np.ascontiguousarray(values[box])

    def whole():
        ours.read(box, out=block, threads=1)

    if case["kind"] == "points":
        sides = [lambda: ours.vindex[indices], lambda: theirs.vindex[indices]]
        assert np.array_equal(sides[0](), sides[1]())
    elif case["kind"] == "write":
        selection = case["selection"]
        news = np.ascontiguousarray(values[selection]) + np.dtype(case["dtype"]).type(1)

        def whole():  # noqa: F811
            ours.read(box, out=block, threads=1)
            ours.write(box, block, threads=1)

        sides = [lambda: ours.write(selection, news, threads=1), lambda: theirs.__setitem__(selection, news)]
    else:
        selection = case["selection"]
        out = np.ascontiguousarray(values[selection])
        sides = [lambda: ours.read(selection, out=out, threads=1),
                 lambda: theirs.get_basic_selection(selection, out=out)]
        sides[0]()
        assert np.array_equal(out, values[selection])
    sides.append(whole)
    spent = []
    for turn in range(options.rounds + 1):
        now = [0.0, 0.0, 0.0]
        for side in (0, 1, 2) if turn % 2 else (2, 1, 0):
            now[side] = cost(sides[side])
        spent.append(now)
    spent = spent[1:]
    if case["kind"] == "write":
        assert np.array_equal(ours[...], theirs[...])
    mine, other, all_ = (min(times) for times in zip(*spent))
    return mine / (all_ * part), mine / other, mine


def main():
    cases = [draw(number) for number in range(options.first, options.to)]
    if options.list:
        for case in cases:
            print(case["number"], text(case))
        return
    found = []
    before = os.getcwd()
    for case in cases:
        folder = tempfile.mkdtemp(dir=options.folder)
        os.chdir(folder)
        try:
            beside_whole, beside_zarr, seconds = measure(case)
        finally:
            os.chdir(before)
            shutil.rmtree(folder)
        found.append((beside_whole, beside_zarr, seconds, case))
        print(f"{beside_whole:.2f}\t{beside_zarr:.2f}\t{1e3 * seconds:.2f}\t{case['number']}\t{text(case)}", flush=True)
    for by, name in ((0, "reading whole chunks"), (1, "zarr-python")):
        worse = sum(f[by] > 1.05 for f in found)
        print(f"\nbeside {name}: {worse} of {len(found)} above 1.05; the worst:")
        for f in sorted(found, key=lambda f: -f[by])[:options.worst]:
            print(f"{f[by]:.2f}\t{1e3 * f[2]:.2f}\t{f[3]['number']}\t{text(f[3])}")


if __name__ == "__main__":
    main()
