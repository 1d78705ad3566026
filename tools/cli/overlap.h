// Sources and destinations that must not be the same.
#pragma once

#include <string>
#include <vector>

namespace tessera::cli {

/// Throws invalid_argument, naming both, where the destination is one of the sources, lies in one or around one, also
/// by way of links.
void require_apart(const std::vector<std::string>& sources, const std::string& destination);

}  // namespace tessera::cli
