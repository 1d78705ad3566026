// Differences between two hierarchies.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tessera/data_set.h>
#include <tessera/group.h>
#include <tessera/measure.h>

namespace tessera::cli {

struct TreeDifference {
    std::vector<std::string> only_in_a, only_in_b;              ///< paths below the groups
    std::vector<std::string> attributes;                        ///< nodes whose attributes differ
    std::vector<std::pair<std::string, Difference>> different;  ///< arrays; nodes that are an array on one side only
    std::vector<std::pair<std::string, std::string>> codes;     ///< arrays that differ in codes alone, and how
    std::int64_t same = 0;                                      ///< nodes without differences

    [[nodiscard]] bool none() const {
        return only_in_a.empty() && only_in_b.empty() && attributes.empty() && different.empty();
    }
};

struct Comparing {
    Tolerance tolerance = {};
    int places = 10;
    bool raw = false;  ///< codes, not what they stand for
};

/// Compares all nodes at and below two groups by path. Arrays whose files are identical, or have identical bytes, are
/// not decoded. `path_a` and `path_b` are the paths of the groups.
[[nodiscard]] TreeDifference tree_difference(const Group& a, const std::string& path_a, const Group& b,
                                             const std::string& path_b, const Comparing& how, const IoOptions& io);

/// Compares two data sets, of which files have no chunks: all arrays by name, their dimensions and what their
/// attributes say, and the attributes of groups.
[[nodiscard]] TreeDifference tree_difference(const DataSet& a, const DataSet& b, const Comparing& how,
                                             const IoOptions& io);

}  // namespace tessera::cli
