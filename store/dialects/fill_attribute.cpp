#include "fill_attribute.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base64.h"

namespace tessera {

namespace {

/// The bytes of a double, little-endian.
std::array<std::byte, 8> little_bytes(double number) {
    auto bits = std::bit_cast<std::uint64_t>(number);
    std::array<std::byte, 8> bytes{};
    for (std::byte& b : bytes) {
        b = static_cast<std::byte>(bits & 0xFFU);
        bits >>= 8U;
    }
    return bytes;
}

}  // namespace

void fill_attribute_for(const Dialect& dialect, const DType& dtype, Value& attributes) {
    if (&dialect != &dialect_named("v3")) return fill_attribute_as_number(dtype, attributes);
    const Value* const value = attributes.is_object() ? attributes.find(fill_attribute) : nullptr;
    if (value == nullptr || dtype.kind() != Kind::real || !value->is_number()) return;
    attributes.set(fill_attribute, base64_encode(little_bytes(value->as_double())));
}

void fill_attribute_as_number(const DType& dtype, Value& attributes) {
    const Value* const value = attributes.is_object() ? attributes.find(fill_attribute) : nullptr;
    if (value == nullptr || dtype.kind() != Kind::real || !value->is_string()) return;
    constexpr std::size_t digits = 12;  // of 8 bytes
    if (value->as_string().size() != digits) return;
    const auto bytes = base64_decode(value->as_string());
    if (!bytes || bytes->size() != sizeof(double)) return;
    std::uint64_t bits = 0;
    for (std::size_t i = sizeof bits; i-- > 0;) bits = bits << 8U | std::to_integer<std::uint64_t>((*bytes)[i]);
    attributes.set(fill_attribute, std::bit_cast<double>(bits));
}

}  // namespace tessera
