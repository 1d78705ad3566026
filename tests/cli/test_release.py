"""tools/release: the changelog and its files, and a release of what needs neither network nor compiler."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TESSERA_SOURCE"])
CHANGELOG = """# Changelog

## [Unreleased]

The first.

### Arrays

- One.

### Jobs

- Two
  lines.
"""
JOINED = """# Changelog

## [Unreleased]

## [0.2.0] - 2026-01-31

The first.

### Arrays

- One.
- Three.

### Jobs

- Two
  lines.
- Four
  more.
- Five.
"""
SUM = re.compile(r"^[0-9a-f]{64}  (\S+)$", re.M)


class Project(unittest.TestCase):
    """A folder with what the scripts read of a project."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera-release-"))
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "CHANGELOG.md").write_text(CHANGELOG)
        shutil.copytree(SOURCE / "tools/release", self.folder / "tools/release", ignore=shutil.ignore_patterns("changes"))
        shutil.copy(SOURCE / "tools/lib.sh", self.folder / "tools")
        (self.folder / "CMakeLists.txt").write_text("project(tessera VERSION 0.2.0 LANGUAGES NONE)\n")
        (self.folder / ".gitignore").write_text("/build/\n__pycache__/\n")
        self.add("README.md", "# What this is\n")
        self.add("one.md", "### Jobs\n\n- Four\n  more.\n\n### Arrays\n\n- Three.\n")
        self.add("two.md", "### Jobs\n\n- Five.\n")

    def add(self, name, text):
        (self.folder / "tools/release/changes").mkdir(exist_ok=True)
        (self.folder / "tools/release/changes" / name).write_text(text)

    def run_here(self, *command, fails=None):
        environment = {key: value for key, value in os.environ.items() if key != "TESSERA_SOURCE" and not key.startswith("GIT_")}
        done = subprocess.run([str(word) for word in command], cwd=self.folder, capture_output=True, text=True, check=False,
                              env=environment)
        self.assertEqual(done.returncode == 0, fails is None, done.stdout + done.stderr)
        if fails is not None:
            self.assertIn(fails, done.stderr)
        return done.stdout


class Changelog(Project):
    def changelog(self, *words, fails=None):
        return self.run_here("tools/release/changelog.py", *words, fails=fails)

    def test_the_files_are_joined_under_their_subjects(self):
        told = self.changelog("notes")
        self.changelog("join", "0.2.0", "2026-01-31")
        self.assertEqual((self.folder / "CHANGELOG.md").read_text(), JOINED)
        self.assertEqual([file.name for file in (self.folder / "tools/release/changes").iterdir()], ["README.md"])
        self.assertEqual(self.changelog("notes", "0.2.0"), told)
        # Nothing is left for a next one, and this one is made once.
        self.changelog("notes", "0.3.0", fails="nothing is new")
        self.changelog("join", "0.3.0", "2026-02-01", fails="nothing is new")
        self.changelog("join", "0.2.0", "2026-02-01", fails="has 0.2.0 already")
        # The next change is above, and nothing else moves.
        self.add("six.md", "### Arrays\n\n- Six.\n")
        self.changelog("join", "0.3.0", "2026-02-01")
        new = "## [Unreleased]\n\n## [0.3.0] - 2026-02-01\n\n### Arrays\n\n- Six.\n"
        self.assertEqual((self.folder / "CHANGELOG.md").read_text(), JOINED.replace("## [Unreleased]\n", new))

    def test_what_does_not_fit_is_refused_by_name(self):
        for text, why in [("- An item.\n", "wrong.md: a heading"), ("### Jbos\n\n- An item.\n", "no subject 'Jbos', but Arrays, Jobs"),
                          ("### Jobs\n\nA sentence.\n", "below 'Jobs'"), ("### Jobs\n", "below 'Jobs'"),
                          ("### Jobs\n\n- An item.\nIts end.\n", "below 'Jobs'")]:
            self.add("wrong.md", text)
            self.changelog("check", fails=why)
            before = (self.folder / "CHANGELOG.md").read_text()
            self.changelog("join", "0.2.0", "2026-01-31", fails=why)
            self.assertEqual((self.folder / "CHANGELOG.md").read_text(), before)
        self.changelog("join", "0.2", "2026-01-31", fails="expected a version")

    def test_the_project_s_own_fit(self):
        subprocess.run([SOURCE / "tools/release/changelog.py", "check"], check=True)


@unittest.skipUnless(shutil.which("git"), "git is not installed")
class Release(Project):
    def setUp(self):
        super().setUp()
        self.git("init", "-q")
        self.commit()

    def git(self, *words):
        return self.run_here("git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "A state", "--allow-empty")

    def release(self, *words, fails=None):
        return self.run_here("tools/release/release", *words, "--only", "notes", fails=fails)

    def test_files_sums_and_what_is_missing(self):
        told = self.release("0.2.0")
        self.assertIn("both are equal", told)
        self.assertIn("skipped: tag v0.2.0", told)
        made = self.folder / "build/dist/0.2.0"
        self.assertIn("- Five.", (made / "NOTES.md").read_text())
        self.assertEqual(SUM.findall((made / "SHA256SUMS").read_text()), ["NOTES.md"])
        subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=made, check=True)
        self.git("tag", "v0.2.0")
        self.assertNotIn("skipped", self.release("0.2.0", "--once"))

    def test_another_state_than_that_of_the_version_is_refused(self):
        self.release("0.1.0", fails="CMakeLists.txt says 0.2.0, not 0.1.0")
        self.git("tag", "v0.2.0")
        self.commit()
        self.release("0.2.0", fails="the tag v0.2.0 is another commit")
        self.add("six.md", "### Jobs\n\n- Six.\n")
        self.release("0.2.0", fails="not committed")
        self.assertFalse((self.folder / "build/dist/0.2.0").exists())

    def test_what_is_not_the_same_twice_is_a_failure(self):
        script = self.folder / "tools/release/changelog.py"
        script.write_text(script.read_text().replace("def main(words):", "def main(words):\n    print(ROOT)"))
        self.commit()
        done = subprocess.run(["tools/release/release", "0.2.0", "--only", "notes"], cwd=self.folder, capture_output=True, text=True,
                              env={key: value for key, value in os.environ.items() if key != "TESSERA_SOURCE"}, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("failed: not the same twice", done.stdout)


@unittest.skipUnless(shutil.which("dpkg-query") and pathlib.Path("/usr/share/doc/zlib1g").exists(), "this is no Debian")
class Bill(unittest.TestCase):
    def test_it_names_what_is_held_and_is_the_same_twice(self):
        with tempfile.TemporaryDirectory() as folder:
            bills = [pathlib.Path(folder) / name for name in ("one.json", "two.json")]
            for bill in bills:
                subprocess.run(["/usr/bin/python3", "-B", SOURCE / "tools/release/sbom.py", "0.2.0", bill], check=True,
                               env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"})
            self.assertEqual(bills[0].read_bytes(), bills[1].read_bytes())
            told = json.loads(bills[0].read_text())
        self.assertEqual(told["metadata"]["timestamp"], "2023-11-14T22:13:20Z")
        parts = {part["name"]: part for part in told["components"]}
        self.assertEqual(len(parts), len(told["components"]))
        self.assertLessEqual({"zlib1g", "libtbb12", "nlohmann-json3-dev"}, set(parts))
        installed = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", "zlib1g"], capture_output=True, text=True,
                                   check=True).stdout
        self.assertEqual(parts["zlib1g"]["version"], installed)
        self.assertRegex(parts["zlib1g"]["purl"], r"^pkg:deb/debian/zlib1g@[^?+: ]+\?arch=\w+&distro=\w+$")
        self.assertEqual(sorted(told["dependencies"][0]["dependsOn"]), sorted(part["bom-ref"] for part in told["components"]))


if __name__ == "__main__":
    unittest.main()
