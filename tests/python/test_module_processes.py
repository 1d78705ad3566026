#!/usr/bin/env python3
"""The Python module in several processes: increments that all count, forks beside busy threads, and spawned workers.

TESSERA_MODULE_FORKS forks more often than the short run does.
"""
import multiprocessing
import os
import signal
import threading
import time

import module
import numpy as np
from module import tessera

DEADLINE = int(os.environ.get("TESSERA_MODULE_DEADLINE", 60))  # seconds until what hangs is killed, and the test fails
INCREMENTS = int(os.environ.get("TESSERA_MODULE_INCREMENTS", 40))  # of each of eight processes


def wait_for(pids):
    """The exit codes of forked children; those that hang are killed."""
    end = time.monotonic() + DEADLINE
    codes = {}
    while len(codes) < len(pids):
        for pid in set(pids) - set(codes):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                codes[pid] = os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            for pid in set(pids) - set(codes):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            raise AssertionError(f"{len(pids) - len(codes)} of {len(pids)} processes hung")
        time.sleep(0.01)
    return list(codes.values())


def forked(function, *arguments):
    """Starts a child that does this and ends; its process id."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            function(*arguments)
            code = 0
        except BaseException as error:  # noqa: BLE001
            print(f"  child: {type(error).__name__}: {error}", flush=True)
        finally:
            os._exit(code)
    return pid


def increments(path, seed, count, expected):
    """Adds one to random boxes, and to as many of `expected`."""
    array = tessera.open(path, "r+", durability="none")
    rng = np.random.default_rng(seed)
    for _ in range(count):
        low = rng.integers(0, array.shape)
        high = [int(rng.integers(a + 1, min(a + 20, n) + 1)) for a, n in zip(low, array.shape)]
        box = tuple(slice(int(a), b) for a, b in zip(low, high))
        if expected is None:
            array.update(box, lambda values: values + 1)
        else:
            expected[box] += 1


def test_no_increment_of_eight_processes_is_lost():
    for options in ({"format": "v2"}, {"format": "v3", "shards": (14, 20)}):
        path = f"{options['format']}.zarr"
        tessera.create(path, (50, 45), "i8", (7, 10), **options)
        codes = wait_for([forked(increments, path, seed, INCREMENTS, None) for seed in range(8)])
        assert codes == [0] * 8, codes
        expected = np.zeros((50, 45), "i8")
        for seed in range(8):
            increments(path, seed, INCREMENTS, expected)
        assert np.array_equal(tessera.load(path), expected), options


def batches(path, count):
    array = tessera.open(path, "r+", durability="none")
    for _ in range(count):
        with array.edit() as batch:
            batch[3] = batch[3] + 1
            batch[15] = batch[15] + 1


def test_no_batch_of_four_processes_is_lost():
    tessera.create("a.zarr", 20, "i8", 6)
    assert wait_for([forked(batches, "a.zarr", 10) for _ in range(4)]) == [0] * 4
    assert tessera.load("a.zarr")[[3, 15]].tolist() == [40, 40]


def in_child(array, group, batch, cache):
    """What a child does with handles that its parent opened."""
    assert array[0, 0] == 1 and group["b"][0] == 5
    assert array[...].shape == (10, 400)
    array.update((0, slice(1, None)), lambda v: v + 1)
    mine = tessera.open(array.path, "r+", durability="none")
    with mine.edit() as own:
        own[9, 0] = own[9, 0] + 1
    for inherited in (batch, cache):
        try:
            inherited[0]
        except tessera.Unsupported:
            continue
        raise AssertionError("a batch or cache of the parent was used")
    if len(os.sched_getaffinity(0)) == 1:
        return
    idents = set()
    end = time.monotonic() + DEADLINE / 2  # the machine may have a lot else to do

    def slow(part):
        idents.add(threading.get_ident())
        while len(idents) == 1 and time.monotonic() < end:
            time.sleep(0.002)

    # Of its own: children that wait for each other's chunks would all wait for their second threads.
    own = tessera.create(f"{os.getpid()}.zarr", (8, 4), "i4", chunks=(1, 4), durability="none")
    own.update(..., slow)
    assert len(idents) > 1, "one thread"


def test_forks_beside_busy_threads():
    """No child hangs, whatever other threads were in the middle of, and none loses an update."""
    forks = int(os.environ.get("TESSERA_MODULE_FORKS", 60))
    group = tessera.create_group("g.zarr")
    group.create_array("a", (10, 400), "i8", chunks=(1, 100))
    group.create_array("b", 3, "i4", fill_value=5)
    array = tessera.open("g.zarr/a", "r+", durability="none")
    other = tessera.create("other.zarr", 10, "i4", durability="none")
    another = tessera.create("another.zarr", 10, "i4", durability="none")
    array[0, 0] = 1
    over = threading.Event()

    def write():
        while not over.is_set():
            array[1:5] = np.random.randint(5)

    def read():
        while not over.is_set():
            assert array[0, 0] == 1 and array[1:5].shape == (4, 400)

    threads = [threading.Thread(target=write), threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    try:
        with other.edit() as batch, another.cached() as cache:
            batch[1] = cache[1] = 3
            pids = []
            for _ in range(forks):
                pids.append(forked(in_child, array, group, batch, cache))
                if len(pids) % 4 == 0:
                    assert set(wait_for(pids)) == {0}
                    pids = []
            assert set(wait_for(pids)) <= {0}
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert other[1] == 3 and another[1] == 3
    assert (array[0, 1:] == forks).all(), (array[0, 1:], forks)
    assert array[9, 0] == forks, array[9, 0]


def hold_lock(path, ready):
    """Begins a batch, forks a child that outlives it, and is killed."""
    array = tessera.open(path, "r+", durability="none")
    batch = array.edit()
    batch[0] = 1
    forked(time.sleep, 20)
    os.write(ready, b"x")
    time.sleep(30)


def test_a_child_keeps_no_lock_of_a_parent_that_was_killed():
    tessera.create("a.zarr", 10, "i4")
    ready, done = os.pipe()
    pid = forked(hold_lock, "a.zarr", done)
    os.read(ready, 1)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    start = time.monotonic()
    child = forked(batches_of_ten, "a.zarr")
    assert wait_for([child]) == [0] and time.monotonic() - start < 15
    assert tessera.load("a.zarr")[0] == 10


def batches_of_ten(path):
    array = tessera.open(path, "r+", durability="none")
    array.update(0, lambda v: v + 10)


def spawned(array, row):
    array[row] = row
    array.update(slice(0, 1), lambda values: values + 1)
    return int(array[row, 3])


def test_pools():
    """Handles travel to workers, forked and spawned."""
    for method in ("fork", "spawn"):
        array = tessera.create(f"{method}.zarr", (6, 10), "i8", (4, 4))
        with multiprocessing.get_context(method).Pool(3) as pool:
            assert pool.starmap(spawned, [(array, row) for row in range(1, 6)]) == [1, 2, 3, 4, 5]
        assert (array[0] == 5).all() and (array[5] == 5).all()


if __name__ == "__main__":
    module.run(dict(globals()))
