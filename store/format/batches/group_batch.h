// Batches over several arrays of a group: see batch.cpp for how they work. Private to the store module.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "batch.h"

namespace tessera {

/// A changed array of a batch over a group.
struct BatchPart {
    std::string path;  ///< below the group
    Journal journal;   ///< with the batch's id
};
/// How many folders above the array at `path` its group is.
[[nodiscard]] std::uint32_t folders_above(std::string_view path);
/// The same for arrays of the group at `place`: all happen, or none. The caller holds the shape locks of the group and
/// of the arrays exclusively. The parts are in the order of their paths, at least one.
void record_group_batch(const PlaceRef& place, std::vector<BatchPart>& parts);

/// What becomes of a journal that was found.
enum class Fate : std::uint8_t {
    takes_effect,
    never,     ///< a part of a batch over a group that was not recorded
    given_up,  ///< a part of one that is given up
};

[[nodiscard]] Fate fate_of(const PlaceView& place, const Journal& journal);

/// Takes back an array's part of a batch that was not recorded; its staged values stay.
void retract(const PlaceRef& place, const Journal& journal);
/// Throws invalid_argument for a part of a recorded batch over a group.
void require_whole(const PlaceView& place, const Journal& journal);
/// Reverts the recorded batch of a group, whose lock the caller holds. Returns the number of its arrays.
std::int64_t give_up_group(const PlaceRef& place, Journal journal);

}  // namespace tessera
