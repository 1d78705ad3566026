// Two sealed copies, compared by their seals.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/place.h>

namespace tessera {

/// Paths are sorted, and relative to the sealed nodes.
struct SealDifference {
    std::int64_t same = 0;  ///< files with the same sum
    std::vector<std::string> different, only_in_a, only_in_b;
    [[nodiscard]] bool none() const { return different.empty() && only_in_a.empty() && only_in_b.empty(); }
};
/// Reads the two lists of sums, and no data: whether the files still are as they were sealed is for verify() to say.
/// The pages that `seal --readme` writes are left out, and tell nothing of the data. Throws not_found for a place
/// without a seal, invalid_argument for one whose seal was broken by writing, and corrupt for an invalid list.
[[nodiscard]] SealDifference seal_difference(const PlaceView& a, const PlaceView& b);
/// The same of two paths: directories, zips and array files with their seals beside them, bags with parity.
[[nodiscard]] SealDifference seal_difference(const std::string& a, const std::string& b);

}  // namespace tessera
