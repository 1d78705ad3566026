# nix-build tools/release/recipes/nix
{ pkgs ? import <nixpkgs> { } }:

pkgs.stdenv.mkDerivation {
  pname = "tessera";
  version = "0.1.0";
  src = ../../../..;

  nativeBuildInputs = with pkgs; [ cmake ninja pkg-config ];
  # The installed library hands them on.
  propagatedBuildInputs = with pkgs; [
    bzip2 c-blosc curl eccodes fmt hdf5 isa-l libdeflate libpng libtiff libzip lz4 openssl tbb xz zfp zlib zstd
  ];
  buildInputs = with pkgs; [ cli11 libmicrohttpd nlohmann_json ];

  cmakeFlags = [ "-DTESSERA_TESTS=OFF" "-DTESSERA_PYTHON_MODULE=OFF" ];

  meta = {
    description = "Chunked, compressed N-dimensional arrays that do not fit in memory";
    license = pkgs.lib.licenses.mit;
    platforms = pkgs.lib.platforms.linux;
    mainProgram = "tessera";
  };
}
