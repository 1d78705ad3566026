// ChunkGrid: pure arithmetic of a grid of chunks over an array. The chunks have one shape, or lengths that differ along
// a dimension (Zarr v3's grid "rectilinear").
// Blocks: a region cut into boxes, for loops over an array that does not fit in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/shape.h>

namespace tessera {

/// The lengths of the chunks along one dimension, where they may differ, as runs of equal ones: there may be 10^18.
/// Thread rule: an immutable value.
class ChunkEdges {
public:
    /// This length again and again, as far as the array goes. Throws invalid_argument if it is below 1.
    explicit ChunkEdges(std::int64_t length);

    struct Run {
        std::int64_t length = 0, count = 0;
    };
    /// Throws invalid_argument if there are no runs, a number is below 1, or the sum of the lengths overflows int64.
    explicit ChunkEdges(std::span<const Run> runs);

    /// Neighbours of one length are one run; all of them, also those beyond the array. See endless().
    [[nodiscard]] std::vector<Run> runs() const;
    /// One length again and again: runs() then has one run, whose count says nothing.
    [[nodiscard]] bool endless() const { return endless_; }
    /// The sum of all lengths.
    [[nodiscard]] std::int64_t end() const { return end_; }

    struct Chunk {
        std::int64_t index = 0, start = 0, length = 0;
    };
    /// The chunk with the element at `position`, which lies before end().
    [[nodiscard]] Chunk at(std::int64_t position) const;
    /// Chunk number `index`, which begins before end().
    [[nodiscard]] Chunk numbered(std::int64_t index) const;
    /// The number of chunks, and the longest length, of an array of this length. The first chunk counts for the longest
    /// even where the array is empty.
    [[nodiscard]] std::int64_t count(std::int64_t extent) const { return extent == 0 ? 0 : at(extent - 1).index + 1; }
    [[nodiscard]] std::int64_t longest(std::int64_t extent) const;

    /// For an array that grows to this length: the last length goes on until they reach it.
    [[nodiscard]] ChunkEdges reaching(std::int64_t extent) const;
    /// Whether one of the two only has further lengths at its end.
    [[nodiscard]] bool continues(const ChunkEdges& other) const;
    friend bool operator==(const ChunkEdges&, const ChunkEdges&) = default;

private:
    struct Place {
        std::int64_t index, start, length, count;
        [[nodiscard]] Chunk chunk(std::int64_t n) const { return {index + n, start + n * length, length}; }
        friend bool operator==(const Place&, const Place&) = default;
    };
    void add(const Run& run);

    std::vector<Place> runs_;
    std::int64_t chunks_ = 0, end_ = 0;
    bool endless_ = false;
};

/// Thread rule: an immutable value.
class ChunkGrid {
public:
    /// Throws invalid_argument if the ranks differ, a length is negative, a chunk length is below 1, or the number of
    /// elements of a chunk or of chunks in the grid overflows int64.
    ChunkGrid(const Shape& shape, const Shape& chunks);
    /// Of chunks whose lengths differ: `edges` has one entry for each dimension. Throws invalid_argument as above, and
    /// if lengths end before the array does.
    [[nodiscard]] static ChunkGrid of_edges(const Shape& shape, std::vector<ChunkEdges> edges);

    [[nodiscard]] const Shape& shape() const { return shape_; }
    /// The shape of every chunk. If they differ in length (see regular()), the longest lengths, which one chunk has.
    [[nodiscard]] const Shape& chunks() const { return chunks_; }
    [[nodiscard]] bool regular() const { return edges_ == nullptr; }
    /// The shape in which a chunk is stored, also where the array's edge cuts it.
    [[nodiscard]] Shape chunk_shape(const Index& chunk) const;
    /// How far the last chunk along a dimension goes beyond the array's edge.
    [[nodiscard]] std::int64_t beyond_edge(int d) const;
    /// The same grid as far as one chunk is concerned: chunks() is its shape.
    [[nodiscard]] ChunkGrid about(const Index& chunk) const;
    /// The chunk along dimension `d` that has the element at `position`.
    [[nodiscard]] std::int64_t chunk_at(int d, std::int64_t position) const {
        return edges_ == nullptr ? position / chunks_[d] : (*edges_)[static_cast<std::size_t>(d)].at(position).index;
    }
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
    ChunkGrid() = default;

    Shape shape_, chunks_, grid_;
    std::int64_t count_ = 0;
    std::shared_ptr<const std::vector<ChunkEdges>> edges_;  ///< nullptr: all chunks have one shape
};

/// The lengths of chunks that a person gives: one shape or, where they differ, one entry of `edges` for each dimension.
struct ChunkLengths {
    Shape shape;
    std::vector<ChunkEdges> edges;

    /// Sets the option that they belong to.
    template <class OneShape, class Edges>
    void give(OneShape& one_shape, Edges& different) && {
        if (edges.empty()) {
            one_shape = std::move(shape);
        } else {
            different = std::move(edges);
        }
    }
};
/// Reads a shape ("10,20"), or lists in square brackets for dimensions along which lengths differ, which can be
/// repeated and joined as in Python: "[10,10,5]*4, 32" and "[31]+[28,31]*3,". Throws invalid_argument.
[[nodiscard]] ChunkLengths parse_chunk_lengths(std::string_view text);

/// The same text for lengths that differ: "[10,10,5],32"; more than a few equal ones as "[10]*40".
[[nodiscard]] std::string lengths_text(std::span<const ChunkEdges> edges);

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

/// One box of Blocks, in indices of the array.
struct Block {
    Index index;       ///< its place in the grid of blocks
    Region region;     ///< cut at the array's edge; no two blocks share an element
    Region with_halo;  ///< the region and its halo, cut at the array's edge too
    Region in_halo;    ///< where the region lies within with_halo, relative to its first element
};

/// The boxes that an array of a shape is cut into, in C order, as a random-access range. With parallel_for:
///
///     const Blocks blocks(grid.shape(), grid.chunks(), {1, 1});  // a halo of 1 along both dimensions
///     parallel_for(blocks.count(), {}, [&](std::int64_t i) {
///         const Block block = blocks[i];
///         const NDArray in = grid.read(block.with_halo);
///         std::vector<float> out(static_cast<std::size_t>(block.region.count()));
///         // … from in to out …
///         result.write(block.region, out);
///     });
///
/// Blocks of the shape of whole chunks (with shards: whole shards) can be written at the same time without waiting for
/// one another. Thread rule: an immutable value.
class Blocks {
public:
    class Iterator;

    /// `halo` has a length for each dimension, or is empty. Throws invalid_argument as ChunkGrid, and for a negative
    /// halo or one of another rank.
    Blocks(const Shape& shape, const Shape& block, const Shape& halo = {});

    [[nodiscard]] std::int64_t count() const { return grid_.chunk_count(); }
    [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(count()); }
    [[nodiscard]] bool empty() const { return count() == 0; }
    /// Block number `i` in C order, 0 <= i < count().
    [[nodiscard]] Block operator[](std::int64_t i) const;
    [[nodiscard]] Iterator begin() const;
    [[nodiscard]] Iterator end() const;

private:
    ChunkGrid grid_;
    Shape halo_;
};

/// Makes each block on request. The Blocks outlive it.
class Blocks::Iterator {
public:
    using iterator_concept = std::random_access_iterator_tag;
    using iterator_category = std::input_iterator_tag;
    using value_type = Block;
    using difference_type = std::int64_t;
    using reference = Block;
    using pointer = void;

    Iterator() = default;
    Iterator(const Blocks& blocks, std::int64_t at) : blocks_(&blocks), at_(at) {}
    [[nodiscard]] Block operator*() const { return (*blocks_)[at_]; }
    [[nodiscard]] Block operator[](std::int64_t n) const { return (*blocks_)[at_ + n]; }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this -= 1; }
    Iterator operator++(int) { return Iterator(*blocks_, at_++); }
    Iterator operator--(int) { return Iterator(*blocks_, at_--); }
    Iterator& operator+=(std::int64_t n) {
        at_ += n;
        return *this;
    }
    Iterator& operator-=(std::int64_t n) {
        at_ -= n;
        return *this;
    }
    friend Iterator operator+(Iterator a, std::int64_t n) { return a += n; }
    friend Iterator operator+(std::int64_t n, Iterator a) { return a += n; }
    friend Iterator operator-(Iterator a, std::int64_t n) { return a -= n; }
    friend std::int64_t operator-(const Iterator& a, const Iterator& b) { return a.at_ - b.at_; }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }
    friend auto operator<=>(const Iterator& a, const Iterator& b) { return a.at_ <=> b.at_; }

private:
    const Blocks* blocks_ = nullptr;
    std::int64_t at_ = 0;
};

inline Blocks::Iterator Blocks::begin() const {
    return Iterator(*this, 0);
}

inline Blocks::Iterator Blocks::end() const {
    return Iterator(*this, count());
}

}  // namespace tessera
