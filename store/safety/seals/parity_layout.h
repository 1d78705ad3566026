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
    std::uint32_t file = 0;  ///< its number in the segment
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};
inline constexpr std::uint64_t extent_size = std::uint64_t{16} << 20;

[[nodiscard]] std::uint32_t parity_block_size(std::uint64_t total);

/// How many extents a file of that size has. A file without bytes has an empty one.
[[nodiscard]] std::uint64_t extents_in(std::uint64_t size);
/// The bytes of one of them.
[[nodiscard]] std::uint64_t extent_length(std::uint64_t size, std::uint64_t number);

/// The bytes dealt to segments.
struct Extents {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    std::uint64_t largest = 0;  ///< bytes of one file
};
/// Deals extents, in order, each to the segment with the fewest bytes that has room for one more: a segment of tiny
/// files is limited by their number, so that its index is.
class Dealer {
public:
    /// `memory` bounds the parity of a segment, and with it its index.
    Dealer(const Extents& extents, const Redundancy& redundancy, std::uint64_t memory);

    /// The number of the next extent's segment.
    [[nodiscard]] std::uint32_t deal(std::uint64_t length);

private:
    struct Fill {
        std::uint64_t bytes = 0;
        std::uint32_t segment = 0;
        std::uint32_t extents = 0;
    };
    static bool is_fuller(const Fill& a, const Fill& b) {
        return a.bytes != b.bytes ? a.bytes > b.bytes : a.segment > b.segment;
    }

    std::uint64_t most_extents_;
    std::vector<Fill> fills_;  ///< a heap, the emptiest first
};

/// Lays out a segment of these files: its pieces, with neither sums nor CRCs. The extents are in the order of their
/// files; all that is sealed has `total` bytes. Throws invalid_argument for more than 255 blocks in a group.
[[nodiscard]] Segment lay_out(std::vector<SealedFile> files, std::span<const Extent> extents, std::uint32_t block_size,
                              const Redundancy& redundancy, std::uint64_t total);

/// The bytes in a row that a segment can always lose, when `good` parity blocks of each group are there. `begins` says
/// for each piece where it lies among all `total` sealed bytes, put one after another. A piece that the run touches is
/// taken to be lost.
[[nodiscard]] std::uint64_t safe_run(const Segment& s, std::span<const std::uint64_t> begins,
                                     std::span<const std::uint32_t> good, std::uint64_t total);

}  // namespace tessera
