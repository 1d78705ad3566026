"""Writes dtypes.json, descrs.json, assignments.json, floats.json, times.json and printed.json beside itself: what NumPy makes
of dtype spellings, of scalars assigned to one element, of floats and of times, and how it prints arrays. Run by hand, with
NumPy 1.24: python3 make_dtypes.py
"""
import json
import os
import struct
import warnings

import numpy as np

warnings.simplefilter("ignore")
folder = os.path.dirname(os.path.abspath(__file__))


def save(name, rows):
    with open(os.path.join(folder, name), "w") as f:
        f.write('{"numpy": %s, "rows": [\n' % json.dumps(np.__version__))
        f.write(",\n".join(json.dumps(row) for row in rows))
        f.write("\n]}\n")


def lists(x):
    return [lists(i) for i in x] if isinstance(x, (list, tuple)) else x


def descr(dt):
    return lists(dt.descr) if dt.names is not None else dt.str


# ---- spellings: [text, null or [str, descr, itemsize]]; sub-arrays at the top and NumPy's own oddities are left out
names = [k for k in np.sctypeDict if isinstance(k, str) and k != "bytes"]
signed = [o + c for o in "<>=|" for c in "?bhilqpBHILQPefdgFDGSUVOMmac"]
sized = [o + c for o in ["", "<", ">", "=", "|"]
         for c in ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "f16", "c8", "c16", "c32",
                   "S0", "S5", "U0", "U3", "V0", "V7", "a5", "O8", "M8", "m8", "M8[ns]", "m8[25us]", "datetime64[D]",
                   "timedelta64"]]
units = ["M8[%s]" % u for u in "Y M W D h m s ms us ns ps fs as generic 1s 10ns 7D 2147483647s".split()]
units += ["M8[%s]" % u for u in "D/12 Y/5 2Y/4 Y/12 Y/365 M/30 W/7 h/3600 m/2 s/1000 ms/8 us/5 ns/2 ps/1000 fs/4 10generic "
          "as/2 Y/7 D/7".split()]
commas = ["i4,f8", "i4,(2,3)f8", "2i4,<3f8", ">(2,)i4,i4", "i4, f8 , S3", "i4,M8[ns],S3", "i4,", "1i4", "()i4", "(2)i4,i4",
          "2 i4,i4", "int32,float64", "i4,2>f8", "i4,S", "<i4,>i4,=i4,|u1", ",i4", "i4,,i4", ">2<i4,i4"]
bad = ["", "<", "i3", "i", "b2", "u16", "f1", "f12", "f10", "d8", "?1", "B1", "<float64", ">int32", "string", "Float64", "M8[]",
       "M8[-1s]", "M8[x]", "M8[s", "M8s]", "M8[3000000000s]", "i4;f8", "xyz", "4", "I4", "i4 x", "<<i4", "é"]
rows = []
for text in sorted(set(names + signed + sized)) + units + commas + bad:
    try:
        dt = np.dtype(text)
        assert dt.subdtype is None, text
        rows.append([text, [dt.str, descr(dt), dt.itemsize]])
    except (TypeError, ValueError, SyntaxError):
        if text not in ("string",):  # a spelling of our own
            rows.append([text, None])
save("dtypes.json", rows)

# ---- descrs: [descr, null or [descr given back, itemsize, names, .npy header's text]], through np.dtype(list)
descrs = [
    [("a", "<i4"), ("b", ">f8")],
    [("a", "i4"), ("", "V3"), ("b", "i4")],
    [("", "i4"), ("", "f8")],
    [("f1", "i4"), ("", "V3")],
    [(("the title", "a"), "i4")],
    [(("a", "a"), "i4")],
    [("a", "i4"), ("a", "i4")],
    [(("b", "a"), "i4"), ("b", "f4")],
    [("a", "i4", 1)],
    [("a", "i4", 2)],
    [("a", "i4", (1,))],
    [("a", "i4", (0,))],
    [("a", "i4", ())],
    [("a", "i4", -1)],
    [("a", "i4", (2, -1))],
    [("a", "i4", (3, 2)), ("b", "S3")],
    [("a", "S"), ("b", "U0"), ("c", "V0")],
    [("a", "i4,f8")],
    [("a", [("x", ">i2"), ("y", "U3")], (2, 2)), ("é'x", "f8"), ('a"b', "c8"), ("back\\slash", "?"), ("q'\"", "b")],
    [("日本", "m8[s]"), ("line\nbreak", "M8[10ns]"), ("\x7f\x00\xa0\u200b", "e")],
    [("o", "O"), ("n", [("deep", [("er", "f16")])])],
    [("a", "i3")],
    [("a",)],
    ["i4"],
    [["a", "i4", 2, 3]],
]
rows = []
for d in descrs:
    try:
        dt = np.dtype([tuple(tuple(p) if isinstance(p, list) and i != 1 else p for i, p in enumerate(f))
                       if isinstance(f, (tuple, list)) else f for f in d])
        rows.append([lists(d), [descr(dt), dt.itemsize, list(dt.names), repr(dt.descr)]])
    except (TypeError, ValueError):
        rows.append([lists(d), None])
save("descrs.json", rows)

# ---- assignments: [dtype, JSON text of the scalar, null or the bytes in hex]
numbers = [True, False, 0, 1, 300, -1, 2**31, 2**32 + 5, 2**40, 2**63 - 1, -2**63, 2**63, 2**64 - 1, 2**64, -2**63 - 1, 10**310, 3.7, -3.7,
           -0.0, 65504, 65519.99, 65520.0, 1e-8, 2.98e-8, 5.96e-8, 6.1e-05, 0.1, 1 / 3, 2049, 2051, 16777217, 16777219, 1e-46, 7e-46,
           1e-45, 1.4e-45, 3.4028235677973362e38, 3.4028235677973366e38, 5e-324, 1e300, 1e16, 1e-7, 2**53 + 1, float("nan"), float("inf"),
           float("-inf")]
texts = ["12", " -7 ", "1.5", "abc", "", "nan", "é", "日本語"]
times = ["NaT", "2020", "2020-02", "2020-02-29", "2020-02-30", "2020-13", "2020-1-1", "1969-12-31", "1600-02-29", "2020-01-31T12",
         "2020-01-31T12:34", "2020-01-31 12:34:56", "2020-01-31T12:34:56Z", "2020-01-31T12:34+01:00", "2020-01-31T24",
         "2020-01-31T12:60", "1969-12-31T23:59:59.999999999", "1970-01-01T00:00:01.123456789012345678", "1970-01-01T00:00:00.000000055",
         "20200131", "-0001-12-31", "10000-01-01", "T12", "2020-01-31T12:34:5", "2020-"]
targets = ["?", "i1", "u1", "i2", ">u2", "<i4", ">i4", "u4", "i8", "u8", "f2", ">f2", "f4", "f8", ">f8", "c8", "c16", "f16", "S2", "S40",
           "U2", ">U5", "V4", "m8[ns]", ">m8[s]", "M8[D]", [["a", "<i4"], ["b", "S2"]], [["a", "u1", [2]], ["b", ">f4"]],
           [["a", "i4"], ["v", "V2"]]]
time_targets = ["M8[%s]" % u for u in "Y M W D h m s ms us ns ps fs as 2M 10ns 2D".split()]
rows = []


def assign(target, value):
    dt = np.dtype([tuple(tuple(p) if isinstance(p, list) else p for p in f) for f in target] if isinstance(target, list) else target)
    try:
        a = np.zeros((), dt)
        a[...] = value
        b = np.zeros((), dt)
        b.fill(value)
    except (TypeError, ValueError, OverflowError, UnicodeEncodeError):
        return None
    if dt.char == "g":
        return a.tobytes()[:10].hex() + 12 * "0"  # the rest is whatever lay there
    assert a.tobytes() == b.tobytes(), (target, value)
    return a.tobytes().hex()


def overflows(target, text):
    """Whether the count is beyond 64 bits. NumPy wraps it without a word; Tessera refuses."""
    decimals = {"ms": 3, "us": 6, "ns": 9, "ps": 12, "fs": 15, "as": 18}.get(np.datetime_data(np.dtype(target))[0], 0)
    return decimals > 0 and text != "NaT" and abs(int(np.datetime64(text, "s").astype("i8"))) * 10**decimals >= 2**63


for target in targets:
    for value in numbers + texts:
        if target == "f16" and not (isinstance(value, float) or isinstance(value, int) and abs(value) <= 2**53):
            continue  # Tessera goes through a double, NumPy through a long double
        rows.append([target, json.dumps(value), assign(target, value)])
for target in time_targets:
    for text in times:
        result = assign(target, text)
        if result is not None and overflows(target, text):
            if np.datetime_data(np.dtype(target))[1] > 1:
                continue  # may fit all the same; NumPy multiplied too early
            result = None
        rows.append([target, json.dumps(text), result])
save("assignments.json", rows)

# ---- floats: [bits in hex of f8, repr], [bits of f4, text of the shortest decimal], [bits of f2, the same]
rng = np.random.default_rng(1)
eights = [0.0, -0.0, 0.1, 1.0, 1e15, 1e16, 123456789012345680.0, 9007199254740996.0, 1e-4, 1e-5, 9.999e-5, 5e-324, 1e22, 1e23,
          1.7976931348623157e308, 2.2250738585072014e-308, 1e100, 4.35, 0.3, 2.0**-44, float("nan"), float("inf"), float("-inf")]
eights += list(rng.integers(0, 2**64, 60, dtype="u8").view("f8")) + list(rng.normal(size=40)) + list(10.0 ** rng.uniform(-8, 20, 40))
rows = [["f8", struct.pack(">d", float(x)).hex(), repr(float(x))] for x in eights]
for kind, count in (("f4", 80), ("f2", 120)):
    bits = rng.integers(0, 2 ** (8 * int(kind[1])), count, dtype="u8").astype("u" + kind[1])
    for x in list(bits.view(kind)) + list(np.array([0, 0.1, 1 / 3, 65504, 6e-8, 6.1e-5, 1, 16777216, 1e10, 2.0**-44, 2.0**-24], kind)):
        if np.isfinite(x):
            text = np.format_float_scientific(x, unique=True, trim="0")
            rows.append([kind, x.tobytes()[::-1].hex(), repr(float(text))])
save("floats.json", rows)

# ---- times: [dtype, count, text]; years before 0 are left out: NumPy prints "-001", which is not ISO 8601
rows = []
counts = [0, 1, -1, 59, -60, 1000, 123456789, -123456789, 2**31, 10**12 + 7, 2**62, -2**63]
for unit in "Y M W D h m s ms us ns ps fs as 10ns 3M 7D 25s".split():
    multiple = np.datetime_data(np.dtype("M8[%s]" % unit))[1]
    for count in counts:
        if count != -2**63 and abs(count * multiple) >= 2**63:
            continue  # NumPy wraps
        text = np.datetime_as_string(np.array(count, "i8").view("M8[%s]" % unit)[()])
        if not text.startswith("-"):
            rows.append(["M8[%s]" % unit, count, str(text)])
save("times.json", rows)

# ---- printed arrays: [descr, shape, bytes in hex, str()]
def ramp(shape, dtype, scale=1):
    return (np.arange(np.prod(shape, dtype=int)) * scale).astype(dtype).reshape(shape)


mixed = np.zeros(3, [("a", "<i4"), ("b", ">f8", (2,)), ("s", "S3"), ("t", "<M8[D]"), ("n", [("x", "?"), ("y", "<c8")])])
mixed["a"] = [1, -20, 300]
mixed["b"] = [[1, 2.5], [0, -0.25], [3, 1e-3]]
mixed["s"] = [b"a", b"b'c", b"\xff"]
mixed["n"]["y"] = [1 + 2j, -0.5j, 3]
arrays = [ramp(5, "<i4"), ramp((3, 4), ">i2", -7), ramp((2, 3, 4), "u1"), ramp((2, 2, 2, 2), "<i8", 10**12), ramp(60, "<i4"),
          ramp(1000, "<u2"), ramp(1001, "<u2"), ramp((40, 50), "u1"), ramp((3, 400), "<f4", 0.5), ramp((20, 9, 11), "<i2", 3),
          ramp((6, 6, 40), "u1"), ramp((0,), "<f4"), ramp((3, 0), "<i4"), ramp((4, 6), "<f8", 0.1), ramp((3, 3), ">f4", 1 / 3),
          ramp(200, "<f8", 12345.678), np.array([True, False]), np.array([[True], [True]]), np.array(True), np.array(-5, "<i8"),
          np.array(0.1, "<f4"), np.array(1e16), np.array(1 + 2j), np.array("it's"), np.array(b"ab"), np.array("2020-02-29", "M8[D]"),
          np.array([1, 2.25, -3]), np.array([1.0, 1e-5]), np.array([1e8, 1]), np.array([1e10]), np.array([1e-100, 1e200]),
          np.array([123456.789, 1000.5, 999]), np.array([0.1 + 0.2, 1 / 3, 2 / 3]), np.array([np.nan, np.inf, 1]),
          np.array([np.nan, -np.inf]), np.array([-np.inf, 1e-9, np.nan]), np.array([0.0, -0.0]), np.array([1e5, 99.5], "<f4"),
          np.array([65504, 0.1, 6e-8], "<f2"), np.array([0.1, 1 / 3, 2], "<f2"), np.array([16777217, 0.1], "<f4"),
          np.array([1 + 2j, 3.5 - 4j, 0.25]), np.array([1e10 + 1j, np.nan, complex(0, -np.inf)], "<c8"),
          np.array(["a", "it's", 'say "hi"', "日本語", "tab\t", ""]), np.array([b"a", b"b'c", b"\x00\xff\n", b""]),
          np.array(["日本語日本語"] * 30), np.array([b"ab", b"\x0a\xfe"], "V2"),
          np.array(["2020-01-01", "NaT", "1969-12-31"], "M8[D]"), np.array(["2020-01-01T12:00:01.5"] * 4, "M8[ns]"),
          np.array([1, -200, "NaT"], "m8[s]"), np.array(["2020-01"], "M8[M]"), mixed, mixed[0], mixed.reshape(3, 1),
          np.array([(1,), (2,)], [("a", "<i4")]), np.array([(np.arange(6).reshape(2, 3),)], [("m", "<i4", (2, 3))]),
          ramp((2,) * 9, "u1"), ramp((1, 1, 1), "<i4"), np.array([[1e8, np.nan], [2, 3]])]
for seed in range(30):
    values = rng.normal(size=tuple(rng.integers(1, 9, rng.integers(1, 4)))) * 10.0 ** rng.integers(-6, 9)
    arrays.append(np.round(values, rng.integers(0, 12)).astype(rng.choice(["<f8", "<f4", ">f8", "<f2"])))
arrays = [np.asarray(a) for a in arrays]
save("printed.json", [[descr(a.dtype), list(a.shape), a.tobytes().hex(), str(a)] for a in arrays])
