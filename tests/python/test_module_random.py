#!/usr/bin/env python3
"""The Python module against NumPy: keys on arrays, most of them random, read and assigned, results and errors alike.

TESSERA_MODULE_DRAWS and TESSERA_MODULE_SEED draw more, or others; what differs is shown with the seed of its array.
"""
import os
import sys
import time
import warnings

import module
import numpy as np
from module import raises, tessera

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


def random_places(rng, length, shape):
    """Indices of a dimension as NumPy takes them: an array, a list, a range; rarely one that lies outside."""
    if not length:
        return np.zeros((*shape[:-1], 0), int)
    places = rng.integers(-length, length + (rng.random() < 0.01), shape)
    if places.ndim == 1 and rng.random() < 0.1:
        return range(int(rng.integers(0, length + 1)))
    kind = rng.integers(5)
    if kind == 0:
        return np.sort(places)
    if kind == 1:
        return places.astype("i2")
    return places.tolist() if kind == 2 and places.size else places


def random_advanced(rng, shape):
    """A key of lists, arrays, ranges and masks, mixed with basic items."""
    if rng.random() < 0.15:
        mask = rng.random(shape) < rng.random()
        return mask.tolist() if rng.random() < 0.1 and mask.ndim else mask
    lengths = [(3,), (2, 3), (1,), (0,), (40,), (2, 1), (1, 3)]
    one = lengths[rng.integers(len(lengths))]
    items = []
    axis = 0
    while axis < len(shape) + (rng.random() < 0.02):
        length = shape[axis] if axis < len(shape) else 3
        kind = rng.random()
        if kind < 0.45:
            drawn = one if rng.random() < 0.7 else lengths[rng.integers(len(lengths))]
            items.append(random_places(rng, length, drawn))
        elif kind < 0.55 and axis < len(shape):
            rank = int(rng.integers(1, len(shape) - axis + 1))
            mask = rng.random(shape[axis:axis + rank]) < 0.3
            if rng.random() < 0.03:
                mask = np.ones([n + 1 for n in mask.shape], bool)
            items.append(mask)
            axis += rank - 1
        elif kind < 0.6:
            items.append([True, False, np.True_, 1.5, "x", None][rng.choice(6, p=[0.3, 0.2, 0.3, 0.05, 0, 0.15])])
            axis -= 1
        else:
            items.append(random_item(rng, length))
        axis += 1
    if items and rng.random() < 0.4:
        at = int(rng.integers(len(items) + 1))
        items[at:at + int(rng.integers(0, 3))] = [...]
    if len(items) == 1 and rng.random() < 0.5:
        return items[0]
    if rng.random() < 0.1 and len(shape) > 1 and min(shape):
        return np.ix_(*[rng.integers(0, n, int(rng.integers(0, 6))) for n in shape])
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

    def read_advanced(self):
        key = random_advanced(self.rng, self.values.shape)
        expected = outcome(lambda: self.values[key].copy())
        got = outcome(lambda: self.array[key])
        if got is IndexError and isinstance(expected, np.ndarray) and expected.size == 0:
            return  # NumPy 1 lets an index outside pass where nothing is picked
        self.check(f"reading {key!r}", got, expected)

    def assign_advanced(self):
        self.assign(random_advanced(self.rng, self.values.shape), True)

    def assign(self, key=None, advanced=False):
        key = random_key(self.rng, self.values.shape) if key is None else key
        part = outcome(lambda: self.values[key])
        shape = () if isinstance(part, type) else np.shape(part)
        value = random_assigned(self.rng, self.dtype, shape)
        got = outcome(lambda: self.array.__setitem__(key, value))
        before = self.values.copy()
        expected = outcome(lambda: self.values.__setitem__(key, value))
        if expected is not None:
            self.values = before  # NumPy may have stored a part of it
        both = advanced and isinstance(got, type) and isinstance(expected, type)  # of two errors either may come first
        assert got is expected or both, f"{self.about}: [{key!r}] = {value!r}: got {got}, expected {expected}"
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
        steps = [self.read] * 4 + [self.assign] * 3 + [self.read_advanced, self.assign_advanced] * 4 + [self.points, self.outer]
        for _ in range(DRAWS_OF_ONE_ARRAY):
            steps[self.rng.integers(len(steps))]()


def test_lists_and_masks():
    values = np.arange(60).reshape(3, 4, 5)
    a = tessera.create("a.zarr", (3, 4, 5), "i8", (2, 2, 2), format="v3")
    np.save("b.npy", values)
    for array in a, tessera.open("b.npy", "r+"):
        array[...] = values
        mask = values % 7 == 3
        keys = ([0, 2], mask, (1, [0, 1]), ([0, 1], [2, 3]), range(2), ([0, 1], slice(None), [[1], [2]]),
                (slice(None), [0, 1], None, [1, 2]), (..., [4, 0], None), (mask[:, :, 0], ...), (0, [1, 2], slice(None, None, -2)),
                (0, slice(None), [1, 1]), ([0, 2], ..., 1), np.ix_([2, 0], [1], [3, 0, 3]), True, (False, 0), [[[1, 2]]], [])
        for key in (*keys, (mask[:, 0, 0], slice(None), 2), (slice(None), mask[0, :, 0])):
            expected = values[key]
            assert array[key].shape == expected.shape and (array[key] == expected).all(), (array, key)
            changed = values.copy()
            changed[key] = -1 - np.arange(expected.size).reshape(expected.shape)
            array[key] = -1 - np.arange(expected.size).reshape(expected.shape)
            assert (array[...] == changed).all(), (array, key)
            array[...] = values
        array[[0, 2]] = 0
        array[array[...] == 25] = 7
        assert not array[[0, 2]].any() and array[1, [1, 0], [0, 4]].tolist() == [7, 24]
        assert array.vindex[[0, 1], :, [3, 4]].tolist() == array[...][[0, 1], :, [3, 4]].tolist()
        assert array.vindex[:, [0, 1], [3, 4]].shape == (2, 3) and array[:, [0, 1], [3, 4]].shape == (3, 2)
        array.vindex[:, [0, 1], [3, 4]] = [[1], [2]]
        assert array[:, 1, 4].tolist() == [2, 2, 2]
        for key in ([0, 3], mask[:2], ([0, 1], [1, 2, 3]), (0, 0, 0, [0]), [1.0], "x", ([0], 1.5), (..., [0], ...), {"x"}):
            for call in lambda: array[key], lambda: array.__setitem__(key, 0):
                try:
                    call()
                except IndexError as error:
                    assert 0 < len(str(error)) < 160, error
                else:
                    raise AssertionError(f"{array} took {key!r}")
    with a.cached() as fast:
        fast[[0, 2], 1:3, [4, 0]] = 5
        fast[fast[...] == 7] = 8
    assert a[0, 1:3, 4].tolist() == [5, 5] and a[2, 2, 0] == 5 and a[1, 1, 0] == 8
    table = tessera.create("t.zarr", 6, [("x", "i4"), ("y", "f8", (2,))], 4, format="v2")
    table["x", [4, 0]] = [1, 2]
    table["y", [5, 1]] = [[1, 2], [3, 4]]
    assert table["x"].tolist() == [2, 0, 0, 0, 1, 0] and table[[1, 5]]["y"].tolist() == [[3, 4], [1, 2]]
    with raises(IndexError):
        a["x"]
    words = tessera.create("w.zarr", (3, 3), str, (2, 2), format="v3")
    words[[0, 2], [1, 2]] = ["a", "b"]
    words[np.eye(3, dtype=bool)] = "e"
    assert words[[2, 0]].tolist() == [["", "", "e"], ["e", "a", ""]] and words[words[...] == "e"].tolist() == ["e"] * 3


def test_lists_and_masks_touch_only_their_chunks():
    a = tessera.create("a.zarr", (8, 8), "i4", (2, 2), format="v2")
    a[...] = 1
    stamps = {}
    for name in os.listdir("a.zarr"):
        if name[0].isdigit() and name not in ("0.3", "3.0", "3.3"):
            with open(os.path.join("a.zarr", name), "wb") as file:
                file.write(b"damaged")
            stamps[name] = os.stat(file.name).st_mtime_ns
    mask = np.zeros((8, 8), bool)
    mask[7, :2] = mask[0, 6] = True
    half = np.zeros((8, 8), bool)
    half[6:, 6:] = True
    for key in ([0, 7, 6], [7, 0, 6]), mask, half, ([6, 7], slice(6, 8)), ([[0], [1]], [6, 7]), (slice(0, 2), [7, 6, 7]):
        assert a[key].all()
        a[key] = 2
        assert (a[key] == 2).all()
    assert stamps == {name: os.stat(os.path.join("a.zarr", name)).st_mtime_ns for name in stamps}
    with raises(tessera.Corrupt):
        a[[0, 7], [0, 0]]


def test_random():
    draws = int(os.environ.get("TESSERA_MODULE_DRAWS", 2000))
    seed = int(os.environ.get("TESSERA_MODULE_SEED", 1))
    start = time.monotonic()
    for number in range(-(-draws // DRAWS_OF_ONE_ARRAY)):
        Draw(seed, number).run()
    print(f"{draws} draws in {time.monotonic() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    module.run(dict(globals()))
