# Names everything that is missing in one message: whoever runs `pip install .` has seen no list of packages.
find_package(nlohmann_json QUIET)
set(tessera_wanted
    TBB::tbb libtbb-dev
    fmt::fmt libfmt-dev
    BZip2::BZip2 libbz2-dev
    PkgConfig::blosc libblosc-dev
    PkgConfig::libcrypto libssl-dev
    PkgConfig::libdeflate libdeflate-dev
    PkgConfig::libisal libisal-dev
    PkgConfig::liblz4 liblz4-dev
    PkgConfig::liblzma liblzma-dev
    PkgConfig::libzip libzip-dev
    PkgConfig::libzstd libzstd-dev
    PkgConfig::zlib zlib1g-dev
    nlohmann_json::nlohmann_json nlohmann-json3-dev)
if(TESSERA_TOOLS)
  find_package(CLI11 QUIET)
  list(APPEND tessera_wanted CLI11::CLI11 libcli11-dev)
endif()
if(SKBUILD)
  find_package(Python 3.9 QUIET COMPONENTS Interpreter Development.Module)
  list(APPEND tessera_wanted Python::Module python3-dev)
endif()
set(tessera_missing)
if(NOT PKG_CONFIG_FOUND)
  list(APPEND tessera_missing pkg-config)
endif()
while(tessera_wanted)
  list(POP_FRONT tessera_wanted tessera_target tessera_package)
  if(NOT TARGET ${tessera_target})
    list(APPEND tessera_missing ${tessera_package})
  endif()
endwhile()
if(tessera_missing)
  list(JOIN tessera_missing " " tessera_missing)
  # Lines that begin with spaces are not broken.
  message(FATAL_ERROR "Libraries that Tessera needs are missing. On Debian and Ubuntu, as an administrator:\n"
                      "  apt-get install ${tessera_missing}")
endif()
