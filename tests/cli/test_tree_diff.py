"""diff of parts, hierarchies and snapshots."""
import json
import os

import numpy as np

from program import ProgramTest, main


class TreeDiff(ProgramTest):
    def lines(self, *words, code=1):
        return self.tessera("diff", *words, code=code).splitlines()

    def test_parts_as_numpy(self):
        rng = np.random.default_rng(21)
        a = rng.integers(0, 9, (13, 17, 6))
        b = np.where(rng.random(a.shape) < 0.05, a + 1, a)
        self.save("a.npy", a)
        self.save("b.npy", b)
        np.savez_compressed(self.folder / "b.npz", b=b)
        self.tessera("import", "a.npy", "a.zarr", "--chunks", "4,5,6", "--format", "v3", "--quiet")
        index = np.stack(np.indices(a.shape), -1)
        for text in "...", "2:9, 3", "::-2, ::3, 1", "5:5", "4, 4, 4", "-1, 2:, ::-1", "1:12:5, 16, :":
            key = eval(f"np.s_[{text}]")
            for other in "b.npy", "b.npz":
                with self.subTest(text=text, other=other):
                    differ = a[key] != b[key]
                    result = self.run_program("diff", "a.zarr", other, "--sel", text, "--json", "--places", "1000")
                    self.assertEqual(result.returncode, int(np.any(differ)), result.stderr)
                    found = json.loads(result.stdout)
                    self.assertEqual((found["elements"], found["different"]), (differ.size, np.sum(differ)))
                    self.assertEqual([one["index"] for one in found["first"]], index[key][differ].tolist())
        self.refused("diff", "a.zarr", "b.npy", "--sel", "1,2,3,4", says="1,2,3,4")

    def test_hierarchies_and_snapshots(self):
        for fmt in "v2", "v3":
            top = f"top-{fmt}"
            self.tessera("group", top, "--format", fmt, "--attrs", '{"title": "T"}', "--quiet")
            for name in "x", "sub/y", "sub/z":
                self.tessera("create", f"{top}/{name}", "--shape", "20,20", "--chunks", "5,5", "--dtype", "<i4", "--quiet")
                self.tessera("set", f"{top}/{name}", "...", "3", "--quiet")
            self.tessera("snapshot", top, "create", "before", "--quiet")
            before = f"{top}.snapshots/before"
            self.assertEqual(self.lines(top, before, code=0), ["all 5 nodes are equal"])
            self.tessera("set", f"{top}/sub/y", "3,4", "8", "--quiet")
            self.tessera("attrs", f"{top}/x", "set", "units", '"m"')
            self.tessera("rm", f"{top}/sub/z", "--quiet")
            self.tessera("create", f"{top}/new", "--shape", "3", "--dtype", "u1", "--quiet")
            self.assertEqual(self.lines(top, before), [
                "new: only in A", "sub/z: only in B", "x: the attributes differ",
                "sub/y: 1 of 400 elements differ, at most by 5.0 at (3, 4)", "  (3, 4)  8  3"])
            found = self.run_program("diff", top, before, "--json").stdout
            self.assertIn('"only_in_b": [\n    "sub/z"', found)
            self.refused("diff", top, before, "--sel", "1", says=["--sel", "several arrays"])
            # Other chunks, codecs and formats make no difference.
            self.tessera("copy", top, f"copy-{fmt}", "--codec", "zlib:3", "--quiet")
            self.assertEqual(self.lines(top, f"copy-{fmt}", code=0), ["all 5 nodes are equal"])

    def test_what_is_the_same_file_is_not_read(self):
        self.tessera("group", "g", "--format", "v2", "--quiet")
        self.tessera("create", "g/a", "--shape", "10", "--chunks", "5", "--dtype", "<i4", "--format", "v2", "--quiet")
        self.tessera("set", "g/a", "...", "3", "--quiet")
        (self.folder / "h/a").mkdir(parents=True)
        (self.folder / "h/.zgroup").write_bytes((self.folder / "g/.zgroup").read_bytes())
        (self.folder / "g/a/1").write_bytes(b"no chunk")
        for name in ".zarray", "0", "1":
            os.link(self.folder / "g/a" / name, self.folder / "h/a" / name)
        self.assertEqual(self.lines("g", "h", code=0), ["all 2 nodes are equal"])
        (self.folder / "h/a/0").unlink()
        self.assertEqual(self.run_program("diff", "g", "h").returncode, 2)  # now it is read, and found damaged


if __name__ == "__main__":
    main()
