"""tessera refs: the bytes that references lead to are the elements, without anybody's decoder between; and what is damaged
or lies in no plain ranges is refused."""

import json
import struct
import unittest
import zipfile

import numpy as np

import program


class References(program.ProgramTest):
    def read(self, refs, key):
        place = refs["refs"][key]
        with open(place[0], "rb") as file:
            file.seek(place[1])
            return file.read(place[2])

    def whole(self, path, expected, prefix=""):
        """Of an array file: its chunks put together."""
        refs = json.loads(self.tessera("refs", path))
        self.assertEqual(refs["version"], 1)
        meta = json.loads(refs["refs"][prefix + ".zarray"])
        array = np.zeros(meta["shape"], meta["dtype"])
        for index in np.ndindex(*(-(-n // c) for n, c in zip(meta["shape"], meta["chunks"]))):
            key = prefix + (".".join(map(str, index)) or "0")
            part = np.frombuffer(self.read(refs, key), meta["dtype"]).reshape(meta["chunks"], order=meta["order"])
            array[tuple(slice(i * c, i * c + c) for i, c in zip(index, meta["chunks"]))] = part
        np.testing.assert_array_equal(array, expected)
        return meta

    def test_array_files(self):
        values = np.arange(24, dtype=">i2").reshape(2, 3, 4)
        np.save(self.path("a.npy"), np.asfortranarray(values))
        self.whole("a.npy", values)
        self.tessera("export", "a.npy", "a.ra")
        self.whole("a.ra", values)
        np.savez(self.path("a.npz"), x=values, long=np.zeros(3 << 20))
        self.whole("a.npz", values, "x/")
        self.assertEqual(self.whole("a.npz::long", np.zeros(3 << 20))["chunks"], [1 << 20])

    def test_directories(self):
        values = np.arange(30, dtype="<i4").reshape(5, 6)
        np.save(self.path("a.npy"), values)
        self.tessera("import", "a.npy", "a.zarr", "--format", "v3", "--chunks", "2,3", "--shard", "4,6", "--codec", "none")
        refs = json.loads(self.tessera("refs", "a.zarr"))
        self.assertEqual(self.read(refs, "1.1"), values[2:4, 3:].tobytes())
        self.assertEqual(sorted(refs["refs"]), [".zarray", ".zattrs"] + [f"{i}.{j}" for i in range(3) for j in range(2)])
        self.tessera("copy", "a.zarr", "plain.zarr", "--format", "v2", "--quiet")
        refs = json.loads(self.tessera("refs", "plain.zarr"))
        self.assertEqual(refs["refs"]["0.0"], [self.path("plain.zarr/0/0")])

    def test_archives_that_lie(self):
        np.savez(self.path("good.npz"), x=np.arange(5))
        with open(self.path("good.npz"), "rb") as file:
            good = file.read()
        self.tessera("refs", "good.npz")
        with zipfile.ZipFile(self.path("good.npz")) as archive:
            offset = archive.infolist()[0].header_offset
        longer = bytearray(good)
        struct.pack_into("<H", longer, offset + 28, 0xFFFF)  # the length of the local header's extra field
        for number, bad in enumerate((bytes(longer), good[:40], good[:-30], b"PK\x03\x04" + bytes(60))):
            with open(self.path("bad.npz"), "wb") as file:
                file.write(bad)
            self.assertIn("bad.npz", self.run_program("refs", "bad.npz", "--out", "refs.json").stderr, number)
            self.assertEqual(self.run_program("refs", "bad.npz", "--out", "refs.json").returncode, 2, number)
        np.savez_compressed(self.path("small.npz"), x=np.arange(5))
        self.assertIn("small.npz::x: is deflated", self.run_program("refs", "small.npz").stderr)
        self.assertFalse((self.folder / "refs.json").exists())

    def test_what_cannot_be_said_is_left_out_on_request(self):
        np.savez(self.path("plain.npz"), x=np.arange(5))
        np.savez_compressed(self.path("both.npz"), y=np.arange(6))
        with zipfile.ZipFile(self.path("both.npz"), "a") as both, zipfile.ZipFile(self.path("plain.npz")) as plain:
            both.writestr("x.npy", plain.read("x.npy"))
        self.tessera("import", "plain.npz", "g/x", "--format", "v3", "--quiet")
        self.tessera("import", "both.npz::y", "g/y", "--format", "v3", "--codec", "zstd", "--quiet")
        self.tessera("create", "g/z", "--shape", "7", "--chunks", "[3,4],", "--dtype", "<i4", "--format", "v3", "--quiet")
        for path, kept, lost in ("both.npz", "x", "y"), ("g", "y", "z"):
            self.refused("refs", path, says=lost)
            result = self.run_program("refs", path, "--skip-bad")
            self.assertEqual((result.returncode, len(result.stderr.splitlines())), (0, 1), result.stderr)
            self.assertRegex(result.stderr, f"left out: .*{lost}")
            refs = json.loads(result.stdout)["refs"]
            self.assertIn(f"{kept}/.zarray", refs)
            self.assertFalse([key for key in refs if key.startswith(lost)])
        self.refused("refs", "both.npz::none", "--skip-bad", says="no array 'none'")

    def write_refs(self, text):
        (self.folder / "x.refs.json").write_text(text)

    def test_broken_json_is_named_with_its_place(self):
        self.tessera("create", "a.zarr", "--shape", "4", "--dtype", "<i4", "--format", "v2", "--quiet")
        whole = self.tessera("refs", "a.zarr")
        says = ["x.refs.json: a file of references whose JSON is broken", "line 1, column"]
        for text in "", "[1", whole.replace("\n", "")[:-9], '{"version": 1, "refs": {"a": "' + "long" * 30000:
            self.write_refs(text)
            for words in ["info", "x.refs.json"], ["copy", "x.refs.json", "out.zarr"], ["get", "x.refs.json"]:
                self.assertLess(len(self.refused(*words, says=says)), 1000)
            self.assertIn(says[0], self.tessera("verify", "x.refs.json", code=1))
        self.write_refs('{"a": 1}')
        self.refused("info", "x.refs.json", says='no references: expected an object with "version" and "refs"')
        (self.folder / "x.json").write_text('{"a": ')
        self.refused("info", "x.json", says="is no array file")

    def test_what_takes_too_much_memory_is_not_broken(self):
        refs = {str(n): "x" for n in range(100_000)}
        (self.folder / "many.refs.json").write_text(json.dumps({"version": 1, "refs": refs}))
        self.assertNotIn("broken", self.refused("info", "many.refs.json", "--max-memory", "32M", says="--max-memory"))

    def test_base64_that_is_broken_is_refused(self):
        meta = json.dumps({"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|u1", "fill_value": 0, "order": "C",
                           "compressor": None, "filters": None})
        for text, says in (("AAEC*Aw==", "at character 5"), ("AAE\nCAw==", "at character 4"), ("AAECAw==AA", "padding"),
                           ("AAECAw", "no base64"), ("AAECAw==", None)):
            self.write_refs(json.dumps({"version": 1, "refs": {".zarray": meta, "0": f"base64:{text}"}}))
            if says:
                self.refused("get", "x.refs.json", says=['reference "0"', says])
            else:
                self.assertEqual(self.tessera("get", "x.refs.json").split(), ["[0", "1", "2", "3]"])


if __name__ == "__main__":
    unittest.main()
