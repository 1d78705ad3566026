"""Tables as text: what is written reads back bit for bit, also by NumPy and Python's csv, and what is wrong is named by
line and column."""
import csv
import io

import numpy as np

from program import ProgramTest, main


def random_values(rng, dtype, shape):
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0, 256, count * dtype.itemsize, "u1").view(dtype).reshape(shape)
    if dtype.kind in "fc":
        part = np.dtype(f"{dtype.byteorder}f{dtype.itemsize // (2 if dtype.kind == 'c' else 1)}")
        bits = rng.integers(0, 256, count * dtype.itemsize, "u1").view(part)
        bits[np.isnan(bits)] = np.nan
        bits[:6] = [0.0, -0.0, 0.1, np.inf, -np.inf, 1e-7][:len(bits)]
        return bits.view(dtype).reshape(shape)
    if dtype.kind in "mM":
        return rng.integers(-10**6, 10**6, shape).astype(dtype)
    words = ["a", "", "a,b", 'say "x"', " edge ", "line\nbreak", "12", "é"]
    return rng.choice(words[:-1] if dtype.kind == "S" else words, shape).astype(dtype)


class Csv(ProgramTest):
    def test_every_dtype_reads_back_bit_for_bit(self):
        rng = np.random.default_rng(3)
        for dtype in ("b1", "i1", "<i2", ">i4", "<i8", "u1", ">u2", "<u4", "<u8", "<f2", ">f4", "<f4", "<f8", ">f8", "<c8",
                      "<c16", "M8[s]", "M8[D]", "m8[ms]", "S9", "<U10"):
            for shape in (40,), (30, 7), (1, 5):
                with self.subTest(dtype=dtype, shape=shape):
                    values = random_values(rng, dtype, shape)
                    if values.dtype.kind in "US" and shape == (1, 5):
                        continue
                    self.save("a.npy", values)
                    self.tessera("copy", "a.npy", "a.csv", "--overwrite", "--quiet")
                    self.tessera("copy", "a.csv", "b.npy", "--dtype", dtype, "--overwrite", "--quiet")
                    back = np.load(self.folder / "b.npy")
                    self.assertEqual((back.dtype, back.shape), (values.dtype, values.shape))
                    self.assertEqual(back.tobytes(), values.tobytes())
                    text = (self.folder / "a.csv").read_bytes().decode()
                    rows = list(csv.reader(io.StringIO(text, newline="")))
                    self.assertEqual(len(rows), shape[0])
                    if np.dtype(dtype).kind in "iuf":
                        theirs = np.loadtxt(self.folder / "a.csv", dtype, delimiter=",", ndmin=len(shape))
                        self.assertEqual(theirs.reshape(shape).astype(dtype).tobytes(), values.tobytes())
                    if np.dtype(dtype).kind == "U":
                        self.assertEqual(np.array(rows).reshape(shape).tolist(), values.tolist())

    def test_every_format_in_and_out(self):
        values = np.random.default_rng(4).random((20, 3))
        self.save("a.npy", values)
        for fmt in "zmeta", "v1", "v2", "v3":
            self.tessera("import", "a.npy", f"{fmt}.zarr", "--format", fmt, "--chunks", "7,2", "--quiet")
            self.tessera("export", f"{fmt}.zarr", f"{fmt}.csv", "--quiet")
            self.tessera("import", f"{fmt}.csv", f"{fmt}.back", "--format", fmt, "--quiet")
            np.testing.assert_array_equal(self.exported(f"{fmt}.back"), values)
            self.assertEqual(self.tessera("get", f"{fmt}.zarr", "--csv"), (self.folder / f"{fmt}.csv").read_text())
        for end in "npz", "ra", "mldf":
            self.tessera("copy", "v2.csv", f"a.{end}", "--quiet")
            self.tessera("copy", f"a.{end}", f"{end}.csv", "--quiet")
            self.assertEqual((self.folder / f"{end}.csv").read_text(), (self.folder / "v2.csv").read_text())
        self.tessera("set", "v2.zarr", "...", "v3.csv", "--quiet")
        self.tessera("append", "v2.zarr", "v3.csv", "--quiet")
        np.testing.assert_array_equal(self.exported("v2.zarr"), np.concatenate([values, values]))
        self.assertIn("equal", self.tessera("diff", "a.npy", "v1.csv"))
        self.assertEqual(self.tessera("get", "v1.zarr", "3:5, :2", "--csv"),
                         "".join(f"{a!r},{b!r}\n" for a, b in values[3:5, :2].tolist()))

    def test_structures_have_a_header(self):
        dtype = np.dtype([("day", "M8[D]"), ("open", "<f4"), ("name", "U8"), ("pair", ">i2", (2,)), ("in", [("x", "<f8")])])
        values = np.zeros(3, dtype)
        values["day"] = ["2020-01-01", "NaT", "2021-12-31"]
        values["open"] = [0.1, np.nan, 3e30]
        values["name"] = ["a,b", "", 'q"']
        values["pair"] = [[1, 2], [3, 4], [5, -6]]
        values["in"]["x"] = [1, 2.5, -0.0]
        self.save("s.npy", values)
        self.tessera("export", "s.npy", "s.csv", "--quiet")
        self.assertEqual((self.folder / "s.csv").read_text(),
                         'day,open,name,pair[0],pair[1],in.x\n2020-01-01,0.1,"a,b",1,2,1.0\nNaT,nan,,3,4,2.5\n'
                         '2021-12-31,3e+30,"q""",5,-6,-0.0\n')
        self.tessera("import", "s.csv", "s.zarr", "--dtype", str(dtype.descr), "--format", "v2", "--quiet")
        self.assertEqual(self.exported("s.zarr").tobytes(), values.tobytes())
        wrong = str(dtype.descr).replace("'open'", "'close'")
        self.refused("import", "s.csv", "t.zarr", "--dtype", wrong, says=["line 1, column 2", "'open'", "'close'"])

    def test_what_is_found_out(self):
        for text, dtype, values in [
                ("1,2\n3,-4\n", "<i8", [[1, 2], [3, -4]]), ("1,2.5\n3,4\n", "<f8", [[1, 2.5], [3, 4]]),
                ("1\n18446744073709551615\n", "<u8", [1, 2**64 - 1]), ("true,false\nFalse,True\n", "|b1", [[True, False], [False, True]]),
                ("a,b\n1,2.5\n3,4", "[('a', '<i8'), ('b', '<f8')]", [(1, 2.5), (3, 4)]),
                ("\ufeffn,t\r\n1,x\r\n2,\r\n", "[('n', '<i8'), ('t', '<U1')]", [(1, "x"), (2, "")]),
                ('1,"x\ny"\n', "[('f0', '<i8'), ('f1', '<U3')]", [(1, "x\ny")]), ("b,b\nc,d\n", "<U1", [["b", "b"], ["c", "d"]]),
                ("-0,+1\n-00,7\n", "<i8", [[0, 1], [0, 7]]), ("-.5,5.\n1e3, 2\n", "<f8", [[-0.5, 5], [1e3, 2]]),
                ("-1234567890123456789\r1\r", "<i8", [-1234567890123456789, 1]), ("1.2.3,4\n.,--1\n", "<U5", [["1.2.3", "4"], [".", "--1"]]),
                ('1,a"b, "c"\n2,"d""e",é!\n', "[('f0', '<i8'), ('f1', '<U3'), ('f2', '<U4')]", [(1, 'a"b', ' "c"'), (2, 'd"e', "é!")]),
                ("x,y\n" + 30000 * '1234567,"0"\n1234567,1\n', "[('x', '<i8'), ('y', '<i8')]", 30000 * [(1234567, 0), (1234567, 1)])]:
            (self.folder / "t.csv").write_bytes(text.encode())
            self.tessera("copy", "t.csv", "t.npy", "--overwrite", "--quiet")
            back = np.load(self.folder / "t.npy")
            self.assertEqual(self.tessera_json("info", "t.csv")["dtype"], dtype)
            self.assertEqual(back.tolist(), values)
        (self.folder / "t.csv").write_text("x,y\n1,2\n")
        self.tessera("copy", "t.csv", "t.npy", "--dtype", "<f4", "--overwrite", "--quiet")
        self.assertEqual(np.load(self.folder / "t.npy").tolist(), [[1, 2]])
        self.tessera("copy", "t.csv", "t.npy", "--header", "no", "--overwrite", "--quiet")
        self.assertEqual(np.load(self.folder / "t.npy").tolist(), [["x", "y"], ["1", "2"]])

    def test_what_is_wrong_is_named_by_its_place(self):
        before = None
        for text, words, says in [
                ("1,2\n3\n", [], ["line 2, column 2", "1 columns", "2"]), ("1,2\n3,4,5\n", [], ["line 2", "3 columns"]),
                ("1,2\n3,x\n", ["--dtype", "f8"], ["line 2, column 2", "<f8", "'x'"]),
                ("1\n300\n", ["--dtype", "u1"], ["line 2, column 1", "'300'", "does not fit"]),
                ("1\n-1\n", ["--dtype", "u4"], ["line 2, column 1", "'-1'"]), ("1\n2.5\n", ["--dtype", "i4"], ["line 2", "'2.5'"]),
                ("1,2\n3,\n", [], ["line 2, column 2", "missing"]), ('1,"2\n3', [], ["line 1, column 2", "never closed"]),
                ('1,"2"x\n', [], ["line 1, column 2", "closing quote"]), ("", [], ["no row"]), ("a,b\n", [], ["a header and no row"]),
                ("1\n99999999999999999999\n", [], ["line 2, column 1", "--dtype f8"]),
                ("1\n-1\n18446744073709551615\n", [], ["--dtype f8"]), ("abc\nabcd\n", ["--dtype", "U3"], ["line 2, column 1"]),
                ("1,2\n", ["--dtype", "[('a', 'i4')]"], ["2 columns", "1"]), ("1,2\n", ["--header", "maybe"], ["--header"])]:
            with self.subTest(text=text):
                (self.folder / "t.csv").write_text(text)
                before = before or sorted(p.name for p in self.folder.iterdir())
                self.refused("import", "t.csv", "t.zarr", *words, says=says)
                self.refused("copy", "t.csv", "t.npy", *words, says=says)
                self.assertEqual(sorted(p.name for p in self.folder.iterdir()), before)
        (self.folder / "t.csv").write_bytes(b"a\xff,1\n")
        self.refused("import", "t.csv", "t.zarr", says=["line 1, column 1", "UTF-8"])
        self.save("cube.npy", np.zeros((2, 2, 2)))
        self.refused("export", "cube.npy", "cube.csv", says=["(2, 2, 2)", "--sel"])
        self.tessera("export", "cube.npy", "cube.csv", "--sel", "0", "--quiet")
        self.refused("import", "cube.npy", "x.zarr", "--header", "no", says=["--header", "only for .csv"])

    def test_numbers_that_are_missing(self):
        nan = np.nan
        for text, words, dtype, values in [
                ("1.5,2\n,4\n", [], "<f8", [[1.5, 2], [nan, 4]]),
                ("a,b,n\n1.5,x,1\nNA,,2\n N/A ,NA,3\n", [], "[('a', '<f8'), ('b', '<U2'), ('n', '<i8')]",
                 [(1.5, "x", 1), (nan, "", 2), (nan, "NA", 3)]),
                ("NA\n1.5\nnull\n", [], "<f8", [nan, 1.5, nan]), ("day\n2020-01-01\nNA\n", [], "[('day', '<M8[D]')]", None),
                ("1,2\n3,\n", ["--missing", "-9999"], "<i8", [[1, 2], [3, -9999]]),
                ("1,2\n3,\n", ["--missing", "nan"], "<f8", [[1, 2], [3, nan]]),
                ("a,b\n1,0.5\nNA,\n", ["--missing", "0"], "[('a', '<i8'), ('b', '<f8')]", [(1, 0.5), (0, 0.0)]),
                ("a,day\n1,2020-01-01\n,\n", ["--missing", "-1"], "[('a', '<i8'), ('day', '<M8[D]')]", None),
                ("1,2\n3,\n", ["--dtype", "f4"], "<f4", [[1, 2], [3, nan]]),
                ("true\n\nfalse\n", ["--missing", "false"], "|b1", [True, False, False]),
                ("a,b\n1,NA\n2,\n", [], "[('a', '<i8'), ('b', '<U2')]", [(1, "NA"), (2, "")]),
                ("1,NA\n2,\n", ["--missing", "nan"], "<f8", [[1, nan], [2, nan]])]:
            with self.subTest(text=text, words=words):
                (self.folder / "t.csv").write_text(text)
                self.tessera("copy", "t.csv", "t.npy", "--overwrite", "--quiet", *words)
                back = np.load(self.folder / "t.npy")
                self.assertEqual(str(back.dtype.descr if back.dtype.names else back.dtype.str), dtype)
                if values is not None:
                    wanted = np.array(values, back.dtype)
                    for name in back.dtype.names or [...]:
                        np.testing.assert_array_equal(back[name], wanted[name])
                else:
                    self.assertTrue(np.isnat(back["day"][1]))
        for text, words, says in [
                ("1,2\n3,\n", [], ["line 2, column 2", "''", "missing"]), ("a,b\n1,2\nNA,3\n", [], ["line 3, column 1", "missing"]),
                ("1,NA\n2,\n", [], ["line 1, column 2", "missing"]),
                ("1,2\n3,NA\n", ["--dtype", "i4"], ["line 2, column 2", "'NA'", "missing"]),
                ("1\nNA\n", ["--missing", "none"], ["line 2, column 1", "'none'"]),
                ("true\nNA\n", ["--missing", "7"], ["line 2, column 1", "'7'"]),
                ("1\nNA\n", ["--dtype", "u1", "--missing", "-1"], ["line 2, column 1", "'-1'"])]:
            with self.subTest(text=text, words=words):
                (self.folder / "t.csv").write_text(text)
                self.refused("import", "t.csv", "t.zarr", *words, says=says)
                self.assertFalse((self.folder / "t.zarr").exists())
        self.save("plain.npy", np.zeros(3))
        self.refused("import", "plain.npy", "t.zarr", "--missing", "0", says=["--missing", "only for .csv"])

    def test_other_separators_are_named(self):
        for text, name in [("1\t2\n3\t4\n5\t6\n", "tabs"), ("a;b\n1,5;2,5\n", "semicolons"), ("a;b\n1;2\n3;4\n", "semicolons"),
                           ("a\tb\n1\t2\n", "tabs"), ("x y\tz\n", "tabs")]:
            with self.subTest(text=text):
                (self.folder / "t.csv").write_text(text)
                self.refused("import", "t.csv", "t.zarr", says=["t.csv", name, "commas"])
                self.refused("info", "t.csv", says=name)
        # Text is no table: as many in each line are needed, and no quotes.
        for text in ('"a;b"\n"c;d"\n', "name\nx;y\nz\n", "a; b\nc\n", "one\ttwo\nthree\n"):
            with self.subTest(text=text):
                (self.folder / "t.csv").write_text(text)
                self.tessera("copy", "t.csv", "t.npy", "--overwrite", "--quiet")
        (self.folder / "t.csv").write_text("1\t2\n3\t4\n")
        self.tessera("copy", "t.csv", "t.npy", "--dtype", "U3", "--overwrite", "--quiet")
        self.assertEqual(np.load(self.folder / "t.npy").tolist(), ["1\t2", "3\t4"])

    def test_many_rows_within_the_budget(self):
        values = np.random.default_rng(8).integers(0, 10**9, (300000, 4))
        self.save("a.npy", values)
        self.tessera("export", "a.npy", "a.csv", "--quiet", "--max-memory", "4M")
        self.tessera("import", "a.csv", "a.zarr", "--quiet", "--max-memory", "4M")
        np.testing.assert_array_equal(self.exported("a.zarr"), values)
        self.assertEqual(self.tessera_json("get", "a.csv", "250000:250002, 1:3"), values[250000:250002, 1:3].tolist())

    def test_digits_that_a_float_would_lose_are_refused(self):
        """An integer beside a fraction, and beside a missing one in a table, would become a float without a word."""
        for rows in ("1.5\n9007199254740993\n", "9223372036854775809\n0.5\n", "-9007199254740993\n0.5\n",
                     "18446744073709551615\n0.5\n"):
            (self.folder / "wide.csv").write_text(rows)
            self.refused("import", "wide.csv", "wide.zarr", says=["--dtype f8", "digits"])
        for rows, want in (("0.5\n9007199254740992\n", [0.5, 2.0**53]), ("0.5\n-9223372036854775808\n", [0.5, -2.0**63])):
            (self.folder / "fits.csv").write_text(rows)
            self.tessera("import", "fits.csv", "fits.zarr", "--overwrite", "--quiet")
            self.assertEqual(self.exported("fits.zarr").tolist(), want)
        (self.folder / "t.csv").write_text("x,v\n0,9007199254740993\n1,\n")
        self.refused("copy", "t.csv", "t.zarr", "--dims", "x", says="--dtype f8")
        self.tessera("copy", "t.csv", "t.zarr", "--dims", "x", "--missing", "-1", "--quiet")
        self.assertEqual(self.tessera_json("get", "t.zarr/v"), [9007199254740993, None])


if __name__ == "__main__":
    main()
