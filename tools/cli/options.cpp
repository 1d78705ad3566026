#include "options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/error_text.h>
#include <charconv>
#include <limits>

namespace tessera::cli {

namespace {

/// The bytes of a unit: K, k, KiB (1024), kB, KB (1000) and so on, B and nothing (1); nullopt for another word.
std::optional<std::uint64_t> unit_factor(std::string_view unit) {
    if (unit.empty() || unit == "B") return 1;
    constexpr std::string_view letters = "KMGT";
    const char upper = unit[0] >= 'a' ? static_cast<char>(unit[0] - 'a' + 'A') : unit[0];
    const std::size_t power = letters.find(upper);
    if (power == std::string_view::npos) return std::nullopt;
    const std::string_view rest = unit.substr(1);
    if (!rest.empty() && rest != "iB" && rest != "B") return std::nullopt;
    std::uint64_t factor = 1;
    for (std::size_t i = 0; i <= power; ++i) factor *= rest == "B" ? 1000 : 1024;
    return factor;
}

}  // namespace

std::uint64_t parse_bytes(std::string_view option, std::string_view text) {
    const auto bad = [&](std::string_view why) {
        return invalid_argument(
            "{}: expected a number of bytes above 0 such as 512M (K M G T or KiB MiB …: units of 1024; kB MB …: of "
            "1000), found '{}'{}",
            option, text, why);
    };
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc::result_out_of_range) throw bad(", which is too large");
    if (error != std::errc{}) throw bad("");
    const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
    const auto factor = unit_factor(unit);
    if (!factor) throw bad("");
    if (number == 0) throw bad("");
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / *factor) {
        throw bad(", which is too large");
    }
    return number * *factor;
}

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
