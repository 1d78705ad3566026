#!/usr/bin/env python3
"""Where libraries are missing, configuring (as `pip install .` does) names all their packages of Debian in one message."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TESSERA_SOURCE"])


def needed():
    """The libraries that tools/packages.txt lists without saying what is left out where they are missing."""
    lines = (SOURCE / "tools" / "packages.txt").read_text().split("# libraries\n")[1].split("\n#")[0].splitlines()
    return {line.split()[0] for line in lines if "without:" not in line}


class Missing(unittest.TestCase):
    def test_all_are_named_in_one_message(self):
        with tempfile.TemporaryDirectory() as folder:
            packages = ["TBB", "fmt", "BZip2", "nlohmann_json", "CLI11"]
            done = subprocess.run(["cmake", "-S", SOURCE, "-B", folder, "-DTESSERA_TESTS=OFF",
                                   *(f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in packages)],
                                  env={**os.environ, "PKG_CONFIG_LIBDIR": folder, "PKG_CONFIG_PATH": folder},
                                  capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr.count("CMake Error"), 1, done.stderr)
        named = re.search(r"apt-get install (.*)", done.stderr)
        self.assertIsNotNone(named, done.stderr)
        self.assertEqual(set(named.group(1).split()), needed())


if __name__ == "__main__":
    unittest.main()
