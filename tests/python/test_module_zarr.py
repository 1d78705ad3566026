#!/usr/bin/env python3
"""tessera.zarr_view: zarr-python 2 and xarray read through it what Tessera opens."""
import importlib
import json
import os
import pickle
import subprocess
import sys

import module
import numpy as np
from module import golden, raises, tessera

try:
    import zarr
except ImportError:
    print("skipped: no zarr")
    sys.exit(77)
if not zarr.__version__.startswith("2."):
    print("skipped: views are for zarr-python 2; for zarr 3 there is tests/peers")
    sys.exit(77)


def test_a_view_is_a_store_of_zarr():
    code = ("import sys, tessera; assert 'zarr' not in sys.modules; view = tessera.zarr_view(sys.argv[1]); import zarr;"
            "assert isinstance(view, zarr.storage.Store) and issubclass(tessera.KeyStore, zarr.storage.Store)")
    np.save("a.npy", np.arange(3))
    subprocess.run([sys.executable, "-c", code, "a.npy"], check=True,
                   env={**os.environ, "PYTHONPATH": os.environ["TESSERA_MODULE"]})


def same(view, path, expected):
    array = zarr.open(view, mode="r")
    array = array[path] if path else array
    got = array[...]
    assert np.array_equal(np.asarray(got), np.asarray(expected)), (path, got, expected)
    return array


def test_each_format():
    values = np.arange(7 * 9, dtype="<i4").reshape(7, 9)
    for format, options in (("zmeta", {}), ("v1", {}), ("v2", {"order": "F"}), ("v3", {"shards": (4, 8)}),
                            ("v3", {"codec": "none"})):
        tessera.save("a.zarr", values, format=format, chunks=(2, 4), overwrite=True, fill_value=3, **options)
        array = same(tessera.zarr_view("a.zarr"), "", values)
        assert array.chunks == (2, 4) and array.fill_value == 3
        assert np.array_equal(array[::2, -3:], values[::2, -3:])
    for name in ("a.npy", "a.ra", "a.mldf::x", "a.npz::x"):
        tessera.save(name, values)
        same(tessera.zarr_view(name), "", values)
    np.savez("two.npz", x=values, y=values[0])
    same(tessera.zarr_view("two.npz"), "y", values[0])


def test_each_dtype():
    dtypes = ["b1", ">i2", "u8", "f2", ">f8", "c16", "S3", "U4", "V5", "M8[D]", "m8[ns]", [("a", "<i4"), ("b", "f8", (2,))],
              {"names": ["a", "b"], "formats": ["u1", "<i4"], "offsets": [0, 4], "itemsize": 12}]
    rng = np.random.default_rng(1)
    for number, dtype in enumerate(map(np.dtype, dtypes)):
        raw = rng.integers(0, 2 if dtype == bool else 100, (5, dtype.itemsize), dtype="u1")
        values = raw.view(dtype)[:, 0]
        np.save(f"{number}.npy", values)
        array = zarr.open(tessera.zarr_view(f"{number}.npy"), mode="r")
        for name in dtype.names or [None]:
            assert (array[...][name] if name else array[...]).tobytes() == \
                (values[name] if name else values).tobytes(), dtype
    tessera.save("words.zarr", np.array([["a", "ü"], ["", "long" * 50]], dtype=object), format="v3", chunks=(1, 2))
    assert zarr.open(tessera.zarr_view("words.zarr"), mode="r")[...].tolist() == [["a", "ü"], ["", "long" * 50]]
    for fill in (np.nan, np.inf, -1.5):
        tessera.create("fill.zarr", 3, "f4", fill_value=fill, format="v3", overwrite=True)
        assert np.array_equal(zarr.open(tessera.zarr_view("fill.zarr"), mode="r")[:], np.full(3, fill, "f4"), equal_nan=True)
    tessera.create("none.zarr", (), "M8[s]", fill_value=np.datetime64("2020-02-03", "s"), format="v3")
    assert zarr.open(tessera.zarr_view("none.zarr"), mode="r")[()] == np.datetime64("2020-02-03")


def test_hierarchies():
    g = tessera.create_group("g.zarr", attrs={"title": "t"})
    g.create_array("sub/a", (3, 4), "f4", chunks=(2, 2), dims=["y", "x"], attrs={"units": "m"})[...] = 1.5
    g.create_array("b", 5, "i2")
    view = tessera.zarr_view("g.zarr")
    group = zarr.open(view, mode="r")
    assert group.attrs["title"] == "t" and list(group) == ["b", "sub"] and group["sub/a"].attrs["units"] == "m"
    assert (group["sub/a"][...] == 1.5).all() and group["b"].shape == (5,)
    assert view.listdir("sub") == [".zgroup", ".zattrs", "a"] and view.listdir("sub/a") == [".zarray", ".zattrs"]
    assert "sub/a/1.1" in view and "sub/a/2.0" not in view and "sub/a/01.1" not in view and "nothing/.zarray" not in view
    assert sorted(view) == [".zattrs", ".zgroup", ".zmetadata", "b/.zarray", "b/.zattrs", "sub/.zattrs", "sub/.zgroup",
                            "sub/a/.zarray", "sub/a/.zattrs"]
    assert zarr.open_consolidated(view)["sub/a"].shape == (3, 4)
    with raises(KeyError):
        view["sub/a/9.9"]
    with raises(PermissionError):
        view["x"] = b""


def test_files_in_pieces():
    values = np.arange(3 << 20, dtype="<f8").reshape(3 << 10, 1 << 10)
    for order in "CF":
        np.save("a.npy", np.asarray(values, order=order))
        array = zarr.open(tessera.zarr_view("a.npy"), mode="r")
        assert array.order == order and array.nbytes > np.prod(array.chunks) * 8 <= 8 << 20, array.info
        assert np.array_equal(array[...], values)


def test_damage_is_no_absence():
    tessera.save("a.zarr", np.ones((4, 4)), chunks=(2, 2), format="zmeta")
    with open("a.zarr/__zdata__/1.1.blosc", "wb") as file:
        file.write(b"nonsense")
    array = zarr.open(tessera.zarr_view("a.zarr"), mode="r")
    assert array[0, 0] == 1
    with raises(OSError, "1.1.blosc"):
        array[3, 3]


def stored_chunks(path):
    """The bytes of all chunk files below a folder."""
    names = (".zarray", ".zattrs", "zarr.json", "meta", "attrs", "__zmeta__", "__zattr__")
    return sorted(open(os.path.join(folder, name), "rb").read() for folder, _, files in os.walk(path)
                  for name in files if name not in names and ".tessera" not in folder)


def test_chunks_pass_as_they_are_stored():
    values = np.arange(48, dtype="<i4").reshape(6, 8) % 7
    passed = [("zmeta", {}, "blosc", "C"), ("v1", {"codec": "numcodecs.zlib:5"}, "zlib", "C"), ("v1", {"order": "F"}, "blosc", "F"),
              ("v2", {"codec": "zstd:3", "separator": "/"}, "zstd", "C"), ("v2", {"codec": "delta,lz4"}, "lz4", "C"),
              ("v3", {"codec": "gzip:3"}, "gzip", "C"), ("v3", {"codec": "blosc:zstd:3:bitshuffle", "order": "F"}, "blosc", "F"),
              ("v3", {"codec": "numcodecs.bz2:3"}, "bz2", "C"), ("v3", {"codec": "none"}, None, "C"),
              ("v3", {"codec": "zstd:3", "order": "F"}, "zstd", "F")]
    for format, options, compressor, order in passed:
        try:
            tessera.save("a.zarr", values, format=format, chunks=(4, 4), overwrite=True, fill_value=-1, **options)
        except tessera.Error as error:
            raise AssertionError((format, options)) from error
        view = tessera.zarr_view("a.zarr")
        array = same(view, "", values)
        got = array.compressor and array.compressor.codec_id
        assert (got, array.order, array.chunks) == (compressor, order, (4, 4)), (format, options, array.info)
        assert sorted(view[f"{i}.{j}"] for i in range(2) for j in range(2)) == stored_chunks("a.zarr"), (format, options)


def test_chunks_of_shards_pass_as_they_are_stored():
    values = np.arange(100, dtype=">f8").reshape(10, 10)
    for options in ({}, {"order": "F"}, {"codec": "zstd:3,crc32c"}):
        a = tessera.create("a.zarr", values.shape, values.dtype, (2, 5), shards=(4, 10), format="v3", overwrite=True,
                           fill_value=-1, **options)
        a[:8] = values[:8]
        values[8:] = -1
        view = tessera.zarr_view("a.zarr")
        same(view, "", values)
        assert any(view["0.1"] in shard for shard in stored_chunks("a.zarr")) and "4.0" not in view
        assert json.loads(view[".zarray"])["chunks"] == [2, 5]
        assert json.loads(view[".zarray"])["compressor"] is not None
        with raises(KeyError):
            view["4.1"]
        with raises(KeyError):
            view["5.0"]


def test_a_view_shows_a_shard_that_was_replaced():
    a = tessera.create("a.zarr", (4, 4), "i4", (2, 2), shards=(4, 4), format="v3", codec="none")
    array = zarr.open(tessera.zarr_view("a.zarr"), mode="r")
    for number in range(1, 20):
        a[:2, 2:] = number
        a[number % 4, 0] = -number  # chunks come in before others, at other places in the shard
        assert np.array_equal(array[...], a[...]), number


def test_checksums_are_checked_and_cut_off():
    values = np.arange(40, dtype="<u2")
    tessera.save("a.zarr", values, format="v3", chunks=10, codec="zstd:1,crc32c")
    view = tessera.zarr_view("a.zarr")
    assert json.loads(view[".zarray"])["filters"] is None
    same(view, "", values)
    assert view["2"] == open("a.zarr/c/2", "rb").read()[:-4]
    with open("a.zarr/c/2", "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last ^ 1]))
    with raises(OSError, "c/2"):
        view["2"]


def test_what_v2_cannot_say_is_decoded():
    values = np.arange(24, dtype="<i4").reshape(2, 3, 4)
    tessera.save("a.zarr", values, format="v3", chunks=(2, 2, 2), codec='[{"name": "transpose", "configuration": '
                 '{"order": [1, 0, 2]}}, {"name": "bytes", "configuration": {"endian": "little"}}, "crc32c", '
                 '{"name": "zstd", "configuration": {"level": 1, "checksum": true}}]')
    array = same(tessera.zarr_view("a.zarr"), "", values)
    assert array.compressor is None and array.filters is None
    a = tessera.create("b.zarr", 4, "bfloat16", 2, format="v3")
    a[...] = [1, 2, 3, 4]
    assert zarr.open(tessera.zarr_view("b.zarr"), mode="r").dtype == "V2"


def test_absent_chunks_of_an_undefined_fill():
    for options in ({}, {"codec": "none"}, {"codec": "zstd:1"}):
        tessera.create("a.zarr", 5, "<i4", 2, format="v2", fill_value=None, overwrite=True, **options)[:2] = [3, 4]
        assert zarr.open(tessera.zarr_view("a.zarr"), mode="r").fill_value is None
        same(tessera.zarr_view("a.zarr"), "", [3, 4, 0, 0, 0])


def test_absent_chunks_of_a_null_that_became_zero():
    tessera.create("a.zarr", 6, "<f4", 2, format="v2", fill_value=None)[2:4] = [3, 4]
    tessera.convert("a.zarr", "b.zarr", "v3")  # which has no null
    view = tessera.zarr_view("b.zarr")
    assert zarr.open(view, mode="r").fill_value is None
    assert not os.path.exists("b.zarr/c/0") and view["0"] and view["2"]
    same(view, "", [0, 0, 3, 4, 0, 0])


def test_damaged_frames_are_not_passed():
    """What c-blosc would read beyond its end."""
    tessera.save("a.zarr", np.zeros(4000, "i8") + np.arange(4000), chunks=1000, format="zmeta")
    for number, damage in enumerate((lambda b: b[:len(b) // 2], lambda b: b"", lambda b: b[:12] + b"\xff\xff\xff\x7f" + b[16:])):
        name = f"a.zarr/__zdata__/{number}.blosc"
        with open(name, "rb") as file:
            whole = file.read()
        with open(name, "wb") as file:
            file.write(damage(whole))
        with raises(OSError, f"{number}.blosc"):
            tessera.zarr_view("a.zarr")[str(number)]


def test_what_others_wrote():
    checked = 0
    passed = set()
    for folder, _, files in os.walk(golden):
        if "/bad" in folder or not {"__zmeta__", "meta", ".zarray", "zarr.json"} & set(files):
            continue
        try:
            node = tessera.open(folder)
            if not isinstance(node, tessera.Array) or node.nbytes > 1 << 24:
                continue
            expected = node[...]
            view = tessera.zarr_view(node)
            array = zarr.open(view, mode="r")
        except (tessera.Error, TypeError, ValueError):
            continue
        if view.get("0" if not node.shape else ".".join("0" * node.ndim)) in stored_chunks(folder):
            passed |= {array.compressor and array.compressor.codec_id, *(f.codec_id for f in array.filters or [])}
        try:
            got = array[...]
        except RuntimeError:  # numcodecs from 0.16 on lacks snappy, and some frames that older ones wrote
            assert int(np.__version__.partition(".")[0]) >= 2, folder
            continue
        assert got.tobytes() == np.asarray(expected).astype(got.dtype).tobytes() or got.dtype == object, folder
        checked += 1
    assert checked > 20, checked
    wanted = {None, "blosc", "zlib", "gzip", "zstd", "lz4", "bz2", "lzma", "delta", "shuffle", "packbits", "vlen-utf8"}
    assert wanted <= passed, wanted - passed


def test_key_store():
    store = tessera.KeyStore("keys", durability="none")
    with raises(KeyError):
        store["absent"]
    with raises(KeyError):
        del store["absent"]
    for value in (b"bytes", bytearray(b"array"), memoryview(b"view"), np.arange(3), np.arange(6)[::2]):
        store["a/b/c"] = value
        assert store["a/b/c"] == bytes(value), value
    store["a/d"] = b""
    store["top"] = b"xyz"
    assert sorted(store) == ["a/b/c", "a/d", "top"] and len(store) == 3 and "a/d" in store and "a" not in store
    assert "../x" not in store and "" not in store and 3 not in store
    assert store.listdir() == ["a", "top"] and store.listdir("a") == ["b", "d"] and store.listdir("none") == []
    assert store.getsize("top") == 3 and store.getsize() == 3
    with raises(ValueError):
        store["../x"] = b""
    os.makedirs("keys/a/.tessera")
    for own in (".tessera/x", "a/.tessera", ".tessera-tmp-1-x"):  # what no listing shows
        with raises(tessera.InvalidArgument, "Tessera's own name"):
            store[own] = b""
        with raises(tessera.InvalidArgument):
            store.rename("top", own)
        assert own not in store and store.listdir(own) == []
    store.rename("a/b", "e")
    assert sorted(store) == ["a/d", "e/c", "top"]
    store.rmdir("a")
    del store["top"]
    assert list(store) == ["e/c"] and pickle.loads(pickle.dumps(store)) == store
    assert os.listdir("keys") == ["e"]
    store.clear()
    assert list(store) == []


def test_arrays_and_groups_as_zarr():
    values = np.arange(12).reshape(3, 4)
    tessera.save("old.zarr", values, chunks=(2, 2))
    np.savez("both.npz", x=values, y=values[0])
    shown = tessera.open("old.zarr").as_zarr()
    assert isinstance(shown, zarr.Array) and shown.read_only and np.array_equal(shown[...], values)
    assert np.array_equal(tessera.open("both.npz").as_zarr()["y"][1:], values[0, 1:])
    tessera.save("own.zarr", values, chunks=(2, 2), format="v2")
    tessera.open("own.zarr", "r+").as_zarr()[0] = 7
    assert (tessera.load("own.zarr")[0] == 7).all()


def test_what_takes_zarr_3_says_so():
    if not zarr.__version__.startswith("2."):
        return
    with raises(ImportError, "takes zarr-python 3"):
        importlib.import_module("tessera.zarr")
    with raises(AttributeError, "takes zarr-python 3"):
        tessera.zarr  # noqa: B018
    with raises(tessera.Unsupported, "reads only Zarr v2"):
        np.save("a.npy", np.arange(3))
        tessera.open("a.npy").as_zarr(zarr_format=3)


def test_zarr_writes_to_a_key_store():
    values = np.arange(60.0).reshape(6, 10)
    group = zarr.group(tessera.KeyStore("g.zarr", durability="none"))
    array = group.create_dataset("sub/a", data=values, chunks=(4, 4))
    array.attrs["units"] = "m"
    array[2:4] = -1
    array.resize(7, 10)
    values[2:4] = -1
    ours = tessera.open("g.zarr")["sub/a"]
    assert ours.shape == (7, 10) and np.array_equal(ours[:6], values) and ours.attrs["units"] == "m"
    del group["sub"]
    assert list(tessera.open("g.zarr")) == []


def test_xarray():
    try:
        import xarray
    except ImportError:
        return
    dataset = xarray.Dataset({"t": (("y", "x"), np.arange(6.0).reshape(2, 3), {"units": "K"})},
                             {"y": [10, 20], "x": np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[ns]")})
    dataset.to_zarr("d.zarr")
    # Of a hierarchy that another format keeps.
    g = tessera.create_group("new.zarr", "v3")
    for name, old in tessera.open("d.zarr").arrays():
        tessera.copy(old, f"new.zarr/{name}", format="v3")
    again = xarray.open_zarr(tessera.zarr_view("new.zarr"))
    assert again.load().identical(dataset), again
    assert list(g) == ["t", "x", "y"]


if __name__ == "__main__":
    module.run(dict(globals()))
