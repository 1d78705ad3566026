// Folders that the file system cannot rename
// ------------------------------------------
// overlayfs (containers) refuses to rename a folder that lies in its lower layer, with EXDEV, as if it were on another
// file system. Its content can be copied, which is what mv does then.
#include "copy_folder.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <tessera/descriptor.h>
#include <tessera/error.h>
#include <tessera/permissions.h>
#include <tessera/system_calls.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "beneath.h"
#include "directories.h"

namespace tessera {

namespace {

void copy_entry(int from_folder, const char* from, int to_folder, const char* to, const std::string& path);

/// Times and permissions, once the content is complete.
void give_facts(int file, const struct stat& like, const std::string& list) {
    struct stat status {};
    if (::fstat(file, &status) != 0) return;
    Permissions now = permissions_from(status);
    Permissions wanted = permissions_from(like);
    now.list = access_list(file);
    wanted.list = list;
    (void)give_permissions(file, now, wanted);
    const std::array<timespec, 2> times{like.st_atim, like.st_mtim};
    (void)::futimens(file, times.data());
}

void copy_file(int from_folder, const char* from, int to_folder, const char* to, const std::string& path) {
    const Descriptor source(open_at(from_folder, from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    struct stat status {};
    if (!source || ::fstat(source.get(), &status) != 0) throw io_error("reading", path, errno);
    constexpr mode_t own = 0600;
    Descriptor copy(open_at(to_folder, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, own));
    if (!copy) throw io_error("copying", path, errno);
    constexpr std::size_t piece = std::size_t{256} << 10U;
    std::vector<char> bytes(piece);
    for (;;) {
        const ssize_t n = ::read(source.get(), bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) throw io_error("reading", path, errno);
        if (n == 0) break;
        if (!write_all(copy.get(), std::as_bytes(std::span(bytes)).first(static_cast<std::size_t>(n)))) {
            throw io_error("copying", path, errno);
        }
    }
    give_facts(copy.get(), status, access_list(source.get()));
    if (const int why = copy.close()) throw io_error("copying", path, why);
}

void copy_link(int from_folder, const char* from, int to_folder, const char* to, const std::string& path) {
    std::string text(PATH_MAX, '\0');
    const ssize_t size = ::readlinkat(from_folder, from, text.data(), text.size());
    if (size < 0) throw io_error("reading the link", path, errno);
    text.resize(static_cast<std::size_t>(size));
    if (::symlinkat(text.c_str(), to_folder, to) != 0) throw io_error("copying the link", path, errno);
}

void copy_folder(int from_folder, const char* from, int to_folder, const char* to, const std::string& path) {
    const Descriptor source(open_at(from_folder, from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    struct stat status {};
    if (!source || ::fstat(source.get(), &status) != 0) throw io_error("opening", path, errno);
    constexpr mode_t own = 0700;
    if (::mkdirat(to_folder, to, own) != 0) throw io_error("copying", path, errno);
    const Descriptor copy(open_at(to_folder, to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    if (!copy) throw io_error("copying", path, errno);
    Descriptor listed(open_at(source.get(), ".", O_RDONLY | O_DIRECTORY));
    const bool complete = listed && each_entry_of(std::move(listed), [&](int, const dirent& entry) {
                              const char* const name = entry.d_name;
                              copy_entry(source.get(), name, copy.get(), name, path + '/' + name);
                          });
    if (!complete) throw io_error("listing", path, errno);
    give_facts(copy.get(), status, access_list(source.get()));
}

void copy_entry(int from_folder, const char* from, int to_folder, const char* to, const std::string& path) {
    struct stat status {};
    if (::fstatat(from_folder, from, &status, AT_SYMLINK_NOFOLLOW) != 0) throw io_error("reading", path, errno);
    if (S_ISDIR(status.st_mode)) return copy_folder(from_folder, from, to_folder, to, path);
    if (S_ISLNK(status.st_mode)) return copy_link(from_folder, from, to_folder, to, path);
    if (S_ISREG(status.st_mode)) return copy_file(from_folder, from, to_folder, to, path);
    throw io_error("copying", path + ", which is neither a file nor a folder,", EXDEV);
}

}  // namespace

bool copy_in_kernel(int from, int to, std::uint64_t size, std::atomic<bool>& clones) {
    if (clones.load(std::memory_order_relaxed)) {
        if (os::clone(to, from)) return true;
        clones.store(false, std::memory_order_relaxed);
    }
    std::uint64_t done = 0;
    while (done < size) {
        const ssize_t n = os::copy_range(from, to, static_cast<std::size_t>(size - done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG)) {
            throw io_error("copying", "a file", errno);
        }
        if (n <= 0) return false;  // also a file that became shorter
        done += static_cast<std::uint64_t>(n);
    }
    return true;
}

bool rename_new(int from_folder, const char* from, int to_folder, const char* to) {
    if (os::rename_new(from_folder, from, to_folder, to)) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    struct stat status {};  // a file system without this flag
    if (::fstatat(to_folder, to, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EEXIST;
        return false;
    }
    return ::renameat(from_folder, from, to_folder, to) == 0;
}

bool move_across(int from_folder, const char* from, int to_folder, const char* to, const std::string& path) {
    struct stat status {};
    if (::fstatat(to_folder, to, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EEXIST;
        return false;
    }
    const std::string hidden = hidden_name(to, "moved");
    remove_beneath(to_folder, hidden.c_str(), path);  // of an earlier attempt
    try {
        copy_entry(from_folder, from, to_folder, hidden.c_str(), path);
        const Descriptor there(open_at(to_folder, hidden.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
        if (!there || !os::sync_file_system(there.get())) throw io_error("writing to the disk", path, errno);
    } catch (...) {
        remove_beneath(to_folder, hidden.c_str(), path);
        throw;
    }
    if (!rename_new(to_folder, hidden.c_str(), to_folder, to)) {
        const int error = errno;
        remove_beneath(to_folder, hidden.c_str(), path);
        errno = error;
        return false;
    }
    remove_beneath(from_folder, from, path);
    return true;
}

void move_folder(const std::filesystem::path& from, const std::filesystem::path& to) {
    const auto above = [](const std::filesystem::path& path) {
        return Descriptor(open_at(AT_FDCWD,
                                  (path.has_parent_path() ? path.parent_path() : std::filesystem::path(".")).c_str(),
                                  O_RDONLY | O_DIRECTORY));
    };
    const Descriptor source = above(from);
    const Descriptor target = above(to);
    if (!source || !target ||
        !move_across(source.get(), from.filename().c_str(), target.get(), to.filename().c_str(), from.string())) {
        throw io_error("moving", from.string(), errno);
    }
}

}  // namespace tessera
