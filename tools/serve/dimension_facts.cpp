#include "dimension_facts.h"

#include <tessera/axis_facts.h>
#include <tessera/coordinates.h>
#include <tessera/dimensions.h>
#include <tessera/group.h>
#include <tessera/shared_source.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera::serve {

namespace {

std::string parent_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::string name_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

template <class T>
Value value_or_null(const std::optional<T>& v) {
    return v ? Value(*v) : Value(nullptr);
}

Value json_of(const std::optional<AxisFacts>& facts) {
    if (!facts) return nullptr;
    Value values = Value::array();
    for (const double v : facts->values) values.push_back(std::isfinite(v) ? Value(v) : Value(nullptr));
    Value texts = Value::array();
    for (const std::string& text : facts->texts) texts.push_back(text);
    return Value{{"label", facts->label},
                 {"units", facts->units},
                 {"values", facts->values.empty() ? Value(nullptr) : std::move(values)},
                 {"texts", facts->texts.empty() ? Value(nullptr) : std::move(texts)},
                 {"every", facts->every},
                 {"up", value_or_null(facts->up)},
                 {"step", value_or_null(facts->step)}};
}

/// What `look` finds; `otherwise` if it cannot be read, which is no reason to show nothing.
template <class Look, class T>
T found_or(const Look& look, T otherwise) {
    try {
        return look();
    } catch (const Error& e) {
        if (e.code() == ErrorCode::cancelled || e.code() == ErrorCode::budget) throw;
        return otherwise;
    }
}

/// The facts of the coordinate beside a node, for a dimension of this name and length.
std::optional<AxisFacts> coordinate_facts(Served& served, const ServedNode& node, const std::string& name,
                                          std::int64_t length) {
    const std::string parent = parent_of(node.path);
    const std::string beside = parent.empty() ? name : parent + "/" + name;
    if (name.empty() || length > longest_coordinate || name.find('/') != std::string::npos || name.starts_with('.') ||
        beside == node.path) {
        return std::nullopt;
    }
    return found_or(
        [&]() -> std::optional<AxisFacts> {
            const NodePointer other = served.node(beside);
            if (!other->is_array() || other->source().info().shape != Shape{length}) return std::nullopt;
            return axis_facts(Coordinate(shared_source({other, &other->source()})), name);
        },
        std::optional<AxisFacts>());
}

/// The attributes of the group around a node, which may say how large pixels are; null if there are none.
Value attributes_above(Served& served, const ServedNode& node) {
    if (node.path.empty()) return nullptr;
    return found_or(
        [&]() -> Value {
            const NodePointer group = served.node(parent_of(node.path));
            if (group->kind != ServedKind::group || !group->place || group->format.empty()) return nullptr;
            return Group::open(*group->place).attributes().all();
        },
        Value(nullptr));
}

}  // namespace

Value dimension_facts(Served& served, const ServedNode& node, const ArraySource& source) {
    const Shape shape = source.info().shape;
    const auto names = dimension_names_of(source);
    Value list = Value::array();
    const Value attributes = attributes_above(served, node);
    for (int d = 0; d < shape.rank(); ++d) {
        const auto number = static_cast<std::size_t>(d);
        const std::string name = number < names.size() ? names[number].value_or("") : "";
        auto facts = coordinate_facts(served, node, name, shape[d]);
        if (!facts) facts = pixel_facts(attributes, name_of(node.path), d, shape[d]);
        list.push_back(json_of(facts));
    }
    return list;
}

}  // namespace tessera::serve
