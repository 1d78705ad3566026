"""--dtype and --cast, compared with NumPy."""

import itertools
import unittest
import warnings

import numpy as np

from program import ProgramTest, chosen, main

RANDOM = np.random.default_rng(20261123)
NUMBERS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


def some(dtype, n, most):
    """Numbers of a dtype that are not beyond `most`, and some that are as large as it has them."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return RANDOM.random(n) > 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return RANDOM.integers(max(info.min, -int(most)), min(info.max, int(most)), n, dtype=dtype, endpoint=True)
    values = RANDOM.normal(scale=most / 4, size=n).clip(-most, most)
    if dtype.kind == "c":
        values = values + 1j * RANDOM.normal(size=n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return values.astype(dtype)


class Casts(ProgramTest):
    def cast(self, values, dtype, *words, **options):
        self.save("in.npy", values)
        self.tessera("copy", "in.npy", "out.npy", "--dtype", dtype, *words, "--overwrite", "--quiet", **options)
        return np.load(self.folder / "out.npy")

    def test_every_pair_as_numpy(self):
        for a, b in chosen(itertools.product(NUMBERS, NUMBERS)):
            with self.subTest(a=a, b=b), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # A float beyond an integer's range is undefined in NumPy, and so is a negative one for unsigned.
                from_float = np.dtype(a).kind in "fc"
                values = some(a, 40, 100 if from_float else 2**62)
                if from_float and np.dtype(b).kind == "u":
                    values = abs(values).astype(a)
                got = self.cast(values, b, "--cast", "unsafe")
                wanted = values.astype(b)
                self.assertEqual(got.dtype, wanted.dtype)
                self.assertEqual(got.tobytes(), wanted.tobytes())
                self.save("empty.npy", values[:0])
                for rule in ("same_kind",) if np.can_cast(a, b, "safe") and a != b else ("safe", "same_kind"):
                    code = self.run_program("copy", "empty.npy", "e.npy", "--dtype", b, "--cast", rule, "--overwrite",
                                            "--quiet").returncode
                    self.assertEqual(code == 0, np.can_cast(a, b, rule), (a, b, rule))

    def test_beyond_the_range_and_nans_keep_numpys_bits(self):
        large = np.array([2.0**63, 2.0**64, np.inf, -np.inf, np.nan, -1.5])
        np.testing.assert_array_equal(self.cast(large, "u8", "--cast", "unsafe"),
                                      np.array([2**63, 0, 0, 2**63, 2**63, 2**64 - 1], "u8"))
        halves = np.arange(2**16, dtype="u2").view("f2")
        for a, b in ("f2", "f4"), ("f2", "f8"), ("f4", "f2"), ("f8", "f2"):
            values = halves.astype(a)
            with self.subTest(a=a, b=b):
                self.assertEqual(self.cast(values, b, "--cast", "unsafe").tobytes(), values.astype(b).tobytes())

    def test_round_and_clip(self):
        for a, b in ("f8", "u1"), ("f4", "i2"), ("f8", "i8"), ("f8", "u8"), ("i4", "u1"), ("u8", "i8"), ("i8", "?"), ("f2", "i1"):
            with self.subTest(a=a, b=b):
                info = np.iinfo(b) if b != "?" else np.iinfo("u1")
                low, high = (0, 1) if b == "?" else (info.min, info.max)
                values = some(a, 200, 1e5 if a == "f2" else 2**40 if b in "u1 i2" else 2.0**66)
                if np.dtype(a).kind == "f":
                    values = np.concatenate([values, np.array([0.5, 1.5, 2.5, -0.5, 3.49, np.inf, -np.inf], a)])
                exact = [int(v) if not np.isinf(v) else v for v in (np.rint(values) if values.dtype.kind == "f" else values)]
                wanted = np.array([min(max(v, low), high) for v in exact], "u1" if b == "?" else b)
                np.testing.assert_array_equal(self.cast(values, b, "--cast", "clip"), wanted.astype(b))
                fits = np.array([low <= v <= high for v in exact])
                np.testing.assert_array_equal(self.cast(values[fits], b, "--cast", "round"), wanted[fits].astype(b))
        np.testing.assert_array_equal(self.cast(np.array([1e300, -1e300, 1.5]), "f4", "--cast", "clip"),
                                      np.array([np.finfo("f4").max, np.finfo("f4").min, 1.5], "f4"))

    def test_what_does_not_fit_is_named_with_its_place(self):
        values = np.zeros((30, 40), "i4")
        values[17, 5] = 70000
        values[20, 1] = -80000
        self.save("a.npy", values)
        self.refused("copy", "a.npy", "b.npy", "--dtype", "i2", says=["70000", "[17, 5]", "does not fit <i2", "--cast"])
        self.tessera("import", "a.npy", "a.zarr", "--chunks", "8,8", "--quiet")
        self.refused("copy", "a.zarr", "b.zarr", "--dtype", "i2", says=["does not fit <i2"])
        self.assertFalse((self.folder / "b.npy").exists() or (self.folder / "b.zarr").exists())
        self.save("nan.npy", np.array([1, np.nan]))
        for rule in "round", "clip":
            self.refused("copy", "nan.npy", "b.npy", "--dtype", "i2", "--cast", rule, says=["NaN at [1]"])
        self.refused("copy", "nan.npy", "b.npy", "--dtype", "i2", says=["same_kind", "round, clip, unsafe"])
        self.save("big.npy", np.array([1, 1e300]))
        self.refused("copy", "big.npy", "b.npy", "--dtype", "f4", says=["1e+300 at [1]"])
        self.refused("copy", "a.npy", "b.npy", "--dtype", "S3", says="no conversion")
        self.refused("copy", "a.npy", "b.npy", "--dtype", "what", says="--dtype")
        self.refused("copy", "a.npy", "b.npy", "--dtype", "i2", "--cast", "hope", says=["--cast", "hope"])
        self.refused("copy", "a.npy", "b.npy", "--cast", "safe", says="--dtype")

    def test_every_format_and_command(self):
        values = RANDOM.integers(-100, 100, (20, 30)).astype("<i4")
        self.save("a.npy", values)
        for form in "zmeta", "v1", "v2", "v3":
            for codec in "blosc:lz4:5:shuffle", "none", "delta,zlib:1":
                if codec != "blosc:lz4:5:shuffle" and form not in ("v2", "v3"):
                    continue
                self.tessera("import", "a.npy", "a.zarr", "--chunks", "8,7", "--format", form, "--codec", codec, "--fill", "7",
                             "--overwrite", "--quiet")
                self.run_program("copy", "a.zarr", "b.zarr", "--dtype", ">f4", "--overwrite", "--quiet")
                shown = self.tessera_json("info", "b.zarr")
                self.assertEqual((shown["format"], shown["dtype"], shown["chunks"], shown["fill_value"]), (form, ">f4", [8, 7], 7.0),
                                 (form, codec))
                np.testing.assert_array_equal(self.exported("b.zarr"), values.astype("f4"))
                self.tessera("verify", "b.zarr")
        self.tessera("rechunk", "a.zarr", "c.zarr", "--chunks", "5,5", "--dtype", "i1", "--sel", "3:, ::2", "--quiet")
        np.testing.assert_array_equal(self.exported("c.zarr"), values[3:, ::2].astype("i1"))
        self.tessera("export", "a.zarr", "d.npz", "--dtype", "<i2", "--quiet")
        np.testing.assert_array_equal(np.load(self.folder / "d.npz")["arr_0"], values.astype("i2"))
        self.tessera("import", "a.npy", "e.zarr", "--dtype", ">i8", "--quiet")
        self.assertEqual(self.tessera_json("info", "e.zarr")["dtype"], ">i8")

    def test_a_fill_that_does_not_fit(self):
        self.tessera("create", "a.zarr", "--shape", "10", "--chunks", "3", "--dtype", "<i4", "--fill", "-9999", "--quiet")
        self.refused("copy", "a.zarr", "b.zarr", "--dtype", "i1", says=["fill value -9999", "--fill"])

    def test_text(self):
        values = np.array(["abc", "", "é"])
        self.assertEqual(self.cast(values, "U5").tolist(), values.tolist())
        self.assertEqual(self.cast(values, "U2", "--cast", "unsafe").tolist(), values.astype("U2").tolist())
        self.refused("copy", "in.npy", "b.npy", "--dtype", "U2", says=["abc at [0]"])


if __name__ == "__main__":
    main()
