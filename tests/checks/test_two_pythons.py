#!/usr/bin/env python3
"""A wheel for another version of Python, made in the same folder (pyproject.toml: build-dir), compiles the module alone."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TESSERA_SOURCE"])
# Notes what it is asked to compile, and makes an empty object of it.
LAUNCHER = """#!/bin/bash
out= dep= before=
for word in "$@"; do
    [ "$before" = -o ] && out=$word
    [ "$before" = -MF ] && dep=$word
    before=$word
done
case " $* " in *" -c "*) ;; *) exec "$@" ;; esac
echo "$out" >> "$0.compiled"
echo '__attribute__((weak)) int main() { return 0; }' | "$1" -x c++ -fPIC -c - -o "$out" || exit
[ -z "$dep" ] || echo "$out:" > "$dep"
"""


def pythons():
    """Of each version from 3.11 on one that has its headers."""
    places = [pathlib.Path(folder) for folder in os.environ["PATH"].split(":")]
    places += sorted(pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")).glob("versions/3.*/bin"))
    found = {}
    for program in [pathlib.Path("/usr/bin/python3"), *(p for place in places for p in sorted(place.glob("python3.[0-9]*")))]:
        if not re.fullmatch(r"python3(\.\d+)?", program.name):
            continue
        asked = subprocess.run([program, "-c", "import sys, sysconfig; print(*sys.version_info[:2], sysconfig.get_path('include'))"],
                               capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            major, minor, headers = asked.stdout.split(None, 2)
            if int(minor) >= 11 and os.path.exists(os.path.join(headers.strip(), "Python.h")):
                found.setdefault((int(major), int(minor)), program)
    return list(found.values())


class TwoPythons(unittest.TestCase):
    def wheel(self, folder, python):
        """Builds as scikit-build-core does, and returns what was compiled."""
        build, noted = folder / "build", folder / "launcher.compiled"
        (build / "CMakeCache.txt").unlink(missing_ok=True)  # it begins anew where the environment is another one
        shutil.rmtree(build / "CMakeFiles", ignore_errors=True)
        for command in (["cmake", "-S", SOURCE, "-B", build, "-G", "Ninja", "-DSKBUILD=2", "-DCMAKE_BUILD_TYPE=Release",
                         "-DTESSERA_TESTS=OFF", f"-DPython_EXECUTABLE={python}", f"-DCMAKE_CXX_COMPILER_LAUNCHER={folder}/launcher"],
                        ["cmake", "--build", build, "--parallel", "2", "--target", "tessera_cli", "_tessera"]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
        compiled = [line for line in noted.read_text().splitlines() if "cmTC_" not in line]  # CMake's own trials
        noted.unlink()
        return compiled, sorted(path.name for path in (build / "tools" / "python" / "tessera").glob("_tessera.*.so"))

    def test_the_library_is_compiled_once(self):
        found = pythons()
        if len(found) < 2:
            self.skipTest("no second Python with headers")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "launcher").write_text(LAUNCHER)
            (folder / "launcher").chmod(0o755)
            first, modules = self.wheel(folder, found[0])
            if not modules:
                self.skipTest("no pybind11")
            self.assertGreater(len(first), 40)
            second, modules = self.wheel(folder, found[1])
            self.assertEqual(len(modules), 2)
            self.assertEqual([pathlib.Path(path).name for path in second], ["_tessera_1.cpp.o"])


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    sys.exit(77 if result.skipped and result.wasSuccessful() else not result.wasSuccessful())
