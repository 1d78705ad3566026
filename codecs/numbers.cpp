#include "numbers.h"
#include <tessera/error_text.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace tessera {

namespace {

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

/// The type that holds every T exactly.
template <class T>
using Wide = std::conditional_t<
    is_complex<T>, std::complex<double>,
    std::conditional_t<std::signed_integral<T>, std::int64_t,
                       std::conditional_t<std::unsigned_integral<T> || std::same_as<T, Bool>, std::uint64_t, double>>>;

/// Truncates a float to an integer of this size. Gives the least integer if it does not fit, as x86 does.
template <class Register>
Register cut(double v) {
    constexpr double limit = -static_cast<double>(std::numeric_limits<Register>::min());
    return v >= -limit && v < limit ? static_cast<Register>(v) : std::numeric_limits<Register>::min();
}

template <class To>
To to_integer(double v) {
    if constexpr (std::same_as<To, std::uint64_t>) {
        constexpr double half = 9223372036854775808.0;  // 2^63
        return v >= half ? static_cast<To>(cut<std::int64_t>(v - half)) ^ (To{1} << 63)
                         : static_cast<To>(cut<std::int64_t>(v));
    } else if constexpr (sizeof(To) < 4 || std::same_as<To, std::int32_t>) {
        return static_cast<To>(cut<std::int32_t>(v));
    } else {
        return static_cast<To>(cut<std::int64_t>(v));
    }
}

template <class To, class From>
To convert(From v) {
    if constexpr (std::same_as<To, Bool>) {
        return Bool(v);
    } else if constexpr (is_complex<From>) {
        if constexpr (is_complex<To>)
            return To(v);
        else
            return convert<To>(v.real());
    } else if constexpr (is_complex<To>) {
        return To(convert<typename To::value_type>(v));
    } else if constexpr (std::same_as<To, Half>) {
        if constexpr (std::integral<From>)
            return Half(static_cast<float>(v));
        else
            return Half(v);
    } else if constexpr (std::integral<To> && std::floating_point<From>) {
        return to_integer<To>(v);
    } else {
        return static_cast<To>(v);
    }
}

/// The bits of a float, and the number of its fraction bits.
template <class Float>
using Bits = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;
template <class Float>
inline constexpr int fraction_bits = std::numeric_limits<Float>::digits - 1;

// NaNs between f2 and wider floats, as in NumPy's half.c: the bits are copied, because conversion in a register would
// make a signalling NaN quiet.
template <class To>
To widened(Half v) {
    constexpr int shift = fraction_bits<To> - 10;
    const To infinity =
        (v.bits & 0x8000) != 0 ? -std::numeric_limits<To>::infinity() : std::numeric_limits<To>::infinity();
    return std::bit_cast<To>(std::bit_cast<Bits<To>>(infinity) | Bits<To>{v.bits & 0x3FFu} << shift);
}
template <class From>
Half narrowed(From v) {
    constexpr int shift = fraction_bits<From> - 10;
    const auto bits = std::bit_cast<Bits<From>>(v);
    const auto fraction = static_cast<std::uint16_t>(bits >> shift & 0x3FF);
    Half half;
    half.bits = static_cast<std::uint16_t>((bits >> (8 * sizeof(From) - 16) & 0x8000) | 0x7C00 |
                                           std::max<std::uint16_t>(fraction, 1));  // still a NaN
    return half;
}

template <class To, class From>
To cast(From v) {
    if constexpr (std::same_as<From, Half> && std::floating_point<To>) {
        if (std::isnan(half_to_float(v.bits))) return widened<To>(v);
    } else if constexpr (std::same_as<To, Half> && std::floating_point<From>) {
        if (std::isnan(v)) return narrowed(v);
    }
    return convert<To>(static_cast<Wide<From>>(v));
}

}  // namespace

void require_numbers(const DType& dtype, std::string_view member, bool complex) {
    const Kind kind = dtype.kind();
    if (kind == Kind::integer || kind == Kind::unsigned_integer || kind == Kind::real) return;
    if (complex && kind == Kind::complex) return;
    throw unsupported("{} is {}, expected integers or floats", member, dtype.to_string());
}

DType promoted(const DType& a, const DType& b) {
    const auto is = [](Kind kind) { return [kind](const DType& d) { return d.kind() == kind; }; };
    const auto either = [&](auto&& test) { return test(a) || test(b); };
    if (either(is(Kind::complex)) || either(is(Kind::real))) {
        // Integers of 1, 2, 4 and 8 bytes need floats of 2, 4, 8 and 8.
        const auto float_size = [](const DType& d) {
            if (d.kind() == Kind::complex) return d.size() / 2;
            return d.kind() == Kind::real ? d.size() : std::min<std::int64_t>(2 * d.size(), 8);
        };
        const std::int64_t size = std::max(float_size(a), float_size(b));
        if (!either(is(Kind::complex))) return DType::scalar(Kind::real, size);
        return DType::scalar(Kind::complex, 2 * std::max<std::int64_t>(size, 4));
    }
    if (a.kind() == b.kind()) return DType::scalar(a.kind(), std::max(a.size(), b.size()));
    const DType& with_sign = a.kind() == Kind::integer ? a : b;
    const DType& without = a.kind() == Kind::integer ? b : a;
    if (with_sign.size() > without.size()) return DType::scalar(Kind::integer, with_sign.size());
    if (without.size() == 8) return DType::scalar(Kind::real, 8);
    return DType::scalar(Kind::integer, 2 * without.size());
}

NDArray cast_numbers(NDArray a, const DType& dtype) {
    if (a.dtype() == dtype) return a;
    NDArray out(dtype, a.shape());
    with_number(a.dtype(), [&](auto from_type) {
        using From = typename decltype(from_type)::type;
        const auto from = elements<From>(std::as_const(a));
        with_number(dtype, [&](auto to_type) {
            using To = typename decltype(to_type)::type;
            const auto to = elements<To>(out);
            for (std::size_t i = 0; i < to.size(); ++i) to[i] = cast<To>(from[i]);
        });
    });
    return out;
}

}  // namespace tessera
