// Opening, listing and removing what lies below a directory without leaving it through a symbolic link. Private to the
// store module. Why: see beneath.cpp.
#pragma once

#include <dirent.h>
#include <sys/types.h>
#include <tessera/descriptor.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace tessera {

/// openat() of a relative path without "..", in which no part may be a symbolic link (errno ELOOP). `flags` as for
/// openat(); O_CLOEXEC is added.
[[nodiscard]] int open_beneath(int directory, const char* path, int flags, mode_t mode = 0);

/// The same for readers, whose paths often have one part. ENOENT means in one call that the name does not exist, not
/// even as a dangling link.
[[nodiscard]] int open_without_links(int directory, const char* path, int flags);

/// The shortest leading part of a path that is a dangling or circular symbolic link; empty if there is none.
[[nodiscard]] std::string dead_link(int directory, std::string_view path);

/// The same part by part, for kernels without openat2(). Public for its test.
[[nodiscard]] int open_part_by_part(int directory, const char* path, int flags, mode_t mode = 0);

/// The shortest leading part of a path below `directory` that is not a directory itself (a link to one is not). Empty
/// if the whole path is a directory or nothing is there. Skips leading parts that end before `from`.
[[nodiscard]] std::string obstacle(int directory, std::string_view path, std::size_t from = 0);

/// "a symbolic link", "a directory", "a FIFO", …, for a mode from lstat().
[[nodiscard]] std::string_view kind_text(mode_t mode);

/// Calls `body(directory, entry)` for each entry of an open directory except "." and "..". Returns false and sets errno
/// if the listing fails.
bool each_entry_of(Descriptor directory, const std::function<void(int, const dirent&)>& body);

/// Removes a name in a directory: a file, a link (not its target), or a directory with everything below it. An absent
/// name is not an error. A directory with nothing but files that a program has open still (is_deleted_open) stays; with
/// `patient`, it gets a moment to close them. `full_path` is for messages. Throws io.
void remove_beneath(int directory, const char* name, const std::string& full_path, bool patient = true);
/// The same for everything in a directory, which stays.
void empty_beneath(Descriptor directory, const std::string& full_path);

/// Open folders beneath one root, by path, so that an operation walks to each folder once and not for every value. The
/// number of open folders is limited for the whole process. Thread rule: any thread may call any member.
class FolderCache {
public:
    using Folder = std::shared_ptr<const Descriptor>;

    FolderCache() = default;
    ~FolderCache() { clear(); }
    FolderCache(const FolderCache&) = delete;
    FolderCache& operator=(const FolderCache&) = delete;

    /// Null if it is not cached.
    [[nodiscard]] Folder find(std::string_view path) const;
    void keep(std::string_view path, const Folder& folder);
    void drop(std::string_view path);
    void clear();

private:
    mutable std::mutex mutex_;
    std::map<std::string, Folder, std::less<>> folders_;
};

}  // namespace tessera
