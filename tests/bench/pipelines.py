#!/usr/bin/env python3
"""zarr-python 3 with each of its codec pipelines, and Tessera's module, on the same arrays.

    PYTHONPATH=build/release/tools/python build/peers/zarr31/bin/python tests/bench/pipelines.py [FOLDER]

One process for each pipeline; the best of three runs, as wall time and processor time in milliseconds. Nobody asks the disk
whether what was written is there. FOLDER is best on tmpfs. The last column is ours beside the best of the others, by
processor time. `zarr only` is what zarr itself takes before and after the pipeline: a pipeline that does nothing.
"""
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

PIPELINES = {"plain": "zarr.core.codec_pipeline.BatchedCodecPipeline", "fused": "zarr.core.codec_pipeline.FusedCodecPipeline",
             "zarrs": "zarrs.ZarrsCodecPipeline", "ours": "tessera.zarr.CodecPipeline", "module": None, "zarr only": None}
# Name: shape, chunks, shards.
ARRAYS = {"W1": ((256, 256, 512), (64, 64, 64), None), "W2": ((8192, 4096), (1024, 1024), None),
          "W3": ((2048, 4096), (32, 64), None), "shards": ((256, 256, 512), (32, 32, 32), (128, 128, 128))}


def elements(shape):
    """Smooth, with noise in the last bits, as measurements have it."""
    rng = np.random.default_rng(1)
    grid = np.add.outer(np.arange(shape[0]), np.arange(int(np.prod(shape[1:])))).reshape(shape)
    return (grid + rng.integers(0, 4, shape)).astype("f4")


def best(work, before=lambda: None):
    wall, processor = [], []
    for _ in range(3):
        before()
        start, cpu = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - start)
        processor.append(time.process_time() - cpu)
    return round(min(wall) * 1000, 1), round(min(processor) * 1000, 1)


def jobs(opened, values, name):
    """What is done with an array."""
    boxes = np.random.default_rng(2).integers(0, [n - 16 for n in values.shape], (100, values.ndim))
    yield "read", lambda: opened[...]
    yield "odd box", lambda: opened[tuple(slice(n // 5, n - n // 7) for n in values.shape)]
    yield "boxes", lambda: [opened[tuple(slice(i, i + 16) for i in box)] for box in boxes.tolist()]
    if values.ndim == 3:
        for axis in range(3):
            yield f"plane {axis}", lambda axis=axis: opened[tuple(100 if d == axis else slice(None) for d in range(3))]


def measure(pipeline, folder):
    """All figures of one pipeline."""
    import zarr
    result = {}
    if pipeline == "module":
        import tessera
    elif pipeline == "zarr only":
        class Nothing(zarr.core.codec_pipeline.BatchedCodecPipeline):
            async def read(self, batch_info, out, drop_axes=()):
                return ({"status": "present"},) * len(list(batch_info))

            async def write(self, batch_info, value, drop_axes=()):
                list(batch_info)

        zarr.registry.register_pipeline(Nothing)
        zarr.config.set({"codec_pipeline.path": f"{Nothing.__module__}.{Nothing.__qualname__}"})
    else:
        module, _, name = PIPELINES[pipeline].rpartition(".")
        getattr(importlib.import_module(module), name)
        zarr.config.set({"codec_pipeline.path": PIPELINES[pipeline]})
    for name, (shape, chunks, shards) in ARRAYS.items():
        values, place, new = elements(shape), folder / name, folder / f"{name}-new"
        if not place.exists():
            zarr.create_array(place, shape=shape, chunks=chunks, shards=shards, dtype="f4",
                              compressors=zarr.codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"))[...] = values
        opened = tessera.open(place) if pipeline == "module" else zarr.open_array(place, mode="r")
        for job, work in jobs(opened, values, name):
            result[f"{name} {job}"] = best(work)

        def create(new=new, place=place):
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            shutil.copy(place / "zarr.json", new)
            return tessera.open(new, "r+", durability="none") if pipeline == "module" else zarr.open_array(new, mode="r+")

        array = []
        result[f"{name} write"] = best(lambda: array[0].__setitem__(..., values), lambda: array.insert(0, create()))
        shutil.rmtree(new)
    return result


def main():
    if len(sys.argv) == 3:
        print(json.dumps(measure(sys.argv[1], pathlib.Path(sys.argv[2]))))
        return
    place = sys.argv[1] if len(sys.argv) > 1 else "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    found = {}
    with tempfile.TemporaryDirectory(dir=place) as folder:
        for pipeline in PIPELINES:
            done = subprocess.run([sys.executable, "-W", "ignore", __file__, pipeline, folder], text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if done.returncode == 0:
                found[pipeline] = json.loads(done.stdout)
            else:
                print(f"{pipeline}: left out: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
    print("| | " + " | ".join(found) + " | ours : best of the others |")
    print("|---|" + "---|" * (len(found) + 1))
    for job in found["plain"]:
        others = min(found[p][job][1] for p in ("fused", "zarrs", "plain") if p in found)
        cells = [f"{found[p][job][0]:.0f} ({found[p][job][1]:.0f})" for p in found]
        print(f"| {job} | " + " | ".join(cells) + f" | {found['ours'][job][1] / others:.2f} |")


if __name__ == "__main__":
    main()
