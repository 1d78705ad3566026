#include <tessera/coordinates_beside.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/coordinates.h>
#include <tessera/divided_recipe.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/locate.h>
#include <tessera/meaning.h>
#include <tessera/part_source.h>
#include <tessera/place.h>
#include <tessera/shared_source.h>

namespace tessera {

namespace {

template <class Key>
std::vector<std::optional<Key>> keys_of(const Coordinate& coordinate) {
    std::vector<std::optional<Key>> keys;
    coordinate.for_each<Key>(0, coordinate.length(), [&](const std::optional<Key>& key) { keys.push_back(key); });
    return keys;
}

bool is_same(const ArraySource& a, const ArraySource& b) {
    if (a.info().shape != b.info().shape || a.info().shape.rank() != 1) return false;
    const Coordinate one(borrowed_source(a)), other(borrowed_source(b));
    if (one.kind() != other.kind() || one.calendar() != other.calendar()) return false;
    if (one.kind() == Coordinate::Kind::times) return keys_of<Int128>(one) == keys_of<Int128>(other);
    if (one.kind() == Coordinate::Kind::texts) return keys_of<std::string>(one) == keys_of<std::string>(other);
    const auto close = [](const auto& x, const auto& y) {
        return x && y ? std::abs(*x - *y) <= 1e-6L * std::max(1.0L, std::abs(*x)) : x == y;
    };
    return std::ranges::equal(keys_of<long double>(one), keys_of<long double>(other), close);
}

}  // namespace

CoordinatesBeside::CoordinatesBeside(OpenedRecipe& opened, const Recipe& recipe, const std::string& destination,
                                     const IoOptions& io) {
    const bool joins = std::holds_alternative<JoinRecipe>(recipe.make);
    if (!joins && opened.coordinates.empty()) return;
    const bool in_group = named_array_file_format(destination) == nullptr && format_above(destination) != nullptr;
    std::string group = destination;
    while (group.ends_with('/')) group.pop_back();
    group.erase(group.rfind('/') + 1);
    if (in_group) joins ? add_joined(opened, recipe, group, io) : add_regridded(opened, group);
    if (in_group || joins) return;
    std::string names;
    for (const auto& [name, values] : opened.coordinates) names += (names.empty() ? "" : ", ") + name;
    opened.notes.emplace_back(
        fmt::format("{}: its coordinates {} are not written, because it lies in no group: a whole "
                    "data set, or one array of it that is chosen, becomes a group with them",
                    destination, names));
}

void CoordinatesBeside::add_regridded(const OpenedRecipe& opened, const std::string& group) {
    for (const auto& name : opened.from.dimension_names) {
        if (!name) continue;
        const auto made =
            std::ranges::find(opened.coordinates, *name, &decltype(opened.coordinates)::value_type::first);
        const bool is_new = made != opened.coordinates.end();
        Values values = is_new ? made->second : nullptr;
        if (!is_new && opened.from.like != nullptr) values = array_beside(*opened.from.like, *name);
        if (values == nullptr || add(group, *name, std::move(values)) || !is_new) continue;
        throw invalid_argument(
            "{}: it is there, and has other values than the result's coordinate: choose a place in another group",
            group + *name);
    }
}

void CoordinatesBeside::add_joined(OpenedRecipe& opened, const Recipe& recipe, const std::string& group,
                                   const IoOptions& io) {
    const auto set = divided_with_coordinates(recipe);
    if (!set) return;
    for (const Note& note : set->notes) opened.notes.push_back(note);
    for (const auto& one : set->arrays) {
        const auto& names = opened.from.dimension_names;
        if (std::ranges::count(names, std::optional(one.path)) == 0) continue;
        auto made = std::make_shared<OpenedRecipe>(open_recipe(one.recipe, io));
        if (one.recipe.selects_view() && one.recipe.selection)
            made->source = part_source(std::move(made->source), *one.recipe.selection);
        if (add(group, one.path, Values(made, made->source.get()))) continue;
        opened.notes.emplace_back(
            fmt::format("{}: it is there, and has other values than the result's coordinate, which is not written",
                        group + one.path));
    }
}

bool CoordinatesBeside::add(const std::string& group, const std::string& name, Values values) {
    const std::string path = group + name;
    const Located at = locate(path);
    if (at.kind == PathKind::array) return is_same(at.array(), *values);
    if (at.kind != PathKind::nothing) return false;
    missing_.push_back({.path = path, .name = name, .values = std::move(values)});
    return true;
}

void CoordinatesBeside::write(const HierarchyOptions& options) const {
    for (const Beside& one : missing_) {
        ComputedFrom from{.dimension_names = {one.name}, .named = true};
        (void)write_computed(*one.values, one.path, from, options);
    }
}

}  // namespace tessera
