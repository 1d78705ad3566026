"""Seals with parity where things stand in each other's way: seals inside seals, links and directories in the places of
a seal's files."""

import shutil

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
    def sealed(self):
        self.save("grid.npy", GRID)
        self.tessera("copy", "grid.npy", "a", "--format", "v2", "--chunks", "20,20", "--quiet")
        self.tessera("seal", "a", "--parity", "20%", "--quiet")
        return self.folder / "a/.tessera"

    def test_damage_that_shows_once_a_link_is_removed_counts(self):
        own = self.sealed()
        shutil.rmtree(own / "parity")
        (own / "parity").symlink_to("nowhere")
        (self.folder / "a/0.0").unlink()
        report = self.tessera_json("repair", "a", code=1)
        self.assertEqual([a["key"] for a in report["actions"]], [".tessera/parity"])
        self.assertEqual([(f["kind"], f["key"]) for f in report["remaining"]], [("lost", "0.0")])
        self.assertFalse((own / "parity").is_symlink())

    def test_other_links_are_removed_and_files_restored_in_one_run(self):
        own = self.sealed()
        whole = (self.folder / "a/0.0").read_bytes()
        (self.folder / "a/0.0").unlink()
        (own / "damaged").symlink_to("nowhere")
        report = self.tessera_json("repair", "a")
        self.assertEqual(sorted(a["key"] for a in report["actions"]), [".tessera/damaged", "0.0"])
        self.assertEqual((self.folder / "a/0.0").read_bytes(), whole)
        self.tessera("verify", "a", "--quiet")


if __name__ == "__main__":
    main()
