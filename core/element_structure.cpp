// Structures, and the sub-arrays that their fields may be.
#include <span>

#include <fmt/format.h>

#include "element_rows.h"

namespace tessera::element {

namespace {

// A sub-array takes nested lists of its shape; under NumPy's rule also one scalar for all.
void assign_sub_array(const DType& dtype, std::span<const std::int64_t> shape, const Value& v, Assign rule,
                      std::byte* out) {
    if (shape.empty()) return assign(dtype, v, rule, out);
    const auto length = shape.front();
    const auto rest = shape.subspan(1);
    const auto stride = byte_count(Shape(rest), dtype.size());
    const bool is_list = v.is_array() && static_cast<std::int64_t>(v.as_array().size()) == length;
    if (!is_list && (v.is_array() || rule == Assign::exact)) {
        cannot(dtype, v, fmt::format("a sub-array takes a list of its {} items", length));
    }
    for (std::int64_t i = 0; i < length; ++i) {
        assign_sub_array(dtype, rest, is_list ? v.as_array()[static_cast<std::size_t>(i)] : v, rule, out + i * stride);
    }
}

template <class Item>
Value sub_array_value(const DType& dtype, std::span<const std::int64_t> shape, const std::byte* p, Item item) {
    if (shape.empty()) return item(p);
    const auto rest = shape.subspan(1);
    const auto stride = byte_count(Shape(rest), dtype.size());
    Value::Array list;
    for (std::int64_t i = 0; i < shape.front(); ++i) list.push_back(sub_array_value(dtype, rest, p + i * stride, item));
    return list;
}

}  // namespace

void assign_structure(const DType& dtype, const Value& v, Assign rule, std::byte* out) {
    const auto fields = dtype.fields();
    const auto require_count = [&](std::size_t found) {
        if (found != fields.size()) {
            cannot(dtype, v, fmt::format("it has {} fields, and {} values are given", fields.size(), found));
        }
    };
    if (v.is_array()) require_count(v.as_array().size());
    if (v.is_object()) require_count(v.as_object().size());
    const bool is_scalar = !v.is_array() && !v.is_object();
    if (is_scalar && rule == Assign::exact) cannot(dtype, v, "it takes a list of its fields' values, or an object");
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const auto& f = fields[i];
        const Value* member = &v;
        if (v.is_array()) member = &v.as_array()[i];
        if (v.is_object()) member = v.find(f.name);
        if (member == nullptr) cannot(dtype, v, fmt::format("the field '{}' is missing", f.name));
        assign_sub_array(f.dtype, f.shape, *member, rule, out + f.offset);
    }
}

Value structure_value(const DType& dtype, const std::byte* p) {
    Value::Array list;
    for (const auto& f : dtype.fields()) {
        list.push_back(sub_array_value(f.dtype, f.shape, p + f.offset,
                                       [&](const std::byte* at) { return element_to_value(f.dtype, at); }));
    }
    return list;
}

std::string structure_text(const DType& dtype, const std::byte* p) {
    // Nested lists without JSON's quotes: "[1, abc, [2020-01-31, NaT]]".
    const auto join = [](const auto& self, const Value& v) -> std::string {
        if (!v.is_array()) return plain_text(v);
        std::string text = "[";
        for (const auto& item : v.as_array()) text += (text.size() > 1 ? ", " : "") + self(self, item);
        return text + "]";
    };
    Value::Array list;
    for (const auto& f : dtype.fields()) {
        list.push_back(sub_array_value(f.dtype, f.shape, p + f.offset,
                                       [&](const std::byte* at) -> Value { return element_to_text(f.dtype, at); }));
    }
    return join(join, list);
}

}  // namespace tessera::element
