#!/usr/bin/env python3
"""What reading through `tessera mount` takes, beside `export` and `get`, and beside a netCDF-4 file of the same array.

    /usr/bin/python3 tests/bench/mount.py [--program build/release/tools/tessera] [--folder /dev/shm] [--mib 2048]

Figures are ratios of medians within one run, everything in the file system's cache; nothing is asserted.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import netCDF4
import numpy as np

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--program", default="build/release/tools/tessera")
parser.add_argument("--folder", default="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
parser.add_argument("--mib", type=int, default=2048)
parser.add_argument("--rounds", type=int, default=3)
options = parser.parse_args()
PROGRAM = os.path.abspath(options.program)


def timed(job):
    begin = time.perf_counter()
    job()
    return time.perf_counter() - begin


def compare(what, mounted, other, name):
    """Runs both in turn."""
    pairs = [(timed(mounted), timed(other)) for _ in range(options.rounds)]
    ours, theirs = (statistics.median(times) for times in zip(*pairs))
    print(f"{what}: {ours:.2f} s, {name} {theirs:.2f} s, ratio {ours / theirs:.2f}", flush=True)


def read_all(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass


def mean(path):
    with netCDF4.Dataset(path) as data:
        total = sum(float(data["packed"][i].sum()) for i in range(len(data["packed"])))
    assert total == total


with tempfile.TemporaryDirectory(dir=options.folder) as top:
    os.chdir(top)
    tessera = lambda *words: subprocess.run([PROGRAM, *words, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    rows = max(1, options.mib * (1 << 20) // (512 * 512 * 4))
    rng = np.random.default_rng(1)
    plane = np.cumsum(rng.normal(size=(512, 512)), axis=0).astype("<f4")
    values = np.lib.format.open_memmap("a.npy", "w+", "<f4", (rows, 512, 512))
    for i in range(rows):
        values[i] = plane + i
    del values
    tessera("group", "g", "--format", "v3")
    tessera("copy", "a.npy", "g/a", "--format", "v3", "--chunks", "64,128,128", "--dims", "t,y,x")
    os.remove("a.npy")
    with netCDF4.Dataset("packed.nc", "w") as data:
        for name, size in {"t": min(rows, 256), "y": 512, "x": 512}.items():
            data.createDimension(name, size)
        packed = data.createVariable("packed", "i2", ("t", "y", "x"), zlib=True, chunksizes=(16, 128, 128))
        packed.scale_factor = 0.5
        for i in range(len(packed)):
            packed[i] = plane
    tessera("copy", "packed.nc", "p")
    folders = {}
    for name, path, order in (("g", "g", "C"), ("f", "g", "F"), ("p", "p", "C")):
        folders[name] = pathlib.Path(f"shown-{name}")
        folders[name].mkdir()
        process = subprocess.Popen([PROGRAM, "mount", path, folders[name], "--order", order], stdout=subprocess.PIPE)
        process.stdout.readline()
    try:
        compare("all of it", lambda: read_all(folders["g"] / "a.npy"),
                lambda: tessera("export", "g/a", "out.npy", "--overwrite"), "export")
        compare("a plane along the slowest dimension", lambda: np.load(folders["g"] / "a.npy", mmap_mode="r")[rows // 2].sum(),
                lambda: tessera("get", "g/a", str(rows // 2), "--out", "plane.npy", "--overwrite"), "get")
        compare("a plane across", lambda: np.load(folders["g"] / "a.npy", mmap_mode="r")[:, :, 5].sum(),
                lambda: tessera("get", "g/a", ":, :, 5", "--out", "plane.npy", "--overwrite"), "get")
        compare("the same of a file in Fortran order", lambda: np.load(folders["f"] / "a.npy", mmap_mode="r")[:, :, 5].sum(),
                lambda: tessera("get", "g/a", ":, :, 5", "--out", "plane.npy", "--overwrite"), "get")
        compare("a mean by netCDF4-python", lambda: mean(folders["p"] / "p.nc"), lambda: mean("packed.nc"), "of netCDF-4")
    finally:
        for folder in folders.values():
            subprocess.run(["fusermount3", "-u", folder], check=True)
