#include "help.h"

#include <fmt/format.h>

#include <tessera/error_text.h>
#include <algorithm>
#include <numeric>
#include <utility>

namespace tessera::cli {

HelpFormatter::HelpFormatter(std::string usage) : usage_(std::move(usage)) {
    column_width(26);
    label("Positionals", "Arguments");
}

std::string HelpFormatter::make_usage(const CLI::App* /*app*/, std::string /*name*/) const {
    return fmt::format("\nUsage: tessera {}\n", usage_);
}

std::string HelpFormatter::make_group(std::string group, bool is_positional,
                                      std::vector<const CLI::Option*> options) const {
    if (group != common_options_group) {
        return CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
    }
    std::string names;
    for (const CLI::Option* option : options) names += fmt::format(" {}", option->get_name());
    const std::size_t half = names.find(' ', names.size() / 2);
    return fmt::format("\n{} (`tessera help options` explains them):\n {}\n {}\n", group, names.substr(0, half),
                       names.substr(half));
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
    return CLI::detail::find_and_replace(CLI::Formatter::make_help(app, std::move(name), mode), "\n\n\n", "\n\n");
}

namespace {

const CLI::App* command_named(const CLI::App& app, const std::string& name) {
    const auto all = app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
    return all.empty() ? nullptr : all.front();
}

/// The help text of the common options.
std::string common_options_text(const CLI::App& app) {
    const CLI::App* any = app.get_subcommands([](const CLI::App*) { return true; }).front();
    const auto options =
        any->get_options([](const CLI::Option* option) { return option->get_group() == common_options_group; });
    CLI::Formatter formatter;
    formatter.column_width(26);
    return fmt::format("Options that every command takes.\n{}",
                       formatter.make_group(common_options_group, false, options));
}

std::string command_names(const CLI::App& app) {
    std::string names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        names += fmt::format("{}\n", command->get_name());
    }
    return names;
}

constexpr const char* settings_text =
    "What you prefer where nothing else is said: by a variable, else by a line in a file. An option goes before both.\n"
    "\n"
    "  TESSERA_FORMAT      format = \"v3\"           of new arrays that have no format around them or before them\n"
    "  TESSERA_CODEC       codec = \"zstd:5\"        of arrays that are made anew\n"
    "  TESSERA_DURABILITY  durability = \"none\"     as --durability\n"
    "  TESSERA_MAX_MEMORY  max_memory = \"1G\"       as --max-memory\n"
    "  TESSERA_THREADS     threads = 4              as --threads\n"
    "  TESSERA_COLOR       color = \"never\"         as view's --color\n"
    "  TESSERA_CACHE       cache = \"/data/cache\"   as --cache\n"
    "  TESSERA_CACHE_SIZE  cache_size = \"10G\"      as --cache-size\n"
    "  TESSERA_CACHE_AGE   cache_age = \"6h\"        as --cache-age\n"
    "  TESSERA_OFFLINE     offline = 1              as --offline\n"
    "  TESSERA_ABSENT      absent = 403             as --absent\n"
    "\n"
    "The file is tessera.toml in $XDG_CONFIG_HOME, else in ~/.config, or what TESSERA_CONFIG names; if TESSERA_CONFIG "
    "is\n"
    "empty, none is read. The Python module takes the same settings. Of these the C++ library takes none.\n";

/// Edit distance: letters changed, inserted, deleted or swapped with their neighbour.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> two_above(b.size() + 1);
    std::vector<std::size_t> above(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(above.begin(), above.end(), 0);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t changed = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({changed, above[j] + 1, row[j - 1] + 1});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = std::min(row[j], two_above[j - 2] + 1);
            }
        }
        two_above = std::exchange(above, row);
    }
    return above[b.size()];
}

/// Common options that stand before the command, moved behind it.
std::vector<std::string> command_first(const CLI::App& app, std::vector<std::string> words) {
    const auto declared = app.get_subcommands(
        [](const CLI::App* command) { return command->get_option_no_throw("--threads") != nullptr; });
    if (declared.empty()) return words;
    const CLI::App* any = declared.front();
    std::size_t at = 0;
    while (at < words.size() && words[at].starts_with("--")) {
        const std::string name = words[at].substr(0, words[at].find('='));
        const CLI::Option* option = any->get_option_no_throw(name);
        if (option == nullptr || option->get_group() != common_options_group || name == "--help") break;
        at += option->get_items_expected_max() > 0 && name == words[at] ? 2 : 1;
    }
    if (at == 0 || at >= words.size()) return words;
    const auto command = words.begin() + static_cast<std::ptrdiff_t>(at);
    std::rotate(words.begin(), command, command + 1);
    return words;
}

}  // namespace

std::vector<std::string> plain_words(const CLI::App& app, std::vector<std::string> words) {
    words = command_first(app, std::move(words));
    if (words.empty()) return words;
    if (words[0] == "version") words[0] = "--version";
    if (words[0] != "help" || words.size() > 2) return words;
    if (words.size() == 1) return {"--help"};
    if (command_named(app, words[1]) == nullptr) return {words[1]};
    return {words[1], "--help"};
}

std::optional<std::string> help_topic(const CLI::App& app, const std::vector<std::string>& words) {
    if (words.size() < 2 || words[0] != "help") return std::nullopt;
    const std::string& topic = words[1];
    if (topic == "options" && words.size() == 2) return common_options_text(app);
    if (topic == "settings" && words.size() == 2) return settings_text;
    if (topic == "commands" && words.size() == 2) return command_names(app);
    if (topic == "members" && words.size() == 3) return member_names(words[2]);
    if (topic == "completion" && words.size() == 3) return completion_script(app, words[2]);
    if (topic == "man" && words.size() == 2) return manual_page(app);
    if (topic != "man" || words.size() != 3) return std::nullopt;
    const CLI::App* command = command_named(app, words[2]);
    if (command == nullptr) {
        throw invalid_argument("'{}' is no command; `tessera --help` lists them", words[2]);
    }
    return manual_page(app, *command);
}

std::string did_you_mean(std::string_view typed, const std::vector<std::string>& names) {
    std::size_t best = std::max<std::size_t>(1, typed.size() / 3) + 1;
    std::string nearest;
    for (const std::string& name : names) {
        const std::size_t far = distance(typed, name);
        if (far >= best) continue;
        best = far;
        nearest = name;
    }
    return nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest);
}

std::vector<std::string> option_names(const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options()) {
        for (const std::string& name : option->get_lnames()) names.push_back(fmt::format("--{}", name));
    }
    return names;
}

}  // namespace tessera::cli
