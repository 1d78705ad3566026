// tessera edit, undo: batches of edits
#include <fmt/format.h>

#include <tessera/edit.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/locate.h>
#include <tessera/place.h>
#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>
#include <vector>

#include "command.h"
#include "edit.h"
#include "edit_script.h"
#include "hierarchy.h"
#include "report.h"

namespace tessera::cli {

namespace {

struct ScriptOptions {
    std::string path, script;
    bool no_undo = false;
};

/// A batch over the array at the path, or over the arrays of the group there.
Edit begin_batch(Session& session, const ScriptOptions& o, bool& of_group) {
    const EditOptions options{.keep_old = !o.no_undo};
    try {
        return Edit(open_to_edit(session, o.path), options);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::not_found) throw;
        const Located at = locate(o.path, session.store());
        of_group = at.kind == PathKind::group || at.kind == PathKind::folder;
        if (!of_group) throw;
        return Edit(Group::open(*at.place), options);
    }
}

int edit(Session& session, const ScriptOptions& o) {
    std::ifstream file;
    const bool from_stdin = o.script == "-";
    if (!from_stdin) {
        file.open(o.script);
        if (!file) throw not_found("{}: cannot be read as a script", o.script);
    }
    std::istream& script = from_stdin ? std::cin : file;
    bool of_group = false;
    Edit batch = begin_batch(session, o, of_group);
    std::set<std::string> arrays;
    const std::int64_t edits = run_script(session, batch, of_group ? &arrays : nullptr, script, o.script);
    if (script.bad()) throw io_error("reading", o.script, errno);
    const std::int64_t changed = batch.commit();
    session.clear_progress();
    std::vector<std::string> changed_arrays{o.path};
    for (const std::string& array : arrays) changed_arrays.push_back((std::filesystem::path(o.path) / array).string());
    note_stale(session, changed_arrays);
    Value value = Value::object();
    value.set("path", path_value(o.path));
    value.set("edits", edits);
    if (of_group) value.set("arrays", static_cast<std::int64_t>(arrays.size()));
    value.set("values_changed", changed);
    report(session, value,
           fmt::format("edited {}: {}, {} written or removed", o.path, count_text(edits, "edit"),
                       count_text(changed, "file")));
    return exit_done;
}

int undo_last(Session& session, const std::string& path) {
    Place place = find_place(path, session.store());
    const auto kept = kept_for_undo(place);
    const bool group =
        probe_dialect(place) == nullptr && (probe_group_dialect(place) != nullptr || !child_nodes(place).empty());
    std::vector<std::string> arrays{path};
    if (group) {
        for (const Node& node : Group::open(place).nodes()) {
            if (node.kind == NodeKind::array) arrays.push_back((std::filesystem::path(path) / node.path).string());
        }
    }
    const std::int64_t changed = group ? undo(Group::open(std::move(place))) : undo(Array::open(std::move(place)));
    std::string words = kept ? kept->what : "";
    constexpr std::string_view undo_word = "undo ";  // before the words of what an undo took back
    const bool again = words.starts_with(undo_word);
    if (again) words.erase(0, undo_word.size());
    const bool command = !words.empty();
    const Value what = command ? path_value(words) : Value();
    note_stale(session, arrays);
    report(session,
           Value{{"path", path_value(path)},
                 {"taken_back", again ? Value() : what},
                 {"made_again", again ? what : Value()},
                 {"values_changed", changed}},
           fmt::format("{}: {} is {}, {} written or removed; another undo {}", path,
                       command ? fmt::format("`{}`", words) : "the last batch", again ? "made again" : "taken back",
                       count_text(changed, "file"), again ? "takes it back" : "makes it again"));
    return exit_done;
}

}  // namespace

Run declare_edit(CLI::App& app) {
    auto o = std::make_shared<ScriptOptions>();
    app.add_option("PATH", o->path, "an array, or a group")->required()->option_text(" ");
    app.add_option("--script", o->script, "a file of edits, one per line; - reads the standard input")
        ->required()
        ->option_text("FILE");
    app.add_flag("--no-undo", o->no_undo, no_undo_text);
    return [o](Session& session) { return edit(session, *o); };
}

Run declare_undo(CLI::App& app) {
    auto path = std::make_shared<std::string>();
    app.add_option("PATH", *path, "an array or a group")->required()->option_text(" ");
    return [path](Session& session) { return undo_last(session, *path); };
}

}  // namespace tessera::cli
