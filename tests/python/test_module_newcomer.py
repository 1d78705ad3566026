#!/usr/bin/env python3
"""The Python module: what one expects from h5py and zarr works; errors and warnings say what is wrong and what helps."""
import os
import threading
import warnings

import module
import numpy as np
from module import raises, tessera


def test_names_of_other_files():
    a = tessera.create("a.zarr", (2, 3), "u1")
    for call in (lambda to: tessera.copy(a, to), lambda to: tessera.convert(a, to, "v3"), lambda to: tessera.save(to, a[:]),
                 lambda to: tessera.create(to, 3, "u1"), lambda to: tessera.calc(to, "a", {"a": a}),
                 lambda to: tessera.coarsen(a, to, by=(2, 2)), lambda to: tessera.concat([a, a], to),
                 lambda to: tessera.pyramid(a, to)):
        for name in "x.jpg", "x.HDF", "x.txt":
            with raises(tessera.InvalidArgument, f"{name}: "):
                call(name)
            assert not os.path.exists(name)
    for call in lambda: tessera.create("x.npy", 3, "u1"), lambda: tessera.pyramid(a, "x.npy"):
        with raises(tessera.InvalidArgument, "tessera.save"):
            call()
    tessera.copy(a, "x.jpg/")
    assert tessera.open("x.jpg").shape == (2, 3)
    tessera.copy(a, "x.csv")
    with open("x.csv") as text:
        assert text.read() == "0,0,0\n" * 2
    tessera.copy(a, "x.npy")
    np.testing.assert_array_equal(np.load("x.npy"), a[:])


def test_errors_of_new_arrays_name_them_once():
    for options in {"chunks": (2,)}, {"chunks": (2,), "attrs": {"x": 1}}, {"chunks": (2,), "overwrite": True}, {"format": "nope"}, \
            {"chunks": (2,), "fill_value": 1}, {"dtype": "V0"}:
        try:
            tessera.create("new.zarr", **{"shape": (3, 3), "dtype": "i4", **options})
            raise AssertionError(options)
        except tessera.InvalidArgument as error:
            assert str(error).startswith("new.zarr: ") or os.path.abspath("new.zarr: ") in str(error), error
            assert str(error).count("new.zarr") == 1, error


def test_a_wrong_option_is_answered_with_all_that_there_are():
    with raises(TypeError, "'keep_dims'; there are: array, axis, how, by, weights, rolling, "):
        tessera.reduce(np.zeros(3), how="mean", keep_dims=True)
    with raises(TypeError, "there are: array, by, how, "):
        tessera.coarsen(np.zeros(3), size=2, by=(2,))
    with raises(TypeError, "there are: arrays, axis, "):
        tessera.stack(["a.zarr"], chunk=2)


def test_attributes_opened_for_reading():
    tessera.create("a.zarr", 3, "u1", attrs={"x": 1})
    tessera.create_group("g", attrs={"x": 1})
    for path in "a.zarr", "g":
        attrs = tessera.open(path).attrs
        for change in (lambda: attrs.__setitem__("x", 2), lambda: attrs.__delitem__("x"), lambda: attrs.put({}),
                       lambda: attrs.update(y=1)):
            with raises(tessera.InvalidArgument, '"r+"'):
                change()
        assert attrs == {"x": 1}
    with raises(tessera.InvalidArgument, '"r+"'):
        tessera.open("a.zarr").dims = ("x",)


def test_names_of_attributes():
    a = tessera.create("a.zarr", 3, "u1")
    ring = []
    ring.append(ring)
    for call, found in ((lambda: a.attrs.__setitem__(1, 2), "found 1"), (lambda: a.attrs.__setitem__(b"x", 2), "found b'x'"),
                        (lambda: a.attrs.update({2: 3}), "found 2"), (lambda: a.attrs.put({3: 4}), "found 3"),
                        (lambda: tessera.create("b.zarr", 1, "u1", attrs={4: 5}), "found 4"),
                        (lambda: a.attrs.__setitem__("x", [{"y": {5: 6}}]), "found 5")):
        with raises(TypeError, found):
            call()
    with raises(RecursionError):
        a.attrs["ring"] = ring
    with raises(KeyError):
        del a.attrs[1]
    assert dict(a.attrs) == {} and not os.path.exists("b.zarr")


def test_what_an_array_is_not():
    a = tessera.create("a.zarr", data=[1, 2, 3], format="v3")
    for other in 3, 1.5, "x", np.int8(3), np.arange(3), [1, 2, 3]:
        for compare in lambda: a == other, lambda: a != other:
            with raises(TypeError, "a[...] == value"):
                compare()
    assert a == tessera.open("a.zarr", "r+") and a != tessera.open("a.zarr") and a != None and a in {a: 1}  # noqa: E711
    for view in a, a.astype("f4"):
        with raises(ValueError, "copy=False"):
            view.__array__(copy=False)
        assert view.__array__(None, copy=True).tolist() == [1, 2, 3] and np.asarray(view, "f8").dtype == "f8"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.asarray(a).tolist() == [1, 2, 3]
        if np.__version__.startswith("1."):  # where it means: a copy only if there must be one
            assert np.array(a, copy=False).tolist() == [1, 2, 3]
    store = tessera.KeyStore("keys")
    for value in [1, 2], "text", 5, None:
        with raises(TypeError, "bytes"):
            store["a"] = value
    assert "a" not in store


def test_names_of_dimensions_are_distinct():
    for call in (lambda: tessera.create("b.zarr", (2, 2), "u1", dims=("y", "y")),
                 lambda: tessera.calc("b.zarr", "a", {"a": np.zeros((2, 2))}, dims=("y", "y")),
                 lambda: setattr(tessera.create("a.zarr", (2, 2), "u1", overwrite=True), "dims", ("y", "y"))):
        with raises(tessera.InvalidArgument, 'two dimensions are named "y"'):
            call()
    assert not os.path.exists("b.zarr")
    tessera.create("b.zarr", (2, 2, 2), "u1", dims=(None, "y", None), format="v3")


def test_warnings_lead_to_the_line():
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.zeros(1, "i1")[0] = 300
        return  # NumPy before 1.24 says nothing
    except OverflowError:
        return  # NumPy 2 refuses it
    except DeprecationWarning:
        pass
    a = tessera.create("a.zarr", 6, "i1")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        a[0] = 300
        a[1:3] = [-129, 2]
        a[3:] = 200
        a.write(0, 301, casting="unsafe")
        with a.edit() as batch:
            batch[5] = 128
        a[4] = 127
        a[4:] = [-128, 127]
        a[4:] = np.array([300, 3])
    wanted = [line + 1 for line, text in enumerate(open(__file__)) if text.strip() in
              ("a[0] = 300", "a[1:3] = [-129, 2]", "a[3:] = 200", "batch[5] = 128")]
    assert {w.filename for w in caught} == {__file__}, [w.filename for w in caught]
    assert set(wanted) <= {w.lineno for w in caught} and {w.category for w in caught} == {DeprecationWarning}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with raises(DeprecationWarning, "300"):
            a[1] = 300
    assert a[1] == 127, "what is refused is not written"


def test_warnings_of_many_threads():
    a = tessera.create("a.zarr", 8, "i1")
    before = list(warnings.filters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        within = list(warnings.filters)

        def work(n):
            for _ in range(50):
                try:
                    a[n] = 300 + n
                except OverflowError:  # NumPy 2 refuses what 1 warns of
                    a[n] = 44 + n

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert warnings.filters == within
    assert warnings.filters == before
    np.testing.assert_array_equal(a[:], np.arange(44, 52))


def test_create_from_data():
    a = tessera.create("a.zarr", data=np.arange(6, dtype="i2").reshape(2, 3), chunks=(1, 3), format="v3", dims=["y", "x"])
    assert a.mode == "r+" and a.dtype == "i2" and a[1].tolist() == [3, 4, 5] and a.dims == ("y", "x") and a.nchunks == 2
    assert tessera.create("b.zarr", (2, 3), "f4", data=[1, 2, 3], format="v2")[:].tolist() == [[1, 2, 3]] * 2
    assert tessera.create("c.zarr", data=["a", "bc"], dtype=str, format="v3")[1] == "bc"
    assert tessera.create("c.zarr", data=a, overwrite=True, format="v3", codec="none").codec == "none"
    for call in (lambda: tessera.create("d.zarr", 3), lambda: tessera.create("d.zarr", dtype="u1"),
                 lambda: tessera.create_group("g").create_array("d", 3)):
        with raises(TypeError, "shape and dtype, or data"):
            call()
    with raises(ValueError, "(2,) does not broadcast to shape (3,)"):
        tessera.create("d.zarr", 3, data=[1, 2])
    assert not os.path.exists("d.zarr")


def test_codec_and_order():
    for codec in "none", "zstd:3", "blosc:zstd:5:shuffle", "delta,gzip:1", "zstd:1,crc32c":
        for format, order in ("v2", "F"), ("v3", "F"), ("v3", "C"):
            if "crc32c" in codec and format == "v2":
                continue
            a = tessera.create("a.zarr", (4, 3), "i4", codec=codec, order=order, format=format, overwrite=True)
            b = tessera.create("b.zarr", (4, 3), "i4", codec=a.codec, order=a.order, format=format, overwrite=True)
            assert a.order == b.order == order and a.codec == b.codec and (codec in a.codec or "crc32c" in codec), a.codec
    np.save("f.npy", np.zeros((3, 4), order="F"))
    f = tessera.open("f.npy")
    assert (f.codec, f.order, f.nchunks) == (None, "F", 1)
    assert tessera.create("e.zarr", (0, 5), "u1", (2, 2)).nchunks == 0
    assert tessera.create("s.zarr", (5, 5), "u1", (2, 2), shards=(4, 4), format="v3").nchunks == 9


def test_close():
    tessera.create("a.zarr", data=np.arange(4))
    np.save("f.npy", np.arange(4))
    for path in "a.zarr", "f.npy":
        before = len(os.listdir("/proc/self/fd"))
        with tessera.open(path, "r+") as a:
            a[0] = 5
        a.close()
        assert "closed" in repr(a) and len(os.listdir("/proc/self/fd")) == before
        for use in lambda: a[0], lambda: a.shape, lambda: a.attrs["x"], lambda: a.__setitem__(0, 1):
            with raises(tessera.InvalidArgument, "is closed"):
                use()
        assert tessera.open(path)[0] == 5
    with tessera.create_group("g") as g:
        inner = g.create_array("x", data=[1])
    assert "closed" in repr(g) and inner[0] == 1
    for use in lambda: g["x"], lambda: list(g), lambda: g.attrs["x"], lambda: g.create_group("y"):
        with raises(tessera.InvalidArgument, "is closed"):
            use()
    np.savez("m.npz", a=[1], b=[2])
    with tessera.open("m.npz") as members:
        assert members["b"][0] == 2
    a = tessera.open("a.zarr", "r+")
    batch = a.edit()
    batch[0] = 9
    batch.close()
    assert a[0] == 5


def test_groups_take_values():
    g = tessera.create_group("g", format="v2")
    g["x"] = np.arange(3)
    g["x"] = g["sub/y"] = [1.5, 2.5]
    assert g["x"][:].tolist() == [1.5, 2.5] and g["x"].format == g["sub"].format == g["sub/y"].format == "v2"
    other = tessera.create("o.zarr", data=[[1, 2]], dims=["y", "x"], codec="zstd:2", format="v3", attrs={"u": "m"})
    g["copy"] = other
    g["copy"] = g["copy"]
    assert (g["copy"].format, g["copy"].codec, g["copy"].dims, dict(g["copy"].attrs)["u"]) == ("v2", "zstd:2", ("y", "x"), "m")
    with raises(tessera.AlreadyExists):
        g["sub"] = [1]
    with raises(TypeError, "tessera.copy"):
        g["z"] = g["sub"]
    with raises(tessera.InvalidArgument, "r+"):
        tessera.open("g")["z"] = [1]
    assert g.require_array("x", 2, ">f8") == g["x"] and g.require_array("new/z", (2, 2), str).shape == (2, 2)
    for name, shape, dtype in ("x", 3, "f8"), ("x", 2, "f4"), ("sub", 2, "f8"), ("new/z", (2, 2), bytes):
        with raises(tessera.InvalidArgument, "expected"):
            g.require_array(name, shape, dtype)
    with raises(tessera.InvalidArgument, "expected a group"):
        g.require_group("x")
    assert g.require_group("sub") == g["sub"] and list(g["sub"]) == ["y"]


def test_arrays_within_elements():
    nested = np.dtype([("a", (np.dtype(("<i4", (2,))), (3,))), ("b", "u1")])
    values = np.zeros(2, nested)
    values["a"] = np.arange(12).reshape(2, 3, 2)
    for path, options in ("a.zarr", {"format": "v2"}), ("a.npy", {}), ("z.zarr", {"format": "zmeta"}):
        tessera.save(path, values, **options)
        got = tessera.open(path)[:]
        assert got.dtype["a"] == np.dtype(("<i4", (3, 2))) and (got["a"] == values["a"]).all(), path
    assert (np.load("a.npy")["a"] == values["a"]).all()
    words = tessera.create("w.zarr", data=np.array([np.array("x", object), "y"], object), format="v3")
    words[1] = np.array("z", object)
    words.append([np.array("v", object)])
    assert words[:].tolist() == ["x", "z", "v"] and type(words[1]) is str


if __name__ == "__main__":
    module.run(dict(globals()))
