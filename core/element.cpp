#include <tessera/element.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include <tessera/error.h>
#include <tessera/memory_account.h>
#include <tessera/view.h>

#include "time_units.h"
#include "unicode.h"

namespace tessera {
namespace {

// ---- messages

std::string shown(const Value& v) {
    auto text = v.dump({.ascii = true});
    if (text.size() > 60) text.replace(57, std::string::npos, "...");
    return text;
}

[[noreturn]] void cannot(const DType& dtype, const Value& v, std::string_view why) {
    throw invalid_argument(fmt::format("{} cannot be an element of dtype {}: {}", shown(v), dtype.to_string(), why));
}

// ---- host-order memory of any alignment

template <class T>
T load(const std::byte* p) {
    T v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

template <class T>
void store(std::byte* p, T v) {
    std::memcpy(p, &v, sizeof v);
}

// ---- booleans and integers

bool truth(const Value& v) {
    if (v.is_bool()) return v.as_bool();
    if (v.is_string()) return !v.as_string().empty();
    return v.is_big_integer() || (v.is_integer() ? v != Value(0) : v.as_double() != 0);
}

void assign_boolean(const DType& dtype, const Value& v, Assign rule, std::byte* out) {
    if (v.is_array() || v.is_object()) cannot(dtype, v, "it takes true or false");
    const bool is_truth = v.is_bool() || (v.is_number() && (v.as_double() == 0 || v.as_double() == 1));
    if (rule == Assign::exact && !is_truth) cannot(dtype, v, "it takes true or false");
    store<std::uint8_t>(out, truth(v) ? 1 : 0);
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view space = " \t\n\r\f\v";
    const auto first = text.find_first_not_of(space);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(space) - first + 1);
}

// Python's int(text), for what fits 128 bits by far.
std::optional<__int128> integer_from_text(std::string_view text) {
    text = trimmed(text);
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) text.remove_prefix(1);
    std::uint64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return negative ? -static_cast<__int128>(n) : static_cast<__int128>(n);
}

// The integer that is assigned, before it is cut to the size of the type.
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

void assign_integer(const DType& dtype, const Value& v, Assign rule, std::byte* out) {
    const auto n = integer_from(dtype, v, rule);
    const bool is_signed = dtype.kind() == Kind::integer;
    // NumPy goes through a C long, or an unsigned long for u4 and u8 (where negative numbers wrap), and cuts that.
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
    switch (dtype.size()) {
        case 1:
            return store(out, static_cast<std::uint8_t>(n));
        case 2:
            return store(out, static_cast<std::uint16_t>(n));
        case 4:
            return store(out, static_cast<std::uint32_t>(n));
        default:
            return store(out, static_cast<std::uint64_t>(n));
    }
}

Value boolean_value(const DType&, const std::byte* p) {
    return load<std::uint8_t>(p) != 0;
}

Value integer_value(const DType& dtype, const std::byte* p) {
    const bool is_signed = dtype.kind() == Kind::integer;
    switch (dtype.size()) {
        case 1:
            return is_signed ? Value(load<std::int8_t>(p)) : Value(load<std::uint8_t>(p));
        case 2:
            return is_signed ? Value(load<std::int16_t>(p)) : Value(load<std::uint16_t>(p));
        case 4:
            return is_signed ? Value(load<std::int32_t>(p)) : Value(load<std::uint32_t>(p));
        default:
            return is_signed ? Value(load<std::int64_t>(p)) : Value(load<std::uint64_t>(p));
    }
}

// ---- floats

// Rounds to the nearest even number of a small IEEE 754 format.
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
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), d);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return d;
}

double real_from(const DType& dtype, const Value& v, Assign rule) {
    if (v.is_number()) {
        const double d = v.as_double();
        if (v.is_big_integer() && std::isinf(d)) cannot(dtype, v, "it is beyond what a float holds");
        return d;
    }
    if (v.is_bool() && rule == Assign::numpy) return v.as_bool() ? 1 : 0;
    if (v.is_string()) {
        const auto d = double_from_text(v.as_string());
        if (d && (rule == Assign::numpy || !std::isfinite(*d))) return *d;  // "NaN" and "Infinity" have no number
    }
    cannot(dtype, v, "it takes a number");
}

// Writes one float of `size` bytes and gives back what it holds then.
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

void assign_real(const DType& dtype, const Value& v, Assign rule, std::byte* out) {
    put_real(dtype, v, rule, dtype.size(), real_from(dtype, v, rule), out);
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

void assign_complex(const DType& dtype, const Value& v, Assign rule, std::byte* out) {
    std::complex<double> c;
    if (v.is_array()) {
        if (v.as_array().size() != 2) cannot(dtype, v, "it takes a number or [real, imaginary]");
        c = {real_from(dtype, v.as_array()[0], rule), real_from(dtype, v.as_array()[1], rule)};
    } else if (const auto parsed = v.is_string() ? complex_from_text(v.as_string()) : std::nullopt) {
        c = *parsed;
    } else {
        c = real_from(dtype, v, rule);
    }
    const auto half = dtype.size() / 2;
    put_real(dtype, v, rule, half, c.real(), out);
    put_real(dtype, v, rule, half, c.imag(), out + half);
}

// The double of the shortest decimal that `encode` takes to the same bits.
template <class Encode>
double shortest_double(double v, Encode encode) {
    if (!std::isfinite(v)) return v;
    char text[32];
    for (int digits = 0;; ++digits) {
        const auto end = std::to_chars(std::begin(text), std::end(text), v, std::chars_format::scientific, digits).ptr;
        double shorter = 0;
        std::from_chars(text, end, shorter);
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

// ---- times

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

// ---- S, U, V

// As NumPy puts a scalar into S and U: through Python's str().
std::string text_from(const DType& dtype, const Value& v, Assign rule) {
    if (v.is_string()) return v.as_string();
    if (rule == Assign::numpy) {
        if (v.is_bool()) return v.as_bool() ? "True" : "False";
        if (v.is_integer() || v.is_big_integer()) return v.dump();
        if (v.is_double()) return python_float_repr(v.as_double());
    }
    cannot(dtype, v, "it takes text");
}

template <class Text>
void cut_to_fit(const DType& dtype, const Value& v, Assign rule, std::int64_t length, Text& text) {
    if (static_cast<std::int64_t>(text.size()) <= length) return;
    if (rule == Assign::exact) cannot(dtype, v, fmt::format("it is {} long, {} fit", text.size(), length));
    text.resize(static_cast<std::size_t>(length));
}

std::string bytes_from(const DType& dtype, const Value& v, Assign rule) {
    const auto bytes = utf8_to_latin1(text_from(dtype, v, rule));
    if (!bytes) cannot(dtype, v, "it has characters above U+00FF, which are no bytes");
    return *bytes;
}

void assign_bytes(const DType& dtype, const Value& v, Assign rule, std::byte* out) {
    auto bytes = bytes_from(dtype, v, rule);
    if (rule == Assign::numpy && std::ranges::any_of(bytes, [](char c) { return (c & 0x80) != 0; })) {
        cannot(dtype, v, "NumPy takes ASCII only");
    }
    cut_to_fit(dtype, v, rule, dtype.size(), bytes);
    std::ranges::copy(std::as_bytes(std::span(bytes)), out);
}

void assign_text(const DType& dtype, const Value& v, Assign rule, std::byte* out) {
    auto characters = from_utf8(text_from(dtype, v, rule));
    if (!characters) cannot(dtype, v, "it is not UTF-8");
    cut_to_fit(dtype, v, rule, dtype.size() / 4, *characters);
    std::ranges::copy(std::as_bytes(std::span(*characters)), out);
}

void assign_raw(const DType& dtype, const Value& v, Assign, std::byte* out) {
    const auto size = static_cast<std::size_t>(dtype.size());
    const std::string_view text = v.is_string() ? std::string_view(v.as_string()) : std::string_view();
    bool good = text.size() == 2 + 2 * size && text.starts_with("0x");
    for (std::size_t i = 0; good && i < size; ++i) {
        std::uint8_t byte = 0;
        const auto* first = text.data() + 2 + 2 * i;
        good = std::from_chars(first, first + 2, byte, 16).ptr == first + 2;
        out[i] = std::byte{byte};
    }
    if (!good) cannot(dtype, v, fmt::format("it takes its bytes as \"0x\" and {} hexadecimal digits", 2 * size));
}

Value bytes_value(const DType& dtype, const std::byte* p) {
    std::string_view bytes(reinterpret_cast<const char*>(p), static_cast<std::size_t>(dtype.size()));
    return latin1_to_utf8(bytes.substr(0, bytes.find_last_not_of('\0') + 1));
}

Value text_value(const DType& dtype, const std::byte* p) {
    auto length = dtype.size() / 4;
    while (length > 0 && load<std::uint32_t>(p + 4 * (length - 1)) == 0) --length;
    std::string text;
    for (std::int64_t i = 0; i < length; ++i) append_utf8(text, load<char32_t>(p + 4 * i));
    return text;
}

Value raw_value(const DType& dtype, const std::byte* p) {
    std::string text = "0x";
    for (std::int64_t i = 0; i < dtype.size(); ++i) text += fmt::format("{:02x}", static_cast<std::uint8_t>(p[i]));
    return text;
}

// ---- structures

void assign(const DType& dtype, const Value& v, Assign rule, std::byte* out);

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

template <class Item>
Value sub_array_value(const DType& dtype, std::span<const std::int64_t> shape, const std::byte* p, Item item) {
    if (shape.empty()) return item(p);
    const auto rest = shape.subspan(1);
    const auto stride = byte_count(Shape(rest), dtype.size());
    Value::Array list;
    for (std::int64_t i = 0; i < shape.front(); ++i) list.push_back(sub_array_value(dtype, rest, p + i * stride, item));
    return list;
}

Value structure_value(const DType& dtype, const std::byte* p) {
    Value::Array list;
    for (const auto& f : dtype.fields()) {
        list.push_back(sub_array_value(f.dtype, f.shape, p + f.offset,
                                       [&](const std::byte* at) { return element_to_value(f.dtype, at); }));
    }
    return list;
}

std::string structure_text(const DType& dtype, const std::byte* p);

// ---- what has no fixed content

void assign_object(const DType&, const Value&, Assign, std::byte*) {
    throw unsupported("Python objects (dtype O) cannot be written element by element");
}

Value object_value(const DType&, const std::byte*) {
    throw unsupported("Python objects (dtype O) cannot be read element by element");
}

Value variable_text_value(const DType&, const std::byte* p) {
    // What a file holds may not be UTF-8; JSON must be.
    const auto text = load<VariableSlot>(p).view();
    return from_utf8(text) ? std::string(text) : latin1_to_utf8(text);
}

Value variable_bytes_value(const DType&, const std::byte* p) {
    return latin1_to_utf8(load<VariableSlot>(p).view());
}

// ---- the table

// Numbers as JSON writes them, text bare.
std::string plain_text(const Value& v) {
    return v.is_string() ? v.as_string() : v.dump();
}

// The operations of one kind, on host-order bytes of any alignment. `assign` gets size() zero bytes; null means that
// the content has no fixed size (element_from_value). `to_text` is null where it is plain_text of `to_value`.
struct Operations {
    Kind kind;
    void (*assign)(const DType&, const Value&, Assign, std::byte* out);
    Value (*to_value)(const DType&, const std::byte*);
    std::string (*to_text)(const DType&, const std::byte*);
};

constexpr Operations table[] = {
    {Kind::boolean, assign_boolean, boolean_value, nullptr},
    {Kind::integer, assign_integer, integer_value, nullptr},
    {Kind::unsigned_integer, assign_integer, integer_value, nullptr},
    {Kind::real, assign_real, real_value, nullptr},
    {Kind::complex, assign_complex, complex_value, complex_text},
    {Kind::bfloat16, assign_real, real_value, nullptr},
    {Kind::extended, assign_real, real_value, nullptr},
    {Kind::extended_complex, assign_complex, complex_value, complex_text},
    {Kind::datetime, assign_time, time_value, datetime_text},
    {Kind::timedelta, assign_time, time_value, timedelta_text},
    {Kind::bytes, assign_bytes, bytes_value, nullptr},
    {Kind::text, assign_text, text_value, nullptr},
    {Kind::raw, assign_raw, raw_value, nullptr},
    {Kind::structure, assign_structure, structure_value, structure_text},
    {Kind::object, assign_object, object_value, nullptr},
    {Kind::variable_text, nullptr, variable_text_value, nullptr},
    {Kind::variable_bytes, nullptr, variable_bytes_value, nullptr},
};

const Operations& operations_of(const DType& dtype) {
    return table[static_cast<std::size_t>(dtype.kind())];
}

bool is_foreign(const DType& dtype) {
    return dtype.order() != ByteOrder::none && dtype.order() != native_order;
}

void assign(const DType& dtype, const Value& v, Assign rule, std::byte* out) {
    if (v.is_null()) cannot(dtype, v, "null is no value");
    operations_of(dtype).assign(dtype, v, rule, out);
    if (is_foreign(dtype)) swap_elements(dtype, out, 1);
}

// Calls `read` with host-order bytes of the element.
template <class Read>
auto with_host_order(const DType& dtype, const std::byte* p, Read read) {
    if (!is_foreign(dtype)) return read(p);
    ElementBytes copy(p, p + dtype.size());
    swap_elements(dtype, copy.data(), 1);
    return read(copy.data());
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

/// Reverses `parts` units of sizeof(T) bytes that follow each other, `count` times, `step` bytes apart.
template <class T, class Swapped>
void swap_units(std::byte* p, std::int64_t step, std::int64_t count, std::int64_t parts, Swapped swapped) {
    constexpr std::int64_t unit = sizeof(T);
    const auto swap_row = [&](std::byte* row, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i) store(row + i * unit, swapped(load<T>(row + i * unit)));
    };
    if (step == parts * unit) return swap_row(p, count * parts);
    if (parts == 1) {
        for (std::int64_t i = 0; i < count; ++i) store(p + i * step, swapped(load<T>(p + i * step)));
        return;
    }
    for (std::int64_t i = 0; i < count; ++i) swap_row(p + i * step, parts);
}

/// `items` elements that follow each other, `count` times, `step` bytes apart: field by field, so that what is to be
/// done is looked up once.
void swap_items(const DType& dtype, std::byte* p, std::int64_t step, std::int64_t count, std::int64_t items) {
    for (const Field& f : dtype.fields()) {
        for (std::int64_t k = 0; k < items; ++k) {
            swap_items(f.dtype, p + k * dtype.size() + f.offset, step, count, element_count(f.shape));
        }
    }
    const std::int64_t unit = dtype.swap_unit();
    if (unit <= 1) return;
    const std::int64_t parts = items * (dtype.size() / unit);
    switch (unit) {
        case 2:
            return swap_units<std::uint16_t>(p, step, count, parts,
                                             [](std::uint16_t v) { return __builtin_bswap16(v); });
        case 4:
            return swap_units<std::uint32_t>(p, step, count, parts,
                                             [](std::uint32_t v) { return __builtin_bswap32(v); });
        case 8:
            return swap_units<std::uint64_t>(p, step, count, parts,
                                             [](std::uint64_t v) { return __builtin_bswap64(v); });
        default:
            for (std::int64_t i = 0; i < count; ++i) {
                for (std::int64_t k = 0; k < parts; ++k)
                    std::reverse(p + i * step + k * unit, p + i * step + (k + 1) * unit);
            }
    }
}

}  // namespace

ElementBytes element_from_value(const DType& dtype, const Value& value, Assign rule) {
    if (dtype.is_variable()) {
        if (!value.is_string()) cannot(dtype, value, "it takes text");
        const auto content = dtype.kind() == Kind::variable_text ? value.as_string() : bytes_from(dtype, value, rule);
        if (dtype.kind() == Kind::variable_text && !from_utf8(content)) cannot(dtype, value, "it is not UTF-8");
        const auto* first = reinterpret_cast<const std::byte*>(content.data());
        return {first, first + content.size()};
    }
    auto bytes = zero_element(dtype);
    assign(dtype, value, rule, bytes.data());
    return bytes;
}

ElementBytes element_from_text(const DType& dtype, std::string_view text) {
    Value value{text};
    try {
        auto parsed = Value::parse(text);
        const bool takes_text = dtype.kind() == Kind::bytes || dtype.kind() == Kind::text || dtype.is_variable();
        if (!takes_text || parsed.is_string()) value = std::move(parsed);
    } catch (const Error&) {
        // Not JSON: the text as it stands.
    }
    return element_from_value(dtype, value, Assign::exact);
}

Value element_to_value(const DType& dtype, const std::byte* p) {
    return with_host_order(dtype, p, [&](const std::byte* at) { return operations_of(dtype).to_value(dtype, at); });
}

std::string element_to_text(const DType& dtype, const std::byte* p) {
    const auto& operations = operations_of(dtype);
    if (operations.to_text == nullptr) return plain_text(element_to_value(dtype, p));
    return with_host_order(dtype, p, [&](const std::byte* at) { return operations.to_text(dtype, at); });
}

ElementBytes zero_element(const DType& dtype) {
    constexpr std::int64_t large = std::int64_t{1} << 20;
    if (!dtype.is_variable() && dtype.size() >= large) {
        require_memory(4 * static_cast<std::uint64_t>(dtype.size()));  // as often it is kept
    }
    return ElementBytes(dtype.is_variable() ? 0 : static_cast<std::size_t>(dtype.size()));
}

void swap_elements(const DType& dtype, std::byte* p, std::int64_t count) {
    swap_elements(dtype, p, dtype.size(), count);
}

void swap_elements(const DType& dtype, std::byte* p, std::int64_t step, std::int64_t count) {
    if (dtype.size() != 0 && count != 0) swap_items(dtype, p, step, count, 1);
}

std::uint16_t double_to_half(double v) {
    return encode_small<5, 10>(v);
}

std::uint16_t double_to_bfloat16(double v) {
    return encode_small<8, 7>(v);
}

}  // namespace tessera
