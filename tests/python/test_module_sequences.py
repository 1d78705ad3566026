#!/usr/bin/env python3
"""Arrays of sequences of any length (numcodecs' VLenArray): read as NumPy's arrays and written from them, beside
zarr-python; and as the program prints them."""
import json
import os
import pathlib
import subprocess

import numpy as np

import module
from module import raises, tessera

DTYPES = ["|b1", "|i1", "<i2", ">i2", "<i4", "<i8", "|u1", "<u2", "<u4", ">u8", "<f2", "<f4", ">f8", "<c8", "<M8[s]"]


def ragged(rng, dtype, shape):
    """Sequences of 0 to 6 items; the bytes of many end in zeros."""
    values = np.empty(shape, object)
    for index in np.ndindex(shape):
        items = rng.integers(-9, 9, int(rng.integers(0, 7)))
        values[index] = (items % 2 if dtype == "|b1" else abs(items) if "u" in dtype else items).astype(dtype)
    return values


def assert_same(found, expected, dtype):
    assert found.shape == expected.shape
    for a, b in zip(found.flat, expected.flat):
        assert isinstance(a, np.ndarray) and a.dtype == np.dtype(dtype), (a, dtype)
        assert a.tobytes() == np.asarray(b, dtype).tobytes(), (a, b)


def test_both_ways_beside_zarr_python():
    try:
        import numcodecs
        import zarr
    except ImportError:
        print("without zarr-python")
        return
    if not zarr.__version__.startswith("2."):
        print(f"zarr-python is {zarr.__version__}, and not 2")
        return
    rng = np.random.default_rng(5)
    for number in range(200):
        dtype = DTYPES[number % len(DTYPES)]
        shape = tuple(int(n) for n in rng.integers(1, 6, int(rng.integers(1, 3))))
        chunks = tuple(int(rng.integers(1, n + 1)) for n in shape)
        values = ragged(rng, dtype, shape)
        path = f"a{number}"
        theirs = zarr.open_array(path, mode="w", shape=shape, chunks=chunks, dtype=object, order="CF"[number % 2],
                                 object_codec=numcodecs.VLenArray(dtype))
        theirs[...] = values
        with tessera.open(path, "r+") as ours:
            assert_same(ours[...], values, dtype)
            values = ragged(rng, dtype, shape)
            ours[...] = values
        assert_same(zarr.open_array(path, mode="r")[...], values, dtype)


def made(dtype="<i2", shape=(3,)):
    os.mkdir("made")
    document = {"zarr_format": 2, "shape": shape, "chunks": [2] * len(shape), "dtype": "|O", "order": "C",
                "fill_value": None, "compressor": None, "filters": [{"id": "vlen-array", "dtype": dtype}]}
    pathlib.Path("made/.zarray").write_text(json.dumps(document))
    return "made"


def sequences():
    values = np.empty(3, object)
    values[:] = [np.array([1, -2, 0], "<i2"), [7], (0, 0)]
    return values


def test_elements_one_by_one():
    with tessera.open(made(), "r+") as array:
        assert [a.tolist() for a in array[...]] == [[], [], []]
        array[...] = sequences()
        assert [a.tolist() for a in array[...]] == [[1, -2, 0], [7], [0, 0]]
        assert array[1].tolist() == [7] and array[1].dtype == "<i2"
        assert [a.tolist() for a in array[[2, 0]]] == [[0, 0], [1, -2, 0]]
        assert [a.tolist() for a in array[::2]] == [[1, -2, 0], [0, 0]]


def test_what_is_no_sequence_is_refused():
    with tessera.open(made(), "r+") as array:
        wrong = sequences()
        wrong[1] = 5
        with raises(TypeError, "an element is 5, the array holds arrays of <i2"):
            array[...] = wrong
        wrong[1] = np.ones((2, 2))
        with raises(ValueError, "an element has 2 dimensions, expected 1"):
            array[...] = wrong
        assert [a.size for a in array[...]] == [0, 0, 0]


def test_the_program_prints_the_items():
    with tessera.open(made(), "r+") as array:
        array[...] = sequences()

    def program(*arguments):
        return subprocess.run([os.environ["TESSERA_PROGRAM"], *arguments], capture_output=True, text=True, check=True).stdout

    assert program("get", "made") == '["[1, -2, 0]" "[7]" "[0, 0]"]\n', program("get", "made")
    assert program("get", "made", "1:", "--json") == '["[7]", "[0, 0]"]\n'
    assert program("get", "made", "--csv") == '"[1, -2, 0]"\n[7]\n"[0, 0]"\n', program("get", "made", "--csv")
    # A copy has the same sequences, whatever its format.
    program("copy", "made", "copied", "--format", "v3", "--chunks", "3", "--quiet")
    with tessera.open("copied") as array:
        assert [a.tolist() for a in array[...]] == [[1, -2, 0], [7], [0, 0]]
    for name in "made.npy", "made.csv", "made.nc":
        done = subprocess.run([os.environ["TESSERA_PROGRAM"], "export", "made", name], capture_output=True, text=True)
        assert done.returncode == 2 and "sequences of <i2" in done.stderr, done
        assert not os.path.exists(name)


if __name__ == "__main__":
    module.run(dict(globals()))
