#include <tessera/ome_problems.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "document_checker.h"

namespace tessera {

namespace {

bool is_whole_within(const Value& v, double least, double most) {
    return is_whole(v) && v.as_double() >= least && v.as_double() <= most;
}
bool is_alphanumeric(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    });
}

constexpr ExpectedValue a_name{"a string that is not empty",
                               [](const Value& v) { return v.is_string() && !v.as_string().empty(); }};
constexpr ExpectedValue above_0{"a number above 0", [](const Value& v) { return v.is_number() && v.as_double() > 0; }};
constexpr ExpectedValue an_integer{"an integer", [](const Value& v) { return is_whole(v) || v.is_big_integer(); }};
constexpr ExpectedValue from_0{"an integer of at least 0",
                               [](const Value& v) { return is_whole(v) && v.as_double() >= 0; }};
constexpr ExpectedValue a_byte{"an integer from 0 to 255", [](const Value& v) { return is_whole_within(v, 0, 255); }};
constexpr ExpectedValue axis_index{"the index of an axis, 0 to 4",
                                   [](const Value& v) { return is_whole_within(v, 0, 4); }};
constexpr ExpectedValue a_truth{"true or false", [](const Value& v) { return v.is_bool(); }};
constexpr ExpectedValue alphanumeric{"a string of letters and digits",
                                     [](const Value& v) { return v.is_string() && is_alphanumeric(v.as_string()); }};
constexpr ExpectedValue well_path{"the name of a row and that of a column, as A/1", [](const Value& v) {
                                      if (!v.is_string()) return false;
                                      const std::string_view text = v.as_string();
                                      const std::size_t slash = text.find('/');
                                      return slash != text.npos && is_alphanumeric(text.substr(0, slash)) &&
                                             is_alphanumeric(text.substr(slash + 1));
                                  }};
constexpr ExpectedValue node_name{"a name of letters, digits, '-', '_' and '.'", [](const Value& v) {
                                      if (!v.is_string() || v.as_string().starts_with("__")) return false;
                                      const std::string& text = v.as_string();
                                      return text.find_first_not_of('.') != text.npos &&
                                             std::ranges::all_of(text, [](char c) {
                                                 return is_alphanumeric({&c, 1}) || c == '-' || c == '_' || c == '.';
                                             });
                                  }};
constexpr ExpectedValue a_color{"six hexadecimal digits", [](const Value& v) {
                                    return v.is_string() && v.as_string().size() == 6 &&
                                           v.as_string().find_first_not_of("0123456789abcdefABCDEF") ==
                                               std::string::npos;
                                }};
constexpr ExpectedValue an_interpolation{
    "\"nearest\", \"linear\" or \"cubic\"",
    [](const Value& v) { return v == Value("nearest") || v == Value("linear") || v == Value("cubic"); }};

bool is_type(const Value& object, std::string_view type) {
    const Value* stored = object.is_object() ? object.find("type") : nullptr;
    return stored != nullptr && *stored == Value(type);
}

/// Numbers of axes by the names of coordinate systems.
using Systems = std::map<std::string, std::size_t, std::less<>>;

class OmeChecker : public DocumentChecker {
public:
    explicit OmeChecker(OmeVersion version) : version_(version) {}

    void check(const DocumentSpot& ome);

private:
    [[nodiscard]] bool is_0_6() const { return version_ == OmeVersion::v0_6; }

    void image(const DocumentSpot& image);
    /// Returns their number; nullopt if there are none.
    std::optional<std::size_t> axes(const DocumentSpot& in);
    void order_of_axes(const std::vector<DocumentSpot>& axes);
    Systems coordinate_systems(const DocumentSpot& in, std::size_t least, Need need);
    void old_transformations(const DocumentSpot& in, Need need, std::optional<std::size_t> axes);
    std::optional<std::string> level_transformation(const DocumentSpot& level, const Systems& systems);
    void transformation_input(const DocumentSpot& t, const DocumentSpot& level);
    std::optional<std::string> transformation_output(const DocumentSpot& t, const Systems& systems);
    void sequence(const DocumentSpot& t);
    void transformation(const DocumentSpot& t);
    void composed(const DocumentSpot& t, std::string_view name);
    void matrix(const DocumentSpot& t, std::string_view name);
    /// Says where the parameters' lengths are not those of the axes.
    void lengths(const DocumentSpot& t, std::optional<std::size_t> in, std::optional<std::size_t> out);
    void between_systems(const DocumentSpot& t, const Systems& systems);
    void image_transformation(const DocumentSpot& t, const Systems& systems,
                              const std::optional<std::string>& intrinsic);
    void scene(const DocumentSpot& scene);
    void omero(const DocumentSpot& omero);
    void label(const DocumentSpot& label);
    void plate(const DocumentSpot& plate);
    std::vector<DocumentSpot> acquisitions(const DocumentSpot& plate);
    std::vector<std::string> names_along(const DocumentSpot& plate, std::string_view key);
    void place_of_well(const DocumentSpot& well, const std::vector<std::string>& rows,
                       const std::vector<std::string>& columns);
    void well(const DocumentSpot& well);

    OmeVersion version_;
};

// ---- images

std::optional<std::size_t> OmeChecker::axes(const DocumentSpot& in) {
    const auto all = get(in, "axes", a_list, Need::required);
    if (!all) return std::nullopt;
    const std::vector<DocumentSpot> axes =
        items(*all, an_object, {.least = is_0_6() ? 1U : 2U, .most = 5, .unique = true});
    for (const DocumentSpot& axis : axes) {
        get(axis, "name", is_0_6() ? a_name : a_string, Need::required);
        get(axis, "type", a_string);
        if (!is_0_6()) continue;
        get(axis, "longName", a_string);
        get(axis, "discrete", a_truth);
        get(axis, "unit", a_string);
    }
    const auto of_type = [&](std::string_view type) {
        return std::ranges::count_if(axes, [&](const DocumentSpot& axis) { return is_type(*axis.value, type); });
    };
    const auto space = of_type("space"), indices = of_type("array");
    if ((space < 2 || space > 3) && (!is_0_6() || indices < 2)) {
        add(ConventionRule::schema, all->at, "expected 2 or 3 axes of type space, found {}", space);
    } else if (indices < 2) {
        order_of_axes(axes);
    }
    require_distinct(ConventionRule::text, axes, "name");
    return all->value->as_array().size();
}

void OmeChecker::order_of_axes(const std::vector<DocumentSpot>& axes) {
    const auto rank = [](const DocumentSpot& axis) {
        return is_type(*axis.value, "time") ? 0 : is_type(*axis.value, "space") ? 2 : 1;
    };
    for (std::size_t n = 1; n < axes.size(); ++n) {
        const int before = rank(axes[n - 1]), now = rank(axes[n]);
        if (before < now || (before == 2 && now == 2)) continue;
        add(ConventionRule::text, axes[n].at,
            "axes are at most one of time, then at most one of channels or another type, "
            "then those of space");
        return;
    }
}

Systems OmeChecker::coordinate_systems(const DocumentSpot& in, std::size_t least, Need need) {
    Systems systems;
    const std::vector<DocumentSpot> all =
        list(in, "coordinateSystems", an_object, {.least = least, .unique = true}, need);
    for (const DocumentSpot& system : all) {
        const auto name = get(system, "name", a_name, Need::required);
        const auto count = axes(system);
        if (name && count) systems.emplace(name->value->as_string(), *count);
    }
    require_distinct(ConventionRule::text, all, "name");
    return systems;
}

void OmeChecker::old_transformations(const DocumentSpot& in, Need need, std::optional<std::size_t> axes) {
    const auto all = get(in, "coordinateTransformations", a_list, need);
    if (!all) return;
    std::size_t scales = 0, translations = 0;
    for (const DocumentSpot& t : items(*all, an_object, {.least = 1})) {
        const auto type = get(t, "type", a_string, Need::required);
        if (!type) continue;
        const std::string& name = type->value->as_string();
        if (name != "scale" && name != "translation") {
            add(ConventionRule::schema, type->at, "expected \"scale\" or \"translation\", found {}",
                shown(*type->value));
            continue;
        }
        list(t, name, a_number, {.least = 2}, Need::required);
        lengths(t, axes, axes);
        ++(name == "scale" ? scales : translations);
        if (name == "translation" && (scales == 0 || translations > 1)) {
            add(ConventionRule::text, t.at, "expected one translation at most, after the scale");
        }
    }
    if (scales != 1) add(ConventionRule::schema, all->at, "expected one scale, found {}", scales);
}

void OmeChecker::transformation_input(const DocumentSpot& t, const DocumentSpot& level) {
    const auto input = get(t, "input", an_object, Need::required);
    if (!input) return;
    const auto path = get(*input, "path", a_string, Need::required);
    get(*input, "name", a_string);
    const Value* of_level = level.value->find("path");
    if (path && of_level != nullptr && *path->value != *of_level) {
        add(ConventionRule::text, path->at, "{} is not the path of its level, {}", shown(*path->value),
            shown(*of_level));
    }
}

std::optional<std::string> OmeChecker::transformation_output(const DocumentSpot& t, const Systems& systems) {
    const auto output = get(t, "output", an_object, Need::required);
    if (!output) return std::nullopt;
    get(*output, "path", a_string);
    const auto name = get(*output, "name", a_string, Need::required);
    if (!name) return std::nullopt;
    std::string to = name->value->as_string();
    if (!systems.contains(to)) {
        add(ConventionRule::text, name->at, "no coordinate system of the image is named {}", shown(*name->value));
    }
    return to;
}

void OmeChecker::sequence(const DocumentSpot& t) {
    const std::vector<DocumentSpot> both =
        list(t, "transformations", an_object, {.least = 2, .most = 2}, Need::required);
    for (std::size_t n = 0; n < both.size(); ++n) {
        const bool scale = is_type(*both[n].value, "scale");
        if (!scale && !is_type(*both[n].value, "translation")) {
            add(ConventionRule::schema, both[n].at, "expected a scale or a translation");
            continue;
        }
        transformation(both[n]);
        if (scale != (n == 0)) add(ConventionRule::text, both[n].at, "expected a scale, then a translation");
    }
}

/// Returns the name of the coordinate system that it leads to.
std::optional<std::string> OmeChecker::level_transformation(const DocumentSpot& level, const Systems& systems) {
    std::optional<std::string> to;
    for (const DocumentSpot& t :
         list(level, "coordinateTransformations", an_object, {.least = 1, .most = 1}, Need::required)) {
        const auto type = get(t, "type", a_string, Need::required);
        transformation_input(t, level);
        to = transformation_output(t, systems);
        get(t, "name", a_string);
        if (!type) continue;
        const std::string& name = type->value->as_string();
        const auto system = to ? systems.find(*to) : systems.end();
        const auto count = system != systems.end() ? std::optional(system->second) : std::nullopt;
        if (name == "scale") {
            transformation(t);
        } else if (name == "sequence") {
            sequence(t);
        } else if (name != "identity") {
            add(ConventionRule::schema, type->at, "expected \"scale\", \"identity\" or \"sequence\", found {}",
                shown(*type->value));
        }
        lengths(t, count, count);
    }
    return to;
}

void OmeChecker::image(const DocumentSpot& image) {
    for (const std::string_view name : {"name", "type", "metadata"}) {
        get(image, name, name == "name" ? a_string : anything, Need::recommended);
    }
    const Systems systems = is_0_6() ? coordinate_systems(image, 1, Need::required) : Systems{};
    const std::optional<std::size_t> count = is_0_6() ? std::nullopt : axes(image);
    std::optional<std::string> intrinsic;
    for (const DocumentSpot& level : list(image, "datasets", an_object, {.least = 1}, Need::required)) {
        get(level, "path", a_string, Need::required);
        if (!is_0_6()) {
            old_transformations(level, Need::required, count);
            continue;
        }
        const auto to = level_transformation(level, systems);
        if (!to) continue;
        if (!intrinsic) intrinsic = to;
        if (*to != *intrinsic) {
            add(ConventionRule::text, level.at, "its transformation leads to {}, and that of the first level to {}",
                shown(Value(*to)), shown(Value(*intrinsic)));
        }
    }
    if (!is_0_6()) {
        old_transformations(image, Need::optional, count);
        return;
    }
    for (const DocumentSpot& t : list(image, "coordinateTransformations", an_object, {.least = 1})) {
        image_transformation(t, systems, intrinsic);
    }
}

void OmeChecker::image_transformation(const DocumentSpot& t, const Systems& systems,
                                      const std::optional<std::string>& intrinsic) {
    transformation(t);
    for (const std::string_view end : {"input", "output"}) {
        if (const auto place = get(t, end, an_object, Need::required)) {
            get(*place, "name", a_string, Need::required);
        }
    }
    between_systems(t, systems);
    if (!intrinsic) return;
    const auto leads = [&](std::string_view end) {
        const Value* place = t.value->find(end);
        const Value* name = place != nullptr && place->is_object() ? place->find("name") : nullptr;
        return name == nullptr || *name == Value(*intrinsic);
    };
    if (!leads("input") && !leads("output")) {
        add(ConventionRule::text, t.at, "expected {}, to which the levels lead, as its input or output",
            shown(Value(*intrinsic)));
    }
}

// ---- transformations of 0.6

void OmeChecker::matrix(const DocumentSpot& t, std::string_view name) {
    const bool by_path = t.value->find("path") != nullptr;
    if (by_path == (t.value->find(name) != nullptr)) {
        add(ConventionRule::schema, t.at, "expected either \"{}\" or \"path\"", name);
        return;
    }
    if (by_path) {
        get(t, "path", a_string);
        return;
    }
    const bool square = name == "rotation";
    const ListLength any{};
    const std::vector<DocumentSpot> rows = list(t, name, a_list, square ? ListLength{.least = 2, .most = 5} : any);
    for (const DocumentSpot& row : rows) {
        items(row, a_number, square ? ListLength{.least = rows.size(), .most = rows.size()} : any);
    }
}

/// Transformations that are made of others.
void OmeChecker::composed(const DocumentSpot& t, std::string_view name) {
    if (name == "bijection") {
        for (const std::string_view way : {"forward", "inverse"}) {
            if (const auto inner = get(t, way, an_object, Need::required)) transformation(*inner);
        }
        return;
    }
    for (const DocumentSpot& part : list(t, "transformations", an_object, {}, Need::required)) {
        if (name == "sequence") {
            transformation(part);
            continue;
        }
        if (const auto inner = get(part, "transformation", an_object, Need::required)) transformation(*inner);
        list(part, "inputAxes", a_number, {}, Need::required);
        list(part, "outputAxes", a_number, {}, Need::required);
    }
}

void OmeChecker::transformation(const DocumentSpot& t) {
    const auto type = get(t, "type", a_string, Need::required);
    get(t, "name", a_string);
    if (!type) return;
    const std::string& name = type->value->as_string();
    if (name == "identity") return;
    if (name == "scale" || name == "translation") {
        list(t, name, name == "scale" ? above_0 : a_number, {}, Need::required);
    } else if (name == "mapAxis") {
        list(t, name, axis_index, {.least = 2, .most = 5, .unique = true}, Need::required);
    } else if (name == "projectAxis") {
        for (const std::string_view part : {"droppedInputs", "createdOutputs"}) {
            list(t, part, axis_index, {.least = 1, .most = 3, .unique = true});
        }
        if (t.value->find("droppedInputs") == nullptr && t.value->find("createdOutputs") == nullptr) {
            add(ConventionRule::schema, t.at, "expected \"droppedInputs\" or \"createdOutputs\", found neither");
        }
    } else if (name == "affine" || name == "rotation") {
        matrix(t, name);
    } else if (name == "bijection" || name == "sequence" || name == "byDimension") {
        composed(t, name);
    } else if (name == "displacements" || name == "coordinates") {
        get(t, "path", a_string, Need::required);
        get(t, "interpolation", an_interpolation);
    } else {
        add(ConventionRule::schema, type->at, "expected a type of transformation, found {}", shown(*type->value));
    }
}

/// The items of a list; none if it is no list.
static std::vector<DocumentSpot> spots_in(const Value* list, const std::string& at) {
    std::vector<DocumentSpot> spots;
    if (list == nullptr || !list->is_array()) return spots;
    for (const Value& item : list->as_array()) spots.push_back({&item, fmt::format("{}[{}]", at, spots.size())});
    return spots;
}

void OmeChecker::lengths(const DocumentSpot& t, std::optional<std::size_t> in, std::optional<std::size_t> out) {
    const Value* type = t.value->find("type");
    if (!in || !out || type == nullptr || !type->is_string()) return;
    const std::string& name = type->as_string();
    const auto require = [&](const Value* list, const std::string& at, std::size_t count) {
        if (list == nullptr || !list->is_array() || list->as_array().size() == count) return;
        add(ConventionRule::text, at, "expected {} items, as there are axes, found {}", count, list->as_array().size());
    };
    const std::string at = fmt::format("{}.{}", t.at, name);
    if (name == "scale" || name == "translation" || name == "mapAxis" || name == "rotation") {
        require(t.value->find(name), at, *in);
        if (*in != *out) add(ConventionRule::text, t.at, "leads from {} axes to {}, which this type cannot", *in, *out);
    } else if (name == "affine") {
        const Value* rows = t.value->find(name);
        require(rows, at, *out);
        for (const DocumentSpot& row : spots_in(rows, at)) {
            if (!row.value->is_array() || row.value->as_array().size() == *in + 1) continue;
            add(ConventionRule::text, row.at, "expected {} items, one more than axes, found {}", *in + 1,
                row.value->as_array().size());
        }
    } else if (name == "sequence" && *in == *out) {
        for (const DocumentSpot& step : spots_in(t.value->find("transformations"), t.at + ".transformations")) {
            // The number of axes between other steps is not known.
            if (!is_type(*step.value, "scale") && !is_type(*step.value, "translation")) return;
            lengths(step, in, out);
        }
    }
}

void OmeChecker::between_systems(const DocumentSpot& t, const Systems& systems) {
    const auto count_at = [&](std::string_view end) -> std::optional<std::size_t> {
        const Value* place = t.value->find(end);
        if (place == nullptr || !place->is_object()) return std::nullopt;
        const Value* name = place->find("name");
        const Value* path = place->find("path");
        if (name == nullptr || !name->is_string() || (path != nullptr && path->is_string())) return std::nullopt;
        const auto found = systems.find(name->as_string());
        if (found != systems.end()) return found->second;
        add(ConventionRule::text, fmt::format("{}.{}.name", t.at, end), "no coordinate system here is named {}",
            shown(*name));
        return std::nullopt;
    };
    const auto in = count_at("input");
    lengths(t, in, count_at("output"));
}

void OmeChecker::scene(const DocumentSpot& scene) {
    const Systems systems = coordinate_systems(scene, 0, Need::optional);
    for (const DocumentSpot& t : list(scene, "coordinateTransformations", an_object, {.least = 1}, Need::required)) {
        transformation(t);
        for (const std::string_view end : {"input", "output"}) {
            const auto place = get(t, end, an_object, Need::required);
            if (!place) continue;
            get(*place, "name", a_string, Need::required);
            get(*place, "path", a_string);
            for (const auto& [key, value] : place->value->as_object()) {
                if (key == "name" || key == "path") continue;
                add(ConventionRule::schema, place->at, "expected \"name\" and \"path\" alone, found {}",
                    shown(Value(key)));
            }
        }
        between_systems(t, systems);
    }
}

// ---- the rest

void OmeChecker::omero(const DocumentSpot& omero) {
    for (const DocumentSpot& channel : list(omero, "channels", an_object, {}, Need::required)) {
        for (const std::string_view name : {"window", "color"}) {
            if (channel.value->find(name) != nullptr) continue;
            add(version_ == OmeVersion::v0_4 ? ConventionRule::schema : ConventionRule::text, channel.at,
                "expected \"{}\", found none", name);
        }
        if (const auto window = get(channel, "window", an_object)) {
            for (const std::string_view end : {"start", "min", "end", "max"}) {
                get(*window, end, a_number, Need::required);
            }
        }
        get(channel, "label", a_string);
        get(channel, "family", a_string);
        get(channel, "active", a_truth);
        const auto color = get(channel, "color", a_string);
        if (color && !a_color.holds(*color->value)) {
            add(ConventionRule::text, color->at, "expected {}, found {}", a_color.words, shown(*color->value));
        }
    }
}

void OmeChecker::label(const DocumentSpot& label) {
    const std::vector<DocumentSpot> colors =
        list(label, "colors", an_object, {.least = 1, .unique = true}, Need::recommended);
    for (const DocumentSpot& color : colors) {
        const auto value = get(color, "label-value", a_number, Need::required);
        if (value && !an_integer.holds(*value->value)) {
            add(ConventionRule::text, value->at, "expected an integer, found {}", shown(*value->value));
        }
        list(color, "rgba", a_byte, {.least = 4, .most = 4});
    }
    require_distinct(ConventionRule::text, colors, "label-value");
    const std::vector<DocumentSpot> properties = list(label, "properties", an_object, {.least = 1, .unique = true});
    for (const DocumentSpot& property : properties) get(property, "label-value", an_integer, Need::required);
    if (const auto source = get(label, "source", an_object)) get(*source, "image", a_string);
}

void OmeChecker::plate(const DocumentSpot& plate) {
    get(plate, "name", a_string, Need::recommended);
    get(plate, "field_count", from_1);
    require_distinct(ConventionRule::text, acquisitions(plate), "id");
    const std::vector<std::string> columns = names_along(plate, "columns"), rows = names_along(plate, "rows");
    const std::vector<DocumentSpot> wells =
        list(plate, "wells", an_object, {.least = 1, .unique = true}, Need::required);
    for (const DocumentSpot& well : wells) place_of_well(well, rows, columns);
    require_distinct(ConventionRule::text, wells, "path");
}

std::vector<DocumentSpot> OmeChecker::acquisitions(const DocumentSpot& plate) {
    std::vector<DocumentSpot> all = list(plate, "acquisitions", an_object, {});
    for (const DocumentSpot& acquisition : all) {
        get(acquisition, "id", from_0, Need::required);
        get(acquisition, "name", a_string, Need::recommended);
        get(acquisition, "maximumfieldcount", from_1, Need::recommended);
        if (is_0_6()) get(acquisition, "description", a_string);
        get(acquisition, "starttime", from_0);
        get(acquisition, "endtime", from_0);
    }
    return all;
}

/// The names of the rows or columns.
std::vector<std::string> OmeChecker::names_along(const DocumentSpot& plate, std::string_view key) {
    const std::vector<DocumentSpot> all = list(plate, key, an_object, {.least = 1, .unique = true}, Need::required);
    std::vector<std::string> texts;
    for (const DocumentSpot& spot : all) {
        const auto name = get(spot, "name", alphanumeric, Need::required);
        texts.push_back(name ? name->value->as_string() : "");
    }
    require_distinct(ConventionRule::text, all, "name");
    return texts;
}

void OmeChecker::place_of_well(const DocumentSpot& well, const std::vector<std::string>& rows,
                               const std::vector<std::string>& columns) {
    const auto path = get(well, "path", well_path, Need::required);
    const auto row = get(well, "rowIndex", from_0, Need::required);
    const auto column = get(well, "columnIndex", from_0, Need::required);
    const auto name_at = [&](const std::vector<std::string>& all, const DocumentSpot& index) -> std::string {
        if (index.value->as_double() < static_cast<double>(all.size())) {
            return all[static_cast<std::size_t>(index.value->as_double())];
        }
        add(ConventionRule::text, index.at, "there are only {}, counted from 0", all.size());
        return "";
    };
    const std::string expected =
        fmt::format("{}/{}", row ? name_at(rows, *row) : "", column ? name_at(columns, *column) : "");
    if (!path || !well_path.holds(Value(expected)) || path->value->as_string() == expected) return;
    add(ConventionRule::text, path->at, "expected {}, the names of its row and column, found {}", expected,
        shown(*path->value));
}

void OmeChecker::well(const DocumentSpot& well) {
    const std::vector<DocumentSpot> images =
        list(well, "images", an_object, {.least = 1, .unique = true}, Need::required);
    for (const DocumentSpot& image : images) {
        get(image, "path", is_0_6() ? node_name : alphanumeric, Need::required);
        get(image, "acquisition", an_integer);
    }
    require_distinct(ConventionRule::text, images, "path");
}

/// The members that make a group one of OME-Zarr.
constexpr std::array<std::string_view, 8> main_members{"multiscales", "plate", "well",   "labels",
                                                       "image-label", "scene", "series", "bioformats2raw.layout"};

/// Whether the attributes themselves may be those of 0.4: other conventions have members of these names, too.
bool is_old_member(std::string_view name, const Value& value) {
    if (name == "plate" || name == "well" || name == "image-label") return value.is_object();
    if (name == "multiscales" || name == "labels" || name == "series") return value.is_array();
    return name == "bioformats2raw.layout";
}

void OmeChecker::check(const DocumentSpot& ome) {
    if (std::ranges::none_of(main_members, [&](auto name) { return ome.value->find(name) != nullptr; })) {
        add(ConventionRule::schema, ome.at, "expected one of {}, found none", fmt::join(main_members, ", "));
    }
    const auto object = [&](std::string_view name, void (OmeChecker::*rule)(const DocumentSpot&)) {
        const auto spot = get(ome, name, an_object);
        if (!spot) return;
        if (version_ == OmeVersion::v0_4 && name != "omero") get(*spot, "version", a_string, Need::recommended);
        (this->*rule)(*spot);
    };
    for (const DocumentSpot& spot : list(ome, "multiscales", an_object, {.least = 1, .unique = true})) {
        if (version_ == OmeVersion::v0_4) get(spot, "version", a_string, Need::recommended);
        image(spot);
    }
    object("omero", &OmeChecker::omero);
    object("image-label", &OmeChecker::label);
    object("plate", &OmeChecker::plate);
    object("well", &OmeChecker::well);
    if (is_0_6()) object("scene", &OmeChecker::scene);
    list(ome, "labels", a_string, {});
    list(ome, "series", a_string, {});
    const auto layout = get(ome, "bioformats2raw.layout", a_number);
    if (layout && layout->value->as_double() != 3) {
        add(ConventionRule::schema, layout->at, "expected 3, found {}", shown(*layout->value));
    }
    if (ome.value->find("image-label") != nullptr && ome.value->find("multiscales") == nullptr) {
        add(ConventionRule::text, ome.at, "expected \"multiscales\" beside \"image-label\", found none");
    }
}

/// A version of 0.4's metadata that is another one, and where it stands.
std::optional<DocumentSpot> other_version(const Value& attributes) {
    const auto of = [](const Value& object, const std::string& at) -> std::optional<DocumentSpot> {
        const Value* version = object.is_object() ? object.find("version") : nullptr;
        if (version == nullptr || *version == Value("0.4")) return std::nullopt;
        return DocumentSpot{version, fmt::format("{}.version", at)};
    };
    for (const std::string_view name : main_members) {
        const Value* value = attributes.find(name);
        if (value == nullptr || !is_old_member(name, *value)) continue;
        if (auto other = of(*value, std::string(name))) return other;
        if (!value->is_array()) continue;
        for (std::size_t n = 0; n < value->as_array().size(); ++n) {
            if (auto other = of(value->as_array()[n], fmt::format("{}[{}]", name, n))) return other;
        }
    }
    return std::nullopt;
}

}  // namespace

const Value* ome_members_of(const Value& attributes) {
    if (const Value* ome = attributes.find("ome")) return ome;
    const bool old = std::ranges::any_of(attributes.as_object(), [](const auto& member) {
        return std::ranges::find(main_members, member.first) != main_members.end() &&
               is_old_member(member.first, member.second);
    });
    return old ? &attributes : nullptr;
}

std::optional<OmeVersion> stored_ome_version(const Value& attributes) {
    const Value* ome = ome_members_of(attributes);
    if (ome == nullptr) return std::nullopt;
    if (ome == &attributes) return other_version(attributes) ? std::nullopt : std::optional(OmeVersion::v0_4);
    const Value* version = ome->is_object() ? ome->find("version") : nullptr;
    for (const OmeVersion known : {OmeVersion::v0_5, OmeVersion::v0_6}) {
        if (version != nullptr && *version == Value(ome_version_text(known))) return known;
    }
    return std::nullopt;
}

std::vector<ConventionProblem> ome_problems(const Value& attributes) {
    const Value* ome = ome_members_of(attributes);
    if (ome == nullptr) {
        return {{ConventionRule::schema, "",
                 fmt::format("expected \"ome\", or before 0.5 one of {}, found none", fmt::join(main_members, ", "))}};
    }
    const bool old = ome == &attributes;
    if (const auto version = stored_ome_version(attributes)) {
        OmeChecker checker(*version);
        checker.check({ome, old ? "" : "ome"});
        return std::move(checker.problems);
    }
    if (!ome->is_object()) {
        return {{ConventionRule::schema, "ome", fmt::format("expected an object, found {}", shown(*ome))}};
    }
    if (old) {
        const auto other = other_version(attributes);
        return {{ConventionRule::version, other->at, fmt::format("expected \"0.4\", found {}", shown(*other->value))}};
    }
    const Value* version = ome->find("version");
    if (version == nullptr) return {{ConventionRule::schema, "ome", "expected \"version\", found none"}};
    return {{ConventionRule::version, "ome.version",
             fmt::format("expected \"{}\" or \"{}\", found {}", ome_version_text(OmeVersion::v0_5),
                         ome_version_text(OmeVersion::v0_6), shown(*version))}};
}

}  // namespace tessera
