#!/usr/bin/env python3
"""The Python module: what it opens, reads, writes and says."""
import json
import os
import pickle
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import warnings

import module
import numpy as np
from module import golden, raises, tessera


def test_what_others_shortened_is_not_read_as_the_fill():
    for more in ({}, {"shards": (20,)}):
        a = tessera.save("short.zarr", np.arange(1, 101, dtype="<i4"), format="v3", chunks=(10,), overwrite=True, **more)
        a = tessera.open("short.zarr")
        shorter = tessera.open("short.zarr", "r+")
        shorter[0:20] = 0
        shorter.resize(40)
        assert np.array_equal(a[0:40], [0] * 20 + list(range(21, 41)))
        with raises(IndexError, "shortened"):
            a[30:50]
        with raises(IndexError, "shortened"):
            a.vindex[[95, 3]]
        shorter.resize(100)
        assert np.array_equal(a[30:60], [*range(31, 41), *[0] * 20])


def test_opens_each_format():
    values = np.arange(24, dtype="<i4").reshape(4, 6)
    for format in ("zmeta", "v1", "v2", "v3"):
        tessera.save(f"{format}.zarr", values, format=format, chunks=(2, 4))
        a = tessera.open(f"{format}.zarr")
        assert a.format == format and a.chunks == (2, 4) and a.mode == "r", a
        assert np.array_equal(a[...], values)
    for name in ("a.npy", "a.npz::x", "a.ra", "a.mldf::x"):
        tessera.save(name, values)
        a = tessera.open(name)
        assert np.array_equal(a[1:3, ::-2], values[1:3, ::-2]), name
        assert a.chunks is None or name == "a.mldf::x", name
    np.savez("two.npz", x=values, y=values[0])
    members = tessera.open("two.npz")
    assert list(members) == ["x", "y"] and np.array_equal(members["y"][:], values[0])
    with raises(KeyError, "z: not in"):
        members["z"]
    with raises(tessera.InvalidArgument, "x, y"):
        tessera.load("two.npz")


def test_opens_what_others_wrote():
    found = 0
    for folder, folders, files in os.walk(golden):
        if "/bad" in folder:
            continue
        for path in [os.path.join(folder, name) for name in files if name.endswith((".npy", ".npz", ".ra", ".mldf"))]:
            if os.path.basename(path).startswith("error_"):
                with raises((tessera.Corrupt, tessera.Unsupported, tessera.InvalidArgument)):
                    tessera.load(path)
                continue
            node = tessera.open(path)
            for array in (node.values() if isinstance(node, tessera.Members) else [node]):
                try:
                    values = array[...]
                except tessera.Unsupported:
                    continue  # pickles of anything
                found += 1
                assert np.shape(values) == array.shape, path
        if any(name in files for name in ("__zmeta__", "meta", ".zarray")):
            try:
                array = tessera.open(folder)
                if isinstance(array, tessera.Array) and array.nbytes > 1 << 24:
                    continue
                values = array[...]
            except (tessera.Unsupported, tessera.Corrupt, tessera.InvalidArgument, tessera.NotFound):
                continue
            assert isinstance(array, tessera.Group) or np.shape(values) == array.shape, folder
            found += 1
    assert found > 50, found


def program_info(path):
    """What `tessera info --json` says, but for where it was asked."""
    said = json.loads(subprocess.run([os.environ["TESSERA_PROGRAM"], "info", path, "--json"], stdout=subprocess.PIPE,
                                     check=True).stdout)
    return {name: value for name, value in said.items() if name not in ("path", "store", "address")}


def as_program(info):
    return {name: value for name, value in json.loads(json.dumps(info, default=float)).items() if name != "path"}


def test_facts():
    a = tessera.create("a.zarr", (10, 20), "f4", (4, 5), fill_value=1.5, format="v3", shards=(8, 10), dims=["y", "x"],
                       attrs={"units": "m"})
    assert (a.shape, a.ndim, a.size, a.nbytes, a.itemsize) == ((10, 20), 2, 200, 800, 4)
    assert a.chunks == (4, 5) and a.shards == (8, 10) and a.dims == ("y", "x") and a.fill_value == np.float32(1.5)
    assert a.dtype == np.dtype("<f4") and dict(a.attrs) == {"units": "m"} and len(a) == 10
    info = a.info
    assert (info["chunks_possible"], info["shards_possible"]) == (12, 4), info
    assert info["chunks_stored"] == 0 and info["logical_bytes"] == 800, info
    assert as_program(info) == program_info("a.zarr")
    assert "chunks (4, 5) in shards (8, 10), v3, r+" in repr(a) and "<table>" in a._repr_html_()
    a.dims = ("row", None)
    assert tessera.open("a.zarr").dims == ("row", None)
    for format in ("zmeta", "v2"):
        b = tessera.create(f"{format}.zarr", (2, 3), "u1", dims=["y", "x"], format=format)
        assert b.dims == ("y", "x"), format
    assert tessera.create("z.zarr", (), "i8", fill_value=4)[()] == 4


def test_each_dtype():
    dtypes = ["b1", "i1", "u2", ">i4", "<i8", ">u8", "f2", ">f4", "f8", "c8", ">c16", "S3", "U4", ">U2", "V5", "M8[D]",
              ">M8[10ns]", "m8[s]", [("a", "<i4"), ("b", ">f8", (2, 3))],
              [("x", [("y", "u1"), ("z", "<M8[s]")]), ("s", "S4")],
              {"names": ["a", "b"], "formats": ["u1", "<i4"], "offsets": [0, 4], "itemsize": 12}]
    rng = np.random.default_rng(1)
    for number, dtype in enumerate(map(np.dtype, dtypes)):
        raw = rng.integers(0, 2 if dtype == bool else 100, (3, 4, dtype.itemsize), dtype="u1")
        values = np.ascontiguousarray(raw).view(dtype)[..., 0]
        for format in ("zmeta", "v2", "v3"):
            try:
                tessera.save(f"{number}.{format}", values, format=format, chunks=(2, 3))
            except tessera.Unsupported:
                assert format == "v3" or dtype.names, (dtype, format)
                continue
            a = tessera.open(f"{number}.{format}", "r+")
            got = a[...]
            if dtype.names and got.dtype.itemsize == dtype.itemsize and got.dtype != dtype:
                a.write(..., values[::-1])  # with the dtype that was asked for
                a[1] = values[1]
                a[0, 0] = values[0, 0]
                wanted = values[::-1].copy()
                wanted[0, 0] = values[0, 0]
                assert all(a[...][name].tobytes() == wanted[name].tobytes() for name in dtype.names), (dtype, format)
                continue  # padding that the format shows as a field, or another byte order of its fields
            assert got.dtype == dtype or format == "v3", (dtype, got.dtype)
            assert got.astype(dtype).tobytes() == values.tobytes() or dtype.names, (dtype, format)
            a[0, 0] = values[1, 1]
            assert a[0, 0] == values[1, 1] or dtype.kind in "fc", (dtype, format)
    for dtype, fill in (("M8[s]", "2020-02-03"), ("m8[D]", 5), ("c16", 1 - 2j), ("S2", b"ab"), ("U2", "xy"), (">f2", -0.5),
                        ("b1", True), ("u8", 2**64 - 1), ([("a", "<i4"), ("b", "S2")], (7, b"q"))):
        given = np.array(fill, dtype)
        for format in ("v2", "v3"):
            a = tessera.create("fill.zarr", 2, dtype, fill_value=given[()], format=format, overwrite=True)
            assert np.array(a.fill_value).astype(given.dtype).tobytes() == given.tobytes(), (dtype, a.fill_value)
            assert a[0] == given[()], (dtype, a[0])
    tessera.save("long.zarr", np.arange(3, dtype=np.longdouble), format="v2")
    assert tessera.open("long.zarr")[2] == 2


MEASURED = """
import resource, sys
sys.path.insert(0, sys.argv[1])
import numpy, tessera
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
{}
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def grown(code, env=None):
    """By how many MiB a process of its own grows that runs this code."""
    done = subprocess.run([sys.executable, "-c", MEASURED.format(code), os.environ["TESSERA_MODULE"]], check=True,
                          stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
    return int(done.stdout)


def test_memory_has_a_limit():
    """One element of text that decodes to 400 MiB: refused unless more memory is given."""
    import zlib
    os.mkdir("t")
    with open("t/.zarray", "w") as file:
        json.dump({"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "|O", "fill_value": "", "order": "C",
                   "filters": [{"id": "vlen-utf8"}], "compressor": {"id": "gzip", "level": 1}}, file)
    length = 400 << 20
    gzip = zlib.compressobj(1, wbits=31)
    with open("t/0", "wb") as file:
        file.write(gzip.compress(struct.pack("<II", 1, length)))
        for _ in range(400):
            file.write(gzip.compress(b"a" * (1 << 20)))
        file.write(gzip.flush())
    refused = """
for way in (lambda a: a[0], lambda a: a[:], lambda a: a.read(max_memory="16M"), lambda a: a.vindex[[0]], tessera.stats,
            lambda a: a.oindex[[0]], tessera.digest, lambda a: tessera.load("t")):
    try:
        way(tessera.open("t"))
    except tessera.OverBudget as error:
        assert 'max_memory="' in str(error) and "--" not in str(error), error
    else:
        raise AssertionError
"""
    if tessera_is_plain():
        assert grown(refused) < 256 + 16
        assert grown(refused, {"TESSERA_MAX_MEMORY": "32M"}) < 32 + 16
    code = "assert len(tessera.open('t', max_memory='2G')[0]) == 400 << 20"
    grown(code)
    grown("assert tessera.open('t').read(max_memory='2G').shape == (1,)")
    grown("assert len(tessera.open('t')[0]) == 400 << 20", {"TESSERA_MAX_MEMORY": "2G"})
    with raises(tessera.OverBudget, "max_memory"):
        tessera.open("t")[0]
    # A path is opened within the memory that the call names.
    document = {"zarr_format": 2, "shape": [4, 2], "chunks": [1, 2], "dtype": "|u1", "fill_value": 0, "order": "C",
                "filters": None, "compressor": None}
    with open("many.refs.json", "w") as file:
        json.dump({"version": 1, "refs": {".zarray": json.dumps(document), **{f"{n}.0": "xy" for n in range(50_000)}}}, file)
    grown("""
options = {"max_memory": "128M"}
assert tessera.reduce("many.refs.json", how="max", axis=0, **options).shape == (2,)
tessera.pyramid("many.refs.json", "image", **options)
assert len(tessera.unstack("many.refs.json", "step-{}.zarr", fill_value=3, **options)) == 4
""", {"TESSERA_MAX_MEMORY": "8M"})
    # A cache has its own memory beside that of a call.
    a = tessera.create("c", (64, 1 << 20), "u1", chunks=(1, 1 << 20), format="v3", codec="none")
    with a.cached("64M") as c:
        c[:] = 1
        assert (c[:] == 1).all()


def tessera_is_plain():
    """Not under a sanitizer, which takes memory of its own."""
    return int(os.environ.get("TESSERA_FEWER_CASES", "1")) == 1


def test_text_in_blosc_has_items_of_one_byte():
    # zarr's numcodecs writes 1; zarrs drops the bytes after the last whole item.
    for format, key in (("v2", "0"), ("v3", "c/0")):
        tessera.save(f"{format}.zarr", np.array(["a", "bcd"] * 30, object), codec="blosc:lz4:5:noshuffle", format=format, chunks=(60,))
        with open(f"{format}.zarr/{key}", "rb") as file:
            assert file.read(4)[3] == 1, format


def test_text_and_bytes_of_any_length():
    words = np.array([["a", "", "ünïcode"], ["\U0001f600", "b" * 1000, "c"]], dtype=object)
    for format in ("v2", "v3"):
        tessera.save(f"{format}.zarr", words, format=format, chunks=(1, 2))
        a = tessera.open(f"{format}.zarr", "r+")
        assert a.dtype == object and np.array_equal(a[...], words) and a[1, 1] == "b" * 1000
        a[0, :2] = ["x", "yy"]
        assert list(a[0]) == ["x", "yy", "ünïcode"]
        a[:, 2] = "same"
        assert list(a[:, 2]) == ["same", "same"]
        a.vindex[[0, 1], [0, 0]] = np.array(["p", "q"])
        assert list(a.vindex[[1, 0], [0, 0]]) == ["q", "p"]
        a.update(..., lambda v: v + "!")
        assert a[0, 0] == "p!" and a.oindex[[1, 0], 0].tolist() == ["q!", "p!"]
        with raises(TypeError, "3"):
            a[0, 0] = 3
        assert a[0, 0] == "p!"
    tessera.save("bytes.zarr", np.array([b"a\0b", b""], dtype=object), format="v3")
    assert list(tessera.load("bytes.zarr")) == [b"a\0b", b""]


def test_bfloat16():
    a = tessera.create("a.zarr", 4, "bfloat16", format="v3")
    assert a.info["dtype"] == "<bfloat16"  # test_module_ml_types.py has what NumPy sees
    a[:] = [1.5, -2, 3.1415926, np.nan]
    got = a.astype("f4")[:]
    assert list(got[:3]) == [1.5, -2, 3.140625] and np.isnan(got[3]), got
    assert a.astype("f8")[0] == 1.5 and a[0].tobytes() == b"\xc0\x3f"
    a[0] = a[1]
    assert a.astype(float)[0] == -2
    tessera.save("b.zarr", np.array([0.1, 1e39]), dtype="bfloat16", format="v3")
    assert list(tessera.open("b.zarr").astype("f4")[:]) == [np.float32(0.10009765625), np.inf]


def test_casting():
    a = tessera.create("a.zarr", (2, 3), "u1")
    a[0] = [1.9, 2, 257 - 256]
    assert list(a[0]) == [1, 2, 1]
    with raises(TypeError, "same_kind"):
        a.write(0, np.array([1.5, 2, 3]))
    a.write(0, np.array([1.5, 2, 3]), casting="unsafe")
    a.write(1, 7)
    assert a[...].tolist() == [[1, 2, 3], [7, 7, 7]]
    with raises(ValueError, "could not broadcast input array from shape (2,) into shape (3,)"):
        a[0] = [1, 2]
    with raises(ValueError, "could not broadcast input array from shape (2,) into shape (3,)"):
        a[0] = np.array([1, 2], "u1")
    with raises(TypeError):
        a[0] = 1j


def test_out_is_read_into():
    values = np.arange(600, dtype="<i4").reshape(20, 30)
    tessera.save("a.zarr", values, chunks=(7, 8), format="v3")
    a = tessera.open("a.zarr")
    for out in (np.zeros((20, 30), "<i4"), np.zeros((20, 30), "<i4", order="F"), np.zeros((40, 60), "<i4")[::2, ::2],
                np.zeros((20, 30), ">i4"), np.zeros((20, 30), "<i4")[::-1, ::-1]):
        assert a.read(..., out=out) is out and np.array_equal(out, values)
    whole = np.zeros((22, 32), "<i4")
    a.read(..., out=whole[1:-1, 1:-1])
    assert np.array_equal(whole[1:-1, 1:-1], values) and not whole[0].any() and not whole[:, -1].any()
    with raises(ValueError, "shape"):
        a.read(0, out=np.zeros(3, "<i4"))
    with raises(TypeError, "dtype"):
        a.read(0, out=np.zeros(30, "<f4"))
    if hasattr(np.dtypes if hasattr(np, "dtypes") else np, "StringDType"):
        text = np.empty(2, np.dtypes.StringDType())
        for kept in str, "U3":
            tessera.save("text.zarr", ["a", "bcü"], dtype=kept, overwrite=True)
            words = tessera.open("text.zarr")
            assert words.read(..., text) is text and text.tolist() == ["a", "bcü"]
            assert words.read(slice(1, None), text[:1]).tolist() == ["bcü"] and text.tolist() == ["bcü", "bcü"]
        with raises(TypeError, "dtype"):
            a.read((0, slice(0, 2)), out=text)
    frozen = np.zeros(30, "<i4")
    frozen.flags.writeable = False
    with raises(ValueError, "read-only"):
        a.read(0, out=frozen)
    for source in (np.asfortranarray(values), values[::-1], values.astype(">i4"), np.broadcast_to(values[0], (20, 30))):
        b = tessera.create("b.zarr", (20, 30), "<i4", (7, 8), overwrite=True)
        b[...] = source
        assert np.array_equal(b[...], source)


def test_fields():
    dtype = np.dtype([("a", "<i4"), ("b", "<f8", (2,)), ("c", "S3")])
    a = tessera.create("a.zarr", (4, 5), dtype, (2, 3), format="v2")
    reference = np.zeros((4, 5), dtype)
    for target in (a, reference):
        target["a"] = np.arange(20).reshape(4, 5)
        target["b"] = [1, 2]
        target["c"] = b"xyz"
        target[1, 2] = (7, [3, 4], b"q")
    assert np.array_equal(a[...], reference)
    assert np.array_equal(a["b"], reference["b"]) and np.array_equal(a["a", 1:3, 2], reference["a"][1:3, 2])
    assert np.array_equal(a[["a", "c"]], reference[["a", "c"]])
    a["a", 1, ::2] = [9, 8, 7]
    reference["a"][1, ::2] = [9, 8, 7]
    assert np.array_equal(a[...], reference)
    for target in (a, reference["c"]):
        target[(*(["c"] if target is a else []), 3, 4)] = b"one"
    assert a["c", 3, 4] == b"one" and np.array_equal(a[...], reference)
    for key in ("a", "c", slice(1, 3)), (["a", "c"], slice(1, 3)), (slice(1, 3), ["a", "c"]):
        assert np.array_equal(a[key], reference[["a", "c"]][1:3]), key
        assert np.array_equal(a.oindex[key], a[key]), key
    assert a[["a", "c"], 1, 2] == reference[["a", "c"]][1, 2]
    a[["a", "c"], 2:4, 1] = reference[["a", "c"]][2:4, 1] = (5, b"two")
    assert np.array_equal(a[...], reference)
    words = tessera.create("words.zarr", 3, np.dtype([("s", "S3"), ("u", "U4")]))
    words["s", 2], words["u", 0] = b"x", "y"
    assert words[...].tolist() == [(b"", "y"), (b"", ""), (b"x", "")]
    with raises(ValueError, "no field of name"):
        a["z"]
    with raises(ValueError, "no field of name"):
        a["z"] = 1


def test_groups():
    g = tessera.create_group("g.zarr", "v3", {"title": "t"})
    a = g.create_array("sub/a", (3,), "i4", fill_value=2)
    g.create_group("other", {"k": 1})
    assert list(g) == ["other", "sub"] and len(g) == 2 and "sub/a" in g and "sub/b" not in g and "../x" not in g
    assert g["sub"]["a"][0] == 2 and g["sub/a"] == a and g.attrs["title"] == "t"
    g.move("sub/a", "other/b")
    assert [path for path, kind, _ in g.walk()] == ["other", "other/b", "sub"]
    assert g.tree().splitlines() == ["g.zarr/", "├── other/", "│   └── b (3,) <i4", "└── sub/"], g.tree()
    g.consolidate()
    assert g.info["consolidated"] == "fresh" and g.info["arrays"] == 1
    assert as_program(g.info) == program_info("g.zarr")
    with raises(KeyError, "not in"):
        g["none"]
    with raises(tessera.InvalidArgument):
        g.remove("other")
    del g["other"]
    assert list(g) == ["sub"]
    with raises(tessera.InvalidArgument, "reading"):
        tessera.open("g.zarr").create_group("x")
    os.mkdir("plain")
    tessera.save("plain/x.zarr", [1, 2])
    assert tessera.open("plain").format is None and list(tessera.open("plain")) == ["x.zarr"]


def test_attributes():
    a = tessera.create("a.zarr", 1, "u1")
    a.attrs.update(n=1, x=1.0, text="ü", none=None, list=[1, "a", {"b": True}], big=2**100, nan=float("inf"))
    a.attrs["np"] = np.float32(1.5)
    b = tessera.open("a.zarr")
    assert b.attrs == {"n": 1, "x": 1.0, "text": "ü", "none": None, "list": [1, "a", {"b": True}], "big": 2**100,
                       "nan": float("inf"), "np": 1.5}, b.attrs
    assert isinstance(b.attrs["x"], float) and isinstance(b.attrs["n"], int)
    del a.attrs["n"]
    with raises(KeyError):
        del a.attrs["n"]
    a.attrs.put({"only": 1})
    assert tessera.open("a.zarr").attrs == {"only": 1}
    with raises(TypeError):
        a.attrs["x"] = object()
    with raises(tessera.Error):
        b.attrs["x"] = 1


def test_importing_it_imports_nothing_of_others():
    code = ("import sys, tessera; late = {'zarr', 'numcodecs', 'xarray', 'dask', 'fsspec', 'tqdm', 'asyncio'} & set(sys.modules);"
            "assert not late, late; assert 'zarr_view' in dir(tessera) and 'zarr' not in vars(tessera)")
    subprocess.run([sys.executable, "-X", "dev", "-W", "error", "-c", code], check=True,
                   env={**os.environ, "PYTHONPATH": os.environ["TESSERA_MODULE"]})


def test_one_list_among_slices_reads_as_numpy():
    values = np.arange(60).reshape(3, 4, 5)
    a = tessera.create("a.zarr", values.shape, values.dtype, (2, 2, 2))
    a[...] = values
    for key in ([2, 0, 0], (slice(None), [3, -1]), (..., np.array([1, 4])), (slice(0, 2), np.array([], int), ...),
                (..., np.array([True, False, True, False, True])), ([0], slice(None, None, -1), ...)):
        assert np.array_equal(a[key], values[key]), key
    for key in ([1.5],), ["x"], ([0], [1], [2], [0]), {0}:
        with raises(IndexError):
            a[key]
    with raises(IndexError, "out of bounds"):
        a[[3]]


def test_errors_are_built_in_ones():
    with raises(FileNotFoundError, "nothing"):
        tessera.open("nothing")
    with raises(KeyError):
        tessera.open("nothing")
    a = tessera.create("a.zarr", 3, "i4", format="zmeta")
    with raises(FileExistsError):
        tessera.create("a.zarr", 3, "i4")
    with raises(IndexError, "index 3 is out of bounds for axis 0 with size 3"):
        a[3]
    with raises(ValueError):
        tessera.create("b.zarr", (3, 3), "i4", (2,))
    with raises(TypeError, "unexpected argument 'chunk'"):
        tessera.save("c.zarr", [1], chunk=3)
    with raises(IndexError, "integer (or boolean) type, found float64"):
        a[[0.0, 1.0]]
    with raises(IndexError, "index 3 is out of bounds for axis 0 with size 3"):
        a[[0, 3]] = 3
    with raises(tessera.InvalidArgument, "r+"):
        tessera.open("a.zarr")[0] = 1
    with raises(ValueError, "mode"):
        tessera.open("a.zarr", "w")
    a[:] = 5
    with open("a.zarr/__zdata__/0.blosc", "wb") as file:
        file.write(b"nonsense")
    with raises(OSError, "0.blosc"):
        a[:]
    with raises(tessera.Corrupt):
        tessera.seal("a.zarr")
    report = tessera.verify("a.zarr")
    assert not report["sound"] and report["findings"][0]["chunk"] == (0,), report
    assert tessera.repair("a.zarr")["done"] == 1 and list(a[:]) == [0, 0, 0]


def test_batches_over_a_group():
    g = tessera.create_group("series.zarr")
    names = ("time", "sub/level")
    for name in names:
        g.create_array(name, 3, "i4", chunks=2)
    with g.edit() as batch:
        assert sorted(batch) == sorted(names) and len(batch) == 2
        for name in names:
            batch[name].append(np.array([4, 5], "i4"))
            assert batch[name].shape == (5,) and g[name].shape == (3,)
        batch["time"].attrs["units"] = "s"
    assert all(g[name].shape == (5,) and g[name][-1] == 5 for name in names) and g["time"].attrs["units"] == "s"
    with raises(tessera.InvalidArgument, "of the group"):
        tessera.undo(g["time"])
    assert tessera.undo(g) > 3 and all(g[name].shape == (3,) for name in names)
    assert tessera.undo("series.zarr") > 3 and all(g[name].shape == (5,) for name in names)
    with raises(ZeroDivisionError):
        with g.edit() as batch:
            batch["time"][:] = 9
            1 / 0
    assert 9 not in g["time"][:]
    with raises(tessera.InvalidArgument, "closed"):
        batch["time"]
    with g.edit() as batch:
        with raises(FileNotFoundError):
            batch["nothing"]
        with raises(tessera.InvalidArgument):
            g["time"][0] = 1  # this thread has all arrays of the group to itself
    with raises(tessera.InvalidArgument, "reading"):
        tessera.open("series.zarr").edit()


def test_batches():
    a = tessera.create("a.zarr", (4, 4), "i4", (2, 2), attrs={"n": 0})
    with a.edit() as batch:
        batch[0] = 5
        batch.append(np.ones((2, 4), "i4"))
        batch.attrs["n"] = 1
        assert a.shape == (4, 4) and a[0, 0] == 0 and batch.shape == (6, 4) and batch[0, 0] == 5
    assert a.shape == (6, 4) and a[0, 0] == 5 and a.attrs["n"] == 1
    assert tessera.undo(a) > 0 and a.shape == (4, 4) and a[0, 0] == 0
    with raises(ZeroDivisionError):
        with a.edit() as batch:
            batch[1] = 9
            1 / 0
    assert not a[...].any()
    with raises(tessera.InvalidArgument, "closed"):
        batch[0]
    with raises(tessera.InvalidArgument):
        with a.edit():
            a[0] = 1  # this thread has the array to itself, for the batch
    with a.cached() as fast:
        fast[1:3, ::2] = [[1, 2], [3, 4]]
        assert fast[1, 2] == 2 and a[1, 2] == 0
        fast.flush()
        assert a[1, 2] == 2
        fast[3, 3] = 8
    assert a[...].tolist() == [[0, 0, 0, 0], [1, 0, 2, 0], [3, 0, 4, 0], [0, 0, 0, 8]]


def test_shapes_that_change():
    a = tessera.create("a.zarr", (2, 3), "i2", (2, 2), fill_value=-1)
    b = tessera.open("a.zarr")
    a.resize(3, 5)
    assert a.shape == (3, 5) and b.shape == (2, 3)
    b.refresh()
    assert b.shape == (3, 5) and (b[...] == -1).all()
    assert a.append([[1, 2, 3, 4, 5]]) == 3 and a.append(np.zeros((4, 1), "i2"), axis=1) == 5
    assert a.shape == (4, 6) and a[3].tolist() == [1, 2, 3, 4, 5, 0]
    with raises(ValueError):
        a.append([1, 2])
    with raises(ValueError):
        a.append([[1, 2]])


def test_pickles():
    g = tessera.create_group("g.zarr")
    a = g.create_array("a", 3, "i4")
    a[:] = [1, 2, 3]
    np.savez("m.npz", x=[1], y=[2])
    for node in (a, g, tessera.open("g.zarr/a"), tessera.open("m.npz"), tessera.open("m.npz::y")):
        again = pickle.loads(pickle.dumps(node))
        assert type(again) is type(node) and again.path == node.path, node
        if not isinstance(node, tessera.Members):
            assert again == node and hash(again) == hash(node) and again.mode == node.mode
    with a.edit() as batch:
        with raises(TypeError, "pickle"):
            pickle.dumps(batch)


def test_numpy_takes_arrays():
    values = np.arange(6.0).reshape(2, 3)
    tessera.save("a.zarr", values)
    a = tessera.open("a.zarr")
    assert np.array_equal(np.asarray(a), values) and np.asarray(a, "i4").dtype == "i4"
    assert np.sum(a) == 15 and np.array_equal(a.astype("f4")[1], values[1].astype("f4"))
    assert [row.tolist() for row in a] == values.tolist()
    b = tessera.create("b.zarr", (2, 3), "f8")
    b[...] = a
    assert np.array_equal(b, values)
    assert [b[key].shape for key in b.iter_chunks()] == [(2, 3)]


def test_files_in_place():
    np.save("a.npy", np.arange(12, dtype=">i4").reshape(3, 4))
    a = tessera.open("a.npy", "r+")
    a[1, ::2] = [7, 8]
    assert np.load("a.npy")[1].tolist() == [7, 5, 8, 7] and a[1, 2] == 8
    with raises(tessera.Unsupported):
        a.resize(5, 5)
    np.savez("a.npz", x=[1])
    with raises(tessera.Unsupported, "in place"):
        tessera.open("a.npz", "r+")
    with raises(FileExistsError):
        tessera.save("a.npy", [1])
    tessera.save("a.npy", [1], overwrite=True)


def test_verbs():
    values = np.random.default_rng(0).random((50, 60)).astype("f4")
    tessera.save("a.zarr", values, chunks=(20, 30), attrs={"u": "m"})
    tessera.copy("a.zarr", "b.zarr", format="v3", chunks=(10, 15), shards=(20, 30), codec="zstd:3")
    b = tessera.open("b.zarr")
    assert b.format == "v3" and b.shards == (20, 30) and b.attrs["u"] == "m" and b.info["codec"] == "zstd:3"
    assert np.array_equal(b, values) and tessera.digest("a.zarr") == tessera.digest(b)
    tessera.convert("b.zarr", "c.zarr", "v2", shards=None)
    assert np.array_equal(tessera.load("c.zarr"), values)
    tessera.copy("a.zarr", "part.npy", (slice(5, 9), 3))
    assert np.array_equal(np.load("part.npy"), values[5:9, 3])
    tessera.copy("part.npy", "d.zarr", fill_value=1)
    assert tessera.open("d.zarr").fill_value == 1
    assert tessera.copy("a.zarr", "rounded.zarr", keep_bits=4) == []
    assert np.abs(tessera.load("rounded.zarr") / values - 1).max() <= 2**-5
    tessera.copy("a.zarr", "rounded.zarr", max_error=0.1, overwrite=True)
    assert tessera.open("rounded.zarr").attrs["rounded"] == [{"max_error": 0.1}]
    tessera.save("whole.zarr", np.arange(9))
    assert "integers" in tessera.copy("whole.zarr", "w.zarr", keep_bits="auto")[0]
    tessera.create_group("g.zarr")
    tessera.copy("g.zarr", "h.zarr")
    assert isinstance(tessera.open("h.zarr"), tessera.Group)
    c = tessera.open("c.zarr", "r+")
    c[3, 4] += 1
    found = tessera.diff("a.zarr", c)
    assert not found["equal"] and found["different"] == 1 and found["first"][0]["index"] == (3, 4), found
    stats = tessera.stats("a.zarr")
    assert np.isclose(stats["mean"], values.mean()) and stats["count"] == 3000 and stats["fields"] == []
    assert tessera.seal("a.zarr")["written"] and tessera.verify("a.zarr")["files_as_sealed"] > 3
    made = tessera.snapshot("c.zarr", "before")
    assert made["name"] == "before" and [s["name"] for s in tessera.snapshots("c.zarr")] == ["before"]
    c[...] = 0
    tessera.restore("c.zarr", "before")
    assert np.isclose(tessera.open("c.zarr")[3, 4], values[3, 4] + 1)
    tessera.remove_snapshot("c.zarr", "before")
    assert tessera.seal("b.zarr", bag="bag")["written"] and os.path.exists("bag/data")
    assert tessera.info("a.zarr")["format"] == "v3"


def test_the_format_follows_from_what_is_asked():
    for options in ({}, {"codec": "zstd:3"}, {"shards": (4, 4), "chunks": (2, 2)}, {"dims": ("y", "x")}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert tessera.create("f.zarr", (4, 4), "f4", overwrite=True, **options).format == "v3", options
            tessera.save("f.zarr", np.ones((4, 4), "f4"), overwrite=True, **options)
            assert tessera.open("f.zarr").format == "v3", options
    tessera.save("f.npy", np.ones((4, 4)))
    tessera.copy("f.npy", "f.zarr", overwrite=True)
    tessera.calc("g.zarr", "a + 1", {"a": "f.npy"})
    assert tessera.open("f.zarr").format == tessera.open("g.zarr").format == "v3"
    os.environ["TESSERA_FORMAT"] = "zmeta"
    try:
        assert tessera.create("f.zarr", (4, 4), "f4", overwrite=True).format == "zmeta"
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert tessera.create("f.zarr", (4, 4), "f4", codec="zstd:3", overwrite=True).format == "v3"
            np.save("steps.npy", np.zeros((1, 3)))
            tessera.unstack("steps.npy", "step-{}.zarr", codec="zstd:3")
        assert len(told) == 2 and all("made in format v3, because zmeta" in str(one.message) for one in told), told
        assert [one.filename for one in told] == [__file__] * 2, told
    finally:
        del os.environ["TESSERA_FORMAT"]


def test_what_is_no_shape_is_said_in_words():
    a = tessera.create("a.zarr", 3, "u1")
    group = tessera.create_group("g")
    for shape, error, says in (("x", tessera.InvalidArgument, '"x" is not a shape: "x" is no number'),
                               ([1, "a"], TypeError, "found "), ([[1]], TypeError, "for a length, found [1] (list)"),
                               (1.5, TypeError, "found 1.5 (float)"), (b"x", TypeError, "found b'x' (bytes)"),
                               ((3, 2**70), tessera.InvalidArgument, "the length 1180591620717411303424 is too large")):
        for call in (lambda: tessera.create("b.zarr", shape, "u1"), lambda: a.resize(shape), lambda: group.create_array("c", shape, "u1")):
            with raises(error, says):
                call()
    assert not os.path.exists("b.zarr") and not list(group) and a.shape == (3,)
    assert tessera.create("b.zarr", "3,4", "u1").shape == (3, 4)


def test_undefined_fills_are_named():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        a = tessera.create("u.zarr", (4, 4), "f4", format="v2", dims=("y", "x"))
        assert a.fill_value is None and len(told) == 1 and "fill value is null" in str(told[0].message), told
        tessera.create("w.zarr", (4, 4), "f4", format="v2", dims=("y", "x"), fill_value=0)
        tessera.create("x.zarr", (4, 4), "f4", format="v2")
        tessera.save("y.zarr", np.zeros((4, 4), "f4"), format="v2", dims=("y", "x"))
        assert len(told) == 1, told
        a.resize(4, 5)
        assert len(told) == 2 and "the new elements have no value" in str(told[1].message), told
        a.resize(3, 3)
        tessera.open("x.zarr", "r+").resize(5, 5)
    assert len(told) == 2, told
    assert [warning.filename for warning in told] == [__file__] * 2, told
    assert tessera.open("x.zarr").fill_value == 0 and tessera.open("y.zarr").fill_value is None


def test_chunks_as_bool():
    assert tessera.create("b.zarr", (500, 600), "f4", chunks=True).chunks == tessera.create("c.zarr", (500, 600), "f4").chunks
    assert tessera.create("d.zarr", (500, 600), "f4", chunks=False).chunks == (500, 600)
    with raises(tessera.InvalidArgument, "chunks"):
        tessera.copy("b.zarr", "e.zarr", chunks=True)


def test_refresh_finds_what_took_the_place():
    a = tessera.create("r.zarr", (6,), "i4", chunks=2)
    a[:] = 1
    tessera.snapshot("r.zarr", "one")
    a[:] = 2
    tessera.restore("r.zarr", "one")
    a.refresh()
    assert list(a[:]) == [1] * 6
    a[0] = 5
    assert list(tessera.open("r.zarr")[:2]) == [5, 1]
    tessera.create("r.zarr", (4, 2), "f8", overwrite=True, fill_value=3)
    a.refresh()
    assert a.shape == (4, 2) and a.dtype == "f8" and a[1, 1] == 3
    shutil.rmtree("r.zarr")
    with raises(tessera.NotFound):
        a.refresh()


def test_progress_and_its_errors():
    tessera.save("a.zarr", np.zeros((400, 400)), chunks=(50, 50))
    a = tessera.create("b.zarr", (400, 400), "f8", (50, 50))
    a[...] = 1
    calls = []
    tessera.copy(a, "c.zarr", format="v3", codec="none", progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (400 * 400 * 8,) * 2, calls
    with raises(ZeroDivisionError):
        tessera.copy(a, "d.zarr", format="v3", codec="none", progress=lambda done, total: 1 / 0)
    assert not os.path.exists("d.zarr")
    tessera.verify(a, progress=True)


def test_ctrl_c():
    """SIGINT ends long work; what a function of update was interrupted in is as it was."""
    a = tessera.create("a.zarr", 20000, "i8", 1, format="v3", durability="none")
    started = threading.Event()

    def interrupt():
        started.wait()
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    def busy(values):
        started.set()
        return values + 1

    thread = threading.Thread(target=interrupt)
    thread.start()
    with raises(KeyboardInterrupt):
        a.update(..., busy)
        time.sleep(10)  # a machine so fast that it was done before
    thread.join()
    assert set(a[:]) <= {0, 1}
    # A handler of somebody else's runs after the call, and ends nothing.
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        a.update(slice(0, 10), lambda v: os.kill(os.getpid(), signal.SIGINT) if not seen else None)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen


def test_a_function_of_update_that_meets_its_own_lock():
    a = tessera.create("a.zarr", 6, "i8", 4)
    again = tessera.open("a.zarr", "r+")
    b = tessera.create("b.zarr", 6, "i8", 4)
    for function in (lambda v: a.__setitem__(0, 1), lambda v: again.__setitem__(0, 1), lambda v: a.append([1]), lambda v: a.resize(9),
                     lambda v: a.attrs.update(x=1), lambda v: a.update(..., lambda w: w), lambda v: again.edit().__enter__(),
                     lambda v: b.update(..., lambda w: a.__setitem__(0, 1)), lambda v: tessera.open("a.zarr", "r+").resize(9)):
        for part in np.s_[:3], ...:
            with raises(tessera.InvalidArgument, "update()"):
                a.update(part, function)
    a.update(..., lambda v: b.__setitem__(0, 7))
    assert b[0] == 7 and not a[:].any() and a.shape == (6,)


def test_updates_that_would_wait_for_each_other():
    a, b = tessera.create("a.zarr", 6, "i8", 4), tessera.create("b.zarr", 6, "i8", 4)
    both = threading.Barrier(2)
    told = []

    def change(one, other):
        def function(values):
            both.wait(60)
            other[0] = 1

        try:
            one.update(np.s_[:1], function)
        except tessera.InvalidArgument as error:
            told.append(str(error))

    threads = [threading.Thread(target=change, args=arrays) for arrays in ((a, b), (b, a))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 1 and "wait for each other" in told[0], told
    assert sorted([a[0], b[0]]) == [0, 1]


def test_ctrl_c_ends_waits_for_locks():
    a = tessera.create("a.zarr", 6, "i8", 4)
    code = ("import sys, tessera\nwith tessera.open('a.zarr', 'r+').edit() as edit:\n    print('has', flush=True)\n"
            "    sys.stdin.read()\n")
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONPATH": os.environ["TESSERA_MODULE"]}) as other:
        assert other.stdout.readline() == "has\n"
        cache = a.cached()
        cache[0] = 1
        for wait in (lambda: a.__setitem__(0, 1), lambda: a.attrs.update(x=1), lambda: a.resize(9), lambda: a.update(..., lambda v: v),
                     lambda: a.edit().__enter__(), cache.flush, lambda: a.append([1])):
            timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
            timer.start()
            with raises(KeyboardInterrupt):
                wait()
            timer.join()
        # A handler of somebody else's runs in the midst of the wait, and may end it by what it raises.
        before = signal.signal(signal.SIGINT, lambda *_: 1 / 0)
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        try:
            with raises(ZeroDivisionError):
                a[0] = 1
        finally:
            signal.signal(signal.SIGINT, before)
        timer.join()
        other.stdin.close()
    cache.flush()
    assert list(a[:]) == [1, 0, 0, 0, 0, 0]


def test_threads_share_one_array():
    a = tessera.create("a.zarr", (8, 100), "i8", (3, 40), durability="none")

    def fill(row):
        for column in range(100):
            a[row, column] = row * 1000 + column

    threads = [threading.Thread(target=fill, args=(row,)) for row in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(a, np.add.outer(np.arange(8) * 1000, np.arange(100)))


def test_nothing_is_left_open():
    a = tessera.create("a.zarr", (10, 10), "i4", (5, 5))
    del a

    def once():
        b = tessera.open("a.zarr", "r+", durability="none")
        b[2:7, 3] = b[2:7, 4] + 1
        b.vindex[[1], [2]]
        with b.cached("1M") as fast:
            fast[0, 0] = 1

    once()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(200):
        once()
    assert len(os.listdir("/proc/self/fd")) <= before + 1


def resident():
    """Bytes of memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_does_not_grow():
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        return  # AddressSanitizer keeps what is freed
    a = tessera.create("a.zarr", (20, 20), "i4", (7, 7), durability="none")

    def rounds(count):
        for _ in range(count):
            a[3:9, 2]  # two chunks, by several threads

    a[...] = 1
    rounds(300)
    before = resident()
    rounds(3000)
    assert resident() - before < 8 << 20, resident() - before


def test_names_that_are_not_utf8():
    try:
        import h5py
    except ImportError:
        print("  left out: no h5py")
        return
    with h5py.File("names.h5", "w") as file:
        file.create_dataset(b"caf\xe9", data=np.arange(3))
        file["ok"] = np.arange(2)
    members = tessera.open("names.h5")
    assert sorted(members) == ["caf\udce9", "ok"], list(members)
    assert members["caf\udce9"][...].tolist() == [0, 1, 2]


def test_options_go_on():
    """Those of open() hold for what is opened below, and in another process."""
    group = tessera.create_group("options.zarr")
    group["x"] = np.arange(5)
    assert tessera.load(group["x"]).tolist() == tessera.load("options.zarr/x").tolist() == [0, 1, 2, 3, 4]
    opened = tessera.open_group("options.zarr", "r+", max_memory="1G", durability="none")
    opened["y"] = np.arange(3)
    for node in opened, opened["y"], pickle.loads(pickle.dumps(opened)), pickle.loads(pickle.dumps(opened["y"])):
        assert node._options == {"max_memory": "1G", "durability": "none"}, node._options


if __name__ == "__main__":
    module.run(dict(globals()))
