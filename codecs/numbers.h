// Numbers by dtype: one place that turns a dtype into a C++ type, with NumPy's arithmetic and casts.
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include <tessera/dtype.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>

namespace tessera {

/// f2. Computing in double and rounding once gives the same results as NumPy, which computes in float.
struct Half {
    std::uint16_t bits;
    Half() = default;
    explicit Half(double v) : bits(double_to_half(v)) {}
    operator double() const { return half_to_float(bits); }
};

/// b1, whose byte may hold anything.
struct Bool {
    std::uint8_t byte;
    Bool() = default;
    template <class T>
    explicit Bool(T v) : byte(v != T(0) ? 1 : 0) {}
    explicit operator std::uint64_t() const { return byte != 0 ? 1 : 0; }
};

/// Calls body(std::type_identity<T>{}) with the type that holds an element of `dtype` in host order. Throws unsupported
/// if `dtype` is no number.
template <class Body>
decltype(auto) with_number(const DType& dtype, Body&& body) {
    const auto size = dtype.size();
    switch (dtype.kind()) {
        case Kind::boolean:
            return body(std::type_identity<Bool>{});
        case Kind::integer:
            if (size == 1) return body(std::type_identity<std::int8_t>{});
            if (size == 2) return body(std::type_identity<std::int16_t>{});
            if (size == 4) return body(std::type_identity<std::int32_t>{});
            return body(std::type_identity<std::int64_t>{});
        case Kind::unsigned_integer:
            if (size == 1) return body(std::type_identity<std::uint8_t>{});
            if (size == 2) return body(std::type_identity<std::uint16_t>{});
            if (size == 4) return body(std::type_identity<std::uint32_t>{});
            return body(std::type_identity<std::uint64_t>{});
        case Kind::real:
            if (size == 2) return body(std::type_identity<Half>{});
            if (size == 4) return body(std::type_identity<float>{});
            return body(std::type_identity<double>{});
        case Kind::complex:
            if (size == 8) return body(std::type_identity<std::complex<float>>{});
            return body(std::type_identity<std::complex<double>>{});
        default:
            throw unsupported("{} is no type of number that is computed with", dtype.to_string());
    }
}

/// Throws unsupported, naming the member, unless `dtype` is an integer or a float, or `complex` numbers if allowed.
void require_numbers(const DType& dtype, std::string_view member, bool complex = false);

/// np.promote_types for integers, floats and complex numbers: the type, in host order, in which NumPy combines the two.
[[nodiscard]] DType promoted(const DType& a, const DType& b);

// NumPy's + − ×: integers wrap.
template <class T>
[[nodiscard]] T plus(T a, T b) {
    if constexpr (std::integral<T>)
        return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    else
        return T(a + b);
}
template <class T>
[[nodiscard]] T minus(T a, T b) {
    if constexpr (std::integral<T>)
        return static_cast<T>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
    else
        return T(a - b);
}
template <class T>
[[nodiscard]] T times(T a, T b) {
    if constexpr (std::integral<T>)
        return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    else
        return T(a * b);
}

/// All elements of a packed array in host order. T is the type that with_number gives for its dtype.
template <class T>
[[nodiscard]] std::span<T> elements(NDArray& a) {
    return {reinterpret_cast<T*>(a.bytes().data()), static_cast<std::size_t>(a.count())};
}
template <class T>
[[nodiscard]] std::span<const T> elements(const NDArray& a) {
    return {reinterpret_cast<const T*>(a.bytes().data()), static_cast<std::size_t>(a.count())};
}

/// Converts elements to `dtype`, as NumPy's astype does on x86. Floats are truncated to integers. Integers that do not
/// fit wrap. NaN, and floats that no register holds, become the register's least integer. Both dtypes are in host
/// order.
[[nodiscard]] NDArray cast_numbers(NDArray a, const DType& dtype);

}  // namespace tessera
