#!/usr/bin/python3
"""One shard far larger than the memory allowed, written, edited and read again, compared by NumPy.

    large_shard.py PROGRAM [--size 1G] [--max-memory 64M] [--limit 64M] [--folder DIR]

A .npy of this size becomes a v3 array that is one shard of chunks of 256 KiB; then a band across
it and a single element are replaced. Each command's peak resident memory must stay below the limit. DIR needs room for four times the size.
"""
import os
import pathlib
import shutil
import sys
import tempfile

import numpy

from measure import arguments, measured

SIDE = 4096
CHUNK = 256
BLOCK = 32  # rows at a time: what this script takes itself would count as the program's
BAND = slice(1000, 1300)


def rows(first, last):
    i = numpy.arange(first * SIDE, last * SIDE, dtype=numpy.int64)
    return ((i * 2654435761 >> 7) % 16777215 + 1).astype("<f4").reshape(last - first, SIDE)


def write_npy(path, length):
    with open(path, "wb") as file:
        numpy.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (length, SIDE)})
        for first in range(0, length, BLOCK):
            file.write(rows(first, min(first + BLOCK, length)).tobytes())


def check(path, length):
    """The band holds the first rows, the element before the last is -1, all else is as it was."""
    out = numpy.load(path, mmap_mode="r")
    assert out.shape == (length, SIDE) and out.dtype == "<f4"
    for first in range(0, length, CHUNK):
        expected = rows(first, first + CHUNK)
        for row in range(max(first, BAND.start), min(first + CHUNK, BAND.stop)):
            expected[row - first] = rows(row - BAND.start, row - BAND.start + 1)[0]
        if first + CHUNK == length:
            expected[-1, -2] = -1
        assert numpy.array_equal(out[first : first + CHUNK], expected), f"rows from {first} on differ"


def main():
    args = arguments(__doc__, "1G", "64M", "64M")
    length = args.size // (4 * SIDE) // CHUNK * CHUNK
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        folder = pathlib.Path(folder)
        free = shutil.disk_usage(folder).free
        if free < 4.2 * args.size:
            sys.exit(f"{folder}: {free / 2**30:.1f} GiB free, {4.2 * args.size / 2**30:.1f} needed")
        environment = {**os.environ, "TMPDIR": str(folder)}

        def tessera(*words):
            measured([args.program, *words, "--quiet", "--max-memory", args.max_memory], args.limit, environment)

        write_npy(folder / "in.npy", length)
        tessera("import", folder / "in.npy", folder / "a.zarr", "--format", "v3", "--chunks", f"{CHUNK},{CHUNK}",
                "--shard", f"{length},{SIDE}", "--codec", "zstd:1")
        (folder / "in.npy").unlink()
        write_npy(folder / "band.npy", BAND.stop - BAND.start)
        tessera("set", folder / "a.zarr", f"{BAND.start}:{BAND.stop}", folder / "band.npy")
        tessera("set", folder / "a.zarr", "-1, -2", "-1")
        shards = [path for path in folder.glob("a.zarr/c/**/*") if path.is_file()]
        assert [str(path.relative_to(folder)) for path in shards] == ["a.zarr/c/0/0"], shards
        print(f"one shard of {shards[0].stat().st_size / 2**20:.0f} MiB", flush=True)
        tessera("export", folder / "a.zarr", folder / "out.npy")
        check(folder / "out.npy", length)
        print(f"NumPy agrees: {length} rows", flush=True)


if __name__ == "__main__":
    main()
