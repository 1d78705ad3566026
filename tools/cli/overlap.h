// Checks that sources and destinations do not overlap.
#pragma once

#include <string>
#include <vector>

namespace tessera::cli {

/// Throws invalid_argument, naming both, if the destination is one of the sources, or inside or around one, even
/// through links.
void require_apart(const std::vector<std::string>& sources, const std::string& destination);

}  // namespace tessera::cli
