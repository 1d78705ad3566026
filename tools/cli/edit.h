// What `set` and `append` do, for scripts too.
#pragma once

#include <string>

#include <tessera/array.h>
#include <tessera/selection.h>

#include "command.h"

namespace tessera::cli {

/// Opens an array to change it, and says which program will not read what is changed.
[[nodiscard]] Array open_to_edit(Session& session, const std::string& path);

/// Writes `value` (one value as text, or the name of an array file) into every element that the selection picks.
void set_elements(Session& session, Array& array, const Selection& selection, const std::string& value);
/// What `append` does: writes an array file after the end of an axis.
void append_file(Session& session, Array& array, const std::string& file, int axis);

}  // namespace tessera::cli
