"""Selections by the names of dimensions and the values of coordinates, compared with xarray's sel."""

import json
import shutil
import sys
import unittest
import warnings

import numpy as np

from program import ProgramTest, main

try:
    import xarray as xr
except ImportError:
    print("xarray is not installed")
    sys.exit(77)

RANDOM = np.random.default_rng(35)
TIMES = np.datetime64("2020-01-01", "ns") + np.arange(48) * np.timedelta64(10, "D")
LAT = np.linspace(-90, 90, 37).astype("f4")[::-1]  # falling
LON = np.arange(0, 360, 30)


def dataset(times=TIMES, lat=LAT, lon=LON, units="days since 2020-01-01", calendar="proleptic_gregorian"):
    shape = (len(times), len(lat), len(lon), 5)
    data = xr.Dataset({"t": (("time", "lat", "lon", "z"), np.arange(np.prod(shape), dtype="f8").reshape(shape))},
                      {"time": times, "lat": lat, "lon": lon})
    data.time.encoding = {"units": units, "calendar": calendar}
    return data


class Selecting(ProgramTest):
    def stored(self, data, name="g.zarr"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if name.endswith(".nc"):
                packed = {"zlib": True, "shuffle": True, "chunksizes": (7, 5, 4, 2)}  # chunks that are read without libhdf5
                data.to_netcdf(self.path(name), encoding={"t": packed} if name.startswith("packed") else {})
                return f"{name}::t"
            data.to_zarr(self.path(name), encoding={"t": {"chunks": (7, 5, 4, 2)}})
        return f"{name}/t"

    def got(self, path, selection):
        result = self.run_program("get", path, selection, "--out", "got.npy", "--overwrite")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.said = result.stderr
        return np.load(self.folder / "got.npy")

    CASES = [
        ("time=2020-02:2020-06, lat=50:45", dict(time=slice("2020-02", "2020-06"), lat=slice(50, 45))),
        ("lat=45:50", dict(lat=slice(50, 45))),  # either end first
        ("lon=30:90", dict(lon=slice(30, 90))),
        ("lon=31:89.5", dict(lon=slice(31, 89.5))),
        ("lon=30:270:3", dict(lon=slice(30, 270, 3))),
        ("lat=30:", dict(lat=slice(30, None))),
        ("lat=:30, time=:2020-03", dict(lat=slice(None, 30), time=slice(None, "2020-03"))),
        ("time=2021", dict(time="2021")),
        ("time=2020:2020-03-18", dict(time=slice("2020", "2020-03-18"))),  # one period within the other
        ("time=2020-02-20:2020", dict(time=slice("2020-02-20", "2020"))),
        ("time=2020-03", dict(time="2020-03")),
        ("time=2020-03-01", dict(time="2020-03-01")),
        ("lat=45, lon=60", dict(lat=45, lon=60)),
        ("lon=60, time='2020-01-11T00:00':'2020-02-10'", dict(lon=60, time=slice("2020-01-11T00:00", "2020-02-10"))),
    ]

    def test_values_as_in_xarray(self):
        data = dataset()
        for name in ("g.zarr", "g.nc", "packed.nc"):
            path = self.stored(data, name)
            for selection, wanted in self.CASES:
                with self.subTest(name=name, selection=selection):
                    np.testing.assert_array_equal(self.got(path, selection), data.t.sel(wanted).values)
            for selection, wanted in [("lat~44", dict(lat=44)), ("lon~44, lat~-12.4", dict(lon=44, lat=-12.4)),
                                      ("lon~45", dict(lon=45)), ("time~2020-05-05T07", dict(time="2020-05-05T07"))]:
                with self.subTest(name=name, selection=selection):
                    np.testing.assert_array_equal(self.got(path, selection),
                                                  data.t.sel(wanted, method="nearest").values)

    def test_a_period_within_another_where_times_fall(self):
        data = dataset(TIMES[::-1])
        path = self.stored(data, "falling.zarr")
        for selection, last, first in [("2020-03-18:2020", "2020-03-18T23", "2020-01-01"),
                                       ("2020:2020-03-18", "2020-12-31T23", "2020-03-18")]:
            wanted = data.t.values[(data.time <= np.datetime64(last)) & (data.time >= np.datetime64(first))]
            np.testing.assert_array_equal(self.got(path, f"time={selection}"), wanted, selection)

    def test_indices(self):
        data = dataset()
        path = self.stored(data)
        whole = data.t.values
        np.testing.assert_array_equal(self.got(path, "z@1:4"), whole[..., 1:4])
        self.assertIn("z@1:4 means indices 1:4", self.said)
        np.testing.assert_array_equal(self.got(path, "lat@4:9"), whole[:, 4:9])
        self.assertIn("lat@4:9 means indices 4:9", self.said)
        np.testing.assert_array_equal(self.got(path, "lat@::-3, time@-1"), whole[-1, ::-3])
        np.testing.assert_array_equal(self.got(path, "3:5, lat=45, ..., z@0"), whole[3:5, 9, :, 0])
        np.testing.assert_array_equal(self.got(path, "'lon'=30:60, \"z\"@2"), whole[:, :, 1:3, 2])
        self.got(path, "lat=10:20")
        self.assertIn("lat=10:20 means indices 14:17", self.said)
        self.assertEqual(self.got(path, "lat=11:12").size, 0)

    def test_dtypes(self):
        """Values compare in the coordinate's dtype: 0.1 is float32's 0.1, which xarray does not find."""
        for kind, values in [("f4", np.arange(10) / 10), ("f2", np.arange(10) / 10), ("f8", np.arange(10) / 10),
                             (">f4", np.arange(10) / 10), ("u8", 2**64 - 10 + np.arange(10, dtype="u8")),
                             ("i8", -2**63 + np.arange(10)), ("i1", np.arange(-5, 5)),
                             ("m8[h]", np.arange(10).astype("m8[h]")), ("M8[s]", TIMES[:10].astype("M8[s]"))]:
            x = values.astype(kind)
            self.tessera("group", "k.zarr", "--format", "v2", "--quiet")
            self.save("x.npy", x)
            self.save("a.npy", np.arange(10))
            self.tessera("import", "x.npy", "k.zarr/x", "--dims", "x", "--quiet")
            self.tessera("import", "a.npy", "k.zarr/a", "--dims", "x", "--quiet")
            for i in (0, 3, 9):
                text = f"'{x[i].astype('i8')} h'" if kind == "m8[h]" else f"'{x[i]}'"
                with self.subTest(kind=kind, text=text):
                    self.assertEqual(self.got("k.zarr/a", f"x={text}"), i)
                    self.assertEqual(self.got("k.zarr/a", f"x~{text}"), i)
                    np.testing.assert_array_equal(self.got("k.zarr/a", f"x={text}:"), np.arange(i, 10))
            self.tessera("rm", "k.zarr", "--recursive", "--quiet")

    def test_groups(self):
        """A selection of a group: each array takes what it has the dimensions of, as xarray's Dataset.sel."""
        data = dataset().assign(height=(("lat", "lon"), np.arange(37 * 12.0).reshape(37, 12)))
        cases = [("time=2020-02:2020-06, lat=50:45", dict(time=slice("2020-02", "2020-06"), lat=slice(50, 45))),
                 ("lat=45, lon=60:120", dict(lat=45, lon=slice(60, 120))), ("lon=60", dict(lon=60))]
        self.stored(data, "g.zarr")
        self.stored(data, "g.nc")
        for source in ("g.zarr", "g.nc"):
            for selection, wanted in cases:
                for copy in ("c.zarr", "c.nc", "c.v3.zarr"):
                    with self.subTest(source=source, selection=selection, copy=copy):
                        words = [] if copy == "c.nc" else ["--format", "v3" if "v3" in copy else "v2"]
                        made = self.run_program("copy", source, copy, "--sel", selection, "--overwrite", *words)
                        self.assertEqual(made.returncode, 0, made.stderr)
                        self.assertEqual(made.stderr.count(f"{selection.split(', ')[0]} means"), 1, made.stderr)
                        if "v3" in copy:
                            self.tessera("copy", copy, "c.v3.nc", "--quiet", "--overwrite")
                            copy = "c.v3.nc"
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            kind = {} if copy.endswith(".nc") else {"engine": "zarr"}
                            with xr.open_dataset(self.path(copy), **kind) as got:
                                xr.testing.assert_equal(got.load().reset_coords(), data.sel(wanted).reset_coords())
                shutil.rmtree(self.folder / "c.zarr")
                shutil.rmtree(self.folder / "c.v3.zarr")
        self.assertEqual(self.refused("copy", "g.zarr", "x", "--sel", "3:5", says=["no name", "time@0:10"]).count("3:5"), 2)
        for destination in ("x", "x.npz"):
            self.refused("copy", "g.zarr", destination, "--sel", "tme=2020",
                         says=["g.zarr", "no array has a dimension 'tme'", "lat, lon, time, z"])
            self.assertFalse((self.folder / destination).exists())
        self.refused("copy", "g.zarr", "x", "--sel", "lat=10, lat=20", says="named twice")

    def test_texts(self):
        self.tessera("group", "s.zarr", "--quiet")
        self.save("name.npy", np.array(["Bern", "Oslo", "San José", "a,b:c=d"]))
        self.save("a.npy", np.arange(8).reshape(4, 2))
        self.tessera("import", "name.npy", "s.zarr/name", "--dims", "name", "--format", "v3", "--quiet")
        self.tessera("import", "a.npy", "s.zarr/a", "--dims", "name,k", "--format", "v3", "--quiet")
        self.assertEqual(self.got("s.zarr/a", "name=Oslo").tolist(), [2, 3])
        self.assertEqual(self.got("s.zarr/a", "name='San José', k@1").tolist(), 5)
        self.assertEqual(self.got("s.zarr/a", "name='a,b:c=d'").tolist(), [6, 7])
        self.assertEqual(self.got("s.zarr/a", "name=B:P").tolist(), [[0, 1], [2, 3]])
        self.refused("get", "s.zarr/a", "name~Oslo", says="nearest")

    def test_calendars(self):
        """Dates of CF's calendars, as xarray's CFTimeIndex selects them."""
        for calendar in ("noleap", "360_day", "julian", "all_leap", "standard"):
            times = xr.cftime_range("1999-12-01", periods=60, freq="7D", calendar=calendar)
            data = dataset(times, lat=LAT[:2], lon=LON[:2], units="hours since 1850-01-01 00:00:00",
                           calendar=calendar)
            path = self.stored(data, f"{calendar}.zarr")
            cases = [("2000-02", "2000-02"), ("2000", "2000"), ("2000-02-29:2000-05", slice("2000-02-29", "2000-05"))]
            if calendar == "360_day":
                cases.append(("2000-02-30:2000-03", slice("2000-02-30", "2000-03")))
            for text, wanted in cases:
                if calendar == "noleap" and "29" in text:
                    self.refused("get", path, f"time={text}", says="day of that month")
                    continue
                with self.subTest(calendar=calendar, text=text):
                    np.testing.assert_array_equal(self.got(path, f"time={text}"), data.t.sel(time=wanted).values)
            day = str(times[3])[:10]
            np.testing.assert_array_equal(self.got(path, f"time={day}"), data.t.values[3])

    def test_every_command(self):
        data = dataset()
        path = self.stored(data)
        part = "time=2020-02:2020-03, lat=45"
        wanted = data.t.sel(time=slice("2020-02", "2020-03"), lat=45)
        self.save("part.npy", wanted.values)

        def run(*words, code=0):
            result = self.run_program(*words)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertEqual(result.stderr.count("lat=45 means index 9"), 1, result.stderr)
            return result.stdout

        self.assertEqual(json.loads(run("get", path, part, "--json")), wanted.values.tolist())
        self.assertEqual(json.loads(run("stats", path, "--sel", part, "--json"))["mean"], float(wanted.mean()))
        for destination in ("copy.zarr", "copy.npy"):
            run("copy", path, destination, "--sel", part)
        np.testing.assert_array_equal(np.load(self.path("copy.npy")), wanted.values)
        self.tessera("diff", "copy.zarr", "part.npy")
        run("export", path, "exported.npy", "--sel", part)
        run("view", path, part + ", lon@0, z@0")
        self.tessera("copy", path, "other.zarr", "--quiet")
        self.tessera("set", path, "0, 0, 0, 0", "-1")
        run("set", path, part, "part.npy")
        run("set", path, "lat=45, time=2020-02-10, z@1", "7")
        changed = data.t.values.copy()
        changed[4, 9, :, 1] = 7
        changed[0, 0, 0, 0] = -1
        np.testing.assert_array_equal(self.exported(path), changed)
        run("calc", path, "a * 2", f"a={path}", "--in-place", "--sel", "lat=45, time=2020-02-10, z@1")
        changed[4, 9, :, 1] = 14
        np.testing.assert_array_equal(self.exported(path), changed)
        # A copy beside no coordinates: names alone.
        self.refused("get", "other.zarr", "lat=2", says=["no coordinate lat", "lat@2"])

    def test_refused(self):
        data = dataset()
        path = self.stored(data)
        for selection, says in [
                ("height=3", ["'height'", "time, lat, lon, z"]), ("lat=44", ["44", "its neighbours are 40 and 45"]),
                ("lat=99", ["the greatest is 90"]), ("time=2020-13", ["2020-13", "month"]),
                ("time=2020-01-01T12:30", ["quotes"]), ("time=noon", ["noon"]), ("lat=north", ["north", "<f4"]),
                ("lat=", ["VALUE"]), ("=3", ["NAME"]), ("lat=5, lat=5", ["twice"]),
                ("time='2020", ["not closed"]), ("z~3", ["no coordinate"]), ("z@7", ["out of bounds"]), ("z=3", ["no coordinate z", "z@3"]),
                ("lat=45, 0", ["lat is dimension 1", "time"]), ("lon=0:90:0", ["step"]), ("lon=0:90:x", ["x"]),
                ("time=2019", ["the least is 2020-01-01"]), ("lat@", ["VALUE"]),
                ("time=1:2:3:4", ["colons"])]:
            with self.subTest(selection=selection):
                self.refused("get", path, selection, says=says)
        self.save("lon.npy", np.array([0, 5, 3, 9, 9, 1] * 2))
        self.tessera("copy", "lon.npy", "g.zarr/lon", "--dims", "lon", "--overwrite", "--quiet")
        self.refused("get", path, "lon=3:5", says=["g.zarr/lon", "neither rise nor fall"])
        self.refused("get", path, "lon~3", says="neither rise nor fall")
        self.refused("get", path, "lon=9", says="4 times")
        self.save("z.npy", np.zeros((2, 2)))
        self.tessera("import", "z.npy", "g.zarr/z", "--quiet")
        self.refused("get", path, "z=3", says=["g.zarr/z", "(5)", "z@4:9"])
        self.refused("set", path, "lat=44", "5", says="neighbours")
        self.save("plain.npy", np.zeros((3, 4)))
        self.refused("get", "plain.npy", "x=3", says="no names")

    def test_axes_by_name(self):
        data = dataset()
        path = self.stored(data)
        quiet = "--quiet", "--overwrite"
        self.tessera("reduce", path, "m.npy", "--with", "mean", "--axis", "time,lon", *quiet)
        np.testing.assert_allclose(np.load(self.path("m.npy")), data.t.mean(["time", "lon"]).values)
        self.refused("reduce", path, "m2.npy", "--with", "mean", "--axis", "height",
                     says=["--axis", "time, lat, lon, z", "height"])
        found = json.loads(self.tessera("stats", path, "--axis", "lat", "--json"))
        self.assertEqual(found["axis"], 1)
        self.assertEqual(found["positions"][3]["mean"], float(data.t[:, 3].mean()))
        result = self.run_program("stats", path, "--axis", "lon", "--sel", "lat=45", "--json")
        self.assertEqual(json.loads(result.stdout)["axis"], 1)
        self.tessera("coarsen", path, "c.npy", "--by", "lat=37, lon=2", "--quiet")
        wanted = data.t.coarsen(lat=37, lon=2).mean().values
        np.testing.assert_allclose(np.load(self.path("c.npy")), wanted)
        for by, says in [("height=2", "height"), ("lat=0", "at least 1"), ("lat=x", "x"), ("lat=2,3", "3")]:
            self.refused("coarsen", path, "c2.npy", "--by", by, says=["--by", says])
        self.tessera("concat", path, path, "two.zarr", "--axis", "lon", *quiet)
        self.tessera("append", "two.zarr", "two.zarr", "--axis", "z", "--quiet")
        twice = np.concatenate([data.t.values] * 2, axis=2)
        np.testing.assert_array_equal(self.exported("two.zarr"), np.concatenate([twice] * 2, axis=3))
        self.tessera("unstack", path, "f-{}.npy", "--axis", "lon", "--quiet")
        self.assertEqual(len(list(self.folder.glob("f-*.npy"))), len(LON))


if __name__ == "__main__":
    main()
