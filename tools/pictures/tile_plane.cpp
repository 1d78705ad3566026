#include "tile_plane.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include <tessera/derived_source.h>
#include <tessera/element.h>
#include <tessera/memory_account.h>
#include <tessera/shape.h>

#include "windows.h"

namespace tessera {

namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

double neutral(Coarsening with) {
    return with == Coarsening::min ? infinite : with == Coarsening::max ? -infinite : 0;
}

/// How many of the elements [start, start + count) lie in a window.
std::int64_t overlap(std::int64_t window, int level, std::int64_t start, std::int64_t count) {
    const std::int64_t size = std::int64_t{1} << level;
    const std::int64_t begin = std::max(window * size, start);
    return std::min(window * size + size, start + count) - begin;
}

/// As a double, which does not overflow: two windows of 2^40.
double area(std::int64_t rows, std::int64_t columns) {
    return static_cast<double>(rows) * static_cast<double>(columns);
}

double joined(Coarsening with, double a, double b) {
    return with == Coarsening::min ? std::min(a, b) : with == Coarsening::max ? std::max(a, b) : a + b;
}

/// The same rule for counts of both widths.
template <class Count>
Count joined_counts(Count a, Count b) {
    return a > 0 && b > 0 ? a + b : a > 0 ? a : b > 0 ? b : std::min(a, b);
}

/// Calls take(numbers, index of the first, their number) for pieces of a row.
template <class Take>
void read_row(NumberRows& rows, const NDArray& elements, std::int64_t row, const Take& take) {
    const std::int64_t size = elements.dtype().size();
    const std::int64_t columns = elements.shape()[1];
    rows.reals(elements.bytes().data() + row * columns * size, size, columns, take);
}

/// As TilePlane::counts.
std::int32_t count_of(const Window& run) {
    return run.count == 0 && run.has_missing ? -1 : static_cast<std::int32_t>(run.count);
}

bool may_have_gaps(const DType& dtype, const TileReduction& how) {
    const bool whole =
        dtype.kind() == Kind::boolean || dtype.kind() == Kind::integer || dtype.kind() == Kind::unsigned_integer;
    return !whole || !how.missing->empty();
}

TilePlane nearest_plane(const NDArray& elements, const TileBox& box, const TileLevel& level) {
    TilePlane plane{.windows = windows_of(box, level, Coarsening::nearest), .values = {}, .counts = {}, .elements = {}};
    plane.values = NDArray(DType::of<double>(), {plane.windows.rows, plane.windows.columns});
    double* to = plane.values.values<double>().data();
    NumberRows rows(elements.dtype());
    for (std::int64_t w = 0; w < plane.windows.rows; ++w, to += plane.windows.columns) {
        const std::int64_t r = ((plane.windows.row + w) << level.row) - box.row;
        read_row(rows, elements, r, [&](const double* v, std::int64_t first, std::int64_t n) {
            const std::int64_t begin = box.column + first;
            const std::int64_t step = std::int64_t{1} << level.column;
            for (std::int64_t c = ceil_div(begin, step); c * step < begin + n; ++c) {
                to[c - plane.windows.column] = v[c * step - begin];
            }
        });
    }
    return plane;
}

/// Drops counts that equal the sizes of the windows.
void drop_full_counts(TilePlane& plane, const TileBox& box, const TileLevel& level) {
    const std::int32_t* counts = plane.counts.values<std::int32_t>().data();
    for (std::int64_t i = 0; i < plane.windows.rows; ++i) {
        const std::int64_t high = overlap(plane.windows.row + i, level.row, box.row, box.rows);
        for (std::int64_t j = 0; j < plane.windows.columns; ++j) {
            const std::int64_t wide = overlap(plane.windows.column + j, level.column, box.column, box.columns);
            if (*counts++ != high * wide) return;
        }
    }
    plane.counts = NDArray();
}

/// Room for sums or extremes, and for counts.
TilePlane empty_plane(const TileBox& windows, Coarsening with, bool counted) {
    TilePlane plane{.windows = windows, .values = {}, .counts = {}, .elements = {}};
    plane.values = NDArray(DType::of<double>(), {windows.rows, windows.columns});
    std::ranges::fill(plane.values.values<double>(), neutral(with));
    if (counted) {
        plane.counts = NDArray(DType::of<std::int32_t>(), {windows.rows, windows.columns});
        std::ranges::fill(plane.counts.values<std::int32_t>(), 0);
    }
    return plane;
}

}  // namespace

TileBox common(const TileBox& a, const TileBox& b) {
    TileBox both{std::max(a.row, b.row), std::max(a.column, b.column), 0, 0};
    both.rows = std::max<std::int64_t>(0, std::min(a.row + a.rows, b.row + b.rows) - both.row);
    both.columns = std::max<std::int64_t>(0, std::min(a.column + a.columns, b.column + b.columns) - both.column);
    return both;
}

NDArray part_of(const NDArray& elements, const TileBox& box, const TileBox& part) {
    NDArray copy(elements.dtype(), {part.rows, part.columns});
    const auto size = static_cast<std::size_t>(elements.dtype().size());
    const auto columns = static_cast<std::size_t>(box.columns);
    const auto wide = static_cast<std::size_t>(part.columns) * size;
    const auto left = static_cast<std::size_t>(part.column - box.column);
    for (std::int64_t r = 0; r < part.rows; ++r) {
        const auto row = static_cast<std::size_t>(part.row - box.row + r);
        std::memcpy(copy.bytes().data() + static_cast<std::size_t>(r) * wide,
                    elements.bytes().data() + (row * columns + left) * size, wide);
    }
    return copy;
}

TileBox windows_of(const TileBox& elements, const TileLevel& level, Coarsening with) {
    const auto along = [&](std::int64_t start, std::int64_t count, int l) {
        const std::int64_t last = (start + count - 1) >> l;
        const std::int64_t size = std::int64_t{1} << l;
        const std::int64_t first = with == Coarsening::nearest ? ceil_div(start, size) : start / size;
        return std::pair(first, std::max<std::int64_t>(0, last - first + 1));
    };
    const auto [row, rows] = along(elements.row, elements.rows, level.row);
    const auto [column, columns] = along(elements.column, elements.columns, level.column);
    return {row, column, rows, columns};
}

TilePlane reduced_plane(const NDArray& elements, const TileBox& box, const TileLevel& level, const TileReduction& how) {
    if (how.with == Coarsening::nearest) return nearest_plane(elements, box, level);
    const bool gaps = may_have_gaps(elements.dtype(), how);
    TilePlane plane = empty_plane(windows_of(box, level, how.with), how.with, gaps);
    NumberRows rows(elements.dtype());
    for (std::int64_t r = 0; r < box.rows; ++r) {
        const std::int64_t at = (((box.row + r) >> level.row) - plane.windows.row) * plane.windows.columns;
        double* values = plane.values.values<double>().data() + at;
        std::int32_t* counts = gaps ? plane.counts.values<std::int32_t>().data() + at : nullptr;
        read_row(rows, elements, r, [&](const double* v, std::int64_t first, std::int64_t n) {
            for_each_window(box.column + first, n, std::int64_t{1} << level.column,
                            [&](std::int64_t window, std::int64_t j, std::int64_t together) {
                                Window run;
                                gaps ? run.add(v + j, together, *how.missing, how.with)
                                     : run.add_all(v + j, together, how.with);
                                const std::int64_t c = window - plane.windows.column;
                                values[c] = joined(how.with, values[c], run.part(how.with));
                                if (gaps) counts[c] = joined_counts(counts[c], count_of(run));
                            });
        });
    }
    if (gaps) drop_full_counts(plane, box, level);
    return plane;
}

TilePlane coarser_plane(const TilePlane& finer, const TileBox& box, const TileLevel& from, const TileLevel& to,
                        const TileReduction& how) {
    const int down = to.row - from.row;
    const int across = to.column - from.column;
    const TileBox& old = finer.windows;
    const double* values = finer.values.values<double>().data();
    const bool counted = finer.counts.count() > 0 && finer.counts.shape().rank() == 2;
    TilePlane plane = empty_plane(windows_of(box, to, how.with), how.with, counted);
    const TileBox& made = plane.windows;
    double* out = plane.values.values<double>().data();
    if (how.with == Coarsening::nearest) {
        for (std::int64_t i = 0; i < made.rows; ++i) {
            const double* row = values + (((made.row + i) << down) - old.row) * old.columns;
            for (std::int64_t j = 0; j < made.columns; ++j) *out++ = row[((made.column + j) << across) - old.column];
        }
        return plane;
    }
    const std::int32_t* counts = counted ? finer.counts.values<std::int32_t>().data() : nullptr;
    std::int32_t* sums = counted ? plane.counts.values<std::int32_t>().data() : nullptr;
    for (std::int64_t i = 0; i < old.rows; ++i) {
        const std::int64_t row = (((old.row + i) >> down) - made.row) * made.columns;
        for (std::int64_t j = 0; j < old.columns; ++j) {
            const std::int64_t cell = row + ((old.column + j) >> across) - made.column;
            out[cell] = joined(how.with, out[cell], *values++);
            if (counted) sums[cell] = joined_counts(sums[cell], *counts++);
        }
    }
    return plane;
}

TileCells::TileCells(const TileBox& windows, const TileBox& slice, const TileLevel& level, const TileReduction& how)
    : windows_(windows), slice_(slice), level_(level), how_(how) {
    const auto n = static_cast<std::size_t>(windows.count());
    values_.assign(n, neutral(how.with));
    counts_.assign(n, 0);
    covered_.assign(n, 0);
}

bool TileCells::is_missing(double v) const {
    return std::ranges::find(*how_.missing, v) != how_.missing->end();
}

void TileCells::merge(std::size_t cell, double value, double count) {
    values_[cell] = how_.with == Coarsening::nearest ? value : joined(how_.with, values_[cell], value);
    counts_[cell] = joined_counts(counts_[cell], count);
}

/// Merges `n` elements of one value.
void TileCells::merge_constant(std::size_t cell, double value, double n) {
    if (how_.with == Coarsening::nearest) {
        merge(cell, value, 1);
    } else if (value == value && !is_missing(value)) {
        merge(cell, how_.with == Coarsening::mean ? value * n : value, n);
    } else {
        counts_[cell] = joined_counts<double>(counts_[cell], value == value ? -1 : 0);
    }
}

void TileCells::cover(const TileBox& part, const TileBox& box) {
    for (std::int64_t i = part.row; i < part.row + part.rows; ++i) {
        const std::int64_t high = overlap(i, level_.row, box.row, box.rows);
        double* to = covered_.data() + (i - windows_.row) * windows_.columns - windows_.column;
        for (std::int64_t j = part.column; j < part.column + part.columns; ++j) {
            to[j] += how_.with == Coarsening::nearest ? infinite
                                                      : area(high, overlap(j, level_.column, box.column, box.columns));
        }
    }
}

void TileCells::add(const TilePlane& plane, const TileBox& box) {
    const TileBox part = common(windows_, plane.windows);
    cover(part, box);
    const bool counted = plane.counts.shape().rank() == 2;
    for (std::int64_t i = part.row; i < part.row + part.rows; ++i) {
        const std::int64_t high = overlap(i, level_.row, box.row, box.rows);
        const std::int64_t from = (i - plane.windows.row) * plane.windows.columns - plane.windows.column;
        const std::int64_t to = (i - windows_.row) * windows_.columns - windows_.column;
        const double* values = plane.values.values<double>().data() + from;
        const std::int32_t* counts = counted ? plane.counts.values<std::int32_t>().data() + from : nullptr;
        for (std::int64_t j = part.column; j < part.column + part.columns; ++j) {
            double count = 1;
            if (counted) {
                count = counts[j];
            } else if (how_.with != Coarsening::nearest) {
                count = area(high, overlap(j, level_.column, box.column, box.columns));
            }
            merge(static_cast<std::size_t>(to + j), values[j], count);
        }
    }
}

void TileCells::add_constant(double value, const TileBox& box) {
    const TileBox part = common(windows_, windows_of(box, level_, how_.with));
    cover(part, box);
    for (std::int64_t i = part.row; i < part.row + part.rows; ++i) {
        const std::int64_t high = overlap(i, level_.row, box.row, box.rows);
        for (std::int64_t j = part.column; j < part.column + part.columns; ++j) {
            const double n = area(high, overlap(j, level_.column, box.column, box.columns));
            const auto cell = static_cast<std::size_t>((i - windows_.row) * windows_.columns + j - windows_.column);
            merge_constant(cell, value, n);
        }
    }
}

void TileCells::add_rest(double value) {
    for (std::int64_t i = 0; i < windows_.rows; ++i) {
        const std::int64_t high = overlap(windows_.row + i, level_.row, slice_.row, slice_.rows);
        for (std::int64_t j = 0; j < windows_.columns; ++j) {
            const auto cell = static_cast<std::size_t>(i * windows_.columns + j);
            const double n =
                area(high, overlap(windows_.column + j, level_.column, slice_.column, slice_.columns)) - covered_[cell];
            if (n > 0) merge_constant(cell, value, n);
        }
    }
}

NDArray TileCells::values(const DType& dtype) const {
    NDArray numbers(DType::of<double>(), {windows_.rows, windows_.columns});
    const std::span<double> to = numbers.values<double>();
    for (std::size_t i = 0; i < values_.size(); ++i) {
        double v = values_[i];
        if (how_.with != Coarsening::nearest) {
            if (counts_[i] <= 0) {
                v = counts_[i] < 0 ? how_.missing->front() : no_value;
            } else if (how_.with == Coarsening::mean) {
                v /= counts_[i];
                // A mean that happens to be the number for missing data is not missing.
                const bool single = dtype.size() == 4;
                if (is_missing(single ? static_cast<double>(static_cast<float>(v)) : v)) {
                    v = single ? std::nextafter(static_cast<float>(v), std::numeric_limits<float>::infinity())
                               : std::nextafter(v, infinite);
                }
            }
        }
        to[i] = v;
    }
    const DType native = dtype.kind() == Kind::boolean ? DType::of<std::uint8_t>() : dtype;
    NDArray out(native, numbers.shape());
    (void)cast_packed(numbers.dtype(), numbers.bytes().data(), native, out.bytes().data(), out.count(), Cast::unsafe);
    if constexpr (std::endian::native == std::endian::big) {
        swap_elements(native, out.bytes().data(), out.count());
    }
    return out;
}

}  // namespace tessera
