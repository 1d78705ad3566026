# Homebrew on Linux: brew install --build-from-source ./tools/release/recipes/homebrew/tessera.rb
class Tessera < Formula
  desc "Chunked, compressed N-dimensional arrays that do not fit in memory"
  # The checkout that this file lies in.
  url "file://#{File.expand_path("../../../..", __dir__)}", using: :git
  version "0.1.0"
  license "MIT"

  depends_on "cli11" => :build
  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "nlohmann-json" => :build
  depends_on "pkgconf" => :build
  depends_on "bzip2"
  depends_on "c-blosc"
  depends_on "curl"
  depends_on "eccodes"
  depends_on "fmt"
  depends_on "hdf5"
  depends_on "isa-l"
  depends_on "libdeflate"
  depends_on "libmicrohttpd"
  depends_on "libpng"
  depends_on "libtiff"
  depends_on "libzip"
  depends_on :linux
  depends_on "lz4"
  depends_on "openssl@3"
  depends_on "tbb"
  depends_on "xz"
  depends_on "zlib"
  depends_on "zstd"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DTESSERA_TESTS=OFF",
           "-DTESSERA_PYTHON_MODULE=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    system bin/"tessera", "create", "a.zarr", "--shape", "4", "--dtype", "<i4"
    assert_match "4 elements", shell_output("#{bin}/tessera info a.zarr")
  end
end
