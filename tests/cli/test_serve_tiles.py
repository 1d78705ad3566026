"""Tiles, values and rows of `tessera serve` against NumPy."""

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

    def test_a_profile_is_a_line(self):
        line = self.json("profile", path="numbers", axis=1, at="5,0", width=1000)
        np.testing.assert_array_equal(line["values"], self.numbers[5])

    def test_bad_requests_are_errors_in_json(self):
        for parameters in ({"level": "0,0", "tile": "9,9"}, {"level": "0", "tile": "0,0"}, {"level": "0,99", "tile": "0,0"}):
            answer = self.get("tile", code=400, path="numbers", axes="0,1", **parameters)
            self.assertIn("message", answer.json())


if __name__ == "__main__":
    main()
