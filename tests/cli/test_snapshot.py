"""Snapshots, as a person makes them and puts them back; what zarr-python makes of them and of the original beside them."""

import json
import os
import shutil

import numpy as np

import program
from program import ProgramTest, zarr

VALUES = np.arange(60, dtype="<i4").reshape(6, 10)


class Snapshots(ProgramTest):
    def make_hierarchy(self):
        root = zarr.open_group(self.path("h.zarr"), mode="w")
        root.attrs["title"] = "root"
        for name in "depth", "sub/quality":
            root.create_dataset(name, data=VALUES, chunks=(2, 5)).attrs["of"] = name
        zarr.consolidate_metadata(self.path("h.zarr"))

    def test_an_array_is_kept_and_put_back(self):
        for kind in "zmeta", "v1", "v2", "v3":
            with self.subTest(kind):
                path = f"{kind}.zarr"
                self.tessera("import", self.save("values.npy", VALUES), path, "--format", kind, "--chunks", "2,5")
                made = self.tessera("snapshot", path, "create", "before")
                self.assertRegex(made, rf"^created .*{kind}\.zarr\.snapshots/before: 1 array, \d+ files \(.*\), ")
                self.tessera("set", path, "0:3, :", "-1")
                self.tessera("attrs", path, "set", "note", "1")
                self.tessera("diff", path, f"{path}.snapshots/before", code=1)
                np.testing.assert_array_equal(self.exported(f"{path}.snapshots/before"), VALUES)
                listed = self.tessera_json("snapshot", path, "list")
                self.assertEqual([(s["name"], s["of"], s["arrays"]) for s in listed], [("before", "", 1)])
                self.assertEqual(listed[0]["files"], listed[0]["reflinked"] + listed[0]["linked"] + listed[0]["copied"])
                self.assertRegex(listed[0]["made"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
                self.assertRegex(self.tessera("snapshot", path, "list"), r"^before  \d{4}-\d\d-\d\dT.*  1 array, ")
                self.assertEqual(self.tessera("snapshot", path, "restore", "before"),
                                 f"restored {path} from its snapshot before\n")
                np.testing.assert_array_equal(self.exported(path), VALUES)
                self.assertEqual(self.tessera_json("attrs", path), {})
                self.tessera("verify", path)
                self.tessera("verify", f"{path}.snapshots/before")
                self.assertEqual(self.tessera("snapshot", path, "rm", "before"),
                                 f"removed the snapshot before of {path}\n")
                self.assertEqual(self.tessera("snapshot", path, "list"), "")
                np.testing.assert_array_equal(self.exported(path), VALUES)

    def copied(self, name):
        """What a plain `cp -r` makes: hard links are files of their own, and all times are new."""
        shutil.copytree(self.folder / "h.zarr", self.folder / name / "h.zarr", copy_function=shutil.copyfile)
        shutil.copytree(self.folder / "h.zarr.snapshots", self.folder / name / "h.zarr.snapshots",
                        copy_function=shutil.copyfile)
        for file in (self.folder / name).rglob("*"):
            os.utime(file, ns=(10**18, 10**18))
        return self.folder / name / "h.zarr.snapshots"

    def test_sums_tell_what_was_moved_from_what_was_changed(self):
        self.make_hierarchy()
        self.tessera("snapshot", "h.zarr", "create", "plain", "--quiet")
        self.tessera("snapshot", "h.zarr", "create", "summed", "--sums", "--quiet")
        self.tessera("set", "h.zarr/depth", "...", "0")
        for name in "plain", "summed":
            self.tessera("verify", f"h.zarr.snapshots/{name}")
        snapshots = self.copied("copy")

        # With sums the content tells.
        report = self.tessera_json("verify", "copy/h.zarr.snapshots/summed")
        self.assertEqual([(f["kind"], "the same content" in f["text"]) for f in report["findings"]], [("note", True)])
        self.tessera("snapshot", "copy/h.zarr", "restore", "summed")
        np.testing.assert_array_equal(self.exported("copy/h.zarr/depth"), VALUES)
        chunk = snapshots / "summed" / "depth" / "1.1"
        data = bytearray(chunk.read_bytes())
        data[-1] ^= 1
        chunk.write_bytes(data)  # the same size
        report = self.tessera_json("verify", "copy/h.zarr.snapshots/summed", code=1)
        self.assertEqual([f["key"] for f in report["findings"] if f["kind"] == "damage" and "in place" in f["text"]],
                         ["depth/1.1"])
        self.refused("snapshot", "copy/h.zarr", "accept", "summed", says="depth/1.1")

        # Without, that nothing can be told is said once, and taken back on request.
        report = self.tessera_json("verify", "copy/h.zarr.snapshots/plain", code=1)
        self.assertEqual([f["kind"] for f in report["findings"]], ["unchecked"])
        self.assertIn("accept", report["findings"][0]["text"])
        self.refused("snapshot", "copy/h.zarr", "restore", "plain", says="accept plain")
        self.refused("snapshot", "copy/h.zarr", "restore", "plain", "--skip-damaged", says="accept plain")
        self.tessera("snapshot", "copy/h.zarr", "accept", "plain", "--sums")
        self.tessera("verify", "copy/h.zarr.snapshots/plain")
        self.tessera("snapshot", "copy/h.zarr", "restore", "plain")
        self.assertEqual(self.tessera("diff", "copy/h.zarr/depth", "h.zarr.snapshots/plain/depth", "--quiet"), "")
        self.tessera("verify", "copy/h.zarr")
        self.refused("snapshot", "h.zarr", "list", "--sums", says="only of create and accept")
        self.refused("snapshot", "h.zarr", "create", "x", "--skip-damaged", says="only of restore")

    def test_sums_tell_of_damage_under_the_same_size_and_time(self):
        self.make_hierarchy()
        self.tessera("create", "h.zarr/raw", "--shape", "8", "--chunks", "4", "--dtype", "<i4", "--format", "v2", "--codec",
                     "none", "--quiet")
        self.tessera("set", "h.zarr/raw", "...", "1", "--quiet")
        self.tessera("snapshot", "h.zarr", "create", "summed", "--sums", "--quiet")
        self.tessera("set", "h.zarr/raw", "...", "2", "--quiet")
        self.tessera("verify", "h.zarr.snapshots/summed", "--quiet")
        chunk = self.folder / "h.zarr.snapshots/summed/raw/1"
        time = chunk.stat().st_mtime_ns
        data = bytearray(chunk.read_bytes())
        data[0] ^= 6  # it still decodes
        chunk.write_bytes(data)
        os.utime(chunk, ns=(time, time))
        report = self.tessera_json("verify", "h.zarr.snapshots/summed", code=1)
        self.assertEqual([(f["kind"], f["key"]) for f in report["findings"] if f["kind"] == "damage"],
                         [("damage", "raw/1")])
        before = program.digest(self.folder / "h.zarr")
        for path in "h.zarr", "h.zarr/raw":
            self.refused("snapshot", path, "restore", "summed", says="--skip-damaged")
        self.refused("snapshot", "h.zarr", "restore", "summed", says=("1 of its files", "raw/1", "tessera copy"))
        self.refused("snapshot", "h.zarr", "accept", "summed", says="raw/1")
        self.assertEqual(program.digest(self.folder / "h.zarr"), before)
        self.tessera("snapshot", "h.zarr/depth", "restore", "summed")  # a part that is as it was
        result = self.run_program("snapshot", "h.zarr", "restore", "summed", "--skip-damaged", "--json")
        self.assertEqual((result.returncode, json.loads(result.stdout)["lost"]), (1, ["raw/1"]), result.stderr)
        np.testing.assert_array_equal(self.exported("h.zarr/raw"), [1] * 4 + [0] * 4)

    def test_sums_that_are_gone_are_missed(self):
        self.make_hierarchy()
        self.tessera("snapshot", "h.zarr", "create", "summed", "--sums", "--quiet")
        self.assertTrue(self.tessera_json("snapshot", "h.zarr", "list")[0]["sums"])
        sums = self.folder / "h.zarr.snapshots/summed/.tessera/snapshot-sums.txt"
        sums.unlink()
        report = self.tessera_json("verify", "h.zarr.snapshots/summed", code=1)
        self.assertEqual([(f["kind"], f["key"]) for f in report["findings"]], [("damage", ".tessera/snapshot.json")])
        self.assertIn("snapshot-sums.txt is missing or not as", report["findings"][0]["text"])
        for path in "h.zarr", "h.zarr/depth":
            self.refused("snapshot", path, "restore", "summed", says=("snapshot-sums.txt is missing", "accept summed"))
        # They are given up on request, or made again.
        self.tessera("snapshot", "h.zarr", "accept", "summed")
        self.tessera("verify", "h.zarr.snapshots/summed")
        self.assertFalse(self.tessera_json("snapshot", "h.zarr", "list")[0]["sums"])
        self.tessera("snapshot", "h.zarr", "accept", "summed", "--sums")
        self.assertTrue(self.tessera_json("snapshot", "h.zarr", "list")[0]["sums"])
        self.assertTrue(sums.exists())
        self.tessera("snapshot", "h.zarr", "restore", "summed")

    def test_broken_metadata_are_restored_and_removed(self):
        for kind, document in {"zmeta": "__zmeta__", "v1": "meta", "v2": ".zarray", "v3": "zarr.json"}.items():
            for broken in b"{", b"", None:
                with self.subTest(kind, broken=broken):
                    path = f"{kind}{len(broken) if broken is not None else ''}.zarr"
                    root = self.folder / path
                    self.tessera("import", self.save("values.npy", VALUES), path, "--format", kind, "--chunks", "2,5", "--quiet")
                    self.tessera("snapshot", path, "create", "before", "--quiet")

                    def damage():
                        if broken is None:
                            (root / document).unlink()
                        else:
                            (root / document).write_bytes(broken)

                    damage()
                    (root / "notes.txt").write_text("mine")
                    self.refused("snapshot", path, "restore", "before", says="notes.txt")
                    self.refused("rm", path, "--force", says="notes.txt")
                    self.assertEqual((root / "notes.txt").read_text(), "mine")
                    (root / "notes.txt").unlink()
                    self.tessera("snapshot", path, "restore", "before", "--quiet")
                    np.testing.assert_array_equal(self.exported(path), VALUES)
                    damage()
                    self.refused("rm", path, says="--force")
                    self.assertTrue(root.exists())
                    self.tessera("rm", path, "--force", "--quiet")
                    self.assertFalse(root.exists())

    def test_broken_documents_of_a_hierarchy_are_restored_and_removed(self):
        self.make_hierarchy()
        self.tessera("copy", "h.zarr", "g.zarr", "--format", "v3", "--quiet")
        self.tessera("snapshot", "g.zarr", "create", "before", "--quiet")
        for damaged in ["zarr.json"], ["depth/zarr.json"], ["sub/zarr.json", "zarr.json", "sub/quality/zarr.json"]:
            with self.subTest(damaged):
                for name in damaged:
                    (self.folder / "g.zarr" / name).write_text("{")
                self.tessera("snapshot", "g.zarr", "restore", "before", "--quiet")
                self.tessera("verify", "g.zarr")
                np.testing.assert_array_equal(self.exported("g.zarr/sub/quality"), VALUES)
        # What the snapshot does not have stays, and with it all else.
        self.tessera("create", "g.zarr/later", "--shape", "3", "--dtype", "i4", "--quiet")
        (self.folder / "g.zarr/zarr.json").write_text("{")
        self.refused("snapshot", "g.zarr", "restore", "before", says="later")
        self.refused("rm", "g.zarr", "--recursive", says="--force")
        self.tessera("rm", "g.zarr", "--recursive", "--force", "--quiet")
        self.assertFalse((self.folder / "g.zarr").exists())
        # A folder of somebody else's that looks like an array without metadata is none of ours.
        (self.folder / "years/2024").mkdir(parents=True)
        self.refused("rm", "years", "--force", says="no array or group")
        self.assertTrue((self.folder / "years/2024").exists())

    def test_what_is_listed_has_sums(self):
        """A list that an older version made states no sum of itself."""
        self.make_hierarchy()
        self.tessera("snapshot", "h.zarr", "create", "old", "--sums", "--quiet")
        own = self.folder / "h.zarr.snapshots/old/.tessera"
        record = json.loads((own / "snapshot.json").read_text())
        for member in "sha256", "files_sha256", "sums_sha256":
            del record[member]
        (own / "snapshot.json").write_text(json.dumps(record))
        self.tessera("verify", "h.zarr.snapshots/old")
        for name, says in ("snapshot-sums.txt", ".zgroup: "), ("snapshot-files.txt", "and the snapshot was made of"):
            whole = (own / name).read_text()
            (own / name).write_text("".join(whole.splitlines(keepends=True)[3:]))
            self.assertIn(says, self.tessera("verify", "h.zarr.snapshots/old", code=1))
            self.assertNotEqual(self.run_program("snapshot", "h.zarr", "restore", "old").returncode, 0)
            (own / name).write_text(whole)
        self.tessera("snapshot", "h.zarr", "restore", "old")

    def test_a_seal_tells_too(self):
        self.make_hierarchy()
        self.tessera("seal", "h.zarr/sub", "--quiet")
        self.tessera("snapshot", "h.zarr/sub", "create", "sealed", "--quiet")
        self.copied("copy")
        report = self.tessera_json("verify", "copy/h.zarr.snapshots/sealed", code=1)
        # The manifest itself is in no seal.
        self.assertEqual({f["kind"] for f in report["findings"]}, {"note", "unchecked"})

    def test_what_is_not_damaged_is_restored_on_request(self):
        self.make_hierarchy()
        self.tessera("snapshot", "h.zarr", "create", "one", "--quiet")
        self.tessera("set", "h.zarr/depth", "...", "7")
        kept = self.folder / "h.zarr.snapshots" / "one"
        (kept / "depth" / "0.0").write_bytes(b"no chunk")
        (kept / "depth" / "1.1").unlink()
        before = program.digest(self.folder / "h.zarr")
        self.refused("snapshot", "h.zarr", "restore", "one", says=("2 of its files", "--skip-damaged"))
        self.assertEqual(program.digest(self.folder / "h.zarr"), before)
        result = self.run_program("snapshot", "h.zarr", "restore", "one", "--skip-damaged", "--json")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(json.loads(result.stdout)["lost"], ["depth/0.0", "depth/1.1"])
        expected = VALUES.copy()
        expected[:2, :5] = 0
        expected[2:4, 5:] = 0
        np.testing.assert_array_equal(self.exported("h.zarr/depth"), expected)
        np.testing.assert_array_equal(self.exported("h.zarr/sub/quality"), VALUES)
        # Without its metadata an array is left out as a whole, and a group cannot be restored.
        (kept / "depth" / ".zarray").write_text("{}")
        result = self.run_program("snapshot", "h.zarr", "restore", "one", "--skip-damaged")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("depth is lost", result.stderr)
        self.assertFalse((self.folder / "h.zarr" / "depth").exists())
        np.testing.assert_array_equal(self.exported("h.zarr/sub/quality"), VALUES)
        self.refused("snapshot", "h.zarr/depth", "restore", "one", "--skip-damaged", says=".zarray")
        (kept / ".zgroup").write_text("{ }")
        self.refused("snapshot", "h.zarr", "restore", "one", "--skip-damaged", says=".zgroup")

    def test_zarr_python_opens_a_snapshot_and_does_not_list_it(self):
        self.make_hierarchy()
        self.tessera("snapshot", "h.zarr", "create", "before")
        self.tessera("snapshot", "h.zarr/sub", "create", "part")
        self.tessera("set", "h.zarr/depth", "...", "0")
        for opened in (zarr.open_group(self.path("h.zarr.snapshots/before"), mode="r"),
                       zarr.open_consolidated(self.path("h.zarr.snapshots/before"), mode="r")):
            self.assertEqual(sorted(opened), ["depth", "sub"])
            self.assertEqual(opened.attrs.asdict(), {"title": "root"})
            for name in "depth", "sub/quality":
                np.testing.assert_array_equal(opened[name][:], VALUES)
                self.assertEqual(opened[name].attrs.asdict(), {"of": name})
        part = zarr.open_group(self.path("h.zarr.snapshots/part"), mode="r")
        np.testing.assert_array_equal(part["quality"][:], VALUES)

        zarr.consolidate_metadata(self.path("h.zarr"))
        with open(self.path("h.zarr/.zmetadata")) as file:
            listed = list(json.load(file)["metadata"])
        self.assertFalse([key for key in listed if "snapshot" in key or "tessera" in key], listed)
        nodes = [child["name"] for child in self.tessera_json("tree", "h.zarr")["children"]]
        self.assertEqual(nodes, ["depth", "sub"])
        self.assertEqual([(s["name"], s["of"]) for s in self.tessera_json("snapshot", "h.zarr/depth", "list")],
                         [("before", ""), ("part", "sub")])

    def test_a_part_of_a_hierarchy_is_put_back(self):
        self.make_hierarchy()
        self.tessera("snapshot", "h.zarr", "create", "before")
        for name in "depth", "sub/quality":
            self.tessera("set", f"h.zarr/{name}", "...", "0")
        self.tessera("snapshot", "h.zarr/sub/quality", "restore", "before")
        np.testing.assert_array_equal(self.exported("h.zarr/sub/quality"), VALUES)
        self.assertFalse(self.exported("h.zarr/depth").any())
        shutil.rmtree(self.path("h.zarr/depth"))
        self.tessera("snapshot", "h.zarr/depth", "restore", "before")
        np.testing.assert_array_equal(zarr.open(self.path("h.zarr"), mode="r")["depth"][:], VALUES)
        shutil.rmtree(self.path("h.zarr"))
        self.tessera("snapshot", "h.zarr", "restore", "before")
        np.testing.assert_array_equal(zarr.open_consolidated(self.path("h.zarr"))["sub/quality"][:], VALUES)

    def test_writing_to_the_original_in_python_leaves_the_snapshot(self):
        self.make_hierarchy()
        self.tessera("snapshot", "h.zarr", "create", "before")
        zarr.open_group(self.path("h.zarr"))["depth"][:] = 7
        np.testing.assert_array_equal(self.exported("h.zarr.snapshots/before/depth"), VALUES)
        self.tessera("verify", "h.zarr.snapshots/before")

    def test_a_program_that_writes_into_files_is_noticed(self):
        self.make_hierarchy()
        self.tessera("snapshot", "h.zarr", "create", "before")
        chunk = self.path("h.zarr.snapshots/before/depth/0.0")
        with open(chunk, "r+b") as file:
            file.write(b"\xff")
        self.assertIn("is not as it was when the snapshot was made", self.tessera("verify", "h.zarr.snapshots/before", code=1))
        self.refused("snapshot", "h.zarr", "restore", "before", says=("1 of its files", "depth/0.0", "tessera copy"))
        self.tessera("snapshot", "h.zarr/sub", "restore", "before")

    def test_documents_and_lists_have_limits(self):
        """An array that somebody sent does not fill the disk."""
        self.tessera("create", "a", "--shape", "8", "--dtype", "<i4", "--format", "v2", "--quiet")
        (self.folder / "a/.tessera").mkdir(exist_ok=True)
        for name, says in ((".zattrs", "expected at most 67108864"), (".tessera/sha256sums.txt", "line 1 is not")):
            path = self.folder / "a" / name
            with open(path, "wb") as file:
                file.truncate(1 << 40)
            self.refused("snapshot", "a", "create", "s", says=[name, says])
            path.unlink()
        self.assertFalse((self.folder / "a.snapshots").exists() and os.listdir(self.folder / "a.snapshots"))
        with open(self.folder / "a/.zattrs", "wb") as file:
            file.truncate(40 << 20)
        self.tessera("snapshot", "a", "create", "s", "--quiet")
        copied = (self.folder / "a.snapshots/s/.zattrs").stat()
        self.assertEqual(copied.st_size, 40 << 20)
        self.assertLess(copied.st_blocks * 512, 1 << 20)  # a hole stays a hole

    def test_refusals(self):
        self.make_hierarchy()
        self.refused("snapshot", "h.zarr", "create", says="no NAME")
        self.refused("snapshot", "h.zarr", "list", "x", says="'x' as well")
        self.refused("snapshot", "h.zarr", "make", "x", says="expected create, list, restore, accept or rm")
        self.refused("snapshot", "h.zarr", "create", "a/b", says="no name for a snapshot")
        self.refused("snapshot", "h.zarr", "create", ".x", says="no name for a snapshot")
        self.refused("snapshot", "nothing", "create", "x", says="no such file or directory")
        self.refused("snapshot", "h.zarr", "restore", "x", says="there is none")
        self.tessera("snapshot", "h.zarr", "create", "x")
        self.refused("snapshot", "h.zarr", "create", "x", says="there already")
        self.refused("snapshot", "h.zarr", "rm", "y", says="there is x")
        self.refused("snapshot", "h.zarr.snapshots/x", "create", "y", says="a snapshot itself")
        (self.folder / "h.zarr" / "README").write_text("mine")
        self.refused("snapshot", "h.zarr", "restore", "x", says=("README", "move that away first"))
        self.tessera("copy", "h.zarr/depth", "depth.zip")
        self.refused("snapshot", "depth.zip", "create", "x", says="in a zip")
        self.assertEqual(sorted(os.listdir(self.folder)), ["depth.zip", "h.zarr", "h.zarr.snapshots"])


program.main()
