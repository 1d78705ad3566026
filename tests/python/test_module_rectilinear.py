#!/usr/bin/env python3
"""Arrays whose chunks differ in length (v3's grid "rectilinear") against NumPy: random ones, made, written, grown, read
back, copied and verified. TESSERA_MODULE_DRAWS and TESSERA_MODULE_SEED draw more, or others.
"""
import json
import os
import shutil
import subprocess
import sys

import module
import numpy as np
from module import raises, tessera

PROGRAM = os.environ.get("TESSERA_PROGRAM")


def random_lengths(rng, length, unit=1):
    """Lengths that cover a dimension, in multiples of `unit`: a list, or one number for all."""
    if rng.random() < 0.25:
        return unit * int(rng.integers(1, 5))
    lengths = []
    while sum(lengths) < length or not lengths:
        lengths += [unit * int(rng.integers(1, 6))] * int(rng.integers(1, 4))
    return lengths


def random_box(rng, shape):
    starts = [int(rng.integers(0, n)) for n in shape]
    return tuple(slice(s, int(rng.integers(s + 1, n + 1))) for s, n in zip(starts, shape))


def random_slices(rng, shape):
    steps = [int(rng.choice([1, 1, 2, 3, 7, -1, -2])) for _ in shape]
    return tuple(slice(None, None, step) if rng.random() < 0.5 else s for step, s in zip(steps, random_box(rng, shape)))


def program(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


class Draw:
    def __init__(self, seed, number):
        self.rng = rng = np.random.default_rng([seed, number])
        self.about = f"TESSERA_MODULE_SEED={seed}, array {number}"
        rank = int(rng.integers(1, 4))
        shape = tuple(int(n) for n in rng.integers(1, [40, 20, 9][rank - 1] + 1, rank))
        self.text = rng.random() < 0.15
        options = {"codec": ["none", "zstd:1", "blosc:lz4:5:shuffle", "gzip:1"][rng.integers(4)]}
        if rng.random() < 0.3:
            options["order"] = "F"
        self.fill = "" if self.text else int(rng.integers(0, 2))
        if rng.random() < 0.4:
            inner = [int(rng.integers(1, 4)) for _ in shape]
            options |= {"chunks": inner, "shards": [random_lengths(rng, n, c) for n, c in zip(shape, inner)]}
            differ = options["shards"]
        else:
            differ = options["chunks"] = [random_lengths(rng, n) for n in shape]
        if all(isinstance(along, int) for along in differ):
            differ[0] = [differ[0]] * shape[0]
        self.path = f"{number}.zarr"
        self.array = tessera.create(self.path, shape, str if self.text else "<i4", fill_value=self.fill, format="v3",
                                    **options)
        self.values = np.full(shape, self.fill, object if self.text else "<i4")

    def elements(self, shape):
        numbers = self.rng.integers(0, 9, shape) if self.rng.random() < 0.9 else np.full(shape, 0 if self.text else self.fill)
        return np.array(["", "a", "bc", "üüü", "x" * 9] + ["z"] * 5, object)[numbers] if self.text else numbers.astype("<i4")

    def step(self):
        rng, a, shape = self.rng, self.array, self.values.shape
        kind = rng.integers(9)
        if kind < 4:
            key = random_box(rng, shape) if kind < 3 else random_slices(rng, shape)
            self.values[key] = a[key] = self.elements(self.values[key].shape)
        elif kind == 4:
            places = tuple(rng.integers(0, n, 5) for n in shape)
            a[places] = self.elements(5)[:1]
            self.values = np.array(a[...], self.values.dtype) if self.text else a[...]
        elif kind == 5:
            axis = int(rng.integers(len(shape)))
            more = self.elements(tuple(int(rng.integers(1, 12)) if d == axis else n for d, n in enumerate(shape)))
            a.append(more, axis=axis)
            self.values = np.concatenate([self.values, more], axis)
        elif kind == 6:
            new = tuple(max(1, n + int(rng.integers(-6, 10))) for n in shape)
            a.resize(new)
            kept = tuple(slice(0, min(n, m)) for n, m in zip(shape, new))
            values = np.full(new, self.fill, self.values.dtype)
            values[kept] = self.values[kept]
            self.values = values
        elif kind == 7:
            with a.cached() as cached:
                for _ in range(4):
                    key = random_box(rng, shape)
                    self.values[key] = cached[key] = self.elements(self.values[key].shape)
        else:
            key = random_box(rng, shape)
            with a.edit() as batch:
                batch[key] = self.elements(self.values[key].shape)
                self.values[key] = batch[key]

    def check(self, array):
        whole = array[...]
        assert np.array_equal(whole, self.values), self.about
        key = random_slices(self.rng, self.values.shape)
        assert np.array_equal(array[key], self.values[key]), (self.about, key)
        places = tuple(self.rng.integers(0, n, 20) for n in self.values.shape)
        assert np.array_equal(array[places], self.values[places]), self.about
        for key in array.iter_chunks():
            assert np.array_equal(array[key], self.values[key]), (self.about, key)
        assert tuple(sum(along) for along in array.chunk_lengths) == array.shape, self.about
        assert array.nchunks == len(list(array.iter_chunks())) == np.prod([len(n) for n in array.chunk_lengths]), self.about


def test_random_arrays_are_written_and_read():
    seed = int(os.environ.get("TESSERA_MODULE_SEED", "39"))
    for number in range(int(os.environ.get("TESSERA_MODULE_DRAWS", "200"))):
        draw = Draw(seed, number)
        try:
            for _ in range(int(draw.rng.integers(1, 7))):
                draw.step()
            draw.check(draw.array)
            draw.check(tessera.open(draw.path))
            assert tessera.verify(draw.path).sound, draw.about
            grid = json.load(open(f"{draw.path}/zarr.json"))["chunk_grid"]
            assert grid["name"] == "rectilinear", draw.about
            # As it is; onto chunks of one shape, and back.
            assert any("as they are" in said for said in tessera.copy(draw.path, "copied.zarr", dry_run=True, overwrite=True))
            tessera.copy(draw.path, "copied.zarr", overwrite=True)
            draw.check(tessera.open("copied.zarr"))
            assert json.load(open("copied.zarr/zarr.json"))["chunk_grid"] == grid, draw.about
            tessera.copy(draw.path, "even.zarr", chunks=[3] * draw.values.ndim, shards=None, overwrite=True)
            draw.check(tessera.open("even.zarr"))
            lengths = [random_lengths(draw.rng, n) for n in draw.values.shape]
            lengths[0] = lengths[0] if isinstance(lengths[0], list) else [lengths[0]] * draw.values.shape[0]
            tessera.copy("even.zarr", "uneven.zarr", chunks=lengths, overwrite=True)
            draw.check(tessera.open("uneven.zarr"))
            assert tessera.digest(draw.path) == tessera.digest("even.zarr") == tessera.digest("uneven.zarr"), draw.about
        except Exception:
            print(draw.about)
            raise
        shutil.rmtree(draw.path)


def test_options():
    a = tessera.create("a.zarr", (25, 8), "<i4", chunks=[[10, 10, 5], 4], format="v3")
    assert a.chunks == (10, 4) and a.chunk_lengths == ((10, 10, 5), (4, 4)) and a.nchunks == 6
    b = tessera.create("b.zarr", (25, 8), "<i4", chunks="[10]*2+[5],4", format="v3")
    assert b.chunk_lengths == a.chunk_lengths
    c = tessera.create("c.zarr", (25, 8), "<i4", chunks=(5, 4), shards=[[10, 15], 8], format="v3")
    assert c.chunks == (5, 4) and c.shards == (15, 8) and len(list(c.iter_chunks(shards=True))) == 2
    assert tessera.create("d.zarr", 25, "u1", chunks=[[10, 15]]).format == "v3"
    assert tessera.create("e.zarr", (25, 8), "<i4", chunks=(10, 5), format="v2").chunk_lengths == ((10, 10, 5), (5, 3))
    for wrong, says in (([[10, 10], 8], "add up to 20"), ([[0, 25], 8], "at least 1"), ([[], 8], "no lengths"), ("[3", "expected")):
        with raises(tessera.InvalidArgument, says):
            tessera.create("x.zarr", (25, 8), "<i4", chunks=wrong, format="v3")
    with raises(TypeError):
        tessera.create("x.zarr", (25, 8), "<i4", chunks=[["a"], 8], format="v3")
    with raises(tessera.Unsupported, "differ in length"):
        tessera.create("x.zarr", (25, 8), "<i4", chunks=[[25], 8], format="v2")
    assert not os.path.exists("x.zarr")


def test_dask_writes_each_chunk_once():
    try:
        import dask.array
    except ImportError:
        return
    values = np.arange(25 * 8, dtype="<i4").reshape(25, 8)
    for options in ({"chunks": [[10, 10, 5], [3, 5]]}, {"chunks": (5, 4), "shards": [[10, 15], 8]}):
        a = tessera.create("a.zarr", values.shape, values.dtype, format="v3", overwrite=True, **options)
        tessera.store(dask.array.from_array(values, chunks=(7, 8)), a)
        assert np.array_equal(a[...], values)
        tessera.store(dask.array.from_array(-values[3:22], chunks=(4, 3)), a, region=(slice(3, 22), slice(None)))
        assert np.array_equal(a[3:22], -values[3:22]) and np.array_equal(a[:3], values[:3])
        assert np.array_equal(a.to_dask(chunks=a.chunk_lengths).compute(), a[...])


if __name__ == "__main__":
    module.run(globals())
