// What one chunk contributes to tiles. Private to the store module.
#pragma once

#include <cstdint>
#include <vector>

#include <tessera/ndarray.h>
#include <tessera/reduce.h>

namespace tessera {

/// A rectangle of a slice: elements, or windows of a level.
struct TileBox {
    std::int64_t row = 0;
    std::int64_t column = 0;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    [[nodiscard]] std::int64_t count() const { return rows * columns; }
    friend bool operator==(const TileBox&, const TileBox&) = default;
};

struct TileLevel {
    int row = 0;
    int column = 0;
    friend bool operator==(const TileLevel&, const TileLevel&) = default;
};

/// What becomes of the elements of a window.
struct TileReduction {
    Coarsening with = Coarsening::mean;  ///< nearest for the level (0, 0), whose windows are single elements
    const std::vector<double>* missing = nullptr;
};

/// The elements of a chunk's slice, reduced in the windows that it touches. Immutable once made.
struct TilePlane {
    TileBox windows;  ///< for `nearest` those that begin in the chunk
    /// f8: sums, extremes, or first elements as they are.
    NDArray values;
    /// i4: how many elements of a window are numbers. 0: all are NaN. -1: none is, and not all are NaN. Empty for
    /// `nearest`, and where all elements are numbers.
    NDArray counts;
    /// In place of the above: the elements themselves, (rows, columns) in host order.
    NDArray elements;

    [[nodiscard]] std::uint64_t bytes() const {
        return values.bytes().size() + counts.bytes().size() + elements.bytes().size() + 256;
    }
};

/// The part of two rectangles that they have in common.
[[nodiscard]] TileBox common(const TileBox& a, const TileBox& b);
/// A copy of a part of elements, which are at `box` in the slice.
[[nodiscard]] NDArray part_of(const NDArray& elements, const TileBox& box, const TileBox& part);
/// The windows of a level that elements touch; for `nearest` those that begin among them.
[[nodiscard]] TileBox windows_of(const TileBox& elements, const TileLevel& level, Coarsening with);
/// Reduces elements, which are at `box` in the slice.
[[nodiscard]] TilePlane reduced_plane(const NDArray& elements, const TileBox& box, const TileLevel& level,
                                      const TileReduction& how);
/// A coarser level from a finer one of the same elements.
[[nodiscard]] TilePlane coarser_plane(const TilePlane& finer, const TileBox& box, const TileLevel& from,
                                      const TileLevel& to, const TileReduction& how);

/// The sum of all planes in a tile.
class TileCells {
public:
    /// `windows`: of the tile. `shape`: of the whole slice, in elements.
    TileCells(const TileBox& windows, const TileBox& slice, const TileLevel& level, const TileReduction& how);

    /// Adds what elements at `box` contribute.
    void add(const TilePlane& plane, const TileBox& box);
    /// The same for a box full of one value.
    void add_constant(double value, const TileBox& box);
    /// Takes all elements that were not added for `value`: those of chunks that are not stored.
    void add_rest(double value);
    /// The result, packed, little-endian.
    [[nodiscard]] NDArray values(const DType& dtype) const;

private:
    [[nodiscard]] bool is_missing(double v) const;
    void merge(std::size_t cell, double value, double count);
    void merge_constant(std::size_t cell, double value, double n);
    void cover(const TileBox& part, const TileBox& box);

    TileBox windows_;
    TileBox slice_;
    TileLevel level_;
    TileReduction how_;
    std::vector<double> values_;
    std::vector<double> counts_;   ///< as TilePlane::counts
    std::vector<double> covered_;  ///< elements that were added
};

}  // namespace tessera
