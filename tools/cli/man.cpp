// Manual pages: troff with the macros of man(7), from the table of commands.
#include <fmt/format.h>

#include <algorithm>

#include "command.h"
#include "help.h"

namespace tessera::cli {

namespace {

/// Escapes text for troff: hyphens stay hyphens, and no line becomes a request.
std::string escaped(std::string_view text) {
    std::string out;
    bool line_begins = true;
    for (const char c : text) {
        if (line_begins && (c == '.' || c == '\'')) out += "\\&";
        line_begins = c == '\n';
        if (c == '\\') {
            out += "\\e";
        } else if (c == '-') {
            out += "\\-";
        } else {
            out += c;
        }
    }
    return out;
}

std::string header(std::string_view name, std::string_view about) {
    return fmt::format(".TH {} 1 \"\" \"tessera {}\" \"Tessera\"\n.SH NAME\n{} \\- {}\n", name, TESSERA_VERSION,
                       escaped(name), escaped(about));
}

/// Verbatim lines, as in `--help`.
std::string verbatim(std::string_view text) {
    return fmt::format(".nf\n{}\n.fi\n", escaped(text));
}

std::string options_of(const CLI::App& command, bool common) {
    std::string text;
    for (const CLI::Option* option : command.get_options()) {
        if (!option->nonpositional() || (option->get_group() == common_options_group) != common) continue;
        text += fmt::format(".TP\n.B {}", escaped(option->get_name(false, true)));
        if (!option->get_option_text().empty() && option->get_items_expected_max() > 0) {
            text += fmt::format(" \\fI{}\\fR", escaped(option->get_option_text()));
        }
        text += fmt::format("\n{}\n", escaped(option->get_description()));
    }
    return text;
}

}  // namespace

std::string manual_page(const CLI::App& app) {
    std::string page = header("tessera", "chunked, compressed N-dimensional arrays that do not fit in memory");
    page += ".SH SYNOPSIS\n.B tessera\n.I COMMAND\n\\&... [options]\n.SH COMMANDS\n";
    const CLI::App* last = nullptr;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        if (last == nullptr || last->get_group() != command->get_group()) {
            page += fmt::format(".SS {}\n", escaped(command->get_group()));
        }
        last = command;
        page += fmt::format(".TP\n.BR tessera\\-{} (1)\n{}\n", escaped(command->get_name()),
                            escaped(command->get_description()));
    }
    if (last != nullptr) page += fmt::format(".SH OPTIONS\nEvery command takes these.\n{}", options_of(*last, true));
    return fmt::format("{}.SH NOTES\n{}", page, verbatim(app.get_footer()));
}

std::string manual_page(const CLI::App& app, const CLI::App& command) {
    const std::string name = fmt::format("tessera-{}", command.get_name());
    std::string page = header(name, command.get_description());
    const auto row = std::ranges::find(commands(), command.get_name(), &Command::name);
    page += fmt::format(".SH SYNOPSIS\n{}", verbatim(fmt::format("tessera {}", row->usage)));
    page += fmt::format(".SH DESCRIPTION\n{}", verbatim(command.get_footer()));
    std::string arguments;
    for (const CLI::Option* option : command.get_options()) {
        if (option->nonpositional()) continue;
        arguments +=
            fmt::format(".TP\n.I {}\n{}\n", escaped(option->get_name(true)), escaped(option->get_description()));
    }
    if (!arguments.empty()) page += fmt::format(".SH ARGUMENTS\n{}", arguments);
    const std::string own = options_of(command, false);
    if (!own.empty()) page += fmt::format(".SH OPTIONS\n{}", own);
    page += fmt::format(".SH COMMON OPTIONS\n{}", options_of(command, true));
    (void)app;
    return fmt::format("{}.SH SEE ALSO\n.BR tessera (1)\n", page);
}

}  // namespace tessera::cli
