# Installs the libraries, one include/tessera/, the program, and what find_package(tessera) and pkg-config read. The
# components are the Debian packages of TesseraPackages.cmake.
include(CMakePackageConfigHelpers)
set(tessera_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tessera")

install(TARGETS tessera_core tessera_codecs tessera_store tessera EXPORT tesseraTargets COMPONENT development
        FILE_SET HEADERS COMPONENT development)
install(EXPORT tesseraTargets NAMESPACE tessera:: DESTINATION "${tessera_package_dir}" COMPONENT development)
# The helpers, for whatever lies below the same prefix.
install(TARGETS tessera_helper_hdf5 tessera_helper_tiff tessera_helper_grib DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/tessera" COMPONENT program)
if(TARGET tessera_cli)
  install(TARGETS tessera_cli COMPONENT program)
  # The pages that help texts name, and the examples that the pages name, side by side as in tools/.
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/tools/docs" "${PROJECT_SOURCE_DIR}/tools/examples"
          DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT program PATTERN Doxyfile EXCLUDE PATTERN __pycache__ EXCLUDE)
  install(FILES "${PROJECT_BINARY_DIR}/tools/THIRD-PARTY.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT program)
  if(TARGET tessera_help)
    set(help_files "${PROJECT_BINARY_DIR}/tools/help")
    install(DIRECTORY "${help_files}/man1" DESTINATION "${CMAKE_INSTALL_MANDIR}" COMPONENT program)
    install(FILES "${help_files}/tessera.bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
            RENAME tessera COMPONENT program)
    install(FILES "${help_files}/_tessera" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions"
            COMPONENT program)
    install(FILES "${help_files}/tessera.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d"
            COMPONENT program)
  endif()
endif()

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/tesseraConfig.cmake.in" "${PROJECT_BINARY_DIR}/tesseraConfig.cmake"
  INSTALL_DESTINATION "${tessera_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake" COMPATIBILITY ${tessera_compatibility})
install(FILES "${PROJECT_BINARY_DIR}/tesseraConfig.cmake" "${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake"
              "${CMAKE_CURRENT_LIST_DIR}/TesseraDependencies.cmake" DESTINATION "${tessera_package_dir}" COMPONENT development)

# Static archives leave their dependencies to whoever links them, also without `pkg-config --static`; shared libraries
# carry their own.
if(BUILD_SHARED_LIBS)
  set(tessera_pc_requires)
  set(tessera_pc_libs)
else()
  set(tessera_pc_requires "blosc, libcrypto, libdeflate, libisal, liblz4, liblzma, libzip, libzstd, tbb, fmt")
  foreach(package IN LISTS tessera_linked)
    if(TARGET PkgConfig::${package})
      string(APPEND tessera_pc_requires ", ${${package}_MODULE_NAME}")
    endif()
  endforeach()
  # The run path leads to the helpers, as in tesseraConfig.cmake; DebianPackage.cmake takes it out.
  set(tessera_pc_libs " -lbz2 -lz -ldl -Wl,-rpath,\${prefix}/${CMAKE_INSTALL_LIBEXECDIR}/tessera")
  if(TARGET zfp::zfp)
    string(APPEND tessera_pc_libs " -lzfp")
  endif()
endif()
# The prefix is found from where the file lies, so that an installed tree can be moved.
file(RELATIVE_PATH tessera_pc_up "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
configure_file("${CMAKE_CURRENT_LIST_DIR}/tessera.pc.in" "${PROJECT_BINARY_DIR}/tessera.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tessera.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT license)
include(TesseraPackages)
