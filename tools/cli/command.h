// A command of the program: a row in the table of commands.cpp, and a function that declares its options.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include <tessera/key_value_store.h>
#include <tessera/memory_account.h>
#include <tessera/parallel.h>

namespace CLI {
class App;
}

namespace tessera::cli {

/// Options common to all commands.
struct CommonOptions {
    int threads = 0;                           ///< 0: all cores
    std::uint64_t max_memory = 256ULL << 20U;  ///< bytes
    Durability durability = Durability::commit;
    bool process_locks = true;
    bool follow_links = false;
    bool break_seal = false;
    bool quiet = false;
    bool json = false;
};

/// With `tessera plan`: where the job is written, in place of what the command would do.
struct Planning {
    std::string file;
    std::int64_t parts = 0;  ///< 0: not said
};

/// One run of a command: its common options, interruption and progress.
class Session {
public:
    /// `words` is the command as it was typed.
    Session(const CommonOptions& common, std::string words);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    [[nodiscard]] const CommonOptions& options() const { return common_; }
    [[nodiscard]] const std::string& words() const { return words_; }
    /// Options for opening the places that the command changes.
    [[nodiscard]] StoreOptions store() const {
        return {.durability = common_.durability,
                .process_locks = common_.process_locks,
                .waiter = wait_notice_.get(),
                .follow_links = common_.follow_links,
                .break_seal = common_.break_seal};
    }
    /// For long work: from the first call on, SIGINT and SIGTERM request a stop, and progress is drawn.
    [[nodiscard]] IoOptions io();
    /// The same, but SIGTERM and SIGUSR1 only ask for an end in good order (is_preempted()), and request a stop when
    /// they come again or after `grace`.
    [[nodiscard]] IoOptions preemptible_io(std::chrono::milliseconds grace);
    [[nodiscard]] bool is_preempted() const;
    /// Set by `tessera plan`.
    std::optional<Planning> planning;
    bool changed = true;  ///< whether the log says so of a command that may change something
    /// Prints a note, which is not an error, in one line on stderr, unless --quiet.
    void note(std::string_view text);
    /// Removes the progress bar from the terminal, before other output.
    void clear_progress();

private:
    CommonOptions common_;
    std::string words_;
    MemoryScope memory_;  ///< applies --max-memory to the whole command
    std::stop_source stop_;
    StopScope stopping_{stop_.get_token()};  ///< ends waits for locks, too
    std::unique_ptr<class Interrupt> interrupt_;
    std::unique_ptr<class ProgressBar> progress_;
    std::unique_ptr<Waiter> wait_notice_;
};

/// Runs the command and returns the exit code; throws Error.
using Run = std::function<int(Session&)>;

struct Command {
    const char* name;
    const char* group;  ///< its heading in `tessera --help`
    const char* about;  ///< one line
    const char* usage;  ///< after "tessera "
    const char* notes;  ///< the end of `tessera NAME --help`: explanations and an example
    Run (*declare)(CLI::App& app);
    bool local = false;  ///< only for paths of this machine, not for those of other kinds of stores
};

[[nodiscard]] std::span<const Command> commands();

inline constexpr int exit_done = 0;
inline constexpr int exit_differences = 1;  ///< differences or damage found
inline constexpr int exit_error = 2;
inline constexpr int exit_recorded = 3;    ///< recorded but not yet in place: do not repeat it
inline constexpr int exit_preempted = 75;  ///< asked to end before all was done: start it again
inline constexpr int exit_interrupted = 130;

}  // namespace tessera::cli
