#include "axis_marks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/axis_facts.h>

namespace tessera {

namespace {

std::string_view unit_text(std::string_view units) {
    using Pair = std::pair<std::string_view, std::string_view>;
    static constexpr std::array<Pair, 10> texts{
        Pair{"degrees_north", "°N"}, Pair{"degrees_east", "°E"}, Pair{"degree_north", "°N"}, Pair{"degree_east", "°E"},
        Pair{"micrometer", "µm"},    Pair{"micrometre", "µm"},   Pair{"nanometer", "nm"},    Pair{"millimeter", "mm"},
        Pair{"meter", "m"},          Pair{"second", "s"}};
    for (const auto& [word, text] : texts) {
        if (word == units) return text;
    }
    return units;
}

/// The ends of the axis, as indices of the array.
std::pair<std::int64_t, std::int64_t> ends_of(const PictureAxis& axis) {
    const std::int64_t last = axis.start + axis.step * (axis.count - 1);
    return {std::min(axis.start, last), std::max(axis.start, last)};
}

/// Where an index of the array, which may lie between two, is drawn: in cells.
double place_of(const PictureAxis& axis, double index) {
    const double element = (index - static_cast<double>(axis.start)) / static_cast<double>(axis.step);
    const double at = (element + 0.5) / static_cast<double>(axis.window);
    return axis.reversed ? static_cast<double>(axis.cells()) - at : at;
}

struct Mark {
    double at = 0;
    std::string text;
};

/// Round indices, in the middle of their cells.
std::vector<std::int64_t> round_indices(const PictureAxis& axis, int most) {
    const auto [first, last] = ends_of(axis);
    std::vector<std::int64_t> indices;
    for (const double v : round_ticks(static_cast<double>(first), static_cast<double>(last), most, true).at) {
        indices.push_back(static_cast<std::int64_t>(v));
    }
    return indices;
}

double middle_of_cell(const PictureAxis& axis, std::int64_t index) {
    const std::int64_t cell = (index - axis.start) / axis.step / axis.window;
    return static_cast<double>(axis.reversed ? axis.cells() - 1 - cell : cell) + 0.5;
}

constexpr std::size_t whole_day = 10, whole_month = 7, whole_year = 4;  // letters of "2000-01-31" and its beginnings

bool is_date(const Mark& mark) {
    return mark.text.size() >= whole_day && mark.text[whole_year] == '-' && mark.text[whole_month] == '-';
}

bool is_midnight(const Mark& mark) {
    return std::string_view(mark.text).substr(whole_day).find_first_not_of("T0:.") == std::string_view::npos;
}

bool have_in_common(const std::vector<Mark>& marks, std::size_t letters) {
    return std::ranges::all_of(
        marks, [&](const Mark& mark) { return mark.text.compare(0, letters, marks.front().text, 0, letters) == 0; });
}

/// Without midnight, and where there is no room without what all have in common, or what says least.
void shorten_dates(std::vector<Mark>& marks, std::int64_t letters) {
    if (marks.empty() || !std::ranges::all_of(marks, is_date)) return;
    const bool days = std::ranges::all_of(marks, is_midnight);
    const auto room = static_cast<std::size_t>(letters);
    const bool one_day = marks.size() > 1 && have_in_common(marks, whole_day);
    const bool one_year = have_in_common(marks, whole_year);
    for (Mark& mark : marks) {
        if (days) mark.text.resize(whole_day);
        if (mark.text.size() <= room) continue;
        if (one_day && mark.text.size() > whole_day) {
            mark.text = mark.text.substr(whole_day + 1, room);
        } else if (room >= whole_day) {
            mark.text.resize(whole_day);
        } else if (one_year) {
            mark.text = mark.text.substr(whole_year + 1, whole_day - whole_year - 1);
        } else {
            mark.text.resize(room >= whole_month ? whole_month : whole_year);
        }
    }
}

std::vector<Mark> marks_of_texts(const PictureAxis& axis, int most, std::int64_t letters) {
    std::vector<Mark> marks;
    for (const std::int64_t index : round_indices(axis, most)) {
        marks.push_back({middle_of_cell(axis, index), axis.facts->text(index)});
    }
    shorten_dates(marks, letters);
    return marks;
}

/// As people divide circles.
Ticks degree_ticks(double low, double high, int most) {
    constexpr double fine = 20;
    for (const double step : {10.0, 15.0, 30.0, 45.0, 60.0, 90.0}) {
        if (high - low < fine) break;
        const double first = std::ceil(low / step - 1e-9);
        const double last = std::floor(high / step + 1e-9);
        if (!(last - first + 1 <= most)) continue;
        Ticks ticks{{}, step};
        for (double k = first; k <= last; ++k) {
            ticks.at.push_back(k * step + 0.0);  // no -0
            if (k + 1 == k) break;               // a double cannot count further
        }
        return ticks;
    }
    return round_ticks(low, high, most);
}

std::vector<Mark> marks_of_numbers(const PictureAxis& axis, int most) {
    const AxisFacts& facts = *axis.facts;
    const auto [first, last] = ends_of(axis);
    const auto [low, high] =
        std::minmax({facts.value(static_cast<double>(first) - 0.5), facts.value(static_cast<double>(last) + 0.5)});
    const Ticks ticks =
        facts.units.starts_with("degree") ? degree_ticks(low, high, most) : round_ticks(low, high, most);
    const Picture numbers{.dtype = DType::of<double>()};
    std::vector<Mark> marks;
    for (const double v : ticks.at) {
        const double at = place_of(axis, facts.index(v));
        if (!(at >= 0 && at <= static_cast<double>(axis.cells()))) continue;  // also where it is NaN
        marks.push_back({at, picture_text(numbers, v, ticks.step)});
    }
    return marks;
}

}  // namespace

std::string PictureAxis::title() const {
    if (!facts) return name;
    const std::string_view units = unit_text(facts->units);
    return units.empty() ? facts->label : fmt::format("{} ({})", facts->label, units);
}

std::string PictureAxis::text(std::int64_t element) const {
    const std::int64_t index = start + step * element;
    return facts ? facts->text(index) : std::to_string(index);
}

void mark_axis(const PictureAxis& axis, std::int64_t most, std::int64_t letters,
               const std::function<void(double at, const std::string& text)>& mark) {
    const int number = static_cast<int>(std::clamp<std::int64_t>(most, 1, 10));
    std::vector<Mark> marks;
    if (!axis.facts) {
        for (const std::int64_t index : round_indices(axis, number)) {
            marks.push_back({middle_of_cell(axis, index), std::to_string(index)});
        }
    } else if (axis.facts->texts.empty() && axis.facts->rising != 0) {
        marks = marks_of_numbers(axis, number);
    } else {
        marks = marks_of_texts(axis, number, letters);
    }
    std::ranges::sort(marks, {}, &Mark::at);
    for (const Mark& one : marks) mark(one.at, one.text);
}

std::int64_t widest_mark(const PictureAxis& axis, std::int64_t letters) {
    std::int64_t widest = 1;
    if (!axis.facts) {  // as wide as the last index, whichever is marked
        return std::ssize(std::to_string(ends_of(axis).second));
    }
    constexpr std::int64_t most = 10;
    mark_axis(axis, most, letters,
              [&](double, const std::string& text) { widest = std::max<std::int64_t>(widest, std::ssize(text)); });
    return widest;
}

}  // namespace tessera
