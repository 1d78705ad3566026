// The language of `tessera edit --script`.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include <tessera/array.h>

#include "command.h"

namespace tessera::cli {

/// Applies each line to the array of a batch. `name` is the script's name, for messages. Returns the number of
/// commands. Throws Error, with the script's name and the line.
std::int64_t run_script(Session& session, Array& array, std::istream& script, const std::string& name);

}  // namespace tessera::cli
