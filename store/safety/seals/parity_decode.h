// Computing erased pieces of a segment from its parity. Private to the store module.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>
#include <tessera/parallel.h>

#include "parity_archive.h"
#include "parity_code.h"

namespace tessera {

/// Paths below what is sealed.
using PathSet = std::set<std::string, std::less<>>;

/// Thread rule: for one thread, but decode(), from several at once for different groups.
class SegmentDecoder {
public:
    /// `differing` are the files that are not as they were sealed: their pieces are erased unless their CRC is right.
    /// `state` and the store outlive it.
    SegmentDecoder(const PlaceView& place, const SegmentState& state, const PathSet& differing, const IoOptions& io);

    [[nodiscard]] bool any_erased() const;
    /// Files with a piece that cannot be computed.
    [[nodiscard]] PathSet unsolvable() const;

    /// Groups with erased pieces of these files, all of which can be computed.
    [[nodiscard]] std::vector<std::uint32_t> groups_with(const PathSet& files) const;
    /// Computes the erased pieces of a group, and calls each(piece, bytes) for those of `files`.
    void decode(std::uint32_t group, const PathSet& files,
                const std::function<void(const Piece&, ByteSpan)>& each) const;

private:
    /// Bytes of a group between which the same blocks are erased.
    struct Interval {
        std::uint32_t begin = 0;
        std::uint32_t end = 0;
        std::vector<std::uint32_t> rows;  ///< of the erased blocks
    };
    [[nodiscard]] std::vector<Interval> intervals(std::uint32_t group) const;
    [[nodiscard]] std::vector<std::uint32_t> good_rows(std::uint32_t group) const;
    void find_erased(const PathSet& differing, const IoOptions& io);
    void find_unsolvable();
    /// The blocks of a group, erased bytes zero, one after another.
    [[nodiscard]] Buffer load_blocks(std::uint32_t group) const;
    [[nodiscard]] Buffer load_syndromes(std::uint32_t group, const std::vector<std::uint32_t>& good,
                                        const Buffer& blocks) const;

    const ReadableStore& store_;
    std::string prefix_;
    const SegmentState& state_;
    const Segment& segment_;
    CauchyCode code_;
    std::vector<char> erased_;      ///< of each piece
    std::vector<char> unsolvable_;  ///< of each piece
    std::vector<std::vector<std::uint32_t>> by_group_;
};

}  // namespace tessera
