#include "element_number.h"

#include <tessera/element.h>
#include <tessera/error_text.h>

#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

namespace tessera {

namespace {

template <class T>
T load(const std::byte* elements, std::int64_t i) {
    T v;
    std::memcpy(&v, elements + i * static_cast<std::int64_t>(sizeof v), sizeof v);
    return v;
}

/// Storage types of 16-bit floats and of times, with their values as numbers.
struct StoredHalf {
    std::uint16_t bits;
    [[nodiscard]] double number() const { return half_to_float(bits); }
};
struct Bfloat16 {
    std::uint16_t bits;
    [[nodiscard]] double number() const { return bfloat16_to_float(bits); }
};
struct Time {
    std::int64_t count;
    [[nodiscard]] double number() const {
        return count == std::numeric_limits<std::int64_t>::min() ? std::numeric_limits<double>::quiet_NaN()
                                                                 : static_cast<double>(count);
    }
};

template <class T>
void all_to_doubles(const std::byte* elements, std::int64_t n, double* to) {
    for (std::int64_t i = 0; i < n; ++i) {
        if constexpr (std::is_arithmetic_v<T>) {
            to[i] = static_cast<double>(load<T>(elements, i));
        } else {
            to[i] = load<T>(elements, i).number();
        }
    }
}

template <class T>
void pairs_to_doubles(const std::byte* elements, std::int64_t n, double* to) {
    all_to_doubles<T>(elements, 2 * n, to);
}

template <class T>
void all_to_integers(const std::byte* elements, std::int64_t n, std::uint64_t* to) {
    // Sign extension of small integers is intended. NOLINTNEXTLINE(bugprone-signed-char-misuse)
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<std::uint64_t>(load<T>(elements, i));
}

/// Calls body with the signed or unsigned integer type of this size.
template <class Body>
auto with_integer(const DType& dtype, Body body) {
    const bool is_signed = dtype.kind() == Kind::integer;
    switch (dtype.size()) {
        case 1:
            return is_signed ? body(std::int8_t{}) : body(std::uint8_t{});
        case 2:
            return is_signed ? body(std::int16_t{}) : body(std::uint16_t{});
        case 4:
            return is_signed ? body(std::int32_t{}) : body(std::uint32_t{});
        default:
            return is_signed ? body(std::int64_t{}) : body(std::uint64_t{});
    }
}

using Pair = std::array<std::uint64_t, 2>;

template <class U>
std::int64_t count_equal_to(const std::byte* elements, std::int64_t n, std::int64_t /*size*/,
                            const std::byte* element) {
    const auto wanted = load<U>(element, 0);
    std::conditional_t<sizeof(U) >= 8, std::uint64_t, std::uint32_t> count = 0;  // as wide as the elements
    for (std::int64_t i = 0; i < n; ++i) count += load<U>(elements, i) == wanted ? 1 : 0;
    return static_cast<std::int64_t>(count);
}

std::int64_t count_equal_bytes(const std::byte* elements, std::int64_t n, std::int64_t size, const std::byte* element) {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        count += std::memcmp(elements + i * size, element, static_cast<std::size_t>(size)) == 0 ? 1 : 0;
    }
    return count;
}

template <class U>
void flag_different_in(const std::byte* a, const std::byte* b, std::int64_t n, std::int64_t /*size*/,
                       std::uint8_t* flags) {
    for (std::int64_t i = 0; i < n; ++i) flags[i] = load<U>(a, i) != load<U>(b, i) ? 1 : 0;
}

void flag_different_bytes(const std::byte* a, const std::byte* b, std::int64_t n, std::int64_t size,
                          std::uint8_t* flags) {
    for (std::int64_t i = 0; i < n; ++i) {
        flags[i] = std::memcmp(a + i * size, b + i * size, static_cast<std::size_t>(size)) != 0 ? 1 : 0;
    }
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

bool is_time(const DType& dtype) {
    return dtype.kind() == Kind::datetime || dtype.kind() == Kind::timedelta;
}

ToDoubles to_doubles(const DType& dtype) {
    switch (dtype.kind()) {
        case Kind::real:
            return dtype.size() == 2   ? all_to_doubles<StoredHalf>
                   : dtype.size() == 4 ? all_to_doubles<float>
                                       : all_to_doubles<double>;
        case Kind::complex:
            return dtype.size() == 8 ? pairs_to_doubles<float> : pairs_to_doubles<double>;
        case Kind::bfloat16:
            return all_to_doubles<Bfloat16>;
        case Kind::datetime:
        case Kind::timedelta:
            return all_to_doubles<Time>;
        case Kind::boolean:
        case Kind::integer:
        case Kind::unsigned_integer:
            return with_integer(dtype, [](auto v) -> ToDoubles { return all_to_doubles<decltype(v)>; });
        default:
            throw unsupported("{} is no type of number that is computed with", dtype.to_string());
    }
}

ToIntegers to_integers(const DType& dtype) {
    return with_integer(dtype, [](auto v) -> ToIntegers { return all_to_integers<decltype(v)>; });
}

CountEqual count_equal(std::int64_t size) {
    switch (size) {
        case 1:
            return count_equal_to<std::uint8_t>;
        case 2:
            return count_equal_to<std::uint16_t>;
        case 4:
            return count_equal_to<std::uint32_t>;
        case 8:
            return count_equal_to<std::uint64_t>;
        case 16:
            return count_equal_to<Pair>;
        default:
            return count_equal_bytes;
    }
}

FlagDifferent flag_different(std::int64_t size) {
    switch (size) {
        case 1:
            return flag_different_in<std::uint8_t>;
        case 2:
            return flag_different_in<std::uint16_t>;
        case 4:
            return flag_different_in<std::uint32_t>;
        case 8:
            return flag_different_in<std::uint64_t>;
        case 16:
            return flag_different_in<Pair>;
        default:
            return flag_different_bytes;
    }
}

}  // namespace tessera
