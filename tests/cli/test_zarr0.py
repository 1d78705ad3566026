"""Every array that zarr-python 0.4 wrote, through the program: its content by export, its metadata by copy."""

import json

import numpy as np

import program
from program import GOLDEN

CASES = json.loads((GOLDEN / "zarr0" / "manifest.json").read_text())["cases"]


def same(expected, got):
    """Equal element by element: NaN as NaN, padding and byte order aside."""
    if expected.shape != got.shape:
        return False
    if expected.dtype.names:
        return all(same(expected[n], got[n]) for n in expected.dtype.names)
    if expected.dtype.kind in "fc":
        return np.array_equal(expected, got, equal_nan=True)
    if expected.dtype.kind in "Mm":
        return expected.dtype == got.dtype.newbyteorder("<") and np.array_equal(expected.view("i8"), got.view("i8"))
    return np.array_equal(expected, got)


class Zarr0(program.ProgramTest):
    def each(self, wanted, check):
        cases = [case for case in CASES if wanted(case)]
        self.assertTrue(cases)
        for case in cases:
            with self.subTest(case["name"]):
                check(case, GOLDEN / "zarr0" / case["path"])

    def test_content(self):
        def check(case, path):
            expected = np.load(GOLDEN / "zarr0" / case["expected"])
            got = self.exported(path)
            for box in case.get("compare_boxes", []) or [[[0] * got.ndim, list(got.shape)]]:
                where = tuple(slice(a, b) for a, b in zip(*box))
                self.assertTrue(same(expected[where], got[where]), f"{expected[where]}\n{got[where]}")

        self.each(lambda c: "expected" in c and not c.get("metadata_is_pickle"), check)

    def test_probes(self):
        def check(case, path):
            for probe in case["probes"]:
                selection = ",".join(f"{a}:{b}" for a, b in zip(probe["start"], probe["stop"]))
                self.assertEqual(self.tessera_json("get", path, selection), probe["values"])

        self.each(lambda c: "probes" in c, check)

    def test_copy_keeps_metadata(self):
        def check(_, path):
            copied = self.folder / "copied"
            self.tessera("copy", path, copied, "--overwrite", "--quiet")
            for name in "__zmeta__", "__zattr__":
                self.assertEqual((copied / name).exists(), (path / name).exists(), name)
                if (path / name).exists():
                    self.assertEqual((copied / name).read_bytes(), (path / name).read_bytes(), name)

        self.each(lambda c: "expected" in c and not c.get("metadata_is_pickle"), check)

    def test_errors(self):
        def check(case, path):
            self.refused("export", path, "out.npy", says=case["path"])
            self.assertFalse((self.folder / "out.npy").exists())

        self.each(lambda c: c.get("expect_error"), check)

    def test_pickled_metadata(self):
        def check(_, path):
            self.refused("export", path, "out.npy", says="pickle")
            self.refused("info", path, says="pickle")

        self.each(lambda c: c.get("metadata_is_pickle"), check)


if __name__ == "__main__":
    program.main()
