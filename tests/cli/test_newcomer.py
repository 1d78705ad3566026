"""What a newcomer stumbles over: messages name the right thing and the remedy, and nothing is lost by a forgotten word."""
import json
import os
import shutil

import numpy as np

from program import ProgramTest, main

GRID = np.arange(12, dtype="f4").reshape(3, 4)


class Newcomer(ProgramTest):
    def setUp(self):
        super().setUp()
        for n, name in enumerate("abc"):
            self.save(f"{name}.npy", GRID + n)

    def noted(self, *words):
        """Runs a command that must do its work with one note; returns the note."""
        result = self.run_program(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        return lines[0]

    def test_what_is_wrong_with_the_new_array_is_said_of_it(self):
        self.tessera("import", "a.npy", "from.zarr", "--quiet")
        for source in "a.npy", "from.zarr":
            for words in (["--chunks", "1,1,1"], ["--chunks", "0,1"], ["--codec", "nope"], ["--dims", "y"],
                          ["--fill", "nope"], ["--separator", "nope"], ["--shard", "2,2"]):
                with self.subTest(source=source, words=words):
                    said = self.refused("copy", source, "to.zarr", *words)
                    self.assertTrue(said.startswith("tessera: to.zarr: "), said)
            for option in "--chunks", "--order":
                self.assertTrue(self.refused("copy", source, "to.zarr", option, "x").startswith(f"tessera: {option}: "))
        self.assertIn(": a.npy: ", self.refused("import", "a.npy", "to.zarr", "--sel", "9"))
        said = self.refused("unstack", "a.npy", "to-{}.zarr", "--chunks", "9,9")
        self.assertTrue(said.startswith("tessera: to-0.zarr: "), said)
        said = self.refused("create", "to.zarr", "--shape", "3,3", "--dtype", "f4", "--chunks", "1")
        self.assertTrue(said.startswith("tessera: to.zarr: "), said)

    def test_damaged_metadata_are_named_once(self):
        for fmt, document in ("zmeta", "__zmeta__"), ("v1", "meta"), ("v2", ".zarray"), ("v3", "zarr.json"):
            self.tessera("import", "a.npy", f"{fmt}.zarr", "--format", fmt, "--quiet")
            (self.folder / f"{fmt}.zarr" / document).write_text("{")
            for words in (["info", f"{fmt}.zarr"], ["get", f"{fmt}.zarr", "0"], ["copy", f"{fmt}.zarr", "other.zarr"]):
                said = self.refused(*words)
                self.assertTrue(said.startswith(f"tessera: {fmt}.zarr/{document}: "), said)
                self.assertEqual(said.count(".zarr/"), 1, said)

    def test_a_forgotten_destination_costs_no_array(self):
        self.save("single.npy", GRID[:1])
        self.tessera("import", "c.npy", "c.zarr", "--quiet")
        self.tessera("import", "b.npy", "b.zarr", "--quiet")
        before = {p.name: p.read_bytes() for p in self.folder.glob("*.npy")}
        for words in (["stack", "a.npy", "b.npy"], ["stack", "a.npy", "b.npy", "c.npy"], ["concat", "a.npy", "b.npy", "c.npy"],
                      ["concat", "a.npy", "b.npy", "single.npy"], ["concat", "a.npy", "c.npy"], ["stack", "b.zarr", "c.zarr"],
                      ["concat", "a.npy", "b.zarr", "c.npy", "--axis", "1"], ["stack", "a.npy", "b.npy", "c.npy", "--dry-run"]):
            for more in [], ["--overwrite"]:
                with self.subTest(words=words, more=more):
                    self.refused(*words, *more, says="the destination seems to be missing")
        self.assertEqual({p.name: p.read_bytes() for p in self.folder.glob("*.npy")}, before)
        np.testing.assert_array_equal(self.exported("c.zarr"), GRID + 2)

    def test_a_destination_that_is_meant_is_replaced(self):
        several = {"m": GRID, "n": GRID + 5}
        np.savez(self.folder / "several.npz", **several)
        for command, joined in ("stack", np.stack), ("concat", np.concatenate):
            for out in "out.npy", "out.zarr", "out.npz":
                for names in (["a.npy", "b.npy"], ["a.npy", "b.npy", "c.npy"]):  # more of them each day
                    self.tessera(command, *names, out, "--overwrite", "--quiet")
                    np.testing.assert_array_equal(self.exported(out), joined([np.load(self.folder / n) for n in names]))
                self.assertIn("exists" if "npy" in out or "npz" in out else "already",
                              self.refused(command, "a.npy", "b.npy", out) if command == "stack" else "exists already")
            # Of another kind than what is joined.
            self.save("like.npy", GRID)
            self.tessera("import", "like.npy", "like.zarr", "--quiet", "--overwrite")
            self.refused(command, "a.npy", "b.npy", "like.zarr", says="the destination seems to be missing")
            self.tessera(command, "a.npy", "b.npy", "like.zarr", "--overwrite", "--quiet")
            np.testing.assert_array_equal(self.exported("like.zarr"), joined([GRID, GRID + 1]))
        self.refused("stack", "several.npz", "several.npz")
        self.refused("stack", "a.npy", "several.npz", says="the destination seems to be missing")
        # After one pattern, whatever it stands for: today's day alone, and two days tomorrow.
        self.save("day-1.npy", GRID)
        self.tessera("concat", "day-*.npy", "all.npy", "--quiet")
        self.refused("concat", "day-*.npy", "all.npy", says="the destination seems to be missing")
        self.tessera("concat", "day-*.npy", "all.npy", "--overwrite", "--quiet")
        self.save("day-2.npy", GRID + 1)
        self.tessera("concat", "day-*.npy", "all.npy", "--overwrite", "--quiet")
        np.testing.assert_array_equal(np.load(self.folder / "all.npy"), np.concatenate([GRID, GRID + 1]))
        self.save("other.npy", np.zeros(7))
        self.tessera("stack", "a.npy", "b.npy", "other.npy", "--overwrite", "--quiet")
        np.testing.assert_array_equal(np.load(self.folder / "other.npy"), [GRID, GRID + 1])

    def test_dimensions_have_names_of_their_own(self):
        says = ["two dimensions are named \"y\"", "y1 and y2"]
        self.refused("create", "x.zarr", "--shape", "3,4", "--dtype", "f4", "--dims", "y,y", says=says)
        self.refused("import", "a.npy", "x.zarr", "--dims", "y, y", says=["--dims", *says])
        self.refused("stack", "a.npy", "b.npy", "x.zarr", "--dims", "t,y,y", says=["--dims", *says])
        self.refused("calc", "x.zarr", "a", "a=a.npy", "--dims", "y,y", says=["--dims", *says])
        self.tessera("create", "unnamed.zarr", "--shape", "3,4,5", "--dtype", "f4", "--dims", ",y,", "--quiet")
        for fmt in "v2", "v3":
            self.tessera("import", "a.npy", f"{fmt}.zarr", "--format", fmt, "--dims", "y,x", "--quiet")
            self.refused("dims", f"{fmt}.zarr", "y,y", says=[f"{fmt}.zarr: ", *says])
            self.assertEqual(self.tessera_json("dims", f"{fmt}.zarr")["names"], ["y", "x"])
        # Others make them, and the specification allows them: they are read, copied and computed with.
        document = self.folder / "v3.zarr/zarr.json"
        document.write_text(document.read_text().replace('"x"', '"y"'))
        self.assertEqual(self.tessera_json("dims", "v3.zarr")["names"], ["y", "y"])
        np.testing.assert_array_equal(self.exported("v3.zarr"), GRID)
        for words in (["copy", "v3.zarr", "made.zarr"], ["copy", "v3.zarr", "made.zarr", "--chunks", "2,2"],
                      ["calc", "made.zarr", "a", "a=v3.zarr"], ["concat", "v3.zarr", "v3.zarr", "made.zarr"]):
            shutil.rmtree(self.folder / "made.zarr", ignore_errors=True)
            self.tessera(*words, "--quiet")
            self.assertEqual(self.tessera_json("dims", "made.zarr")["names"], ["y", "y"])

    def test_append_converts_on_request(self):
        self.tessera("import", "a.npy", "a.zarr", "--quiet")
        self.save("wide.npy", GRID.astype("f8") + 0.1)
        self.save("frame.npy", np.array([1, 2, 3, 4], "i8"))
        self.refused("append", "a.zarr", "wide.npy", says=["wide.npy holds <f8, but a.zarr holds <f4", "--cast converts values"])
        self.refused("append", "a.zarr", "wide.npy", "--cast", "safe", says="safe")
        self.refused("append", "a.zarr", "wide.npy", "--cast", "maybe", says="--cast")
        np.testing.assert_array_equal(self.exported("a.zarr"), GRID)
        self.tessera("append", "a.zarr", "wide.npy", "--cast", "same_kind", "--quiet")
        self.tessera("append", "a.zarr", "frame.npy", "--cast", "same_kind", "--quiet")
        self.tessera("append", "a.zarr", "b.npy", "--cast", "safe", "--quiet")
        expected = np.concatenate([GRID, (GRID.astype("f8") + 0.1).astype("f4"), [[1, 2, 3, 4]], GRID + 1])
        np.testing.assert_array_equal(self.exported("a.zarr"), expected)
        self.save("small.npy", np.zeros(2, "i1"))
        self.save("large.npy", np.array([300, -3, 1.5]))
        self.tessera("import", "small.npy", "small.zarr", "--quiet")
        self.refused("append", "small.zarr", "large.npy", "--cast", "round", says="300")
        self.tessera("append", "small.zarr", "large.npy", "--cast", "clip", "--quiet")
        self.assertEqual(self.exported("small.zarr").tolist(), [0, 0, 127, -3, 2])

    def test_chunks_above_the_memory_are_warned_of(self):
        words = ["create", "big.zarr", "--shape", "4000,4000", "--dtype", "f8", "--overwrite"]
        said = self.noted(*words, "--chunks", "4000,4000", "--max-memory", "200M")
        self.assertIn("note: big.zarr: a chunk of (4000, 4000) holds 122 MiB", said)
        self.assertIn("--chunks", said)
        self.tessera(*words, "--chunks", "4000,4000", "--max-memory", "250M")
        self.tessera(*words, "--chunks", "400,4000", "--max-memory", "200M")
        self.tessera(*words, "--chunks", "400,4000", "--shard", "4000,4000", "--format", "v3", "--max-memory", "200M")
        self.save("rows.npy", np.zeros((600, 1000)))
        for command in "import", "copy", "rechunk":
            plan = self.tessera(command, "rows.npy", "rows.zarr", "--chunks", "600,1000", "--max-memory", "8M", "--dry-run")
            self.assertIn("a chunk of (600, 1000) holds 5 MiB", plan)
            self.refused(command, "rows.npy", "rows.zarr", "--chunks", "600,1000", "--max-memory", "8M",
                         says=["rows.zarr: chunks of (600, 1000) are large", "--max-memory"])
        self.assertNotIn("holds", self.tessera("import", "rows.npy", "rows.zarr", "--chunks", "60,1000", "--max-memory", "8M",
                                               "--dry-run"))

    def test_a_folder_that_is_made_is_said(self):
        said = self.tessera("create", "dta/deep/x.zarr", "--shape", "3", "--dtype", "f4").splitlines()
        self.assertEqual(said[1:], ["made the folder dta/deep"])
        self.assertEqual(len(self.tessera("create", "dta/deep/y.zarr", "--shape", "3", "--dtype", "f4").splitlines()), 1)
        for words in (["import", "a.npy", "1/x"], ["copy", "a.npy", "2/x"], ["stack", "a.npy", "b.npy", "3/x"],
                      ["calc", "4/x", "a", "a=a.npy"], ["group", "5/x"], ["unstack", "a.npy", "6/x-{}.npy"], ["mv", "1/x", "7/x"]):
            folder = (words[-1] if words[0] not in ("calc", "unstack") else words[1 if words[0] == "calc" else 2])[0]
            self.assertEqual(self.tessera(*words).splitlines()[-1], f"made the folder {folder}")
        self.assertEqual(self.tessera("copy", "a.npy", "quiet/x", "--quiet"), "")
        json.loads(self.tessera("copy", "a.npy", "json/x", "--json"))

    def test_a_failure_leaves_no_folder(self):
        self.save("bad.npy", np.array([1.0, np.nan]))
        before = sorted(os.listdir(self.folder))
        for words in (["create", "m/d/x", "--shape", "3,3", "--dtype", "f4", "--chunks", "1"],
                      ["import", "bad.npy", "m/d/x", "--dtype", "i1"], ["import", "gone.npy", "m/d/x"],
                      ["unstack", "bad.npy", "m/d/x-{}.zarr", "--chunks", "1,1"],
                      ["unstack", "bad.npy", "m/d/x-{}.tif"], ["calc", "m/d/x", "b + 1", "a=a.npy"],
                      ["stack", "a.npy", "bad.npy", "m/d/x"], ["group", "m/d/x", "--format", "v1"], ["mv", "gone", "m/d/x"],
                      ["pyramid", "a.npy", "m/d/x", "--chunks", "1,1,1"], ["export", "a.npy", "m/d/x.npy"]):
            with self.subTest(words=words):
                self.refused(*words)
                self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_remedies_fit(self):
        for size in "100x", "x100", "100", "0x5", "axb":
            self.refused("view", "a.npy", f"--size={size}", says=["--size: expected WIDTHxHEIGHT", f"'{size}'", "960x720"])
        self.save("cube.npy", np.zeros((2, 3, 4, 5)))
        for command in "export", "copy":
            self.refused(command, "cube.npy", "cube.csv", says="--sel '0, 0, :, :'")
        self.tessera("export", "cube.npy", "cube.csv", "--sel", "0, 0, :, :", "--quiet")
        self.save("table.npy", np.zeros((2, 3), "i4,f8"))
        self.refused("export", "table.npy", "table.csv", says="--sel '0, :'")
        self.tessera("export", "table.npy", "table.csv", "--sel", "0, :", "--quiet")

    def test_what_leaves_a_group_is_in_its_log(self):
        self.tessera("group", "g", "--quiet")
        self.tessera("group", "g/sub", "--quiet")
        for to, lines in ("out", ["mv g/a out"]), ("g/b", []), ("g/sub/a", []):
            self.tessera("import", "a.npy", "g/a", "--quiet", "--no-log")
            self.tessera("mv", "g/a", to, "--quiet")
            own = [line["command"] for line in self.tessera_json("log", "g")["changes"] if not line["node"]]
            self.assertEqual([c for c in own if " mv " in c], ["tessera mv g/a out --quiet"])
        moved = [c for c in self.tessera_json("log", "g")["changes"] if " mv " in c["command"]]
        self.assertEqual(sorted(c["node"] for c in moved), ["", "b", "sub/a"])


class Mistakes(ProgramTest):
    """What a person types wrong in the first hour, and what the line that comes back says to do."""

    def setUp(self):
        super().setUp()
        self.save("dem.npy", np.arange(12, dtype="<i2").reshape(3, 4))
        self.tessera("import", "dem.npy", "dem.zarr", "--quiet")

    def test_a_path_that_is_nearly_right(self):
        self.refused("info", "dme.zarr", says="dme.zarr: no such file or directory (did you mean 'dem.zarr'?)")
        self.refused("get", "./demm.npy", "0", says="did you mean 'dem.npy'?")
        self.assertNotIn("did you mean", self.refused("info", "survey.zarr", says="no such file"))

    def test_a_selection_without_quotes(self):
        self.refused("get", "dem.zarr", "0:2", ":3", says="a selection is one word, in quotes")

    def test_a_value_that_does_not_fit_names_the_array(self):
        for path in "dem.zarr", "dem.npy":
            self.refused("set", path, "0,0", "abc", says=[path, "cannot be an element"])

    def test_a_dtype_that_a_picture_does_not_have(self):
        said = self.run_program("export", "dem.zarr", "dem.png").stderr
        if "no PNG here" not in said:
            self.assertIn("--dtype u2", said)
            self.tessera("export", "dem.zarr", "dem.png", "--dtype", "u2", "--cast", "clip", "--quiet")

    def test_words_of_other_programs(self):
        for word, command in (("zip", "copy"), ("plot", "view"), ("merge", "concat")):
            self.refused(word, "dem.zarr", says=f"use `tessera {command}`")

    def test_where_no_file_can_be_made(self):
        """Where a lock file cannot be made although the folder is there, nobody waits for it."""
        self.refused("import", "dem.npy", "/proc/tessera-x.zarr", says=["/proc/tessera-x.zarr", "/proc"])


if __name__ == "__main__":
    main()
