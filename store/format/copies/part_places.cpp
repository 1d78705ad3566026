#include "part_places.h"

#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/dimensions.h>
#include <tessera/file_attributes.h>
#include <tessera/geo_reference.h>
#include <tessera/turned.h>

namespace tessera {

namespace {

constexpr std::string_view coordinates_attribute = "coordinates";

/// The path of the group, with '/' behind it; empty: the top.
std::string group_of(const std::string& node) {
    const std::size_t slash = node.rfind('/');
    return slash == std::string::npos ? std::string() : node.substr(0, slash + 1);
}

bool is_flat(const std::array<Selection::Axis, 2>& axes) {
    return axes[0].dropped || axes[1].dropped || axes[0].count == 0 || axes[1].count == 0;
}

std::string coordinates_in(const Value& attributes) {
    const Value* const text = attributes.find(coordinates_attribute);
    return text != nullptr && text->is_string() ? text->as_string() : std::string();
}

}  // namespace

void add_coordinates(Value& attributes, const std::vector<std::string>& names) {
    if (names.empty()) return;
    std::string all = coordinates_in(attributes);
    for (const std::string& name : names) all.append(all.empty() ? "" : " ").append(name);
    attributes.set(coordinates_attribute, all);
}

void erase_coordinate(Value& attributes, const std::string& name) {
    std::istringstream words(coordinates_in(attributes));
    std::string left;
    bool found = false;
    for (std::string word; words >> word;) {
        if (word == name) {
            found = true;
        } else {
            left.append(left.empty() ? "" : " ").append(word);
        }
    }
    if (!found) return;
    left.empty() ? attributes.erase(coordinates_attribute) : attributes.set(coordinates_attribute, left);
}

void PartPlaces::add(const std::string& node, const ArraySource& array, const std::optional<Selection>& selection) {
    if (!selection) return;
    const DimensionNames names = dimension_names_of(array);
    std::vector<Selection::Axis> axes = selection->axes();
    if (names.size() != axes.size()) return;
    if (const Turn* const turn = turn_of(array)) axes[static_cast<std::size_t>(turn->dimension)].start += turn->first;
    const std::string group = group_of(node);
    for (std::size_t d = 0; d < names.size(); ++d) {
        if (names[d]) groups_[group].insert_or_assign(*names[d], axes[d]);
    }
    const Value attributes = array.attribute_values();
    note_scalars(node, attributes, names, axes);
    const std::string mapping = grid_mapping_in(attributes);
    if (mapping.empty() || axes.size() < 2) return;
    mappings_.insert_or_assign(group + mapping, std::array{axes[axes.size() - 2], axes[axes.size() - 1]});
}

void PartPlaces::note_scalars(const std::string& node, const Value& attributes, const DimensionNames& names,
                              const std::vector<Selection::Axis>& axes) {
    const std::string group = group_of(node);
    for (const char* const word : {"bounds", "climatology"}) {
        const Value* const bounds = attributes.find(word);
        if (bounds != nullptr && bounds->is_string()) bounds_.insert(group + bounds->as_string());
    }
    for (std::size_t d = 0; d < names.size(); ++d) {
        if (!names[d] || !axes[d].dropped) continue;
        if (names.size() == 1 && node == group + *names[d]) {
            scalars_.insert(node);
        } else {
            dropped_[node].push_back(*names[d]);
        }
    }
}

Value PartPlaces::of_group(const std::string& node, Value attributes) const {
    const auto found = groups_.find(node.empty() ? node : node + "/");
    if (found == groups_.end()) return attributes;
    std::vector<Selection::Axis> axes;
    DimensionNames names;
    for (const auto& [name, axis] : found->second) {
        names.emplace_back(name);
        axes.push_back(axis);
    }
    return attributes_of_part(std::move(attributes), Selection(std::move(axes)), std::move(names));
}

Value PartPlaces::of_array(const std::string& node, Value attributes) const {
    const auto dropped = dropped_.find(node);
    if (dropped != dropped_.end() && !bounds_.contains(node)) {
        std::vector<std::string> scalars = dropped->second;
        std::erase_if(scalars, [&](const std::string& name) { return !scalars_.contains(group_of(node) + name); });
        add_coordinates(attributes, scalars);
    }
    return of_mapping(node, std::move(attributes));
}

Value PartPlaces::of_mapping(const std::string& node, Value attributes) const {
    const auto found = mappings_.find(node);
    const Value* const whole = attributes.find(geo_transform_attribute);
    if (found == mappings_.end() || whole == nullptr) return attributes;
    const std::vector<double> before = geo_transform_in(attributes);
    const auto& [rows, columns] = found->second;
    if (before.empty() || is_flat(found->second)) {
        attributes.erase(geo_transform_attribute);
        return attributes;
    }
    const auto row = static_cast<double>(rows.start), column = static_cast<double>(columns.start);
    const auto down = static_cast<double>(rows.step), across = static_cast<double>(columns.step);
    // As GDAL has it: x of the corner, along a row, along a column; the same of y.
    const std::array<double, 6> made{
        before[0] + column * before[1] + row * before[2], before[1] * across, before[2] * down,
        before[3] + column * before[4] + row * before[5], before[4] * across, before[5] * down};
    if (whole->is_string()) {
        attributes.set(geo_transform_attribute, fmt::format("{}", fmt::join(made, " ")));
    } else {
        Value list = Value::array();
        for (const double number : made) list.push_back(number);
        attributes.set(geo_transform_attribute, std::move(list));
    }
    return attributes;
}

}  // namespace tessera
