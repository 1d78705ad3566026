#!/usr/bin/env python3
"""Sealing with parity beside sealing without, repair, and par2 on the same tree.

    /usr/bin/python3 tests/bench/seal.py [--program build/release/tools/tessera] [--folder /dev/shm] [--mib 1024]

The archive is a float32 array of format v2 in chunks of about 1 MiB. Each figure is the least of --rounds wall-clock
times, the commands in turn within a round; processor seconds and the most memory belong to the same run. par2 (Debian's
package) creates 5 % in 2,000 blocks, once, with all cores; without it, its line is missing. What is repaired is checked
with sha256sum; nothing else is asserted.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--program", default="build/release/tools/tessera")
parser.add_argument("--folder", default="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
parser.add_argument("--mib", type=int, default=1024)
parser.add_argument("--rounds", type=int, default=3)
options = parser.parse_args()
PROGRAM = os.path.abspath(options.program)


class Run:
    """One command: its seconds, processor seconds and most memory in MiB."""

    def __init__(self, *words):
        begin = time.perf_counter()
        process = subprocess.Popen([str(w) for w in words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        error = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        self.seconds = time.perf_counter() - begin
        self.processor = usage.ru_utime + usage.ru_stime
        self.memory = usage.ru_maxrss / 1024
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"{' '.join(map(str, words[:8]))}: exit {process.returncode}\n{error}")


def make(path):
    """In a process of its own: a child's most memory includes what its parent had when it was forked."""
    if child := os.fork():
        return os.waitpid(child, 0)
    side = max(512, int((options.mib * 2**20 / 4) ** 0.5) // 512 * 512)
    random = np.random.default_rng(20)
    x = np.linspace(0, 20, side, dtype="f4")
    np.save("data.npy", (np.sin(x)[:, None] * np.cos(x)[None] * 100 + random.random((side, side), "f4")))
    Run(PROGRAM, "copy", "data.npy", path, "--format", "v2", "--chunks", "509,509", "--codec", "none", "--quiet")
    os.unlink("data.npy")
    os._exit(0)


def sealed(*words):
    shutil.rmtree("a.zarr/.tessera", ignore_errors=True)
    return Run(PROGRAM, "seal", "a.zarr", *words, "--quiet")


def repaired():
    """One lost chunk; whoever asks a second time gets the same."""
    sealed("--parity", "5%")
    chunks = sorted(p for p in pathlib.Path("a.zarr").iterdir() if not p.name.startswith("."))
    chunks[len(chunks) // 3].unlink()
    run = Run(PROGRAM, "repair", "a.zarr", "--quiet")
    subprocess.run(["sha256sum", "--check", "--quiet", ".tessera/sha256sums.txt"], cwd="a.zarr", check=True)
    return run


def par2():
    files = sorted(str(p.absolute()) for p in pathlib.Path("a.zarr").iterdir() if p.is_file())
    return Run("par2", "create", "-q", "-q", "-r5", "-b2000", "-B", os.getcwd(), "a.par2", *files)


JOBS = {
    "seal": lambda: sealed(),
    "seal --parity 5%": lambda: sealed("--parity", "5%"),
    "seal --parity 2": lambda: sealed("--parity", "2"),
    "verify": lambda: Run(PROGRAM, "verify", "a.zarr", "--quiet"),
    "repair of one lost chunk": repaired,
    "seal --parity 5% --max-memory 256M": lambda: sealed("--parity", "5%", "--max-memory", "256M"),
}


def main():
    make("a.zarr")
    files = [p for p in pathlib.Path("a.zarr").rglob("*") if p.is_file()]
    size = sum(p.stat().st_size for p in files)
    print(f"{size / 2**20:.0f} MiB in {len(files)} files, {os.cpu_count()} cores")
    best = {}
    for _ in range(options.rounds):
        for name, job in JOBS.items():
            run = job()
            if name not in best or run.seconds < best[name].seconds:
                best[name] = run
    if shutil.which("par2"):
        sealed()
        best["par2 create -r5 -b2000"] = par2()
    plain = best["seal"].seconds
    print(f"{'':36} {'seconds':>8} {'of seal':>8} {'processor':>10} {'MiB':>6}")
    for name, run in best.items():
        print(f"{name:36} {run.seconds:8.2f} {run.seconds / plain:8.2f} {run.processor:10.2f} {run.memory:6.0f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        os.chdir(folder)
        main()
        os.chdir("/")
