#!/usr/bin/env python3
"""Everyday jobs of the program beside what a user would write with NumPy and zarr-python 2, on an array larger than memory
that either may take.

    /usr/bin/python3 tests/bench/jobs.py [--program build/release/tools/tessera] [--folder /dev/shm] [--mib 2048] [--day]

The array is float32, in chunks of about 1 MiB (blosc lz4). The program works within --max-memory 256M, with as many
threads as there are cores; the loops of NumPy take one row of chunks at a time. GDAL and
NCO do the same where they are installed and have such a command. Each job that writes makes a new array, once after
a time that is not counted. For verify the loop only reads: zarr checks nothing more. Seconds, processor seconds and the most memory of the program are printed; what both make is compared, and
nothing else is asserted.

--day: instead the jobs of a scientist's day on a data set, beside CDO, NCO and xarray (day_jobs.py).
"""
import argparse
import hashlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

import day_jobs

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--program", default="build/release/tools/tessera")
parser.add_argument("--folder", default="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
parser.add_argument("--mib", type=int, default=2048)
parser.add_argument("--max-memory", default="256M")
parser.add_argument("--only", help="names of jobs, with commas between them")
parser.add_argument("--day", action="store_true", help="jobs on a data set")
parser.add_argument("--rounds", type=int, default=1, help="of --day: how often each is run; the least time counts")
options = parser.parse_args()
try:
    import zarr
    from numcodecs import Blosc
except ImportError:
    if not options.day:
        sys.exit("jobs.py needs zarr-python 2 (Debian's python3-zarr)")
PROGRAM = os.path.abspath(options.program)

STEPS = 16  # the array is so many frames
CHUNK = 512


def side():
    return max(CHUNK, int((options.mib * 2**20 / 4 / STEPS) ** 0.5) // CHUNK * CHUNK)


def source():
    """Smooth fields with noise, as measurements are."""
    n = side()
    random = np.random.default_rng(18)
    array = zarr.open("a.zarr", mode="w", shape=(STEPS, n, n), chunks=(1, CHUNK, CHUNK), dtype="<f4",
                      compressor=Blosc("lz4", 5, Blosc.SHUFFLE))
    x = np.linspace(0, 20, n, dtype="f4")
    whole = np.lib.format.open_memmap("a.npy", mode="w+", dtype="<f4", shape=(STEPS, n, n))
    for i in range(STEPS):
        frame = np.sin(x + i)[:, None] * np.cos(x)[None] * 100
        array[i] = np.round(frame + random.normal(size=(n, n)).astype("f4"), 2)
        whole[i] = array[i]
        np.save(f"frame-{i:02}.npy", whole[i])
    return array


def like(name, shape, chunks, dtype="<f4"):
    return zarr.open(name, mode="w", shape=shape, chunks=chunks, dtype=dtype, compressor=Blosc("lz4", 5, Blosc.SHUFFLE))


def rows(array):
    for i in range(array.shape[0]):
        for y in range(0, array.shape[1], CHUNK):
            yield i, slice(y, y + CHUNK)


def calc(a):
    out = like("their-calc.zarr", a.shape, a.chunks)
    for i, y in rows(a):
        block = a[i, y]
        out[i, y] = np.where(block < 0, np.float32(0), block * np.float32(0.1) + 1)


def reduce(a):
    out = like("their-reduce.zarr", a.shape[1:], a.chunks[1:])
    for y in range(0, a.shape[1], CHUNK):
        total = np.zeros((min(CHUNK, a.shape[1] - y), a.shape[2]))
        for i in range(a.shape[0]):
            total += a[i, y:y + CHUNK]
        out[y:y + CHUNK] = total / a.shape[0]


def coarsen(a):
    out = like("their-coarsen.zarr", (a.shape[0], a.shape[1] // 4, a.shape[2] // 4), a.chunks)
    for i, y in rows(a):
        block = a[i, y]
        small = block.reshape(block.shape[0] // 4, 4, -1, 4).mean((1, 3), dtype="f8")
        out[i, y.start // 4:y.start // 4 + small.shape[0]] = small


def stack(a):
    out = like("their-stack.zarr", a.shape, a.chunks)
    for i in range(STEPS):
        out[i] = np.load(f"frame-{i:02}.npy", mmap_mode="r")


def importing(a):
    whole = np.load("a.npy", mmap_mode="r")
    out = like("their-import.zarr", a.shape, a.chunks)
    for i, y in rows(a):
        out[i, y] = whole[i, y]


def exporting(a):
    whole = np.lib.format.open_memmap("their-export.npy", mode="w+", dtype=a.dtype, shape=a.shape)
    for i, y in rows(a):
        whole[i, y] = a[i, y]


def rechunk(a):
    out = like("their-rechunk.zarr", a.shape, (STEPS, CHUNK // 4, CHUNK // 4))
    for y in range(0, a.shape[1], CHUNK):
        out[:, y:y + CHUNK] = a[:, y:y + CHUNK]


def compress(a):
    out = zarr.open("their-compress.zarr", mode="w", shape=a.shape, chunks=a.chunks, dtype=a.dtype,
                    compressor=Blosc("zstd", 5, Blosc.BITSHUFFLE))
    for i, y in rows(a):
        out[i, y] = a[i, y]


def plane(a):
    np.save("their-plane.npy", a[:, :, a.shape[2] // 2])


def whole(a):
    for i, y in rows(a):
        a[i, y]


def digest(a):
    sums = hashlib.sha256()
    for i, y in rows(a):
        sums.update(a[i, y])


def stats(a):
    low, high, total, squares = np.inf, -np.inf, 0.0, 0.0
    for i, y in rows(a):
        block = a[i, y].astype("f8")
        low, high = min(low, block.min()), max(high, block.max())
        total, squares = total + block.sum(), squares + np.square(block).sum()
    mean = total / a.size
    return low, high, mean, (squares / a.size - mean**2) ** 0.5


LIKE_ZARR = ["--codec", "blosc:lz4:5:shuffle", "--format", "v2"]
JOBS = {
    "import": (["import", "a.npy", "import.zarr", "--chunks", f"1,{CHUNK},{CHUNK}", *LIKE_ZARR], importing),
    "export": (["export", "a.zarr", "export.npy"], exporting),
    "rechunk": (["rechunk", "a.zarr", "rechunk.zarr", "--chunks", f"{STEPS},{CHUNK // 4},{CHUNK // 4}"], rechunk),
    "compress": (["copy", "a.zarr", "compress.zarr", "--codec", "blosc:zstd:5:bitshuffle"], compress),
    "plane": (["export", "a.zarr", "plane.npy", "--sel", f":, :, {side() // 2}"], plane),
    "verify": (["verify", "a.zarr"], whole),
    "digest": (["digest", "a.zarr"], digest),
    "calc": (["calc", "calc.zarr", "where(a < 0, 0, a * 0.1 + 1)", "a=a.zarr"], calc),
    "reduce": (["reduce", "a.zarr", "reduce.zarr", "--axis", "0", "--with", "mean"], reduce),
    "coarsen": (["coarsen", "a.zarr", "coarsen.zarr", "--by", "1,4,4"], coarsen),
    "stack": (["stack", "frame-*.npy", "stack.zarr", "--chunks", f"1,{CHUNK},{CHUNK}", *LIKE_ZARR], stack),
    "stats": (["stats", "a.zarr", "--bins", "0"], stats),
}


def ours(words):
    """Seconds, processor seconds, and MiB at most."""
    begin = time.perf_counter()
    child = subprocess.Popen([PROGRAM, *words, "--quiet", "--max-memory", options.max_memory, "--durability", "none"],
                             stdout=subprocess.DEVNULL)
    # ru_maxrss of a child begins with the memory of this process.
    memory, pid = 0, 0
    while pid == 0:
        try:
            with open(f"/proc/{child.pid}/status", encoding="ascii") as status:
                memory = max([memory] + [int(line.split()[1]) for line in status if line.startswith("VmHWM")])
        except OSError:
            pass
        time.sleep(0.005)
        pid, status, used = os.wait4(child.pid, os.WNOHANG)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"tessera {' '.join(words)}: {child.returncode}")
    return time.perf_counter() - begin, used.ru_utime + used.ru_stime, memory / 1024


def theirs(job, array):
    before = resource.getrusage(resource.RUSAGE_SELF)
    begin = time.perf_counter()
    job(array)
    seconds = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_SELF)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# What other programs do with the same arrays, where they are installed: GDAL one frame at a time, because a raster of it is
# two-dimensional, and NCO from and to netCDF without compression, which is what costs it least.
FRAMES = range(STEPS)
OTHERS = {
    "calc": ("ncap2", [["ncap2", "-O", "-v", "-s", "b=(a >= 0) * (a * 0.1f + 1.0f)", "a.nc", "other.nc"]]),
    "reduce": ("ncwa", [["ncwa", "-O", "-a", "dim0", "a.nc", "other.nc"]]),
    "coarsen": ("gdal_translate", [["gdal_translate", "-q", "-of", "Zarr", "-co", "COMPRESS=BLOSC", "-r", "average",
                                    "-outsize", "25%", "25%", f'ZARR:"a.zarr":/a:{i}', f"other-{i}.zarr"] for i in FRAMES]),
    "stats": ("gdalinfo", [["gdalinfo", "-stats", f'ZARR:"a.zarr":/a:{i}'] for i in FRAMES]),
}


def remove_others():
    for name in os.listdir("."):
        if name.startswith("other") or name.endswith(".aux.xml"):
            shutil.rmtree(name) if os.path.isdir(name) else os.remove(name)


def remove(name):
    shutil.rmtree(f"{name}.zarr", ignore_errors=True)
    if os.path.exists(f"{name}.npy"):
        os.remove(f"{name}.npy")


def another(name):
    """The program and its seconds, or nothing where it is absent."""
    program, commands = OTHERS.get(name, (None, []))
    if program is None or shutil.which(program) is None or not os.path.exists("a.nc"):
        return ""
    seconds = 0
    for _ in range(2):
        remove_others()
        begin = time.perf_counter()
        for words in commands:
            limited = ["prlimit", f"--as={8 << 30}", *words]
            if subprocess.run(limited, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
                remove_others()
                return f"{program} failed within 8 GiB"
        seconds = time.perf_counter() - begin
    remove_others()
    return f"{program} {seconds:.2f} s"


def compare(name):
    """Both results, which may differ in the last place where sums are rounded."""
    if os.path.exists(f"{name}.npy"):
        made, wanted = np.load(f"{name}.npy", mmap_mode="r"), np.load(f"their-{name}.npy", mmap_mode="r")
    elif os.path.exists(f"{name}.zarr"):
        made, wanted = zarr.open(f"{name}.zarr", mode="r"), zarr.open(f"their-{name}.zarr", mode="r")
    else:  # a job that only reads
        return
    assert made.shape == wanted.shape, (name, made.shape, wanted.shape)
    for index in range(made.shape[0]) if made.ndim == 3 else [...]:
        np.testing.assert_allclose(made[index], wanted[index], rtol=1e-5, atol=1e-5, err_msg=name)


def main():
    array = source()
    print(f"{array.shape} float32, {array.nbytes >> 20} MiB, {array.nbytes_stored >> 20} MiB stored")
    if shutil.which("gdalmdimtranslate"):
        subprocess.run(["gdalmdimtranslate", "-q", "-of", "netCDF", "a.zarr", "a.nc"], check=True)
    print(f"{'':10}{'tessera s':>12}{'cpu s':>9}{'MiB':>8}{'zarr s':>12}{'cpu s':>9}{'times':>8}  another program")
    for name, (words, job) in JOBS.items():
        if options.only and name not in options.only.split(","):
            continue
        for _ in range(2):
            remove(name)
            seconds, cpu, memory = ours(words)
            remove(f"their-{name}")
            other, other_cpu = theirs(job, array)
            compare(name)
        remove(name)
        remove(f"their-{name}")
        print(f"{name:10}{seconds:12.2f}{cpu:9.2f}{memory:8.0f}{other:12.2f}{other_cpu:9.2f}{other / seconds:8.2f}"
              f"  {another(name)}", flush=True)


if __name__ == "__main__":
    folder = tempfile.mkdtemp(prefix="tessera-jobs-", dir=options.folder)
    back = os.getcwd()
    try:
        os.chdir(folder)
        day_jobs.main(options, PROGRAM) if options.day else main()
    finally:
        os.chdir(back)
        shutil.rmtree(folder, ignore_errors=True)
