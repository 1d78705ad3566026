"""Selections by longitudes beyond the ends of a coordinate that runs around the earth, beside xarray."""

import shutil
import subprocess
import sys

import numpy as np

from program import PROGRAM, ProgramTest, main, module_folder

try:
    import netCDF4  # of which xarray reads and writes files
    import xarray as xr
except ImportError:
    print("xarray or netCDF4 is not installed")
    sys.exit(77)


class AroundTheEarth(ProgramTest):
    def setUp(self):
        super().setUp()
        longitudes = np.arange(360.0)
        self.data = xr.Dataset(
            {"t": (("lat", "lon"), np.arange(4 * 360, dtype="f4").reshape(4, 360)),
             "lon_bnds": (("lon", "nv"), np.stack([longitudes - 0.5, longitudes + 0.5], axis=1))},
            coords={"lat": np.arange(4.0),
                    "lon": ("lon", longitudes, {"units": "degrees_east", "bounds": "lon_bnds", "valid_min": 0.0})})
        self.write(self.data, "g.nc")
        for form in ("v3", "v2"):
            self.tessera("copy", "g.nc", f"{form}.zarr", "--format", form, "--quiet")
        turned = self.data.assign_coords(lon=(self.data.lon + 180) % 360 - 180).sortby("lon")
        self.wanted = turned.sel(lon=slice(-10, 40))

    def write(self, data, name, **encoding):
        plain = {variable: {"_FillValue": None} for variable in data.variables}
        data.to_netcdf(self.path(name), encoding=plain | encoding)

    def opened(self, name):
        kind = {} if name.endswith(".nc") else {"engine": "zarr", "consolidated": False}
        with xr.open_dataset(self.path(name), **kind) as data:
            return data.load()

    def part(self, source, target, selection, *words):
        shutil.rmtree(self.path(target), ignore_errors=True)  # or arrays of an earlier one would stay
        self.tessera("copy", source, target, "--sel", selection, "--overwrite", "--quiet", *words)
        return self.opened(target)

    def test_a_copy_has_the_whole_box(self):
        for source in ("g.nc", "v3.zarr", "v2.zarr"):
            for target, words in (("part.zarr", ("--format", "v2")), ("part.nc", ())):
                made = self.part(source, target, "lon=-10:40, lat=1:2", *words)
                np.testing.assert_array_equal(made.t, self.wanted.t.sel(lat=slice(1, 2)))
                np.testing.assert_array_equal(made.lon, np.arange(-10, 41))
                np.testing.assert_array_equal(made.lon_bnds[:, 1], np.arange(-10, 41) + 0.5)
                self.assertEqual(made.lon.valid_min, -360)

    def test_arrays_alone(self):
        for path in ("g.nc::t", "v3.zarr/t", "v2.zarr/t"):
            self.tessera("copy", path, "part.npy", "--sel", "lon=-10:40", "--overwrite", "--quiet")
            np.testing.assert_array_equal(np.load(self.path("part.npy")), self.wanted.t)
            self.tessera("get", path, "lon=-10:40:5, lat=0", "--out", "row.npy", "--overwrite", "--quiet")
            np.testing.assert_array_equal(np.load(self.path("row.npy")), self.wanted.t[0, ::5])
            found = self.tessera_json("stats", path, "--sel", "lon=-10:40", "--quiet")
            self.assertEqual((float(found["min"]), float(found["max"])),
                             (float(self.wanted.t.min()), float(self.wanted.t.max())))
        result = self.run_program("get", "v3.zarr/t", "lon=-2:1, lat=0")
        self.assertEqual(result.stdout.split(), ["[358.0", "359.0", "0.0", "1.0]"])
        self.assertIn("lon=-2:1 means indices 358:360 and 0:2", result.stderr)
        self.assertEqual(self.run_program("get", "v3.zarr/lon", "lon=-2:1").stdout.split(), ["[-2.0", "-1.0", "0.0", "1.0]"])
        self.tessera("diff", "v2.zarr/t", "v3.zarr/t", "--sel", "lon=-10:40", "--quiet")
        self.tessera("set", "v2.zarr/t", "2, 359", "7", "--quiet")
        result = self.run_program("diff", "v2.zarr/t", "v3.zarr/t", "--sel", "lon=-10:40")
        self.assertIn("(2, 359)  7.0  1079.0", result.stdout)

    def test_pipes(self):
        for form in ("npy", "csv"):
            with open(self.path(f"p.{form}"), "wb") as out:
                subprocess.run([PROGRAM, "copy", "g.nc::t", "-", "--as", form, "--sel", "lon=-10:40"], cwd=self.folder,
                               stdout=out, stderr=subprocess.DEVNULL, check=True)
        np.testing.assert_array_equal(np.load(self.path("p.npy")), self.wanted.t)
        np.testing.assert_array_equal(np.loadtxt(self.path("p.csv"), delimiter=","), self.wanted.t)

    def test_other_turns(self):
        west = self.data.drop_vars("lon_bnds").assign_coords(
            lon=("lon", np.arange(-180.0, 180), {"standard_name": "longitude"}))
        self.write(west, "w.nc")
        for name, asked, columns, longitudes in (
                ("g.nc", "-40:-10", np.arange(320, 351), np.arange(-40, -9)),
                ("g.nc", "-180:180", (np.arange(360) + 180) % 360, np.arange(-180, 180)),
                ("g.nc", "350:370", np.arange(350, 371) % 360, np.arange(350, 371)),
                ("g.nc", "0:360", np.arange(360), np.arange(360)),
                ("g.nc", "-1000:1000", np.arange(360), np.arange(360)),
                ("g.nc", "-0.4:3.2", np.arange(4), np.arange(4)),
                ("w.nc", "170:190", np.arange(350, 371) % 360, np.arange(170, 191)),
                ("w.nc", "-180:179", np.arange(360), np.arange(-180, 180))):
            with self.subTest(asked):
                made = self.part(name, "p.zarr", f"lon={asked}", "--format", "v2")
                np.testing.assert_array_equal(made.t, self.data.t.values[:, columns])
                np.testing.assert_array_equal(made.lon, longitudes)
        for asked, column in (("lon~-7.3", "353.0"), ("lon=-10", "350.0"), ("lon~359.7", "0.0"), ("lon~359.3", "359.0")):
            self.assertEqual(self.run_program("get", "g.nc::t", f"{asked}, lat=0").stdout.strip(), column)

    def test_what_is_no_circle(self):
        half = self.data.drop_vars("lon_bnds").isel(lon=slice(0, 180))
        self.write(half, "half.nc")
        np.testing.assert_array_equal(self.part("half.nc", "p.zarr", "lon=-10:40", "--format", "v2").lon, np.arange(41))
        part = self.data.drop_vars("lon_bnds").isel(lon=slice(200, 350))
        self.write(part, "part.nc")
        self.refused("get", "part.nc::t", "lat=0, lon=-40:-20", says="lon=320:340")
        self.assertEqual(self.run_program("get", "part.nc::t", "lat=0, lon=-10:10").returncode, 0)
        for asked, column in ("lon~-40.2", "320.0"), ("lon~-1", "349.0"), ("lon~1", "349.0"), ("lon~150", "200.0"):
            self.assertEqual(self.run_program("get", "part.nc::t", f"{asked}, lat=0").stdout.strip(), column)
        plain = self.data.drop_vars("lon_bnds").assign_coords(lon=np.arange(360.0))
        self.write(plain, "plain.nc")
        np.testing.assert_array_equal(self.part("plain.nc", "p.zarr", "lon=-10:40", "--format", "v2").lon, np.arange(41))

    def test_longitudes_as_they_are_stored(self):
        data = self.data.drop_vars("lon_bnds")
        for how in ({"dtype": "i2"}, {"dtype": "f4"}, {"dtype": "i4", "scale_factor": 0.0625}):
            self.write(data, "e.nc", lon={"_FillValue": None} | how)
            np.testing.assert_array_equal(self.part("e.nc", "e.zarr", "lon=-10:40", "--format", "v2").lon,
                                          np.arange(-10, 41))
        self.tessera("copy", "g.nc", "u.zarr", "--format", "v3", "--quiet")
        self.tessera("copy", "g.nc::lon", "u.zarr/lon", "--dtype", "u2", "--cast", "unsafe", "--overwrite", "--quiet")
        self.tessera("attrs", "u.zarr/lon", "set", "units", "degrees_east", "--quiet")
        self.refused("copy", "u.zarr", "p.zarr", "--sel", "lon=-10:40", "--overwrite", "--quiet", says="one after the other",
                     code=2)

    def test_pictures(self):
        self.tessera("view", "v3.zarr/t", "lon=-10:40", "--png", "v.png", "--quiet")
        found = self.tessera_json("view", "v3.zarr/t", "lon=-2:1, lat=0:1", "--quiet")
        self.assertIn([358, 359, 0, 1], [[int(cell) for cell in row] for row in found["values"]])

    def test_what_writes_one_part_says_so(self):
        says = ("350:360 and 0:41", "one after the other")
        self.refused("set", "v3.zarr/t", "lon=-10:40", "0", "--quiet", says=says)
        self.refused("calc", "v3.zarr/t", "x * 2", "x=v3.zarr/t", "--in-place", "--sel", "lon=-10:40", "--quiet", says=says)
        self.tessera("diff", "v2.zarr/t", "v3.zarr/t", "--quiet")

    def test_resuming_knows_the_turn(self):
        self.tessera("copy", "v3.zarr/t", "r.zarr", "--sel", "lon=-10:40", "--quiet")
        self.tessera("copy", "v3.zarr/t", "r.zarr", "--sel", "lon=-20:30", "--overwrite", "--quiet")
        self.assertEqual(self.run_program("get", "r.zarr", "0, 0").stdout.strip(), "340.0")

    def test_python(self):
        sys.path.insert(0, module_folder())
        import tessera
        for path in ("v3.zarr/t", "v2.zarr/t"):
            with tessera.open(self.path(path)) as array:
                np.testing.assert_array_equal(array.sel(lon=slice(-10, 40)), self.wanted.t)
                np.testing.assert_array_equal(array.sel("lat=1, lon=-10:40:2"), self.wanted.t[1, ::2])
                np.testing.assert_array_equal(array.sel(lon=-7.3, method="nearest"), self.data.t[:, 353])
                tessera.copy(array, self.path("p.zarr"), sel="lon=-10:40", overwrite=True)
            with tessera.open(self.path("p.zarr")) as made:
                np.testing.assert_array_equal(made[...], self.wanted.t)


if __name__ == "__main__":
    main()
