#!/usr/bin/env python3
"""Other libraries that do the work of the benchmark, each in a process of its own that `bench --peer` starts and asks.
Those of Python; peer.h is the same for those of C++.

    tests/bench/peers.py           the names of those that are on this machine
    tests/bench/peers.py NAME      says its name and version; then answers each line on stdin with one on stdout

A request is a verb, the Zarr v2 array that it is about, a number of threads and what else the verb takes, by tabs:

    read_all ARRAY THREADS               everything, into memory that is there already
    read_new ARRAY THREADS               everything, into new memory
    read_boxes ARRAY THREADS FILE SIDE   boxes that begin where the int64 in FILE say, one after another
    write_all ARRAY THREADS FOLDER       the elements of ARRAY, from memory, to a new array in FOLDER

The answer is seconds, seconds of processor time and MiB that memory grew by, or "-" for what cannot be done so. None of
these libraries asks the disk whether what it wrote is there.
"""
import os
import pathlib
import sys
import time

import numpy as np


class Zarr:
    """zarr-python 2: reads with one thread, each chunk decoded by as many as are asked for."""

    def __init__(self):
        import numcodecs.blosc
        import zarr
        self.zarr, self.blosc = zarr, numcodecs.blosc
        self.name = "zarr-python " + zarr.__version__.split("+")[0]

    def open(self, path, threads):
        self.blosc.set_nthreads(threads)
        return self.zarr.open(str(path), mode="r")

    def read_into(self, array, out):
        array.get_basic_selection(Ellipsis, out=out)

    def read(self, array, selection=Ellipsis):
        return array[selection]

    def create(self, folder, like, threads):
        self.blosc.set_nthreads(threads)
        return self.zarr.open(str(folder / "array"), mode="w", shape=like.shape, chunks=like.chunks, dtype=like.dtype,
                              fill_value=like.fill_value, compressor=like.compressor)

    def write(self, array, elements):
        array[...] = elements


class Hdf5:
    """HDF5 with the filter of c-blosc: one thread, one file."""

    def __init__(self):
        import h5py
        if not h5py.h5z.filter_avail(32001):
            raise ImportError("HDF5 has no blosc filter (hdf5-filter-plugin-blosc-serial)")
        self.h5py = h5py
        self.name = "HDF5 " + h5py.version.hdf5_version

    def dataset(self, path, like):
        return self.h5py.File(path, "w").create_dataset(
            "array", shape=like.shape, dtype=like.dtype, chunks=like.chunks, fillvalue=like.fill_value,
            compression=32001, compression_opts=(0, 0, 0, 0, 5, 1, 1))  # level 5, shuffle, lz4

    def open(self, path, threads):
        if threads != 1:
            return None
        copy = path.parent / "peer.h5"
        if not copy.exists():
            array = Zarr().open(path, 1)
            self.write(self.dataset(copy, array), array[...])
        return self.h5py.File(copy, "r")["array"]

    def read_into(self, array, out):
        array.read_direct(out)

    def read(self, array, selection=Ellipsis):
        return array[selection]

    def create(self, folder, like, threads):
        return self.dataset(folder / "array.h5", like) if threads == 1 else None

    def write(self, array, elements):
        array[...] = elements
        array.file.close()


class TensorStore:
    """Its Python module, which is a thin layer above the C++ library. As many cores as threads, as in tensorstore_peer.cpp."""

    def __init__(self):
        import tensorstore
        self.tensorstore = tensorstore
        self.name = "TensorStore (Python)"
        self.cores = sorted(os.sched_getaffinity(0))

    def spec(self, path, threads):
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), self.cores[:threads])
        return {"driver": "zarr", "kvstore": {"driver": "file", "path": str(path)},
                "context": {"cache_pool": {"total_bytes_limit": 0}, "data_copy_concurrency": {"limit": threads},
                            "file_io_concurrency": {"limit": threads}, "file_io_sync": False}}

    def open(self, path, threads):
        return self.tensorstore.open(self.spec(path, threads), open=True).result()

    def read_into(self, array, out):
        self.tensorstore.array(out).write(array).result()

    def read(self, array, selection=Ellipsis):
        return array[selection].read().result()

    def create(self, folder, like, threads):
        spec = self.spec(folder / "array", threads) | {"metadata": {
            "shape": like.shape, "chunks": like.chunks, "dtype": like.dtype.str, "fill_value": like.fill_value,
            "compressor": like.compressor.get_config()}}
        return self.tensorstore.open(spec, create=True).result()

    def write(self, array, elements):
        array.write(elements).result()


PEERS = {"zarr": Zarr, "hdf5": Hdf5, "tensorstore": TensorStore}


def megabytes(what):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) / 1024


def measured(work):
    """What work() takes, as an answer; `work` is None for what cannot be done."""
    if work is None:
        return "-"
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    memory, start, cpu = megabytes("VmRSS"), time.perf_counter(), time.process_time()
    work()
    return f"{time.perf_counter() - start} {time.process_time() - cpu} {megabytes('VmHWM') - memory}"


class Answers:
    """What the requests ask for: each gives the work to be measured."""

    def __init__(self, peer):
        self.peer = peer
        self.memory = {}  # elements of the array that was last asked for

    def elements(self, path):
        if path not in self.memory:
            self.memory = {path: Zarr().open(path, 1)[...]}
        return self.memory[path]

    def read_all(self, path, threads):
        array, out = self.peer.open(path, threads), self.elements(path)
        return array and (lambda: self.peer.read_into(array, out))

    def read_new(self, path, threads):
        array = self.peer.open(path, threads)
        return array and (lambda: self.peer.read(array))

    def read_boxes(self, path, threads, file, side):
        array = self.peer.open(path, threads)
        starts = np.fromfile(file, "<i8").reshape(-1, len(array.shape)).tolist()
        boxes = [tuple(slice(i, i + int(side)) for i in start) for start in starts]

        def work():
            for box in boxes:
                self.peer.read(array, box)
        return work

    def write_all(self, path, threads, folder):
        array, elements = self.peer.create(pathlib.Path(folder), Zarr().open(path, 1), threads), self.elements(path)
        return array and (lambda: self.peer.write(array, elements))


def main():
    if len(sys.argv) == 1:
        for name, make in PEERS.items():
            try:
                make()
            except ImportError:
                continue
            print(name)
        return
    peer = PEERS[sys.argv[1]]()
    print(peer.name, flush=True)
    answers = Answers(peer)
    for line in sys.stdin:
        verb, path, threads, *rest = line.rstrip("\n").split("\t")
        path = pathlib.Path(path)
        known = (path / ".zarray").exists()
        print(measured(getattr(answers, verb)(path, int(threads), *rest) if known else None), flush=True)


if __name__ == "__main__":
    main()
