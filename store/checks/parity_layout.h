// Where the parity of a seal puts each byte. Private to the store module. tools/docs/parity.md describes it; no decoder
// depends on it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parity_index.h"

namespace tessera {

/// At most extent_size bytes of one file.
struct Extent {
    std::uint32_t file = 0;  ///< its number among all
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};
inline constexpr std::uint64_t extent_size = std::uint64_t{16} << 20;

[[nodiscard]] std::uint32_t parity_block_size(std::uint64_t total);

/// All extents of files, in order. A file without bytes has an empty one.
[[nodiscard]] std::vector<Extent> extents_of(std::span<const SealedFile> files);

/// Deals extents to segments. `memory` bounds the parity of one.
[[nodiscard]] std::vector<std::vector<Extent>> deal_extents(std::span<const Extent> extents,
                                                            const Redundancy& redundancy, std::uint64_t memory);

struct LaidOut {
    Segment segment;
    std::vector<std::uint32_t> numbers;  ///< of its files, among all
};
/// The pieces of a segment's extents, with neither sums nor CRCs. Throws invalid_argument for more than 255 blocks in a
/// group.
[[nodiscard]] LaidOut lay_out(std::span<const Extent> extents, std::span<const SealedFile> files,
                              std::uint32_t block_size, const Redundancy& redundancy);

}  // namespace tessera
