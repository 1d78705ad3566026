#!/usr/bin/env python3
"""Opens, reads, writes and closes arrays of every format again and again: neither memory nor descriptors grow.

    module_rounds.py [--rounds 10000] [--module build/release/tools/python]
"""
import argparse
import gc
import os
import sys
import tempfile

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--rounds", type=int, default=10_000)
parser.add_argument("--module", help="the folder of the package (default: where Python finds it)")
options = parser.parse_args()
if options.module:
    sys.path.insert(0, options.module)

import numpy as np  # noqa: E402
import tessera  # noqa: E402

# Memory that allocators keep varies by this much from one look to the next; what leaks in each round is more in the end.
SLACK = 4 << 20


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def one_round(number):
    place = ("zmeta", "v1", "v2", "v3")[number % 4]
    a = tessera.open(f"{place}.zarr", "r+", durability="none")
    a[3:9, 2] = number % 100
    a.vindex[[1, 2], [3, 4]] = [5, 6]
    a.update((slice(0, 2), slice(None)), lambda values: values)
    a.attrs["round"] = number
    assert a[4, 2] == number % 100 and a[...].shape == (20, 30) and a.oindex[[0, 5], 1:3].shape == (2, 2)
    assert tessera.open("plain.npy")[number % 60] == number % 60
    try:
        a[99]
    except IndexError:
        pass
    if number % 10 == 0:
        with a.edit(keep_old=False) as batch:
            batch[0, 0] = 1
        with a.cached() as fast:
            fast[5, 5] = 7
        assert tessera.open("group.zarr")["sub/a"].shape == (3,)
        assert tessera.zarr_view(a)["0.0"] and not tessera.diff("v2.zarr", "v2.zarr")["different"]
        try:
            tessera.open("nothing")
        except FileNotFoundError:
            pass


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        os.chdir(folder)
        for place in ("zmeta", "v1", "v2", "v3"):
            tessera.create(f"{place}.zarr", (20, 30), "i4", (7, 8), format=place, durability="none")
        tessera.create_group("group.zarr").create_array("sub/a", 3, "f4")
        np.save("plain.npy", np.arange(60))
        looks = []
        for number in range(options.rounds):
            one_round(number)
            # Once a tenth is done, all that is made once and kept is there.
            if number + 1 in (options.rounds // 10, options.rounds):
                gc.collect()
                looks.append((descriptors(), resident()))
        os.chdir("/")
    (descriptors_before, before), (descriptors_after, after) = looks
    print(f"{options.rounds} rounds: {descriptors_after - descriptors_before} descriptors and {after - before} bytes more than "
          f"after {options.rounds // 10}")
    assert descriptors_after <= descriptors_before and after - before <= SLACK


if __name__ == "__main__":
    main()
