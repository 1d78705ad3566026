#!/usr/bin/env python3
"""Arrays as columns of Arrow: what pyarrow takes where it is installed, and without it what lies in the capsules."""
import ctypes
import gc

import module
import numpy as np
from module import raises, tessera

try:
    import pyarrow
except ImportError:
    pyarrow = None
    print("without pyarrow: the capsules are read by hand alone")


class Schema(ctypes.Structure):
    pass


class Column(ctypes.Structure):
    pass


Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
                   ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(Schema))), ("dictionary", ctypes.c_void_p),
                   ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))), ("private_data", ctypes.c_void_p)]
Column._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
                   ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
                   ("children", ctypes.POINTER(ctypes.POINTER(Column))), ("dictionary", ctypes.c_void_p),
                   ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Column))), ("private_data", ctypes.c_void_p)]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
NUMBERS = {"c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8", "e": "f2", "f": "f4", "g": "f8",
           "tdD": "i4", "tss:": "i8", "tsm:": "i8", "tsu:": "i8", "tsn:": "i8", "tDs": "i8", "tDn": "i8"}


def at(array, number, size):
    return ctypes.string_at(array.buffers[number], size) if size else b""


def bits(array, number):
    packed = np.frombuffer(at(array, number, (array.length + 7) // 8), "u1")
    return np.unpackbits(packed, bitorder="little")[:array.length].astype(bool)


def values_of(schema, array):
    """A column as a list, None where it is null."""
    form = schema.format.decode()
    assert array.offset == 0 and array.release and schema.release and array.n_children == schema.n_children
    if form == "+s":
        columns = {schema.children[n].contents.name.decode(): values_of(schema.children[n].contents, array.children[n].contents)
                   for n in range(array.n_children)}
        return [dict(zip(columns, row)) for row in zip(*columns.values())]
    if form == "b":
        found = bits(array, 1).tolist()
    elif form in "UZ":
        ends = np.frombuffer(at(array, 1, 8 * (array.length + 1)), "i8")
        text = at(array, 2, int(ends[-1]))
        found = [text[a:b].decode() if form == "U" else text[a:b] for a, b in zip(ends, ends[1:])]
    elif form.startswith("w:"):
        size = int(form[2:])
        found = [at(array, 1, size * array.length)[n * size:(n + 1) * size] for n in range(array.length)]
    else:
        dtype = np.dtype(NUMBERS[form])
        found = np.frombuffer(at(array, 1, dtype.itemsize * array.length), dtype).tolist()
    valid = bits(array, 0) if array.buffers[0] else np.ones(array.length, bool)
    assert array.null_count == np.count_nonzero(~valid)
    return [value if known else None for value, known in zip(found, valid)]


def column(exported):
    schema, array = exported.__arrow_c_array__()
    alone = exported.__arrow_c_schema__()
    told = Schema.from_address(_pointer(schema, b"arrow_schema"))
    assert Schema.from_address(_pointer(alone, b"arrow_schema")).format == told.format
    found = told.format.decode(), values_of(told, Column.from_address(_pointer(array, b"arrow_array")))
    if pyarrow:
        theirs = pyarrow.array(exported)
        theirs.validate(full=True)
        assert theirs.null_count == sum(value is None for value in found[1])
    return found


def test_numbers():
    rng = np.random.default_rng(1)
    for text, form in {"i1": "c", "u1": "C", ">i2": "s", "u2": "S", "i4": "i", "u4": "I", "i8": "l", ">u8": "L", "f2": "e", ">f4": "f",
                       "f8": "g", "bool": "b"}.items():
        values = rng.integers(0, 100, 77).astype(text) if text != "bool" else rng.integers(0, 2, 77).astype(bool)
        tessera.save("a.zarr", values, chunks=10, overwrite=True)
        a = tessera.open("a.zarr")
        assert column(a) == (form, values.tolist())
        assert column(a.lazy[70:3:-2]) == (form, values[70:3:-2].tolist())
        if pyarrow:
            assert pyarrow.array(a).to_pylist() == values.tolist()
    tessera.save("empty.zarr", np.empty(0, "f4"))
    assert column(tessera.open("empty.zarr")) == ("f", [])
    assert column(tessera.open("empty.zarr").astype("i2")) == ("s", [])


def test_missing_ones_are_null():
    a = tessera.create("a.zarr", 5, "i2", fill_value=-9)
    a[:] = [1, -9, 3, -9, 5]
    a.attrs["_FillValue"] = -9
    assert column(a)[1] == [1, None, 3, None, 5]
    a.attrs["scale_factor"] = 0.5
    assert column(a)[1] == [0.5, None, 1.5, None, 2.5]
    assert column(a.decoded)[1] == column(a.lazy[:])[1] == column(a)[1]
    assert column(a.astype("i4"))[1] == [1, -9, 3, -9, 5]  # codes, as they are
    times = tessera.create("t.zarr", 3, "i4", fill_value=0)
    times[:] = [0, 1, 2]
    times.attrs["units"] = "days since 2000-01-01"
    form, found = column(times)
    assert form.startswith("t") and None not in found and len(set(found)) == 3


def test_times_and_text():
    for text, form in {"M8[s]": "tss:", "M8[ms]": "tsm:", "M8[us]": "tsu:", "M8[ns]": "tsn:", "M8[D]": "tdD", "M8[h]": "tss:",
                       "m8[s]": "tDs", "m8[ns]": "tDn", "m8[D]": "tDs"}.items():
        values = np.array([5, -3, 7], "i8").astype(text)
        values[1] = "NaT"
        tessera.save("a.zarr", values, overwrite=True, format="v2")
        found = column(tessera.open("a.zarr"))
        scale = 86400 if text == "m8[D]" else 3600 if text == "M8[h]" else 1
        assert found == (form, [5 * scale, None, 7 * scale]), (text, found)
    words = ["", "grün", "b" * 300]
    for name, made in (("u", np.array(words)), ("s", np.array(["a", "", "ccc"], "S3"))):
        tessera.save(f"{name}.zarr", made, format="v2")
        assert column(tessera.open(f"{name}.zarr"))[1] == made.tolist()
    text = tessera.create("string.zarr", 3, "string")
    text[:] = words
    assert column(text) == ("U", words)
    raw = tessera.create("bytes.zarr", 2, "bytes")
    raw[:] = [b"\0x", b""]
    assert column(raw) == ("Z", [b"\0x", b""])


def test_tables():
    rows = np.array([(1, 2.5, True, "ab"), (2, np.nan, False, "c")], [("n", "<i4"), ("x", ">f8"), ("is", "?"), ("name", "U2")])
    tessera.save("t.zarr", rows, format="v2")
    a = tessera.open("t.zarr")
    form, found = column(a)
    assert form == "+s" and [row["n"] for row in found] == [1, 2] and [row["name"] for row in found] == ["ab", "c"]
    assert column(a.lazy["x"])[1][0] == 2.5
    if pyarrow:
        table = pyarrow.table(pyarrow.record_batch(a))
        assert table.column_names == ["n", "x", "is", "name"] and table["is"].to_pylist() == [True, False]


def test_what_arrow_has_not():
    two = tessera.create("two.zarr", (2, 3), "f4")
    with raises(tessera.Unsupported, "one dimension"):
        two.__arrow_c_array__()
    with raises(tessera.Unsupported, "one dimension"):
        two.__arrow_c_schema__()
    assert column(two.lazy[1]) == ("f", [0, 0, 0])
    with raises(tessera.Unsupported, "real"):
        tessera.create("c.zarr", 3, "c8").__arrow_c_array__()
    with raises(tessera.Unsupported, "record"):
        tessera.create("sub.zarr", 3, [("v", "f4", (2,))], format="v2").__arrow_c_array__()


def test_memory_lives_as_long_as_a_column():
    values = np.arange(100000.0)
    tessera.save("a.zarr", values, chunks=1000)
    schema, array = tessera.open("a.zarr").__arrow_c_array__()
    gc.collect()
    made = Column.from_address(_pointer(array, b"arrow_array"))
    assert values_of(Schema.from_address(_pointer(schema, b"arrow_schema")), made) == values.tolist()
    made.release(made)  # as who takes it over does
    assert not made.release
    del schema, array
    gc.collect()


if __name__ == "__main__":
    module.run(globals())
