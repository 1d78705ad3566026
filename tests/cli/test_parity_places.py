"""Seals with parity where things stand in each other's way: seals inside seals, links and directories in the places of
a seal's files."""

import os
import shutil
import subprocess

import numpy as np

from program import ProgramTest, main

GRID = np.random.default_rng(7).integers(0, 1 << 24, (100, 100)).astype("<i4")


class SealsInSeals(ProgramTest):
    def setUp(self):
        super().setUp()
        self.tessera("group", "g", "--format", "v2", "--quiet")
        self.tessera("group", "g/inner", "--quiet")
        self.save("grid.npy", GRID)
        self.tessera("copy", "grid.npy", "g/inner/a", "--format", "v2", "--chunks", "20,20", "--quiet")
        self.chunk = self.folder / "g/inner/a/0.0"
        self.whole = self.chunk.read_bytes()

    def seal(self, *names, parity="20%"):
        for name in names:
            self.tessera("seal", name, "--parity", parity, "--quiet")

    def assert_whole(self):
        self.assertEqual(self.chunk.read_bytes(), self.whole)
        self.assertEqual(list(self.folder.rglob("damaged")), [])
        self.tessera("verify", "g", "--quiet")

    def test_a_missing_file_is_restored_once(self):
        self.seal("g/inner/a", "g/inner", "g")
        self.chunk.unlink()
        report = self.tessera_json("repair", "g", "--dry-run")
        self.assertEqual([a["key"] for a in report["actions"]], ["inner/a/0.0"])
        report = self.tessera_json("repair", "g")
        self.assertEqual([(a["key"], a["done"]) for a in report["actions"]], [("inner/a/0.0", True)])
        self.assertNotIn("damaged file", report["actions"][0]["outcome"])
        self.assert_whole()

    def test_what_the_outer_seal_cannot_restore_the_inner_one_does(self):
        self.seal("g/inner", parity="60%")
        self.seal("g", parity="1%")
        for i in range(10):
            (self.folder / f"g/inner/a/{i // 5}.{i % 5}").unlink()
        report = self.tessera_json("repair", "g")
        self.assertEqual({a["done"] for a in report["actions"]}, {True}, report)
        self.assertEqual(report["remaining"], [])
        self.assert_whole()

    def test_a_file_about_which_seals_disagree_is_restored_once(self):
        self.seal("g")
        shutil.copyfile(self.folder / "g/inner/a/0.1", self.chunk)
        self.seal("g/inner")
        self.chunk.unlink()
        for words in [], ["--to-seal"]:
            report = self.tessera_json("repair", "g", *words, code=1)
            self.assertLessEqual(len([a for a in report["actions"] if a["key"] == "inner/a/0.0" and a["done"]]), 1)
            self.assertTrue(report["remaining"], "one of the seals says otherwise")

    def test_parity_of_both_is_made_anew(self):
        self.seal("g/inner", "g")
        for seal in "g/inner", "g":
            for root in (self.folder / seal / ".tessera/parity").glob("root.1"):
                root.unlink()
        self.chunk.unlink()
        report = self.tessera_json("repair", "g", "--dry-run")
        self.assertEqual(len(report["actions"]), 3, report)
        report = self.tessera_json("repair", "g")
        self.assertEqual(len(report["actions"]), 3, report)
        self.assert_whole()


class ForeignThings(ProgramTest):
    def sealed(self, *words):
        self.save("grid.npy", GRID)
        self.tessera("copy", "grid.npy", "a", "--format", "v2", "--chunks", "20,20", "--quiet")
        self.tessera("seal", "a", "--quiet", *words)
        return self.folder / "a/.tessera"

    def test_damage_that_shows_once_a_link_is_removed_counts(self):
        own = self.sealed("--parity", "20%")
        shutil.rmtree(own / "parity")
        (own / "parity").symlink_to("nowhere")
        (self.folder / "a/0.0").unlink()
        report = self.tessera_json("repair", "a", code=1)
        self.assertEqual([a["key"] for a in report["actions"]], [".tessera/parity"])
        self.assertEqual([(f["kind"], f["key"]) for f in report["remaining"]], [("lost", "0.0")])
        self.assertFalse((own / "parity").is_symlink())

    def test_other_links_are_removed_and_files_restored_in_one_run(self):
        own = self.sealed("--parity", "20%")
        whole = (self.folder / "a/0.0").read_bytes()
        (self.folder / "a/0.0").unlink()
        (own / "damaged").symlink_to("nowhere")
        report = self.tessera_json("repair", "a")
        self.assertEqual(sorted(a["key"] for a in report["actions"]), [".tessera/damaged", "0.0"])
        self.assertEqual((self.folder / "a/0.0").read_bytes(), whole)
        self.tessera("verify", "a", "--quiet")

    def fill(self, place):
        """A directory with something of a person's instead of a file; returns what was in the file."""
        whole = place.read_bytes()
        place.unlink()
        place.mkdir()
        (place / "notes").write_text("mine")
        return whole

    def test_directories_in_the_places_of_a_seals_files_are_set_aside(self):
        own = self.sealed("--parity", "20%")
        segment = sorted((own / "parity").glob("*.000"))[0]
        for name in f"parity/{segment.name}", "parity/root.0", "parity/root.2", "sha256sums.txt":
            for number, command in enumerate(["repair", "seal", "repair"]):
                with self.subTest(name=name, command=command):
                    whole = self.fill(own / name)
                    self.assertEqual(self.tessera_json("verify", "a", code=1)["findings"][0]["kind"], "damage")
                    self.tessera("repair", "a", "--dry-run")
                    self.assertTrue((own / name).is_dir())
                    out = self.tessera(command, "a")
                    aside = own / f"damaged/.tessera/{name}{f'.{number}' if number else ''}"
                    if command == "repair":
                        self.assertIn(str(aside.relative_to(self.folder / "a")), out)
                        self.assertEqual((own / name).read_bytes(), whole)
                    self.assertTrue((own / name).is_file())
                    self.assertEqual((aside / "notes").read_text(), "mine")
                    self.tessera("verify", "a", "--quiet")

    def test_a_directory_in_the_place_of_a_list_without_parity(self):
        own = self.sealed()
        whole = self.fill(own / "sha256sums.txt")
        self.assertIn("a directory in the place of", self.tessera("verify", "a", code=1))
        self.tessera("repair", "a", code=1)
        self.tessera("seal", "a", "--quiet")
        self.assertEqual((own / "sha256sums.txt").read_bytes(), whole)
        self.assertEqual((own / "damaged/.tessera/sha256sums.txt/notes").read_text(), "mine")
        self.tessera("verify", "a", "--quiet")

    def test_a_directory_in_the_place_of_a_files_parity(self):
        self.save("grid.npy", GRID)
        self.tessera("seal", "grid.npy", "--parity", "20%", "--quiet")
        own = self.folder / "grid.npy.tessera-seal"
        whole = self.fill(own / "parity/root.0")
        self.assertIn("tessera-seal/damaged/.tessera/parity/root.0", self.tessera("repair", "grid.npy"))
        self.assertEqual((own / "parity/root.0").read_bytes(), whole)
        self.assertEqual((own / "damaged/.tessera/parity/root.0/notes").read_text(), "mine")
        self.tessera("verify", "grid.npy", "--quiet")

    def test_what_has_the_place_of_a_seal_beside_a_file_is_damage(self):
        self.save("grid.npy", GRID)
        self.tessera("copy", "grid.npy", "a.zip", "--format", "v2", "--chunks", "20,20", "--codec", "none", "--quiet")
        for name in "grid.npy", "a.zip":
            self.tessera("seal", name, "--quiet")
            self.tessera("verify", name, "--quiet")
            seal = self.folder / f"{name}.tessera-seal"
            (self.folder / "elsewhere").mkdir()
            shutil.copyfile(seal / "sha256sums.txt", self.folder / "elsewhere/sha256sums.txt")
            whole = (seal / "sha256sums.txt").read_bytes()
            for place in seal, seal / "sha256sums.txt":
                elsewhere = self.folder / "elsewhere" / place.name if place != seal else self.folder / "elsewhere"
                for make in (os.mkfifo, lambda path: path.symlink_to("nowhere"), lambda path: path.symlink_to(elsewhere),
                             os.mkdir):
                    if make == os.mkdir and place == seal:
                        continue  # this is a seal's folder
                    with self.subTest(name=name, place=place.name):
                        subprocess.run(["rm", "-rf", seal], check=True)
                        if place != seal:
                            seal.mkdir()
                        make(place)
                        report = self.tessera_json("verify", name, code=1)
                        self.assertEqual([(f["kind"], f["key"]) for f in report["findings"]],
                                         [("damage", str(place.relative_to(self.folder)))])
                        self.assertEqual((report["seals"], report["files_as_sealed"]), (0, 0))
                        self.assertIn(self.run_program("repair", name).returncode, (1, 2))
                        self.assertTrue(os.path.lexists(place))
                        subprocess.run(["rm", "-rf", place], check=True)
                        seal.mkdir(exist_ok=True)
                        (seal / "sha256sums.txt").write_bytes(whole)
                        self.tessera("verify", name, "--quiet")
            shutil.rmtree(self.folder / "elsewhere")

    def test_what_is_not_of_the_seal_stays_when_parity_goes(self):
        own = self.sealed("--parity", "20%")
        (own / "parity/mine").mkdir()
        (own / "parity/mine/notes").write_text("mine")
        (own / "parity/notes.of.mine.too.txt").write_text("mine too")
        self.tessera("seal", "a", "--parity", "30%", "--quiet")
        self.tessera("seal", "a", "--parity", "0", "--quiet")
        self.assertEqual(sorted(p.name for p in (own / "parity").rglob("*")), ["mine", "notes", "notes.of.mine.too.txt"])
        self.tessera("seal", "a", "--parity", "20%", "--quiet")
        self.tessera("verify", "a", "--quiet")
        shutil.rmtree(own / "parity/mine")
        (own / "parity/notes.of.mine.too.txt").unlink()
        self.tessera("seal", "a", "--parity", "0", "--quiet")
        self.assertFalse((own / "parity").exists())


class LeftOut(ProgramTest):
    def test_the_seal_says_how_many_chunks_lie_outside(self):
        self.tessera("create", "a", "--shape", "4", "--dtype", "<i4", "--format", "v2", "--quiet")
        self.tessera("set", "a", "...", "5", "--quiet")
        self.assertEqual(self.tessera_json("seal", "a", "--unchecked")["outside"], 0)
        for number in 1, 2:
            shutil.copyfile(self.folder / "a/0", self.folder / f"a/{number}")
        self.assertEqual(self.tessera_json("seal", "a", "--unchecked")["outside"], 2)
        for words in ["--parity", "20%"], ["--bagit", "bag"], ["--overwrite"]:
            said = self.run_program("seal", "a", "--unchecked", *words).stdout
            self.assertIn("without 2 chunk files outside of their arrays", said)
        (self.folder / "a/2").unlink()
        self.assertIn("without 1 chunk file outside of its array)", self.run_program("seal", "a", "--unchecked").stdout)


if __name__ == "__main__":
    main()
