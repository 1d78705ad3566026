#include "options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/error_text.h>
#include <charconv>

namespace tessera::cli {

int parse_number(std::string_view option, std::string_view text, int least, int most) {
    int number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc{} || stop != end || number < least || number > most) {
        throw invalid_argument("{}: expected a whole number from {} to {}, found '{}'", option, least, most, text);
    }
    return number;
}

Shape parse_shape_option(std::string_view option, std::string_view text) {
    return in_context([&] { return option; }, [&] { return parse_shape(text); });
}

ChunkLengths parse_lengths_option(std::string_view option, std::string_view text) {
    return in_context([&] { return option; }, [&] { return parse_chunk_lengths(text); });
}

Order parse_order(std::string_view option, std::string_view text) {
    if (text == "C") return Order::C;
    if (text == "F") return Order::F;
    throw invalid_argument("{}: expected C (last index fastest) or F (first index fastest), found '{}'", option, text);
}

Value parse_attributes_option(std::string_view text) {
    if (text.empty()) return Value::object();
    Value attributes = in_context([] { return "--attrs"; }, [&] { return Value::parse(text); });
    if (attributes.is_object()) return attributes;
    throw invalid_argument("--attrs: expected a JSON object such as '{{\"units\": \"m\"}}', found {}",
                           attributes.kind_name());
}

void require_distinct_dims(const std::optional<std::string>& text) {
    if (text) in_context([] { return "--dims"; }, [&] { require_distinct_names(parse_names(*text)); });
}

Value json_or_text(std::string_view text) {
    try {
        return Value::parse(text);
    } catch (const Error&) {
        return Value(text);
    }
}

std::string format_choices() {
    const auto table = dialect_table();
    std::string text;
    for (std::size_t i = 0; i < table.size(); ++i) {
        if (i > 0) text += i + 1 == table.size() ? " or " : ", ";
        text += table[i]->name;
    }
    return text;
}

std::string formats_with(bool Dialect::*member) {
    std::vector<std::string_view> names;
    for (const Dialect* dialect : dialect_table()) {
        if (dialect->*member) names.push_back(dialect->name);
    }
    return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace tessera::cli
