"""view: pictures compared with NumPy pixel by pixel, and what a terminal shows of small arrays."""
import json
import base64
import os
import pathlib
import pty
import re
import shlex
import shutil
import struct

import numpy as np

from program import EXAMPLES, ProgramTest, main
from test_png import decode

RANDOM = np.random.default_rng(20261121)
# Of the table that its authors published (option_d in BIDS/colormap, CC0): number of the colour, and its levels.
VIRIDIS = {0: (0.26700401, 0.00487433, 0.32941519), 32: (0.27882618, 0.1754902, 0.48339654),
           64: (0.22973926, 0.32236127, 0.54570633), 128: (0.12756771, 0.56694891, 0.55055551),
           192: (0.36074053, 0.78596419, 0.38781353), 255: (0.99324789, 0.90615657, 0.1439362)}
NAN = (235, 95, 225)
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
LEFT, TOP, WIDTH, HEIGHT = 122, 56, 640, 578  # of the slice in a drawing at the double scale


def block_means(values, window):
    rows, columns = window
    by_rows = np.add.reduceat(values, range(0, values.shape[0], rows), 0)
    sums = np.add.reduceat(by_rows, range(0, values.shape[1], columns), 1)
    ones = np.add.reduceat(np.add.reduceat(np.ones(values.shape), range(0, values.shape[0], rows), 0),
                           range(0, values.shape[1], columns), 1)
    return sums / ones


class View(ProgramTest):
    def cells(self, *words):
        """What is shown, as NumPy's array; what is missing as -inf."""
        shown = self.tessera_json("view", *words)
        values = [[-np.inf if v is None else float(v) for v in row] for row in shown["values"]]
        return shown, np.array(values)

    def png(self, *words):
        report = self.tessera_json("view", *words, "--png", "out.png", "--overwrite")
        pixels = decode((self.folder / "out.png").read_bytes())
        self.assertEqual(pixels.shape, (report["height"], report["width"], 3))
        return report, pixels

    def needs_png(self):
        self.save("probe.npy", np.zeros((1, 1), "u1"))
        if "libpng" in self.run_program("view", "probe.npy", "--png", "probe.png").stderr:
            self.skipTest("built without libpng")


class Cells(View):
    def test_whole_elements_and_means(self):
        for dtype in "?", "i1", ">u2", "<i8", ">f4", "f2", "f8":
            values = RANDOM.integers(0, 2 if dtype == "?" else 100, (37, 50)).astype(dtype)
            self.save("a.npy", values)
            self.tessera("import", "a.npy", "a.zarr", "--chunks", "7,9", "--overwrite", "--quiet")
            for path in "a.npy", "a.zarr":
                with self.subTest(dtype=dtype, path=path):
                    shown, cells = self.cells(path, "--size", "200x50")
                    np.testing.assert_array_equal(cells, values.astype("f8"))
                    self.assertEqual(shown["range"], [float(values.min()), float(values.max())])
                    shown, cells = self.cells(path, "--size", "26x20")  # 13 cells across
                    self.assertEqual((shown["rows"]["window"], shown["columns"]["window"]), (4, 4))
                    self.assertEqual(shown["cells_are"], "mean of 4×4 elements")
                    np.testing.assert_allclose(cells, block_means(values.astype("f8"), (4, 4)), rtol=1e-14)
                    for word, function in ("min", np.minimum), ("max", np.maximum):
                        _, cells = self.cells(path, "--size", "26x20", "--with", word)
                        wanted = function.reduceat(function.reduceat(values.astype("f8"), range(0, 37, 4), 0), range(0, 50, 4), 1)
                        np.testing.assert_array_equal(cells, wanted)
                    shown, cells = self.cells(path, "--size", "26x20", "--with", "nearest")
                    np.testing.assert_array_equal(cells, values.astype("f8")[::4, ::4])
                    self.assertFalse(shown["sampled"])

    def test_axes_and_selections_of_any_rank(self):
        values = RANDOM.integers(0, 1000, (5, 6, 1, 8, 9)).astype("i4")
        self.save("a.npy", values)
        self.tessera("import", "a.npy", "a.zarr", "--format", "v3", "--dims", "t,z,one,y,x", "--quiet")
        cases = [([], values[2, 3, 0], "[2, 3, 0, 0:8, 0:9]"), (["1, ..."], values[1, 3, 0], "[1, 3, 0, 0:8, 0:9]"),
                 (["--axes", "t,x"], values[:, 3, 0, 4], "[0:5, 3, 0, 4, 0:9]"),
                 (["--axes", "x,t"], values[:, 3, 0, 4].T, "[0:5, 3, 0, 4, 0:9]"),
                 (["--axes", "-1,1"], values[2, :, 0, 4].T, "[2, 0:6, 0, 4, 0:9]"),
                 ([":, 1:5:2, 0, ::-1, 7:1:-2"], values[2, 3, 0, ::-1, 7:1:-2], "[2, 3, 0, 7::-1, 7:2:-2]"),
                 (["0, 5, 0, :, 4"], values[0, 5, 0, :, 4][None], "[0, 5, 0, 0:8, 4]"),
                 (["--axes", "z"], values[2, :, 0, 4, 4][None], "[2, 0:6, 0, 4, 4]")]
        for words, wanted, text in cases:
            with self.subTest(words=words):
                shown, cells = self.cells("a.zarr", *words, "--size", "60x30")
                np.testing.assert_array_equal(cells, wanted)
                self.assertEqual(shown["slice"], text)
        self.assertEqual(self.cells("a.zarr", "--axes", "x,t")[0]["rows"]["name"], "x")

    def test_what_is_missing(self):
        values = RANDOM.normal(size=(12, 14)).round(3)
        values[2:6, 2:6] = -999
        values[8:10, 8:10] = np.nan
        values[0, 0] = np.inf
        self.save("a.npy", values)
        self.tessera("import", "a.npy", "a.zarr", "--fill=-999", "--chunks", "4,4", "--quiet")
        shown, cells = self.cells("a.zarr", "--size", "28x12")
        np.testing.assert_array_equal(cells, np.where(values == -999, -np.inf, values))
        rest = values[np.isfinite(values) & (values != -999)]
        self.assertEqual(shown["range"], [rest.min(), rest.max()])
        _, cells = self.cells("a.zarr", "--size", "14x6")  # means leave out what is missing
        blocks = np.where(values == -999, np.nan, values).reshape(6, 2, 7, 2).transpose(0, 2, 1, 3).reshape(6, 7, 4)
        wanted = np.array([[np.nan if np.isnan(b).all() else np.nanmean(b) for b in row] for row in blocks])
        np.testing.assert_allclose(np.where(np.isneginf(cells), np.nan, cells), wanted, rtol=1e-12)
        self.assertTrue(np.isneginf(cells[1:3, 1:3]).all() and np.isnan(cells[4, 4]))
        self.assertEqual(self.cells("a.zarr", "--missing", "none")[0]["range"][0], -999)
        self.assertEqual(self.cells("a.npy")[0]["range"][0], -999)
        self.tessera("attrs", "a.zarr", "set", "missing_value", str(rest.max()))
        self.assertLess(self.cells("a.zarr")[0]["range"][1], rest.max())
        # A fill of 0 is a value as any other, unless asked for.
        self.save("zeros.npy", np.array([[0, 1], [2, 0]]))
        self.tessera("import", "zeros.npy", "zeros.zarr", "--quiet")
        self.assertEqual(self.cells("zeros.zarr")[1].tolist(), [[0, 1], [2, 0]])
        self.assertEqual(self.cells("zeros.zarr", "--missing", "fill")[1].tolist(), [[-np.inf, 1], [2, -np.inf]])

    def test_ranges(self):
        values = RANDOM.normal(size=(20, 30))
        self.save("a.npy", values)
        for text, wanted in [("2%,98%", np.percentile(values, [2, 98])), ("0%, 37.5%", np.percentile(values, [0, 37.5])),
                             ("-1,50%", [-1, np.percentile(values, 50)]), ("-2.5,1e3", [-2.5, 1000])]:
            np.testing.assert_allclose(self.cells("a.npy", "--size", "60x20", "--range", text)[0]["range"], wanted, rtol=1e-12)
        far = np.abs(values).max()
        self.assertEqual(self.cells("a.npy", "--size", "60x20", "--map", "diverging")[0]["range"], [-far, far])
        for bad in "1", "a,b", "3,2", "-1%,5", "1,2,3", "nan,1":
            self.refused("view", "a.npy", f"--range={bad}", says="--range")

    def test_samples_where_all_would_be_too_much(self):
        values = np.arange(400 * 600, dtype="i4").reshape(400, 600)
        self.save("a.npy", values)
        self.tessera("import", "a.npy", "a.zarr", "--chunks", "20,20", "--quiet")  # 1600 bytes a chunk, 600 chunks
        shown, cells = self.cells("a.zarr", "--size", "120x40", "--limit", "2M")
        self.assertEqual((shown["sampled"], shown["cells_are"]), (False, "mean of 10×10 elements"))
        np.testing.assert_allclose(cells, block_means(values.astype("f8"), (10, 10)))
        shown, cells = self.cells("a.zarr", "--size", "120x40", "--limit", "100K")
        self.assertTrue(shown["sampled"])
        self.assertIn("a sample", shown["cells_are"])
        window = shown["rows"]["window"], shown["columns"]["window"]
        np.testing.assert_array_equal(cells, values[::window[0], ::window[1]])
        self.assertLessEqual(cells.size * 1600, 100 << 10)
        self.assertGreater(cells.size * 1600, 20 << 10)
        # And reads no more than that: all other chunks may be lost.
        kept = {f"{20 * (i * window[0] // 20) // 20}.{20 * (j * window[1] // 20) // 20}" for i in range(cells.shape[0])
                for j in range(cells.shape[1])}
        for chunk in (self.folder / "a.zarr" / "__zdata__").iterdir():
            if chunk.name.removesuffix(".blosc") not in kept:
                chunk.write_bytes(b"damaged")
        np.testing.assert_array_equal(self.cells("a.zarr", "--size", "120x40", "--limit", "100K")[1], cells)
        self.refused("view", "a.zarr", "--size", "120x40", says="a.zarr")

    def test_a_large_sparse_array(self):
        self.tessera("create", "s.zarr", "--shape", "1000000,1000000", "--chunks", "1000,1000", "--dtype", "i4", "--fill=-1",
                     "--quiet")
        self.tessera("set", "s.zarr", "0:3, 0:3", "7")
        shown, cells = self.cells("s.zarr", "--size", "80x20")
        self.assertTrue(shown["sampled"])
        self.assertEqual(cells[0, 0], 7)
        self.assertTrue(np.isneginf(cells.ravel()[1:]).all())
        _, cells = self.cells("s.zarr", ":4, :4")
        self.assertEqual((cells == 7).sum(), 9)

    def test_thin_slices_are_wide_enough(self):
        self.save("a.npy", np.arange(30000).reshape(10000, 3))
        shown, cells = self.cells("a.npy", "--size", "80x40")
        self.assertEqual(shown["columns"]["window"], 1)
        self.assertEqual(cells.shape[1], 3)

    def test_complex_and_times(self):
        values = RANDOM.normal(size=(4, 5)) + 1j * RANDOM.normal(size=(4, 5))
        self.save("a.npy", values)
        np.testing.assert_allclose(self.cells("a.npy")[1], np.abs(values), rtol=1e-14)
        days = np.array([["2020-01-01", "NaT"], ["2021-01-01", "2019-01-01"]], "M8[D]")
        self.save("d.npy", days)
        wanted = np.where(np.isnat(days), np.nan, days.astype("i8").astype("f8"))
        np.testing.assert_array_equal(self.cells("d.npy")[1], wanted)
        self.assertIn("2019-01-01", self.tessera("view", "d.npy", "--size", "20x4"))

    def test_what_is_refused(self):
        self.save("a.npy", np.zeros((3, 4, 5)))
        self.save("empty.npy", np.zeros((0, 4)))
        for words, says in [(["--axes", "q"], "axis 0, axis 1, axis 2"), (["--axes", "0,0"], "--axes"), (["--axes", "0,1,2"], "--axes"),
                            (["1, ...", "--axes", "0,1"], "--axes"), (["--with", "mode"], "--with"), (["--map", "jet"], "viridis"),
                            (["--size", "12"], "--size"), (["--size", "0x3"], "--size"), (["--missing", "x"], "--missing"),
                            (["--missing", "fill"], "fill"), (["--color", "red"], "--color"), (["7, ..."], "a.npy"),
                            (["--png", "p.png", "--size", "100x100"], "--size"), (["--limit", "x"], "--limit")]:
            with self.subTest(words=words):
                self.refused("view", "a.npy", *words, says=says)
        self.refused("view", "empty.npy", says="empty.npy")
        self.refused("view", "none.npy", says="none.npy")
        self.assertFalse((self.folder / "p.png").exists())


class Png(View):
    def setUp(self):
        super().setUp()
        self.needs_png()

    def test_every_pixel(self):
        values = np.arange(256).reshape(16, 16).astype("f4")
        values[3, 4] = np.nan
        self.save("a.npy", values)
        _, pixels = self.png("a.npy", "--range", "0,255", "--map", "viridis")
        zoom = HEIGHT // 16
        slice_ = pixels[TOP:TOP + 16 * zoom, LEFT:LEFT + 16 * zoom].reshape(16, zoom, 16, zoom, 3)
        self.assertTrue((slice_ == slice_[:, :1, :, :1]).all())  # each element is one square
        colours = slice_[:, 0, :, 0].reshape(256, 3)
        for number, levels in VIRIDIS.items():
            np.testing.assert_allclose(colours[number], np.array(levels) * 255, atol=4)
        self.assertEqual(tuple(colours[3 * 16 + 4]), NAN)
        lightness = colours @ [0.2126, 0.7152, 0.0722]
        self.assertTrue((np.diff(np.delete(lightness, 52)) > -1).all())
        grey = self.png("a.npy", "--range", "0,255", "--map", "grey")[1][TOP::zoom, LEFT::zoom][:16, :16].reshape(256, 3)
        self.assertTrue((grey[0] == 0).all() and (grey[255] == 255).all() and (np.diff(np.delete(grey[:, 0].astype(int), 52)) >= 0).all())
        self.assertTrue((np.delete(grey, 52, 0)[:, 0] == np.delete(grey, 52, 0)[:, 2]).all())
        both = self.png("a.npy", "--range", "0,255", "--map", "diverging")[1][TOP::zoom, LEFT::zoom][:16, :16].reshape(256, 3).astype(int)
        self.assertGreater(both[0, 2], both[0, 0] + 60)
        self.assertGreater(both[255, 0], both[255, 2] + 60)
        self.assertTrue((both[128] > 230).all())

    def test_means_have_the_colour_of_their_value(self):
        values = RANDOM.integers(0, 256, (1500, 1200)).astype("u1")
        self.save("a.npy", values)
        self.tessera("import", "a.npy", "a.zarr", "--chunks", "100,130", "--quiet")
        report, pixels = self.png("a.zarr", "--range", "0,255", "--map", "grey")
        window = report["rows"]["window"]
        means = block_means(values.astype("f8"), (window, window))
        slice_ = pixels[TOP:TOP + means.shape[0], LEFT:LEFT + means.shape[1], 0]
        self.save("ramp.npy", np.arange(256.0).reshape(16, 16))
        ramp = self.png("ramp.npy", "--range", "0,255", "--map", "grey")[1][TOP::36, LEFT::36][:16, :16, 0].ravel()
        numbers = np.minimum(np.floor(means / 255 * 256), 255).astype(int)
        np.testing.assert_array_equal(slice_, ramp[numbers])
        self.assertEqual(report["sampled"], False)

    def test_long_names_are_cut(self):
        """At once, whatever a file says: that of an array in a file, and a label of a megabyte."""
        name = "é" * 16000 + "end"
        np.savez(self.path("long.npz"), **{name: RANDOM.normal(size=(30, 40))})
        self.save("a.npy", RANDOM.normal(size=(30, 40)))
        self.tessera("import", "a.npy", "a.zarr", "--format", "v2", "--quiet")
        (self.folder / "a.zarr/.zattrs").write_text(json.dumps({"long_name": "ø" * 500_000, "units": "m" * 500_000}))
        for path in f"long.npz::{name}", "a.zarr":
            self.tessera("view", path, "--png", "cut.png", "--overwrite", "--quiet")
            self.assertEqual(decode((self.folder / "cut.png").read_bytes()).shape[2], 3)

    def test_sizes_and_what_is_written_beside(self):
        self.save("a.npy", RANDOM.normal(size=(300, 400)))
        self.tessera("import", "a.npy", "a.zarr", "--format", "v3", "--dims", "y,x", "--quiet", "--fill", "NaN")
        seen = set()
        for size in "960x720", "400x400", "300x240", "1600x1200":
            report = self.tessera_json("view", "a.zarr", "--png", "size.png", "--overwrite", "--size", size)
            width, height = map(int, size.split("x"))
            self.assertTrue(report["width"] <= width and report["height"] <= height, report)
            head = (self.folder / "size.png").read_bytes()[16:24]
            self.assertEqual(struct.unpack(">II", head), (report["width"], report["height"]))
            seen.add(report["width"])
        self.assertEqual(len(seen), 4)
        plain = self.png("a.zarr")[1]
        self.tessera("attrs", "a.zarr", "set", "units", '"°C"')
        self.tessera("attrs", "a.zarr", "set", "long_name", '"temperature"')
        named = self.png("a.zarr")[1]
        changed = np.argwhere((plain != named).any(2))
        self.assertGreater(changed[:, 1].min(), LEFT + 400)  # right of the bar of colours
        # Texts that steer, or are too long, or have no letters here.
        for name in "\x1b[31m", "a" * 500, "日本", "<b>":
            self.tessera("attrs", "a.zarr", "set", "long_name", json.dumps(name))
            self.png("a.zarr", "--size", "400x300")

    def test_lines_bars_and_extremes(self):
        self.save("a.npy", np.sin(np.arange(5000) / 100))
        report, pixels = self.png("a.npy")
        self.assertGreater((pixels == (38, 90, 150)).all(2).sum(), 1000)
        self.png("a.npy", "--hist")
        for values in [np.zeros((3, 3)), np.full((2, 2), np.nan), np.array([[1e308, -1e308]]), np.array([[np.inf, -np.inf]]),
                       np.array([[5e-324, 0]]), np.array([[2**63 - 1, -2**63]]), np.array([1.0]), np.array([np.nan, 1, np.nan]),
                       np.array([[1e15, 1e15 + 1]]), np.array([[True]]), np.array([["NaT"]], "M8[s]")]:
            self.save("b.npy", values)
            for words in [], ["--hist"], ["--map", "diverging"]:
                with self.subTest(values=values.tolist(), words=words):
                    self.png("b.npy", *words, "--size", "250x240")
                    self.tessera("view", "b.npy", *words)

    def test_a_file_is_not_replaced_unasked(self):
        self.save("a.npy", np.eye(3))
        (self.folder / "a.png").write_bytes(b"precious")
        self.refused("view", "a.npy", "--png", "a.png", says=["a.png", "--overwrite"])
        self.assertEqual((self.folder / "a.png").read_bytes(), b"precious")
        self.tessera("view", "a.npy", "--png", "a.png", "--overwrite", "--quiet")
        self.assertEqual(decode((self.folder / "a.png").read_bytes()).ndim, 3)
        self.refused("view", "a.npy", "--png", "none/a.png", says="none")

    def test_real_grids(self):
        for name, member in ("jacksboro_fault_dem", "elevation"), ("topobathy", "topo"):
            path = f"{EXAMPLES / name}.npz::{member}"
            values = np.load(EXAMPLES / f"{name}.npz")[member]
            report, pixels = self.png(path, "--map", "grey")
            zoom = min(HEIGHT // values.shape[0], WIDTH // values.shape[1])
            self.assertEqual(report["range"], [float(values.min()), float(values.max())])
            least, most = (np.unravel_index(f(values), values.shape) for f in (np.argmin, np.argmax))
            for place, level in (least, 0), (most, 255):
                y, x = TOP + place[0] * zoom, LEFT + place[1] * zoom
                self.assertEqual(pixels[y, x].tolist(), [level] * 3)


class Axes(View):
    """Coordinates along the axes, north up, as on the page."""

    def grid(self, latitudes, longitudes, group="g", **attributes):
        self.values = RANDOM.integers(0, 100, (len(latitudes), len(longitudes))).astype("i4")
        arrays = {"air": (self.values, "lat,lon", {"units": "K"}),
                  "lat": (np.array(latitudes, "f8"), "lat", attributes.get("lat", {"units": "degrees_north"})),
                  "lon": (np.array(longitudes, "f8"), "lon", attributes.get("lon", {"units": "degrees_east"}))}
        self.tessera("group", group, "--format", "v3", "--quiet")
        for name, (values, dims, attrs) in arrays.items():
            self.tessera("import", self.save("one.npy", values), f"{group}/{name}", "--dims", dims, "--quiet")
            for key, value in attrs.items():
                self.tessera("attrs", f"{group}/{name}", "set", key, json.dumps(value), "--quiet")
        return f"{group}/air"

    def drawn(self, values):
        """How characters show an array without coordinates."""
        self.save("plain.npy", values)
        size = f"{2 * values.shape[1]}x{values.shape[0]}"
        return [line[:2 * values.shape[1]] for line in self.tessera("view", "plain.npy", "--size", size).splitlines()[2:2 + len(values)]]

    def lines(self, path, *words):
        return self.tessera("view", path, "--size", "60x9", *words).splitlines()

    def test_north_is_up_and_east_on_the_right(self):
        south, north = np.linspace(-40, 40, 9), np.linspace(40, -40, 9)
        east, west = np.linspace(0, 290, 30), np.linspace(290, 0, 30)
        for number, (lat, lon, turned) in enumerate(((south, east, np.s_[::-1, :]), (north, east, np.s_[:, :]),
                                                     (north, west, np.s_[:, ::-1]), (south, west, np.s_[::-1, ::-1]))):
            with self.subTest(number=number):
                path = self.grid(lat, lon, f"g{number}")
                lines = self.lines(path)
                self.assertEqual(lines[1], "down: lat (°N) 40 … -40   across: lon (°E) 0 … 290")
                self.assertEqual([line[:60] for line in lines[2:11]], self.drawn(self.values[turned]))
                # A step backwards turns nothing round, because north stays north.
                self.assertEqual(self.lines(path, "::-1, ::-1")[1], "down: lat (°N) 40 … -40   across: lon (°E) 0 … 290"
                                 if lon is west else "down: lat (°N) 40 … -40   across: lon (°E) 290 … 0")
                shown = self.tessera_json("view", path, "--size", "60x9")
                np.testing.assert_array_equal(shown["values"], self.values)  # in the order of the array
                self.assertEqual((shown["rows"]["title"], float(shown["rows"]["first"]), float(shown["rows"]["last"])),
                                 ("lat (°N)", lat[0], lat[-1]))

    def test_which_axes_are_turned(self):
        up = {"positive": "up", "units": "m"}
        for number, (attributes, name) in enumerate(((up, "lat (m)"), ({"axis": "Y"}, "lat"), ({"standard_name": "latitude"}, "lat"),
                                                     ({"standard_name": "projection_y_coordinate"}, "lat"), ({}, "lat"))):
            path = self.grid(np.arange(5.0), np.arange(6.0), f"u{number}", lat=attributes, lon={})
            self.assertIn(f"down: {name} 4 … 0 ", self.lines(path)[1])
        self.save("v.npy", np.arange(30).reshape(5, 6))
        self.save("y.npy", np.arange(5.0))
        self.tessera("import", "v.npy", "h/v", "--format", "v3", "--dims", "y,x", "--quiet")
        self.tessera("import", "y.npy", "h/y", "--format", "v3", "--dims", "y", "--quiet")
        self.assertEqual(self.lines("h/v")[1], "down: y 0 … 4   across: x 0 … 5")
        self.tessera("attrs", "h/y", "set", "units", '"km"', "--quiet")
        self.assertEqual(self.lines("h/v")[1], "down: y (km) 4 … 0   across: x 0 … 5")

    def test_coordinates_that_lead_nowhere(self):
        """What cannot be marked is not; what is no coordinate is none."""
        self.save("v.npy", np.arange(30).reshape(5, 6))
        self.tessera("import", "v.npy", "n/v", "--format", "v3", "--dims", "lat,x", "--quiet")
        for values in ([0, 1, np.inf, np.inf, np.inf], [np.nan] * 5, [-1e308, 0, 1e308, 1.1e308, 1.7e308], [1e18, 1e18 + 128, 2e18, 3e18, 4e18],
                       [3.0, 1, 2, 5, 4], [7.0] * 5, [0.0, 1, 2], np.arange(5) * 1j, np.array(["a", "b", "\x1b[2J", "é", "日本"])):
            self.tessera("import", self.save("lat.npy", np.array(values)), "n/lat", "--format", "v3", "--dims", "lat", "--overwrite", "--quiet")
            self.tessera("attrs", "n/lat", "set", "units", '"degrees_north"', "--quiet")
            for words in [], ["--json"], ["--png", "n.png", "--overwrite"], [":, 0"]:
                with self.subTest(values=values, words=words):
                    self.assertNotIn("\x1b", self.tessera("view", "n/v", "--size", "400x300" if "--png" in words else "60x12", *words))

    def test_marks_stand_where_the_coordinates_are(self):
        path = self.grid(np.linspace(-44, 44, 23), np.linspace(2, 60, 30))
        lines = self.tessera("view", path, "--size", "60x23").splitlines()
        rows = {float(line[60:]): n for n, line in enumerate(lines[2:25]) if line[60:].strip()}
        self.assertGreater(len(rows), 3)
        for latitude, n in rows.items():
            self.assertAlmostEqual(44 - 4 * n, latitude, delta=2)
        ruler = lines[25]
        found = list(re.finditer(r"[\d.]+", ruler))
        self.assertGreater(len(found), 3)
        for mark in found:
            middle = (mark.start() + mark.end() - 1) / 2
            self.assertAlmostEqual(2 + 2 * (middle - 0.5) / 2, float(mark[0]), delta=2.1)  # two characters an element

    def test_members_of_files(self):
        """As netCDF has them."""
        path = self.grid(np.linspace(-40, 40, 9), np.linspace(0, 290, 30))
        self.tessera("copy", "g", "g.nc", "--quiet")
        self.assertEqual(self.lines("g.nc::air")[1:], self.lines(path)[1:])
        self.assertEqual(self.tessera("view", "g.nc::lat", "--size", "60x4").splitlines()[-1].strip(), "lat 0 … 8    (degrees_north)")

    def test_dates(self):
        self.save("v.npy", np.arange(60.0))
        self.tessera("import", "v.npy", "t/v", "--format", "v3", "--dims", "time", "--quiet")
        self.tessera("import", self.save("time.npy", np.arange(60)), "t/time", "--format", "v3", "--dims", "time", "--quiet")
        self.tessera("attrs", "t/time", "set", "units", '"days since 2000-01-01"', "--quiet")
        lines = self.tessera("view", "t/v", "--size", "90x5").splitlines()
        self.assertIn("time 2000-01-01 … 2000-02-29", lines[-1])
        self.assertRegex(lines[-2], r"2000-01-\d\d +2000-0")
        # Times that are all the same: what they have in common is all that they say.
        self.save("v.npy", np.arange(240.0).reshape(40, 6))
        self.tessera("import", "v.npy", "same/v", "--format", "v3", "--dims", "time,x", "--quiet")
        self.tessera("import", self.save("time.npy", np.zeros(40, "i4")), "same/time", "--format", "v3", "--dims", "time", "--quiet")
        self.tessera("attrs", "same/time", "set", "units", '"days since 2000-01-01"', "--quiet")
        self.assertIn("2000-01-01", self.tessera("view", "same/v", "--size", "60x24"))
        self.tessera("view", "same/v", "--png", "same.png", "--quiet")

    def test_pixel_sizes_of_ome_zarr(self):
        self.tessera("import", self.save("cells.npy", np.ones((40, 60), "u1")), "image/0", "--format", "v3", "--quiet")
        transformations = [{"type": "scale", "scale": [0.5, 0.25]}, {"type": "translation", "translation": [10, 0]}]
        axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in ("y", "x")]
        (self.folder / "image" / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {"ome": {"multiscales": [
            {"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": transformations}]}]}}}))
        self.assertEqual(self.lines("image/0")[2], "down: y (µm) 10 … 29.5   across: x (µm) 0 … 14.75")

    def test_pixels(self):
        self.needs_png()
        path = self.grid(np.linspace(-40, 40, 9), np.linspace(0, 290, 30))
        _, pixels = self.png(path, "--map", "grey")
        self.save("turned.npy", self.values[::-1])
        _, turned = self.png("turned.npy", "--map", "grey")
        zoom = min(HEIGHT // 9, WIDTH // 30)
        box = np.s_[TOP:TOP + 9 * zoom, LEFT:LEFT + 30 * zoom]
        np.testing.assert_array_equal(pixels[box], turned[box])
        self.assertTrue((pixels[:, :LEFT - 20] != turned[:, :LEFT - 20]).any())  # the axes are labelled otherwise


class Colours(View):
    """Red, green and blue, as on the page."""

    def colours(self, *words):
        return np.array(self.tessera_json("view", *words)["values"])

    def test_bytes(self):
        values = RANDOM.integers(0, 256, (7, 9, 3)).astype("u1")
        self.save("a.npy", values)
        np.testing.assert_array_equal(self.colours("a.npy", "--size", "18x7"), values)
        self.assertEqual(self.tessera_json("view", "a.npy", "--size", "18x7")["slice"], "[0:7, 0:9, 0:3]")
        self.tessera("import", "a.npy", "a.zarr", "--chunks", "3,4,2", "--quiet")
        np.testing.assert_array_equal(self.colours("a.zarr", "--size", "18x7"), values)
        np.testing.assert_array_equal(self.colours("a.zarr", "1:5, 2:9", "--size", "18x7"), values[1:5, 2:9])
        self.save("first.npy", np.moveaxis(values, 2, 0).copy())
        np.testing.assert_array_equal(self.colours("first.npy", "--size", "18x7"), values)
        # One of them, or a slice that is asked for, is numbers.
        np.testing.assert_array_equal(self.colours("a.npy", "..., 1", "--size", "18x7"), values[..., 1])
        np.testing.assert_array_equal(self.colours("a.npy", "--axes", "0,2", "--size", "18x7"), values[:, 4])

    def test_means_and_samples(self):
        values = RANDOM.integers(0, 256, (40, 60, 3)).astype("u1")
        self.save("a.npy", values)
        self.tessera("import", "a.npy", "a.zarr", "--chunks", "7,9,3", "--quiet")
        wanted = values.reshape(10, 4, 15, 4, 3).mean((1, 3))
        np.testing.assert_allclose(self.colours("a.zarr", "--size", "30x10"), wanted, atol=0.51)
        found = self.colours("a.zarr", "--size", "30x10", "--with", "nearest")
        np.testing.assert_array_equal(found, values[::4, ::4])

    def test_opacity_words_and_floats(self):
        values = RANDOM.integers(0, 256, (6, 8, 4)).astype("u1")
        self.save("a.npy", values)
        opaque = values[..., 3:] / 255
        wanted = 255 + (values[..., :3] - 255.0) * opaque
        np.testing.assert_allclose(self.colours("a.npy", "--size", "16x6"), wanted, atol=0.51)
        for dtype, full in (("u2", 65535), ("f4", 1)):
            colours = (values[..., :3] / 255 * full).astype(dtype)
            self.save("b.npy", colours)
            self.assertEqual(self.colours("b.npy", "--size", "16x6").ndim, 2)  # nothing says that these are colours
            self.tessera("import", "b.npy", "b.zarr", "--dims", "y,x,band", "--format", "v3", "--overwrite", "--quiet")
            np.testing.assert_allclose(self.colours("b.zarr", "--size", "16x6"), values[..., :3], atol=1.01)

    def test_images(self):
        self.needs_png()
        values = RANDOM.integers(0, 256, (7, 9, 3)).astype("u1")
        self.save("a.npy", values)
        for name in "a.png", "a.tif":
            self.tessera("copy", "a.npy", name, "--quiet")
            _, pixels = self.png(name)
            zoom = min(HEIGHT // 7, WIDTH // 9)
            np.testing.assert_array_equal(pixels[TOP:TOP + 7 * zoom:zoom, LEFT:LEFT + 9 * zoom:zoom], values)

    def test_terminals(self):
        values = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [255, 255, 255]]], "u1").repeat(3, 0).repeat(3, 1)
        self.save("a.npy", values)
        text = self.tessera("view", "a.npy", "--size", "6x3", "--color", "always")
        self.assertIn("\x1b[38;2;255;0;0m", text)
        self.assertIn("\x1b[48;2;255;255;255m", text)
        lines = self.tessera("view", "a.npy", "--size", "12x6").splitlines()
        self.assertEqual([line[:12] for line in lines[2:8]], ["::::::######"] * 3 + ["......@@@@@@"] * 3)
        self.assertIn("red, green and blue", lines[-1])
        self.refused("view", "a.npy", "--log", says="colours")
        self.assertIn("█", self.tessera("view", "a.npy", "--hist"))


class Chunks(View):
    def chunk_cells(self, *words, code=0):
        shown = json.loads(self.tessera("view", *words, "--chunks", "--json", code=code))
        return shown, np.array([[-np.inf if v is None else float(v) for v in row] for row in shown["values"]])

    def test_stored_absent_and_damaged(self):
        values = np.zeros((60, 80), "i4")
        values[:20, 10:30] = RANDOM.integers(0, 1000, (20, 20))
        values[40:, 70:] = 5
        self.save("a.npy", values)
        for form, keys in [("zmeta", "__zdata__/{}.{}.blosc"), ("v2", "{}.{}"), ("v3", "c/{}/{}")]:
            with self.subTest(format=form):
                self.tessera("import", "a.npy", "a.zarr", "--chunks", "10,10", "--format", form, "--fill", "0",
                             "--overwrite", "--quiet")
                shown, cells = self.chunk_cells("a.zarr")
                self.assertEqual((shown["chunks"], shown["stored"], shown["damaged"], shown["unchecked"]), (48, 6, 0, 0))
                self.assertEqual(cells.shape, (6, 8))
                total = 0
                for i, j in np.ndindex(6, 8):
                    file = self.folder / "a.zarr" / keys.format(i, j)
                    size = file.stat().st_size if file.exists() else 0
                    total += size
                    self.assertEqual(cells[i, j], 400 / size if size else -np.inf)
                self.assertEqual((shown["bytes"], shown["decoded_bytes"]), (total, 2400))
                (self.folder / "a.zarr" / keys.format(1, 2)).write_bytes(b"damaged")
                (self.folder / "a.zarr" / keys.format(5, 7)).write_bytes(b"")
                shown, cells = self.chunk_cells("a.zarr", code=1)
                self.assertEqual([d["chunk"] for d in shown["damage"]], [[1, 2], [5, 7]])
                self.assertTrue(np.isnan(cells[1, 2]) and np.isnan(cells[5, 7]) and np.isnan(cells).sum() == 2)
                # A part of the array, and the terminal.
                self.assertEqual(self.chunk_cells("a.zarr", "0:9, 15:35")[1].shape, (1, 3))
                lines = self.tessera("view", "a.zarr", "--chunks", "--size", "16x6", code=1).splitlines()
                self.assertEqual(lines[0], "a.zarr chunks [0:6, 0:8]")
                self.assertEqual([len(line) for line in lines[2:5]], [6, 6, 0])
                self.assertEqual(lines[3][4:6], "??")
                self.assertEqual(lines[7][14:16], "??")
                self.assertIn("6 of 48 chunks stored", lines[9])
                self.assertIn("2 damaged", lines[9])

    def test_shards(self):
        values = np.zeros((40, 40), "u2")
        values[:10] = RANDOM.integers(0, 9, (10, 40))
        self.save("a.npy", values)
        self.tessera("import", "a.npy", "a.zarr", "--format", "v3", "--chunks", "5,5", "--shard", "20,20", "--quiet")
        shown, cells = self.chunk_cells("a.zarr")
        self.assertEqual((cells.shape, shown["stored"], shown["chunks"]), ((8, 8), 16, 64))
        self.assertTrue((cells[:2] > 0).all() and np.isneginf(cells[2:]).all())
        shard = self.folder / "a.zarr" / "c/0/1"
        data = bytearray(shard.read_bytes())
        index = np.frombuffer(bytes(data[-4 - 16 * 16:-4]), "<u8").reshape(4, 4, 2)
        self.assertEqual([[400 // 8 / index[i, j, 1] if index[i, j, 1] < 2**60 else -np.inf for j in range(4)] for i in range(4)],
                         cells[:4, 4:].tolist())
        data[int(index[1, 2, 0]):int(index[1, 2, 0] + index[1, 2, 1])] = b"x" * int(index[1, 2, 1])
        shard.write_bytes(data)
        shown, cells = self.chunk_cells("a.zarr", code=1)
        self.assertEqual([d["chunk"] for d in shown["damage"]], [[1, 6]])

    def test_large_grids_and_limits(self):
        self.tessera("create", "s.zarr", "--shape", "1000000,1000000", "--chunks", "1000,1000", "--dtype", "i4", "--quiet")
        self.tessera("set", "s.zarr", "5, 5", "7")
        shown, cells = self.chunk_cells("s.zarr")
        self.assertTrue(shown["sampled"])
        self.assertEqual(shown["stored"], 1)
        self.save("a.npy", np.arange(10000))
        self.tessera("import", "a.npy", "a.zarr", "--chunks", "100", "--quiet")
        shown, cells = self.chunk_cells("a.zarr", "--limit", "8000")
        self.assertEqual((shown["chunks"], shown["stored"], shown["unchecked"]), (100, 100, 90))
        shown, cells = self.chunk_cells("a.zarr", "--size", "40x4")
        self.assertEqual((cells.shape, shown["columns"]["window"], shown["unchecked"]), ((1, 20), 5, 0))
        self.refused("view", "a.npy", "--chunks", says="a.npy")
        self.refused("view", "none.zarr", "--chunks", says="none.zarr")
        self.tessera("copy", "a.zarr", "a.zip", "--format", "v2", "--quiet")
        self.assertEqual(self.chunk_cells("a.zip")[0]["stored"], 100)

    def test_a_picture(self):
        self.needs_png()
        self.save("a.npy", np.arange(400).reshape(20, 20) % 7)
        self.tessera("import", "a.npy", "a.zarr", "--chunks", "5,5", "--quiet")
        next((self.folder / "a.zarr" / "__zdata__").iterdir()).write_bytes(b"")
        self.tessera("view", "a.zarr", "--chunks", "--png", "c.png", code=1)
        pixels = decode((self.folder / "c.png").read_bytes())
        self.assertGreater((pixels == NAN).all(2).sum(), 100 * 100)


class Page(View):
    def test_the_page_shows_what_the_program_does(self):
        docs = pathlib.Path(os.environ["TESSERA_SOURCE"]) / "tools/docs"
        for name in "jacksboro_fault_dem", "topobathy":
            shutil.copy(EXAMPLES / f"{name}.npz", self.folder)
        text = (docs / "view.md").read_text()
        blocks = re.findall(r"(?ms)^```console\n(.*?)^```", text)
        drawn = set()
        for block in blocks:
            for step in re.split(r"(?m)^\$ tessera ", block)[1:]:
                line, _, wanted = step.partition("\n")
                if "--png" in line:
                    self.needs_png()
                    drawn.add(re.search(r"--png (\S+)", line)[1])
                self.assertEqual(self.tessera(*shlex.split(line)), wanted, line)
        self.assertEqual(drawn, {p.name for p in docs.glob("view-*.png")})
        for name in drawn:
            self.assertIn(f"]({name})", text)
            np.testing.assert_array_equal(decode((docs / name).read_bytes()), decode((self.folder / name).read_bytes()), name)


def sixels(text):
    """The pixels of a picture of sixels, as a terminal would draw them."""
    head, body = re.fullmatch(r"\x1bP0;1;0q\"1;1;(\d+;\d+)(.*)\x1b\\\n", text, re.DOTALL).groups()
    width, height = map(int, head.split(";"))
    pixels = np.zeros((height + 6, width, 3), "u1")
    colours, colour, x, y = {}, 0, 0, 0
    for m in re.finditer(r"#(\d+)((?:;\d+){4})?|!(\d+)([?-~])|[$-]|[?-~]", body):
        number, levels, count, mark = m[1], m[2], m[3], m[4] or m[0]
        if number:
            colour = int(number)
            if levels:
                colours[colour] = [round(int(level) * 2.55) for level in levels.split(";")[2:]]
        elif mark == "$":
            x = 0
        elif mark == "-":
            x, y = 0, y + 6
        else:
            n = int(count or 1)
            for k in range(6):
                if (ord(mark) - 63) >> k & 1:
                    pixels[y + k, x:x + n] = colours[colour]
            x += n
    return pixels[:height]


class Terminal(View):
    def test_characters(self):
        self.save("a.npy", np.array([[0, 1, 2], [6, 7, np.nan]], "f4"))
        lines = self.tessera("view", "a.npy", "--size", "6x2").splitlines()
        self.assertEqual(lines[0], "a.npy [0:2, 0:3]")
        self.assertEqual(lines[1], "down: axis 0 0 … 1   across: axis 1 0 … 2")
        self.assertEqual([line[:6] for line in lines[2:4]], ["..::--", "%%@@??"])
        self.assertEqual(lines[-1], "0 .:-=+*#%@ 7.00   ? NaN")

    def test_half_blocks(self):
        values = np.array([[0.0, 255], [255, 0], [np.nan, 128]])
        self.save("a.npy", values)
        text = self.tessera("view", "a.npy", "--size", "2x2", "--color", "always")
        rows = text.splitlines()[2:4]
        self.assertEqual([ESCAPE.sub("", row) for row in rows], ["▀▀", "▀▀"])
        first = [[int(n) for n in c] for c in re.findall(r"\[[34]8;2;(\d+);(\d+);(\d+)m", rows[0])]
        np.testing.assert_allclose(first[0], np.array(VIRIDIS[0]) * 255, atol=4)  # upper left, and below it
        np.testing.assert_allclose(first[1], np.array(VIRIDIS[255]) * 255, atol=4)
        np.testing.assert_allclose(first[2], np.array(VIRIDIS[255]) * 255, atol=4)
        self.assertIn("\x1b[38;2;235;95;225m", rows[1])
        self.assertTrue(text.rstrip().splitlines()[2].endswith("\x1b[0m"))

    def test_which_terminals_get_colours(self):
        self.save("a.npy", np.eye(4))

        def shown(**environment):
            master, slave = pty.openpty()
            import fcntl
            import subprocess
            import termios
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 40, 0, 0))
            run = subprocess.Popen([os.environ["TESSERA_PROGRAM"], "view", "a.npy"], stdout=slave, cwd=self.folder,
                                   env={k: v for k, v in os.environ.items() if k not in ("COLORTERM", "NO_COLOR")} | environment)
            os.close(slave)
            text = b""
            while True:
                try:
                    more = os.read(master, 65536)
                except OSError:
                    break
                if not more:
                    break
                text += more
            self.assertEqual(run.wait(), 0)
            os.close(master)
            return text.decode()

        coloured = shown(COLORTERM="truecolor")
        self.assertIn("▀", coloured)
        self.assertNotIn("▀", shown())
        self.assertNotIn("▀", shown(COLORTERM="truecolor", NO_COLOR="1"))
        picture = [line for line in ESCAPE.sub("", coloured).splitlines() if "▀" in line]
        self.assertEqual((len(picture), max(map(len, picture))), (6, 12))  # 7 lines of 2 pixels: squares of 3
        self.assertNotIn("▀", self.tessera("view", "a.npy"))

    def test_256_colours(self):
        self.save("a.npy", np.array([[0.0, 255], [255, 0]]))
        text = self.tessera("view", "a.npy", "--size", "2x2", "--color", "256")
        row = text.splitlines()[2]
        levels = [0, 95, 135, 175, 215, 255]
        colours = [(levels[k // 36], levels[k // 6 % 6], levels[k % 6]) for k in range(216)] + [(8 + 10 * k,) * 3 for k in range(24)]
        found = [colours[int(n) - 16] for n in re.findall(r"\[[34]8;5;(\d+)m", row)]
        for colour, wanted in zip(found, (0, 255, 255, 0)):
            wanted = np.array(VIRIDIS[wanted]) * 255
            nearest = min(np.square(np.subtract(other, wanted)).sum() for other in colours)
            self.assertLess(np.square(np.subtract(colour, wanted)).sum(), nearest + 300)
        self.assertNotIn(";2;", text)

    def test_pixels_of_kitty_and_sixel(self):
        """Both hold the same drawing: the sixels in the nearest of 256 colours."""
        self.save("a.npy", np.add.outer(np.arange(20.0), np.arange(30)))
        text = self.tessera("view", "a.npy", "--size", "60x20", "--color", "kitty")
        parts = re.findall("\x1b_G([^;]*);([^\x1b]*)\x1b\\\\", text)
        self.assertEqual(parts[0][0].split(",")[:2], ["a=T", "f=100"])
        self.assertEqual([part[0][-3:] for part in parts], ["m=1"] * (len(parts) - 1) + ["m=0"])
        self.assertTrue(all(len(part[1]) <= 4096 for part in parts))
        kitty = base64.b64decode("".join(part[1] for part in parts))
        self.assertEqual(kitty[:8], b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", kitty[16:24])
        text = self.tessera("view", "a.npy", "--size", "60x20", "--color", "sixel")
        drawn = sixels(text)
        self.assertEqual(drawn.shape, (height, width, 3))
        with open(self.path("kitty.png"), "wb") as file:
            file.write(kitty)
        self.tessera("export", "kitty.png", "kitty.npy", "--quiet")
        wanted = np.load(self.path("kitty.npy"))
        self.assertLess(np.abs(drawn.astype(int) - wanted).max(), 52)
        self.assertGreater(len(np.unique(drawn.reshape(-1, 3), axis=0)), 10)

    def test_logarithms(self):
        """A logarithmic picture of powers is the picture of their exponents, but for the labels."""
        exponents = np.linspace(-2, 4, 40)
        for shape, rows in (((40,), slice(1, 7)), ((5, 8), slice(2, 7))):
            self.save("powers.npy", (10.0 ** exponents).reshape(shape))
            self.save("exponents.npy", exponents.reshape(shape))
            cut = 12 if len(shape) == 1 else 0
            size = "40x6" if len(shape) == 1 else "16x5"
            powers, plain = (self.tessera("view", name, "--size", size, *more).splitlines()[rows]
                             for name, more in (("powers.npy", ["--log"]), ("exponents.npy", [])))
            self.assertEqual([line[cut:] for line in powers], [line[cut:] for line in plain])
        text = self.tessera("view", "powers.npy", "--log", "--range", "1,100", "--size", "16x5")
        self.assertTrue(text.splitlines()[-1].startswith("1 .:-=+*#%@ 100"), text)
        self.save("mixed.npy", np.array([[0, 1, 10], [-5, 100, 1000]], "f4"))
        lines = self.tessera("view", "mixed.npy", "--log", "--size", "6x2").splitlines()
        self.assertEqual([line[:6] for line in lines[2:4]], ["  ..==", "  ##@@"])
        self.assertIn("not above 0", lines[-1])
        self.refused("view", "mixed.npy", "--log", "--range", "0,10", says="above 0")
        self.assertIn("--log", self.run_program("view", "mixed.npy", "--log", "--json").stderr)
        self.save("days.npy", np.arange(6).astype("M8[D]"))
        self.refused("view", "days.npy", "--log", says="logarithm")

    def test_ticks(self):
        self.save("a.npy", np.add.outer(np.arange(60.0), np.arange(90)))
        lines = self.tessera("view", "a.npy", "--size", "60x20").splitlines()
        picture, ruler = lines[3:23], lines[23]
        labelled = {n: line.split()[-1] for n, line in enumerate(picture) if line[-1].isdigit()}
        self.assertGreater(len(labelled), 2)
        for n, label in labelled.items():
            self.assertEqual(int(label) // 3, n)  # a line is 3 rows
        self.assertGreater(len(ruler.split()), 3)
        for found in re.finditer(r"\d+", ruler):
            middle = (found.start() + found.end() - 1) / 2
            self.assertAlmostEqual(middle, (int(found[0]) // 3 + 0.5) * 2, delta=1)  # a cell is 3 columns, and two characters

    def test_all_is_missing(self):
        self.save("a.npy", np.full((4, 5), np.nan))
        self.assertIn("all of it is missing", self.tessera("view", "a.npy", "--size", "10x4"))

    def test_braille(self):
        self.save("a.npy", np.arange(8.0))
        lines = self.tessera("view", "a.npy", "--size", "16x2").splitlines()
        rows = [line[12:] for line in lines[1:3]]
        dots = np.zeros((8, 8), bool)
        bits = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]]
        for y in range(8):
            for x in range(8):
                dots[y, x] = ord(rows[y // 4][x // 2]) - 0x2800 & bits[y % 4][x % 2] != 0
        np.testing.assert_array_equal(dots, np.eye(8)[::-1] != 0)
        self.assertEqual((lines[1][:11].strip(), lines[2][:11].strip()), ("7.00", "0"))
        self.assertEqual(lines[3].strip(), "axis 0 0 … 7")

    def test_histograms(self):
        self.save("a.npy", np.repeat(np.arange(4.0), [1, 2, 3, 4]).reshape(2, 5))
        shown = self.tessera_json("view", "a.npy", "--hist", "--bins", "4")["histogram"]
        counts, edges = np.histogram(np.load(self.folder / "a.npy"), np.arange(len(shown["counts"]) + 1) * shown["width"] + shown["start"])
        self.assertEqual(shown["counts"], counts.tolist())
        lines = self.tessera("view", "a.npy", "--hist", "--bins", "4").splitlines()
        self.assertEqual([line.split()[-1] for line in lines[1:]], ["1", "2", "3", "4"])

    def test_tables(self):
        rows = np.zeros(100, [("name", "U8"), ("depth", "<f8"), ("parts", "<i2", (6,))])
        rows["name"] = [f"s{i}" for i in range(100)]
        rows["depth"] = np.arange(100) / 8
        rows["parts"] = np.arange(600).reshape(100, 6)
        self.save("t.npy", rows)
        lines = self.tessera("view", "t.npy", "--size", "60x11").splitlines()
        self.assertEqual(lines[0], "t.npy [0:100] structures")
        self.assertEqual(lines[1].split(), ["name", "depth", "parts"])
        self.assertEqual(lines[2].split(), ["0", "s0", "0.0", "[0", "1", "2", "3", "…]"])
        self.assertEqual([line.split()[0] for line in lines[2:]], [*"0123456", "…", *map(str, range(96, 100))])
        self.assertEqual(lines[-1].split()[:3], ["99", "s99", "12.375"])
        self.assertIn("12.375", self.tessera("view", "t.npy", "::-1").splitlines()[2])
        words = np.array([["a", "b\x1b[31m"], ["ccc", "日本"]])
        self.save("w.npy", words)
        lines = self.tessera("view", "w.npy").splitlines()
        self.assertEqual(lines[1].split(), ["0", "1"])
        self.assertEqual(lines[2].split(), ["0", "a", "b\\x1b[31m"])
        self.assertEqual(lines[3].split(), ["1", "ccc", "日本"])
        self.tessera("create", "w.zarr", "--shape", "2,2", "--dtype", "string", "--format", "v3", "--quiet")
        for i, j in np.ndindex(2, 2):
            self.tessera("set", "w.zarr", f"{i},{j}", json.dumps(str(words[i, j])), "--quiet")
        self.assertEqual(self.tessera("view", "w.zarr").splitlines()[3].split(), ["1", "ccc", "日本"])
        self.save("one.npy", np.array(4.5))
        self.assertIn("4.5", self.tessera("view", "one.npy"))
        self.refused("view", "t.npy", "--png", "t.png", says="::")
        self.assertIn("12.4", self.tessera("view", "t.npy::depth", "--size", "40x5"))

    def test_hostile_names_do_not_steer(self):
        self.save("a\x1b[2J.npy", np.eye(2))
        self.assertNotIn("\x1b", self.tessera("view", "a\x1b[2J.npy"))


if __name__ == "__main__":
    main()
