"""References as arrays: what `stack --virtual` writes is what NumPy stacks, read by Tessera and by zarr through fsspec; and
references of strangers lead nowhere but to files below their own folder."""
import base64
import json
import os

import numpy as np

from program import ProgramTest, main

try:
    import fsspec
    import zarr
    if not zarr.__version__.startswith("2."):
        zarr = None  # it takes no mappings; tests/peers reads references with it
except ImportError:
    zarr = None

DTYPES = ["?", "i1", "<i2", ">i4", "<u8", "<f2", ">f4", "<f8", "<c8", "S5", "<U3", "<M8[s]", [("a", "<i2"), ("b", ">f8")]]


def random_values(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "U":
        return rng.integers(97, 123, (*shape, 3)).astype("<u4").view("<U3")[..., 0]
    values = np.zeros(shape, dtype)
    values.reshape(-1).view("u1")[...] = rng.integers(0, 2 if dtype.kind == "b" else 120, values.nbytes)
    return values


class Virtual(ProgramTest):
    def write(self, refs, name="x.refs.json", **more):
        (self.folder / name).write_text(json.dumps({"version": 1, "refs": refs, **more}))
        return name

    def array(self, chunk, shape=(3,), dtype="<i2", **more):
        """References of an array of one chunk."""
        return {".zarray": json.dumps({"zarr_format": 2, "shape": shape, "chunks": shape, "dtype": dtype, "order": "C",
                                       "compressor": None, "filters": None, "fill_value": 0}), "0": chunk, **more}

    def check(self, name, expected):
        self.assertEqual(self.exported(name).tobytes(), np.ascontiguousarray(expected).tobytes())
        if zarr is None or expected.dtype.names or expected.size == 0:
            return
        back = os.getcwd()
        os.chdir(self.folder)  # what relative paths are relative to for fsspec
        try:
            mapper = fsspec.get_mapper("reference://", fo=name, skip_instance_cache=True)
            got = zarr.open(mapper, mode="r")[...]
        finally:
            os.chdir(back)
        self.assertEqual(np.ascontiguousarray(got).tobytes(), np.ascontiguousarray(expected).tobytes())

    def test_stacks_of_files_as_numpy_and_zarr(self):
        rng = np.random.default_rng(18)
        for number in range(26):
            rank = int(rng.integers(1, 4))
            shape = tuple(int(n) for n in rng.integers(1, 6, rank))
            dtype = DTYPES[number % len(DTYPES)]
            end = ["npy", "npz", "ra"][number % 3]
            if end == "ra" and np.dtype(dtype).kind in "bSUMV":
                end = "npy"
            concat = number % 2 == 1
            axis = int(rng.integers(0, rank if concat else rank + 1))
            fortran = bool(rng.integers(0, 2))
            parts, names = [], []
            for i in range(int(rng.integers(1, 5))):
                own = list(shape)
                if concat:
                    own[axis] = int(rng.integers(1, 4))
                values = random_values(rng, own, dtype)
                name = f"d{number}/p{i}.{end}"
                (self.folder / f"d{number}").mkdir(exist_ok=True)
                ordered = np.asfortranarray(values) if fortran else values
                if end == "npz":
                    np.savez(self.folder / name, x=ordered)
                elif end == "npy":
                    np.save(self.folder / name, ordered)
                else:
                    np.save(self.folder / "one.npy", ordered)
                    self.tessera("copy", "one.npy", name, "--quiet")
                    values = self.exported(name)  # in the byte order of .ra
                parts.append(values)
                names.append(name)
            with self.subTest(dtype=dtype, end=end, axis=axis, concat=concat, fortran=fortran):
                words = ["--axis", axis, "--virtual", "--quiet"]
                if concat:
                    self.tessera("concat", *names, f"{number}.refs.json", *words)
                    expected = np.concatenate(parts, axis)
                else:
                    self.tessera("stack", *names, f"{number}.refs.json", *words, "--new-axis")
                    expected = np.stack(parts, axis)
                expected = expected.astype(parts[0].dtype)  # NumPy has turned the bytes
                self.check(f"{number}.refs.json", expected)

    def test_large_parts_are_cut(self):
        values = np.arange(3 * 2000 * 1500, dtype="<i4").reshape(3, 2000, 1500)
        for i, part in enumerate(values):
            self.save(f"{i}.npy", part)
        found = self.tessera_json("stack", "?.npy", "x.refs.json", "--virtual", "--dims", "t,y,x")
        self.assertEqual((found["shape"], found["files"]), ([3, 2000, 1500], 3))
        self.assertLess(found["chunks"][1], 2000)
        self.assertEqual(self.tessera_json("dims", "x.refs.json")["names"], ["t", "y", "x"])
        self.assertEqual(self.tessera_json("get", "x.refs.json", "1, 1999, -2:"), values[1, 1999, -2:].tolist())
        self.check("x.refs.json", values)

    def test_everything_that_reads(self):
        values = np.arange(24, dtype="<f4").reshape(4, 6)
        os.mkdir(self.folder / "parts")
        for i, row in enumerate(values):
            self.save(f"parts/{i}.npy", row)
        self.tessera("stack", "parts/*.npy", "x.refs.json", "--virtual", "--quiet")
        self.assertEqual(self.tessera_json("info", "x.refs.json")["shape"], [4, 6])
        self.assertEqual(self.tessera_json("stats", "x.refs.json")["max"], 23)
        self.assertIn("sound", self.tessera("verify", "x.refs.json"))
        self.assertIn("x.refs.json", self.tessera("tree", "."))
        self.tessera("copy", "x.refs.json", "y.zarr", "--quiet")
        self.tessera("diff", "x.refs.json", "y.zarr")
        self.tessera("reduce", "x.refs.json", "sum.npy", "--axis", 0, "--with", "max", "--quiet")
        self.assertEqual(np.load(self.folder / "sum.npy").tolist(), values[-1].tolist())
        self.tessera("calc", "double.npy", "2 * a", "a=x.refs.json", "--quiet")
        np.testing.assert_array_equal(np.load(self.folder / "double.npy"), 2 * values)
        before = (self.folder / "x.refs.json").read_bytes()
        for words in (["set", "x.refs.json", "0, 0", "1"], ["resize", "x.refs.json", "9,9"],
                      ["append", "x.refs.json", "parts/0.npy"], ["attrs", "x.refs.json", "set", "a", "1"]):
            self.refused(*words, says=["x.refs.json", "never changed"])
        self.assertEqual((self.folder / "x.refs.json").read_bytes(), before)

    def test_what_refs_writes_is_read(self):
        values = np.arange(30, dtype="<i4").reshape(5, 6)
        self.save("a.npy", values)
        for fmt in "v2", "v3":
            self.tessera("import", "a.npy", f"g/{fmt}", "--format", fmt, "--chunks", "2,4", "--quiet")
        for path in "a.npy", "g/v2", "g/v3":
            self.tessera("refs", path, "--out", "x.json")  # absolute paths, below the folder
            np.testing.assert_array_equal(self.exported("x.json"), values)
        self.tessera("import", "a.npy", "h/a", "--format", "v2", "--quiet")
        self.tessera("refs", "h", "--out", "h.json")
        np.testing.assert_array_equal(self.exported("h.json/a"), values)
        os.mkdir(self.folder / "deep")
        self.tessera("refs", "a.npy", "--out", "deep/x.json")
        self.refused("get", "deep/x.json", says=["a.npy", "below", "--allow-outside"])
        self.assertIn("29", self.tessera("get", "deep/x.json", "--allow-outside"))

    def test_values_in_the_document(self):
        chunk = np.array([1, -2, 300], "<i2").tobytes()
        self.write(self.array("base64:" + base64.b64encode(chunk).decode()))
        self.assertEqual(self.exported("x.refs.json").tolist(), [1, -2, 300])
        self.write(self.array("AbCdEf"))
        self.assertEqual(self.exported("x.refs.json").tobytes(), b"AbCdEf")
        self.write(self.array("base64:A"))
        self.refused("get", "x.refs.json", says=['"0"', "base64"])

    def test_references_lead_nowhere_else(self):
        outside = self.folder / "secret"
        outside.write_bytes(b"SECRET" * 100)
        inside = self.folder / "in"
        inside.mkdir()
        (inside / "plain").write_bytes(b"abcdef")
        (inside / "link").symlink_to("../secret")
        (inside / "folder").symlink_to("..")
        (inside / "down").symlink_to("plain")
        os.mkfifo(inside / "fifo")
        for hidden in ".hidden/key", ".netrc", ".tessera/key", ".z/.zarray":
            (inside / hidden).parent.mkdir(exist_ok=True)
            (inside / hidden).write_bytes(b"SECRET" * 100)
        name = "in/x.json"
        self.write(self.array(["plain"]), name)
        self.assertEqual(self.exported(name).tobytes(), b"abcdef")
        for path, says in (("../secret", "below"), (str(outside), "below"), ("/etc/passwd", "below"),
                           ("a/../../secret", "below"), ("./../in/../secret", "below"), ("..", "below"), ("", "no path"),
                           ("file:///etc/passwd", "URL"), ("https://example.org/x", "URL"), ("s3://b/k", "URL"),
                           ("{{u}}/x", "template"), ("a\0b", "no path"), ("x" * 5000, "no path"),
                           ("link", "symbolic link"), ("folder/secret", "symbolic link"), ("down", "symbolic link"),
                           ("fifo", "FIFO"), (".", "below"), ("gone", "gone"), (".hidden/key", "is hidden"),
                           (".netrc", "is hidden"), (".tessera/key", "is hidden"), (".z/.zarray", "is hidden"),
                           (str(inside / ".netrc"), "is hidden")):
            for place in [path], [path, 0, 6]:
                with self.subTest(place):
                    self.write(self.array(place), name)
                    line = self.refused("get", name, says=says)
                    self.assertNotIn("SECRET", line)
        for path in "../secret", str(outside), "link", "folder/secret", ".netrc":
            self.write(self.array([path, 6, 6]), name)
            self.assertEqual(self.exported(name, "--allow-outside").tobytes(), b"SECRET")
        self.write(self.array(["http://127.0.0.1:1/x"]), name)
        self.refused("get", name, "--allow-outside", says="http://127.0.0.1:1/x")
        self.write(self.array(["file:///etc/passwd"]), name)
        self.refused("get", name, "--allow-outside", says="no kind of store")

    def test_documents_that_lie(self):
        (self.folder / "data").write_bytes(b"0123456789")
        for place, says in ((["data", 5, 6], "5"), (["data", 11, 1], "11"), (["data", 2**63, 2**63], "end beyond"),
                            (["data", 0, 2**62], "bytes"), (["data", -1, 6], "-1"), (["data", 0.5, 6], "0"),
                            (["data", 0], "expected text"), (["data", 0, 6, 1], "expected text"), ([], "expected text"),
                            ([5], "expected text"), (5, "expected text"), (None, "expected text"), ({}, "expected text")):
            with self.subTest(place):
                self.write(self.array(place))
                self.refused("get", "x.refs.json", says=says)
        for key in "../x", "/x", "a//b", "", "a/./b", "x\0":
            self.write(self.array("AbCdEf", **{key: "text"}))
            self.refused("get", "x.refs.json", says="reference")
        for more in {"templates": {"u": "data"}}, {"gen": [{"key": "a"}]}:
            self.write(self.array("AbCdEf"), **more)
            self.refused("get", "x.refs.json", says=next(iter(more)))
        self.write(self.array("AbCdEf"), templates={}, gen=[])
        self.assertEqual(self.exported("x.refs.json").tobytes(), b"AbCdEf")
        self.write(self.array("AbCdEf"), version=2)
        self.refused("get", "x.refs.json", says="version")
        for text in "", "{", "[]", '{"refs": 5}', '{"a": ' * 5000, '{"version": 1}':
            (self.folder / "x.refs.json").write_text(text)
            self.refused("get", "x.refs.json", says="x.refs.json")
        # Tessera's own folder is not taken from strangers.
        self.write(self.array("AbCdEf", **{".tessera/batch/journal": "nonsense", ".tessera/unfinished.json": "{}"}))
        self.assertEqual(self.exported("x.refs.json").tobytes(), b"AbCdEf")
        self.write(self.array("AbCdEf", **{str(i): "text" for i in range(1, 100_000)}))
        self.refused("get", "x.refs.json", "--max-memory", "4M", says="--max-memory")

    def test_files_that_cannot_be_referred_to(self):
        self.save("a.npy", np.zeros((2, 3)))
        self.save("b.npy", np.zeros((2, 3), ">f8"))
        self.save("c.npy", np.zeros((2, 4)))
        self.save("f.npy", np.asfortranarray(np.zeros((2, 3))))
        np.savez_compressed(self.folder / "d.npz", x=np.zeros((2, 3)))
        self.tessera("import", "a.npy", "a.zarr", "--quiet")
        os.mkdir(self.folder / "deep")
        before = sorted(p.name for p in self.folder.iterdir())
        for words, says in ((["a.npy", "b.npy", "x.json"], ["b.npy", "dtype"]), (["a.npy", "c.npy", "x.json"], "c.npy"),
                            (["a.npy", "f.npy", "x.json"], ["f.npy", "order"]), (["d.npz", "x.json"], "deflated"),
                            (["a.zarr", "x.json"], "a.zarr"), (["a.npy", "x.zarr"], "json"),
                            (["a.npy", "deep/x.json"], ["a.npy", "--allow-outside"]),
                            (["a.npy", "x.json", "--codec", "zlib"], "--codec"),
                            (["a.npy", "x.json", "--dtype", "f4"], "--dtype"),
                            (["a.npy", "x.json", "--dims", "a"], "--dims")):
            with self.subTest(words):
                self.refused("stack", *words, "--virtual", says=says)
        self.assertIn("would refer", self.tessera("stack", "a.npy", "x.json", "--virtual", "--dry-run"))
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), before)
        self.assertEqual(list((self.folder / "deep").iterdir()), [])
        self.tessera("stack", "a.npy", "deep/x.json", "--virtual", "--allow-outside", "--quiet")
        self.refused("get", "deep/x.json", says="--allow-outside")
        self.assertEqual(self.exported("deep/x.json", "--allow-outside").shape, (1, 2, 3))
        self.refused("stack", "a.npy", "deep/x.json", "--virtual", "--allow-outside", says="exists")
        self.save("a.npy", np.zeros((1, 1)))
        self.refused("get", "deep/x.json", "--allow-outside", says=["a.npy", "anew"])


if __name__ == "__main__":
    main()
