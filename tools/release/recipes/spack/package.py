"""Spack: `spack dev-build tessera@0.1.0` in a checkout, with this file in a repository's packages/tessera/."""

from spack.package import *


class Tessera(CMakePackage):
    """Chunked, compressed N-dimensional arrays that do not fit in memory."""

    license("MIT")
    version("0.1.0")

    variant("python", default=False, description="The Python module")
    variant("serve", default=True, description="The server for browsers and Zarr programs")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("ninja", type="build")
    depends_on("bzip2")
    depends_on("c-blosc")
    depends_on("cli11")
    depends_on("curl")
    depends_on("eccodes")
    depends_on("fmt")
    depends_on("hdf5")
    depends_on("isa-l")
    depends_on("libdeflate")
    depends_on("libmicrohttpd", when="+serve")
    depends_on("libpng")
    depends_on("libtiff")
    depends_on("libzip")
    depends_on("lz4")
    depends_on("nlohmann-json")
    depends_on("openssl")
    depends_on("tbb")
    depends_on("xz")
    depends_on("zfp")
    depends_on("zlib-api")
    depends_on("zstd")
    extends("python", when="+python")
    depends_on("py-pybind11@2.10:", when="+python")
    depends_on("py-numpy@1.24:", when="+python")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define("TESSERA_TESTS", False),
            self.define_from_variant("TESSERA_PYTHON_MODULE", "python"),
        ]
        if "+python" in self.spec:
            args.append(self.define("TESSERA_PYTHON", python.path))
        return args
