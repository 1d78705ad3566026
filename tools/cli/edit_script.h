// The language of `tessera edit --script`.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include <tessera/array.h>

#include "command.h"

namespace tessera::cli {

/// Does what each line says to the array, which is that of a batch. `name` is the script's, for messages. Returns the
/// number of lines that said something. Throws Error, with the script's name and the line.
std::int64_t run_script(Session& session, Array& array, std::istream& script, const std::string& name);

}  // namespace tessera::cli
