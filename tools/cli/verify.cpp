// tessera verify
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <tessera/locate.h>
#include <tessera/paced_progress.h>
#include <tessera/quantities.h>
#include <tessera/report_values.h>
#include <tessera/verify.h>
#include <tessera/verify_signature.h>
#include <unistd.h>

#include <tessera/error_text.h>
#include <tessera/fnv.h>
#include <tessera/seal.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "advice.h"
#include "command.h"
#include "findings.h"
#include "fixity.h"
#include "paths.h"
#include "report.h"

namespace tessera::cli {

namespace {

struct VerifyCall {
    std::vector<std::string> paths;
    bool verbose = false;
    bool complete = false, ome = false, geo = false;
    bool record = false;
    bool nice = false, summary = false;
    std::string due, sample, rate, signers;
};

/// What the last line tells somebody who gets it by mail.
struct Tally {
    std::int64_t checked = 0, not_due = 0;
    std::uint64_t bytes = 0;
    std::vector<std::string> bad;  ///< paths that are not sound, or could not be checked
};

/// Lets everybody else go first, at the processor and at the disk. Threads that begin later inherit it.
void be_nice() {
#ifdef SYS_ioprio_set
    constexpr int this_thread = 1;      // IOPRIO_WHO_PROCESS
    constexpr int when_idle = 3 << 13;  // IOPRIO_CLASS_IDLE
    (void)::syscall(SYS_ioprio_set, this_thread, 0, when_idle);
#endif
    constexpr int last = 19;
    (void)::setpriority(PRIO_PROCESS, 0, last);
}

/// A part of the chunks, by a hash of their names: of n parts the one after that of the last recorded sample.
struct Sample {
    std::uint64_t parts = 1, turn = 0;

    /// Whether the file of a chunk is in another part.
    [[nodiscard]] bool leaves_out(std::string_view key) const { return fnv1a(key) % parts != turn; }
    [[nodiscard]] std::string text() const {
        return fmt::format("a sample: part {} of {} of the chunks was decoded, and no seal was compared", turn + 1,
                           parts);
    }
};

Sample sample_of(const std::string& path, const std::string& share) {
    const Redundancy part = in_context([] { return "--sample"; }, [&] { return parse_redundancy(share); });
    if (part.kind != Redundancy::Kind::share) throw invalid_argument("--sample: expected 5%, found '{}'", share);
    constexpr std::uint64_t whole = 1'000'000;  // Redundancy::amount counts millionths
    const std::uint64_t parts = std::max<std::uint64_t>(1, (whole + part.amount - 1) / part.amount);
    return {.parts = parts, .turn = static_cast<std::uint64_t>(samples_recorded(path, share)) % parts};
}

/// Says that nothing has to be done yet.
int not_due(Session& session, const std::string& path, const std::string& when) {
    if (session.options().json) {
        print_json(Value{{"path", path_value(path)}, {"due", false}, {"checked", when}});
    } else if (!session.options().quiet) {
        print(printable(fmt::format("{}: not due: checked {}, and sound", path, when)) + "\n");
    }
    return exit_done;
}

/// What was found, with the hash of its line, if it is to be recorded.
std::string record_found(const VerifyCall& o, const std::string& path, const VerifyReport& report) {
    Value found = verified_counts(report);
    if (!o.sample.empty()) found.set("sample", o.sample);
    if (o.complete) found.set("complete", true);
    return record_fixity(path, "verify", found);
}

void report_found(Session& session, const VerifyCall& o, const std::string& path, const VerifyReport& report,
                  const std::optional<Sample>& sample, const std::string& hash) {
    if (session.options().json) {
        Value value = verified_value(path, report, advised);
        if (sample) value.set("sample", o.sample);
        if (o.record) value.set("recorded", hash);
        print_json(value);
    } else if (!session.options().quiet && !(o.summary && report.sound())) {
        print_report(path, report, o.verbose, o.complete);
        if (sample) print(printable(fmt::format("{}: {}", path, sample->text())) + "\n");
        if (o.record) print(printable(fmt::format("{}: recorded: {}", path, hash)) + "\n");
    }
}

/// Whether the seal has a signature that counts, if one is asked for. What has none is due.
bool has_signature(const VerifyCall& o, const std::string& path) {
    if (o.signers.empty()) return true;
    VerifyReport report;
    add_signature(report, path, o.signers);
    return report.sound();
}

int verify_path(Session& session, const VerifyCall& o, const std::string& path, Tally& tally) {
    if (o.record) require_fixity_log(path);
    if (!o.due.empty()) {
        if (const auto when = checked_within(path, o.due, o.complete); when && has_signature(o, path)) {
            ++tally.not_due;
            return o.summary && !session.options().json ? exit_done : not_due(session, path, *when);
        }
    }
    VerifyOptions options{.io = session.io(), .complete = o.complete, .ome = o.ome, .geo = o.geo};
    std::optional<PacedProgress> paced;
    if (!o.rate.empty()) options.io.progress = &paced.emplace(parse_bytes("--rate", o.rate), options.io.progress);
    std::optional<Sample> sample;
    if (!o.sample.empty()) {
        sample = sample_of(path, o.sample);
        options.trust = [s = *sample](std::string_view key) { return s.leaves_out(key); };
        options.seals = false;  // whose sums are of everything
    }
    VerifyReport report = again_when_replaced(path, [&] { return verify(path, options); });
    if (!o.signers.empty()) add_signature(report, path, o.signers);
    session.clear_progress();
    const std::string hash = o.record ? record_found(o, path, report) : "";
    ++tally.checked;
    tally.bytes += report.bytes;
    report_found(session, o, path, report, sample, hash);
    if (!report.sound()) tally.bad.push_back(path);
    return report.sound() ? exit_done : exit_differences;
}

/// `ended`: not stopped before all paths had their turn.
void print_summary(const Tally& tally, bool ended) {
    std::string text =
        fmt::format("{} checked, chunks of {}", count_text(tally.checked, "path"), bytes_text(tally.bytes));
    if (tally.not_due > 0) text += fmt::format("; {} not due", tally.not_due);
    if (!tally.bad.empty()) {
        text += fmt::format("; NOT SOUND: {}", fmt::join(tally.bad, ", "));
    } else if (tally.checked > 0) {
        text += "; all sound";
    }
    if (!ended) text += "; stopped before the end";
    print(printable(text) + "\n");
}

int verify_paths(Session& session, const VerifyCall& o) {
    if (o.nice) be_nice();
    Tally tally;
    const auto end = [&](bool ended) {
        if (o.summary && !session.options().quiet && !session.options().json) print_summary(tally, ended);
    };
    const auto check = [&](const std::string& path) {
        try {
            return verify_path(session, o, path, tally);
        } catch (const Error& e) {
            if (e.code() != ErrorCode::cancelled) tally.bad.push_back(path);
            throw;
        }
    };
    try {
        const int code = for_each_path(session, o.paths, check);
        end(true);
        return code;
    } catch (const Error& e) {
        end(e.code() != ErrorCode::cancelled);
        throw;
    }
}

}  // namespace

Run declare_verify(CLI::App& app) {
    auto o = std::make_shared<VerifyCall>();
    app.add_option("PATH", o->paths, "arrays, groups, directories or zips of them, or array files")
        ->required()
        ->option_text(" ");
    app.add_flag("--verbose", o->verbose,
                 "a line for each finding, also where many are alike, and for each request over the network");
    app.add_flag("--complete", o->complete, "each chunk that is not stored counts as damage");
    app.add_flag("--ome", o->ome, "check the metadata of OME-Zarr (0.4, 0.5, 0.6rc0) instead; no chunk is read")
        ->excludes("--complete");
    app.add_flag("--geo", o->geo, "the same for the metadata of GeoZarr (multiscales, spatial, proj; v0.1)")
        ->excludes("--complete");
    app.add_flag("--record", o->record,
                 "add a line to the fixity log (`tessera log --fixity`), and print its hash, which `--expect` takes")
        ->excludes("--ome", "--geo");
    app.add_option("--due", o->due, "only what was not checked, recorded and sound within this time: 90d, 12h")
        ->option_text("AGE")
        ->excludes("--ome", "--geo");
    app.add_option("--sample", o->sample,
                   "decode only a share of the chunks, with --record each time another one until all had their\nturn; "
                   "seals are not compared")
        ->option_text("5%")
        ->excludes("--ome", "--geo");
    app.add_option(
           "--signers", o->signers,
           "the seal has to be signed by one of these: a file of allowed signers of OpenSSH, or a public key of\n"
           "minisign")
        ->option_text("FILE")
        ->excludes("--ome", "--geo", "--sample");
    app.add_option("--rate", o->rate, "read no more than this in a second: 50M")->option_text("BYTES");
    app.add_flag("--nice", o->nice, "let all other programs go first, at the processor and at the disk");
    app.add_flag("--summary", o->summary,
                 "for mail: report only what is not sound, and end with one line about all paths");
    return [o](Session& session) { return verify_paths(session, *o); };
}

}  // namespace tessera::cli
