"""Conan 2: `conan create tools/release/recipes/conan`, of the checkout that this file lies in."""

import os

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy
from conan.tools.gnu import PkgConfigDeps


class Tessera(ConanFile):
    name = "tessera"
    version = "0.1.0"
    license = "MIT"
    description = "Chunked, compressed N-dimensional arrays that do not fit in memory"
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    # What CMake finds by its own packages, and what by pkg-config: tools/cmake/TesseraDependencies.cmake.
    requires = (
        "bzip2/1.0.8",
        "c-blosc/1.21.5",
        "cli11/2.4.2",
        "fmt/10.2.1",
        "hdf5/1.14.3",
        "isa-l/2.30.0",
        "libcurl/8.6.0",
        "libdeflate/1.19",
        "libpng/1.6.43",
        "libtiff/4.6.0",
        "libzip/1.10.1",
        "lz4/1.9.4",
        "nlohmann_json/3.11.3",
        "onetbb/2021.10.0",
        "openssl/3.2.1",
        "xz_utils/5.4.5",
        "zfp/1.0.1",
        "zlib/1.3.1",
        "zstd/1.5.5",
    )

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..", "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "core/*", "codecs/*", "store/*", "tools/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.variables["TESSERA_TESTS"] = False
        toolchain.variables["TESSERA_PYTHON_MODULE"] = False
        toolchain.generate()
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # The installed tesseraConfig.cmake says it itself.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append(os.path.join("lib", "cmake", "tessera"))
