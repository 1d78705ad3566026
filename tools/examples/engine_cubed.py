#!/usr/bin/env python3
"""Rechunk an array, and take its mean over the first axis, with cubed, whose workers read and write by Tessera.

    engine_cubed.py SOURCE TARGET MEAN CHUNKS [EXECUTOR]    CHUNKS as 64,64; EXECUTOR: processes, threads, ray, lithops …

cubed computes with arrays of zarr-python; the variable makes each of them Tessera's, also in other processes.
"""
import os
import sys
import tempfile

os.environ["ZARR_CODEC_PIPELINE__PATH"] = "tessera.zarr.CodecPipeline"  # before zarr is imported

import cubed
import cubed.array_api as xp
import tessera.zarr  # noqa: F401


def main(source, target, mean, chunks, executor):
    with tempfile.TemporaryDirectory() as work:
        spec = cubed.Spec(work, allowed_mem="500MB", executor_name=executor)
        array = cubed.from_zarr(source, spec=spec)
        tiles = array.rechunk(chunks)
        cubed.store([tiles, xp.mean(array, axis=0)], [target, mean])


if __name__ == "__main__":
    main(*sys.argv[1:4], tuple(int(n) for n in sys.argv[4].split(",")), (*sys.argv[5:], "processes")[0])
