// Completion scripts for shells. They contain the names of all commands and options, so that completion runs no
// program but for the members of a file, behind "::".
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>
#include <tessera/locate.h>
#include <algorithm>

#include "help.h"
#include "report.h"

namespace tessera::cli {

namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App*) { return true; });
}

/// The first line of a description.
std::string summary(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

/// In single quotes, for any of the shells.
std::string quoted(std::string_view text, std::string_view quote) {
    std::string out = "'";
    for (const char c : text) c == '\'' ? out.append(quote) : out.append(1, c);
    return out + "'";
}

/// The values of an option, if there are only a few.
std::string choices(std::string_view option) {
    if (option == "durability") return "none commit each";
    if (option == "order") return "C F";
    if (option != "format") return "";
    std::string names;
    for (const Dialect* dialect : dialect_table()) names += (names.empty() ? "" : " ") + std::string(dialect->name);
    return names;
}

constexpr std::string_view bash_head =
    R"(# Completion of tessera for bash: `source` it, or put it into share/bash-completion/completions.
_tessera() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words=
    local typed=${COMP_LINE:0:COMP_POINT}
    typed=${typed##* }
    if [[ $typed == *::* ]]; then
        # Bash ends words at colons, where only what follows is replaced.
        local kept=${typed%"${typed##*:}"}
        [[ $COMP_WORDBREAKS == *:* ]] || kept=
        mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" help members "${typed%%::*}" 2>/dev/null |
            while IFS= read -r name; do
                name=${typed%%::*}::$name
                [[ $name == "$typed"* ]] && printf '%s\n' "${name#"$kept"}"
            done)
        return
    fi
    if ((COMP_CWORD == 1)); then
)";

constexpr std::string_view bash_tail = R"(            esac
        fi
    fi
    if [[ -n $words ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        compopt -o filenames 2>/dev/null
    fi
}
complete -F _tessera tessera
)";

std::string bash_script(const CLI::App& app) {
    std::string script(bash_head);
    std::vector<std::string> names;
    for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
    script +=
        fmt::format("        words='{} help version'\n    else\n        case $previous in\n", fmt::join(names, " "));
    for (const char* option : {"format", "durability", "order"}) {
        script += fmt::format("            --{}) words='{}' ;;\n", option, choices(option));
    }
    script +=
        "        esac\n        if [[ -z $words && $current == -* ]]; then\n            case ${COMP_WORDS[1]} in\n";
    for (const CLI::App* command : commands_of(app)) {
        script += fmt::format("                {}) words='{}' ;;\n", command->get_name(),
                              fmt::join(option_names(*command), " "));
    }
    script += fmt::format("                help) words='{} options' ;;\n", fmt::join(names, " "));
    return script.append(bash_tail);
}

/// An option with its description, in the form for zsh's _describe.
std::string zsh_pair(std::string name, const std::string& about) {
    std::string text = summary(about);
    for (std::size_t at = 0; (at = text.find(':', at)) != text.npos; at += 2) text.insert(at, "\\");
    return quoted(fmt::format("{}:{}", name, text), "'\\''");
}

std::string zsh_script(const CLI::App& app) {
    std::string script =
        "#compdef tessera\n"
        "# Completion of tessera for zsh: put it into a folder of $fpath as _tessera.\n"
        "local -a commands options\n"
        "commands=(\n";
    for (const CLI::App* command : commands_of(app)) {
        script += fmt::format("    {}\n", zsh_pair(command->get_name(), command->get_description()));
    }
    script +=
        "    'help:explain a command'\n)\n"
        "if (( CURRENT == 2 )); then\n    _describe command commands\n    return\nfi\ncase $words[CURRENT-1] in\n";
    for (const char* option : {"format", "durability", "order"}) {
        script += fmt::format("    --{}) compadd {}; return ;;\n", option, choices(option));
    }
    script += "esac\ncase $words[2] in\n";
    for (const CLI::App* command : commands_of(app)) {
        script += fmt::format("    {}) options=(\n", command->get_name());
        for (const CLI::Option* option : command->get_options()) {
            for (const std::string& name : option->get_lnames()) {
                script += fmt::format("        {}\n", zsh_pair(fmt::format("--{}", name), option->get_description()));
            }
        }
        script += "        ) ;;\n";
    }
    return script +
           "    help) _describe command commands; return ;;\n"
           "esac\n"
           "if [[ $PREFIX == -* ]]; then\n    _describe -o option options\nelse\n    _files\nfi\n";
}

std::string fish_script(const CLI::App& app) {
    const auto fish_quoted = [](std::string_view text) { return quoted(text, "\\'"); };
    std::string script = "# Completion of tessera for fish: put it into ~/.config/fish/completions.\n";
    for (const CLI::App* command : commands_of(app)) {
        const std::string& name = command->get_name();
        script += fmt::format("complete -c tessera -n __fish_use_subcommand -f -a {} -d {}\n", name,
                              fish_quoted(command->get_description()));
        for (const CLI::Option* option : command->get_options()) {
            for (const std::string& long_name : option->get_lnames()) {
                const std::string words = choices(long_name);
                const bool takes = option->get_items_expected_max() > 0;
                script +=
                    fmt::format("complete -c tessera -n '__fish_seen_subcommand_from {}' -l {}{}{} -d {}\n", name,
                                long_name, takes ? " -r" : "", words.empty() ? "" : fmt::format(" -f -a '{}'", words),
                                fish_quoted(summary(option->get_description())));
            }
        }
    }
    return script;
}

}  // namespace

std::string member_names(const std::string& path) {
    std::string names;
    try {
        const Located at = locate(path);
        if (at.format != nullptr && at.format->members != nullptr) {
            for (const std::string& name : array_members(*at.format, at.file)) names += printable(name) + "\n";
        } else {
            const DType dtype = open_source(at)->info().dtype;
            if (dtype.kind() != Kind::structure) return names;
            for (const Field& field : dtype.fields()) {
                if (!field.unnamed) names += printable(field.name) + "\n";
            }
        }
    } catch (const Error&) {
        return "";  // it completes nothing
    }
    return names;
}

std::string completion_script(const CLI::App& app, std::string_view shell) {
    if (shell == "bash") return bash_script(app);
    if (shell == "zsh") return zsh_script(app);
    if (shell == "fish") return fish_script(app);
    throw invalid_argument("help completion: '{}' is none of bash, zsh and fish", shell);
}

}  // namespace tessera::cli
