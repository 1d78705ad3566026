#!/usr/bin/python3
"""Archives and Fortran-ordered files far larger than the memory allowed, in and out, compared by NumPy and zipfile.

    large_files.py PROGRAM [--size 5G] [--max-memory 256M] [--limit 400M] [--folder DIR]

An .npz member of this size is imported and exported, STORED and with DEFLATE at level 1, both written by Python first;
then a Fortran-ordered .npy of four fifths of it goes into C-ordered chunks and back, in at most three passes over the
data. No element is the fill value, and no two neighbours are alike. Each command's peak resident memory must stay
below the limit. DIR needs room for four times the size.
"""
import os
import pathlib
import shutil
import sys
import tempfile
import zipfile

import numpy

from measure import arguments, measured

SIDE = 1024
CHUNKS = "64,128,128"


def plane(k):
    i = numpy.arange(k * SIDE * SIDE, (k + 1) * SIDE * SIDE, dtype=numpy.int64)
    return ((i * 2654435761 >> 7) % 16777215 + 1).astype("<f4").reshape(SIDE, SIDE)


def header(file, shape, fortran=False):
    numpy.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": fortran, "shape": shape})


def write_npz(path, planes, level):
    method = zipfile.ZIP_DEFLATED if level else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method, compresslevel=level or None) as archive:
        with archive.open("x.npy", "w", force_zip64=True) as file:
            header(file, (planes, SIDE, SIDE))
            for k in range(planes):
                file.write(plane(k).tobytes())


def check_npz(path, planes, level):
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("x.npy")
        assert info.compress_type == (zipfile.ZIP_DEFLATED if level else zipfile.ZIP_STORED), info
        with archive.open("x.npy") as file:  # reading to the end checks the CRC-32
            assert numpy.lib.format.read_magic(file) == (1, 0)
            shape, fortran, dtype = numpy.lib.format.read_array_header_1_0(file)
            assert (shape, fortran, dtype) == ((planes, SIDE, SIDE), False, "<f4"), (shape, fortran, dtype)
            for k in range(planes):
                assert file.read(4 * SIDE * SIDE) == plane(k).tobytes(), f"plane {k} differs"
            assert file.read() == b""


def main():
    args = arguments(__doc__, "5G")
    planes = args.size // (4 * SIDE * SIDE)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        folder = pathlib.Path(folder)
        free = shutil.disk_usage(folder).free
        if free < 4.2 * args.size:
            sys.exit(f"{folder}: {free / 2**30:.1f} GiB free, {4.2 * args.size / 2**30:.1f} needed")
        environment = {**os.environ, "TMPDIR": str(folder)}

        def tessera(*words):
            words = [args.program, *words, "--quiet", "--max-memory", args.max_memory]
            return measured(words, args.limit, environment)

        for level in (0, 1):
            write_npz(folder / "in.npz", planes, level)
            tessera("import", str(folder / "in.npz") + "::x", folder / "a.zarr", "--chunks", CHUNKS)
            (folder / "in.npz").unlink()
            tessera("export", folder / "a.zarr", str(folder / "out.npz") + "::x", "--deflate", str(level))
            check_npz(folder / "out.npz", planes, level)
            (folder / "out.npz").unlink()
            shutil.rmtree(folder / "a.zarr")
            print(f"Python agrees: {'DEFLATE' if level else 'STORED'}, {planes} planes", flush=True)

        planes = planes * 4 // 5
        # (SIDE, SIDE, planes) in Fortran order has the bytes of (planes, SIDE, SIDE) in C order. Nothing is mapped while
        # the program is measured: the system would count this script's largest size as the program's.
        with open(folder / "in.npy", "wb") as file:
            header(file, (SIDE, SIDE, planes), fortran=True)
            for k in range(planes):
                file.write(plane(k).tobytes())
        read = tessera("import", folder / "in.npy", folder / "f.zarr", "--chunks", "128,128,64")
        data = planes * SIDE * SIDE * 4
        assert read < 3.1 * data, f"{read / data:.1f} passes over the data"
        tessera("export", folder / "f.zarr", folder / "out.npy", "--order", "C")
        out = numpy.load(folder / "out.npy", mmap_mode="r")
        assert out.shape == (SIDE, SIDE, planes) and out.flags.c_contiguous
        for k in range(0, planes, 64):  # a block of planes at a time, read back transposed
            block = numpy.stack([plane(p) for p in range(k, min(k + 64, planes))])
            assert numpy.array_equal(out[:, :, k : k + 64], block.transpose(2, 1, 0)), f"planes from {k} on differ"
        print(f"NumPy agrees: Fortran order, {planes} planes")


if __name__ == "__main__":
    main()
