#include "fill_attribute.h"

#include <tessera/little_endian.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base64.h"

namespace tessera {

void fill_attribute_for(const Dialect& dialect, const DType& dtype, Value& attributes) {
    if (&dialect != &dialect_named("v3")) return fill_attribute_as_number(dtype, attributes);
    const Value* const value = attributes.is_object() ? attributes.find(fill_attribute) : nullptr;
    if (value == nullptr || dtype.kind() != Kind::real || !value->is_number()) return;
    std::array<std::byte, sizeof(double)> bytes{};
    store_little(bytes.data(), std::bit_cast<std::uint64_t>(value->as_double()));
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

}  // namespace tessera
