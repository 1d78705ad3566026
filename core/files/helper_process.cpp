#include "helper_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <tessera/error_text.h>
#include <tessera/fork.h>
#include <tessera/memory_account.h>
#include <tessera/parallel.h>
#include <tessera/system_calls.h>

#include "foreign_socket.h"
#include "wire.h"

namespace tessera {

namespace {

std::string_view name_of(ForeignLibrary library) {
    switch (library) {
        case ForeignLibrary::hdf5:
            return "libhdf5";
        case ForeignLibrary::tiff:
            return "libtiff";
        case ForeignLibrary::grib:
            break;
    }
    return "ecCodes";
}

// ---- starting one

/// Whether a helper inherits this variable of the environment. Libraries and sanitizers read these; none is a key or
/// secret.
bool is_for_helpers(std::string_view variable) {
    const std::string_view name = variable.substr(0, variable.find('='));
    constexpr std::array<std::string_view, 8> begins{"LANG",     "LC_",   "LD_",           "HDF5_",
                                                     "ECCODES_", "GCOV_", "LLVM_PROFILE_", "MALLOC_"};
    return name == "TZ" || name.ends_with("SAN_OPTIONS") ||
           std::ranges::any_of(begins, [&](std::string_view begin) { return name.starts_with(begin); });
}

/// Starts a program with the two files open as helper_socket and helper_memory and no others; returns 0, or errno.
/// Its session is its own: Ctrl-C reaches this process alone.
int spawn(const std::string& path, int socket, int memory, pid_t& child) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&how);
    ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
    ::posix_spawn_file_actions_adddup2(&files, 0, 1);
    if (!sanitized) ::posix_spawn_file_actions_adddup2(&files, 0, 2);
    ::posix_spawn_file_actions_adddup2(&files, socket, helper_socket);
    ::posix_spawn_file_actions_adddup2(&files, memory, helper_memory);
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&how, &none);
    ::posix_spawnattr_setsigdefault(&how, &all);
    ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    const std::string build(build_id());
    const std::array<const char*, 4> arguments{helper_name, helper_argument, build.c_str(), nullptr};
    std::vector<char*> environment;
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
        if (is_for_helpers(*variable)) environment.push_back(*variable);
    }
    environment.push_back(nullptr);
    const int error = ::posix_spawn(&child, path.c_str(), &files, &how, const_cast<char* const*>(arguments.data()),
                                    environment.data());
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&how);
    return error;
}

/// Starts the first program that can be started; returns its path.
std::string spawn_helper(ForeignLibrary library, int socket, int memory, pid_t& child) {
    std::string tried;
    for (const std::string& path : helper_places(library)) {
        const int error = ::access(path.c_str(), X_OK) != 0 ? errno : spawn(path, socket, memory, child);
        if (error == 0) return path;
        tried += fmt::format("{}{} ({})", tried.empty() ? "" : ", ", path, std::generic_category().message(error));
    }
    throw Error(ErrorCode::io,
                fmt::format("{} works in the program {}, which cannot be started: tried {}; install it there, or let "
                            "the environment variable TESSERA_HELPERS name the folder that it lies in",
                            name_of(library), helper_program(library), tried));
}

/// A file of this process above those that a helper has.
int raised(int file) {
    const int high = ::fcntl(file, F_DUPFD_CLOEXEC, helper_memory + 1);
    const int why = errno;
    ::close(file);
    errno = why;
    return high;
}

/// Files that lead to helpers. A fork of this process closes them, so that a helper's connection ends with its parent.
std::vector<int>& files_of_helpers() {
    static auto& files = *[] {
        after_fork_in_child([] {
            for (const int file : files_of_helpers()) ::close(file);
            files_of_helpers().clear();
        });
        return new std::vector<int>;
    }();
    return files;
}

/// Both ends of a connection, and memory to share: it cannot become shorter, so that reading it ends in no signal.
struct HelperFiles {
    int near = -1, far = -1, memory = -1;

    explicit HelperFiles(ForeignLibrary library) {
        std::array<int, 2> ends{-1, -1};
        const std::lock_guard lock(library_mutex(LibraryMutex::readers));
        memory = os::shared_memory(helper_name);
        if (memory >= 0) memory = raised(memory);
        if (memory < 0) throw io_error("making memory to share for", std::string(name_of(library)), errno);
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0) far = raised(ends[1]);
        if (far < 0) {
            const int why = errno;
            ::close(memory);
            if (ends[0] >= 0) ::close(ends[0]);
            throw io_error("making a socket for", std::string(name_of(library)), why);
        }
        near = ends[0];
        files_of_helpers().insert(files_of_helpers().end(), {near, memory});
    }
    /// For this process.
    static void forget(std::initializer_list<int> gone) {
        const std::lock_guard lock(library_mutex(LibraryMutex::readers));
        for (const int file : gone) {
            if (file >= 0 && std::erase(files_of_helpers(), file) > 0) ::close(file);
        }
    }
};

}  // namespace

Error error_of(const ForeignError& error) {
    if (error.code < ErrorCode{} || error.code > ErrorCode::sealed) throw corrupt("an error is of no kind");
    Error made(error.code, error.text);
    for (const Advice& advice : error.advice) made = made.advising(advice.action, advice.effect, advice.value);
    return made;
}

/// A helper of this process. Thread rule: one thread at a time.
class HelperProcess {
public:
    /// Does not wait until it has started.
    explicit HelperProcess(ForeignLibrary library) : library_(library), owner_(process_number()) {
        const HelperFiles files(library);
        socket_ = files.near;
        memory_ = files.memory;
        space_.emplace(memory_);
        try {
            path_ = spawn_helper(library, files.far, memory_, child_);
        } catch (...) {
            ::close(files.far);
            end();
            throw;
        }
        ::close(files.far);
    }
    ~HelperProcess() { end(); }
    HelperProcess(const HelperProcess&) = delete;
    HelperProcess& operator=(const HelperProcess&) = delete;

    [[nodiscard]] ForeignLibrary library() const { return library_; }
    /// False once it has crashed, and in a fork of the process that began it.
    [[nodiscard]] bool good() const { return socket_ >= 0 && owner_ == process_number(); }

    Buffer call(const HelperWish& wish) {
        const MemoryHold held(wish.space);
        std::optional<Error> error;
        Buffer bytes;
        try {
            if (!greeted_) greet();
            bytes = exchange(wish, error);
            if (!error && wish.read) wish.read(WireReader(bytes));
        } catch (...) {
            end();  // what it still says answers no later request
            throw;
        }
        if (error) throw *error;
        if (wish.take) wish.take(space_->map(wish.space));
        if (used_ > kept_space) {
            space_->map(0);
            (void)os::punch(memory_, 0, std::exchange(used_, 0));
        }
        return bytes;
    }

    /// Whether it waits for a request, or still starts; it may have been killed meanwhile.
    [[nodiscard]] bool waits() const {
        if (!greeted_) return good();
        pollfd wait{.fd = socket_, .events = POLLIN, .revents = 0};
        return good() && ::poll(&wait, 1, 0) == 0;
    }

    /// Ends it at once.
    void end() noexcept {
        space_.reset();
        const int memory = std::exchange(memory_, -1), socket = std::exchange(socket_, -1);
        if (owner_ != process_number()) return;
        HelperFiles::forget({memory, socket});
        if (child_ <= 0) return;
        (void)::kill(child_, SIGKILL);
        int status = 0;
        while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
        }
        status_ = status;
        child_ = -1;
    }

private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::int64_t second = 1'000'000'000, least_seconds = 3;

    /// Reads what a helper says first.
    void greet() {
        const HelperWish begin{.library = library_, .file = "/"};
        ForeignHead hello;
        constexpr std::uint64_t longest = 200;
        const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        if (!receive(&hello, sizeof hello, begin, until)) {
            wait_for_end();
            end();
            throw Error(ErrorCode::io, fmt::format("{} works in the program {}, which ended before it was asked ({}): "
                                                   "start it by hand to see why, or install it again",
                                                   name_of(library_), path_, how_it_ended()));
        }
        if (hello.kind != ForeignHead::Kind::hello) hello.size = 0;
        std::string build(static_cast<std::size_t>(std::min(hello.size, longest)), ' ');
        if (!receive(build.data(), build.size(), begin, until) || build != build_id()) {
            throw Error(ErrorCode::io,
                        fmt::format("{} works in the program {}, which is of another build ({}) than this library "
                                    "({}): install both of one build",
                                    name_of(library_), path_, build, build_id()));
        }
        constexpr std::uint64_t most = std::uint64_t{4} << 30U, unknown = std::uint64_t{512} << 20U;
        memory_at_start_ = hello.place == 0 ? unknown : std::min(hello.place, most);
        greeted_ = true;
    }

    /// Limits the memory that libraries may take: what the helper had at its start, and so much more.
    void limit_memory(std::uint64_t more) {
        constexpr std::uint64_t beside = std::uint64_t{192} << 20U;  // heaps of the C library, plug-ins
        constexpr std::uint64_t step = std::uint64_t{1} << 20U;      // no call for each small request
        if (sanitized || more > UINT64_MAX / 2) more = UINT64_MAX / 2;
        const std::uint64_t wanted = (memory_at_start_ + beside + more) / step;
        if (std::exchange(limited_to_, wanted) != wanted) (void)os::limit_memory(child_, wanted * step, sanitized);
    }

    /// Returns the answer, or what the helper threw.
    Buffer exchange(const HelperWish& wish, std::optional<Error>& error) {
        ForeignHead head{.kind = ForeignHead::Kind::request,
                         .size = wish.request.size(),
                         .place = static_cast<std::uint64_t>(wish.task),
                         .space = wish.space,
                         .source = std::bit_cast<std::uintptr_t>(wish.source)};
        if (const auto& account = MemoryAccount::current()) {
            head.limit = account->limit();
            head.used = std::min(account->used() - std::min(wish.granted, account->used()), head.limit);
        }
        limit_memory(head.limit == UINT64_MAX ? UINT64_MAX : head.limit - head.used + head.space);
        share(wish);
        spent_ = -1;
        if (!send_all(socket_, head, wish.request)) fail();
        ForeignHead reply;
        for (;;) {
            if (!receive(&reply, sizeof reply, wish)) fail();
            if (reply.kind != ForeignHead::Kind::read) break;
            send_source(reply, wish);
        }
        if (reply.kind != ForeignHead::Kind::answer && reply.kind != ForeignHead::Kind::error) refuse();
        Buffer bytes = receive_bytes(reply.size, wish);
        if (reply.kind == ForeignHead::Kind::error) error = error_of(WireReader(bytes).next<ForeignError>());
        return bytes;
    }

    void share(const HelperWish& wish) {
        if (wish.space > sized_) {
            if (::ftruncate(memory_, static_cast<off_t>(wish.space)) != 0) {
                throw io_error("getting memory to share for", std::string(name_of(library_)), errno);
            }
            sized_ = wish.space;
        }
        used_ = std::max(used_, wish.space);
        if (wish.give) wish.give(space_->map(wish.space));
    }

    /// Takes no memory for what does not come.
    Buffer receive_bytes(std::uint64_t size, const HelperWish& wish) {
        constexpr std::uint64_t piece = std::uint64_t{64} << 20U;
        Buffer bytes;
        while (bytes.size() < size) {
            const std::size_t begin = bytes.size();
            bytes.resize(begin + static_cast<std::size_t>(std::min(piece, size - begin)));
            if (!receive(bytes.data() + begin, bytes.size() - begin, wish)) fail();
        }
        return bytes;
    }

    /// In nanoseconds.
    [[nodiscard]] std::int64_t processor_time() const {
        clockid_t clock{};
        timespec time{};
        if (::clock_getcpuclockid(child_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
        return time.tv_sec * second + time.tv_nsec;
    }

    /// Of the processor, for a request. A damaged file of a few bytes can take any time.
    static std::int64_t most_seconds(const HelperWish& wish) {
        constexpr std::int64_t most = 120, bytes_in_second = 1 << 20;
        struct stat s {};
        std::uint64_t bytes = wish.space + wish.granted;
        if (wish.source != nullptr) {
            bytes += wish.source->size();
        } else {
            if (wish.file == nullptr || ::stat(wish.file, &s) != 0) return most;
            bytes += static_cast<std::uint64_t>(s.st_size);
        }
        return std::min(most, least_seconds + static_cast<std::int64_t>(bytes / bytes_in_second));
    }

    /// Whether it waits for something that is no disk: a lock, a pipe in the place of a file.
    [[nodiscard]] bool sleeps() const {
        std::ifstream file(fmt::format("/proc/{}/stat", child_));
        std::string stat;
        std::getline(file, stat);
        const std::size_t name_end = stat.rfind(") ");
        return name_end != std::string::npos && name_end + 2 < stat.size() && stat[name_end + 2] == 'S';
    }

    static std::int64_t most_idle_seconds() {
        constexpr int otherwise = 120;
        const char* const of_test = ::getenv("TESSERA_TEST_IDLE_SECONDS");
        return of_test == nullptr ? otherwise : std::max(1, std::atoi(of_test));
    }

    /// Throws if it finds no end, or does nothing.
    void require_work(const HelperWish& wish) {
        const std::int64_t spent = processor_time();
        const auto now = Clock::now();
        if (spent_ < 0) spent_ = spent;
        if (spent - spent_ > least_seconds * second && spent - spent_ > most_seconds(wish) * second) {
            throw corrupt("{} was ended after {} s of work on it: the file is damaged, or too large", name_of(library_),
                          most_seconds(wish));
        }
        // It looks each second whether its parent is there, which takes some microseconds.
        constexpr std::int64_t nothing = second / 1000;
        if (busy_until_ == Clock::time_point() || spent - spent_when_busy_ > nothing * most_idle_seconds()) {
            busy_until_ = now;
            spent_when_busy_ = spent;
        }
        if (now - busy_until_ > std::chrono::seconds(most_idle_seconds()) && sleeps()) {
            throw Error(ErrorCode::io,
                        fmt::format("the process in which {} works on it was ended: it did nothing for {} s",
                                    name_of(library_), most_idle_seconds()));
        }
    }

    /// As receive_all, but it ends on request, where the library finds no end, and at a time.
    bool receive(void* to, std::size_t size, const HelperWish& wish,
                 Clock::time_point until = Clock::time_point::max()) {
        constexpr int between = 50;  // milliseconds
        auto* p = static_cast<char*>(to);
        busy_until_ = {};
        while (size > 0) {
            pollfd wait{.fd = socket_, .events = POLLIN, .revents = 0};
            if (::poll(&wait, 1, between) <= 0) {
                if (stop_requested()) throw cancelled("stopped on request");
                if (Clock::now() > until) return false;
                require_work(wish);
                continue;
            }
            const ssize_t n = ::recv(socket_, p, size, 0);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return false;
            p += n;
            size -= static_cast<std::size_t>(n);
        }
        return true;
    }

    void send_source(const ForeignHead& read, const HelperWish& wish) {
        constexpr std::uint64_t most = std::uint64_t{1} << 31U;
        if (wish.source == nullptr || read.size > most) refuse();
        Buffer bytes(static_cast<std::size_t>(read.size));
        wish.source->read(read.place, bytes.span());
        if (!send_all(socket_, bytes.data(), bytes.size())) fail();
    }

    /// It may be about to end by itself, and then its signal says why.
    void wait_for_end() const {
        siginfo_t info{};
        constexpr int times = 100, between = 10;  // milliseconds
        for (int i = 0; i < times; ++i) {
            const int waited = ::waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOHANG | WNOWAIT);
            if (waited != 0 || info.si_pid != 0) return;
            ::poll(nullptr, 0, between);
        }
    }

    [[nodiscard]] std::string how_it_ended() const {
        if (!WIFSIGNALED(status_)) return fmt::format("exit code {}", WEXITSTATUS(status_));
        return fmt::format("signal {}, {}", WTERMSIG(status_), ::strsignal(WTERMSIG(status_)));
    }

    /// It says what no helper of this build says: a file has taken it over, or damaged its memory.
    [[noreturn]] void refuse() {
        end();
        throw corrupt("{} damaged the memory of its process, which was ended: the file is damaged", name_of(library_));
    }

    [[noreturn]] void fail() {
        wait_for_end();
        end();
        const int signal = WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
        if (signal == 0) {
            throw corrupt("{} ended its process ({}): the file is damaged", name_of(library_), how_it_ended());
        }
        if (signal == SIGKILL || signal == SIGTERM) {
            throw Error(ErrorCode::io, fmt::format("the process in which {} works on it was ended by signal {} ({})",
                                                   name_of(library_), signal, ::strsignal(signal)));
        }
        throw corrupt("{} crashed on it ({}): the file is damaged", name_of(library_), how_it_ended());
    }

    ForeignLibrary library_;
    bool greeted_ = false;
    int owner_, child_ = -1, socket_ = -1, memory_ = -1, status_ = 0;
    std::string path_;
    std::size_t sized_ = 0, used_ = 0;  ///< bytes of the shared memory; those that take memory
    std::uint64_t memory_at_start_ = 0, limited_to_ = 0;
    std::int64_t spent_ = 0;        ///< processor time when the request began; -1: not known
    Clock::time_point busy_until_;  ///< when it was last seen to work
    std::int64_t spent_when_busy_ = 0;
    std::optional<SharedSpace> space_;
};

namespace {

/// Helpers that wait for a request. Never destroyed: they end when the sockets of this process close.
std::vector<std::unique_ptr<HelperProcess>>& idle_helpers() {
    static auto& helpers = *new std::vector<std::unique_ptr<HelperProcess>>;
    return helpers;
}

std::unique_ptr<HelperProcess> idle_helper(ForeignLibrary library) {
    const std::lock_guard lock(library_mutex(LibraryMutex::readers));
    auto& idle = idle_helpers();
    const auto last = std::find_if(idle.rbegin(), idle.rend(), [&](const auto& h) { return h->library() == library; });
    if (last == idle.rend()) return nullptr;
    auto helper = std::move(*last);
    idle.erase(std::next(last).base());
    return helper;
}

/// One that waits, if there is one.
std::unique_ptr<HelperProcess> waiting_helper(ForeignLibrary library) {
    for (;;) {
        auto helper = idle_helper(library);
        if (!helper || helper->waits()) return helper;
    }
}

void rest_helper(std::unique_ptr<HelperProcess> helper) {
    if (!helper->good()) return;
    const auto most = static_cast<std::size_t>(thread_count({}));
    const std::lock_guard lock(library_mutex(LibraryMutex::readers));
    auto& idle = idle_helpers();
    if (idle.size() < most) idle.push_back(std::move(helper));
}

}  // namespace

HelperSession::HelperSession() = default;
HelperSession::~HelperSession() = default;

void HelperSession::end() noexcept {
    if (process_) process_->end();
}

Buffer HelperSession::ask(const HelperWish& wish) {
    if (!process_) process_ = waiting_helper(wish.library);
    if (!process_) process_ = std::make_unique<HelperProcess>(wish.library);
    if (!process_->good()) {
        throw Error(ErrorCode::io,
                    fmt::format("the process in which {} worked on it has ended", name_of(wish.library)));
    }
    return process_->call(wish);
}

Buffer ask_helper(const HelperWish& wish) {
    auto helper = waiting_helper(wish.library);
    if (!helper) helper = std::make_unique<HelperProcess>(wish.library);
    try {
        Buffer answer = helper->call(wish);
        rest_helper(std::move(helper));
        return answer;
    } catch (...) {
        rest_helper(std::move(helper));
        throw;
    }
}

void expect_helper(ForeignLibrary library) noexcept {
    try {
        auto helper = waiting_helper(library);
        if (!helper) helper = std::make_unique<HelperProcess>(library);
        rest_helper(std::move(helper));
    } catch (...) {
        return;
    }
}

void tell_helpers(const HelperWish& wish) {
    std::vector<std::unique_ptr<HelperProcess>> all;
    while (auto helper = waiting_helper(wish.library)) all.push_back(std::move(helper));
    for (auto& helper : all) {
        try {
            (void)helper->call(wish);
        } catch (...) {
            helper->end();  // which closes what it has open
        }
        rest_helper(std::move(helper));
    }
}

}  // namespace tessera
