"""--keep-bits and --max-error: beside NumPy and numcodecs, and the bit information as it was published."""

import json
import unittest

import numpy as np

from program import ProgramTest, main

try:
    from numcodecs.bitround import BitRound
except ImportError:
    BitRound = None

RANDOM = np.random.default_rng(39)


def smooth(shape, noise):
    """A field of neighbours that are alike, with noise of a relative size."""
    y, x = np.mgrid[0:shape[0], 0:shape[1]]
    return (280 + 20 * np.sin(x / 40) * np.cos(y / 30)) * (1 + noise * RANDOM.normal(size=shape))


def published_bits(array):
    """keepbits at 99 % by mutual information of bits of neighbours (Klöwer and others 2021), for a float32 array."""
    found = []
    for axis in range(array.ndim):
        bits = np.moveaxis(array, axis, 0).view("<u4")
        a, b = bits[:-1].ravel(), bits[1:].ravel()
        n = a.size
        information = []
        for bit in range(31, -1, -1):
            p, q = (a >> bit) & 1, (b >> bit) & 1
            joint = np.array([[np.sum((p == i) & (q == j)) for j in (0, 1)] for i in (0, 1)]) / n
            product = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
            with np.errstate(all="ignore"):
                information.append(np.nansum(joint * np.log2(joint / product)))
        chance = 0.5 + 2.5758293035489004 / (2 * np.sqrt(n))
        limit = 1 + chance * np.log2(chance) + (1 - chance) * np.log2(1 - chance)
        information = np.array(information)
        information[information <= limit] = 0
        information[information <= 1.5 * information[-4:].max()] = 0
        total = np.cumsum(information)
        found.append(int(np.argmax(total >= 0.99 * total[-1])) + 1 - 9)
    return max(0, *found)


class Rounding(ProgramTest):
    def rounded(self, array, *words):
        self.save("x.npy", array)
        self.tessera("copy", "x.npy", "x.zarr", "--overwrite", "--quiet", *words)
        return self.exported("x.zarr")

    def record(self, path="x.zarr"):
        return self.tessera_json("attrs", path)["rounded"]

    @unittest.skipIf(BitRound is None, "numcodecs is not installed")
    def test_kept_bits_are_those_of_numcodecs(self):
        for dtype in "<f2", "<f4", "<f8", ">f4":
            values = (RANDOM.normal(size=3000) * 10.0 ** RANDOM.integers(-3, 4, 3000)).astype(dtype)
            values = values[np.abs(values) >= np.finfo(dtype).tiny]
            for bits in 0, 1, 5, 9:
                with self.subTest(dtype=dtype, bits=bits):
                    native = values.astype(values.dtype.newbyteorder("="))
                    expected = BitRound(bits).decode(BitRound(bits).encode(native.copy())).view(native.dtype)
                    np.testing.assert_array_equal(self.rounded(values, "--keep-bits", bits), expected)
                    self.assertEqual(self.record(), [{"keep_bits": bits, "max_relative_error": 2.0 ** -(bits + 1)}])

    def test_the_error_keeps_its_bound(self):
        for dtype in "<f2", "<f4", ">f8", "<c8", "|i1", "<u2", "<i8":
            limits = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else None
            values = RANDOM.integers(limits.min, limits.max, 3000, endpoint=True).astype(dtype) if limits else \
                (RANDOM.normal(size=3000) * 10.0 ** RANDOM.integers(-3, 4, 3000)).astype(dtype)
            for error in 0.004, 1, 3.7, 100:
                with self.subTest(dtype=dtype, error=error):
                    made = self.rounded(values, "--max-error", error)
                    exact = values.astype(object) - made.astype(object)
                    parts = np.array([max(abs(v.real), abs(v.imag)) for v in exact], float)
                    self.assertLessEqual(parts.max(), error)
                    if error >= 1 and values.dtype.itemsize < 8:
                        self.assertLess(len(np.unique(made)), len(np.unique(values)))
                    self.assertEqual(self.record(), [{"max_error": error}])

    def test_what_stands_for_something_else_stays(self):
        values = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1e20, 9.96921e36, 1234.5678, 3.4028235e38, 1e-40], "<f4")
        self.save("x.npy", values)
        self.tessera("import", "x.npy", "x.zarr", "--format", "v2", "--fill", "1e20", "--quiet")
        self.tessera("attrs", "x.zarr", "set", "_FillValue", "9.96921e36", "--quiet")
        for words in ("--keep-bits", 2), ("--max-error", 1e3):
            self.tessera("copy", "x.zarr", "y.zarr", "--overwrite", "--quiet", *words)
            made = self.exported("y.zarr")
            kept = np.r_[0:7]
            self.assertEqual(made[kept].tobytes(), values[kept].tobytes())
            self.assertNotEqual(made[7], values[7])
            self.assertTrue(np.isfinite(made[8]))

    def test_no_number_becomes_a_missing_one(self):
        self.save("x.npy", np.array([8, 8.2, 7.9, 100.3], "<f4"))
        self.tessera("import", "x.npy", "x.zarr", "--format", "v2", "--fill", "8", "--quiet")
        self.tessera("copy", "x.zarr", "y.zarr", "--max-error", 0.5, "--quiet")
        self.assertEqual(self.exported("y.zarr").tolist(), [8, np.float32(8.2), np.float32(7.9), 100])

    def test_automatic_bits_are_the_published_ones(self):
        for noise in 1e-2, 1e-3, 1e-5:
            values = smooth((200, 300), noise).astype("<f4")
            with self.subTest(noise=noise):
                self.save("x.npy", values)
                self.tessera("import", "x.npy", "whole.zarr", "--chunks", "200,300", "--overwrite", "--quiet")
                result = self.run_program("copy", "whole.zarr", "x.zarr", "--keep-bits", "auto", "--overwrite")
                bits = published_bits(values)
                self.assertIn(f"note: whole.zarr: {bits} bits of the fraction hold 99 % of the information", result.stderr)
                self.assertEqual(self.record()[0]["keep_bits"], bits)
        self.save("noise.npy", RANDOM.integers(0, 2**32, 10000, "u4").view("<f4"))
        self.tessera("import", "noise.npy", "noise.zarr", "--quiet")
        result = self.run_program("copy", "noise.zarr", "n.zarr", "--keep-bits", "auto")
        self.assertIn("noise.zarr is not rounded: its elements share no information", result.stderr)
        self.tessera("diff", "noise.zarr", "n.zarr")
        self.save("few.npy", smooth((40, 50), 1e-3))
        self.assertIn("too few to tell", self.run_program("copy", "few.npy", "few.zarr", "--keep-bits", "auto").stderr)
        self.tessera("diff", "few.npy", "few.zarr")

    def test_a_copy_keeps_all_else_and_takes_less_room(self):
        self.save("x.npy", smooth((90, 80), 1e-3).astype("<f4"))
        self.tessera("import", "x.npy", "x.zarr", "--format", "v3", "--chunks", "30,40", "--codec", "shuffle,zstd:7", "--fill", "-1",
                     "--dims", "y,x", "--quiet")
        self.tessera("attrs", "x.zarr", "set", "units", "K", "--quiet")
        self.tessera("copy", "x.zarr", "y.zarr", "--keep-bits", 6, "--quiet")
        self.tessera("copy", "y.zarr", "z.zarr", "--max-error", 0.5, "--quiet")
        before, after = (self.tessera_json("info", path) for path in ("x.zarr", "z.zarr"))
        for key in "format", "chunks", "codec", "fill_value", "dimensions":
            self.assertEqual(before.get(key), after.get(key), key)
        self.assertLess(after["stored_bytes"], 0.7 * before["stored_bytes"])
        self.assertEqual(self.tessera_json("attrs", "z.zarr"),
                         {"units": "K", "rounded": [{"keep_bits": 6, "max_relative_error": 2**-7}, {"max_error": 0.5}]})

    def test_in_a_group_only_what_was_measured_is_rounded(self):
        for name, values, dims in (("t", smooth((20, 30), 1e-3).astype("<f4"), "y,x"), ("x", np.linspace(0, 1, 30), "x"),
                                   ("n", np.arange(30), "x"), ("s", np.array(["a", "b"]), "k")):
            self.save("a.npy", values)
            self.tessera("import", "a.npy", f"g/{name}", "--format", "v3", "--dims", dims, "--quiet")
        places = np.random.default_rng(1).normal(size=(20, 30))
        for name, attributes in (("xlat", {"units": "degrees_north"}), ("xlon", {"standard_name": "longitude"}),
                                 ("height", {"axis": "Z"})):
            self.save("a.npy", places)
            self.tessera("import", "a.npy", f"g/{name}", "--format", "v3", "--dims", "y,x", "--quiet")
            for key, value in attributes.items():
                self.tessera("attrs", f"g/{name}", "set", key, json.dumps(value), "--quiet")
        self.tessera("group", "g", "--quiet")
        result = self.run_program("copy", "g", "h", "--keep-bits", 4)
        self.assertEqual(result.returncode, 0, result.stderr)
        for name in "xlat", "xlon", "height":
            np.testing.assert_array_equal(self.exported(f"h/{name}"), places)
        for text in ("g/x is not rounded: it is a coordinate", "g/n is not rounded: integers", "g/s is not rounded: it holds <U1"):
            self.assertIn(text, result.stderr)
        for name in "xns":
            np.testing.assert_array_equal(self.exported(f"h/{name}"), self.exported(f"g/{name}"))
            self.assertNotIn("rounded", self.tessera_json("attrs", f"h/{name}"))
        self.assertGreater(np.abs(self.exported("h/t") - self.exported("g/t")).max(), 0)

    def test_what_is_refused(self):
        self.save("x.npy", np.ones(3))
        self.refused("copy", "x.npy", "y", "--keep-bits", 3, "--max-error", 1, says="--max-error: choose it or --keep-bits")
        for word in "-1", "53", "x", "3.5":
            self.refused("copy", "x.npy", "y", f"--keep-bits={word}", says=["--keep-bits", "0 to 52, or auto"])
        for word in "0", "-1", "nan", "inf", "x":
            self.refused("copy", "x.npy", "y", f"--max-error={word}", says=["--max-error", "a number above 0"])
        self.tessera("import", "x.npy", "x.zarr", "--quiet")
        self.refused("copy", "x.zarr", "y", "--keep-bits", 3, "--link", says="--link")
        self.assertFalse((self.folder / "y").exists())

    def test_an_unfinished_copy_does_not_go_on_with_other_bits(self):
        self.save("x.npy", smooth((40, 40), 1e-3))
        self.tessera("import", "x.npy", "x.zarr", "--chunks", "10,10", "--quiet")
        (self.folder / "x.zarr/__zdata__/3.3.blosc").write_bytes(b"damaged")
        self.tessera("copy", "x.zarr", "y.zarr", "--keep-bits", 3, "--resume", "--threads", 1, code=2)
        self.assertIn("unfinished", self.tessera("copy", "x.zarr", "y.zarr", "--keep-bits", 4, "--resume", code=2) or
                      self.run_program("copy", "x.zarr", "y.zarr", "--keep-bits", 4, "--resume").stderr)

    def test_in_other_formats_names_and_fill_go_on(self):
        self.save("x.npy", smooth((4, 5), 1e-3).astype("<f4"))
        self.tessera("import", "x.npy", "x.zarr", "--format", "v3", "--dims", "y,x", "--fill", "-9", "--quiet")
        self.tessera("copy", "x.zarr", "y.zarr", "--format", "v2", "--keep-bits", 5, "--quiet")
        attributes = self.tessera_json("attrs", "y.zarr")
        self.assertEqual((attributes["_ARRAY_DIMENSIONS"], self.tessera_json("info", "y.zarr")["fill_value"]), (["y", "x"], -9))

    def test_within_the_memory_budget(self):
        self.tessera("create", "big.zarr", "--shape", "3000,3000", "--dtype", "<f8", "--chunks", "300,300", "--fill", "1.2345", "--quiet")
        self.tessera("set", "big.zarr", "0:300, 0:300", "2.3456", "--quiet")
        self.tessera("copy", "big.zarr", "small.zarr", "--keep-bits", "auto", "--max-memory", "24M", "--quiet", code=0)

    def test_no_number_becomes_the_fill_of_the_destination_nor_leaves_it(self):
        values = np.array([1.2, -998.9999, 0.3, -999.25, 5.7])
        np.save(self.folder / "x.npy", values)
        for fill, error, expected in [("-999", "0.5", [1, -998.9999, 0, -999.25, 6]), ("-999.25", "0.5", [1, -999, 0, -999.25, 6]),
                                      ("0", "0.5", [1, -999, 0.3, -999, 6]), ("-992", "16", [0, -998.9999, 0, -999.25, 0])]:
            for form in ("v2", "v3"):
                with self.subTest(fill=fill, form=form):
                    self.tessera("copy", "x.npy", "r", "--format", form, "--fill", fill, "--max-error", error, "--quiet",
                                 "--overwrite")
                    self.tessera("get", "r", "--out", "out.npy", "--overwrite")
                    np.testing.assert_array_equal(np.load(self.folder / "out.npy"), expected)
        # A fill of 0 stands for nothing missing in v3, but in v2 and netCDF it does.
        self.tessera("copy", "x.npy", "zero", "--format", "v3", "--quiet")
        for to, made in [("z3", 0), ("z2", 0.3)]:
            self.tessera("copy", "zero", to, "--format", f"v{to[1]}", "--max-error", "0.5", "--quiet")
            self.tessera("get", to, "2", "--out", "out.npy", "--overwrite")
            self.assertEqual(np.load(self.folder / "out.npy"), made)


if __name__ == "__main__":
    main()
