#!/usr/bin/env python3
"""What elements stand for, in every command: random netCDF and GeoTIFF files of other programs, beside these.

    meanings.py --program TESSERA [--seed N] [--count N] [--only N] [--quick] [--keep]

Each file is written by netCDF4-python, or by GDAL (rasterio, or its own module), and opened by xarray or GDAL. What NumPy
makes of their elements is what each command has to make, within rounding: a command may also refuse in words. Anything else
is WRONG. The same seed draws the same files. Where the programs disagree the rules are those of CF, as `truth` states them.
"""
import argparse
import collections
import csv
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import traceback
import warnings

import cftime
import netCDF4
import numpy as np
import xarray as xr

try:
    import rasterio
    from rasterio.transform import from_origin
except ImportError:
    rasterio = None
try:
    from osgeo import gdal, osr
    gdal.UseExceptions()
except ImportError:
    gdal = None
try:
    import tessera
except ImportError:
    tessera = None
try:
    import zarr
    ZARR3 = int(zarr.__version__.split(".")[0]) >= 3
except ImportError:
    zarr, ZARR3 = None, False

INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
NUMBERS = [*INTEGERS, "f4", "f8"]
CALENDARS = [None, "standard", "gregorian", "proleptic_gregorian", "noleap", "365_day", "360_day", "all_leap", "julian"]
UNITS = ["days since 2000-01-01", "hours since 1999-12-30 12:00", "seconds since 1970-01-01 00:00:00",
         "minutes since 2001-03-01T06:00:00Z", "days since 1850-01-01 00:00:0.0", "hours since 1900-01-01 00:00:00.0"]
WORDS = ["mean", "sum", "min", "max", "std", "var", "count", "median", "p95", "p2.5", "any", "all", "argmin", "argmax"]


class Wrong(Exception):
    """A command did neither what is right nor refuse."""


class Refused(Exception):
    """A command refused in words."""


# ---- what elements stand for

def with_sign(codes, attrs):
    text = attrs.get("_Unsigned")
    if text == "true" and codes.dtype.kind == "i":
        return codes.view(f"u{codes.dtype.itemsize}")
    if text == "false" and codes.dtype.kind == "u":
        return codes.view(f"i{codes.dtype.itemsize}")
    return codes


def holds(dtype, marker):
    """Whether an integer dtype has this number."""
    if not np.isfinite(marker) or marker != np.floor(marker):
        return False
    return np.iinfo(dtype).min <= int(marker) <= np.iinfo(dtype).max


def equals(stored, marker):
    """Which elements have the marker's value."""
    if stored.dtype.kind == "f":
        return np.isnan(stored) if np.isnan(marker) else stored.astype("f8") == float(marker)
    return stored == stored.dtype.type(int(marker)) if holds(stored.dtype, marker) else np.zeros(stored.shape, bool)


def truth(codes, attrs):
    """The values as a masked array: float64 of what is packed or marked, integers of 8 bytes as they are."""
    codes = np.asarray(codes)
    codes = codes.astype(codes.dtype.newbyteorder("="))
    stored = with_sign(codes, attrs)
    mask = np.isnan(stored) if stored.dtype.kind == "f" else np.zeros(stored.shape, bool)
    marked = False
    if "_FillValue" in attrs:
        fill = with_sign(np.atleast_1d(np.asarray(attrs["_FillValue"], codes.dtype)), attrs)[0]
        mask, marked = mask | equals(stored, fill), True
    for one in np.atleast_1d(attrs.get("missing_value", [])):
        mask = mask | equals(stored, one)
        marked = marked or stored.dtype.kind == "f" or holds(stored.dtype, one)
    if "scale_factor" in attrs or "add_offset" in attrs:
        values = stored.astype("f8") * float(attrs.get("scale_factor", 1)) + float(attrs.get("add_offset", 0))
    elif marked and stored.dtype.kind in "iu" and stored.dtype.itemsize < 8:
        values = stored.astype("f4" if stored.dtype.itemsize < 4 else "f8")
    else:
        values = stored
    return np.ma.array(values, mask=mask)


def as_floats(values):
    return np.ma.filled(values.astype("f8"), np.nan)


# ---- random files

class Draw:
    def __init__(self, *seed):
        self.rng = np.random.default_rng(seed)

    def one(self, options):
        return options[int(self.rng.integers(len(options)))]

    def chance(self, share):
        return self.rng.random() < share

    def codes(self, dtype, shape):
        dtype = np.dtype(dtype)
        if dtype.kind == "f":
            return (self.rng.normal(size=shape) * self.one([1.0, 100.0, 1e-6, 1e5])).astype(dtype)
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        if self.chance(0.5):
            low, high = max(low, -120), min(high, 120)
        return self.rng.integers(low, high, shape, dtype.newbyteorder("="), endpoint=True).astype(dtype)


def number_type(draw, dtype, value):
    return np.dtype(dtype).type(value)


class NetCdf:
    """A random netCDF file: dimensions t, y, x; coordinates; one variable v that means something, and others."""

    def __init__(self, draw, path, like=None):
        self.draw, self.path = draw, path
        self.model = draw.one(["NETCDF4"] * 6 + ["NETCDF4_CLASSIC", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET"]) if like is None else like.model
        self.classic = self.model != "NETCDF4"
        self.lengths = {"t": int(draw.rng.integers(1, 7)), "y": int(draw.rng.integers(1, 6)), "x": int(draw.rng.integers(1, 8))}
        if draw.chance(0.04):
            self.lengths["t"] = 0
        if like is not None:
            self.lengths = {**like.lengths, "t": draw.one([like.lengths["t"], like.lengths["t"], 1, 3])}
        self.unlimited = draw.chance(0.5)
        self.group = "g" if self.model == "NETCDF4" and draw.chance(0.15) else ""
        if like is not None:
            self.group, self.unlimited = like.group, like.unlimited
        self.dims = draw.one([("t", "y", "x")] * 5 + [("t",), ("x",), ("y", "x"), ("t", "x"), (), ("x", "t")]) if like is None else like.dims
        if self.classic and "t" in self.dims[1:]:
            self.unlimited = False
        self.dtype = self.draw_type() if like is None else like.dtype
        self.attrs = self.draw_meaning() if like is None else self.redraw(like)
        self.codes = self.draw_codes()
        self.time = self.draw_time() if like is None else self.later(like)
        self.write()

    def draw_type(self):
        kinds = ["i1", "i2", "i2", "i2", "i4", "f4", "f4", "f8"] + ([] if self.classic else ["u1", "u2", "u4", "i8", "u8"])
        kind = np.dtype(self.draw.one(kinds))
        return kind.newbyteorder(">") if self.model == "NETCDF4" and self.draw.chance(0.15) else kind

    def is_big_endian(self):
        return self.dtype.byteorder == ">" or self.model.startswith("NETCDF3")

    def draw_packing(self):
        draw, native = self.draw, self.dtype.newbyteorder("=")
        if draw.chance(0.4):
            return {}
        kind = draw.one(["f8", "f8", "f4", native.str if native.kind == "f" or native.itemsize > 1 else "i2", "i4"])
        if self.classic and np.dtype(kind).kind == "u":
            kind = "i4"
        floats = np.dtype(kind).kind == "f"
        found = {}
        if draw.chance(0.8):
            found["scale_factor"] = np.dtype(kind).type(draw.one([0.01, 0.002, 0.5, 1.0, -0.1, 2.0, 1e-5] if floats else [2, 3, 1, 10]))
        if draw.chance(0.6) or not found:
            other = draw.one([kind, "f8", "f4"])
            found["add_offset"] = np.dtype(other).type(draw.one([260.0, 0.0, 273.15, 1e6, -5.5] if np.dtype(other).kind == "f" else [100, 7, 0]))
        return found

    def a_marker(self):
        draw, native = self.draw, self.dtype.newbyteorder("=")
        if native.kind == "f":
            return native.type(draw.one([-9999.0, 1e20, 9.96921e36, -999.9, np.nan, 0.0, -1.0]))
        low, high = np.iinfo(native).min, np.iinfo(native).max
        return native.type(draw.one([low, high, low + 1, high - 1, 0, 99, 1, max(low, -99)]))

    def draw_meaning(self):
        draw, native = self.draw, self.dtype.newbyteorder("=")
        attrs = dict(self.draw_packing())
        if draw.chance(0.55):
            attrs["_FillValue"] = self.a_marker()
        if draw.chance(0.3):
            several = draw.chance(0.3)
            markers = [self.a_marker() for _ in range(draw.one([1, 2, 3]) if several else 1)]
            attrs["missing_value"] = np.array(markers, native) if several else markers[0]
            if draw.chance(0.1):  # of another type
                attrs["missing_value"] = np.float64(draw.one([-9999.0, 1e20, 99.0, -1.5]))
        if native.kind in "iu" and draw.chance(0.15):
            attrs["_Unsigned"] = draw.one(["true", "true", "false"])
        if draw.chance(0.6):
            attrs["units"] = draw.one(["K", "m", "kg m-2 s-1", "1", "degC"])
        if draw.chance(0.2) and native.kind != "u":
            attrs["valid_range"] = np.array([-100, 100], native)
        if draw.chance(0.2):
            attrs["long_name"] = "what it is"
        return attrs

    def redraw(self, like):
        """Another packing and marker of the same quantity, or the same."""
        attrs = dict(like.attrs)
        if self.draw.chance(0.6):
            return attrs
        for name in ("scale_factor", "add_offset", "_FillValue", "missing_value"):
            attrs.pop(name, None)
        attrs.update(self.draw_packing())
        if self.draw.chance(0.5):
            attrs["_FillValue"] = self.a_marker()
        return attrs

    def draw_codes(self):
        draw, native = self.draw, self.dtype.newbyteorder("=")
        shape = tuple(self.lengths[d] for d in self.dims)
        codes = np.asarray(draw.codes(native, shape))
        markers = [np.asarray(m, "f8") if np.asarray(m).dtype.kind == "f" else m for name in ("_FillValue", "missing_value")
                   for m in np.atleast_1d(self.attrs.get(name, []))]
        share = draw.one([0.0, 0.1, 0.4, 1.0])
        for index in np.ndindex(*shape):
            if markers and draw.rng.random() < share:
                one = draw.one(markers)
                if native.kind == "f" or holds(native, one):
                    codes[index] = one
            elif native.kind == "f" and draw.chance(0.03):
                codes[index] = np.nan
        return codes

    def draw_time(self):
        draw = self.draw
        calendar = draw.one(CALENDARS)
        attrs = {"units": draw.one(UNITS)}
        if calendar:
            attrs["calendar"] = calendar
        kind = np.dtype(draw.one(["i4", "f8", "f8", "i2", "f4"] + ([] if self.classic else ["i8", "u4"])))
        step = draw.one([1, 1, 3, 24, 0.5])
        counts = np.arange(self.lengths["t"]) * step + draw.one([0, 5, 59, 700])
        self.bounds = draw.chance(0.3)
        counts = counts.astype(kind)
        if draw.chance(0.15):
            attrs["scale_factor"] = draw.one([0.5, 2.0])
        if draw.chance(0.15) and len(counts):
            attrs["_FillValue"] = kind.type(-1 if kind.kind != "u" else 9999)
            counts[draw.rng.random(len(counts)) < 0.4] = attrs["_FillValue"]
        return kind, attrs, counts

    def later(self, like):
        kind, attrs, counts = like.time
        self.bounds = like.bounds
        step = counts[1] - counts[0] if len(counts) > 1 else 1
        begin = counts[-1] + step if len(counts) else 0
        return kind, attrs, (begin + np.arange(self.lengths["t"]) * step).astype(kind)

    def write(self):
        draw = self.draw
        with netCDF4.Dataset(self.path, "w", format=self.model) as root:
            data = root.createGroup(self.group) if self.group else root
            for name, length in self.lengths.items():
                data.createDimension(name, None if name == "t" and self.unlimited else length)
            kind, attrs, counts = self.time
            self.add(data, "t", kind, ("t",), counts, {**attrs, **({"bounds": "t_bnds"} if self.bounds else {})})
            if self.bounds:
                data.createDimension("nv", 2)
                self.add(data, "t_bnds", kind, ("t", "nv"), np.stack([counts, counts + 1], 1), {k: v for k, v in attrs.items() if k[0] in "s_"})
            if draw.chance(0.7):
                self.add(data, "x", np.dtype("f4"), ("x",), 10 + 0.5 * np.arange(self.lengths["x"]),
                         {"units": "degrees_east", "standard_name": "longitude"})
            self.add(data, "v", self.dtype, self.dims, self.codes, self.attrs, draw)
            self.add(data, "s", np.dtype("i2"), (), np.int16(7), {"scale_factor": 0.5, "units": "m"})

    def add(self, data, name, dtype, dims, codes, attrs, draw=None):
        more = {}
        if draw is not None and dims and not self.model.startswith("NETCDF3") and 0 not in codes.shape:
            more = {"zlib": draw.chance(0.5), "shuffle": draw.chance(0.5)}
            if draw.chance(0.4):
                more["chunksizes"] = [int(draw.rng.integers(1, max(n, 1) + 1)) for n in codes.shape]
            elif not more["zlib"] and not (self.unlimited and "t" in dims):
                more["contiguous"] = draw.chance(0.5)
            if self.model == "NETCDF4" and draw.chance(0.1):
                more["fletcher32"] = not more.get("contiguous", False)
        endian = "big" if dtype.byteorder == ">" else "native"
        variable = data.createVariable(name, dtype.newbyteorder("="), dims, fill_value=attrs.get("_FillValue", False if draw and draw.chance(0.5) else None),
                                       endian=endian, **more)
        variable.set_auto_maskandscale(False)
        variable.setncatts({key: value for key, value in attrs.items() if key != "_FillValue"})
        if codes.shape == () or 0 not in codes.shape:
            variable[...] = codes

    @property
    def place(self):
        return f"{self.path.name}::{self.group + '/' if self.group else ''}v"

    def member(self, name):
        return f"{self.path.name}::{self.group + '/' if self.group else ''}{name}"

    def describe(self):
        return {"model": self.model, "dims": self.dims, "shape": self.codes.shape, "dtype": self.dtype.str, "group": self.group,
                "attrs": {k: (str(v), np.asarray(v).dtype.str) for k, v in self.attrs.items()}, "time": [self.time[0].str, self.time[1]],
                "unlimited": self.unlimited}


NODATA = {"i2": ["-32768", "-9999", " -9999 ", "-9999.0", "32767", "0"], "u1": ["0", "255", "255.0", "300", "nan", "-1"],
          "u2": ["0", "65535", "65536"], "i4": ["-2147483648", "-9999", "1.5"], "u4": ["4294967295", "0"],
          "f4": ["-9999", "nan", "NaN", "-3.4028235e+38", "-3.40282346638529e+38", "-3.4e+38", "1e20", "-9999,0", "-1.#IND",
                 "1.#QNAN", "inf", "-inf", "-999.9", "", "none"],
          "f8": ["-9999", "nan", "-1.7976931348623157e+308", "-1.79769313486232e+308", "1e30", "-3.4028234663852886e+38", "-999.9"]}


class GeoTiff:
    """A random GeoTIFF of GDAL's, with a nodata of any spelling."""

    def __init__(self, draw, path, like=None):
        self.draw, self.path, self.group, self.attrs = draw, path, "", {}
        self.dtype = np.dtype(draw.one(list(NODATA))) if like is None else like.dtype
        self.nodata = draw.one([None, *NODATA[self.dtype.str[1:]] * 2]) if like is None else like.nodata
        self.bands = draw.one([1, 1, 1, 2, 3]) if like is None else like.bands
        height, width = int(draw.rng.integers(1, 40)), int(draw.rng.integers(1, 40))
        if like is not None:
            height, width = (like.codes.shape[like.dims.index(d)] for d in "yx")
        self.codes = np.asarray(draw.codes(self.dtype, (self.bands, height, width)))
        self.packing = {} if draw.chance(0.7) else {"scale_factor": draw.one([0.1, 2.0]), "add_offset": draw.one([0.0, 10.0])}
        if like is not None:
            self.packing = like.packing
        self.options = draw.one([{}, {"COMPRESS": "DEFLATE"}, {"TILED": "YES", "BLOCKXSIZE": "16", "BLOCKYSIZE": "16"},
                                 {"COMPRESS": "LZW", "PREDICTOR": "2"}, {"INTERLEAVE": "BAND"}, {"INTERLEAVE": "BAND", "TILED": "YES", "COMPRESS": "ZSTD"},
                                 {"ENDIANNESS": "BIG"}, {"BIGTIFF": "YES"}]) if like is None else like.options
        if self.dtype.kind == "f" and self.options.get("PREDICTOR"):
            self.options["PREDICTOR"] = "3"
        marker = nodata_of(self.nodata, self.dtype)
        self.marker = marker
        if marker is not None:
            self.codes[draw.rng.random(self.codes.shape) < draw.one([0.0, 0.3, 1.0])] = marker
        self.dims = ("band", "y", "x") if self.bands > 1 else ("y", "x")
        self.write()
        if self.bands == 1:
            self.codes = self.codes[0]
        elif self.options.get("INTERLEAVE") != "BAND":  # GDAL's default: the bands of a pixel together
            self.codes = np.moveaxis(self.codes, 0, -1)
            self.dims = ("y", "x", "band")

    def write(self):
        if rasterio is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with rasterio.open(self.path, "w", driver="GTiff", height=self.codes.shape[1], width=self.codes.shape[2],
                                   count=self.bands, dtype=self.dtype.name, crs="EPSG:32633",
                                   transform=from_origin(400000, 5300000, 30, 30),
                                   nodata=1 if self.nodata is not None else None, **self.options) as file:
                    file.write(self.codes)
                    if self.packing:
                        file.scales = [self.packing["scale_factor"]] * self.bands
                        file.offsets = [self.packing["add_offset"]] * self.bands
        else:
            kinds = {"u1": gdal.GDT_Byte, "i2": gdal.GDT_Int16, "u2": gdal.GDT_UInt16, "i4": gdal.GDT_Int32, "u4": gdal.GDT_UInt32,
                     "f4": gdal.GDT_Float32, "f8": gdal.GDT_Float64}
            file = gdal.GetDriverByName("GTiff").Create(str(self.path), self.codes.shape[2], self.codes.shape[1], self.bands,
                                                        kinds[self.dtype.str[1:]], [f"{k}={v}" for k, v in self.options.items()])
            file.SetGeoTransform((400000, 30, 0, 5300000, 0, -30))
            system = osr.SpatialReference()
            system.ImportFromEPSG(32633)
            file.SetProjection(system.ExportToWkt())
            for n in range(self.bands):
                band = file.GetRasterBand(n + 1)
                if self.nodata is not None:
                    band.SetNoDataValue(1)
                if self.packing:
                    band.SetScale(self.packing["scale_factor"])
                    band.SetOffset(self.packing["add_offset"])
                band.WriteArray(self.codes[n])
            file = band = None
        if self.nodata is not None:
            spell_nodata(self.path, self.nodata)

    @property
    def place(self):
        return self.path.name

    def describe(self):
        return {"dtype": self.dtype.str, "shape": self.codes.shape, "nodata": self.nodata, "options": self.options, "packing": self.packing}


def nodata_of(text, dtype):
    """The number that a spelling of GDAL_NODATA stands for; None: none that the dtype has."""
    if text is None:
        return None
    plain = text.strip().replace(",", ".").lower()
    if plain in ("nan", "-1.#ind", "1.#qnan"):
        number = np.nan
    else:
        try:
            number = float(plain)
        except ValueError:
            return None
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            made = dtype.type(number)
        if np.isinf(made) and np.isfinite(number):
            made = np.copysign(np.finfo(dtype).max, number)
        if text in ("-3.4e+38",):
            return made
        limit = np.finfo(dtype).max
        if np.isfinite(made) and abs(abs(float(made)) - float(limit)) <= 4.8e-7 * float(limit):
            made = np.copysign(limit, made)  # an extreme in few digits
        return dtype.type(made)
    return dtype.type(int(number)) if holds(dtype, number) else None


def spell_nodata(path, text):
    """Writes the tag GDAL_NODATA anew."""
    data = bytearray(path.read_bytes())
    order = "<" if data[:2] == b"II" else ">"
    big = struct.unpack_from(order + "H", data, 2)[0] == 43
    at = struct.unpack_from(order + ("Q" if big else "I"), data, 8 if big else 4)[0]
    count = struct.unpack_from(order + ("Q" if big else "H"), data, at)[0]
    size, first, field = (20, at + 8, "QQ") if big else (12, at + 2, "II")
    value = text.encode() + b"\0"
    for n in range(count):
        entry = first + n * size
        if struct.unpack_from(order + "H", data, entry)[0] == 42113:
            inside = 8 if big else 4
            struct.pack_into(order + field[0], data, entry + 4, len(value))
            if len(value) <= inside:
                data[entry + 4 + inside:entry + 4 + 2 * inside] = value.ljust(inside, b"\0")
            else:
                if len(data) % 2:
                    data += b"\0"
                struct.pack_into(order + field[0], data, entry + 4 + inside, len(data))
                data += value
            path.write_bytes(data)
            return
    raise AssertionError("no GDAL_NODATA")


# ---- reading what was made

def read_xarray(path, **kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xr.open_dataset(path, decode_times=False, **kind) as data:
            try:
                return data.load()
            except ValueError as error:  # integers that are packed by integers, and marked
                raise Refused(f"xarray: {error}") from error


def the_variable(data):
    names = [name for name in data.variables if name not in data.dims]
    named = [name for name in names if name in ("v", "data")]
    return data[(named or names or list(data.variables))[0]]


class Results:
    """Reads a result in any form: a float64 array with NaN, and attributes or None."""

    def __init__(self, folder):
        self.folder = folder

    def read(self, name):
        path = self.folder / name
        if name.endswith(".npy"):
            return np.load(path), None
        if name.endswith(".nc"):
            found = the_variable(read_xarray(path, engine="netcdf4"))
            return found.values, dict(found.attrs)
        if name.endswith(".tif"):
            return read_tiff(path), None
        parent = path.parent / (path.name + "-group")
        shutil.rmtree(parent, ignore_errors=True)
        parent.mkdir()
        shutil.copytree(path, parent / "data")
        v3 = (path / "zarr.json").exists()
        if v3 and not ZARR3:
            raise Refused("no zarr-python 3")
        if v3:
            (parent / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')
        else:
            (parent / ".zgroup").write_text('{"zarr_format": 2}')
        attrs = json.loads((path / ("zarr.json" if v3 else ".zattrs")).read_text()) if v3 or (path / ".zattrs").exists() else {}
        found = read_xarray(parent, engine="zarr", consolidated=False)["data"]
        return found.values, dict(attrs["attributes"] if v3 else attrs)


def read_tiff(path):
    if rasterio is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with rasterio.open(path) as file:
                found = file.read(masked=True)
                found = np.ma.filled(found.astype("f8"), np.nan) if found.dtype.kind == "f" or np.ma.is_masked(found) else found.data
    else:
        file = gdal.Open(str(path))
        found = np.atleast_3d(file.ReadAsArray()) if False else file.ReadAsArray()
        band = file.GetRasterBand(1)
        nodata = band.GetNoDataValue()
        found = found.astype("f8")
        if nodata is not None:
            found[found == nodata] = np.nan
        if found.ndim == 2:
            found = found[None]
    return found[0] if found.shape[0] == 1 else found


# ---- comparing

def close(got, wanted, what, rtol=1e-12, atol=0.0):
    got, wanted = np.asarray(got), np.asarray(wanted)
    if got.shape != wanted.shape:
        raise Wrong(f"{what}: shape {got.shape}, wanted {wanted.shape}")
    if got.dtype.kind in "iu" and wanted.dtype.kind in "iu":
        if not np.array_equal(got.astype(object), wanted.astype(object)):
            raise Wrong(f"{what}: {got.ravel()[:12]}, wanted {wanted.ravel()[:12]}")
        return
    a, b = got.astype("f8"), wanted.astype("f8")
    with np.errstate(all="ignore"):
        fine = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= atol + rtol * np.abs(b))
    if not fine.all():
        at = tuple(int(n[0]) for n in np.nonzero(~fine)) if fine.ndim else ()
        raise Wrong(f"{what}: {a[at]!r} ({got.dtype}), wanted {b[at]!r} at {at}; {(~fine).sum()} of {fine.size} differ")


def reduced(values, word, axes):
    """What NumPy makes of a masked array."""
    axes = tuple(range(values.ndim)) if axes is None else axes
    mask = np.ma.getmaskarray(values)
    count = (~mask).sum(axis=axes)
    if word == "count":
        return count
    whole = values.dtype.kind in "iu" and values.dtype.itemsize == 8
    if word in ("any", "all"):
        zero = np.ma.filled(values, 0 if word == "any" else 1) != 0
        return getattr(zero, word)(axis=axes)
    if whole and word in ("min", "max", "sum"):
        found = getattr(values, word)(axis=axes) if word != "sum" else np.ma.array(
            np.ma.filled(values, 0).astype(values.dtype).sum(axis=axes), mask=count == 0)
        return found if np.ma.is_masked(found) else np.ma.getdata(found)
    floats = np.where(mask, np.nan, np.ma.getdata(values).astype("f8")) if values.size else as_floats(values)
    order = [d for d in range(values.ndim) if d not in axes] + list(axes)
    kept = [values.shape[d] for d in order[:values.ndim - len(axes)]]
    flat = np.transpose(floats, order).reshape([*kept, int(np.prod([values.shape[d] for d in axes], dtype=int))])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if word in ("argmin", "argmax"):
            if (count == 0).any():
                return None  # refused
            return getattr(np, "nan" + word)(flat, axis=-1)
        if word == "sum":
            none = count == 0 if flat.shape[-1] else False  # of nothing at all it is 0, as NumPy's
            return np.where(none, np.nan, np.nansum(flat, axis=-1))
        if word[0] == "p":
            return np.nanpercentile(flat, float(word[1:]), axis=-1)
        return getattr(np, "nan" + word)(flat, axis=-1)


def windows(values, by, word):
    """What NumPy makes of blocks."""
    shape = tuple(-(-n // b) for n, b in zip(values.shape, by))
    found = np.empty(shape, "f8")
    floats = as_floats(values)
    for index in np.ndindex(*shape):
        block = floats[tuple(slice(i * b, (i + 1) * b) for i, b in zip(index, by))]
        block = block[~np.isnan(block)]
        if word == "nearest":
            found[index] = floats[tuple(i * b for i, b in zip(index, by))]
        elif not block.size:
            found[index] = np.nan
        elif word == "mode":
            kinds, counts = np.unique(block, return_counts=True)
            found[index] = kinds[counts.argmax()]
        else:
            found[index] = getattr(np, word)(block)
    return found


# ---- the commands

class Run:
    def __init__(self, program, folder, seed, number):
        self.program, self.folder = program, folder
        self.draw = Draw(seed, number)
        tiff = (rasterio or gdal) and self.draw.chance(0.25)
        kind, end = (GeoTiff, ".tif") if tiff else (NetCdf, ".nc")
        self.file = kind(self.draw, folder / f"a{end}")
        self.values = self.truth_of(self.file)
        self.scale = self.size_of(self.file, self.values)
        self.results = Results(folder)

    def truth_of(self, file):
        if isinstance(file, NetCdf):
            return truth(file.codes, file.attrs)
        codes = file.codes
        mask = np.isnan(codes) if codes.dtype.kind == "f" else np.zeros(codes.shape, bool)
        if file.marker is not None:
            mask = mask | equals(codes, file.marker)
        if file.packing:
            codes = codes.astype("f8") * file.packing["scale_factor"] + file.packing["add_offset"]
        elif file.marker is not None and codes.dtype.kind in "iu":
            codes = codes.astype("f4" if codes.dtype.itemsize < 4 else "f8")
        return np.ma.array(codes, mask=mask)

    def size_of(self, file, values):
        size = np.abs(values.astype("f8")).max() if values.count() else 1
        return float(max(size, 1e-30, abs(float(file.attrs.get("add_offset", 0)))))

    @property
    def single(self):
        """Whether the values are float32."""
        return self.values.dtype == np.dtype("f4")

    def limits(self):
        return {"rtol": 2e-6, "atol": 2e-6 * self.scale} if self.single else {"rtol": 1e-9, "atol": 1e-12 * self.scale}

    def tessera(self, *words, text=None):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True, cwd=self.folder, timeout=120,
                              input=text, check=False)
        self.last = " ".join(map(str, words))
        self.said = done.stderr
        if done.returncode:
            if done.returncode < 0 or not done.stderr.strip() or "internal" in done.stderr:
                raise Wrong(f"exit {done.returncode}: {done.stderr[:300]}")
            raise Refused(done.stderr.strip().splitlines()[-1])
        return done.stdout

    def clear(self, name):
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)

    def destination(self, ndim=2):
        name = self.draw.one(["out.npy", "out.nc", "v2.zarr", "v3.zarr", "v3.zarr"])
        if name.startswith("v3") and not ZARR3:
            name = "v2.zarr"
        self.clear(name)
        return name, ["--format", name[:2]] if name[0] == "v" else []

    # ---- each command: raises Wrong or Refused

    def self_check(self):
        """xarray has the same, where it has no rule of its own."""
        if isinstance(self.file, GeoTiff):
            return
        data = read_xarray(self.file.path, engine="netcdf4", **({"group": self.file.group} if self.file.group else {}))
        if not self.xarray_agrees(data["v"]):
            raise Refused(f"xarray otherwise: {self.file.attrs}")

    def json_values(self, found):
        flat = np.array([np.nan if v is None else {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}.get(v, v) if isinstance(v, str) else v
                         for v in np.array(found, object).ravel()], object)
        return flat

    def assert_json(self, found, values, what):
        got = self.json_values(found)
        wanted = np.ma.filled(values.astype(object), np.nan).ravel() if values.dtype.kind in "iu" else as_floats(values).ravel()
        if got.size != wanted.size:
            raise Wrong(f"{what}: {got.size} elements, wanted {wanted.size}")
        close(got.astype("f8"), wanted.astype("f8"), what, **self.limits())
        if values.dtype.kind in "iu":
            for g, w in zip(got, wanted):
                if not (isinstance(w, float) and np.isnan(w)) and int(g) != int(w):
                    raise Wrong(f"{what}: {g}, wanted {w}")

    def xarray_agrees(self, variable):
        single = variable.dtype == np.dtype("f4")
        try:
            close(variable.values.astype("f8"), as_floats(self.values), "xarray", 1e-6 if single else 1e-12, 1e-6 * self.scale if single else 0)
        except Wrong:
            return False
        return True

    def get(self):
        self.assert_json(json.loads(self.tessera("get", self.file.place, "--json")), self.values, "get --json")

    def get_part(self):
        if not self.values.ndim:
            raise Refused("scalar")
        axis = self.draw.rng.integers(self.values.ndim)
        n = self.values.shape[axis]
        if n == 0:
            raise Refused("empty")
        i = int(self.draw.rng.integers(n))
        where = ", ".join(str(i) if d == axis else ":" for d in range(self.values.ndim))
        self.assert_json(json.loads(self.tessera("get", self.file.place, where, "--json")), np.ma.array(self.values[tuple(i if d == axis else slice(None) for d in range(self.values.ndim))]), f"get {where}")

    def get_raw(self):
        self.tessera("get", self.file.place, "--raw", "--out", "raw.npy", "--overwrite", "--quiet")
        close(np.load(self.folder / "raw.npy"), self.file.codes, "get --raw", 0)

    def get_out(self):
        self.tessera("get", self.file.place, "--out", "o.npy", "--overwrite", "--quiet")
        got = np.load(self.folder / "o.npy")
        whole = self.values.dtype.kind in "iu" and np.ma.is_masked(self.values)
        wanted = self.file.codes if whole else as_floats(self.values) if self.values.dtype.kind == "f" else np.ma.getdata(self.values)
        close(got if not whole else got.astype(self.file.codes.dtype), wanted, "get --out", **self.limits())

    def get_csv(self):
        if self.values.ndim > 2 or not self.values.ndim:
            raise Refused("dimensions")
        text = self.tessera("get", self.file.place, "--csv")
        rows = [[np.nan if cell == "" else float(cell) for cell in row] for row in csv.reader(text.splitlines())]
        close(np.array(rows).ravel(), as_floats(self.values).ravel(), "get --csv", **self.limits())

    def stats(self):
        found = json.loads(self.tessera("stats", self.file.place, "--with", "median,p95", "--json"))
        found = found[0] if isinstance(found, list) else found
        values = self.values
        missing = int(np.ma.getmaskarray(values).sum())
        for name, wanted in (("missing", missing), ("count", values.size)):
            if found[name] != wanted:
                raise Wrong(f"stats {name}: {found[name]}, wanted {wanted}")
        if not values.count():
            for name in ("min", "max", "mean"):
                if found[name] is not None and found[name] != "NaN":
                    raise Wrong(f"stats {name} of nothing: {found[name]}")
            return
        for name, word in (("min", "min"), ("max", "max"), ("mean", "mean"), ("deviation", "std")):
            got = self.json_values([found[name]])[0]
            limits = self.limits()
            if word == "std":
                limits = {"rtol": 1e-4 if self.single else 1e-6, "atol": 1e-6 * self.scale if self.single else 1e-9 * self.scale}
            close(float(got), float(as_scalar(reduced(values, word, None))), f"stats {name}", **limits)
        for name, word in (("median", "median"), ("p95", "p95")):
            close(float(self.json_values([found["further"][name]])[0]), float(as_scalar(reduced(values, word, None))), f"stats {name}", **self.limits())

    def stats_axis(self):
        if not self.values.ndim:
            raise Refused("scalar")
        found = json.loads(self.tessera("stats", self.file.place, "--axis", 0, "--json"))
        found = found[0] if isinstance(found, list) else found
        for i, row in enumerate(found["positions"]):
            part = np.ma.array(self.values[i:i + 1])
            if row["missing"] != int(np.ma.getmaskarray(part).sum()):
                raise Wrong(f"stats --axis missing {row['missing']}")
            if part.count():
                close(float(self.json_values([row["mean"]])[0]), float(as_scalar(reduced(part, "mean", None))), "stats --axis mean", **self.limits())

    def expressions(self):
        plain, floats = np.ma.getdata(self.values), as_floats(self.values)
        with np.errstate(all="ignore"):
            yield "v - 273.15", floats - 273.15
            yield "float64(v) * 2", floats * 2
            yield "where(v > 5, v, 0.0)", np.where(floats > 5, floats, 0.0)
            yield "where(isnan(float64(v)), -1.0, v)", np.where(np.isnan(floats), -1.0, floats)
            yield "minimum(v, 7.5)", np.minimum(floats, 7.5)
            yield "isnan(float64(v))", np.isnan(floats)
            yield "v == v", ~np.isnan(floats)
            yield "sqrt(abs(float64(v)))", np.sqrt(np.abs(floats))
            if plain.dtype.kind == "f":
                yield "-v", -floats
                yield "v + v", floats + floats
                yield "v / 2", floats / 2

    def calc(self):
        expression, wanted = self.draw.one(list(self.expressions()))
        expression = f" {expression}" if expression[0] == "-" else expression
        name, words = self.destination()
        self.tessera("calc", name, expression, f"v={self.file.place}", "--quiet", *words)
        got, attrs = self.results.read(name)
        limits = self.limits()
        if "273.15" in expression or "0.0" in expression or "7.5" in expression or "5" in expression:
            limits = {"rtol": max(limits["rtol"], 1e-12), "atol": limits["atol"] + 273.15 * limits["rtol"]}
        close(got.astype("f8"), wanted.astype("f8"), f"calc {expression} to {name}", **limits)
        self.no_packing(attrs)

    def no_packing(self, attrs):
        for name in ("scale_factor", "add_offset", "actual_range"):
            if attrs and name in attrs:
                raise Wrong(f"the result has {name}")

    def reduce(self):
        word = self.draw.one(WORDS)
        ndim = self.values.ndim
        axes = None if not ndim or self.draw.chance(0.3) else tuple(sorted(self.draw.rng.choice(ndim, int(self.draw.rng.integers(1, ndim + 1)), replace=False).tolist()))
        name, words = self.destination()
        named = self.draw.chance(0.5) and isinstance(self.file, NetCdf)
        if axes is not None:
            words += ["--axis", ",".join(self.file.dims[d] if named else str(d) for d in axes)]
        self.tessera("reduce", self.file.place, name, "--with", word, "--quiet", *words)
        got, attrs = self.results.read(name)
        wanted = reduced(self.values, word, axes)
        what = f"reduce {word} {axes} to {name}"
        if wanted is None:
            raise Wrong(f"{what}: argmin of nothing gave {got}")
        limits = self.limits()
        if word in ("std", "var"):
            limits = {"rtol": 1e-4 if self.single else 1e-8, "atol": (1e-5 if self.single else 1e-9) * self.scale ** (2 if word == "var" else 1)}
        if word == "sum" and self.single:
            limits = {"rtol": 1e-5, "atol": 1e-5 * self.scale * max(1, self.values.size)}
        if word == "sum":
            limits["atol"] *= max(1, self.values.size)
        if np.ma.is_masked(wanted):
            if name.endswith(".npy"):
                raise Refused("missing integers in .npy")
            wanted = as_floats(wanted)
        close(got, wanted, what, **limits)
        self.no_packing(attrs)
        if attrs is not None and isinstance(self.file, NetCdf):
            self.metadata(attrs, word, axes)

    def metadata(self, attrs, word, axes):
        units = self.file.attrs.get("units")
        if word in ("mean", "min", "max", "median", "p95", "p2.5", "std", "sum") and units is not None and attrs.get("units") != units:
            raise Wrong(f"reduce {word}: units {attrs.get('units')}, wanted {units}")
        if word in ("count", "any", "all", "argmin", "argmax") and "units" in attrs:
            raise Wrong(f"reduce {word}: units {attrs['units']}")
        method = {"mean": "mean", "min": "minimum", "max": "maximum", "std": "standard_deviation", "var": "variance", "sum": "sum", "median": "median"}.get(word)
        dims = self.file.dims if axes is None else [self.file.dims[d] for d in axes]
        if method and dims and attrs.get("cell_methods") != f"{' '.join(f'{d}:' for d in dims)} {method}":
            raise Wrong(f"reduce {word} {axes}: cell_methods {attrs.get('cell_methods')}")

    def coarsen(self):
        if not self.values.ndim or 0 in self.values.shape:
            raise Refused("no blocks")
        word = self.draw.one(["mean", "max", "min", "mode", "nearest"])
        by = [int(self.draw.rng.integers(1, 4)) for _ in range(self.values.ndim)]
        name, words = self.destination()
        self.tessera("coarsen", self.file.place, name, "--by", ",".join(map(str, by)), "--with", word, "--quiet", *words)
        got, attrs = self.results.read(name)
        wanted = windows(self.values, by, word)
        if self.values.dtype.kind in "iu" and word == "mean":
            wanted = np.round(wanted)
        close(got.astype("f8"), wanted, f"coarsen {word} {by} to {name}", **self.limits())
        self.no_packing(attrs)

    def pyramid(self):
        if self.values.ndim < 2 or 0 in self.values.shape:
            raise Refused("no image")
        self.clear("p.zarr")
        form = self.draw.one(["v2", "v3"])
        word = self.draw.one(["mean", "max", "min", "nearest"])
        axes = {2: "y,x", 3: "t,y,x"}[self.values.ndim]
        by = {2: "2,2", 3: "1,2,2"}[self.values.ndim]
        if self.file.dims[-1] == "band":
            raise Refused("pixels of bands")
        self.tessera("pyramid", self.file.place, "p.zarr", "--levels", 2, "--by", by, "--axes", axes, "--format", form, "--with", word, "--quiet")
        self.tessera("get", "p.zarr/1", "--out", "level.npy", "--overwrite", "--quiet")
        wanted = windows(self.values, [int(n) for n in by.split(",")], word)
        got = np.load(self.folder / "level.npy").astype("f8")
        if self.values.dtype.kind in "iu" and np.ma.is_masked(self.values):
            raise Refused("masked integers")
        limits = self.limits()
        attrs, codes = self.packing()
        if codes.dtype.kind in "iu" and word == "mean":  # packed again
            limits["atol"] += 0.501 * abs(float(attrs.get("scale_factor", 1)))
        elif codes.dtype.itemsize == 4:
            limits = {"rtol": 2e-6, "atol": 2e-6 * self.scale}
        close(got, wanted, f"pyramid {word}", **limits)

    def packing(self):
        return (self.file.attrs if isinstance(self.file, NetCdf) else self.file.packing), self.file.codes

    def copy(self):
        """To each format and seen there by xarray."""
        if isinstance(self.file, GeoTiff):
            return self.copy_tiff()
        end = self.draw.one(["c.nc", "c2.zarr", "c3.zarr", "c4.nc4"])
        if end == "c3.zarr" and not ZARR3:
            end = "c2.zarr"
        self.clear(end)
        self.tessera("copy", self.file.path.name, end, "--quiet", *(["--format", f"v{end[1]}"] if end.endswith("zarr") else []))
        group = {"group": self.file.group} if self.file.group else {}
        kind = {"engine": "zarr", "consolidated": False} if end.endswith("zarr") else {"engine": "netcdf4"}
        before = read_xarray(self.file.path, engine="netcdf4", **group)
        try:
            after = read_xarray(self.folder / end, **kind, **group)
        except Refused:
            raise
        except Exception as error:
            raise Wrong(f"copy to {end}: xarray: {type(error).__name__}: {error}") from error
        if sorted(before.variables) != sorted(after.variables):
            raise Wrong(f"copy to {end}: {sorted(after.variables)}, wanted {sorted(before.variables)}")
        for name in before.variables:
            one, other = before[name], after[name]
            if name == "v" and (not self.xarray_agrees(one) or ("_Unsigned" in self.file.attrs and other.encoding["dtype"].byteorder == ">")):
                continue  # it compares markers of the other byte order
            if one.dims != other.dims:
                raise Wrong(f"copy to {end}: {name}: dims {other.dims}, wanted {one.dims}")
            close(other.values, one.values, f"copy to {end}: {name}",
                  *((2e-6, 2e-6 * self.scale) if one.dtype == np.dtype("f4") else (1e-15, 0)))
            here = {k: np.asarray(v).tolist() for k, v in one.attrs.items() if not k.startswith("_Netcdf4")}
            there = {k: np.asarray(v).tolist() for k, v in other.attrs.items() if not k.startswith("_Netcdf4")}
            if here != there:
                raise Wrong(f"copy to {end}: {name}: attributes {there}, wanted {here}")
        return None

    def copy_tiff(self):
        self.clear("c.tif")
        self.clear("c.zarr")
        self.tessera("copy", self.file.path.name, "c.zarr", "--format", self.draw.one(["v2", "v3"]), "--quiet")
        self.tessera("copy", "c.zarr", "c.tif", "--quiet")
        close(read_tiff(self.folder / "c.tif"), read_tiff(self.file.path), "copy by Zarr to .tif", 0)

    def decode_cf(self):
        end = self.draw.one(["d.npy", "d.nc", "d2.zarr", "d.csv"])
        if end == "d.csv" and self.values.ndim != 2:
            end = "d.npy"
        self.clear(end)
        self.tessera("copy", self.file.place, end, "--decode-cf", "--quiet", *(["--format", "v2"] if end.endswith("zarr") else []))
        whole = self.values.dtype.kind in "iu" and np.ma.is_masked(self.values)
        if end == "d.csv":
            rows = [[np.nan if c == "" else float(c) for c in row] for row in csv.reader((self.folder / end).read_text().splitlines())]
            return close(np.array(rows).reshape(self.values.shape), as_floats(self.values), "copy --decode-cf to .csv", **self.limits())
        if end == "d.npy" and whole:
            raise Refused("missing integers in .npy")
        got, _ = self.results.read(end)
        return close(got.astype("f8"), as_floats(self.values), f"copy --decode-cf to {end}", **self.limits())

    def codes_go_with_a_note(self):
        self.clear("n.npy")
        self.tessera("copy", self.file.place, "n.npy")
        close(np.load(self.folder / "n.npy"), self.file.codes, "copy to .npy", 0)
        attrs, codes = self.packing()
        meaning = [k for k in attrs if k in ("scale_factor", "add_offset", "_Unsigned")]
        if meaning and "decode-cf" not in self.said and not np.array_equal(as_floats(self.values), codes.astype("f8"), equal_nan=True):
            raise Wrong(f"copy to .npy says nothing of {meaning}: {self.said}")

    def exported(self):
        self.clear("i.zarr")
        self.clear("e.nc")
        self.tessera("import", self.file.place, "i.zarr", "--format", self.draw.one(["v2", "v3"]), "--quiet")
        self.tessera("export", "i.zarr", "e.nc", "--quiet")
        if any(np.asarray(self.file.attrs.get(name, 1.0)).dtype.kind in "iu" for name in ("scale_factor", "add_offset")):
            raise Refused("xarray wraps integers that integers pack")
        got, _ = self.results.read("e.nc")
        close(got.astype("f8"), as_floats(self.values), "import, export to .nc", *([1e-6, 1e-6 * self.scale] if got.dtype == np.dtype("f4") else [1e-12, 1e-12 * self.scale]))

    def set(self):
        if not self.values.size:
            raise Refused("empty")
        self.clear("s.zarr")
        self.tessera("copy", self.file.place, "s.zarr", "--format", "v2", "--quiet")
        index = tuple(int(self.draw.rng.integers(n)) for n in self.values.shape)
        other = tuple(int(self.draw.rng.integers(n)) for n in self.values.shape)
        where = ",".join(map(str, index)) or "..."
        value = self.values[other]
        text = "null" if value is np.ma.masked else repr(value.item())
        self.tessera("set", "s.zarr", where, "--quiet", "--", text)
        self.tessera("get", "s.zarr", "--raw", "--out", "s.npy", "--overwrite", "--quiet")
        got = self.truth_of_codes(np.load(self.folder / "s.npy"))
        wanted = self.values.copy()
        wanted[index] = value
        close(as_floats(got), as_floats(wanted), f"set {where} {text}", **self.limits())

    def truth_of_codes(self, codes):
        kept, self.file.codes = self.file.codes, codes
        try:
            return self.truth_of(self.file)
        finally:
            self.file.codes = kept

    def set_all(self):
        """What `get --out` writes `set` takes, to the bit."""
        if not self.values.size:
            raise Refused("empty")
        self.clear("s.zarr")
        self.tessera("copy", self.file.place, "s.zarr", "--format", self.draw.one(["v2", "v3"]), "--quiet")
        self.tessera("get", "s.zarr", "--out", "g.npy", "--overwrite", "--quiet")
        self.tessera("set", "s.zarr", "...", "g.npy", "--quiet")
        self.tessera("get", "s.zarr", "--raw", "--out", "s.npy", "--overwrite", "--quiet")
        got, wanted = np.load(self.folder / "s.npy"), self.file.codes
        close(got, wanted, "get | set", 0)

    def joined(self):
        command = self.draw.one(["concat", "stack", "append"])
        if not self.values.ndim and command != "stack":
            raise Refused("scalar")
        other = type(self.file)(self.draw, self.folder / f"b{self.file.path.suffix}", self.file)
        if command == "stack" and other.codes.shape != self.file.codes.shape:
            raise Refused("shapes")
        axis = self.file.dims.index("t") if "t" in self.file.dims else None
        if command != "stack" and axis is None:
            raise Refused("no common axis")
        name, words = self.destination()
        if command == "append":
            name = "a.zarr"
            self.clear(name)
            self.tessera("copy", self.file.place, name, "--format", "v2", "--quiet")
            self.tessera("append", name, other.place, "--axis", axis, "--quiet")
        else:
            decode = name.endswith(".npy") or self.draw.chance(0.2)
            self.tessera(command, self.file.place, other.place, name, "--quiet", *words, *(["--decode-cf"] if decode else []),
                         *(["--axis", axis] if command == "concat" else ["--new-axis"]))
        if "_Unsigned" in self.file.attrs and self.file.is_big_endian():
            raise Refused("xarray compares markers of the other byte order")
        got, _ = self.results.read(name)
        second = self.truth_of(other)
        both = [as_floats(self.values), as_floats(second)]
        wanted = np.stack(both) if command == "stack" else np.concatenate(both, axis)
        size = max(self.scale, self.size_of(other, second))
        limit = 2e-6 if got.dtype == np.dtype("f4") or self.single else 1e-12
        if name.endswith(".npy") and got.dtype.kind in "iu" and np.isnan(wanted).any():
            raise Refused("missing integers in .npy")
        close(got.astype("f8"), wanted, f"{command} to {name}", limit, limit * size)

    # ---- times

    def times(self):
        kind, attrs, counts = self.file.time
        calendar = attrs.get("calendar", "standard")
        if not len(counts):
            raise Refused("empty")
        values = truth(counts, attrs)
        wanted = cftime.num2date(np.ma.getdata(values).astype("f8" if values.dtype.kind == "f" else "i8"), attrs["units"], calendar)
        wanted = [None if lacks else one for one, lacks in zip(wanted, np.ma.getmaskarray(values))]
        found = json.loads(self.tessera("get", self.file.member("t"), "--json"))
        for text, one in zip(found, wanted):
            if text is None or one is None:
                if text is not one:
                    raise Wrong(f"time {text}, {one}")
                continue
            close(seconds_of(text, calendar), cftime.date2num(one, "seconds since 1800-01-01", calendar), f"time {text}, {one}", 0, 1e-3)
        return wanted

    def time_facts(self):
        wanted = [one for one in self.times() if one is not None]
        _, attrs, counts = self.file.time
        calendar = attrs.get("calendar", "standard")
        if not wanted:
            raise Refused("no times")
        found = json.loads(self.tessera("stats", self.file.member("t"), "--json"))
        found = found[0] if isinstance(found, list) else found
        for word, moment in (("min", min(wanted)), ("max", max(wanted))):
            close(seconds_of(found[word], calendar), cftime.date2num(moment, "seconds since 1800-01-01", calendar), f"stats of times {word}", 0, 1.0)
        word = self.draw.one(["mean", "min", "max", "median"])
        self.clear("t.nc")
        self.tessera("reduce", self.file.member("t"), "t.nc", "--with", word, "--quiet")
        with netCDF4.Dataset(self.folder / "t.nc") as data:
            variable = next(iter(data.variables.values()))
            got = np.asarray(variable[...], "f8")
            if variable.units != attrs["units"] or getattr(variable, "calendar", None) != attrs.get("calendar"):
                raise Wrong(f"reduce {word} of times: units {getattr(variable, 'units', None)}")
        values = as_floats(truth(counts, attrs))
        close(got, getattr(np, "nan" + word)(values), f"reduce {word} of times", 1e-6 if counts.dtype.itemsize < 8 else 1e-12)

    def time_calc(self):
        wanted = self.times()
        _, attrs, counts = self.file.time
        calendar = attrs.get("calendar", "standard")
        self.clear("k.npy")
        t = self.file.member("t")
        if calendar in ("standard", "gregorian", "proleptic_gregorian"):
            self.tessera("calc", "k.npy", "t - datetime64('2000-01-01')", f"t={t}", "--quiet")
            got = np.load(self.folder / "k.npy")
            seconds = [np.nan if one is None else cftime.date2num(one, "seconds since 2000-01-01", calendar) for one in wanted]
            close(got / np.timedelta64(1, "ms") / 1000, seconds, "calc of times", 0, 1e-3)
        else:
            self.tessera("calc", "k.npy", "t * 1.0", f"t={t}", "--quiet")
            close(np.load(self.folder / "k.npy").astype("f8"), as_floats(truth(counts, attrs)), "calc of counts", 1e-6)

    def time_bounds(self):
        if not self.file.bounds:
            raise Refused("no bounds")
        wanted = self.times()
        found = json.loads(self.tessera("get", self.file.member("t_bnds"), "--json"))
        calendar = self.file.time[1].get("calendar", "standard")
        for row, one in zip(found, wanted):
            if one is None:
                if row[0] is not None:
                    raise Wrong(f"bounds {row[0]} of none")
                continue
            close(seconds_of(row[0], calendar), cftime.date2num(one, "seconds since 1800-01-01", calendar), "bounds", 0, 1e-3)

    def scalar(self):
        if float(self.tessera("get", self.file.member("s"), "--json")) != 3.5:
            raise Wrong("a packed scalar")

    # ---- Python

    def module(self):
        if tessera is None:
            raise Refused("no module")
        what = self.draw.one(["decoded", "calc", "reduce", "coarsen", "stats"])
        place = str(self.folder / self.file.place)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.module_call(what, place)
        except (tessera.TesseraError if hasattr(tessera, "TesseraError") else Exception) as error:
            if isinstance(error, (Wrong, Refused)):
                raise
            raise Refused(f"{type(error).__name__}: {error}") from error

    def module_call(self, what, place):
        if what == "decoded":
            opened = tessera.open(place)
            got = opened.decoded[...]
            got = as_floats(got) if np.ma.isMaskedArray(got) else np.asarray(got)
            close(got.astype("f8"), as_floats(self.values), "a.decoded", **self.limits())
            close(opened[...], self.file.codes, "a[...]", 0)
        elif what == "calc":
            got = tessera.calc(None, "float64(v) * 2", {"v": place})
            close(got, as_floats(self.values) * 2, "tessera.calc", **self.limits())
        elif what == "reduce":
            word = self.draw.one(["mean", "min", "max", "count", "median"])
            wanted = reduced(self.values, word, None)
            got = tessera.reduce(place, how=word)
            if np.ma.is_masked(wanted):
                raise Refused("masked integers")
            close(got, wanted, f"tessera.reduce {word}", **self.limits())
        elif what == "coarsen":
            if not self.values.ndim or 0 in self.values.shape:
                raise Refused("no blocks")
            by = (2,) * self.values.ndim
            got = np.asarray(tessera.coarsen(place, by=by, how="max")).astype("f8")
            if self.values.dtype.kind in "iu" and np.ma.is_masked(self.values):
                raise Refused("masked integers")
            close(got, windows(self.values, by, "max"), "tessera.coarsen", **self.limits())
        else:
            found = tessera.stats(place)
            if found.missing != int(np.ma.getmaskarray(self.values).sum()):
                raise Wrong(f"tessera.stats: missing {found.missing}")
            if self.values.count():
                close(float(found.mean), float(as_scalar(reduced(self.values, "mean", None))), "tessera.stats", **self.limits())


def as_scalar(value):
    return np.nan if value is np.ma.masked else value


def seconds_of(text, calendar):
    """Since 1800, of ISO 8601 text."""
    if text is None:
        return np.nan
    day, _, clock = text.partition("T")
    year, month, day = (int(n) for n in day.split("-"))
    parts = [float(n) for n in clock.split(":")] if clock else []
    parts += [0.0] * (3 - len(parts))
    start = cftime.datetime(year, month, day, calendar=calendar)
    return cftime.date2num(start, "seconds since 1800-01-01", calendar) + parts[0] * 3600 + parts[1] * 60 + parts[2]


# What is not wrong, but not what is wanted either, is for --check alone.
COMMON = ["self_check", "get", "get_part", "get_raw", "get_out", "get_csv", "stats", "stats_axis", "calc", "calc", "calc", "reduce", "reduce",
          "reduce", "reduce", "reduce", "reduce", "coarsen", "coarsen", "pyramid", "copy", "copy", "decode_cf", "codes_go_with_a_note",
          "exported", "set", "set", "set_all", "joined", "joined", "module", "module"]
OF_NETCDF = ["times", "time_facts", "time_calc", "time_bounds", "scalar"]


def one_file(options, number, tally, refused, folder):
    wrong = 0
    run = Run(options.program, folder, options.seed, number)
    for name in COMMON + (OF_NETCDF if isinstance(run.file, NetCdf) else []):
        if options.check and name != options.check:
            continue
        run.last = ""
        try:
            getattr(run, name)()
            tally[name, "equal"] += 1
        except Refused as why:
            tally[name, "refused"] += 1
            refused[f"{name}: {str(why)}"[:options.width]] += 1
        except Exception as error:
            tally[name, "WRONG"] += 1
            wrong += 1
            print(f"WRONG: --seed {options.seed} --only {number}: {name}: tessera {run.last}: {type(error).__name__}: "
                  f"{str(error)[:500]}\n   {run.file.describe()}", flush=True)
            if not isinstance(error, Wrong) and options.only is not None:
                traceback.print_exc()
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.environ.get("TESSERA_PROGRAM", "tessera"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="40 files")
    parser.add_argument("--only", type=int)
    parser.add_argument("--check", help="only this check")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the files, which stay")
    parser.add_argument("--refusals", action="store_true", help="list what was refused")
    parser.add_argument("--width", type=int, default=160)
    options = parser.parse_args()
    options.program = str(pathlib.Path(options.program).resolve()) if os.sep in options.program else options.program
    tally, refused, wrong = collections.Counter(), collections.Counter(), 0
    np.seterr(all="ignore")
    warnings.simplefilter("ignore")
    numbers = range(40 if options.quick else options.count) if options.only is None else [options.only]
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    for number in numbers:
        with tempfile.TemporaryDirectory(dir=place) as folder:
            wrong += one_file(options, number, tally, refused, pathlib.Path(folder).resolve())
            if options.keep:
                shutil.copytree(folder, options.keep, dirs_exist_ok=True)
    for name in dict.fromkeys(COMMON + OF_NETCDF):
        print(f"{name:22} " + ", ".join(f"{tally[name, kind]} {kind}" for kind in ("equal", "refused", "WRONG") if tally[name, kind]))
    if options.refusals:
        for text, n in refused.most_common():
            print(f"{n:5} {text}")
    print(f"{len(numbers)} files: {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
