"""`seal --readme`: the programs on the page, run by a bare Python, for each format and codec."""

import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import numpy as np

from program import ProgramTest, main, module_folder

PAGE = "README.tessera.txt"
VALUES = np.arange(24 * 30, dtype="<i4").reshape(24, 30) - 200


def programs(page):
    """The indented lines of each layout."""
    for section in re.split(r"(?m)^Layout \d+\n-+$", page)[1:]:
        yield textwrap.dedent("\n".join(line for line in section.splitlines() if not line or line.startswith("    ")))


class ReadmePage(ProgramTest):
    def run_page(self, folder):
        """What the programs print, without any package: (path, index, value) as text."""
        lines = []
        for code in programs((self.folder / folder / PAGE).read_text()):
            if not code.strip():
                continue
            done = subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=self.folder / folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, code + done.stderr)
            lines += done.stdout.splitlines()
        return lines

    def sealed(self, values, *options, folder="a.zarr"):
        self.save("values.npy", values)
        shutil.rmtree(self.folder / folder, ignore_errors=True)  # the seal refuses --overwrite
        self.tessera("import", "values.npy", folder, "--quiet", *options)
        self.tessera("seal", folder, "--readme", "--quiet")
        return self.run_page(folder)

    def check(self, values, *options):
        lines = self.sealed(values, *options)
        first, last = tuple(0 for _ in values.shape), tuple(n - 1 for n in values.shape)
        self.assertEqual(lines, [f". {index} {values[index].item()!r}" for index in (first, last)])

    def test_each_codec_of_each_format(self):
        codecs = {"zmeta": ["blosc:zstd:5:shuffle", "blosc:blosclz:9:bitshuffle"],
                  "v1": ["none", "zlib:1", "bz2", "lzma", "blosc:lz4"],
                  "v2": ["none", "gzip", "zlib", "bz2", "lzma", "lz4", "zstd:3", "blosc:zlib", "shuffle,zstd", "crc32,gzip",
                         "adler32,zlib", "fletcher32"],
                  "v3": ["none", "gzip", "zstd", "blosc:lz4hc:9:noshuffle", "shuffle,gzip,crc32c", "zlib", "lz4"]}
        for format, codec in ((f, c) for f, all_of in codecs.items() for c in all_of):
            with self.subTest(format=format, codec=codec):
                self.check(VALUES, "--chunks", "7,11", "--format", format, "--codec", codec)

    def test_each_dtype_and_order(self):
        rng = np.random.default_rng(59)
        dtypes = ["|b1", "|i1", "|u1", "<i2", ">i2", "<u4", ">i8", "<u8", "<f2", ">f4", "<f8", "<c8", ">c16"]
        for dtype, format, order in itertools.product(dtypes, ("v2", "v3"), "CF"):
            with self.subTest(dtype=dtype, format=format, order=order):
                values = (rng.random((5, 6, 7)) * 100).astype(dtype)
                self.check(values, "--chunks", "2,4,3", "--format", format, "--order", order, "--codec", "zlib")
        for values in (np.array(["äöü", "", "end"]), np.array([b"ab", b"c"], "S3"), np.array(7.5), np.array([1.5])):
            with self.subTest(values=values):
                self.check(values, "--format", "v2", "--codec", "gzip")
        times = np.array(["2020-01-31T12:00", "1950-01-01T00:00"], "M8[s]")
        self.assertEqual(self.sealed(times, "--format", "v2")[0], f". (0,) {times.astype('i8')[0]}")
        pair = np.array([(1, 2.5), (3, 4.5)], [("a", "<i4"), ("b", "<f8")])
        self.assertEqual(self.sealed(pair, "--format", "v2")[1], f". (1,) {pair[1].tobytes()}")

    def test_shards_fill_and_texts(self):
        for codec in ("none", "gzip", "zstd"):
            self.check(VALUES, "--format", "v3", "--chunks", "3,5", "--shards", "12,15", "--codec", codec)
        sparse = np.zeros((40, 40), "<f4")
        sparse[0, 0] = 2.5
        self.check(sparse, "--format", "v3", "--chunks", "5,5", "--shards", "10,20")
        self.check(sparse, "--format", "v2", "--chunks", "5,5", "--fill", "0")
        self.tessera("create", "empty.zarr", "--shape", "3,4", "--dtype", "<i2", "--fill", "-9", "--format", "v3", "--quiet")
        self.tessera("seal", "empty.zarr", "--readme", "--quiet")
        self.assertEqual(self.run_page("empty.zarr"), [". (0, 0) -9", ". (2, 3) -9"])
        self.tessera("create", "texts.zarr", "--shape", "5", "--dtype", "string", "--chunks", "4", "--format", "v3", "--quiet")
        for index, text in (0, "one"), (1, "zwei"), (4, "fünf"):
            self.tessera("set", "texts.zarr", str(index), text, "--quiet")
        self.tessera("seal", "texts.zarr", "--readme", "--quiet")
        self.assertEqual(self.run_page("texts.zarr"), [". (0,) 'one'", ". (4,) 'fünf'"])

    def test_a_group_in_one_page(self):
        self.save("values.npy", VALUES)
        for name, how in (("a", "gzip"), ("sub/b", "gzip"), ("c", "zstd")):
            self.tessera("import", "values.npy", f"g.zarr/{name}", "--format", "v3", "--codec", how, "--chunks", "10,10", "--quiet")
        self.tessera("seal", "g.zarr", "--readme", "--quiet")
        found = self.run_page("g.zarr")
        self.assertEqual(sorted(found), sorted(f"{p} {i} {VALUES[i]}" for p in ("a", "c", "sub/b") for i in ((0, 0), (23, 29))))
        self.assertEqual((self.folder / "g.zarr" / PAGE).read_text().count("\nLayout "), 2)

    def test_what_no_short_program_reads_is_named(self):
        self.save("values.npy", VALUES.astype("f8"))
        for codec, name in (("fixedscaleoffset:0:1:<i4", "fixedscaleoffset"), ("delta", "delta"), ("quantize:2:<f4", "quantize")):
            self.tessera("import", "values.npy", f"{name}.zarr", "--format", "v3", "--codec", codec, "--quiet")
            self.tessera("seal", f"{name}.zarr", "--readme", "--quiet")
            page = (self.folder / f"{name}.zarr" / PAGE).read_text()
            self.assertRegex(page, f"No short program reads this layout: a decoder of .*{name} is needed")
            self.assertNotIn("def element", page)

    def test_it_is_a_part_of_what_is_sealed(self):
        self.sealed(VALUES, "--format", "v3", "--chunks", "6,10")
        manifest = self.folder / "a.zarr/.tessera/sha256sums.txt"
        self.assertIn(PAGE, manifest.read_text())
        self.assertNotIn(PAGE, self.tessera("verify", "a.zarr", "--verbose"))
        self.assertIn("nothing changed", self.tessera("seal", "a.zarr"))  # the page neither
        self.tessera("set", "a.zarr", "-1,-1", "7", "--break-seal", "--quiet")
        self.tessera("seal", "a.zarr", "--quiet")  # renews it
        self.assertEqual(self.run_page("a.zarr")[1], ". (23, 29) 7")
        self.tessera("verify", "a.zarr")
        self.tessera("snapshot", "a.zarr", "create", "one", "--quiet")
        self.tessera("verify", "a.zarr.snapshots/one")
        self.assertEqual(self.run_page("a.zarr.snapshots/one")[1], ". (23, 29) 7")
        self.tessera("seal", "a.zarr", "--bagit", "bag", "--quiet")
        self.assertEqual(self.run_page("bag/data/a.zarr")[1], ". (23, 29) 7")
        (self.folder / "a.zarr" / PAGE).write_text("something else")
        self.assertIn(PAGE, self.tessera("verify", "a.zarr", code=1))
        self.tessera("rm", "a.zarr", "--break-seal", "--quiet")
        self.assertFalse((self.folder / "a.zarr").exists())

    def test_a_seal_that_is_refused_leaves_the_page(self):
        self.sealed(VALUES, "--format", "v3", "--chunks", "12,15", "--codec", "none")
        page = self.folder / "a.zarr" / PAGE
        before = page.read_text()
        chunk = self.folder / "a.zarr/c/0/0"
        chunk.write_bytes(b"\1" + chunk.read_bytes()[1:])  # the first element, of which the page tells
        self.refused("seal", "a.zarr", says="c/0/0")
        self.assertEqual(page.read_text(), before)
        self.tessera("seal", "a.zarr", "--accept", "c/0/0", "--quiet")
        self.assertNotEqual(page.read_text(), before)
        self.assertTrue(self.run_page("a.zarr"))
        self.tessera("verify", "a.zarr", "--quiet")
        # As after a kill between the page and the seal.
        page.write_text(before)
        self.tessera("seal", "a.zarr", "--quiet")
        self.tessera("verify", "a.zarr", "--quiet")
        self.assertFalse(self.tessera_json("seal", "a.zarr", "--readme")["written"])

    def test_where_no_page_can_be(self):
        self.save("values.npy", VALUES)
        self.refused("seal", "values.npy", "--readme", says="into the folder of an array or a group")
        self.tessera("import", "values.npy", "a.zarr", "--quiet")
        self.assertIn("--readme", self.run_program("seal", "a.zarr", "--readme", "--bagit", "bag").stderr)
        self.assertFalse((self.folder / "bag").exists())

    def test_names_and_texts_that_want_to_be_program(self):
        self.save("values.npy", VALUES)
        name = "a\n    open('made', 'w')  # \"\\"
        self.tessera("import", "values.npy", f"g.zarr/{name}", "--format", "v3", "--codec", "gzip", "--chunks", "10,10", "--quiet")
        self.tessera("create", "g.zarr/texts", "--shape", "1", "--dtype", "string", "--format", "v3", "--quiet")
        self.tessera("set", "g.zarr/texts", "0", "x\n    open('made', 'w')", "--quiet")
        self.tessera("create", "g.zarr/long", "--shape", "1", "--dtype", "string", "--format", "v3", "--quiet")
        self.tessera("set", "g.zarr/long", "0", "x" * 2000, "--quiet")
        self.tessera("seal", "g.zarr", "--readme", "--quiet")
        self.assertEqual(len(self.run_page("g.zarr")), 6)  # a name with a line break takes two lines, twice
        self.assertFalse((self.folder / "g.zarr/made").exists())
        self.assertIn("2000 bytes, too many", (self.folder / "g.zarr" / PAGE).read_text())
        # An array whose codec nobody knows.
        self.tessera("import", "values.npy", "u.zarr", "--format", "v3", "--codec", "gzip", "--chunks", "10,10", "--quiet")
        document = json.loads((self.folder / "u.zarr/zarr.json").read_text())
        document["codecs"][1]["name"] = "u\n    open('made', 'w')"
        (self.folder / "u.zarr/zarr.json").write_text(json.dumps(document))
        self.tessera("seal", "u.zarr", "--readme", "--unchecked", "--quiet")
        self.assertEqual(self.run_page("u.zarr"), [])

    def test_layouts_that_fit_no_array(self):
        self.save("values.npy", VALUES)
        for name, how in (("plain", ()), ("shards", ("--shards", "20,20"))):
            self.tessera("import", "values.npy", f"{name}.zarr", "--format", "v3", "--order", "F", "--chunks", "10,10", *how, "--quiet")
        turn = lambda codecs: codecs[0]["configuration"].update(order=[5, 9999999])
        spoilt = [("plain", turn), ("shards", lambda codecs: turn(codecs[0]["configuration"]["codecs"]))]
        spoilt += [("shards", lambda codecs, n=n: codecs[0]["configuration"].update(chunk_shape=n)) for n in ([0, 2], [2] * 20)]
        for number, (name, spoil) in enumerate(spoilt):
            shutil.copytree(self.folder / f"{name}.zarr", self.folder / f"g{number}/a")
            document = json.loads((self.folder / f"{name}.zarr/zarr.json").read_text())
            spoil(document["codecs"])
            (self.folder / f"g{number}/a/zarr.json").write_text(json.dumps(document))
            (self.folder / f"g{number}/zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
            with self.subTest(number=number):
                self.tessera("seal", f"g{number}", "--readme", "--unchecked", "--quiet")
                self.assertRegex((self.folder / f"g{number}" / PAGE).read_text(), r'not read here:\n  "a": .*\w')

    def test_the_module_does_the_same(self):
        text = ("import tessera\n"
                "tessera.create('a.zarr', shape=(2, 3), dtype='<i2', fill_value=5)\n"
                "tessera.seal('a.zarr', readme=True)\n"
                "try: tessera.seal('a.zarr', bag='bag', readme=True)\n"
                "except tessera.InvalidArgument as e: assert 'readme' in str(e)\n")
        done = subprocess.run([sys.executable, "-B", "-c", text], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": module_folder()})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.run_page("a.zarr"), [". (0, 0) 5", ". (1, 2) 5"])

    def test_a_flipped_byte_shows(self):
        self.sealed(VALUES, "--format", "v3", "--chunks", "24,30", "--codec", "none")
        chunk = pathlib.Path(self.folder / "a.zarr/c/0/0")
        chunk.write_bytes(b"\1" + chunk.read_bytes()[1:])
        (code,) = programs((self.folder / "a.zarr" / PAGE).read_text())
        done = subprocess.run([sys.executable, "-I", "-c", code], cwd=self.folder / "a.zarr", capture_output=True, text=True)
        self.assertIn("AssertionError", done.stderr)


if __name__ == "__main__":
    main()
