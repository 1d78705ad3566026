# Manual pages and completion scripts, written by the program from the same tables as --help:
#   cmake -DTESSERA=PROGRAM -DTO=FOLDER -P HelpFiles.cmake
function(write_help file)
  execute_process(COMMAND ${TESSERA} help ${ARGN} OUTPUT_FILE ${TO}/${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(MAKE_DIRECTORY ${TO}/man1)
execute_process(COMMAND ${TESSERA} help commands OUTPUT_VARIABLE commands COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" commands "${commands}")
write_help(man1/tessera.1 man)
foreach(command IN LISTS commands)
  if(command)
    write_help(man1/tessera-${command}.1 man ${command})
  endif()
endforeach()
write_help(tessera.bash completion bash)
write_help(_tessera completion zsh)
write_help(tessera.fish completion fish)
