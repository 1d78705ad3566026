"""Links and special files below what was named: read through, never written through, never followed by what removes."""

import os
import shutil
import socket

import numpy as np

from program import ProgramTest, digest, main


class Links(ProgramTest):
    def array(self, name, *words, value=5, form="v2", shape="4"):
        self.tessera("create", name, "--shape", shape, "--dtype", "<i4", "--format", form, "--codec", "none", "--quiet",
                     *words)
        self.tessera("set", name, "...", value, "--quiet")
        return name

    def group(self, name, form="v2"):
        self.tessera("group", name, "--format", form, "--quiet")

    def link(self, name, target):
        (self.folder / name).symlink_to(target)

    def get(self, name):
        return self.tessera("get", name).translate(str.maketrans("[]", "  ")).split()

    def test_rm_removes_links_and_nothing_behind_them(self):
        self.array("precious")
        self.group("pg", "v3")
        self.array("pg/deep", form="v3", value=6)
        before = digest(self.folder)
        for form in "v2", "v3":
            self.group("work", form)
            self.array("work/a", form=form)
            self.link("work/linked", "../precious")
            self.link("work/grp", "../pg")
            self.link("work/dangling", "nowhere")
            self.refused("rm", "work", says="--recursive")
            self.tessera("rm", "work", "--recursive")
            self.assertFalse((self.folder / "work").exists())
            self.assertEqual(digest(self.folder), before)
        self.group("links", "v2")
        self.link("links/linked", "../precious")
        self.refused("rm", "links", says="--recursive")
        self.tessera("rm", "links", "--recursive")
        self.assertEqual(digest(self.folder), before)
        self.group("work")
        (self.folder / "docs").mkdir()
        (self.folder / "docs" / "thesis").write_text("mine")
        self.link("work/docs", "../docs")
        self.refused("rm", "work", "--recursive", says="docs, which is not part of it")
        self.assertEqual((self.folder / "docs" / "thesis").read_text(), "mine")

    def test_nothing_is_changed_when_a_folder_of_chunks_is_a_link(self):
        self.array("a", "--chunks", "2,2", form="v3", shape="6,6")
        os.rename(self.folder / "a/c/1", self.folder / "elsewhere")
        self.link("a/c/1", "../../elsewhere")
        np_file = self.save("n.npy", np.zeros((2, 6), "<i4"))
        wide = self.save("w.npy", np.zeros((6, 2), "<i4"))
        (self.folder / "script").write_text("set '0,0' 1\nset '2,0' 1\nattr k 1\n")
        self.assertEqual(self.get("a")[6 * 3], "5", "reading follows")
        before = digest(self.folder)
        says = "a/c/1 is a symbolic link"
        for words in (["set", "a", "...", "1"], ["set", "a", "...", "0"], ["set", "a", "3,0", "1"],
                      ["set", "a", "0:4", "@two.npy"], ["append", "a", wide, "--axis", "1"], ["resize", "a", "2,2"],
                      ["resize", "a", "6,8"], ["edit", "a", "--script", "script"]):
            if "@two.npy" in words:
                self.save("two.npy", np.zeros((4, 6), "<i4"))
                before = digest(self.folder)
            self.refused(*words, says=says)
            self.assertEqual(digest(self.folder), before, words)
        self.assertEqual(sorted(os.listdir(self.folder / "a/.tessera")), ["lock", "log", "undo"])
        self.tessera("set", "a", "0,0", "5", "--quiet")  # what no link leads to
        self.tessera("append", "a", np_file, "--quiet")
        self.tessera("attrs", "a", "set", "k", "1", "--quiet")
        self.tessera("set", "a", "...", "9", "--follow-links", "--quiet")
        self.assertEqual(set(self.get("a")), {"9"})
        self.assertTrue((self.folder / "a/c/1").is_symlink())
        self.tessera("edit", "a", "--script", "script", "--follow-links", "--quiet")
        self.tessera("resize", "a", "2,2", "--follow-links", "--quiet")
        self.assertEqual(list((self.folder / "elsewhere").iterdir()), [])
        self.tessera("rm", "a", "--follow-links")
        self.assertTrue((self.folder / "elsewhere").exists())

    def test_a_path_that_is_a_link_is_followed(self):
        self.array("real", form="v3")
        self.link("named", "real")
        self.tessera("set", "named", "0", "1", "--quiet")
        self.tessera("attrs", "named", "set", "k", "1", "--quiet")
        self.tessera("resize", "named", "6", "--quiet")
        self.tessera("seal", "named", "--quiet")
        self.tessera("repair", "named", "--quiet")
        self.assertEqual(self.get("real")[0], "1")
        self.assertTrue((self.folder / "named").is_symlink())

    def test_repair_of_a_group_mends_nothing_when_a_link_is_in_the_way(self):
        self.group("g")
        self.array("g/a")
        (self.folder / "g/a/7").write_text("stray")
        self.array("own")
        (self.folder / "own/7").write_text("stray")
        self.link("g/linked", "../own")
        before = digest(self.folder)
        self.refused("repair", "g", says="g/linked is a symbolic link")
        self.assertEqual(digest(self.folder), before)
        self.tessera("repair", "g", "--follow-links", "--quiet")
        self.assertFalse((self.folder / "own/7").exists())
        self.array("x")
        (self.folder / "x/7").write_text("stray")
        (self.folder / "docs").mkdir()
        self.link("x/.tessera/damaged", "../../docs")
        self.tessera("repair", "x", "--quiet")
        self.assertEqual(os.listdir(self.folder / "docs"), [])
        self.assertEqual((self.folder / "x/.tessera/damaged/7").read_text(), "stray")

    def test_copies_into_a_group_do_not_pass_through_its_links(self):
        self.group("from")
        self.array("from/a", value=1)
        self.group("from/sub")
        self.array("from/sub/b", value=1)
        self.array("precious")
        self.group("pg")
        self.array("pg/b")
        for link, target in ("a", "../precious"), ("sub", "../pg"):
            self.group("to")
            self.link(f"to/{link}", target)
            before = digest(self.folder)
            self.refused("copy", "from", "to", "--overwrite", says=f"to/{link} is a symbolic link")
            self.assertEqual(digest(self.folder), before)
            self.tessera("rm", "to", "--recursive")

    def test_snapshots_of_a_linked_folder(self):
        self.array("a")
        self.tessera("snapshot", "a", "create", "s", "--quiet")
        (self.folder / "elsewhere").mkdir()
        os.rename(self.folder / "a.snapshots/s", self.folder / "elsewhere/s")
        (self.folder / "elsewhere/s/thesis").write_text("mine")
        self.link("a.snapshots/s", "../elsewhere/s")
        before = digest(self.folder / "elsewhere")
        self.tessera("snapshot", "a", "rm", "s")
        self.assertFalse((self.folder / "a.snapshots/s").is_symlink())
        shutil.rmtree(self.folder / "a.snapshots")
        self.link("a.snapshots", "elsewhere")
        (self.folder / "elsewhere/.x.tessera-new").mkdir()
        (self.folder / "elsewhere/.x.tessera-new/keep").write_text("mine")
        kept = digest(self.folder / "elsewhere")
        for action in "create", "rm", "restore":
            self.refused("snapshot", "a", action, "s" if action != "create" else "t", says="a.snapshots is a symbolic link")
        self.assertEqual(digest(self.folder / "elsewhere"), kept)
        (self.folder / "elsewhere/.x.tessera-new/keep").unlink()
        self.assertEqual(digest(self.folder / "elsewhere"), before)

    def test_chunks_that_are_links_are_replaced_and_get_no_second_name(self):
        (self.folder / "secret").write_bytes(b"SECRETSECRETSECR")
        inode = os.stat(self.folder / "secret")
        self.array("x")
        (self.folder / "x/0").unlink()
        self.link("x/0", "../secret")
        self.tessera("get", "x")
        self.tessera("copy", "x", "z", "--link", "--quiet")
        self.tessera("snapshot", "x", "create", "s", "--quiet")
        self.tessera("set", "x", "0", "1", "--quiet")
        self.assertFalse((self.folder / "x/0").is_symlink())
        self.assertEqual((self.folder / "secret").read_bytes(), b"SECRETSECRETSECR")
        self.assertEqual(os.stat(self.folder / "secret").st_nlink, inode.st_nlink)
        self.assertFalse((self.folder / "z/0").is_symlink())

    def test_special_files_in_the_place_of_tesseras_own(self):
        def fifo(path):
            os.mkfifo(path)

        def unix(path):
            here = os.getcwd()  # a socket's path must be short
            os.chdir(path.parent)
            try:
                with socket.socket(socket.AF_UNIX) as one:
                    one.bind(path.name)
            finally:
                os.chdir(here)

        makers = {"a FIFO": fifo, "a socket": unix, "a directory": os.mkdir,
                  "a symbolic link": lambda path: path.symlink_to("../../made")}
        for kind, make in makers.items():
            self.array("a")
            lock = self.folder / "a/.tessera/lock"
            lock.unlink()
            make(lock)
            self.refused("set", "a", "0", "1", says=f"a/.tessera/lock is {kind}")
            self.assertIn("5", self.get("a"))
            self.assertFalse((self.folder / "made").exists())
            self.tessera("rm", "a")

    def test_help_says_it(self):
        self.assertIn("--follow-links", self.tessera("set", "--help"))


if __name__ == "__main__":
    main()
