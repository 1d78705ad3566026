// Differences between two hierarchies, or two files of several arrays.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/data_set.h>
#include <tessera/locate.h>
#include <tessera/measure.h>
#include <tessera/value.h>

namespace tessera {

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

/// Compares what lies at two places, where each holds several arrays; empty otherwise. Of groups all nodes at and below
/// them are compared by path, and arrays whose files are identical, or have identical bytes, are not decoded. Of files,
/// which have no chunks, all arrays are compared by name, their dimensions and what their attributes say, and the
/// attributes of groups.
using CompareTrees = std::function<TreeDifference(const Comparing&, const IoOptions&)>;
[[nodiscard]] CompareTrees tree_comparison(const Located& a, const Located& b);

/// As JSON and Python's result have it.
[[nodiscard]] Value tree_difference_value(const TreeDifference& found);

}  // namespace tessera
