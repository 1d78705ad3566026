// Blocks: a region cut into boxes, for loops over an array that does not fit in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include <tessera/chunk_grid.h>
#include <tessera/shape.h>

namespace tessera {

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
