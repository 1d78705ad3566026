"""The page of everyday jobs: its commands run as they stand there, and what they make is what NumPy makes."""
import os
import pathlib
import re
import shutil
import subprocess

import numpy as np

from program import EXAMPLES, PROGRAM, ProgramTest, main

PAGE = pathlib.Path(os.environ["TESSERA_SOURCE"]) / "tools" / "docs" / "jobs.md"


class Jobs(ProgramTest):
    def test_the_page(self):
        shutil.copy(EXAMPLES / "topobathy.npz", self.folder)
        (self.folder / "bin").mkdir()
        (self.folder / "bin/tessera").symlink_to(PROGRAM)
        script = "set -e\n" + "\n".join(re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL))
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, capture_output=True, text=True, timeout=300,
                              env={**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        if not (self.folder / "mask.png").exists():
            self.assertIn("libpng", done.stderr)
        topo = np.load(self.folder / "topobathy.npz")["topo"]
        np.testing.assert_array_equal(self.exported("twice.zarr"), np.concatenate([topo, topo], 1))
        np.testing.assert_array_equal(self.exported("again.zarr"), np.concatenate([topo, topo[:, :1]], 1))
        self.assertEqual(self.tessera_json("attrs", "again.zarr"), {"units": "m"})
        np.testing.assert_array_equal(np.loadtxt(self.folder / "grid.csv", "<f4", delimiter=","), topo)
        self.assertEqual(self.exported("stations.zarr").tolist(), [("A", 12.5), ("B", 7.0)])
        self.assertEqual(self.tessera_json("dims", "twice.zarr")["names"], ["y", "x"])


if __name__ == "__main__":
    main()
