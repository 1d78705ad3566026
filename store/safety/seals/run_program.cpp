#include "run_program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <tessera/descriptor.h>
#include <tessera/error_text.h>
#include <tessera/parallel.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <span>
#include <thread>

namespace tessera {

namespace {

/// Returns 0, or errno.
int spawn(const std::vector<std::string>& words, const std::filesystem::path& input, int output, pid_t& child) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&how);
    if (!input.empty()) ::posix_spawn_file_actions_addopen(&files, 0, input.c_str(), O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files, output, 1);
    ::posix_spawn_file_actions_adddup2(&files, output, 2);
    // The program's own threads block signals, which a child would inherit.
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&how, &none);
    ::posix_spawnattr_setsigdefault(&how, &all);
    ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const int error = ::posix_spawnp(&child, arguments.front(), &files, &how, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&how);
    return error;
}

/// Returns the status of waitpid().
int wait_for(pid_t child, const std::string& name) {
    constexpr std::chrono::milliseconds piece(5);
    int status = 0;
    for (;;) {
        const pid_t ended = ::waitpid(child, &status, WNOHANG);
        if (ended == child) return status;
        if (ended < 0 && errno != EINTR) throw io_error("cannot wait for", name, errno);
        try {
            require_not_stopped();
        } catch (const Error&) {
            ::kill(child, SIGTERM);
            (void)::waitpid(child, &status, 0);
            throw;
        }
        std::this_thread::sleep_for(piece);
    }
}

}  // namespace

ProgramEnd run_program(const std::vector<std::string>& words, const std::filesystem::path& input,
                       const std::filesystem::path& folder, ProgramOutput shown) {
    constexpr mode_t own = 0600;
    constexpr std::size_t most = std::size_t{64} << 10;
    constexpr int by_signal = 128;
    const std::filesystem::path file = folder / "output";
    const Descriptor output(::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, own));
    if (!output) throw io_error("cannot write", file.string(), errno);
    pid_t child = 0;
    const int error = spawn(words, input, shown == ProgramOutput::shown ? STDERR_FILENO : output.get(), child);
    if (error == ENOENT) throw unsupported("the program {} is not installed, or not in PATH", words.front());
    if (error != 0) throw io_error("cannot start", words.front(), error);
    const int status = wait_for(child, words.front());
    ProgramEnd end{.code = WIFEXITED(status) ? WEXITSTATUS(status) : by_signal + WTERMSIG(status), .output = {}};
    end.output.resize(most);
    const auto have = pread_all(output.get(), std::as_writable_bytes(std::span(end.output)), 0);
    if (!have) throw io_error("cannot read", file.string(), errno);
    end.output.resize(*have);
    return end;
}

}  // namespace tessera
