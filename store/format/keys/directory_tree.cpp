// How a directory store reaches what lies below its root.
//
// How the root is reached
// -----------------------
// System calls are relative to one descriptor of the root directory, opened on first use. So the kernel does not walk
// the root's path for every chunk, and a store keeps its directory when that is renamed. A root that does not exist is
// empty; the first put creates it. Keys must not contain "..", so they cannot leave the root except through symbolic
// links.
//
// Links
// -----
// Reading follows some of them (followed_links.cpp), or all with follow_links. Any change (a value put, erased, linked
// or moved, a folder created, a lock taken) opens the folder beneath the root without following links, and works on the
// name relative to that descriptor. A link at the name itself is replaced, moved or removed, never its target. With
// follow_links, folders are reached through links too. Links at or below one of Tessera's own names (a part like
// ".tessera") are never followed, not even for reading. See beneath.cpp.
//
// Folders stay open until sync(), which ends an operation. This costs no extra calls, because sync() uses the same
// descriptor.
#include "directory_tree.h"
#include <tessera/action.h>
#include <tessera/error_text.h>
#include <tessera/outside.h>
#include <tessera/own_names.h>
#include <tessera/system_calls.h>

#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <filesystem>
#include <memory>

#include "directories.h"

namespace tessera {

namespace {

/// O_NONBLOCK so that a pipe among the files cannot block a reader for ever; it has no effect on files.
constexpr int read_flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;

}  // namespace

int open_below(int root, const std::string& path, int flags, bool follow) {
    const std::size_t own = own_part(path);
    if (follow && own == std::string::npos) return open_at(root, path.c_str(), flags);
    const int fd = open_beneath(root, path.c_str(), flags);
    if (fd >= 0 || errno != ELOOP || !follow || own == 0) return fd;
    const Descriptor outside(open_at(root, path.substr(0, own - 1).c_str(), os::lookup | O_DIRECTORY));
    return outside ? open_beneath(outside.get(), path.c_str() + own, flags) : -1;
}

DirectoryTree::~DirectoryTree() {
    if (root_ >= 0) ::close(root_);
}

int DirectoryTree::open_root() const {
    // Refuses a link in the place of a hidden build directory: it would redirect the new content.
    const bool own = is_own_name(std::filesystem::path(name_).filename().string());
    const int fd = open_at(AT_FDCWD, name_.c_str(), folder_flags | (own ? O_NOFOLLOW : 0));
    if (fd < 0) {
        struct stat status {};
        if (own && ::lstat(name_.c_str(), &status) == 0 && !S_ISDIR(status.st_mode))
            throw not_ours(name_, status.st_mode);
        if (is_absent(errno)) return -1;
        throw io_error("opening", name_, errno);
    }
    int expected = -1;
    if (root_.compare_exchange_strong(expected, fd, std::memory_order_acq_rel)) return fd;
    ::close(fd);  // another thread was first
    return expected;
}

void DirectoryTree::require_writable(std::string_view doing, std::string_view key) const {
    if (options_.read_only) {
        throw invalid_argument("{} {}: the store was opened for reading only", doing, path_of(key));
    }
}

int DirectoryTree::make_root() const {
    if (const int fd = find_root(); fd >= 0) return fd;
    const std::filesystem::path path = std::filesystem::path(name_).lexically_normal();
    (void)make_directories(path.has_filename() ? path : path.parent_path(), options_.durability);
    const int fd = find_root();
    if (fd < 0) throw io_error("opening", name_, ENOENT);
    return fd;
}

DirectoryTree::Spot DirectoryTree::spot(std::string_view key, Make make) const {
    const int root = make == Make::no ? find_root() : make_root();
    const std::size_t slash = key.rfind('/');
    if (slash == key.npos || root < 0) return {nullptr, root, std::string(key)};
    Folder folder = folder_at(root, key.substr(0, slash), make);
    const int fd = folder ? folder->get() : -1;
    return {std::move(folder), fd, std::string(key.substr(slash + 1))};
}

DirectoryTree::Folder DirectoryTree::folder_at(int root, std::string_view path, Make make) const {
    if (Folder kept = folders_.find(path)) return kept;
    Descriptor fd(open_below(root, std::string(path), folder_flags, options_.follow_links));
    if (!fd && errno == ENOENT && make != Make::no) fd = make_folder(root, path, make);
    if (!fd) {
        const int error = errno;
        if (error == ELOOP || (error == ENOTDIR && own_part(path) != path.npos))
            throw blocked(path, options_.follow_links ? own_part(path) : 0);
        if (is_absent(error) && make == Make::no) return nullptr;
        throw io_error("opening the directory", path_of(path), error);
    }
    auto folder = std::make_shared<const Descriptor>(std::move(fd));
    folders_.keep(path, folder);
    return folder;
}

Descriptor DirectoryTree::make_folder(int root, std::string_view path, Make make) const {
    const Spot place = spot(path, make);
    const bool made = ::mkdirat(place.fd, place.name.c_str(), 0777) == 0;
    if (!made && errno != EEXIST) throw io_error("making the directory", path_of(path), errno);
    if (made) make == Make::for_move ? sync_.changed_for_move(root, path) : sync_.changed(root, path);
    const bool follow = options_.follow_links && own_part(path) == path.npos;
    Descriptor folder(open_below(place.fd, place.name, folder_flags, follow));
    if (made && folder) permissions_.give_folder(root, path, place.fd, folder.get());
    return folder;
}

bool DirectoryTree::is_direct(std::string_view key) const {
    const int root = find_root();
    const std::size_t slash = key.rfind('/');
    if (root < 0 || slash == key.npos || folders_.find(key.substr(0, slash))) return true;
    const Descriptor folder(open_beneath(root, std::string(key.substr(0, slash)).c_str(), os::lookup | O_DIRECTORY));
    return folder || errno != ELOOP;
}

int DirectoryTree::stat_own(int root, std::string_view key, struct stat& status) const {
    const std::size_t slash = key.rfind('/');
    if (slash == key.npos) return ::fstatat(root, std::string(key).c_str(), &status, AT_SYMLINK_NOFOLLOW);
    const std::string_view path = key.substr(0, slash);
    const std::string name(key.substr(slash + 1));
    if (const Folder kept = folders_.find(path)) {
        if (::fstatat(kept->get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return 0;
        if (errno != ENOENT) return -1;
        folders_.drop(path);  // it may have been removed and recreated
    }
    Descriptor fd(open_beneath(root, std::string(path).c_str(), folder_flags));
    if (fd) {
        const auto folder = std::make_shared<const Descriptor>(std::move(fd));
        folders_.keep(path, folder);
        return ::fstatat(folder->get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW);
    }
    if (errno == ELOOP) fd = Descriptor(open_below(root, std::string(path), folder_flags, true));
    if (!fd && errno == ELOOP) throw blocked(path, own_part(path));
    return fd ? ::fstatat(fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) : -1;
}

Error DirectoryTree::blocked(std::string_view path, std::size_t from) const {
    const std::size_t own = own_part(path);
    const std::string in_the_way = obstacle(find_root(), path, from);
    struct stat status {};
    if (in_the_way.empty() || ::fstatat(find_root(), in_the_way.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return io_error("opening", path_of(path), ELOOP);
    }
    if (in_the_way.size() > own) return not_ours(path_of(in_the_way), status.st_mode);
    return invalid_argument("{} is {}: nothing is written or deleted through it; name what it leads to",
                            path_of(in_the_way), kind_text(status.st_mode))
        .advising(Action::follow_links, "allows it");
}

Error DirectoryTree::not_ours(const std::string& path, mode_t mode) {
    return corrupt("{} is {}, in a place where Tessera keeps files of its own and follows no links; remove it", path,
                   kind_text(mode))
        .advising(Action::repair, "removes what is no file and no directory");
}

Descriptor DirectoryTree::open_value(std::string_view key) const {
    require_key(key);
    const int root = find_root();
    if (root < 0) return Descriptor();
    const std::string path(key);
    if (own_part(key) != key.npos) {
        Descriptor fd(open_below(root, path, read_flags, true));
        if (!fd && errno == ELOOP) throw blocked(key, own_part(key));
        if (!fd && !is_absent(errno)) throw io_error("opening", path_of(key), errno);
        return fd;
    }
    const bool any_link = options_.follow_links || links_allowed();
    bool follow = any_link && reads_links_.load(std::memory_order_relaxed);
    const auto known = any_link ? std::nullopt : links_.open_known(root, path, read_flags);
    Descriptor fd(known    ? *known
                  : follow ? open_at(root, path.c_str(), read_flags)
                           : open_without_links(root, path.c_str(), read_flags));
    if (!fd && !follow && errno == ELOOP) {
        follow = true;
        fd = any_link ? Descriptor(open_at(root, path.c_str(), read_flags)) : open_linked(root, path);
        if (!fd && errno == 0) return fd;
        if (fd) reads_links_ = true;  // the next value may lie behind a link too
    }
    if (!fd && (follow || known || errno != ENOENT)) require_absent(root, path, errno);
    return fd;
}

Descriptor DirectoryTree::open_linked(int root, const std::string& key) const {
    FollowedLinks::Opened opened = links_.open(root, key, read_flags, options_.within.native());
    if (!opened.left) return std::move(opened.value);
    const std::string_view name = std::string_view(key).substr(key.rfind('/') + 1);
    // Nothing but chunks is missed behind a link to a plain folder.
    if ((opened.is_folder || !options_.within.empty()) && !looks_like_chunk(name) && name != "c") {
        errno = 0;
        return Descriptor();
    }
    throw unsupported("{} leads out of {} by a symbolic link", path_of(key), path_of(*opened.left))
        .advising(Action::follow_links, "lets it");
}

bool DirectoryTree::leads_out(int fd) const {
    return !options_.within.empty() && !lies_in(fd, options_.within.native());
}

std::string DirectoryTree::target_of(std::string_view prefix) const {
    const int root = find_root();
    std::string target(PATH_MAX, '\0');
    const ssize_t size = root < 0 ? -1 : ::readlinkat(root, std::string(prefix).c_str(), target.data(), target.size());
    target.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return target;
}

void DirectoryTree::require_no_dead_link(int root, std::string_view path) const {
    const std::string link = dead_link(root, path);
    if (link.empty()) return;
    throw corrupt("{} is a symbolic link that leads nowhere: to {}", path_of(link), target_of(link));
}

void DirectoryTree::require_absent(int root, const std::string& key, int error) const {
    require_no_dead_link(root, key);
    struct stat status {};
    if (error == ENOTDIR && looks_like_chunk(key.substr(key.rfind('/') + 1))) {
        const std::string in_the_way = obstacle(root, key);
        if (::fstatat(root, in_the_way.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
            throw corrupt("{} is {}, where a folder of chunks is expected", path_of(in_the_way),
                          kind_text(status.st_mode));
        }
    }
    if (is_absent(error)) return;
    if (::fstatat(root, key.c_str(), &status, 0) == 0 && !S_ISREG(status.st_mode)) {
        throw not_a_file(key, status.st_mode);
    }
    throw io_error("opening", path_of(key), error);
}

Error DirectoryTree::not_a_file(std::string_view key, mode_t mode) const {
    return corrupt("{} is {}, and not a regular file", path_of(key), kind_text(mode));
}

bool DirectoryTree::is_value(int fd, std::string_view key, struct stat& status) const {
    if (::fstat(fd, &status) != 0) throw io_error("reading", path_of(key), errno);
    if (S_ISREG(status.st_mode)) return true;
    if (!S_ISDIR(status.st_mode) || looks_like_chunk(key.substr(key.rfind('/') + 1))) {
        throw not_a_file(key, status.st_mode);
    }
    return false;
}

bool DirectoryTree::facts_of(int root, const std::string& path, os::Facts& facts) const {
    if (os::facts_of(root, path.c_str(), facts)) return true;
    if (is_absent(errno)) return false;
    throw io_error("reading", path_of(path), errno);
}

bool DirectoryTree::stat_value(std::string_view key, struct stat& status) const {
    require_key(key);
    const int root = find_root();
    if (root < 0) return false;
    const bool own = own_part(key) != key.npos;
    const int result = own                       ? stat_own(root, key, status)
                       : options_.within.empty() ? ::fstatat(root, std::string(key).c_str(), &status, 0)
                                                 : stat_within(root, std::string(key), status);
    if (result != 0) {
        if (is_absent(errno)) return false;
        throw io_error("reading", path_of(key), errno);
    }
    if (own && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) throw blocked(key, own_part(key));
    return S_ISREG(status.st_mode);
}

int DirectoryTree::stat_within(int root, const std::string& path, struct stat& status) const {
    Descriptor fd(open_without_links(root, path.c_str(), os::lookup));
    // Without openat2() a link at the end is opened itself.
    const bool link = fd && ::fstat(fd.get(), &status) == 0 && S_ISLNK(status.st_mode);
    if (link || (!fd && errno == ELOOP)) fd = Descriptor(open_at(root, path.c_str(), os::lookup));
    if (fd && leads_out(fd.get())) {
        errno = ENOENT;
        return -1;
    }
    return fd ? ::fstat(fd.get(), &status) : -1;
}

bool DirectoryTree::is_directory(int at, const char* path) {
    struct stat status {};
    return ::fstatat(at, path, &status, 0) == 0 && S_ISDIR(status.st_mode);
}

bool DirectoryTree::stat_entry(int directory, const dirent& entry, std::string_view prefix, struct stat& status) const {
    if (::fstatat(directory, entry.d_name, &status, 0) == 0) return true;
    if (is_absent(errno) || errno == ELOOP) return false;
    throw io_error("reading", path_of(join_key(prefix, entry.d_name)), errno);
}

mode_t DirectoryTree::type_of(int directory, const dirent& entry, std::string_view prefix) const {
    if (entry.d_type == DT_DIR) return S_IFDIR;
    if (entry.d_type == DT_REG) return S_IFREG;
    const bool own = own_part(prefix) != prefix.npos;
    if (entry.d_type == DT_LNK && own) return 0;
    struct stat status {};
    const bool there = stat_entry(directory, entry, prefix, status) ||
                       ::fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0;
    const mode_t type = there ? status.st_mode & S_IFMT : 0;
    return own && type != S_IFDIR && type != S_IFREG ? 0 : type;
}

bool DirectoryTree::leads_on(int directory, const dirent& entry) {
    struct stat status {};
    return entry.d_type == DT_LNK ||
           (::fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode));
}

Descriptor DirectoryTree::own_folder(const std::string& path, bool make) const {
    const int root = find_root();
    const auto open = [&] { return Descriptor(open_below(root, path, folder_flags, options_.follow_links)); };
    Descriptor folder = open();
    if (folder || !make || errno != ENOENT || own_part(path) == path.npos) return folder;
    const std::size_t slash = path.rfind('/');
    const Descriptor above =
        slash == path.npos ? Descriptor(open_at(root, ".", folder_flags)) : own_folder(path.substr(0, slash), make);
    if (!above) return folder;
    (void)make_folder_like_above(above.get(), path.c_str() + (slash + 1));  // 0 without a '/'
    return open();
}

FileWriter DirectoryTree::writer(std::string_view key) const {
    require_key(key);
    require_writable("writing", key);
    Spot place = spot(key, Make::yes);
    const auto wanted = permissions_.of(root_, key, place.fd, place.name.c_str());
    TemporaryFile file(drafts_ ? drafts_->get() : place.fd, wanted.mode());
    if (!file && errno == ENOENT && place.folder && !drafts_) {  // removed since it was opened
        folders_.clear();
        place = spot(key, Make::yes);
        file = TemporaryFile(place.fd, wanted.mode());
    }
    if (!file) throw io_error("making a file in", path_of(key.substr(0, key.rfind('/') + 1)), errno);
    permissions_.give(file.file(), key, place.fd, wanted);
    return {root_, std::move(place.folder), std::move(file), std::string(key), path_of(key), sync_, keeper_.load()};
}

std::optional<DirectoryTree::NewFile> DirectoryTree::new_file(std::string_view key) const {
    Spot place = spot(key, Make::yes);
    const auto wanted = permissions_.of(root_, key, place.fd, place.name.c_str());
    Descriptor fd(open_at(place.fd, place.name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, wanted.mode()));
    if (!fd && errno == EEXIST) return std::nullopt;
    if (!fd) throw io_error("making a file in", path_of(key.substr(0, key.rfind('/') + 1)), errno);
    permissions_.give(fd.get(), key, place.fd, wanted);
    return NewFile{std::move(place), std::move(fd)};
}

}  // namespace tessera
