// The folders that a command makes on the way to what it was asked to make.
#pragma once

#include <filesystem>

#include "command.h"

namespace tessera::cli {

/// Looks before a command runs whether the folder of its destination exists. A missing one is made, as scripts expect,
/// and reported, because its name may be mistyped.
class MadeFolder {
public:
    /// `command` is parsed.
    explicit MadeFolder(const CLI::App& command);
    /// Prints a line if the folder was made, unless --quiet or --json.
    void report(const Session& session) const;

private:
    std::filesystem::path missing_;  ///< empty if the folder was there, or if the command makes none
};

}  // namespace tessera::cli
