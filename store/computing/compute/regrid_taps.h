// Which elements of one grid make each element of another, and how much. Private to the store module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tessera/regridding.h>

#include "grid_axes.h"

namespace tessera {

/// An index of the source along an axis and its weight, which is an area for cells.
struct Tap {
    std::int64_t index = 0;
    double weight = 0;
};
using Taps = std::vector<Tap>;

/// A tap of one element.
struct PointTap {
    std::int64_t row = 0, column = 0;
    double weight = 0;
};

/// What a block of the target is made of, in a box of the source. Rows and columns count from its beginning.
class RegridBlock {
public:
    std::int64_t first_row = 0, row_count = 0, first_column = 0, column_count = 0;  ///< of the box

    /// From the numbers of the box, of which NaN are missing, to those of the block.
    void apply(const double* box, double* out) const;
    /// Nearest elements of `size` bytes.
    void choose(const std::byte* box, std::int64_t size, std::byte* out) const;

private:
    friend class GridTaps;
    struct Row {
        Taps taps = {};                     ///< rows of the box
        std::vector<PointTap> points = {};  ///< four of each column, or one, where rows alone do not tell
    };
    void add_conservative(const Row& row, const double* box, double* out) const;
    void add_bilinear(const Row& row, const double* box, double* out) const;
    void add_points(const Row& row, const double* box, double* out) const;

    Regridding how_ = Regridding::bilinear;
    std::vector<Row> rows_;
    std::vector<Taps> columns_;
};

/// From one grid of latitudes and longitudes to another.
class GridTaps {
public:
    /// Throws invalid_argument for a source of a single row or column between which nothing lies.
    GridTaps(Regridding how, const GridAxis& lat, const GridAxis& lon, const GridAxis& new_lat,
             const GridAxis& new_lon);

    [[nodiscard]] Regridding how() const { return how_; }
    [[nodiscard]] std::int64_t rows() const { return std::ssize(new_lat_.centres); }
    [[nodiscard]] std::int64_t columns() const { return std::ssize(new_lon_.centres); }
    /// About how many rows of the source some of the target are made of.
    [[nodiscard]] std::int64_t source_rows(std::int64_t first, std::int64_t count) const;
    [[nodiscard]] RegridBlock block(std::int64_t first_row, std::int64_t rows, std::int64_t first_column,
                                    std::int64_t columns) const;

private:
    [[nodiscard]] std::vector<PointTap> points_of_row(std::int64_t row, std::int64_t first_column,
                                                      std::int64_t columns) const;
    [[nodiscard]] PointTap nearest(double latitude, std::int64_t column) const;
    void add_nearest_four(std::int64_t row, std::int64_t column, std::vector<PointTap>& points) const;

    Regridding how_;
    GridAxis lat_, lon_, new_lat_, new_lon_;
    bool around_ = false;  ///< whether the source's longitudes run once around the earth
    std::vector<Taps> row_taps_, column_taps_;
};

}  // namespace tessera
