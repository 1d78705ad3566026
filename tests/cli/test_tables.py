"""Tables: dates in text, several fields by one path, and rows that meet a condition; compared with NumPy."""

import subprocess

import numpy as np

from program import PROGRAM, ProgramTest, main

RANDOM = np.random.default_rng(7)


class Dates(ProgramTest):
    def read(self, text, *words):
        (self.folder / "t.csv").write_text(text)
        self.tessera("import", "t.csv", "t.zarr", "--format", "v2", "--overwrite", "--quiet", *words)
        return self.exported("t.zarr")

    def test_each_unit(self):
        for cells, dtype in ((["2020-01-31", "1969-12-31"], "M8[D]"), (["2020-01-31T12:30", "2020-01-31"], "M8[s]"),
                             (["2020-01-31 12:30:05", "2020-02-29"], "M8[s]"), (["2020-01-31T12:30:05.5"], "M8[ms]"),
                             (["2020-01-31T12:30:05.123456", "0001-01-01"], "M8[us]"),
                             (["2020-01-31 12:30:05.123456789"], "M8[ns]"), (["2020-01-31T00:00:00Z"], "M8[s]")):
            with self.subTest(cells=cells):
                found = self.read("\n".join(cells) + "\n")
                self.assertEqual(found.dtype, np.dtype(dtype))
                np.testing.assert_array_equal(found, np.array([cell.replace("Z", "") for cell in cells], dtype))

    def test_columns(self):
        found = self.read("day,open,name\n2020-01-01,1.5,a\nNaT,2.5,b\n,3.5,c\n2020-12-31,4.5,2020-01-01\n")
        self.assertEqual(found.dtype, np.dtype([("day", "<M8[D]"), ("open", "<f8"), ("name", "<U10")]))
        np.testing.assert_array_equal(found["day"], np.array(["2020-01-01", "NaT", "NaT", "2020-12-31"], "M8[D]"))
        found = self.read("2020-01-01,1\n2020-01-02,2\n")
        self.assertEqual(found.dtype.names, ("f0", "f1"), "a date in the first row is no name of a column")
        self.assertEqual(found.shape, (2,))

    def test_what_is_no_date_stays_text(self):
        for cells in (["2020-13-01"], ["2020-02-30"], ["2020-01-01", "soon"], ["2020-1-1"], ["20-01-01"],
                      ["2020-01-01T12:30:05.1234567891"], ["NaT", "nat"], ["2020-01-01", "1.5"],
                      ["2500-01-01T00:00:00.123456789"]):
            with self.subTest(cells=cells):
                self.assertEqual(self.read("\n".join(cells) + "\n", "--header", "no").dtype.kind, "U")

    def test_there_and_back(self):
        text = "2020-01-01T00:00:00.001,1\n1999-12-31T23:59:59.999,2\n"
        self.read(text, "--header", "no")
        self.tessera("export", "t.zarr", "back.csv", "--quiet")
        self.assertEqual((self.folder / "back.csv").read_text(), "f0,f1\n" + text)


class Table(ProgramTest):
    def setUp(self):
        super().setUp()
        dtype = np.dtype([("day", "<M8[D]"), ("open", "<f8"), ("close", ">f4"), ("volume", "<i8"), ("pair", "<i2", (2,))])
        self.values = np.zeros(5000, dtype)
        self.values["day"] = np.datetime64("2000-01-01") + np.arange(5000)
        self.values["open"] = RANDOM.normal(100, 10, 5000)
        self.values["close"] = RANDOM.normal(100, 10, 5000)
        self.values["volume"] = RANDOM.integers(0, 100, 5000)
        self.values["pair"] = RANDOM.integers(0, 100, (5000, 2))
        self.save("t.npy", self.values)
        self.tessera("import", "t.npy", "t.zarr", "--format", "v2", "--chunks", "300", "--quiet")

    def got(self, path, *words):
        self.tessera("get", path, *words, "--out", "got.npy", "--overwrite", "--quiet")
        return np.load(self.folder / "got.npy")

    def test_several_fields(self):
        for path in ("t.zarr", "t.npy"):
            found = self.got(f"{path}::close,day,pair", "10:20")
            self.assertEqual(found.dtype, np.dtype([("close", ">f4"), ("day", "<M8[D]"), ("pair", "<i2", (2,))]))
            for name in found.dtype.names:
                np.testing.assert_array_equal(found[name], self.values[name][10:20])
        self.assertEqual(self.tessera("get", "t.zarr::day, volume", ":1", "--csv"), f"day,volume\n2000-01-01,{self.values['volume'][0]}\n")
        self.tessera("copy", "t.zarr::open,close", "two.zarr", "--format", "v2", "--quiet")
        np.testing.assert_array_equal(self.exported("two.zarr")["close"], self.values["close"])
        self.refused("get", "t.zarr::open,none", says=["none", "close"])
        self.refused("get", "t.zarr::open,open", says="twice")
        self.refused("set", "t.zarr::open,close", "0", "[1, 2]")
        self.save("c.npy", np.ones(3, [("a,b", "i4"), ("a", "i4")]))
        self.assertEqual(self.got("c.npy::a,b").dtype, np.dtype("i4"), "a field of that very name comes first")

    def test_rows_by_condition(self):
        v = self.values
        for condition, rows in (("close > 110", v["close"] > 110),
                                ("(volume < 5) & (open > close)", (v["volume"] < 5) & (v["open"] > v["close"])),
                                ("day >= datetime64('2013-01-01')", v["day"] >= np.datetime64("2013-01-01")),
                                ("volume > 1000", v["volume"] > 1000), ("volume >= 0", v["volume"] >= 0)):
            for path in ("t.zarr", "t.npy"):
                with self.subTest(condition=condition, path=path):
                    np.testing.assert_array_equal(self.got(path, "--where", condition), v[rows])
        few = v[v["volume"] == 7]
        np.testing.assert_array_equal(self.got("t.zarr", "2:5", "--where", "volume == 7"), few[2:5])
        self.tessera("copy", "t.zarr", "few.zarr", "--where", "volume == 7", "--quiet")
        np.testing.assert_array_equal(self.exported("few.zarr"), few)
        self.tessera("export", "t.zarr", "few.csv", "--where", "volume == 7", "--quiet")
        piped = subprocess.run([PROGRAM, "export", "t.zarr", "-", "--where", "volume == 7"], cwd=self.folder,
                               capture_output=True, check=True).stdout
        (self.folder / "piped.npy").write_bytes(piped)
        np.testing.assert_array_equal(np.load(self.folder / "piped.npy"), few)
        shown = self.tessera("get", "t.zarr::day,volume", "--where", "volume == 7", "--csv").splitlines()
        self.assertEqual(len(shown), len(few) + 1)

    def test_text_with_a_condition(self):
        (self.folder / "t.csv").write_text("day,close\n2020-01-01,99\n2020-01-02,101\n2020-01-03,103\n")
        self.assertEqual(self.tessera("get", "t.csv", "--where", "close > 100", "--csv"),
                         "day,close\n2020-01-02,101\n2020-01-03,103\n")

    def test_rows_by_text(self):
        names = np.array(["Graz", "Wien", "Linz", "", "Graz ", "close"])
        for dtype in ("U6", "S6", ">U8"):
            v = np.zeros(6, [("station", dtype), ("close", "i4")])
            v["station"], v["close"] = names, range(6)
            self.save("s.npy", v)
            self.tessera("import", "s.npy", "s.zarr", "--overwrite", "--quiet")
            for condition, rows in (("station == 'Graz'", names == "Graz"), ('"Graz" != station', names != "Graz"),
                                    ("(station >= 'Linz') & (close > 1)", (names >= "Linz") & (v["close"] > 1)),
                                    ("'Linz' > station", names < "Linz"), ("station == 'close'", names == "close"),
                                    ("~(station == 'a text of more than six')", names == names),
                                    ("(station == 'Graz') | (station == 'Wien')", (names == "Graz") | (names == "Wien"))):
                for path in ("s.zarr", "s.npy"):
                    with self.subTest(condition=condition, path=path, dtype=dtype):
                        np.testing.assert_array_equal(self.got(path, "--where", condition), v[rows])
        (self.folder / "t.csv").write_text("station,t\nGraz,9\nWien,8\nGraz,7\n")
        self.assertEqual(self.tessera("get", "t.csv", "--where", "station == 'Graz'", "--csv"), "station,t\nGraz,9\nGraz,7\n")
        self.refused("get", "t.csv", "--where", "t == 'Graz'", says="station == 'Graz'")
        self.refused("get", "t.csv", "--where", "t + 'Graz' == 7", says="text stands")
        self.refused("get", "t.csv", "--where", "station == 7", says="not computed with")

    def test_refusals(self):
        self.refused("get", "t.zarr", "--where", "volume + 1", says="true or false")
        self.refused("get", "t.zarr", "--where", "nothing > 1", says="nothing")
        self.refused("get", "t.zarr", "--where", "volume >", says="volume >")
        self.save("plain.npy", np.arange(5))
        self.refused("get", "plain.npy", "--where", "x > 1", says="the operands are value")
        self.refused("copy", "t.zarr", "out.zarr", "--where", "volume + 1", says="true or false")
        self.assertFalse((self.folder / "out.zarr").exists())

    def test_within_a_budget(self):
        large = np.zeros(2_000_000, [("a", "<i8"), ("b", "<f8")])
        large["a"] = np.arange(2_000_000)
        self.save("large.npy", large)
        self.tessera("export", "large.npy", "some.npy", "--where", "a % 1000 == 7", "--max-memory", "8M", "--quiet")
        np.testing.assert_array_equal(np.load(self.folder / "some.npy"), large[7::1000])
        self.refused("export", "large.npy", "all.npy", "--where", "a >= 0", "--max-memory", "8M", says="--max-memory")


if __name__ == "__main__":
    main()
