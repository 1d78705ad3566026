// tessera repair
#include <tessera/repair.h>

#include <fmt/format.h>

#include <tessera/place.h>
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "command.h"
#include "findings.h"
#include "report.h"

namespace tessera::cli {

namespace {

Value repair_value(const std::string& path, const RepairReport& report, bool dry_run) {
    Value value = Value::object();
    value.set("path", path_value(path));
    value.set("dry_run", dry_run);
    value.set("mended", report.mended());
    value.set("done", report.done);
    Value actions = Value::array();
    for (const Repaired& one : report.actions) {
        Value action = finding_value(one.finding);
        action.set("done", one.done);
        action.set("outcome", path_value(one.text));
        actions.push_back(std::move(action));
    }
    value.set("actions", std::move(actions));
    Value remaining = Value::array();
    for (const Finding& finding : report.remaining) remaining.push_back(finding_value(finding));
    value.set("remaining", std::move(remaining));
    return value;
}

void print_repair(const std::string& path, const RepairReport& report, bool dry_run) {
    for (const Repaired& one : report.actions) {
        print(fmt::format("{}\n  {}\n", printable(fmt::format("{}: {}", subject(one.finding), one.finding.text)),
                          printable(one.text)));
    }
    print_findings(report.remaining);
    const auto left = std::ssize(report.actions) - report.done + std::ssize(report.remaining);
    std::string line = fmt::format("{}: {} {}mended", path, report.done, dry_run ? "would be " : "");
    if (report.actions.empty() && left == 0) line = fmt::format("{}: nothing to mend", path);
    if (left > 0) line += fmt::format(", {} left that repair can do nothing about", left);
    print(printable(line) + "\n");
}

int repair_path(Session& session, const std::string& path, bool dry_run, bool give_up_batches) {
    StoreOptions options = session.store();
    options.read_only = dry_run;
    const Place place = find_place(path, options);
    const RepairReport report =
        repair(place.store, place.prefix, {.io = session.io(), .dry_run = dry_run, .give_up_batches = give_up_batches});
    session.clear_progress();
    if (session.options().json) {
        print_json(repair_value(path, report, dry_run));
    } else if (!session.options().quiet) {
        print_repair(path, report, dry_run);
    }
    return report.mended() ? exit_done : exit_differences;
}

}  // namespace

Run declare_repair(CLI::App& app) {
    auto path = std::make_shared<std::string>();
    auto dry_run = std::make_shared<bool>(false);
    app.add_option("PATH", *path, "an array or a group, with everything below it")->required()->option_text(" ");
    app.add_flag("--dry-run", *dry_run, "change nothing, say what would be done");
    auto give_up_batches = std::make_shared<bool>(false);
    app.add_flag("--give-up-batches", *give_up_batches,
                 "take a batch of edits back that is recorded but not in place, instead of\nfinishing it");
    return [path, dry_run, give_up_batches](Session& session) {
        return repair_path(session, *path, *dry_run, *give_up_batches);
    };
}

}  // namespace tessera::cli
