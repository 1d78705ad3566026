// What differs between two hierarchies.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tessera/difference.h>
#include <tessera/group.h>

namespace tessera::cli {

struct TreeDifference {
    std::vector<std::string> only_in_a, only_in_b;              ///< paths below the groups
    std::vector<std::string> attributes;                        ///< of nodes whose attributes differ
    std::vector<std::pair<std::string, Difference>> different;  ///< arrays; nodes that are an array on one side only
    std::int64_t same = 0;                                      ///< nodes of which nothing differs

    [[nodiscard]] bool none() const {
        return only_in_a.empty() && only_in_b.empty() && attributes.empty() && different.empty();
    }
};

/// Compares all nodes at and below two groups by their paths. Arrays whose files are the same, or hold the same bytes,
/// are not decoded. `path_a` and `path_b` are where the groups lie.
[[nodiscard]] TreeDifference tree_difference(const Group& a, const std::string& path_a, const Group& b,
                                             const std::string& path_b, const Tolerance& tolerance, int places,
                                             const IoOptions& io);

}  // namespace tessera::cli
