"""Links and special files below what was named: read through, never written through, never followed by what removes."""

import os
import shutil
import socket

import numpy as np

from program import ProgramTest, digest, main


class Links(ProgramTest):
    def array(self, name, *words, value=5, form="v2", shape="4"):
        self.tessera("create", name, "--shape", shape, "--dtype", "<i4", "--format", form, "--quiet",
                     *([] if form == "zmeta" else ["--codec", "none"]), *words)
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
        self.refused("get", "a", says=["a/c/1/", "leads out of a by a symbolic link; --follow-links lets it"])
        self.assertEqual(self.tessera("get", "a", "3,0", "--follow-links"), "5\n")
        before = digest(self.folder)
        says = ["a/c/1", "symbolic link", "--follow-links"]
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
        self.assertEqual(self.tessera("get", "a", "3,0", "--follow-links"), "9\n")
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
        self.tessera("get", "x", "--follow-links")
        self.refused("copy", "x", "z", "--link", says="x/0 leads out of x by a symbolic link")
        self.tessera("copy", "x", "z", "--link", "--follow-links", "--quiet")
        self.refused("snapshot", "x", "create", "s", says="x/0 leads out of ")
        self.tessera("snapshot", "x", "create", "s", "--follow-links", "--quiet")
        self.refused("set", "x", "0", "1", says="x/0 leads out of x by a symbolic link")
        self.tessera("set", "x", "...", "1", "--quiet")
        self.assertFalse((self.folder / "x/0").is_symlink())
        self.assertEqual((self.folder / "secret").read_bytes(), b"SECRETSECRETSECR")
        self.assertEqual(os.stat(self.folder / "secret").st_nlink, inode.st_nlink)
        self.assertFalse((self.folder / "z/0").is_symlink())

    def test_nothing_is_read_through_links_out_of_an_array(self):
        """What somebody's archive may hold, unpacked: any part of an array as a link to a file of the one who reads it."""
        (self.folder / "secret").write_bytes(b"SECRETSECRETSECR")
        for form, words, value in (("v3", [], "c/0"), ("v3", ["--shard", "4"], "c/0"), ("v2", [], "0"),
                                   ("v2", ["--separator", "/"], "0"), ("v1", [], "0"), ("zmeta", [], "__zdata__/0")):
            for group in "", "sent/":
                with self.subTest(form=form, words=words, group=group):
                    if group:
                        self.group("sent", "v3" if form == "v3" else "v2")
                    a = self.array(f"{group}a", *words, form=form)
                    place = next(p for p in (self.folder / a).rglob("*") if p.is_file() and "meta" not in p.name
                                 and p.name not in ("zarr.json", ".zarray", ".zattrs", "attrs") and ".tessera" not in p.parts)
                    place.unlink()
                    place.symlink_to(self.folder / "secret")
                    key = str(place.relative_to(self.folder))
                    says = f"{key} leads out of "
                    for command in (["get", a], ["copy", a, "out"], ["copy", a, "out.npy"], ["copy", a, "out.zip"],
                                    ["stats", a], ["digest", a]):
                        self.refused(*command, says=[says, "--follow-links"])
                    self.assertIn("--follow-links", self.run_program("verify", a, "--json").stdout)
                    if group:
                        self.refused("copy", "sent", "out", says=says)
                    if "--shard" not in words and form != "zmeta":
                        self.assertEqual(self.exported(a, "--follow-links").tobytes(), b"SECRETSECRETSECR")
                    self.assertNotIn("out", os.listdir(self.folder))
                shutil.rmtree(self.folder / (group or "a"))

    def test_links_within_an_array_and_to_whole_arrays_are_followed(self):
        self.array("far/x", "--chunks", "1", form="v3")
        (self.folder / "secret").write_bytes(b"SECR")
        (self.folder / "far/x/c/1").unlink()
        self.link("far/x/c/1", "0")
        self.assertEqual(self.get("far/x"), ["5"] * 4)
        for form in "v3", "v2":
            self.group("g", form)
            self.link("g/x", "../far/x")
            self.link("named", "far")
            self.assertEqual(self.get("g/x"), ["5"] * 4)
            self.assertEqual(self.get("named/x"), ["5"] * 4)
            self.tessera("copy", "g", "out", "--quiet")
            self.assertEqual(self.get("out/x"), ["5"] * 4)
            # Another array in the place of a folder of chunks is none of this one's.
            self.array("g/y", form=form)
            os.rename(self.folder / ("g/y/c" if form == "v3" else "g/y/0"), self.folder / "was")
            if form == "v3":
                self.link("g/y/c", "../../far/x")
                self.refused("get", "g/y", says="g/y/c/0 leads out of g/y")
            # A chunk of the array behind the link leads out of that.
            (self.folder / "far/x/c/2").unlink()
            self.link("far/x/c/2", "../../../secret")
            left = self.run_program("copy", "g", "again")
            self.assertEqual(left.returncode, 1)
            self.assertIn("g/x is left out: g/x/c/2 leads out of g/x by a symbolic link", left.stderr)
            shutil.rmtree(self.folder / "again")
            (self.folder / "far/x/c/2").unlink()
            self.link("far/x/c/2", "0")
            for name in "g", "out":
                shutil.rmtree(self.folder / name)
            for name in "named", "was":
                path = self.folder / name
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def test_documents_that_are_links(self):
        self.array("mine", form="v2")
        self.tessera("attrs", "mine", "set", "k", "SECRET", "--quiet")
        for name in ".zarray", ".zattrs":
            a = self.array("sent", form="v2")
            (self.folder / "sent" / name).unlink(missing_ok=True)
            self.link(f"sent/{name}", f"../mine/{name}")
            for words in ["info", a], ["attrs", a], ["get", a], ["copy", a, "out"]:
                result = self.run_program(*words)
                self.assertNotIn("SECRET", result.stdout + result.stderr)
                if name == ".zarray" or words[0] in ("attrs", "copy"):
                    self.assertIn(f"sent/{name} leads out of sent by a symbolic link", result.stderr)
            self.assertEqual("SECRET" in self.tessera("attrs", a, "--follow-links"), name == ".zattrs")
            self.tessera("rm", "sent", "--follow-links")

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
