#!/usr/bin/env python3
"""zarr-python 3 with each of its codec pipelines, Tessera's module, and other libraries, on the same arrays.

    tests/peers/run zarr34        makes the environments, and zarrs' program
    PYTHONPATH=build/peers/module-313/tools/python build/peers/zarr34/bin/python tests/bench/pipelines.py [OPTIONS]

    --folder DIR       default /dev/shm
    --large            the three layouts of zarrs/zarr_benchmarks (raw, compressed, sharded), 1 GiB each
    --only A,B         some of the libraries
    --rounds N         all of it N times over (default 1), of which the least counts: for a machine with other work
    --table ratio      processor time beside Tessera's module, instead of milliseconds

One process for each library; the best of three runs, as wall time and processor time in milliseconds, which other work on
the machine changes less. Nobody asks the disk whether what was written is there. `zarr only` is what zarr itself takes before
and after the pipeline: a pipeline that does nothing. zarrs (Rust) is tests/peers/zarrs, a process that is asked; b2nd is
python-blosc2 with a file for each array, whose chunks are the shards and whose blocks are the chunks, where there are shards.
`c-blosc alone` is the floor under whoever compresses with it: the same chunks from memory to one scratch buffer and back, by
the same level and shuffle, without files, copies or anything else; it is read and written whole only.
"""
import argparse
import ctypes
import ctypes.util
import importlib
import itertools
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
             "zarrs": "zarrs.ZarrsCodecPipeline", "ours": "tessera.zarr.CodecPipeline", "zarr only": None}
# Name: shape, chunks, shards.
ARRAYS = {"W1": ((256, 256, 512), (64, 64, 64), None), "W2": ((8192, 4096), (1024, 1024), None),
          "W3": ((2048, 4096), (32, 64), None), "shards": ((256, 256, 512), (32, 32, 32), (128, 128, 128))}
LARGE = {"raw": ((512, 512, 1024), (128, 128, 128), None), "compressed": ((512, 512, 1024), (128, 128, 128), None),
         "sharded": ((512, 512, 1024), (32, 32, 32), (256, 256, 256))}
HERE = pathlib.Path(__file__).resolve().parent


def elements(shape):
    """Smooth, with noise in the last bits, as measurements have it."""
    rng = np.random.default_rng(1)
    grid = np.add.outer(np.arange(shape[0]), np.arange(int(np.prod(shape[1:])))).reshape(shape)
    return (grid + rng.integers(0, 4, shape)).astype("f4")


def best(work, before, clock):
    """The least of three runs; nothing where the library does not do that."""
    wall, processor = [], []
    for _ in range(3):
        before()
        start, cpu = time.perf_counter(), clock()
        try:
            work()
        except NotImplementedError:
            return None
        wall.append(time.perf_counter() - start)
        processor.append(clock() - cpu)
    return round(min(wall) * 1000, 1), round(min(processor) * 1000, 1)


class Library:
    """What is asked: an array at a place, opened once; and a new one like it, into which everything is written."""

    clock = staticmethod(time.process_time)

    def opened(self, place):
        raise NotImplementedError

    def read(self, array, key):
        return array[key]

    def boxes(self, array, starts):
        for start in starts:
            self.read(array, tuple(slice(i, i + 16) for i in start))

    def create(self, place, new):
        """A new array at `new` with the metadata of that at `place`."""
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        shutil.copy(place / "zarr.json", new)
        return self.opened(new)

    def write(self, array, values):
        array[...] = values


class Zarr(Library):
    def __init__(self, pipeline):
        import zarr
        self.zarr, path = zarr, PIPELINES[pipeline]
        if path is None:
            class Nothing(zarr.core.codec_pipeline.BatchedCodecPipeline):
                async def read(self, batch_info, out, drop_axes=()):
                    return ({"status": "present"},) * len(list(batch_info))

                async def write(self, batch_info, value, drop_axes=()):
                    list(batch_info)

            zarr.registry.register_pipeline(Nothing)
            path = f"{Nothing.__module__}.{Nothing.__qualname__}"
        else:
            module, _, name = path.rpartition(".")
            getattr(importlib.import_module(module), name)
        zarr.config.set({"codec_pipeline.path": path})

    def opened(self, place):
        return self.zarr.open_array(place, mode="r+")


class Module(Library):
    def opened(self, place):
        import tessera
        return tessera.open(place, "r+", durability="none")


class TensorStore(Library):
    def opened(self, place):
        import tensorstore
        return tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": str(place)}, "context": {
            "cache_pool": {"total_bytes_limit": 0}, "file_io_sync": False}}, open=True).result()

    def read(self, array, key):
        return array[key].read().result()

    def write(self, array, values):
        array.write(values).result()


class B2nd(Library):
    def file(self, place, values=None):
        import blosc2
        about = json.loads((place / "zarr.json").read_text())
        chunks, codecs = about["chunk_grid"]["configuration"]["chunk_shape"], about["codecs"]
        blocks = codecs[0]["configuration"]["chunk_shape"] if codecs[0]["name"] == "sharding_indexed" else None
        cparams = {"codec": blosc2.Codec.LZ4, "clevel": 5 if "blosc" in json.dumps(codecs) else 0}
        options = {"urlpath": f"{place}.b2nd", "mode": "w", "chunks": chunks, "blocks": blocks, "cparams": cparams}
        return blosc2.asarray(values, **options) if values is not None else blosc2.empty(about["shape"], np.dtype("f4"), **options)

    def opened(self, place):
        import blosc2
        if not os.path.exists(f"{place}.b2nd"):
            import tessera
            self.file(place, tessera.open(place)[...])
        return blosc2.open(f"{place}.b2nd", mode="r")

    def create(self, place, new):
        new.mkdir(exist_ok=True)
        shutil.copy(place / "zarr.json", new)
        return self.file(new)


class Zarrs(Library):
    def __init__(self):
        program = HERE.parent.parent / "build" / "peers" / "zarrs" / "release" / "peer"
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def clock(self):
        return time.clock_gettime((~self.process.pid << 3) | 2)  # the processor time of another process

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert "error" not in answer, answer

    def opened(self, place):
        return place, json.loads((place / "zarr.json").read_text())["shape"]

    def read(self, array, key):
        place, shape = array
        key = (slice(None),) * len(shape) if key is ... else key
        ranges = [(k, k + 1) if isinstance(k, int) else k.indices(n)[:2] for k, n in zip(key, shape)]
        self.ask(do="read", path=str(place), start=[a for a, _ in ranges], shape=[b - a for a, b in ranges])

    def boxes(self, array, starts):
        self.ask(do="boxes", path=str(array[0]), starts=starts, shape=[16] * len(array[1]))

    def create(self, place, new):
        shutil.rmtree(new, ignore_errors=True)
        self.ask(do="copy", **{"from": str(place)}, path=str(new), metadata=json.loads((place / "zarr.json").read_text()))
        return place, new

    def write(self, array, values):
        self.ask(do="copy", **{"from": str(array[0])}, path=str(array[1]))


class Blosc(Library):
    def __init__(self):
        self.library = ctypes.CDLL(ctypes.util.find_library("blosc") or "libblosc.so.1")
        size = ctypes.c_size_t
        self.library.blosc_compress_ctx.argtypes = [ctypes.c_int, ctypes.c_int, size, size, ctypes.c_void_p, ctypes.c_void_p, size,
                                                    ctypes.c_char_p, size, ctypes.c_int]
        self.library.blosc_decompress_ctx.argtypes = [ctypes.c_void_p, ctypes.c_void_p, size, ctypes.c_int]

    def opened(self, place):
        """Its chunks from one after the other in memory, each compressed, and a scratch buffer."""
        about = json.loads((place / "zarr.json").read_text())
        shape, chunk, codecs = about["shape"], about["chunk_grid"]["configuration"]["chunk_shape"], about["codecs"]
        if codecs[0]["name"] == "sharding_indexed":
            chunk = codecs[0]["configuration"]["chunk_shape"]
        if "blosc" not in json.dumps(codecs):
            return None
        values = elements(shape)
        places = itertools.product(*(range(0, n, step) for n, step in zip(shape, chunk)))
        chunks = [values[tuple(slice(i, i + step) for i, step in zip(place, chunk))].copy() for place in places]
        scratch = np.zeros(chunks[0].nbytes + 16, "u1")
        return chunks, [scratch[:self.compressed(one, scratch)].copy() for one in chunks], scratch

    def compressed(self, chunk, scratch):
        done = self.library.blosc_compress_ctx(5, 1, 4, chunk.nbytes, chunk.ctypes.data, scratch.ctypes.data, scratch.nbytes, b"lz4",
                                               0, 1)
        assert done > 0
        return done

    def read(self, array, key):
        if array is None or key is not ...:
            raise NotImplementedError
        for one in array[1]:
            assert self.library.blosc_decompress_ctx(one.ctypes.data, array[2].ctypes.data, array[2].nbytes, 1) > 0

    def create(self, place, new):
        new.mkdir(exist_ok=True)
        return self.opened(place)

    def write(self, array, values):
        if array is None:
            raise NotImplementedError
        for one in array[0]:
            self.compressed(one, array[2])


LIBRARIES = {**{name: lambda name=name: Zarr(name) for name in PIPELINES}, "module": Module, "TensorStore": TensorStore,
             "zarrs (Rust)": Zarrs, "b2nd": B2nd, "c-blosc alone": Blosc}


def jobs(library, array, shape):
    """What is done with an array."""
    starts = np.random.default_rng(2).integers(0, [n - 16 for n in shape], (100, len(shape))).tolist()
    yield "read", lambda: library.read(array, ...)
    yield "odd box", lambda: library.read(array, tuple(slice(n // 5, n - n // 7) for n in shape))
    yield "boxes", lambda: library.boxes(array, starts)
    if len(shape) == 3:
        for axis in range(3):
            yield f"plane {axis}", lambda axis=axis: library.read(array, tuple(100 if d == axis else slice(None) for d in range(3)))


def make(folder, arrays):
    """The arrays, written once by zarr."""
    import zarr
    for name, (shape, chunks, shards) in arrays.items():
        blosc = zarr.codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle")
        zarr.create_array(folder / name, shape=shape, chunks=chunks, shards=shards, dtype="f4",
                          compressors=None if name == "raw" else blosc)[...] = elements(shape)


def measure(name, folder, arrays):
    """All figures of one library."""
    library, result = LIBRARIES[name](), {}
    for array_name, (shape, _, _) in arrays.items():
        place, new, values = folder / array_name, folder / f"{array_name}-new", elements(shape)
        for job, work in jobs(library, library.opened(place), shape):
            result[f"{array_name} {job}"] = best(work, lambda: None, library.clock)
        array = []
        result[f"{array_name} write"] = best(lambda: library.write(array[0], values),
                                             lambda: array.insert(0, library.create(place, new)), library.clock)
        shutil.rmtree(new)
        pathlib.Path(f"{new}.b2nd").unlink(missing_ok=True)
    return result


def least(before, now):
    """Of two rounds of a library the least, job for job."""
    return {job: times and [min(pair) for pair in zip(times, (before or now)[job])] for job, times in now.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--only", default=",".join(LIBRARIES))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--table", choices=["ms", "ratio"], default="ms")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    arrays = LARGE if options.large else ARRAYS
    if options.measure:
        print(json.dumps(measure(options.measure, pathlib.Path(options.folder), arrays)))
        return
    found = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        make(pathlib.Path(folder), arrays)
        for name in options.only.split(",") * options.rounds:
            done = subprocess.run([sys.executable, "-W", "ignore", __file__, "--measure", name, "--folder", folder,
                                   *(["--large"] if options.large else [])], text=True, check=False, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
            if done.returncode == 0:
                found[name] = least(found.get(name), json.loads(done.stdout))
            else:
                print(f"{name}: left out: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
    print("| | " + " | ".join(found) + " |")
    print("|---|" + "---|" * len(found))
    for job in next(iter(found.values())):
        if options.table == "ratio":
            cells = [f"{found[p][job][1] / max(found['module'][job][1], 0.1):.2f}" if found[p][job] else "" for p in found]
        else:
            cells = [f"{found[p][job][0]:.0f} ({found[p][job][1]:.0f})" if found[p][job] else "" for p in found]
        print(f"| {job} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
