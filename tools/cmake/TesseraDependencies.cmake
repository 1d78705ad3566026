# The libraries that Tessera links, found in one place: included by the build itself and, because a static library
# hands its dependencies on, by the installed tesseraConfig.cmake. Header-only ones are needed by the build alone and
# are found in core/CMakeLists.txt.
set(tessera_required)
if(tessera_FIND_REQUIRED)
  set(tessera_required REQUIRED)
endif()
find_package(TBB ${tessera_required} QUIET)
find_package(fmt ${tessera_required} QUIET)
find_package(BZip2 ${tessera_required} QUIET)
find_package(PkgConfig ${tessera_required} QUIET)
# libzip by pkg-config, because Debian's CMake package of it also asks for programs that libzip-dev does not depend on.
foreach(tessera_package blosc libcrypto libdeflate libisal liblz4 liblzma libzip libzstd zlib)
  if(PKG_CONFIG_FOUND AND NOT TARGET PkgConfig::${tessera_package})
    pkg_check_modules(${tessera_package} ${tessera_required} QUIET IMPORTED_TARGET GLOBAL ${tessera_package})
  endif()
endforeach()
# What a library may have been built with, or not: core/CMakeLists.txt says what is missing then. The package of Debian
# is for TesseraPackages.cmake, the names for pkg-config are those that may be found.
set(tessera_linked libcurl libpng)
set(tessera_optional ${tessera_linked})
if(PROJECT_NAME STREQUAL "tessera") # the helper's; who links the library needs none of them
  list(APPEND tessera_optional hdf5 libtiff-4)
endif()
set(tessera_libcurl libcurl4-openssl-dev libcurl)
set(tessera_hdf5 libhdf5-dev hdf5-serial hdf5)
set(tessera_libtiff-4 libtiff-dev libtiff-4)
set(tessera_libpng libpng-dev libpng)
foreach(tessera_package IN LISTS tessera_optional)
  if(PKG_CONFIG_FOUND AND NOT TARGET PkgConfig::${tessera_package})
    list(SUBLIST tessera_${tessera_package} 1 -1 tessera_modules)
    pkg_search_module(${tessera_package} QUIET IMPORTED_TARGET GLOBAL ${tessera_modules})
  endif()
endforeach()
# Debian's CMake package of libzfp asks for programs that libzfp-dev does not depend on.
find_path(zfp_include_folder zfp.h)
find_library(zfp_library zfp)
mark_as_advanced(zfp_include_folder zfp_library)
if(zfp_include_folder AND zfp_library AND NOT TARGET zfp::zfp)
  add_library(zfp::zfp UNKNOWN IMPORTED GLOBAL)
  set_target_properties(zfp::zfp PROPERTIES IMPORTED_LOCATION "${zfp_library}" INTERFACE_INCLUDE_DIRECTORIES
                                                                              "${zfp_include_folder}")
endif()
