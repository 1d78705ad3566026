"""netCDF's own program reads the groups that we write: v2 without compression, dimensions by _ARRAY_DIMENSIONS.

Only without compression: the netCDF of Debian 12 gives garbage for zlib.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

PROGRAM = os.environ["TESSERA_PROGRAM"]
LATITUDES = np.linspace(-45, 45, 5)
DEPTHS = np.arange(35, dtype="<f4").reshape(5, 7) / 8
COUNTS = (np.arange(35, dtype=">i4") ** 3).reshape(5, 7)


def tessera(*words, **options):
    subprocess.run([PROGRAM, *map(str, words), "--quiet"], check=True, **options)


def make_survey(folder):
    root = folder / "survey.zarr"
    tessera("group", root, "--format", "v2", "--attrs", '{"title": "Survey"}')
    for name, array, chunks, options in [
            ("lat", LATITUDES, "5", ["--dims", "lat"]), ("depth", DEPTHS, "2,3", ["--dims", "lat,lon", "--fill=-1"]),
            ("count", COUNTS, "5,2", ["--dims", "lat,lon"])]:
        tessera("create", root / name, "--shape", ",".join(map(str, array.shape)), "--dtype", array.dtype.str,
                "--chunks", chunks, "--codec", "none", "--format", "v2", *options)
        np.save(folder / "values.npy", array)
        tessera("set", root / name, "...", folder / "values.npy")
    tessera("attrs", root / "depth", "set", "units", '"m"')
    # The last chunks are gone again: they read as the fill value.
    tessera("resize", root / "depth", "4,7")
    tessera("resize", root / "depth", "5,7")
    return root


def values(text, name):
    numbers = re.search(rf"\n {name} =([^;]*);", text).group(1)
    # "_" is the fill value.
    return np.array([float(number.rstrip("f").replace("_", "-1")) for number in numbers.split(",")])


def main():
    if shutil.which("ncdump") is None:
        print("skipped: there is no ncdump here (Debian's netcdf-bin has it)")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="tessera-test-") as folder:
        root = make_survey(pathlib.Path(folder))
        done = subprocess.run(["ncdump", f"file://{root}#mode=zarr,file"], capture_output=True, text=True, timeout=60)
    text = done.stdout
    print(text, done.stderr)
    assert done.returncode == 0
    for line in ["lat = 5 ;", "lon = 7 ;", "double lat(lat) ;", "float depth(lat, lon) ;", "int count(lat, lon) ;",
                 'depth:units = "m" ;', ':title = "Survey" ;']:
        assert line in text, line
    depths = DEPTHS.copy()
    depths[4] = -1
    for name, expected in [("lat", LATITUDES), ("depth", depths), ("count", COUNTS)]:
        np.testing.assert_array_equal(values(text, name), expected.reshape(-1), name)


sys.exit(main())
