// What the program says about itself, all of it from the table of commands and the options that they declare: `--help`,
// `tessera help`, completion for shells, and manual pages.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::cli {

constexpr const char* common_options_group = "Common options";

/// CLI11's help with the usage line of our table. The common options, which every command has, take one line.
class HelpFormatter : public CLI::Formatter {
public:
    explicit HelpFormatter(std::string usage);
    [[nodiscard]] const std::string& usage() const { return usage_; }  ///< "copy SRC DST [options]"
    std::string make_usage(const CLI::App* app, std::string name) const override;
    std::string make_group(std::string group, bool is_positional,
                           std::vector<const CLI::Option*> options) const override;
    std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;

private:
    std::string usage_;
};

/// The words as `--help` and `--version` say them: of "help", "help COMMAND" and "version". Others stay.
[[nodiscard]] std::vector<std::string> plain_words(const CLI::App& app, std::vector<std::string> words);

/// What `tessera help TOPIC…` prints: of "options", "commands" (their names), "completion SHELL", "man" and "man
/// COMMAND". Nothing for another topic. Throws invalid_argument for an unknown shell or command.
[[nodiscard]] std::optional<std::string> help_topic(const CLI::App& app, const std::vector<std::string>& words);

/// " (did you mean 'copy'?)" where one of the names is near to what was typed, else nothing.
[[nodiscard]] std::string did_you_mean(std::string_view typed, const std::vector<std::string>& names);
/// The long options that a command has: "--overwrite".
[[nodiscard]] std::vector<std::string> option_names(const CLI::App& command);

/// A completion script, `shell` being bash, zsh or fish. Throws invalid_argument for another.
[[nodiscard]] std::string completion_script(const CLI::App& app, std::string_view shell);

/// A manual page (troff, section 1): of the program, or of one of its commands.
[[nodiscard]] std::string manual_page(const CLI::App& app);
[[nodiscard]] std::string manual_page(const CLI::App& app, const CLI::App& command);

}  // namespace tessera::cli
