#!/usr/bin/env python3
"""Views of arrays: what composed keys read and assign is what NumPy's views have."""
import os
import pickle
import warnings

import module
import numpy as np
from module import raises, tessera


def made(values, name="a.zarr", **options):
    options.setdefault("chunks", tuple(max(1, min(3, n)) for n in values.shape))
    return tessera.create(name, data=values, overwrite=True, **options)


def random_key(rng, shape, lists=1):
    """A key that composes."""
    key, left = [], lists
    for length in shape:
        kind = rng.integers(6)
        if kind == 0 and length:
            key.append(int(rng.integers(-length, length)))
        elif kind == 1 and left and length:
            left -= 1
            key.append([list, np.array][rng.integers(2)](rng.integers(-length, length, rng.integers(0, 4))))
        elif kind == 2 and left:
            left -= 1
            key.append(rng.random(length) > 0.5)
        elif kind < 5:
            a, b = (None if rng.integers(3) == 0 else int(rng.integers(-length - 1, length + 2)) for _ in range(2))
            key.append(slice(a, b, [None, 1, 2, -1, -3][rng.integers(5)]))
        else:
            key.append(slice(None))
    if rng.integers(3) == 0:
        at = rng.integers(len(key) + 1)
        key[at:at + rng.integers(3)] = [Ellipsis]
    return tuple(key[:rng.integers(1, len(key) + 1)]) if key and rng.integers(3) == 0 else tuple(key)


def transposed(rng, view, values):
    if rng.integers(2):
        return view.T, values.T
    axes = rng.permutation(values.ndim).tolist()
    return view.transpose(*axes), values.transpose(axes)


def picked(values, key):
    """What NumPy picks. Newer ones raise what older ones only warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return values[key]
        except DeprecationWarning as error:
            raise IndexError(str(error)) from None


def chain(rng, array, values):
    """A view and NumPy's values of it, by up to three steps."""
    view, expected = array.T.T, values
    for _ in range(rng.integers(1, 4)):
        if rng.integers(3) == 0:
            view, expected = transposed(rng, view, expected)
            continue
        key = random_key(rng, expected.shape)
        try:
            following = picked(expected, key)
        except IndexError:
            with raises(IndexError):
                view.lazy[key]
            continue
        view, expected = view.lazy[key], np.asarray(following)
    return view, expected


def test_reading_is_numpys():
    rng = np.random.default_rng(5)
    for number in range(400):
        values = rng.integers(0, 100, rng.integers(0, 7, rng.integers(1, 5)), dtype="i4")
        array = made(values) if number % 20 == 0 else array
        values = array[...]
        view, expected = chain(rng, array, values)
        assert view.shape == expected.shape and view.ndim == expected.ndim and view.size == expected.size and view.dtype == expected.dtype
        assert view.nbytes == expected.nbytes
        found = np.asarray(view)
        assert np.array_equal(found, expected), (number, view, found, expected)
        again = pickle.loads(pickle.dumps(view))
        assert again.shape == view.shape and np.array_equal(np.asarray(again), expected)
        for key in (random_key(rng, expected.shape), random_key(rng, expected.shape, lists=4), ..., (None, ...), expected > 50):
            try:
                wanted = expected[key]
            except IndexError:
                with raises(IndexError):
                    view[key]
                continue
            got = view[key]
            assert np.shape(got) == np.shape(wanted) and np.array_equal(got, wanted), (number, view, key, got, wanted)


def test_assigning_is_numpys():
    rng = np.random.default_rng(6)
    for number in range(200):
        values = rng.integers(0, 100, rng.integers(1, 6, rng.integers(1, 4)), dtype="i4")
        array = made(values)
        # Along the way only what is a view in NumPy, too.
        view, expected = array.lazy[...], values
        for _ in range(rng.integers(1, 3)):
            if rng.integers(2):
                view, expected = transposed(rng, view, expected)
            else:
                key = random_key(rng, expected.shape, lists=0)
                try:
                    if not isinstance(picked(expected, key), np.ndarray):
                        continue
                except IndexError:
                    continue
                view, expected = view.lazy[key], expected[key]
        key = (random_key(rng, expected.shape), random_key(rng, expected.shape, lists=3), ...)[rng.integers(3)]
        try:
            shape = picked(expected, key).shape
        except IndexError:
            continue
        new = rng.integers(100, 200, shape if rng.integers(2) else shape[1:]) if shape and rng.integers(3) else int(rng.integers(100, 200))
        places = np.arange(expected.size).reshape(expected.shape)[key]
        if np.unique(places).size != places.size:
            continue  # which of several values for one element stays is not said
        expected[key] = new
        view[key] = new
        assert np.array_equal(array[...], values), (number, view, key, new)
    array = made(np.zeros((3, 4), "i4"))
    with raises(ValueError, "could not broadcast"):
        array.T[...] = np.zeros((3, 4))
    with raises(tessera.InvalidArgument, "opened for reading"):
        tessera.open("a.zarr").T[0] = 1


def test_nothing_is_read():
    array = made(np.arange(12).reshape(3, 4))
    for place, _, names in os.walk("a.zarr/c"):
        for name in names:
            with open(os.path.join(place, name), "wb") as file:
                file.write(b"damaged")
    view = array.lazy[::2].T.lazy[1:, [1]]
    assert view.shape == (3, 1) and view.chunks == (3, 1) and "View (3, 1) int64" in repr(view) and len(view) == 3
    with raises(tessera.Corrupt):
        np.asarray(view)


def test_fields_names_and_what_elements_stand_for():
    values = np.zeros((3, 4), [("u", "i2"), ("v", "f4"), ("w", "i4")])
    values["u"] = np.arange(12).reshape(3, 4)
    values["v"] = values["u"] / 2
    array = made(values, dims=("y", "x"), attrs={"units": "m"})
    view = array.lazy[::2, 1:].T
    assert view.dims == ("x", "y") and view.attrs["units"] == "m" and view.fill_value == array.fill_value
    assert np.array_equal(view["u"], values[::2, 1:].T["u"]) and np.array_equal(view["u", 0], values["u"][::2, 1])
    one = view.lazy["u"]
    assert one.dtype == "i2" and one.fill_value == 0 and np.array_equal(one[1:, 0], values[::2, 1:].T["u"][1:, 0])
    assert np.array_equal(view.lazy[["w", "u"]][0], values[::2, 1:].T[["w", "u"]][0])
    assert np.array_equal(array.lazy["v", 1:].lazy[[1, 0]][...], values["v"][1:][[1, 0]])
    one[0] = -1
    values["u"][::2, 1] = -1
    assert np.array_equal(array[...], values)
    with raises((ValueError, KeyError)):
        view.lazy["z"]
    with raises(IndexError, "taken already"):
        one.lazy["u"]
    packed = made(np.array([[1, 2, -9], [4, 5, 6]], "i2"), "p.zarr", fill_value=0, attrs={"scale_factor": 0.5, "_FillValue": -9})
    assert np.array_equal(packed.T.decoded[...], packed.decoded[...].T, equal_nan=True)
    packed.lazy[1].decoded[:2] = [7.5, np.nan]
    assert packed[1].tolist() == [15, -9, 6]
    assert np.array_equal(packed.T.astype("f4")[1:], packed[...].T.astype("f4")[1:]) and packed.T.astype("f4")[0].dtype == "f4"


def test_what_composes_and_what_does_not():
    array = made(np.arange(24).reshape(2, 3, 4))
    for key in (None, (None, 0), ([0, 1], [0, 1]), True, [[0, 1]], 1.5, "a", (0, 0, 0, 0), (..., ...), 5, [7], [True], slice("a")):
        with raises((IndexError, TypeError, ValueError)):
            array.lazy[key]
    assert array.lazy[1, 2, 3][()] == 23 and array.lazy[1, 2, 3].shape == ()
    with raises(ValueError):
        array.T.transpose(0, 0, 1)
    with raises(TypeError):
        len(array.lazy[0, 0, 0])
    assert [part.tolist() for part in array.lazy[0].T] == array[0].T.tolist()
    assert np.array_equal(np.from_dlpack(array.lazy[0].T), array[0].T)
    with raises(ValueError):
        np.array(0).__array__ and array.T.__array__(copy=False)


def test_both_have_one_interface():
    array = made(np.arange(12.0).reshape(3, 4))
    for each in array, array.T, array.lazy[1:]:
        assert isinstance(each, tessera.types.AnyArray)
        assert each.T.lazy[0].shape == each.shape[-1:] or each.T.lazy[0].shape == each.shape[:-1]
    assert not isinstance(np.arange(3), tessera.types.AnyArray) and isinstance(array.T, tessera.View)


def test_copies_and_dask():
    values = np.arange(240, dtype="i4").reshape(12, 20)
    array = made(values, chunks=(4, 5))
    tessera.copy(array.lazy[::-2, 3:], "c.zarr")
    assert np.array_equal(tessera.load("c.zarr"), values[::-2, 3:])
    tessera.copy(array.lazy[2:, 5].lazy[1::3], "d.npy")
    assert np.array_equal(np.load("d.npy"), values[2:, 5][1::3])
    tessera.copy(array.lazy[2:], "e.zarr", np.s_[:, 4:6])
    assert np.array_equal(tessera.load("e.zarr"), values[2:, 4:6])
    for view in array.T, array.lazy[[0, 2]]:
        with raises(tessera.InvalidArgument, "tessera.save"):
            tessera.copy(view, "no.zarr")
        tessera.save("f.zarr", view, overwrite=True)
        assert np.array_equal(tessera.load("f.zarr"), np.asarray(view))
    array[:2] = array.lazy[-2:]
    assert np.array_equal(array[:2], values[-2:])
    try:
        import dask.array
    except ImportError:
        print("  left out: no dask")
        return
    view = array.lazy[1::2].T
    for chunks in "auto", (7, 2), -1:
        lazy = view.to_dask(chunks=chunks)
        assert lazy.dtype == view.dtype and np.array_equal(lazy.compute(), np.asarray(view)) and int(lazy.sum().compute()) == np.asarray(view).sum()
    assert dask.base.tokenize(view) != dask.base.tokenize(array.lazy[::2].T)


def operands(array, values):
    """Views of an array with named dimensions, and NumPy's of the same."""
    return [(array.lazy[key], values[key]) for key in (np.s_[2:9], np.s_[1::3, ::2], np.s_[::-1, 4:], np.s_[5], np.s_[3, 2:-2], np.s_[4:4],
                                                       np.s_[...], np.s_[6, 7])] + \
           [(array.T, values.T), (array.lazy[1:5].T.lazy[2:], values[1:5].T[2:])]


def test_what_is_computed_takes_views():
    values = np.random.default_rng(4).integers(0, 1000, (12, 20)).astype("f8")
    np.savez("plain.npz", a=values, b=values)
    for array in made(values, chunks=(4, 5), dims=["y", "x"]), tessera.open("plain.npz")["a"]:
        for view, expected in operands(array, values):
            if array.dims is None and len(view.shape) == 2 and expected.strides[0] == 8:  # transposed
                with raises(tessera.InvalidArgument, "without names"):
                    tessera.calc("a + 1", a=view)
                continue
            assert np.array_equal(tessera.calc("a * 2 + b", a=view, b=array.lazy[0, 0]), expected * 2 + values[0, 0])
            assert tessera.digest(view) == tessera.digest(np.array(expected, order="C"))
            assert tessera.diff(view, np.array(expected, order="C"))["different"] == 0
            if not expected.size or not expected.ndim:
                continue
            assert np.array_equal(tessera.reduce(view, "sum", axis=0), expected.sum(axis=0))
            assert np.array_equal(tessera.reduce(view, "max", weights=None), expected.max())
            assert tessera.stats(view)["max"] == expected.max()
            for given in view, np.array(expected):
                assert np.array_equal(tessera.find(given, "value > 500"), np.argwhere(expected > 500))
            by = (2,) + (1,) * (expected.ndim - 1)
            pairs = np.array([expected[n:n + 2].max(axis=0) for n in range(0, len(expected), 2)])
            assert np.array_equal(tessera.coarsen(view, by=by, how="max"), pairs)
    array = made(values, chunks=(4, 5), dims=["y", "x"])
    assert np.allclose(tessera.reduce(array.lazy[:, 3:8], "mean", axis="x", weights=array.lazy[0, 3:8]),
                       np.average(values[:, 3:8], axis=1, weights=values[0, 3:8]))
    tessera.calc("made.zarr", "a - b", {"a": array.T.lazy[1:], "b": array.T.lazy[:-1]}, overwrite=True)
    assert np.array_equal(tessera.load("made.zarr"), values.T[1:] - values.T[:-1]) and tessera.open("made.zarr").dims == ("x", "y")
    tessera.copy(array.T.lazy[3:], "made.zarr", overwrite=True, chunks=(2, 2))
    assert np.array_equal(tessera.load("made.zarr"), values.T[3:])
    tessera.pyramid(array.lazy[2:, 4:], "image.zarr", by=2, levels=2)
    assert np.array_equal(tessera.load("image.zarr/0"), values[2:, 4:])
    for make in (lambda: tessera.reduce(array.lazy[1:], "a.zarr", how="sum", overwrite=True),
                 lambda: tessera.pyramid(array.lazy[1:], "a.zarr", overwrite=True)):
        with raises(tessera.InvalidArgument, "cannot lie where"):
            make()
    with raises(tessera.InvalidArgument, "begins anew"):
        tessera.copy(array.T, "no.zarr", resume=True)
    assert np.array_equal(tessera.concat([array.lazy[1:], array]), np.concatenate([values[1:], values]))
    assert np.array_equal(tessera.stack([array.lazy[1:3], array.lazy[:2]]), np.stack([values[1:3], values[:2]]))
    with raises(tessera.InvalidArgument, "tessera.save"):
        tessera.calc("a + 1", a=array.lazy[[0, 1]])


def test_coordinates_of_what_a_view_takes():
    """They lie beside the array, and are parts as it is."""
    tessera.create_group("earth.zarr")
    lat, lon = np.arange(-40.0, 50, 10), np.arange(0.0, 100, 10)
    values = np.add.outer(lat, lon)
    for name, data in (("lat", lat), ("lon", lon), ("t", values)):
        tessera.save(f"earth.zarr/{name}", data, dims=["lat", "lon"] if name == "t" else [name])
    field = tessera.open("earth.zarr/t")
    part = tessera.regrid(field, to="lat=5:25:10,lon=15:55:10", sel="lat@3:9, lon@1:8")
    for source in field.lazy[3:9, 1:8], field.lazy[3:, 1:].lazy[:6, :7]:
        assert np.array_equal(tessera.regrid(source, to="lat=5:25:10,lon=15:55:10"), part)
    assert np.allclose(part, np.add.outer([5, 15, 25], [15, 25, 35, 45, 55]))
    assert np.allclose(tessera.reduce(field.lazy[2:6], "mean", weights="lat"),
                       np.average(values[2:6].mean(axis=1), weights=np.cos(np.radians(lat[2:6]))))
    job = tessera.plan("reduce", field.lazy[2:6], "mean.zarr", out="mean.json", how="mean", weights="lat", axis="lat")
    for unit in job.units():
        job.run(unit)
    job.finish()
    assert np.allclose(tessera.load("mean.zarr"), np.average(values[2:6], axis=0, weights=np.cos(np.radians(lat[2:6]))))


def test_fields_are_sources():
    table = np.zeros((6, 4), [("u", "<i4"), ("v", "<f8")])
    table["u"], table["v"] = np.arange(24).reshape(6, 4), 0.5
    array = made(table)
    assert np.array_equal(tessera.calc("u + v", u=array.lazy["u"].lazy[1:], v=array.lazy[1:].lazy["v"]), table["u"][1:] + 0.5)
    tessera.copy(array.lazy["u"].lazy[::2, 1:], "u.zarr", overwrite=True)
    assert np.array_equal(tessera.load("u.zarr"), table["u"][::2, 1:])
    with raises(tessera.InvalidArgument, "one field"):
        tessera.calc("a + 1", a=array.lazy[["u", "v"]])


def test_jobs_take_views():
    values = np.arange(240.0).reshape(12, 20)
    array = made(values, chunks=(4, 5), dims=["y", "x"])
    view, expected = array.lazy[2:, ::2], values[2:, ::2]
    for number, (command, options, result) in enumerate((("copy", {}, expected), ("rechunk", {"chunks": (3, 3)}, expected),
                                                         ("reduce", {"how": "sum", "axis": 1}, expected.sum(axis=1)),
                                                         ("coarsen", {"by": (2, 1), "how": "min"}, expected[::2]))):
        job = tessera.plan(command, view, f"job{number}.zarr", out=f"job{number}.json", **options)
        for unit in job.units():
            job.run(unit)
        job.finish()
        assert np.array_equal(tessera.load(f"job{number}.zarr"), result)
    for refused, words in ((lambda: tessera.plan("copy", array.T, "no.zarr", out="no.json"), "by its path"),
                           (lambda: tessera.plan("copy", view, "no.zarr", out="no.json", sel="1:"), "view.lazy"),
                           (lambda: tessera.plan("pyramid", view, "no.zarr", out="no.json"), "copy the view first"),
                           (lambda: tessera.plan("calc", "a + 1", "no.zarr", out="no.json", operands={"a": view}), "sel")):
        with raises(tessera.InvalidArgument, words):
            refused()
        assert not os.path.exists("no.zarr") and not os.path.exists("no.json")


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy, about indices of nothing
    module.run(dict(globals()))
