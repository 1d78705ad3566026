// A library to put before libc (LD_PRELOAD) that makes system calls fail, or the process die, where a test says so.
//
// Only calls that touch files below one directory are looked at, so that the dynamic linker, the C library's own files
// and the test's pipes are left alone. Told by the environment:
//   FAULTS_BELOW   the directory; without it nothing happens
//   FAULTS_CALLS   the kinds that count: "write,sync"; empty: all but stat and list, which change nothing (kinds: open
//                  read write sync close rename link unlink mkdir lock stat list)
//   FAULTS_AT      the number of the call at which it happens, from 1; 0: never
//   FAULTS_DO      kill: SIGKILL before the call; tear: half of what is to be written is, then SIGKILL; short: half of
//                  what was asked is read or written; a number: the call fails with that errno
//   FAULTS_STICKY  1: at that call and all that follow
//   FAULTS_FIRED   a file that gets the call's name and path once it has happened
//   FAULTS_TRACE   a file that gets a line for each change and each sync: see disk.h
//   FAULTS_ACKS    a file; what is written there is an acknowledgement, which the trace gets a line for
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace {

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : value;
}

/// Calls the kernel itself, because this library's own files must not be looked at.
void say(int fd, const std::string& line) {
    for (std::size_t at = 0; at < line.size();) {
        const long n = ::syscall(SYS_write, fd, line.data() + at, line.size() - at);
        if (n > 0) at += static_cast<std::size_t>(n);
    }
}

int open_log(const std::string& path) {
    constexpr int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    return path.empty() ? -1 : static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path.c_str(), flags, 0666));
}

struct Settings {
    std::string below = variable("FAULTS_BELOW");
    std::string calls = variable("FAULTS_CALLS");
    long at = std::atol(variable("FAULTS_AT").c_str());
    std::string action = variable("FAULTS_DO");
    bool sticky = variable("FAULTS_STICKY") == "1";
    std::string acks = variable("FAULTS_ACKS");
    int fired = open_log(variable("FAULTS_FIRED"));
    int trace = open_log(variable("FAULTS_TRACE"));

    [[nodiscard]] bool counts(std::string_view call) const {
        if (calls.empty()) return true;
        for (std::size_t at_comma = 0; at_comma != std::string::npos;) {
            const std::size_t end = calls.find(',', at_comma);
            if (std::string_view(calls).substr(at_comma, end - at_comma) == call) return true;
            at_comma = end == std::string::npos ? end : end + 1;
        }
        return false;
    }
};

const Settings& settings() {
    static const Settings s;
    return s;
}

std::atomic<long> calls_so_far = 0;

/// One change after another while they are recorded, so that the trace is in the order in which they happened.
std::mutex& trace_mutex() {
    static std::mutex mutex;
    return mutex;
}

std::string path_of(int fd) {
    char link[4096];
    const ssize_t n = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), link, sizeof link);
    std::string path(link, n < 0 ? 0 : static_cast<std::size_t>(n));
    constexpr std::string_view deleted = " (deleted)";
    if (path.ends_with(deleted)) path.resize(path.size() - deleted.size());
    return path;
}

std::string path_at(int directory, const char* path) {
    if (path == nullptr) return {};
    std::string full = path;
    if (!full.starts_with('/')) {
        char here[4096];
        const std::string base = directory == AT_FDCWD ? (::getcwd(here, sizeof here) ? here : "") : path_of(directory);
        full = base + '/' + full;
    }
    if (full.ends_with("/.")) full.resize(full.size() - 2);
    return full;
}

bool is_below(const std::string& path) {
    const std::string& below = settings().below;
    return !below.empty() && path.starts_with(below) && (path.size() == below.size() || path[below.size()] == '/');
}

enum class Verdict { go, fail, shorten, tear };

/// What is to happen to this call, of what lies at path(), which is asked only where it matters; it counts. errno is
/// set for fail.
template <class Path>
Verdict judge_at(std::string_view call, const Path& path_now) {
    const Settings& s = settings();
    if (s.at == 0 || !s.counts(call)) return Verdict::go;
    const std::string path = path_now();
    if (!is_below(path)) return Verdict::go;
    const long number = ++calls_so_far;
    if (number != s.at && !(s.sticky && number > s.at)) return Verdict::go;
    say(s.fired, std::string(call) + ' ' + path + '\n');
    if (s.action == "kill") ::kill(::getpid(), SIGKILL);
    if (s.action == "tear") return Verdict::tear;
    if (s.action == "short") return Verdict::shorten;
    errno = std::atoi(s.action.c_str());
    return Verdict::fail;
}

Verdict judge(std::string_view call, const std::string& path) {
    return judge_at(call, [&] { return path; });
}
Verdict judge(std::string_view call, int fd) {
    return judge_at(call, [&] { return path_of(fd); });
}

unsigned long inode_of(int fd) {
    struct stat status {};
    return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

unsigned long inode_at(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

std::string hexadecimal(const void* bytes, std::size_t count) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
        const auto byte = static_cast<const unsigned char*>(bytes)[i];
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

/// Makes a call that changes something and writes line() into the trace when it succeeded, leaving errno alone.
template <class Call, class Line>
auto recorded(bool wanted, const Call& call, const Line& line) {
    const int trace = settings().trace;
    if (trace < 0 || !wanted) return call();
    const std::lock_guard guard(trace_mutex());
    const auto result = call();
    const int error = errno;
    if (result >= 0) say(trace, line(result) + '\n');
    errno = error;
    return result;
}

template <class Function>
Function next(const char* name) {
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}
#define NEXT(name) static const auto real = next<decltype(&::name)>(#name)

template <class Call>
int opened(int directory, const char* path, int flags, const Call& call) {
    const std::string full = path_at(directory, path);
    if (judge("open", full) == Verdict::fail) return -1;
    if (settings().trace < 0 || !is_below(full)) return call();
    const std::lock_guard guard(trace_mutex());
    const bool existed = ::faccessat(AT_FDCWD, full.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    const int fd = call();
    const int error = errno;
    if (fd >= 0 && !existed && (flags & O_CREAT) != 0) {
        say(settings().trace, "create " + full + ' ' + std::to_string(inode_of(fd)) + '\n');
    } else if (fd >= 0 && (flags & O_TRUNC) != 0) {
        say(settings().trace, "truncate " + std::to_string(inode_of(fd)) + " 0\n");
    }
    errno = error;
    return fd;
}

/// A read or write of `count` bytes by call(bytes to take).
template <class Call>
ssize_t transferred(const char* kind, int fd, std::size_t count, const Call& call) {
    switch (judge(kind, fd)) {
        case Verdict::fail:
            return -1;
        case Verdict::shorten:
            return call(count > 1 ? count / 2 : count);
        case Verdict::tear:
            (void)call(count / 2);
            ::kill(::getpid(), SIGKILL);
            return -1;
        case Verdict::go:
            break;
    }
    return call(count);
}

/// `offset` below 0: where the file's position is.
template <class Call>
ssize_t written(int fd, const void* bytes, std::size_t count, off_t offset, const Call& call) {
    return transferred("write", fd, count, [&](std::size_t n) {
        if (settings().trace < 0) return call(n);
        const std::string path = path_of(fd);
        const bool ack = !settings().acks.empty() && path == settings().acks;
        const off_t at = offset >= 0 ? offset : ::lseek(fd, 0, SEEK_CUR);
        return recorded(
            ack || is_below(path), [&] { return call(n); },
            [&](ssize_t done) -> std::string {
                if (ack) return "ack";
                return "write " + std::to_string(inode_of(fd)) + ' ' + std::to_string(at) + ' ' +
                       hexadecimal(bytes, static_cast<std::size_t>(done));
            });
    });
}

/// The disk is not asked: what a process wrote outlives it anyway, what outlives a power failure is played by disk.h,
/// and the tests need not wait.
template <class Call>
int synced(int fd, const char* what, const Call& call) {
    const std::string path = path_of(fd);
    if (judge("sync", path) == Verdict::fail) return -1;
    if (!is_below(path)) return call();
    return recorded(
        true, [] { return 0; }, [&](int) { return what + std::to_string(inode_of(fd)); });
}

template <class Call>
int renamed(const std::string& from, const std::string& to, const char* word, const Call& call) {
    if (judge("rename", to) == Verdict::fail) return -1;
    return recorded(is_below(to), call, [&](int) { return std::string(word) + ' ' + from + ' ' + to; });
}

template <class Call>
int linked(const std::string& from, const std::string& to, const Call& call) {
    if (judge("link", to) == Verdict::fail) return -1;
    return recorded(is_below(to), call, [&](int) { return "link " + from + ' ' + to; });
}

template <class Call>
int unlinked(const std::string& path, const Call& call) {
    if (judge("unlink", path) == Verdict::fail) return -1;
    return recorded(is_below(path), call, [&](int) { return "unlink " + path; });
}

/// A call that only looks: its result, or `failed`.
template <class Path, class Call, class Result>
Result looked(const char* kind, const Path& path, const Call& call, Result failed) {
    const Settings& s = settings();
    if (s.calls.empty() || judge_at(kind, path) != Verdict::fail) return call();
    return failed;
}

template <class Call>
int made(const std::string& path, const Call& call) {
    if (judge("mkdir", path) == Verdict::fail) return -1;
    return recorded(is_below(path), call, [&](int) { return "mkdir " + path + ' ' + std::to_string(inode_at(path)); });
}

}  // namespace

// The C library's names for 64-bit offsets are functions of their own, which programs built with
// _FILE_OFFSET_BITS=64 and the C++ library call.
extern "C" {

#define DEFINE_OPEN(name)                                                              \
    int name(const char* path, int flags, ...) {                                       \
        NEXT(name);                                                                    \
        va_list rest;                                                                  \
        va_start(rest, flags);                                                         \
        const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;         \
        va_end(rest);                                                                  \
        return opened(AT_FDCWD, path, flags, [&] { return real(path, flags, mode); }); \
    }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)

#define DEFINE_OPENAT(name)                                                                        \
    int name(int directory, const char* path, int flags, ...) {                                    \
        NEXT(name);                                                                                \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;                     \
        va_end(rest);                                                                              \
        return opened(directory, path, flags, [&] { return real(directory, path, flags, mode); }); \
    }
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)

/// openat2() has no name of its own in the C library.
long syscall(long number, ...) noexcept {
    NEXT(syscall);
    va_list rest;
    va_start(rest, number);
    long a[6];
    for (long& argument : a) argument = va_arg(rest, long);
    va_end(rest);
    const auto call = [&] { return real(number, a[0], a[1], a[2], a[3], a[4], a[5]); };
    if (number != SYS_openat2) return call();
    const auto* how = reinterpret_cast<const open_how*>(a[2]);
    return opened(static_cast<int>(a[0]), reinterpret_cast<const char*>(a[1]), static_cast<int>(how->flags),
                  [&] { return static_cast<int>(call()); });
}

ssize_t read(int fd, void* out, size_t count) {
    NEXT(read);
    return transferred("read", fd, count, [&](size_t n) { return real(fd, out, n); });
}
ssize_t pread(int fd, void* out, size_t count, off_t offset) {
    NEXT(pread);
    return transferred("read", fd, count, [&](size_t n) { return real(fd, out, n, offset); });
}
ssize_t pread64(int fd, void* out, size_t count, off64_t offset) {
    NEXT(pread64);
    return transferred("read", fd, count, [&](size_t n) { return real(fd, out, n, offset); });
}
ssize_t write(int fd, const void* bytes, size_t count) {
    NEXT(write);
    return written(fd, bytes, count, -1, [&](size_t n) { return real(fd, bytes, n); });
}
ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
    NEXT(pwrite);
    return written(fd, bytes, count, offset, [&](size_t n) { return real(fd, bytes, n, offset); });
}
ssize_t pwrite64(int fd, const void* bytes, size_t count, off64_t offset) {
    NEXT(pwrite64);
    return written(fd, bytes, count, offset, [&](size_t n) { return real(fd, bytes, n, offset); });
}

/// As a write of the bytes that it copies, which the trace takes from the source.
ssize_t copy_file_range(int from, off64_t* from_at, int to, off64_t* to_at, size_t count, unsigned flags) {
    NEXT(copy_file_range);
    const off_t at = from_at != nullptr ? *from_at : ::lseek(from, 0, SEEK_CUR);
    std::vector<char> bytes(count);
    for (size_t have = 0; have < count;) {
        const ssize_t n =
            ::syscall(SYS_pread64, from, bytes.data() + have, count - have, at + static_cast<off_t>(have));
        if (n <= 0) break;
        have += static_cast<size_t>(n);
    }
    return written(to, bytes.data(), count, to_at != nullptr ? *to_at : -1,
                   [&](size_t n) { return real(from, from_at, to, to_at, n, flags); });
}

int fsync(int fd) {
    NEXT(fsync);
    return synced(fd, "sync ", [&] { return real(fd); });
}
int fdatasync(int fd) {
    NEXT(fdatasync);
    return synced(fd, "sync ", [&] { return real(fd); });
}
int syncfs(int fd) noexcept {
    NEXT(syncfs);
    return synced(fd, "syncfs ", [&] { return real(fd); });
}

int close(int fd) {
    NEXT(close);
    const int error = errno;  // destructors close on the way out of an error
    const bool fails = judge("close", fd) == Verdict::fail;
    const int reason = errno;
    errno = error;
    const int result = real(fd);  // Linux closes even when it reports an error
    if (!fails) return result;
    errno = reason;
    return -1;
}

int rename(const char* from, const char* to) noexcept {
    NEXT(rename);
    return renamed(path_at(AT_FDCWD, from), path_at(AT_FDCWD, to), "rename", [&] { return real(from, to); });
}
int renameat(int from_directory, const char* from, int to_directory, const char* to) noexcept {
    NEXT(renameat);
    return renamed(path_at(from_directory, from), path_at(to_directory, to), "rename",
                   [&] { return real(from_directory, from, to_directory, to); });
}
int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) noexcept {
    NEXT(renameat2);
    const char* word = (flags & RENAME_EXCHANGE) != 0 ? "exchange" : "rename";
    return renamed(path_at(from_directory, from), path_at(to_directory, to), word,
                   [&] { return real(from_directory, from, to_directory, to, flags); });
}

int link(const char* from, const char* to) noexcept {
    NEXT(link);
    return linked(path_at(AT_FDCWD, from), path_at(AT_FDCWD, to), [&] { return real(from, to); });
}
int linkat(int from_directory, const char* from, int to_directory, const char* to, int flags) noexcept {
    NEXT(linkat);
    return linked(path_at(from_directory, from), path_at(to_directory, to),
                  [&] { return real(from_directory, from, to_directory, to, flags); });
}

int unlink(const char* path) noexcept {
    NEXT(unlink);
    return unlinked(path_at(AT_FDCWD, path), [&] { return real(path); });
}
int unlinkat(int directory, const char* path, int flags) noexcept {
    NEXT(unlinkat);
    return unlinked(path_at(directory, path), [&] { return real(directory, path, flags); });
}
int rmdir(const char* path) noexcept {
    NEXT(rmdir);
    return unlinked(path_at(AT_FDCWD, path), [&] { return real(path); });
}
int remove(const char* path) noexcept {
    NEXT(remove);
    return unlinked(path_at(AT_FDCWD, path), [&] { return real(path); });
}

int mkdir(const char* path, mode_t mode) noexcept {
    NEXT(mkdir);
    return made(path_at(AT_FDCWD, path), [&] { return real(path, mode); });
}
int mkdirat(int directory, const char* path, mode_t mode) noexcept {
    NEXT(mkdirat);
    return made(path_at(directory, path), [&] { return real(directory, path, mode); });
}

#define DEFINE_STAT(name, type)                                                                       \
    int name(const char* path, struct type* status) noexcept {                                        \
        NEXT(name);                                                                                   \
        return looked(                                                                                \
            "stat", [&] { return path_at(AT_FDCWD, path); }, [&] { return real(path, status); }, -1); \
    }
DEFINE_STAT(stat, stat)
DEFINE_STAT(stat64, stat64)
DEFINE_STAT(lstat, stat)
DEFINE_STAT(lstat64, stat64)

#define DEFINE_FSTAT(name, type)                                                        \
    int name(int fd, struct type* status) noexcept {                                    \
        NEXT(name);                                                                     \
        return looked(                                                                  \
            "stat", [&] { return path_of(fd); }, [&] { return real(fd, status); }, -1); \
    }
DEFINE_FSTAT(fstat, stat)
DEFINE_FSTAT(fstat64, stat64)

#define DEFINE_FSTATAT(name, type)                                                                                  \
    int name(int directory, const char* path, struct type* status, int flags) noexcept {                            \
        NEXT(name);                                                                                                 \
        return looked(                                                                                              \
            "stat", [&] { return path_at(directory, path); }, [&] { return real(directory, path, status, flags); }, \
            -1);                                                                                                    \
    }
DEFINE_FSTATAT(fstatat, stat)
DEFINE_FSTATAT(fstatat64, stat64)

#define DEFINE_READDIR(name, type)                                                          \
    type* name(DIR* stream) {                                                               \
        NEXT(name);                                                                         \
        return looked(                                                                      \
            "list", [&] { return path_of(::dirfd(stream)); }, [&] { return real(stream); }, \
            static_cast<type*>(nullptr));                                                   \
    }
DEFINE_READDIR(readdir, dirent)
DEFINE_READDIR(readdir64, dirent64)

#define DEFINE_FCNTL(name)                                                   \
    int name(int fd, int command, ...) {                                     \
        NEXT(name);                                                          \
        va_list rest;                                                        \
        va_start(rest, command);                                             \
        void* argument = va_arg(rest, void*);                                \
        va_end(rest);                                                        \
        const bool lock = command == F_OFD_SETLK || command == F_OFD_SETLKW; \
        if (lock && judge("lock", fd) == Verdict::fail) return -1;           \
        return real(fd, command, argument);                                  \
    }
DEFINE_FCNTL(fcntl)
DEFINE_FCNTL(fcntl64)

}  // extern "C"
