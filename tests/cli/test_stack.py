"""stack, unstack, concat, append of frames, dims, attrs mv and copy: compared with NumPy, and refused where they must."""
import json
import os
import signal
import subprocess
import time

import numpy as np

from program import PROGRAM, ProgramTest, digest, main

FORMATS = {"npy": "<c8", "npz": ">i2", "ra": "<f8", "mldf": "<f4", "zmeta": "<i4", "v1": "u1", "v2": "M8[s]", "v3": "<f2"}


class Stacks(ProgramTest):
    def put(self, name, array, fmt):
        """An array in a format, by way of an .npy; returns its name."""
        np.save(self.folder / "part.npy", array)
        if fmt in ("zmeta", "v1", "v2", "v3"):
            self.tessera("import", "part.npy", f"{name}.zarr", "--format", fmt, "--chunks",
                         ",".join(str(max(1, (n + 1) // 2)) for n in array.shape), "--quiet")
            return f"{name}.zarr"
        self.tessera("copy", "part.npy", f"{name}.{fmt}", "--quiet")
        return f"{name}.{fmt}"

    def test_every_format_as_numpy(self):
        rng = np.random.default_rng(18)
        for number, (fmt, dtype) in enumerate(FORMATS.items()):
            shape = tuple(rng.integers(2, 6, 2))
            frames = [rng.integers(0, 100, shape).astype("i8").astype(dtype) for _ in range(11)]
            names = [self.put(f"{fmt}-{i}", frame, fmt) for i, frame in enumerate(frames)]
            for axis in 0, 1, -1:
                pattern = f"{fmt}-*.{names[0].split('.')[1]}"
                with self.subTest(fmt=fmt, axis=axis):
                    self.tessera("stack", pattern, "stack.zarr", f"--axis={axis}", "--overwrite", "--format", "v2",
                                 "--quiet")
                    np.testing.assert_array_equal(self.exported("stack.zarr"), np.stack(frames, axis))
                    self.tessera("stack", *names, "stack.npy", f"--axis={axis}", "--overwrite", "--quiet")
                    np.testing.assert_array_equal(np.load(self.folder / "stack.npy"), np.stack(frames, axis))
                    if axis == 0:
                        self.tessera("append", "stack.zarr", names[3], "--quiet")
                        np.testing.assert_array_equal(self.exported("stack.zarr"), np.stack([*frames, frames[3]]))
                    if axis == 1:
                        self.tessera("concat", pattern, f"joined{number}.zarr", "--axis", 1, "--quiet")
                        np.testing.assert_array_equal(self.exported(f"joined{number}.zarr"), np.concatenate(frames, 1))
                        end = names[0].split(".")[1]
                        self.tessera("unstack", "stack.npy", f"again-{fmt}-{{}}.{end}", "--axis", 1, "--quiet")
                        for i, frame in enumerate(frames):
                            np.testing.assert_array_equal(self.exported(f"again-{fmt}-{i:02}.{end}"), frame)

    def test_a_frame_at_every_axis(self):
        rng = np.random.default_rng(5)
        values = rng.integers(0, 99, (4, 5, 6))
        self.save("a.npy", values)
        for axis in range(3):
            self.tessera("import", "a.npy", f"a{axis}.zarr", "--chunks", "3,2,4", "--quiet")
            frame = rng.integers(0, 99, tuple(np.delete(values.shape, axis)))
            self.save("frame.npy", frame)
            self.tessera("append", f"a{axis}.zarr", "frame.npy", "--axis", axis, "--quiet")
            np.testing.assert_array_equal(self.exported(f"a{axis}.zarr"),
                                          np.concatenate([values, np.expand_dims(frame, axis)], axis))
        before = digest(self.folder / "a1.zarr")
        self.refused("append", "a1.zarr", "frame.npy", "--axis", 1, says="every other length must agree")
        self.assertEqual(digest(self.folder / "a1.zarr"), before)

    def test_files_of_length_1_along_the_axis(self):
        for i in range(3):
            self.save(f"f{i}.npy", np.full((1, 2), i))
        self.tessera("stack", "f*.npy", "flat.zarr", "--quiet")
        self.assertEqual(self.exported("flat.zarr").tolist(), [[0, 0], [1, 1], [2, 2]])
        self.tessera("stack", "f*.npy", "deep.zarr", "--new-axis", "--quiet")
        self.assertEqual(self.exported("deep.zarr").shape, (3, 1, 2))

    def test_order_members_and_what_is_taken_over(self):
        for i in (1, 2, 10):
            self.tessera("create", f"f{i}", "--shape", "3", "--dtype", "<i2", "--fill", i, "--format", "v3", "--dims",
                         "x", "--attrs", '{"units": "m"}', "--quiet")
        self.tessera("stack", "f1", "f10", "f2", "s", "--quiet")  # as a shell puts them
        self.assertEqual(self.exported("s")[:, 0].tolist(), [1, 2, 10])
        self.assertEqual(self.tessera_json("info", "s")["format"], "v3")
        self.assertEqual(self.tessera_json("attrs", "s"), {"units": "m"})
        self.assertEqual(self.tessera_json("dims", "s")["names"], [None, "x"])
        self.tessera("stack", "f2", "f10", "f1", "given.npy", "--quiet")
        self.assertEqual(np.load(self.folder / "given.npy")[:, 0].tolist(), [2, 10, 1])
        self.tessera("stack", "f[0-9]*", "given.npy", "--as-given", "--overwrite", "--quiet")
        self.assertEqual(np.load(self.folder / "given.npy")[:, 0].tolist(), [1, 10, 2])
        np.savez(self.folder / "several.npz", b=np.zeros(2), a=np.ones(2))
        self.tessera("stack", "several.npz", "members.npy", "--quiet")
        self.assertEqual(np.load(self.folder / "members.npy").tolist(), [[0, 0], [1, 1]])

    def test_files_of_the_same_variables_are_no_row_of_all(self):
        for name in "one", "two":
            np.savez(self.folder / f"{name}.npz", u=np.zeros(2), v=np.ones(2))
        for words in ["one.npz", "two.npz"], ["*.npz"]:
            self.refused("concat", *words, "out.npy", says=["one.npz holds several arrays", "one.npz::u"])
        self.tessera("concat", "one.npz::u", "one.npz::v", "two.npz::u", "out.npy", "--quiet")
        np.testing.assert_array_equal(np.load(self.folder / "out.npy"), [0, 0, 1, 1, 0, 0])

    def test_what_does_not_fit_is_refused_before_anything_is_written(self):
        self.save("a.npy", np.zeros((3, 4), "f4"))
        self.save("b.npy", np.zeros((3, 5), "f4"))
        self.save("c.npy", np.zeros((3, 4), "f8"))
        os.link(self.folder / "a.npy", self.folder / "same.npy")
        (self.folder / "way").symlink_to(".")
        before = sorted(p.name for p in self.folder.iterdir())
        self.refused("stack", "a.npy", "b.npy", "out.zarr", says=["b.npy", "(3, 5)", "a.npy"])
        self.refused("stack", "a.npy", "c.npy", "out.npy", says=["c.npy", "<f8", "not converted"])
        self.refused("concat", "a.npy", "b.npy", "out.zarr", says=["b.npy", "axis 0"])
        self.refused("concat", "a.npy", "a.npy", "out.zarr", "--axis", 2, says="--axis")
        self.refused("stack", "x*.npy", "out.zarr", says="x*.npy")
        self.refused("stack", "a.npy", "gone.npy", "out.zarr", says="gone.npy")
        for there in "a.npy", "same.npy", "way/a.npy":
            self.refused("stack", "a.npy", there, "--overwrite", says=["a.npy is read", "choose another place"])
        self.refused("unstack", "a.npy", "out", says="{}")
        self.refused("unstack", "a.npy", "out-{}.npy", "--axis", 2, says="--axis")
        self.refused("unstack", "a.npy", "out-{}.npy", "--deflate", 3, says="only for .npz")
        self.refused("unstack", "a.npy", "out-{}.csvx/x", says="{}")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), before)
        self.save("out-1.npy", np.zeros(2))
        self.refused("unstack", "a.npy", "out-{}.npy", says=["out-1.npy exists", "--overwrite"])
        self.assertFalse((self.folder / "out-0.npy").exists())
        self.tessera("unstack", "a.npy", "out-{}.npy", "--overwrite", "--quiet")
        self.assertEqual(np.load(self.folder / "out-2.npy").shape, (4,))

    def test_a_killed_stack_does_not_open_and_goes_on(self):
        rng = np.random.default_rng(7)
        frames = rng.random((40, 200, 300))
        for i, frame in enumerate(frames):
            self.save(f"f{i}.npy", frame)
        words = ["stack", "f*.npy", "s.zarr", "--chunks", "1,20,30", "--threads", "1", "--resume", "--quiet"]
        running = subprocess.Popen([PROGRAM, *words, "--durability", "each"], cwd=self.folder)
        while running.poll() is None and len(list((self.folder / "s.zarr").glob("__zdata__/*"))) < 5:
            time.sleep(0.005)
        running.send_signal(signal.SIGKILL)
        running.wait()
        self.refused("get", "s.zarr", "0,0,0", says="s.zarr")
        self.tessera(*words)
        np.testing.assert_array_equal(self.exported("s.zarr"), frames)

    def test_unstack_goes_on_where_it_was_killed(self):
        values = np.random.default_rng(8).random((24, 20, 30))
        self.save("a.npy", values)
        self.tessera("import", "a.npy", "a.zarr", "--chunks", "4,10,30", "--quiet")
        for end, words in ("npy", []), ("zarr", ["--chunks", "10,10"]):
            command = ["unstack", "a.zarr", f"{end}/f-{{}}.{end}", *words, "--quiet"]
            running = subprocess.Popen([PROGRAM, *command, "--durability", "each"], cwd=self.folder)
            while running.poll() is None and len(list((self.folder / end).glob(f"f-*.{end}"))) < 4:
                time.sleep(0.002)
            running.send_signal(signal.SIGKILL)
            running.wait()
            there = {p.name: p.stat().st_ino for p in (self.folder / end).glob("f-*.npy")}
            self.tessera(*command, "--resume")
            for i, step in enumerate(values):
                np.testing.assert_array_equal(self.exported(f"{end}/f-{i:02}.{end}"), step)
            for name, inode in there.items():
                self.assertEqual((self.folder / end / name).stat().st_ino, inode, "what was there is kept")
            os.remove(self.folder / end / "f-07.npy") if end == "npy" else self.tessera("rm", "zarr/f-07.zarr", "--quiet")
            self.tessera(*command, "--resume")
            np.testing.assert_array_equal(self.exported(f"{end}/f-07.{end}"), values[7])

    def test_unstack_does_not_go_on_with_something_else(self):
        values = np.arange(24.0).reshape(4, 6)
        self.save("a.npy", values)
        for end in "npy", "npz", "ra", "mldf", "csv", "zarr":
            with self.subTest(end):
                out = f"{end}-{{}}.{end}"
                self.tessera("unstack", "a.npy", out, "--quiet")
                self.tessera("unstack", "a.npy", out, "--resume", "--quiet")
                self.save("other.npy", np.full(6, 5.0))
                self.tessera("copy", "other.npy", f"{end}-2.{end}", "--overwrite", "--quiet")
                os.rename(self.folder / f"{end}-1.{end}", self.folder / f"moved.{end}")
                before = sorted(p.name for p in self.folder.iterdir())
                self.refused("unstack", "a.npy", out, "--resume", says=[f"{end}-2.{end}", "step 2", "--overwrite"])
                self.assertIn(f"{end}-1.{end}", {p.name for p in self.folder.iterdir()} - set(before))
                self.save("other.npy", np.full((2, 2), 5.0))
                self.tessera("copy", "other.npy", f"{end}-3.{end}", "--overwrite", "--quiet")
                self.refused("unstack", "a.npy", out, "--resume", says=f"{end}-")
                self.refused("unstack", "a.npy", out, "--resume", "--overwrite", says="choose one")
                self.tessera("unstack", "a.npy", out, "--overwrite", "--quiet")
                np.testing.assert_array_equal(self.exported(f"{end}-2.{end}"), values[2])

    def test_unstack_says_what_it_would_make(self):
        self.save("a.npy", np.zeros((3, 4), "<i2"))
        found = self.tessera_json("unstack", "a.npy", "out/f{}.zarr", "--format", "v3", "--dry-run")
        self.assertEqual((found["dry_run"], found["paths"]), (True, [f"out/f{i}.zarr" for i in range(3)]))
        self.assertIn("3 arrays, 4 <i2, v3", self.tessera("unstack", "a.npy", "out/f{}.zarr", "--format", "v3", "--dry-run"))
        self.assertIn("4 array files, 3 <i2", self.tessera("unstack", "a.npy", "f{}.npy", "--axis", 1, "--dry-run"))
        self.assertEqual([p.name for p in self.folder.iterdir()], ["a.npy"])
        self.save("f1.npy", np.zeros(2))
        self.refused("unstack", "a.npy", "f{}.npy", "--dry-run", says="f1.npy exists")

    def test_names_of_dimensions(self):
        for fmt in "zmeta", "v1", "v2", "v3":
            self.tessera("create", fmt, "--shape", "2,3", "--dtype", "u1", "--format", fmt, "--quiet")
            self.assertEqual(self.tessera("dims", fmt), "no names\n")
            self.tessera("dims", fmt, "y,")
            self.assertEqual(self.tessera_json("dims", fmt), {"path": fmt, "names": ["y", None], "shape": [2, 3]})
            self.assertEqual(self.tessera("dims", fmt), "y    2\n–    3\n")
            self.refused("dims", fmt, "a", says=["1 names", "2 dimensions"])
            self.tessera("dims", fmt, "--remove")
            self.assertEqual(self.tessera("dims", fmt), "no names\n")
            self.assertEqual(self.tessera_json("attrs", fmt), {})
        self.tessera("dims", "v2", "lat,lon")
        self.assertEqual(json.loads((self.folder / "v2/.zattrs").read_text()), {"_ARRAY_DIMENSIONS": ["lat", "lon"]})
        self.tessera("dims", "v3", "lat,lon")
        self.assertEqual(json.loads((self.folder / "v3/zarr.json").read_text())["dimension_names"], ["lat", "lon"])
        for name in "a.npy", "a.npz", "a.ra", "a.mldf":
            self.tessera("export", "v2", name, "--quiet")
            self.refused("dims", name, "y,x", says=[name, "no names of dimensions"])

    def test_attributes_move_and_are_copied(self):
        for fmt in "zmeta", "v1", "v2", "v3":
            self.tessera("create", fmt, "--shape", "2", "--dtype", "u1", "--format", fmt, "--attrs",
                         '{"a": 1, "b": [2], "c": "x"}', "--quiet")
            self.tessera("attrs", fmt, "mv", "b", "B")
            self.assertEqual(self.tessera_json("attrs", fmt), {"a": 1, "B": [2], "c": "x"})
            if fmt == "v3":  # others have them in the order of their names
                self.assertEqual(list(self.tessera_json("attrs", fmt)), ["a", "B", "c"])
            self.refused("attrs", fmt, "mv", "b", "d", says="no attribute 'b'")
            self.refused("attrs", fmt, "mv", "a", "c", says="'c' already")
            self.refused("attrs", fmt, "mv", "a", says="two names")
            self.tessera("create", f"to-{fmt}", "--shape", "2", "--dtype", "u1", "--format", fmt, "--attrs",
                         '{"z": 0, "a": 0}', "--quiet")
            self.tessera("attrs", f"to-{fmt}", "copy", fmt)
            self.assertEqual(self.tessera_json("attrs", f"to-{fmt}"), {"z": 0, "a": 1, "B": [2], "c": "x"})
        self.tessera("group", "g", "--attrs", '{"title": "T"}', "--quiet")
        self.tessera("attrs", "v3", "copy", "g")
        self.assertEqual(self.tessera_json("attrs", "v3", "get", "title"), "T")
        self.refused("attrs", "v3", "copy", "nowhere", says="nowhere")


if __name__ == "__main__":
    main()
