"""`copy --package`: a hierarchy in zips of a size, which opens in place, and survives the loss of one."""

import json
import os
import shutil
import subprocess
import sys
import zipfile

import numpy as np

from program import ProgramTest, main, module_folder

VALUES = np.random.default_rng(59).integers(0, 1000, (60, 50)).astype("<i4")


class Packages(ProgramTest):
    def setUp(self):
        super().setUp()
        self.save("values.npy", VALUES)
        for name, how in (("a", ("--format", "v3", "--codec", "none", "--chunks", "10,10")),
                          ("sub/b", ("--format", "v3", "--chunks", "10,10", "--shards", "30,50"))):
            self.tessera("import", "values.npy", f"g.zarr/{name}", *how, "--quiet")
        self.tessera("attrs", "g.zarr/a", "set", "units", "m")

    def members(self):
        """The members of each package, with their content."""
        for package in sorted((self.folder / "p").glob("package-*.zip")):
            with zipfile.ZipFile(package) as archive:
                self.assertIsNone(archive.testzip())
                self.assertEqual({m.compress_type for m in archive.infolist()}, {zipfile.ZIP_STORED})
                yield package, {name: archive.read(name) for name in archive.namelist()}

    def test_all_files_once_whole_and_within_the_size(self):
        made = self.tessera_json("copy", "g.zarr", "p", "--package", "4kB")
        found = {}
        for package, members in self.members():
            self.assertTrue(package.stat().st_size <= 4000 or len(members) == 1, package)
            self.assertFalse(found.keys() & members.keys())
            found.update(members)
        files = {str(f.relative_to(self.folder / "g.zarr")): f.read_bytes() for f in (self.folder / "g.zarr").rglob("*")
                 if f.is_file() and ".tessera" not in f.parts}
        self.assertEqual(found, files)
        self.assertGreater(made["packages"], 3)
        self.assertEqual((made["files"], made["bytes"]), (len(files), sum(map(len, files.values()))))
        # Each has its sums, for whoever has nothing but one of them.
        for package, _ in self.members():
            (self.folder / "out").mkdir(exist_ok=True)
            shutil.unpack_archive(package, self.folder / "out")
            subprocess.run(["sha256sum", "--check", "--quiet", "--strict", package.with_suffix(".sha256sums.txt")],
                           cwd=self.folder / "out", check=True)
        self.tessera("diff", "out", "g.zarr")

    def test_the_whole_in_place_and_back(self):
        self.tessera("copy", "g.zarr", "p", "--package", "6K", "--quiet")
        self.tessera("diff", "p/index.json", "g.zarr")
        self.assertEqual(self.tessera_json("attrs", "p/index.json/a"), {"units": "m"})
        self.assertEqual(self.tessera("digest", "p/index.json").split()[0], self.tessera("digest", "g.zarr").split()[0])
        self.tessera("verify", "p/index.json")
        self.tessera("copy", "p/index.json", "x.zarr", "--quiet")
        self.tessera("diff", "x.zarr", "g.zarr")
        np.testing.assert_array_equal(self.exported("x.zarr/sub/b"), VALUES)
        (self.folder / "p/index.json").rename(self.folder / "p/other.json")
        self.refused("copy", "p", "y.zarr", says="no array")
        (self.folder / "p/other.json").rename(self.folder / "p/index.json")
        self.tessera("copy", "p", "y.zarr", "--quiet")  # the folder's name is enough
        self.tessera("diff", "y.zarr", "g.zarr")

    def test_one_array(self):
        self.tessera("copy", "g.zarr/a", "p", "--package", "1M", "--quiet")
        self.assertEqual(len(list(self.members())), 1)
        np.testing.assert_array_equal(self.exported("p/index.json"), VALUES)

    def test_of_a_zip(self):
        self.tessera("copy", "g.zarr", "g.zip", "--quiet")
        self.tessera("copy", "g.zip", "p", "--package", "4K", "--quiet")
        self.tessera("diff", "p/index.json", "g.zarr")

    def test_a_lost_package_is_named_and_restored(self):
        self.tessera("copy", "g.zarr", "p", "--package", "4K", "--parity", "1", "--quiet")
        self.tessera("verify", "p")
        lost = self.folder / "p/package-0002.zip"
        content = lost.read_bytes()
        lost.unlink()
        self.assertIn("package-0002.zip", self.run_program("diff", "p/index.json", "g.zarr").stderr)
        self.assertIn("package-0002.zip: ", self.tessera("verify", "p", code=1))
        self.tessera("repair", "p", "--quiet")
        self.assertEqual(lost.read_bytes(), content)
        self.tessera("diff", "p/index.json", "g.zarr")
        # Without parity it is named, and nothing is invented.
        self.tessera("copy", "g.zarr", "q", "--package", "4K", "--quiet")
        self.assertIn("sound", self.tessera("verify", "q"))
        (self.folder / "q/package-0002.zip").unlink()
        self.assertIn("package-0002.zip", self.tessera("verify", "q", code=1))
        self.tessera("repair", "q", code=1)
        self.assertFalse((self.folder / "q/package-0002.zip").exists())

    def test_what_is_refused(self):
        self.tessera("copy", "g.zarr", "p", "--package", "1M", "--quiet")
        self.refused("copy", "g.zarr", "p", "--package", "1M", says="p: is sealed")
        (self.folder / "there").mkdir()
        self.refused("copy", "g.zarr", "there", "--package", "1M", says="something is there already")
        self.refused("copy", "values.npy", "q", "--package", "1M", says="values.npy")
        self.refused("copy", "nothing", "q", "--package", "1M", says="nothing")
        self.refused("copy", "g.zarr", "q", "--package", "0", says="--package")
        self.refused("copy", "g.zarr", "q", "--package", "1M", "--parity", "much", says="much")
        self.assertIn("--format: is not of --package", self.run_program("copy", "g.zarr", "q", "--package", "1M", "--format", "v2").stderr)
        self.assertIn("--parity requires --package", self.run_program("copy", "g.zarr", "q", "--parity", "1").stderr)
        self.assertFalse((self.folder / "q").exists())

    def test_the_module_does_the_same(self):
        text = ("import tessera\n"
                "made = tessera.package('g.zarr', 'p', '4K', parity=1)\n"
                "assert made.keys() == {'path', 'folder', 'packages', 'files', 'bytes', 'parity_bytes'} and made['parity_bytes'] > 0\n"
                "tessera.copy('p', 'y.zarr')\n"
                "assert (tessera.open('y.zarr')['sub/b'][...] == tessera.open('g.zarr')['a'][...]).all()\n"
                "assert (tessera.open('p/index.json')['sub/b'][...] == tessera.open('g.zarr')['a'][...]).all()\n")
        done = subprocess.run([sys.executable, "-B", "-c", text], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": module_folder()})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads((self.folder / "p/index.json").read_text())["version"], 1)


if __name__ == "__main__":
    main()
