"""tools/reference: the public headers give doxygen no reason to warn, and classes, commands and docstrings are in the pages."""
import os
import pathlib
import shutil
import subprocess
import sys

from program import PROGRAM, ProgramTest, main

SOURCE = pathlib.Path(os.environ["TESSERA_SOURCE"])


class Reference(ProgramTest):
    def test_all_of_it(self):
        build = pathlib.Path(PROGRAM).resolve().parents[1]
        done = subprocess.run([SOURCE / "tools/reference", self.folder, build], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        pages = "".join(page.read_text() for page in (self.folder / "cpp").glob("class*.html"))
        for name in ("tessera::Array", "tessera::Group", "tessera::Edit", "tessera::NDArray"):
            self.assertIn(name, pages)
        self.assertIn("Exit code", (self.folder / "program/verify.txt").read_text())
        if "TESSERA_MODULE" in os.environ:
            self.assertIn("vindex", (self.folder / "python/tessera.html").read_text())


if __name__ == "__main__":
    if shutil.which("doxygen") is None:
        print("skipped: there is no doxygen here")
        sys.exit(77)
    main()
