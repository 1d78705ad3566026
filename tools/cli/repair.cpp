// tessera repair
#include <tessera/locate.h>
#include <tessera/verify.h>

#include <fmt/format.h>

#include <tessera/place.h>
#include <tessera/report_values.h>
#include <tessera/seal.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "advice.h"
#include "command.h"
#include "findings.h"
#include "fixity.h"
#include "report.h"

namespace tessera::cli {

namespace {

std::string set_aside_text(const SetAside& files) {
    return fmt::format("{}, {}", count_text(files.files, "file"), bytes_text(files.bytes));
}

/// The folder with the files that were set aside.
std::string set_aside_folder(const std::string& path) {
    const bool beside = place_beside(path, {.read_only = true}).has_value();
    if (!beside) return ".tessera/damaged";
    return std::filesystem::is_directory(path) ? "tessera-seal/damaged" : path + ".tessera-seal/damaged";
}

/// Text about the findings that are left: possible edits, which --to-seal reverts if parity covers them, and those
/// without a remedy.
std::string left_text(const RepairReport& report) {
    std::int64_t edits = 0;
    std::int64_t others = 0;
    const auto count = [&](const Finding& finding) {
        const bool edit = finding.kind == FindingKind::changed && finding.by_seal;
        ++(edit ? edits : others);
    };
    for (const Repaired& one : report.actions) {
        if (!one.done) count(one.finding);
    }
    for (const Finding& finding : report.remaining) count(finding);
    std::string text;
    if (edits > 0) text += fmt::format(", {} left alone as possibly edited", edits);
    if (others > 0) text += fmt::format(", {} left that cannot be repaired", others);
    return text;
}

/// What was done to chunks whose data are lost is no repair: it only makes the array readable.
std::int64_t chunks_lost(const RepairReport& report) {
    return std::ranges::count_if(report.actions, [](const Repaired& one) { return one.lost > 0; });
}

void print_lost(const std::string& path, const RepairReport& report, bool dry_run) {
    if (report.lost() == 0) return;
    print(printable(fmt::format("{}: {}set aside, not restored: {} of {} {} as the fill value; write them again from "
                                "their source, or put these files back from a copy or a snapshot (`tessera snapshot {} "
                                "list`); the next time a seal with parity restores them (`tessera seal --parity 5%`)",
                                path, dry_run ? "would be " : "", count_text(report.lost(), "element"),
                                count_text(chunks_lost(report), "damaged chunk"), dry_run ? "would read" : "now read",
                                path)) +
          "\n");
}

void print_repair(const std::string& path, const RepairReport& report, bool dry_run) {
    for (const Repaired& one : report.actions) {
        print(fmt::format(
            "{}\n  {}\n",
            printable(fmt::format("{}: {}", subject(one.finding), advised(one.finding.text, one.finding.advice))),
            printable(one.text)));
    }
    print_findings(report.remaining, true);
    std::string line = fmt::format("{}: {} {}mended{}", path, report.done - chunks_lost(report),
                                   dry_run ? "would be " : "", left_text(report));
    if (report.actions.empty() && report.remaining.empty()) line = fmt::format("{}: nothing to mend", path);
    print(printable(line) + "\n");
    print_lost(path, report, dry_run);
    if (report.set_aside.files > 0) {
        print(printable(fmt::format("{}: {} set aside in {}; --drop-damaged deletes them, and gives the space back",
                                    path, set_aside_text(report.set_aside), set_aside_folder(path))) +
              "\n");
    }
    if (report.dropped.files > 0) {
        print(printable(fmt::format("{}: {} in {} {}deleted", path, set_aside_text(report.dropped),
                                    set_aside_folder(path), dry_run ? "would be " : "")) +
              "\n");
    }
}

struct RepairCall {
    std::string path;
    bool dry_run = false;
    bool give_up_batches = false;
    bool drop_damaged = false;
    bool to_seal = false;
    std::vector<std::string> to_seal_names;
    std::string from;
};

int repair_path(Session& session, const RepairCall& o) {
    StoreOptions options = session.store();
    options.read_only = o.dry_run;
    const auto beside = place_beside(o.path, options);
    const Place place = beside ? *beside : find_place(o.path, options);
    std::optional<Place> from;
    if (!o.from.empty()) from = find_place(o.from, {.read_only = true});
    const RepairReport report = repair(place, {.io = session.io(),
                                               .dry_run = o.dry_run,
                                               .give_up_batches = o.give_up_batches,
                                               .drop_damaged = o.drop_damaged,
                                               .to_seal = o.to_seal,
                                               .to_seal_names = o.to_seal_names,
                                               .from = from});
    session.clear_progress();
    if (!o.dry_run && report.done > 0) note_fixity(session, o.path, "repair", repaired_counts(report));
    session.changed = report.done > 0 || report.dropped.files > 0;
    require_present(place);
    if (session.options().json) {
        print_json(repaired_value(o.path, report, o.dry_run, advised));
    } else if (!session.options().quiet) {
        print_repair(o.path, report, o.dry_run);
    }
    return report.mended() ? exit_done : exit_differences;
}

}  // namespace

Run declare_repair(CLI::App& app) {
    auto o = std::make_shared<RepairCall>();
    app.add_option(
           "PATH", o->path,
           "an array or a group, with everything below it; or what has a seal beside it: a zip, an\narray file, a bag")
        ->required()
        ->option_text(" ");
    app.add_flag("--dry-run", o->dry_run, "change nothing, say what would be done");
    app.add_flag("--give-up-batches", o->give_up_batches,
                 "take back a batch of edits that is recorded but not in place, instead of\nfinishing it");
    app.add_flag("--drop-damaged", o->drop_damaged,
                 "delete what was set aside in .tessera/damaged, by this run and by those before: data is\nlost, and "
                 "the space returns");
    auto* to_seal = app.add_option("--to-seal", o->to_seal_names,
                                   "restore from the parity of a seal also files that may have been edited since: the "
                                   "named ones, or all")
                        ->option_text("[NAMES]")
                        ->expected(0, 1 << 20);
    app.add_option("--from", o->from,
                   "another copy, of which files are taken that are damaged or missing here, if they have\nthe sums "
                   "of the seal here: a folder, a zip, a bag, http://…, s3://…")
        ->option_text("OTHER");
    return [o, to_seal](Session& session) {
        o->to_seal = to_seal->count() > 0;
        std::erase(o->to_seal_names, "");  // CLI11 passes "" if the option has no name
        return again_when_replaced(o->path, [&] { return repair_path(session, *o); });
    };
}

}  // namespace tessera::cli
