# Debian packages by CPack: `cpack --config build/release/CPackConfig.cmake -B build/packages` writes tessera-arrays,
# libtessera-arrays-dev and python3-tessera-arrays. Each is one install component; `cmake --install` without --component
# installs all.
#
# Of static libraries: what the program and the module take of Tessera is in them, so that none of the three needs
# another one of the same version.
if(BUILD_SHARED_LIBS OR NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
set(TESSERA_MAINTAINER "Tessera developers <developers@tessera.invalid>" CACHE STRING "Whom the Debian packages name: Name <address>")
set(TESSERA_DEBIAN_RELEASE 1 CACHE STRING "What stands behind the version of the Debian packages")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tessera-arrays)
set(CPACK_PACKAGE_VENDOR Tessera)
set(CPACK_PACKAGE_CONTACT "${TESSERA_MAINTAINER}")
set(CPACK_COMPONENTS_ALL program development)
if(TARGET _tessera)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE "${TESSERA_DEBIAN_RELEASE}")
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
# Below /usr, whatever prefix the build was configured for. By DESTDIR, so that the module knows its prefix.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES OFF) # DebianPackage.cmake does, of archives with their symbols
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/DebianPackage.cmake")
# What DebianPackage.cmake needs of the sources.
set(CPACK_TESSERA_SOURCE "${PROJECT_SOURCE_DIR}")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME tessera-arrays)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
# What is loaded when it is used.
set(tessera_loaded_packages "libcurl4, libmicrohttpd12")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "${tessera_loaded_packages}")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "fuse3")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
    "edit, exchange and archive arrays that do not fit in memory
Makes chunked, compressed N-dimensional arrays of NumPy files, edits parts
of them from many processes at once, converts between all versions of
Zarr, NumPy, RawArray and MLDF, and checks, repairs and seals them.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtessera-arrays-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
# What tesseraConfig.cmake and tessera.pc ask for.
string(
  CONCAT CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
         "libblosc-dev, libbz2-dev, libdeflate-dev, libfmt-dev, libisal-dev, liblz4-dev, liblzma-dev, "
         "libssl-dev, libtbb-dev, libzip-dev, libzstd-dev, pkg-config, zlib1g-dev")
# Its programs read and write HDF5 and TIFF by the helper, which is in the other package.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "tessera-arrays (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
foreach(package IN LISTS tessera_linked)
  if(TARGET PkgConfig::${package})
    list(GET tessera_${package} 0 debian)
    string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", ${debian}")
  endif()
endforeach()
if(TARGET zfp::zfp)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libzfp-dev")
endif()
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "C++ library for arrays that do not fit in memory (development files)
Static libraries, headers, and what CMake and pkg-config read, for C++20
programs that read and write chunked, compressed N-dimensional arrays in
all versions of Zarr, and the files of NumPy, RawArray and MLDF.")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-tessera-arrays)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
# The module is built for one minor version of Python 3.
get_property(tessera_python GLOBAL PROPERTY TESSERA_PYTHON_VERSION)
string(REGEX REPLACE ".*[.]" "" tessera_next_python "0.${tessera_python}")
math(EXPR tessera_next_python "${tessera_next_python} + 1")
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "python3 (>= ${tessera_python}), python3 (<< 3.${tessera_next_python}), python3-numpy, ${tessera_loaded_packages}")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_LIST_DIR}/debian/postinst"
                                               "${CMAKE_CURRENT_LIST_DIR}/debian/prerm")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-dask, python3-fsspec, python3-xarray, python3-zarr")
set(CPACK_COMPONENT_PYTHON_DESCRIPTION
    "arrays that do not fit in memory, indexed as NumPy does
Opens all versions of Zarr, and the files of NumPy, RawArray and MLDF,
as arrays that are read and written by region, without copies, from many
threads and processes. With an engine for xarray and blocks for dask.")
include(CPack)
