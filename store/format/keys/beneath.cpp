// Access below a directory, but never out of it.
//
// Why
// ---
// An array may come from an untrusted sender. In the place of a folder of chunks, `.tessera` or a lock file, it may
// have a symbolic link to any file of the user who opens it. Keys cannot contain "..", so links are the only way out.
//
// How
// ---
// openat2() with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS walks a whole path in one call and fails with ELOOP at the
// first link. A kernel older than 5.6 has no such call, and a sandbox may forbid it: the path is then walked part by
// part, each opened with O_NOFOLLOW below the one before.
//
// rename(), unlink() and mkdir() have no such flags. They get the descriptor of the folder, opened as above, and a
// single name, where they do not follow a link. Replacing the folder by a link meanwhile has no effect, because the
// descriptor stays with the opened folder. Removals open each directory with O_NOFOLLOW below the one before; a
// directory that became a link is removed as a link.
//
// An open folder stays the same one if somebody moves it away and puts another in its place. Folders are therefore kept
// open only for the duration of an operation (KeyValueStore::sync).
#include "beneath.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <tessera/error.h>
#include <tessera/system_calls.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "keys.h"

namespace tessera {

namespace {

/// Number of folders open in all caches of the process, which may often open only 1024 files in all.
std::atomic<int> kept_folders = 0;
constexpr int most_kept_folders = 64;

bool is_link(int directory, const char* name) {
    struct stat status {};
    return ::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

/// One part of a path.
int open_part(int directory, const char* name, int flags, mode_t mode = 0) {
    const int fd = open_at(directory, name, flags | O_NOFOLLOW, mode);
    // With O_DIRECTORY, a link fails with ENOTDIR.
    if (fd < 0 && errno == ENOTDIR) errno = is_link(directory, name) ? ELOOP : ENOTDIR;
    return fd;
}

}  // namespace

int open_part_by_part(int directory, const char* path, int flags, mode_t mode) {
    std::string_view rest = path;
    Descriptor above;
    for (std::size_t slash = rest.find('/'); slash != std::string_view::npos; slash = rest.find('/')) {
        const std::string part(rest.substr(0, slash));
        Descriptor next(open_part(above ? above.get() : directory, part.c_str(), os::lookup | O_DIRECTORY));
        if (!next) return -1;
        above = std::move(next);
        rest.remove_prefix(slash + 1);
    }
    return open_part(above ? above.get() : directory, std::string(rest).c_str(), flags, mode);
}

int open_beneath(int directory, const char* path, int flags, mode_t mode) {
    const auto fd = os::open_beneath(directory, path, flags, mode);
    return fd ? *fd : open_part_by_part(directory, path, flags, mode);
}

int open_without_links(int directory, const char* path, int flags) {
    // For a path of one part O_NOFOLLOW is enough.
    return std::strchr(path, '/') != nullptr ? open_beneath(directory, path, flags)
                                             : open_at(directory, path, flags | O_NOFOLLOW);
}

std::string obstacle(int directory, std::string_view path, std::size_t from) {
    for (std::size_t end = path.find('/', from);; end = path.find('/', end + 1)) {
        const std::string part(path.substr(0, end));
        struct stat status {};
        if (::fstatat(directory, part.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return {};
        if (!S_ISDIR(status.st_mode)) return part;
        if (end == std::string_view::npos) return {};
    }
}

std::string dead_link(int directory, std::string_view path) {
    for (std::size_t end = path.find('/');; end = path.find('/', end + 1)) {
        std::string part(path.substr(0, end));
        struct stat status {};
        if (::fstatat(directory, part.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return {};
        const bool link = S_ISLNK(status.st_mode);
        if (link && ::fstatat(directory, part.c_str(), &status, 0) != 0 && errno != EACCES) return part;
        if (end == std::string_view::npos) return {};
    }
}

std::string_view kind_text(mode_t mode) {
    if (S_ISLNK(mode)) return "a symbolic link";
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a FIFO";
    if (S_ISSOCK(mode)) return "a socket";
    if (S_ISREG(mode)) return "a file";
    return "a device";
}

bool each_entry_of(Descriptor directory, const std::function<void(int, const dirent&)>& body) {
    using Stream = std::unique_ptr<DIR, decltype([](DIR* d) { ::closedir(d); })>;
    const Stream stream(::fdopendir(directory.get()));
    if (!stream) return false;
    (void)directory.release();  // the stream closes it
    for (;;) {
        errno = 0;
        const dirent* entry = ::readdir(stream.get());
        if (entry == nullptr) return errno == 0;
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") body(::dirfd(stream.get()), *entry);
    }
}

namespace {

/// Whether a directory holds nothing but deleted files that a program has open, and directories of such.
bool holds_only_deleted(int directory, const char* name) {
    Descriptor inside(open_part(directory, name, O_RDONLY | O_DIRECTORY));
    bool any = false;
    bool only = true;
    const bool listed = inside && each_entry_of(std::move(inside), [&](int at, const dirent& entry) {
                            any = true;
                            only = only && (is_deleted_open(entry.d_name) || holds_only_deleted(at, entry.d_name));
                        });
    return listed && any && only;
}

}  // namespace

void remove_beneath(int directory, const char* name, const std::string& full_path, bool patient) {
    if (::unlinkat(directory, name, 0) == 0 || errno == ENOENT) return;
    const int error = errno;
    // For a directory POSIX says EPERM and Linux EISDIR.
    if (error != EISDIR && error != EPERM) throw io_error("removing", full_path, error);
    // A writer that still has the directory open may recreate its lock file there while it is being emptied.
    constexpr int tries = 100;
    constexpr int waits = 10;  // FUSE closes files some time after the program did
    constexpr std::chrono::milliseconds pause{2};
    for (int n = 0;; ++n) {
        Descriptor inside(open_part(directory, name, O_RDONLY | O_DIRECTORY));
        if (!inside && errno == ENOENT) return;
        // One of another user's run that was killed before it shared it.
        if (!inside && errno == EACCES && ::unlinkat(directory, name, AT_REMOVEDIR) == 0) return;
        if (!inside) throw io_error("removing", full_path, errno == ENOTDIR || errno == ELOOP ? error : errno);
        empty_beneath(std::move(inside), full_path);
        if (::unlinkat(directory, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return;
        if (errno != ENOTEMPTY) throw io_error("removing", full_path, errno);
        if (holds_only_deleted(directory, name)) {
            if (!patient || n >= waits) return;
            std::this_thread::sleep_for(pause);
        } else if (n == tries) {
            throw io_error("removing", full_path, ENOTEMPTY);
        }
    }
}

void empty_beneath(Descriptor directory, const std::string& full_path) {
    const bool listed = each_entry_of(std::move(directory), [&](int inside, const dirent& entry) {
        if (is_deleted_open(entry.d_name)) {
            (void)::unlinkat(inside, entry.d_name, 0);  // left by a crash, unless it is open
        } else {
            remove_beneath(inside, entry.d_name, full_path + '/' + entry.d_name, false);
        }
    });
    if (!listed) throw io_error("listing", full_path, errno);
}

FolderCache::Folder FolderCache::find(std::string_view path) const {
    const std::lock_guard guard(mutex_);
    const auto found = folders_.find(path);
    return found == folders_.end() ? nullptr : found->second;
}

void FolderCache::keep(std::string_view path, const Folder& folder) {
    const std::lock_guard guard(mutex_);
    if (kept_folders >= most_kept_folders) {
        kept_folders -= static_cast<int>(folders_.size());
        folders_.clear();
        if (kept_folders >= most_kept_folders) return;  // the limit is reached
    }
    const auto [place, fresh] = folders_.insert_or_assign(std::string(path), folder);
    if (fresh) ++kept_folders;
}

void FolderCache::drop(std::string_view path) {
    const std::lock_guard guard(mutex_);
    const auto found = folders_.find(path);
    if (found == folders_.end()) return;
    folders_.erase(found);
    --kept_folders;
}

void FolderCache::clear() {
    const std::lock_guard guard(mutex_);
    kept_folders -= static_cast<int>(folders_.size());
    folders_.clear();
}

}  // namespace tessera
