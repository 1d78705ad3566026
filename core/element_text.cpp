// Text and bytes: S, U, V and the kinds of variable length.
#include <algorithm>
#include <charconv>
#include <span>

#include <fmt/format.h>

#include <tessera/unicode.h>
#include "element_rows.h"

namespace tessera::element {

namespace {

// Text as NumPy puts a scalar into S and U: through Python's str().
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

}  // namespace

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

Value variable_text_value(const DType&, const std::byte* p) {
    // A file may hold bytes that are not UTF-8, but JSON must be UTF-8.
    const auto text = load<VariableSlot>(p).view();
    return from_utf8(text) ? std::string(text) : latin1_to_utf8(text);
}

Value variable_bytes_value(const DType&, const std::byte* p) {
    return latin1_to_utf8(load<VariableSlot>(p).view());
}

std::string plain_text(const Value& v) {
    return v.is_string() ? v.as_string() : v.dump();
}

ElementBytes variable_content(const DType& dtype, const Value& v, Assign rule) {
    if (!v.is_string()) cannot(dtype, v, "it takes text");
    const auto content = dtype.kind() == Kind::variable_text ? v.as_string() : bytes_from(dtype, v, rule);
    if (dtype.kind() == Kind::variable_text && !from_utf8(content)) cannot(dtype, v, "it is not UTF-8");
    const auto* first = reinterpret_cast<const std::byte*>(content.data());
    return {first, first + content.size()};
}

}  // namespace tessera::element
