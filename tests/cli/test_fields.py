"""One field of a table: read wherever a path is read, and written by itself; compared with NumPy."""

import json
import unittest

import numpy as np

from program import ProgramTest, main

RANDOM = np.random.default_rng(20261122)
TABLE = np.dtype([("day", "<M8[D]"), ("open", "<f8"), ("close", ">f4"), ("n.x", "u1"), ("m", "<i2", (2, 3)),
                  ("deep", [("re", "<f4"), ("name", "S3")])])


# What v3 has structures for.
PLAIN = np.dtype([("close", "<f4"), ("n", "u1"), ("day", "<i8"), ("name", "S3")])


def table(*shape, dtype=TABLE):
    values = np.zeros(shape, dtype)
    values.view("u1")[...] = RANDOM.integers(1, 100, values.view("u1").shape)
    return values


class Fields(ProgramTest):
    def got(self, path, *words):
        self.tessera("get", path, *words, "--out", "got.npy", "--overwrite", "--quiet")
        return np.load(self.folder / "got.npy")

    def test_each_field_of_each_format(self):
        values = table(7, 5)
        self.save("t.npy", values)
        np.savez(self.folder / "t.npz", t=values, other=values[:2])
        np.savez_compressed(self.folder / "small.npz", t=values)
        for name, words in {"v0.zarr": [], "v1.zarr": ["--format", "v1"], "v2.zarr": ["--format", "v2"]}.items():
            self.tessera("import", "t.npy", name, "--chunks", "2,2", *words, "--quiet")
        self.tessera("copy", "v2.zarr", "t.zip", "--quiet")
        fields = {"day": values["day"], "open": values["open"], "close": values["close"], "n.x": values["n.x"],
                  "m": values["m"], "deep": values["deep"], "deep.re": values["deep"]["re"],
                  "deep.name": values["deep"]["name"]}
        for path in "t.npy", "t.npz::t", "small.npz::t", "v0.zarr", "v1.zarr", "v2.zarr", "t.zip":
            for name, wanted in fields.items():
                with self.subTest(path=path, field=name):
                    got = self.got(f"{path}::{name}")
                    self.assertEqual(got.shape, wanted.shape)
                    self.assertEqual(got.dtype.newbyteorder("="), wanted.dtype.newbyteorder("="))
                    self.assertEqual(got.tobytes(), wanted.astype(got.dtype).tobytes())
            np.testing.assert_array_equal(self.got(f"{path}::m", "1:6:2, 3, ::-1, 1:"), values["m"][1:6:2, 3, ::-1, 1:])

    def test_v3_and_shards(self):
        values = table(9, 10, dtype=PLAIN)
        self.save("t.npy", values)
        self.tessera("import", "t.npy", "v3.zarr", "--chunks", "2,3", "--format", "v3", "--quiet")
        self.tessera("import", "t.npy", "s.zarr", "--chunks", "2,3", "--format", "v3", "--shard", "4,6", "--quiet")
        for path in "v3.zarr", "s.zarr":
            for name in PLAIN.names:
                np.testing.assert_array_equal(self.got(f"{path}::{name}"), values[name])
            self.tessera("set", f"{path}::close", "1:, ::3", "7", "--quiet")
            wanted = values.copy()
            wanted["close"][1:, ::3] = 7
            np.testing.assert_array_equal(self.exported(path), wanted)

    def test_every_command_that_reads(self):
        values = table(50)
        self.save("t.npy", values)
        self.save("close.npy", values["close"])
        self.tessera("import", "t.npy", "t.zarr", "--chunks", "16", "--quiet")
        self.assertEqual(json.loads(self.tessera("get", "t.zarr::open", ":3", "--json")), values["open"][:3].tolist())
        self.tessera("diff", "t.zarr::close", "close.npy")
        self.assertEqual(self.tessera("digest", "t.zarr::close").split()[0], self.tessera("digest", "close.npy").split()[0])
        self.assertEqual(self.tessera_json("stats", "t.zarr::close")["max"], float(str(values["close"].max())))
        self.tessera("copy", "t.zarr::m", "m.zarr", "--format", "v3", "--sel", "10:", "--quiet")
        np.testing.assert_array_equal(self.exported("m.zarr"), values["m"][10:])
        self.tessera("export", "t.zarr::day", "day.npy", "--quiet")
        np.testing.assert_array_equal(np.load(self.folder / "day.npy"), values["day"])
        self.tessera("import", "t.npy::close", "close.zarr", "--quiet")
        np.testing.assert_array_equal(self.exported("close.zarr"), values["close"])

    def test_writing_one_field(self):
        values = table(20, 6)
        self.save("t.npy", values)
        for form in "zmeta", "v2":
            self.tessera("import", "t.npy", "t.zarr", "--chunks", "7,4", "--format", form, "--overwrite", "--quiet")
            wanted = values.copy()
            self.tessera("set", "t.zarr::close", "3:9, ::2", "2.5", "--quiet")
            wanted["close"][3:9, ::2] = 2.5
            part = RANDOM.integers(0, 99, (20, 2, 3)).astype("<i2")
            self.tessera("set", "t.zarr::m", ":, 1, ::-1, ::-1", self.save("part.npy", part), "--quiet")
            wanted["m"][:, 1, ::-1, ::-1] = part
            self.tessera("set", "t.zarr::deep.re", "19, 5", "-1", "--quiet")
            wanted["deep"]["re"][19, 5] = -1
            self.assertEqual(self.exported("t.zarr").tobytes(), wanted.tobytes())

    def test_random_regions(self):
        values = table(13, 11)
        self.save("t.npy", values)
        self.tessera("import", "t.npy", "t.zarr", "--chunks", "4,3", "--quiet")
        names = ["day", "open", "close", "m", "deep.re"]
        for _ in range(25):
            name = names[RANDOM.integers(len(names))]
            field = values["deep"]["re"] if name == "deep.re" else values[name]
            a, b = sorted(RANDOM.integers(0, 14, 2))
            step = int(RANDOM.integers(1, 4))
            np.testing.assert_array_equal(self.got(f"t.zarr::{name}", f"{a}:{b}:{step}, ::-{step}"),
                                          field[a:b:step, ::-step])

    def test_what_is_refused(self):
        self.save("t.npy", table(4))
        self.save("plain.npy", np.arange(4))
        np.savez(self.folder / "t.npz", t=table(4), u=table(2))
        self.tessera("import", "t.npy", "t.zarr", "--quiet")
        self.tessera("import", "plain.npy", "plain.zarr", "--quiet")
        for path in "t.zarr::volume", "t.npy::volume", "t.npz::t::volume", "t.zarr::deep.im":
            self.refused("get", path, says="no field")
        self.refused("get", "t.zarr::volume", says="day, open, close, n.x, m, deep")
        for path in "plain.zarr::close", "plain.npy::close":
            self.refused("get", path, says=["without fields", "leave out '::close'"])
        self.refused("get", "t.npz::v", says="v")
        self.refused("set", "t.zarr::close", ":", "text")
        self.refused("set", "t.zarr::volume", ":", "1", says="no field")
        self.refused("set", "t.zarr::close", ":", self.save("two.npy", np.zeros(4, "f8")), says="values are not converted")


if __name__ == "__main__":
    main()
