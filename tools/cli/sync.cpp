// tessera sync
#include <fmt/format.h>

#include <tessera/copy.h>
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "command.h"
#include "hierarchy.h"
#include "report.h"

namespace tessera::cli {

namespace {

struct Options {
    std::string source, destination;
    bool dry_run = false, all = false;
};

/// What of the same values was not read.
std::string unread_text(const Synced& done) {
    if (done.unread == 0) return "";
    return fmt::format(" ({} known by their stamps; --all reads them)",
                       done.unread == done.same ? "all" : grouped(static_cast<std::uint64_t>(done.unread)));
}

int sync(Session& session, const Options& o) {
    const Synced done = sync_hierarchy(
        o.source, o.destination, {.dry_run = o.dry_run, .all = o.all, .io = session.io(), .store = session.store()});
    Value value = Value::object();
    value.set("path", path_value(o.destination));
    value.set("dry_run", o.dry_run);
    value.set("arrays", done.arrays);
    value.set("made", done.made);
    value.set("same", done.same);
    value.set("unread", done.unread);
    value.set("carried", done.carried);
    value.set("erased", done.erased);
    value.set("bytes", done.bytes);
    report(session, value,
           fmt::format("{}{}: {}{}; {} carried ({}), {} the same{}, {} erased", o.dry_run ? "would make " : "",
                       o.destination, count_text(done.arrays, "array"),
                       done.made > 0 ? fmt::format(", {} new", done.made) : "", count_text(done.carried, "value"),
                       bytes_text(done.bytes), grouped(static_cast<std::uint64_t>(done.same)), unread_text(done),
                       grouped(static_cast<std::uint64_t>(done.erased))));
    return exit_done;
}

}  // namespace

Run declare_sync(CLI::App& app) {
    auto o = std::make_shared<Options>();
    app.add_option("SRC", o->source, "an array or a group")->required()->option_text(" ");
    app.add_option("DST", o->destination, "what is to be like it")->required()->option_text(" ");
    app.add_flag("--dry-run", o->dry_run, "count what would be carried, and change nothing");
    app.add_flag("--all", o->all, "read what is known to be equal, too");
    return [o](Session& session) { return sync(session, *o); };
}

}  // namespace tessera::cli
