#!/usr/bin/env python3
"""netCDF-4 to Zarr and back beside xarray, nccopy and cp: one deflated file, the same chunks, codec and level everywhere.

    /usr/bin/python3 tests/bench/netcdf.py [--program build/release/tools/tessera] [--folder /dev/shm] [--mib 2048]

Seconds and processor seconds; in each round all run one right after the other. Figures are ratios to the other program in the
same round. Copies where a chunk goes over as it stands are held against cp of the same file. One file has a filter that Zarr
does not have: libhdf5 reads it in helpers. What both make is compared.
"""
import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

try:
    import h5py
    import netCDF4
    import xarray
except ImportError:
    sys.exit("netcdf.py needs h5py, netCDF4 and xarray (Debian's python3-h5py, python3-netcdf4, python3-xarray)")

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--program", default="build/release/tools/tessera")
parser.add_argument("--folder", default="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
parser.add_argument("--mib", type=int, default=2048)
parser.add_argument("--rounds", type=int, default=2)
parser.add_argument("--only", type=int, help="the number of one comparison, from 0")
options = parser.parse_args()
PROGRAM = os.path.abspath(options.program)
STEPS, CHUNK, LEVEL = 16, (1, 512, 512), 1


def make(name, extra):
    """Smooth fields with noise, as measurements are."""
    n = int((options.mib * 2**20 / 4 / STEPS) ** 0.5) + 37  # not round
    random = np.random.default_rng(38)
    x = np.linspace(0, 20, n, dtype="f4")
    with h5py.File(name, "w") as file:
        d = file.create_dataset("a", (STEPS, n, n), "<f4", chunks=CHUNK, **extra)
        for length, dim in zip(d.shape, ("time", "y", "x")):
            file[dim] = np.arange(length)
            file[dim].make_scale(dim)
            d.dims[("time", "y", "x").index(dim)].attach_scale(file[dim])
        for i in range(STEPS):
            frame = np.sin(x + i)[:, None] * np.cos(x)[None] * 100
            d[i] = np.round(frame + random.normal(size=(n, n)).astype("f4"), 2)


def to_zarr():
    import numcodecs
    with xarray.open_dataset("x.nc", chunks={"time": 1, "y": 512, "x": 512}, decode_cf=False) as data:
        for name in data.variables:
            data[name].encoding = {}
        codec = {"compressor": numcodecs.Zlib(LEVEL), "filters": [numcodecs.Shuffle(4)], "chunks": CHUNK}
        data.to_zarr("theirs.zarr", encoding={"a": codec}, consolidated=False)


def child(function):
    """A function's time in a process of its own, which has all cores."""
    pid = os.fork()
    if pid == 0:
        try:
            function()
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    if os.waitpid(pid, 0)[1] != 0:
        sys.exit("a peer failed")


def run(*words):
    return lambda: subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


def tessera(*words):
    return run(PROGRAM, *words, "--durability", "none", "--quiet")


def seconds(function, made):
    shutil.rmtree(made, ignore_errors=True)
    if os.path.isfile(made):
        os.remove(made)
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    function()
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# Of each comparison: its name, what is wanted, our way and what it makes, theirs and what it makes.
COMPARISONS = [
    ("netCDF to Zarr, beside xarray's to_zarr", 0.35, tessera("copy", "x.nc::a", "ours.zarr", "--format", "v2"), "ours.zarr",
     lambda: child(to_zarr), "theirs.zarr"),
    ("the same, beside nccopy", 0.35, tessera("copy", "x.nc::a", "ours.zarr", "--format", "v2"), "ours.zarr",
     run("nccopy", "x.nc", "theirs.nc"), "theirs.nc"),
    ("the same, beside cp", 1.3, tessera("copy", "x.nc::a", "ours.zarr", "--format", "v2"), "ours.zarr",
     run("cp", "x.nc", "theirs.nc"), "theirs.nc"),
    ("Zarr to netCDF, beside nccopy", 0.6, tessera("copy", "ours.zarr", "ours.nc4", "--deflate", LEVEL), "ours.nc4",
     run("nccopy", "x.nc", "theirs.nc"), "theirs.nc"),
    ("a filter that only libhdf5 has, beside xarray's to_zarr", 1, tessera("copy", "filter.nc::a", "ours.zarr"), "ours.zarr",
     lambda: child(to_zarr, "filter.nc"), "theirs.zarr"),
]

with tempfile.TemporaryDirectory(dir=options.folder) as folder:
    os.chdir(folder)
    make("x.nc", {"compression": "gzip", "compression_opts": LEVEL, "shuffle": True})
    make("filter.nc", {"scaleoffset": 2})
    print(f"{options.mib} MiB of float32 in chunks of {CHUNK}, deflate {LEVEL} with shuffle: "
          f"{os.path.getsize('x.nc') >> 20} MiB in the file\n")
    if options.only is not None:
        tessera("copy", "x.nc::a", "ours.zarr", "--format", "v2")()
        COMPARISONS = [COMPARISONS[options.only]]
    for name, wanted, ours, made, theirs, other in COMPARISONS:
        rounds = [(seconds(ours, made), seconds(theirs, other)) for _ in range(options.rounds)]
        wall, work = ([(ours[i] / theirs[i]) for ours, theirs in rounds] for i in (0, 1))
        (w, p), (tw, tp) = rounds[-1]
        print(f"{name}: {statistics.median(wall):.2f} of its time, {statistics.median(work):.2f} of its processor time "
              f"(wanted {wanted}; {w:.2f} s and {p:.2f}, {tw:.2f} s and {tp:.2f})", flush=True)
    for one, other in ("x.nc::a", "ours.zarr"), ("child.zarr", "own.zarr"), ("ours.nc4", "theirs.nc::a"), ("theirs.zarr/a", "ours.zarr"):
        if all(os.path.exists(name.split("::")[0]) for name in (one, other)):
            subprocess.run([PROGRAM, "diff", one, other], check=True)
