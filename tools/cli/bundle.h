// Several arrays into one file: the way back from what importing a file of several arrays makes.
#pragma once

#include <string>
#include <vector>

#include "command.h"
#include "transfer.h"

namespace tessera::cli {

/// The arrays below a directory, a zip or a group in one, by their paths in it: "elevation", "group/elevation". Array
/// files are not among them; an array itself, or another file, has none.
[[nodiscard]] std::vector<std::string> arrays_below(const std::string& path);

/// Writes those arrays of the directory options.source as members of the .npz or fields of the .mldf
/// options.destination. Throws invalid_argument for a file of one array.
void write_bundle(Session& session, const TransferOptions& options, const std::vector<std::string>& names);

}  // namespace tessera::cli
