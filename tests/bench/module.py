#!/usr/bin/env python3
"""The Python module beside zarr-python 2: what one call costs, elements at many places, and 512 MiB into memory.

    /usr/bin/python3 tests/bench/module.py [--module build/release/tools/python] [--folder /dev/shm] [--mib 512]

Figures are the best of several runs; nothing is asserted.
"""
import argparse
import os
import shutil
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--module", help="the folder of the package (default: where Python finds it)")
parser.add_argument("--folder", default="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
parser.add_argument("--mib", type=int, default=512)
options = parser.parse_args()
if options.module:
    sys.path.insert(0, options.module)

import numpy as np  # noqa: E402
import tessera  # noqa: E402

try:
    import zarr
except ImportError:
    zarr = None


def best(function, rounds=5, repeat=1):
    """Seconds of one call."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(repeat):
            function()
        times.append((time.perf_counter() - begin) / repeat)
    return min(times)


def report(what, ours, theirs=None, bytes_=None):
    text = f"{what:44} {ours * 1e3:10.3f} ms"
    if bytes_ is not None:
        text += f" {bytes_ / ours / (1 << 30):6.2f} GiB/s"
    if theirs is not None:
        text += f"   zarr {theirs * 1e3:10.3f} ms   {theirs / ours:5.1f} times as fast"
    print(text, flush=True)


def calls():
    values = np.arange(1_000_000, dtype="<i4").reshape(1000, 1000)
    for format in ("v2", "v3", "zmeta"):
        tessera.save(f"small-{format}.zarr", values, chunks=(100, 100), format=format)
    theirs = best(lambda: zarr.open("small-v2.zarr", mode="r")[5, 7], repeat=50) if zarr else None
    for format in ("v2", "v3", "zmeta"):
        report(f"open and read one element, {format}", best(lambda: tessera.open(f"small-{format}.zarr")[5, 7], repeat=100),
               theirs if format == "v2" else None)
    np.save("small.npy", values)
    report("open and read one element, .npy", best(lambda: tessera.open("small.npy")[5, 7], repeat=100))
    a = tessera.open("small-v2.zarr", "r+", durability="none")
    z = zarr.open("small-v2.zarr", mode="r+") if zarr else None
    report("a[5, 7]", best(lambda: a[5, 7], repeat=200), z and best(lambda: z[5, 7], repeat=50))
    report("a[5:50, 7:60]", best(lambda: a[5:50, 7:60], repeat=200), z and best(lambda: z[5:50, 7:60], repeat=50))
    report("a.shape", best(lambda: a.shape, repeat=1000))
    report("a[5, 7] = 3", best(lambda: a.__setitem__((5, 7), 3), repeat=100),
           z and best(lambda: z.__setitem__((5, 7), 3), repeat=50))


def places():
    rng = np.random.default_rng(1)
    for shape, chunks, count in (((4000, 4000), (200, 200), 1000), ((4000, 4000), (200, 200), 100_000),
                                 ((4_000_000,), (10_000,), 10_000)):
        tessera.save("places.zarr", np.arange(np.prod(shape), dtype="<f4").reshape(shape), chunks=chunks, format="v2",
                     overwrite=True)
        where = tuple(rng.integers(0, n, count) for n in shape)
        a = tessera.open("places.zarr")
        z = zarr.open("places.zarr", mode="r") if zarr else None
        assert z is None or np.array_equal(a.vindex[where], z.vindex[where])
        report(f"vindex, {count} elements of {shape}", best(lambda: a.vindex[where]), z and best(lambda: z.vindex[where], 3))


def whole():
    rows = options.mib << 20 >> 14
    values = np.random.default_rng(1).integers(0, 100, (rows, 1 << 12), "<i4")
    for codec in ("blosc:lz4:5:shuffle", "zstd:3"):
        begin = time.perf_counter()
        tessera.save("whole.zarr", values, chunks=(512, 512), format="v2", codec=codec, overwrite=True)
        report(f"write {options.mib} MiB, {codec}", time.perf_counter() - begin, bytes_=values.nbytes)
        a = tessera.open("whole.zarr")
        out = np.empty(values.shape, values.dtype)
        z = zarr.open("whole.zarr", mode="r") if zarr else None
        theirs = z and best(lambda: z.get_basic_selection(out=out), 2)
        report("  read into np.empty, touched before", best(lambda: a.read(out=out), 3), theirs, values.nbytes)
        report("  read into fresh memory: a[...]", best(lambda: a[...], 3), None, values.nbytes)
        wide = np.empty((rows, 1 << 13), values.dtype)
        report("  into a slice of a larger array", best(lambda: a.read(out=wide[:, 100:100 + (1 << 12)]), 3), None, values.nbytes)
        fortran = np.empty(values.shape, values.dtype, order="F")
        report("  into a Fortran array", best(lambda: a.read(out=fortran), 2), None, values.nbytes)
        assert np.array_equal(out, values) and np.array_equal(fortran, values)


def main():
    folder = tempfile.mkdtemp(dir=options.folder)
    before = os.getcwd()
    try:
        os.chdir(folder)
        calls()
        places()
        whole()
    finally:
        os.chdir(before)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
