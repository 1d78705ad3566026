#include "server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include <tessera/error.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/own_helper.h>
#include <tessera/system_calls.h>

#include "../foreign_socket.h"

namespace tessera {

namespace {

std::array<void (*)(), 8> resting{}, ending{};
std::vector<std::span<const ForeignRow>> tasks_now;
pid_t parent = 0;
/// Of the request that is answered now; 0: none.
std::uint64_t source_now = 0;

void add_once(std::array<void (*)(), 8>& to, void (*drop)()) {
    const auto free = std::ranges::find_if(to, [&](auto* known) { return known == nullptr || known == drop; });
    if (free != to.end()) *free = drop;
}

void call_all(const std::array<void (*)(), 8>& functions) {
    for (void (*const drop)() : functions) {
        if (drop != nullptr) drop();
    }
}

/// While it lives, this process looks each second whether its parent is still there: the library may find no end.
class ParentWatch {
public:
    ParentWatch() { set(1); }
    ~ParentWatch() { set(0); }
    ParentWatch(const ParentWatch&) = delete;
    ParentWatch& operator=(const ParentWatch&) = delete;

    static void begin() {
        parent = ::getppid();
        struct sigaction action {};
        action.sa_handler = [](int) {
            if (::getppid() != parent) ::_exit(0);
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

// ---- for tests

void test_end(ForeignCall& call) {
    ::_exit(call.request.next<int>());
}

void test_sleep(ForeignCall& call) {
    std::this_thread::sleep_for(std::chrono::milliseconds(call.request.next<int>()));
    call.answer(::getpid());
}

constexpr std::array test_tasks{ForeignRow{ForeignTask::test_end, test_end},
                                ForeignRow{ForeignTask::test_sleep, test_sleep}};

ForeignFunction function_of(std::uint64_t task) {
    for (const auto rows : tasks_now) {
        for (const ForeignRow& row : rows) {
            if (static_cast<std::uint64_t>(row.task) == task) return row.function;
        }
    }
    const auto begins = [&](ForeignTask first) { return task >= static_cast<std::uint64_t>(first); };
    const bool grib = begins(ForeignTask::grib_keys), tiff = begins(ForeignTask::tiff_require);
    throw unsupported("this build has no {}: install {} and build again",
                      grib   ? "ecCodes"
                      : tiff ? "libtiff"
                             : "libhdf5",
                      grib   ? "libeccodes-dev"
                      : tiff ? "libtiff-dev"
                             : "libhdf5-dev");
}

Buffer error_bytes(const Error& e) {
    return wired(foreign_error(e));
}

/// Answers one request.
bool answer(const ForeignHead& head, ByteSpan request, SharedSpace& space) {
    ForeignHead reply{.kind = ForeignHead::Kind::answer};
    Buffer bytes;
    try {
        std::shared_ptr<MemoryAccount> account;
        if (head.limit != UINT64_MAX) account = std::make_shared<MemoryAccount>(head.limit);
        const MemoryScope scope(account);
        const MemoryHold held(head.limit == UINT64_MAX ? 0 : head.used);
        const ParentWatch watch;
        source_now = head.source;
        ForeignCall call{.request = WireReader(request), .space = space.map(static_cast<std::size_t>(head.space))};
        function_of(head.place)(call);
        bytes = call.answer.take();
    } catch (const Error& e) {
        reply.kind = ForeignHead::Kind::error;
        bytes = error_bytes(e);
    } catch (const std::bad_alloc&) {
        reply.kind = ForeignHead::Kind::error;
        bytes = error_bytes(over_budget("there is not enough memory for it"));
    } catch (const std::exception& e) {
        reply.kind = ForeignHead::Kind::error;
        bytes = error_bytes(corrupt(std::string("cannot be read: ") + e.what()));
    }
    source_now = 0;
    if (head.space > kept_space) space.map(0);
    reply.size = bytes.size();
    return send_all(helper_socket, reply, bytes);
}

void answer_all() {
    SharedSpace space(helper_memory);
    constexpr int second = 1000;
    bool rested = true;
    for (;;) {
        pollfd wait{.fd = helper_socket, .events = POLLIN, .revents = 0};
        if (::poll(&wait, 1, rested ? -1 : second) == 0) {
            call_all(resting);
            rested = true;
            continue;
        }
        rested = false;
        ForeignHead head;
        if (!receive_all(helper_socket, &head, sizeof head)) return;
        Buffer request(static_cast<std::size_t>(head.size));
        if (!receive_all(helper_socket, request.data(), request.size())) return;
        if (!answer(head, request, space)) return;
    }
}

/// Of address space, in bytes; 0 if the system does not say.
std::uint64_t memory_now() {
    std::array<char, 64> text{};
    const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? -1 : ::read(file, text.data(), text.size() - 1);
    if (file >= 0) ::close(file);
    const unsigned long pages = got > 0 ? std::strtoul(text.data(), nullptr, 10) : 0;
    return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// The answer to who starts it by hand.
int explain() {
    constexpr std::string_view text =
        "it works for Tessera, which starts it when a file is read or written: by itself it is of no use\n";
    return ::write(1, text.data(), text.size()) < 0 ? 1 : 0;
}

}  // namespace

ParentBytes::ParentBytes(std::string name, std::uint64_t size)
    : name_(std::move(name)), size_(size), source_(source_now) {}

void ParentBytes::read(std::uint64_t offset, MutableByteSpan out) const {
    if (source_now == 0 || source_now != source_) {
        throw Error(ErrorCode::io, name_ + ": is read for a request that is not about it");
    }
    const ForeignHead read{.kind = ForeignHead::Kind::read, .size = out.size(), .place = offset};
    if (!send_all(helper_socket, &read, sizeof read) || !receive_all(helper_socket, out.data(), out.size())) ::_exit(0);
}

void when_helper_rests(void (*drop)()) {
    add_once(resting, drop);
    add_once(ending, drop);
}

void when_helper_ends(void (*drop)()) {
    add_once(ending, drop);
}

void enter_folder(const std::string& folder) {
    if (::chdir(folder.c_str()) != 0) throw io_error("entering", folder, errno);
}

int serve_foreign(int argc, const char* const* argv, std::vector<std::span<const ForeignRow>> tasks) {
    tasks_now = std::move(tasks);
    tasks_now.emplace_back(test_tasks);
    if (!is_helper(argc, argv)) return explain();
    os::close_from(helper_memory + 1);  // files that the parent had open for programs that it starts
    ::signal(SIGXFSZ, SIG_IGN);         // an error of writing says it
    ParentWatch::begin();
    const rlimit no_core{};
    (void)::setrlimit(RLIMIT_CORE, &no_core);
    os::name_process(helper_name);
    const std::string_view build = build_id();
    const ForeignHead hello{.kind = ForeignHead::Kind::hello, .size = build.size(), .place = memory_now()};
    if (!send_all(helper_socket, hello, std::as_bytes(std::span(build)))) return 1;
    if (build != argv[2]) return 1;  // the parent says why
    try {
        answer_all();
        call_all(ending);
    } catch (...) {
        ::_exit(1);
    }
    ::_exit(0);  // without what libraries do at the end
}

}  // namespace tessera
