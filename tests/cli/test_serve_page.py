"""The page of `tessera serve`: pictures, and what a person does with mouse and keys."""

import numpy as np

from browsing import Keys, PageTest, main


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
        self.press(Keys.ARROW_RIGHT)
        self.wait("!document.getElementById('panel-table').hidden")
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
