// tessera plan, work, finish, job
#include "job.h"

#include <fmt/format.h>

#include <tessera/error_text.h>
#include <tessera/job.h>
#include <tessera/quantities.h>
#include <tessera/secrets.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "advice.h"
#include "help.h"
#include "hierarchy.h"
#include "options.h"
#include "report.h"

namespace tessera::cli {

namespace {

std::int64_t parse_parts(const std::string& text) {
    return parse_number("--parts", text, 1, 1'000'000'000);
}

Value optional_count(std::int64_t count) {
    return count == 0 ? Value() : Value(count);
}

// ---- plan

struct PlanCommand {
    Planning planning;
    std::string parts;
    std::vector<std::pair<CLI::App*, Run>> runs;
};

int plan(Session& session, const PlanCommand& o) {
    session.planning = o.planning;
    if (!o.parts.empty()) session.planning->parts = parse_parts(o.parts);
    for (const auto& [command, run] : o.runs) {
        if (!command->parsed()) continue;
        for (const char* const name : {"--virtual", "--in-place", "--upgrade"}) {
            const CLI::Option* const option = command->get_option_no_throw(name);
            if (option != nullptr && option->count() > 0) throw invalid_argument("{}: it cannot be planned", name);
        }
        return run(session);
    }
    return exit_error;  // not reached: one is required
}

}  // namespace

int plan_transfer(Session& session, const TransferOptions& o) {
    require_planned(o.result);
    PlanOptions options{.copy = hierarchy_options(session, o), .parts = session.planning->parts};
    options.copy.open = nullptr;
    const Job job =
        plan_job(rounded_for(o.recipe, o.result, o.destination), o.destination, session.planning->file, options);
    session.clear_progress();
    std::uint64_t bytes = 0;
    std::uint64_t largest = 0;
    for (const JobArray& array : job.arrays) {
        const ArrayMetadata& m = array.plan.metadata;
        bytes += static_cast<std::uint64_t>(byte_count(m.shape, m.dtype.size()));
        largest = std::max(largest, static_cast<std::uint64_t>(byte_count(array.block, m.dtype.size())));
    }
    const std::string parts = job.parts == 0 ? "" : fmt::format(" in {}", count_text(job.parts, "part"));
    report(session,
           Value{{"path", path_value(session.planning->file)},
                 {"target", path_value(o.destination)},
                 {"units", job.units()},
                 {"parts", optional_count(job.parts)},
                 {"bytes", bytes},
                 {"unit_bytes", largest},
                 {"memory", job.memory}},
           fmt::format("planned {} ({}, at most {} each){} → {}", count_text(job.units(), "unit"), bytes_text(bytes),
                       bytes_text(largest), parts, session.planning->file));
    return exit_done;
}

Run declare_plan(CLI::App& app) {
    auto o = std::make_shared<PlanCommand>();
    app.add_option("--out", o->planning.file, "the file that describes the job")
        ->required()
        ->option_text("JOB.json (required)");
    app.add_option("--parts", o->parts, "into how many parts the units are divided, for `work --part`")
        ->option_text("N");
    app.require_subcommand(1);
    for (const Command& command : commands()) {
        static const std::vector<std::string> planned{"copy",   "rechunk", "stack",  "concat", "calc",
                                                      "reduce", "coarsen", "regrid", "pyramid"};
        if (std::ranges::count(planned, command.name) == 0) continue;
        CLI::App* sub = app.add_subcommand(command.name, command.about);
        sub->fallthrough();
        sub->formatter(std::make_shared<HelpFormatter>(fmt::format("plan {} --out JOB.json", command.usage)));
        o->runs.emplace_back(sub, command.declare(*sub));
    }
    return [o](Session& session) { return plan(session, *o); };
}

namespace {

// ---- work

struct WorkCommand {
    std::string file;
    std::string part, parts, units;
    bool claim = false;
    std::string lease = "60s", grace = "20s";
};

/// A number in the environment; nullopt if the variable is not set, or says that there is none.
std::optional<std::int64_t> environment_number(const char* name) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == 0 || std::string_view(text) == "undefined") return std::nullopt;
    const std::string_view all = text;
    std::int64_t number = 0;
    const auto end = std::from_chars(all.data(), all.data() + all.size(), number);
    if (end.ec != std::errc{} || end.ptr != all.data() + all.size() || number < 0) {
        throw invalid_argument("--part auto: {} is '{}', and no number", name, all);
    }
    return number;
}

struct ChosenPart {
    std::int64_t number = 0;
    std::int64_t of = 1;
    std::string why;
};

/// The task of an array of jobs, by the environment. How many tasks there are is the job's to say, because the
/// schedulers' counts are those of the last submission, which may be a few that failed.
void choose_task(ChosenPart& chosen, std::int64_t parts) {
    struct Task {
        const char* number;
        std::int64_t first;
    };
    constexpr Task tasks[] = {{"SLURM_ARRAY_TASK_ID", 0},
                              {"JOB_COMPLETION_INDEX", 0},
                              {"PBS_ARRAY_INDEX", 0},
                              {"LSB_JOBINDEX", 1},
                              {"SGE_TASK_ID", 1}};
    for (const Task& task : tasks) {
        const auto number = environment_number(task.number);
        if (!number || *number < task.first) continue;  // 0 where arrays begin with 1 is no array
        if (parts == 0) {
            throw invalid_argument("--part auto: {} is {}, but of how many parts is not known: say --parts",
                                   task.number, *number);
        }
        chosen = {*number - task.first, parts, fmt::format("{}={}", task.number, *number)};
        if (chosen.number >= parts) {
            throw invalid_argument("--part auto: {} is {}, but the job has {}", task.number, *number,
                                   count_text(parts, "part"));
        }
        return;
    }
}

/// The process in that task, which has a part of its part.
void choose_process(ChosenPart& chosen, std::int64_t parts) {
    struct Process {
        const char* number;
        const char* count;
    };
    constexpr Process processes[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                     {"PMI_RANK", "PMI_SIZE"},
                                     {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
                                     {"SLURM_PROCID", "SLURM_NTASKS"}};
    for (const Process& process : processes) {
        const auto number = environment_number(process.number);
        auto count = environment_number(process.count);
        if (!chosen.why.empty() && std::string_view(process.count) == "SLURM_NTASKS") return;  // the script, not a step
        if (!number) continue;
        if (!count && std::string_view(process.count) == "SLURM_STEP_NUM_TASKS") continue;
        if (!count && chosen.why.empty() && parts > 0) count = parts;
        if (!count) {
            throw invalid_argument("--part auto: {} is {}, but {} is not set: say --parts", process.number, *number,
                                   process.count);
        }
        if (*number >= *count) {
            throw invalid_argument("--part auto: {} is {} of {}", process.number, *number, *count);
        }
        chosen.why += fmt::format("{}{}={} of {}", chosen.why.empty() ? "" : ", ", process.number, *number, *count);
        chosen.number = chosen.number * *count + *number;
        chosen.of *= *count;
        return;
    }
}

/// The part that the environment names: the task of an array of jobs, and the process in it.
ChosenPart part_of_environment(std::int64_t parts) {
    ChosenPart chosen;
    choose_task(chosen, parts);
    choose_process(chosen, parts);
    if (!chosen.why.empty()) return chosen;
    throw invalid_argument(
        "--part auto: no scheduler names a part here (SLURM_ARRAY_TASK_ID, SLURM_PROCID, OMPI_COMM_WORLD_RANK, "
        "PMI_RANK, JOB_COMPLETION_INDEX, PBS_ARRAY_INDEX, LSB_JOBINDEX, SGE_TASK_ID); --part I/N or --claim does not "
        "need one");
}

std::vector<UnitRange> units_to_do(Session& session, const WorkCommand& o, const Job& job) {
    if (!o.units.empty())
        return in_context([] { return "--units"; }, [&] { return parse_unit_ranges(o.units, job.units()); });
    if (o.part.empty()) return {{0, job.units()}};
    const std::int64_t parts = o.parts.empty() ? job.parts : parse_parts(o.parts);
    if (o.part == "auto") {
        const ChosenPart chosen = part_of_environment(parts);
        session.note(fmt::format("part {} of {}, by {}", chosen.number, chosen.of, chosen.why));
        return {job.part(chosen.number, chosen.of)};
    }
    const std::size_t slash = o.part.find('/');
    constexpr int most = 1'000'000'000;
    const std::int64_t number = parse_number("--part", o.part.substr(0, slash), 0, most);
    if (slash == std::string::npos && parts == 0) {
        throw invalid_argument("--part {}: of how many? I/N, or --parts", o.part);
    }
    const std::int64_t of =
        slash == std::string::npos ? parts : parse_number("--part", o.part.substr(slash + 1), 1, most);
    return in_context([] { return "--part"; }, [&] { return std::vector{job.part(number, of)}; });
}

/// The units that this run does, in turn, and what became of them.
class Shift {
public:
    Shift(Session& session, const WorkCommand& o, IoOptions io)
        : session_(session), o_(o), io_(io), worker_(Job::open(o.file), session.store()) {}

    int run() {
        try {
            work();
            worker_.flush();
        } catch (const Error& e) {
            if (e.code() != ErrorCode::cancelled || !session_.is_preempted()) throw;
            ended_ = true;
            worker_.flush();
        }
        const int code = ended_ ? exit_preempted : failed_ > 0 ? exit_error : exit_done;
        report(session_,
               Value{{"path", path_value(o_.file)},
                     {"done", done_},
                     {"done_before", before_},
                     {"failed", failed_},
                     {"ended_early", ended_},
                     {"stored_bytes", stored_}},
               fmt::format("did {} ({}){}{}{}", count_text(done_, "unit"), bytes_text(stored_),
                           before_ > 0 ? fmt::format(", {} done before", before_) : "",
                           failed_ > 0 ? fmt::format(", {} failed", failed_) : "",
                           ended_ ? "; asked to end early: the same command goes on" : ""));
        return code;
    }

private:
    [[nodiscard]] bool must_end() const { return session_.is_preempted() || io_.stop.stop_requested(); }

    void work() {
        if (!o_.claim) {
            for (const UnitRange& range : units_to_do(session_, o_, worker_.job())) do_range(range);
            return;
        }
        const auto lease = parse_duration("--lease", o_.lease);
        if (lease.count() < 300) throw invalid_argument("--lease: expected at least 300ms, found {}", o_.lease);
        while (const auto range = worker_.claim(lease, [this] { return must_end(); })) do_range(*range);
        ended_ = ended_ || session_.is_preempted();
        if (io_.stop.stop_requested()) throw cancelled("stopped on request");
    }

    void do_range(const UnitRange& range) {
        for (std::int64_t unit = range.first; unit < range.end; ++unit) {
            if (worker_.is_done(unit)) {
                ++before_;
                continue;
            }
            if (must_end()) {
                if (io_.stop.stop_requested()) throw cancelled("stopped on request");
                ended_ = true;
                return;
            }
            do_unit(unit);
        }
    }

    void do_unit(std::int64_t unit) {
        try {
            const UnitDone done = worker_.run(unit, io_);
            if (done.before) {
                ++before_;
                return;
            }
            ++done_;
            stored_ += done.bytes;
            tell(Value{{"level", "unit"},
                       {"unit", unit},
                       {"files", done.files},
                       {"bytes", done.bytes},
                       {"seconds", static_cast<double>(done.took.count()) / 1000}},
                 fmt::format("unit {}: {}, {} in {:.2f} s", unit, count_text(done.files, "file"),
                             bytes_text(done.bytes), static_cast<double>(done.took.count()) / 1000));
        } catch (const SourceChanged&) {
            throw;  // no unit can be done any more
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled) throw;
            ++failed_;
            const std::string why = without_secrets(advised(e.what(), e.advice()));
            worker_.fail(unit, why);
            tell(Value{{"level", "unit"}, {"unit", unit}, {"failed", why}},
                 fmt::format("unit {} failed: {}", unit, why));
        }
    }

    void tell(const Value& value, const std::string& line) const {
        if (session_.options().quiet) return;
        fmt::print(stderr, "{}\n", session_.options().json ? json_text(value) : printable(line));
    }

    Session& session_;
    const WorkCommand& o_;
    IoOptions io_;
    JobWorker worker_;
    std::int64_t done_ = 0, before_ = 0, failed_ = 0;
    std::uint64_t stored_ = 0;
    bool ended_ = false;
};

int work(Session& session, const WorkCommand& o) {
    if (!o.part.empty() + !o.units.empty() + (o.claim ? 1 : 0) > 1) {
        throw invalid_argument("--part, --units and --claim: only one of them at a time");
    }
    IoOptions io = session.preemptible_io(parse_duration("--grace", o.grace));
    io.progress = nullptr;  // a line for each unit instead
    return Shift(session, o, io).run();
}

// ---- finish, job

struct FinishCommand {
    std::string file;
    bool read = false;
};

/// What is missing, ready for `--array=` and `work`.
std::string missing_text(const Job& job, const JobState& state) {
    const std::string units = unit_ranges_text(state.missing);
    std::string text = fmt::format("{} of {} missing: ", job.units() - state.done, count_text(job.units(), "unit"));
    return text + (job.parts > 0 ? "parts " + unit_ranges_text(parts_with(job, state.missing)) : "units " + units);
}

int state_code(const JobState& state) {
    return !state.failures.empty() ? exit_error : !state.missing.empty() ? exit_differences : exit_done;
}

std::string failures_text(const JobState& state) {
    std::string text;
    constexpr std::size_t shown = 10;
    for (std::size_t i = 0; i < state.failures.size() && i < shown; ++i) {
        text += fmt::format("\n  unit {} failed: {}", state.failures[i].unit, state.failures[i].message);
    }
    if (state.failures.size() > shown) text += fmt::format("\n  and {} more", state.failures.size() - shown);
    return text;
}

/// As report(), but the lines of a text stay lines.
void report_lines(Session& session, const Value& value, const std::string& text) {
    if (session.options().quiet) return;
    if (session.options().json) return print_json(value);
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        print(printable(text.substr(at, end - at)) + "\n");
        at = end + 1;
    }
}

int finish(Session& session, const FinishCommand& o) {
    const Job job = Job::open(o.file);
    const JobState state = finish_job(job, {.read = o.read, .io = session.io(), .store = session.store()});
    session.clear_progress();
    const std::string done = fmt::format("finished {}: {}", job.target, count_text(job.units(), "unit"));
    report_lines(session, job_state_value(job, state),
                 state.before     ? done + ", before this; `tessera verify` looks at what is there now"
                 : state.finished ? done
                                  : missing_text(job, state) + failures_text(state));
    if (state.finished) note_stale(session, {job.target});
    return state_code(state);
}

int show_job(Session& session, const FinishCommand& o) {
    const Job job = Job::open(o.file);
    const JobState state = job_state(job);
    const Value value = job_state_value(job, state);
    const Value& left = value.at("seconds_left");
    std::string text =
        fmt::format("{} → {}\n{} of {} done", o.file, job.target, state.done, count_text(job.units(), "unit"));
    if (state.finished) text += "; the target is finished";
    if (!left.is_null()) {
        text += fmt::format(", {} a second, {:.0f} s left", bytes_text(static_cast<std::uint64_t>(state.rate)),
                            left.as_double());
    }
    if (!state.missing.empty()) text += "\n" + missing_text(job, state) + failures_text(state);
    report_lines(session, value, text);
    return state_code(state);
}

}  // namespace

Run declare_work(CLI::App& app) {
    auto o = std::make_shared<WorkCommand>();
    app.add_option("JOB", o->file, "the file that `tessera plan` wrote")->required()->option_text(" ");
    app.add_option("--part", o->part, "part I of N, counted from 0, or auto: as the scheduler says")
        ->option_text("I/N|auto");
    app.add_option("--parts", o->parts, "the N of --part, if the job was planned without")->option_text("N");
    app.add_option("--units", o->units, "these units: 3-7,9")->option_text("RANGES");
    app.add_flag("--claim", o->claim, "units that nobody else is doing, until nothing is left");
    app.add_option("--lease", o->lease, "with --claim: after this time without a sign of life, others take over (60s)")
        ->option_text("TIME");
    app.add_option("--grace", o->grace, "how long a unit may go on after SIGTERM or SIGUSR1 (20s)")
        ->option_text("TIME");
    return [o](Session& session) { return work(session, *o); };
}

Run declare_finish(CLI::App& app) {
    auto o = std::make_shared<FinishCommand>();
    app.add_option("JOB", o->file, "the file that `tessera plan` wrote")->required()->option_text(" ");
    app.add_flag("--read", o->read, "read every stored file again, and compare it with what was written");
    return [o](Session& session) { return finish(session, *o); };
}

Run declare_job(CLI::App& app) {
    auto o = std::make_shared<FinishCommand>();
    app.add_option("JOB", o->file, "the file that `tessera plan` wrote")->required()->option_text(" ");
    return [o](Session& session) { return show_job(session, *o); };
}

}  // namespace tessera::cli
