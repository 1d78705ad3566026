"""reduce, coarsen and pyramid, compared with NumPy."""

import fractions
import json
import unittest
import warnings

import numpy as np

from program import FEWER, ProgramTest, main, zarr

RANDOM = np.random.default_rng(20261124)
KINDS = ["?", "i1", "u1", ">i2", "u2", "i4", "u4", "i8", ">u8", "f2", "f4", ">f8", "c8", "c16", "M8[s]", "m8[D]"]


def some(kind, shape):
    dtype = np.dtype(kind)
    if dtype.kind == "b":
        return RANDOM.random(shape) > 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return RANDOM.integers(info.min, info.max, shape, dtype=dtype.newbyteorder("="), endpoint=True).astype(dtype)
    if dtype.kind in "mM":
        values = RANDOM.integers(-1000, 1000, shape).astype(dtype)
        values[RANDOM.random(shape) < 0.02] = "NaT"
        return values
    values = RANDOM.normal(scale=10, size=shape)
    if dtype.kind == "c":
        values = values + 1j * RANDOM.normal(size=shape)
    else:
        values[RANDOM.random(shape) < 0.02] = np.nan
    return values.astype(dtype)


def drawn_shape(rank):
    return tuple(int(n) for n in RANDOM.integers(1, 12, rank))


class Computing(ProgramTest):
    FORMATS = ["npy", "zmeta", "v1", "v2", "v3", "shards", "npz", "zip"]

    def stored(self, values, n):
        """The array in one of the formats; returns its path."""
        form = self.FORMATS[n % len(self.FORMATS)]
        self.save("a.npy", values)
        if form == "npy" or values.ndim == 0:
            return "a.npy"
        if form == "npz":
            np.savez_compressed(self.folder / "a.npz", a=values)
            return "a.npz::a"
        chunks = ",".join(str(int(RANDOM.integers(1, 6))) for _ in values.shape)
        if form == "zip":
            self.tessera("copy", "a.npy", "a.zip", "--chunks", chunks, "--format", "v2", "--overwrite", "--quiet")
            return "a.zip"
        more = ["--format", "v3", "--shard", ",".join(str(2 * int(c)) for c in chunks.split(","))] if form == "shards" else \
            ["--format", form]
        if self.run_program("import", "a.npy", "a.zarr", "--chunks", chunks, *more, "--overwrite", "--quiet").returncode:
            return "a.npy"  # this dtype is not for this format
        return "a.zarr"

    def result(self, *words):
        self.tessera(*words, "--overwrite", "--quiet")
        return np.load(self.folder / "out.npy")


class Reduce(Computing):
    def numpy_says(self, values, word, axes, keep, skip):
        axis = axes if axes is None or len(axes) > 1 else axes[0]
        if word == "count":
            missing = np.isnat(values) if values.dtype.kind in "mM" else np.isnan(values)
            return np.sum(~missing, axis=axis, keepdims=keep)
        names = {"min": "nanmin", "max": "nanmax", "argmin": "nanargmin", "argmax": "nanargmax"}
        function = getattr(np, "nan" + word if skip else word)
        exact = values
        if word in ("mean", "std", "var", "sum") and values.dtype.kind in "fc":
            exact = values.astype("c16" if values.dtype.kind == "c" else "f8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(exact, axis=axis, keepdims=keep)

    def test_random_cases(self):
        words = ["min", "max", "sum", "mean", "std", "var", "count", "argmin", "argmax", "median"]
        done = 0
        for n in range(200 // FEWER):
            kind = KINDS[n % len(KINDS)]
            rank = int(RANDOM.integers(1, 4))
            values = some(kind, drawn_shape(rank))
            word = words[int(RANDOM.integers(len(words)))]
            kind = values.dtype.kind
            if kind in "mM" and word not in ("min", "max", "argmin", "argmax", "count"):
                word = "min"
            if kind == "c" and word not in ("sum", "mean", "count"):
                word = "mean"
            count = int(RANDOM.integers(1, rank + 1))
            axes = tuple(sorted(int(d) for d in RANDOM.choice(rank, count, replace=False)))
            if word.startswith("arg") and 1 < count < rank:
                axes = axes[:1]
            if RANDOM.random() < 0.2 or word.startswith("arg") and len(axes) > 1:
                axes = None
            keep, skip = bool(RANDOM.random() < 0.3), bool(kind == "f" and RANDOM.random() < 0.4)
            if skip and word.startswith("arg"):
                values = np.where(np.isnan(values), 0, values).astype(values.dtype)
            with self.subTest(n=n, dtype=values.dtype.str, shape=values.shape, axes=axes, word=word, keep=keep, skip=skip):
                path = self.stored(values, n)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    wanted = np.asarray(self.numpy_says(values, word, axes, keep, skip))
                given = [] if axes is None else ["--axis", ",".join(str(d - rank if RANDOM.random() < 0.3 else d) for d in axes)]
                got = self.result("reduce", path, "out.npy", *given, "--with", word, *(["--keep-dims"] if keep else []),
                                  *([] if skip else ["--keep-missing"]))
                self.assertEqual(got.shape, wanted.shape)
                if word in ("mean", "std", "var", "median") or word == "sum" and kind in "fc":
                    expected = values.dtype.newbyteorder("=") if kind in "fc" else np.dtype("f8")
                    self.assertEqual(got.dtype, expected)
                    limit = {2: 2e-3, 4: 1e-6, 8: 1e-12}[np.finfo(expected).dtype.itemsize]
                    np.testing.assert_allclose(got, wanted.astype(expected), rtol=limit, atol=limit)
                else:
                    self.assertEqual(got.dtype, wanted.dtype.newbyteorder("="))
                    np.testing.assert_array_equal(got, wanted)
                done += 1
        self.assertEqual(done, 200 // FEWER)

    def test_sums_are_exact_to_the_last_place(self):
        values = np.array([[1e16, 1, -1e16, 1], [1e300, 1, 1, -1e300]])
        self.save("a.npy", values)
        np.testing.assert_array_equal(self.result("reduce", "a.npy", "out.npy", "--axis", "1", "--with", "sum"), [2, 2])

    def test_sums_of_everything_are_rounded_once(self):
        """As sums of fractions, however numbers cancel and wherever they are stored."""
        chance = np.random.default_rng(5)
        wide = chance.normal(size=3000) * 10.0 ** chance.integers(-300, 300, 3000)
        cases = {"plain": chance.normal(size=5000), "wide": wide, "cancels": np.concatenate([wide, [1e-200], -wide]),
                 "halves": np.array([1, 2**-53, 2**-106]), "half": np.array([-1 - 2**-52, -2**-53]),
                 "tiny": chance.integers(-9, 9, 3000) * 5e-324, "large": np.array([1e308, 2e307, -1e308, 1e308]),
                 "single": (chance.normal(size=5000) * 1e10 ** chance.normal(size=5000)).astype("f4"), "none": np.zeros(40),
                 "missing": np.where(chance.random(5000) < 0.3, np.nan, chance.normal(size=5000))}
        for name, values in cases.items():
            values = values[~np.isinf(values)]
            exact = float(sum(map(fractions.Fraction, values[~np.isnan(values)].astype("f8").tolist())))
            self.save("a.npy", values)
            self.tessera("import", "a.npy", "a.zarr", "--chunks", "700", "--overwrite", "--quiet")
            for source in "a.npy", "a.zarr":
                with self.subTest(name, source=source), np.errstate(over="ignore"):
                    for threads in "1", "2":
                        found = self.result("reduce", source, "out.npy", "--with", "sum", "--threads", threads)
                        self.assertEqual(found, values.dtype.type(exact))
                    self.assertEqual(self.result("reduce", source, "out.npy", "--with", "mean"),
                                     values.dtype.type(exact / np.count_nonzero(~np.isnan(values))))
        for values, expected in ([1, np.inf], np.inf), ([1, -np.inf, 3], -np.inf), ([np.inf, -np.inf], np.nan):
            self.save("a.npy", np.array(values))
            np.testing.assert_equal(self.result("reduce", "a.npy", "out.npy", "--with", "sum"), np.float64(expected))

    def test_long_columns_along_the_last_axis(self):
        """They are divided among threads, wherever the parts begin."""
        for shape in ((200_003,), (3, 70_001), (7, 300, 301), (1000, 131)):
            values = RANDOM.normal(scale=10, size=shape)
            axes = tuple(range(1, len(shape))) or (0,)
            flat = values.reshape(-1 if len(shape) == 1 else (shape[0], -1))
            flat[..., -3] = flat[..., 17] = flat.max() + 1  # of equal ones the first is the place
            self.save("a.npy", values)
            for word in ("argmax", "argmin", "mean", "std", "max", "count"):
                found = self.result("reduce", "a.npy", "out.npy", "--with", word, "--axis", ",".join(map(str, axes)))
                wanted = np.full(flat.shape[:-1], flat.shape[-1]) if word == "count" else getattr(np, word)(flat, axis=-1)
                np.testing.assert_allclose(found, wanted, rtol=1e-12, err_msg=f"{word} {shape}")

    def test_memory_and_large_ones(self):
        values = some("f4", (1200, 40, 30))
        self.save("a.npy", values)
        self.tessera("import", "a.npy", "a.zarr", "--chunks", "100,10,10", "--quiet")
        for word, axis in ("median", 0), ("mean", 0), ("std", 2), ("var", 1), ("max", 1):
            wanted = getattr(np, word)(values.astype("f8"), axis=axis)
            got = self.result("reduce", "a.zarr", "out.npy", "--axis", axis, "--with", word, "--max-memory", "4M",
                              "--keep-missing")
            np.testing.assert_allclose(got, wanted, rtol=1e-6)

    def test_what_is_kept_and_what_is_refused(self):
        self.save("a.npy", np.arange(12.0).reshape(3, 4))
        self.tessera("import", "a.npy", "a.zarr", "--format", "v3", "--dims", "y,x", "--quiet")
        self.tessera("reduce", "a.zarr", "b.zarr", "--axis", "0", "--with", "max", "--quiet")
        shown = self.tessera_json("info", "b.zarr")
        self.assertEqual((shown["format"], shown["dimension_names"]), ("v3", ["x"]))
        self.assertEqual(self.tessera_json("reduce", "a.zarr", "c.zarr", "--with", "mean", "--dry-run")["dry_run"], True)
        self.assertFalse((self.folder / "c.zarr").exists())
        self.refused("reduce", "a.zarr", "c.zarr", "--axis", "2", "--with", "max", says=["--axis", "'2'"])
        self.refused("reduce", "a.zarr", "c.zarr", "--axis", "0,-2", "--with", "max", says="twice")
        self.refused("reduce", "a.zarr", "c.zarr", "--with", "middle", says=["--with", "median"])
        self.refused("reduce", "a.zarr", "b.zarr", "--with", "max", says="--overwrite")
        self.refused("reduce", "a.zarr", "a.zarr", "--with", "max", "--overwrite", says="cannot lie where")
        self.refused("reduce", "a.zarr", "a.zarr/inner", "--with", "max", says="cannot lie where")
        (self.folder / "link").symlink_to(self.folder / "a.zarr")
        self.refused("reduce", "link", "a.zarr", "--with", "max", "--overwrite", says="cannot lie where")
        self.save("s.npy", np.array(["a"]))
        self.refused("reduce", "s.npy", "c.zarr", "--with", "max", says="no max")
        self.save("empty.npy", np.zeros((0, 3)))
        self.refused("reduce", "empty.npy", "c.zarr", "--axis", "0", "--with", "max", says="no elements")
        self.assertFalse((self.folder / "c.zarr").exists())

    def test_percentiles_of_nothing(self):
        for kind in ["i2", "f4"]:
            self.save("empty.npy", np.zeros((3, 0), kind))
            for word in ["median", "p95"]:
                self.tessera("reduce", "empty.npy", "all.npy", "--with", word, "--overwrite", "--quiet")
                self.assertTrue(np.isnan(np.load(self.folder / "all.npy")), (kind, word))
                self.tessera("reduce", "empty.npy", "rows.npy", "--axis", "1", "--with", word, "--overwrite", "--quiet")
                self.assertEqual(np.isnan(np.load(self.folder / "rows.npy")).tolist(), [True] * 3, (kind, word))


class StatsOfAPart(Computing):
    def test_selections(self):
        values = RANDOM.normal(size=(50, 40))
        for n in range(8):
            path = self.stored(values, n)
            for text, key in ("10:20, ::3", np.s_[10:20, ::3]), ("-1", np.s_[-1]), ("::-7, 5", np.s_[::-7, 5]):
                found = self.tessera_json("stats", path, "--sel", text)
                part = values[key]
                self.assertEqual((found["count"], found["min"], found["max"]), (part.size, part.min(), part.max()))
                np.testing.assert_allclose([found["mean"], found["deviation"]], [part.mean(), part.std()], rtol=1e-10)
        self.refused("stats", path, "--sel", "1,2,3")


def blocks(values, by):
    """Each block of the array, with its place."""
    shape = tuple(-(-n // f) for n, f in zip(values.shape, by))
    for place in np.ndindex(shape):
        yield place, values[tuple(slice(i * f, (i + 1) * f) for i, f in zip(place, by))]


def coarse(values, by, word):
    if word == "nearest":
        return values[tuple(slice(None, None, f) for f in by)]
    made = np.zeros(tuple(-(-n // f) for n, f in zip(values.shape, by)), values.dtype)
    for place, block in blocks(values, by):
        if word == "mode":
            flat = sorted(block.ravel().tolist(), key=lambda v: (v != v, v))
            counts = {}
            for v in flat:
                key = "nan" if v != v else v
                counts[key] = counts.get(key, 0) + 1
            best = max(counts.values())
            first = next(v for v in flat if counts["nan" if v != v else v] == best)
            made[place] = first
        elif word == "mean" and values.dtype.kind in "biu":
            total, n = sum(int(v) for v in block.ravel()), block.size
            quotient, rest = divmod(total, n)
            made[place] = quotient + (1 if 2 * rest > n or 2 * rest == n and quotient % 2 else 0)
        elif word == "mean":
            made[place] = block.astype("c16" if values.dtype.kind == "c" else "f8").mean()
        else:
            made[place] = getattr(block, word)()
    return made


class Coarsen(Computing):
    def test_not_a_time_is_the_largest_of_equally_frequent_elements(self):
        self.save("a.npy", np.array(["NaT", "2020-01-03", "2020-01-02", "NaT", "NaT", "2020-01-05"], "M8[D]"))
        for words, last in (["--keep-missing"], "NaT"), ([], "2020-01-05"):
            got = self.result("coarsen", "a.npy", "out.npy", "--by", "3", "--with", "mode", *words)
            np.testing.assert_array_equal(got, np.array(["2020-01-02", last], "M8[D]"))

    def test_windows_leave_missing_elements_out(self):
        values = RANDOM.normal(size=(37, 20)).astype("f4")
        values[RANDOM.random(values.shape) < 0.3] = np.nan
        values[:8, :8] = np.nan
        self.save("a.npy", values)
        whole = np.full((40, 20), np.nan)
        whole[:37] = values
        windows = whole.reshape(10, 4, 10, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for word in "mean", "min", "max":
                got = self.result("coarsen", "a.npy", "out.npy", "--by", "4,2", "--with", word)
                np.testing.assert_allclose(got, getattr(np, "nan" + word)(windows, axis=(1, 3)), rtol=1e-6)
        times = np.array(["NaT", "2020-01-03", "2020-01-05", "NaT", "NaT"], "M8[D]")
        self.save("t.npy", times)
        got = self.result("coarsen", "t.npy", "out.npy", "--by", "3")
        np.testing.assert_array_equal(got, np.array(["2020-01-04", "NaT"], "M8[D]"))

    def test_random_cases(self):
        words = ["mean", "max", "min", "mode", "nearest"]
        for n in range(200 // FEWER):
            kind = KINDS[n % len(KINDS)]
            rank = int(RANDOM.integers(1, 4))
            values = some(kind, drawn_shape(rank))
            word = words[int(RANDOM.integers(len(words)))]
            if values.dtype.kind in "mM" and word in ("mean", "mode"):
                word = "max"
            if values.dtype.kind == "c" and word != "nearest":
                word = "mean"
            if word == "mode":
                values = values.astype(values.dtype) if values.dtype.kind == "b" else (values / 40).astype(values.dtype) \
                    if values.dtype.kind != "f" else np.round(values / 10).astype(values.dtype)
            by = tuple(int(f) for f in RANDOM.integers(1, 5, rank))
            with self.subTest(n=n, dtype=values.dtype.str, shape=values.shape, by=by, word=word):
                path = self.stored(values, n)
                got = self.result("coarsen", path, "out.npy", "--by", ",".join(map(str, by)), "--with", word, "--keep-missing")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    wanted = coarse(values, by, word)
                self.assertEqual(got.dtype.newbyteorder("="), values.dtype.newbyteorder("="))
                if word == "mean" and values.dtype.kind in "fc":
                    limit = {2: 2e-3, 4: 1e-6, 8: 1e-13}[np.finfo(values.dtype).dtype.itemsize]
                    np.testing.assert_allclose(got, wanted, rtol=limit, atol=limit)
                else:
                    np.testing.assert_array_equal(got, wanted)

    def test_factors_beyond_the_array(self):
        values = np.arange(12.0).reshape(4, 3)
        self.save("a.npy", values)
        self.tessera("import", "a.npy", "a.zarr", "--chunks", "2,2", "--quiet")
        for far in ["1000000000000", str(2**63 - 1)]:
            for word, wanted in [("mean", values.mean(axis=0)), ("max", values[3]), ("nearest", values[0])]:
                got = self.result("coarsen", "a.zarr", "out.npy", "--by", f"{far},1", "--with", word)
                np.testing.assert_array_equal(got, wanted[None], f"{word} of {far}")
            got = self.result("coarsen", "a.zarr", "out.npy", "--by", f"{far},{far}")
            np.testing.assert_array_equal(got, [[5.5]])

    def test_what_is_refused(self):
        self.save("a.npy", np.zeros((4, 4)))
        self.save("s.npy", np.array(["a", "b"]))
        for by in "0,1", "2,2,2", "-1", "x":
            self.refused("coarsen", "a.npy", "b.npy", "--by", by)
        self.refused("coarsen", "s.npy", "b.npy", "--by", "2", says="nearest")
        self.refused("coarsen", "a.npy", "a.npy", "--by", "2", "--overwrite", says="cannot lie where")
        self.assertEqual(self.result("coarsen", "s.npy", "out.npy", "--by", "2", "--with", "nearest").tolist(), ["a"])


class Pyramid(Computing):
    def attributes(self, path):
        zattrs = self.folder / path / ".zattrs"
        if zattrs.exists():
            return json.loads(zattrs.read_text())
        return json.loads((self.folder / path / "zarr.json").read_text())["attributes"]

    def check_multiscales(self, image, version, levels, rank):
        """What the specifications' JSON schemas ask for, the strict ones too, and what they say in words."""
        self.assertEqual("version" in image, version == "0.4")
        self.assertIsInstance(image["metadata"], dict)
        self.assertEqual(image["metadata"]["kwargs"]["with"], image["type"])
        self.assertTrue(image["name"])
        self.assertTrue(2 <= len(image["axes"]) <= 5)
        self.assertEqual(len(image["axes"]), rank)
        for axis in image["axes"]:
            self.assertIn(axis["type"], ("space", "time", "channel"))
        self.assertEqual([d["path"] for d in image["datasets"]], [str(n) for n in range(levels)])
        for level in image["datasets"]:
            kinds = [t["type"] for t in level["coordinateTransformations"]]
            self.assertEqual(kinds, ["scale", "translation"])
            for t in level["coordinateTransformations"]:
                self.assertEqual(len(t[t["type"]]), rank)

    def test_levels_and_metadata(self):
        values = RANDOM.integers(0, 1000, (3, 70, 45)).astype("<u2")
        self.save("a.npy", values)
        for form, version in ("v2", "0.4"), ("v3", "0.5"):
            for word in "mean", "nearest", "mode":
                self.tessera("pyramid", "a.npy", f"{form}.zarr", "--levels", "4", "--axes", "c,y,x", "--scale", "1,0.5,0.25", "--units",
                             ",micrometer,micrometer", "--with", word, "--chunks", "1,16,16", "--format", form, "--overwrite",
                             "--quiet")
                for level in range(4):
                    by = (1, 2**level, 2**level)
                    np.testing.assert_array_equal(self.exported(f"{form}.zarr/{level}"), coarse(values, by, word))
                attributes = self.attributes(f"{form}.zarr")
                image = attributes["ome"]["multiscales"][0] if form == "v3" else attributes["multiscales"][0]
                if form == "v3":
                    self.assertEqual(attributes["ome"]["version"], "0.5")
                else:
                    self.assertEqual(image["version"], "0.4")
                self.check_multiscales(image, version, 4, 3)
                self.assertEqual([a["name"] for a in image["axes"]], ["c", "y", "x"])
                self.assertEqual([a.get("unit") for a in image["axes"]], [None, "micrometer", "micrometer"])
                scale, translation = (t[t["type"]] for t in image["datasets"][2]["coordinateTransformations"])
                self.assertEqual(scale, [1, 2, 1])
                # The centre of 4 elements is 1.5 of them behind the first.
                self.assertEqual(translation, [0, 0, 0] if word == "nearest" else [0, 0.75, 0.375])
                chunk = "0/0/0/0" if form == "v2" else "0/c/0/0/0"
                self.assertTrue((self.folder / f"{form}.zarr" / chunk).is_file())
                self.tessera("verify", f"{form}.zarr")
        self.refused("pyramid", "a.npy", "v2.zarr", "--format", "v3", "--axes", "c,y,x", "--overwrite", says="v2")
        self.refused("pyramid", "a.npy", "v2.zarr", "--format", "v2", "--levels", "2", "--overwrite", says="level 2")

    def test_zarr_reads_it(self):
        values = RANDOM.normal(size=(300, 520)).astype("f4")
        self.save("a.npy", values)
        self.tessera("pyramid", "a.npy", "p.zarr", "--format", "v2", "--quiet")
        group = zarr.open_group(str(self.folder / "p.zarr"), "r")
        paths = [d["path"] for d in group.attrs["multiscales"][0]["datasets"]]
        self.assertEqual(paths, ["0", "1", "2"])  # 520, 260, 130
        np.testing.assert_array_equal(group["0"][...], values)
        np.testing.assert_allclose(group["2"][...], coarse(values, (4, 4), "mean"), rtol=1e-5, atol=1e-6)

    def test_what_is_refused(self):
        self.save("line.npy", np.zeros(4))
        self.save("a.npy", np.zeros((4, 4)))
        self.refused("pyramid", "line.npy", "p.zarr", says="2 to 5")
        self.refused("pyramid", "a.npy", "p.zarr", "--axes", "x,t", says="OME-NGFF")
        self.refused("pyramid", "a.npy", "p.zarr", "--axes", "x", says="--axes")
        self.refused("pyramid", "a.npy", "p.zarr", "--format", "zmeta", says="v2 (0.4) or v3")
        self.refused("pyramid", "a.npy", "p.zarr", "--scale", "1,0", says="--scale")
        self.refused("pyramid", "a.npy", "p.npy", says="a group")
        self.assertEqual(list(self.folder.glob("p*")), [])
        self.tessera("pyramid", "a.npy", "p.zarr", "--quiet")
        self.refused("pyramid", "a.npy", "p.zarr", says="--overwrite")
        self.assertIn("0", self.tessera("pyramid", "a.npy", "q.zarr", "--dry-run"))
        self.assertFalse((self.folder / "q.zarr").exists())


if __name__ == "__main__":
    main()
