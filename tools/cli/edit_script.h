// The language of `tessera edit --script`.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <set>
#include <string>

#include <tessera/edit.h>

#include "command.h"

namespace tessera::cli {

/// Applies each line to the array of a batch; of a batch over a group, to the array that was named last, and adds the
/// names to `arrays`, which is null otherwise. `name` is the script's name, for messages. Returns the number of edits.
/// Throws Error, with the script's name and the line.
std::int64_t run_script(Session& session, Edit& batch, std::set<std::string>* arrays, std::istream& script,
                        const std::string& name);

}  // namespace tessera::cli
