"""Percentiles, any, all and groups of reduce, compared with NumPy and xarray."""

import itertools
import json
import sys
import unittest
import warnings

import numpy as np

from program import FEWER, ProgramTest, chosen, main

try:
    import xarray as xr
except ImportError:
    print("xarray is not installed")
    sys.exit(77)

RANDOM = np.random.default_rng(3506)


def drawn(kind, shape):
    if kind == "?":
        return RANDOM.random(shape) > 0.8
    if np.dtype(kind).kind in "iu":
        return RANDOM.integers(0, 100, shape).astype(kind)
    values = RANDOM.normal(scale=10, size=shape).astype(kind)
    values[RANDOM.random(shape) < 0.3] = 0
    return values


class Reducing(ProgramTest):
    def result(self, *words, **options):
        self.tessera("reduce", *words, "out.npy", "--overwrite", "--quiet", **options)
        return np.load(self.folder / "out.npy")

    def stored(self, values, chunks, name="a.zarr"):
        self.save("a.npy", values)
        self.tessera("copy", "a.npy", name, "--chunks", chunks, "--overwrite", "--quiet")
        return name

    def test_percentiles(self):
        for kind, axes in chosen(itertools.product(["f8", "i2", "u8", "f4", ">f8", "f2"], [None, 0, 1, 2, (0, 2)])):
            values = drawn(kind, tuple(RANDOM.integers(1, 12, 3)))
            path = self.stored(values, "3,4,5")
            axis = [] if axes is None else ["--axis", ",".join(map(str, np.atleast_1d(axes)))]
            for percent in (0, 2.5, 37, 50, 95, 100):
                with self.subTest(kind=kind, axes=axes, percent=percent):
                    got = self.result(path, "--with", f"p{percent}", *axis)
                    wanted = np.percentile(values.astype("f8"), percent, axis=axes)
                    if kind in ("f4", "f2"):
                        wanted = wanted.astype(kind)
                    np.testing.assert_array_equal(got, wanted)

    def test_missing(self):
        values = drawn("f8", (20, 30))
        values[RANDOM.random(values.shape) < 0.1] = np.nan
        values[3] = np.nan
        path = self.stored(values, "7,8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_array_equal(self.result(path, "--with", "p90", "--axis", 0, "--keep-missing"),
                                          np.percentile(values, 90, axis=0))
            np.testing.assert_array_equal(self.result(path, "--with", "p90", "--axis", 1, "--skip-nan"),
                                          np.nanpercentile(values, 90, axis=1))
        for how, function in (("any", np.any), ("all", np.all)):
            np.testing.assert_array_equal(self.result(path, "--with", how, "--axis", 1, "--keep-missing"), function(values, axis=1))
            self.assertEqual(self.result(path, "--with", how).dtype, bool)
        numbers = [row[~np.isnan(row)] for row in values]
        for how, function in (("any", np.any), ("all", np.all)):
            np.testing.assert_array_equal(self.result(path, "--with", how, "--axis", 1, "--skip-nan"),
                                          [function(row) for row in numbers])

    def test_any_all(self):
        for kind in ("?", "u1", ">i4", "f4", "c8"):
            values = drawn(kind, (5, 6, 7)) if kind != "c8" else drawn("f4", (5, 6, 7)).astype("c8")
            path = self.stored(values, "2,3,4")
            for how, axis in itertools.product(("any", "all"), (0, 1, 2)):
                np.testing.assert_array_equal(self.result(path, "--with", how, "--axis", axis),
                                              getattr(np, how)(values, axis=axis))
        self.save("none.npy", np.zeros((0, 3)))
        np.testing.assert_array_equal(self.result("none.npy", "--with", "any", "--axis", 0), [False] * 3)
        np.testing.assert_array_equal(self.result("none.npy", "--with", "all", "--axis", 0), [True] * 3)
        self.save("text.npy", np.array(["a"]))
        self.refused("reduce", "text.npy", "x.npy", "--with", "any", says="any")

    def test_exact_in_little_memory(self):
        """Elements of one result that do not fit into memory take several passes, and give the same."""
        for kind in ("f8", "f4", "i2"):
            values = RANDOM.normal(scale=1000, size=1_500_000 // FEWER).astype(kind).reshape(-1, 10)
            path = self.stored(values, "1000,10")
            few = "--max-memory", "8M", "--threads", "2"
            for percent in (0, 1.5, 50, 99.9, 100):
                with self.subTest(kind=kind, percent=percent):
                    wanted = np.percentile(values.astype("f8"), percent)
                    self.assertEqual(self.result(path, "--with", f"p{percent}", *few), wanted.astype(
                        kind if kind == "f4" else "f8"))
                    wanted = np.percentile(values.astype("f8"), percent, axis=0)
                    got = self.result(path, "--with", f"p{percent}", "--axis", 0, *few)
                    np.testing.assert_array_equal(got, wanted.astype(got.dtype))
            np.testing.assert_array_equal(self.result(path, "--with", "median", *few), np.median(
                values.astype("f8")).astype(kind if kind == "f4" else "f8"))
        values = np.repeat(np.array([1.0, 2.0, np.inf, -1.0, 3.0]), 200_000 // FEWER)
        path = self.stored(values, "10000")
        for percent in (0, 19, 50, 60, 79):
            self.assertEqual(self.result(path, "--with", f"p{percent}", *few), np.percentile(values, percent))

    def test_refused(self):
        self.save("a.npy", np.arange(6.0).reshape(2, 3))
        for word in ("p", "p101", "p-1", "pnan", "p5x", "percentile", "q95"):
            self.refused("reduce", "a.npy", "x.npy", "--with", word, says=["--with", "p95", word])
        self.refused("calc", "x.npy", "a - percentile(a)", "a=a.npy", says="percentile(t, 95, time)")
        self.refused("reduce", "a.npy", "x.npy", "--with", "mean", "--by", "month", says=["--by", "coordinate"])
        self.refused("reduce", "a.npy", "x.npy", "--with", "mean", "--by", "century", says="century")


class Grouping(ProgramTest):
    def dataset(self, calendar, periods=900):
        start = "1999-12-05"
        times = xr.cftime_range(start, periods=periods, freq="29H", calendar=calendar) if calendar != "numpy" else \
            np.datetime64(start, "ns") + np.arange(periods) * np.timedelta64(29, "h")
        values = RANDOM.normal(size=(4, periods, 5))
        data = xr.Dataset({"a": (("y", "time", "x"), values)}, {"time": times})
        data.time.encoding = {"units": "hours since 1900-01-01", "dtype": "f8"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data.to_zarr(self.path("g.zarr"), mode="w", encoding={"a": {"chunks": (2, 100, 3)}})
        return data

    def got(self, *words):
        self.tessera("reduce", "g.zarr/a", "out.zarr", *words, "--overwrite", "--quiet", "--format", "v2")
        self.labels = json.loads(self.tessera("attrs", "out.zarr", "get", "group_labels"))
        return self.exported("out.zarr")

    def test_as_xarray(self):
        hows = {"mean": "mean", "sum": "sum", "max": "max", "std": "std", "median": "median", "count": "count"}
        for calendar in chosen(("numpy", "standard", "noleap", "360_day", "julian")):
            a = self.dataset(calendar).a
            for by, group in [("month-of-year", "time.month"), ("season", "time.season"),
                              ("day-of-year", "time.dayofyear")]:
                for how in hows if by == "season" else ["mean", "max"]:
                    with self.subTest(calendar=calendar, by=by, how=how):
                        wanted = getattr(a.groupby(group), how)(dim="time")
                        name = group.split(".")[1]
                        got = self.got("--by", by, "--with", how)
                        np.testing.assert_allclose(got, wanted.transpose("y", name, "x").values, rtol=1e-12, atol=1e-14)
                        self.assertEqual(self.labels, wanted[name].values.tolist())
            for by, rule in [("month", "1MS"), ("year", "AS")]:
                for how in ("mean", "min"):
                    with self.subTest(calendar=calendar, by=by, how=how):
                        wanted = getattr(a.resample(time=rule), how)()
                        got = self.got("--by", by, "--with", how)
                        np.testing.assert_allclose(got, wanted.transpose("y", "time", "x").values, rtol=1e-12, atol=1e-14)
                        labels = [str(t)[:7] for t in wanted.time.values]
                        self.assertEqual(self.labels, labels if by == "month" else [int(t[:4]) for t in labels])
            wanted = a.groupby("time.month").quantile(0.95, dim="time")
            np.testing.assert_array_equal(self.got("--by", "month-of-year", "--with", "p95"),
                                          wanted.transpose("y", "month", "x").values)

    def test_names_in_files(self):
        """A result in a file has the names of its own dimensions, not of those that are gone."""
        self.save("a.npy", np.arange(24.0).reshape(4, 3, 2))
        for format in chosen(("v2", "v3", "zmeta")):
            self.tessera("import", "a.npy", "a.zarr", "--dims", "t,y,x", "--format", format, "--quiet", "--overwrite")
            cases = [(["reduce", "a.zarr", "out", "--axis", "t", "--with", "mean"], ["y", "x"]),
                     (["reduce", "a.zarr", "out", "--axis", "y", "--with", "sum", "--keep-dims"], ["t", "y", "x"]),
                     (["reduce", "a.zarr", "out", "--axis", "t,x", "--with", "max"], ["y"]),
                     (["coarsen", "a.zarr", "out", "--by", "t=2"], ["t", "y", "x"]),
                     (["calc", "out", "a + 1", "a=a.zarr"], ["t", "y", "x"])]
            for (command, *words), names in cases:
                for out in ("out.nc", "out.h5", "out.zarr"):
                    with self.subTest(format=format, command=command, out=out):
                        words_out = [out if word == "out" else word for word in words]
                        self.tessera(command, *words_out, "--overwrite", "--quiet")
                        of = out if out.endswith("zarr") else f"{out}::data"
                        self.tessera("copy", of, "read.zarr", "--format", "v3", "--overwrite", "--quiet")
                        metadata = json.loads((self.folder / "read.zarr/zarr.json").read_text())
                        self.assertEqual(metadata["dimension_names"], names)

    def test_little_memory(self):
        a = self.dataset("numpy", 5000).a
        wanted = a.groupby("time.dayofyear").mean(dim="time").transpose("y", "dayofyear", "x").values
        for memory in ("1M", "100M"):
            got = self.got("--by", "day-of-year", "--with", "mean", "--max-memory", memory)
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-14)

    def test_empty_groups(self):
        times = np.array(["2020-01-03", "2020-04-05", "2020-04-07", "NaT"], "M8[D]")
        self.tessera("group", "g.zarr", "--format", "v2", "--quiet")
        self.save("time.npy", times)
        self.save("a.npy", np.array([1.0, 2, 3, 4]))
        self.tessera("import", "time.npy", "g.zarr/time", "--dims", "time", "--quiet")
        self.tessera("import", "a.npy", "g.zarr/a", "--dims", "time", "--quiet")
        for how, wanted in [("mean", [1, np.nan, np.nan, 2.5]), ("min", [1, np.nan, np.nan, 2]),
                            ("p50", [1, np.nan, np.nan, 2.5]), ("count", [1, 0, 0, 2])]:
            np.testing.assert_array_equal(self.got("--by", "month", "--with", how), wanted)
            self.assertEqual(self.labels, ["2020-01", "2020-02", "2020-03", "2020-04"])
        np.testing.assert_array_equal(self.got("--by", "season", "--with", "sum"), [1, 5])
        self.assertEqual(self.labels, ["DJF", "MAM"])
        self.assertEqual(json.loads(self.tessera("dims", "out.zarr", "--json"))["names"], ["season"])

    def test_labels(self):
        a = RANDOM.integers(0, 1000, (7, 40, 3))
        path = "a.npy"
        self.save(path, a)
        for labels in (RANDOM.integers(-3, 3, 40), np.array(["b", "a", "long", ""] * 10), RANDOM.integers(0, 2, 40) > 0,
                       RANDOM.integers(0, 4, 40).astype("M8[D]"), np.where(np.arange(40) % 3, 1.5, np.nan),
                       np.array([-0.0, 1, 0.0, np.inf] * 10, "f4"), np.array([2**64 - 1, 2, 2**63, 0] * 10, "u8")):
            self.save("labels.npy", labels)
            self.tessera("reduce", path, "out.npy", "--with", "sum", "--axis", 1, "--by", "labels.npy", "--overwrite",
                         "--quiet")
            known = np.unique(labels)
            known = known[known == known]
            wanted = np.stack([a[:, labels == label].sum(axis=1) for label in known], axis=1)
            np.testing.assert_array_equal(np.load(self.path("out.npy")), wanted)
        self.save("short.npy", np.arange(39))
        self.refused("reduce", path, "x.npy", "--with", "sum", "--axis", 1, "--by", "short.npy", says="(40)")
        self.refused("reduce", path, "x.npy", "--with", "sum", "--by", "labels.npy", says="--axis")
        self.refused("reduce", path, "x.npy", "--with", "argmax", "--axis", 1, "--by", "labels.npy", says="argmax")
        self.refused("reduce", path, "x.npy", "--with", "sum", "--axis", "0,1", "--by", "labels.npy", says="--by")
        self.refused("reduce", path, "labels.npy", "--with", "sum", "--axis", 1, "--by", "labels.npy", "--overwrite",
                     says="cannot lie where")


if __name__ == "__main__":
    main()
