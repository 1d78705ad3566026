#include "picture_plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <tessera/array.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>

namespace tessera {

namespace {

using Axes = std::vector<Selection::Axis>;

/// The dimension that a word names.
int parse_axis(const std::string& word, const std::vector<std::optional<std::string>>& names, const Axes& axes) {
    const int d =
        in_context([] { return "axes"; }, [&] { return find_dimension(word, names, static_cast<int>(axes.size())); });
    if (axes[static_cast<std::size_t>(d)].dropped) {
        throw invalid_argument("axes: the selection has one index of {}; a slice such as ':' shows it",
                               dimension_name(names, d));
    }
    return d;
}

/// The dimensions that are shown, down and across, or one for a line.
std::vector<int> shown_axes(const PictureOptions& options, const std::vector<std::optional<std::string>>& names,
                            const Axes& axes, int colours) {
    std::vector<int> shown;
    for (const std::string& word : options.axes) shown.push_back(parse_axis(word, names, axes));
    if (shown.size() > 2 || (shown.size() == 2 && shown[0] == shown[1])) {
        throw invalid_argument("axes: expected one dimension or two different ones, as in 'y,x' or 0,2");
    }
    if (!shown.empty()) return shown;
    std::vector<int> all;
    for (int d = 0; d < static_cast<int>(axes.size()); ++d) {
        if (axes[static_cast<std::size_t>(d)].dropped || d == colours) continue;
        all.push_back(d);
        if (axes[static_cast<std::size_t>(d)].count > 1) shown.push_back(d);
    }
    if (shown.empty()) shown = all;
    if (shown.size() > 2) shown.erase(shown.begin(), shown.end() - 2);
    return shown;
}

std::int64_t fitting_window(std::int64_t count, std::int64_t room) {
    return std::max<std::int64_t>(1, ceil_div(count, room));
}

std::int64_t fitting_zoom(std::int64_t count, std::int64_t room) {
    return std::max<std::int64_t>(1, room / count);
}

/// How many chunks `n` elements touch that lie `stride` apart.
double touched(std::int64_t n, std::int64_t stride, std::int64_t chunk) {
    if (stride >= chunk) return static_cast<double>(n);
    const double span = static_cast<double>(n - 1) * static_cast<double>(stride) + 1;
    return std::min(static_cast<double>(n), std::ceil(span / static_cast<double>(chunk)));
}

/// The cost of reading.
class Cost {
public:
    Cost(const ArraySource& source, const PicturePlan& plan, const PictureOptions& options)
        : source_(source),
          info_(source.info()),
          plan_(plan),
          limit_(static_cast<double>(options.limit)),
          most_chunks_(static_cast<double>(options.most_chunks)) {}

    /// Whether all elements of the slice can be read. A stream is read to its end whatever part of it is needed.
    bool whole_fits() {
        if (info_.access != Access::any) return true;
        const double elements = static_cast<double>(plan_.rows.count) * static_cast<double>(plan_.columns.count) *
                                (plan_.colours ? static_cast<double>(plan_.colours->count) : 1);
        if (!chunked()) return elements * item() <= limit_;
        // Absent chunks are not decoded, but filled.
        constexpr double filled = 4;
        return elements * item() <= filled * limit_ && chunks_fit(1, 1);
    }
    /// Whether the first element of each cell can be read.
    bool cells_fit() { return !chunked() || chunks_fit(plan_.rows.window, plan_.columns.window); }

    [[nodiscard]] double bytes() const { return bytes_; }  ///< to decode, for the question asked last

private:
    [[nodiscard]] bool chunked() const {
        return info_.access == Access::any && info_.chunks.rank() == info_.shape.rank();
    }
    [[nodiscard]] double item() const { return static_cast<double>(info_.dtype.size()); }

    bool chunks_fit(std::int64_t row_window, std::int64_t column_window) {
        const double chunks = along(plan_.rows, row_window) * along(plan_.columns, column_window) * of_colours();
        bytes_ = chunks * static_cast<double>(byte_count(info_.chunks, info_.dtype.size()));
        // In a sparse array few chunks are decoded, but each still has to be looked up.
        if (chunks > most_chunks_) return false;
        if (bytes_ <= limit_) return true;
        bytes_ *= stored_part();
        return bytes_ <= limit_;
    }
    [[nodiscard]] double along(const PictureAxis& axis, std::int64_t window) const {
        if (axis.dimension < 0) return 1;
        return touched(ceil_div(axis.count, window), std::abs(axis.step) * window, info_.chunks[axis.dimension]);
    }
    [[nodiscard]] double of_colours() const {
        if (!plan_.colours) return 1;
        return static_cast<double>(ceil_div(plan_.colours->count, info_.chunks[plan_.colours->dimension]));
    }
    double stored_part() {
        if (stored_part_) return *stored_part_;
        stored_part_ = 1;
        if (const auto* array = as_array(source_)) {
            const StoredSize stored = array->stored_size(0);
            if (stored.chunks_possible > 0) {
                stored_part_ = static_cast<double>(stored.chunks) / static_cast<double>(stored.chunks_possible);
            }
        }
        return *stored_part_;
    }

    const ArraySource& source_;
    ArrayInfo info_;
    const PicturePlan& plan_;
    double limit_;
    double most_chunks_;
    double bytes_ = 0;
    std::optional<double> stored_part_;
};

std::string window_text(const PicturePlan& plan) {
    return plan.line ? fmt::format("{}", plan.columns.window)
                     : fmt::format("{}×{}", plan.rows.window, plan.columns.window);
}

/// Until reading them costs little enough.
void enlarge_cells(Cost& cost, PicturePlan& plan) {
    const std::int64_t height = plan.rows.pixels();
    const std::int64_t width = plan.columns.pixels();
    while (!cost.cells_fit() && plan.rows.cells() * plan.columns.cells() > 1) {
        PictureAxis& more = plan.rows.cells() > plan.columns.cells() ? plan.rows : plan.columns;
        plan.sampled = true;
        more.window *= 2;
        more.zoom = std::max<std::int64_t>(1, (&more == &plan.rows ? height : width) / more.cells());
    }
}

/// Chooses between all elements and one of each cell, and says so.
void choose_reading(const ArraySource& source, const PictureOptions& options, PicturePlan& plan) {
    Cost cost(source, plan, options);
    const bool shrunk = plan.rows.window > 1 || plan.columns.window > 1;
    const bool reduces = options.with != Coarsening::nearest && shrunk;
    const bool whole = reduces && cost.whole_fits();
    plan.with = options.with.value_or(Coarsening::mean);
    if (whole) {
        plan.how = plan.line && plan.with == Coarsening::mean
                       ? fmt::format("minimum to maximum of {} elements", window_text(plan))
                       : fmt::format("{} of {} elements", coarsening_name(plan.with), window_text(plan));
        return;
    }
    const double too_much = reduces ? cost.bytes() : 0;
    plan.stepped = true;
    plan.sampled = reduces;
    plan.with = Coarsening::nearest;
    enlarge_cells(cost, plan);
    if (plan.rows.window == 1 && plan.columns.window == 1) return;
    plan.how = fmt::format("the first of {} elements", window_text(plan));
    if (plan.sampled) {
        plan.how += too_much > 0 && too_much < 1e18 ? fmt::format(", a sample: all would be {} to decode",
                                                                  memory_text(static_cast<std::uint64_t>(too_much)))
                                                    : ", a sample: all would be too much to decode";
    }
}

/// Whether all colours are selected, in their order.
bool is_whole(const SliceAxes& slice, const ColourAxis& colours) {
    const Selection::Axis& axis = slice.axes[static_cast<std::size_t>(colours.dimension)];
    return !axis.dropped && axis.step == 1 && axis.count == colours.count;
}

/// Coordinates along the axes, by which a slice is drawn with north up and east on the right.
void find_coordinates(const ArraySource& source, PicturePlan& plan) {
    const auto* const array = as_array(source);
    std::optional<GroupAround> group;
    for (PictureAxis* const axis : {&plan.rows, &plan.columns}) {
        const int d = axis->dimension;
        if (d < 0) continue;
        auto facts = find_axis_facts(source, d);
        if (!facts && array != nullptr) {
            if (!group) group = group_around(*array);
            facts = pixel_facts(group->attributes, group->name, d, source.info().shape[d]);
        }
        if (!facts) continue;
        // Of columns the last element is on the right by itself.
        const bool from_last = facts->up && *facts->up == (axis->step > 0);
        if (!plan.line && facts->up) axis->reversed = axis == &plan.rows ? from_last : !from_last;
        axis->facts = std::make_shared<const AxisFacts>(std::move(*facts));
    }
}

/// The elements that are read, and the slice as text.
void select_cells(Axes axes, PicturePlan& plan) {
    for (int d = 0; d < static_cast<int>(axes.size()); ++d) {
        Selection::Axis& axis = axes[static_cast<std::size_t>(d)];
        const bool colours = plan.colours && d == plan.colours->dimension;
        plan.slice += d == 0 ? "" : ", ";
        if (colours) plan.colours_at = static_cast<int>(plan.windows.rank());
        if (d == plan.rows.dimension || d == plan.columns.dimension || colours) {
            const std::int64_t window = colours                       ? 1
                                        : d == plan.columns.dimension ? plan.columns.window
                                                                      : plan.rows.window;
            plan.slice += Selection({axis}).to_string();
            if (plan.stepped) axis = {axis.start, axis.step * window, ceil_div(axis.count, window)};
            plan.windows.push_back(plan.stepped ? 1 : window);
        } else {
            axis = {axis.start + axis.step * (axis.count / 2), 1, 1, true};
            plan.slice += std::to_string(axis.start);
        }
    }
    plan.slice = "[" + plan.slice + "]";
    plan.selection = Selection(std::move(axes));
}

}  // namespace

void fit_axes(PictureAxis& rows, PictureAxis& columns, std::int64_t height, std::int64_t width) {
    rows.window = columns.window = std::max(fitting_window(rows.count, height), fitting_window(columns.count, width));
    if (rows.window == 1) {
        rows.zoom = columns.zoom = std::min(fitting_zoom(rows.count, height), fitting_zoom(columns.count, width));
    }
    constexpr std::int64_t thin = 6;  // of its room
    constexpr std::int64_t part = 3;
    const auto widen = [](PictureAxis& axis, std::int64_t room) {
        if (axis.pixels() * thin >= room || room < part) return;
        axis.window = fitting_window(axis.count, room / part);
        axis.zoom = axis.window == 1 ? fitting_zoom(axis.count, room / part) : 1;
    };
    widen(rows, height);
    widen(columns, width);
}

SliceAxes slice_axes(const ArraySource& source, const PictureOptions& options, int colours) {
    const ArrayInfo info = source.info();
    SliceAxes slice{.axes = {}, .names = dimension_names_of(source), .rows = {}, .columns = {}};
    const Selection given = parse_selection(options.selection, source);
    slice.axes = given.axes();
    const std::vector<int> shown = shown_axes(options, slice.names, slice.axes, colours);
    if (shown.empty()) {
        throw invalid_argument(source.name() + ": one element has no dimension that a picture could show");
    }
    for (const Selection::Axis& axis : slice.axes) {
        if (axis.count > 0) continue;
        throw invalid_argument("{}: nothing is selected, of shape {}", source.name(), given.shape().to_string());
    }
    const auto axis_of = [&](int d) {
        const Selection::Axis& axis = slice.axes[static_cast<std::size_t>(d)];
        return PictureAxis{.dimension = d,
                           .name = dimension_name(slice.names, d),
                           .start = axis.start,
                           .step = axis.step,
                           .count = axis.count};
    };
    slice.line = shown.size() == 1;
    slice.columns = axis_of(shown.back());
    if (!slice.line) slice.rows = axis_of(shown.front());
    return slice;
}

PicturePlan plan_picture(const ArraySource& source, const Meaning& meaning, const PictureOptions& options) {
    PicturePlan plan;
    plan.colours = options.colours && options.axes.empty() ? find_colour_axis(source, meaning) : std::nullopt;
    SliceAxes slice = slice_axes(source, options, plan.colours ? plan.colours->dimension : -1);
    if (plan.colours && (slice.line || !is_whole(slice, *plan.colours))) {
        plan.colours.reset();
        slice = slice_axes(source, options);
    }
    plan.rows = slice.rows;
    plan.columns = slice.columns;
    plan.line = slice.line;
    if (plan.line) {
        const std::int64_t width = options.line_width > 0 ? options.line_width : options.width;
        plan.columns.window = fitting_window(plan.columns.count, width);
        plan.columns.zoom = fitting_zoom(plan.columns.cells(), width);
    } else {
        fit_axes(plan.rows, plan.columns, options.height, options.width);
    }
    find_coordinates(source, plan);
    choose_reading(source, options, plan);
    select_cells(std::move(slice.axes), plan);
    return plan;
}

}  // namespace tessera
