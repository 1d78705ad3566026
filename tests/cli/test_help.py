"""What the program says about itself: help, completion and manual pages, all from one table."""

import json
import re
import shutil
import subprocess
import unittest

import numpy as np

from program import PROGRAM, ProgramTest, chosen, main


class Help(ProgramTest):
    def commands(self):
        return self.tessera("help", "commands").split()

    def test_help_is_where_people_look_for_it(self):
        self.assertEqual(self.tessera("help"), self.tessera("--help"))
        self.assertEqual(self.tessera("help", "copy"), self.tessera("copy", "--help"))
        self.assertEqual(self.tessera("-V"), self.tessera("--version"))
        self.assertEqual(self.tessera("version"), self.tessera("--version"))
        self.assertIn("--max-memory 512M", self.tessera("help", "options"))
        listed = self.tessera("help")
        for command in self.commands():
            self.assertRegex(listed, rf"(?m)^  {command} +\S")
            text = self.tessera("help", command)
            self.assertIn(f"Usage: tessera {command}", text)
            self.assertIn("--max-memory", text)
            self.assertIn("Example", text)
            self.assertNotIn("memory for data", text, "common options are explained in one place")
        self.refused("help", "nothing", says=["'nothing'", "no command"])
        self.refused("help", "copy", "more")

    def test_what_was_meant(self):
        for typed, meant in ("coppy", "copy"), ("ifno", "info"), ("rechnuk", "rechunk"), ("versoin", "version"):
            self.refused(typed, says=f"did you mean '{meant}'?")
        self.assertNotIn("did you mean", self.refused("frobnicate", says="no command"))
        self.refused("copy", "--overwite", "a", "b", says="did you mean '--overwrite'?")
        self.refused("copy", "--max-memroy=3M", "a", "b", says="did you mean '--max-memory'?")
        self.assertNotIn("did you mean", self.refused("copy", "--zzz", "a", "b", says="--zzz"))

    def test_common_options_before_the_command(self):
        self.save("x.npy", np.arange(6))
        for words in (["--json", "info", "x.npy"], ["--threads", "2", "--quiet", "info", "x.npy", "--json"],
                      ["--max-memory=64MB", "--json", "info", "x.npy"], ["--max-memory", "64MiB", "info", "--json", "x.npy"]):
            self.assertEqual(json.loads(self.tessera(*words))["shape"], [6], words)
        self.refused("--frob", "info", "x.npy", says="--frob")
        self.refused("--max-memory", "1000B", "copy", "x.npy", "y", "--chunks", "6", "--shard", "6", "--shards", "6")
        self.tessera("import", "x.npy", "y", "--chunks", "2", "--shards", "6", "--format", "v3", "--quiet")
        self.assertEqual(self.tessera_json("info", "y")["shards"], [6])
        line = self.tessera("rechunk", "y", "z", "--chunks", "3")
        self.assertIn("1 shard of 6 with chunks of 3", line)

    def test_completion_in_bash(self):
        script = self.folder / "tessera.bash"
        script.write_text(self.tessera("help", "completion", "bash"))

        def completed(*words):
            line = " ".join(f"'{word}'" for word in words)
            run = f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _tessera; printf '%s\\n' \"${{COMPREPLY[@]}}\""
            done = subprocess.run(["bash", "-c", run], capture_output=True, text=True, cwd=self.folder, check=True)
            self.assertEqual(done.stderr, "")
            return done.stdout.split()

        self.assertEqual(completed("tessera", ""), self.commands() + ["help", "version"])
        self.assertEqual(completed("tessera", "re"), [name for name in self.commands() if name.startswith("re")])
        self.assertIn("--overwrite", completed("tessera", "copy", "a", "--o"))
        self.assertEqual(completed("tessera", "create", "a", "--format", "v"), ["v1", "v2", "v3"])
        self.assertEqual(completed("tessera", "info", "tess"), ["tessera.bash"])
        for command in self.commands():
            offered = set(completed("tessera", command, "--"))
            self.assertEqual(offered, set(self.options(command)) | set(self.options("options")), command)

    def test_completion_of_members_in_bash(self):
        script = self.folder / "tessera.bash"
        script.write_text(self.tessera("help", "completion", "bash"))
        np.savez(self.folder / "all.npz", depth=np.arange(3), day=np.arange(3), height=np.arange(3))
        self.save("t.npy", np.zeros(3, [("open", "f4"), ("close", "f4")]))

        def completed(typed, breaks):
            run = (f"source {script}; COMP_WORDBREAKS={breaks!r}; COMP_LINE='tessera get {typed}'; COMP_POINT=${{#COMP_LINE}}\n"
                   f"COMP_WORDS=({PROGRAM} get '{typed}'); COMP_CWORD=2; _tessera; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
            done = subprocess.run(["bash", "-c", run], capture_output=True, text=True, cwd=self.folder, check=True)
            self.assertEqual(done.stderr, "")
            return done.stdout.split()

        self.assertEqual(completed("all.npz::", ":"), ["depth", "day", "height"])
        self.assertEqual(completed("all.npz::d", ":"), ["depth", "day"])
        self.assertEqual(completed("all.npz::h", " "), ["all.npz::height"])
        self.assertEqual(completed("t.npy::", ":"), ["open", "close"])
        self.assertEqual(completed("none.npz::", ":"), [])

    def options(self, topic):
        lines = re.findall(r"(?m)^  (?:-\w,)?(--[\w-]+(?:,--[\w-]+)*)", self.tessera("help", topic))
        return [name for line in lines for name in line.split(",")]

    def test_completion_elsewhere(self):
        for shell in "zsh", "fish":
            script = self.tessera("help", "completion", shell)
            for command in self.commands():
                self.assertIn(command, script)
            if shutil.which(shell):
                (self.folder / "script").write_text(script)
                subprocess.run([shell, "--no-execute", "script"], cwd=self.folder, check=True)
        self.refused("help", "completion", "tcsh", says=["tcsh", "bash, zsh and fish"])

    def test_manual_pages(self):
        self.assertIn(".TH tessera 1", self.tessera("help", "man"))
        for command in chosen(self.commands()):
            self.assertIn("tessera\\-" + command.replace("-", "\\-") + " (1)", self.tessera("help", "man"))
            page = self.tessera("help", "man", command)
            for option in self.options(command):
                self.assertIn(option.replace("-", "\\-"), page)
        self.refused("help", "man", "nothing", says="nothing")

    @unittest.skipIf(shutil.which("groff") is None, "no groff")
    def test_manual_pages_as_they_are_shown(self):
        for words in [[], *([command] for command in chosen(self.commands()))]:
            page = subprocess.run([PROGRAM, "help", "man", *words], capture_output=True, check=True).stdout
            shown = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-k"], input=page, capture_output=True, check=True)
            self.assertEqual(shown.stderr, b"", words)
            if words:
                text = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", shown.stdout.decode())
                self.assertIn(f"tessera {words[0]}", text)
                self.assertIn("tessera " + words[0], text[text.index("Example"):], "examples are shown whole")


if __name__ == "__main__":
    main()
