#!/usr/bin/python3
"""A .npy far larger than the memory allowed: imported, edited in place, exported, and compared by NumPy.

    large_npy.py PROGRAM [--size 6G] [--max-memory 256M] [--limit 400M] [--folder DIR]

The array is float32 of shape (planes, 1024, 1024). No element is the fill value, and each has its own value in its
neighbourhood, so that bytes that land in the wrong place are seen. The edits lie across chunk borders, around one
third and two thirds of the bytes (with 6 GiB these are bytes 2^31 and 2^32) and at the end. Each command's peak
resident memory is measured and must stay below the limit; one that needs less than this script itself is shown as needing
as much, because the system counts so. DIR needs room for three times the size.
"""
import pathlib
import shutil
import sys
import tempfile

import numpy

from measure import arguments, measured

SIDE = 1024
CHUNKS = "16,128,256"


def plane(k):
    """Plane k as it is imported: whole numbers that float32 holds exactly, never 0, no two neighbours alike."""
    i = numpy.arange(k * SIDE * SIDE, (k + 1) * SIDE * SIDE, dtype=numpy.int64)
    return ((i * 2654435761 >> 7) % 16777215 + 1).astype("<f4").reshape(SIDE, SIDE)


def edits(planes):
    """(selection as text, the same as slices, value or array)."""
    third, two_thirds, s = planes // 3, 2 * planes // 3, numpy.s_
    patch = numpy.arange(1, 1 + 3 * 41 * 57, dtype="<f4").reshape(3, 41, 57) / 8
    yield f"{third - 2}:{third + 3}, 60:200, 100:300", s[third - 2 : third + 3, 60:200, 100:300], -1.5
    yield f"{third - 1}:{third + 1}, -1, -9:", s[third - 1 : third + 1, SIDE - 1, SIDE - 9 : SIDE], -2.5
    yield f"{third - 1}:{third + 1}, 0, :9", s[third - 1 : third + 1, 0, 0:9], -3.5
    yield (f"{two_thirds - 1}:{two_thirds + 2}, 101:142, 230:287",
           s[two_thirds - 1 : two_thirds + 2, 101:142, 230:287], patch)
    yield f"{two_thirds}, 0, 0:2", s[two_thirds : two_thirds + 1, 0, 0:2], -4.5
    yield "-2:, -3:, -5:", s[planes - 2 : planes, SIDE - 3 : SIDE, SIDE - 5 : SIDE], -5.5
    yield "0, 0, 0", s[0:1, 0:1, 0:1], -6.5


def compare(file, planes, changes):
    exported = numpy.load(file, mmap_mode="r")
    assert exported.dtype == numpy.dtype("<f4") and exported.shape == (planes, SIDE, SIDE), (exported.dtype, exported.shape)
    for k in range(planes):
        expected = plane(k)
        for _, (along, *rest), value in changes:
            if along.start <= k < along.stop:
                expected[tuple(rest)] = value[k - along.start] if isinstance(value, numpy.ndarray) else value
        if exported[k].tobytes() != expected.tobytes():
            where = numpy.argwhere(exported[k] != expected)[0]
            sys.exit(f"element {(k, *where)} is {exported[k][tuple(where)]}, not {expected[tuple(where)]}")


def main():
    args = arguments(__doc__, "6G")
    planes = args.size // (4 * SIDE * SIDE)
    changes = list(edits(planes))
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        folder = pathlib.Path(folder)
        free = shutil.disk_usage(folder).free
        if free < 3.2 * args.size:
            sys.exit(f"{folder}: {free / 2**30:.1f} GiB free, {3.2 * args.size / 2**30:.1f} needed")
        with open(folder / "in.npy", "wb") as file:
            numpy.lib.format.write_array_header_1_0(
                file, {"descr": "<f4", "fortran_order": False, "shape": (planes, SIDE, SIDE)})
            for k in range(planes):
                file.write(plane(k).tobytes())

        def tessera(*words):
            measured([args.program, *words, "--quiet", "--max-memory", args.max_memory], args.limit)

        tessera("import", folder / "in.npy", folder / "a.zarr", "--chunks", CHUNKS)
        for selection, _, value in changes:
            if isinstance(value, numpy.ndarray):
                numpy.save(folder / "patch.npy", value)
                value = folder / "patch.npy"
            tessera("set", folder / "a.zarr", selection, str(value))
        tessera("export", folder / "a.zarr", folder / "out.npy")
        compare(folder / "out.npy", planes, changes)
        print(f"NumPy agrees: {planes} planes, {len(changes)} edits")


if __name__ == "__main__":
    main()
