#include <tessera/coordinates_beside.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/coordinates.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/locate.h>
#include <tessera/meaning.h>
#include <tessera/place.h>
#include <tessera/shared_source.h>

namespace tessera {

namespace {

std::vector<double> numbers_of(const ArraySource& source) {
    std::vector<double> numbers;
    const Coordinate coordinate(shared_source(std::shared_ptr<const ArraySource>(std::shared_ptr<void>(), &source)));
    if (coordinate.kind() != Coordinate::Kind::numbers) return {};
    coordinate.for_each<long double>(0, coordinate.length(), [&](const std::optional<long double>& value) {
        numbers.push_back(static_cast<double>(value.value_or(std::nan(""))));
    });
    return numbers;
}

bool is_same(const ArraySource& a, const ArraySource& b) {
    if (a.info().shape != b.info().shape || a.info().shape.rank() != 1) return false;
    const auto close = [](double x, double y) { return std::abs(x - y) <= 1e-6 * std::max(1.0, std::abs(x)); };
    return std::ranges::equal(numbers_of(a), numbers_of(b), close);
}

}  // namespace

CoordinatesBeside::CoordinatesBeside(OpenedRecipe& opened, const std::string& destination) {
    if (opened.coordinates.empty()) return;
    const bool in_file = named_array_file_format(destination) != nullptr;
    if (in_file || format_above(destination) == nullptr) {
        std::string names;
        for (const auto& [name, values] : opened.coordinates) names += (names.empty() ? "" : ", ") + name;
        opened.notes.emplace_back(
            fmt::format("{}: its coordinates {} are not written, because it lies in no group", destination, names),
            std::vector<Advice>{});
        return;
    }
    std::string group = destination;
    while (group.ends_with('/')) group.pop_back();
    group.erase(group.rfind('/') + 1);
    for (const auto& name : opened.from.dimension_names) {
        if (!name) continue;
        const auto made =
            std::ranges::find(opened.coordinates, *name, &decltype(opened.coordinates)::value_type::first);
        const bool is_new = made != opened.coordinates.end();
        std::shared_ptr<const ArraySource> values = is_new ? made->second : nullptr;
        if (!is_new && opened.from.like != nullptr) values = array_beside(*opened.from.like, *name);
        if (values == nullptr) continue;
        add(group + *name, std::move(values), is_new);
        if (!missing_.empty() && missing_.back().name.empty()) missing_.back().name = *name;
    }
}

void CoordinatesBeside::add(const std::string& path, std::shared_ptr<const ArraySource> values, bool is_new) {
    const Located at = locate(path);
    if (at.kind == PathKind::nothing) {
        missing_.push_back({.path = path, .name = {}, .values = std::move(values)});
        return;
    }
    if (at.kind == PathKind::array && (!is_new || is_same(at.array(), *values))) return;
    throw invalid_argument(
        "{}: it is there, and has other values than the result's coordinate: choose a place in another "
        "group",
        path);
}

void CoordinatesBeside::write(const HierarchyOptions& options) const {
    for (const Beside& one : missing_) {
        ComputedFrom from{.dimension_names = {one.name}, .named = true};
        (void)write_computed(*one.values, one.path, from, options);
    }
}

}  // namespace tessera
