"""Seals with parity as a person uses them: sha256sum and an independent decoder check what repair restores."""

import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import zlib

import numpy as np

from program import EXAMPLES, ProgramTest, main

SURVEY = np.random.default_rng(5).integers(0, 1 << 24, (300, 400)).astype("<i4")


class ParityTest(ProgramTest):
    def make(self, name="a.zarr", *words, parity="5%"):
        self.save("survey.npy", SURVEY)
        self.tessera("copy", "survey.npy", name, "--chunks", "50,50", "--quiet", *words)
        self.tessera("seal", name, "--parity", parity, "--quiet")
        root = self.folder / name
        self.sealed = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*")
                       if p.is_file() and ".tessera" not in p.parts}
        return root

    def damage(self, path, at=100, length=1, keep_time=True):
        before = path.stat()
        data = bytearray(path.read_bytes())
        for i in range(at, at + length):
            data[i] ^= 0xFF
        path.write_bytes(data)
        if keep_time:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        return bytes(data)

    def edit_elsewhere(self, root, key, selection):
        """Another program's edit: it knows nothing of seals."""
        other = self.folder / "elsewhere"
        shutil.copytree(root, other, ignore=shutil.ignore_patterns(".tessera"))
        self.tessera("set", other, selection, "7", "--quiet")
        shutil.copyfile(other / key, root / key)
        shutil.rmtree(other)

    def assert_as_sealed(self, root):
        subprocess.run(["sha256sum", "-c", "--quiet", ".tessera/sha256sums.txt"], cwd=root, check=True)
        for path, data in self.sealed.items():
            self.assertEqual((root / path).read_bytes(), data, path)

    def texts(self, report, list_name="actions"):
        return {entry["key"]: entry.get("outcome", entry["text"]) for entry in report[list_name]}


class Parity(ParityTest):
    def test_a_share_of_few_large_files_says_that_it_restores_none_of_them(self):
        self.save("survey.npy", np.random.default_rng(1).integers(0, 1 << 30, (400, 500)))
        self.tessera("copy", "survey.npy", "few.zarr", "--chunks", "200,500", "--quiet")
        for parity, notes in (("5%", True), ("1", False)):
            done = self.run_program("seal", "few.zarr", "--parity", parity, "--overwrite")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("no file that is lost as a whole" in done.stderr and "--parity 1" in done.stderr, notes,
                             done.stderr)

    def test_lost_and_damaged_files_return_bit_for_bit(self):
        for format, chunk, metadata in (("zmeta", "__zdata__/0.0.blosc", "__zmeta__"), ("v1", "0.0", "meta"),
                                        ("v2", "0.0", ".zarray"), ("v3", "c/0/0", "zarr.json")):
            with self.subTest(format):
                root = self.make(f"{format}.zarr", "--format", format)
                (root / metadata).unlink()
                (root / chunk).unlink()
                self.tessera("verify", root, code=1)
                planned = self.tessera_json("repair", root, "--dry-run", code=0)
                self.assertEqual(self.texts(planned), {chunk: "would be restored from parity",
                                                       metadata: "would be restored from parity"})
                self.assertFalse((root / chunk).exists())
                self.assertEqual(self.texts(self.tessera_json("repair", root)),
                                 {chunk: "restored from parity", metadata: "restored from parity"})
                self.assert_as_sealed(root)
                np.testing.assert_array_equal(self.exported(root), SURVEY)
                self.assertTrue(self.tessera_json("verify", root)["sound"])

    def test_the_damaged_file_is_kept_and_the_restored_one_has_its_time_and_mode(self):
        root = self.make()
        chunk = root / "__zdata__" / "1.1.blosc"
        chunk.chmod(0o640)
        self.tessera("seal", root, "--overwrite", "--quiet")  # with parity still, as it was asked for
        sealed = chunk.stat()
        damaged = self.damage(chunk, 500, 2000)
        self.tessera("repair", root)
        self.assert_as_sealed(root)
        restored = chunk.stat()
        self.assertEqual((restored.st_mtime_ns, restored.st_mode), (sealed.st_mtime_ns, sealed.st_mode))
        self.assertEqual((root / ".tessera/damaged/__zdata__/1.1.blosc").read_bytes(), damaged)

    def test_a_snapshot_that_shares_the_damaged_file_is_mended(self):
        root = self.make()
        chunk = root / "__zdata__" / "2.2.blosc"
        self.tessera("snapshot", root, "create", "monday", "--quiet")
        shared = self.folder / "a.zarr.snapshots" / "monday" / "__zdata__" / "2.2.blosc"
        if not chunk.samefile(shared):
            self.skipTest("snapshots share no inodes on this file system")
        right = chunk.read_bytes()
        wrong = self.damage(chunk)
        self.assertEqual(shared.read_bytes(), wrong)
        self.assertIn("snapshot monday", self.tessera("repair", root))
        self.assertEqual(shared.read_bytes(), right)
        self.assertTrue(chunk.samefile(shared))
        self.tessera("verify", self.folder / "a.zarr.snapshots" / "monday", "--quiet")
        self.assert_as_sealed(root)

    def test_a_snapshot_of_an_edit_keeps_it(self):
        root = self.make()
        chunk = root / "__zdata__" / "2.2.blosc"
        self.tessera("set", root, "120,120", "7", "--break-seal", "--quiet")
        self.tessera("snapshot", root, "create", "tuesday", "--quiet")
        edit = chunk.read_bytes()
        self.tessera("repair", root, "--to-seal", "__zdata__/2.2.blosc", "--quiet")
        self.assert_as_sealed(root)
        shared = self.folder / "a.zarr.snapshots" / "tuesday" / "__zdata__" / "2.2.blosc"
        self.assertEqual(shared.read_bytes(), edit)

    def test_repair_leaves_what_is_sealed_without_parity(self):
        group = self.folder / "g.zarr"
        self.tessera("group", group, "--format", "v2", "--quiet")
        self.tessera("create", group / "a", "--shape", "4", "--dtype", "i4", "--format", "v2", "--quiet")
        self.tessera("consolidate", group, "--quiet")
        self.tessera("create", group / "b", "--shape", "4", "--dtype", "i4", "--format", "v2", "--quiet")
        self.tessera("seal", group, "--quiet")
        before = (group / ".zmetadata").read_bytes()
        self.assertIn("it is sealed", self.tessera("repair", group))
        self.assertEqual((group / ".zmetadata").read_bytes(), before)
        self.tessera("repair", group, "--break-seal", "--quiet")
        self.assertNotEqual((group / ".zmetadata").read_bytes(), before)

    def test_an_edit_stays_until_it_is_named(self):
        root = self.make()
        self.edit_elsewhere(root, "__zdata__/0.0.blosc", "0, 0")
        edited = (root / "__zdata__/0.0.blosc").read_bytes()
        self.assertNotEqual(edited, self.sealed["__zdata__/0.0.blosc"])
        self.damage(root / "__zdata__/3.3.blosc")
        report = self.tessera_json("repair", root, code=1)
        self.assertEqual(list(self.texts(report)), ["__zdata__/3.3.blosc"])
        self.assertEqual([(f["kind"], f["key"]) for f in report["remaining"]], [("changed", "__zdata__/0.0.blosc")])
        self.assertIn("--to-seal", report["remaining"][0]["text"])
        self.assertEqual((root / "__zdata__/0.0.blosc").read_bytes(), edited)
        self.refused("repair", root, "--to-seal", "__zdata__/5.5.blosc", says="no such file differs")
        self.tessera("repair", root, "--to-seal", "__zdata__/0.0.blosc")
        self.assert_as_sealed(root)
        self.assertEqual((root / ".tessera/damaged/__zdata__/0.0.blosc").read_bytes(), edited)

    def test_after_a_plain_copy_times_prove_nothing(self):
        self.make()
        shutil.copytree(self.folder / "a.zarr", self.folder / "b.zarr", copy_function=shutil.copyfile)
        root = self.folder / "b.zarr"
        self.damage(root / "__zdata__/2.2.blosc", 20)  # in the frame: blosc may decode it to other elements
        self.damage(root / "__zdata__/4.4.blosc", 5000)
        self.tessera("repair", root, code=1)
        self.assertIn("lost the times of the seal", self.tessera("verify", root, code=1))
        self.tessera("repair", root, "--to-seal")
        self.assert_as_sealed(root)

    def test_two_files_may_vanish_and_a_third_is_named(self):
        root = self.make(parity="2")
        chunks = sorted((root / "__zdata__").iterdir())
        chunks[3].unlink()
        chunks[17].unlink()
        self.tessera("repair", root)
        self.assert_as_sealed(root)
        for chunk in chunks:
            chunk.unlink()
        report = self.tessera_json("repair", root, code=1)
        self.assertEqual(report["done"], 0)
        left = self.texts(report, "remaining")
        self.assertLessEqual(set(self.sealed) - {"__zmeta__"}, set(left))
        self.assertIn("more is lost than the parity can give back", left[f"__zdata__/{chunks[0].name}"])

    def test_parity_roots_and_manifest_are_made_anew(self):
        root = self.make()
        before = {p: p.read_bytes() for p in (root / ".tessera").rglob("*") if p.is_file() and p.name not in ("lock", "log", "fixity.jsonl")}
        files = sorted((root / ".tessera/parity").glob("*.0??"))
        files[0].unlink()
        self.damage(files[1], 10, 3)
        for name in ("root.0", "root.1", "root.2"):
            (root / ".tessera/parity" / name).unlink()
        (root / ".tessera/sha256sums.txt").unlink()
        (root / "__zdata__/0.0.blosc").unlink()
        self.tessera("verify", root, code=1)
        self.tessera("repair", root)
        self.assert_as_sealed(root)
        for path in before:
            if "root." not in path.name:
                self.assertEqual(path.read_bytes(), before[path], path)
        self.assertTrue(self.tessera_json("verify", root)["sound"])

    def test_a_killed_sealing_is_no_damage(self):
        """Killed at every name that the last steps give: verify says what to run, and that finishes it."""
        root = self.make()
        folder = root / ".tessera/parity"
        self.tessera("set", root, "0, 0", "5", "--quiet", "--break-seal", "--no-undo")
        before = {p.name: p.read_bytes() for p in folder.iterdir()}
        manifest = root / ".tessera/sha256sums.txt"
        old_manifest = manifest.read_bytes()
        self.tessera("seal", root, "--quiet")
        after = {p.name: p.read_bytes() for p in folder.iterdir()}
        sealed = manifest.read_bytes()
        for step, roots in enumerate((1, 2, 3)):
            for name, data in {**before, **{n: d for n, d in after.items() if not n.startswith("root")},
                               **{f"root.{n}": after[f"root.{n}"] for n in range(roots)}}.items():
                (folder / name).write_bytes(data)
            manifest.write_bytes(old_manifest)
            found = self.tessera("verify", root)
            for text in ("leftover: .tessera/parity: a sealing is at work or was interrupted", "`tessera seal`"):
                self.assertIn(text, found, step)
            self.assertNotIn("damage", found)
            self.tessera("seal", root, "--quiet")
            self.assertEqual(manifest.read_bytes(), sealed)
            self.assertNotIn("interrupted", self.tessera("verify", root))
        # A first sealing: before its first root, and after.
        shutil.rmtree(root / ".tessera")
        self.tessera("seal", root, "--parity", "5%", "--quiet")
        roots = {p: p.read_bytes() for p in folder.glob("root.*")}
        (folder / "unfinished").touch()
        for path in roots:
            path.unlink()
        manifest.unlink()
        self.assertIn("a first sealing with parity is at work or was interrupted", self.tessera("verify", root))
        (folder / "root.0").write_bytes(roots[folder / "root.0"])
        self.assertIn("a sealing is at work or was interrupted", self.tessera("verify", root))
        self.tessera("seal", root, "--quiet")
        self.assertEqual(manifest.read_bytes(), sealed)
        self.assertFalse((folder / "unfinished").exists())

    def test_what_can_be_lost_is_said(self):
        root = self.make()
        notes = [f["text"] for f in self.tessera_json("verify", root)["findings"]]
        self.assertEqual(len(notes), 1)
        self.assertRegex(notes[0], r"^parity of 5%, all of it as it was written: enough to restore any "
                                   r"\d+ bytes in a row, or any [1-9]\d* files?$")
        run = int(notes[0].split(" bytes in a row")[0].rsplit(" ", 1)[1])
        self.assertGreaterEqual(run, 0.04 * sum(map(len, self.sealed.values())))
        parity = self.tessera_json("info", root)["parity"]
        self.assertEqual((parity["asked"], parity["blocks"], parity["run_bytes"]), ("5%", 5, run))
        self.assertRegex(self.tessera("info", root), r"parity +5%: enough to restore any [\d,]+ bytes in a row, or any \d+ files?\n +any 5 blocks of 512 bytes")
        next((root / ".tessera/parity").glob("*.001")).unlink()
        self.assertEqual(self.tessera_json("info", root)["parity"]["blocks"], 4)

    def test_a_run_of_the_promised_length_can_be_lost_anywhere(self):
        root = self.make()
        run = self.tessera_json("info", root)["parity"]["run_bytes"]
        total = sum(map(len, self.sealed.values()))
        for begin in np.random.default_rng(2).integers(0, total - run, 5):
            at = 0
            for path in sorted(self.sealed):
                first, last = max(begin - at, 0), min(begin + run - at, len(self.sealed[path]))
                at += len(self.sealed[path])
                if first < last:
                    self.damage(root / path, int(first), int(last - first))
            self.tessera("repair", root, "--quiet")
            self.assert_as_sealed(root)

    def test_a_share_survives_four_fifths_of_it_in_a_row_whatever_the_sizes(self):
        rng, root = np.random.default_rng(3), self.folder / "d.zarr"
        self.tessera("create", "d.zarr", "--shape", "300", "--chunks", "1", "--dtype", "u1", "--format", "v2", "--quiet")
        sizes = rng.integers(20_000, 60_000, 300)
        for name, size in enumerate(sizes):
            (root / f"{name:03}").write_bytes(rng.bytes(size))
        self.tessera("seal", root, "--parity", "5%", "--unchecked", "--quiet")
        here = lambda: {p.name: p.read_bytes() for p in root.iterdir() if p.is_file()}
        before, run = here(), 0.04 * sum(map(len, here().values()))
        self.assertGreaterEqual(self.tessera_json("info", root)["parity"]["run_bytes"], run - 1)
        for begin in rng.integers(0, 280, 2):
            for name in range(begin, begin + int(np.searchsorted(np.cumsum(sizes[begin:]), run, "right"))):
                (root / f"{name:03}").unlink()
            self.run_program("repair", root)
            self.assertEqual(here(), before)

    def test_sealing_again_and_dropping(self):
        root = self.make()
        again = self.tessera_json("seal", root, "--parity", "5%")
        self.assertEqual((again["written"], again["parity_bytes"]), (False, 0))
        more = json.loads(self.run_program("seal", root, "--parity", "10%", "--json").stdout)
        self.assertTrue(more["written"])
        self.assertEqual(len(list((root / ".tessera/parity").glob("*.0??"))), 10)
        self.edit_elsewhere(root, "__zdata__/0.0.blosc", "0, 0")
        self.refused("seal", root, says=["--overwrite", "__zdata__/0.0.blosc"])
        self.assertTrue(self.tessera_json("seal", root, "--overwrite")["parity_bytes"] > 0)
        self.assertTrue(self.tessera_json("verify", root)["sound"])
        self.tessera("seal", root, "--parity", "0", "--quiet")
        self.assertFalse((root / ".tessera/parity").exists() and any((root / ".tessera/parity").iterdir()))
        self.assertTrue(self.tessera_json("verify", root)["sound"])
        self.refused("seal", root, "--parity", "none", says="no redundancy")

    def files(self, root):
        return {p.name: p.read_bytes() for p in (root / ".tessera/parity").iterdir()}

    def test_what_is_sealed_is_not_changed_by_mistake(self):
        self.tessera("group", "g.zarr", "--format", "v2", "--quiet")
        for name in ("g.zarr/a", "g.zarr/b"):
            self.make(name, "--format", "v2")
        self.tessera("seal", "g.zarr", "--parity", "5%", "--quiet")
        root = self.folder / "g.zarr"
        before = {p: p.read_bytes() for p in root.rglob("*") if p.is_file() and p.name != "log"}
        (self.folder / "script").write_text("0, 0 = 3\n")
        for words in (["set", "g.zarr/a", "0, 0", "7"], ["append", "g.zarr/a", "survey.npy"],
                      ["resize", "g.zarr/a", "10,10"], ["edit", "g.zarr/a", "--script", "script"],
                      ["attrs", "g.zarr/a", "set", "units", '"m"'], ["attrs", "g.zarr", "set", "title", '"x"'],
                      ["group", "g.zarr/new"], ["rm", "g.zarr/b"], ["mv", "g.zarr/b", "g.zarr/c"],
                      ["rm", "g.zarr", "--recursive"], ["copy", "survey.npy", "g.zarr/d"],
                      ["copy", "survey.npy", "g.zarr/a", "--overwrite"], ["dims", "g.zarr/a", "y,x"],
                      ["calc", "g.zarr/a", "a + 1", "a=survey.npy", "--in-place"]):
            with self.subTest(words):
                self.refused(*words, says=["is sealed", "--break-seal"])
        after = {p: p.read_bytes() for p in root.rglob("*") if p.is_file() and p.name != "log"}
        self.assertEqual([p for p in before.keys() | after.keys() if before.get(p) != after.get(p)], [])
        self.tessera("copy", "g.zarr", "copied.zarr", "--quiet")  # reading is free, and a copy is not sealed
        self.tessera("set", "copied.zarr/a", "0, 0", "7", "--quiet")

    def test_after_a_broken_seal_nothing_returns_but_by_name(self):
        root = self.make()
        self.tessera("set", root, "0, 0", "7", "--break-seal", "--durability", "none", "--quiet")
        self.assertTrue((root / ".tessera/seal-broken").exists())
        self.tessera("set", root, "60, 0", "7", "--quiet")  # it is broken already
        self.damage(root / "__zdata__/3.3.blosc")
        (root / "__zdata__/4.4.blosc").unlink()
        edited = {p: p.read_bytes() for p in (root / "__zdata__").iterdir()}
        kinds = {f["key"]: f["kind"] for f in self.tessera_json("verify", root, code=1)["findings"]}
        self.assertEqual(kinds["__zdata__/4.4.blosc"], "lost")
        self.assertEqual(kinds["__zdata__/0.0.blosc"], "changed")
        self.assertEqual(kinds[".tessera/seal-broken"], "note")
        self.tessera("repair", root, code=1)
        self.assertEqual({p: p.read_bytes() for p in (root / "__zdata__").iterdir()}, edited)
        self.refused("repair", root, "--to-seal", says=["broken on purpose", "named"])
        self.tessera("repair", root, "--to-seal", "__zdata__/3.3.blosc", "__zdata__/4.4.blosc", code=1)
        for name in ("__zdata__/3.3.blosc", "__zdata__/4.4.blosc"):
            self.assertEqual((root / name).read_bytes(), self.sealed[name])
        self.tessera("seal", root, "--quiet")
        self.assertFalse((root / ".tessera/seal-broken").exists())
        self.assertEqual(self.tessera("get", root, "0, 0").strip(), "7")
        self.refused("set", root, "0, 0", "8", says="is sealed")
        self.tessera("verify", root)

    def test_what_undo_puts_back_is_sealed(self):
        self.save("survey.npy", SURVEY)
        self.tessera("copy", "survey.npy", "a.zarr", "--chunks", "50,50", "--quiet")
        root = self.folder / "a.zarr"
        long_ago = 1_600_000_000_123_456_789  # what undo keeps was written long before the array is sealed
        for path in root.rglob("*"):
            if path.is_file() and path.name != "lock":
                os.utime(path, ns=(long_ago, long_ago))
        (self.folder / "script").write_text("set '0:60, :' 7\n")
        self.tessera("edit", root, "--script", "script", "--quiet")
        self.tessera("seal", root, "--parity", "5%", "--quiet")
        self.tessera("undo", root, "--break-seal", "--quiet")
        self.tessera("seal", root, "--quiet")
        self.tessera("verify", root, "--quiet")
        self.assertTrue(np.array_equal(self.exported(root), SURVEY))

    def test_parity_outlives_a_restored_snapshot(self):
        self.save("survey.npy", SURVEY)
        self.tessera("copy", "survey.npy", "a.zarr", "--chunks", "50,50", "--quiet")
        root = self.folder / "a.zarr"
        self.tessera("snapshot", root, "create", "monday", "--quiet")
        self.tessera("set", root, "0:60, :", "7", "--quiet")
        self.tessera("seal", root, "--parity", "5%", "--quiet")
        self.tessera("snapshot", root, "restore", "monday", "--break-seal", "--quiet")
        self.assertIn("broken on purpose", self.tessera("verify", root, code=1))
        self.tessera("seal", root, "--quiet")
        right = (root / "__zdata__/3.3.blosc").read_bytes()
        (root / "__zdata__/3.3.blosc").unlink()
        self.tessera("repair", root, "--quiet")
        self.assertEqual((root / "__zdata__/3.3.blosc").read_bytes(), right)
        self.assertTrue(np.array_equal(self.exported(root), SURVEY))

    def test_sealing_again_blesses_no_damage(self):
        root = self.make()
        damaged = root / "__zdata__/3.3.blosc"
        self.damage(damaged, 5000)
        # By its size and time it is as sealed, and is not read.
        self.assertFalse(self.tessera_json("seal", root)["written"])
        self.refused("seal", root, "--check", "--unchecked", says=["damaged", "__zdata__/3.3.blosc", "--accept"])
        self.refused("seal", root, "--check", "--unchecked", "--overwrite", says="__zdata__/3.3.blosc")
        # Its segment is made anew because of another file.
        self.tessera("set", root, "0, 0", "7", "--break-seal", "--quiet")
        for lost in ([], ["root.0"], ["root.1", "root.2"]):  # what can still restore it stays
            for name in lost:
                (root / ".tessera/parity" / name).unlink()
            parity = self.files(root)
            for words in ([], ["--overwrite"]):
                self.refused("seal", root, "--unchecked", *words, says=["damaged", "__zdata__/3.3.blosc"])
                self.assertEqual(self.files(root), parity)
        self.refused("seal", root, "--accept", "__zdata__/9.9.blosc", says="no file of that name")
        lost = root / "__zdata__/4.4.blosc"
        kept = lost.read_bytes()
        lost.unlink()
        self.refused("seal", root, "--unchecked", "--accept", "__zdata__/3.3.blosc", says="__zdata__/4.4.blosc")
        lost.write_bytes(kept)
        self.tessera("repair", root, "--to-seal", "__zdata__/3.3.blosc", code=1)
        self.tessera("seal", root, "--quiet")
        self.assertEqual(damaged.read_bytes(), self.sealed["__zdata__/3.3.blosc"])
        self.damage(damaged, 5000)
        self.tessera("seal", root, "--unchecked", "--accept", "__zdata__/3.3.blosc", "--quiet")
        subprocess.run(["sha256sum", "-c", "--quiet", ".tessera/sha256sums.txt"], cwd=root, check=True)

    def test_sealing_again_keeps_what_did_not_change(self):
        data = np.random.default_rng(4).integers(0, 1 << 30, (64, 1 << 17)).astype("<i4")
        self.save("survey.npy", data)
        self.tessera("copy", "survey.npy", "s.zarr", "--format", "v2", "--codec", "none", "--chunks", "1,131072", "--quiet")
        root = self.folder / "s.zarr"
        self.tessera("seal", root, "--parity", "5%", "--max-memory", "2M", "--quiet")  # several segments
        before = self.files(root)
        segments = {name[:16] for name in before if not name.startswith("root")}
        self.assertGreater(len(segments), 2)
        self.save("more.npy", data[:2])
        self.tessera("append", root, "more.npy", "--break-seal", "--quiet")
        # What is not read does not need to be readable.
        report = self.tessera_json("seal", root, "--max-memory", "2M")
        self.assertTrue(report["written"])
        after = self.files(root)
        kept = segments & {name[:16] for name in after}
        self.assertGreaterEqual(len(kept), len(segments) - 2)  # of the metadata, and one beside
        for name in before:
            if name[:16] in kept:
                self.assertEqual(after[name], before[name])
        self.assertLess(report["parity_bytes"], sum(map(len, before.values())))
        subprocess.run(["sha256sum", "-c", "--quiet", ".tessera/sha256sums.txt"], cwd=root, check=True)
        sealed = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*")
                  if p.is_file() and ".tessera" not in p.parts}
        for name in ("3.0", "40.0", "65.0"):
            self.damage(root / name, 1000, 100_000)
        self.tessera("repair", root, "--quiet")
        self.assertEqual({str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*")
                          if p.is_file() and ".tessera" not in p.parts}, sealed)
        self.tessera("verify", root)

    def test_zips_and_array_files_have_their_seal_beside_them(self):
        self.save("survey.npy", SURVEY)
        for name, words in (("s.npy", ["export", "survey.npy"]), ("s.ra", ["export", "survey.npy"]),
                            ("s.zarr.zip", ["copy", "survey.npy"])):
            with self.subTest(name):
                self.tessera(*words, name, "--quiet")
                file, beside = self.folder / name, self.folder / (name + ".tessera-seal")
                self.assertIn(f"{name}.tessera-seal", self.run_program("seal", name, "--parity", "5%").stdout)
                self.assertIn("sealed already", self.tessera("seal", name))
                subprocess.run(["sha256sum", "-c", "--quiet", beside / "sha256sums.txt"], cwd=self.folder, check=True)
                sealed = file.read_bytes()
                self.assertIn("5%", self.tessera("info", name))
                self.refused(*words, name, "--overwrite", says=["is sealed", "--break-seal"])
                self.tessera("rm", name, code=2)
                self.damage(file, len(sealed) // 2, 2000)
                self.tessera("verify", name, code=1)
                self.tessera("repair", name, "--dry-run", "--quiet")
                self.assertNotEqual(file.read_bytes(), sealed)
                self.tessera("repair", name)
                self.assertEqual(file.read_bytes(), sealed)
                self.tessera("verify", name)
                os.truncate(file, len(sealed) - 300)  # at another time; but no edit leaves what cannot be read
                self.tessera("repair", name)
                self.assertEqual(file.read_bytes(), sealed)
                file.unlink()
                self.assertIn("missing", self.tessera("verify", name, code=1))

    def test_a_bag_with_parity(self):
        self.save("survey.npy", SURVEY)
        self.tessera("copy", "survey.npy", "a.zarr", "--chunks", "50,50", "--quiet")
        self.tessera("seal", "a.zarr", "--bagit", "bag", "--parity", "10%", "--quiet")
        bag = self.folder / "bag"

        def check_manifests():
            for manifest in ("manifest-sha256.txt", "tagmanifest-sha256.txt"):
                subprocess.run(["sha256sum", "-c", "--quiet", manifest], cwd=bag, check=True)

        check_manifests()
        listed = {line.split("  ")[1] for line in (bag / "tagmanifest-sha256.txt").read_text().splitlines()}
        self.assertEqual(listed | {"tagmanifest-sha256.txt", "tagmanifest-sha512.txt"},
                         {str(p.relative_to(bag)) for p in bag.rglob("*") if p.is_file() and "data" not in p.parts})
        before = {p: p.read_bytes() for p in bag.rglob("*") if p.is_file()}
        self.tessera("verify", "bag")
        self.assertIn("parity", self.tessera("info", "bag"))
        self.damage(bag / "data/a.zarr/__zdata__/1.1.blosc", 50, 700)
        (bag / "data/a.zarr/__zdata__/2.2.blosc").unlink()
        (bag / "manifest-sha256.txt").unlink()
        next((bag / "tessera-seal/parity").glob("*.001")).unlink()
        self.tessera("verify", "bag", code=1)
        self.tessera("repair", "bag")
        shutil.rmtree(bag / "tessera-seal/damaged")
        self.assertEqual({p: p.read_bytes() for p in bag.rglob("*") if p.is_file()}, before)
        check_manifests()
        self.tessera("verify", "bag")

    def test_a_file_of_many_extents(self):
        data = np.random.default_rng(3).integers(0, 1 << 30, (7, 1 << 20)).astype("<i4")
        self.save("survey.npy", data)
        self.tessera("copy", "survey.npy", "big.zarr", "--format", "v2", "--codec", "none", "--chunks", "7,1048576",
                     "--quiet")
        root = self.folder / "big.zarr"
        self.tessera("seal", root, "--parity", "5%", "--unchecked", "--max-memory", "4M", "--quiet")
        self.assertGreater(len({p.name[:16] for p in (root / ".tessera/parity").glob("*.0??")}), 1)
        whole = (root / "0.0").read_bytes()
        self.damage(root / "0.0", 5_000_000, 600_000)
        self.damage(root / "0.0", 20_000_000, 300_000)
        self.tessera("repair", root, "--quiet")
        self.assertEqual((root / "0.0").read_bytes(), whole)


class Decoder(ParityTest):
    def decode(self, root, code=0):
        result = subprocess.run([sys.executable, "-B", EXAMPLES / "parity_decoder.py", root], capture_output=True, text=True)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout

    def test_it_restores_without_tessera(self):
        for words in (["--format", "zmeta"], ["--format", "v2"], ["--format", "v3", "--shard", "100,100"]):
            with self.subTest(words):
                root = self.make("d.zarr", *words, parity="20%")
                names = sorted(self.sealed)
                (root / names[0]).unlink()
                self.damage(root / names[1], 1000, 500)
                os.truncate(root / names[2], 10)
                next((root / ".tessera/parity").glob("*.000")).unlink()
                (root / ".tessera/parity/root.0").unlink()
                self.assertEqual(self.decode(root).count("restored: "), 3)
                self.assert_as_sealed(root)
                shutil.rmtree(root)

    def test_names_of_any_bytes_return(self):
        root = self.make("d.zarr", parity="3")
        names = [b"not utf-8 \xff\xfe", b"two\nlines", b"n" * 255]
        for name in names:
            with open(os.path.join(os.fsencode(root), name), "wb") as file:
                file.write(name)
        self.tessera("seal", root, "--parity", "3", "--overwrite", "--quiet")
        for name in names:
            os.unlink(os.path.join(os.fsencode(root), name))
        self.assertIn("\nrestored: not utf-8 ", self.decode(root))
        for name in names:
            with open(os.path.join(os.fsencode(root), name), "rb") as file:
                self.assertEqual(file.read(), name)

    def test_the_documented_bytes_of_the_root(self):
        root = self.make()
        data = (root / ".tessera/parity/root.0").read_bytes()
        magic, major, minor, header, size, segments, kind, amount, _, files, total = struct.unpack_from("<8sHHIQIIIIQQ", data)
        self.assertEqual((magic, major, minor, header, size), (b"\x89TSR\r\n\x1a\n", 1, 0, 128, len(data)))
        self.assertEqual((segments, kind, amount), (1, 1, 50_000))
        self.assertEqual((files, total), (len(self.sealed), sum(map(len, self.sealed.values()))))
        self.assertEqual(data[64:96], hashlib.sha256((root / ".tessera/sha256sums.txt").read_bytes()).digest())
        self.assertEqual(data[-32:], hashlib.sha256(data[:-32]).digest())


class Hostile(ParityTest):
    """Indices that somebody made up: their SHA-256 is right, what they say is not."""

    def forge(self, root, change):
        """Rewrites the index in every parity file, and names it in every root."""
        folder = root / ".tessera/parity"
        files = sorted(folder.glob("*.0??"))
        old = files[0].read_bytes()
        size = struct.unpack_from("<Q", old, 16)[0]
        index = bytearray(old[:size - 32])
        change(index)
        digest = hashlib.sha256(index).digest()
        for file in files:
            data = file.read_bytes()
            file.unlink()
            (folder / (digest.hex()[:16] + file.suffix)).write_bytes(bytes(index) + digest + data[size:])
        for i in range(3):
            data = bytearray((folder / f"root.{i}").read_bytes()[:-32])
            data[128:160] = digest
            (folder / f"root.{i}").write_bytes(bytes(data) + hashlib.sha256(data).digest())

    def name_at(self, index):
        files, pieces, groups, rows = (struct.unpack_from("<I", index, at)[0] for at in (44, 48, 36, 32))
        return 64 + 64 * files + 32 * pieces + (4 * rows * groups + 7) // 8 * 8

    def test_what_parity_gives_is_written_only_with_the_sealed_sum(self):
        root = self.make()
        sums = []
        for file in sorted((root / ".tessera/parity").glob("*.0??")):
            data = bytearray(file.read_bytes())
            size, block = struct.unpack_from("<Q", data, 16)[0], struct.unpack_from("<I", data, 24)[0]
            for begin in range(-(-size // 64) * 64, len(data), block):
                wrong = bytes(byte ^ 1 for byte in data[begin:begin + block])
                data[begin:begin + block] = wrong
                sums.append(zlib.crc32(wrong))
            file.write_bytes(data)

        def change(index):
            files, pieces = struct.unpack_from("<I", index, 44)[0], struct.unpack_from("<I", index, 48)[0]
            struct.pack_into(f"<{len(sums)}I", index, 64 + 64 * files + 32 * pieces, *sums)

        self.forge(root, change)
        chunk = root / "__zdata__/0.0.blosc"
        chunk.unlink()
        self.assertIn("do not match the sealed SHA-256", self.tessera("repair", root, code=1))
        self.assertFalse(chunk.exists())

    def test_none_leads_out_of_the_archive_or_is_believed(self):
        def rename(to):
            def change(index):
                at = self.name_at(index)
                index[at:at + len(to)] = to
            return change

        def number(at, value):
            return lambda index: struct.pack_into("<I", index, at, value)

        def piece(field, value):
            return lambda index: struct.pack_into("<I", index, 64 + 64 * struct.unpack_from("<I", index, 44)[0] + field, value)

        forged = [rename(b"../../evil"), rename(b"/tmp/evilx"), rename(b".tessera/lo"), number(24, 1 << 30), number(24, 0),
                  number(28, 1), number(32, 254), number(36, 0), number(36, 1 << 31), number(40, 1 << 31),
                  number(44, 1 << 31), number(48, 1 << 31), number(56, 1 << 31), piece(0, 1 << 20), piece(4, 1 << 20),
                  piece(16, 1 << 20), piece(20, 4), piece(20, 1 << 31), piece(8, 1 << 31)]
        self.make()
        for number_of_case, change in enumerate(forged):
            with self.subTest(number_of_case):
                shutil.rmtree(self.folder / "h", ignore_errors=True)
                (self.folder / "h").mkdir()
                root = self.folder / "h" / "a.zarr"
                shutil.copytree(self.folder / "a.zarr", root)
                self.forge(root, change)
                chunk = root / "__zdata__/0.0.blosc"
                chunk.unlink()
                result = self.run_program("repair", root, "--to-seal", "--max-memory", "64M")
                self.assertIn(result.returncode, (1, 2), result.stdout + result.stderr)
                self.assertFalse(chunk.exists())
                self.assertEqual([p.name for p in (self.folder / "h").iterdir()], ["a.zarr"])
                self.tessera("verify", root, code=1)

    def test_the_decoder_writes_nowhere_else(self):
        (self.folder / "h").mkdir()
        root = self.make("h/a.zarr", parity="3")

        def rename(index):
            at = self.name_at(index)
            index[at:at + 8] = b"../evil/"
        self.forge(root, rename)
        result = subprocess.run([sys.executable, "-B", EXAMPLES / "parity_decoder.py", root], capture_output=True, text=True)
        self.assertIn("leads out of the archive", result.stderr)
        self.assertEqual([p.name for p in (self.folder / "h").iterdir()], ["a.zarr"])



if __name__ == "__main__":
    main()
