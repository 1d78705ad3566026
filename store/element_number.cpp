#include "element_number.h"

#include <tessera/element.h>

#include <bit>
#include <cstdint>
#include <cstring>

namespace tessera {

namespace {

template <class T>
T load(const DType& dtype, const std::byte* p) {
    std::byte bytes[sizeof(T)];
    std::memcpy(bytes, p, sizeof(T));
    if (dtype.order() != ByteOrder::none && dtype.order() != native_order) {
        for (std::size_t i = 0; i < sizeof(T) / 2; ++i) std::swap(bytes[i], bytes[sizeof(T) - 1 - i]);
    }
    return std::bit_cast<T>(bytes);
}

double integer_at(const DType& dtype, const std::byte* p) {
    const bool is_signed = dtype.kind() == Kind::integer;
    switch (dtype.size()) {
        case 1:
            return is_signed ? load<std::int8_t>(dtype, p) : load<std::uint8_t>(dtype, p);
        case 2:
            return is_signed ? load<std::int16_t>(dtype, p) : load<std::uint16_t>(dtype, p);
        case 4:
            return is_signed ? load<std::int32_t>(dtype, p) : load<std::uint32_t>(dtype, p);
        default:
            return is_signed ? static_cast<double>(load<std::int64_t>(dtype, p))
                             : static_cast<double>(load<std::uint64_t>(dtype, p));
    }
}

double real_at(const DType& dtype, std::int64_t size, const std::byte* p) {
    if (size == 2) return half_to_float(load<std::uint16_t>(dtype, p));
    return size == 4 ? load<float>(dtype, p) : load<double>(dtype, p);
}

}  // namespace

bool is_number(const DType& dtype) {
    switch (dtype.kind()) {
        case Kind::boolean:
        case Kind::integer:
        case Kind::unsigned_integer:
        case Kind::real:
        case Kind::complex:
        case Kind::bfloat16:
            return true;
        default:
            return false;
    }
}

std::complex<double> number_at(const DType& dtype, const std::byte* p) {
    switch (dtype.kind()) {
        case Kind::real:
            return real_at(dtype, dtype.size(), p);
        case Kind::complex: {
            const std::int64_t half = dtype.size() / 2;
            return {real_at(dtype, half, p), real_at(dtype, half, p + half)};
        }
        case Kind::bfloat16:
            return bfloat16_to_float(load<std::uint16_t>(dtype, p));
        default:
            return integer_at(dtype, p);
    }
}

}  // namespace tessera
