// A store in a directory: a key is a path below the root, a value is a file.
//
// How a value is replaced, and what a power failure leaves: see file_writer.cpp.
//
// How the root is reached
// -----------------------
// System calls are relative to one descriptor of the root directory, opened at its first use, so that the kernel does
// not walk the root's path for every chunk, and so that a store stays with its directory when that is renamed. A root
// that does not exist is empty; the first put makes it. Keys are checked to have no part "..", so they cannot lead out
// of the root except by symbolic links that somebody put there, and those are followed.
//
// Locks
// -----
// See array_locks.cpp. They are taken by writers only, so a directory that does not exist yet is made.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <tessera/error.h>
#include <tessera/key_value_store.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <set>

#include "array_locks.h"
#include "descriptor.h"
#include "destination_lock_file.h"
#include "directory_store.h"
#include "file_writer.h"
#include "keys.h"
#include "replace_directory.h"

namespace tessera {

namespace {

/// An open directory stream.
using Stream = std::unique_ptr<DIR, decltype([](DIR* d) { ::closedir(d); })>;

/// O_NONBLOCK so that a pipe among the files cannot make a reader wait for ever; it means nothing for files.
constexpr int read_flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;

class FileValue final : public ByteSource {
public:
    FileValue(Descriptor fd, std::uint64_t size, std::string name)
        : fd_(std::move(fd)), size_(size), name_(std::move(name)) {}

    [[nodiscard]] std::uint64_t size() const override { return size_; }

    void read(std::uint64_t offset, MutableByteSpan out) const override {
        if (offset > size_ || out.size() > size_ - offset) {
            throw corrupt(fmt::format("{}: bytes {} to {} were expected, but there are {}", name_, offset,
                                      offset + out.size(), size_));
        }
        while (!out.empty()) {
            const ssize_t n = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) throw io_error("reading", name_, errno);
            if (n == 0) throw corrupt(fmt::format("{}: cut short at byte {} while it was open", name_, offset));
            out = out.subspan(static_cast<std::size_t>(n));
            offset += static_cast<std::uint64_t>(n);
        }
    }

    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    Descriptor fd_;
    std::uint64_t size_;
    std::string name_;
};

class DirectoryStore final : public KeyValueStore {
public:
    DirectoryStore(const std::filesystem::path& root, const StoreOptions& options)
        : name_(root.empty() ? "." : root.string()), options_(options), sync_(options.durability, name_) {}
    ~DirectoryStore() override {
        if (root_ >= 0) ::close(root_);
    }
    DirectoryStore(const DirectoryStore&) = delete;
    DirectoryStore& operator=(const DirectoryStore&) = delete;

    /// Whether there is such a directory.
    [[nodiscard]] bool exists() const { return find_root() >= 0; }

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override {
        Descriptor fd = open_value(key);
        struct stat status {};
        if (!fd || !is_value(fd.get(), key, status)) return nullptr;
        return std::make_unique<FileValue>(std::move(fd), static_cast<std::uint64_t>(status.st_size), path_of(key));
    }

    [[nodiscard]] bool get(std::string_view key, Buffer& out, std::uint64_t limit) const override {
        const Descriptor fd = open_value(key);
        if (!fd) return false;
        // Into the memory that is there; only when that is full is the file's size asked for. Where it ends is asked of
        // lseek, the quickest of the calls that know, after a read that came out short.
        std::size_t have = 0;
        std::optional<std::uint64_t> size;
        out.reset(out.capacity());
        while (have != size) {
            if (have == out.size()) {
                struct stat status {};
                if (!is_value(fd.get(), key, status)) return false;
                size = static_cast<std::uint64_t>(status.st_size);
                if (*size <= have) break;
                require_size(path_of(key), *size, limit);
                out.resize(static_cast<std::size_t>(*size));
            }
            const ssize_t n = ::pread(fd.get(), out.data() + have, out.size() - have, static_cast<off_t>(have));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && errno == EISDIR) return false;
            if (n < 0) throw io_error("reading", path_of(key), errno);
            have += static_cast<std::size_t>(n);
            if (n == 0) break;
            if (!size) size = static_cast<std::uint64_t>(::lseek(fd.get(), 0, SEEK_END));
        }
        if (have > limit) require_size(path_of(key), have, limit);  // it fitted into the memory that was there
        out.resize(have);
        return true;
    }

    void put(std::string_view key, ByteSpan value) override {
        FileWriter file = writer(key);
        file.append(value);
        file.finish();
    }

    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override {
        return std::make_unique<FileWriter>(writer(key));
    }

    bool link(std::string_view key, const KeyValueStore& other, std::string_view other_key) override {
        require_key(key);
        require_writable("linking", key);
        const auto* from = dynamic_cast<const DirectoryStore*>(&other);
        if (from == nullptr) return false;
        const int root = make_root();
        const std::string path(key);
        const std::string target(other_key);
        const auto try_link = [&] {
            if (::linkat(from->find_root(), target.c_str(), root, path.c_str(), AT_SYMLINK_FOLLOW) != 0) return false;
            sync_.changed(root, path);
            return true;
        };
        if (try_link()) return true;
        if (errno != ENOENT) return false;
        make_folders(root, path.substr(0, path.rfind('/') + 1));
        return try_link();
    }

    bool clone(std::string_view key, const KeyValueStore& other, std::string_view other_key) override {
        require_key(key);
        require_writable("copying", key);
        const auto* from = dynamic_cast<const DirectoryStore*>(&other);
        if (from == nullptr) return false;
        const Descriptor source = from->open_value(other_key);
        if (!source) return false;
        FileWriter file = writer(key);
        if (!file.clone(source.get())) return false;
        file.finish();
        return true;
    }

    bool erase(std::string_view key) override {
        require_key(key);
        require_writable("removing", key);
        const int root = find_root();
        if (root < 0) return false;
        const std::string path(key);
        if (::unlinkat(root, path.c_str(), 0) == 0) {
            sync_.changed(root, path);
            return true;
        }
        const int error = errno;
        struct stat status {};
        // For a directory POSIX says EPERM and Linux EISDIR.
        if (is_absent(error) ||
            (::fstatat(root, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode))) {
            return false;
        }
        throw io_error("removing", path_of(key), error);
    }

    void erase_below(std::string_view prefix) override {
        require_prefix(prefix);
        require_writable("removing", prefix);
        const int root = find_root();
        if (root < 0) return;
        // What is removed inside needs no sync of its own: it is gone with the folder, or was to go anyway.
        if (prefix.empty()) {
            erase_entries(root, ".", name_);
            return;
        }
        const std::string path(prefix);
        struct stat status {};
        if (::fstatat(root, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
            if (is_absent(errno)) return;
            throw io_error("removing", path_of(prefix), errno);
        }
        if (S_ISDIR(status.st_mode)) {
            erase_entries(root, path.c_str(), path_of(prefix));
            if (::unlinkat(root, path.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
                throw io_error("removing", path_of(prefix), errno);
            }
            sync_.changed(root, path);
        } else if (S_ISLNK(status.st_mode) && is_directory(root, path.c_str())) {
            // What a link leads to may belong to somebody else: the link is removed, as rm does.
            if (::unlinkat(root, path.c_str(), 0) != 0) throw io_error("removing", path_of(prefix), errno);
        }
    }

    void move(std::string_view from, std::string_view to) override {
        require_movable(name_, from, to);
        require_writable("moving", from);
        const int root = find_root();
        const std::string source(from);
        const std::string target(to);
        if (root < 0 || !is_directory(root, source.c_str())) {
            throw not_found(fmt::format("moving {}: no such directory", path_of(from)));
        }
        make_folders(root, target.substr(0, target.rfind('/') + 1), true);
        int result = ::renameat2(root, source.c_str(), root, target.c_str(), RENAME_NOREPLACE);
        if (result != 0 && (errno == EINVAL || errno == ENOSYS)) {  // a file system without this flag
            struct stat status {};
            errno = ::fstatat(root, target.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 ? EEXIST : 0;
            if (errno == 0) result = ::renameat(root, source.c_str(), root, target.c_str());
        }
        if (result == 0) {
            sync_.changed(root, source);
            sync_.changed(root, target);
            const std::lock_guard guard(locks_mutex_);
            locks_.clear();  // they belong to directories, which now have other prefixes
            return;
        }
        if (errno == EEXIST) {
            throw already_exists(fmt::format("moving {}: {} is there already", path_of(from), path_of(to)));
        }
        throw io_error("moving", path_of(from), errno);
    }

    [[nodiscard]] bool leads_back(std::string_view prefix) const override {
        const int root = find_root();
        struct stat here {};
        if (root < 0 || prefix.empty() || ::fstatat(root, std::string(prefix).c_str(), &here, 0) != 0) return false;
        for (std::string above(prefix); !above.empty();) {
            const std::size_t slash = above.rfind('/');
            above.resize(slash == std::string::npos ? 0 : slash);
            struct stat there {};
            if (::fstatat(root, above.empty() ? "." : above.c_str(), &there, 0) == 0 && there.st_dev == here.st_dev &&
                there.st_ino == here.st_ino) {
                return true;
            }
        }
        return false;
    }

    [[nodiscard]] Listing list(std::string_view prefix) const override {
        Listing listing;
        each_entry(prefix, [&](int directory, const dirent& entry) {
            const mode_t type = type_of(directory, entry, prefix);
            if (type == S_IFDIR) listing.prefixes.emplace_back(entry.d_name);
            if (type == S_IFREG) listing.keys.emplace_back(entry.d_name);
        });
        std::ranges::sort(listing.keys);
        std::ranges::sort(listing.prefixes);
        return listing;
    }

    void for_each(std::string_view prefix, const EachValue& each) const override {
        int folder = -1;
        const dirent* value = nullptr;
        const ValueSize size = [&]() -> std::uint64_t {
            struct stat status {};
            return stat_entry(folder, *value, prefix, status) ? static_cast<std::uint64_t>(status.st_size) : 0;
        };
        each_entry(prefix, [&](int directory, const dirent& entry) {
            if (type_of(directory, entry, prefix) != S_IFREG) return;
            folder = directory;
            value = &entry;
            each(entry.d_name, size);
        });
    }

    bool replace(std::string_view from, std::string_view to) override {
        require_key(from);
        require_key(to);
        require_writable("replacing", to);
        const int root = make_root();
        const std::string source(from);
        const std::string target(to);
        int result = ::renameat(root, source.c_str(), root, target.c_str());
        if (result != 0 && errno == ENOENT) {
            if (::faccessat(root, source.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0) return false;
            make_folders(root, target.substr(0, target.rfind('/') + 1), true);
            result = ::renameat(root, source.c_str(), root, target.c_str());
        }
        if (result != 0) throw io_error("replacing", path_of(to), errno);
        sync_.changed(root, source);
        sync_.changed(root, target);
        return true;
    }

    [[nodiscard]] std::optional<ValueStamp> stamp(std::string_view key) const override {
        require_key(key);
        const int root = find_root();
        struct stat status {};
        if (root < 0 || ::fstatat(root, std::string(key).c_str(), &status, 0) != 0) {
            if (root < 0 || is_absent(errno)) return std::nullopt;
            throw io_error("reading", path_of(key), errno);
        }
        if (!S_ISREG(status.st_mode)) return std::nullopt;
        return ValueStamp{static_cast<std::uint64_t>(status.st_size),
                          std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec, status.st_ino};
    }

    [[nodiscard]] StoreLock lock(std::string_view prefix, std::uint64_t slot, LockMode mode) override {
        try {
            return locks_of(prefix)->lock(slot, mode);
        } catch (const Error& e) {
            // The directory is gone that had the name before; another may have it now.
            if (e.code() != ErrorCode::not_found || !is_directory(find_root(), std::string(prefix).c_str())) throw;
        }
        {
            const std::lock_guard guard(locks_mutex_);
            if (const auto dead = locks_.find(prefix); dead != locks_.end()) locks_.erase(dead);
        }
        return locks_of(prefix)->lock(slot, mode);
    }
    [[nodiscard]] std::optional<StoreLock> try_lock(std::string_view prefix) override {
        return locks_of(prefix)->try_lock();
    }

    [[nodiscard]] StoreLock lock_destination(std::string_view prefix) override {
        require_prefix(prefix);
        require_writable("locking", prefix);
        auto lock = std::make_shared<DestinationLock>(path_of(prefix), options_);
        return StoreLock([lock = std::move(lock)] { lock->unlock(); });
    }

    void sync() override { sync_.sync(find_root()); }
    void sync_later() override { sync_.later(); }

    [[nodiscard]] std::vector<std::string> temporaries(std::string_view prefix) const override {
        std::vector<std::string> names;
        each_name(prefix, true, [&](int, const dirent& entry) { names.emplace_back(entry.d_name); });
        std::ranges::sort(names);
        return names;
    }

    bool remove_temporary(std::string_view prefix, std::string_view name) override {
        const std::string key = join_key(prefix, name);
        require_key(key);
        require_writable("removing", key);
        if (is_destination_lock(name)) {
            const Descriptor folder(open_at(find_root(), prefix.empty() ? "." : std::string(prefix).c_str(), O_PATH));
            return folder && remove_destination_lock(folder.get(), std::string(name));
        }
        struct stat status {};
        if (!name.starts_with(temporary_prefix) || ::fstatat(find_root(), key.c_str(), &status, 0) != 0) return false;
        constexpr std::time_t long_ago = 3600;
        const bool old = status.st_mtime + long_ago < std::time(nullptr);
        if (!old && !temporary_writer_has_ended(name)) return false;
        return erase(key);
    }

    [[nodiscard]] bool read_only() const override { return options_.read_only; }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    /// The full path of a key or prefix, for messages.
    [[nodiscard]] std::string path_of(std::string_view key) const { return join_key(name_, key); }

    void require_writable(std::string_view doing, std::string_view key) const {
        if (options_.read_only) {
            throw invalid_argument(fmt::format("{} {}: the store was opened for reading only", doing, path_of(key)));
        }
    }

    /// The root's descriptor, or -1 when there is no such directory (yet).
    [[nodiscard]] int find_root() const {
        if (const int fd = root_.load(std::memory_order_acquire); fd >= 0) return fd;
        const int fd = open_at(AT_FDCWD, name_.c_str(), O_RDONLY | O_DIRECTORY);
        if (fd < 0) {
            if (is_absent(errno)) return -1;
            throw io_error("opening", name_, errno);
        }
        int expected = -1;
        if (root_.compare_exchange_strong(expected, fd, std::memory_order_acq_rel)) return fd;
        ::close(fd);  // another thread was first
        return expected;
    }

    [[nodiscard]] int make_root() const {
        if (const int fd = find_root(); fd >= 0) return fd;
        const std::filesystem::path path = std::filesystem::path(name_).lexically_normal();
        (void)make_directories(path.has_filename() ? path : path.parent_path(), options_.durability);
        const int fd = find_root();
        if (fd < 0) throw io_error("opening", name_, ENOENT);
        return fd;
    }

    /// A value's descriptor, or none when the key is absent.
    [[nodiscard]] Descriptor open_value(std::string_view key) const {
        require_key(key);
        const int root = find_root();
        if (root < 0) return Descriptor();
        Descriptor fd(open_at(root, std::string(key).c_str(), read_flags));
        if (!fd && !is_absent(errno)) throw io_error("opening", path_of(key), errno);
        return fd;
    }

    /// Whether an open file is a value: a directory is none, and anything else that is no file is refused.
    [[nodiscard]] bool is_value(int fd, std::string_view key, struct stat& status) const {
        if (::fstat(fd, &status) != 0) throw io_error("reading", path_of(key), errno);
        if (S_ISDIR(status.st_mode)) return false;
        if (!S_ISREG(status.st_mode)) throw corrupt(fmt::format("{} is not a regular file", path_of(key)));
        return true;
    }

    static bool is_directory(int at, const char* path) {
        struct stat status {};
        return ::fstatat(at, path, &status, 0) == 0 && S_ISDIR(status.st_mode);
    }

    /// The status of what an entry leads to; false when it is gone, or a link to nothing.
    [[nodiscard]] bool stat_entry(int directory, const dirent& entry, std::string_view prefix,
                                  struct stat& status) const {
        if (::fstatat(directory, entry.d_name, &status, 0) == 0) return true;
        if (is_absent(errno) || errno == ELOOP) return false;
        throw io_error("reading", path_of(join_key(prefix, entry.d_name)), errno);
    }

    /// S_IFDIR, S_IFREG or another type of what an entry leads to; 0 as stat_entry's false.
    [[nodiscard]] mode_t type_of(int directory, const dirent& entry, std::string_view prefix) const {
        if (entry.d_type == DT_DIR) return S_IFDIR;
        if (entry.d_type == DT_REG) return S_IFREG;
        struct stat status {};
        return stat_entry(directory, entry, prefix, status) ? status.st_mode & S_IFMT : 0;
    }

    /// Makes each directory of `folder` ("a/b/") that is missing.
    /// With `for_move` each is durable at once: else a power failure could leave what was moved there, and not the
    /// folder, and so neither name of it.
    void make_folders(int root, const std::string& folder, bool for_move = false) const {
        for (std::size_t slash = folder.find('/'); slash != std::string::npos; slash = folder.find('/', slash + 1)) {
            const std::string path = folder.substr(0, slash);
            if (::mkdirat(root, path.c_str(), 0777) == 0) {
                for_move ? sync_.changed_for_move(root, path) : sync_.changed(root, path);
            } else if (errno != EEXIST) {
                throw io_error("making the directory", path_of(path), errno);
            }
        }
    }

    [[nodiscard]] FileWriter writer(std::string_view key) const {
        require_key(key);
        require_writable("writing", key);
        const int root = make_root();
        const std::size_t folder = key.rfind('/') + 1;  // 0 without a '/'
        std::string temporary;
        Descriptor fd = create_temporary(root, std::string(key.substr(0, folder)), temporary);
        return {root, std::move(fd), std::move(temporary), std::string(key), path_of(key), sync_};
    }

    /// A new temporary file in `folder`, which is made when it is missing.
    [[nodiscard]] Descriptor create_temporary(int root, const std::string& folder, std::string& name) const {
        for (bool made_folders = false;;) {
            name = folder + temporary_name();
            Descriptor fd(open_at(root, name.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666));
            if (fd) return fd;
            if (errno == EEXIST) continue;  // left by a process that crashed and had our number
            if (errno != ENOENT || made_folders) throw io_error("making a file in", path_of(folder), errno);
            make_folders(root, folder);
            made_folders = true;
        }
    }

    /// Calls `body(directory, entry)` for what lies directly below a prefix, temporary files left out.
    template <class Body>
    void each_entry(std::string_view prefix, Body&& body) const {
        each_name(prefix, false, std::forward<Body>(body));
    }

    /// The same for temporary files alone, or all others.
    template <class Body>
    void each_name(std::string_view prefix, bool temporary, Body&& body) const {
        require_prefix(prefix);
        const int root = find_root();
        if (root < 0) return;
        const std::string path = prefix.empty() ? "." : std::string(prefix);
        each_entry_at(root, path.c_str(), 0, path_of(prefix), [&](int directory, const dirent& entry) {
            if (std::string_view(entry.d_name).starts_with(temporary_prefix) == temporary) body(directory, entry);
        });
    }

    /// The same for a directory relative to `at`, with temporary files; nothing when it is absent.
    template <class Body>
    static void each_entry_at(int at, const char* path, int flags, const std::string& full_path, Body&& body) {
        Descriptor fd(open_at(at, path, O_RDONLY | O_DIRECTORY | flags));
        if (!fd) {
            if (is_absent(errno)) return;
            throw io_error("listing", full_path, errno);
        }
        const Stream stream(::fdopendir(fd.get()));
        if (!stream) throw io_error("listing", full_path, errno);
        (void)fd.release();  // the stream closes it
        for (;;) {
            errno = 0;
            const dirent* entry = ::readdir(stream.get());
            if (!entry && errno != 0) throw io_error("listing", full_path, errno);
            if (!entry) return;
            const std::string_view name = entry->d_name;
            if (name != "." && name != "..") body(::dirfd(stream.get()), *entry);
        }
    }

    /// Empties a directory; symbolic links in it are removed, not followed.
    static void erase_entries(int at, const char* path, const std::string& full_path) {
        each_entry_at(at, path, O_NOFOLLOW, full_path, [&](int directory, const dirent& entry) {
            const std::string entry_path = join_key(full_path, entry.d_name);
            if (::unlinkat(directory, entry.d_name, 0) == 0 || errno == ENOENT) return;
            const int error = errno;
            if (error != EISDIR && error != EPERM) throw io_error("removing", entry_path, error);
            erase_entries(directory, entry.d_name, entry_path);
            if (::unlinkat(directory, entry.d_name, AT_REMOVEDIR) != 0 && errno != ENOENT) {
                throw io_error("removing", entry_path, errno == ENOTDIR ? error : errno);
            }
        });
    }

    [[nodiscard]] std::shared_ptr<ArrayLocks> locks_of(std::string_view prefix) {
        require_prefix(prefix);
        require_writable("locking", prefix);
        const std::lock_guard guard(locks_mutex_);
        if (locks_owner_ != process_number()) {
            locks_.clear();  // those of the process that this one was forked from
            locks_owner_ = process_number();
        }
        auto found = locks_.find(prefix);
        if (found == locks_.end()) {
            const int root = make_root();
            const std::string path = prefix.empty() ? "." : std::string(prefix);
            if (!prefix.empty()) make_folders(root, path + '/');
            const Descriptor directory(open_at(root, path.c_str(), O_RDONLY | O_DIRECTORY));
            if (!directory) throw io_error("locking", path_of(prefix), errno);
            found = locks_.emplace(prefix, array_locks(directory.get(), path_of(prefix), options_.process_locks)).first;
        }
        return found->second;
    }

    std::string name_;
    StoreOptions options_;
    mutable FolderSync sync_;
    mutable std::atomic<int> root_ = -1;
    std::mutex locks_mutex_;
    std::map<std::string, std::shared_ptr<ArrayLocks>, std::less<>> locks_;
    pid_t locks_owner_ = process_number();
};

}  // namespace

std::shared_ptr<KeyValueStore> directory_store(const std::filesystem::path& root, const StoreOptions& options) {
    return std::make_shared<DirectoryStore>(root, options);
}

std::shared_ptr<KeyValueStore> probe_directory_store(const std::filesystem::path& root, const StoreOptions& options) {
    if (root.empty()) return nullptr;
    auto store = std::make_shared<DirectoryStore>(root, options);
    return store->exists() ? store : nullptr;
}

}  // namespace tessera
