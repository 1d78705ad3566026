#!/usr/bin/env python3
"""The page's three planes of a volume, two arrays side by side, and times of every calendar."""

import re

import numpy as np

from browsing import ActionChains, Keys, PageTest, main


class Volumes(PageTest):
    def setUp(self):
        super().setUp()
        z, y, x = np.mgrid[:6, :50, :60]
        self.volume = (z * 10000 + y * 100 + x).astype("<f4")
        self.other = self.volume + np.where((y > 10) & (x > 40), np.float32(7), np.float32(0))
        self.other[0, 0, 0] = np.nan
        np.savez(self.path("data.npz"), volume=self.volume, other=self.other, flat=np.zeros((4, 5)), text=np.full((6, 50, 60), "a"))
        self.server = self.serve("data.npz")

    def link(self, name):
        found = re.search(rf"[#&]{name}=([^&]*)", self.script("return location.hash"))
        return found and found[1]

    def values(self, script):
        return np.array(self.script(f"return Array.from({script}, (v) => Number.isNaN(v) ? null : v)"), float)

    def planes(self):
        self.wait("tesseraPage.planes?.planes.every(({ data, drawn }) => data && drawn)")

    def plane(self, k):
        return self.find("#panel-planes canvas")[k]

    def at_of(self):
        self.wait("new URLSearchParams(location.hash.slice(1)).get('at')")
        return [int(i) for i in self.link("at").split(",")]

    def test_three_planes_have_one_cursor(self):
        self.open(self.server, "#path=volume&tab=planes&at=2,20,30")
        self.planes()
        for k, wanted in enumerate((self.volume[2], self.volume[:, 20], self.volume[:, :, 30])):
            np.testing.assert_array_equal(self.values(f"tesseraPage.planes.planes[{k}].data.values"), wanted.ravel())
        labels = [canvas.get_attribute("aria-label") for canvas in self.find("#panel-planes canvas")]
        self.assertIn("axis 1 down, axis 2 across", labels[0])
        self.assertIn("axis 0 2", labels[0])
        # The pointer in one plane moves the other two.
        canvas = self.plane(0)
        size = canvas.size
        self.mouse().move_to_element_with_offset(canvas, int(size["width"] * 0.25), int(-size["height"] * 0.25)).click().perform()
        self.wait("!location.hash.includes('at=2,20,30')")
        at = self.at_of()
        self.assertEqual(at[0], 2)
        self.assertAlmostEqual(at[1], 12, delta=2)
        self.assertAlmostEqual(at[2], 45, delta=2)
        self.wait(f"tesseraPage.planes.planes[1].data?.values[7] === {float(self.volume[0, at[1], 7])}")
        self.wait(f"document.getElementById('value').textContent === '{float(self.volume[tuple(at)])}'")
        np.testing.assert_array_equal(self.values("tesseraPage.planes.planes[2].data.values"), self.volume[:, :, at[2]].ravel())
        # So do the arrow keys, in steps of ten with Shift.
        self.script("arguments[0].focus()", self.plane(1))
        self.press(Keys.ARROW_DOWN)
        self.press(Keys.SHIFT + Keys.ARROW_LEFT)
        self.wait(f"location.hash.includes('at=3,{at[1]},{at[2] - 10}')")
        self.wait(f"document.getElementById('value').textContent === '{float(self.volume[3, at[1], at[2] - 10])}'")
        # The profile goes through the cursor along any axis.
        self.script("const s = document.getElementById('profile-axis'); s.value = 0; s.dispatchEvent(new Event('change'))")
        self.wait("tesseraPage.profile.line?.values.length === 6")
        np.testing.assert_array_equal(self.values("tesseraPage.profile.line.values"), self.volume[:, at[1], at[2] - 10])
        self.press(Keys.ENTER)
        self.wait("location.hash.includes('tab=picture') && location.hash.includes('axes=0,2')")
        self.complete()

    def test_planes_take_a_volume(self):
        self.open(self.server, "#path=flat")
        self.complete()
        self.assertEqual(self.find("#tab-planes"), [])

    def test_two_arrays_and_their_difference(self):
        self.open(self.server, "#path=volume&tab=compare&at=2,0,0")
        self.wait("document.getElementById('compare-note')?.textContent.includes('Name another array')")
        self.assertEqual(self.script("return document.getElementById('tool-colours').clientHeight"), 0)
        self.wait("document.querySelectorAll('#others option').length === 2")
        self.by_id("other").send_keys("other" + Keys.ENTER)
        self.wait("document.getElementById('compare-note')?.textContent.startsWith('Differences in view')")
        self.assertGreater(self.script("return document.getElementById('tool-colours').clientHeight"), 100)
        self.assertIn("−7 to 0", self.text("compare-note"))
        np.testing.assert_array_equal(self.values("tesseraPage.compare.views[2].visible()[0].values").reshape(50, 60),
                                      self.volume[2] - self.other[2])
        self.wait("location.hash.includes('other=other')")
        # Both show one range, and move together.
        self.assertTrue(self.script("const [a, b] = tesseraPage.compare.views; return a.view.range === b.view.range && a.view.range !== null"))
        self.script("tesseraPage.compare.views[1].map.setView([10, 12], 4, { animate: false })")
        where = self.script("return tesseraPage.compare.views.map((v) => [v.map.getZoom(), v.map.getCenter().lat, v.map.getCenter().lng])")
        self.assertEqual(where[0], where[1])
        self.assertEqual(where[0], where[2])
        # The pointer shows both values.
        place = self.by_id("compare-2")
        ActionChains(self.browser, duration=20).move_to_element(place).perform()
        self.wait("document.getElementById('beside').textContent.startsWith('other: ')")
        # The link shows the same again.
        link = self.script("return location.hash")
        self.open(self.server, link)
        self.wait("document.getElementById('compare-note')?.textContent.startsWith('Differences in view')")

    def test_missing_elements_have_no_difference(self):
        self.open(self.server, "#path=other&tab=compare&other=volume&at=0,0,0")
        self.wait("document.getElementById('compare-note')?.textContent.startsWith('Differences in view')")
        difference = self.values("tesseraPage.compare.views[2].visible()[0].values").reshape(50, 60)
        np.testing.assert_array_equal(difference, self.other[0] - self.volume[0])
        self.assertTrue(np.isnan(difference[0, 0]))

    def test_what_cannot_be_compared_is_said(self):
        for other, says in (("flat", "only arrays of one shape"), ("text", "holds no numbers")):
            self.open(self.server, f"#path=volume&tab=compare&other={other}")
            self.wait(f"document.getElementById('compare-note')?.textContent.includes('{says}')")
        self.assertEqual(self.script("return [...document.querySelectorAll('.compared')].filter((box) => !box.hidden).length"), 0)


class Calendars(PageTest):
    def test_times_of_every_calendar_are_dates(self):
        self.tessera("group", "g", "--format", "v3", "--quiet")
        self.save("t.npy", np.arange(0, 600, 59.0))
        self.save("v.npy", np.arange(11 * 4, dtype="f4").reshape(11, 4))
        wanted = {"standard": "2001-08-13", "noleap": "2001-08-14", "360_day": "2001-08-21", "all_leap": "2001-08-12",
                  "julian": "2001-08-13"}
        for calendar in wanted:
            self.tessera("group", f"g/{calendar}", "--quiet")
            self.tessera("import", "t.npy", f"g/{calendar}/time", "--dims", "time", "--quiet")
            self.tessera("attrs", f"g/{calendar}/time", "set", "units", "days since 2000-01-01", "--quiet")
            self.tessera("attrs", f"g/{calendar}/time", "set", "calendar", calendar, "--quiet")
            self.tessera("import", "v.npy", f"g/{calendar}/v", "--dims", "time,x", "--quiet")
        server = self.serve("g")
        for calendar, date in wanted.items():
            with self.subTest(calendar):
                # 590 days, which the program counts, too.
                said = self.run_program("get", f"g/{calendar}/v", f"time={date}, x@0").stdout
                # As a coordinate.
                self.open(server, f"#path={calendar}/v")
                self.complete()
                self.assertEqual(self.script("return tesseraPage.dimensions[0].text(10)"), date, said)
                # As the numbers of an array: pointer, and back.
                self.open(server, f"#path={calendar}/time&tab=line")
                self.wait("tesseraPage.linePlot?.line")
                self.assertEqual(self.script("return tesseraPage.quantity.text(590)"), date)
                self.assertEqual(self.script("return tesseraPage.quantity.parse(arguments[0])", date), 590)
                self.assertEqual(self.script("return tesseraPage.quantity.text(590.5)"), date + "T12:00:00")


if __name__ == "__main__":
    main()
