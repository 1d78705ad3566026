"""Elements for which a condition holds: all others are missing, and chunks in which nothing can match are not read."""

import os
import shutil
import subprocess
import time
import unittest

import numpy as np

from program import PROGRAM, ProgramTest, chosen, main, zarr

SETTLED = 0.15  # seconds after which a change is older than any clock's grain


class Where(ProgramTest):
    def setUp(self):
        super().setUp()
        chance = np.random.default_rng(5)
        self.values = np.rint(chance.normal(size=(60, 50)) * 9)
        self.values[12:15, 33] = 99

    def make(self, values, *words):
        self.save("values.npy", values)
        self.tessera("import", "values.npy", "a.zarr", "--chunks", "10,10", "--quiet", "--overwrite", "--format", "v3", *words)

    def chunks_opened(self, *words):
        """The files of chunks of a.zarr that a command opens."""
        trace = self.folder / "trace"
        options = os.environ | {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        subprocess.run(["strace", "-f", "-qq", "-e", "signal=none", "-e", "trace=open,openat,openat2", "-o", trace, PROGRAM,
                        *map(str, words)], cwd=self.folder, env=options, check=True, capture_output=True)
        names = [line.split('"')[1] for line in trace.read_text().splitlines() if '"' in line and "O_DIRECTORY" not in line]
        return {name for name in names if name.startswith("c/") and ".tmp" not in name}

    def test_copy(self):
        """What xarray's `where` keeps, and its chunks, codecs and dtype where these can say what is missing."""
        for dtype, attributes in (("<f4", {}), (">f8", {}), ("<i2", {"_FillValue": 30000}), ("<i2", {}), ("|u1", {}),
                                  ("<i8", {}), ("<i2", {"_FillValue": 30000, "scale_factor": 0.5, "add_offset": 1.0})):
            values = (np.abs(self.values) if dtype[1] == "u" else self.values).astype(dtype)
            for words in (), ("--shards", "20,20"):
                self.make(values, "--codec", "zstd:3", *words)
                for name, value in attributes.items():
                    self.tessera("attrs", "a.zarr", "set", name, str(value))
                native = values.astype("f8") * attributes.get("scale_factor", 1) + attributes.get("add_offset", 0)
                for condition, meets in chosen((
                        ("value > 20", native > 20), ("(value > 3) & (value <= 9)", (native > 3) & (native <= 9)),
                        ("(value < 2) | (value > 15)", (native < 2) | (native > 15)), ("value > 1e6", native > 1e6))):
                    for index in False, True:
                        if index:
                            time.sleep(SETTLED)
                            self.tessera("index", "a.zarr", "--quiet")
                        self.tessera("copy", "a.zarr", "b.zarr", "--where", condition, "--overwrite", "--quiet")
                        with self.subTest(dtype=dtype, attributes=attributes, words=words, condition=condition, index=index):
                            info = self.tessera_json("info", "b.zarr")
                            widens = dtype[1] in "iu" and not attributes
                            self.assertEqual(info["dtype"], "<i8" if widens else dtype)
                            self.assertEqual(info["chunks"], [10, 10])
                            if not widens:
                                self.assertEqual((info["codecs"], info.get("shards")),
                                                 (self.tessera_json("info", "a.zarr")["codecs"], [20, 20] if words else None))
                            codes = self.exported("b.zarr")
                            missing = info["attributes"].get("_FillValue")
                            kept = ~np.isnan(codes) if dtype[1] == "f" else codes != missing
                            np.testing.assert_array_equal(kept, meets)
                            np.testing.assert_array_equal(codes[meets], values[meets])

    def test_only_what_may_match_is_read(self):
        if shutil.which("strace") is None:
            self.skipTest("no strace")
        for words in (), ("--shards", "20,20"):
            self.make(self.values.astype("<f4"), *words)
            time.sleep(SETTLED)
            self.tessera("index", "a.zarr", "--quiet")
            # Of new shards the indices are read.
            for command in (["get", "a.zarr", "--all"], ["copy", "a.zarr", "b.npy", "--overwrite"],
                            *([] if words else [["copy", "a.zarr", "b.zarr", "--overwrite", *more] for more in ([], ["--sel", "5:40, 12:"])])):
                opened = self.chunks_opened(*command, "--where", "value > 90")
                self.assertEqual(opened, {"c/0/1"} if words else {"c/1/3"}, command)
            self.tessera("set", "a.zarr", "55,45", "200")
            self.assertEqual(self.chunks_opened("copy", "a.zarr", "b.npy", "--overwrite", "--where", "value > 90"),
                             {"c/0/1", "c/2/2"} if words else {"c/1/3", "c/5/4"})
            self.assertEqual(np.argwhere(~np.isnan(np.load(self.folder / "b.npy"))).tolist(),
                             [[12, 33], [13, 33], [14, 33], [55, 45]])

    def test_calc(self):
        """`where` with a constant for all else, beside a calculation of all, and beside NumPy."""
        traces = shutil.which("strace") is not None
        for dtype, attributes in ("<f4", {}), (">f8", {}), ("<i2", {}), ("<i2", {"_FillValue": 30000, "scale_factor": 0.5}):
            values = self.values.astype(dtype)
            self.make(values)
            for name, value in attributes.items():
                self.tessera("attrs", "a.zarr", "set", name, str(value))
            native = values.astype("f8") * 0.5 if attributes else values.astype(values.dtype.newbyteorder("="))
            time.sleep(SETTLED)
            self.tessera("index", "a.zarr", "--quiet")
            for text, expected in (("where(a > 45, a * 2, -1)", np.where(native > 45, native * 2, -1)),
                                   ("where((45 < a) & (a <= 99), a, nan)", np.where((45 < native) & (native <= 99), native, np.nan)),
                                   ("where(a >= 45.0, True, False)", native >= 45), ("where(a > 45, b, 0.25)", np.where(native > 45, self.values, 0.25))):
                words = [text, "a=a.zarr", *(["b=values.npy"] if "b" in text else [])]
                self.save("values.npy", self.values)
                with self.subTest(dtype=dtype, attributes=attributes, text=text):
                    self.tessera("calc", "out.npy", *words, "--overwrite", "--quiet")
                    found = np.load(self.folder / "out.npy")
                    np.testing.assert_array_equal(found, expected)
                    if traces:
                        self.assertEqual(self.chunks_opened("calc", "out.npy", *words, "--overwrite"), {"c/1/3"})
            for text in "where(a < 45, 1, 0)", "where(a > 45, 0, a)", "where((a > 45) | (a < 3), 1, 0)", "a > 45", "where(a != 45, 1, 0)":
                self.tessera("calc", "out.npy", text, "a=a.zarr", "--overwrite", "--quiet")
                a, where = native, np.where
                np.testing.assert_array_equal(np.load(self.folder / "out.npy"), eval(text))
            # Codes are other numbers; a part has no index.
            self.tessera("calc", "out.npy", "where(a > 45, a, 0)", "a=a.zarr", "--raw", "--overwrite", "--quiet")
            np.testing.assert_array_equal(np.load(self.folder / "out.npy"), np.where(values > 45, values, 0))
            self.tessera("calc", "out.npy", "where(a > 45, a, 0)", "a=a.zarr", "--sel", "5:20, 30:", "--overwrite", "--quiet")
            np.testing.assert_array_equal(np.load(self.folder / "out.npy"), np.where(native > 45, native, 0)[5:20, 30:])

    def test_sparse(self):
        """What cannot match is not stored where the fill is the marker, and nobody goes through 10^10 chunks."""
        self.tessera("create", "a.zarr", "--shape", "10000000,10000000", "--chunks", "100,100", "--dtype", "<f4", "--fill", "nan", "--format", "v3")
        for place, value in ("5,5", "7"), ("5,6", "1"), ("9999999,9999999", "2"):
            self.tessera("set", "a.zarr", place, value)
        self.tessera("copy", "a.zarr", "b.zarr", "--where", "value > 6", "--quiet")
        self.assertEqual(self.tessera_json("info", "b.zarr")["chunks_stored"], 1)
        self.assertEqual(self.tessera_json("get", "b.zarr", "5,4:8"), [None, 7.0, None, None])

    def test_shown(self):
        self.make(np.arange(6, dtype="<i2").reshape(2, 3))
        self.assertEqual(self.tessera("get", "a.zarr", "--where", "value > 3"), "[[-- -- --]\n [--  4  5]]\n")
        self.assertEqual(self.tessera("get", "a.zarr", "1,1:", "--where", "value != 4"), "[--  5]\n")
        self.assertEqual(self.tessera_json("get", "a.zarr", "--where", "value > 3"), [[None, None, None], [None, 4, 5]])
        self.assertEqual(self.tessera("get", "a.zarr", "--where", "value > 3", "--csv"), ",,\n,4,5\n")
        self.tessera("get", "a.zarr", "--where", "value > 3", "--out", "part.npy", "--dtype", "f8", "--quiet")
        self.tessera("copy", "values.npy", "c.npy", "--where", "value > 3", "--quiet")
        for name in "c.npy",:
            self.assertEqual(np.load(self.folder / name).tolist(), [[-2**63] * 3, [-2**63, 4, 5]])
        self.make(np.arange(6, dtype="<f4").reshape(2, 3))
        self.assertEqual(self.tessera("get", "a.zarr", "1", "--where", "value > 3"), "[ -- 4.0 5.0]\n")
        self.save("t.npy", np.arange(4).astype("M8[D]"))
        self.assertEqual(self.tessera("get", "t.npy", "--where", "value >= datetime64('1970-01-03')"),
                         "[       NaT        NaT 1970-01-03 1970-01-04]\n")

    def test_refusals(self):
        self.make(self.values)
        self.refused("copy", "a.zarr", "b.zarr", "--where", "value + 1", says="true or false")
        self.refused("get", "a.zarr", "--where", "x > 1", says="the operands are value")
        self.save("b.npy", self.values > 3)
        self.refused("get", "b.npy", "--where", "value", says="no element can be missing")
        self.save("s.npy", np.array(["a", "b"]))
        self.refused("get", "s.npy", "--where", "value == 'a'", says="no element can be missing")
        self.tessera("group", "g.zarr")
        for name in "x", "y":
            self.tessera("import", "values.npy", f"g.zarr/{name}", "--quiet")
        self.refused("copy", "g.zarr", "h.zarr", "--where", "value > 3", says="expected one array")
        self.assertFalse((self.folder / "h.zarr").exists())

    def test_coordinates_and_resuming(self):
        self.tessera("group", "g.zarr", "--format", "v3")
        self.save("t.npy", self.values.astype("<f4"))
        self.save("lat.npy", np.arange(60.0) / 2)
        self.tessera("import", "t.npy", "g.zarr/t", "--dims", "lat,x", "--chunks", "10,10", "--quiet")
        self.tessera("import", "lat.npy", "g.zarr/lat", "--dims", "lat", "--quiet")
        self.assertEqual(self.tessera_json("get", "g.zarr/t", "lat=6, x@32:35", "--where", "value > 50", "--quiet"), [None, 99.0, None])
        self.tessera("copy", "g.zarr/t", "part.zarr", "--sel", "lat=6:7", "--where", "value > 50", "--quiet")
        found = self.exported("part.zarr")
        self.assertEqual(np.argwhere(~np.isnan(found)).tolist(), [[0, 33], [1, 33], [2, 33]])
        self.assertEqual(self.tessera_json("info", "part.zarr")["dimension_names"], ["lat", "x"])
        # A copy by another condition is another copy.
        chunk = self.folder / "g.zarr" / "t" / "c" / "5" / "4"
        good = chunk.read_bytes()
        chunk.write_bytes(b"damaged")
        self.run_program("copy", "g.zarr/t", "half.zarr", "--where", "value > 3", "--resume")
        chunk.write_bytes(good)
        self.refused("copy", "g.zarr/t", "half.zarr", "--where", "value > 4", "--resume", says="value > 3")

    def test_zarr_reads_it(self):
        if zarr is None or int(zarr.__version__.split(".")[0]) < 3 and "v3" not in dir(zarr):
            self.make(self.values.astype("<i2"))
            self.tessera("attrs", "a.zarr", "set", "_FillValue", "-999")
            self.tessera("copy", "a.zarr", "b.zarr", "--where", "value > 20", "--format", "v2", "--quiet")
            if zarr is None:
                self.skipTest("no zarr")
            found = zarr.open(str(self.folder / "b.zarr"), mode="r")[:]
            np.testing.assert_array_equal(found, np.where(self.values > 20, self.values, -999))


if __name__ == "__main__":
    main()
