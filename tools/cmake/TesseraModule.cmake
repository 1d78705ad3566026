# tessera_module(NAME PUBLIC ... PRIVATE ...): one library of the project, its sources and public headers found in its
# folder.
function(tessera_module name)
  cmake_parse_arguments(arg "" "" "PUBLIC;PRIVATE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  file(GLOB headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/include/tessera/*.h")
  add_library(tessera_${name} ${sources})
  add_library(tessera::${name} ALIAS tessera_${name})
  target_sources(tessera_${name} PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${headers})
  # Before 1.0 a minor version may change the binary interface.
  set_target_properties(
    tessera_${name}
    PROPERTIES EXPORT_NAME ${name}
               POSITION_INDEPENDENT_CODE ON
               VERSION ${PROJECT_VERSION}
               SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_compile_features(tessera_${name} PUBLIC cxx_std_20)
  target_link_libraries(tessera_${name} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  tessera_options(tessera_${name})
  if(TESSERA_FUZZ)
    target_compile_options(tessera_${name} PRIVATE -fsanitize=fuzzer-no-link) # what libFuzzer counts
  endif()
endfunction()

# tessera_options(TARGET): warnings and sanitizers, for our own targets only.
function(tessera_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align)
  if(TESSERA_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
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
