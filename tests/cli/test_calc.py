"""calc, compared with NumPy."""

import os
import re
import unittest
import warnings

import numpy as np

from program import FEWER, NUMPY_1, digest, main
from test_reduce import Computing, drawn_shape

RANDOM = np.random.default_rng(20261125)
KINDS = ["?", "i1", "u1", ">i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", ">f8", "c8", "c16"]
BINARY = ["a + b", "a - b", "a * b", "a / b", "a // b", "a % b", "minimum(a, b)", "maximum(a, b)", "fmin(a, b)", "fmax(a, b)",
          "a == b", "a != b", "a < b", "a <= b", "a > b", "a >= b", "a & b", "a | b", "a ^ b", "where(a > b, a, b)",
          "a + b * a - b", "(a + b) * (a - b)", "hypot(a, b)", "arctan2(a, b)", "a << (b & 7)", "a >> (b & 7)",
          "where(isnan(a) | (a < 2), b, a)", "clip(a, b, 5)"]
UNARY = ["-a", "+a", "~a", "abs(a)", "a ** 2", "a ** 3", "2 * a + 1", "1 - a", "a / 3", "a // 3", "a % 5", "a % -3", "a // -3",
         "sqrt(a)", "exp(a)", "log(a)", "log2(a)", "log10(a)", "log1p(a)", "expm1(a)", "sin(a)", "cos(a)", "tan(a)", "tanh(a)",
         "floor(a)", "ceil(a)", "trunc(a)", "rint(a)", "sign(a)", "square(a)", "isnan(a)", "isinf(a)", "isfinite(a)",
         "where(a < 0, 0, a * 0.1)", "where(a < 3, 1.5, 2.5)", "a * 0.1 + 2", "(a > 1) & (a < 5)", "~(a > 1) | (a == 3)",
         "-a ** 2", "2 ** -1 * a", "a == a", "float32(a)", "float64(a) / 3", "int16(a < 3)", "a * 1e-3", "a ** 0.5", "abs(-a)",
         "where(True, a, 0)", "real(a)", "imag(a)", "conj(a)", "complex128(a) * a", "0x10 + a", "a - -a", "cbrt(a)", "exp2(a)",
         "7 - 2 * 3 // 2 % 4 + a", "np.minimum(a, 3)"]
NAMES = {name: getattr(np, name) for name in
         "minimum maximum fmin fmax where hypot arctan2 isnan isinf isfinite clip sqrt exp log log2 log10 log1p expm1 sin cos tan "
         "tanh floor ceil trunc rint sign square real imag conj cbrt exp2 complex128 int16".split()} | {"np": np, "abs": np.abs}
ROUNDED = "exp log sin cos tan tanh hypot arctan2 cbrt expm1 log1p ** abs".split()


def some(kind, shape):
    dtype = np.dtype(kind)
    if dtype.kind == "b":
        return RANDOM.random(shape) > 0.5
    if dtype.kind == "u":
        return RANDOM.integers(0, 11, shape).astype(dtype)
    if dtype.kind == "i":
        return RANDOM.integers(-10, 11, shape).astype(dtype)
    values = np.round(RANDOM.normal(scale=4, size=shape), 2)
    if dtype.kind == "c":
        values = values + 1j * np.round(RANDOM.normal(size=shape), 2)
    else:
        values[RANDOM.random(shape) < 0.05] = np.nan
        values[RANDOM.random(shape) < 0.05] = np.inf
    return values.astype(dtype)


def broadcastable(shape):
    own = tuple(1 if RANDOM.random() < 0.3 else n for n in shape)
    return own[int(RANDOM.integers(0, len(own))):] if RANDOM.random() < 0.3 else own


class Calc(Computing):
    def wanted(self, expression, **values):
        values = {name: v.astype(v.dtype.newbyteorder("=")) for name, v in values.items()}
        names = NAMES | {"float32": lambda v: np.asarray(v).astype("f4"), "float64": lambda v: np.asarray(v).astype("f8"),
                         "complex128": lambda v: np.asarray(v).astype("c16"), "int16": lambda v: np.asarray(v).astype("i2")}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(eval(expression, names, values))

    def compare(self, expression, paths, **values):
        try:
            wanted = self.wanted(expression, **values)
        except (TypeError, OverflowError):
            wanted = None  # it has no meaning for these; NumPy 2 gives no number a dtype that cannot hold it
        rounds = re.match(r"(floor|ceil|trunc)\(", expression)
        if wanted is not None and rounds and not NUMPY_1 and wanted.dtype.kind in "iub":
            wanted = getattr(np, rounds[1])(values["a"].astype(np.result_type(values["a"], np.float16)))  # as NumPy 1
        # What begins with "-" would be taken for an option.
        words = ["calc", "out.npy", " " + expression, *(f"{name}={path}" for name, path in paths.items()), "--overwrite", "--quiet"]
        kinds = {v.dtype.kind for v in values.values()}
        eight = {v.dtype.str[1:] for v in values.values()}
        inexact = "u8" in eight and "i" in kinds or "u8" in eight and "1 - a" in expression
        if wanted is None or inexact and wanted.dtype.kind in "bf":
            result = self.run_program(*words)
            self.assertIn(result.returncode, (0, 2), result.stderr)
            return result.returncode == 0
        result = self.run_program(*words)
        if result.returncode:
            self.assertTrue(kinds & {"c", "b", "u"}, result.stderr)  # what NumPy orders or widens
            self.assertRegex(result.stderr, "has no meaning|does not fit|no common integer")
            return False
        got = np.load(self.folder / "out.npy")
        self.assertEqual((got.shape, got.dtype), (wanted.shape, wanted.dtype))
        if any(word in expression for word in ROUNDED) and wanted.dtype.kind in "fc" or wanted.dtype.kind == "c":
            limit = 4 * np.finfo(wanted.dtype).eps
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                np.testing.assert_allclose(got, wanted, rtol=limit, atol=limit)
        else:
            np.testing.assert_array_equal(got, wanted)
        return True

    def test_reductions_stand_in_it(self):
        values = np.arange(12.0).reshape(3, 4)
        self.save("a b.npy", values)
        for n, expression in enumerate(("a - mean(a, axis=1)", "a - a.mean(1)", "a - np.nanmean(a, axis=(1,))", "a - mean(a * 2, -1) / 2")):
            self.tessera("calc", f"o{n}.npy", expression, "a=a b.npy", "--quiet")
            np.testing.assert_array_equal(np.load(self.folder / f"o{n}.npy"), values - values.mean(axis=1, keepdims=True))

    def test_one_operand(self):
        done = 0
        for n in range(224 // FEWER):
            values = some(KINDS[n % len(KINDS)], drawn_shape(int(RANDOM.integers(1, 4))))
            expression = UNARY[int(RANDOM.integers(len(UNARY)))]
            with self.subTest(n=n, expression=expression, dtype=values.dtype.str, shape=values.shape):
                done += self.compare(expression, {"a": self.stored(values, n)}, a=values)
        self.assertGreater(done, 150 // FEWER)

    def test_two_operands_broadcast(self):
        done = 0
        for n in range(224 // FEWER):
            shape = drawn_shape(int(RANDOM.integers(1, 4)))
            a = some(KINDS[n % len(KINDS)], broadcastable(shape) if RANDOM.random() < 0.5 else shape)
            b = some(KINDS[int(RANDOM.integers(len(KINDS)))] if RANDOM.random() < 0.6 else a.dtype.str, broadcastable(shape))
            if a.ndim == 0 or b.ndim == 0:
                continue
            expression = BINARY[int(RANDOM.integers(len(BINARY)))]
            with self.subTest(n=n, expression=expression, a=a.dtype.str, b=b.dtype.str, shapes=(a.shape, b.shape)):
                path = self.stored(a, n)
                self.save("b.npy", b)
                done += self.compare(expression, {"a": path, "b": "b.npy"}, a=a, b=b)
        self.assertGreater(done, 120 // FEWER)

    def test_large_integers_are_exact(self):
        a = np.array([2**53 + 1, 2**62 + 1, -2**63, 2**63 - 1])
        self.save("a.npy", a)
        for expression in "a + 1", "a - 1", "a * 3", "a // 7", "a % 1000", "a == 9007199254740993", "a > 9007199254740992", \
                "where(a > 0, a, -a)", "maximum(a, 9007199254740993)", "a & 0xff", "a ** 3", "a >> 3":
            with np.errstate(all="ignore"):
                self.assertTrue(self.compare(expression, {"a": "a.npy"}, a=a), expression)
        self.save("u.npy", a.astype("u8"))
        self.refused("calc", "o.npy", "a + u", "a=a.npy", "u=u.npy", says=["int64 and uint64", "convert"])
        self.assertTrue(self.compare("a * 2 + 18446744073709551615", {"a": "u.npy"}, a=a.astype("u8")))

    def test_numbers_take_the_dtype_beside_them(self):
        for kind in "i1", "u2", "f2", "f4":
            self.save("a.npy", np.ones(3, kind))
            self.tessera("calc", "out.npy", "a * 3 + 2 ** 3 - True", "a=a.npy", "--overwrite", "--quiet")
            self.assertEqual(np.load(self.folder / "out.npy").dtype, np.dtype(kind))
        self.tessera("calc", "out.npy", "a * 1000000 + 0.1 / 3", "a=a.npy", "--overwrite", "--quiet")
        self.assertEqual(np.load(self.folder / "out.npy").dtype, np.dtype("f4"))

    def test_layout_and_dtype(self):
        a = RANDOM.normal(size=(40, 30)).astype("f4")
        self.save("a.npy", a)
        self.tessera("import", "a.npy", "a.zarr", "--format", "v3", "--chunks", "7,9", "--dims", "y,x", "--quiet")
        self.tessera("calc", "b.zarr", "a + a", "a=a.zarr", "--quiet")
        shown = self.tessera_json("info", "b.zarr")
        self.assertEqual((shown["format"], shown["chunks"], shown["dimension_names"]), ("v3", [7, 9], ["y", "x"]))
        np.testing.assert_array_equal(self.exported("b.zarr"), a + a)
        self.tessera("calc", "c.npy", "a * 100", "a=a.zarr", "--dtype", "i2", "--cast", "round", "--quiet")
        np.testing.assert_array_equal(np.load(self.folder / "c.npy"), np.rint(a * np.float32(100)).astype("i2"))
        self.assertTrue(self.tessera_json("calc", "d.zarr", "a", "a=a.zarr", "--dry-run")["dry_run"])
        self.assertFalse((self.folder / "d.zarr").exists())
        table = np.zeros(5, [("x", "f4"), ("y", "i2")])
        table["x"] = np.arange(5)
        self.save("t.npy", table)
        self.tessera("calc", "e.npy", "x * 2 + y", "x=t.npy::x", "y=t.npy::y", "--quiet")
        np.testing.assert_array_equal(np.load(self.folder / "e.npy"), table["x"] * 2)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one core")
    def test_one_thread_for_want_of_memory_is_said(self):
        self.save("a.npy", np.zeros((512, 2048), "f4"))
        for name in "ab":
            self.tessera("import", "a.npy", f"{name}.zarr", "--chunks", "512,512", "--quiet")
        words = ["calc", "c.zarr", "a + b", "a=a.zarr", "b=b.zarr", "--overwrite", "--threads", "2", "--max-memory"]
        # Of a chunk of 1 MiB, two operands and a result beside what it takes to read and write them.
        self.assertEqual(self.run_program(*words, "64M").stderr, "")
        said = self.run_program(*words, "24M").stderr
        self.assertIn("c.zarr: one thread works", said)
        enough = re.search(r"--max-memory (\d+M) lets two work", said)
        self.assertEqual(self.run_program(*words, enough[1]).stderr, "")

    def test_in_place(self):
        a = RANDOM.integers(-50, 50, (60, 45)).astype("i4")
        self.save("a.npy", a)
        self.save("row.npy", np.arange(45, dtype="i4"))
        for form in "zmeta", "v2", "v3":
            self.tessera("import", "a.npy", "x.zarr", "--chunks", "16,16", "--format", form, "--overwrite", "--quiet")
            wanted = np.where(a < 0, 0, a)
            self.tessera("calc", "x.zarr", "where(x < 0, 0, x)", "x=x.zarr", "--in-place", "--quiet")
            np.testing.assert_array_equal(self.exported("x.zarr"), wanted)
            for text, key in ("5:50, 3:40", np.s_[5:50, 3:40]), ("::7, 10", np.s_[::7, 10]), ("3, ::-2", np.s_[3, ::-2]), \
                    ("20:20", np.s_[20:20]):
                self.tessera("calc", "x.zarr", "x * 2 + row", "x=x.zarr", "row=row.npy", "--in-place", "--sel", text, "--quiet")
                before = wanted.copy()
                wanted[key] = (before * 2 + np.arange(45, dtype="i4"))[key]
                np.testing.assert_array_equal(self.exported("x.zarr"), wanted)
            self.tessera("undo", "x.zarr", "--quiet") if key != np.s_[20:20] else None
            self.tessera("calc", "x.zarr", "x / 2", "x=x.zarr", "--in-place", "--cast", "round", "--quiet")
            np.testing.assert_array_equal(self.exported("x.zarr"), np.rint(wanted / 2))
            self.tessera("undo", "x.zarr", "--quiet")
            np.testing.assert_array_equal(self.exported("x.zarr"), wanted)
            self.tessera("verify", "x.zarr")

    def test_beside_a_source_whose_name_it_begins_with(self):
        self.save("a.npy", np.arange(6))
        self.tessera("import", "a.npy", "x", "--quiet")
        self.tessera("calc", "xy", "a + 1", "a=x", "--quiet")
        np.testing.assert_array_equal(self.exported("xy"), np.arange(6) + 1)

    def test_bad_input_changes_nothing(self):
        self.save("a.npy", np.arange(12.0).reshape(3, 4))
        self.save("b.npy", np.arange(5))
        self.save("s.npy", np.array(["x"]))
        self.tessera("import", "a.npy", "x.zarr", "--chunks", "2,2", "--quiet")
        before = digest(self.folder)
        bad = {"c + 1": "unknown name 'c'", "a +": "at the end", "a b": "operator", "(a": "')'", "f(a)": "unknown function", "": "empty",
               "a < 1 < 2": "chain", "a and a": "&", "where(a, 1, 2)": "bool", "where(a > 1, 2)": "3 arguments", "a & 1": "no meaning",
               "a ** ": "end", "1e999 * a": "float64", "99999999999999999999 + a": "64 bits", "a[0]": "operator",
               "2 ** 3": "not used", "sqrt(a, a)": "1 argument", "~a": "no meaning", "a = 2": "operator"}
        for expression, says in bad.items():
            self.refused("calc", "o.zarr", expression, "a=a.npy", says=says)
            self.refused("calc", "x.zarr", expression, "a=x.zarr", "--in-place", says=says)
        self.refused("calc", "o.npy", "a + b", "a=a.npy", "b=b.npy", says=["do not broadcast", "(3, 4)", "(5,)"])
        self.refused("calc", "x.zarr", "b + 0.5", "b=b.npy", "--in-place", says="do not broadcast")
        self.refused("calc", "o.npy", "a", "a=s.npy", says="not computed with")
        self.refused("calc", "o.npy", "a", "a=none.npy", says="none.npy")
        self.refused("calc", "o.npy", "a", "a.npy", says="a=x.zarr")
        self.refused("calc", "o.npy", "a", "a=a.npy", "a=b.npy", says="twice")
        self.refused("calc", "a.npy", "a + 1", "a=a.npy", "--overwrite", says="cannot lie where")
        self.refused("calc", "x.zarr/in", "a + 1", "a=x.zarr", says="cannot lie where")
        self.refused("calc", "x.zarr", "a", "a=x.zarr", "--in-place", "--chunks", "1,1", says="--in-place")
        self.refused("calc", "x.zarr", "b ** -1", "b=b.npy", "--in-place")
        self.refused("calc", "o.npy", "~" * 5000 + "a", "a=a.npy", says="too deeply")
        self.refused("calc", "o.npy", "(" * 4000 + "a" + ")" * 4000, "a=a.npy", says="too deeply")
        self.assertEqual(digest(self.folder), before)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a.npy", "b.npy", "s.npy", "x.zarr"])


if __name__ == "__main__":
    main()
