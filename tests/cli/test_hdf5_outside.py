"""HDF5 files that lead to others: by links, by views (virtual datasets), by elements in other files."""

import unittest

import numpy as np

import program

try:
    import h5py
except ImportError:
    h5py = None


@unittest.skipIf(h5py is None, "h5py is not installed")
class Outside(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.values = np.arange(600, dtype="<i4").reshape(20, 30)
        (self.folder / "in").mkdir()
        (self.folder / "other").mkdir()
        with h5py.File(self.folder / "other/data.h5", "w") as f:
            f.create_dataset("g/d", data=self.values, chunks=(7, 8), compression="gzip")
        self.values.tofile(self.folder / "other/raw.bin")
        with h5py.File(self.folder / "in/x.h5", "w") as f:
            f["own"] = self.values
            f["link"] = h5py.ExternalLink("../other/data.h5", "/g/d")
            f["group"] = h5py.ExternalLink("../other/data.h5", "/g")
            f.create_dataset("raw", (20, 30), "<i4", external=[("../other/raw.bin", 0, self.values.nbytes)])
            layout = h5py.VirtualLayout((40, 30), "<i4")
            layout[:20] = h5py.VirtualSource("../other/data.h5", "g/d", (20, 30))
            layout[20:] = h5py.VirtualSource("../other/data.h5", "g/d", (20, 30))
            f.create_virtual_dataset("view", layout)
            inside = h5py.VirtualLayout((30, 20), "<i4")
            inside[:20] = h5py.VirtualSource(".", "own", (20, 30))[:, :20]
            f.create_virtual_dataset("inside", inside, fillvalue=-1)

    def read(self, name, *words):
        self.tessera("export", f"in/x.h5::{name}", "got.npy", "--overwrite", "--quiet", *words)
        return np.load(self.folder / "got.npy")

    def test_refused_by_name(self):
        for name, other in ("link", "data.h5"), ("raw", "raw.bin"), ("view", "data.h5"):
            for trust in [], ["--in-process"]:
                self.refused("digest", f"in/x.h5::{name}", *trust, says=other)
                self.assertIn("--allow-outside", self.refused("digest", f"in/x.h5::{name}", *trust))
        self.refused("digest", "in/x.h5::group/d")
        self.refused("refs", "in/x.h5::link")

    def test_allowed(self):
        both = np.concatenate([self.values, self.values])
        for trust in [], ["--in-process"]:
            for name, values in {"link": self.values, "group/d": self.values, "raw": self.values, "view": both}.items():
                with self.subTest(name=name, trust=trust):
                    np.testing.assert_array_equal(self.read(name, "--allow-outside", *trust), values)
        self.assertIn("group", self.tessera("tree", "in/x.h5", "--allow-outside"))
        self.tessera("copy", "in/x.h5", "all.zarr", "--allow-outside", "--quiet")
        np.testing.assert_array_equal(np.load(self.export("all.zarr/group/d")), self.values)
        # A link's chunks lie in the other file, not at these places of this one.
        self.refused("refs", "in/x.h5::link", "--allow-outside", says="another file")

    def export(self, path):
        self.tessera("export", path, "member.npy", "--overwrite", "--quiet")
        return self.folder / "member.npy"

    def test_a_view_of_its_own_file(self):
        got = self.read("inside")
        np.testing.assert_array_equal(got[:20], self.values[:, :20])
        self.assertTrue((got[20:] == -1).all())

    def test_a_file_that_is_gone_is_no_fill(self):
        (self.folder / "other/data.h5").rename(self.folder / "other/moved.h5")
        (self.folder / "other/raw.bin").unlink()
        for name in "link", "raw", "view":
            self.refused("digest", f"in/x.h5::{name}", "--allow-outside")


if __name__ == "__main__":
    unittest.main()
