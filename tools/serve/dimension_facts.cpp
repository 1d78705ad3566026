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

}  // namespace

Value dimension_facts(Served& served, const ServedNode& node, const ArraySource& source) {
    const Shape shape = source.info().shape;
    const auto names = dimension_names_of(source);
    const std::string parent = parent_of(node.path);
    const auto beside = [&](const std::string& name) { return parent.empty() ? name : parent + "/" + name; };
    const auto found = [&](int d) -> std::optional<AxisFacts> {
        const auto number = static_cast<std::size_t>(d);
        if (number >= names.size() || !names[number] || names[number]->empty()) return std::nullopt;
        const std::string& name = *names[number];
        if (shape[d] > longest_coordinate || name.find('/') != std::string::npos || name.starts_with('.') ||
            beside(name) == node.path) {
            return std::nullopt;
        }
        try {
            const NodePointer other = served.node(beside(name));
            if (!other->is_array() || other->source().info().shape != Shape{shape[d]}) return std::nullopt;
            return axis_facts(Coordinate(shared_source({other, &other->source()})), name);
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled || e.code() == ErrorCode::budget) throw;
            return std::nullopt;
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
    for (int d = 0; d < shape.rank(); ++d) {
        auto facts = found(d);
        if (!facts) facts = pixel_facts(attributes, name_of(node.path), d, shape[d]);
        list.push_back(json_of(facts));
    }
    return list;
}

}  // namespace tessera::serve
