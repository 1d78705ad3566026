// What a command of the program is: a row in the table of commands.cpp, and a function that declares its options.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <tessera/key_value_store.h>
#include <tessera/memory_account.h>
#include <tessera/parallel.h>

namespace CLI {
class App;
}

namespace tessera::cli {

/// Options that every command takes.
struct CommonOptions {
    int threads = 0;                           ///< 0: all cores
    std::uint64_t max_memory = 256ULL << 20U;  ///< bytes
    Durability durability = Durability::commit;
    bool process_locks = true;
    bool follow_links = false;
    bool quiet = false;
    bool json = false;
};

/// One run of one command: its common options, and what work needs to be stopped and watched.
class Session {
public:
    explicit Session(const CommonOptions& common);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    [[nodiscard]] const CommonOptions& options() const { return common_; }
    /// How the places that the command changes are opened.
    [[nodiscard]] StoreOptions store() const {
        return {.durability = common_.durability,
                .process_locks = common_.process_locks,
                .waiter = wait_notice_.get(),
                .follow_links = common_.follow_links};
    }
    /// For long work: from the first call on, SIGINT and SIGTERM ask it to stop, and progress is drawn.
    [[nodiscard]] IoOptions io();
    /// One line on stderr about something that a person should know but that is no error; not when --quiet.
    void note(std::string_view text);
    /// Takes the progress bar off the terminal, before anything else is written.
    void clear_progress();

private:
    CommonOptions common_;
    MemoryScope memory_;  ///< --max-memory binds for all that the command does
    std::unique_ptr<class Interrupt> interrupt_;
    std::unique_ptr<class ProgressBar> progress_;
    std::unique_ptr<Waiter> wait_notice_;
};

/// Does the command and returns the exit code; throws Error.
using Run = std::function<int(Session&)>;

struct Command {
    const char* name;
    const char* group;  ///< its heading in `tessera --help`
    const char* about;  ///< one line
    const char* usage;  ///< after "tessera "
    const char* notes;  ///< the end of `tessera NAME --help`: explanations and an example
    Run (*declare)(CLI::App& app);
};

[[nodiscard]] std::span<const Command> commands();

inline constexpr int exit_done = 0;
inline constexpr int exit_differences = 1;  ///< differences or damage found
inline constexpr int exit_error = 2;
inline constexpr int exit_recorded = 3;  ///< not yet in place, but it takes effect: not to be repeated
inline constexpr int exit_interrupted = 130;

}  // namespace tessera::cli
