"""What has a chunk's name and is no file is not absent: reading refuses it, no copy takes it for the fill, and verify
calls it damage."""

import itertools
import os
import shutil
import socket

from program import ProgramTest, chosen, digest, main


def fifo(path):
    os.mkfifo(path)


def unix_socket(path):
    here = os.getcwd()  # a socket's path must be short
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(here)


def full_directory(path):
    os.mkdir(path)
    (path / "notes").write_text("mine")


MAKERS = {"a FIFO": fifo, "a socket": unix_socket, "a directory": full_directory,
          "leads nowhere: to nowhere": lambda path: path.symlink_to("nowhere"),
          f"leads nowhere: to 1": lambda path: path.symlink_to("1")}
LAYOUTS = {"v2": (["--format", "v2"], "a/{0}.{1}"), "nested v2": (["--format", "v2", "--separator", "/"], "a/{0}/{1}"),
           "v3": (["--format", "v3"], "a/c/{0}/{1}"), "zmeta": (["--format", "zmeta"], "a/__zdata__/{0}.{1}.blosc"),
           "v1": (["--format", "v1"], "a/{0}.{1}")}


class SpecialFiles(ProgramTest):
    def array(self, layout, name="a"):
        words, key = LAYOUTS[layout]
        self.tessera("create", name, "--shape", "4,4", "--chunks", "2,2", "--dtype", "<i4", *words, "--quiet")
        self.tessera("set", name, "...", "5", "--quiet")
        return key

    def spoil(self, place, make):
        place = self.folder / place
        place.unlink()
        if make is MAKERS["leads nowhere: to 1"]:
            place.symlink_to(place.name)
        else:
            make(place)

    def refuse_all(self, says, *, get=True):
        commands = [["get", "a"], ["rechunk", "a", "out", "--chunks", "4,4"], ["export", "a", "out.npy"], ["stats", "a"],
                    ["digest", "a"]] if get else []
        commands += [["copy", "a", "out"], ["copy", "a", "out.zip"], ["copy", "a", "out", "--link"],
                     ["snapshot", "a", "create", "s"]]
        for words in commands:
            self.refused(*words, says=says)
            left = {"out", "out.npy", "out.zip"} & set(os.listdir(self.folder))
            self.assertEqual(left, set(), words)

    def found(self, says):
        """That verify calls one thing damage, and which."""
        report = self.tessera_json("verify", "a", code=1)
        damage = [f for f in report["findings"] if f["kind"] == "damage"]
        self.assertEqual(len(damage), 1, report)
        self.assertIn(says, damage[0]["text"])
        return damage[0]

    def test_in_the_place_of_a_chunk(self):
        for layout, (kind, make) in chosen(itertools.product(LAYOUTS, MAKERS.items())):
            with self.subTest(layout=layout, kind=kind):
                key = self.array(layout).format(1, 0)
                self.spoil(key, make)
                says = [key, kind if "to 1" not in kind else "leads nowhere: to " + key.rsplit("/", 1)[-1]]
                if kind != "a directory":
                    self.refuse_all(says)
                else:
                    for words in ["get", "a"], ["copy", "a", "out"], ["copy", "a", "out.zip"], ["digest", "a"]:
                        self.refused(*words, says=says)
                self.assertEqual(self.tessera("get", "a", "0, :2"), "[5 5]\n", "the others can be read")
                self.assertEqual(self.tessera_json("info", "a")["chunks_stored"], 4)
                damage = self.found(says[1])
                self.assertEqual(damage["key"], key[2:])
                self.assertEqual(damage["chunk"], [1, 0])
                self.assertNotIn("sound", self.tessera("verify", "a", code=1))
                self.tessera("repair", "a", "--quiet", code=1)  # its elements are lost
                self.tessera("verify", "a", "--quiet")
                self.assertTrue(os.path.lexists(self.folder / "a/.tessera/damaged" / key[2:]))
                self.assertEqual(self.tessera("get", "a", "2, :2"), "[0 0]\n")
                shutil.rmtree(self.folder / "a")

    def test_a_link_to_a_device_in_the_place_of_a_chunk(self):
        key = self.array("v3").format(1, 0)
        self.spoil(key, lambda path: path.symlink_to("/dev/zero"))
        self.refuse_all([key, "leads out of"])
        self.refused("get", "a", "--follow-links", says=[key, "a device"])

    def test_a_directory_in_the_place_of_the_only_chunk(self):
        self.tessera("create", "a", "--shape", "", "--dtype", "<i4", "--format", "v3", "--quiet")
        (self.folder / "a/c").mkdir()
        for words in ["get", "a"], ["copy", "a", "out"], ["digest", "a"]:
            self.refused(*words, says=["a/c", "a directory"])

    def test_in_the_place_of_a_folder_of_chunks(self):
        places = ("nested v2", "a/1"), ("v3", "a/c/1"), ("v3", "a/c"), ("zmeta", "a/__zdata__")
        kinds = "a FIFO", "leads nowhere: to nowhere", "a file"
        for (layout, folder), kind in chosen(itertools.product(places, kinds)):
            with self.subTest(folder=folder, kind=kind):
                self.array(layout)
                shutil.rmtree(self.folder / folder)
                MAKERS.get(kind, lambda path: path.write_text("text"))(self.folder / folder)
                says = [folder, kind]
                for words in (["get", "a"], ["copy", "a", "out"], ["copy", "a", "out.zip"], ["stats", "a"],
                              ["rechunk", "a", "out", "--chunks", "4,4"]):
                    self.refused(*words, says=says)
                self.assertNotIn("out", os.listdir(self.folder))
                self.found(says[1])
                shutil.rmtree(self.folder / "a")

    def test_links_to_chunks_and_folders_are_read_if_that_is_asked_for(self):
        key = self.array("v3")
        self.tessera("copy", "a", "expected", "--quiet")
        expected = self.tessera("digest", "expected").split()[0]
        (self.folder / "a/c/1").rename(self.folder / "elsewhere")
        (self.folder / "a/c/1").symlink_to("../../elsewhere")
        (self.folder / key.format(0, 0)).rename(self.folder / "chunk")
        (self.folder / key.format(0, 0)).symlink_to("../../../chunk")
        for words in ["copy", "a", "out"], ["copy", "a", "out.zip"], ["rechunk", "a", "re", "--chunks", "4,4"]:
            self.tessera(*words, "--quiet", "--follow-links")
            self.assertEqual(self.tessera("digest", words[2]).split()[0], expected)
        (self.folder / "elsewhere/0").unlink()  # behind a link a chunk may be absent, too
        self.assertEqual(self.tessera("get", "a", "2, :", "--follow-links"), "[0 0 5 5]\n")
        (self.folder / "elsewhere/0").symlink_to("gone")
        self.refused("get", "a", "2, :", "--follow-links", says="a/c/1/0 is a symbolic link that leads nowhere: to gone")

    def test_folders_of_chunks_that_lead_back(self):
        self.tessera("create", "a", "--shape", ",".join(["2"] * 24), "--chunks", ",".join(["1"] * 24), "--dtype", "|i1",
                     "--format", "v2", "--separator", "/", "--quiet")
        (self.folder / "a/0").mkdir()
        for name in "0", "1":
            (self.folder / "a/0" / name).symlink_to(".")
        self.refused("copy", "a", "out", says="leads to chunks that have other names, too")
        found = [f["kind"] for f in self.tessera_json("verify", "a", code=1)["findings"]]
        self.assertEqual(len([kind for kind in found if kind != "note"]), 2)
        self.tessera("info", "a")

    def test_one_array_of_several(self):
        self.tessera("group", "g", "--format", "v2", "--quiet")
        for kind, make in MAKERS.items():
            self.array("v2", "g/good")
            self.array("v2", "g/bad")
            self.spoil("g/bad/1.1", make)
            line = self.run_program("copy", "g", "out")
            self.assertEqual(line.returncode, 1, line.stderr)
            self.assertIn("g/bad is left out", line.stderr)
            self.assertIn("1.1", line.stderr)
            self.assertEqual(sorted(p for p in os.listdir(self.folder / "out") if p[0] != "."), ["good"])
            shutil.rmtree(self.folder / "out")
            for words in ["copy", "g", "out.zip"], ["export", "g", "out.npz"]:
                result = self.run_program(*words)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn("g/bad is left out", result.stderr)
                self.assertIn("1.1", result.stderr)
                (self.folder / words[2]).unlink()
            shutil.rmtree(self.folder / "g/good")
            shutil.rmtree(self.folder / "g/bad")

    def test_metadata_of_one_array_of_several(self):
        self.tessera("group", "g", "--format", "v2", "--quiet")
        self.array("v2", "g/good")
        for kind in "a FIFO", "leads nowhere: to nowhere":
            self.array("v2", "g/bad")
            self.spoil("g/bad/.zarray", MAKERS[kind])
            for words in ["copy", "g", "out"], ["copy", "g", "out.zip"], ["export", "g", "out.npz"]:
                result = self.run_program(*words)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn("g/bad is left out", result.stderr)
                self.assertIn(kind, result.stderr)
            self.tessera("verify", "g", code=1)
            for name in "out", "g/bad":
                shutil.rmtree(self.folder / name)
            for name in "out.zip", "out.npz":
                (self.folder / name).unlink()

    def sealed(self):
        shutil.rmtree(self.folder / "g", ignore_errors=True)
        self.tessera("group", "g", "--format", "v2", "--quiet")
        for name in "g/a", "g/b":
            self.array("v2", name)
        self.tessera("seal", "g", "--parity", "100%", "--quiet")
        return self.folder / "g", digest(self.folder / "g")

    def test_directories_and_files_in_each_others_place_make_way_for_sealed_ones(self):
        root, before = self.sealed()
        (root / "a/0.1").unlink()
        full_directory(root / "a/0.1")
        self.assertIn("what stood in its place is .tessera/damaged/a/0.1", self.tessera("repair", "g"))
        self.assertEqual((root / ".tessera/damaged/a/0.1/notes").read_text(), "mine")
        self.assertEqual(digest(root), before)
        root, before = self.sealed()
        shutil.rmtree(root / "a")
        (root / "a").write_text("mine")
        self.tessera("repair", "g")
        self.assertEqual((root / ".tessera/damaged/a").read_text(), "mine")
        self.assertEqual(digest(root), before)
        self.tessera("verify", "g")

    def test_a_link_in_the_place_of_parity_is_removed(self):
        root, before = self.sealed()
        shutil.move(root / ".tessera/parity", self.folder / "elsewhere")
        (root / ".tessera/parity").symlink_to(self.folder / "elsewhere")
        self.assertIn(".tessera/parity is a symbolic link", self.tessera("verify", "g", code=1))
        self.assertIn("removed; what a link leads to stays", self.tessera("repair", "g"))
        self.assertFalse(os.path.lexists(root / ".tessera/parity"))
        self.assertTrue(any((self.folder / "elsewhere").iterdir()))
        self.tessera("verify", "g")
        self.assertEqual(digest(root), before)


if __name__ == "__main__":
    main()
