// ChunkGrid: pure arithmetic of a regular grid of chunks over an array.
#pragma once

#include <cstdint>
#include <functional>

#include <tessera/shape.h>

namespace tessera {

/// Thread rule: an immutable value.
class ChunkGrid {
public:
    /// Throws invalid_argument if the ranks differ, a length is negative, a chunk length is below 1, or the number of
    /// elements of a chunk or of chunks in the grid overflows int64.
    ChunkGrid(const Shape& shape, const Shape& chunks);

    [[nodiscard]] const Shape& shape() const { return shape_; }
    [[nodiscard]] const Shape& chunks() const { return chunks_; }
    /// Number of chunks along each dimension (0 if the length is 0; () for 0-d, which has one chunk).
    [[nodiscard]] const Shape& grid() const { return grid_; }
    [[nodiscard]] std::int64_t chunk_count() const { return count_; }

    /// The number of a chunk in C order of the grid, and the reverse.
    [[nodiscard]] std::int64_t linear(const Index& chunk) const;
    [[nodiscard]] Index index(std::int64_t linear) const;
    /// The part of the array that a chunk covers, cut at the array's edge.
    [[nodiscard]] Region chunk_region(const Index& chunk) const;
    /// The chunk indices that a region touches, as a box in the grid.
    [[nodiscard]] Region overlapping(const Region& region) const;

private:
    Shape shape_, chunks_, grid_;
    std::int64_t count_ = 0;
};

/// Whether a chunk index lies inside the grid.
[[nodiscard]] bool in_grid(const ChunkGrid& grid, const Index& chunk);

/// The absolute index of element number `n` of a box, counted in C order.
[[nodiscard]] Index index_in(const Region& box, std::int64_t n);

/// The part of a region in one chunk.
struct ChunkPart {
    Index chunk = {};        ///< index in the grid
    Region in_chunk = {};    ///< relative to the chunk's first element
    Region in_request = {};  ///< relative to the region's first element
    bool whole = false;      ///< covers every element of the chunk that lies inside the array
};

/// Part number `n` of `region`, where n counts the overlapped chunks in C order.
[[nodiscard]] ChunkPart chunk_part(const ChunkGrid& grid, const Region& region, const Region& overlapped,
                                   std::int64_t n);

/// A chunk shape of at most about `target_bytes` for a new array: the longest length is halved until the chunk fits, so
/// that chunks are nearly cubic. No length exceeds the array's or is below 1.
[[nodiscard]] Shape choose_chunks(const Shape& shape, std::int64_t item_size, std::int64_t target_bytes = 1 << 20);

}  // namespace tessera
