"""The page of `tessera serve`: pictures, and what a person does with mouse and keys."""

import gzip
import io
import json
import shlex

import numpy as np

from browsing import Keys, PageTest, main


def lightness(colours):
    """Of sRGB colours, in Oklab."""
    c = np.asarray(colours) / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    lms = np.cbrt(linear @ np.array([[0.4122214708, 0.2119034982, 0.0883024619], [0.5363325363, 0.6806995451, 0.2817188376],
                                     [0.0514459929, 0.1073969566, 0.6299787005]]))
    return lms @ np.array([0.2104542553, 0.7936177850, -0.0040720468])


def luminance(colour):
    """Of #rrggbb, as WCAG has it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5))]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


class Page(PageTest):
    def setUp(self):
        super().setUp()
        self.volume = np.arange(6 * 50 * 60, dtype="<f4").reshape(6, 50, 60)
        table = np.array([(1, b"one"), (2, b"two")], [("n", "<i4"), ("name", "S3")])
        np.savez(self.path("data.npz"), volume=self.volume, table=table)
        self.server = self.serve("data.npz")

    def numbers(self, name):
        """The number in a field."""
        return float(self.by_id(name).get_attribute("value"))

    def pixel(self, row, column):
        """What is drawn of an element: red, green, blue, opacity."""
        return self.script("""const s = tesseraPage.slice, found = [];
            s.layer.each((t) => {
                const { row, column } = s.plan(t.coords);
                const i = arguments[0] - (row.tile * 256 + row.first), j = arguments[1] - (column.tile * 256 + column.first);
                if (row.level || column.level || i < 0 || j < 0 || i >= t.height || j >= t.width || t.coords.z !== s.tileZoom()) return;
                const [y, x] = [s.flipped[0] ? t.height - 1 - i : i, s.flipped[1] ? t.width - 1 - j : j];
                const copy = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
                copy.drawImage(t, -x, -y);
                found.push([...copy.getImageData(0, 0, 1, 1).data]);
            });
            return found[0]""", row, column)

    def test_the_picture_is_there_at_once(self):
        self.open(self.server)
        self.complete()
        self.assertEqual(self.text("name"), "volume")
        self.assertIn("6 × 50 × 60", self.text("facts"))

    def test_what_is_sampled_becomes_complete(self):
        self.tessera("import", self.save("many.npy", np.arange(360_000, dtype="<i4").reshape(600, 600)), "many.zarr",
                     "--chunks", "20,20", "--quiet")  # 900 chunks, of which a tile decodes 128 at once
        self.open(self.serve("many.zarr"))
        self.complete()
        self.assertNotIn("sampled", self.text("status"))

    def test_axes_slider_and_link(self):
        self.open(self.server, "#path=volume&at=2,0,0")
        self.complete()
        self.by_id("slider-0").send_keys(Keys.ARROW_RIGHT)
        self.wait("location.hash.includes('at=3,')")
        self.script("const s = document.getElementById('axis-rows'); s.value = 0; s.dispatchEvent(new Event('change'))")
        self.wait("location.hash.includes('axes=0,2')")
        self.complete()
        link = self.browser.current_url
        self.browser.get("about:blank")
        self.browser.get(link)
        self.complete()
        self.assertEqual(self.by_id("axis-rows").get_attribute("value"), "0")

    def test_a_link_keeps_a_narrow_range_far_from_zero(self):
        times = 1_700_000_000 + np.arange(1200, dtype="<i8").reshape(30, 40)
        np.savez(self.path("far.npz"), times=times, large=times - 1_700_000_000 + 2**53 - 5000)
        server = self.serve("far.npz")
        for name, first in ("times", times[0, 0]), ("large", 2**53 - 5000):
            self.open(server, f"#path={name}&range={first},{first + 1199}")
            self.complete()
            self.script("tesseraPage.writeLink()")
            self.assertIn(f"range={first},{first + 1199}", self.browser.current_url)
            self.assertEqual((self.numbers("low"), self.numbers("high")), (first, first + 1199))
            different = """const c = document.querySelector('canvas.tile'); const p = new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer);
                return new Set(p).size"""
            self.assertGreater(self.script(different), 20)
            # A number that is typed leaves the other one as it is.
            self.script(f"const f = document.getElementById('high'); f.value = '{first + 600}'; f.dispatchEvent(new Event('change'))")
            self.wait(f"location.hash.includes('range={first},{first + 600}')")

    def test_back_leads_to_the_array_before(self):
        self.open(self.server, "#path=volume&at=2,0,0")
        self.complete()
        self.by_id("slider-0").send_keys(Keys.ARROW_RIGHT)
        self.wait("location.hash.includes('at=3,')")
        self.focus("[role=treeitem]")
        self.press(Keys.END)
        self.press(Keys.ENTER)
        self.wait("location.hash.startsWith('#path=table')")
        self.browser.back()
        self.wait("document.getElementById('name').textContent === 'volume'")
        self.complete()
        self.wait("location.hash.includes('at=3,')")
        self.browser.forward()
        self.wait("document.getElementById('name').textContent === 'table'")
        self.wait("location.hash.startsWith('#path=table')")
        self.browser.back()
        self.wait("document.getElementById('name').textContent === 'volume'")

    def test_plus_zooms_one_level_with_shift_too(self):
        self.open(self.server, "#path=volume&at=2,0,0")
        self.complete()
        before = self.script("return tesseraPage.slice.map.getZoom()")
        zoom = "Math.abs(tesseraPage.slice.map.getZoom() - {}) < 1e-9"
        self.focus("#map")
        self.mouse().key_down(Keys.SHIFT).send_keys("+").key_up(Keys.SHIFT).perform()
        self.wait(zoom.format(before + 1))
        self.press("-")
        self.wait(zoom.format(before))

    def test_the_picture_fills_its_stage(self):
        """Along one of the axes, but for a step of the zoom; the key 0 and a button lead back to that."""
        sizes = {"wide": (30, 170), "tall": (217, 61), "large": (700, 900)}
        np.savez(self.path("sizes.npz"), **{name: np.zeros(shape, "u1") for name, shape in sizes.items()})
        server = self.serve("sizes.npz")
        fills = "(() => { const e = tesseraPage.slice.extent(), s = tesseraPage.slice.map.getSize();" \
                " return Math.max((e.right - e.left) / s.x, (e.bottom - e.top) / s.y); })()"
        for name in sizes:
            self.open(server, f"#path={name}")
            self.complete()
            first = self.script(f"return {fills}")
            self.assertGreater(first, 0.93, name)
            self.assertLess(first, 1.001, name)
            self.focus("#map")
            self.press("+")
            self.wait(f"{fills} > 1.5")
            self.press("0")
            self.wait(f"Math.abs({fills} - {first}) < 0.01")
            self.script("tesseraPage.slice.map.setZoom(-2)")
            self.wait(f"{fills} < 0.9")
            self.script("document.querySelector('.fit').click()")
            self.wait(f"Math.abs({fills} - {first}) < 0.01")

    def test_the_second_array_lies_within_its_axes(self):
        """It fits the stage whatever was shown before, and its tiles lie where its axes are drawn."""
        shapes = {"large": (2500, 2000), "tiny": (10, 12), "volume": (6, 50, 60), "rgb": (40, 60, 3), "line": (50,)}
        for name, shape in shapes.items():
            self.tessera("import", self.save(f"{name}.npy", np.zeros(shape, "u1")), f"{name}.zarr", "--quiet")
        self.addCleanup(self.browser.set_window_size, 1200, 800)
        for size in (1200, 800), (800, 600):
            self.browser.set_window_size(*size)
            for first, second in (("large", "tiny"), ("tiny", "large"), ("large", "volume"), ("rgb", "tiny"), ("line", "rgb")):
                self.open(self.serve(f"{first}.zarr", f"{second}.zarr"), f"#path={first}.zarr")
                self.wait(f"document.getElementById('name').textContent === '{first}.zarr'")
                if first != "line":
                    self.complete()
                self.script("""const p = tesseraPage, what = p.frameWhat.bind(p);
                    p.frameWhat = (map, extent) => { window.drawn = { ...extent }; return what(map, extent); };
                    p.slice.map.on('zoomanim', () => (window.zoomed = true));
                    [...document.querySelectorAll('#tree .row')].find((row) => row.textContent.includes(arguments[0])).click()""", second)
                self.wait(f"document.getElementById('name').textContent === '{second}.zarr' && window.drawn")
                self.complete()
                # Two frames on, what is to be drawn is.
                self.browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
                zoom, fit, extent, drawn, tiles, zoomed = self.script("""const s = tesseraPage.slice, boxes = [];
                    const map = s.element.getBoundingClientRect(), at = (side) => Math.min(...boxes.map((box) => box[side])) - map[side];
                    s.layer.each((tile) => tile.coords.z === s.tileZoom() && boxes.push(tile.getBoundingClientRect()));
                    return [s.map.getZoom(), s.fitZoom(), s.extent(), window.drawn, { left: at('left'), top: at('top') }, window.zoomed ?? false]""")
                with self.subTest(first=first, second=second, size=size):
                    self.assertFalse(zoomed)
                    self.assertAlmostEqual(zoom, fit)
                    self.assertEqual(drawn, extent)
                    for side in tiles:
                        self.assertAlmostEqual(tiles[side], extent[side], delta=1.5)

    def on_paper(self):
        """Prints; returns a script for the picture's place on the page, which is 800 pixels wide."""
        self.script("dispatchEvent(new Event('beforeprint'))")
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                     {"width": 800, "height": 1100, "deviceScaleFactor": 1, "mobile": False})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        self.addCleanup(self.browser.execute_cdp_cmd, "Emulation.clearDeviceMetricsOverride", {})
        self.addCleanup(self.browser.execute_cdp_cmd, "Emulation.setEmulatedMedia", {"media": ""})

    def test_on_a_phone_nothing_covers_anything(self):
        self.save("a.npy", np.arange(8 * 30 * 40.0).reshape(8, 30, 40))
        server = self.serve("a.npy")
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True})
        self.addCleanup(self.browser.execute_cdp_cmd, "Emulation.clearDeviceMetricsOverride", {})
        self.open(server, "#path=&tab=compare")
        self.wait("document.querySelector('.compared .plane-title')")
        bottom, top = self.script("""return [document.querySelector('#panel-compare > .note') ?? document.querySelector('.compare-form'),
            document.querySelector('.comparison')].map((e, k) => e.getBoundingClientRect()[k ? 'top' : 'bottom'])""")
        self.assertLessEqual(bottom, top)
        self.open(server, "#path=&tab=details")
        self.wait("document.getElementById('tab-details')?.getBoundingClientRect().right <= 390")

    def test_the_picture_is_printed(self):
        """Whole, as it stands on the screen, whatever the size of the paper."""
        np.save(self.path("p.npy"), np.arange(6000.0).reshape(60, 100))
        self.open(self.serve("p.npy"))
        self.complete()
        wide, tall = self.script("const s = document.getElementById('stage'); return [s.clientWidth, s.clientHeight]")
        self.on_paper()
        box = self.script("const r = document.querySelector('#paper canvas').getBoundingClientRect(); return [r.width, r.height, r.right]")
        self.assertAlmostEqual(box[1] / box[0], tall / wide, delta=0.01)
        self.assertGreater(box[0], 500)
        self.assertLessEqual(box[2], 800)
        inside = """const c = document.querySelector('#paper canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            const seen = new Set(); for (let i = 0; i < d.length; i += 40) seen.add(d[i] * 65536 + d[i + 1] * 256 + d[i + 2]);
            return seen.size"""
        self.assertGreater(self.script(inside), 150)  # the colours of the map
        self.assertFalse(self.find("#stage")[0].is_displayed())
        self.script("dispatchEvent(new Event('afterprint'))")
        self.assertEqual(self.script("return document.getElementById('paper').children.length"), 0)

    def test_a_line_is_printed(self):
        np.save(self.path("line.npy"), np.arange(40.0))
        self.open(self.serve("line.npy"))
        self.wait("tesseraPage.linePlot?.line")
        self.on_paper()
        self.assertGreater(self.script("return document.querySelector('#paper canvas').getBoundingClientRect().height"), 300)

    def test_a_table_is_printed(self):
        np.save(self.path("line.npy"), np.arange(40.0))
        self.open(self.serve("line.npy"), "#path=&tab=table")
        self.wait("document.getElementById('panel-table').textContent.includes('17')")
        self.on_paper()
        self.assertGreater(self.script("return document.getElementById('panel-table').getBoundingClientRect().height"), 300)

    def test_lines_have_axes(self):
        """Round values beside the line, what stands along it below, and its name and units above."""
        self.open(self.climate(), "#path=lat")
        self.wait("tesseraPage.linePlot?.line")
        texts = self.script("""const kept = CanvasRenderingContext2D.prototype.fillText, texts = [];
            CanvasRenderingContext2D.prototype.fillText = function (text) { texts.push(text); };
            tesseraPage.linePlot.draw();
            CanvasRenderingContext2D.prototype.fillText = kept;
            return texts""")
        self.assertEqual(texts[-1], "lat (°N)")
        self.assertTrue({"−40", "0", "40"} <= set(texts), texts)

    def test_drawn_tiles_have_no_seams(self):
        self.save("even.npy", np.full((700, 900), 7, "u1"))
        self.open(self.serve("even.npy"))
        self.complete()
        sides = """const m = document.getElementById('map').getBoundingClientRect();
            return [...document.querySelectorAll('.tile')].map((t) => t.getBoundingClientRect())
                .flatMap((r) => [r.left - m.left, r.top - m.top, r.right - m.left, r.bottom - m.top])
                .reduce((most, v) => Math.max(most, Math.abs(v - Math.round(v))), 0)"""
        for zoom in (None, -0.37, 0.61, 1.2):
            if zoom is not None:
                self.script("tesseraPage.slice.map.setZoom(arguments[0], {animate: false})", zoom)
            self.wait("document.querySelectorAll('.tile').length > 1")
            self.assertLess(self.script(sides), 0.01, zoom)

    def test_missing_elements_are_a_hatch(self):
        """Nothing is drawn on them; a hatch lies below the picture, and just there."""
        values = np.ones((40, 50), "f4")
        values[10:20, 5:25] = np.nan
        self.save("gaps.npy", values)
        self.open(self.serve("gaps.npy"))
        self.complete()
        self.assertEqual([self.pixel(15, 10)[3], self.pixel(2, 2)[3]], [0, 255])
        below = self.script("""const g = document.querySelector('.gaps').getBoundingClientRect(), e = tesseraPage.slice.extent();
            return Math.abs(g.width - (e.right - e.left)) + Math.abs(g.height - (e.bottom - e.top))""")
        self.assertLess(below, 1)
        self.assertEqual(self.text("legend"), "NaN")

    def test_the_map_of_chunks_fills_its_room(self):
        self.tessera("import", self.save("few.npy", np.ones((40, 60), "i4")), "few.zarr", "--chunks", "10,10", "--quiet")
        self.open(self.serve("few.zarr"), "#path=&tab=chunks")
        self.wait("document.querySelector('.chunk-canvas')")
        canvas, panel = self.script("""const r = (s) => { const b = document.querySelector(s).getBoundingClientRect(); return [b.width, b.height] };
            return [r('.chunk-canvas'), r('#panel-chunks')]""")
        self.assertGreater(max(canvas[0] / (panel[0] - 50), canvas[1] / (panel[1] - 190)), 0.9)
        self.assertLessEqual(canvas[1], panel[1])

    def test_an_array_that_is_emptied_while_it_is_shown(self):
        self.tessera("import", self.save("emptied.npy", np.arange(1200, dtype="<f4").reshape(30, 40)), "emptied.zarr", "--quiet")
        server = self.serve("emptied.zarr")
        self.open(server)
        self.complete()
        self.tessera("resize", "emptied.zarr", "0,40", "--quiet")
        self.assertEqual(self.script("return fetch('api/preview?axes=0,1&at=0,0').then((r) => r.status)"), 400)
        self.assertEqual(server.get("page/page.css").status, 200)
        self.browser.get_log("browser")  # Chromium notes each answer of 400

    def test_the_range_is_dragged_on_the_histogram(self):
        self.open(self.server, "#path=volume&at=0,0,0")
        self.complete()
        self.wait("document.getElementById('high').value !== ''")
        low, high = self.volume[0].min(), self.volume[0].max()
        canvas = self.find("#histogram canvas")[0]
        width = canvas.size["width"]
        self.mouse().move_to_element_with_offset(canvas, -width // 4, 0).click_and_hold().move_by_offset(width // 4, 0) \
            .move_by_offset(width // 4, 0).release().perform()
        self.wait("location.hash.includes('range=')")
        self.assertAlmostEqual(self.numbers("low"), low + (high - low) / 4, delta=(high - low) / 20)
        self.assertAlmostEqual(self.numbers("high"), high - (high - low) / 4, delta=(high - low) / 20)
        # The lower handle alone, to the left end.
        before = self.numbers("high")
        self.mouse().move_to_element(self.find("#histogram .handle")[0]).click_and_hold() \
            .move_by_offset(-width // 2, 0).release().perform()
        self.wait(f"Math.abs(document.getElementById('low').value - {low}) < 60")
        self.assertEqual(self.numbers("high"), before)
        colour = "[...document.querySelector('.tile').getContext('2d').getImageData(0, 0, 1, 1).data]"
        self.assertEqual(len(self.script(f"return {colour}")), 4)

    def test_a_profile_at_the_pointer(self):
        self.open(self.server, "#path=volume&at=1,0,0&along=0")
        self.complete()
        place = self.by_id("map")
        self.mouse().move_to_element(place).move_by_offset(5, 7).perform()
        self.wait("tesseraPage.profile.line")
        line = self.script("return tesseraPage.profile.line")
        row, column = self.script("return tesseraPage.pointer")
        np.testing.assert_array_equal(line["values"], self.volume[:, row, column])
        self.wait("/^[\\d.]+$/.test(document.getElementById('value').textContent)")
        self.assertEqual(float(self.text("value")), self.volume[1, row, column])
        self.assertIn(f"[1, {row}, {column}]", self.text("index"))
        self.script("const s = document.getElementById('profile-axis'); s.value = 2; s.dispatchEvent(new Event('change'))")
        self.wait("tesseraPage.profile.line.length === 60")
        np.testing.assert_array_equal(self.script("return tesseraPage.profile.line.values"), self.volume[1, row])
        drawn = "tesseraPage.profile.canvas.getContext('2d').getImageData(60, 0, 100, 100).data.some((v) => v > 0)"
        self.assertTrue(self.script(f"return {drawn}"))

    def climate(self):
        """A group with an array of packed temperatures and its coordinates."""
        self.packed = np.arange(-1200, 1200, dtype="<i2").reshape(4, 20, 30)
        self.packed[:, 3, 4] = -32767
        arrays = {
            "air": (self.packed, "time,lat,lon", {"scale_factor": 0.01, "add_offset": 273.2, "_FillValue": -32767, "units": "K",
                                                  "long_name": "air temperature"}),
            "time": (np.array(["2023-01-15", "2023-02-15", "2023-03-15", "2023-04-15"], "<M8[s]"), "time", {}),
            "lat": (np.linspace(-47.5, 47.5, 20), "lat", {"units": "degrees_north"}),
            "lon": (np.arange(30) * 5.0, "lon", {"units": "degrees_east"}),
        }
        for name, (values, dims, attributes) in arrays.items():
            self.tessera("import", self.save("one.npy", values), f"climate/{name}", "--format", "v3", "--dims", dims, "--quiet")
            for key, value in attributes.items():
                self.tessera("attrs", f"climate/{name}", "set", key, str(value), "--quiet")
        self.server_of_climate = self.serve("climate")
        return self.server_of_climate

    def point(self, row, column):
        """Moves the mouse onto an element."""
        x, y = self.script("""const s = tesseraPage.slice, m = s.map.latLngToContainerPoint(s.unit(arguments[0] + 0.5, arguments[1] + 0.5));
            const b = document.getElementById('map').getBoundingClientRect(); return [m.x - b.width / 2, m.y - b.height / 2]""", row, column)
        self.mouse().move_to_element_with_offset(self.by_id("map"), round(x), round(y)).perform()
        self.wait(f"String(tesseraPage.pointer) === '{row},{column}'")

    def frame(self):
        """What the frame is drawn from, without pixels."""
        return self.script("""const what = tesseraPage.frameWhat({}, null), [r, c] = [what.rows, what.columns];
            return { title: what.title, rows: r.title(), columns: c.title(), flipped: what.flipped, units: what.bar?.units,
                     down: r.ticks(0, r.length, 6, 4), across: c.ticks(0, c.length, 6, 4),
                     drawn: document.getElementById('frame').getContext('2d').getImageData(0, 0, 200, 900).data.some((v) => v > 0) }""")

    def test_axes_have_the_coordinates_of_the_group(self):
        self.open(self.climate(), "#path=air&at=1,0,0")
        self.complete()
        frame = self.frame()
        self.assertTrue(frame["drawn"])
        self.assertEqual((frame["rows"], frame["columns"]), ("lat (°N)", "lon (°E)"))
        self.assertEqual(frame["title"], "air temperature · time = 2023-02-15")
        for tick in frame["down"]:
            self.assertAlmostEqual(-47.5 + 5 * (tick["at"] - 0.5), float(tick["text"].replace("−", "-")))
        for tick in frame["across"]:
            self.assertAlmostEqual(5 * (tick["at"] - 0.5), float(tick["text"]))
        self.assertGreater(min(len(frame["down"]), len(frame["across"])), 2)

    def test_north_is_up_and_axes_can_be_flipped(self):
        """An element is drawn, and pointed at, where its coordinates are."""
        self.open(self.climate(), "#path=air&at=1,0,0")
        self.complete()
        places = "return [[0, 0], [19, 29]].map(([i, j]) => { const s = tesseraPage.slice; const p = s.map.latLngToContainerPoint(s.unit(i + 0.5, j + 0.5)); return [p.x, p.y] })"
        first, last = self.script(places)
        self.assertLess(last[1], first[1])
        self.assertLess(first[0], last[0])
        self.point(19, 0)
        self.wait(f"document.getElementById('value').textContent === '{self.packed[1, 19, 0] / 100 + 273.2:.2f} K'")
        self.assertNotEqual(self.pixel(0, 0), self.pixel(19, 29))
        corner = self.pixel(0, 0)
        self.by_id("flip-rows").click()
        self.wait("location.hash.includes('flip=0,0')")
        self.complete()
        first, last = self.script(places)
        self.assertLess(first[1], last[1])
        self.assertEqual(self.pixel(0, 0), corner)
        self.by_id("flip-columns").click()
        self.wait("location.hash.includes('flip=0,1')")
        self.complete()
        first, last = self.script(places)
        self.assertLess(last[0], first[0])
        self.assertEqual(self.pixel(0, 0), corner)
        self.point(2, 27)

    def test_sliders_show_coordinates_take_them_and_play(self):
        self.open(self.climate(), "#path=air&at=1,0,0")
        self.complete()
        place = self.by_id("place-0")
        self.assertEqual(place.get_attribute("value"), "2023-02-15")
        place.clear()
        place.send_keys("2023-04", Keys.TAB)
        self.wait("location.hash.includes('at=3,0,0')")
        self.assertEqual(place.get_attribute("value"), "2023-04-15")
        place.clear()
        place.send_keys("soon", Keys.TAB)
        self.wait("document.getElementById('place-0').getAttribute('aria-invalid') === 'true'")
        self.by_id("play-0").click()
        for i in 0, 1, 2:
            self.wait(f"location.hash.includes('at={i},0,0') || tesseraPage.frameWhat({{}}, null).title.includes('2023-0{i + 1}')")
        self.by_id("play-0").click()
        self.assertEqual(self.by_id("play-0").get_attribute("aria-pressed"), "false")

    def test_pixel_sizes_of_ome_zarr(self):
        self.tessera("import", self.save("cells.npy", np.ones((40, 60), "u1")), "image/0", "--format", "v3", "--quiet")
        transformations = [{"type": "scale", "scale": [0.5, 0.25]}, {"type": "translation", "translation": [10, 0]}]
        (self.folder / "image" / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {"ome": {"multiscales": [{
            "axes": [{"name": "y", "type": "space", "unit": "micrometer"}, {"name": "x", "type": "space", "unit": "micrometer"}],
            "datasets": [{"path": "0", "coordinateTransformations": transformations}]}]}}}))
        self.open(self.serve("image"), "#path=0")
        self.complete()
        frame = self.frame()
        self.assertEqual((frame["rows"], frame["columns"]), ("y (µm)", "x (µm)"))
        for tick in frame["down"]:
            self.assertAlmostEqual(10 + 0.5 * (tick["at"] - 0.5), float(tick["text"]))
        # Pixels that are twice as tall as wide are drawn so.
        self.assertAlmostEqual(self.script("const e = tesseraPage.slice.extent(); return (e.bottom - e.top) / (e.right - e.left)"), 2 * 40 / 60, 2)

    def test_packed_numbers_are_decoded(self):
        """For the pointer, the range, the profile and the title of the colours; the stored number stands beside."""
        self.open(self.climate(), "#path=air&at=1,0,0&along=2")
        self.complete()
        self.point(4, 7)
        self.wait(f"document.getElementById('value').textContent === '{self.packed[1, 4, 7] / 100 + 273.2:.2f} K'")
        self.assertIn(f"stored as {self.packed[1, 4, 7]}", self.text("index"))
        self.assertIn("lat −27.5 °N".replace("−", "-"), self.text("index"))
        self.wait("tesseraPage.profile.line?.values.length === 30")
        np.testing.assert_allclose(self.script("return tesseraPage.profile.line.values"), self.packed[1, 4] / 100 + 273.2, rtol=1e-6)
        self.assertGreater(self.numbers("low"), 260)
        self.assertLess(self.numbers("high"), 290)
        self.assertEqual(self.frame()["units"], "K")
        self.assertEqual(self.pixel(3, 4)[3], 0)
        self.point(3, 4)
        self.wait("document.getElementById('value').textContent === 'missing'")
        # The table has the values, too.
        self.open(self.server_of_climate, "#path=air&at=1,0,0&tab=table")
        self.wait("document.querySelector('.grid-row .cell:not(.wait)')")
        rows = self.script("return [...document.querySelectorAll('.grid-row')].slice(0, 4).map((row) => [...row.querySelectorAll('.cell')].slice(0, 5).map((c) => c.textContent))")
        wanted = [[f"{v / 100 + 273.2:.2f}" for v in row] for row in self.packed[1, :4, :5]]
        wanted[3][4] = "missing"
        self.assertEqual(rows, wanted)

    def test_times_are_dates(self):
        times = np.datetime64("2023-04-15", "D") + np.arange(600).reshape(20, 30)
        self.save("times.npy", times.astype("<M8[D]"))
        self.open(self.serve("times.npy"), "#path=&range=19462,20000")
        self.complete()
        self.assertEqual(self.by_id("low").get_attribute("value"), "2023-04-15")
        self.script("const f = document.getElementById('high'); f.value = '2024-01-01'; f.dispatchEvent(new Event('change'))")
        self.wait("location.hash.includes('range=19462,19723')")
        self.assertEqual(self.find("#histogram .scale span")[0].text, "2023-04-15")

    def test_maps_of_colours(self):
        """Of the ten even ones the lightness rises evenly; a circle's ends meet; labels differ from their neighbours."""
        maps = self.server.get("api/colours").json()
        self.assertEqual(list(maps)[-1], "nan")
        tables = {name: np.array([list(bytes.fromhex(text[i:i + 6])) for i in range(0, len(text), 6)]) for name, text in maps.items()}
        even = [name for name in tables if name not in ("diverging", "cyclic", "labels", "nan")]
        self.assertGreaterEqual(len(even), 10)
        for name in even:
            self.assertEqual(tables[name].shape, (256, 3))
            steps = np.diff(lightness(tables[name])[::15])
            self.assertGreater(steps.min(), 0, name)
            self.assertLess(steps.max(), 3.2 * steps.mean(), name)
        around = tables["cyclic"].astype(int)
        self.assertLess(np.abs(around - np.roll(around, 1, 0)).max(), 16)
        self.assertLess(np.ptp(lightness(tables["cyclic"])), 0.05)
        ahead = lightness(tables["diverging"])
        np.testing.assert_allclose(ahead, ahead[::-1], atol=0.02)
        labels = tables["labels"].astype(int)
        self.assertEqual(len(np.unique(labels, axis=0)), 256)
        self.assertGreater(np.abs(np.diff(labels, axis=0)).sum(1).min(), 40)

    def choose(self, name, value):
        self.script("const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('change'))", name, value)

    def test_maps_scales_and_their_reverses(self):
        values = np.geomspace(1, 1000, 40 * 50).reshape(40, 50)
        np.savez(self.path("looks.npz"), values=values, signed=np.linspace(-1, 3, 2000).reshape(40, 50), cell_labels=np.arange(2000).reshape(40, 50) % 5,
                 on=np.arange(2000).reshape(40, 50) % 2 == 1)
        server = self.serve("looks.npz")
        tables = {name: [list(bytes.fromhex(text[i:i + 6])) for i in range(0, len(text), 6)] for name, text in server.get("api/colours").json().items()}
        self.open(server, "#path=values&range=1,1000&map=plasma")
        self.complete()
        places = (0, 0), (13, 7), (39, 49)
        def drawn(table, place):
            for at in places:
                k = min(255, int(256 * place(values[at])))
                self.assertLessEqual(min(abs(np.subtract(self.pixel(*at)[:3], table[j])).max() for j in range(max(0, k - 1), min(256, k + 2))), 0, at)
        drawn(tables["plasma"], lambda v: (v - 1) / 999)
        self.by_id("map-reversed").click()
        self.wait("location.hash.includes('map=plasma_r')")
        drawn(tables["plasma"][::-1], lambda v: (v - 1) / 999)
        self.choose("map-name", "ocean")
        self.by_id("map-reversed").click()
        for scale, place in {"log": lambda v: np.log(v) / np.log(1000), "root": lambda v: ((v - 1) / 999) ** 0.5, "square": lambda v: ((v - 1) / 999) ** 2,
                             "symlog": lambda v: (np.arcsinh(v) - np.arcsinh(1)) / (np.arcsinh(1000) - np.arcsinh(1))}.items():
            self.choose("scale", scale)
            self.wait(f"location.hash.includes('map=ocean&scale={scale}')")
            drawn(tables["ocean"], place)
        self.open(server, "#path=signed&map=diverging")
        self.complete()
        self.assertEqual(self.numbers("low"), -self.numbers("high"))
        self.open(server, "#path=cell_labels")
        self.complete()
        for column in range(5):
            self.assertEqual(self.pixel(0, column)[:3], tables["labels"][column])
        self.open(server, "#path=on")
        self.complete()
        self.assertEqual([self.pixel(0, j)[:3] for j in (0, 1)], [tables["viridis"][0], tables["viridis"][255]])
        self.assertEqual(self.script("return tesseraPage.bar().names.map(([name]) => name)"), ["true", "false"])

    def test_the_first_load_is_small(self):
        """Scripts, styles, page and facts, as they come over the wire."""
        self.open(self.server)
        self.complete()
        sizes = self.script("""return [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
            .filter((e) => !/api\\/(tile|preview)/.test(e.name)).map((e) => [e.name, e.transferSize])""")
        self.assertGreater(len(sizes), 15)
        self.assertLess(sum(size for _, size in sizes), 150_000, sizes)
        plain = self.server.get("page/page.css")
        packed = self.server.get("page/page.css", Accept_Encoding="gzip, br")
        self.assertEqual(gzip.decompress(packed.body), plain.body)
        self.assertEqual((packed.headers["Content-Encoding"], plain.headers["Content-Encoding"]), ("gzip", None))
        self.assertEqual(self.server.get("page/page.css", Accept_Encoding="gzip", If_None_Match=packed.headers["ETag"]).status, 304)
        self.assertEqual(self.server.get("page/page.css", If_None_Match=packed.headers["ETag"]).status, 200)

    def test_arrays_of_red_green_and_blue_are_pictures(self):
        r = np.random.default_rng(3)
        rgb = r.integers(0, 256, (40, 50, 3)).astype("u1")
        rgba = r.integers(0, 256, (4, 40, 50)).astype("u1")
        rgba[3] = 255
        rgba[3, 2, 3] = 0
        np.savez(self.path("colours.npz"), rgb=rgb, rgba=rgba, vectors=np.ones((40, 50, 3), "f4"))
        server = self.serve("colours.npz")
        self.open(server, "#path=rgb")
        self.complete()
        for at in (0, 0), (17, 3), (39, 49):
            self.assertEqual(self.pixel(*at), [*rgb[at].tolist(), 255])
        self.by_id("as-colours").click()
        self.wait("location.hash.includes('colour=off')")
        self.complete()
        self.wait("tesseraPage.slice.view.range !== null && document.getElementById('slider-2')")
        self.open(server, "#path=rgba")
        self.complete()
        for at in (0, 0), (17, 3), (39, 49):
            self.assertEqual(self.pixel(*at), [*rgba[:3, at[0], at[1]].tolist(), 255])
        self.assertEqual(self.pixel(2, 3)[3], 0)
        self.open(server, "#path=vectors")
        self.complete()
        self.assertTrue(self.script("return document.getElementById('tool-channels').hidden"))

    def pyramid(self):
        """An image of OME-Zarr of two channels and three levels. Each level has numbers of its own, to tell them apart."""
        image = np.zeros((2, 1024, 1280), "<u2")
        image[0, :, :640] = 100
        image[1, 512:] = 200
        datasets = []
        for k in range(3):
            self.tessera("import", self.save("level.npy", image[:, ::2 ** k, ::2 ** k] // 2 ** k), f"image/{k}", "--format", "v3", "--chunks", "1,256,256", "--quiet")
            datasets.append({"path": str(k), "coordinateTransformations": [{"type": "scale", "scale": [1, 0.5 * 2 ** k, 0.5 * 2 ** k]}]})
        axes = [{"name": "c", "type": "channel"}, *({"name": name, "type": "space", "unit": "micrometer"} for name in "yx")]
        channels = [{"label": "DAPI", "color": "0000FF", "window": {"start": 0, "end": 100}}, {"label": "GFP", "color": "00FF00", "window": {"start": 0, "end": 400}}]
        (self.folder / "image" / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {
            "ome": {"version": "0.5", "multiscales": [{"axes": axes, "datasets": datasets}], "omero": {"channels": channels}}}}))
        return self.serve("image")

    def test_a_pyramid_is_one_image_of_channels(self):
        self.open(self.pyramid(), "#path=")
        self.complete()
        self.assertIn("3 levels", self.text("facts"))
        levels = """return [...new Set(performance.getEntriesByType('resource').map((e) => e.name).filter((n) => n.includes('api/tile'))
            .map((n) => new URL(n).searchParams).map((p) => p.get('path') + ':' + p.get('level')))]"""
        zoom = self.script("return tesseraPage.slice.tileZoom()")
        self.assertEqual(zoom, -1)
        self.assertEqual(self.script(levels), ["1:0,0"])  # a pixel of the level is one on the screen
        self.script("tesseraPage.slice.map.setZoom(0, {animate: false})")
        self.complete()
        self.assertEqual(self.script(levels), ["1:0,0", "0:0,0"])
        middle = self.script("const r = tesseraPage.slice.visibleRange(); return r.map(([first, count]) => Math.round(first + count / 2))")
        self.assertEqual(middle, [512, 640])
        self.assertEqual(self.pixel(520, 650)[:3], [0, 128, 0])
        self.assertEqual(self.pixel(520, 630)[:3], [0, 128, 255])
        self.assertEqual(self.pixel(500, 630)[:3], [0, 0, 255])
        self.script("const c = document.querySelector('.channel input[type=color]'); c.value = '#ff0000'; c.dispatchEvent(new Event('input'))")
        self.assertEqual(self.pixel(500, 630)[:3], [255, 0, 0])
        self.find(".channel input[type=checkbox]")[1].click()
        self.complete()
        self.wait("tesseraPage.slice.layer && !tesseraPage.slice.layer.isLoading()")
        self.wait("[...document.querySelectorAll('.tile')].every((t) => t.parts?.length === 1)")
        self.assertEqual(self.pixel(520, 650)[:3], [0, 0, 0])
        self.assertEqual(self.frame()["title"], "Image")

    def test_groups_are_pages_with_thumbnails(self):
        """A table of the members, each with its picture; a name leads to the member."""
        server = self.climate()
        self.tessera("group", "climate", "--quiet")
        self.tessera("attrs", "climate", "set", "title", "<b>Made up</b>", "--quiet")
        self.open(server, "#path=&tab=members")
        self.wait("document.querySelectorAll('.members tbody tr').length === 4")
        rows = self.script("return [...document.querySelectorAll('.members tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))")
        self.assertTrue(self.text("panel-members").startswith("title<b>Made up</b>"))
        self.assertEqual(rows[0][1:4], ["air", "4 × 20 × 30", "int16"])
        self.assertEqual([row[1] for row in rows], ["air", "lat", "lon", "time"])
        self.wait("document.querySelector('.thumb[data-state=drawn]')")
        self.assertEqual(self.script("const t = document.querySelector('.thumb[data-state=drawn]'); return [t.height, t.width]"), [20, 30])
        self.find(".member")[0].click()
        self.wait("document.getElementById('name').textContent === 'air'")
        self.complete()
        self.wait("location.hash.startsWith('#path=air')")
        self.browser.back()
        self.wait("document.querySelectorAll('.members tbody tr').length === 4 && !document.getElementById('panel-members').hidden")

    def test_thumbnails_of_colours_are_coloured(self):
        colours = np.zeros((20, 30, 3), "u1")
        colours[..., 0], colours[..., 1] = 200, 100
        self.tessera("import", self.save("one.npy", colours), "g/rgb", "--format", "v3", "--quiet")
        self.tessera("group", "g", "--quiet")
        self.open(self.serve("g"), "#path=&tab=members")
        self.wait("document.querySelector('.thumb[data-state=drawn]')")
        pixel = "const t = document.querySelector('.thumb'); return [...t.getContext('2d').getImageData(4, 4, 1, 1).data, t.height, t.width]"
        self.assertEqual(self.script(pixel), [200, 100, 0, 255, 20, 30])

    def test_only_missing_elements_have_no_histogram(self):
        self.save("nan.npy", np.full((30, 40), np.nan))
        self.open(self.serve("nan.npy"))
        self.complete()
        self.assertFalse(self.by_id("histogram").is_displayed())

    def test_back_leads_to_a_group_that_was_left_at_once(self):
        server = self.climate()
        self.open(server, "#path=&tab=members")
        self.script("const t = setInterval(() => { const m = document.querySelector('.member');"
                    " if (m) { clearInterval(t); m.click(); } }, 1)")
        self.wait("location.hash.startsWith('#path=air')")
        self.browser.back()
        self.wait("document.querySelectorAll('.members tbody tr').length === 4 && !document.getElementById('panel-members').hidden")

    def test_the_tree_is_searched(self):
        """Through groups that were never opened, of thousands of arrays, by any part of the path."""
        self.tessera("import", self.save("one.npy", np.ones((2, 3))), "many/group/first", "--format", "v2", "--quiet")
        for k in range(3000):
            folder = self.folder / "many" / "group" / f"array{k:04}"
            folder.mkdir()
            (folder / ".zarray").write_bytes((self.folder / "many" / "group" / "first" / ".zarray").read_bytes())
        server = self.serve("many")
        self.assertEqual(len(server.get("api/find?name=array").json()["found"]), 200)
        self.open(server, "#path=group/first")
        self.complete()
        self.browser.find_element("id", "search").send_keys("RAY2717")
        self.wait("document.querySelectorAll('#found button').length === 1")
        self.press(Keys.ENTER)
        self.press(Keys.ENTER)
        self.wait("document.getElementById('name').textContent === 'array2717'")
        search = self.browser.find_element("id", "search")
        search.clear()
        search.send_keys("nothing of this name")
        self.wait("document.getElementById('found').textContent.startsWith('Nothing has')")
        search.send_keys(Keys.ESCAPE)
        self.wait("document.getElementById('found').hidden && !document.getElementById('tree').hidden")

    def test_taking_away(self):
        """The elements in view as a file, the lines that read them, and the picture with its axes."""
        server = self.climate()
        self.open(server, "#path=air&at=1,0,0")
        self.complete()
        self.script("tesseraPage.slice.map.setView(tesseraPage.slice.unit(10, 15), tesseraPage.slice.map.getZoom() + 1, {animate: false})")
        (row, rows), (column, columns) = self.script("return tesseraPage.slice.visibleRange()")
        self.assertLess(rows * columns, 600)
        self.script("document.activeElement.blur()")
        self.mouse().send_keys("s").perform()
        self.wait("document.getElementById('take').open")
        selection = f"1, {row}:{row + rows}, {column}:{column + columns}".replace("0:20", ":") if rows == 20 else f"1, {row}:{row + rows}, {column}:{column + columns}"
        lines = {line.get_attribute("data-language"): line.text for line in self.find("#take code")}
        self.assertEqual(lines["Shell"], f"tessera get air '{selection}'")
        self.assertEqual(lines["Python"], f'tessera.open("air")[{selection}]')
        part = self.packed[1, row:row + rows, column:column + columns]
        # The shell's line prints these elements, as the page does: 268.17 for −503.
        arguments = shlex.split(lines["Shell"])[1:]
        self.assertIn(str(part[0, 0]), self.tessera(arguments[0], f"climate/{arguments[1]}", *arguments[2:], "--raw"))
        self.script("window.saved = []; URL.createObjectURL = ((make) => (blob) => { saved.push(blob); return make.call(URL, blob); })(URL.createObjectURL)")
        buttons = {button.text: button for button in self.find("#take .files button")}
        read = "return saved[arguments[0]]?.arrayBuffer().then((b) => [...new Uint8Array(b)])"
        for k, name in enumerate(["Elements, .npy", "Elements, .csv", "Picture, .png"]):
            buttons[name].click()
            self.wait(f"saved.length === {k + 1}")
        np.testing.assert_array_equal(np.load(io.BytesIO(bytes(self.script(read, 0)))), part)
        np.testing.assert_array_equal(np.loadtxt(io.BytesIO(bytes(self.script(read, 1))), delimiter=",", ndmin=2), part)
        self.assertEqual(bytes(self.script(read, 2))[:8], b"\x89PNG\r\n\x1a\n")
        drawn = self.script("const c = tesseraPage.drawn(), p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let dark = 0, colour = 0;"
                            "for (let i = 0; i < p.length; i += 4) { if (p[i] < 90 && p[i + 1] < 90 && p[i + 2] < 100) ++dark; if (Math.abs(p[i] - p[i + 2]) > 60) ++colour; }"
                            "return [dark / p.length * 4, colour / p.length * 4]")
        self.assertGreater(drawn[0], 0.0005)  # letters
        self.assertGreater(drawn[1], 0.2)
        self.script("document.getElementById('take').close()")

    def test_selections_as_files(self):
        values = np.arange(6 * 50 * 60, dtype="<f4").reshape(6, 50, 60)
        get = self.server.get
        answer = get("api/selection?path=volume&start=2,3,0&count=1,4,60&as=npy")
        np.testing.assert_array_equal(np.load(io.BytesIO(answer.body)), values[2, 3:7])
        answer = get("api/selection?path=volume&start=2,3,5&count=6,1,1&as=csv".replace("start=2", "start=0"))
        np.testing.assert_array_equal(np.loadtxt(io.BytesIO(answer.body), delimiter=","), values[:, 3, 5])
        self.assertIn("attachment", answer.headers["Content-Disposition"])
        table = get("api/selection?path=table&start=0&count=2&as=csv").body.decode()
        self.assertEqual(table.splitlines(), ["n,name", "1,one", "2,two"])
        for query, status in {"start=0,0,0&count=6,50,61": 400, "start=-1,0,0&count=1,1,1": 400, "start=0,0&count=1,1": 400, "start=0,0,0&count=6,50,60": 501}.items():
            self.assertEqual(get(f"api/selection?path=volume&as=csv&{query}").status, status, query)
        self.assertEqual(get("api/selection?path=volume&as=exe&start=0,0,0&count=1,1,1").status, 400)
        self.assertEqual(get("api/selection?path=volume&as=csv").status, 400)

    def test_changes_are_seen(self):
        """Elements that were rewritten, and another shape, are announced, and shown on demand; so is the server's end."""
        self.tessera("import", self.save("old.npy", np.zeros((30, 40), "<f4")), "changing.zarr", "--quiet")
        server = self.serve("changing.zarr")
        look = "tesseraPage.watch.look()"
        self.open(server)
        self.complete()
        self.script(look)
        self.assertTrue(self.script("return document.getElementById('error').hidden"))
        self.tessera("import", self.save("new.npy", np.full((30, 40), 7, "<f4")), "changing.zarr", "--overwrite", "--quiet")
        self.script(look)
        self.wait("!document.getElementById('error').hidden && document.getElementById('reload')")
        self.by_id("reload").click()
        self.complete()
        self.wait("document.getElementById('error').hidden")
        self.point(3, 4)
        self.wait("document.getElementById('value').textContent === '7.0'")
        self.tessera("resize", "changing.zarr", "60,40", "--quiet")
        # New numbers are not drawn with the old shape and range, even before the next look.
        self.script("tesseraPage.slice.store.clear(); tesseraPage.slice.update()")
        self.wait("!document.getElementById('error').hidden && document.getElementById('reload')")
        self.by_id("reload").click()
        self.wait("document.getElementById('facts').textContent.includes('60 × 40')")
        server.stop()
        self.script(look)
        self.wait("!document.getElementById('lost').hidden")
        self.browser.get_log("browser")  # Chromium notes each failed request

    def test_keys_and_help(self):
        self.open(self.server, "#path=volume&at=2,0,0")
        self.complete()
        self.mouse().send_keys("?").perform()
        self.wait("document.getElementById('keys').open")
        self.mouse().send_keys(Keys.ESCAPE).perform()
        self.wait("!document.getElementById('keys').open")
        self.mouse().send_keys("]").perform()
        self.wait("location.hash.includes('at=3,')")
        self.mouse().send_keys("[").send_keys("[").perform()
        self.wait("location.hash.includes('at=1,')")
        self.mouse().send_keys("/").perform()
        self.wait("document.activeElement.id === 'search'")
        self.press("?")
        self.assertFalse(self.script("return document.getElementById('keys').open"))

    def test_empty_states_are_sentences(self):
        np.savez(self.path("empty.npz"), nothing=np.zeros((0, 5)), gaps=np.full((20, 30), np.nan))
        server = self.serve("empty.npz")
        self.open(server, "#path=gaps")
        self.complete()
        self.wait("document.getElementById('status').textContent.includes('only missing')")
        self.assertEqual([self.by_id(name).get_attribute("value") for name in ("low", "high")], ["", ""])
        self.open(server, "#path=nothing")
        self.wait("document.getElementById('facts').textContent.includes('no elements')")
        self.open(server, "#path=not/there")
        self.wait("document.getElementById('error').textContent.includes('not/there')")
        self.browser.get_log("browser")  # Chromium notes the answer of 404
        self.assertEqual(self.text("name"), "Not found")

    def test_borders_stand_out(self):
        """By 3:1 from what is around them, in both themes."""
        self.open(self.server)
        self.complete()
        for name in "light", "dark":
            colours = self.script("""document.documentElement.dataset.theme = arguments[0];
                return ['edge', 'panel', 'raised', 'ground'].map((n) => getComputedStyle(document.documentElement).getPropertyValue('--' + n).trim())""", name)
            edge, *around = [luminance(colour) for colour in colours]
            for other in around:
                self.assertGreaterEqual((max(edge, other) + 0.05) / (min(edge, other) + 0.05), 3, (name, colours))

    def test_complex_numbers_have_parts(self):
        values = np.exp(1j * np.linspace(-3, 3, 1200)).reshape(30, 40) * np.arange(1, 1201).reshape(30, 40)
        self.tessera("import", self.save("waves.npy", values.astype(">c16")), "waves.zarr", "--chunks", "20,20", "--quiet")
        self.save("plain.npy", values.astype("<c8"))
        parts = {"magnitude": np.abs(values), "phase": np.angle(values), "real": values.real, "imaginary": values.imag}
        for name in "waves.zarr", "plain.npy":
            server = self.serve(name)
            self.assertEqual(server.get("api/picture").json()["pictures"], list(parts))
            for part, wanted in parts.items():
                tile = server.get(f"api/tile?field={part}&axes=0,1&at=0,0&level=0,0&tile=0,0")
                np.testing.assert_allclose(np.frombuffer(tile.body, tile.headers["X-Tessera-Dtype"]).reshape(30, 40), wanted, rtol=1e-5, atol=1e-5)
                line = server.get(f"api/profile?field={part}&axis=1&at=7,0").json()
                np.testing.assert_allclose(line["values"], wanted[7], rtol=1e-5, atol=1e-5)
            self.assertEqual(server.get("api/tile?field=argument&axes=0,1&at=0,0&level=0,0&tile=0,0").status, 400)
        self.open(server)
        self.complete()
        self.choose("field", "phase")
        self.wait("location.hash.includes('field=phase')")
        self.complete()
        self.wait("location.hash.includes('map=cyclic')")
        self.assertAlmostEqual(self.numbers("high"), np.pi, 4)
        self.assertAlmostEqual(self.numbers("low"), -np.pi, 4)
        self.script("document.getElementById('tab-table').click()")
        self.wait("/j/.test(document.querySelector('.grid-row .cell')?.textContent)")

    def test_fields_are_picked(self):
        values = np.zeros((30, 40), [("low", "<f4"), ("name", "S2"), ("high", "<f4"), ("grid", "<u2", (5,))])
        values["low"] = np.arange(1200).reshape(30, 40)
        values["high"] = 10 * values["low"]
        values["grid"] = 7
        np.save(self.path("prices.npy"), values)
        server = self.serve("prices.npy")
        self.open(server)
        self.complete()
        self.assertIn("4 fields", self.text("facts"))
        pick = "const f = document.getElementById('field'); f.value = '{}'; f.dispatchEvent(new Event('change'))"
        self.assertEqual(self.script("return [...document.querySelectorAll('#field option')].map((o) => o.textContent)"),
                         ["low", "high", "grid"])
        self.script(pick.format("high"))
        self.wait("location.hash.includes('field=high')")
        self.complete()
        self.mouse().move_to_element(self.by_id("map")).move_by_offset(4, 4).perform()
        self.wait("tesseraPage.pointer && /^[\\d.]+$/.test(document.getElementById('value').textContent)")
        row, column = self.script("return tesseraPage.pointer")
        self.wait(f"Number(document.getElementById('value').textContent) === {values['high'][row, column]}")
        self.script("document.getElementById('tab-table').click()")
        self.wait("document.querySelector('.grid-row .cell:nth-child(3)')?.textContent === '10.0'")
        self.script(pick.format("grid"))
        self.wait("document.querySelectorAll('#axis-rows option').length === 3")
        self.wait("document.querySelector('.grid-row .cell:nth-child(3)')?.textContent === '7'")
        self.open(server, "#path=&field=low")
        self.complete()
        self.assertEqual(self.by_id("field").get_attribute("value"), "low")

    def test_keys_alone(self):
        """From the address on: an array is chosen, looked at, coloured and read without a mouse."""
        self.open(self.server)
        self.complete()
        self.focus("[role=treeitem]")
        self.press(Keys.END)
        self.press(Keys.ENTER)
        self.wait("document.getElementById('name').textContent === 'table'")
        self.press(Keys.ARROW_UP)
        self.press(Keys.ENTER)
        self.wait("document.getElementById('name').textContent === 'volume'")
        self.complete()
        self.focus("[role=tab]")
        for _ in range(3):  # over the planes and the comparison
            self.press(Keys.ARROW_RIGHT)
        self.wait("!document.getElementById('panel-table').hidden")
        for _ in range(3):
            self.press(Keys.ARROW_LEFT)
        self.complete()
        self.focus("#map")
        self.press(Keys.ADD)
        self.wait("!document.getElementById('cross').hidden")
        self.wait("/^[\\d.]+$/.test(document.getElementById('value').textContent)")
        before = self.text("index")
        self.press(Keys.ARROW_LEFT)
        self.wait(f"document.getElementById('index').textContent !== '{before}'")
        self.focus("input[type=range]")
        self.press(Keys.ARROW_RIGHT)
        self.wait("location.hash.includes('at=4,')")
        self.focus("#histogram .handle")
        self.wait("document.getElementById('low').value !== ''")
        low = self.numbers("low")
        self.press(Keys.ARROW_RIGHT)
        self.wait(f"Number(document.getElementById('low').value) > {low}")
        self.focus("#profile-axis")
        self.press(Keys.HOME)
        self.wait("tesseraPage.profile.line?.length === 6")


if __name__ == "__main__":
    main()
