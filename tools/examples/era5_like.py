"""Writes era5_like.nc, the data set of the pages' examples: a year of days of two variables on a coarse grid, as ERA5's are
stored: packed as int16, with missing elements, a time axis without an end, and the conventions' attributes.

    /usr/bin/python3 era5_like.py      (xarray, netCDF4)

The numbers are made up: a cycle of the year, a gradient from the poles, and noise.
"""
import numpy as np
import xarray as xr

random = np.random.default_rng(5)
latitude = np.arange(80.0, -81, -20)
longitude = np.arange(0.0, 360, 20)
days = np.arange(365)
season = np.cos(2 * np.pi * (days - 200) / 365)[:, None, None] * np.sign(latitude)[None, :, None]
shape = (days.size, latitude.size, longitude.size)
t2m = 288 + 25 * np.cos(np.radians(latitude))[None, :, None] - 20 + 12 * season + random.normal(0, 2, shape)
tp = np.maximum(0, random.gamma(0.4, 0.004, shape) - 0.002)
t2m[40, 3, 5:9] = np.nan  # as where an instrument failed
packed = {"dtype": "i2", "_FillValue": -32767, "zlib": True, "complevel": 9, "shuffle": True, "chunksizes": (73, 9, 18)}
data = xr.Dataset(
    {"t2m": (("time", "latitude", "longitude"), t2m, {"units": "K", "long_name": "2 metre temperature"}),
     "tp": (("time", "latitude", "longitude"), tp, {"units": "m", "long_name": "Total precipitation"})},
    coords={"time": ("time", days, {"units": "days since 2023-01-01", "calendar": "standard", "standard_name": "time"}),
            "latitude": ("latitude", latitude, {"units": "degrees_north", "standard_name": "latitude"}),
            "longitude": ("longitude", longitude, {"units": "degrees_east", "standard_name": "longitude"})},
    attrs={"Conventions": "CF-1.8", "title": "made up, in the form of ERA5"})
data.to_netcdf("era5_like.nc", unlimited_dims=["time"],
               encoding={"t2m": packed | {"scale_factor": 0.01, "add_offset": 270.0}, "tp": packed | {"scale_factor": 1e-5, "add_offset": 0.3},
                         "latitude": {"_FillValue": None}, "longitude": {"_FillValue": None}})
