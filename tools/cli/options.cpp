#include "options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/dialect.h>
#include <tessera/error_text.h>
#include <algorithm>
#include <charconv>
#include <utility>

namespace tessera::cli {

namespace {

/// "v2, v3": the formats for which the member is true.
std::string formats_with(bool Dialect::*member) {
    std::vector<std::string_view> names;
    for (const Dialect* dialect : dialect_table()) {
        if (dialect->*member) names.push_back(dialect->name);
    }
    return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

void declare_option(CLI::App& app, const Option& option, bool several, std::function<void(const Value&)> read) {
    const auto parse = [name = option.typed.substr(0, option.typed.find(',')), several,
                        read = std::move(read)](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) {
            in_context([&] { return name; }, [&] { read(several ? json_or_text(text) : Value(text)); });
        }
    };
    CLI::Option* const declared =
        app.add_option_function<std::vector<std::string>>(std::string(option.typed), parse, help_text(option.help));
    declared->option_text(std::string(option.value) + (option.required ? " (required)" : ""))
        ->required(option.required)
        ->allow_extra_args(false);
    if (!several) declared->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
}

std::string help_text(std::string_view help) {
    std::string text(help);
    const auto put = [&](std::string_view name, const std::string& formats) {
        const std::size_t at = text.find(name);
        if (at != std::string::npos) text.replace(at, name.size(), formats);
    };
    put("{edges}", formats_with(&Dialect::edges));
    put("{shards}", formats_with(&Dialect::shards));
    put("{separators}", formats_with(&Dialect::separators));
    put("{formats}", format_choices());
    return text;
}

Choose only_named(std::vector<std::string_view> names) {
    return [names = std::move(names)](const Option& o) { return std::ranges::count(names, o.name) > 0; };
}

Choose without(unsigned only) {
    return [only](const Option& o) { return (o.only & only) == 0; };
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

Value parse_attributes_option(std::string_view text) {
    if (text.empty()) return Value::object();
    Value attributes = in_context([] { return "--attrs"; }, [&] { return Value::parse(text); });
    if (attributes.is_object()) return attributes;
    throw invalid_argument("--attrs: expected a JSON object such as '{{\"units\": \"m\"}}', found {}",
                           attributes.kind_name());
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

}  // namespace tessera::cli
