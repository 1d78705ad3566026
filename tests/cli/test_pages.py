"""README.md and the pages in tools/docs: every code block runs as it stands, every link leads somewhere."""
import importlib.metadata
import os
import re
import shutil
import subprocess

import numpy as np

from pages import DOCS, SOURCE, PageRun, blocks, prose
from program import EXAMPLES, ProgramTest, main

README = SOURCE / "README.md"
PAGES = sorted(DOCS.rglob("*.md"))


def slug(heading):
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(text):
    return {slug(heading) for heading in re.findall(r"(?m)^#+ (.*)$", prose(text))}


class Pages(ProgramTest):
    def page(self, page, name="page", **how):
        folder = self.folder / name
        folder.mkdir()
        run = PageRun(self, page, folder, **how).run()
        self.folder = folder  # what is looked at afterwards
        return run

    def test_readme(self):
        run = self.page(README)
        if not run.skipped:  # for want of the module
            self.assertEqual(run.printed, "True 1.0\n")
        self.assertEqual(np.load(self.folder / "dem.npy")[100, 150], 250)

    def test_compute(self):
        self.page(DOCS / "compute.md")
        dem = np.load(self.folder / "jacksboro_fault_dem.npz")["elevation"]
        np.testing.assert_array_equal(np.load(self.folder / "rows.npy"), dem.max(axis=1))
        feet = np.where(dem < 0, 0, dem.astype("f4") * np.float32(3.28084))
        np.testing.assert_array_equal(self.exported("rounded.zarr"), np.rint(feet).astype("i2"))

    def test_howto(self):
        if self.page(DOCS / "howto.md").skipped:
            return
        topo = np.load(self.folder / "topobathy.npz")["topo"]
        np.testing.assert_array_equal(self.exported("twice.zarr"), np.concatenate([topo, topo], 1))
        np.testing.assert_array_equal(self.exported("again.zarr"), np.concatenate([topo, topo[:, :1]], 1))
        self.assertEqual(self.tessera_json("attrs", "again.zarr"), {"units": "m"})
        self.assertEqual(self.tessera_json("dims", "twice.zarr")["names"], ["y", "x"])

    def test_howto_tables(self):
        if self.page(DOCS / "howto_tables.md").skipped:
            return
        topo = np.load(self.folder / "topobathy.npz")["topo"]
        np.testing.assert_array_equal(np.loadtxt(self.folder / "grid.csv", "<f4", delimiter=","), topo)
        self.assertEqual(self.exported("stations.zarr").tolist(), [("A", 12.5), ("B", 7.0)])

    def test_tutorial(self):
        """Each language by itself leads to the same arrays; what each prints is what the other two print."""
        top, page = self.folder, DOCS / "tutorial.md"
        self.page(page, "shell", languages=("sh", "console"))
        self.folder = top
        python = self.page(page, "python", languages=("python",)).printed
        self.folder = top / "cpp"
        self.folder.mkdir()
        shutil.copy(EXAMPLES / "jacksboro_fault_dem.npz", self.folder)
        program = f"{os.environ['TESSERA_EXAMPLES']}/example_tutorial"
        cpp = subprocess.run([program], cwd=self.folder, check=True, capture_output=True, text=True).stdout
        if python:  # else there is no module
            self.assertEqual(cpp.splitlines()[1:5], python.splitlines()[1:5])
        edited = np.load(EXAMPLES / "jacksboro_fault_dem.npz")["elevation"]
        edited[100:180, 150:300] = 250
        for name in ("shell", "cpp", "python"):
            self.folder = top / name
            if not (self.folder / "dem.npy").exists():
                self.assertEqual((name, python), ("python", ""))  # no module
                continue
            np.testing.assert_array_equal(np.load(self.folder / "dem.npy"), edited)
            for array in ("dem.zarr", "dem-v2.zarr"):
                np.testing.assert_array_equal(self.exported(array), edited)
                self.assertEqual(self.tessera_json("dims", array)["names"], ["y", "x"])
            subprocess.run(["sha256sum", "--check", "--quiet", "--strict", ".tessera/sha256sums.txt"],
                           cwd=self.folder / "dem.zarr", check=True)

    def test_zarr(self):
        """Takes zarr-python 3; tests/peers runs the page with every version that it has."""
        try:
            version = importlib.metadata.version("zarr")
        except importlib.metadata.PackageNotFoundError:
            version = "none"
        if not version.startswith("3."):
            self.skipTest(f"zarr-python 3 is not installed, but {version}")
        self.page(DOCS / "zarr.md")

    def test_the_others(self):
        own = {name[len("test_"):] for name in dir(self) if name.startswith("test_")}
        for page in PAGES:
            if page.stem not in own:
                folder = self.folder / page.stem
                folder.mkdir()
                with self.subTest(page.name):
                    PageRun(self, page, folder).run()

    def test_excerpts_are_in_their_files(self):
        for page in [README, *PAGES]:
            places = {}
            for block in blocks(page.read_text()):
                if block.file:
                    text = (SOURCE / block.file).read_text()
                    at = text.find(block.text, places.get(block.file, 0))
                    self.assertGreaterEqual(at, 0, f"{page.name}:{block.line}: not in {block.file}, or not in this order")
                    places[block.file] = at

    def test_links_lead_somewhere(self):
        pages = [*SOURCE.glob("*.md"), *SOURCE.glob(".github/*.md"), *SOURCE.glob("*/README.md"), *SOURCE.glob("t*/*/README.md"),
                 *PAGES]
        for page in pages:
            for target in re.findall(r"\]\(([^)\s]+)\)", prose(page.read_text())):
                path, _, anchor = target.partition("#")
                if "://" in path:
                    continue
                there = (page.parent / path).resolve() if path else page
                self.assertTrue(there.exists(), f"{page}: {target}")
                if anchor:
                    self.assertIn(anchor, anchors(there.read_text()), f"{page}: {target}")

    def test_every_page_is_linked_from_readme_or_its_pages(self):
        seen, todo = set(), [README]
        while todo:
            page = todo.pop()
            if page in seen or page.suffix != ".md":
                continue
            seen.add(page)
            todo += [(page.parent / target.partition("#")[0]).resolve()
                     for target in re.findall(r"\]\(([^)#:\s]+)", prose(page.read_text()))]
        self.assertEqual([page.name for page in PAGES if page.resolve() not in seen], [])

    def test_every_page_is_short_and_has_its_place_in_the_site(self):
        """tools/release/site/build checks the rest, with what it takes from PyPI."""
        named = (SOURCE / "tools/release/site/mkdocs.yml").read_text()
        for page in PAGES:
            self.assertLessEqual(page.read_text().count("\n"), 400, f"{page}: split it by subject")
            self.assertIn(f": {page.relative_to(SOURCE)}\n", named, "name it in the navigation")


if __name__ == "__main__":
    main()
