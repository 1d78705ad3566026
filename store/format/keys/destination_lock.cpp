// Only one builder for each destination.
//
// How it is locked
// ----------------
// By flock on `.NAME.tessera-lock` in the folder of the destination. It is outside the destination, so that it survives
// the exchange of two directories and the removal of an earlier attempt. flock, unlike the byte-range locks of
// array_locks.cpp, also locks a file that another user made and that can only be read.
//
// The holder removes the file, because zarr warns of unknown files in a group. Whoever locks the file therefore checks
// that it still has its name, and otherwise starts again: its holder has just removed it. Only holders remove it, so
// that the name of a locked file never goes to another one; require_held() detects removal by a user. A file left by a
// killed process is locked, and so taken over, by the next run.
//
// The file holds one line, "PID HOST", for the messages of waiting processes. Nothing else depends on it.
//
// No deadlock
// -----------
// Threads that take destinations in the order of their real paths, a folder before its content, may wait: no cycle is
// possible. A thread that requests one before another that it holds does not wait. Waiting is polling, a few dozen
// times a second, so that it can be cancelled, and each attempt resolves folders and links anew.
#include <tessera/action.h>
#include <tessera/descriptor.h>
#include <tessera/destination_lock.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <tessera/error_text.h>
#include <tessera/fork.h>
#include <tessera/parallel.h>
#include <tessera/permissions.h>
#include <tessera/store_kind.h>
#include <tessera/system_calls.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "destination_lock_file.h"
#include "directories.h"
#include "seal_mark.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

/// A name in a folder, independent of the path to it.
using DestinationKey = std::tuple<dev_t, ino_t, std::string>;

struct Holder {
    std::thread::id thread;
    fs::path place;              ///< without links: defines the order
    Descriptor* file = nullptr;  ///< the locked file
};

/// Destinations that this process holds. A forked child holds none.
struct Held {
    std::mutex& mutex = library_mutex(LibraryMutex::destinations);
    std::map<DestinationKey, Holder> holders;
    pid_t process = process_number();
};

Held& held_here() {
    static Held& held = *new Held;
    // A forked child shares the open files, and would keep their locks alive.
    static const bool closed_by_children = [] {
        after_fork_in_child([] {
            for (auto& [key, holder] : held.holders) *holder.file = Descriptor();
        });
        return true;
    }();
    (void)closed_by_children;
    const std::lock_guard guard(held.mutex);
    if (held.process != process_number()) {
        held.holders.clear();
        held.process = process_number();
    }
    return held;
}

/// Whether a system call failed because this user, or anybody, may not do that there.
bool is_refusal(int error) {
    return error == EACCES || error == EPERM || error == EROFS;
}

std::string host_name() {
    std::array<char, HOST_NAME_MAX + 1> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

/// The writer of the lock file, for a message; accepts any content.
std::string builder_of(int file) {
    std::array<char, 128> bytes{};
    const ssize_t n = ::pread(file, bytes.data(), bytes.size(), 0);
    const std::string_view line(bytes.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
    pid_t process = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), process);
    const auto digits = static_cast<std::size_t>(end - line.data());
    const std::size_t newline = line.find('\n');
    if (error != std::errc() || newline == std::string_view::npos || newline <= digits || line[digits] != ' ') {
        return "another process";
    }
    const std::string_view host = line.substr(digits + 1, newline - digits - 1);
    return host == host_name() ? fmt::format("process {}", process) : fmt::format("process {} on {}", process, host);
}

void write_builder(int file) {
    std::string line = fmt::format("{} {}\n", process_number(), host_name());
    constexpr std::size_t same_everywhere = 128;  // fixed size for every process and machine, because tests count bytes
    line.resize(std::max(line.size(), same_everywhere), '\n');
    [[maybe_unused]] const ssize_t written = ::pwrite(file, line.data(), line.size(), 0);
}

/// flock without waiting; false if somebody else holds it.
bool try_flock(int file, const fs::path& name) {
    while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        if (errno == EWOULDBLOCK) return false;
        throw io_error("this file system has no locks that would keep other runs away:", name.string(), errno)
            .advising(Action::no_locks, "goes on without, if you know that there are none");
    }
    return true;
}

/// The destination of a path, and its folder.
struct Where {
    fs::path place;
    fs::path folder;
    std::string name;
};

Where where_of(const fs::path& path) {
    Where where{.place = resolved(path), .folder = {}, .name = {}};
    if (where.place.filename() == "." || where.place.filename() == "..") {
        where.place = resolved(where.place.lexically_normal());
    }
    where.name = where.place.filename().string();
    where.folder = where.place.has_parent_path() ? where.place.parent_path() : fs::path(".");
    return where;
}

/// Notifies the waiter once, then sleeps a little longer each time.
class Waiting {
public:
    Waiting(const fs::path& path, Waiter* waiter) : path_(path), waiter_(waiter) {}

    void wait(const std::string& builder) {
        if (waiter_ != nullptr) {
            // Not the first time: a process that only checks for a builder holds the lock for a moment.
            if (++waits_ == 2) waiter_->waits(path_, builder);
            require_going_on(builder);
        }
        std::this_thread::sleep_for(pause_);
        pause_ = std::min(pause_ * 2, longest);
    }

    /// Throws cancelled if the waiter has given up.
    void require_going_on(const std::string& builder) const {
        if (!stop_requested() && (waiter_ == nullptr || !waiter_->stopped())) return;
        throw cancelled("interrupted while waiting for {}, which {} is making", path_.string(), builder);
    }

private:
    static constexpr std::chrono::milliseconds longest{40};
    const fs::path& path_;
    Waiter* waiter_;
    int waits_ = 0;
    std::chrono::milliseconds pause_{1};
};

}  // namespace

struct DestinationLock::State {
    fs::path place;
    fs::path folder;
    std::string lock_name;  ///< in the folder; empty if the directory itself is locked, or nothing
    DestinationKey key;
    bool taken = false;
    bool entered = false;        ///< among what this process holds
    Descriptor parent;           ///< of the folder
    Descriptor file;             ///< the locked file or directory, if any
    std::vector<fs::path> made;  ///< folders above that were missing, the lowest first
    fs::path real;               ///< of the destination, without links; once entered
    StoreLock elsewhere;         ///< in another kind of store
    pid_t process = process_number();

    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { release(); }

    std::optional<std::string> take(const fs::path& path, const StoreOptions& options);
    [[nodiscard]] bool out_of_order() const;
    void release() noexcept;
    bool open_parent(const StoreOptions& options);
    std::optional<std::string> take_elsewhere(const fs::path& path, const StoreOptions& options);
    std::optional<std::string> enter_here(const fs::path& path, const std::string& name);
    std::optional<std::string> enter(const fs::path& path);
    [[nodiscard]] Descriptor open_lock_file() const;
    bool open_directory();
    [[noreturn]] void no_lock_file(const fs::path& path, int error) const;
    [[nodiscard]] bool in_place() const;
};

void DestinationLock::State::release() noexcept {
    if (process != process_number()) return;  // a forked child has copies of the descriptors, but not the lock
    if (file && !lock_name.empty()) {
        struct stat own {};
        struct stat there {};
        if (::fstat(file.get(), &own) == 0 &&
            ::fstatat(parent.get(), lock_name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
            id_of(own) == id_of(there)) {
            (void)::unlinkat(parent.get(), lock_name.c_str(), 0);  // on failure, the next run takes it over
        }
    }
    file = Descriptor();
    if (entered) {
        Held& held = held_here();
        const std::lock_guard guard(held.mutex);
        held.holders.erase(key);
        entered = false;
    }
    std::error_code kept;  // non-empty folders stay
    for (const fs::path& above : made) fs::remove(above, kept);
    made.clear();
}

/// False if a folder vanished meanwhile.
bool DestinationLock::State::open_parent(const StoreOptions& options) {
    parent = Descriptor(open_at(AT_FDCWD, folder.c_str(), os::lookup | O_DIRECTORY));
    if (parent) return true;
    if (errno != ENOENT) throw io_error("opening", folder.string(), errno);
    const auto missing =
        in_context([&] { return place.string(); }, [&] { return make_directories(folder, options.durability); });
    made.insert(made.begin(), missing.begin(), missing.end());
    parent = Descriptor(open_at(AT_FDCWD, folder.c_str(), os::lookup | O_DIRECTORY));
    if (!parent && errno != ENOENT) throw io_error("opening", folder.string(), errno);
    return bool(parent);
}

std::optional<std::string> DestinationLock::State::enter_here(const fs::path& path, const std::string& name) {
    struct stat above {};
    if (::fstat(parent.get(), &above) != 0) throw io_error("looking at", folder.string(), errno);
    key = {above.st_dev, above.st_ino, name};
    std::error_code error;
    real = fs::canonical(folder, error);
    if (error) real = fs::absolute(folder);
    real /= name;
    return enter(path);
}

/// The lock of a place in another kind of store: between threads as here, else as the store has it.
std::optional<std::string> DestinationLock::State::take_elsewhere(const fs::path& path, const StoreOptions& options) {
    const Place there = store_kind_of(path).place(path, options);
    place = there.store->name_of(there.prefix);
    real = place;
    key = {0, 0, place.string()};
    if (auto builder = enter(path)) return builder;
    if (options.process_locks) elsewhere = there.store->lock_destination(there.prefix);
    there.store->require_unsealed(there.prefix);
    taken = true;
    return std::nullopt;
}

/// Enters the destination in `Held`. If another thread holds it, returns a description of that; throws if this thread
/// does.
std::optional<std::string> DestinationLock::State::enter(const fs::path& path) {
    Held& held = held_here();
    const std::lock_guard guard(held.mutex);
    const auto [holder, is_new] = held.holders.try_emplace(key, Holder{std::this_thread::get_id(), real, &file});
    entered = is_new;
    if (is_new) return std::nullopt;
    if (holder->second.thread == std::this_thread::get_id()) {
        throw already_exists("{}: it is being made already, by this very thread", path.string());
    }
    return "another thread";
}

/// The lock file; none if it cannot be created here, with the reason in errno: ENOENT if its holder has just removed
/// it.
Descriptor DestinationLock::State::open_lock_file() const {
    constexpr int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    // Another user's file may be readable only, and then opening it with O_CREAT may fail.
    int refused = 0;
    for (const int mode : {O_RDWR | O_CREAT, O_RDWR, O_RDONLY}) {
        Descriptor opened(open_at(parent.get(), lock_name.c_str(), mode | flags, 0666));
        if (opened || !is_refusal(errno)) {
            // If no file may be created here, its absence does not mean that a holder has just removed it.
            const bool forbidden = refused != 0 && ::faccessat(parent.get(), ".", W_OK | X_OK, AT_EACCESS) != 0;
            if (!opened && errno == ENOENT && forbidden) errno = refused;
            // Where a file cannot be made although its folder is there (in /proc), waiting would not end.
            struct stat above {};
            const bool there = ::fstat(parent.get(), &above) == 0 && above.st_nlink > 0;
            if (!opened && errno == ENOENT && refused == 0 && there) errno = EPERM;
            return opened;
        }
        refused = errno;
    }
    return Descriptor();
}

/// Opens the existing directory itself for locking; false if there is none.
bool DestinationLock::State::open_directory() {
    const int reason = errno;
    lock_name.clear();
    file = Descriptor(open_at(AT_FDCWD, place.c_str(), O_RDONLY | O_DIRECTORY));
    errno = reason;
    return bool(file);
}

/// Whether the locked file is still the one at its path.
bool DestinationLock::State::in_place() const {
    struct stat own {};
    struct stat there {};
    if (!file) return true;
    if (::fstat(file.get(), &own) != 0) return false;
    if (lock_name.empty()) return ::stat(place.c_str(), &there) == 0 && id_of(own) == id_of(there);
    struct stat above {};
    struct stat folder_there {};
    return ::fstatat(parent.get(), lock_name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && id_of(own) == id_of(there) &&
           ::fstat(parent.get(), &above) == 0 && ::stat(folder.c_str(), &folder_there) == 0 &&
           id_of(above) == id_of(folder_there);
}

/// Throws the error of a lock file that could not be opened.
void DestinationLock::State::no_lock_file(const fs::path& path, int error) const {
    const std::string lock = hidden_name(place, "lock");
    if (is_refusal(error)) {
        require_shared(parent.get(), lock.c_str(), (folder / lock).string());
        throw io_error(fmt::format("cannot make {}: writing to the folder", path.string()), folder.string(), error);
    }
    throw io_error(fmt::format("cannot make {}: opening its lock file", path.string()), (folder / lock).string(),
                   error);
}

/// One attempt; returns the holder if somebody else holds the destination. If it returns nullopt and `taken` is false,
/// something changed meanwhile: try again.
std::optional<std::string> DestinationLock::State::take(const fs::path& path, const StoreOptions& options) {
    if (!is_local(path)) return take_elsewhere(path, options);
    Where where = where_of(path);
    place = std::move(where.place);
    folder = std::move(where.folder);
    taken = where.name.empty();  // the root of the file system, which nobody makes
    if (taken || !open_parent(options)) return std::nullopt;
    if (auto builder = enter_here(path, where.name)) return builder;
    taken = !options.process_locks;
    if (taken) return std::nullopt;

    lock_name = hidden_name(place, "lock");
    file = open_lock_file();
    if (!file && errno == ENOENT) return std::nullopt;
    if (!file && !(is_refusal(errno) && open_directory())) no_lock_file(path, errno);
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) throw io_error("locking", path.string(), errno);
    if (!lock_name.empty() && !S_ISREG(status.st_mode)) {
        const fs::path name = folder / std::exchange(lock_name, {});
        throw already_exists("{}: something that is no lock file is there; move it away first", name.string());
    }
    if (!try_flock(file.get(), folder / lock_name)) {
        std::string builder = lock_name.empty() ? "another process" : builder_of(file.get());
        file = Descriptor();  // it is not ours to remove
        return builder;
    }
    taken = in_place();
    // Who may make something here must be able to open the file.
    if (taken && !lock_name.empty()) (void)share_with_folder(file.get(), status, parent.get());
    // A file with a second hard link may be somebody else's, outside the folder: write nothing into it.
    if (taken && !lock_name.empty() && status.st_nlink == 1) write_builder(file.get());
    return std::nullopt;
}

/// Whether this thread holds a destination that sorts after this one, so that it must not wait.
bool DestinationLock::State::out_of_order() const {
    Held& held = held_here();
    const std::lock_guard guard(held.mutex);
    return std::ranges::any_of(held.holders, [&](const auto& entry) {
        return entry.second.thread == std::this_thread::get_id() && entry.second.place > real;
    });
}

DestinationLock::DestinationLock() noexcept = default;
DestinationLock::DestinationLock(DestinationLock&&) noexcept = default;
DestinationLock& DestinationLock::operator=(DestinationLock&&) noexcept = default;
DestinationLock::~DestinationLock() = default;

DestinationLock::DestinationLock(const fs::path& path, const StoreOptions& options) {
    Waiting waiting(path, options.waiter);
    std::vector<fs::path> made;
    for (;;) {
        auto attempt = std::make_unique<State>();
        attempt->made = std::move(made);
        const std::optional<std::string> builder = attempt->take(path, options);
        if (attempt->taken) {
            if (attempt->parent) require_unsealed(attempt->parent.get(), attempt->place.filename().string(), options);
            state_ = std::move(attempt);
            return;
        }
        if (builder && attempt->out_of_order()) {
            throw already_exists(
                "{}: {} is making it, and to wait for that while holding a destination that comes after "
                "it could last for ever; try again",
                path.string(), *builder);
        }
        made = std::move(attempt->made);
        if (builder) {
            waiting.wait(*builder);
        } else {
            waiting.require_going_on("another process");
        }
    }
}

const fs::path& DestinationLock::place() const {
    return state_->place;
}

void DestinationLock::require_held() const {
    if (!state_ || state_->in_place()) return;
    throw Error(ErrorCode::io,
                fmt::format("{}: its lock was removed, or its folder moved, while it was being made, so that another "
                            "run may be making it too",
                            state_->place.string()));
}

void DestinationLock::unlock() noexcept {
    state_.reset();
}

bool is_destination_lock(std::string_view name) {
    return name.starts_with('.') && name.ends_with(".tessera-lock");
}

std::optional<std::string> destination_builder(int folder, const std::string& lock_name) {
    const Descriptor file(open_at(folder, lock_name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    // Shared, so that two checkers do not take each other for a builder.
    if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return std::nullopt;
    return builder_of(file.get());
}

bool remove_destination_lock(int folder, const std::string& lock_name) {
    const Descriptor file(open_at(folder, lock_name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    struct stat own {};
    struct stat there {};
    return file && ::fstat(file.get(), &own) == 0 && S_ISREG(own.st_mode) && try_flock(file.get(), lock_name) &&
           ::fstatat(folder, lock_name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && id_of(own) == id_of(there) &&
           ::unlinkat(folder, lock_name.c_str(), 0) == 0;
}

}  // namespace tessera
