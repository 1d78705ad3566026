#include <tessera/option.h>

#include <utility>

#include <tessera/error_text.h>

namespace tessera {

namespace {

[[noreturn]] void refuse(std::string_view expected, const Value& value) {
    throw invalid_argument("expected {}, found {}", expected, value.dump());
}

std::string text_of(const Value& value) {
    return value.is_string() ? value.as_string() : value.dump();
}

/// The parts of a list, or of a text.
std::vector<Value> parts_of(const Value& value) {
    if (value.is_array()) return value.as_array();
    if (!value.is_string()) return {value};
    std::vector<Value> parts;
    for (auto& part : parse_names(value.as_string())) parts.push_back(part ? Value(std::move(*part)) : Value());
    return parts;
}

/// The number itself, or the one that a text spells.
Value number_of(const Value& value, std::string_view expected) {
    Value number = value;
    try {
        if (value.is_string()) number = Value::parse(value.as_string());
    } catch (const Error&) {
        refuse(expected, value);
    }
    if (!number.is_number()) refuse(expected, value);
    return number;
}

}  // namespace

void read_member(const Value& value, std::string& member) {
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ",") + part; };
    if (value.is_array()) {
        for (const Value& part : value.as_array()) add(text_of(part));
    } else if (value.is_object()) {
        for (const auto& [name, part] : value.as_object()) add(name + "=" + text_of(part));
    } else if (value.is_string() || value.is_number()) {
        text = text_of(value);
    } else {
        refuse("a text", value);
    }
    member = std::move(text);
}

void read_member(const Value& value, bool& member) {
    if (!value.is_string()) {
        member = value.as_bool();
        return;
    }
    if (value != "yes" && value != "no") refuse("yes or no", value);
    member = value == "yes";
}

void read_member(const Value& value, Value& member) {
    member = value;
}

void read_member(const Value& value, ChunkLengths& member) {
    std::string text;
    read_member(value, text);
    member = text == "none" ? ChunkLengths() : parse_chunk_lengths(text);
}

void read_member(const Value& value, GivenLengths& member) {
    std::string text;
    read_member(value, text);
    member = {};
    if (text.find('=') == std::string::npos) {
        read_member(value, static_cast<ChunkLengths&>(member));
        return;
    }
    for (const Value& part : parts_of(Value(text))) {
        const std::string item = part.is_string() ? part.as_string() : "";
        const std::size_t equals = item.rfind('=');
        std::int64_t length = 0;
        if (equals != std::string::npos) read_member(Value(item.substr(equals + 1)), length);
        if (length < 1 || equals == 0) refuse("NAME=LENGTH of dimensions, such as time=6,lat=2", value);
        member.named.emplace_back(item.substr(0, equals), length);
    }
}

void read_member(const Value& value, Order& member) {
    if (value != "C" && value != "F") refuse("C (last index fastest) or F (first index fastest)", value);
    member = value == "C" ? Order::C : Order::F;
}

void read_member(const Value& value, std::vector<Value>& member) {
    member.push_back(value);
}

void read_member(const Value& value, std::int64_t& member) {
    member = number_of(value, "a whole number").as_int64();
}

void read_member(const Value& value, std::vector<double>& member) {
    member.clear();
    for (const Value& part : parts_of(value)) member.push_back(number_of(part, "numbers").as_double());
}

void read_member(const Value& value, std::vector<std::string>& member) {
    member.clear();
    for (const Value& part : parts_of(value)) member.push_back(part.is_null() ? "" : text_of(part));
}

void read_member(const Value& value, std::vector<std::optional<std::string>>& member) {
    member.clear();
    for (const Value& part : parts_of(value)) {
        member.push_back(part.is_null() ? std::nullopt : std::optional(text_of(part)));
    }
}

Value member_value(const std::string& member) {
    return member;
}

Value member_value(bool member) {
    return member;
}

Value member_value(const Value& member) {
    return member;
}

Value member_value(std::int64_t member) {
    return member;
}

Value member_value(const std::vector<double>& member) {
    return Value::Array(member.begin(), member.end());
}

Value member_value(const std::vector<std::string>& member) {
    return Value::Array(member.begin(), member.end());
}

Value member_value(const std::vector<std::optional<std::string>>& member) {
    Value list = Value::array();
    for (const auto& part : member) list.push_back(part ? Value(*part) : Value());
    return list;
}

Value json_or_text(std::string_view text) {
    try {
        return Value::parse(text);
    } catch (const Error&) {
        return Value(text);
    }
}

void put_name(std::string& text, const Option& option, std::string_view other) {
    other = other.substr(0, other.find(','));
    if (other.empty()) return;
    if (text.starts_with(std::string(option.name) + ": ")) text.replace(0, option.name.size(), other);
    const std::string quoted = "`" + std::string(option.name) + "`";
    const std::size_t at = text.find(quoted);
    if (at != std::string::npos) text.replace(at, quoted.size(), other);
}

std::vector<std::optional<std::string>> parse_names(std::string_view text) {
    std::vector<std::optional<std::string>> names;
    for (;;) {
        const std::size_t comma = text.find(',');
        std::string_view name = text.substr(0, comma);
        while (name.starts_with(' ')) name.remove_prefix(1);
        while (name.ends_with(' ')) name.remove_suffix(1);
        names.push_back(name.empty() ? std::nullopt : std::optional<std::string>(name));
        if (comma == std::string_view::npos) return names;
        text.remove_prefix(comma + 1);
    }
}

}  // namespace tessera
