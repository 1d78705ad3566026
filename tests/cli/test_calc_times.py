"""calc with datetimes and timedeltas, compared with NumPy."""

import warnings

import numpy as np

from program import FEWER, main
from test_reduce import Computing, drawn_shape

RANDOM = np.random.default_rng(20261123)
UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "3M", "2W", "10D", "6h", "15m", "30s", "250ms", "100ns"]
# In years, so that the finest units hold them.
REACH = {"ns": 200, "100ns": 200}
YEAR = {"Y": 1, "M": 12, "W": 52, "D": 365, "h": 8766, "m": 525960, "s": 31557600, "ms": 31557600 * 10**3,
        "us": 31557600 * 10**6, "ns": 31557600 * 10**9}
EXPRESSIONS = ["a - b", "a + b", "b + a", "a == b", "a != b", "a < b", "a <= b", "a > b", "a >= b", "minimum(a, b)", "maximum(a, b)",
               "fmin(a, b)", "fmax(a, b)", "where(a < b, a, b)", "where(isnat(a), b, a)", "a - b - (b - a)", "a + (b - b)",
               "isnat(a - b)", "isfinite(a) & ~isnat(b)"]
NAMES = {name: getattr(np, name) for name in "minimum maximum fmin fmax where isnat isnan isfinite datetime64 timedelta64".split()}
EXAMPLES = ["a < datetime64('2020')", "a >= datetime64('1969-07')", "a - datetime64('1970-01-31')", "a - datetime64('2001-02-03T04')",
            "a == datetime64('2001-02-03T04:05')", "a - datetime64('2001-02-03T04:05:06')", "a + timedelta64(5, 'h')",
            "a - timedelta64(-90, 'm')", "datetime64('2030-01-01', 's') - a", "where(a < datetime64('2000-01-01'), NaT, a)",
            "a == NaT", "a != NaT", "isnan(a)", "maximum(a, datetime64('1999-12-31T23:59:59.5'))", "clip(a, a, NaT)"]


def times(kind, unit, shape, reach=150):
    base = unit.lstrip("0123456789")
    multiple = int(unit[:-len(base)] or 1)
    most = max(2, reach * YEAR[base] // multiple)
    counts = RANDOM.integers(-most, most, shape)
    if RANDOM.random() < 0.3:
        counts //= max(1, most // 3)  # so that some are equal
    counts[RANDOM.random(shape) < 0.1] = np.iinfo("i8").min
    return counts.astype(f"{kind}8[{unit}]")


class CalcTimes(Computing):
    def compare(self, expression, **values):
        names = NAMES | {"NaT": np.datetime64("NaT"), "clip": lambda v, low, high: np.minimum(np.maximum(v, low), high)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                wanted = np.asarray(eval(expression, names, values))
            except TypeError:
                wanted = None  # it has no meaning for these, or no common unit
        paths = [f"{name}={name}.npy" for name in values]
        result = self.run_program("calc", "out.npy", expression, *paths, "--overwrite", "--quiet")
        if wanted is None:
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertRegex(result.stderr, "has no meaning for (datetime|timedelta)64.* and (datetime|timedelta)64")
            return False
        self.assertEqual(result.returncode, 0, result.stderr)
        got = np.load(self.folder / "out.npy")
        self.assertEqual((got.shape, got.dtype), (wanted.shape, wanted.dtype))
        np.testing.assert_array_equal(got.view("i8") if got.dtype.kind in "mM" else got,
                                      wanted.view("i8") if got.dtype.kind in "mM" else wanted)
        return True

    def test_two_operands(self):
        done = refused = 0
        for n in range(240 // FEWER):
            shape = drawn_shape(int(RANDOM.integers(1, 4)))
            kinds = "MMM mmm Mmm MmM".split()[n % 4]
            units = [UNITS[int(RANDOM.integers(len(UNITS)))] for _ in range(2)]
            if n % 3 == 0:
                units[1] = units[0]
            # Sums of the two stay within the finest unit.
            reach = 60 if "ns" in "".join(units) else 150
            a, b = times(kinds[0], units[0], shape, reach), times(kinds[1], units[1], shape, reach)
            if n % 2:
                a = a.astype(a.dtype.newbyteorder(">"))
            expression = EXPRESSIONS[int(RANDOM.integers(len(EXPRESSIONS)))]
            with self.subTest(n=n, expression=expression, a=a.dtype.str, b=b.dtype.str, shape=shape):
                self.save("a.npy", a)
                self.save("b.npy", b)
                if self.meaningless_to_us(expression, a, b):
                    self.assertRegex(self.refused("calc", "o.npy", expression, "a=a.npy", "b=b.npy"), "has no meaning for")
                    refused += 1
                    continue
                good = self.compare(expression, a=a.astype(a.dtype.newbyteorder("=")), b=b)
                done += good
                refused += not good
        self.assertGreater(done, 100 // FEWER)
        self.assertGreater(refused, 20 // FEWER)

    @staticmethod
    def meaningless_to_us(expression, a, b):
        """NumPy compares and mixes datetimes with timedeltas in some places, as counts of whatever, and says that times
        without a common unit differ."""
        if a.dtype.kind != b.dtype.kind:
            return any(word in expression for word in ("min", "max", "where", "=", "<", ">"))
        months = [v.dtype.str.rstrip("]")[-1] in "YM" for v in (a, b)]
        return "=" in expression and a.dtype.kind == "m" and months[0] != months[1]

    def test_constants_and_one_operand(self):
        for n in range(200 // FEWER):
            unit = UNITS[int(RANDOM.integers(len(UNITS)))]
            expression = EXAMPLES[n % len(EXAMPLES)]
            a = times("M", unit, drawn_shape(2))
            with self.subTest(n=n, expression=expression, unit=unit):
                self.save("a.npy", a)
                self.assertTrue(self.compare(expression, a=a))

    def test_a_calendar_of_all_months(self):
        a = np.arange(-12 * 2400, 12 * 1200).astype("M8[M]")
        self.save("a.npy", a)
        self.save("b.npy", a.astype("M8[D]") + 17)
        self.assertTrue(self.compare("b - a", a=a, b=a.astype("M8[D]") + 17))
        self.assertTrue(self.compare("a == a", a=a))

    def test_what_is_refused_says_why(self):
        self.save("t.npy", np.array(["2020-01-01", "NaT"], "M8[D]"))
        self.save("d.npy", np.array([1, 2], "m8[h]"))
        self.save("m.npy", np.array([1, 2], "m8[M]"))
        self.save("n.npy", np.array([1, 2]))
        operands = {name: f"{name}={name}.npy" for name in "tdmn"}
        for expression, says in [
                ("t + t", "add has no meaning for datetime64[D] and datetime64[D]"),
                ("d - t", "subtract has no meaning for timedelta64[h] and datetime64[D]"),
                ("t + m", "add has no meaning for datetime64[D] and timedelta64[M]"),
                ("d == m", "equal has no meaning for timedelta64[h] and timedelta64[M]"),
                ("t < d", "less has no meaning for datetime64[D] and timedelta64[h]"),
                ("t + n", "add has no meaning for datetime64[D] and int64"), ("t + 1", "add has no meaning for datetime64[D] and a number"),
                ("d * 2", "multiply has no meaning for timedelta64[h] and a number"),
                ("d / d", "divide has no meaning for timedelta64[h] and timedelta64[h]"),
                ("-d", "negative has no meaning for timedelta64[h]"), ("abs(d)", "abs has no meaning for timedelta64[h]"),
                ("sqrt(t)", "sqrt has no meaning for datetime64[D]"), ("float64(d)", "float64 has no meaning for timedelta64[h]"),
                ("where(t, d, d)", "where has no meaning for datetime64[D]"), ("isnat(n)", "isnat has no meaning for int64"),
                ("where(n > 1, t, 0)", "where has no meaning for bool and datetime64[D] and a number"),
                ("isnat(NaT)", "NaT"), ("NaT", "NaT alone has no unit"), ("n + NaT", "add has no meaning for int64 and NaT"),
                ("t < 'x'", "text stands in datetime64"), ("t < datetime64('x')", "at 'datetime64('x')'"),
                ("t < datetime64('2020-13')", "2020-13"), ("t < datetime64(3)", "datetime64('2020-01-31')"),
                ("d < timedelta64(3)", "timedelta64(5, 'D') was expected"), ("d < timedelta64(1.5, 'D')", "timedelta64(5, 'D') was expected"),
                ("d < timedelta64(3, 'x')", "x"), ("t < datetime64('2020", "the quote is not closed")]:
            with self.subTest(expression):
                used = [operands[name] for name in "tdmn" if name in [c for c in expression.replace("datetime", "").replace(
                    "timedelta", "").replace("isnat", "").replace("where", "").replace("sqrt", "").replace("abs", "").replace(
                    "float", "") if c.isalpha()]]
                self.refused("calc", "o.npy", " " + expression, *used, says=[says])
        self.save("f.npy", np.array([2**62], "M8[D]"))
        self.save("g.npy", np.array([0], "M8[ns]"))
        self.refused("calc", "o.npy", "f - g", "f=f.npy", "g=g.npy", says=["does not fit datetime64[ns]"])

    def test_in_every_format_and_in_place(self):
        a = times("M", "s", (20, 7))
        self.save("a.npy", a)
        for name in ("zmeta", "v2", "v3"):
            with self.subTest(name):
                self.tessera("import", "a.npy", name, "--format", name, "--chunks", "6,6", "--quiet", "--overwrite")
                self.tessera("calc", name, "a + timedelta64(1, 'D')", f"a={name}", "--in-place", "--quiet")
                np.testing.assert_array_equal(self.exported(name), a + np.timedelta64(1, "D"))
                self.tessera("calc", "d-" + name, "a - b", f"a={name}", "b=a.npy", "--quiet")
                np.testing.assert_array_equal(self.exported("d-" + name), a + np.timedelta64(1, "D") - a)


if __name__ == "__main__":
    main()
