"""A few of the trees that tests/soak/hostile attacks the program with: no command touches anything outside."""

import os
import subprocess
import tempfile
import unittest

import numpy as np

import hostile
from program import PROGRAM, main

CALLER = os.environ.get("TESSERA_CALLER")


class Hostile(unittest.TestCase):
    def test_nothing_outside_is_touched(self):
        calls = subprocess.run([CALLER], capture_output=True, text=True, check=True).stdout.split() if CALLER else []
        with tempfile.TemporaryDirectory(prefix="tessera-test-") as folder:
            np.save(os.path.join(folder, "two.npy"), np.zeros(2, "<i4"))
            templates = hostile.Templates(PROGRAM, folder)
            for seed in range(25):
                with tempfile.TemporaryDirectory(prefix="tessera-test-") as place:
                    self.assertIsNone(hostile.attack(templates, seed, place, PROGRAM, CALLER, calls, 8))


if __name__ == "__main__":
    main()
