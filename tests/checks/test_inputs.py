"""inputs.py sees every change that could change how a check ends, and only those."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(os.environ["TESSERA_SOURCE"], "tools", "checks")))
import inputs  # noqa: E402


class Inputs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tessera-test-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.build = self.root / "build" / "asan"
        subprocess.run(["git", "init", "--quiet", self.root], check=True)
        self.write(".gitignore", "/build/\n*.pyc\n")
        self.write("source.cpp", "int main() {}\n")
        subprocess.run(["git", "-C", self.root, "add", "source.cpp"], check=True)
        self.write("build/asan/test_core", "machine code").chmod(0o755)
        self.write("build/asan/libfaults.so", "machine code")
        self.write("build/asan/CMakeCache.txt", "CMAKE_BUILD_TYPE=Debug")
        self.environment = {"HOME": "/home/a"}
        self.before = self.digest()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def digest(self):
        return inputs.digest(self.root, self.build, self.environment)

    def test_the_same_is_the_same(self):
        self.assertEqual(self.digest(), self.before)

    def test_a_changed_file_is_seen(self):
        self.write("source.cpp", "int main() { }\n")
        self.assertNotEqual(self.digest(), self.before)

    def test_a_new_file_is_seen_before_git_knows_it(self):
        self.write("tests/new.npy", "")
        self.assertNotEqual(self.digest(), self.before)

    def test_a_removed_file_is_seen(self):
        (self.root / "source.cpp").unlink()
        self.assertNotEqual(self.digest(), self.before)

    def test_a_commit_changes_nothing(self):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "a"],
                       check=True)
        self.assertEqual(self.digest(), self.before)

    def test_what_is_built_is_seen(self):
        for name in "build/asan/test_core", "build/asan/libfaults.so", "build/asan/CMakeCache.txt":
            with self.subTest(name):
                text = (self.root / name).read_text()
                self.write(name, "another")
                self.assertNotEqual(self.digest(), self.before)
                self.write(name, text)
                self.assertEqual(self.digest(), self.before)

    def test_what_tests_leave_behind_is_not(self):
        self.write("build/asan/Testing/Temporary/LastTest.log", "passed")
        self.write("build/tsan/test_core", "other machine code").chmod(0o755)
        self.write("tools/checks/inputs.pyc", "")
        self.assertEqual(self.digest(), self.before)

    def test_the_environment_is_seen_where_programs_listen_to_it(self):
        self.environment["HOME"] = "/home/b"
        self.assertEqual(self.digest(), self.before)
        for name in "TESSERA_PEERS_SEED", "ASAN_OPTIONS", "LD_PRELOAD", "PATH":
            self.assertNotEqual(inputs.digest(self.root, self.build, {**self.environment, name: "1"}), self.before)

    def test_another_package_is_seen(self):
        self.addCleanup(setattr, inputs, "output", inputs.output)
        output = inputs.output
        inputs.output = lambda *words, **options: output(*words, **options) + (b"more" if words[0] == "dpkg-query" else b"")
        self.assertNotEqual(self.digest(), self.before)


if __name__ == "__main__":
    unittest.main()
