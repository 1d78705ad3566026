#!/usr/bin/env python3
"""tessera.refs and `tessera refs`: what the references lead to are the chunks, as zarr-python reads them."""
import json
import os
import subprocess
import sys
import warnings

import module
import numpy as np
from module import raises, tessera

try:
    import zarr
except ImportError:
    print("skipped: no zarr")
    sys.exit(77)
if not zarr.__version__.startswith("2."):
    print(f"skipped: zarr-python is {zarr.__version__}, and not 2")
    sys.exit(77)


def resolved(refs):
    """The store that references stand for."""
    store = {}
    for key, value in refs["refs"].items():
        if isinstance(value, str):
            store[key] = value.encode()
            continue
        assert os.path.isabs(value[0]) and len(value) in (1, 3), value
        with open(value[0], "rb") as file:
            file.seek(value[1] if len(value) == 3 else 0)
            store[key] = file.read(value[2] if len(value) == 3 else -1)
            assert len(value) == 1 or len(store[key]) == value[2], value
    return store


def program(*arguments):
    return subprocess.run([os.environ["TESSERA_PROGRAM"], "refs", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)


def check(path, expected, inside=None):
    refs = tessera.refs(path)
    assert refs["version"] == 1
    done = program(path)
    assert done.returncode == 0 and json.loads(done.stdout) == refs, (path, done.stderr)
    node = zarr.open(resolved(refs), mode="r")
    got = node[inside] if inside else node
    assert np.array_equal(got[...], expected) and got.dtype == expected.dtype, (path, got[...])
    return got, refs["refs"]


def test_array_files():
    values = np.arange(210, dtype=">i4").reshape(5, 6, 7)
    for name, made in (("c.npy", values), ("f.npy", np.asfortranarray(values)), ("scalar.npy", values[0, 0, 0]),
                       ("empty.npy", values[:0]), ("text.npy", np.array(["a", "bcd"])),
                       ("fields.npy", np.array([(1, 2.5)], [("a", "i2"), ("b", "<f8")]))):
        np.save(name, made)
        check(name, made)
    tessera.save("a.ra", values.astype("<f4"))
    check("a.ra", values.astype("<f4"))
    np.savez("two.npz", x=values, y=values[0].astype("u2"))
    check("two.npz", values, "x")
    check("two.npz", values[0].astype("u2"), "y")
    check("two.npz::y", values[0].astype("u2"))
    np.savez("one.npz", values)
    check("one.npz", values)


def test_long_files_are_cut():
    values = np.arange(3 << 20, dtype="<f8").reshape(3 << 9, 1 << 11)
    for order in "CF":
        np.save("a.npy", np.asarray(values, order=order))
        array, refs = check("a.npy", values)
        assert array.nchunks == len(refs) - 2 > 1 and array.chunks[0] * array.chunks[1] * 8 <= 8 << 20
        assert all(n % c == 0 for n, c in zip(array.shape, array.chunks)), array.chunks
    # A prime number of rows: the pieces end where the array ends, and are not one for each element.
    np.save("prime.npy", np.zeros(2_000_003, "u1"))
    array, refs = check("prime.npy", np.zeros(2_000_003, "u1"))
    assert len(refs) == 3


def test_directories():
    values = np.arange(60, dtype="<i2").reshape(6, 10)
    for format, options in (("v2", {"separator": "/"}), ("v2", {"codec": "none", "order": "F"}), ("zmeta", {}), ("v1", {}),
                            ("v3", {"codec": "zstd:1,crc32c"}), ("v3", {"shards": (4, 8)})):
        a = tessera.create("a.zarr", values.shape, values.dtype, (2, 4), format=format, fill_value=-3, overwrite=True,
                           dims=["y", "x"], attrs={"units": "m"}, **options)
        a[:4] = values[:4]
        expected = values.copy()
        expected[4:] = -3
        array, refs = check("a.zarr", expected)
        assert array.chunks == (2, 4) and array.attrs["units"] == "m" and array.attrs["_ARRAY_DIMENSIONS"] == ["y", "x"]
        assert sorted(refs) == [".zarray", ".zattrs"] + [f"{i}.{j}" for i in range(2) for j in range(3)], sorted(refs)


def test_hierarchies():
    g = tessera.create_group("g.zarr", "v2", attrs={"title": "t"})
    values = np.arange(12.0).reshape(3, 4)
    g.create_array("sub/a", (3, 4), "f8", chunks=(2, 2))[...] = values
    g.create_array("b", 5, "i2")
    check("g.zarr", values, "sub/a")
    array, refs = check("g.zarr", np.zeros(5, "i2"), "b")
    assert zarr.open(resolved(tessera.refs(g)), mode="r").attrs["title"] == "t"
    assert array.nchunks_initialized == 0


def test_out():
    np.save("a.npy", np.arange(3))
    assert program("a.npy", "--out", "refs.json").returncode == 0
    assert tessera.refs("a.npy", out="mine.json") == json.load(open("refs.json")) == json.load(open("mine.json"))
    done = program("a.npy", "--out", "refs.json", "--json")
    assert json.loads(done.stdout)["references"] == 3, done.stdout
    assert sorted(os.listdir()) == ["a.npy", "mine.json", "refs.json"]


def test_references_open_as_arrays_and_groups():
    np.save("a.npy", np.arange(6).reshape(2, 3))
    tessera.refs("a.npy", out="refs.json")
    array = tessera.open("refs.json")
    np.testing.assert_array_equal(array[:, 1:], np.arange(6).reshape(2, 3)[:, 1:])
    np.testing.assert_array_equal(zarr.open(tessera.zarr_view("refs.json"), mode="r")[...], array[...])
    with raises(tessera.Unsupported, "never changed"):
        tessera.open("refs.json", "r+")[0, 0] = 5
    os.mkdir("deep")
    tessera.refs("a.npy", out="deep/refs.json")
    with raises(tessera.Unsupported, "below"):
        tessera.open("deep/refs.json")


def test_what_lies_in_no_byte_ranges_is_refused():
    np.savez_compressed("small.npz", x=np.arange(3))
    tessera.save("v3.zarr", np.arange(8).reshape(2, 2, 2), format="v3", codec='[{"name": "transpose", "configuration": '
                 '{"order": [1, 0, 2]}}, {"name": "bytes", "configuration": {"endian": "little"}}]')
    tessera.create("b.zarr", 3, "bfloat16", format="v3")
    tessera.save("objects.npy", np.array(["a", "b"], dtype=object), object_strings=True)
    for path in ("small.npz", "v3.zarr", "b.zarr", "objects.npy"):
        with raises(tessera.Unsupported, path):
            tessera.refs(path)
        done = program(path, "--out", "refs.json")
        assert done.returncode == 2 and path in done.stderr and not os.path.exists("refs.json"), (path, done)
    with raises(tessera.NotFound):
        tessera.refs("nothing")
    group = tessera.create_group("g.zarr")
    group["good"] = np.arange(3)
    tessera.create("g.zarr/bad", 3, "bfloat16", format="v3")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert "good/0" in tessera.refs("g.zarr", skip_bad=True)["refs"]
    assert len(told) == 1 and "bad" in str(told[0].message) and told[0].filename == __file__, told


if __name__ == "__main__":
    module.run(dict(globals()))
