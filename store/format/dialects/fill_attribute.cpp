#include "fill_attribute.h"

#include <tessera/little_endian.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <tessera/element.h>
#include <tessera/numbers.h>

#include "base64.h"

namespace tessera {

namespace {

/// The number that an element of this dtype is: 0.1 is no float32.
double as_element(const DType& dtype, double number) {
    if (dtype.size() == 4) return static_cast<float>(number);
    return dtype.size() == 2 ? half_to_float(double_to_half(number)) : number;
}

}  // namespace

void fill_attribute_for(const Dialect& dialect, const DType& dtype, Value& attributes) {
    if (&dialect != &dialect_named("v3")) return fill_attribute_as_number(dtype, attributes);
    const Value* const value = attributes.is_object() ? attributes.find(fill_attribute) : nullptr;
    if (value == nullptr || dtype.kind() != Kind::real || !value->is_number()) return;
    std::array<std::byte, sizeof(double)> bytes{};
    store_little(bytes.data(), std::bit_cast<std::uint64_t>(as_element(dtype, value->as_double())));
    attributes.set(fill_attribute, base64_encode(bytes));
}

void fill_attribute_as_number(const DType& dtype, Value& attributes) {
    const Value* const value = attributes.is_object() ? attributes.find(fill_attribute) : nullptr;
    if (value == nullptr || dtype.kind() != Kind::real || !value->is_string()) return;
    constexpr std::size_t digits = 12;  // of 8 bytes
    if (value->as_string().size() != digits) return;
    const auto bytes = base64_decode(value->as_string());
    if (!bytes || bytes->size() != sizeof(double)) return;
    attributes.set(fill_attribute, std::bit_cast<double>(load_little<std::uint64_t>(bytes->data())));
}

void erase_nan_mark(Value& attributes) {
    const Value* const mark = attributes.find(fill_attribute);
    if (mark != nullptr && mark->is_double() && std::isnan(mark->as_double())) attributes.erase(fill_attribute);
}

std::optional<Value> missing_by_fill(const ArrayMetadata& m, const Dialect& dialect, const Value& attributes) {
    if (!dialect.fill_is_missing || !is_number(m.dtype) || !m.fill.bytes) return std::nullopt;
    const bool packed = attributes.find("scale_factor") != nullptr || attributes.find("add_offset") != nullptr;
    if (!packed && *m.fill.bytes == zero_element(m.dtype)) return std::nullopt;
    return element_to_value(m.dtype, m.fill.bytes->data());
}

void move_missing(const ArrayMetadata& m, const Dialect& from, const Dialect& to, Value& attributes) {
    if (from.fill_is_missing == to.fill_is_missing) return;
    if (!to.fill_is_missing) {
        const std::optional<Value> fill = missing_by_fill(m, from, attributes);
        const bool nan = fill && fill->is_double() && std::isnan(fill->as_double());
        if (fill && !nan && attributes.find(fill_attribute) == nullptr) attributes.set(fill_attribute, *fill);
    } else if (attributes.find(fill_attribute) != nullptr && attributes.find(null_fill_attribute) == nullptr) {
        fill_attribute_as_number(m.dtype, attributes);
        if (missing_by_fill(m, to, attributes)) erase_nan_mark(attributes);
    }
}

}  // namespace tessera
