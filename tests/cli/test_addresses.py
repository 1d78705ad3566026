"""Addresses as URL pipelines (ZEP 8): read as synonyms of paths, and printed by `info --json`."""

import json
import unittest

import numpy as np

from program import ProgramTest, main

VALUES = np.arange(12, dtype="<i4").reshape(3, 4)


class Addresses(ProgramTest):
    def setUp(self):
        super().setUp()
        self.folder = self.folder.resolve()
        self.save("values.npy", VALUES)
        self.tessera("group", "g.zarr", "--format", "v3", "--quiet")
        self.tessera("import", "values.npy", "g.zarr/sub/a b", "--format", "v3", "--quiet")
        self.tessera("import", "values.npy", "two.zarr", "--format", "v2", "--quiet")
        self.tessera("copy", "g.zarr", "g.zip", "--quiet")
        self.tessera("copy", "two.zarr", "two.zip", "--quiet")

    def get(self, path):
        return np.array(json.loads(self.tessera("get", path, "--json")))

    def test_they_are_read(self):
        root = f"file://{self.folder}"
        for address in ("g.zarr|zarr3:sub/a%20b", "g.zarr/|zarr3:sub/a%20b/", "g.zarr/sub/a b|zarr3:", "two.zarr|zarr2:",
                        "two.zarr/|zarr:", f"{root}/two.zarr", f"{root}/two.zarr/|zarr2:", f"{root}/g.zarr/sub/a%20b/|zarr3:",
                        "two.zip|zip:|zarr2:", "two.zip|zip:", "g.zip|zip:sub/a%20b/|zarr3:", "g.zip|zip:sub|zarr3:a%20b",
                        f"{root}/g.zip|zip:|zarr3:sub/a%20b", f"file://localhost{self.folder}/two.zip|zip:|zarr2:",
                        f"{root}/values.npy"):
            with self.subTest(address):
                np.testing.assert_array_equal(self.get(address), VALUES)

    def test_commands_take_them(self):
        self.tessera("copy", "g.zip|zip:|zarr3:", f"file://{self.folder}/copy.zarr", "--quiet")
        self.tessera("diff", "copy.zarr|zarr3:", "g.zarr/|zarr3:")
        self.tessera("set", f"file://{self.folder}/two.zarr/|zarr2:", "0, 0", "7", "--quiet")
        self.assertEqual(self.get("two.zarr")[0, 0], 7)
        self.assertIn("sound", self.tessera("verify", "g.zip|zip:|zarr3:"))
        self.assertIn("a b", self.tessera("tree", "g.zarr|zarr3:sub"))
        # Only paths are addresses.
        self.tessera("attrs", "two.zarr", "set", "link", "x|zip:")
        self.assertEqual(self.tessera("attrs", "two.zarr", "get", "link"), '"x|zip:"\n')

    def test_they_are_printed_and_read_back(self):
        quoted = str(self.folder)
        for path, address in (("g.zarr", "g.zarr/|zarr3:"), ("g.zarr/sub/a b", "g.zarr/sub/a%20b/|zarr3:"),
                              ("two.zarr/", "two.zarr/|zarr2:"), ("two.zip", "two.zip|zip:|zarr2:"),
                              ("g.zip/sub/a b", "g.zip|zip:sub/a%20b/|zarr3:"), ("g.zip", "g.zip|zip:|zarr3:")):
            with self.subTest(path):
                printed = self.tessera_json("info", path)["address"]
                self.assertEqual(printed, f"file://{quoted}/{address}")
                self.assertEqual(self.tessera_json("info", printed)["address"], printed)
        self.tessera("import", "values.npy", "old.zarr", "--format", "v1", "--quiet")
        for path in "old.zarr", "values.npy", "g.zarr/sub":  # nobody else has a scheme for them, or no format is there
            self.assertNotIn("address", self.tessera_json("info", path))

    def test_what_is_none_and_what_is_not_read(self):
        self.refused("get", "two.zarr|icechunk:", says="there is no scheme icechunk:")
        self.refused("get", "g.zip|zip:inner.zip|zip:", says="there is no scheme zip: in Tessera's addresses at this place")
        self.refused("get", "file://host/x", says="file:///")
        self.refused("get", "a|b", says="a|b")
        (self.folder / "two.zarr").rename(self.folder / "odd|zip:")  # a name that exists is a name
        np.testing.assert_array_equal(self.get("odd|zip:"), VALUES)


if __name__ == "__main__":
    main()
