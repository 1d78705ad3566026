// Several arrays into one file: the way back from what importing a file of several arrays makes, and from one such file
// to another.
#pragma once

#include <string>
#include <vector>

#include <tessera/folder_walk.h>

#include "command.h"
#include "transfer_report.h"

namespace tessera::cli {

/// The arrays below a directory, a zip or a group in one, by their paths in it: "elevation", "group/elevation". Array
/// files are not among them; an array itself, or another file, has none. `passed` becomes what was not looked into.
[[nodiscard]] std::vector<std::string> arrays_below(const std::string& path, std::vector<PassedFolder>& passed);

/// Writes the arrays `names` of the directory, zip or file options.source into the file options.destination,
/// as its members,, and says what they are. Throws invalid_argument for a file of one array; then, and when one of
/// them cannot be read, what is at the destination stays as it is.
std::vector<Made> write_bundle(Session& session, const TransferOptions& options, const std::vector<std::string>& names);

}  // namespace tessera::cli
