"""Hierarchies: groups made, listed, moved, removed and consolidated, in directories and zips, as zarr-python has them."""

import json
import shutil
import subprocess
import zipfile

import numpy as np

import program
from program import GOLDEN, ProgramTest, digest, zarr

ARRAYS = {"a": np.arange(5, dtype="<i4"), "sub/b": np.linspace(-1, 1, 12).reshape(4, 3),
          "sub/deep/c": np.array([True, False, True])}


def make_hierarchy(store):
    """What zarr-python 2.13 makes of ARRAYS."""
    root = zarr.open_group(store, mode="w")
    root.attrs.update(title="root", n=[1, 2])
    for name, values in ARRAYS.items():
        root.create_dataset(name, data=values, chunks=tuple(2 for _ in values.shape)).attrs["path"] = name
    root.create_group("empty")
    return root


def nodes(tree, path=""):
    """(path, kind, format) of everything below the root of `tree --json`."""
    for child in tree["children"]:
        below = f"{path}{child['name']}"
        yield below, child["kind"], child.get("format")
        if "children" in child:
            yield from nodes(child, below + "/")


ALL = [("a", "array"), ("empty", "group"), ("sub", "group"), ("sub/b", "array"), ("sub/deep", "group"),
       ("sub/deep/c", "array")]


class Groups(ProgramTest):
    def check_arrays(self, path, expected=ARRAYS):
        for name, values in expected.items():
            np.testing.assert_array_equal(self.exported(f"{path}/{name}"), values)

    def test_nothing_is_named_as_the_metadata_of_v3(self):
        self.tessera("group", "g", "--format", "v3")
        self.tessera("group", "g/b")
        before = digest(self.folder)
        for command in (["group", "g/b/zarr.json/c"], ["group", "g/zarr.json"], ["group", "zarr.json/k", "--format", "v3"],
                        ["create", "g/c/zarr.json/", "--shape", "3", "--dtype", "i4", "--format", "v3"],
                        ["create", "x/zarr.json/y", "--shape", "3", "--dtype", "i4"],
                        ["mv", "g/b", "g/zarr.json/b"]):
            self.refused(*command, says="no array or group can be named zarr.json")
        self.assertEqual(digest(self.folder), before)

    def test_a_hierarchy_of_zarr_python_is_shown(self):
        make_hierarchy(self.path("h.zarr"))
        tree = self.tessera_json("tree", "h.zarr")
        self.assertEqual((tree["kind"], tree["format"], tree["attributes"], tree["consolidated"]), ("group", "v2", 2, "none"))
        self.assertEqual(list(nodes(tree)), [(*node, "v2") for node in ALL])
        text = self.tessera("tree", "h.zarr")
        for line in "h.zarr/  v2 group, 2 attributes\n", "├── empty/  v2 group\n", "    └── deep/  v2 group\n", "── b  v2  4×3  <f8  chunks 2×2\n":
            self.assertIn(line, text)
        info = self.tessera_json("info", "h.zarr")
        self.assertEqual((info["kind"], info["format"], info["children"], info["arrays"]), ("group", "v2", 3, 3))
        self.assertEqual(info["attributes"], {"title": "root", "n": [1, 2]})
        self.assertIn("3 nodes directly, 3 arrays in all", self.tessera("info", "h.zarr"))
        self.assertEqual(self.tessera("attrs", "h.zarr", "get", "title"), '"root"\n')
        self.check_arrays("h.zarr")

    def test_a_hierarchy_is_made_for_zarr_python(self):
        self.tessera("group", "h.zarr", "--format", "v2", "--attrs", '{"title": "made"}')
        self.tessera("group", "h.zarr/x/y")
        self.tessera("attrs", "h.zarr/x", "set", "k", "[1, null]")
        self.save("values.npy", ARRAYS["sub/b"])
        self.tessera("copy", "values.npy", "h.zarr/x/b", "--format", "v2")
        root = zarr.open_group(self.path("h.zarr"), mode="r")
        self.assertEqual(dict(root.attrs), {"title": "made"})
        self.assertEqual(sorted(root), ["x"])
        self.assertEqual(sorted(root["x"]), ["b", "y"])
        self.assertEqual(root["x"].attrs["k"], [1, None])
        np.testing.assert_array_equal(root["x/b"][:], ARRAYS["sub/b"])

    def test_group_formats(self):
        self.tessera("group", "default")
        self.assertEqual(json.loads((self.folder / "default" / "zarr.json").read_text())["node_type"], "group")
        self.assertIn("v3", self.tessera("group", "default/below"))
        self.assertTrue((self.folder / "default" / "below" / "zarr.json").exists())
        self.refused("group", "default", says="a group (v3) is there already")
        self.refused("group", "old", "--format", "zmeta", says="no groups but plain directories")
        self.refused("group", "x", "--attrs", "[1]", says="JSON object")
        self.tessera("create", "default/array", "--shape", "3", "--dtype", "i4", "--format", "v3")
        self.refused("group", "default/array/below", says="nothing can be below")

    def test_directories_of_arrays_are_groups(self):
        self.tessera("create", "set/x/one", "--shape", "3", "--dtype", "i4")
        self.tessera("create", "set/two", "--shape", "3", "--dtype", "i4", "--format", "v1")
        self.assertEqual(list(nodes(self.tessera_json("tree", "set"))),
                         [("two", "array", "v1"), ("x", "directory", None), ("x/one", "array", "zmeta")])
        info = self.tessera_json("info", "set")
        self.assertEqual((info["kind"], info["arrays"], info["children"]), ("directory", 2, 2))
        self.assertEqual(self.tessera("attrs", "set"), "{}\n")
        self.refused("attrs", "set", "set", "k", "1", says="tessera group")
        self.refused("attrs", "nothing", says="no such file")

    def test_a_copy_in_another_format_leaves_one_document(self):
        """Of two, other programs take the newer format, and see none of the arrays."""
        self.save("x.npy", np.arange(5))
        for format, document in ("v3", "zarr.json"), ("v2", ".zgroup"):
            self.tessera("group", f"{format}.zarr", "--format", format, "--quiet")
            self.tessera("attrs", f"{format}.zarr", "set", "made", format, "--quiet")
            self.tessera("import", "x.npy", f"{format}.zarr/x", "--quiet")
            self.tessera("import", "x.npy", f"{format}.zarr/sub/y", "--quiet")
        self.tessera("consolidate", "v2.zarr")
        for source, format in ("v3.zarr", "v3"), ("v2.zarr", "v2"), ("v3.zarr", "v3"):
            self.tessera("copy", source, "both.zarr", "--overwrite", "--quiet")
            left = sorted(path.name for path in (self.folder / "both.zarr").iterdir())
            self.assertEqual("zarr.json" in left, format == "v3")
            for name in ".zgroup", ".zattrs":
                self.assertEqual(name in left, format == "v2", left)
            self.assertEqual(self.tessera_json("attrs", "both.zarr"), {"made": format})
            self.tessera("verify", "both.zarr")

    def test_nodes_are_moved(self):
        make_hierarchy(self.path("h.zarr"))
        self.tessera("mv", "h.zarr/sub/b", "h.zarr/new/place")
        self.tessera("mv", "h.zarr/sub/deep", "h.zarr/deep")
        self.tessera("mv", "h.zarr", "renamed.zarr")
        self.check_arrays("renamed.zarr", {"a": ARRAYS["a"], "new/place": ARRAYS["sub/b"], "deep/c": ARRAYS["sub/deep/c"]})
        root = zarr.open_group(self.path("renamed.zarr"), mode="r")
        self.assertEqual(sorted(root), ["a", "deep", "empty", "new", "sub"])
        np.testing.assert_array_equal(root["new/place"][:], ARRAYS["sub/b"])
        before = digest(self.folder)
        self.refused("mv", "renamed.zarr/a", "renamed.zarr/empty", says="already")
        self.refused("mv", "renamed.zarr/new", "renamed.zarr/new/place/x", says="within or above")
        self.refused("mv", "renamed.zarr/nothing", "x", says="no array or group")
        self.refused("mv", "renamed.zarr/a", "renamed.zarr/new/place/a", says="nothing can be below")
        self.assertEqual(digest(self.folder), before)

    def test_nodes_are_removed(self):
        make_hierarchy(self.path("h.zarr"))
        self.refused("rm", "h.zarr/sub", says="--recursive")
        notes = self.folder / "h.zarr" / "sub" / "deep" / "c" / "notes.txt"
        notes.write_text("mine")
        before = digest(self.folder)
        self.refused("rm", "h.zarr/sub", "--recursive", says="notes.txt")
        self.assertEqual(digest(self.folder), before)
        notes.unlink()
        self.tessera("rm", "h.zarr/sub", "--recursive")
        self.tessera("rm", "h.zarr/empty/")
        self.assertEqual(sorted(zarr.open_group(self.path("h.zarr"), mode="r")), ["a"])
        (self.folder / "plain").mkdir()
        self.refused("rm", "plain", says="no array or group")
        self.save("file.npy", np.zeros(3))
        self.refused("rm", "file.npy", says="a file, not an array or group")
        self.refused("rm", "nothing", says="no such file")
        (self.folder / "link").symlink_to("h.zarr")
        self.refused("rm", "link", says="symbolic link")
        self.tessera("rm", "h.zarr", "--recursive")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["file.npy", "link", "plain"])

    def test_a_group_has_no_member_after_colons(self):
        make_hierarchy(self.path("g.zarr"))
        self.tessera("copy", "g.zarr", "g.zip", "--quiet")
        for name in "g.zarr", "g.zip":
            self.refused("copy", f"{name}::a", "copied.zarr", says=f"this is a store: write {name}/a")
            self.refused("diff", f"{name}::a", name, says=f"write {name}/a")
            self.refused("attrs", f"{name}::a", says=f"write {name}/a")
            self.refused("attrs", f"{name}::a", "set", "title", '"b"', says=f"{name}::a: a part of {name}")
        self.assertFalse((self.folder / "copied.zarr").exists())
        self.assertEqual(self.tessera_json("attrs", "g.zarr")["title"], "root")

    def test_an_unfinished_copy_is_removed(self):
        marker = self.folder / "half.zarr" / ".tessera" / "unfinished.json"
        marker.parent.mkdir(parents=True)
        marker.write_text('{"format": "zmeta"}')
        (self.folder / "half.zarr" / "__zdata__").mkdir()
        self.tessera("rm", "half.zarr")
        self.assertFalse((self.folder / "half.zarr").exists())


class Consolidated(ProgramTest):
    def noted(self, *words):
        """Runs a command that must do its work and say that h.zarr's consolidated metadata are stale now."""
        result = self.run_program(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "tessera: note: the consolidated metadata of h.zarr are stale now; "
                                        "`tessera consolidate h.zarr` renews them\n", words)

    def test_zarr_python_opens_by_ours_and_we_check_its(self):
        make_hierarchy(self.path("h.zarr"))
        zarr.consolidate_metadata(self.path("h.zarr"))
        theirs = json.loads((self.folder / "h.zarr" / ".zmetadata").read_text())
        self.assertIn("consolidated\n", self.tessera("tree", "h.zarr"))
        self.tessera("consolidate", "h.zarr", "--check")
        (self.folder / "h.zarr" / ".zmetadata").unlink()
        self.assertIn("no consolidated", self.tessera("consolidate", "h.zarr", "--check"))
        self.assertIn("6 nodes", self.tessera("consolidate", "h.zarr"))
        self.assertEqual(json.loads((self.folder / "h.zarr" / ".zmetadata").read_text()), theirs)
        root = zarr.open_consolidated(self.path("h.zarr"))
        for name, values in ARRAYS.items():
            np.testing.assert_array_equal(root[name][:], values)
        self.assertEqual(root["sub/b"].attrs["path"], "sub/b")

    def test_changes_are_said_to_make_them_stale(self):
        self.assertTrue(zarr.__version__)
        for step in ["attrs h.zarr set n 3", "attrs h.zarr/sub/b rm path", "resize h.zarr/a 9", "append h.zarr/a five.npy",
                     "mv h.zarr/a h.zarr/z", "mv h.zarr/sub away", "rm h.zarr/empty", "group h.zarr/sub/new"]:
            with self.subTest(step):
                shutil.rmtree(self.folder / "away", ignore_errors=True)
                make_hierarchy(self.path("h.zarr"))
                zarr.consolidate_metadata(self.path("h.zarr"))
                self.save("five.npy", ARRAYS["a"])
                self.noted(*step.split())
                result = self.run_program("consolidate", "h.zarr", "--check")
                self.assertEqual((result.returncode, result.stderr), (1, ""))
                self.assertEqual(self.tessera_json("info", "h.zarr")["consolidated"], "stale")
                self.assertIn("consolidated metadata stale", self.tessera("tree", "h.zarr"))
                self.tessera("consolidate", "h.zarr")
                self.tessera("consolidate", "h.zarr", "--check")
        self.tessera("set", "h.zarr/a", "0", "7")  # elements are no metadata

    def test_stale_nodes_are_named(self):
        make_hierarchy(self.path("h.zarr"))
        zarr.consolidate_metadata(self.path("h.zarr"))
        root = zarr.open_group(self.path("h.zarr"))
        root["a"].resize(3)
        del root["sub/deep"]
        report = json.loads(self.tessera("consolidate", "h.zarr", "--check", "--json", code=1))
        self.assertEqual(report["stale"], ["a", "sub/deep", "sub/deep/c"])
        # Reading goes by the nodes.
        self.assertEqual(self.tessera_json("info", "h.zarr/a")["shape"], [3])

    def test_v3(self):
        shutil.copytree(GOLDEN / "zarr3" / "group_consolidated", self.folder / "h.zarr")
        for path in (self.folder / "h.zarr").rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        before = json.loads((self.folder / "h.zarr" / "zarr.json").read_text())
        self.tessera("consolidate", "h.zarr", "--check")
        self.tessera("consolidate", "h.zarr")
        self.assertEqual(json.loads((self.folder / "h.zarr" / "zarr.json").read_text()), before, "as zarr-python 3 does")
        self.noted("attrs", "h.zarr/sub", "set", "k", "1")
        self.tessera("consolidate", "h.zarr")
        after = json.loads((self.folder / "h.zarr" / "zarr.json").read_text())
        self.assertEqual(after["consolidated_metadata"]["metadata"]["sub"]["attributes"], {"k": 1})
        self.assertEqual(set(after["consolidated_metadata"]["metadata"]), set(before["consolidated_metadata"]["metadata"]))
        self.assertEqual(after["attributes"], before["attributes"])

    def test_groups_without_them(self):
        self.tessera("create", "plain/x", "--shape", "3", "--dtype", "i4")
        self.refused("consolidate", "plain", says="a plain directory has no consolidated metadata")
        self.refused("consolidate", "plain/x", says="an array (zmeta), not a group")


class Zips(ProgramTest):
    def test_a_zip_of_zarr_python_is_read(self):
        with zarr.ZipStore(self.path("h.zip"), mode="w") as store:
            root = make_hierarchy(store)
            root.attrs["title"] = "changed"  # writes .zattrs once more
        self.assertEqual(list(nodes(self.tessera_json("tree", "h.zip"))), [(*node, "v2") for node in ALL])
        self.assertEqual(self.tessera("attrs", "h.zip", "get", "title"), '"changed"\n')
        for name, values in ARRAYS.items():
            np.testing.assert_array_equal(self.exported(f"h.zip/{name}"), values)
        self.assertEqual(self.tessera_json("get", "h.zip/sub/b", "1:3, ::2"), ARRAYS["sub/b"][1:3, ::2].tolist())
        info = self.tessera_json("info", "h.zip/sub/b")
        self.assertEqual((info["format"], info["chunks_stored"], info["attributes"]), ("v2", 4, {"path": "sub/b"}))
        self.assertEqual(self.tessera_json("info", "h.zip")["store"], "zip")
        self.assertIn("h.zip", [child["name"] for child in self.tessera_json("tree", ".")["children"]])
        self.tessera("copy", "h.zip/sub", "sub.zarr")
        np.testing.assert_array_equal(zarr.open(self.path("sub.zarr"), mode="r")["b"][:], ARRAYS["sub/b"])
        self.tessera("export", "h.zip", "h.npz")
        with np.load(self.folder / "h.npz") as npz:
            np.testing.assert_array_equal(npz["sub/deep/c"], ARRAYS["sub/deep/c"])

    def test_zarr_python_reads_our_zip(self):
        make_hierarchy(self.path("h.zarr"))
        self.tessera("copy", "h.zarr", "h.zip")
        with zipfile.ZipFile(self.folder / "h.zip") as archive:
            names = archive.namelist()
            self.assertEqual(len(names), len(set(names)))
            self.assertEqual({info.compress_type for info in archive.infolist()}, {zipfile.ZIP_STORED})
        self.assertEqual(subprocess.run(["unzip", "-tqq", self.path("h.zip")]).returncode, 0)
        with zarr.ZipStore(self.path("h.zip"), mode="r") as store:
            root = zarr.open_group(store, mode="r")
            self.assertEqual(dict(root.attrs), {"title": "root", "n": [1, 2]})
            self.assertEqual(sorted(root), ["a", "empty", "sub"])
            for name, values in ARRAYS.items():
                np.testing.assert_array_equal(root[name][:], values)
                self.assertEqual(root[name].attrs["path"], name)

    def test_a_zip_is_never_changed(self):
        shutil.copy(GOLDEN / "zarr2" / "zip_store.zip", self.folder / "a.zip")
        (self.folder / "a.zip").chmod(0o644)
        before = digest(self.folder)
        for words in (["set", "a.zip", "0, 0", "1"], ["resize", "a.zip", "3,3"], ["attrs", "a.zip", "set", "k", "1"],
                      ["rm", "a.zip/g"], ["mv", "a.zip/g", "g"], ["mv", "x", "a.zip/x"]):
            self.refused(*words, says="repack")
            self.assertEqual(digest(self.folder), before)
        self.refused("group", "a.zip/g", says="nothing can be below")
        with zarr.ZipStore(self.path("h.zip"), mode="w") as store:
            make_hierarchy(store)
        self.refused("group", "h.zip/g", says="repack")
        for version in "zarr2", "zarr3":
            expected = np.load(GOLDEN / version / "zip_store.expected.npy")
            np.testing.assert_array_equal(self.exported(GOLDEN / version / "zip_store.zip"), expected)
        self.refused("get", "a.zip/x", says="a.zip/x: no array here")

    def test_attacks(self):
        bad = GOLDEN / "bad" / "zip"
        for name, words in json.loads((bad / "errors.json").read_text()).items():
            with self.subTest(name):
                if words is None:
                    self.assertEqual(self.tessera("get", bad / name), "[1 2 3 4]\n")
                else:
                    self.refused("get", bad / name, says=words)
        self.assertEqual(list(self.folder.iterdir()), [])


program.main()
