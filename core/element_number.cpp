// Numbers and times: counts of a unit.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <complex>
#include <limits>

#include <fmt/format.h>

#include <tessera/number_text.h>
#include <tessera/numbers.h>

#include "element_rows.h"
#include "time_units.h"

namespace tessera {
namespace element {

namespace {

// ---- booleans and integers

bool truth(const Value& v) {
    if (v.is_bool()) return v.as_bool();
    if (v.is_string()) return !v.as_string().empty();
    return v.is_big_integer() || (v.is_integer() ? v != Value(0) : v.as_double() != 0);
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view space = " \t\n\r\f\v";
    const auto first = text.find_first_not_of(space);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(space) - first + 1);
}

// Python's int(text), for numbers far within 128 bits.
std::optional<__int128> integer_from_text(std::string_view text) {
    text = trimmed(text);
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) text.remove_prefix(1);
    std::uint64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return negative ? -static_cast<__int128>(n) : static_cast<__int128>(n);
}

// The integer to assign, before it is truncated to the size of the type.
__int128 integer_from(const DType& dtype, const Value& v, Assign rule) {
    constexpr double beyond = 18446744073709551616.0;  // 2^64
    if (v.is_integer()) {
        return v.dump().starts_with('-') ? static_cast<__int128>(v.as_int64()) : static_cast<__int128>(v.as_uint64());
    }
    if (v.is_big_integer()) cannot(dtype, v, "it is beyond 64 bits");
    if (v.is_double()) {
        const double d = v.as_double();
        if (!(std::abs(d) < beyond)) cannot(dtype, v, "it is not finite, or beyond 64 bits");
        if (rule == Assign::exact && d != std::trunc(d)) cannot(dtype, v, "it is no whole number");
        return static_cast<__int128>(d);
    }
    if (rule == Assign::numpy && v.is_bool()) return v.as_bool() ? 1 : 0;
    if (rule == Assign::numpy && v.is_string()) {
        if (const auto n = integer_from_text(v.as_string())) return *n;
    }
    cannot(dtype, v, "it takes an integer");
}

// ---- floats

// Rounds to a small IEEE 754 format: to nearest, ties to even.
template <int exponent_bits, int fraction_bits>
std::uint16_t encode_small(double v) {
    constexpr int bias = (1 << (exponent_bits - 1)) - 1;
    constexpr int infinity = ((1 << exponent_bits) - 1) << fraction_bits;
    const int sign = std::signbit(v) ? 0x8000 : 0;
    int magnitude = infinity;
    if (std::isnan(v)) {
        const auto fraction = std::bit_cast<std::uint64_t>(v) & 0xFFFFFFFFFFFFF;
        magnitude |= 1 << (fraction_bits - 1) | static_cast<int>(fraction >> (52 - fraction_bits));
    } else if (v == 0) {
        magnitude = 0;
    } else if (const int exponent = std::isinf(v) ? bias + 1 : std::max(std::ilogb(v), 1 - bias); exponent <= bias) {
        // In units of the last place; a carry out of the fraction raises the exponent, up to infinity.
        const auto units = static_cast<int>(std::nearbyint(std::ldexp(std::abs(v), fraction_bits - exponent)));
        magnitude = ((exponent + bias - 1) << fraction_bits) + units;
    }
    return static_cast<std::uint16_t>(sign | magnitude);
}

// x86's 80-bit long double in 16 bytes: 64 bits with an explicit leading one, then 15 of exponent and the sign.
void encode_extended(double v, std::byte* out) {
    std::uint64_t fraction = 0;
    std::uint16_t high = 0;
    if (std::isnan(v)) {
        fraction = 0x8000000000000000 | std::bit_cast<std::uint64_t>(v) << 11;
        high = 0x7FFF;
    } else if (std::isinf(v)) {
        fraction = 0x8000000000000000;
        high = 0x7FFF;
    } else if (v != 0) {
        int exponent = 0;
        fraction = static_cast<std::uint64_t>(std::ldexp(std::frexp(std::abs(v), &exponent), 64));
        high = static_cast<std::uint16_t>(exponent - 1 + 16383);
    }
    if (std::signbit(v)) high |= 0x8000;
    std::memset(out, 0, 16);
    store(out, fraction);
    store(out + 8, high);
    if constexpr (native_order == ByteOrder::big) {
        std::reverse(out, out + 8);
        std::reverse(out + 8, out + 10);
        std::reverse(out, out + 16);
    }
}

double decode_extended(const std::byte* p) {
    std::byte bytes[16];
    std::memcpy(bytes, p, 16);
    if constexpr (native_order == ByteOrder::big) {
        std::reverse(bytes, bytes + 16);
        std::reverse(bytes, bytes + 8);
        std::reverse(bytes + 8, bytes + 10);
    }
    const auto fraction = load<std::uint64_t>(bytes);
    const auto high = load<std::uint16_t>(bytes + 8);
    const int exponent = high & 0x7FFF;
    double v = std::ldexp(static_cast<double>(fraction), exponent - 16383 - 63);
    if (exponent == 0x7FFF) {
        v = fraction << 1 == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    }
    return (high & 0x8000) != 0 ? -v : v;
}

std::optional<double> double_from_text(std::string_view text) {
    text = trimmed(text);
    if (text.starts_with('+')) text.remove_prefix(1);
    double d = 0;
    const auto [end, error] = number_from_text(text.data(), text.data() + text.size(), d);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return d;
}

/// `size` is that of the float. Python's numbers are doubles before NumPy assigns them.
double real_from(const DType& dtype, const Value& v, Assign rule, std::int64_t size) {
    if (v.is_number()) {
        const double d = rule == Assign::exact && size < 8 ? v.as_double_to_round() : v.as_double();
        if (v.is_big_integer() && std::isinf(d)) cannot(dtype, v, "it is beyond what a float holds");
        return d;
    }
    if (v.is_bool() && rule == Assign::numpy) return v.as_bool() ? 1 : 0;
    if (v.is_string()) {
        const auto d = double_from_text(v.as_string());
        if (d && (rule == Assign::numpy || !std::isfinite(*d))) return *d;  // JSON has no number for "NaN", "Infinity"
    }
    cannot(dtype, v, "it takes a number");
}

// Writes one float of `size` bytes and returns the value that it then holds.
double encode_real(Kind kind, std::int64_t size, double d, std::byte* out) {
    if (kind == Kind::bfloat16) {
        store(out, double_to_bfloat16(d));
        return bfloat16_to_float(double_to_bfloat16(d));
    }
    switch (size) {
        case 2:
            store(out, double_to_half(d));
            return half_to_float(double_to_half(d));
        case 4:
            store(out, static_cast<float>(d));
            return static_cast<float>(d);
        case 8:
            store(out, d);
            return d;
        default:
            encode_extended(d, out);
            return d;
    }
}

void put_real(const DType& dtype, const Value& v, Assign rule, std::int64_t size, double d, std::byte* out) {
    const double kept = encode_real(dtype.kind(), size, d, out);
    if (rule == Assign::exact && std::isinf(kept) && !std::isinf(d))
        cannot(dtype, v, "it is beyond what that float holds");
}

// "1+2j", "2j", "1", with or without parentheses, as Python's complex() reads.
std::optional<std::complex<double>> complex_from_text(std::string_view text) {
    text = trimmed(text);
    if (text.starts_with('(') && text.ends_with(')')) text = trimmed(text.substr(1, text.size() - 2));
    if (!text.ends_with('j') && !text.ends_with('J')) {
        const auto re = double_from_text(text);
        return re ? std::optional(std::complex<double>(*re, 0)) : std::nullopt;
    }
    text.remove_suffix(1);
    // The sign between the parts is the last one that is neither the first character nor an exponent's.
    std::size_t split = text.size();
    while (split > 0) {
        --split;
        if ((text[split] == '+' || text[split] == '-') && (split == 0 || (text[split - 1] | 0x20) != 'e')) break;
    }
    const auto re = split == 0 ? std::optional(0.0) : double_from_text(text.substr(0, split));
    const auto im = double_from_text(text.substr(split));
    if (!re || !im) return std::nullopt;
    return std::complex<double>(*re, *im);
}

// The double of the shortest decimal that `encode` maps to the same bits.
template <class Encode>
double shortest_double(double v, Encode encode) {
    if (!std::isfinite(v)) return v;
    char text[32];
    for (int digits = 0;; ++digits) {
        const auto end = std::to_chars(std::begin(text), std::end(text), v, std::chars_format::scientific, digits).ptr;
        double shorter = 0;
        (void)number_from_text(text, end, shorter);
        if (encode(shorter) == encode(v)) return shorter;
    }
}

double read_real(Kind kind, std::int64_t size, const std::byte* p) {
    if (kind == Kind::bfloat16) {
        return shortest_double(bfloat16_to_float(load<std::uint16_t>(p)), double_to_bfloat16);
    }
    switch (size) {
        case 2:
            return shortest_double(half_to_float(load<std::uint16_t>(p)), double_to_half);
        case 4:
            return *double_from_text(python_float_repr(load<float>(p)));
        case 8:
            return load<double>(p);
        default:
            return decode_extended(p);
    }
}

}  // namespace

void assign_boolean(const DType& dtype, const Value& v, Assign rule, std::byte* out) {
    if (v.is_array() || v.is_object()) cannot(dtype, v, "it takes true or false");
    const bool is_truth = v.is_bool() || (v.is_number() && (v.as_double() == 0 || v.as_double() == 1));
    if (rule == Assign::exact && !is_truth) cannot(dtype, v, "it takes true or false");
    store<std::uint8_t>(out, truth(v) ? 1 : 0);
}

void assign_integer(const DType& dtype, const Value& v, Assign rule, std::byte* out) {
    const auto n = integer_from(dtype, v, rule);
    const bool is_signed = dtype.kind() == Kind::integer;
    // NumPy goes through a C long, or an unsigned long for u4 and u8 (where negative numbers wrap), and truncates that.
    const bool through_unsigned = !is_signed && dtype.size() >= 4;
    __int128 least = std::numeric_limits<std::int64_t>::min();
    __int128 most =
        through_unsigned ? std::numeric_limits<std::uint64_t>::max() : std::numeric_limits<std::int64_t>::max();
    if (rule == Assign::exact) {
        const auto bits = static_cast<int>(dtype.size()) * 8 - (is_signed ? 1 : 0);
        most = (static_cast<__int128>(1) << bits) - 1;
        least = is_signed ? -most - 1 : 0;
    }
    if (n < least || n > most) cannot(dtype, v, fmt::format("it is not between {} and {}", least, most));
    with_integer(dtype, [&](auto number) { store(out, static_cast<decltype(number)>(n)); });
}

Value boolean_value(const DType&, const std::byte* p) {
    return load<std::uint8_t>(p) != 0;
}

Value integer_value(const DType& dtype, const std::byte* p) {
    return with_integer(dtype, [&](auto v) { return Value(load<decltype(v)>(p)); });
}

void assign_real(const DType& dtype, const Value& v, Assign rule, std::byte* out) {
    put_real(dtype, v, rule, dtype.size(), real_from(dtype, v, rule, dtype.size()), out);
}

void assign_complex(const DType& dtype, const Value& v, Assign rule, std::byte* out) {
    const auto half = dtype.size() / 2;
    std::complex<double> c;
    if (v.is_array()) {
        if (v.as_array().size() != 2) cannot(dtype, v, "it takes a number or [real, imaginary]");
        c = {real_from(dtype, v.as_array()[0], rule, half), real_from(dtype, v.as_array()[1], rule, half)};
    } else if (const auto parsed = v.is_string() ? complex_from_text(v.as_string()) : std::nullopt) {
        c = *parsed;
    } else {
        c = real_from(dtype, v, rule, half);
    }
    put_real(dtype, v, rule, half, c.real(), out);
    put_real(dtype, v, rule, half, c.imag(), out + half);
}

Value real_value(const DType& dtype, const std::byte* p) {
    return read_real(dtype.kind(), dtype.size(), p);
}

Value complex_value(const DType& dtype, const std::byte* p) {
    const auto half = dtype.size() / 2;
    return Value::Array{read_real(dtype.kind(), half, p), read_real(dtype.kind(), half, p + half)};
}

std::string complex_text(const DType& dtype, const std::byte* p) {
    const auto half = dtype.size() / 2;
    const auto part = [&](const std::byte* at) {
        auto text = python_float_repr(read_real(dtype.kind(), half, at));
        if (text.ends_with(".0")) text.resize(text.size() - 2);
        return text;
    };
    const auto imaginary = part(p + half);
    return part(p) + (imaginary.starts_with('-') ? "" : "+") + imaginary + "j";
}

void assign_time(const DType& dtype, const Value& v, Assign rule, std::byte* out) {
    std::int64_t count = 0;
    if (v.is_string() && dtype.kind() == Kind::datetime) {
        count = parse_datetime(v.as_string(), dtype.time_unit(), rule == Assign::numpy);
    } else if (v.is_string()) {
        count = parse_timedelta(v.as_string(), dtype.time_unit());
    } else if (v.is_bool() && rule == Assign::numpy) {
        count = v.as_bool() ? 1 : 0;
    } else if (v.is_integer()) {
        const auto n = integer_from(dtype, v, rule);
        if (n > std::numeric_limits<std::int64_t>::max()) cannot(dtype, v, "it is beyond 64 bits");
        count = static_cast<std::int64_t>(n);
    } else {
        cannot(dtype, v, "it takes an integer count, text such as \"2020-01-31\" or \"5 ns\", or \"NaT\"");
    }
    store(out, count);
}

Value time_value(const DType&, const std::byte* p) {
    return load<std::int64_t>(p);
}

std::string datetime_text(const DType& dtype, const std::byte* p) {
    return format_datetime(load<std::int64_t>(p), dtype.time_unit());
}

std::string timedelta_text(const DType& dtype, const std::byte* p) {
    return format_timedelta(load<std::int64_t>(p), dtype.time_unit());
}

}  // namespace element

std::uint16_t double_to_half(double v) {
    return element::encode_small<5, 10>(v);
}

std::uint16_t double_to_bfloat16(double v) {
    return element::encode_small<8, 7>(v);
}

}  // namespace tessera
