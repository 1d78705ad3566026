#!/usr/bin/python3
"""How much faster two threads are than one: import, export and full read of a float32 cube in chunks of 64³.

    scaling.py PROGRAM [--side 512] [--threads 2] [--folder DIR]

Reports seconds (the least of three runs) and the ratio to one thread. A measurement, not a test: it asserts nothing.
"""
import argparse
import pathlib
import shutil
import subprocess
import tempfile
import time

import numpy


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", help="where to work (default: the folder for temporary files)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        folder = pathlib.Path(folder)
        # Smooth with some noise, as measured grids are: compressible, but not for nothing.
        axis = numpy.linspace(0, 20, args.side, dtype="f4")
        noise = numpy.random.default_rng(1).normal(0, 0.001, (args.side, args.side)).astype("f4")
        cube = numpy.lib.format.open_memmap(folder / "in.npy", "w+", "f4", (args.side,) * 3)
        for k in range(args.side):
            cube[k] = numpy.sin(axis[:, None] + axis[k]) * numpy.cos(axis[None, :]) + noise
        del cube

        def seconds(threads, *words):
            best = float("inf")
            for _ in range(3):
                shutil.rmtree(folder / "new.zarr", ignore_errors=True)
                (folder / "new.npy").unlink(missing_ok=True)
                start = time.monotonic()
                subprocess.run([args.program, *words, "--quiet", "--threads", str(threads)], check=True,
                               stdout=subprocess.DEVNULL)
                best = min(best, time.monotonic() - start)
            return best

        subprocess.run([args.program, "import", folder / "in.npy", folder / "a.zarr", "--chunks", "64,64,64", "--quiet"],
                       check=True)
        cases = {
            "import": ("import", folder / "in.npy", folder / "new.zarr", "--chunks", "64,64,64"),
            "export": ("export", folder / "a.zarr", folder / "new.npy"),
            "read all": ("get", folder / "a.zarr", "...", "--out", folder / "new.npy"),
        }
        print(f"{args.side}³ float32, {args.side ** 3 * 4 / 2**20:.0f} MiB")
        for name, words in cases.items():
            one, many = seconds(1, *words), seconds(args.threads, *words)
            print(f"{name:10} 1 thread {one:6.2f} s   {args.threads} threads {many:6.2f} s   ratio {many / one:.2f}", flush=True)


if __name__ == "__main__":
    main()
