"""digest, diff and stats against NumPy, and the digest against its description in store/computing/measure/include/tessera/measure.h."""

import datetime
import hashlib
import json
import math
import struct
import subprocess
import unittest
import warnings

import numpy as np

from program import GOLDEN, ProgramTest, chosen, main

RANDOM = np.random.default_rng(20261121)


def normal(*shape):
    return RANDOM.normal(scale=100, size=shape)


def with_nan(values):
    values = values.copy()
    values.flat[::7] = np.nan
    return values


STRUCTURE = np.dtype([("a", "<i2"), ("b", ">f4"), ("c", "u1", (2, 3)), ("n", [("x", "<f8"), ("t", "S3")])])
ALIGNED = np.dtype({"names": ["k", "v"], "formats": ["u1", "<f8"], "offsets": [0, 8], "itemsize": 24})


def structured(dtype, n):
    values = np.zeros(n, dtype)
    values.view("u1")[:] = RANDOM.integers(0, 256, values.nbytes)  # padding too
    return values


ARRAYS = {
    "bool": RANDOM.random((7, 9)) > 0.5,
    "i1": RANDOM.integers(-128, 128, (40, 30)).astype("i1"),
    "u1": RANDOM.integers(0, 256, 1000).astype("u1"),
    "i2 big-endian": RANDOM.integers(-30000, 30000, (40, 30)).astype(">i2"),
    "u4": RANDOM.integers(0, 2**32, 5000).astype("<u4"),
    "i8": RANDOM.integers(-2**62, 2**62, (10, 10, 10)),
    "u8": RANDOM.integers(0, 2**64, 100, dtype="u8"),
    "u8 more": RANDOM.integers(0, 2**64, 5000, dtype="u8"),
    "i8 all of them": np.array([-2**63, 2**63 - 1, 2**53, 2**53 + 1, -1]),
    "i8 beyond 2^53": 2**60 + RANDOM.integers(0, 100, 3000),
    "u2 all of them": np.arange(2**16).astype(">u2"),
    "bool, some": RANDOM.random(3001) > 0.5,
    "f2": with_nan(normal(50, 20)).astype("f2"),
    "f4": with_nan(normal(300, 70)).astype("<f4"),
    "f8 big-endian": with_nan(normal(200, 100)).astype(">f8"),
    "f8 far from zero": normal(10000) * 1e-6 + 1e9,
    "f8 Fortran": np.asfortranarray(normal(30, 40)),
    "f8 Fortran, some chunks": np.asfortranarray(normal(30, 40, 50)),
    "f8 whose sum no double holds": np.array([1e308, 1.5e308, 1.7e308, -1e307] * 700),
    "f8 whose squares no double holds": normal(3000) * 1e-200,
    "f8 whose squares no double holds either": normal(3000) * 1e200,
    "f8 cancels": np.concatenate([normal(2000) * 1e6, -normal(2000)]),
    "f8 with a few of everything": np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, -5e-324, 1.0] * 300),
    "f2 with a few of everything": np.array([-0.0, np.nan, np.inf, 6e-8, 65504, 1.0] * 300, "f2"),
    "f8 infinite": np.array([1.0, np.inf, 2.0, np.nan]),
    "f8 both infinities": np.array([-np.inf, np.inf]),
    "f8 all NaN": np.full(4, np.nan),
    "c8": (normal(60) + 1j * with_nan(normal(60))).astype("c8"),
    "c16 big-endian": (normal(8, 8) + 1j * normal(8, 8)).astype(">c16"),
    "M8": np.array(["2020-01-01T12:00", "NaT", "1999-05-05T00:00", "2026-11-21T23:59"], "M8[m]"),
    "m8 big-endian": np.array([5, -7, "NaT", 1000], ">m8[ms]"),
    "M8 more": np.where(RANDOM.random(5000) < 0.1, np.datetime64("NaT"),
                        np.datetime64("2000-01-01", "s") + RANDOM.integers(-2**40, 2**40, 5000)),
    "M8 all NaT": np.full(5, "NaT", "M8[D]"),
    "S": np.array([b"abc", b"", b"zz", b"z"]),
    "S more": RANDOM.integers(65, 91, (4000, 7)).astype("u1").view("S7")[:, 0],
    "U": np.array([["abc", ""], ["é", "日本"]]),
    "structure": structured(STRUCTURE, 50),
    "aligned structure": structured(ALIGNED, 50),
    "empty": np.zeros((0, 3)),
    "0-d": np.array(5.5),
    "larger than a leaf": RANDOM.integers(0, 256, (3, 701, 1511)).astype("u1"),
}


# ---- the digest, again


def little(dtype):
    """Byte order apart the same dtype; NumPy's newbyteorder turns the fields too."""
    return dtype.newbyteorder("<")


def without_padding(values):
    """Little-endian bytes, padding zero."""
    clean = np.zeros(values.shape, little(values.dtype))
    copy_fields(values, clean)
    return clean


def copy_fields(source, target):
    if source.dtype.names is None:
        target[...] = source
        return
    for name in source.dtype.names:
        copy_fields(source[name], target[name])


def leaf_shape(shape, item_size):
    box = [max(n, 1) for n in shape]
    while math.prod(box) * item_size > 2**20 and max(box) > 1:
        longest = box.index(max(box))
        box[longest] = -(-box[longest] // 2)
    return box


def leaves(values, item_size):
    """The boxes of the grid in C order."""
    if values.size == 0:
        return
    box = leaf_shape(values.shape, item_size)
    for place in np.ndindex(*(-(-n // b) for n, b in zip(values.shape, box))):
        yield values[tuple(slice(p * b, (p + 1) * b) for p, b in zip(place, box))]


def digest_of(dtype_text, shape, leaf_hashes):
    header = f"tessera1\n{dtype_text}\n{tuple(shape)}\n"
    return "tessera1:" + hashlib.sha256(header.encode() + b"".join(leaf_hashes)).hexdigest()


def python_digest(values):
    descr = np.lib.format.dtype_to_descr(little(values.dtype))
    text = descr if isinstance(descr, str) else repr(descr)
    hashes = [hashlib.sha256(without_padding(leaf).tobytes()).digest()
              for leaf in leaves(values, values.dtype.itemsize)]
    return digest_of(text, values.shape, hashes)


def python_text_digest(values):
    hashes = []
    for leaf in leaves(values, 16):
        encoded = [text.encode() for text in leaf.flat]
        hashes.append(hashlib.sha256(b"".join(struct.pack("<Q", len(b)) + b for b in encoded)).digest())
    return digest_of("string", values.shape, hashes)


class Digest(ProgramTest):
    def digest(self, *paths):
        return [line.split()[0] for line in self.tessera("digest", *paths).splitlines()]

    def test_the_description_gives_the_same_hash(self):
        for name, values in ARRAYS.items():
            with self.subTest(name):
                self.save("a.npy", values)
                self.assertEqual(self.digest("a.npy"), [python_digest(values)])

    def test_elements_of_variable_length(self):
        texts = np.array([["", "a", "日本"], ["long " * 100, "b", "\n"]], dtype=object)
        np.save(self.folder / "t.npy", texts, allow_pickle=True)
        self.assertEqual(self.digest("t.npy"), [python_text_digest(texts)])
        self.tessera("import", "t.npy", "t.zarr", "--format", "v3", "--chunks", "1,2")
        self.assertEqual(self.digest("t.zarr"), [python_text_digest(texts)])

    def test_what_holds_the_elements_does_not_matter(self):
        values = RANDOM.integers(-1000, 1000, (37, 53)).astype("<i4")
        self.save("a.npy", values)
        self.save("big.npy", values.astype(">i4"))
        self.save("fortran.npy", np.asfortranarray(values))
        np.savez_compressed(self.folder / "a.npz", one=values, two=values[:5])
        self.tessera("export", "a.npy", "a.ra")
        makes = {
            "zmeta.zarr": ["--chunks", "10,10"],
            "v1.zarr": ["--format", "v1", "--chunks", "7,53", "--codec", "zlib:1"],
            "v2.zarr": ["--format", "v2", "--chunks", "37,1", "--codec", "none"],
            "v2f.zarr": ["--format", "v2", "--chunks", "5,5", "--order", "F"],
            "v3.zarr": ["--format", "v3", "--chunks", "16,16", "--codec", "zstd:3,crc32c"],
            "sharded.zarr": ["--format", "v3", "--chunks", "4,4", "--shard", "16,32"],
            "v2.zarr.zip": ["--format", "v2"],
        }
        for name, words in makes.items():
            self.tessera("copy", "a.npy", name, *words)
        self.tessera("copy", "big.npy", "big.zarr", "--format", "v2")
        paths = ["a.npy", "big.npy", "fortran.npy", "a.npz::one", "a.ra", "big.zarr", *makes]
        self.assertEqual(set(self.digest(*paths)), {python_digest(values)})
        self.assertNotEqual(self.digest("a.npz::two"), self.digest("a.npy"))
        for threads in (1, 2):
            self.assertEqual(self.digest("v3.zarr", "--threads", threads), [python_digest(values)])
        reported = self.tessera_json("digest", "a.npy")
        self.assertEqual(reported, [{"path": "a.npy", "digest": python_digest(values), "arrays": None}])

    def test_any_change_shows(self):
        values = np.arange(12.0).reshape(3, 4)
        others = [values.reshape(4, 3), values.astype("f4"), values.astype("i8"), values + np.eye(3, 4), values[:2]]
        zero = values.copy()
        zero[0, 0] = -0.0
        self.save("a.npy", values)
        for i, other in enumerate([*others, zero]):
            self.save(f"{i}.npy", other)
        self.assertEqual(len(set(self.digest("a.npy", *(f"{i}.npy" for i in range(len(others) + 1))))), len(others) + 2)


# ---- diff


class Diff(ProgramTest):
    def diff(self, a, b, *words):
        self.save("a.npy", a)
        self.save("b.npy", b)
        result = self.run_program("diff", "a.npy", "b.npy", "--json", *words)
        found = json.loads(result.stdout)
        self.assertEqual(result.returncode, 0 if found["equal"] else 1, result.stderr)
        return found

    def check(self, a, b, unequal, *words):
        """`unequal` says what NumPy finds."""
        found = self.diff(a, b, *words, "--places", 1000)
        places = [tuple(int(i) for i in place) for place in np.argwhere(unequal)]
        self.assertEqual(found["different"], len(places))
        self.assertEqual(found["elements"], a.size)
        self.assertEqual([tuple(one["index"]) for one in found["first"]], places[:1000])
        return found

    def test_bit_for_bit(self):
        for name, values in chosen(ARRAYS.items()):
            with self.subTest(name):
                self.assertEqual(self.diff(values, values)["different"], 0)
                swapped = values.astype(values.dtype.newbyteorder())
                self.assertTrue(self.diff(values, swapped)["equal"], "byte order is no difference")
                if values.size < 2:
                    continue
                other = values.copy(order="C")
                other.reshape(-1)[-1] = values.reshape(-1)[0]
                clean, changed = without_padding(values), without_padding(other)
                size = values.dtype.itemsize
                unequal = (np.frombuffer(clean.tobytes(), "u1").reshape(-1, size) !=
                           np.frombuffer(changed.tobytes(), "u1").reshape(-1, size)).any(axis=1)
                self.check(values, other, unequal.reshape(values.shape))

    def test_tolerance_is_that_of_isclose(self):
        for dtype in ("f2", "f4", "<f8", ">f8", "c8", "c16"):
            a = with_nan(normal(40, 30))
            a.flat[8] = 1.0
            if dtype.startswith("c"):
                # No infinite ones: NumPy multiplies them by 1 + 0j before it compares, which makes them NaN.
                a = a + 1j * normal(40, 30)
            else:
                a.flat[5], a.flat[6] = np.inf, -np.inf
            b = a * (1 + RANDOM.normal(scale=1e-3, size=a.shape))
            b.flat[8] = np.nan
            if not dtype.startswith("c"):
                b.flat[6] = np.inf
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                a, b = a.astype(dtype), b.astype(dtype)
                wide = [v.astype("c16" if dtype.startswith("c") else "f8") for v in (a, b)]
                for atol, rtol in [(0.1, 0), (0, 1e-3), (0.05, 5e-4)]:
                    with self.subTest(dtype=dtype, atol=atol, rtol=rtol):
                        unequal = ~np.isclose(*wide, atol=atol, rtol=rtol, equal_nan=True)
                        found = self.check(a, b, unequal, "--atol", atol, "--rtol", rtol)
                        self.assertEqual(found["largest"], "Infinity", "a NaN on one side alone")

    def test_largest_difference(self):
        a = normal(50, 60)
        b = a + normal(50, 60)
        found = self.check(a, b, a != b)
        distance = np.abs(a - b)
        self.assertEqual(found["largest"], distance.max())
        self.assertEqual(tuple(found["largest_at"]), np.unravel_index(distance.argmax(), a.shape))
        integers = np.array([0, 10, 250], "u1")
        found = self.check(integers, np.array([0, 20, 5], "u1"), [False, True, True])
        self.assertEqual((found["largest"], found["largest_at"]), (245, [2]))

    def test_other_types_compare_by_value(self):
        a = np.array([1, 2, 2**60 + 1])
        found = self.check(a, np.array([1.0, 2.5, 2.0**60]), [False, True, False])
        self.assertEqual(found["structure"], ["dtype <i8 is not <f8"])
        self.assertEqual(self.check(a, a.astype("u8"), [False] * 3)["equal"], False)
        self.assertEqual(self.check(a, np.array([1, 2, 2**60], "u8"), [False, False, True])["different"], 1)

    def test_every_pair_of_types(self):
        dtypes = ("?", "i1", ">u2", "<i4", "u8", ">i8", "f2", "<f4", ">f8", "c8", ">c16")
        for one in dtypes:
            a = RANDOM.integers(0, 2, 1500).astype(one)
            for other in chosen(dtypes):
                b = a.real.astype(other)
                b[RANDOM.integers(0, b.size, 5)] = RANDOM.integers(0, 2, 5)
                with self.subTest(a=one, b=other):
                    found = self.check(a, b, a.astype("c16") != b.astype("c16"))
                    self.assertEqual(found["largest"], 1.0 if found["different"] else None)

    def test_first_places_in_whatever_order_of_memory(self):
        a = np.asfortranarray(normal(40, 50, 60))
        b = a.copy(order="F")
        b[RANDOM.random(b.shape) < 0.004] += 1
        found = self.check(a, b, a != b)
        self.save("a.npy", a)
        self.tessera("import", "a.npy", "a.zarr", "--chunks", "40,50,1")
        chunked = json.loads(self.tessera("diff", "a.zarr", "b.npy", "--json", "--places", 1000, code=1))
        self.assertEqual(chunked, found)

    def test_structures_and_strings_that_differ(self):
        for values in (structured(STRUCTURE, 3000), structured(ALIGNED, 3000), ARRAYS["S more"], ARRAYS["M8 more"]):
            other = values.copy()
            changed = np.unique(RANDOM.integers(0, len(values), 20))
            other[changed] = values[(changed + 1) % len(values)]
            clean = [without_padding(v).tobytes() for v in (values, other)]
            rows = [np.frombuffer(c, "u1").reshape(len(values), -1) for c in clean]
            with self.subTest(values.dtype):
                found = self.check(values, other, (rows[0] != rows[1]).any(axis=1))
                self.assertIsNone(found["largest"])

    def test_what_cannot_be_compared(self):
        found = self.diff(np.zeros(3), np.zeros(4))
        self.assertEqual((found["structure"], found["elements"]), (["shape (3,) is not (4,)"], 0))
        found = self.diff(np.zeros(3), np.array(["a"] * 3))
        self.assertEqual(found["structure"], ["dtype <f8 is not <U1"])
        self.refused("diff", "a.npy", "b.npy", "--atol", "-1", says="0 or more")

    def test_as_a_person_reads_it(self):
        self.save("a.npy", np.arange(6.0).reshape(2, 3))
        self.save("b.npy", np.array([[0, 1, 2], [3, 4.5, 7]]))
        self.assertEqual(self.tessera("diff", "a.npy", "a.npy"), "all 6 elements are equal\n")
        self.assertEqual(self.tessera("diff", "a.npy", "b.npy", code=1),
                         "2 of 6 elements differ, at most by 2.0 at (1, 2)\n"
                         "  (1, 1)  4.0  4.5\n  (1, 2)  5.0  7.0\n")
        self.assertEqual(self.tessera("diff", "a.npy", "b.npy", "--places", 1, code=1).splitlines()[-1],
                         "  … (--places shows more than 1)")
        self.assertEqual(self.tessera("diff", "a.npy", "b.npy", "--quiet", code=1), "")

    def test_arrays_larger_than_the_budget(self):
        a = RANDOM.integers(0, 100, (200, 500, 40)).astype("<i4")  # 16 MB
        b = a.copy()
        b[17, 300, 5] += 7
        b[199, 499, 39] += 1
        self.save("a.npy", a)
        self.save("b.npy", b)
        self.tessera("import", "a.npy", "a.zarr", "--chunks", "50,100,40")
        found = json.loads(self.tessera("diff", "a.zarr", "b.npy", "--json", "--max-memory", "8M", code=1))
        self.assertEqual([one["index"] for one in found["first"]], [[17, 300, 5], [199, 499, 39]])
        self.assertEqual((found["largest"], found["largest_at"]), (7, [17, 300, 5]))
        for words in (["diff", "a.zarr", "b.npy"], ["stats", "a.zarr"]):
            line = self.refused(*words, "--max-memory", "1M", says="a memory budget of 1048576 bytes is too small")
            least = line.split("--max-memory ")[1]
            self.assertIn(self.run_program(*words, "--max-memory", least).returncode, (0, 1), "what it says is enough")


# ---- stats


def column_values(values, path):
    for name in path.split("."):
        values = values[name]
    return values


class Stats(ProgramTest):
    def stats(self, values):
        self.save("a.npy", values)
        return self.tessera_json("stats", "a.npy")

    def check_numbers(self, found, values):
        values = values.astype(values.dtype.newbyteorder("="))
        bad = np.isnan(values)
        good = values[~bad]
        self.assertEqual(found["nan"], int(bad.sum()))
        if values.dtype.kind == "c" or good.size == 0:
            self.assertIsNone(found["min"])
            return
        kind = {"f": float, "b": bool}.get(values.dtype.kind, int)
        for name, expected in (("min", good.min()), ("max", good.max())):
            shown = float(found[name]) if found[name] in ("Infinity", "-Infinity") else found[name]
            self.assertIs(type(shown), kind)
            self.assertEqual(values.dtype.type(shown), expected)
        with np.errstate(all="ignore"):
            # Integers of 64 bits are rounded to double first.
            exact = (good.astype("f8") if values.dtype.kind in "iu" else good).astype("longdouble")
            for name, expected, rtol in (("mean", exact.mean(), 1e-12), ("deviation", exact.std(), 1e-9)):
                if not np.isfinite(expected):
                    self.assertIsInstance(found[name], str)
                np.testing.assert_allclose(float(found[name]), float(expected), rtol=rtol, atol=1e-300)
        self.check_histogram(found.get("histogram"), good)

    def check_histogram(self, histogram, good):
        finite = good[np.isfinite(good)].astype("f8")
        if finite.size == 0:
            self.assertIsNone(histogram)
            return
        start, width, counts = histogram["start"], histogram["width"], histogram["counts"]
        self.assertEqual(math.frexp(width)[0], 0.5, "a power of two")
        self.assertEqual(start % width, 0)
        self.assertLessEqual(len(counts), 32)
        bins = (np.floor(finite / width) - start / width).astype(int)  # in this order nothing is rounded
        self.assertEqual(counts, np.bincount(bins, minlength=len(counts)).tolist())

    def check_times(self, found, values):
        good = values[~np.isnat(values)]
        self.assertEqual(found["nan"], int(np.isnat(values).sum()))
        if good.size == 0:
            self.assertIsNone(found["min"])
            return
        ticks = good.astype("i8")
        if values.dtype.kind == "M":
            mean = np.datetime64(found["mean"]) - np.datetime64(0, "s")
            np.testing.assert_allclose(mean / np.timedelta64(1, np.datetime_data(values.dtype)[0]), ticks.mean(), rtol=1e-9)
        else:
            np.testing.assert_allclose(found["mean"], ticks.mean(), rtol=1e-12)
        np.testing.assert_allclose(found["deviation"], ticks.std(), rtol=1e-12)
        if values.dtype.kind == "M":
            self.assertEqual(np.datetime64(found["min"]), good.min())
            self.assertEqual(np.datetime64(found["max"]), good.max())
        else:
            self.assertEqual((found["min"], found["max"]), (ticks.min(), ticks.max()))

    def check_text(self, found, values):
        texts = sorted(v.encode() if isinstance(v, str) else v for v in values.flat)
        self.assertEqual((found["min"].encode(), found["max"].encode()), (texts[0], texts[-1]))

    def test_every_type(self):
        for name, values in chosen(ARRAYS.items()):
            with self.subTest(name):
                if values.dtype.names is not None:
                    continue
                found = self.stats(values)
                self.assertEqual(found["count"], values.size)
                self.assertEqual(np.dtype(found["dtype"]), values.dtype.newbyteorder("="))
                if values.dtype.kind in "Mm":
                    self.check_times(found, values)
                elif values.dtype.kind in "SU":
                    self.check_text(found, values)
                else:
                    self.check_numbers(found, values)

    def test_byte_order_does_not_matter(self):
        for name, values in chosen(ARRAYS.items()):
            if values.dtype.names is None:
                with self.subTest(name):
                    self.assertEqual(self.stats(values), self.stats(values.astype(values.dtype.newbyteorder())))

    def test_chunks_do_not_matter_to_bins_and_extremes(self):
        for name in ("f8 with a few of everything", "i8 all of them", "u8 more", "f8 cancels", "f2"):
            values = ARRAYS[name].reshape(-1)
            whole = self.stats(values)
            self.tessera("import", "a.npy", "a.zarr", "--chunks", 37, "--overwrite")
            found = self.tessera_json("stats", "a.zarr", "--threads", 2)
            for what in ("count", "nan", "min", "max", "histogram"):
                with self.subTest(name, what=what):
                    self.assertEqual(found.get(what), whole.get(what))

    def test_negative_zero_is_less_than_zero(self):
        for dtype in ("f2", "<f4", ">f8"):
            for values, low, high in (([-0.0] * 3, "-0.0", "-0.0"), ([0.0, -0.0, 0.0], "-0.0", "0.0"),
                                      ([0.0, 0.0], "0.0", "0.0"), ([-0.0, 5.0], "-0.0", "5.0"),
                                      ([-1.0] * 2000 + [-0.0], "-1.0", "-0.0"), ([0.0] * 1500 + [-0.0], "-0.0", "0.0")):
                with self.subTest(dtype=dtype, values=values[-3:]):
                    found = self.stats(np.array(values, dtype))
                    self.assertEqual((repr(found["min"]), repr(found["max"])), (low, high))

    def test_without_histogram(self):
        values = with_nan(normal(3000))
        with_bins = self.stats(values)
        with_bins["histogram"] = None
        self.assertEqual(self.tessera_json("stats", "a.npy", "--bins", 0), with_bins)

    def test_fill_of_structures_field_by_field(self):
        dtype = np.dtype([("a", "u1"), ("b", "<i2", (2,)), ("c", "<f8")])
        values = np.zeros(2000, dtype)
        values["b"] = [7, 9]
        values["b"][::2] = [9, 7]
        values["c"] = RANDOM.integers(0, 2, 2000)
        self.save("a.npy", values)
        self.tessera("import", "a.npy", "a.zarr", "--format", "v2", "--chunks", "300", "--fill", "[0, [7, 9], 1.0]")
        found = {one["field"]: one["fill"] for one in self.tessera_json("stats", "a.zarr")["fields"]}
        self.assertEqual(found, {"a": 2000, "b": 2000, "c": int(values["c"].sum())})

    def test_every_field_of_structures(self):
        for dtype, fields in ((STRUCTURE, ["a", "b", "c", "n.x"]), (ALIGNED, ["k", "v"])):
            values = np.zeros(80, dtype)
            for field in fields:
                column = column_values(values, field)
                column[...] = RANDOM.integers(0, 200, column.shape)
            found = {one["field"]: one for one in self.stats(values)["fields"]}
            for field in fields:
                with self.subTest(field):
                    column = column_values(values, field)
                    self.assertEqual(found[field]["count"], column.size)
                    self.check_numbers(found[field], column)
            self.assertEqual(set(found) - set(fields), {"n.t"} if dtype is STRUCTURE else set())

    def test_fill_is_counted_bit_for_bit(self):
        values = np.array([[0.0, -0.0, 1.0], [np.nan, 0.0, 2.0]])
        self.save("a.npy", values)
        self.tessera("import", "a.npy", "zero.zarr", "--chunks", "1,2")
        self.tessera("import", "a.npy", "nan.zarr", "--fill", "NaN", "--chunks", "1,2")
        self.assertEqual(self.tessera_json("stats", "zero.zarr")["fill"], 2)
        self.assertEqual(self.tessera_json("stats", "nan.zarr")["fill"], 1)

    def test_chunks_threads_and_memory_do_not_matter(self):
        values = with_nan(normal(400, 301))
        self.save("a.npy", values)
        self.tessera("import", "a.npy", "a.zarr", "--chunks", "37,41", "--format", "v3", "--shard", "74,82")
        for words in ([], ["--threads", 1], ["--max-memory", "1M"]):
            with self.subTest(words):
                found = self.tessera_json("stats", "a.zarr", *words)
                self.assertEqual(found["count"], values.size)
                self.check_numbers(found, values)

    def test_bins(self):
        self.save("a.npy", np.arange(1000))
        self.assertLessEqual(len(self.tessera_json("stats", "a.npy", "--bins", 8)["histogram"]["counts"]), 8)
        self.refused("stats", "a.npy", "--bins", 1, says="bins")

    def test_along_an_axis(self):
        for name in chosen(("bool", "i2 big-endian", "f4", "f8 Fortran, some chunks", "i8", "c16 big-endian")):
            values = ARRAYS[name]
            self.save("a.npy", values)
            self.tessera("import", "a.npy", "a.zarr", "--chunks", ",".join(["7"] * values.ndim), "--overwrite")
            for path in ("a.npy", "a.zarr"):
                for axis in range(-1, values.ndim):
                    with self.subTest(name, path=path, axis=axis):
                        found = self.tessera_json("stats", path, "--axis", axis)
                        self.assertEqual(found["axis"], axis % values.ndim)
                        self.assertEqual(len(found["positions"]), values.shape[axis])
                        for i, (one, part) in enumerate(zip(found["positions"], np.moveaxis(values, axis, 0))):
                            self.assertEqual((one["position"], one["count"]), (i, part.size))
                            self.assertIsNone(one["histogram"])
                            self.check_means(one, part)

    def check_means(self, found, values):
        good = values[~np.isnan(values)]
        self.assertEqual(found["nan"], values.size - good.size)
        if values.dtype.kind == "c" or good.size == 0:
            self.assertIsNone(found["min"])
            return
        found_ends = np.array([found["min"], found["max"]], values.dtype)
        self.assertEqual(found_ends.tolist(), [good.min(), good.max()])
        exact = good.astype("longdouble")
        np.testing.assert_allclose(found["mean"], float(exact.mean()), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found["deviation"], float(exact.std()), rtol=1e-9, atol=1e-12)

    def test_along_an_axis_of_a_selection_of_fields_of_text_and_of_nothing(self):
        values = RANDOM.integers(-99, 99, (20, 30, 4))
        self.save("a.npy", values)
        found = self.tessera_json("stats", "a.npy", "--sel", "3, ::2, 1:", "--axis", 1)["positions"]
        self.assertEqual([one["max"] for one in found], values[3, ::2, 1:].max(0).tolist())
        rows = np.zeros((5, 40), STRUCTURE)
        rows["n"]["x"] = normal(5, 40)
        self.save("a.npy", rows)
        found = self.tessera_json("stats", "a.npy", "--axis", 0)["positions"]
        self.assertEqual([one["count"] for one in found], [40] * 5)
        self.assertEqual([one["fields"][3]["min"] for one in found], rows["n"]["x"].min(1).tolist())
        self.save("a.npy", np.array([["b", "a"], ["c", "é"]]))
        found = self.tessera_json("stats", "a.npy", "--axis", 1)["positions"]
        self.assertEqual([(one["min"], one["max"]) for one in found], [("b", "c"), ("a", "é")])
        self.save("a.npy", np.zeros((0, 3)))
        self.assertEqual(self.tessera_json("stats", "a.npy", "--axis", 0)["positions"], [])
        self.assertEqual([one["mean"] for one in self.tessera_json("stats", "a.npy", "--axis", 1)["positions"]], [None] * 3)

    def test_along_an_axis_as_a_table(self):
        self.save("a.npy", np.array([[1.0, np.nan], [4.0, 6.0]]))
        lines = [line.split() for line in self.tessera("stats", "a.npy", "--axis", 0).splitlines()]
        self.assertEqual(lines, [["axis", "0", "elements", "NaN", "min", "max", "mean", "deviation"],
                                 ["0", "2", "1", "1.0", "1.0", "1.0", "0.0"], ["1", "2", "0", "4.0", "6.0", "5.0", "1.0"]])

    def test_further_statistics(self):
        values = with_nan(normal(40, 30))
        self.save("a.npy", values)
        self.tessera("import", "a.npy", "a.zarr", "--chunks", "7,8", "--dims", "y,x", "--format", "v3", "--quiet")
        numpy = {"p95": lambda v, **k: np.nanpercentile(v, 95, **k), "median": np.nanmedian, "var": np.nanvar,
                 "p2.5": lambda v, **k: np.nanpercentile(v, 2.5, **k)}
        for path in "a.npy", "a.zarr":
            found = self.tessera_json("stats", path, "--with", "p95,median", "--with", "var,p2.5")["further"]
            self.assertEqual(list(found), ["p95", "median", "var", "p2.5"])
            part = self.tessera_json("stats", path, "--with", "p95,median,var,p2.5", "--sel", "3:33:2, 4")["further"]
            along = self.tessera_json("stats", path, "--with", "p95,median,var,p2.5", "--axis", 1, "--sel", "5:, 2:9")
            self.assertEqual(along["further"], {})
            for word, function in numpy.items():
                np.testing.assert_allclose(found[word], function(values), rtol=1e-12)
                np.testing.assert_allclose(part[word], function(values[3:33:2, 4]), rtol=1e-12)
                np.testing.assert_allclose([one["further"][word] for one in along["positions"]],
                                           function(values[5:, 2:9], axis=0), rtol=1e-12)
        self.assertRegex(self.tessera("stats", "a.npy", "--with", "median"), r"(?m)^median +-?[0-9.]+$")
        table = self.tessera("stats", "a.zarr", "--axis", "x", "--with", "median").splitlines()
        self.assertEqual(table[0].split()[-1], "median")
        self.assertEqual(len(table), 31)
        self.save("line.npy", np.arange(5))
        each = self.tessera_json("stats", "line.npy", "--axis", 0, "--with", "count,median")["positions"]
        self.assertEqual([one["further"] for one in each], [{"count": 1, "median": float(i)} for i in range(5)])
        self.save("one.npy", np.array(7))
        self.assertEqual(self.tessera_json("stats", "one.npy", "--with", "median")["further"], {"median": 7.0})
        self.refused("stats", "a.npy", "--with", "middle", says=["--with", "middle", "median"])
        self.save("table.npy", np.zeros(3, [("a", "f4")]))
        self.refused("stats", "table.npy", "--with", "median", says="table.npy")

    def test_no_such_axis_and_too_many_positions(self):
        self.save("a.npy", np.zeros((3, 200_000), "u1"))
        self.refused("stats", "a.npy", "--axis", 2, says="--axis")
        self.refused("stats", "a.npy", "--axis", 0, "--bins", 8, says="--bins")
        self.refused("stats", "a.npy", "--axis", 1, "--max-memory", "16M", says="--max-memory")
        self.save("a.npy", np.array(1))
        self.refused("stats", "a.npy", "--axis", 0, says=["a.npy", "no dimension"])

    def test_an_example_of_the_original_program(self):
        self.assertEqual(self.tessera_json("stats", EXAMPLE)["count"], np.load(EXAMPLE).size)


EXAMPLE = next(iter(sorted((GOLDEN / "npy").glob("*.npy"))))

def dandi(folder):
    """DANDI's checksum, as zarr_checksum 0.4 describes it: (text, files, bytes)."""
    directories, files, count, size = [], [], 0, 0
    for path in sorted(folder.iterdir(), key=lambda p: p.name):
        if path.name == ".tessera":
            continue
        if path.is_dir():
            text, inner, bytes_below = dandi(path)
            directories.append({"digest": text, "name": path.name, "size": bytes_below})
            count, size = count + inner, size + bytes_below
        else:
            data = path.read_bytes()
            files.append({"digest": hashlib.md5(data).hexdigest(), "name": path.name, "size": len(data)})
            count, size = count + 1, size + len(data)
    text = json.dumps({"directories": directories, "files": files}, separators=(",", ":"))
    return f"{hashlib.md5(text.encode()).hexdigest()}-{count}--{size}", count, size


class SumsOfFiles(ProgramTest):
    def make(self):
        np.save(self.folder / "a.npy", RANDOM.integers(0, 9, (40, 30)))
        self.tessera("group", "g", "--format", "v3", "--quiet")
        for name in "x", "y.z", "\u00e4 \"b\"", "sub/x":
            self.tessera("import", "a.npy", f"g/{name}", "--format", "v3", "--chunks", "7,30", "--quiet")
        self.tessera("set", "g/x", "3,4", "7", "--quiet")  # leaves a record for undo, which is no part of it

    def test_dandi(self):
        self.make()
        for path in "g", "g/x", "g/sub/":
            self.assertEqual(self.tessera("digest", "--dandi", path),
                             f"{dandi(self.folder / path)[0]}  {path}\n")
        self.refused("digest", "--dandi", "a.npy", says="a.npy")

    def test_each(self):
        self.make()
        for path in "g/", "g/y.z":
            lines = self.tessera("digest", "--each", path)
            done = subprocess.run(["sha256sum", "--check", "--strict", "--quiet"], input=lines, text=True,
                                  cwd=self.folder, capture_output=True)
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
            there = [p for p in (self.folder / path).rglob("*") if p.is_file() and ".tessera" not in p.parts]
            self.assertEqual(len(lines.splitlines()), len(there))
        self.refused("digest", "--each", "--dandi", "g", says="--dandi")
        done = self.run_program("digest", "--each", "--json", "g")
        self.assertEqual((done.returncode, done.stdout), (2, ""))


if __name__ == "__main__":
    main()
