"""`tessera --licenses`: every library that is linked into the program, its helpers or the module has its text there."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

from program import PROGRAM, main

BUILD = pathlib.Path(PROGRAM).resolve().parent.parent
BINARIES = [PROGRAM, *(BUILD / "libexec/tessera").glob("tessera-*"), *(BUILD / "tools/python/tessera").glob("_tessera*.so")]
# Loaded when they are used, so that ldd does not tell.
LOADED = ["libcurl.so.4", "libmicrohttpd.so.12", "libfuse3.so.3"]


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@unittest.skipUnless(shutil.which("dpkg-query") and pathlib.Path("/usr/share/doc/zlib1g/copyright").exists(),
                     "Debian's copyright files are not here")
class Licences(unittest.TestCase):
    def test_every_linked_library_has_its_text(self):
        told = output_of(PROGRAM, "--licenses")
        headings = {name for line in re.findall(r"^## (.*)$", told, re.M) for name in line.split(", ")}
        linked = output_of("ldd", *map(str, BINARIES)) + output_of("/sbin/ldconfig", "-p")
        paths = set(re.findall(r"=> (/\S+) \(0x", linked))
        paths |= {path for name, path in re.findall(r"^\s+(\S+) .*=> (/\S+)$", linked, re.M) if name in LOADED}
        self.assertGreater(len(paths), 20, "ldd told of too few")
        for path in sorted(paths):
            real = os.path.realpath(path)
            found = output_of("dpkg-query", "--search", real, real.removeprefix("/usr"))
            package = found.split(":")[0]
            self.assertTrue(package, f"{path} is of no package")
            self.assertIn(package, headings, f"{path}: THIRD-PARTY.md has no text of {package}")

    def test_the_texts_are_those_of_the_packages(self):
        told = output_of(PROGRAM, "--licenses")
        for package in ("zlib1g", "libtbb12"):
            for line in pathlib.Path(f"/usr/share/doc/{package}/copyright").read_text().splitlines():
                self.assertIn(f"    {line}".rstrip() + "\n", told)
        # What a copyright file only refers to.
        if "/usr/share/common-licenses/Apache-2.0" in told:
            self.assertIn("TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION", told)


if __name__ == "__main__":
    main()
