#!/usr/bin/env python3
"""The figures of tools/docs/howto_hpc.md: what codecs make of the data of tools/examples.

    choices.py [FOLDER]      FOLDER (default: a new temporary one, removed afterwards) holds the arrays

Takes the Python module of an optimised build: PYTHONPATH=build/release/tools/python. Prints tables in Markdown.
The elevation model, 344 x 403 int16, stands side by side with itself until it has 2752 x 3224 elements, 17 MiB: real
relief for the codecs, and no chunk of up to 344 elements sees the same twice.
"""
import os
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np
import tessera

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "tools/examples"
CODECS = ["none", "blosc:lz4:5:shuffle", "blosc:lz4:5:bitshuffle", "blosc:zstd:5:bitshuffle", "zlib:6", "zstd:3", "zstd:9"]


def median(function, rounds=3):
    """The median of the processor time of a call, all threads together, in milliseconds, after one that does not count."""
    function()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        function()
        times.append(1000 * (time.process_time() - start))
    return statistics.median(times)


def stored(path):
    """Bytes below a folder, without what Tessera keeps for itself."""
    return sum(entry.stat().st_size for entry in pathlib.Path(path).rglob("*")
               if entry.is_file() and ".tessera" not in entry.parts)


def row(*cells):
    print("|", " | ".join(str(cell) for cell in cells), "|", flush=True)


def codecs(name, values):
    print(f"\n{name}: {values.shape} {values.dtype}")
    row("codec", "ratio", "write all", "read all")
    row("---", "---", "---", "---")
    for codec in CODECS:
        array = tessera.create("codec.zarr", values.shape, values.dtype, format="v3", chunks=(256, 256), codec=codec,
                               overwrite=True, durability="none")
        array[...] = values
        ratio = values.nbytes / stored("codec.zarr")
        out = np.empty_like(values)
        writing = median(lambda: array.write(..., values))
        row(f"`{codec}`", f"{ratio:.2f}", f"{writing:.0f}", f"{median(lambda: array.read(out=out)):.0f}")


def main():
    dem = np.load(EXAMPLES / "jacksboro_fault_dem.npz")["elevation"]
    topo = np.load(EXAMPLES / "topobathy.npz")["topo"]
    with tempfile.TemporaryDirectory() as temporary:
        os.chdir(sys.argv[1] if len(sys.argv) > 1 else temporary)
        codecs("elevation, tiled", np.ascontiguousarray(np.tile(dem, (8, 8))))
        codecs("topobathy, tiled", np.ascontiguousarray(np.tile(topo, (20, 20))))


main()
