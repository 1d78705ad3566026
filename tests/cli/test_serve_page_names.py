"""The page of `tessera serve` with names and attributes that mean harm, and with large tables."""

import json
import os

import numpy as np

from browsing import Keys, PageTest, main

RUN = "window.harmed = true"
HOSTILE = [
    f"<script>{RUN}<script>",
    f"<img src=x onerror='{RUN}'>",
    f"\" onmouseover=\"{RUN}\" x='",
    f"';{RUN};'`${{{RUN}}}",
    "&lt;b&gt;&amp;#x41;</title></style><!--",
    "‮txt.elif‬ ⁦⁧‏",
    "a" * 190,
    "{{7*7}} %s %n \\u003cb\\u003e",
    " \t spaces and 'quotes'  ",
    "javascript:" + RUN,
]


class Names(PageTest):
    def harmless(self):
        self.assertIsNone(self.script("return window.harmed ?? null"))
        self.assertEqual(self.find("#tree img, #tree script, #main script, #main img:not(.preview), #tools img"), [])

    def test_names_of_files(self):
        folder = self.folder / "served"
        folder.mkdir()
        names = [name.replace("/", "∕") for name in HOSTILE]
        for name in names:
            np.save(folder / f"{name}.npy", np.arange(12, dtype="<i4").reshape(3, 4))
        server = self.serve("served")
        self.open(server, "#path=")
        self.wait(f"document.querySelectorAll('[role=treeitem]').length === {len(names)}")
        shown = self.script("return [...document.querySelectorAll('[role=treeitem] .label')].map((label) => label.textContent)")
        self.assertEqual(sorted(shown), sorted(f"{name}.npy" for name in names))
        for n in range(len(names)):
            self.script("document.querySelectorAll('[role=treeitem] .row')[arguments[0]].click()", n)
            self.wait(f"document.getElementById('name').textContent === {json.dumps(shown[n])}")
            self.complete()
            self.assertTrue(self.browser.title.strip().startswith(" ".join(shown[n].split())[:20]), self.browser.title)
        self.harmless()
        # Long names neither widen the page nor push what is beside them out of it.
        self.assertLessEqual(self.script("return document.documentElement.scrollWidth"), 1200)
        self.wait(f"new URLSearchParams(location.hash.slice(1)).get('path') === {json.dumps(shown[-1])}")
        link = self.browser.current_url
        self.browser.get("about:blank")
        self.browser.get(link)
        self.complete()
        self.assertEqual(self.text("name"), shown[-1])

    def test_a_name_that_is_not_utf8(self):
        folder = self.folder / "served"
        folder.mkdir()
        np.save(self.path("x.npy"), np.arange(12, dtype="<i4").reshape(3, 4))
        os.rename(os.fsencode(self.path("x.npy")), os.path.join(os.fsencode(folder), b"caf\xe9.npy"))
        self.open(self.serve("served"))
        self.complete()
        self.assertEqual(self.text("name"), "caf\\xe9.npy")

    def test_attributes_dimensions_and_units(self):
        self.tessera("create", "a.zarr", "--shape", "4,5", "--dtype", "<f4", "--chunks", "2,5", "--format", "v3")
        document = json.loads((self.folder / "a.zarr/zarr.json").read_text())
        document["dimension_names"] = HOSTILE[:2]
        document["attributes"] = {**{name: name for name in HOSTILE}, "units": HOSTILE[1], "long_name": HOSTILE[0],
                                  "deep": {HOSTILE[2]: [HOSTILE[3], None, 1e400, {}]}}
        (self.folder / "a.zarr/zarr.json").write_text(json.dumps(document).replace("Infinity", "1e400"))
        server = self.serve("a.zarr")
        self.open(server)
        self.complete()
        options = self.script("return [...document.querySelectorAll('#axis-rows option')].map((option) => option.textContent)")
        self.assertEqual(options, HOSTILE[:2])
        self.assertIn(HOSTILE[0], self.text("facts"))
        self.mouse().move_to_element(self.by_id("map")).move_by_offset(3, 3).perform()
        self.wait("document.getElementById('value').textContent.includes('onerror')")
        self.script("document.getElementById('tab-details').click()")
        self.wait("document.querySelectorAll('#panel-details dt').length > 10")
        shown = self.script("return Object.fromEntries([...document.querySelectorAll('#panel-details dt')]"
                            ".map((name) => [name.textContent, name.nextSibling.textContent]))")
        for name in HOSTILE:
            self.assertEqual(shown[name], name)
        self.harmless()
        self.assertLessEqual(self.script("return document.documentElement.scrollWidth"), 1200)

    def test_fields_and_text(self):
        table = np.array([(n, name[:40]) for n, name in enumerate(HOSTILE)], [(HOSTILE[0], "<i4"), (HOSTILE[1], "<U40")])
        np.save(self.path("table.npy"), table)
        self.open(self.serve("table.npy"))
        self.wait("document.querySelectorAll('.grid-row .cell:not(.wait)').length >= 20")
        heads = self.script("return [...document.querySelectorAll('.grid-head .cell')].map((cell) => cell.textContent)")
        self.assertEqual(heads, HOSTILE[:2])
        cells = self.script("return [...document.querySelectorAll('.grid-row .cell:last-child')].map((cell) => cell.textContent)")
        self.assertEqual(cells, [name[:40] for name in HOSTILE])
        self.harmless()

    def test_a_large_table_scrolls(self):
        rows = 3_000_000
        table = np.zeros(rows, [("n", "<i4"), ("twice", "<i8")])
        table["n"] = np.arange(rows)
        table["twice"] = 2 * table["n"].astype("i8")
        np.save(self.path("table.npy"), table)
        self.open(self.serve("table.npy"))
        self.shows("first === 0")
        self.assertLess(len(self.find(".grid-row")), 100)  # those in view alone
        self.script("const s = document.querySelector('.grid-scroller'); s.scrollTop = s.scrollHeight / 2")
        middle = self.shows("first > 0")
        self.assertAlmostEqual(middle, rows / 2, delta=rows / 100)
        self.focus(".grid-scroller")
        self.press(Keys.END)
        self.shows(f"last === {rows - 1}")
        self.press(Keys.HOME)
        self.shows("first === 0")
        self.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
        self.shows("first === 2")
        self.press(Keys.PAGE_DOWN)
        self.shows("first > 10")

    def shows(self, condition):
        """Waits for rows that fit and are complete, and compares what they hold; the first of them."""
        self.wait(f"""((rows) => {{
            const first = rows[0]?.[0], last = rows.at(-1)?.[0];
            window.shown = {condition} && rows.length > 10 && !document.querySelector('.cell.wait') ? rows : null;
            return window.shown !== null;
        }})([...document.querySelectorAll('.grid-row')].map((row) => [...row.children].map((cell) => Number(cell.textContent))))""")
        shown = self.script("return window.shown")
        for row, n, twice in shown:
            self.assertEqual((n, twice), (row, 2 * row))
        return shown[0][0]


if __name__ == "__main__":
    main()
