#include <tessera/action.h>
#include <tessera/multiscales.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/copy.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/own_names.h>
#include <tessera/place.h>

namespace tessera {

namespace {

std::string_view type_of_axis(std::string_view name) {
    if (name == "t" || name == "time") return "time";
    if (name == "c" || name == "channel" || name == "band") return "channel";
    return "space";
}

/// OME-NGFF requires the order time, channel, space.
void require_axes(const std::vector<std::string>& axes) {
    const auto count = [&](std::string_view type) {
        return std::ranges::count_if(axes, [&](const std::string& name) { return type_of_axis(name) == type; });
    };
    const auto rank = [](const std::string& name) {
        const std::string_view type = type_of_axis(name);
        return type == "time" ? 0 : type == "channel" ? 1 : 2;
    };
    std::vector<std::string> sorted = axes;
    std::ranges::sort(sorted);
    const bool distinct = std::ranges::adjacent_find(sorted) == sorted.end() && std::ranges::count(axes, "") == 0;
    const bool fits = distinct && count("time") <= 1 && count("channel") <= 1 && count("space") >= 2 &&
                      count("space") <= 3 && std::ranges::is_sorted(axes, {}, rank);
    if (fits) return;
    throw invalid_argument(
        "OME-NGFF takes axes such as y,x, z,y,x, c,y,x or t,c,z,y,x (at most t, then at most c, then two or "
        "three of space), found {}",
        fmt::join(axes, ","));
}

Value numbers(const std::vector<double>& list) {
    Value value = Value::array();
    for (const double v : list) value.push_back(v);
    return value;
}

Value axes_value(const Pyramid& p) {
    Value axes = Value::array();
    for (std::size_t d = 0; d < p.axes.size(); ++d) {
        Value axis = Value::object();
        axis.set("name", p.axes[d]);
        axis.set("type", type_of_axis(p.axes[d]));
        if (d < p.units.size() && p.units[d]) axis.set("unit", *p.units[d]);
        axes.push_back(std::move(axis));
    }
    return axes;
}

Value level_value(const Pyramid& p, std::size_t level) {
    std::vector<double> scale = p.scale;
    std::vector<double> translation(p.scale.size(), 0);
    for (std::size_t d = 0; d < p.axes.size(); ++d) {
        const auto by = static_cast<double>(p.factors[level][static_cast<int>(d)]);
        scale[d] *= by;
        if (p.with != Coarsening::nearest) translation[d] = (by - 1) / 2 * p.scale[d];
    }
    Value transforms = Value::array();
    Value scaled = Value::object();
    scaled.set("type", "scale");
    scaled.set("scale", numbers(scale));
    transforms.push_back(std::move(scaled));
    Value translated = Value::object();
    translated.set("type", "translation");
    translated.set("translation", numbers(translation));
    transforms.push_back(std::move(translated));
    Value value = Value::object();
    value.set("path", fmt::format("{}", level));
    value.set("coordinateTransformations", std::move(transforms));
    return value;
}

/// How the levels were made: OME-NGFF's strict schemas ask for it.
Value metadata_value(const Pyramid& p) {
    Value value = Value::object();
    value.set("description", "each level is computed from the first; blocks at the far edges are cut off there");
    value.set("method", "tessera::coarsen");
    Value arguments = Value::object();
    arguments.set("with", coarsening_name(p.with));
    value.set("kwargs", std::move(arguments));
    return value;
}

/// The names directly in a folder, or at a place in another kind of store.
std::vector<std::string> names_in(const std::string& path) {
    std::vector<std::string> names;
    if (is_local(path)) {
        for (const auto& entry : std::filesystem::directory_iterator(path)) {
            names.push_back(entry.path().filename().string());
        }
        return names;
    }
    const Place place = find_place(path, {.read_only = true});
    const Listing listing = place.store->list(place.prefix);
    names = listing.keys;
    names.insert(names.end(), listing.prefixes.begin(), listing.prefixes.end());
    return names;
}

/// Whether a folder without a format holds levels and nothing else, as a killed run leaves it.
bool holds_only_levels(const std::string& path, std::size_t levels) {
    return std::ranges::all_of(names_in(path), [&](const std::string& name) {
        if (is_own_name(name)) return true;
        for (std::size_t level = 0; level < levels; ++level) {
            if (name == std::to_string(level)) return true;
        }
        return false;
    });
}

}  // namespace

Value multiscales_attributes(const Pyramid& p, OmeVersion version) {
    require_axes(p.axes);
    Value datasets = Value::array();
    for (std::size_t level = 0; level < p.factors.size(); ++level) datasets.push_back(level_value(p, level));
    Value image = Value::object();
    image.set("version", "0.4");
    image.set("name", p.name);
    image.set("axes", axes_value(p));
    image.set("datasets", std::move(datasets));
    image.set("type", coarsening_name(p.with));
    image.set("metadata", metadata_value(p));
    Value multiscales = Value::array();
    multiscales.push_back(std::move(image));
    const Value attributes{{"multiscales", std::move(multiscales)}};
    return version == OmeVersion::v0_4 ? attributes : upgraded_ome(attributes, version);
}

Value geo_attributes(const Pyramid& p, const std::vector<Shape>& shapes, const GeoReference& reference, int y, int x) {
    const auto by = [&](std::size_t level) { return std::array{p.factors[level][y], p.factors[level][x]}; };
    Value layout = Value::array();
    for (std::size_t level = 0; level < p.factors.size(); ++level) {
        Value entry{{"asset", fmt::format("{}", level)}};
        std::array<std::int64_t, 2> step = by(level);
        if (level > 0) {
            entry.set("derived_from", fmt::format("{}", level - 1));
            for (std::size_t d = 0; d < 2; ++d) step.at(d) /= by(level - 1).at(d);
        }
        Value transform{{"scale", numbers({static_cast<double>(step[0]), static_cast<double>(step[1])})}};
        // Between centres of blocks there would be an offset, in which the texts of the conventions differ.
        if (!reference.nodes) transform.set("translation", numbers({0, 0}));
        entry.set("transform", std::move(transform));
        const GeoReference of_level =
            coarsened(reference, by(level), {shapes[level][y], shapes[level][x]}, p.with == Coarsening::nearest);
        Value members = Value::object();
        set_geo_reference(members, of_level);
        for (const std::string_view name : {"spatial:shape", "spatial:transform"}) entry.set(name, members.at(name));
        layout.push_back(std::move(entry));
    }
    const std::string_view method = p.with == Coarsening::mean ? "average" : coarsening_name(p.with);
    Value attributes = Value::object();
    add_geo_convention(attributes, GeoConvention::multiscales);
    attributes.set("multiscales", Value{{"layout", std::move(layout)}, {"resampling_method", method}});
    set_geo_reference(attributes, reference);
    const std::array<double, 4> bounds = reference.bounds().value();
    attributes.set("spatial:bbox", Value::Array(bounds.begin(), bounds.end()));
    return attributes;
}

void require_pyramid_place(const std::string& path, std::size_t levels, const Dialect& dialect, bool overwrite) {
    if (!(is_local(path) ? std::filesystem::is_directory(path) : is_anything_at(path))) return;
    if (occupant(path) == Occupant::array) throw already_exists("{} is an array", path);
    const std::optional<Group> there = group_at(locate(path));
    if (!there) return;
    if (!overwrite) {
        throw already_exists("{}: a group is there already", path).advising(Action::overwrite, "replaces its levels");
    }
    if (there->dialect() == nullptr && holds_only_levels(path, levels)) return;
    if (there->dialect() != &dialect) {
        throw already_exists("{} is a group of {}, but the pyramid would be one of {}", path,
                             there->dialect() == nullptr ? "no format" : there->dialect()->name, dialect.name);
    }
    if (is_anything_at(std::filesystem::path(path) / fmt::format("{}", levels))) {
        throw already_exists("{} has a level {} that the new pyramid lacks", path, levels)
            .advising(Action::remove, "removes it");
    }
}

}  // namespace tessera
