// The program `tessera`: finds the command, runs it, and turns what happens into messages and exit codes.
#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>

#include <tessera/address.h>
#include <tessera/array_file.h>
#include <tessera/error_text.h>
#include <tessera/outside.h>
#include <tessera/own_helper.h>
#include <tessera/quantities.h>
#include <tessera/remote_options.h>
#include <tessera/secrets.h>
#include <tessera/store_kind.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "advice.h"
#include "command.h"
#include "help.h"
#include "interrupt.h"
#include "licences.h"
#include "log.h"
#include "made_folder.h"
#include "options.h"
#include "progress.h"
#include "report.h"
#include "settings.h"

namespace tessera::cli {

namespace {

/// Notes which run the program waits for, and what the library has to say. SIGINT and SIGTERM end the wait.
class WaitNotice final : public Waiter {
public:
    explicit WaitNotice(Session& session) : session_(session) {}
    void waits(const std::filesystem::path& destination, std::string_view builder) override {
        session_.note(
            fmt::format("waiting for {}, which {} is creating; Ctrl-C stops waiting", destination.string(), builder));
    }
    void notes(std::string_view text) override { session_.note(text); }
    [[nodiscard]] bool stopped() const override { return session_.io().stop.stop_requested(); }

private:
    Session& session_;
};

/// Memory granted in addition to --max-memory, for small objects. The documentation allows the program 16 MiB more than
/// --max-memory, and up to 14 of these are code. Files are read in pieces whose size does not depend on the budget, so
/// a very small budget is granted what these take.
std::uint64_t beside(std::uint64_t max_memory) {
    constexpr std::uint64_t small = std::uint64_t{1} << 20U;
    constexpr std::uint64_t least = std::uint64_t{4} << 20U;
    return std::max(small, least - std::min(least, max_memory));
}

}  // namespace

Session::Session(const CommonOptions& common, std::string words)
    : common_(common),
      words_(std::move(words)),
      memory_(std::make_shared<MemoryAccount>(common.max_memory, beside(common.max_memory))),
      wait_notice_(std::make_unique<WaitNotice>(*this)) {}
Session::~Session() = default;

IoOptions Session::io() {
    if (!interrupt_) interrupt_ = std::make_unique<Interrupt>(stop_);
    if (!progress_ && !common_.quiet && ProgressBar::wanted()) progress_ = std::make_unique<ProgressBar>();
    return {.threads = common_.threads,
            .stop = stop_.get_token(),
            .progress = progress_.get(),
            .max_memory = common_.max_memory};
}

IoOptions Session::preemptible_io(std::chrono::milliseconds grace) {
    interrupt_ = std::make_unique<Interrupt>(stop_, grace);
    return io();
}

bool Session::is_preempted() const {
    return interrupt_ && interrupt_->is_preempted();
}

void Session::note(std::string_view text) {
    if (common_.quiet) return;
    clear_progress();
    const std::string shown = without_secrets(without_typed_secrets(text));
    if (common_.json) {
        fmt::print(stderr, "{}\n", note_json(shown));
    } else {
        fmt::print(stderr, "tessera: note: {}\n", printable(shown));
    }
}

void Session::clear_progress() {
    if (progress_) progress_->clear();
}

namespace {

/// The common options as typed.
struct CommonTexts {
    std::string threads;
    std::string max_memory;
    std::string durability;
    std::string cache;
    std::string cache_size;
    std::string cache_age;
    std::string absent;
    bool offline = false;
    bool verbose = false;
    bool no_locks = false;
    bool follow_links = false;
    bool allow_outside = false;
    bool in_process = false;
    bool break_seal = false;
    bool no_log = false;
    bool quiet = false;
    bool json = false;

    void declare(CLI::App& app) {
        declare_work(app);
        declare_trust(app);
        declare_network(app);
        constexpr const char* group = common_options_group;
        app.add_flag(
               "--break-seal", break_seal,
               "allow changes to sealed data: until these are sealed again, `tessera repair` takes no difference\n"
               "for damage, and restores only files that are named")
            ->group(group);
        app.add_flag("--no-log", no_log, "do not record the command in the log of the array or group (`tessera log`)")
            ->group(group);
        app.add_flag("--json", json, "report as JSON, and errors and notes as JSON on stderr, a line each")
            ->group(group);
        app.add_flag("--quiet", quiet, "no progress, no report")->group(group);
        app.set_help_flag("-h,--help", "this text")->group(group);
    }

    void declare_work(CLI::App& app) {
        constexpr const char* group = common_options_group;
        app.add_option("--threads", threads, "threads to work with (default: all cores)")
            ->option_text("N")
            ->group(group);
        app.add_option("--max-memory", max_memory,
                       "memory for data (default 256M); K M G T and MiB count in 1024s, MB in 1000s; a command\nthat "
                       "needs more "
                       "fails, and says how much")
            ->option_text("512M")
            ->group(group);
        app.add_option("--durability", durability,
                       "when data reach the disk: none (when the system likes), commit (all, at the end), each (every\n"
                       "value at once) (default commit)")
            ->option_text("commit")
            ->group(group);
        app.add_flag("--no-locks,--single-writer", no_locks,
                     "for file systems without locks and servers without conditions: nobody else writes, and nothing\n"
                     "keeps others away")
            ->group(group);
    }

    void declare_trust(CLI::App& app) {
        constexpr const char* group = common_options_group;
        app.add_flag("--follow-links", follow_links,
                     "read, write and delete through links below PATH that lead out of an array; removing and moving\n"
                     "remove and move the links themselves")
            ->group(group);
        app.add_flag(
               "--allow-outside", allow_outside,
               "references (x.refs.json) may lead to files outside of the folder that they lie in, and HDF5 files\n"
               "to other files")
            ->group(group);
        app.add_flag(
               "--in-process", in_process,
               "does nothing, and is accepted for older scripts: libhdf5 and libtiff work in a program of their own")
            ->group(group);
    }

    void declare_network(CLI::App& app) {
        constexpr const char* group = common_options_group;
        app.add_option("--cache", cache,
                       "keep what is read over the network in this folder, for all programs of yours; \"\": do not")
            ->option_text("DIR")
            ->group(group);
        app.add_option("--cache-size", cache_size, "bytes that the cache may take (default 10G)")
            ->option_text("10G")
            ->group(group);
        app.add_option("--cache-age", cache_age,
                       "how long a kept answer serves without asking the server whether it is still valid: 90s, 15m,\n"
                       "6h, 7d (default 0: it asks each time)")
            ->option_text("6h")
            ->group(group);
        app.add_option(
               "--absent", absent,
               "the status by which servers say that there is no such value: 403, as S3 does where the bucket may\n"
               "not be listed, or 401 (else these are errors)")
            ->option_text("403")
            ->group(group);
        if (app.get_option_no_throw("--verbose") == nullptr) {  // `verify` has one that says more of everything
            app.add_flag("--verbose", verbose,
                         "a line on stderr for each request over the network: what, the status, bytes, time")
                ->group(group);
        }
        app.add_flag("--offline", offline, "ask nothing over the network: read from the cache alone")->group(group);
    }

    [[nodiscard]] CommonOptions parsed() const {
        CommonOptions common{.process_locks = !no_locks,
                             .follow_links = follow_links,
                             .break_seal = break_seal,
                             .quiet = quiet,
                             .json = json};
        if (const auto s = chosen(threads, "--threads", "threads")) {
            common.threads = parse_number(s->from, s->value, 1, 1024);
        }
        if (const auto s = chosen(durability, "--durability", "durability")) {
            common.durability = in_context([&] { return s->from; }, [&] { return durability_named(s->value); });
        }
        if (const auto s = chosen(max_memory, "--max-memory", "max_memory")) {
            common.max_memory = parse_bytes(s->from, s->value);
        }
        return common;
    }

    /// How places over the network are reached: as the settings say, unless an option says something else.
    void set_remote(const CLI::App& command) const {
        RemoteOptions remote = remote_settings();
        if (command.count("--cache") > 0) remote.cache = cache;
        if (!cache_size.empty()) remote.cache_bytes = parse_bytes("--cache-size", cache_size);
        if (!cache_age.empty()) remote.cache_age = parse_duration("--cache-age", cache_age);
        remote.offline = remote.offline || offline;
        if (!absent.empty()) remote.absent_status = parse_absent_status("--absent", absent);
        if (command.count("--verbose") > 0) {
            remote.log = [](std::string_view line) { fmt::print(stderr, "tessera: {}\n", printable(line)); };
        }
        if (command.count("--quiet") == 0) {
            remote.note = [](std::string_view text) { fmt::print(stderr, "tessera: note: {}\n", printable(text)); };
        }
        set_remote_options(remote);
    }

private:
    /// The option if it was typed, else the setting.
    static std::optional<Setting> chosen(const std::string& typed, const char* option, const char* name) {
        return typed.empty() ? setting(name) : Setting{.value = typed, .from = option};
    }
};

/// Whether --json is among the words, even if the others cannot be parsed.
bool wants_json(int argc, char** argv) {
    for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
        if (std::string_view(argv[i]) == "--json") return true;
    }
    return false;
}

/// Of an option that other programs have, the name here if the command has it; otherwise the same word.
std::string option_elsewhere(const std::string& typed, const std::vector<std::string>& names) {
    static const std::map<std::string_view, std::string_view> elsewhere{
        {"--compressor", "--codec"}, {"--compression", "--codec"}, {"--compress", "--codec"},
        {"--slice", "--sel"},        {"--region", "--sel"},        {"--dim", "--axis"},
        {"--type", "--dtype"},       {"--force", "--overwrite"},   {"--jobs", "--threads"},
        {"--workers", "--threads"},  {"--zarr-format", "--format"}};
    const auto known = elsewhere.find(typed);
    if (known == elsewhere.end() || std::ranges::count(names, known->second) == 0) return typed;
    return std::string(known->second);
}

/// What the words of a command may have meant: an option of these names, or a selection cut into words.
std::string meant_by(const std::vector<std::string>& words, const std::vector<std::string>& names) {
    const auto unknown = std::ranges::find_if(words, [&](const std::string& word) {
        const std::string typed = word.substr(0, word.find('='));
        return typed.starts_with("--") && typed != "--" && std::ranges::count(names, typed) == 0;
    });
    std::string near;
    if (unknown != words.end()) {
        near = did_you_mean(option_elsewhere(unknown->substr(0, unknown->find('=')), names), names);
    }
    const bool cut = std::ranges::any_of(words, [](const std::string& w) {
        const bool slice = w.find(':') != w.npos && w.find_first_not_of("0123456789-:,.") == w.npos;
        return w.size() > 1 && (w.ends_with(',') || slice);
    });
    return near.empty() && cut ? "; a selection is one word, in quotes: '98:102, 148:152'" : near;
}

/// What could not be parsed, and what to do.
[[noreturn]] void refuse_words(const CLI::App& app, const std::vector<std::string>& words, const CLI::ParseError& e) {
    const auto used = app.get_subcommands();
    if (!used.empty()) {
        const std::string name = used.front()->get_name();
        throw invalid_argument("{}: {}{} (`tessera {} --help` explains)", name, e.what(),
                               meant_by(words, option_names(*used.front())), name);
    }
    if (words.empty()) throw invalid_argument("no command given; `tessera --help` lists them");
    std::vector<std::string> names{"help", "version"};
    for (const Command& command : commands()) names.emplace_back(command.name);
    // Names that other programs use for a command.
    static const std::map<std::string_view, std::string_view> elsewhere{
        {"convert", "copy"}, {"cp", "copy"},     {"ls", "tree"},     {"list", "tree"},
        {"cat", "get"},      {"delete", "rm"},   {"plot", "view"},   {"show", "view"},
        {"zip", "copy"},     {"mean", "reduce"}, {"merge", "concat"}};
    if (const auto known = elsewhere.find(words[0]); known != elsewhere.end()) {
        throw invalid_argument("unknown command '{}': use `tessera {}`; `tessera --help` lists all commands", words[0],
                               known->second);
    }
    throw invalid_argument("'{}' is no command{}; `tessera --help` lists them", words[0],
                           did_you_mean(words[0], names));
}

/// The parts of `tessera --help` other than the commands.
void describe(CLI::App& app) {
    app.formatter(std::make_shared<HelpFormatter>("COMMAND … [options]"));
    app.set_help_flag("-h,--help", "this text");
    app.set_version_flag("-V,--version", "tessera " TESSERA_VERSION TESSERA_LEFT_OUT,
                         "the version, and what this build leaves out");
    app.add_flag_callback(
        "--licenses", [] { throw CLI::Success(std::string(third_party_licences()), CLI::ExitCodes::Success); },
        "the licences of the libraries in this program");
    app.require_subcommand(1);
    app.footer(
        "`tessera help COMMAND` explains a command, with an example; `tessera help options` the\n"
        "options that every command takes, `tessera help settings` the defaults that you can set.\n"
        "A path is an array directory, or an array file: data.npy, data.npz::member.\n"
        "Selections are NumPy's slices, in quotes: '10:20, ::2, 5, ...', or name dimensions: 'time=2020-01:2020-06,\n"
        "lat=45:50' takes values of the coordinates, both ends included, 'lat~45' the nearest, 'z@4:9' indices.\n"
        "Longitudes go around the earth: 'lon=-10:40' of 0 to 359 takes both parts, as -10 to 40.\n"
        "--json: one JSON document on stdout; NaN and infinities are strings, integers have all\n"
        "their digits, dates are ISO 8601 text, and a member has the same type in every run, or is\n"
        "null. Errors and notes are JSON objects on stderr, one a line (tools/docs/json.md).\n"
        "Exit codes: 0 done, 1 differences or damage found, 2 error, 3 recorded and will take\n"
        "effect, do not repeat it, 75 asked to end early, start it again, 130 interrupted.");
}

/// Runs the command that was typed, and notes what it changed.
int run_command(Session& session, const Run& command, const MadeFolder& folder, std::optional<ChangeNote> note) {
    try {
        const int code = command(session);
        if (note && session.changed) note->write(code);
        folder.report(session);
        flush_output();
        return code;
    } catch (const Error& e) {
        if (note && e.code() == ErrorCode::recorded) note->write(0);
        // For a program that reads the JSON but not the exit code: it must not repeat the command.
        if (e.code() == ErrorCode::recorded && session.options().json) {
            Value value = Value::object();
            value.set("recorded", true);
            value.set("in_place", false);
            value.set("message", path_value(message_of(e)));
            print_json(value);
            flush_output();
        }
        throw;
    }
}

/// "; did you mean 'dem.zarr'?" where a typed path is not there, and one beside it is named alike; else empty.
std::string path_meant(const std::vector<std::string>& typed, std::string_view message) {
    namespace fs = std::filesystem;
    constexpr std::size_t most = 10'000;
    for (const std::string& word : typed) {
        std::error_code ignored;
        const fs::path path = split_array_path(word).path;
        const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
        if (word.starts_with('-') || message.find(word) == std::string_view::npos || !path.has_filename()) continue;
        if (fs::exists(fs::symlink_status(path, ignored)) || !fs::is_directory(folder, ignored)) continue;
        std::vector<std::string> names;
        for (fs::directory_iterator at(folder, ignored), end; at != end && names.size() < most; at.increment(ignored)) {
            names.push_back(at->path().filename().string());
            if (names.back().front() != path.filename().string().front()) names.pop_back();  // too far
        }
        if (std::string near = did_you_mean(path.filename().string(), names); !near.empty()) return near;
    }
    return {};
}

/// Called before anything is done: refuses a path in another kind of store, by name, if the command needs a folder of
/// this machine.
void require_local_paths(const CLI::App& command) {
    const auto row = std::ranges::find(commands(), command.get_name(), &Command::name);
    if (row == commands().end() || !row->local) return;
    for (const CLI::Option* option : command.get_options()) {
        if (!option->get_positional()) continue;
        for (const std::string& word : option->results()) {
            require_local(split_array_path(word).path, fmt::format("`{}`", row->name));
        }
    }
}

/// The paths that are typed may be addresses of other programs.
void take_addresses(CLI::App& command) {
    constexpr std::array paths{"PATH", "SRC", "DST", "A", "B", "FILE", "OUT", "FILES…"};
    for (CLI::Option* option : command.get_options()) {
        if (std::ranges::count(paths, option->get_name(true)) != 0) option->transform(own_path);
    }
}

/// The commands and their options; what each that was typed does is in `runs`.
void declare_commands(CLI::App& app, CommonTexts& texts, const std::vector<std::string>& typed,
                      std::vector<std::pair<const CLI::App*, Run>>& runs) {
    const bool helps = !typed.empty() && typed.front() == "help";
    for (const Command& command : commands()) {
        CLI::App* sub = app.add_subcommand(command.name, command.about);
        sub->group(command.group);
        // To declare the options of all commands takes longer than to run most of them.
        if (!helps && std::ranges::count(typed, command.name) == 0) continue;
        sub->formatter(std::make_shared<HelpFormatter>(command.usage));
        sub->footer(command.notes);
        runs.emplace_back(sub, command.declare(*sub));
        take_addresses(*sub);
        texts.declare(*sub);
    }
}

/// False where --help, --version or --licenses was asked for, and is answered.
bool parse_words(CLI::App& app, const std::vector<std::string>& words) {
    try {
        app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // as CLI11 takes them: the last one first
        return true;
    } catch (const CLI::CallForVersion&) {
        print(app.version() + "\n");
    } catch (const CLI::CallForHelp&) {
        const CLI::App* shown = &app;
        while (!shown->get_subcommands().empty()) shown = shown->get_subcommands().front();
        print(shown->help());
    } catch (const CLI::Success& asked) {
        print(asked.what());
    } catch (const CLI::ParseError& e) {
        refuse_words(app, words, e);
    }
    flush_output();
    return false;
}

int run_parsed(const CLI::App& sub, const Run& command, CommonTexts& texts, const std::vector<std::string>& typed) {
    allow_outside(texts.allow_outside);
    allow_links(texts.follow_links);
    Session session(texts.parsed(), command_text(typed));
    if (texts.in_process) session.note("--in-process does nothing: libhdf5 and libtiff work in a program of their own");
    require_local_paths(sub);
    texts.set_remote(sub);
    std::optional<ChangeNote> note;
    if (!texts.no_log) note.emplace(sub, typed);
    try {
        return run_command(session, command, MadeFolder(sub), std::move(note));
    } catch (const Error& e) {
        const std::string near = e.code() == ErrorCode::not_found ? path_meant(typed, e.what()) : "";
        if (near.empty()) throw;
        throw e.reworded(e.code(), e.what() + near);
    }
}

int run(int argc, char** argv) {
    CLI::App app("Chunked, compressed N-dimensional arrays that do not fit in memory.");
    describe(app);
    CommonTexts texts;
    std::vector<std::pair<const CLI::App*, Run>> runs;
    const std::vector<std::string> typed(argv + std::min(argc, 1), argv + argc);
    hide_secrets_of(typed);
    expect_files(typed);
    declare_commands(app, texts, typed, runs);
    const std::vector<std::string> words = plain_words(app, typed);
    if (const auto text = help_topic(app, typed)) {
        print(*text);
        flush_output();
        return exit_done;
    }
    if (!parse_words(app, words)) return exit_done;

    const auto run = std::ranges::find_if(runs, [](const auto& one) { return one.first->parsed(); });
    if (run == runs.end()) return exit_error;  // not reached: one command is required
    return run_parsed(*run->first, run->second, texts, typed);
}

/// Raises the limit of open files as far as the system allows. A hierarchy is made and locked array by array, and each
/// array takes a few.
void allow_many_files() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

void set_up_process() {
    allow_many_files();
#ifdef __GLIBC__
    // Returns freed memory to the system, because --max-memory does not count it any more. By default the C library
    // raises these thresholds to 32 and 64 MiB for each of its heaps.
    constexpr int kept = 4 << 20;
    (void)::mallopt(M_MMAP_THRESHOLD, kept);
    (void)::mallopt(M_TRIM_THRESHOLD, kept);
#endif
    ::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write, and ends the program quietly
    ::signal(SIGXFSZ, SIG_IGN);  // so is a file beyond the user's limit, which is reported
}

}  // namespace
}  // namespace tessera::cli

int main(int argc, char** argv) {
    using namespace tessera;
    using namespace tessera::cli;
#ifdef TESSERA_ONE_FILE
    if (is_helper(argc, argv)) return serve_as_helper(argc, argv);
    be_own_helper();
#endif
    set_up_process();
    const bool json = wants_json(argc, argv);
    try {
        return run(argc, argv);
    } catch (const ClosedPipe&) {
        return exit_done;
    } catch (const Error& e) {
        return complain(json, e);
    } catch (const std::bad_alloc&) {
        return complain(json, "no_memory", exit_error,
                        "not enough memory; try a smaller --max-memory, a smaller selection or fewer --threads");
    } catch (const std::exception& e) {
        return complain(json, "internal", exit_error, e.what());
    }
}
