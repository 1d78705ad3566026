#!/usr/bin/env python3
"""The Python module: errors and warnings say what is wrong, where, and what helps."""
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
        for name in "x.tif", "x.HDF5", "x.txt":
            with raises(tessera.InvalidArgument, f"{name}: "):
                call(name)
            assert not os.path.exists(name)
    for call in lambda: tessera.create("x.npy", 3, "u1"), lambda: tessera.pyramid(a, "x.npy"):
        with raises(tessera.InvalidArgument, "tessera.save"):
            call()
    tessera.copy(a, "x.tif/")
    assert tessera.open("x.tif").shape == (2, 3)
    tessera.copy(a, "x.csv")
    with open("x.csv") as text:
        assert text.read() == "0,0,0\n" * 2
    tessera.copy(a, "x.npy")
    np.testing.assert_array_equal(np.load("x.npy"), a[:])


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
                a[n] = 300 + n

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert warnings.filters == within
    assert warnings.filters == before
    np.testing.assert_array_equal(a[:], np.arange(44, 52))


if __name__ == "__main__":
    module.run(dict(globals()))
