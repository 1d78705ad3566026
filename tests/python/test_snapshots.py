"""Snapshots made by the program, read by zarrita: plain Zarr stores of v2 and v3, shards too."""

import os
import pathlib
import subprocess
import tempfile

import numpy as np

import peers

peers.require_zarr2()
PROGRAM = os.environ["TESSERA_PROGRAM"]
LAYOUTS = {"v2": ["--format", "v2", "--chunks", "2,5"], "v3": ["--format", "v3", "--chunks", "2,5"],
           "sharded": ["--format", "v3", "--chunks", "1,5", "--shard", "3,10"]}


def main():
    values = np.arange(60, dtype="<i4").reshape(6, 10)
    peers.require("zarrita")
    zarrita = peers.Zarrita()
    with tempfile.TemporaryDirectory(prefix="tessera-test-") as name:
        folder = pathlib.Path(name)
        np.save(folder / "values.npy", values)

        def tessera(*words):
            subprocess.run([PROGRAM, *words, "--quiet"], cwd=folder, check=True)

        for name, layout in LAYOUTS.items():
            tessera("import", "values.npy", name, *layout)
            tessera("snapshot", name, "create", "before")
            tessera("set", name, "...", "7")
            got = zarrita.read(folder / f"{name}.snapshots" / "before")
            assert got.dtype == values.dtype and np.array_equal(got, values), f"{name}: {got}"
            assert (zarrita.read(folder / name) == 7).all(), name
    zarrita.close()


main()
