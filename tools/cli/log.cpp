// tessera log, and what commands note there
#include "log.h"

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/job.h>
#include <tessera/place.h>
#include <tessera/seal.h>
#include <tessera/secrets.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "command.h"
#include "fixity.h"
#include "options.h"
#include "report.h"

namespace tessera::cli {

namespace fs = std::filesystem;

namespace {

/// Commands that change a directory, and the argument that names it.
struct Changing {
    std::vector<std::string_view> commands;
    const char* place;
    /// They change something only with one of these arguments, and nothing with one of those.
    std::vector<std::string> only_with = {};
    std::vector<std::string> not_with = {"--dry-run"};
    /// The place that the argument leads to; null: it is the place.
    std::string (*place_of)(const std::string& argument) = nullptr;
};

const std::vector<Changing>& changing_commands() {
    static const std::vector<Changing> table{
        {{"create", "import", "set", "append", "resize", "edit", "undo", "group", "rm", "repair"}, "PATH"},
        {{"copy", "rechunk", "sync", "unstack", "reduce", "coarsen", "regrid", "pyramid", "mv"}, "DST"},
        {{"stack", "concat"}, "FILES…"},
        {{"export"}, "FILE"},
        {{"calc"}, "OUT"},
        {{"attrs"}, "PATH", {"set", "rm", "mv", "copy"}},
        {{"dims"}, "PATH", {"NAMES", "--remove"}},
        {{"snapshot"}, "PATH", {"create", "restore", "accept", "rm"}},
        {{"consolidate"}, "PATH", {}, {"--check"}},
        {{"seal"}, "PATH", {}, {"--bagit", "--ocfl"}},
        {{"finish"}, "JOB", {}, {}, [](const std::string& job) { return Job::open(job).target; }},
    };
    return table;
}

bool is_given(const CLI::App& command, const std::string& name) {
    const CLI::Option* option = command.get_option_no_throw(name);
    return option != nullptr && option->count() > 0;
}

/// Whether an action ("set") or an option is among the arguments.
bool has_one_of(const CLI::App& command, const std::vector<std::string>& names) {
    const CLI::Option* action = command.get_option_no_throw("ACTION");
    return std::ranges::any_of(names, [&](const std::string& name) {
        return is_given(command, name) || (action != nullptr && action->count() > 0 && action->results()[0] == name);
    });
}

/// Quoted for a shell.
std::string quoted(const std::string& word) {
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

/// The folder of a path, if that is a group with metadata; empty if not.
fs::path group_around(const fs::path& path) {
    fs::path named = path.lexically_normal();
    if (!named.has_filename()) named = named.parent_path();
    fs::path above = named.has_parent_path() ? named.parent_path() : fs::path(".");
    if (!is_local(above)) above = "." / above;  // as it was typed
    if (!fs::is_directory(above)) return {};
    const Place place = find_place(above.string(), {.read_only = true});
    return probe_group_dialect(place) != nullptr ? above : fs::path();
}

/// The group around `from`, if `to` is not below it; empty if there is none. Never throws: it is for the log alone.
fs::path group_left(const fs::path& from, const fs::path& to) {
    try {
        fs::path group = group_around(from);
        if (group.empty()) return {};
        // If `to` is below the group, the node's own log shows the command there.
        const fs::path below = fs::weakly_canonical(to).lexically_relative(fs::canonical(group));
        return below.empty() || *below.begin() == ".." ? group : fs::path();
    } catch (const std::exception&) {
        return {};
    }
}

}  // namespace

std::string command_text(const std::vector<std::string>& words) {
    std::string command = "tessera";
    for (const std::string& word : words) {
        command += " " + quoted(without_secrets(word));  // which have no place in a file
    }
    return command;
}

std::optional<fs::path> changed_place(const CLI::App& command) {
    const auto& table = changing_commands();
    const auto row = std::ranges::find_if(
        table, [&](const Changing& one) { return std::ranges::count(one.commands, command.get_name()) > 0; });
    if (row == table.end() || has_one_of(command, row->not_with)) return {};
    if (!row->only_with.empty() && !has_one_of(command, row->only_with)) return {};
    if (!is_given(command, row->place)) return {};
    const std::string argument = command.get_option_no_throw(row->place)->results().back();
    fs::path path = split_array_path(row->place_of == nullptr ? argument : row->place_of(argument)).path;
    if (!is_local(path)) return {};  // other kinds of stores have no log
    return path;
}

ChangeNote::ChangeNote(const CLI::App& command, std::vector<std::string> words) : words_(std::move(words)) {
    directory_ = changed_place(command);
    if (!directory_) return;
    removes_ = command.get_name() == "rm";
    finishes_ = command.get_name() == "finish";
    if (command.get_name() == "mv" && is_given(command, "SRC")) {
        left_ = group_left(command.get_option_no_throw("SRC")->results().back(), *directory_);
    }
    const bool replaces = is_given(command, "--overwrite") || command.get_name() == "snapshot";
    try {
        if (replaces) before_ = read_log(*directory_);
    } catch (const Error&) {
        before_.clear();  // a log that cannot be read does not stop the command
    }
}

void ChangeNote::write(int code) const noexcept {
    try {
        if (!directory_) return;
        if (finishes_ && code != 0) return;  // units are missing
        if (!left_.empty() && !place_beside(left_, {.read_only = true})) {
            append_log(left_, log_line(command_text(words_)));
        }
        // For an archive, an array file or a removed node, the log is that of the group around it.
        // Of a removed one the folder may stay, while another program has a file in it open.
        const bool stays = !removes_ && fs::is_directory(*directory_);
        const fs::path place = stays ? *directory_ : group_around(*directory_);
        if (place.empty() || place_beside(place, {.read_only = true})) return;
        // A bag must not hold files that it does not list.
        if (fs::exists(place / "bagit.txt") || fs::exists(place / "manifest-sha256.txt")) return;
        if (place == *directory_ && !before_.empty() && read_log(place).empty()) {
            for (const LogLine& line : before_) append_log(place, line);
        }
        append_log(place, log_line(command_text(words_)));
    } catch (const std::exception&) {
        return;  // the command has succeeded; only its line is missing
    }
}

namespace {

struct Entry {
    std::string node;
    LogLine line;
};

/// The lines of a directory, and of all arrays and groups below it, in the order of their times.
std::vector<Entry> entries_of(const std::string& path) {
    std::vector<Entry> entries;
    const auto add = [&](const std::string& node) {
        for (LogLine& line : read_log(node.empty() ? fs::path(path) : fs::path(path) / node)) {
            entries.push_back({node, std::move(line)});
        }
    };
    add("");
    const Place place = find_place(path, {.read_only = true});
    if (!place.store->local_files().folder_id(place.prefix)) {
        throw unsupported("{}: only directories have a log; an archive is never changed", path);
    }
    for (const Node& node : hierarchy_below(place).nodes) {
        if (!node.path.empty()) add(node.path);
    }
    std::ranges::stable_sort(entries, {}, [](const Entry& e) { return e.line.time; });
    return entries;
}

int show_log(Session& session, const std::string& path) {
    const std::vector<Entry> entries = about_path(path, [&] { return entries_of(path); });
    if (session.options().json) {
        Value list = Value::array();
        for (const Entry& e : entries) {
            Value one = Value::object();
            one.set("node", path_value(e.node));
            one.set("time", path_value(e.line.time));
            one.set("who", path_value(e.line.who));
            one.set("command", path_value(e.line.change));
            list.push_back(std::move(one));
        }
        Value value = Value::object();
        value.set("path", path_value(path));
        value.set("changes", std::move(list));
        print_json(value);
        return exit_done;
    }
    for (const Entry& e : entries) {
        print(printable(fmt::format("{}  {}  {}{}", e.line.time, e.line.who, e.line.change,
                                    e.node.empty() ? "" : fmt::format("  [{}]", e.node))) +
              "\n");
    }
    return exit_done;
}

}  // namespace

Run declare_log(CLI::App& app) {
    auto o = std::make_shared<FixityCall>();
    auto fixity = std::make_shared<bool>(false);
    app.add_option("PATH", o->path, "an array or a group in a directory")->required()->option_text(" ");
    auto* flag = app.add_flag("--fixity", *fixity,
                              "what `verify --record`, `seal`, `repair` and `snapshot restore` recorded, and whether "
                              "no line is\nmissing or changed");
    app.add_option("--expect", o->expect, "the hash of a line that has to be there, as an earlier run printed it")
        ->option_text("HASH")
        ->needs(flag);
    app.add_flag("--premis", o->premis, "as events of PREMIS 3, in XML")->needs(flag);
    return [o, fixity](Session& session) { return *fixity ? show_fixity(session, *o) : show_log(session, o->path); };
}

}  // namespace tessera::cli
