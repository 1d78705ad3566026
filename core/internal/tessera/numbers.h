// Numeric elements as C++ numbers: their types by dtype, NumPy's promotion and wrapping arithmetic, and loops over
// packed elements in host order. One loop is chosen for a whole array.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <tessera/dtype.h>
#include <tessera/element.h>

namespace tessera {

// ---- types

// As stored. They are rounded once from a double. As in NumPy, 16-bit floats are computed with as floats; their sums,
// products and quotients are then those of any wider type.
struct Half {
    std::uint16_t bits;
    Half() = default;
    explicit Half(double v) : bits(double_to_half(v)) {}
    operator float() const { return half_to_float(bits); }
};
struct Bfloat16 {
    std::uint16_t bits;
    Bfloat16() = default;
    explicit Bfloat16(double v) : bits(double_to_bfloat16(v)) {}
    operator float() const { return bfloat16_to_float(bits); }
};
/// b1, whose byte may hold anything.
struct Boolean {
    std::uint8_t byte;
};

/// A stored element as a C++ number.
template <class T>
[[nodiscard]] auto up(T v) {
    if constexpr (std::is_same_v<T, Boolean>) {
        return v.byte != 0;
    } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
        return static_cast<float>(v);
    } else {
        return v;
    }
}
/// A C++ number as a stored element.
template <class T, class C>
[[nodiscard]] T down(C v) {
    if constexpr (std::is_same_v<T, Boolean>) {
        return {static_cast<std::uint8_t>(v != C{} ? 1 : 0)};
    } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
        return T(static_cast<double>(v));
    } else {
        return static_cast<T>(v);
    }
}

template <class T>
[[nodiscard]] T load_number(const std::byte* elements, std::int64_t i) {
    T v;
    std::memcpy(&v, elements + i * static_cast<std::int64_t>(sizeof v), sizeof v);
    return v;
}
template <class T>
void store_number(std::byte* elements, std::int64_t i, T v) {
    std::memcpy(elements + i * static_cast<std::int64_t>(sizeof v), &v, sizeof v);
}

/// Whether elements are numbers for arithmetic: Boolean, integer, real, complex, bfloat16.
[[nodiscard]] bool is_number(const DType& dtype);
[[nodiscard]] bool is_time(const DType& dtype);
/// Throws unsupported.
[[noreturn]] void not_computed_with(const DType& dtype);

/// Calls body(T{}) with the type of an integer of this size; times are signed.
template <class Body>
decltype(auto) with_integer(const DType& dtype, const Body& body) {
    const bool is_unsigned = dtype.kind() == Kind::unsigned_integer;
    switch (dtype.size()) {
        case 1:
            return is_unsigned ? body(std::uint8_t{}) : body(std::int8_t{});
        case 2:
            return is_unsigned ? body(std::uint16_t{}) : body(std::int16_t{});
        case 4:
            return is_unsigned ? body(std::uint32_t{}) : body(std::int32_t{});
        default:
            return is_unsigned ? body(std::uint64_t{}) : body(std::int64_t{});
    }
}

/// Calls body(T{}) with the type of an element; of a complex one, with that of its two parts. Throws unsupported if the
/// dtype is no number.
template <class Body>
decltype(auto) with_part(const DType& dtype, const Body& body) {
    const std::int64_t size = dtype.kind() == Kind::complex ? dtype.size() / 2 : dtype.size();
    switch (dtype.kind()) {
        case Kind::boolean:
            return body(Boolean{});
        case Kind::integer:
        case Kind::unsigned_integer:
            return with_integer(dtype, body);
        case Kind::bfloat16:
            return body(Bfloat16{});
        case Kind::real:
        case Kind::complex:
            return size == 2 ? body(Half{}) : size == 4 ? body(float{}) : body(double{});
        default:
            not_computed_with(dtype);
    }
}

/// Calls body(T{}) with the type of an element, which is std::complex for complex ones. Throws unsupported if the dtype
/// is no number, and for bfloat16, which NumPy does not have.
template <class Body>
decltype(auto) with_number(const DType& dtype, const Body& body) {
    switch (dtype.kind()) {
        case Kind::boolean:
            return body(Boolean{});
        case Kind::integer:
        case Kind::unsigned_integer:
            return with_integer(dtype, body);
        case Kind::real:
            return dtype.size() == 2 ? body(Half{}) : dtype.size() == 4 ? body(float{}) : body(double{});
        case Kind::complex:
            return dtype.size() == 8 ? body(std::complex<float>{}) : body(std::complex<double>{});
        default:
            not_computed_with(dtype);
    }
}

/// The dtype, in host order, in which NumPy combines two numbers, as np.promote_types. bfloat16 counts as float32,
/// except with itself, Booleans and integers of one byte.
[[nodiscard]] DType promoted(const DType& a, const DType& b);

// ---- NumPy's arithmetic: integers wrap; of integers, x // 0 is 0, and the least one // −1 is itself

/// The unsigned type in which integers wrap. Small ones must not be promoted to int, which is signed.
template <std::integral C>
using Modular = std::conditional_t<(sizeof(C) <= 4), std::uint32_t, std::uint64_t>;

template <class C>
[[nodiscard]] C plus(C a, C b) {
    if constexpr (std::integral<C>) {
        return static_cast<C>(static_cast<Modular<C>>(a) + static_cast<Modular<C>>(b));
    } else {
        return C(a + b);
    }
}
template <class C>
[[nodiscard]] C minus(C a, C b) {
    if constexpr (std::integral<C>) {
        return static_cast<C>(static_cast<Modular<C>>(a) - static_cast<Modular<C>>(b));
    } else {
        return C(a - b);
    }
}
template <class C>
[[nodiscard]] C times(C a, C b) {
    if constexpr (std::integral<C>) {
        return static_cast<C>(static_cast<Modular<C>>(a) * static_cast<Modular<C>>(b));
    } else {
        return C(a * b);
    }
}
template <std::integral C>
[[nodiscard]] C floor_quotient(C a, C b) {
    if (b == 0) return 0;
    if constexpr (std::signed_integral<C>) {
        if (b == -1) return minus(C{0}, a);
    }
    const bool down = (a % b != 0) && ((a < 0) != (b < 0));
    return static_cast<C>(a / b - (down ? 1 : 0));
}

// ---- loops

/// Number of elements for the loops below at a time. As doubles they fill a quarter of the L1 cache.
constexpr std::int64_t numbers_at_once = 1024;

/// `n` packed elements of any alignment as doubles: 64-bit integers rounded, NaT as NaN. Complex ones give two
/// each.
using ToDoubles = void (*)(const std::byte* elements, std::int64_t n, double* to);
/// For numbers and times; throws unsupported for others.
[[nodiscard]] ToDoubles to_doubles(const DType& dtype);

/// `n` packed integers, times or Booleans of any alignment, negative ones as two's complement of 64 bits.
using ToIntegers = void (*)(const std::byte* elements, std::int64_t n, std::uint64_t* to);
[[nodiscard]] ToIntegers to_integers(const DType& dtype);

}  // namespace tessera
