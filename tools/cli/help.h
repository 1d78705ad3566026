// `--help`, `tessera help`, shell completion and manual pages, all generated from the table of commands and their
// declared options.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::cli {

constexpr const char* common_options_group = "Common options";

/// CLI11's help with the usage line of the table. The options common to all commands take one line.
class HelpFormatter : public CLI::Formatter {
public:
    explicit HelpFormatter(std::string usage);
    std::string make_usage(const CLI::App* app, std::string name) const override;
    std::string make_group(std::string group, bool is_positional,
                           std::vector<const CLI::Option*> options) const override;
    std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;

private:
    std::string usage_;
};

/// Translates "help", "help COMMAND" and "version" to `--help` and `--version`. Other words are unchanged.
[[nodiscard]] std::vector<std::string> plain_words(const CLI::App& app, std::vector<std::string> words);

/// The output of `tessera help TOPIC…` for "options", "settings", "commands" (their names), "completion SHELL", "man"
/// and "man COMMAND"; nullopt for another topic. Throws invalid_argument for an unknown shell or command.
[[nodiscard]] std::optional<std::string> help_topic(const CLI::App& app, const std::vector<std::string>& words);

/// " (did you mean 'copy'?)" if one of the names is similar to `typed`, else "".
[[nodiscard]] std::string did_you_mean(std::string_view typed, const std::vector<std::string>& names);
/// The long options of a command: "--overwrite".
[[nodiscard]] std::vector<std::string> option_names(const CLI::App& command);

/// The members of an array file, or the fields of a table, a line each; nothing if there are none. For completion.
[[nodiscard]] std::string member_names(const std::string& path);
/// A completion script for bash, zsh or fish. Throws invalid_argument for any other shell.
[[nodiscard]] std::string completion_script(const CLI::App& app, std::string_view shell);

/// A manual page (troff, section 1): of the program, or of one of its commands.
[[nodiscard]] std::string manual_page(const CLI::App& app);
[[nodiscard]] std::string manual_page(const CLI::App& app, const CLI::App& command);

}  // namespace tessera::cli
