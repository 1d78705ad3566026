"""Defaults that a person sets by variables or a file: an option goes before a variable, a variable before the file."""

import os
import subprocess
import sys

import numpy as np

from program import ProgramTest, main


class Settings(ProgramTest):
    def setUp(self):
        super().setUp()
        self.save("x.npy", np.arange(100, dtype="<i4"))

    def made(self, *words, env=None, file=None, command=("import", "x.npy")):
        """Format and codec of an array made with these settings."""
        env = {**os.environ, **(env or {})}
        if file is not None:
            (self.folder / "tessera.toml").write_text(file)
            env.pop("TESSERA_CONFIG", None)
            env["XDG_CONFIG_HOME"] = str(self.folder)
        self.tessera(*command, "made.zarr", "--overwrite", "--quiet", *words, env=env)
        info = self.tessera_json("info", "made.zarr")
        return info["format"], str(info["codecs"] if "codecs" in info else info["codec"])

    def test_the_order_of_what_counts(self):
        file = "# mine\nformat = \"v2\"  # or v3\n codec='zlib:1'\n\nthreads = 1\n"
        usual = self.made()
        self.assertEqual(usual[0], "zmeta")
        found = self.made(file=file)
        self.assertEqual(found[0], "v2")
        self.assertIn("zlib", found[1])
        self.assertEqual(self.made(file=file, env={"TESSERA_FORMAT": "v1"})[0], "v1")
        self.assertEqual(self.made("--format", "v3", "--codec", "zstd:1", file=file, env={"TESSERA_FORMAT": "v1"})[0], "v3")
        self.assertIn("zstd", self.made("--format", "v3", "--codec", "zstd:1", file=file)[1])
        self.assertEqual(self.made(file=file, env={"TESSERA_FORMAT": "", "TESSERA_CODEC": ""}), usual, "empty is none")
        create = ("create", "--shape", "4", "--dtype", "<i4")
        self.assertEqual(self.made(file=file, command=create)[0], "v2")
        self.assertIn("zlib", self.made(file=file, command=create)[1])
        self.assertEqual(self.made(command=create)[0], "zmeta")

    def test_what_is_copied_keeps_what_it_has(self):
        self.made("--format", "v2", "--codec", "zstd:2")
        self.tessera("copy", "made.zarr", "copy.zarr", "--quiet",
                     env={**os.environ, "TESSERA_FORMAT": "v3", "TESSERA_CODEC": "zlib:1"})
        self.assertEqual(self.tessera_json("info", "copy.zarr")["format"], "v2")
        self.assertIn("zstd", str(self.tessera_json("info", "copy.zarr")))

    def test_a_group_and_home(self):
        (self.folder / ".config").mkdir()
        (self.folder / ".config/tessera.toml").write_text('format = "v2"\n')
        env = {**os.environ, "HOME": str(self.folder)}
        env.pop("TESSERA_CONFIG")
        env.pop("XDG_CONFIG_HOME", None)
        self.tessera("group", "g.zarr", "--quiet", env=env)
        self.assertTrue((self.folder / "g.zarr/.zgroup").exists())
        other = self.folder / "other"
        other.write_text('format = "v3"\n')
        self.tessera("group", "h.zarr", "--quiet", env={**env, "TESSERA_CONFIG": str(other)})
        self.assertTrue((self.folder / "h.zarr/zarr.json").exists())

    def test_memory_threads_and_durability(self):
        for name, value, says in (("TESSERA_MAX_MEMORY", "much", "TESSERA_MAX_MEMORY"), ("TESSERA_THREADS", "0", "TESSERA_THREADS"),
                                  ("TESSERA_DURABILITY", "some", "TESSERA_DURABILITY"),
                                  ("TESSERA_FORMAT", "v9", "TESSERA_FORMAT"), ("TESSERA_CODEC", "zst:3", "TESSERA_CODEC")):
            self.refused("import", "x.npy", "y.zarr", env={**os.environ, name: value}, says=says)
            self.assertFalse((self.folder / "y.zarr").exists())
        self.save("large.npy", np.zeros((4000, 1000)))
        large = ("copy", "large.npy", "y.zarr", "--chunks", "4000,1000", "--quiet")
        self.refused(*large, env={**os.environ, "TESSERA_MAX_MEMORY": "8M"}, says="--max-memory")
        self.tessera(*large, "--max-memory", "256M", env={**os.environ, "TESSERA_MAX_MEMORY": "8M"})

    def test_a_bad_file_is_named(self):
        for text, says in (("format", "line 1"), ("\nformat = v3", "line 2"), ("[format]\n", "line 1"), ('formt = "v3"', "formt"),
                           ('format = "v3"\nformat = "v2"', "twice"), ('format = "v9"', "tessera.toml: format"),
                           ('format = "v3" and more', "line 1"), ('codec = "a\\u0041"', "line 1")):
            (self.folder / "tessera.toml").write_text(text)
            env = {**os.environ, "XDG_CONFIG_HOME": str(self.folder)}
            env.pop("TESSERA_CONFIG")
            self.refused("import", "x.npy", "y.zarr", env=env, says=["tessera.toml", says])

    def test_python_takes_the_same(self):
        module = os.environ.get("TESSERA_MODULE")
        if not module or not os.path.isdir(os.path.join(module, "tessera")):
            self.skipTest("the module was not built")
        (self.folder / "tessera.toml").write_text('format = "v2"\ncodec = "zlib:1"\nmax_memory = "64MB"\n')
        env = {**os.environ, "XDG_CONFIG_HOME": str(self.folder), "PYTHONPATH": module}
        env.pop("TESSERA_CONFIG")
        code = ("import tessera\n"
                "a = tessera.create('p.zarr', 4, 'i4')\n"
                "assert a.format == 'v2', a.format\n"
                "tessera.copy('x.npy', 'q.zarr')\n"
                "assert tessera.open('q.zarr').format == 'v2'\n"
                "assert tessera.create('r.zarr', 4, 'i4', format='v3', codec='zstd:1').format == 'v3'\n")
        done = subprocess.run([sys.executable, "-c", code], cwd=self.folder, env=env, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("zlib", (self.folder / "p.zarr/.zarray").read_text())
        self.assertIn("zlib", (self.folder / "q.zarr/.zarray").read_text())

    def test_help_lists_them(self):
        text = self.tessera("help", "settings")
        for name in ("FORMAT", "CODEC", "DURABILITY", "MAX_MEMORY", "THREADS", "COLOR", "CONFIG"):
            self.assertIn(f"TESSERA_{name}", text)


if __name__ == "__main__":
    main()
