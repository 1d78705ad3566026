"""The recipes in tools/release/recipes, as far as they can be checked without the package systems that read them: they parse,
they state the project's version, and each names every library of tools/packages.txt."""

import ast
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from program import PROGRAM, main

SOURCE = pathlib.Path(os.environ["TESSERA_SOURCE"])
RECIPES = SOURCE / "tools" / "release" / "recipes"
VERSION = re.search(r"project\(tessera VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text()).group(1)

# Debian's name of a library, and those of conda, vcpkg, Conan, Spack, Nix and Homebrew; None where the recipe has a
# reason to go without.
LIBRARIES = {
    "libblosc-dev": ["blosc", "blosc", "c-blosc", "c-blosc", "c-blosc", "c-blosc"],
    "libbz2-dev": ["bzip2", "bzip2", "bzip2", "bzip2", "bzip2", "bzip2"],
    "libcli11-dev": ["cli11", "cli11", "cli11", "cli11", "cli11", "cli11"],
    "libcurl4-openssl-dev": ["libcurl", "curl", "libcurl", "curl", "curl", "curl"],
    "libdeflate-dev": ["libdeflate"] * 6,
    "libeccodes-dev": ["eccodes", None, None, "eccodes", "eccodes", "eccodes"],  # vcpkg and Conan have none
    "libfmt-dev": ["fmt"] * 6,
    "libfuse3-dev": [None] * 6,  # optional: tessera mount, where the system has libfuse
    "libhdf5-dev": ["hdf5"] * 6,
    "libisal-dev": ["isa-l", "isal", "isa-l", "isa-l", "isa-l", "isa-l"],
    "libjs-leaflet": [None] * 6,  # optional: the page's pictures
    "liblz4-dev": ["lz4-c", "lz4", "lz4", "lz4", "lz4", "lz4"],
    "liblzma-dev": ["xz", "liblzma", "xz_utils", "xz", "xz", "xz"],
    "libmicrohttpd-dev": ["libmicrohttpd", "libmicrohttpd", None, "libmicrohttpd", "libmicrohttpd", "libmicrohttpd"],
    "libpng-dev": ["libpng"] * 6,
    "libssl-dev": ["openssl", "openssl", "openssl", "openssl", "openssl", "openssl@3"],
    "libtbb-dev": ["tbb-devel", "tbb", "onetbb", "tbb", "tbb", "tbb"],
    "libtiff-dev": ["libtiff", "tiff", "libtiff", "libtiff", "libtiff", "libtiff"],
    "libzfp-dev": ["zfp", "zfp", "zfp", "zfp", "zfp", None],  # Homebrew has none
    "libzip-dev": ["libzip"] * 6,
    "libzstd-dev": ["zstd"] * 6,
    "nlohmann-json3-dev": ["nlohmann_json", "nlohmann-json", "nlohmann_json", "nlohmann-json", "nlohmann_json",
                           "nlohmann-json"],
    "zlib1g-dev": ["zlib", "zlib", "zlib", "zlib-api", "zlib", "zlib"],
}
FILES = ["conda/recipe.yaml", "vcpkg/tessera/vcpkg.json", "conan/conanfile.py", "spack/package.py", "nix/default.nix",
         "homebrew/tessera.rb"]


class Recipes(unittest.TestCase):
    def test_every_library_is_named(self):
        listed = [line.split()[0] for line in (SOURCE / "tools/packages.txt").read_text().splitlines()
                  if re.match(r"lib|nlohmann|zlib", line)]
        self.assertEqual(sorted(set(listed) - set(LIBRARIES)), [], "name it in each recipe, and in this table")
        texts = [(RECIPES / file).read_text() for file in FILES]
        for library in listed:
            for name, file, text in zip(LIBRARIES[library], FILES, texts):
                if name is not None:
                    self.assertRegex(text, rf"(?<![\w-]){re.escape(name)}(?![\w-])", f"{file}: {library}")

    def test_the_version_is_the_project_s(self):
        for file in [*(RECIPES / name for name in FILES), SOURCE / "CITATION.cff"]:
            stated = re.findall(r"""version["']?\s*[:=(]?\s*["']?([0-9]+\.[0-9]+\.[0-9]+)""", file.read_text())
            self.assertIn(VERSION, stated, file)
        shown = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
        self.assertIn(VERSION, shown)

    def test_they_parse(self):
        port = json.loads((RECIPES / "vcpkg/tessera/vcpkg.json").read_text())
        self.assertLessEqual(set(port), {"name", "version", "description", "license", "supports", "dependencies",
                                         "features", "homepage"})
        names = [d if isinstance(d, str) else d["name"] for d in port["dependencies"]]
        self.assertEqual(names, sorted(names))
        for file in "conan/conanfile.py", "spack/package.py":
            ast.parse((RECIPES / file).read_text())
        for command in ["ruby", "-c", RECIPES / "homebrew/tessera.rb"], ["nix-instantiate", "--parse",
                                                                         RECIPES / "nix/default.nix"]:
            if shutil.which(command[0]):
                subprocess.run(command, check=True, capture_output=True)
        for file in re.findall(r"^COPY (?!--from)(\S+)", (RECIPES / "docker/Dockerfile").read_text(), re.M):
            self.assertTrue((SOURCE / file).exists(), file)

    def test_conda_names_what_its_format_has(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("no PyYAML")
        recipe = yaml.safe_load((RECIPES / "conda/recipe.yaml").read_text())
        self.assertLessEqual(set(recipe), {"schema_version", "context", "recipe", "source", "build", "outputs", "about",
                                           "extra", "requirements", "tests"})
        for output in recipe["outputs"]:
            self.assertLessEqual(set(output), {"package", "build", "requirements", "tests", "about", "source"})
            self.assertLessEqual(set(output["requirements"]), {"build", "host", "run", "run_constraints"})
        yaml.safe_load((SOURCE / "CITATION.cff").read_text())


if __name__ == "__main__":
    main()
