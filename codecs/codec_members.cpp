#include "codec_members.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <string>

namespace tessera {

namespace {

/// Reads a member; errors get its name.
template <class Read>
decltype(auto) read_member(std::string_view name, Read&& read) {
    return in_context([&] { return std::string(name); }, std::forward<Read>(read));
}

}  // namespace

void require_known_members(const Value& configuration, std::initializer_list<std::string_view> known) {
    for (const auto& [name, value] : configuration.as_object()) {
        if (std::ranges::find(known, name) != known.end()) continue;
        if (known.size() == 0) {
            throw invalid_argument("unknown member \"{}\" in the configuration, which has none", name);
        }
        throw invalid_argument("unknown member \"{}\" in the configuration; known are {}", name,
                               fmt::join(known, ", "));
    }
}

const Value* given_member(const Value& configuration, std::string_view name) {
    const Value* v = configuration.find(name);
    return v && !v->is_null() ? v : nullptr;
}

std::int64_t integer_member(const Value& configuration, std::string_view name, std::int64_t otherwise,
                            std::int64_t least, std::int64_t most) {
    const Value* v = given_member(configuration, name);
    if (!v) return otherwise;
    const std::int64_t number = read_member(name, [&] { return v->as_int64(); });
    if (number < least || number > most) {
        throw invalid_argument("{} is {}, expected {} to {}", name, number, least, most);
    }
    return number;
}

bool bool_member(const Value& configuration, std::string_view name, bool otherwise) {
    const Value* v = given_member(configuration, name);
    return v ? read_member(name, [&] { return v->as_bool(); }) : otherwise;
}

DType dtype_member(const Value& configuration, std::string_view name, const DType& otherwise) {
    const Value* v = given_member(configuration, name);
    return v ? read_member(name, [&] { return DType::parse(v->as_string()); }) : otherwise;
}

ElementBytes scalar_member(const DType& dtype, const Value& v, std::string_view name) {
    return read_member(name, [&] {
        const bool is_float = dtype.kind() == Kind::real || dtype.kind() == Kind::bfloat16;
        if (!is_float || !v.is_string() || !v.as_string().starts_with("0x")) {
            return element_from_value(dtype, v, Assign::exact);
        }
        ElementBytes bytes = element_from_value(DType::raw(dtype.size()), v, Assign::exact);  // the highest first
        if (dtype.order() == ByteOrder::little) std::ranges::reverse(bytes);
        return bytes;
    });
}

std::string_view choice_member(const Value& configuration, std::string_view name, std::string_view otherwise,
                               std::span<const std::string_view> choices) {
    const Value* v = given_member(configuration, name);
    if (!v) return otherwise;
    const std::string& text = read_member(name, [&]() -> const std::string& { return v->as_string(); });
    const auto found = std::ranges::find(choices, text);
    if (found == choices.end()) {
        throw invalid_argument("no {} \"{}\"; choose one of {}", name, text, fmt::join(choices, ", "));
    }
    return *found;
}

}  // namespace tessera
