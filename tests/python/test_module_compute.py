#!/usr/bin/env python3
"""tessera.calc, reduce, coarsen, stack, concat: compared with NumPy, in memory and as files of every kind."""
import os
import shutil

import module
import numpy as np
from module import raises, tessera

RANDOM = np.random.default_rng(20261130)
FORMS = ["a.npy", "v2", "v3", "a.npz::x", "a.zip"]


def stored(values, form):
    if form in ("v2", "v3"):
        tessera.save("a.zarr", values, chunks=tuple(max(1, n // 2) for n in values.shape), format=form, overwrite=True)
        return "a.zarr"
    if form == "a.zip":
        tessera.save("z.zarr", values, chunks=tuple(max(1, n // 3) for n in values.shape), format="v2", overwrite=True)
        tessera.copy("z.zarr", "a.zip", overwrite=True)
        return "a.zip"
    tessera.save(form, values, overwrite=True)
    return form


def made(function, *words, out, **options):
    """The result in memory, which is the same as the one that is written."""
    fast = function(None, *words, **options) if function is tessera.calc else function(*words, **options)
    placed = function(out, *words, overwrite=True, **options) if function is tessera.calc else function(
        *words, out, overwrite=True, **options)
    assert placed is None
    written = tessera.load(out)
    assert written.dtype == fast.dtype and np.array_equal(written, fast, equal_nan=fast.dtype.kind in "fc")
    return fast


def test_random_cases():
    for n in range(60):
        values = RANDOM.integers(-100, 100, RANDOM.integers(1, 12, int(RANDOM.integers(1, 4)))).astype(
            ["<i4", "<f4", ">i2", "<f8", "u1"][n % 5])
        path = stored(values, FORMS[n % len(FORMS)])
        out = ["o.zarr", "o.npy", "o.zip"][n % 3]
        native = values.astype(values.dtype.newbyteorder("="))
        operand = tessera.open(path) if n % 2 else path
        wanted = np.where(native > 3, native, 2) + native
        got = made(tessera.calc, "where(a > 3, a, 2) + b", {"a": operand, "b": values}, out=out)
        assert got.dtype == wanted.dtype and np.array_equal(got, wanted)
        axis = int(RANDOM.integers(-values.ndim, values.ndim))
        got = made(tessera.reduce, operand, how="max", axis=axis, keepdims=True, out=out)
        assert np.array_equal(got, values.max(axis=axis, keepdims=True))
        got = made(tessera.coarsen, operand, by=[2] * values.ndim, how="nearest", out=out)
        assert np.array_equal(got, values[(slice(None, None, 2),) * values.ndim])
        got = made(tessera.stack, [operand, path], axis=axis, out=out)
        assert np.array_equal(got, np.stack([values, values], axis=axis))
        got = made(tessera.concat, [operand, path], axis=axis, out=out)
        assert np.array_equal(got, np.concatenate([values, values], axis=axis))


def test_reductions():
    values = RANDOM.normal(size=(7, 5, 3)).astype("f4")
    values[2, 3, 1] = np.nan
    for how, wanted in [("min", np.min), ("max", np.max), ("argmin", np.argmin), ("median", np.median)]:
        assert np.array_equal(tessera.reduce(values, how=how, axis=1, keep_missing=True), wanted(values, axis=1), equal_nan=True), how
    np.testing.assert_allclose(tessera.reduce(values, how="var", axis=1),
                               np.nanvar(values.astype("f8"), axis=1), rtol=1e-6)
    assert np.isnan(tessera.reduce(values, how="var", keep_missing=True)) and tessera.reduce(np.arange(4) + 10**9, how="var") == 1.25
    np.testing.assert_allclose(tessera.reduce(values, how="std", axis=(0, 2), skip_nan=True),
                               np.nanstd(values.astype("f8"), axis=(0, 2)), rtol=1e-6)
    assert tessera.reduce(values, how="count") == values.size - 1
    assert tessera.reduce(np.array([1, 2], "u1"), how="sum").dtype == np.uint64
    truth = np.array([2, 0, 3, 0], "u1").view("?")  # any byte but 0 is True
    assert tessera.reduce(truth, how="mean") == 0.5 and tessera.reduce(truth, how="sum") == 2
    with raises(tessera.InvalidArgument, "axis"):
        tessera.reduce(values, how="max", axis=3)
    with raises(tessera.InvalidArgument, "axis=()"):
        tessera.reduce(values, how="max", axis=())
    with raises(tessera.InvalidArgument, "std"):
        tessera.reduce(values, how="variance")


def test_what_a_new_array_takes_from_its_source():
    a = tessera.create("a.zarr", (10, 8), "<f4", (3, 4), format="v3", dims=["y", "x"])
    a[:] = np.arange(80).reshape(10, 8)
    tessera.calc("b.zarr", "a * 2", {"a": a})
    b = tessera.open("b.zarr")
    assert (b.format, b.chunks, b.dims, b.dtype) == ("v3", (3, 4), ("y", "x"), np.dtype("<f4"))
    tessera.reduce(a, "c.zarr", how="mean", axis=0)
    assert tessera.open("c.zarr").dims == ("x",)
    tessera.coarsen(a, "d.zarr", by=(2, 2), chunks=(5, 1), codec="zstd:3", format="v2", dims=["r", "s"], fill_value=3)
    d = tessera.open("d.zarr")
    assert (d.format, d.chunks, d.dims, d.fill_value) == ("v2", (5, 1), ("r", "s"), 3)
    tessera.calc("e.npy", "a + 0.6", {"a": a}, dtype="i2", cast="round")
    assert np.array_equal(np.load("e.npy"), np.rint(a[:] + np.float32(0.6)).astype("i2"))
    tessera.create_group("g")
    tessera.calc("g/x", "a", {"a": "e.npy"})
    assert tessera.open("g/x").format == "v3"
    assert np.array_equal(tessera.calc(None, "t - u", {"t": np.array(["2020-01-02"], "M8[D]"), "u": np.array(["2020"], "M8[Y]")}),
                          np.array([1], "m8[D]"))


def test_arrays_in_memory_are_joined():
    a, b = RANDOM.normal(size=(2, 3, 4))
    tessera.save("a.zarr", a, chunks=(2, 2))
    np.testing.assert_array_equal(tessera.stack([a, b], axis=1), np.stack([a, b], 1))
    np.testing.assert_array_equal(tessera.stack([a, "a.zarr", tessera.open("a.zarr")]), np.stack([a, a, a]))
    np.testing.assert_array_equal(tessera.stack(np.stack([a, b]), axis=2), np.stack([a, b], 2))  # as numpy does
    tessera.concat([a.T, b.T[:1]], "joined.zarr", axis=0, chunks=(3, 3))
    np.testing.assert_array_equal(tessera.load("joined.zarr"), np.concatenate([a.T, b.T[:1]]))
    with raises(tessera.InvalidArgument, "part 2, in memory"):
        tessera.concat([a, b.T])


def test_differences_of_data_sets():
    t = np.arange(12.0).reshape(3, 4)
    for name, last in (("a", 11.0), ("b", 13.5)):
        group = tessera.create_group(f"{name}.zarr", attrs={"title": "x"}, format="v3")
        t[2, 3] = last
        group.create_array("t", data=t, chunks=(2, 2), dims=["y", "x"])
        group.create_array("sub/n", data=np.arange(3), attrs={"note": name})
    tessera.save("b.zarr/more", np.arange(2))
    one, two = tessera.open("a.zarr"), tessera.open("b.zarr")
    found = tessera.diff(one, two)
    assert isinstance(found, tessera.types.SetDifference) and not found.equal
    assert (found.only_in_a, found.only_in_b, found.attributes) == ([], ["more"], ["sub/n"])
    assert [(each["path"], each["different"], each["largest"]) for each in found.different] == [("t", 1, 2.5)], found
    assert tessera.diff("a.zarr", "b.zarr") == found == tessera.diff(one, "b.zarr")
    assert tessera.diff(one, "a.zarr").equal and tessera.diff(one, one).same == 4
    close = tessera.diff(one, two, atol=3)
    assert close.different == [] and not close.equal
    tessera.copy("a.zarr", "a.npz")
    tessera.copy("b.zarr", "b.npz")
    files = tessera.diff("a.npz", tessera.open("b.npz"))
    assert files.only_in_b == ["more"] and [each["path"] for each in files.different] == ["t"]
    with raises(tessera.InvalidArgument, "expected an array"):
        tessera.diff(one, "a.zarr/t")
    with raises(tessera.NotFound, "gone"):
        tessera.diff(one, "gone.zarr")


def test_unstacked():
    for n, form in enumerate(FORMS):
        values = RANDOM.integers(0, 99, (5, 12, 3)).astype(["<i4", ">f8"][n % 2])
        path = stored(values, form)
        for axis, end in ((0, "npy"), (1, "zarr"), (-1, "npz")):
            paths = tessera.unstack(tessera.open(path) if n % 2 else path, f"{n}{axis}/step-{{}}.{end}", axis=axis)
            assert [os.path.basename(p) for p in paths] == sorted(os.listdir(f"{n}{axis}")), "in natural order"
            assert len(paths) == values.shape[axis] and (len(paths) < 10 or paths[0].endswith(f"step-00.{end}"))
            assert np.array_equal(tessera.stack(paths, axis=axis), values)
    values = np.arange(6).reshape(2, 3)
    tessera.save("a.zarr", values, overwrite=True)
    open("f-1.npy", "w").close()
    with raises(tessera.AlreadyExists, "f-1.npy"):
        tessera.unstack("a.zarr", "f-{}.npy")
    assert not os.path.exists("f-0.npy")
    tessera.unstack("a.zarr", "f-{}.npy", overwrite=True)
    assert np.array_equal(np.load("f-1.npy"), values[1])
    for pattern in ("f.npy", "{}/f.npy"):
        with raises(tessera.InvalidArgument, "where the numbers go"):
            tessera.unstack("a.zarr", pattern)
    with raises(IndexError):
        tessera.unstack("a.zarr", "g-{}.npy", axis=2)
    with raises(tessera.Error):
        tessera.unstack("a.zarr", "g/{}.zarr", chunks=(1, 1))  # of two dimensions, where one is left
    assert not os.path.exists("g")


def test_pyramids():
    values = RANDOM.integers(0, 1000, (3, 700, 520)).astype("u2")
    tessera.save("a.zarr", values, chunks=(1, 100, 100), format="v2", dims=["c", "y", "x"])
    tessera.pyramid("a.zarr", "p.zarr", scale=(1, 2, 3), units=(None, "meter", "meter"))
    group = tessera.open("p.zarr")
    assert sorted(name for name in group) == ["0", "1", "2"]
    assert np.array_equal(tessera.load("p.zarr/0"), values)
    assert np.array_equal(tessera.load("p.zarr/1"), tessera.coarsen(values, by=(1, 2, 2)))
    assert np.array_equal(tessera.load("p.zarr/2"), tessera.coarsen(values, by=(1, 4, 4)))
    assert tessera.open("p.zarr/1").dims == ("c", "y", "x") and tessera.open("p.zarr/1").chunks == (1, 100, 100)
    image = group.attrs["ome"]
    assert image["version"] == "0.5"
    sets = image["multiscales"][0]["datasets"]
    assert [one["path"] for one in sets] == ["0", "1", "2"]
    assert sets[1]["coordinateTransformations"][0] == {"type": "scale", "scale": [1.0, 4.0, 6.0]}
    assert tessera.verify("p.zarr", ome=True).sound
    tessera.create_group("p.zarr/labels").attrs["ome"] = {"version": "0.5", "labels": [3]}
    found = tessera.verify("p.zarr", ome=True)
    assert not found.sound and found.findings[0].rule == "ome/schema", found
    assert found.findings[0].text == "ome.labels[0]: expected a string, found 3", found
    tessera.pyramid(values[0], "g.zarr", levels=2, geo=True, crs="EPSG:3857", transform=(2, 0, 5, 0, -2, 9))
    assert tessera.verify("g.zarr", geo=True).sound
    assert tessera.open("g.zarr/1").attrs["spatial:transform"] == [4.0, 0.0, 5.0, 0.0, -4.0, 9.0]
    tessera.open("g.zarr", mode="r+").attrs["proj:code"] = "3857"
    assert tessera.verify("g.zarr", geo=True).findings[0].rule == "geo/schema"
    tessera.pyramid(values[0], "q.zip", format="v2", levels=2, how="max", axes=("y", "x"), chunks=(64, 64))
    assert tessera.open("q.zip").attrs["multiscales"][0]["version"] == "0.4"
    assert np.array_equal(tessera.load("q.zip/1"), tessera.coarsen(values[0], by=(2, 2), how="max"))
    with raises(tessera.AlreadyExists, "p.zarr"):
        tessera.pyramid("a.zarr", "p.zarr")
    with raises(tessera.InvalidArgument, "overlap"):
        tessera.pyramid("a.zarr", "a.zarr/p")
    with raises(tessera.InvalidArgument, "scale"):
        tessera.pyramid("a.zarr", "r.zarr", scale=(1, 2))
    with raises(tessera.Error):
        tessera.pyramid(np.zeros(5), "r.zarr")
    with raises(TypeError, "shards"):
        tessera.pyramid(values, "r.zarr", shards=(1, 2, 3))
    assert not os.path.exists("r.zarr")


def test_what_is_refused():
    values = np.arange(6)
    tessera.save("a.zarr", values)
    before = sorted(os.listdir())
    with raises(tessera.InvalidArgument, "overlap"):
        tessera.calc("a.zarr", "a + 1", {"a": "a.zarr"}, overwrite=True)
    with raises(tessera.InvalidArgument, "overlap"):
        tessera.stack(["a.zarr"], "./a.zarr/b")
    with raises(tessera.InvalidArgument, "unknown name 'c'"):
        tessera.calc("o.npy", "a + c", {"a": values})
    with raises(tessera.InvalidArgument, "do not broadcast"):
        tessera.calc("o.npy", "a + c", {"a": values, "c": np.arange(4)})
    with raises(TypeError, "unexpected argument 'chunk'"):
        tessera.calc("o.zarr", "a", {"a": values}, chunk=3)
    with raises(tessera.InvalidArgument, "NumPy array"):
        tessera.calc(None, "a", {"a": values}, chunks=3)
    with raises(tessera.InvalidArgument, "no arrays"):
        tessera.stack([])
    with raises(tessera.NotFound, "*.npy"):
        tessera.stack("*.npy")
    np.save("b.npy", np.arange(7))
    with raises(tessera.InvalidArgument, "b.npy"):
        tessera.stack(["a.zarr", "b.npy"], "o.zarr")
    with raises(tessera.NotFound, "gone.npy"):
        tessera.concat(["a.zarr", "gone.npy"], "o.zarr")
    with raises(tessera.AlreadyExists, "b.npy"):
        tessera.calc("b.npy", "a", {"a": values})
    assert sorted(os.listdir()) == sorted([*before, "b.npy"])


def test_stopped_it_leaves_nothing():
    tessera.save("a.zarr", np.zeros((40, 1000)), chunks=(1, 1000))

    def stop(done, total):
        raise ValueError("enough")

    for function, words, options in [(tessera.calc, ("o.zarr", "a + 1", {"a": "a.zarr"}), {}),
                                     (tessera.concat, (["a.zarr"], "o.zarr"), {})]:
        with raises(ValueError, "enough"):
            function(*words, progress=stop, threads=1, **options)
        assert not os.path.exists("o.zarr")


def test_calc_in_place():
    values = np.arange(60, dtype="<i4").reshape(6, 10)
    tessera.save("a.zarr", values, chunks=(4, 4))
    a = tessera.open("a.zarr", "r+")
    assert tessera.calc(a, "a * b + 1", {"a": a, "b": np.arange(10)}, in_place=True) is None
    expected = values * np.arange(10) + 1
    np.testing.assert_array_equal(a[:], expected)
    for sel in np.s_[1:5, ::3], np.s_[2], np.s_[..., -1], np.s_[3, 4]:
        tessera.calc("a.zarr", "where(a > 20, -1, a)", {"a": "a.zarr"}, in_place=True, sel=sel)
        expected[sel] = np.where(expected > 20, -1, expected)[sel]
        np.testing.assert_array_equal(a[:], expected)
    before = a[:]
    for cast in "same_kind", "safe":
        with raises(tessera.InvalidArgument, cast):
            tessera.calc(a, "a * 0.5", {"a": a}, in_place=True, cast=cast)
    np.testing.assert_array_equal(a[:], before)
    tessera.calc(a, "a * 0.5", {"a": a}, in_place=True, cast="round")
    np.testing.assert_array_equal(a[:], np.rint(before * 0.5))
    assert tessera.undo(a) > 0
    np.testing.assert_array_equal(a[:], before)
    for words, text in [({"dtype": "f4"}, "in_place"), ({"overwrite": True}, "in_place"), ({"chunks": (2, 2)}, "in_place"),
                        ({"sel": [1, 2]}, "sel"), ({"cast": "maybe"}, "maybe")]:
        with raises(tessera.InvalidArgument, text):
            tessera.calc(a, "a", {"a": a}, in_place=True, **words)
    np.testing.assert_array_equal(tessera.calc(None, "a + 1", {"a": a}, sel="1:3"), before[1:3] + 1)
    for call in (lambda: tessera.calc(None, "a", {"a": a}, in_place=True), lambda: tessera.calc(a, "a", {"a": a})):
        with raises(tessera.InvalidArgument, "in_place"):
            call()
    with raises(tessera.InvalidArgument, '"r+"'):
        tessera.calc(tessera.open("a.zarr"), "a", {"a": a}, in_place=True)
    np.testing.assert_array_equal(a[:], before)


def test_pyramid_again():
    first, second = RANDOM.integers(0, 99, (2, 300, 520)).astype("u2")
    said = tessera.pyramid(first, "p.zarr", dry_run=True, chunks=(100, 100))
    assert said == ["0: (300, 520) <u2, v3, chunks (100, 100)", "1: (150, 260) <u2, v3, chunks (100, 100)",
                    "2: (75, 130) <u2, v3, chunks (100, 100)"], said
    assert not os.path.exists("p.zarr")
    assert tessera.pyramid(first, "p.zarr") is None
    with raises(tessera.AlreadyExists, "overwrite"):
        tessera.pyramid(second, "p.zarr")
    np.testing.assert_array_equal(tessera.load("p.zarr/0"), first)
    tessera.pyramid(second, "p.zarr", overwrite=True)
    np.testing.assert_array_equal(tessera.load("p.zarr/0"), second)
    np.testing.assert_array_equal(tessera.load("p.zarr/1"), tessera.coarsen(second, by=(2, 2)))
    with raises(tessera.AlreadyExists, "level 2"):
        tessera.pyramid(first, "p.zarr", overwrite=True, levels=2)
    with raises(tessera.AlreadyExists, "v3"):
        tessera.pyramid(first, "p.zarr", overwrite=True, format="v2")
    tessera.save("array.zarr", first)
    with raises(tessera.AlreadyExists, "array"):
        tessera.pyramid(first, "array.zarr", overwrite=True)
    np.testing.assert_array_equal(tessera.load("array.zarr"), first)
    for name in "p.tif", "p.npy":
        with raises(tessera.InvalidArgument, name):
            tessera.pyramid(first, name)


def test_unstack_goes_on():
    values = RANDOM.normal(size=(3, 4, 5)).astype("f4")
    values[1, 2, 3] = np.nan
    a = tessera.create("a.zarr", values.shape, "f4")
    a[:] = values
    for name in "npy", "zarr", "csv":
        for axis in range(3):
            pattern = f"{name}-{axis}/deep/{{}}.{name}"
            paths = tessera.unstack(a, pattern, axis=axis)
            with raises(tessera.AlreadyExists, "resume=True"):
                tessera.unstack(a, pattern, axis=axis)
            with raises(tessera.InvalidArgument, "choose one"):
                tessera.unstack(a, pattern, axis=axis, resume=True, overwrite=True)
            kept = os.stat(paths[0])
            shutil.rmtree(paths[2]) if os.path.isdir(paths[2]) else os.remove(paths[2])
            assert tessera.unstack(a, pattern, axis=axis, resume=True) == paths
            assert os.stat(paths[0]).st_mtime_ns == kept.st_mtime_ns and os.stat(paths[0]).st_ino == kept.st_ino
            for n, path in enumerate(paths):
                np.testing.assert_allclose(tessera.load(path), np.take(values, n, axis), rtol=1e-6)
            for other in np.take(values, 1, axis) + 1, np.zeros((2, 2), "f4"):
                tessera.save(paths[1], other, overwrite=True)
                with raises(tessera.AlreadyExists, "is not step 1"):
                    tessera.unstack(a, pattern, axis=axis, resume=True)
    with raises(TypeError):
        tessera.unstack(a, "gone/deep/{}.zarr", nonsense=1)
    assert not os.path.exists("gone")


if __name__ == "__main__":
    module.run(dict(globals()))
