#!/usr/bin/env python3
"""Readers of every kind beside writers of batches: each chunk that is read has its old value or its new one.

    batch_readers.py [--seconds 300] [--module build/release/tools/python] [--folder /dev/shm] [--seed N]

An array of every format is changed by batches: of two writers, of `calc` in place, and of one that is killed at random
moments, so that recorded batches are left for others to finish. A quarter of the batches are never recorded. Meanwhile
handles that stay open, handles that are opened each time, dask, a server, copies, `calc` and snapshots read. The
elements of a chunk name the chunk and the batch that wrote it. So every value that is read must be one of that chunk,
of a batch that was recorded, and no older than the last one that was in place when the reading began.
"""
import argparse
import mmap
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--seconds", type=float, default=300)
parser.add_argument("--module", default=os.environ.get("TESSERA_MODULE"),
                    help="the folder of the package (default: where Python finds it)")
parser.add_argument("--folder", help="where the arrays are made (default: the system's for temporary files)")
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
if options.module:
    sys.path.insert(0, options.module)

try:
    import numpy as np
    import tessera
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)
try:
    from numcodecs import Blosc
except ImportError:
    Blosc = None  # the server's chunks of that format are left out

FORMATS = {
    "zmeta": {"format": "zmeta"},
    "v1": {"format": "v1", "codec": "none"},
    "v2": {"format": "v2", "codec": "none"},
    "v3": {"format": "v3", "codec": "none"},
    "shards": {"format": "v3", "codec": "none", "shards": (16, 16)},
}
NAMES = list(FORMATS)
SIDE, CHUNK = 32, 8
ACROSS = SIDE // CHUNK
CHUNKS = ACROSS * ACROSS
FILL = -1
BATCHES = 1 << 22  # that have a place in Shared.never


def place(name):
    return f"{name}.zarr"


def box(chunk):
    row, column = divmod(chunk, ACROSS)
    return (slice(row * CHUNK, (row + 1) * CHUNK), slice(column * CHUNK, (column + 1) * CHUNK))


class Shared:
    """What all processes know of the batches."""

    def __init__(self):
        def numbers(shape, dtype):
            count = int(np.prod(shape)) * np.dtype(dtype).itemsize
            return np.frombuffer(mmap.mmap(-1, count), dtype).reshape(shape)

        self.last = numbers((len(NAMES),), "i8")  # number of the last batch that was begun
        self.floor = numbers((len(NAMES), CHUNKS), "i8")  # of the last one that certainly is in place
        self.erased = numbers((len(NAMES), CHUNKS), "i8")  # of the last one that may have erased the chunk
        self.never = numbers((len(NAMES), BATCHES), "u1")  # those that are never recorded
        self.counts = numbers((64, 3), "i8")  # for each kind: chunks looked at, wrong ones, errors


shared = Shared()


class Reading:
    """Begun before chunks are read, and asked about each of them."""

    def __init__(self, number, kind):
        self.number, self.kind = number, kind
        self.floor = shared.floor[number].copy()

    def whole(self, values):
        for chunk in range(CHUNKS):
            self.chunk(chunk, values[box(chunk)])

    def chunk(self, chunk, values):
        shared.counts[self.kind][0] += 1
        value = int(values.flat[0])
        if not np.all(values == value):
            return self.wrong(chunk, f"values of {sorted(set(map(int, values.flat)))[:4]}")
        if value == FILL:
            if shared.erased[self.number][chunk] < self.floor[chunk]:
                self.wrong(chunk, f"the fill, but batch {self.floor[chunk]} wrote it")
            return None
        batch, of = divmod(value, CHUNKS)
        if of != chunk:
            return self.wrong(chunk, f"the value of chunk {of}, batch {batch}")
        if not self.floor[chunk] <= batch <= shared.last[self.number]:
            return self.wrong(chunk, f"batch {batch}, not in {self.floor[chunk]} … {shared.last[self.number]}")
        if shared.never[self.number][batch]:
            return self.wrong(chunk, f"batch {batch}, which was never recorded")
        return None

    def wrong(self, chunk, why):
        shared.counts[self.kind][1] += 1
        if shared.counts[self.kind][1] <= 3:
            print(f"  {KINDS[self.kind].__name__}, {NAMES[self.number]}, chunk {chunk}: {why}", flush=True)


# ---- writers

def batch(array, number, draw, recorded=True):
    """Changes some chunks in one batch. While it is open, no other writer has the array."""
    edit = array.edit(keep_old=draw.random() < 0.5)
    mine = int(shared.last[number]) + 1
    shared.never[number][mine] = not recorded
    shared.last[number] = mine
    chosen = draw.sample(range(CHUNKS), draw.randint(1, CHUNKS))
    for chunk in chosen:
        if draw.random() < 0.2:
            edit[box(chunk)] = FILL
            if recorded:
                shared.erased[number][chunk] = mine
        else:
            edit[box(chunk)] = mine * CHUNKS + chunk
    if not recorded:
        edit.discard()
        return
    edit.commit()
    np.maximum.at(shared.floor[number], chosen, mine)


def writers(draw, _):
    number = draw.randrange(len(NAMES))
    array = tessera.open(place(NAMES[number]), "r+", durability="none")
    for _ in range(4):
        batch(array, number, draw, draw.random() < 0.75)


def killed_writers(draw, _):
    number = draw.randrange(len(NAMES))
    child = os.fork()
    if child == 0:
        try:
            array = tessera.open(place(NAMES[number]), "r+", durability="none")
            for _ in range(1000):
                batch(array, number, draw)
        finally:
            os._exit(0)
    time.sleep(draw.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    time.sleep(draw.choice((0, 0, 0.02)))  # for readers that find the batch
    array = tessera.open(place(NAMES[number]), "r+", durability="none")
    reading = Reading(number, KINDS.index(killed_writers))
    values = array[...]
    reading.whole(values)
    for chunk in range(CHUNKS):
        value = int(values[box(chunk)].flat[0])
        if value != FILL:
            shared.floor[number][chunk] = max(shared.floor[number][chunk], value // CHUNKS)


def calc_in_place(draw, _):
    path = place(draw.choice(NAMES))
    tessera.calc(path, "a + 0", {"a": path}, in_place=True)


# ---- readers

def open_handles(draw, kept):
    number = draw.randrange(len(NAMES))
    handles = kept.setdefault(number, [])
    if len(handles) < 8 or draw.random() < 0.05:
        handles.append(tessera.open(place(NAMES[number])))
        del handles[:-8]
    array = draw.choice(handles)
    reading = Reading(number, KINDS.index(open_handles))
    if draw.random() < 0.5:
        reading.whole(array[...])
    else:
        chunk = draw.randrange(CHUNKS)
        reading.chunk(chunk, array[box(chunk)])


def fresh_handles(draw, _):
    number = draw.randrange(len(NAMES))
    reading = Reading(number, KINDS.index(fresh_handles))
    reading.whole(tessera.open(place(NAMES[number]))[...])


def dask_arrays(draw, kept):
    number = draw.randrange(len(NAMES))
    if number not in kept or draw.random() < 0.1:
        kept[number] = tessera.open(place(NAMES[number])).to_dask(chunks=(16, 16))
    reading = Reading(number, KINDS.index(dask_arrays))
    reading.whole(kept[number].compute(scheduler="threads", num_workers=2))


def copies(draw, _):
    number = draw.randrange(len(NAMES))
    reading = Reading(number, KINDS.index(copies))
    to = draw.choice(("copy.npy", "copy.zarr"))
    tessera.copy(place(NAMES[number]), to, overwrite=True)
    reading.whole(tessera.load(to))


def calc(draw, _):
    number = draw.randrange(len(NAMES))
    reading = Reading(number, KINDS.index(calc))
    reading.whole(tessera.calc(None, "a + 0", {"a": place(NAMES[number])}))


def server(draw, kept):
    if "server" not in kept:
        kept["server"] = tessera.serve(".")
    number, chunk = draw.randrange(0 if Blosc else 1, len(NAMES)), draw.randrange(CHUNKS)
    reading = Reading(number, KINDS.index(server))
    try:
        with urllib.request.urlopen(
                f"{kept['server'].url}v2/{place(NAMES[number])}/{chunk // ACROSS}.{chunk % ACROSS}", timeout=60) as got:
            body = got.read()
        values = np.frombuffer(Blosc().decode(body) if NAMES[number] == "zmeta" else body, "<i4")
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise AssertionError(error.read()) from error
        values = np.array([FILL])
    reading.chunk(chunk, values)


def snapshots(draw, kept):
    number = draw.randrange(len(NAMES))
    kept["n"] = kept.get("n", 0) + 1
    reading = Reading(number, KINDS.index(snapshots))
    path, name = place(NAMES[number]), f"s{kept['n']}"
    tessera.snapshot(path, name)
    reading.whole(tessera.load(f"{path}.snapshots/{name}"))
    assert tessera.verify(f"{path}.snapshots/{name}")["sound"]
    tessera.remove_snapshot(path, name)


KINDS = [writers, killed_writers, calc_in_place, open_handles, fresh_handles, dask_arrays, copies, calc, server, snapshots]
PROCESSES = {writers: 2, open_handles: 2}


def works(kind):
    """Whether what a kind needs is installed."""
    try:
        if kind is dask_arrays:
            import dask.array  # noqa: F401
        if kind is server:
            tessera.serve(".").close()
    except (ImportError, tessera.Unsupported) as missing:
        print(f"  {kind.__name__}: left out, {missing}")
        return False
    return True


def run(kind, seed, deadline):
    draw, kept = random.Random(seed), {}
    own = KINDS.index(kind)
    while time.monotonic() < deadline:
        try:
            kind(draw, kept)
        except Exception:  # noqa: BLE001
            shared.counts[own][2] += 1
            if shared.counts[own][2] <= 3:
                print(f"  {kind.__name__}:", traceback.format_exc(), flush=True)
    if "server" in kept:
        kept["server"].close()


def main():
    folder = tempfile.mkdtemp(dir=options.folder)
    before = os.getcwd()
    os.chdir(folder)
    try:
        for number, name in enumerate(NAMES):
            tessera.create(place(name), (SIDE, SIDE), "<i4", (CHUNK, CHUNK), fill_value=FILL, **FORMATS[name])
            shared.last[number] = 0
        kinds = [kind for kind in KINDS if works_in_child(kind)]
        deadline = time.monotonic() + options.seconds
        children = []
        for kind in kinds:
            for n in range(PROCESSES.get(kind, 1)):
                child = os.fork()
                if child == 0:
                    code = 1
                    try:
                        run(kind, f"{options.seed} {kind.__name__} {n}", deadline)
                        code = 0
                    finally:
                        os._exit(code)
                children.append(child)
        ended = [os.waitpid(child, 0)[1] for child in children]
        for number, name in enumerate(NAMES):
            assert not tessera.verify(place(name))["findings"] or tessera.repair(place(name))
        for number, kind in enumerate(KINDS):
            looked, wrong, errors = shared.counts[number]
            if kind in kinds and (looked or errors):
                print(f"{kind.__name__}: {looked:,} chunks, {wrong} wrong, {errors} errors")
        print("batches:", ", ".join(f"{name} {last:,}" for name, last in zip(NAMES, shared.last)))
        good = not any(ended) and not shared.counts[:, 1:].any() and shared.last.sum() > 0
        sys.exit(0 if good else 1)
    finally:
        os.chdir(before)
        shutil.rmtree(folder, ignore_errors=True)


def works_in_child(kind):
    """Tried in a child, so that this process, which forks, has no threads."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            code = 0 if works(kind) else 1
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    main()
