# cmake -DFROM=FOLDER -DFACTS=TEXT -DTO=out.cpp -P BuildId.cmake: writes build_id() of core/files/foreign.h, a number of what
# the sources in this folder are and of these facts. The same sources have the same one on every machine.
file(GLOB_RECURSE files RELATIVE "${FROM}" "${FROM}/*.cpp" "${FROM}/*.h")
list(SORT files)
set(all "${FACTS}")
foreach(file IN LISTS files)
  file(SHA256 "${FROM}/${file}" hash)
  string(APPEND all "\n${file} ${hash}")
endforeach()
string(SHA256 id "${all}")
string(SUBSTRING "${id}" 0 16 id)
file(WRITE "${TO}" "#include \"foreign.h\"\n\nnamespace tessera {\n\nstd::string_view build_id() {\n    return \"${id}\";\n}\n\n}  // namespace tessera\n")
