"""What tools/docs/compute.md shows is what the program prints."""

import os
import pathlib
import re
import shlex
import shutil
import unittest

import numpy as np

from program import EXAMPLES, ProgramTest, main

PAGE = pathlib.Path(os.environ["TESSERA_SOURCE"]) / "tools/docs/compute.md"


class Page(ProgramTest):
    def test_commands_print_what_is_shown(self):
        shutil.copy(EXAMPLES / "jacksboro_fault_dem.npz", self.folder)
        block = re.search(r"```\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
        for step in re.split(r"(?m)^\$ tessera ", block)[1:]:
            line, _, wanted = step.partition("\n")
            self.assertEqual(self.tessera(*shlex.split(line)), wanted, line)
        dem = np.load(self.folder / "jacksboro_fault_dem.npz")["elevation"]
        np.testing.assert_array_equal(np.load(self.folder / "rows.npy"), dem.max(axis=1))
        feet = np.where(dem < 0, 0, dem.astype("f4") * np.float32(3.28084))
        np.testing.assert_array_equal(self.exported("rounded.zarr"), np.rint(feet).astype("i2"))


if __name__ == "__main__":
    main()
