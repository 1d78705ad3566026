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


def listed():
    """All packages of tools/packages.txt that a build takes, and those that the module takes."""
    lines = (SOURCE / "tools" / "packages.txt").read_text().split("# the example\n")[0].splitlines()
    return {line.split()[0] for line in lines if not line.startswith("#")}


class Missing(unittest.TestCase):
    def test_a_missing_compiler_is_named_with_all_else(self):
        for options, more in (([], set()), (["-DSKBUILD=2"], {"python3-dev"})):
            with self.subTest(options), tempfile.TemporaryDirectory() as folder:
                # Programs are looked for below an empty folder alone.
                done = subprocess.run(["cmake", "-S", SOURCE, "-B", folder, f"-DCMAKE_FIND_ROOT_PATH={folder}",
                                       "-DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=ONLY", "-DCMAKE_MAKE_PROGRAM=make", *options],
                                      env={name: value for name, value in os.environ.items() if name != "CXX"},
                                      capture_output=True, text=True, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(done.stderr.count("CMake Error"), 1, done.stderr)
                named = re.search(r"No compiler for C\+\+ was found.*apt-get install (.*?)\n", done.stderr, re.DOTALL)
                self.assertIsNotNone(named, done.stderr)
                self.assertEqual(set(named.group(1).split()), listed() | more)

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
