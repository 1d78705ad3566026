#include "reader_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/caller.h>
#include <tessera/error_text.h>
#include <tessera/fork.h>
#include <tessera/in_process.h>
#include <tessera/memory_account.h>
#include <tessera/parallel.h>

#include "wire.h"

namespace tessera {

namespace {

// A sanitizer's allocator does not survive a fork beside other threads: the child may wait for ever for its locks.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool sanitized = false;
#endif

std::atomic<bool> trusting = sanitized;
bool in_reader = false;  ///< set once, in a child
pid_t reader_parent = 0;
std::array<void (*)(), 8> resting{};
/// In a child, of the request that is answered now.
struct {
    int socket = -1;
    std::uint64_t source = 0;
} asked_by;

/// Between the two processes, before the bytes that it speaks of.
struct ReaderHead {
    enum class Kind : std::uint64_t { request, answer, error, read };
    Kind kind = Kind::request;
    std::uint64_t size = 0;                      ///< of what follows; of a read
    std::uint64_t place = 0;                     ///< the function; the offset of a read
    std::uint64_t space = 0;                     ///< of the shared memory
    std::uint64_t source = 0;                    ///< tells ReaderWish::source from others
    std::uint64_t limit = UINT64_MAX, used = 0;  ///< the memory account of who asks
};

/// Whether all was sent. A closed socket is no signal.
bool send_all(int socket, const void* from, std::size_t size) {
    const auto* p = static_cast<const char*>(from);
    while (size > 0) {
        const ssize_t n = ::send(socket, p, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        p += n;
        size -= static_cast<std::size_t>(n);
    }
    return true;
}

bool receive_all(int socket, void* to, std::size_t size) {
    auto* p = static_cast<char*>(to);
    while (size > 0) {
        const ssize_t n = ::recv(socket, p, size, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        p += n;
        size -= static_cast<std::size_t>(n);
    }
    return true;
}

/// Memory that two processes share, by a file that has no name.
class SharedSpace {
public:
    explicit SharedSpace(int file) : file_(file) {}
    ~SharedSpace() { map(0); }
    SharedSpace(const SharedSpace&) = delete;
    SharedSpace& operator=(const SharedSpace&) = delete;

    /// Maps so many bytes of the file, unless it has. Throws std::bad_alloc.
    MutableByteSpan map(std::size_t size) {
        if (size != bytes_.size() && !(size > 0 && size < bytes_.size())) {
            if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
            bytes_ = {};
            if (size == 0) return {};
            void* const p = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
            if (p == MAP_FAILED) throw std::bad_alloc();
            bytes_ = {static_cast<std::byte*>(p), size};
        }
        return bytes_.first(size);
    }

private:
    int file_;
    MutableByteSpan bytes_;
};

// ---- in the child

/// Closes all files but these two, and takes nothing from the terminal and gives nothing to it.
void close_others(int socket, int memory) {
    const auto close_range = [](unsigned first, unsigned last) {
        if (first > last || ::syscall(SYS_close_range, first, last, 0U) == 0) return;
        constexpr unsigned most = 1U << 16U;
        for (unsigned i = first; i <= std::min(last, most); ++i) ::close(static_cast<int>(i));
    };
    const auto low = static_cast<unsigned>(std::min(socket, memory));
    const auto high = static_cast<unsigned>(std::max(socket, memory));
    close_range(3, low - 1);
    close_range(low + 1, high - 1);
    close_range(high + 1, ~0U);
    const int nothing = ::open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; ++i) ::dup2(nothing, i);
    if (nothing > 2) ::close(nothing);
}

/// Limits the memory that the library may take: what it has now, and so much more.
void limit_memory(std::uint64_t more) {
    static const auto now = [] {
        unsigned long pages = 0;
        std::array<char, 64> text{};
        const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        if (file >= 0 && ::read(file, text.data(), text.size() - 1) > 0) pages = std::strtoul(text.data(), nullptr, 10);
        if (file >= 0) ::close(file);
        return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    }();
    constexpr std::uint64_t beside = std::uint64_t{192} << 20U;  // heaps of the C library, plug-ins
    rlimit limit{};
    if (now == 0 || ::getrlimit(RLIMIT_AS, &limit) != 0) return;
    const bool any = more > UINT64_MAX / 2;
    limit.rlim_cur = any ? limit.rlim_max : std::min<rlim_t>(limit.rlim_max, now + beside + more);
    (void)::setrlimit(RLIMIT_AS, &limit);
}

Buffer error_bytes(const Error& e) {
    WireWriter out;
    out.number(static_cast<std::uint64_t>(e.code()));
    out.text(e.what());
    out.number(e.advice().size());
    for (const Advice& advice : e.advice()) {
        out.number(static_cast<std::uint64_t>(advice.action));
        out.text(advice.effect);
        out.text(advice.value);
    }
    return out.take();
}

[[noreturn]] void throw_error(ByteSpan bytes) {
    WireReader in(bytes);
    const auto code = static_cast<ErrorCode>(in.number());
    Error error(code, std::string(in.text()));
    for (std::uint64_t n = in.count(); n > 0; --n) {
        const auto action = static_cast<Action>(in.number());
        const std::string effect(in.text());
        error = error.advising(action, effect, in.text());
    }
    throw error;
}

/// While it lives, a child looks each second whether its parent is still there: the library may find no end.
class ParentWatch {
public:
    ParentWatch() { set(1); }
    ~ParentWatch() { set(0); }
    ParentWatch(const ParentWatch&) = delete;
    ParentWatch& operator=(const ParentWatch&) = delete;

    static void begin() {
        struct sigaction action {};
        action.sa_handler = [](int) {
            if (::getppid() != reader_parent) ::_exit(0);
        };
        action.sa_flags = SA_RESTART;
        (void)::sigaction(SIGALRM, &action, nullptr);
    }

private:
    static void set(long seconds) {
        const itimerval each{.it_interval = {.tv_sec = seconds, .tv_usec = 0},
                             .it_value = {.tv_sec = seconds, .tv_usec = 0}};
        (void)::setitimer(ITIMER_REAL, &each, nullptr);
    }
};

/// Answers one request.
bool answer(const ReaderHead& head, ByteSpan request, SharedSpace& space, int socket) {
    ReaderHead reply{.kind = ReaderHead::Kind::answer};
    Buffer bytes;
    try {
        limit_memory(head.limit == UINT64_MAX ? UINT64_MAX : head.limit - head.used + head.space);
        std::shared_ptr<MemoryAccount> account;
        if (head.limit != UINT64_MAX) account = std::make_shared<MemoryAccount>(head.limit);
        const MemoryScope scope(account);
        const MemoryHold held(head.limit == UINT64_MAX ? 0 : head.used);
        const ParentWatch watch;
        asked_by = {socket, head.source};
        ReaderCall call{.request = request, .space = space.map(static_cast<std::size_t>(head.space))};
        std::bit_cast<ReaderFunction>(static_cast<std::uintptr_t>(head.place))(call);
        bytes = std::move(call.answer);
    } catch (const Error& e) {
        reply.kind = ReaderHead::Kind::error;
        bytes = error_bytes(e);
    } catch (const std::bad_alloc&) {
        reply.kind = ReaderHead::Kind::error;
        bytes = error_bytes(over_budget("there is not enough memory to read it"));
    } catch (const std::exception& e) {
        reply.kind = ReaderHead::Kind::error;
        bytes = error_bytes(corrupt(std::string("cannot be read: ") + e.what()));
    }
    asked_by = {};
    reply.size = bytes.size();
    return send_all(socket, &reply, sizeof reply) && send_all(socket, bytes.data(), bytes.size());
}

void answer_all(int socket, int memory) {
    SharedSpace space(memory);
    constexpr int second = 1000;
    bool rested = true;
    for (;;) {
        pollfd wait{.fd = socket, .events = POLLIN, .revents = 0};
        if (::poll(&wait, 1, rested ? -1 : second) == 0) {
            for (void (*const drop)() : resting) {
                if (drop != nullptr) drop();
            }
            rested = true;
            continue;
        }
        rested = false;
        ReaderHead head;
        if (!receive_all(socket, &head, sizeof head)) return;
        Buffer request(static_cast<std::size_t>(head.size));
        if (!receive_all(socket, request.data(), request.size())) return;
        if (!answer(head, request, space, socket)) return;
    }
}

[[noreturn]] void run_reader(int socket, int memory, pid_t parent) {
    in_reader = true;
    reader_parent = parent;
    // Ctrl-C reaches the whole group: the parent ends this process when it has ended the request.
    for (const int ignored : {SIGINT, SIGPIPE, SIGHUP}) ::signal(ignored, SIG_IGN);
    for (const int usual : {SIGTERM, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGQUIT}) ::signal(usual, SIG_DFL);
    ParentWatch::begin();
    sigset_t none;
    ::sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
    const rlimit no_core{};
    (void)::setrlimit(RLIMIT_CORE, &no_core);
    (void)::prctl(PR_SET_NAME, "tessera-reader");
    close_others(socket, memory);
    Caller::current().stop = nullptr;
    Caller::current().outer = nullptr;
    try {
        const MemoryScope uncounted(nullptr);
        answer_all(socket, memory);
    } catch (...) {
        ::_exit(1);
    }
    ::_exit(0);
}

// ---- in the parent

/// A child began while another thread held a lock that no library knows of (of the C library, of a static that was
/// being made): it waits for it for ever.
struct ChildHasLock {};

/// Whether a child waits for a lock; while it takes no processor time, no thread of it will free that. False where the
/// system does not say.
bool waits_for_lock(pid_t child) {
    std::array<char, 16> text{};
    const int file = ::open(fmt::format("/proc/{}/syscall", child).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    const ssize_t n = ::read(file, text.data(), text.size() - 1);
    ::close(file);
    return n > 0 && std::string_view(text.data()).starts_with(fmt::format("{} ", SYS_futex));
}

/// A child. Thread rule: one thread at a time.
class ReaderProcess {
public:
    explicit ReaderProcess(const ReaderWish& wish) : owner_(process_number()) {
        std::array<int, 2> ends{};
        memory_ = static_cast<int>(::syscall(SYS_memfd_create, "tessera-reader", 1U));  // MFD_CLOEXEC
        if (memory_ < 0) throw io_error("making memory to share for", wish.library, errno);
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
            const int why = errno;
            ::close(memory_);
            throw io_error("making a socket for", wish.library, why);
        }
        {
            const auto still = wish.still == nullptr ? std::unique_lock<std::recursive_mutex>() : wish.still();
            child_ = ::fork();
        }
        if (child_ == 0) run_reader(ends[1], memory_, owner_);
        const int why = errno;
        ::close(ends[1]);
        socket_ = ends[0];
        space_.emplace(memory_);
        if (child_ > 0) return;
        end();
        throw io_error("starting a process for", wish.library, why);
    }
    ~ReaderProcess() { end(); }
    ReaderProcess(const ReaderProcess&) = delete;
    ReaderProcess& operator=(const ReaderProcess&) = delete;

    /// False once it has crashed, and in a fork of the process that began it.
    [[nodiscard]] bool good() const { return socket_ >= 0 && owner_ == process_number(); }

    Buffer call(const ReaderWish& wish) {
        const MemoryHold held(wish.space);
        ReaderHead reply;
        Buffer bytes;
        try {
            bytes = exchange(wish, reply);
        } catch (...) {
            end();  // what it still says answers no later request
            throw;
        }
        if (reply.kind == ReaderHead::Kind::error) throw_error(bytes);
        if (wish.take) wish.take(space_->map(wish.space));
        if (sized_ > kept_space) {
            space_->map(0);
            if (::ftruncate(memory_, 0) == 0) sized_ = 0;
        }
        return bytes;
    }

    /// Whether it waits for a request; it may have been killed meanwhile.
    [[nodiscard]] bool waits() const {
        pollfd wait{.fd = socket_, .events = POLLIN, .revents = 0};
        return good() && ::poll(&wait, 1, 0) == 0;
    }

    /// Ends it at once.
    void end() noexcept {
        space_.reset();
        if (memory_ >= 0) ::close(std::exchange(memory_, -1));
        if (socket_ >= 0) ::close(std::exchange(socket_, -1));
        if (child_ <= 0 || owner_ != process_number()) return;
        (void)::kill(child_, SIGKILL);
        int status = 0;
        while (::waitpid(std::exchange(child_, child_), &status, 0) < 0 && errno == EINTR) {
        }
        status_ = status;
        child_ = -1;
    }

private:
    static constexpr std::size_t kept_space = std::size_t{8} << 20U;
    static constexpr std::int64_t second = 1'000'000'000, least_seconds = 3;

    Buffer exchange(const ReaderWish& wish, ReaderHead& reply) {
        if (wish.space > sized_) {
            if (::ftruncate(memory_, static_cast<off_t>(wish.space)) != 0) {
                throw io_error("getting memory to share for", wish.library, errno);
            }
            sized_ = wish.space;
        }
        ReaderHead head{.kind = ReaderHead::Kind::request,
                        .size = wish.request.size(),
                        .place = std::bit_cast<std::uintptr_t>(wish.function),
                        .space = wish.space,
                        .source = std::bit_cast<std::uintptr_t>(wish.source)};
        if (const auto& account = MemoryAccount::current()) {
            head.limit = account->limit();
            head.used = std::min(account->used() - wish.granted, head.limit);
        }
        spent_ = -1;
        if (!send_all(socket_, &head, sizeof head) || !send_all(socket_, wish.request.data(), wish.request.size())) {
            fail(wish);
        }
        for (;;) {
            if (!receive(&reply, sizeof reply, wish)) fail(wish);
            if (reply.kind != ReaderHead::Kind::read) break;
            send_source(reply, wish);
        }
        constexpr std::uint64_t most = std::uint64_t{1} << 40U;
        if (reply.size > most || reply.kind == ReaderHead::Kind::request) fail(wish);
        Buffer bytes(static_cast<std::size_t>(reply.size));
        if (!receive(bytes.data(), bytes.size(), wish)) fail(wish);
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
    static std::int64_t most_seconds(const ReaderWish& wish) {
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

    /// As receive_all, but it ends on request, and where the library finds no end.
    bool receive(void* to, std::size_t size, const ReaderWish& wish) {
        constexpr int between = 50;          // milliseconds
        constexpr int looks_for_locks = 20;  // each second
        std::int64_t locked_at = -1;         // processor time: a plug-in may have threads, which go on
        auto* p = static_cast<char*>(to);
        for (int waits = 1; size > 0; ++waits) {
            pollfd wait{.fd = socket_, .events = POLLIN, .revents = 0};
            const int ready = ::poll(&wait, 1, between);
            if (ready <= 0) {
                if (stop_requested()) throw cancelled("stopped on request");
                const std::int64_t now = processor_time();
                if (spent_ < 0) spent_ = now;
                if (now - spent_ > least_seconds * second && now - spent_ > most_seconds(wish) * second) {
                    throw corrupt("{} was ended after {} s of work on it: the file is damaged, or too large",
                                  wish.library, most_seconds(wish));
                }
                if (waits % looks_for_locks == 0) {
                    const bool locked = waits_for_lock(child_);
                    // Looking after its parent takes some time, too.
                    if (locked && locked_at >= 0 && now - locked_at < second / 100) throw ChildHasLock{};
                    locked_at = locked ? now : -1;
                }
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

    void send_source(const ReaderHead& read, const ReaderWish& wish) {
        constexpr std::uint64_t most = std::uint64_t{1} << 31U;
        if (wish.source == nullptr || read.size > most) fail(wish);
        Buffer bytes(static_cast<std::size_t>(read.size));
        wish.source->read(read.place, bytes.span());
        if (!send_all(socket_, bytes.data(), bytes.size())) fail(wish);
    }

    [[noreturn]] void fail(const ReaderWish& wish) {
        // It may be about to end by itself, and then its signal says why.
        siginfo_t info{};
        for (int i = 0;
             i < 100 && ::waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
             info.si_pid == 0;
             ++i) {
            ::poll(nullptr, 0, 10);
        }
        end();
        if (!WIFSIGNALED(status_)) {
            throw corrupt("{} ended its process (exit code {}): the file is damaged", wish.library,
                          WEXITSTATUS(status_));
        }
        const int signal = WTERMSIG(status_);
        if (signal == SIGKILL || signal == SIGTERM) {
            throw Error(ErrorCode::io, fmt::format("the process in which {} reads it was ended by signal {} ({})",
                                                   wish.library, signal, ::strsignal(signal)));
        }
        throw corrupt("{} crashed on it (signal {}, {}): the file is damaged", wish.library, signal,
                      ::strsignal(signal));
    }

    int owner_, child_ = -1, socket_ = -1, memory_ = -1, status_ = 0;
    std::size_t sized_ = 0;
    std::int64_t spent_ = 0;
    std::optional<SharedSpace> space_;
};

/// Children that wait for a request. Never destroyed: they end when the sockets of this process close.
std::vector<std::unique_ptr<ReaderProcess>>& idle_readers() {
    static auto& readers = *new std::vector<std::unique_ptr<ReaderProcess>>;
    return readers;
}

std::unique_ptr<ReaderProcess> idle_reader() {
    const std::lock_guard lock(library_mutex(LibraryMutex::readers));
    auto& idle = idle_readers();
    if (idle.empty()) return nullptr;
    auto reader = std::move(idle.back());
    idle.pop_back();
    return reader;
}

void rest_reader(std::unique_ptr<ReaderProcess> reader) {
    if (!reader->good()) return;
    const auto most = static_cast<std::size_t>(thread_count({}));
    const std::lock_guard lock(library_mutex(LibraryMutex::readers));
    auto& idle = idle_readers();
    if (idle.size() < most) idle.push_back(std::move(reader));
}

}  // namespace

ParentBytes::ParentBytes(std::string name, std::uint64_t size)
    : name_(std::move(name)), size_(size), source_(asked_by.source) {}

void ParentBytes::read(std::uint64_t offset, MutableByteSpan out) const {
    if (asked_by.socket < 0 || asked_by.source != source_) {
        throw Error(ErrorCode::io, name_ + ": is read for a request that is not about it");
    }
    const ReaderHead read{.kind = ReaderHead::Kind::read, .size = out.size(), .place = offset};
    const int socket = asked_by.socket;
    if (!send_all(socket, &read, sizeof read) || !receive_all(socket, out.data(), out.size())) ::_exit(0);
}

Buffer read_apart(const ReaderWish& wish) {
    constexpr int most_tries = 5;
    for (int tried = 1;; ++tried) {
        std::unique_ptr<ReaderProcess> reader;
        do {
            reader = idle_reader();
        } while (reader && !reader->waits());
        if (!reader) reader = std::make_unique<ReaderProcess>(wish);
        try {
            Buffer answer = reader->call(wish);
            rest_reader(std::move(reader));
            return answer;
        } catch (const ChildHasLock&) {
            if (tried == most_tries) {
                throw Error(ErrorCode::io,
                            fmt::format("the processes in which {} reads it wait for a lock: try again", wish.library));
            }
        } catch (...) {
            rest_reader(std::move(reader));
            throw;
        }
    }
}

void tell_readers(ReaderFunction function, ByteSpan request) {
    std::vector<std::unique_ptr<ReaderProcess>> all;
    while (auto reader = idle_reader()) all.push_back(std::move(reader));
    for (auto& reader : all) {
        try {
            if (reader->waits()) (void)reader->call({.library = "a library", .function = function, .request = request});
        } catch (...) {
            reader->end();  // which closes what it has open
        }
        rest_reader(std::move(reader));
    }
}

void when_reader_rests(void (*drop)()) {
    const auto free = std::ranges::find_if(resting, [&](auto* known) { return known == nullptr || known == drop; });
    if (free != resting.end()) *free = drop;
}

bool is_reader_process() {
    return in_reader;
}

void read_in_process(bool trust) {
    trusting = trust;
}

bool reads_in_process() {
    return trusting || in_reader;
}

}  // namespace tessera
