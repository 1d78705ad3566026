"""Tiles, values and rows of `tessera serve` against NumPy."""

import json
import os
import urllib.parse

import numpy as np

from program import main
from serving import ServeTest


class Tiles(ServeTest):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(7)
        self.numbers = rng.integers(-1000, 1000, (300, 410)).astype("<i2")
        self.large = np.array([[2**63 - 1, -2**63], [5, 2**53 + 1]], "<i8")
        self.table = np.array([(1, b"one"), (2, b"two")], [("n", "<i4"), ("name", "S3")])
        np.savez(self.path("data.npz"), numbers=self.numbers, large=self.large, table=self.table)
        self.server = self.serve("data.npz")

    def get(self, route, code=200, **parameters):
        answer = self.server.get(f"api/{route}?{urllib.parse.urlencode(parameters)}")
        self.assertEqual(answer.status, code, answer.body)
        return answer

    def json(self, route, **parameters):
        return self.get(route, **parameters).json()

    def tile(self, **parameters):
        answer = self.get("tile", path="numbers", axes="0,1", **parameters)
        shape = [int(n) for n in answer.headers["X-Tessera-Shape"].split(",")]
        return np.frombuffer(answer.body, answer.headers["X-Tessera-Dtype"]).reshape(shape), answer.headers

    def test_elements_keep_their_dtype(self):
        found, headers = self.tile(level="0,0", tile="1,1", v="x")
        self.assertEqual(found.dtype, np.dtype("<i2"))
        np.testing.assert_array_equal(found, self.numbers[256:, 256:])
        self.assertIn("immutable", headers["Cache-Control"])
        self.assertEqual(headers["X-Tessera-Sampled"], "0")

    def test_windows_at_the_end_are_cut(self):
        for level in (1, 3):
            size = 2**level
            for word, function in (("mean", np.mean), ("min", np.min), ("max", np.max)):
                found, _ = self.tile(level=f"{level},{level}", tile="0,0", **{"with": word})
                rows, columns = found.shape
                for i, j in ((0, 0), (rows - 1, 0), (7, columns - 1), (rows - 1, columns - 1)):
                    window = self.numbers[i * size:(i + 1) * size, j * size:(j + 1) * size]
                    self.assertAlmostEqual(float(found[i, j]), float(function(window)), places=3)

    def test_axes_may_be_turned(self):
        answer = self.get("tile", path="numbers", axes="1,0", level="0,0", tile="0,0")
        found = np.frombuffer(answer.body, "<i2").reshape(256, 256)
        np.testing.assert_array_equal(found, self.numbers.T[:256, :256])

    def test_values_are_exact(self):
        self.assertEqual(self.json("value", path="large", at="0,0")["text"], str(2**63 - 1))
        self.assertEqual(self.json("value", path="large", at="1,1")["text"], str(2**53 + 1))

    def test_rows_of_a_table(self):
        self.assertEqual(self.json("rows", path="table", row=1, rows=5)["rows"], [["2", "two"]])

    def test_fields_of_structures(self):
        dtype = np.dtype([("close", "<f4"), ("name", "S2"), ("at", [("x", "<i2"), ("y", "<i2")]), ("grid", "<u2", (3, 4))])
        values = np.zeros((40, 50), dtype)
        values["close"] = np.arange(2000).reshape(40, 50)
        values["at"]["y"] = values["close"] / 3
        values["grid"] = np.arange(2000 * 12).reshape(40, 50, 3, 4) % 60000
        values[:, 45:] = np.zeros((), dtype)  # chunks that are not stored
        np.savez(self.path("fields.npz"), prices=values)
        self.tessera("import", "fields.npz::prices", "fields.zarr", "--chunks", "16,15", "--format", "v2", "--quiet")
        server = self.serve("fields.npz", "fields.zarr")

        def ask(route, **parameters):
            answer = server.get(f"api/{route}?{urllib.parse.urlencode(parameters)}")
            self.assertEqual(answer.status, 200, answer.body)
            return answer

        def tile(path, field, axes="0,1", **parameters):
            answer = ask("tile", path=path, field=field, axes=axes, level="0,0", tile="0,0", **parameters)
            shape = [int(n) for n in answer.headers["X-Tessera-Shape"].split(",")]
            return np.frombuffer(answer.body, answer.headers["X-Tessera-Dtype"]).reshape(shape)

        for path in "fields.npz/prices", "fields.zarr":
            self.assertEqual(ask("picture", path=path).json()["pictures"], ["close", "at.x", "at.y", "grid"])
            self.assertEqual(ask("picture", path=path, field="grid").json()["shape"], [40, 50, 3, 4])
            np.testing.assert_array_equal(tile(path, "close"), values["close"])
            np.testing.assert_array_equal(tile(path, "at.y"), values["at"]["y"])
            np.testing.assert_array_equal(tile(path, "grid", axes="3,0", at="0,7,2,0"), values["grid"][:, 7, 2].T)
            np.testing.assert_array_equal(tile(path, "grid", axes="2,3", at="39,44,0,0"), values["grid"][39, 44])
            self.assertEqual(ask("value", path=path, field="close", at="3,4").json()["text"], "154.0")
            line = ask("profile", path=path, field="at.y", axis=0, at="0,9").json()
            np.testing.assert_array_equal(line["values"], values["at"]["y"][:, 9])
            rows = ask("rows", path=path, field="close", axes="0,1", row=1, rows=2, column=3, columns=2).json()["rows"]
            self.assertEqual(rows, [["53.0", "54.0"], ["103.0", "104.0"]])
        self.tessera("set", "fields.zarr::close", "0:16,0:15", "7", "--quiet")
        self.assertEqual(tile("fields.zarr", "close")[3, 4], 7)  # the new version of the chunk
        np.testing.assert_array_equal(tile("fields.zarr", "at.y"), values["at"]["y"])
        for field, code in (("nothing", 404), ("name", 501)):
            self.assertEqual(server.get(f"api/tile?path=fields.zarr&field={field}&axes=0,1&level=0,0&tile=0,0").status, code)
        self.assertEqual(server.get("api/value?path=&field=x&at=0,0").status, 400)

    def test_what_elements_stand_for(self):
        """Tiles hold codes; api/picture says what they stand for, by the rules of every command."""
        codes = np.arange(-20, 20, dtype="i1").reshape(5, 8)
        self.save("codes.npy", codes)
        packed = {"scale_factor": -0.5, "add_offset": 10, "_FillValue": -20, "missing_value": [-19, -18], "valid_min": 5}
        for name, attributes in (("packed", packed), ("unsigned", {"_Unsigned": "true", "_FillValue": -1}), ("plain", {})):
            self.tessera("import", "codes.npy", f"m/{name}", "--format", "v3", "--chunks", "3,3", "--quiet")
            for key, value in attributes.items():
                self.tessera("attrs", f"m/{name}", "set", key, json.dumps(value), "--quiet")
        server = self.serve("m")

        def ask(route, **parameters):
            answer = server.get(f"api/{route}?{urllib.parse.urlencode(parameters)}")
            self.assertEqual(answer.status, 200, answer.body)
            return answer

        facts = ask("picture", path="packed").json()
        self.assertEqual((facts["packing"], facts["missing"]), ({"scale": -0.5, "offset": 10}, [-20, -19, -18]))
        self.assertEqual(ask("value", path="packed", at="0,1").json(), {"at": [0, 1], "text": "-19", "missing": True})
        self.assertEqual(ask("value", path="packed", at="1,1").json(), {"at": [1, 1], "text": "-11", "missing": False})
        rows = ask("rows", path="packed", axes="0,1", rows=1, columns=4).json()["rows"]
        self.assertEqual(rows, [[None, None, None, "-17"]])
        line = ask("profile", path="packed", axis=1, at="0,0").json()["values"]
        self.assertEqual(line, [None, None, None, *(10 - 0.5 * codes[0, 3:])])
        # A negative scale turns the greatest code into the least value.
        tile = ask("tile", path="packed", axes="0,1", level="1,1", tile="0,0", **{"with": "min"})
        self.assertEqual(np.frombuffer(tile.body, tile.headers["X-Tessera-Dtype"])[-1], codes.max())
        facts = ask("picture", path="unsigned").json()
        self.assertEqual((facts["packing"], facts["missing"]), (None, [255]))
        tile = ask("tile", path="unsigned", axes="0,1", level="0,0", tile="0,0")
        self.assertEqual(tile.headers["X-Tessera-Dtype"], "|u1")
        np.testing.assert_array_equal(np.frombuffer(tile.body, "u1"), codes.view("u1").ravel())
        self.assertEqual(ask("value", path="unsigned", at="0,0").json()["text"], "236")
        self.assertEqual(ask("rows", path="unsigned", axes="0,1", row=2, column=2, rows=1, columns=3).json()["rows"], [["254", None, "0"]])
        facts = ask("picture", path="plain").json()
        self.assertEqual((facts["packing"], facts["missing"], facts["time"], facts["colours"]), (None, [], None, None))

    def test_which_arrays_are_colours(self):
        for name, shape, dtype, wanted in (("a", (6, 8, 3), "u1", {"axis": 2, "count": 3, "full": 255}),
                                           ("b", (4, 6, 8), "u1", {"axis": 0, "count": 4, "full": 255}),
                                           ("c", (6, 8, 3), "u2", None), ("d", (6, 8, 5), "u1", None), ("e", (2, 6, 3), "u1", None)):
            np.save(self.path(f"{name}.npy"), np.zeros(shape, dtype))
            self.assertEqual(self.serve(f"{name}.npy").get("api/picture?path=").json()["colours"], wanted)

    def test_names_that_are_not_utf8(self):
        name = b"caf\xe9.npy"
        folder = self.folder / "named"
        folder.mkdir()
        np.save(self.path("x.npy"), self.numbers)
        os.rename(os.fsencode(self.path("x.npy")), os.path.join(os.fsencode(folder), name))
        server = self.serve("named")
        self.assertEqual(server.get("api/first").json(), {"path": "caf\\xe9.npy", "encoded": "caf%E9.npy"})
        child = server.get("api/tree").json()["children"][0]
        self.assertEqual((child["name"], child["path"], child["shape"]), ("caf\\xe9.npy", "caf\\xe9.npy", [300, 410]))
        for route in "info", "picture":
            self.assertEqual(server.get(f"api/{route}?path=caf%e9.npy").json()["path"], "caf\\xe9.npy")
        self.assertEqual(server.get("v2/caf%e9.npy/0.0").body[:820], self.numbers[0].tobytes())

    def test_a_profile_is_a_line(self):
        line = self.json("profile", path="numbers", axis=1, at="5,0", width=1000)
        np.testing.assert_array_equal(line["values"], self.numbers[5])

    def test_bad_requests_are_errors_in_json(self):
        for parameters in ({"level": "0,0", "tile": "9,9"}, {"level": "0", "tile": "0,0"}, {"level": "0,99", "tile": "0,0"}):
            answer = self.get("tile", code=400, path="numbers", axes="0,1", **parameters)
            self.assertIn("message", answer.json())


if __name__ == "__main__":
    main()
