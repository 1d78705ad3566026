#include "regrid_taps.h"
#include "windows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include <tessera/error_text.h>

namespace tessera {

namespace {

/// Whether longitudes and one step more are 360 degrees, within a hundredth of a step.
bool runs_around(const std::vector<double>& v) {
    if (v.size() < 2) return false;
    const double span = v.back() - v.front();
    const double step = span / static_cast<double>(v.size() - 1);
    return std::abs(std::abs(span + step) - 360) <= std::abs(step) / 100;
}

/// The same longitude, from `low` on.
double in_turn_from(double low, double value) {
    double turned = value - std::floor((value - low) / 360) * 360;
    if (turned - low >= 360) turned -= 360;  // rounded up
    return turned;
}

/// The first interval of values that rise or fall in which one lies: its second index; 0: it lies in none.
std::int64_t interval_of(const std::vector<double>& v, double value) {
    if (v.size() < 2) return 0;
    const bool rises = v.back() > v.front();
    const auto before = [rises](double a, double b) { return rises ? a < b : a > b; };
    if (before(value, v.front()) || before(v.back(), value)) return 0;
    const auto found = std::lower_bound(v.begin() + 1, v.end(), value, before);
    return found - v.begin();
}

Taps linear(const std::vector<double>& v, double value) {
    const std::int64_t k = interval_of(v, value);
    if (k == 0) return {};
    const double low = v[static_cast<std::size_t>(k) - 1], high = v[static_cast<std::size_t>(k)];
    const double part = (value - low) / (high - low);
    return {{k - 1, 1 - part}, {k, part}};
}

std::int64_t nearest_of(const std::vector<double>& v, double value) {
    const bool rises = v.back() >= v.front();
    const auto before = [rises](double a, double b) { return rises ? a < b : a > b; };
    const auto found = std::lower_bound(v.begin(), v.end(), value, before);
    if (found == v.end()) return std::ssize(v) - 1;
    if (found == v.begin()) return 0;
    const bool earlier = std::abs(value - *(found - 1)) <= std::abs(*found - value);
    return found - v.begin() - (earlier ? 1 : 0);
}

/// Cells that a new cell has something in common with, and how much of an axis. Both ends of the cells rise, or fall.
/// `measure` of a latitude is its sine.
template <class Measure>
void add_common(const std::vector<std::pair<double, double>>& cells, double low, double high, const Measure& measure,
                Taps& taps) {
    const auto ends = [](const auto& cell) { return std::minmax(cell.first, cell.second); };
    const bool rises = ends(cells.back()).second >= ends(cells.front()).second;
    const auto begin = std::ranges::partition_point(
        cells, [&](const auto& cell) { return rises ? ends(cell).second <= low : ends(cell).first >= high; });
    for (auto cell = begin; cell != cells.end(); ++cell) {
        const auto [a, b] = ends(*cell);
        if (rises ? a >= high : b <= low) return;
        const double common = measure(std::min(b, high)) - measure(std::max(a, low));
        if (common > 0) taps.push_back({cell - cells.begin(), common});
    }
}

/// Throws for bounds that overlap, or that do not follow each other.
void require_in_order(const GridAxis& axis) {
    int rises = 0, falls = 0;
    for (std::size_t i = 1; i < axis.bounds.size(); ++i) {
        const auto before = std::minmax(axis.bounds[i - 1].first, axis.bounds[i - 1].second);
        const auto here = std::minmax(axis.bounds[i].first, axis.bounds[i].second);
        rises += here.second > before.second && here.first >= before.first;
        falls += here.first < before.first && here.second <= before.second;
    }
    const int steps = static_cast<int>(axis.bounds.size()) - 1;
    if (rises != steps && falls != steps) {
        throw invalid_argument("{}: the bounds of its cells do not follow each other; choose bilinear or nearest",
                               axis.name);
    }
}

double distance(double lat_a, double lat_b, double width) {
    const double cosine = std::sin(lat_a * degree) * std::sin(lat_b * degree) +
                          std::cos(lat_a * degree) * std::cos(lat_b * degree) * std::cos(width * degree);
    return std::acos(std::clamp(cosine, -1.0, 1.0));
}

void require_fitting(const GridAxis& axis, Regridding how) {
    if (how == Regridding::conservative) return require_in_order(axis);
    const auto& v = axis.centres;
    const bool sorted =
        std::ranges::is_sorted(v, std::less_equal<>()) || std::ranges::is_sorted(v, std::greater_equal<>());
    if (v.size() > 1 && !sorted) throw invalid_argument("{}: its values neither rise nor fall", axis.name);
    if (how == Regridding::bilinear && v.size() < 2) {
        throw invalid_argument("{}: it has one value, and bilinear lies between two; choose nearest", axis.name);
    }
}

}  // namespace

// ---- taps

GridTaps::GridTaps(Regridding how, const GridAxis& lat, const GridAxis& lon, const GridAxis& new_lat,
                   const GridAxis& new_lon)
    : how_(how), lat_(lat), lon_(lon), new_lat_(new_lat), new_lon_(new_lon), around_(runs_around(lon.centres)) {
    for (const GridAxis* axis : {&lat_, &lon_}) require_fitting(*axis, how);
    const auto one = [](double v) { return v; };
    const auto sine = [](double v) { return std::sin(v * degree); };
    std::vector<double> closed = lon_.centres;  // to the first one again
    if (around_) closed.push_back(closed.front() + std::copysign(360, closed.back() - closed.front()));
    const double west = std::min(closed.front(), closed.back());
    for (std::size_t i = 0; i < new_lat_.centres.size(); ++i) {
        Taps taps;
        if (how == Regridding::bilinear) taps = linear(lat_.centres, new_lat_.centres[i]);
        if (how == Regridding::nearest) taps = {{nearest_of(lat_.centres, new_lat_.centres[i]), 1}};
        const auto [low, high] = std::minmax(new_lat_.bounds[i].first, new_lat_.bounds[i].second);
        if (how == Regridding::conservative) add_common(lat_.bounds, low, high, sine, taps);
        row_taps_.push_back(std::move(taps));
    }
    for (std::size_t j = 0; j < new_lon_.centres.size(); ++j) {
        Taps taps;
        if (how == Regridding::bilinear) {
            taps = linear(closed, in_turn_from(west, new_lon_.centres[j]));
            for (Tap& tap : taps) tap.index %= std::ssize(lon_.centres);
        } else if (how == Regridding::nearest) {
            taps = {{nearest(0, static_cast<std::int64_t>(j)).column, 1}};
        } else {
            const auto [low, high] = std::minmax(new_lon_.bounds[j].first, new_lon_.bounds[j].second);
            const double turned = in_turn_from(west - 360, low);
            for (const double turn : {0.0, 360.0, 720.0}) {
                add_common(lon_.bounds, turned + turn, turned + turn + (high - low), one, taps);
            }
        }
        column_taps_.push_back(std::move(taps));
    }
}

std::int64_t GridTaps::source_rows(std::int64_t first, std::int64_t count) const {
    std::int64_t low = std::ssize(lat_.centres), high = -1;
    for (std::int64_t i = first; i < first + count; ++i) {
        for (const Tap& tap : row_taps_[static_cast<std::size_t>(i)]) {
            low = std::min(low, tap.index);
            high = std::max(high, tap.index);
        }
    }
    return std::max<std::int64_t>(2, high - low + 1);
}

/// The nearest element on the sphere. In each row that is the one of the nearest longitude. Along this meridian the
/// distance is least where a great circle from the target meets it at a right angle.
PointTap GridTaps::nearest(double latitude, std::int64_t column) const {
    const double target = new_lon_.centres[static_cast<std::size_t>(column)];
    const auto& v = lon_.centres;
    const double middle = (v.front() + v.back()) / 2;
    const double turned = in_turn_from(middle - 180, target);
    PointTap best{.column = nearest_of(v, turned)};
    double width = std::abs(std::remainder(v[static_cast<std::size_t>(best.column)] - target, 360));
    for (const std::int64_t end : {std::int64_t{0}, std::ssize(v) - 1}) {  // across the end of the turn
        const double other = std::abs(std::remainder(v[static_cast<std::size_t>(end)] - target, 360));
        if (other < width) {
            best.column = end;
            width = other;
        }
    }
    const double foot = std::atan2(std::sin(latitude * degree), std::cos(latitude * degree) * std::cos(width * degree));
    best.row = nearest_of(lat_.centres, foot / degree);
    best.weight = 1;
    return best;
}

/// As CDO: the four nearest of the last two rows, the first found of those that are as near, by inverse distances.
void GridTaps::add_nearest_four(std::int64_t row, std::int64_t column, std::vector<PointTap>& points) const {
    const auto n = std::ssize(lon_.centres);
    const double latitude = new_lat_.centres[static_cast<std::size_t>(row)];
    const double longitude = new_lon_.centres[static_cast<std::size_t>(column)];
    const auto& lat = lat_.centres;
    const bool first = std::abs(latitude - lat.front()) < std::abs(latitude - lat.back());
    const std::int64_t rows = std::ssize(lat);
    std::array<std::pair<double, PointTap>, 4> four;
    four.fill({std::numeric_limits<double>::max(), {}});
    for (std::int64_t r = first ? 0 : rows - 2; r < (first ? 2 : rows); ++r) {
        for (std::int64_t c = 0; c < n; ++c) {
            const double d = distance(latitude, lat[static_cast<std::size_t>(r)],
                                      lon_.centres[static_cast<std::size_t>(c)] - longitude);
            const auto place = std::ranges::find_if(four, [&](const auto& one) { return d < one.first; });
            if (place == four.end()) continue;
            std::move_backward(place, four.end() - 1, four.end());
            *place = {d, {r, c, 0}};
        }
    }
    constexpr double tiny = 1e-30;
    double sum = 0;
    for (const auto& [d, tap] : four) sum += 1 / (d + tiny);
    for (const auto& [d, tap] : four) points.push_back({tap.row, tap.column, 1 / (d + tiny) / sum});
}

std::vector<PointTap> GridTaps::points_of_row(std::int64_t row, std::int64_t first_column, std::int64_t columns) const {
    std::vector<PointTap> points;
    const bool beyond = how_ == Regridding::bilinear && around_ && row_taps_[static_cast<std::size_t>(row)].empty();
    for (std::int64_t c = first_column; c < first_column + columns; ++c) {
        if (how_ == Regridding::nearest) points.push_back(nearest(new_lat_.centres[static_cast<std::size_t>(row)], c));
        if (beyond) add_nearest_four(row, c, points);
    }
    return points;
}

namespace {

void include(std::pair<std::int64_t, std::int64_t>& range, std::int64_t index) {
    range.first = std::min(range.first, index);
    range.second = std::max(range.second, index);
}

}  // namespace

RegridBlock GridTaps::block(std::int64_t first_row, std::int64_t rows, std::int64_t first_column,
                            std::int64_t columns) const {
    RegridBlock block;
    block.how_ = how_;
    const auto begin = column_taps_.begin() + first_column;
    block.columns_.assign(begin, begin + columns);
    std::pair<std::int64_t, std::int64_t> across{std::ssize(lon_.centres), -1}, down{std::ssize(lat_.centres), -1};
    for (std::int64_t i = first_row; i < first_row + rows; ++i) {
        RegridBlock::Row row{row_taps_[static_cast<std::size_t>(i)], points_of_row(i, first_column, columns)};
        if (how_ == Regridding::nearest) row.taps.clear();
        for (const Tap& tap : row.taps) include(down, tap.index);
        for (const PointTap& tap : row.points) {
            include(down, tap.row);
            include(across, tap.column);
        }
        block.rows_.push_back(std::move(row));
    }
    for (const Taps& taps : block.columns_) {
        for (const Tap& tap : taps) include(across, tap.index);
    }
    if (down.second < 0 || across.second < 0) return block;  // of nothing
    block.first_row = down.first;
    block.row_count = down.second - down.first + 1;
    block.first_column = across.first;
    block.column_count = across.second - across.first + 1;
    for (RegridBlock::Row& row : block.rows_) {
        for (Tap& tap : row.taps) tap.index -= block.first_row;
        for (PointTap& tap : row.points) {
            tap.row -= block.first_row;
            tap.column -= block.first_column;
        }
    }
    for (Taps& taps : block.columns_) {
        for (Tap& tap : taps) tap.index -= block.first_column;
    }
    return block;
}

// ---- numbers

void RegridBlock::apply(const double* box, double* out) const {
    for (const Row& row : rows_) {
        if (!row.points.empty()) {
            add_points(row, box, out);
        } else if (row.taps.empty()) {
            std::fill_n(out, columns_.size(), missing_number);
        } else if (how_ == Regridding::conservative) {
            add_conservative(row, box, out);
        } else {
            add_bilinear(row, box, out);
        }
        out += columns_.size();
    }
}

void RegridBlock::add_bilinear(const Row& row, const double* box, double* out) const {
    const double* const above = box + row.taps[0].index * column_count;
    const double* const below = box + row.taps[1].index * column_count;
    const double a = row.taps[0].weight, b = row.taps[1].weight;
    for (const Taps& taps : columns_) {
        // NaN of any of the four stays NaN, also with the weight 0.
        *out++ = taps.empty() ? missing_number
                              : taps[0].weight * (a * above[taps[0].index] + b * below[taps[0].index]) +
                                    taps[1].weight * (a * above[taps[1].index] + b * below[taps[1].index]);
    }
}

void RegridBlock::add_conservative(const Row& row, const double* box, double* out) const {
    std::vector<double> sums(static_cast<std::size_t>(column_count), 0), areas(sums.size(), 0);
    for (const Tap& tap : row.taps) {
        const double* const v = box + tap.index * column_count;
        for (std::size_t c = 0; c < sums.size(); ++c) {
            const bool there = v[c] == v[c];
            sums[c] += there ? tap.weight * v[c] : 0;
            areas[c] += there ? tap.weight : 0;
        }
    }
    for (const Taps& taps : columns_) {
        double sum = 0, area = 0;
        for (const Tap& tap : taps) {
            sum += tap.weight * sums[static_cast<std::size_t>(tap.index)];
            area += tap.weight * areas[static_cast<std::size_t>(tap.index)];
        }
        *out++ = area > 0 ? sum / area : missing_number;
    }
}

void RegridBlock::add_points(const Row& row, const double* box, double* out) const {
    const std::size_t each = row.points.size() / columns_.size();
    for (std::size_t i = 0; i < row.points.size(); i += each) {
        double sum = 0, weights = 0;
        for (std::size_t k = i; k < i + each; ++k) {
            const PointTap& tap = row.points[k];
            const double v = box[tap.row * column_count + tap.column];
            if (v != v) continue;
            sum += tap.weight * v;
            weights += tap.weight;
        }
        *out++ = weights > 0 ? sum / weights : missing_number;
    }
}

void RegridBlock::choose(const std::byte* box, std::int64_t size, std::byte* out) const {
    for (const Row& row : rows_) {
        for (const PointTap& tap : row.points) {
            std::memcpy(out, box + (tap.row * column_count + tap.column) * size, static_cast<std::size_t>(size));
            out += size;
        }
    }
}

}  // namespace tessera
