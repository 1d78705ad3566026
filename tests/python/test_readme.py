"""The C++ example of the README is the file that the build compiles, and prints what the README says."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TESSERA_SOURCE"])
README = (SOURCE / "README.md").read_text()


class Readme(unittest.TestCase):
    def test_example_is_the_compiled_file(self):
        shown = re.search(r"```cpp\n(.*?)```", README, re.DOTALL)[1]
        self.assertEqual(shown, (SOURCE / "tools/examples/readme_example.cpp").read_text())

    def test_example_prints_what_is_said(self):
        said = re.search(r"It prints `([^`]*)`", README)[1]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([os.environ["TESSERA_README_EXAMPLE"]], cwd=folder, check=True, capture_output=True, text=True)
        self.assertEqual(done.stdout.strip(), said)


if __name__ == "__main__":
    unittest.main()
