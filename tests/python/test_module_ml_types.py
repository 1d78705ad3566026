#!/usr/bin/env python3
"""The types that NumPy lacks: as ml_dtypes has them where it is installed, and without it."""
import os

import module
import numpy as np
from module import golden, raises, tessera

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

FLOATS = ["float4_e2m1fn", "float8_e3m4", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
          "float8_e5m2fnuz", "float8_e8m0fnu"]
MEMORY = {**{name: "f4" for name in FLOATS}, "int2": "i1", "int4": "i1", "uint2": "u1", "uint4": "u1"}


def dtype_of(name, otherwise):
    return np.dtype(otherwise if ml_dtypes is None else getattr(ml_dtypes, name))


def test_what_other_programs_wrote():
    for name in FLOATS + ["int2", "int4"]:
        array = tessera.open(os.path.join(golden, "zarr3", f"small_{name}"))
        expected = np.load(os.path.join(golden, "zarr3", f"small_{name}.expected.npy"))
        assert array.dtype == dtype_of(name, MEMORY[name]), (name, array.dtype)
        got = array[...]
        assert got.dtype == array.dtype
        np.testing.assert_array_equal(got.astype(expected.dtype), expected)
    shards = tessera.open(os.path.join(golden, "zarr3", "small_shards"))
    assert shards.dtype == dtype_of("int4", "i1") and shards[0].dtype == shards.dtype
    chained = tessera.open(os.path.join(golden, "zarr3", "small_gzip"))
    assert chained.dtype == dtype_of("float8_e5m2", "f4"), chained.codec


def test_every_way_to_read():
    tessera.create("a.zarr", (4, 6), "i1", (2, 3), codec="data_type:int4,zstd", format="v3", fill_value=-3)
    with tessera.open("a.zarr", "r+") as a:
        values = (np.arange(24) % 16 - 8).reshape(4, 6)
        a[...] = values
        int4 = dtype_of("int4", "i1")
        for got, expected in ((a[...], values), (a[1], values[1]), (a[2, 3], values[2, 3]), (a[::2, [0, 4]], values[::2, [0, 4]]),
                              (a[[3, 0], [1, 1]], values[[3, 0], [1, 1]]), (a[values > 3], values[values > 3]),
                              (a.read(slice(1, 3)), values[1:3]), (np.asarray(a), values), (a.fill_value, -3)):
            assert got.dtype == int4, got.dtype
            np.testing.assert_array_equal(np.asarray(got).astype("i8"), expected)
        for dtype in {int4, np.dtype("i1")}:
            out = np.zeros((4, 6), dtype)
            assert a.read(..., out) is out
            np.testing.assert_array_equal(out.astype("i8"), values)
        np.testing.assert_array_equal(a.astype("f8")[...], values)
        np.testing.assert_array_equal(np.asarray(a, "i2"), values)
        a[0] = a[1]
        a[:, 0] = np.array([1, 2, 3, 4]).astype(int4)
        a.write(2, a[3], casting="same_kind")
        np.testing.assert_array_equal(a[:, :2].astype("i8"), [[1, values[1, 1]], [2, values[1, 1]], [4, values[3, 1]],
                                                              [4, values[3, 1]]])
        with raises(tessera.InvalidArgument, "int4 has no 8"):
            a[0, 0] = 8
        a.update(..., lambda part: part // 2)
        assert a[1, 0].astype("i8") == 1


def test_bfloat16():
    for name, order in (("bfloat16", "<"), (">bfloat16", ">")):
        a = tessera.create(f"{name}.zarr", 4, name, format="v3")
        a[:] = [1.5, -2, 3.1415926, np.nan]
        assert a.dtype == dtype_of("bfloat16", "V2")
        got = a[:]
        assert got.dtype == a.dtype
        if ml_dtypes is not None:
            np.testing.assert_array_equal(got.astype("f4"), np.array([1.5, -2, 3.140625, np.nan], "f4"))
            assert a[1] == -2 and type(a[1]) is ml_dtypes.bfloat16
            a[1:3] = got[1:3] + ml_dtypes.bfloat16(1)
            assert a.astype("f8")[1] == -1
        else:
            assert got.tobytes() == np.array([0x3FC0, 0xC000, 0x4049, 0x7FC0], order + "u2").tobytes()
        assert a.astype("f8")[0] == 1.5


def test_arrays_made_of_them():
    if ml_dtypes is None:
        print("without ml_dtypes")
        return
    tessera.save("b.zarr", np.array([0.1, np.inf, -3]).astype(ml_dtypes.bfloat16), format="v3")
    b = tessera.open("b.zarr")
    assert b.info["dtype"] == "<bfloat16" and b[:].tolist() == [0.10009765625, np.inf, -3]
    assert tessera.create("c.zarr", 3, ml_dtypes.bfloat16, format="v3").dtype == ml_dtypes.bfloat16
    with raises(TypeError, "give dtype='f4' and a codec such as 'data_type:float8_e5m2,zstd'"):
        tessera.save("d.zarr", np.zeros(3, ml_dtypes.float8_e5m2), format="v3")
    with raises(TypeError, "give dtype='i1' and a codec such as 'data_type:int4,zstd'"):
        tessera.create("d.zarr", 3, ml_dtypes.int4, format="v3")
    assert not os.path.exists("d.zarr")


if __name__ == "__main__":
    module.run(dict(globals()))
