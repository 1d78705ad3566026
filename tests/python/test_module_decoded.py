#!/usr/bin/env python3
"""Array.decoded and stats: what elements stand for, as xarray has it, and assigned."""
import warnings

import module
import numpy as np
import xarray as xr
from module import raises, tessera

VALUES = np.array([[270.0, 271.5, np.nan], [273.15, 280.01, 250.0]])


def packed():
    data = xr.Dataset({"t": (("y", "x"), VALUES), "y": (("y",), np.array(["2000-02-28", "2000-03-01"], "M8[ns]"))})
    encoding = {"t": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768},
                "y": {"dtype": "i4", "units": "hours since 2000-01-01"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data.to_netcdf("p.nc", encoding=encoding)
    tessera.copy("p.nc", "p.zarr", overwrite=True)
    return tessera.open("p.zarr", "r+")


def test_reading():
    group = packed()
    a = group["t"]
    for one in (a, tessera.open("p.nc")["t"]):
        assert one.decoded.dtype == "f8" and one.decoded.shape == (2, 3) and one[...].dtype == "i2"
        np.testing.assert_allclose(one.decoded[...], VALUES)
        np.testing.assert_allclose(one.decoded[0, 1], 271.5)
        np.testing.assert_allclose(np.asarray(one.decoded), VALUES)
    assert group["y"].decoded[1] == np.datetime64("2000-03-01")
    plain = tessera.create("n.zarr", shape=3, dtype="<i4", fill_value=5, overwrite=True)
    assert plain.decoded.dtype == "i4" and plain.decoded[:].tolist() == [5, 5, 5]


def test_assigning():
    group = packed()
    a = group["t"]
    a.decoded[0] = [273.16, np.nan, 273.165]
    assert a[0].tolist() == [1, -32768, 2]
    a.decoded[...] = a.decoded[...]
    assert a[0].tolist() == [1, -32768, 2]
    before = a[...]
    for value in (1e6, 273.15 - 327.68):
        with raises(tessera.InvalidArgument):
            a.decoded[1] = value
    np.testing.assert_array_equal(a[...], before)
    group["y"].decoded[0] = "2000-01-02"
    assert group["y"][0] == 24
    a.decoded[1] = np.ma.masked_greater([1.0 + 273.15, 500, 273.15], 400)
    assert a[1].tolist() == [100, -32768, 0]


def test_appending():
    group = packed()
    a = group["t"]
    assert a.decoded.append([[273.16, np.nan, 273.165]]) == 2
    assert a[2].tolist() == [1, -32768, 2] and a.shape == (3, 3)
    assert a.decoded.append([274.15, 273.15, 272.15], axis="y") == 3  # one step
    assert a[3].tolist() == [100, 0, -100]
    assert a.append([[7, 8, 9]]) == 4 and a[4].tolist() == [7, 8, 9]
    for value in (1e6, 273.15 - 327.68):
        with raises(tessera.InvalidArgument):
            a.decoded.append([[value, 273.15, 273.15]])
    assert a.shape == (5, 3)
    assert group["y"].decoded.append(np.array(["2000-01-02"], "M8[D]")) == 2 and group["y"][2] == 24
    plain = tessera.create("n.zarr", shape=3, dtype="<i4", fill_value=5, overwrite=True)
    assert plain.decoded.append([6]) == 3 and plain[3] == 6


def test_marks_are_kept():
    a = tessera.create("m.zarr", shape=4, dtype="<i8", fill_value=0, overwrite=True,
                       attrs={"_FillValue": -1, "missing_value": [-2]})
    a[...] = [2**53 + 1, -1, -2, 5]
    values = a.decoded[...]
    assert values.mask.tolist() == [False, True, True, False] and values[0] == 2**53 + 1
    a.decoded[...] = values
    assert a[...].tolist() == [2**53 + 1, -1, -2, 5]
    with raises(tessera.InvalidArgument):
        a.decoded[0] = -2


def test_statistics():
    packed()
    found = tessera.stats("p.zarr/t")
    assert (found.missing, found.stored_dtype, found.dtype, found.outside_valid) == (1, "<i2", "<f8", None)
    assert np.isclose(found.mean, np.nanmean(VALUES), atol=1e-3)
    assert tessera.stats("p.zarr/t", raw=True).min == -32768


if __name__ == "__main__":
    module.run(dict(globals()))
