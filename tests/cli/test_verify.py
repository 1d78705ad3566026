"""verify, repair and seal as a person uses them: sha256sum checks our seals, another program our bags."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import warnings
import zipfile

import numcodecs
import numpy as np

from program import GOLDEN, PROGRAM, ProgramTest, digest, main, zarr

SURVEY = np.arange(3000, dtype="<i4").reshape(50, 60)


class VerifyTest(ProgramTest):
    def make(self, name="a.zarr", *words):
        self.save("survey.npy", SURVEY)
        self.tessera("copy", "survey.npy", name, "--chunks", "20,20", "--quiet", *words)
        return self.folder / name

    def make_group(self):
        self.tessera("group", "g.zarr", "--format", "v2", "--quiet")
        self.make("g.zarr/one", "--format", "v2")
        self.make("g.zarr/two", "--format", "v2", "--codec", "zstd:3")
        self.tessera("consolidate", "g.zarr", "--quiet")
        return self.folder / "g.zarr"

    def verify(self, path, code=0):
        return self.tessera_json("verify", path, code=code)

    def keys(self, report, kind="damage"):
        return [f["key"] for f in report["findings"] if f["kind"] == kind]


class Verify(VerifyTest):
    def test_sound_arrays_of_every_format(self):
        for format in ("zmeta", "v1", "v2", "v3"):
            with self.subTest(format):
                self.make(f"{format}.zarr", "--format", format)
                report = self.verify(f"{format}.zarr")
                self.assertEqual((report["sound"], report["findings"], report["chunks"]), (True, [], 9))
                self.assertRegex(self.tessera("verify", f"{format}.zarr"),
                                 r"^\w+\.zarr: sound \(1 array, 9 chunks stored, [\d.]+ KiB\)\n$")
        self.make("s.zarr", "--format", "v3", "--shard", "40,40")
        self.assertEqual(self.verify("s.zarr")["chunks"], 9)

    def test_of_the_original_programs_arrays_those_made_wrong_are_damaged(self):
        for folder in ("zarr0", "zarr1", "zarr2", "zarr3"):
            with self.subTest(folder):
                found = self.run_program("verify", GOLDEN / folder, "--json")
                findings = json.loads(found.stdout)["findings"]
                damaged = {f["node"] for f in findings if f["kind"] == "damage"}
                # Its bytes behind the blosc frame are ignored by readers; somebody appended them all the same.
                appended = {"trailing_bytes_in_chunk"} if folder == "zarr0" else set()
                self.assertEqual({node for node in damaged if not node.startswith("error_")}, appended)
                made_wrong = {p.name for p in (GOLDEN / folder).glob("error_*") if p.is_dir()}
                self.assertEqual(made_wrong - {f["node"] for f in findings}, set())

    def test_a_damaged_document_is_named_once(self):
        root = self.make()
        (root / "__zmeta__").write_text('{"shape"')
        first = self.tessera("verify", "a.zarr", code=1).splitlines()[0]
        self.assertTrue(first.startswith("damage: __zmeta__: not valid JSON"), first)

    def test_a_wrong_digit_in_the_metadata_is_suspected(self):
        self.save("a.npy", np.arange(100.0))
        self.tessera("import", "a.npy", "a.zarr", "--chunks", "20", "--format", "v2", "--quiet")
        chunk = self.folder / "a.zarr" / "1"
        whole = chunk.read_bytes()
        chunk.write_bytes(whole[:-1])
        self.assertNotIn("none of the", self.tessera("verify", "a.zarr", code=1), "one chunk of several")
        chunk.write_bytes(whole)
        document = self.folder / "a.zarr" / ".zarray"
        self.tessera("import", "a.npy", "s.zarr", "--chunks", "10", "--shard", "50", "--format", "v3", "--quiet")
        places = [(document, "20", "21"), (document, "20", "99"), (document, "20", "100"), (document, "<f8", "<f4"),
                  (self.folder / "s.zarr/zarr.json", "float64", "float32")]
        for document, old, new in places:
            with self.subTest(old=old, new=new):
                right = document.read_text()
                document.write_text(right.replace(old, new))
                content = lambda: {p: p.read_bytes() for p in document.parent.rglob("*") if p.is_file() and p.name != "log"}
                before = content()
                count = 5 if document.name == ".zarray" else 2
                says = f"none of the {count} stored chunks can be decoded by these metadata"
                self.assertIn(says, self.tessera("verify", document.parent, code=1))
                for words in (["--dry-run"], []):
                    self.assertIn(says, self.tessera("repair", document.parent, *words, code=1))
                self.assertEqual(content(), before, "repair touched nothing")
                document.write_text(right)
                self.tessera("verify", document.parent)

    def test_missing_is_told_from_damaged(self):
        root = self.make()
        (root / "__zdata__" / "0.0.blosc").unlink()
        report = self.verify("a.zarr", code=1)
        self.assertEqual((report["missing"], report["absent"], report["damage"]), (1, 1, 0))
        self.assertIn("1 chunk not stored that was there", self.tessera("verify", "a.zarr", code=1))
        chunk = root / "__zdata__" / "1.2.blosc"
        chunk.write_bytes(chunk.read_bytes()[:-5])
        (root / "__zdata__" / "2.2.blosc").write_bytes(b"")
        report = self.verify("a.zarr", code=1)
        self.assertEqual(self.keys(report), ["__zdata__/1.2.blosc", "__zdata__/2.2.blosc"])
        self.assertEqual([f["chunk"] for f in report["findings"] if f["kind"] == "damage"], [[1, 2], [2, 2]])
        lines = self.tessera("verify", "a.zarr", code=1).splitlines()
        self.assertTrue(lines[0].startswith("damage: __zdata__/1.2.blosc: chunk (1, 2): "), lines)
        self.assertTrue(lines[-1].startswith("a.zarr: 2 damaged, 1 chunk not stored that was there ("), lines)
        self.assertEqual(self.tessera("verify", "a.zarr", "--quiet", code=1), "")

    def test_leftovers_are_no_damage(self):
        root = self.make()
        (root / "__zdata__" / ".tessera-tmp-2147483646-0").write_bytes(b"half")
        (root / "__zdata__" / "0.0.blosc.lock").write_bytes(b"")
        (root / "notes.txt").write_text("mine")
        shutil.copy(root / "__zdata__" / "0.0.blosc", root / "__zdata__" / "7.7.blosc")
        report = self.verify("a.zarr")
        self.assertEqual(sorted(self.keys(report, "leftover")),
                         ["__zdata__/.tessera-tmp-2147483646-0", "__zdata__/0.0.blosc.lock", "__zdata__/7.7.blosc"])
        self.assertEqual(self.keys(report, "note"), ["notes.txt"])

    def test_hierarchy_and_consolidated_metadata(self):
        root = self.make_group()
        self.assertEqual(self.verify("g.zarr")["findings"], [])
        metadata = json.loads((root / "one" / ".zarray").read_text())
        metadata["fill_value"] = 7
        (root / "one" / ".zarray").write_text(json.dumps(metadata))
        report = self.verify("g.zarr")
        self.assertEqual(self.keys(report, "leftover"), [".zmetadata"])
        self.tessera("repair", "g.zarr")
        self.assertEqual(self.verify("g.zarr")["findings"], [])
        self.assertEqual(json.loads((root / ".zmetadata").read_text())["metadata"]["one/.zarray"]["fill_value"], 7)
        (root / "two" / ".zarray").write_text("{")
        self.assertIn("two/.zarray", self.keys(self.verify("g.zarr", code=1)))

    def test_what_repair_sets_aside_is_not_restored(self):
        root = self.make("a.zarr", "--format", "v2")
        (root / "0.0").write_bytes(b"damaged")
        (root / "2.2").write_bytes(b"damaged")  # at the corner: 10 x 20 elements of it are in the array
        for words, says in ((["--dry-run"], "would be set aside, not restored: 600 elements of 2 damaged chunks would"),
                            ([], "set aside, not restored: 600 elements of 2 damaged chunks now read as the fill value")):
            with self.subTest(words=words):
                self.assertIn(says, self.tessera("repair", "a.zarr", *words, code=1))
        (root / "1.1").write_bytes(b"damaged")
        report = self.tessera_json("repair", "a.zarr", code=1)
        self.assertEqual((report["mended"], report["lost_elements"], report["actions"][0]["lost_elements"]),
                         (False, 400, 400))
        report = self.tessera_json("repair", "a.zarr")  # what is lost already is not lost again
        self.assertEqual((report["mended"], report["lost_elements"]), (True, 0))
        root = self.make("s.zarr", "--format", "v3", "--shard", "40,40")
        shard = root / "c" / "0" / "0"
        whole = bytearray(shard.read_bytes())
        whole[:16] = bytes(16)
        shard.write_bytes(whole)
        self.assertEqual(self.tessera_json("repair", "s.zarr", code=1)["lost_elements"], 400)

    def test_many_findings_alike_are_one_line(self):
        root = self.make("a.zarr", "--format", "v2")
        for n in range(300):
            (root / f".tessera-tmp-2147483646-{n}").write_bytes(b"")
        (root / "1.0").write_bytes(b"damaged")
        lines = self.tessera("verify", "a.zarr", code=1).splitlines()
        self.assertEqual(len(lines), 3, lines)
        self.assertIn("and 299 more like it (--verbose lists them)", lines[1])
        self.assertEqual(len(self.tessera("verify", "a.zarr", "--verbose", code=1).splitlines()), 302)
        self.assertEqual(len(self.verify("a.zarr", code=1)["findings"]), 301)

    def test_array_files_and_zips(self):
        self.save("a.npy", SURVEY)
        np.savez_compressed(self.folder / "a.npz", one=SURVEY, two=SURVEY[0])
        self.make("a.zarr.zip", "--format", "v2")
        for name, arrays in (("a.npy", 1), ("a.npz", 2), ("a.zarr.zip", 1), ("a.npz::two", 1)):
            report = self.verify(name)
            self.assertEqual((report["findings"], report["arrays"]), ([], arrays), name)
        for name in ("a.npy", "a.npz", "a.zarr.zip"):
            whole = (self.folder / name).read_bytes()
            (self.folder / name).write_bytes(whole[:-100])
            self.assertFalse(self.verify(name, code=1)["sound"], name)
        self.refused("verify", "nothing.zarr", says="No such file")
        (self.folder / "empty").mkdir()
        self.refused("verify", "empty", says="nothing")
        self.refused("verify", __file__, says="no array file")

    def test_a_member_that_a_later_one_hides_is_named(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zipfile warns of it, and numpy reads the last
            with zipfile.ZipFile(self.folder / "a.npz", "w") as archive:
                for value in 1, 2:
                    np.save(self.folder / "one.npy", np.full(3, value))
                    archive.write(self.folder / "one.npy", "one.npy")
        self.assertEqual(np.load(self.folder / "a.npz")["one"].tolist(), [2, 2, 2])
        self.assertEqual(self.tessera("get", "a.npz::one", "...").strip(), "[2 2 2]")
        report = self.verify("a.npz")
        self.assertEqual([(f["kind"], f["key"]) for f in report["findings"]], [("leftover", "one.npy")])
        self.assertEqual(report["arrays"], 1)

    def test_a_zip_is_verified_but_not_repaired(self):
        self.make("a.zarr", "--format", "v2")
        (self.folder / "a.zarr" / "0.0").write_bytes(b"x")
        with zipfile.ZipFile(self.folder / "a.zip", "w") as packed:
            for file in sorted((self.folder / "a.zarr").rglob("*")):
                if file.is_file():
                    packed.write(file, file.relative_to(self.folder / "a.zarr"))
        self.assertEqual(self.keys(self.verify("a.zip", code=1)), ["0.0"])
        self.refused("repair", "a.zip", says="a zip archive is never changed in place")
        self.tessera("repair", "a.zip", "--dry-run", "--quiet", code=1)

    def test_small_budgets(self):
        self.make("a.zarr", "--format", "v3", "--shard", "40,40")
        self.assertTrue(self.tessera_json("verify", "a.zarr", "--max-memory", "1M", "--threads", 1)["sound"])
        line = self.tessera("verify", "a.zarr", "--max-memory", "1K", code=1).splitlines()[0]
        self.assertIn("--max-memory 1M", line)


class Repair(VerifyTest):
    def test_damaged_chunks_are_set_aside(self):
        root = self.make()
        chunk = root / "__zdata__" / "0.1.blosc"
        chunk.write_bytes(b"rubbish")
        before = digest(root)
        planned = self.tessera("repair", "a.zarr", "--dry-run", code=1)
        self.assertIn("would be set aside", planned)
        self.assertEqual(digest(root), before)
        report = self.tessera_json("repair", "a.zarr", code=1)
        self.assertEqual((report["mended"], report["done"]), (False, 1))
        self.assertEqual((root / ".tessera" / "damaged" / "__zdata__" / "0.1.blosc").read_bytes(), b"rubbish")
        expected = SURVEY.copy()
        expected[:20, 20:40] = 0
        np.testing.assert_array_equal(self.exported("a.zarr"), expected)
        self.assertTrue(self.verify("a.zarr")["sound"])
        self.assertEqual(self.tessera("repair", "a.zarr"),
                         "a.zarr: nothing to mend\na.zarr: 1 file, 7 bytes set aside in .tessera/damaged; --drop-damaged "
                         "deletes them, and gives the space back\n")

    def test_what_was_set_aside_is_counted_and_dropped_on_request(self):
        group = self.make_group()
        (group / "one" / "90.0").write_bytes(b"stale")
        self.tessera("repair", "g.zarr", "--quiet")
        (group / "two" / "90.0").write_bytes(b"stale too")
        damaged = group / "one" / ".tessera" / "damaged"
        self.assertEqual(self.tessera_json("info", "g.zarr/one")["set_aside_bytes"], 5)
        self.assertRegex(self.tessera("info", "g.zarr/one"), r"set aside +1 file in .tessera/damaged, 5 bytes; .*--drop")
        self.assertNotIn("set aside", self.tessera("info", "g.zarr/two"))
        self.assertEqual(self.tessera_json("info", "g.zarr")["set_aside_files"], 1)
        self.assertIn("set aside", self.tessera("info", "g.zarr"))
        self.assertIn("1 files, 5 bytes", self.tessera("verify", "g.zarr"))
        self.assertIn("1 file, 5 bytes in .tessera/damaged would be deleted",
                      self.tessera("repair", "g.zarr", "--drop-damaged", "--dry-run"))
        self.assertTrue(damaged.exists())
        # What replaces the array keeps it.
        self.tessera("copy", "g.zarr/two", "g.zarr/one", "--overwrite", "--quiet")
        self.assertEqual((damaged / "90.0").read_bytes(), b"stale")
        report = self.tessera_json("repair", "g.zarr", "--drop-damaged")
        self.assertEqual((report["dropped"], report["set_aside"]), ({"files": 2, "bytes": 14}, {"files": 0, "bytes": 0}))
        self.assertFalse(damaged.exists())
        self.assertEqual(self.verify("g.zarr")["findings"], [])

    def test_a_shard_loses_its_damaged_chunks_only(self):
        root = self.make("s.zarr", "--format", "v3", "--shard", "40,40", "--codec", "crc32c")
        shard = root / "c" / "0" / "0"
        data = bytearray(shard.read_bytes())
        place = data.index(np.int32(20).tobytes() + np.int32(21).tobytes())
        data[place] ^= 1
        shard.write_bytes(data)
        report = self.verify("s.zarr", code=1)
        self.assertEqual([(f["chunk"], f["inner"]) for f in report["findings"]], [([0, 0], [0, 1])])
        self.assertIn("without 1 damaged", self.tessera("repair", "s.zarr", code=1))
        expected = SURVEY.copy()
        expected[:20, 20:40] = 0
        np.testing.assert_array_equal(self.exported("s.zarr"), expected)
        self.assertEqual((root / ".tessera" / "damaged" / "c" / "0" / "0").read_bytes(), data)
        shard.write_bytes(shard.read_bytes()[:-1])
        self.tessera("repair", "s.zarr", "--quiet", code=1)
        expected[:40, :40] = 0
        np.testing.assert_array_equal(self.exported("s.zarr"), expected)

    def test_what_is_done_stands_on_a_line_of_its_own(self):
        root = self.make()
        chunk = root / "__zdata__" / "1.1.blosc"
        kept = chunk.read_bytes()
        chunk.write_bytes(kept + b"tail")
        text = self.tessera("repair", "a.zarr")
        self.assertIn(": 4 bytes follow the encoded chunk", text.splitlines()[0])
        self.assertTrue(text.splitlines()[1].startswith("  written anew without 4 bytes"), text)
        self.assertNotIn("\\x0a", text)
        self.assertEqual(chunk.read_bytes(), kept)

    def test_a_chunk_of_strings_that_is_too_large_is_no_damage(self):
        root = self.folder / "v.zarr"
        root.mkdir()
        (root / ".zarray").write_text(json.dumps({
            "zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "|O", "filters": [{"id": "vlen-utf8"}], "order": "C",
            "compressor": {"id": "zstd", "level": 1}, "fill_value": ""}))
        piece, pieces = 1 << 26, 17  # one string of more than 1 GiB
        head = np.array([1, pieces * piece], "<u4").tobytes()
        frame = numcodecs.Zstd(1).encode(b"a" * piece)
        chunk = numcodecs.Zstd(1).encode(head) + frame * pieces
        (root / "0").write_bytes(chunk)
        report = self.verify("v.zarr", code=1)
        self.assertEqual((self.keys(report), self.keys(report, "unchecked")), ([], ["0"]))
        self.tessera("repair", "v.zarr", code=1)
        self.assertEqual((root / "0").read_bytes(), chunk)

    def test_the_temporary_file_of_an_export_at_work_stays(self):
        self.tessera("group", "g.zarr", "--quiet")
        root = self.folder / "g.zarr"
        big = np.zeros((1000, 1000))
        self.save("big.npy", big)
        self.tessera("import", "big.npy", "big.zarr", "--chunks", "10,10", "--quiet")
        process = subprocess.Popen([PROGRAM, "export", "big.zarr", root / "out.npy", "--threads", "1", "--quiet"],
                                   cwd=self.folder)
        try:
            while process.poll() is None and not list(root.glob(".tessera-tmp-*")):
                pass
            process.send_signal(signal.SIGSTOP)
            self.assertEqual(len(list(root.glob(".tessera-tmp-*"))), 1, "it was stopped in the middle")
            self.tessera("repair", "g.zarr", "--quiet")
            process.send_signal(signal.SIGCONT)
            self.assertEqual(process.wait(60), 0)
        finally:
            process.kill()
        np.testing.assert_array_equal(np.load(root / "out.npy"), big)

    def test_leftovers_go_and_files_of_others_stay(self):
        root = self.make()
        dead = root / "__zdata__" / ".tessera-tmp-2147483646-0"
        alive = root / "__zdata__" / f".tessera-tmp-{os.getpid()}-0"
        for file in (dead, alive, root / "notes.txt"):
            file.write_bytes(b"half")
        shutil.copy(root / "__zdata__" / "0.0.blosc", root / "__zdata__" / "7.7.blosc")
        text = self.tessera("repair", "a.zarr")
        self.assertIn("1 left", text)
        self.assertEqual([f.exists() for f in (dead, alive, root / "notes.txt")], [False, True, True])
        self.assertTrue((root / ".tessera" / "damaged" / "__zdata__" / "7.7.blosc").exists())

    def test_a_killed_copy_leaves_nothing_but_leftovers(self):
        self.save("big.npy", np.random.default_rng(1).random((600, 1000)))
        self.tessera("import", "big.npy", "a.zarr", "--chunks", "20,20", "--quiet")
        for delay in (0.05, 0.1, 0.2, 0.3):
            with self.subTest(delay):
                process = subprocess.Popen([PROGRAM, "set", "a.zarr", ":", "1.5", "--threads", "2"], cwd=self.folder)
                try:
                    process.wait(delay)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                self.assertTrue(self.verify("a.zarr")["sound"])
                self.tessera("repair", "a.zarr", "--quiet")
                self.assertEqual(self.verify("a.zarr")["findings"], [])


class Seal(VerifyTest):
    def sha256sum(self, root):
        return subprocess.run(["sha256sum", "-c", ".tessera/sha256sums.txt"], cwd=root, capture_output=True, text=True)

    def test_sha256sum_checks_it(self):
        root = self.make_group()
        (root / "odd na\\me\nand line\r.txt").write_text("x")
        self.assertIn("sealed g.zarr in g.zarr/.tessera/sha256sums.txt", self.tessera("seal", "g.zarr"))
        checked = self.sha256sum(root)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        listed = [p.relative_to(root) for p in root.rglob("*") if p.is_file() and ".tessera" not in p.parts]
        self.assertEqual(len(checked.stdout.splitlines()), len(listed))
        report = self.verify("g.zarr")
        self.assertEqual((report["sound"], report["seals"], report["files_as_sealed"]), (True, 1, len(listed)))
        self.assertIn("nothing changed", self.tessera("seal", "g.zarr"))

    def test_every_change_is_named(self):
        root = self.make()
        self.tessera("seal", "a.zarr", "--quiet")
        chunk = root / "__zdata__" / "1.1.blosc"
        kept = chunk.read_bytes()
        chunk.unlink()
        self.assertEqual(self.keys(self.verify("a.zarr", code=1), "lost"), ["__zdata__/1.1.blosc"])
        self.assertIn("1 missing since the seal", self.tessera("verify", "a.zarr", code=1))
        chunk.write_bytes(kept)
        unsealed = self.folder / "unsealed.zarr"  # as another program would change it
        shutil.copytree(root, unsealed, ignore=shutil.ignore_patterns(".tessera"))
        self.tessera("set", unsealed, "0, 0", "-5", "--quiet")
        self.tessera("attrs", unsealed, "set", "units", '"m"')
        for name in ("__zdata__/0.0.blosc", "__zattr__"):
            shutil.copy2(unsealed / name, root / name)
        report = self.verify("a.zarr", code=1)
        self.assertEqual(self.keys(report, "changed"), ["__zdata__/0.0.blosc"])
        self.assertEqual(self.keys(report, "added"), ["__zattr__"])
        self.assertEqual(self.keys(report), [])
        self.refused("seal", "a.zarr", says=["__zattr__", "__zdata__/0.0.blosc", "--overwrite"])
        self.assertNotEqual(self.sha256sum(root).returncode, 0)
        self.tessera("seal", "a.zarr", "--overwrite", "--quiet")
        self.assertEqual(self.sha256sum(root).returncode, 0)
        self.assertEqual(self.verify("a.zarr")["findings"], [])

    def test_damage_is_not_sealed(self):
        root = self.make()
        (root / "__zdata__" / "1.1.blosc").write_bytes(b"x")
        result = self.run_program("seal", "a.zarr")
        self.assertEqual(result.returncode, 1)
        self.assertIn("__zdata__/1.1.blosc", result.stdout)
        self.assertIn("--unchecked", result.stderr)
        self.assertFalse((root / ".tessera" / "sha256sums.txt").exists())
        self.tessera("seal", "a.zarr", "--unchecked", "--quiet")
        self.assertTrue((root / ".tessera" / "sha256sums.txt").exists())

    def test_readers_do_not_see_it(self):
        self.make_group()
        self.tessera("seal", "g.zarr", "--quiet")
        self.tessera("seal", "g.zarr/one", "--quiet")
        group = zarr.open_group(self.path("g.zarr"), mode="r")
        self.assertEqual(sorted(group), ["one", "two"])
        np.testing.assert_array_equal(group["one"][...], SURVEY)
        zarr.consolidate_metadata(self.path("g.zarr"))
        self.assertEqual([n for n in json.loads((self.folder / "g.zarr" / ".zmetadata").read_text())["metadata"]
                          if "tessera" in n], [])


    def test_chunks_outside_of_the_array_are_not_sealed(self):
        root = self.make("a.zarr", "--format", "v2")
        stale = root / "90.0"
        stale.write_bytes(b"stale")
        said = self.run_program("seal", "a.zarr")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("chunks outside of their arrays", said.stderr)
        self.assertIn("not sealed", said.stderr)
        manifest = (root / ".tessera" / "sha256sums.txt").read_text()
        self.assertNotIn("90.0", manifest)
        self.assertIn("  0.0\n", manifest)
        # It is no part of what is sealed: it may change and go.
        stale.write_bytes(b"other")
        report = self.verify("a.zarr")
        self.assertTrue(report["sound"])
        self.assertEqual(self.keys(report, "added"), [])
        self.tessera("repair", "a.zarr", "--quiet")
        self.assertIn("sealed already", self.tessera("seal", "a.zarr"))
        # Of a group too, and in a bag.
        group = self.make_group()
        (group / "one" / "90.0").write_bytes(b"stale")
        self.run_program("seal", "g.zarr", "--quiet")
        self.assertNotIn("90.0", (group / ".tessera" / "sha256sums.txt").read_text())
        self.run_program("seal", "g.zarr", "--bagit", "bag", "--quiet")
        self.assertFalse((self.folder / "bag/data/g.zarr/one/90.0").exists())
        self.assertTrue((self.folder / "bag/data/g.zarr/one/0.0").exists())


class Bag(VerifyTest):
    def test_overwrite_is_of_seals_alone(self):
        self.make("a.zarr")
        self.tessera("seal", "a.zarr", "--bagit", "bag", "--quiet")
        self.refused("seal", "a.zarr", "--bagit", "bag", "--overwrite", says=("--overwrite", "a bag is never replaced"))
        self.refused("seal", "a.zarr", "--bagit", "new", "--overwrite", says="--overwrite")
        self.assertFalse((self.folder / "new").exists())
        self.check_bag(self.folder / "bag")

    def check_bag(self, bag):
        """RFC 8493, by hashlib."""
        self.assertEqual((bag / "bagit.txt").read_text(), "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")
        payload = [p for p in (bag / "data").rglob("*") if p.is_file()]
        listed = {}
        for line in (bag / "manifest-sha256.txt").read_bytes().decode().splitlines():
            total, name = line.split("  ", 1)
            listed[name.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")] = total
        self.assertEqual(listed, {p.relative_to(bag).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
                                  for p in payload})
        info = dict(line.split(": ", 1) for line in (bag / "bag-info.txt").read_text().splitlines())
        self.assertEqual(info["Payload-Oxum"], f"{sum(p.stat().st_size for p in payload)}.{len(payload)}")
        self.assertRegex(info["Bagging-Date"], r"^\d{4}-\d\d-\d\d$")
        tags = dict(reversed(line.split("  ", 1)) for line in (bag / "tagmanifest-sha256.txt").read_text().splitlines())
        self.assertEqual(tags, {name: hashlib.sha256((bag / name).read_bytes()).hexdigest()
                                for name in ("bag-info.txt", "bagit.txt", "manifest-sha256.txt",
                                             "manifest-sha512.txt")})

    def test_a_bag_is_what_the_rfc_says(self):
        root = self.make_group()
        (root / "100%\n.txt").write_text("x")
        before = digest(root)
        self.tessera("seal", "g.zarr", "--bagit", "bag")
        self.assertEqual(digest(root), before, "the original stays as it is")
        self.check_bag(self.folder / "bag")
        self.assertTrue(self.verify("bag/data/g.zarr")["sound"])
        self.assertEqual(self.tessera("digest", "bag/data/g.zarr/one").split()[0],
                         self.tessera("digest", "g.zarr/one").split()[0])
        self.refused("seal", "g.zarr", "--bagit", "bag", says="something is there already")
        left = [p.name for p in self.folder.iterdir() if "tessera" in p.name]
        self.assertEqual(left, [])

    def found(self, path="bag", code=1, of="bag"):
        prefix = os.path.relpath(of, path) + "/" if of != path else ""
        return {(f["kind"], f["key"].removeprefix(prefix)) for f in self.verify(path, code=code)["findings"]
                if f["kind"] not in ("leftover", "note")}

    def test_a_bag_is_compared_with_its_manifests(self):
        self.make("a.zarr", "--format", "v3", "--codec", "none")
        self.tessera("seal", "a.zarr", "--bagit", "bag", "--quiet")
        bag = self.folder / "bag"
        report = self.verify("bag")
        self.assertEqual((report["sound"], report["findings"], report["seals"]), (True, [], 1))
        listed = sum(1 for p in bag.rglob("*") if p.is_file() and not p.name.startswith("tagmanifest-"))
        self.assertEqual(report["files_as_sealed"], listed)
        whole = bag.rename(self.folder / "whole")
        manifest = ("damage", "manifest-sha256.txt")

        def flip(file):
            data = bytearray(file.read_bytes())
            data[-1] ^= 1
            file.write_bytes(data)

        def replace(file, make):
            file.unlink()
            make(file)

        chunk = "data/a.zarr/c/0/0"
        for change, expected in [
                (lambda: flip(bag / chunk), {("changed", chunk)}),  # any bytes are a chunk without codecs
                (lambda: (bag / chunk).unlink(), {("lost", chunk)}),
                (lambda: (bag / "data/a.zarr/zarr.json").unlink(), {("lost", "data/a.zarr/zarr.json")}),
                (lambda: shutil.rmtree(bag / "data"), {("lost", f"data/a.zarr/{p.relative_to(whole / 'data/a.zarr')}")
                                                       for p in (whole / "data").rglob("*") if p.is_file()}),
                (lambda: (bag / "data/more.txt").write_text("x"), {("added", "data/more.txt")}),
                (lambda: shutil.copyfile(bag / chunk, bag / "data/a.zarr/c/0/9"), {("added", "data/a.zarr/c/0/9")}),
                (lambda: flip(bag / "bag-info.txt"), {("changed", "bag-info.txt")}),
                (lambda: (bag / "bagit.txt").unlink(), {("lost", "bagit.txt")}),
                (lambda: (bag / "manifest-sha256.txt").unlink(), {("lost", "manifest-sha256.txt")}),
                (lambda: replace(bag / "manifest-sha256.txt", os.mkdir), {("lost", "manifest-sha256.txt")}),
                (lambda: [p.unlink() for p in bag.glob("manifest-*")], {manifest}),
                (lambda: replace(bag / "manifest-sha256.txt", os.mkfifo), {manifest}),
                (lambda: (bag / "manifest-sha256.txt").write_text("what?\n"), {manifest}),
                (lambda: [p.rename(bag / f"manifest-{i}.txt") for i, p in enumerate(bag.glob("manifest-*"))],
                 {("unchecked", "manifest-sha256.txt")})]:
            with self.subTest(expected=expected):
                shutil.rmtree(bag, ignore_errors=True)
                shutil.copytree(whole, bag)
                change()
                found = self.found()
                self.assertEqual({f for f in found if f[0] != "damage" or f == manifest}, expected)
                self.assertLessEqual(expected, self.found("."))
                # Nothing but its parity repairs a bag.
                before = sorted((str(p), p.read_bytes()) for p in bag.rglob("*") if p.is_file())
                report = self.tessera_json("repair", "bag", code=1)
                self.assertEqual((report["mended"], report["done"], report["actions"]), (False, 0, []))
                after = sorted((str(p), p.read_bytes()) for p in bag.rglob("*") if p.is_file())
                self.assertTrue(after == before, "it is left as it is")
        # A chunk that does not decode is not set aside, which it would be outside of a bag.
        shutil.rmtree(bag)
        shutil.copytree(whole, bag)
        (bag / chunk).write_bytes(b"short")
        self.assertEqual(self.found(), {("damage", chunk), ("changed", chunk)})
        self.assertIn("left that cannot be repaired", self.tessera("repair", "bag", code=1))
        self.assertEqual((bag / chunk).read_bytes(), b"short")
        # Without the optional manifest of tag files, the payload alone is compared.
        shutil.rmtree(bag)
        shutil.copytree(whole, bag)
        (bag / "more.txt").write_text("x")  # which the manifests of tag files need not list
        self.assertEqual(self.keys(self.verify("bag"), "note"), ["more.txt"])
        for manifest in bag.glob("tagmanifest-*"):
            manifest.unlink()
        report = self.verify("bag")
        self.assertEqual(self.keys(report, "note"), ["tagmanifest-sha256.txt"])

    def test_bags_of_other_programs(self):
        """With sums in capitals, one space or an asterisk, line ends of Windows, and Tessera's own files in the payload."""
        root = self.make_group()
        (root / "100%\n.txt").write_text("x")
        self.tessera("seal", "g.zarr", "--bagit", "bag", "--quiet")
        bag = self.folder / "bag"
        self.assertEqual(self.found(code=0), set())
        own = bag / "data/g.zarr/one/.tessera/stored"
        own.parent.mkdir(exist_ok=True)
        shutil.copyfile(root / "one/.tessera/stored", own)
        for manifest in [*bag.glob("tagmanifest-*"), bag / "manifest-sha512.txt", bag / "bag-info.txt"]:  # says how many files
            manifest.unlink()
        lines = [line.split("  ", 1) for line in (bag / "manifest-sha256.txt").read_bytes().decode().split("\n")[:-1]]
        lines.append([hashlib.sha256(own.read_bytes()).hexdigest(), "data/g.zarr/one/.tessera/stored"])
        for middle, end in (" ", "\n"), (" *", "\r\n"), ("\t", "\n"):
            text = "".join(f"{total.upper()}{middle}{name}{end}" for total, name in lines)
            (bag / "manifest-sha256.txt").write_bytes(text.encode())
            report = self.verify("bag")
            self.assertEqual((report["sound"], report["files_as_sealed"]), (True, len(lines)))
        own.write_bytes(b"other")
        self.assertIn(("changed", "data/g.zarr/one/.tessera/stored"), self.found())

    def test_a_bag_of_a_zip(self):
        self.make("a.zarr.zip", "--format", "v2")
        self.tessera("seal", "a.zarr.zip", "--bagit", "bag", "--quiet")
        self.check_bag(self.folder / "bag")
        self.assertTrue(self.verify("bag/data/a.zarr.zip")["sound"])
        self.tessera("seal", "a.zarr.zip", "--quiet")
        subprocess.run(["sha256sum", "-c", "--quiet", "a.zarr.zip.tessera-seal/sha256sums.txt"], cwd=self.folder, check=True)


if __name__ == "__main__":
    main()
