"""`tessera bug-report`: what it tells, and what it keeps to itself."""

import os
import pathlib
import subprocess
import sys

from program import PROGRAM, ProgramTest, main, module_folder


class BugReport(ProgramTest):
    def test_it_tells_of_the_program_the_libraries_and_the_file_system(self):
        told = self.tessera_json("bug-report", ".", "/proc")
        self.assertEqual(told["program"], [os.path.realpath(PROGRAM)])
        linked = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True).stdout
        if "libz.so" in linked:
            self.assertTrue(any(name.startswith("libz.so") for name in told["libraries"]), told["libraries"])
        self.assertEqual([row["path"] for row in told["paths"]], [".", "/proc"])
        self.assertTrue(told["paths"][1]["file_system"].startswith("proc,"), told["paths"][1])
        kind = subprocess.run(["stat", "-f", "-c", "%T", "."], capture_output=True, text=True).stdout.strip()
        if kind in ("tmpfs", "overlayfs", "xfs", "btrfs"):
            self.assertIn(kind.removesuffix("fs"), told["paths"][0]["file_system"])

    def test_secrets_stay_where_they_are(self):
        secrets = {"AWS_SECRET_ACCESS_KEY": "hush-1", "TESSERA_CACHE": "https://someone:hush-2@host/x?sig=hush-3"}
        for words in (["bug-report"], ["bug-report", "--json"]):
            done = subprocess.run([PROGRAM, *words], env={**os.environ, **secrets}, capture_output=True, text=True,
                                  check=True)
            self.assertNotIn("hush", done.stdout + done.stderr)
            self.assertIn("AWS_SECRET_ACCESS_KEY", done.stdout)
            self.assertIn("TESSERA_CACHE", done.stdout)

    def test_the_module_tells_of_itself(self):
        module = pathlib.Path(module_folder())
        env = {**os.environ, "PYTHONPATH": str(module), "PATH": f"{pathlib.Path(PROGRAM).parent}:{os.environ['PATH']}"}
        done = subprocess.run([sys.executable, "-B", "-m", "tessera", "bug-report"], env=env, capture_output=True, text=True,
                              check=True)
        self.assertIn(str(module / "tessera"), done.stdout.splitlines()[0])
        self.assertIn("NumPy", done.stdout)
        self.assertIn("libraries", done.stdout)


if __name__ == "__main__":
    main()
