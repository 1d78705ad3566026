// Commands that take several paths.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "command.h"

namespace tessera::cli {

/// Calls each(path) for all paths, and returns the worst of its exit codes. If it throws for one of several paths, the
/// error is printed, counts as its exit code, and the next one follows. What it prints by print_json() becomes one
/// list.
int for_each_path(Session& session, const std::vector<std::string>& paths,
                  const std::function<int(const std::string& path)>& each);

}  // namespace tessera::cli
