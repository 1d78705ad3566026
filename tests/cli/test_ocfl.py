"""OCFL objects: `seal --ocfl`, versions read in place, the public fixtures, and kills."""

import hashlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
import unittest

import numpy as np

from program import GOLDEN, PROGRAM, ProgramTest, main, module_folder

ID = "urn:example:a"
VALUES = np.arange(24 * 30, dtype="<i4").reshape(24, 30)


class OcflTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.save("values.npy", VALUES)
        self.tessera("import", "values.npy", "a.zarr", "--chunks", "6,10", "--format", "v3", "--codec", "gzip:1", "--quiet")
        self.root = self.folder / "root"

    def add(self, id=ID, *words):
        return self.tessera_json("seal", "a.zarr", "--ocfl", "root", "--id", id, *words)

    def object(self, id=ID):
        """Where extension 0003 puts it."""
        digest = hashlib.sha256(id.encode()).hexdigest()
        return self.root / digest[:3] / digest[3:6] / digest[6:9] / id.replace(":", "%3a")

    def stored(self):
        return {p.relative_to(self.object()).as_posix() for p in self.object().rglob("*") if p.is_file()}

    def values(self, path):
        self.tessera("copy", path, "out.npy", "--overwrite", "--quiet")
        return np.load(self.folder / "out.npy")


class Versions(OcflTest):
    def test_an_edit_of_three_chunks_stores_three_files(self):
        first = self.add()
        self.assertEqual((first["version"], first["written"], first["files"]), ("v1", True, 13))
        before = self.stored()
        self.tessera("set", "a.zarr", "0:1, :", "7")  # a row of three chunks
        second = self.add(ID, "--message", "A row")
        self.assertEqual((second["version"], second["stored"]), ("v2", 3))
        self.assertEqual({p for p in self.stored() - before if "/content/" in p}, {f"v2/content/c/0/{i}" for i in range(3)})
        self.assertFalse(self.add()["written"])
        inventory = json.loads((self.object() / "inventory.json").read_text())
        self.assertEqual((inventory["head"], inventory["versions"]["v2"]["message"]), ("v2", "A row"))
        for digest, paths in inventory["manifest"].items():
            for path in paths:
                self.assertEqual(hashlib.sha512((self.object() / path).read_bytes()).hexdigest(), digest)
        # Each is read in place, and by name of the object alone the last.
        edited = VALUES.copy()
        edited[0] = 7
        for version, expected in ("@v1", VALUES), ("@v2", edited), ("", edited):
            np.testing.assert_array_equal(self.values(f"ocfl:root::{ID}{version}"), expected)
        self.assertTrue(self.tessera_json("verify", f"ocfl:root::{ID}@v1")["sound"])
        self.assertEqual(self.tessera_json("verify", "root")["files_as_sealed"], 16)
        self.assertEqual([p.name for p in self.folder.iterdir() if "tessera" in p.name], [])

    def test_a_group_a_zip_and_identifiers_with_slashes(self):
        self.tessera("group", "g.zarr", "--format", "v3", "--quiet")
        self.tessera("copy", "a.zarr", "g.zarr/a", "--quiet")
        self.tessera("copy", "g.zarr", "g.zarr.zip", "--quiet")
        for path, id in ("g.zarr", "ark:/12345/x"), ("g.zarr.zip", "info:zip/a@v"):
            self.tessera("seal", path, "--ocfl", "root", "--id", id, "--quiet")
            for version in "@v1", "":
                np.testing.assert_array_equal(self.values(f"ocfl:root::{id}{version}/a"), VALUES)
        self.assertIn("a", self.tessera("tree", "ocfl:root::ark:/12345/x@v1"))
        self.assertEqual(self.tessera_json("verify", "root")["seals"], 2)
        (self.folder / "root" / "0=ocfl_1.1").unlink()
        self.refused("info", "ocfl:root::ark:/12345/x", says="no OCFL storage root")

    def test_what_is_refused(self):
        self.add()
        self.refused("seal", "a.zarr", "--ocfl", "root", says="--id")
        self.refused("seal", "a.zarr", "--id", "x", says="--ocfl")
        self.refused("seal", "a.zarr", "--ocfl", "root", "--id", "x", "--parity", "1", says="--ocfl")
        self.refused("set", f"ocfl:root::{ID}@v1", "0,0", "1", says="never changed")
        self.refused("info", f"ocfl:root::{ID}@v2", says=["no version v2", "v1"])
        self.refused("info", "ocfl:root::other", says="no object of that identifier")
        self.refused("info", "ocfl:root", says="ocfl:ROOT::ID")
        (self.folder / "other").mkdir()
        (self.folder / "other/file").write_text("x")
        self.refused("seal", "a.zarr", "--ocfl", "other", "--id", "x", says="no OCFL storage root")
        (self.root / "ocfl_layout.json").write_text('{"extension": "0002-flat-direct-storage-layout", "description": ""}')
        self.refused("seal", "a.zarr", "--ocfl", "root", "--id", "x", says="0002-flat")
        self.tessera("set", "a.zarr", "0,0", "9", "--quiet")
        self.assertEqual(self.add()["version"], "v2")  # of an object that is there

    def test_damage_is_found_and_not_built_upon(self):
        self.add()
        chunk = self.object() / "v1/content/c/0/0"
        good = chunk.read_bytes()
        chunk.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        report = self.tessera_json("verify", "root", code=1)
        self.assertEqual([(f["kind"], f["key"]) for f in report["findings"]],
                         [("changed", (chunk.relative_to(self.root)).as_posix())])
        chunk.unlink()
        self.assertEqual(self.tessera_json("verify", "root", code=1)["lost"], 1)
        self.refused("copy", f"ocfl:root::{ID}@v1", "out.zarr", says="is missing")
        chunk.write_bytes(good)
        inventory = self.object() / "inventory.json"
        inventory.write_text(inventory.read_text().replace("Sealed", "sealed"))
        self.tessera("set", "a.zarr", "0,0", "9", "--quiet")
        self.refused("seal", "a.zarr", "--ocfl", "root", "--id", ID, says="inventory.json.sha512")
        self.refused("info", f"ocfl:root::{ID}", says="inventory.json.sha512")

    def test_a_killed_run_leaves_the_object_as_before_or_as_after(self):
        self.add()
        states = set()
        for delay in (0, 1, 2, 4, 6, 8, 12, 16, 24, 40, 80):
            self.tessera("set", "a.zarr", "0:24:6, 0:30:10", str(delay + 100), "--quiet")
            last = json.loads((self.object() / "inventory.json").read_text())["head"]
            run = subprocess.Popen([PROGRAM, "seal", "a.zarr", "--ocfl", "root", "--id", ID, "--quiet", "--unchecked"],
                                   cwd=self.folder)
            time.sleep(delay / 1000)
            run.send_signal(signal.SIGKILL)
            run.wait()
            head = json.loads((self.object() / "inventory.json").read_text())["head"]
            states.add(head == last)
            self.assertIn(int(head[1:]) - int(last[1:]), (0, 1))
            self.assertTrue(self.tessera_json("verify", "root")["sound"])
        self.add()
        self.assertTrue(self.tessera_json("verify", "root")["sound"])
        self.assertEqual([p.name for p in self.folder.iterdir() if "tessera-new" in p.name], [])

    def test_writers_at_once_lose_no_version(self):
        runs = [subprocess.Popen([PROGRAM, "seal", "a.zarr", "--ocfl", "root", "--id", f"urn:x:{i}", "--quiet"],
                                 cwd=self.folder) for i in range(6)]
        self.assertEqual([run.wait() for run in runs], [0] * 6)
        self.assertEqual(self.tessera_json("verify", "root")["seals"], 6)

    def test_a_link_in_an_object_leads_nowhere(self):
        self.add()
        secret = self.folder / "secret"
        secret.write_bytes((self.object() / "v1/content/c/0/0").read_bytes())
        (self.object() / "v1/content/c/0/0").unlink()
        (self.object() / "v1/content/c/0/0").symlink_to(secret)
        self.assertFalse(self.tessera_json("verify", "root", code=1)["sound"])
        self.assertNotEqual(self.run_program("copy", f"ocfl:root::{ID}@v1", "out.zarr").returncode, 0)

    def test_an_object_without_its_inventory(self):
        self.add()
        (self.object() / "inventory.json").rename(self.folder / "kept")
        for content in None, "{", (self.folder / "kept").read_text().replace(ID, "urn:other"):
            if content is not None:
                (self.object() / "inventory.json").write_text(content)
            with self.subTest(content=content and content[:9]):
                self.refused("seal", "a.zarr", "--ocfl", "root", "--id", ID, says="missing, damaged or of another object")
                self.refused("info", f"ocfl:root::{ID}", says="missing, damaged or of another object")
        # Folders that a killed run left empty are taken.
        other = self.object("urn:x:1")
        other.mkdir(parents=True)
        self.assertEqual(self.add("urn:x:1")["version"], "v1")

    def test_a_version_that_the_inventory_does_not_have(self):
        self.add()
        (self.object() / "v2").mkdir()
        (self.object() / "v2/left").write_text("x")
        self.tessera("set", "a.zarr", "0,0", "9", "--quiet")
        self.refused("seal", "a.zarr", "--ocfl", "root", "--id", ID, says="a version that the inventory does not have")
        (self.object() / "v2/left").unlink()
        (self.object() / "v2").rmdir()
        self.assertEqual(self.add()["version"], "v2")
        self.assertTrue(self.tessera_json("verify", "root")["sound"])

    def test_a_root_of_version_1_0(self):
        self.add("urn:x:old")
        (self.root / "0=ocfl_1.1").unlink()
        (self.root / "0=ocfl_1.0").write_text("ocfl_1.0\n")
        self.assertIn("later than the 0=ocfl_1.0", self.tessera("verify", "root", code=1))
        subprocess.run(["rm", "-r", self.object("urn:x:old")], check=True)
        for version in "v1", "v2":
            self.tessera("set", "a.zarr", "0,0", version[1:], "--quiet")
            self.assertEqual(self.add()["version"], version)
            self.assertEqual([p.read_text() for p in self.object().glob("0=*")], ["ocfl_object_1.0\n"])
            inventory = json.loads((self.object() / "inventory.json").read_text())
            self.assertEqual(inventory["type"], "https://ocfl.io/1.0/spec/#inventory")
            self.assertTrue(self.tessera_json("verify", "root")["sound"])
        # Its next version, in a root of 1.1, is of 1.1.
        (self.root / "0=ocfl_1.0").rename(self.root / "0=ocfl_1.1")
        (self.root / "0=ocfl_1.1").write_text("ocfl_1.1\n")
        self.tessera("set", "a.zarr", "0,0", "9", "--quiet")
        self.assertEqual(self.add()["version"], "v3")
        self.assertEqual([p.name for p in self.object().glob("0=*")], ["0=ocfl_object_1.1"])
        self.assertTrue(self.tessera_json("verify", "root")["sound"])

    @unittest.skipUnless(os.path.ismount("/dev/shm"), "needs a mount point")
    def test_a_mount_point(self):
        self.refused("seal", "a.zarr", "--ocfl", "/dev/shm", "--id", ID, says="choose a folder below it")

    def test_a_path_of_a_million_parts(self):
        self.add()
        inventory = self.object() / "inventory.json"
        document = json.loads(inventory.read_text())
        state = document["versions"]["v1"]["state"]
        state[next(iter(state))][0] += "/x" * 1_200_000
        text = json.dumps(document)
        inventory.write_text(text)
        (self.object() / "inventory.json.sha512").write_text(hashlib.sha512(text.encode()).hexdigest() + " inventory.json\n")
        self.assertIn("too long", str(self.tessera_json("verify", "root", code=1)["findings"]))
        self.refused("info", f"ocfl:root::{ID}", says="damaged")

    def test_a_root_in_which_the_object_is_looked_for(self):
        self.add()
        (self.root / "ocfl_layout.json").unlink()
        (self.root / "elsewhere").mkdir()
        self.object().rename(self.root / "elsewhere/a")
        (self.root / "loop").symlink_to("loop")
        (self.root / "dangling").symlink_to("nothing")
        self.assertTrue(self.tessera_json("info", f"ocfl:root::{ID}"))
        here = os.getcwd()
        os.chdir(self.root)
        for _ in range(300):  # of 200 letters: more than a path can have
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        os.chdir(here)
        self.assertTrue(self.tessera_json("info", f"ocfl:root::{ID}"))
        self.refused("info", "ocfl:root::urn:none", says="no object of that identifier")
        self.assertEqual(self.add("urn:x:new")["version"], "v1")
        subprocess.run(["rm", "-r", self.root], check=True)

    def test_another_validator_agrees(self):
        if importlib.util.find_spec("ocfl") is None:
            self.skipTest("ocfl-py is not installed")
        import ocfl

        self.add()
        self.tessera("set", "a.zarr", "0,0", "9", "--quiet")
        self.add()
        self.tessera("seal", "a.zarr", "--ocfl", "root", "--id", "ark:/" + "x" * 150, "--quiet")
        root = ocfl.StorageRoot(str(self.root))
        self.assertTrue(root.validate(), root.errors)
        self.assertEqual((root.num_objects, root.good_objects), (2, 2))

    def test_from_python(self):
        sys.path.insert(0, str(module_folder()))
        import tessera

        made = tessera.seal_ocfl(self.folder / "a.zarr", self.root, ID, message="First")
        self.assertEqual((made["version"], made["stored"]), ("v1", 13))
        np.testing.assert_array_equal(tessera.open(f"ocfl:{self.root}::{ID}@v1")[...], VALUES)


class Fixtures(OcflTest):
    def test_the_public_objects(self):
        with tarfile.open(GOLDEN / "ocfl/objects.tar.xz") as archive:
            archive.extractall(self.folder / "objects")
        counted = {}
        for path in sorted((self.folder / "objects").glob("*/*")):
            kind = path.parent.name
            counted[kind] = counted.get(kind, 0) + 1
            with self.subTest(path=path.name):
                if path.name == "E003_E063_empty":
                    self.refused("verify", path, says="no array or group")
                    continue
                report = self.tessera_json("verify", path, code=1 if kind == "bad-objects" else 0)
                self.assertEqual(report["sound"], kind != "bad-objects")
                # An address that is not given is not called wrong.
                if kind == "warn-objects" and path.name != "W008_user_no_address":
                    self.assertGreater(report["note"], 0)
        self.assertEqual(counted, {"good-objects": 11, "bad-objects": 51, "warn-objects": 12})


if __name__ == "__main__":
    main()
