// Locks of an array between threads and between processes.
//
// What is locked
// --------------
// Slot 0 is the array's shape. Writers of chunks hold it shared and then re-check the metadata. Writers of the shape,
// the attributes or the array as a whole hold it exclusively. Slot 1 + i is chunk i (with shards: shard i). A writer
// holds it from before reading the old value until the new one is in place. Readers hold nothing: a chunk is replaced
// atomically, so they see it whole, old or new.
//
// How
// ---
// Between threads by mutexes (lock_table.h). Between processes by byte-range locks on the file `.tessera/lock` in the
// array's directory, slot i being byte i. They are open-file-description locks (F_OFD_SETLK). Unlike POSIX's older
// locks, they belong to an open file and not to a process, so that closing another descriptor of the file does not drop
// them. Unlike flock's, they lock single bytes. A process opens the file once for each array, and its threads share it.
// A lock that several threads hold shared is counted: the first takes it and the last drops it. A process that ends in
// any way drops its locks.
//
// A byte beyond all slots is the gate, which everybody passes on the way to slot 0. A waiting exclusive locker holds
// the gate, so that a stream of writers cannot starve a resize.
//
// The file may be removed while nobody has the array open, as may all of `.tessera/`. With slot 0 held exclusively, it
// is also removed with the marker of a completed copy and with an array that is being replaced. Whoever gets slot 0
// therefore checks that the locked file still has its name, and otherwise opens the new file. If the directory itself
// is gone, it throws not_found.
//
// Chunk slots need no lock between processes while this process holds slot 0 exclusively: nobody else can hold one.
//
// Other programs than Tessera do not take these locks.
#include "array_locks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <tessera/action.h>
#include <tessera/byte_io.h>
#include <tessera/caller.h>
#include <tessera/descriptor.h>
#include <tessera/error_text.h>
#include <tessera/fork.h>
#include <tessera/permissions.h>
#include <tessera/system_calls.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "beneath.h"
#include "directories.h"
#include "lock_table.h"

namespace tessera {

namespace {

/// Of all threads; under library_mutex(array_locks).
std::vector<const LockWait*> waits;

}  // namespace

LockWait::LockWait(const HeldLock& wanted) : wanted_(wanted) {
    for (const Caller* caller = &Caller::current(); caller != nullptr; caller = caller->outer) {
        held_.insert(held_.end(), caller->locks.begin(), caller->locks.end());
    }
    static const bool registered = [] {
        after_fork_in_child([] { waits.clear(); });
        return true;
    }();
    (void)registered;
    const std::lock_guard guard(library_mutex(LibraryMutex::array_locks));
    std::vector<const LockWait*> passed;
    if (leads_to(*this, passed)) {
        throw invalid_argument(
            "two threads would wait for each other for ever: the functions that update() has called write to each "
            "other's arrays, and each has locked the chunk that the other one writes to; write to one of the arrays "
            "after its update, or from one thread");
    }
    waits.push_back(this);
}

LockWait::~LockWait() {
    const std::lock_guard guard(library_mutex(LibraryMutex::array_locks));
    std::erase(waits, this);
}

bool LockWait::holds(const HeldLock& wanted) const {
    return std::ranges::any_of(held_, [&](const HeldLock& lock) {
        return lock.table == wanted.table && lock.kind == wanted.kind && (!lock.released || !*lock.released);
    });
}

/// Whether some thread that holds what this one waits for waits, maybe by way of others, for `first`.
bool LockWait::leads_to(const LockWait& first, std::vector<const LockWait*>& passed) const {
    if (this != &first && first.holds(wanted_)) return true;
    for (const LockWait* wait : waits) {
        if (!wait->holds(wanted_) || std::ranges::find(passed, wait) != passed.end()) continue;
        passed.push_back(wait);
        if (wait->leads_to(first, passed)) return true;
    }
    return false;
}

namespace {

constexpr const char* folder = ".tessera";
constexpr const char* lock_file = ".tessera/lock";
constexpr auto gate_byte = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max() - 1);

class DirectoryLocks final : public ArrayLocks, public std::enable_shared_from_this<DirectoryLocks> {
public:
    DirectoryLocks(Descriptor directory, std::string name, bool processes)
        : directory_(std::move(directory)), name_(std::move(name)), processes_(processes) {
        if (processes_) open_file();
    }

    [[nodiscard]] StoreLock lock(std::uint64_t slot, LockMode mode) override {
        if (slot != 0) return lock_chunk(slot);
        return hold_shape(threads_.lock_shape(mode), Wait::yes).value();
    }

    [[nodiscard]] std::optional<StoreLock> try_lock() override {
        auto shape = threads_.try_lock_shape();
        if (!shape) return std::nullopt;
        return hold_shape(*std::move(shape), Wait::no);
    }

    void close_idle() override {
        const std::unique_lock passing(passing_, std::try_to_lock);
        if (!passing) return;
        const std::lock_guard guard(mutex_);
        if (holders_ == 0) file_ = Descriptor();
    }

    /// For a forked child: it shares the open file, and would keep its locks alive.
    void forget_file() { file_ = Descriptor(); }

private:
    enum class Wait : bool { no, yes };

    /// Takes the process lock of slot 0, whose thread lock is held. nullopt if it does not wait and another process
    /// holds it.
    std::optional<StoreLock> hold_shape(ThreadLocks::Shape shape, Wait wait) {
        try {
            if (processes_ && !lock_shape(shape, wait)) {
                threads_.unlock_shape(shape);
                return std::nullopt;
            }
        } catch (...) {
            threads_.unlock_shape(shape);
            throw;
        }
        if (shape.mode == LockMode::exclusive) exclusive_ = true;
        return StoreLock([self = shared_from_this(), shape = std::move(shape), pid = process_number()] {
            if (pid != process_number()) return;  // a forked child has a copy of the lock, but not the lock
            self->release_shape(shape);
        });
    }

    bool lock_shape(const ThreadLocks::Shape& shape, Wait wait) {
        if (shape.again && join()) return true;
        std::unique_lock passing(passing_, std::defer_lock);
        lock_or_stop(passing);
        if (!file_) open_file();
        const short type = shape.mode == LockMode::shared ? F_RDLCK : F_WRLCK;
        for (;;) {
            if (!take(type, gate_byte, wait)) return false;
            bool joined = false;
            bool got = false;
            try {
                // Threads of this process that hold it shared hold it for all. The last of them may be dropping it just
                // now, so counting and dropping happen under one mutex. No other thread can take it meanwhile, because
                // this one holds `passing_`.
                joined = shape.mode == LockMode::shared && join();
                got = joined || take(type, 0, wait);
            } catch (...) {
                drop(gate_byte);
                throw;
            }
            drop(gate_byte);
            // The file is removed only under slot 0, so joiners hold the current one.
            if (joined || !got) return got;
            if (!is_stale()) {
                const std::lock_guard guard(mutex_);
                ++holders_;
                return true;
            }
            drop(0);
            open_file();
        }
    }

    bool join() {
        const std::lock_guard guard(mutex_);
        if (holders_ == 0) return false;
        ++holders_;
        return true;
    }

    void release_shape(const ThreadLocks::Shape& shape) {
        if (shape.mode == LockMode::exclusive) exclusive_ = false;
        if (processes_) {
            const std::lock_guard guard(mutex_);
            if (--holders_ == 0) drop(0);
        }
        threads_.unlock_shape(shape);
    }

    StoreLock lock_chunk(std::uint64_t slot) {
        threads_.lock_chunk(slot);
        const bool shared_by_processes = processes_ && !exclusive_;
        try {
            if (shared_by_processes) take(F_WRLCK, slot, Wait::yes);
        } catch (...) {
            threads_.unlock_chunk(slot);
            throw;
        }
        return StoreLock([self = shared_from_this(), slot, shared_by_processes, pid = process_number()] {
            if (pid != process_number()) return;
            if (shared_by_processes) self->drop(slot);
            self->threads_.unlock_chunk(slot);
        });
    }

    /// Takes the lock of one byte; false if it does not wait and another process holds it. Waits by polling, because
    /// a wait in the kernel ends only with a signal to this very thread, and not when the thread is asked to stop.
    bool take(short type, std::uint64_t byte, Wait wait) const {
        constexpr auto longest = std::chrono::milliseconds(4);
        for (std::chrono::microseconds pause(50); !try_take(type, byte); pause = std::min(2 * pause, {longest})) {
            if (wait == Wait::no) return false;
            throw_if_stopped();
            std::this_thread::sleep_for(pause);
        }
        return true;
    }

    [[nodiscard]] bool try_take(short type, std::uint64_t byte) const {
        if (set(type, byte) == 0) return true;
        if (errno == EAGAIN || errno == EACCES) return false;
        if (errno == ENOLCK || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) {
            throw io_error("this file system has no locks that would keep other writers away:",
                           fmt::format("{}/{}", name_, lock_file), errno)
                .advising(Action::no_locks, "goes on without, if you know that there are none");
        }
        throw io_error("locking", fmt::format("{}/{}", name_, lock_file), errno);
    }

    /// A lock that cannot be dropped ends with the process.
    void drop(std::uint64_t byte) const { set(F_UNLCK, byte); }

    int set(short type, std::uint64_t byte) const {
        struct flock range {};
        range.l_type = type;
        range.l_whence = SEEK_SET;
        range.l_start = static_cast<off_t>(byte);
        range.l_len = 1;
        return os::lock(file_.get(), range, false);
    }

    /// Whether the name no longer leads to the open file.
    [[nodiscard]] bool is_stale() const {
        struct stat there {};
        return ::fstatat(directory_.get(), lock_file, &there, AT_SYMLINK_NOFOLLOW) != 0 || id_of(there) != id_;
    }

    void open_file() {
        // The flags guard against a planted link or pipe. A planted hard link is harmless, because nothing is ever
        // written into the file.
        constexpr int flags = O_RDWR | O_CREAT | O_NONBLOCK | O_NOCTTY;
        Descriptor file(open_beneath(directory_.get(), lock_file, flags, 0666));
        if (!file && errno == ENOENT) {
            if (!make_folder_like_above(directory_.get(), folder) && errno != EEXIST) {
                if (errno == ENOENT) {
                    throw not_found("{}: is gone: it was removed, or another took its place; open it again", name_);
                }
                throw io_error("making the directory", fmt::format("{}/{}", name_, folder), errno);
            }
            file = Descriptor(open_beneath(directory_.get(), lock_file, flags, 0666));
        }
        const int error = errno;
        if (!file) require_place(folder, S_IFDIR);
        struct stat status {};
        if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
            require_place(lock_file, S_IFREG);
            if (error == EACCES) require_shared(directory_.get(), lock_file, fmt::format("{}/{}", name_, lock_file));
            throw io_error("opening the lock file", fmt::format("{}/{}", name_, lock_file), error);
        }
        (void)share_with_folder(file.get(), status, directory_.get());  // all who may write lock it
        file_ = std::move(file);
        id_ = id_of(status);
    }

    /// Throws corrupt if something of another type is at `path`.
    void require_place(const char* path, mode_t type) const {
        struct stat status {};
        if (::fstatat(directory_.get(), path, &status, AT_SYMLINK_NOFOLLOW) != 0 || (status.st_mode & S_IFMT) == type) {
            return;
        }
        throw corrupt("{}/{} is {}, where the locks of the array are to be; remove it", name_, path,
                      kind_text(status.st_mode));
    }

    ThreadLocks threads_;
    Descriptor directory_;
    std::string name_;
    bool processes_;
    std::atomic<bool> exclusive_ = false;  ///< this process holds slot 0 exclusively

    std::timed_mutex passing_;  ///< held by the one thread that takes slot 0 between processes
    std::mutex mutex_;          ///< for the count; never held while waiting for another process
    std::int64_t holders_ = 0;
    Descriptor file_;  ///< replaced only under `passing_` while nobody holds anything
    FileId id_;
};

// Includes the process: a forked child must reopen the file, because it shares its parent's open files.
using Key = std::tuple<pid_t, dev_t, ino_t, bool>;
using Tables = std::map<Key, std::weak_ptr<DirectoryLocks>>;

Tables& all_tables() {
    static Tables& tables = *new Tables;  // never destroyed: threads that are not joined may lock to the very end
    return tables;
}

bool close_in_children() {
    after_fork_in_child([] {
        for (const auto& [key, table] : all_tables()) {
            if (const auto locks = table.lock()) locks->forget_file();
        }
    });
    return true;
}

}  // namespace

std::shared_ptr<ArrayLocks> array_locks(int directory, const std::string& name, bool processes) {
    struct stat status {};
    if (::fstat(directory, &status) != 0) throw io_error("locking", name, errno);
    static const bool closed_by_children = close_in_children();
    (void)closed_by_children;
    static std::size_t enough = 64;
    Tables& tables = all_tables();
    const std::lock_guard guard(library_mutex(LibraryMutex::array_locks));
    // Not each time: with many arrays being made, each would scan all the others.
    if (tables.size() >= enough) {
        std::erase_if(tables, [](const auto& entry) { return entry.second.expired(); });
        enough = std::max<std::size_t>(64, 2 * tables.size());
    }
    auto& entry = tables[{process_number(), status.st_dev, status.st_ino, processes}];
    auto locks = entry.lock();
    if (!locks) {
        Descriptor own(open_at(directory, ".", O_RDONLY | O_DIRECTORY));
        if (!own) throw io_error("locking", name, errno);
        entry = locks = std::make_shared<DirectoryLocks>(std::move(own), name, processes);
    }
    return locks;
}

}  // namespace tessera
