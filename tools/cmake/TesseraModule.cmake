# Before 1.0 a minor version may change the binary interface, afterwards a major one: tools/docs/stability.md.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(tessera_soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  set(tessera_compatibility SameMinorVersion)
else()
  set(tessera_soversion ${PROJECT_VERSION_MAJOR})
  set(tessera_compatibility SameMajorVersion)
endif()

# tessera_left_out(LIBRARY PACKAGE WHAT): says what the build does without because a library is missing; `tessera
# --version` says it, too.
function(tessera_left_out library package what)
  message(STATUS "${library} (${package}) was not found: no ${what}")
  set_property(GLOBAL APPEND PROPERTY tessera_left_out "${what}")
endfunction()

# tessera_load_or_link(LIBRARY VARIABLE): what a target links of a library whose functions the sources load at the first use
# (core/internal/tessera/loaded_library.h): its headers. The library itself, where a program may not find it by its name: where
# it is no shared library of the system, and in wheels, which bring their libraries.
function(tessera_load_or_link library variable)
  set(loaded tessera_loaded_${library})
  add_library(${loaded} INTERFACE)
  get_target_property(files PkgConfig::${library} INTERFACE_LINK_LIBRARIES)
  # LeakSanitizer of Clang 14 fails on the thread-local memory of libraries that are loaded later.
  if(SKBUILD OR TESSERA_SANITIZE OR NOT files MATCHES "^/(usr/)?lib/[^;]*[.]so$")
    target_link_libraries(${loaded} INTERFACE PkgConfig::${library})
    target_compile_definitions(${loaded} INTERFACE TESSERA_LINKED)
    set(${variable} $<BUILD_INTERFACE:${loaded}> PkgConfig::${library} PARENT_SCOPE)
  else()
    target_include_directories(${loaded} SYSTEM INTERFACE $<TARGET_PROPERTY:PkgConfig::${library},INTERFACE_INCLUDE_DIRECTORIES>)
    target_link_libraries(${loaded} INTERFACE ${CMAKE_DL_LIBS})
    set(${variable} $<BUILD_INTERFACE:${loaded}> PARENT_SCOPE)
  endif()
endfunction()

# What nearly every source includes of others.
set(tessera_heavy_headers <algorithm> <complex> <filesystem> <functional> <map> <memory> <optional> <span> <stop_token> <string>
                          <thread> <variant> <vector> <fmt/format.h>)

# tessera_join_sources(TARGET [ALONE SOURCE...]): compiles TESSERA_JOIN sources at a time, because the headers that they
# have in common are most of each. ALONE names, below the current folder, the tables, which tests/toys links with rows of
# its own, and sources that declare the same names as their siblings on purpose. CMake's own unity builds name sources by
# their whole paths, by which ccache takes the same sources in another checkout for others.
function(tessera_join_sources target)
  cmake_parse_arguments(arg "" "" "ALONE" ${ARGN})
  if(TESSERA_JOIN LESS 2)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(alone)
  set(includes)
  set(joined)
  foreach(source IN LISTS sources)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE name)
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR "${source}" is_generated)
    if(is_generated OR name IN_LIST arg_ALONE)
      list(APPEND alone "${source}")
      continue()
    endif()
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
    list(APPEND includes "#include \"${source}\"\n")
  endforeach()
  list(LENGTH includes count)
  math(EXPR units "(${count} + ${TESSERA_JOIN} - 1) / ${TESSERA_JOIN}")
  foreach(unit RANGE 1 ${units})
    # Units of the same size: the longest is what a build waits for.
    math(EXPR first "(${unit} - 1) * ${count} / ${units}")
    math(EXPR size "${unit} * ${count} / ${units} - ${first}")
    list(SUBLIST includes ${first} ${size} part)
    list(JOIN part "" content)
    set(file "${CMAKE_CURRENT_BINARY_DIR}/joined/${target}_${unit}.cpp")
    file(CONFIGURE OUTPUT "${file}" CONTENT "${content}" @ONLY)
    list(APPEND joined "${file}")
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${joined};${alone}")
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
endfunction()

# tessera_precompile(TARGET HEADER...): where each source is compiled by itself, these headers are read once for all of
# them: they are most of each.
function(tessera_precompile target)
  if(TESSERA_JOIN LESS 2)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# tessera_optimise_less(TARGET): for what waits for files, networks and people. GCC 12 takes a third less time for it with
# -O1 than with -O3.
function(tessera_optimise_less target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# tessera_module(NAME [ROOMS FOLDER...] [COLD FOLDER...] [ALONE SOURCE...] PUBLIC ... PRIVATE ...): one library of the
# project, its sources and public headers found in its folder, or in the folders that ROOMS names. Each of these stands above
# the ones before it: it is compiled with its own headers and theirs alone, so that none includes what stands above it.
# Headers in "internal" are for the modules above, too, but are not installed. COLD names rooms that are optimised less.
function(tessera_module name)
  cmake_parse_arguments(arg "" "" "ROOMS;COLD;ALONE;PUBLIC;PRIVATE" ${ARGN})
  if(NOT arg_ROOMS)
    set(arg_ROOMS .)
  endif()
  add_library(tessera_${name})
  add_library(tessera::${name} ALIAS tessera_${name})
  set(folders)
  set(public_folders)
  set(internal_folders)
  set(public_headers)
  foreach(room IN LISTS arg_ROOMS)
    cmake_path(ABSOLUTE_PATH room BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE OUTPUT_VARIABLE folder)
    string(REGEX REPLACE "/$" "" folder "${folder}")
    file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
    file(GLOB headers CONFIGURE_DEPENDS "${folder}/include/tessera/*.h")
    list(APPEND folders "${folder}")
    list(APPEND public_folders "${folder}/include")
    list(APPEND internal_folders "${folder}/internal")
    list(APPEND public_headers ${headers})
    string(MAKE_C_IDENTIFIER "tessera_${name}_${room}" objects)
    add_library(${objects} OBJECT ${sources})
    set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_features(${objects} PUBLIC cxx_std_20)
    target_include_directories(${objects} PRIVATE ${folders} ${public_folders} ${internal_folders})
    target_link_libraries(${objects} PRIVATE ${arg_PUBLIC} ${arg_PRIVATE})
    tessera_options(${objects})
    if(room IN_LIST arg_COLD)
      tessera_optimise_less(${objects})
    endif()
    tessera_join_sources(${objects} ALONE ${arg_ALONE})
    tessera_precompile(${objects} ${tessera_heavy_headers})
    if(TESSERA_FUZZ)
      target_compile_options(${objects} PRIVATE -fsanitize=fuzzer-no-link) # what libFuzzer counts
    endif()
    target_sources(tessera_${name} PRIVATE $<TARGET_OBJECTS:${objects}>)
  endforeach()
  target_sources(tessera_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${public_folders} FILES ${public_headers})
  target_include_directories(tessera_${name} INTERFACE "$<BUILD_INTERFACE:${internal_folders}>")
  set_target_properties(
    tessera_${name}
    PROPERTIES EXPORT_NAME ${name}
               POSITION_INDEPENDENT_CODE ON
               LINKER_LANGUAGE CXX
               VERSION ${PROJECT_VERSION}
               SOVERSION ${tessera_soversion}
               TESSERA_FOLDERS "${folders}") # for tests of what is private
  target_compile_features(tessera_${name} PUBLIC cxx_std_20)
  target_link_libraries(tessera_${name} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  tessera_options(tessera_${name})
endfunction()

# tessera_options(TARGET): warnings and sanitizers, for our own targets only.
function(tessera_options target)
  if(TESSERA_JOIN GREATER 1)
    # What a source says beside others is not its own: sources that are compiled alone (preset dev) are judged.
    target_compile_options(${target} PRIVATE -w)
  else()
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align)
    if(TESSERA_WERROR)
      target_compile_options(${target} PRIVATE -Werror)
    endif()
  endif()
  if(TESSERA_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${TESSERA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${TESSERA_SANITIZE})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      # Tests start them thousands of times: relocating what the sanitizers know of every place took a third of that.
      target_link_options(${target} PRIVATE -no-pie)
    endif()
  endif()
endfunction()
