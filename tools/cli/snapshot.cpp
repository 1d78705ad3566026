// tessera snapshot
#include <fmt/format.h>

#include <tessera/error_text.h>
#include <tessera/report_values.h>
#include <tessera/snapshot.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "fixity.h"
#include "hierarchy.h"
#include "report.h"

namespace tessera::cli {

namespace {

struct SnapshotOptions {
    std::string path, action, name;
    bool sums = false;
    bool skip_damaged = false;
};

/// "37 reflinks, 4 copies"
std::string how_text(const SnapshotInfo& info) {
    std::string text;
    const auto add = [&](std::int64_t n, std::string_view one, std::string_view many) {
        if (n > 0)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", grouped(static_cast<std::uint64_t>(n)),
                                n == 1 ? one : many);
    };
    add(info.reflinked, "reflink", "reflinks");
    add(info.linked, "link", "links");
    add(info.copied, "copy", "copies");
    return text;
}

std::string text_of(const SnapshotInfo& info) {
    return fmt::format("{}  {}{}  {}, {} ({}), {}", info.name, info.made, info.node.empty() ? "" : "  of " + info.node,
                       count_text(info.arrays, "array"), count_text(info.files, "file"), how_text(info),
                       bytes_text(info.bytes));
}

int create(Session& session, const SnapshotOptions& o) {
    const SnapshotInfo info = create_snapshot(o.path, o.name, session.store(), session.io(), {.sums = o.sums});
    session.clear_progress();
    report(session, snapshot_value(info),
           fmt::format("created {}: {}, {} ({}), {}", info.path.string(), count_text(info.arrays, "array"),
                       count_text(info.files, "file"), how_text(info), bytes_text(info.bytes)));
    return exit_done;
}

int list(Session& session, const SnapshotOptions& o) {
    Value values = Value::array();
    for (const SnapshotInfo& info : list_snapshots(o.path)) {
        if (session.options().json) {
            values.push_back(snapshot_value(info));
        } else {
            print(printable(text_of(info)) + "\n");
        }
    }
    if (session.options().json) print_json(values);
    return exit_done;
}

Value value_of(const SnapshotOptions& o) {
    return Value{{"path", path_value(o.path)}, {"name", path_value(o.name)}};
}

int restore(Session& session, const SnapshotOptions& o) {
    const std::vector<std::string> lost =
        restore_snapshot(o.path, o.name, session.store(), session.io(), {.skip_damaged = o.skip_damaged});
    session.clear_progress();
    note_stale(session, {o.path});
    note_fixity(session, o.path, "restore",
                {{"sound", lost.empty()}, {"snapshot", path_value(o.name)}, {"lost", std::ssize(lost)}});
    Value value = value_of(o);
    Value paths = Value::array();
    for (const std::string& path : lost) {
        if (!session.options().json)
            session.note(fmt::format("{} is lost: the snapshot's copy has been changed", path));
        paths.push_back(path_value(path));
    }
    value.set("lost", std::move(paths));
    report(session, value,
           fmt::format("restored {} from its snapshot {}{}", o.path, o.name,
                       lost.empty() ? "" : fmt::format(", but for {}", count_text(std::ssize(lost), "path"))));
    return lost.empty() ? exit_done : exit_differences;
}

int accept(Session& session, const SnapshotOptions& o) {
    accept_snapshot(o.path, o.name, session.store(), session.io(), {.sums = o.sums});
    session.clear_progress();
    report(session, value_of(o), fmt::format("accepted the snapshot {} of {} as it is now", o.name, o.path));
    return exit_done;
}

int snapshot(Session& session, const SnapshotOptions& o) {
    constexpr std::array<std::string_view, 5> actions{"create", "list", "restore", "accept", "rm"};
    if (std::ranges::find(actions, o.action) == actions.end()) {
        throw invalid_argument("snapshot: expected create, list, restore, accept or rm after the path, found '{}'",
                               o.action);
    }
    if ((o.action == "list") != o.name.empty()) {
        throw invalid_argument("snapshot PATH {}: found {}", o.action == "list" ? "list" : o.action + " NAME",
                               o.name.empty() ? "no NAME" : fmt::format("'{}' as well", o.name));
    }
    if (o.sums && o.action != "create" && o.action != "accept") {
        throw invalid_argument("--sums: only of create and accept, found {}", o.action);
    }
    if (o.skip_damaged && o.action != "restore") {
        throw invalid_argument("--skip-damaged: only of restore, found {}", o.action);
    }
    if (o.action == "create") return create(session, o);
    if (o.action == "list") return list(session, o);
    if (o.action == "restore") return restore(session, o);
    if (o.action == "accept") return accept(session, o);
    remove_snapshot(o.path, o.name, session.store());
    report(session, value_of(o), fmt::format("removed the snapshot {} of {}", o.name, o.path));
    return exit_done;
}

}  // namespace

Run declare_snapshot(CLI::App& app) {
    auto o = std::make_shared<SnapshotOptions>();
    app.add_option("PATH", o->path, "an array or a group")->required()->option_text(" ");
    app.add_option("ACTION", o->action, "create, list, restore, accept or rm")->required()->option_text(" ");
    app.add_option("NAME", o->name, "the snapshot's name")->option_text(" ");
    app.add_flag(
        "--sums", o->sums,
        "create, accept: record SHA-256 sums too, which tell later whether files hold the same\n(all are read)");
    app.add_flag("--skip-damaged", o->skip_damaged,
                 "restore: leave out files that have changed in the snapshot, and name them (exit code 1)");
    return [o](Session& session) { return snapshot(session, *o); };
}

}  // namespace tessera::cli
