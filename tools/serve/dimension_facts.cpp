#include "dimension_facts.h"

#include <tessera/calendar.h>
#include <tessera/coordinates.h>
#include <tessera/dimensions.h>
#include <tessera/group.h>
#include <tessera/write_computed.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera::serve {

namespace {

// Of longer coordinates, some are listed.
constexpr std::int64_t most_listed = 4096;
// Longer coordinates are not read: the page is to be there at once.
constexpr std::int64_t longest = std::int64_t{1} << 22;

std::string text_of(const Value& attributes, std::string_view name) {
    const Value* value = attributes.find(name);
    return value != nullptr && value->is_string() ? value->as_string() : std::string();
}

std::string parent_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::string name_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

/// The distance of neighbours, or null where it differs by more than a thousandth.
Value even_step(const std::vector<double>& values, std::int64_t every) {
    if (values.size() < 2) return nullptr;
    const double step = (values.back() - values.front()) / static_cast<double>(values.size() - 1);
    constexpr double same = 1e-3;
    for (std::size_t k = 0; k + 1 < values.size(); ++k) {
        if (!(std::abs(values[k + 1] - values[k] - step) <= same * std::abs(step))) return nullptr;
    }
    if (step == 0 || !std::isfinite(step)) return nullptr;
    return std::abs(step) / static_cast<double>(every);
}

/// Whether the coordinate rises upwards or to the north, or to the east; by the attributes of the CF conventions.
Value direction_of(const Value& attributes, const std::string& name, const std::vector<double>& values) {
    if (values.size() < 2 || values.front() == values.back()) return nullptr;
    const bool rises = values.back() > values.front();
    const std::string units = text_of(attributes, "units");
    const std::string standard = text_of(attributes, "standard_name");
    const std::string axis = text_of(attributes, "axis");
    const bool north = units.starts_with("degrees_n") || units.starts_with("degree_n") || standard == "latitude" ||
                       standard == "projection_y_coordinate" || axis == "Y" || name == "lat" || name == "latitude";
    const bool east = units.starts_with("degrees_e") || units.starts_with("degree_e") || standard == "longitude" ||
                      standard == "projection_x_coordinate" || axis == "X";
    const std::string positive = text_of(attributes, "positive");
    if (north || positive == "up") return rises;
    if (positive == "down") return !rises;
    if (east) return rises ? Value(nullptr) : Value(false);
    return nullptr;
}

/// Calls take(key) for every so many of a coordinate's values.
template <class Key>
void for_listed(const Coordinate& coordinate, std::int64_t every, const Coordinate::Take<Key>& take) {
    std::int64_t i = 0;
    coordinate.for_each<Key>(0, coordinate.length(), [&](const std::optional<Key>& key) {
        if (i++ % every == 0) take(key);
    });
}

Value coordinate_facts(std::shared_ptr<const ArraySource> values_of, const std::string& name) {
    const Coordinate coordinate(shared_source(std::move(values_of)));
    const Kind dtype = coordinate.source().info().dtype.kind();
    const Value attributes = coordinate.source().attribute_values();
    const std::int64_t length = coordinate.length();
    const std::int64_t every = std::max<std::int64_t>(1, (length + most_listed - 1) / most_listed);
    const std::string long_name = text_of(attributes, "long_name");
    Value facts{{"label", long_name.empty() ? name : long_name},
                {"units", text_of(attributes, "units")},
                {"values", nullptr},
                {"texts", nullptr},
                {"every", every},
                {"up", nullptr},
                {"step", nullptr}};
    std::vector<double> listed;
    Value values = Value::array();
    Value texts = Value::array();
    const auto add = [&](const std::optional<long double>& v) {
        listed.push_back(v ? static_cast<double>(*v) : std::numeric_limits<double>::quiet_NaN());
        values.push_back(std::isfinite(listed.back()) ? Value(listed.back()) : Value(nullptr));
    };
    const auto add_text = [&](const std::optional<std::string>& text) { texts.push_back(text.value_or("")); };
    switch (coordinate.kind()) {
        case Coordinate::Kind::numbers:
            for_listed<long double>(coordinate, every, add);
            if (dtype == Kind::timedelta) for_listed<std::string>(coordinate, every, add_text);
            break;
        case Coordinate::Kind::times:
            for_listed<Int128>(coordinate, every, [&](const std::optional<Int128>& time) {
                add(time ? std::optional(static_cast<long double>(*time) / attoseconds_of_second) : std::nullopt);
                texts.push_back(time ? time_text(coordinate.calendar(), *time) : "NaT");
            });
            facts.set("units", "");
            break;
        case Coordinate::Kind::texts:
            for_listed<std::string>(coordinate, every, add_text);
            break;
    }
    if (!listed.empty()) {
        facts.set("values", std::move(values));
        facts.set("up", direction_of(attributes, name, listed));
        facts.set("step", even_step(listed, every));
    }
    if (!texts.as_array().empty()) facts.set("texts", std::move(texts));
    return facts;
}

/// The attribute "multiscales" of OME-Zarr 0.4 and 0.5.
const Value* multiscales_of(const Value& attributes) {
    const Value* ome = attributes.find("ome");
    const Value* scales = (ome != nullptr && ome->is_object() ? *ome : attributes).find("multiscales");
    if (scales == nullptr || !scales->is_array() || scales->as_array().empty()) return nullptr;
    const Value& first = scales->as_array().front();
    return first.is_object() ? &first : nullptr;
}

/// The number of dimension d in the first transformation of a kind; nullopt without one.
std::optional<double> transformation_of(const Value& dataset, const char* kind, std::size_t d) {
    const Value* list = dataset.find("coordinateTransformations");
    if (list == nullptr || !list->is_array()) return std::nullopt;
    for (const Value& one : list->as_array()) {
        const Value* numbers = one.is_object() && text_of(one, "type") == kind ? one.find(kind) : nullptr;
        if (numbers == nullptr || !numbers->is_array() || d >= numbers->as_array().size()) continue;
        const Value& number = numbers->as_array()[d];
        if (number.is_number() && std::isfinite(number.as_double())) return number.as_double();
    }
    return std::nullopt;
}

/// The axes of an image of OME-Zarr by its group's attributes: null where there are none.
Value pixel_facts(const Value& multiscale, const std::string& path, int d, std::int64_t length) {
    const Value* axes = multiscale.find("axes");
    const Value* datasets = multiscale.find("datasets");
    const auto number = static_cast<std::size_t>(d);
    if (axes == nullptr || !axes->is_array() || number >= axes->as_array().size()) return nullptr;
    if (datasets == nullptr || !datasets->is_array()) return nullptr;
    const Value& axis = axes->as_array()[number];
    if (!axis.is_object() || text_of(axis, "type") == "channel") return nullptr;
    for (const Value& dataset : datasets->as_array()) {
        if (!dataset.is_object() || text_of(dataset, "path") != path) continue;
        const std::optional<double> scale = transformation_of(dataset, "scale", number);
        if (!scale || *scale == 0) return nullptr;
        const double start = transformation_of(dataset, "translation", number).value_or(0);
        const std::int64_t every = std::max<std::int64_t>(1, (length + most_listed - 1) / most_listed);
        Value values = Value::array();
        for (std::int64_t i = 0; i < length; i += every) values.push_back(start + *scale * static_cast<double>(i));
        return Value{{"label", text_of(axis, "name")},
                     {"units", text_of(axis, "unit")},
                     {"values", std::move(values)},
                     {"texts", nullptr},
                     {"every", every},
                     {"up", nullptr},
                     {"step", std::abs(*scale)}};
    }
    return nullptr;
}

}  // namespace

Value dimension_facts(Served& served, const ServedNode& node, const ArraySource& source) {
    const Shape shape = source.info().shape;
    const auto names = dimension_names_of(source);
    const std::string parent = parent_of(node.path);
    const auto beside = [&](const std::string& name) { return parent.empty() ? name : parent + "/" + name; };
    const auto found = [&](int d) -> Value {
        const auto number = static_cast<std::size_t>(d);
        if (number >= names.size() || !names[number] || names[number]->empty() || shape[d] > longest) return nullptr;
        const std::string& name = *names[number];
        if (name.find('/') != std::string::npos || name.starts_with('.') || beside(name) == node.path) return nullptr;
        try {
            const NodePointer other = served.node(beside(name));
            if (!other->is_array() || other->source().info().shape != Shape{shape[d]}) return nullptr;
            return coordinate_facts({other, &other->source()}, name);
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled || e.code() == ErrorCode::budget) throw;
            return nullptr;
        }
    };
    const auto pixels = [&]() -> Value {
        try {
            const NodePointer group = served.node(parent);
            if (group->kind != ServedKind::group || !group->place || group->format.empty()) return nullptr;
            return Group::open(*group->place).attributes().all();
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled || e.code() == ErrorCode::budget) throw;
            return nullptr;
        }
    };
    Value list = Value::array();
    const Value attributes = node.path.empty() ? Value(nullptr) : pixels();
    const Value* const multiscale = attributes.is_object() ? multiscales_of(attributes) : nullptr;
    for (int d = 0; d < shape.rank(); ++d) {
        Value facts = found(d);
        if (facts.is_null() && multiscale != nullptr) facts = pixel_facts(*multiscale, name_of(node.path), d, shape[d]);
        list.push_back(std::move(facts));
    }
    return list;
}

}  // namespace tessera::serve
