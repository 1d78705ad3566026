"""The program with a kind of store more, "toy:NAME": every command works there or refuses by name, and none of them
takes the path for one of a folder."""

import hashlib
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(os.environ["TESSERA_SOURCE"]) / "tests" / "cli"))
from program import ProgramTest

VALUES = np.arange(70, dtype="<i4").reshape(10, 7)

# Of every command: words with which it works on toy:x, an array, and toy:g, a group with the array a; or a refusal.
WORKS = {
    "advise": [["toy:x"]],
    "append": [["toy:x", "values.npy"], ["toy:x", "toy:x"]],
    "attrs": [["toy:x", "set", "units", '"m"'], ["toy:x", "copy", "toy:g/a"], ["toy:x"]],
    "calc": [["toy:new", "a + 1", "a=toy:x"], ["toy:x", "a + 1", "a=toy:x", "--in-place"]],
    "coarsen": [["toy:x", "toy:new", "--by", "2,2"]],
    "concat": [["toy:x", "toy:g/a", "toy:new"]],
    "consolidate": [["toy:g"]],
    "copy": [["toy:x", "toy:new"], ["toy:g", "toy:new"], ["toy:g", "toy:x/deep/new"], ["toy:x", "x.npy"],
             ["toy:x", "x.zip"], ["toy:x", "here"], ["values.npy", "toy:new"], ["toy:x", "toy:g/a", "--overwrite"],
             ["toy:x", "toy:new", "--format", "v2"], ["toy:g", "toy:new", "--link"]],
    "create": [["toy:new", "--shape", "3", "--dtype", "i4"],
               ["toy:x", "--shape", "3", "--dtype", "i4", "--overwrite"]],
    "diff": [["toy:x", "toy:g/a"], ["toy:g", "toy:g"]],
    "digest": [["toy:x", "toy:g/a"]],
    "dims": [["toy:x", "y,x"], ["toy:x"]],
    "edit": [["toy:x", "--script", "script"]],
    "export": [["toy:x", "x.npy"], ["toy:g", "all.npz"]],
    "find": [["toy:x", "value > 3"]],
    "formats": [[]],
    "get": [["toy:x"], ["toy:g/a", "0, :"]],
    "greet": [["toy:x"]],
    "group": [["toy:g/sub"], ["toy:new/deep"]],
    "import": [["values.npy", "toy:new"], ["several.npz", "toy:g/several"], ["values.npy", "toy:x", "--overwrite"]],
    "info": [["toy:x"], ["toy:g"]],
    "mv": [["toy:g/a", "toy:g/b"]],
    "plan": [["copy", "toy:x", "here", "--out", "job.json"]],
    "pyramid": [["toy:x", "toy:new", "--by", "2"]],
    "rechunk": [["toy:x", "toy:new", "--chunks", "5,5"], ["toy:x", "toy:x", "--chunks", "5,5", "--overwrite"]],
    "reduce": [["toy:x", "toy:new", "--axis", "0", "--with", "mean"]],
    "repair": [["toy:x"], ["toy:g"]],
    "resize": [["toy:x", "12,7"]],
    "rm": [["toy:x"], ["toy:g", "--recursive"]],
    "seal": [["toy:x"], ["toy:g", "--parity", "1"], ["toy:x", "--bagit", "bag"], ["toy:x", "--ocfl", "root", "--id", "a:b"]],
    "set": [["toy:x", "0:2, 0:2", "7"], ["toy:x", ":", "values.npy"]],
    "stack": [["toy:x", "toy:g/a", "toy:new"]],
    "stats": [["toy:x"]],
    "sync": [["toy:x", "toy:g/a"], ["toy:g", "toy:new"], ["toy:x", "here"]],
    "tree": [["toy:g"], ["toy:x"]],
    "unstack": [["toy:x", "row-{}.npy"]],
    "verify": [["toy:x"], ["toy:g"]],
    "view": [["toy:x", "--png", "x.png"]],
}
REFUSES = {
    "bug-report": [["toy:x"]],
    "index": [["toy:x"]],
    "log": [["toy:x"]],
    "snapshot": [["toy:x", "create", "one"], ["toy:x", "list"], ["toy:x", "restore", "one"], ["toy:x", "rm", "one"]],
    "stack": [["toy:x", "toy:g/a", "toy:x.json", "--virtual"]],
    "unstack": [["toy:x", "toy:row-{}"]],
}
# What cannot lie there, or must not be done; with a part of the line that says so.
OTHERWISE = {
    "cache": [(["ls", "--cache", "toy:x"], "no cache of Tessera")],
    "copy": [(["toy:x", "toy:x.npy"], "an array file needs"), (["toy:x", "toy:x.zip"], "a zip needs"),
             (["toy:x", "toy:g/a"], "already"), (["toy:nothing", "toy:new"], "toy:nothing: no array here"),
             (["toy:x", "toy:a/../b"], "not a key")],
    "create": [(["toy:x", "--shape", "3", "--dtype", "i4"], "an array is there already"),
               (["toy:g", "--shape", "3", "--dtype", "i4", "--overwrite"], "no array is there"),
               (["toy:", "--shape", "3", "--dtype", "i4"], "expected toy:NAME")],
    "export": [(["toy:x", "toy:x.npy"], "an array file needs")],
    "finish": [(["toy:x"], "a job needs a folder")],
    "group": [(["toy:x"], "already")],
    "job": [(["toy:x"], "a job needs a folder")],
    "mount": [(["toy:x", "absent"], "mkdir absent")],
    "mv": [(["toy:x", "toy:y"], "cannot be moved"), (["toy:x", "y"], "cannot be moved"),
           (["toy:g/a", "toy:g/a"], "already")],
    "plan": [(["copy", "toy:x", "toy:new", "--out", "job.json"], "the target of a job needs a folder"),
             (["copy", "toy:x", "here", "--out", "toy:job"], "a job needs a folder")],
    "refs": [(["toy:x"], "no byte ranges of its own"), (["toy:x", "--out", "refs.json"], "no byte ranges of its own")],
    "rm": [(["toy:g"], "--recursive"), (["toy:nothing"], "toy:nothing: no array or group")],
    "seal": [(["toy:x", "--bagit", "toy:bag"], "a bag needs"), (["toy:x", "--ocfl", "toy:root", "--id", "a:b"], "root needs")],
    "serve": [(["toy:nothing"], "toy:nothing: no array and no group is here"), (["toy:x::a"], "only arrays and groups")],
    "stack": [(["toy:x", "toy:g/a", "x.json", "--virtual"], "toy:x: does not hold its elements as one array")],
    "undo": [(["toy:x"], "nothing to take back")],
    "work": [(["toy:x"], "a job needs a folder")],
    "regrid": [(["toy:x", "toy:new", "--to", "lat=0:1:1,lon=0:1:1"], "latitude")],
}


def contents(folder):
    """All that is below a folder, but for times."""
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else ""
            for p in pathlib.Path(folder).rglob("*")}


class Stores(ProgramTest):
    def setUp(self):
        super().setUp()
        self.toys = pathlib.Path(tempfile.mkdtemp(prefix="tessera-toys-"))
        self.addCleanup(shutil.rmtree, self.toys, ignore_errors=True)
        os.environ["TESSERA_TOYS"] = str(self.toys)
        self.save("values.npy", VALUES)
        np.savez(self.folder / "several.npz", a=VALUES, b=VALUES[0])
        (self.folder / "script").write_text("set '0:2, :' 7\nattr reviewed true\n")
        self.tessera("import", "values.npy", "toy:x", "--chunks", "4,3", "--format", "v3", "--quiet")
        self.tessera("group", "toy:g")
        self.tessera("import", "values.npy", "toy:g/a", "--chunks", "4,3", "--quiet", code=0)
        self.before = contents(self.toys)

    def again(self):
        """As setUp left it."""
        for file in self.toys.iterdir():
            file.unlink()
        shutil.copytree(self.kept, self.toys, dirs_exist_ok=True)

    def keep(self):
        self.kept = pathlib.Path(tempfile.mkdtemp(prefix="tessera-toys-kept-"))
        self.addCleanup(shutil.rmtree, self.kept, ignore_errors=True)
        shutil.copytree(self.toys, self.kept, dirs_exist_ok=True)

    def require_nothing_of_the_name(self, words):
        for path in self.folder.rglob("*"):
            self.assertNotIn("toy:", path.name, words)

    def clear(self):
        """Of what commands made in the folder."""
        for path in self.folder.iterdir():
            if path.name in ("values.npy", "several.npz", "script") or path.name.startswith("toy:"):
                continue
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def run_every_command(self):
        named = set(WORKS) | set(REFUSES) | set(OTHERWISE)
        self.assertEqual(named, set(self.tessera("help", "commands").split()))
        self.keep()
        for command, calls in WORKS.items():
            for words in calls:
                with self.subTest(command=command, words=words):
                    self.again()
                    result = self.run_program(command, *words)
                    self.assertEqual(result.returncode, 0, f"{command} {words}\n{result.stdout}{result.stderr}")
                    self.require_nothing_of_the_name(words)
                    changed = dict(contents(self.toys).items() - self.before.items())
                    for path in {name.split("!")[0] for name in changed}:
                        self.assertIn("sound", self.tessera("verify", f"toy:{path}"))
            self.clear()
        for command, calls in REFUSES.items():
            for words in calls:
                with self.subTest(command=command, words=words):
                    self.again()
                    line = self.refused(command, *words, says="needs a folder on this machine; toy:")
                    self.assertIn(f"`{command}", line)
                    self.assertEqual(contents(self.toys), self.before)
                    self.require_nothing_of_the_name(words)
        for command, calls in OTHERWISE.items():
            for words, says in calls:
                with self.subTest(command=command, words=words):
                    self.again()
                    self.refused(command, *words, says=says)
                    self.assertEqual(contents(self.toys), self.before)
                    self.require_nothing_of_the_name(words)


class ToyStore(Stores):
    def test_every_command_works_or_refuses_by_name(self):
        self.run_every_command()

    def test_only_a_known_scheme_is_one(self):
        for name in "a:b", "toys:x", "./toy:x":
            self.tessera("import", "values.npy", name, "--quiet")
            self.tessera("set", name, "0, 0", "5")
            self.tessera("verify", name)
            self.assertTrue((self.folder / name).is_dir())
            self.tessera("snapshot", name, "create", "one")
            self.tessera("rm", name)
        self.assertEqual(contents(self.toys), self.before)


class ToyStoreAmongFolders(Stores):
    """The same where folders and files of these names lie, which stay as they are."""

    def setUp(self):
        super().setUp()
        for name in "x", "g", "new", "y", "back-v2", "v2":
            decoy = self.folder / f"toy:{name}"
            self.save("decoy.npy", np.zeros((2, 2)))
            self.tessera("import", "decoy.npy", f"./toy:{name}", "--format", "v2", "--quiet")
            (decoy / "foreign").write_text("a decoy")
        for name in "nothing", "x.npy", "x.zip", "row-0":
            (self.folder / f"toy:{name}").write_bytes((self.folder / "decoy.npy").read_bytes())
        self.decoys = self.of_decoys()

    def of_decoys(self):
        return {name: value for name, value in contents(self.folder).items() if name.startswith(("toy:", ".toy:"))}

    def tearDown(self):
        self.assertEqual(self.of_decoys(), self.decoys)

    def require_nothing_of_the_name(self, words):
        self.assertEqual(self.of_decoys(), self.decoys, words)

    def test_every_command_works_or_refuses_by_name(self):
        self.run_every_command()

    def test_round_trips(self):
        for name in "zmeta", "v1", "v2", "v3", "toy":
            self.tessera("copy", "toy:x", f"toy:{name}/deep/a", "--format", name, "--quiet")
            self.tessera("verify", f"toy:{name}")
            self.tessera("diff", f"toy:{name}/deep/a", "values.npy")
            self.tessera("copy", f"toy:{name}", f"local-{name}", "--quiet")
            self.tessera("copy", f"local-{name}", f"toy:back-{name}", "--quiet")
            self.tessera("diff", f"toy:{name}", f"toy:back-{name}")
            np.testing.assert_array_equal(self.exported(f"toy:back-{name}/deep/a"), VALUES)

    def test_changes(self):
        values = VALUES.copy()
        self.tessera("set", "toy:x", "2:5, 1", "-3")
        values[2:5, 1] = -3
        self.tessera("append", "toy:x", "values.npy", "--quiet")
        values = np.concatenate([values, VALUES])
        self.tessera("edit", "toy:x", "--script", "script", "--quiet")
        edited = values.copy()
        edited[0:2] = 7
        np.testing.assert_array_equal(self.exported("toy:x"), edited)
        self.assertEqual(self.tessera("attrs", "toy:x", "get", "reviewed").strip(), "true")
        self.tessera("undo", "toy:x")
        np.testing.assert_array_equal(self.exported("toy:x"), values)
        self.tessera("resize", "toy:x", "3,7")
        np.testing.assert_array_equal(self.exported("toy:x"), values[:3])
        self.tessera("rechunk", "toy:x", "toy:x", "--chunks", "2,2", "--overwrite", "--quiet")
        self.assertEqual(self.tessera_json("info", "toy:x")["chunks"], [2, 2])
        np.testing.assert_array_equal(self.exported("toy:x"), values[:3])

    def test_what_is_damaged_is_found_and_mended(self):
        (self.toys / "x!c!0!0").write_bytes(b"torn")
        self.assertIn("c/0/0", self.tessera("verify", "toy:x", code=1))
        self.assertIn("not restored: 12 elements", self.tessera("repair", "toy:x", code=1))
        self.tessera("verify", "toy:x")
        self.assertTrue((self.toys / "x!.tessera!damaged!c!0!0").exists())
        self.assertEqual(self.tessera("get", "toy:x", "0, 0").strip(), "0")
        self.assertEqual(self.tessera("get", "toy:x", "9, 6").strip(), "69")

    def test_a_seal_holds_and_its_parity_restores(self):
        self.tessera("seal", "toy:x", "--parity", "1", "--quiet")
        sealed = contents(self.toys)
        for words in (["set", "toy:x", "0, 0", "1"], ["create", "toy:x/a", "--shape", "1", "--dtype", "i4"],
                      ["attrs", "toy:x", "set", "a", "1"], ["create", "toy:x", "--shape", "1", "--dtype", "i4",
                                                            "--overwrite"]):
            self.refused(*words, says=["is sealed", "--break-seal"])
        self.assertEqual(contents(self.toys), sealed)
        (self.toys / "x!c!0!0").unlink()
        self.tessera("verify", "toy:x", code=1)
        self.tessera("repair", "toy:x")
        self.assertEqual(contents(self.toys), sealed)
        self.tessera("set", "toy:x", "0, 0", "1", "--break-seal")
        self.assertIn("seal was broken", self.tessera("verify", "toy:x", code=1))

    def test_an_interrupted_copy_is_explained_resumed_and_removed(self):
        (self.toys / "y!.tessera!unfinished.json").write_text('{"format": "v3", "made_from": "?", "metadata": {}}')
        self.assertIn("unfinished", self.tessera("info", "toy:y", code=1))
        self.refused("get", "toy:y", says="an unfinished copy")
        self.refused("copy", "toy:x", "toy:y", says="an unfinished copy is there")
        self.refused("copy", "toy:x", "toy:y", "--resume", says="another one")
        self.tessera("copy", "toy:x", "toy:y", "--overwrite", "--quiet")
        self.tessera("diff", "toy:x", "toy:y")
        (self.toys / "z!.tessera!unfinished.json").write_text('{"format": "v3", "made_from": "?", "metadata": {}}')
        self.tessera("rm", "toy:z")
        self.assertEqual([p.name for p in self.toys.glob("z*")], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
