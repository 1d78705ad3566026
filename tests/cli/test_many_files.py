"""Memory does not grow with the number of sealed files: what is listed of them lies on the disk."""

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program
from program import ProgramTest
from test_memory import Ended

FEW = 10_000  # more than is ever held at once
MANY = 30_000
BUDGET = 16  # MiB
GROWTH = 4  # MiB, for 20,000 files: less than a list in memory of all they have, at 200 bytes a file


class ManyFiles(ProgramTest):
    def setUp(self):
        super().setUp()
        self.array = self.folder / "a.zarr"
        self.array.mkdir()
        (self.array / ".zarray").write_text(json.dumps({
            "zarr_format": 2, "shape": [MANY], "chunks": [1], "dtype": "<i4", "compressor": None, "fill_value": 0,
            "order": "C", "filters": None}))

    def fill(self, begin, end):
        for n in range(begin, end):
            with open(self.array / str(n), "wb", buffering=0) as file:
                file.write(n.to_bytes(4, "little"))

    def peaks(self, words, prepare):
        """What each command takes, in MiB."""
        peaks = {}
        for name, command, code in words:
            prepare(name)
            ended = Ended([*command, "--max-memory", f"{BUDGET}M", "--threads", "2"], self.folder)
            self.assertEqual(ended.code, code, ended.shown)
            peaks[name] = ended.peak
        return peaks

    def run_all(self):
        lost = self.array / "77"

        def prepare(name):
            if name == "repair":
                lost.unlink()
            if name == "again":
                self.assertEqual(lost.read_bytes(), (77).to_bytes(4, "little"))
                self.tessera("set", "a.zarr", "5", "6", "--break-seal", "--quiet")

        return self.peaks([
            ("seal", ["seal", "a.zarr", "--unchecked"], 0),
            ("unchanged", ["seal", "a.zarr"], 0),
            ("parity", ["seal", "a.zarr", "--parity", "5%", "--unchecked"], 0),
            ("verify", ["verify", "a.zarr"], 0),
            ("repair", ["repair", "a.zarr"], 0),
            ("again", ["seal", "a.zarr"], 0)], prepare)

    def test_of_a_seal(self):
        self.fill(0, FEW)
        few = self.run_all()
        self.tessera("seal", "a.zarr", "--parity", "0", "--quiet")
        (self.array / ".tessera/sha256sums.txt").unlink()
        self.fill(FEW, MANY)
        many = self.run_all()
        grown = {name: round(many[name] - few[name], 1) for name in many}
        self.assertLess(max(grown.values()), GROWTH, f"{few} {many} {grown}")


if __name__ == "__main__":
    program.main()
