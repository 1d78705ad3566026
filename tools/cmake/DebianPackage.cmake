# CPack runs this between installing the components and packing them: what Debian's policy wants of a package beside its
# files. Nothing of it is done by `cmake --install`.
file(GLOB components "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*")
foreach(component IN LISTS components)
  get_filename_component(name "${component}" NAME)
  string(TOUPPER "${name}" key)
  set(package "${CPACK_DEBIAN_${key}_PACKAGE_NAME}")
  if(NOT package)
    continue()
  endif()

  # Each package says who may do what with it, and what is new.
  set(documents "${component}/usr/share/doc/${package}")
  file(MAKE_DIRECTORY "${documents}")
  file(READ "${CPACK_TESSERA_SOURCE}/LICENSE" license)
  string(STRIP "${license}" license)
  string(REGEX MATCH "Copyright[^\n]*" owner "${license}")
  string(REGEX REPLACE "^Copyright *(\\([cC]\\))? *" "" owner "${owner}")
  string(REGEX REPLACE "\n\n" "\n.\n" license "${license}")
  string(REPLACE "\n" "\n " license "${license}")
  file(WRITE "${documents}/copyright"
       "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: tessera\n\n"
       "Files: *\nCopyright: ${owner}\nLicense: Expat\n\nLicense: Expat\n ${license}\n")
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(WRITE "${documents}/changelog.Debian"
       "${package} (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
       "  * Made by CPack. What is new stands in CHANGELOG.md of the sources.\n\n"
       " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  execute_process(COMMAND gzip -9n "${documents}/changelog.Debian" COMMAND_ERROR_IS_FATAL ANY)

  file(GLOB_RECURSE pages "${component}/usr/share/man/*.1")
  if(pages)
    execute_process(COMMAND gzip -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
  endif()
  # Helpers below /usr are found without a run path.
  file(GLOB descriptions "${component}/usr/lib/*/pkgconfig/tessera.pc" "${component}/usr/lib/pkgconfig/tessera.pc")
  if(descriptions)
    execute_process(COMMAND sed -i "s/ -Wl,-rpath,[^ ]*//" ${descriptions} COMMAND_ERROR_IS_FATAL ANY)
  endif()
  # Where Debian's zsh looks.
  if(EXISTS "${component}/usr/share/zsh/site-functions")
    file(RENAME "${component}/usr/share/zsh/site-functions" "${component}/usr/share/zsh/vendor-completions")
  endif()

  file(GLOB_RECURSE binaries "${component}/usr/bin/*" "${component}/usr/lib/*.so"
       "${component}/usr/libexec/*" "${component}/usr/lib/tessera-hdf5" "${component}/usr/lib/tessera-tiff"
       "${component}/usr/lib/tessera-grib")
  foreach(file IN LISTS binaries)
    execute_process(COMMAND strip --remove-section=.comment --remove-section=.note "${file}" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  file(GLOB_RECURSE archives "${component}/usr/lib/*.a")
  foreach(file IN LISTS archives)
    execute_process(COMMAND strip --strip-debug --enable-deterministic-archives "${file}" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endforeach()
