#!/usr/bin/env python3
"""The page audited by axe-core, and opened on nodes of every kind: no violation, and nothing on the console."""

import os
import pathlib
import unittest
import urllib.parse

import numpy as np

from browsing import PageTest, main
AXE = pathlib.Path(os.environ["TESSERA_SOURCE"]) / "tests" / "axe" / "node_modules" / "axe-core" / "axe.min.js"


def volume():
    z, y, x = np.mgrid[:12, :20, :30]
    return (z * 1000 + y * 30 + x).astype("<f4")


class Audit(PageTest):
    @unittest.skipUnless(AXE.exists(), "axe-core is not installed: npm ci in tests/axe")
    def test_no_violations(self):
        self.save("volume.npy", volume())
        self.save("line.npy", np.arange(50.0))
        self.save("table.npy", np.zeros(5, [("a", "f4"), ("b", "U3")]))
        self.tessera("group", "s", "--format", "v3", "--quiet")
        for name in "a", "b":
            self.tessera("import", "volume.npy", f"s/{name}", "--chunks", "4,10,10", "--dims", "z,y,x", "--quiet")
        for name in "line", "table":
            self.tessera("import", f"{name}.npy", f"s/{name}", "--quiet")
        server = self.serve("s")
        for link, ready in (("#path=", "document.querySelectorAll('#panel-members td').length > 3"),
                            ("#path=a", "document.getElementById('map').dataset.state === 'complete'"),
                            ("#path=a&tab=planes", "document.querySelector('.plane-title')?.textContent.includes('down')"),
                            ("#path=a&tab=compare&other=b", "document.getElementById('compare-note')?.textContent.includes('No difference')"),
                            ("#path=a&tab=compare", "document.getElementById('compare-note')?.textContent.includes('Name another')"),
                            ("#path=a&tab=table", "document.querySelectorAll('.cell').length > 10"),
                            ("#path=a&tab=chunks", "document.querySelector('.chunk-canvas')"),
                            ("#path=a&tab=details", "document.querySelectorAll('#panel-details dt').length > 3"),
                            ("#path=line&tab=line", "document.querySelector('#line canvas')?.width > 100 && tesseraPage.linePlot?.line"),
                            ("#path=table", "document.querySelectorAll('.cell').length > 5")):
            for theme in "light", "dark":
                with self.subTest(link, theme=theme):
                    self.open(server, link)
                    self.wait(ready)
                    self.script("document.documentElement.dataset.theme = arguments[0]", theme)
                    self.audit()
        for opener in "help", "save":
            with self.subTest(opener):
                self.open(server, "#path=a")
                self.complete()
                self.by_id(opener).click()
                self.audit()

    def audit(self):
        self.script(AXE.read_text() + "\nwindow.axe = axe;")
        found = self.browser.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']}).then((found) => done(found.violations), (error) => done(String(error)));")
        self.assertNotIsInstance(found, str)
        self.assertEqual([(one["id"], node["target"], node["failureSummary"]) for one in found for node in one["nodes"]], [])


class Kinds(PageTest):
    def nodes(self):
        """A line of the command that makes it for each kind of node."""
        random = np.random.default_rng(41)
        numbers = random.integers(0, 100, (6, 8))
        for dtype in ("?", "i1", "u1", "<i2", ">i2", "<u2", "<i4", "<u4", "<i8", ">u8", "<f2", "<f4", ">f4", "<f8", "<c8", ">c16"):
            yield f"dtype-{dtype.strip('<>?') or 'bool'}{'-big' if '>' in dtype else ''}", numbers.astype(dtype)
        yield "datetimes", numbers.astype("M8[D]")
        yield "timedeltas", numbers.astype("m8[s]")
        yield "texts", numbers.astype("U3")
        yield "bytes", numbers.astype("S3")
        yield "structures", np.zeros(6, [("a", "f4"), ("b", "U3"), ("c", [("x", "i2")])])
        yield "structures-2d", np.zeros((3, 4), [("a", "f4"), ("b", "i2")])
        for shape in ((), (0,), (1,), (5,), (3, 0), (1, 1), (1, 9), (9, 1), (2, 3, 4), (2, 1, 3, 4), (2,) * 7, (1, 1, 1)):
            yield "shape-" + ("x".join(map(str, shape)) or "scalar"), np.arange(int(np.prod(shape)), dtype="<f4").reshape(shape)
        yield "all-nan", np.full((5, 6), np.nan)
        yield "infinities", np.array([[np.inf, -np.inf], [0, 1]])
        yield "colours", random.integers(0, 255, (8, 9, 3)).astype("u1")
        yield "constant", np.ones((5, 6))
        yield "huge", numbers * 1e300
        yield "tiny", numbers * 1e-300

    def test_every_kind_of_node(self):
        self.tessera("group", "kinds", "--format", "v3", "--quiet")
        names = []
        for name, values in self.nodes():
            self.save("one.npy", values)
            self.tessera("import", "one.npy", f"kinds/{name}", "--quiet")
            names.append(name)
        self.tessera("group", "kinds/empty", "--quiet")
        self.tessera("create", "kinds/nothing-stored", "--shape", "100,100", "--dtype", "f4", "--quiet")
        self.tessera("create", "kinds/shards", "--shape", "16,16", "--chunks", "4,4", "--shards", "8,8", "--dtype", "f4", "--quiet")
        self.save("one.npy", np.arange(24.0).reshape(4, 6))
        self.tessera("import", "one.npy", "kinds/damaged", "--chunks", "2,2", "--quiet")
        (self.folder / "kinds/damaged/c/0/0").write_bytes(b"?")
        (self.folder / "kinds/broken").mkdir()
        (self.folder / "kinds/broken/zarr.json").write_text("{")
        np.savez(self.folder / "kinds/members.npz", a=np.arange(3), b=np.ones((4, 5)))
        names += ["", "empty", "nothing-stored", "shards", "damaged", "broken", "members.npz", "members.npz/b", "not/there"]
        self.assertGreaterEqual(len(names), 40)
        server = self.serve("kinds")
        failed = {"damaged", "broken", "not/there"}
        for name in names:
            with self.subTest(name):
                self.open(server, "#path=" + name)
                self.settle()
                for tab in self.script("return [...document.querySelectorAll('#tabs button')].map((button) => button.id)"):
                    self.by_id(tab).click()
                    self.settle()
                # What the server refuses stands on the page, and Chromium notes it; errors of scripts are something else.
                messages = [line["message"] for line in self.browser.get_log("browser")]
                refused = [text for text in messages if "Failed to load resource" in text
                           and any(f"path={one}" in urllib.parse.unquote(text) for one in failed)]
                self.assertEqual([text for text in messages if text not in refused], [])
                if name not in failed:
                    self.assertTrue(self.script("return document.getElementById('error').hidden"), self.text("error"))
                else:
                    self.assertNotIn("undefined", self.text("error"))

    def settle(self):
        """Until nothing is under way."""
        self.wait("!window.tesseraPage.loading && document.getElementById('name').textContent !== 'Tessera'")
        self.wait("!document.getElementById('map').offsetParent || "
                  "['complete', undefined].includes(document.getElementById('map').dataset.state) || "
                  "!document.getElementById('error').hidden")


if __name__ == "__main__":
    main()
