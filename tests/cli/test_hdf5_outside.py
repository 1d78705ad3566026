"""HDF5 files that lead to others: by links, by views (virtual datasets), by elements in other files."""

import os
import unittest

import numpy as np

import program
import remote
from serving import Server

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
            self.refused("digest", f"in/x.h5::{name}", says=other)
            self.assertIn("--allow-outside", self.refused("digest", f"in/x.h5::{name}"))
        self.refused("digest", "in/x.h5::group/d")
        self.refused("refs", "in/x.h5::link")

    def test_allowed(self):
        both = np.concatenate([self.values, self.values])
        for name, values in {"link": self.values, "group/d": self.values, "raw": self.values, "view": both}.items():
            with self.subTest(name=name):
                np.testing.assert_array_equal(self.read(name, "--allow-outside"), values)
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

    def views(self):
        """A file of views of itself, which lead on to other files and to nothing."""
        def view(name, source, file="."):
            layout = h5py.VirtualLayout((20, 30), "<i4")
            layout[...] = h5py.VirtualSource(file, source, (20, 30))
            f.create_virtual_dataset(name, layout)

        with h5py.File(self.folder / "in/v.h5", "w", libver=("earliest", "v110")) as f:
            f.create_dataset("raw", (20, 30), "<i4", external=[("../other/raw.bin", 0, self.values.nbytes)])
            f["link"] = h5py.ExternalLink("../other/data.h5", "/g/d")
            f["group"] = h5py.ExternalLink("../other/data.h5", "/g")
            f["soft"] = h5py.SoftLink("/link")
            f["own"] = self.values
            view("of_raw", "raw")
            view("of_link", "link")
            view("of_soft", "soft")
            view("of_group", "group/d")
            view("other", "g/d", "../other/data.h5")
            view("of_other", "other")
            view("deep", "of_of_raw")
            view("of_of_raw", "of_raw")
            view("fine", "of_own")
            view("of_own", "own")
            view("of_nothing", "nothing")
            view("of_of_nothing", "of_nothing")
            view("of_a_group", "/")
            view("round", "and_round")
            view("and_round", "round")
            f["100%"] = self.values
            view("percent", "100%%")
        return ["of_raw", "of_link", "of_soft", "of_group", "of_other", "deep"]

    def test_sources_are_held_to_the_same_rules(self):
        leading_out = self.views()
        for name in leading_out:
            with self.subTest(name=name):
                for command in "get", "digest":
                    self.refused(command, f"in/v.h5::{name}", says="source")
                self.assertNotEqual(self.run_program("verify", f"in/v.h5::{name}").returncode, 0)
                if name in ("of_raw", "deep"):
                    self.refused("get", f"in/v.h5::{name}", "--allow-outside", says="copy it before")
                    continue
                self.tessera("copy", f"in/v.h5::{name}", "got.npy", "--overwrite", "--quiet", "--allow-outside")
                np.testing.assert_array_equal(np.load(self.folder / "got.npy"), self.values)
        # Two that are open at once, of which one draws on the other.
        self.tessera("diff", "in/v.h5::fine", "in/v.h5::of_own")
        self.tessera("diff", "in/v.h5::fine", "in/v.h5::own")
        for name in "fine", "percent":
            self.tessera("copy", f"in/v.h5::{name}", "got.npy", "--overwrite", "--quiet")
            np.testing.assert_array_equal(np.load(self.folder / "got.npy"), self.values)

    def test_sources_that_are_missing_or_broken_are_no_fill(self):
        self.views()
        for name in "of_nothing", "of_of_nothing", "of_a_group", "round", "and_round":
            for words in [], ["--allow-outside"]:
                self.refused("get", f"in/v.h5::{name}", *words, says="source")
        broken = program.GOLDEN / "hdf5/broken-source.h5"
        self.refused("get", f"{broken}::w", says=["its source s", "cannot be opened"])

    @unittest.skipIf(program.FEWER > 1, "what a sanitizer watches reads in its own process, which nobody ends")
    def test_a_view_whose_opening_finds_no_end(self):
        self.refused("get", f"{program.GOLDEN / 'hdf5/hang-virtual.h5'}::v", says="was ended after 3 s")

    def test_a_pipe_is_not_waited_for(self):
        os.mkfifo(self.folder / "in/pipe")
        with h5py.File(self.folder / "in/p.h5", "w") as f:
            f.create_dataset("raw", (20,), "<i4", external=[("pipe", 0, 80)])
            f["link"] = h5py.ExternalLink("pipe", "/d")
            layout = h5py.VirtualLayout((20,), "<i4")
            layout[...] = h5py.VirtualSource("pipe", "d", (20,))
            f.create_virtual_dataset("view", layout)
        for name in "raw", "link", "view":
            self.refused("get", f"in/p.h5::{name}")
            self.refused("get", f"in/p.h5::{name}", "--allow-outside")

    def test_behind_http_and_served(self):
        names = self.views()
        with remote.serving(self.folder) as double:
            for name in names:
                self.refused("get", f"{double.origin}/files/in/v.h5::{name}", "--allow-outside",
                             env={**os.environ, **double.environment})
        secret = self.values[:1].tobytes()[4:]
        server = Server(self.folder, "in")
        self.addCleanup(server.stop)
        for name in names:
            for path in f"v2/v.h5/{name}/0.0", f"v3/v.h5/{name}/c/0/0":
                found = server.get(path)
                self.assertNotEqual(found.status, 200)
                self.assertNotIn(secret, found.body)
        self.assertIn("fine", str(server.get("api/tree?path=v.h5").json()))
        self.assertEqual(server.get("v2/v.h5/fine/.zarray").json()["shape"], [20, 30])

    def test_an_array_is_not_added_behind_a_link(self):
        """The other file would be changed while it is in use."""
        self.views()
        before = (self.folder / "other/data.h5").read_bytes()
        self.save("a.npy", self.values)
        for words in [], ["--allow-outside"]:
            self.refused("copy", "a.npy", "in/v.h5::group/new", "--quiet", *words)
        self.assertEqual((self.folder / "other/data.h5").read_bytes(), before)


if __name__ == "__main__":
    unittest.main()
