"""Chunks that got lost: verify compares what is stored with the record of an import or a copy, and with --complete all."""

import json
import shutil

import numpy as np

from program import ProgramTest, main

VALUES = np.arange(1, 801, dtype="<i4").reshape(80, 10)  # 8 chunks of 10 rows, none of them the fill


class Complete(ProgramTest):
    def make(self, format="v3", chunks="10,10"):
        self.save("x.npy", VALUES)
        self.tessera("import", "x.npy", "x.zarr", "--chunks", chunks, "--format", format, "--fill", "0", "--quiet",
                     "--overwrite")
        return self.folder / "x.zarr"

    def chunk(self, n, array="x.zarr"):
        return self.folder / array / "c" / str(n) / "0"

    def absent(self, path="x.zarr", *words):
        """Keys of the chunks that are missed; says whether the exit code agrees."""
        code = self.run_program("verify", path, *words, "--quiet").returncode
        report = self.tessera_json("verify", path, *words, code=code)
        found = [f["key"] for f in report["findings"] if f["kind"] == "absent"]
        self.assertEqual((report["absent"], report["sound"], code), (len(found), not found, 1 if found else 0))
        return found

    def notes(self, path="x.zarr"):
        return [f["text"] for f in self.tessera_json("verify", path)["findings"] if f["kind"] == "note"]

    def lose(self, *numbers, array="x.zarr"):
        for n in numbers:
            self.chunk(n, array).unlink()

    def test_a_half_copied_array_is_not_sound(self):
        for format in ("zmeta", "v1", "v2", "v3"):
            with self.subTest(format):
                root = self.make(format=format)
                self.assertEqual(self.absent(), [])
                chunks = sorted(p for p in root.rglob("*") if p.is_file() and p.name[0] not in "._z" and
                                ".tessera" not in p.parts and p.name != "meta" and p.name != "attrs")
                self.assertEqual(len(chunks), 8)
                for file in chunks[2:4]:
                    file.unlink()
                self.assertEqual(self.absent(), sorted(str(p.relative_to(root)) for p in chunks[2:4]))
                shown = self.tessera("verify", "x.zarr", code=1).splitlines()
                self.assertIn("x.zarr: 2 chunks not stored that were there (1 array, 6 of 8 chunks stored", shown[-1])
                shutil.rmtree(root)

    def test_many_lost_chunks_are_one_line(self):
        self.make(chunks="2,10")
        self.lose(*range(5, 30))
        shown = self.tessera("verify", "x.zarr", code=1).splitlines()
        self.assertEqual(len(shown), 2, shown)
        self.assertTrue(shown[0].endswith("and 24 more like it (--verbose lists them)"), shown[0])
        self.assertEqual(len(self.tessera("verify", "x.zarr", "--verbose", code=1).splitlines()), 26)
        self.assertEqual(len(self.absent()), 25)

    def test_one_lost_and_one_new_do_not_balance(self):
        self.make()
        self.tessera("resize", "x.zarr", "100,10", "--quiet")
        self.tessera("set", "x.zarr", "85", "7", "--quiet")
        self.lose(3)
        self.assertEqual(self.absent(), ["c/3/0"])

    def test_a_plain_set_leaves_the_record_alone(self):
        record = self.make() / ".tessera" / "stored"
        before = record.read_bytes()
        self.tessera("set", "x.zarr", "5:35", "7", "--quiet")
        self.assertEqual(record.read_bytes(), before)
        self.lose(1)
        self.assertEqual(self.absent(), ["c/1/0"])

    def test_what_tessera_erases_is_not_missed(self):
        for what, words in {"set": ("set", "x.zarr", "10:30", "0"), "one": ("set", "x.zarr", "10:20", "0"),
                            "many": ("set", "x.zarr", "0:60", "0"), "resize": ("resize", "x.zarr", "40,10"),
                            "calc": ("calc", "x.zarr", "where(x < 401, 0, x)", "x=x.zarr", "--in-place")}.items():
            with self.subTest(what):
                self.make()
                self.tessera(*words, "--quiet")
                self.assertLess(self.tessera_json("verify", "x.zarr")["chunks"], 8)
                self.assertEqual(self.absent(), [])
                self.lose(0 if what in ("resize", "one") else 7)
                self.assertEqual(len(self.absent()), 1, "the others are still expected")

    def test_growing_again_misses_nothing_that_shrinking_removed(self):
        self.make()
        self.tessera("resize", "x.zarr", "35,10", "--quiet")
        self.tessera("resize", "x.zarr", "80,10", "--quiet")
        self.assertEqual(self.absent(), [])
        self.lose(2)
        self.assertEqual(self.absent(), ["c/2/0"])
        self.tessera("append", "x.zarr", "x.npy", "--quiet")
        self.assertEqual(self.absent(), ["c/2/0"])

    def test_undo_and_batches(self):
        self.make()
        self.tessera("set", "x.zarr", "0:10", "0", "--quiet")
        self.tessera("undo", "x.zarr", "--quiet")
        self.assertEqual(self.absent(), [])
        self.tessera("undo", "x.zarr", "--quiet")  # the set is made again, which erases the chunk
        self.assertFalse(self.chunk(0).exists())
        self.assertEqual(self.absent(), [])
        (self.folder / "script").write_text("set 20:40 0\n")
        self.tessera("edit", "x.zarr", "--script", "script", "--quiet")
        self.assertFalse(self.chunk(2).exists())
        self.assertEqual(self.absent(), [])
        self.lose(5)
        self.assertEqual(self.absent(), ["c/5/0"])

    def test_a_restored_snapshot_has_a_record_of_its_own(self):
        self.make()
        self.tessera("set", "x.zarr", "0:10", "0", "--quiet")
        self.tessera("snapshot", "x.zarr", "create", "one", "--quiet")
        self.tessera("set", "x.zarr", "0:10", "3", "--quiet")
        self.tessera("snapshot", "x.zarr", "restore", "one", "--quiet")
        self.assertEqual(self.absent(), [])
        self.lose(4)
        self.assertEqual(self.absent(), ["c/4/0"])

    def test_repair_sets_aside_what_is_then_not_missed(self):
        self.make()
        self.chunk(3).write_bytes(b"damaged")
        self.tessera("repair", "x.zarr", "--quiet", code=1)
        self.assertEqual(self.absent(), [])

    def test_copies_and_members_of_groups_have_records(self):
        self.make()
        self.tessera("group", "g.zarr", "--format", "v3", "--quiet")
        self.tessera("copy", "x.zarr", "g.zarr/a", "--quiet")
        self.tessera("copy", "g.zarr", "h.zarr", "--quiet")
        self.lose(6, array="h.zarr/a")
        self.assertEqual(self.absent("g.zarr"), [])
        self.assertEqual(self.absent("h.zarr"), ["a/c/6/0"])
        self.tessera("copy", "h.zarr/a", "again.zarr", "--quiet")  # which is complete as a copy of what there is
        self.assertEqual(self.absent("again.zarr"), [])

    def test_complete_counts_every_chunk(self):
        self.tessera("create", "s.zarr", "--shape", "80,10", "--dtype", "<i4", "--chunks", "10,10", "--format", "v3",
                     "--quiet")
        self.tessera("set", "s.zarr", "5", "1", "--quiet")
        self.assertEqual(self.absent("s.zarr"), [])
        self.assertEqual(len(self.absent("s.zarr", "--complete")), 7)
        shown = self.tessera("verify", "s.zarr", "--complete", code=1).splitlines()[-1]
        self.assertIn("s.zarr: 7 chunks not stored (", shown)
        self.tessera("create", "huge.zarr", "--shape", "1000000000,1000000", "--dtype", "<i4", "--chunks", "10,10",
                     "--format", "v3", "--quiet")
        report = self.tessera_json("verify", "huge.zarr", "--complete", code=1)
        self.assertEqual((report["absent"], len(report["findings"])), (10**13, 10_000))

    def test_without_a_record_completeness_is_not_known(self):
        root = self.make()
        self.lose(3)
        (root / ".tessera" / "stored").unlink()
        self.assertEqual(self.absent(), [])
        self.assertEqual(self.notes(), ["no import or copy left a record of stored chunks: whether the chunk that is "
                                        "not stored ever was is not known"])

    def test_another_array_in_its_place_is_not_known_either(self):
        root = self.make()
        metadata = json.loads((root / "zarr.json").read_text())
        metadata["chunk_grid"]["configuration"]["chunk_shape"] = [5, 10]
        (root / "zarr.json").write_text(json.dumps(metadata))
        for n in range(8):
            self.chunk(n).unlink()
        self.assertEqual(self.absent(), [])
        self.assertIn("another program made another array here", self.notes()[0])

    def test_a_record_that_is_none(self):
        record = self.make() / ".tessera" / "stored"
        good = record.read_bytes()
        self.lose(3)
        for text in (b"", b"\0" * 100, good[:-5], good.replace(b"0-7", b"0-8"), good.replace(b"0-7", b"7-0"),
                     good.replace(b"0-7", b"0-7\n3"), good.replace(b"[8, 1]", b"[9223372036854775807, 9]"),
                     good.replace(b"0-7", b"0-99999999999").replace(b"[8, 1]", b"[100000000000, 1]"),
                     good + b"-c/1/0", good + b"<1\n", good + b"what\n", b"x" * 200_000):
            record.write_bytes(text)
            self.assertEqual(self.absent(), [], text[:80])
            self.assertIn("cannot be used", self.notes()[0])

    def test_a_file_with_another_name_is_not_written_to(self):
        root = self.make()
        record = root / ".tessera" / "stored"
        mine = self.folder / "mine"
        record.replace(mine)
        before = mine.read_bytes()
        record.hardlink_to(mine)
        self.tessera("set", "x.zarr", "10:20", "0", "--quiet")
        record.unlink(missing_ok=True)
        record.symlink_to(mine)
        self.tessera("set", "x.zarr", "20:30", "0", "--quiet")
        self.assertEqual(mine.read_bytes(), before)

    def test_a_seal_that_misses_a_chunk_says_it_once(self):
        self.make()
        self.tessera("seal", "x.zarr", "--quiet")
        self.lose(3)
        report = self.tessera_json("verify", "x.zarr", code=1)
        self.assertEqual((report["lost"], report["absent"]), (1, 0))

    def test_a_record_that_grew_too_long_is_given_up(self):
        record = self.make() / ".tessera" / "stored"
        with open(record, "ab") as file:
            for _ in range(70):
                file.write(b"-c/0/0\n" * 150_000)
        self.tessera("set", "x.zarr", "10:20", "0", "--quiet")
        self.assertFalse(record.exists())


if __name__ == "__main__":
    main()
