#!/usr/bin/env python3
"""The Python module against NumPy: random keys on random arrays, read and assigned, results and errors alike.

TESSERA_MODULE_DRAWS and TESSERA_MODULE_SEED draw more, or others; what differs is shown with the seed of its array.
"""
import os
import sys
import time
import warnings

import module
import numpy as np
from module import tessera

DTYPES = ["b1", "i1", "u2", "<i4", ">i4", "<i8", "u8", "f2", "<f4", ">f8", "c8", "c16", "S3", "U2", "M8[D]", "m8[10ns]",
          "V3", [("a", "<i4"), ("b", "<f8", (2,))]]
DRAWS_OF_ONE_ARRAY = 40


def random_values(rng, dtype, shape):
    """Values that NumPy can compare: small numbers, short texts."""
    dtype = np.dtype(dtype)
    if dtype.names:
        values = np.zeros(shape, dtype)
        for name in dtype.names:
            base = dtype[name]
            values[name] = random_values(rng, base.base, tuple(shape) + base.shape)
        return values
    numbers = np.asarray(rng.integers(-4, 9, shape))
    if dtype.kind in "SUV":
        return np.asarray(numbers.astype("S2").astype(dtype) if dtype.kind != "V" else numbers.astype("S3").view("V3"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(numbers.astype(dtype))


def random_item(rng, length):
    """One item of a basic key, often near or beyond the ends."""
    kind = rng.integers(10)
    near = [None, *range(-length - 2, length + 3), 10**12, -10**12]
    pick = lambda: near[rng.integers(len(near))]  # noqa: E731
    if kind < 3:
        index = int(rng.integers(-length - (rng.random() < 0.1), max(length, 1) + (rng.random() < 0.1)))
        return [index, np.int64(index), np.array(index), np.int16(index)][rng.integers(4)]
    if kind < 9:
        step = [None, 1, 2, 3, -1, -2, -7, 100, -100][rng.integers(9)]
        return slice(pick(), pick(), step if rng.random() > 0.02 else 0)
    return slice(None)


def random_key(rng, shape):
    """A basic key; sometimes with too many items, two ellipses, or None."""
    count = int(rng.integers(0, len(shape) + 1 + (rng.random() < 0.05)))
    items = [random_item(rng, shape[d] if d < len(shape) else 3) for d in range(count)]
    for extra, chance in ((None, 0.15), (..., 0.3), (..., 0.02), (None, 0.05)):
        if rng.random() < chance:
            items.insert(int(rng.integers(len(items) + 1)), extra)
    if len(items) == 1 and rng.random() < 0.5:
        return items[0]
    return tuple(items)


def outcome(function):
    """What a call gives: its value, or the kind of its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function()
    except Exception as error:  # noqa: BLE001
        for kind in (IndexError, ValueError, TypeError, OverflowError):
            if isinstance(error, kind):
                return kind
        raise


def same(a, b):
    """Whether results are equal: type, shape, dtype and bytes."""
    if isinstance(a, type) or isinstance(b, type):
        return a is b
    if isinstance(a, np.ndarray) != isinstance(b, np.ndarray) or type(a) is not type(b):
        return False
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def random_assigned(rng, dtype, shape):
    """Something to assign: of the shape, of one that broadcasts, or that does not; of this dtype or another."""
    kind = rng.integers(6)
    if kind == 0:
        return random_values(rng, dtype, ())[()]
    shape = list(shape)
    if kind == 1:
        shape = shape[int(rng.integers(len(shape) + 1)):]
    elif kind == 2:
        shape = [1 if rng.random() < 0.4 else length for length in shape]
    elif kind == 3 and rng.random() < 0.3:
        shape = [*shape, 2] if rng.random() < 0.5 else [1, *shape]
    other = dtype
    if np.dtype(dtype).kind in "biuf" and rng.random() < 0.4:
        other = ["i2", "f8", "<i4", "u1", "c16"][rng.integers(5)]
    values = random_values(rng, other, shape)
    return values.tolist() if rng.random() < 0.2 and np.dtype(dtype).names is None else values


def random_index(rng, length):
    """An index of one dimension for oindex."""
    kind = rng.integers(5)
    if kind == 0 and length:
        return int(rng.integers(-length, length))
    if kind == 1:
        return rng.random(length) < 0.5
    if kind == 2:
        return slice(None, None, [1, 2, -1][rng.integers(3)])
    if kind == 3 and length:
        return rng.integers(-length, length, int(rng.integers(0, 6)))
    return np.sort(rng.integers(0, length, int(rng.integers(0, 9)))) if length else []


def orthogonal(values, key):
    """What oindex is to give, by NumPy."""
    indices = []
    for item, length in zip(key, values.shape):
        if isinstance(item, slice):
            indices.append(np.arange(length)[item])
        else:
            array = np.asarray(item)
            indices.append(np.flatnonzero(array) if array.dtype == bool else array.astype(int).reshape(-1))
    drop = tuple(0 if np.ndim(item) == 0 and not isinstance(item, slice) else slice(None) for item in key)
    return np.ix_(*indices), drop


class Draw:
    """One array, stored and in memory, and what is done to both."""

    def __init__(self, seed, number):
        self.rng = rng = np.random.default_rng([seed, number])
        self.about = f"TESSERA_MODULE_SEED={seed}, array {number}"
        self.dtype = np.dtype(DTYPES[rng.integers(len(DTYPES))])
        rank = int(rng.integers(0, 4))
        shape = tuple(int(n) for n in rng.integers(0 if rng.random() < 0.1 else 1, [9, 30][rng.integers(2)], rank))
        chunks = tuple(int(rng.integers(1, length + 3)) for length in shape)
        options = {"format": ["zmeta", "v2", "v3"][rng.integers(3)] if rank else ["v2", "v3"][rng.integers(2)]}
        if options["format"] == "v3" and rank and rng.random() < 0.4:
            options["shards"] = tuple(int(c * rng.integers(1, 4)) for c in chunks)
        if options["format"] == "zmeta" and self.dtype.kind == "c":
            options["format"] = "v2"
        if rng.random() < 0.3 and options["format"] != "zmeta":
            options["order"] = "F"
        self.file = rng.random() < 0.1 and rank > 0
        self.values = random_values(rng, self.dtype, shape)
        try:
            self.array = self.make(shape, chunks, options)
        except tessera.Unsupported:
            self.array = self.make(shape, chunks, {"format": "v2"})
        self.about += f", {self.dtype} {shape} {options}"

    def make(self, shape, chunks, options):
        if self.file and self.dtype.itemsize:
            np.save("a.npy", self.values)
            return tessera.open("a.npy", "r+")
        array = tessera.create("a.zarr", shape, self.dtype, chunks or None, overwrite=True, durability="none", **options)
        array[...] = self.values
        if array.dtype != self.dtype:
            raise tessera.Unsupported("the format has another byte order in structures")
        return array

    def check(self, what, got, expected):
        assert same(got, expected), f"{self.about}: {what}: got {got!r}, expected {expected!r}"

    def read(self):
        key = random_key(self.rng, self.values.shape)
        self.check(f"reading {key!r}", outcome(lambda: self.array[key]), outcome(lambda: self.values[key].copy()))

    def assign(self):
        key = random_key(self.rng, self.values.shape)
        part = outcome(lambda: self.values[key])
        shape = () if isinstance(part, type) else np.shape(part)
        value = random_assigned(self.rng, self.dtype, shape)
        got = outcome(lambda: self.array.__setitem__(key, value))
        before = self.values.copy()
        expected = outcome(lambda: self.values.__setitem__(key, value))
        if expected is not None:
            self.values = before  # NumPy may have stored a part of it
        assert got is expected, f"{self.about}: [{key!r}] = {value!r}: got {got}, expected {expected}"
        self.check(f"after [{key!r}] = {value!r}", self.array[...], np.asarray(self.values))

    def points(self):
        shape = self.values.shape
        if not shape or 0 in shape:
            return
        if self.rng.random() < 0.3:
            key = self.rng.random(shape) < 0.3
        else:
            counts = [(5,), (2, 3), (1,), (40,)][self.rng.integers(4)]
            key = tuple(self.rng.integers(-n, n + (self.rng.random() < 0.03), counts) for n in shape)
        self.check(f"vindex[{key!r}]", outcome(lambda: self.array.vindex[key]), outcome(lambda: self.values[key]))
        if not self.file and isinstance(part := outcome(lambda: self.values[key]), np.ndarray):
            value = random_values(self.rng, self.dtype, part.shape)
            self.array.vindex[key] = value
            self.values[key] = value
            self.check(f"after vindex[{key!r}] = {value!r}", self.array[...], self.values)

    def outer(self):
        shape = self.values.shape
        if not shape:
            return
        key = tuple(random_index(self.rng, n) for n in shape)
        places, drop = orthogonal(self.values, key)
        expected = self.values[places][drop]
        self.check(f"oindex[{key!r}]", self.array.oindex[key], expected)
        if not self.file:
            value = random_values(self.rng, self.dtype, np.shape(expected))
            self.array.oindex[key] = value
            spread = np.asarray(value)[tuple(None if d == 0 else slice(None) for d in drop)]
            self.values[places] = spread
            self.check(f"after oindex[{key!r}] = {value!r}", self.array[...], self.values)

    def run(self):
        steps = [self.read] * 4 + [self.assign] * 3 + [self.points, self.outer]
        for _ in range(DRAWS_OF_ONE_ARRAY):
            steps[self.rng.integers(len(steps))]()


def test_random():
    draws = int(os.environ.get("TESSERA_MODULE_DRAWS", 2000))
    seed = int(os.environ.get("TESSERA_MODULE_SEED", 1))
    start = time.monotonic()
    for number in range(-(-draws // DRAWS_OF_ONE_ARRAY)):
        Draw(seed, number).run()
    print(f"{draws} draws in {time.monotonic() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    module.run(dict(globals()))
