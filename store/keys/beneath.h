// Opening, listing and removing what lies below a directory without leaving it through a symbolic link. Private to the
// store module. Why: see beneath.cpp.
#pragma once

#include <dirent.h>
#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "descriptor.h"

namespace tessera {

/// openat() of a relative path, without a part "..", that passes through no symbolic link and ends at none; errno is
/// ELOOP where one stands. `flags` as for openat(), O_CLOEXEC is added.
[[nodiscard]] int open_beneath(int directory, const char* path, int flags, mode_t mode = 0);

/// For readers, which follow links: fails with ELOOP at a link, so that ENOENT says in one call that nothing has the
/// name, not even a link that leads nowhere. Where openat2() is missing only a link at the end of the path is noticed.
[[nodiscard]] int open_without_links(int directory, const char* path, int flags);

/// The shortest beginning of a path that is a symbolic link which leads nowhere, or in a circle; empty without one.
[[nodiscard]] std::string dead_link(int directory, std::string_view path);

/// The same part by part, for kernels without openat2(). Public for its test.
[[nodiscard]] int open_part_by_part(int directory, const char* path, int flags, mode_t mode = 0);

/// The shortest beginning of a path below `directory` that is not a directory itself (a link to one is none); empty
/// when the whole path is one or nothing is there. Beginnings that end before `from` are passed over.
[[nodiscard]] std::string obstacle(int directory, std::string_view path, std::size_t from = 0);

/// "a symbolic link", "a directory", "a FIFO", …: of a mode as lstat() gives it.
[[nodiscard]] std::string_view kind_text(mode_t mode);

/// Calls `body(directory, entry)` for each entry of an open directory but "." and "..". False with errno set where the
/// listing fails.
bool each_entry_of(Descriptor directory, const std::function<void(int, const dirent&)>& body);

/// Removes what has a name in a directory: a file, a link (not what it leads to), a directory with everything below it.
/// Nothing there is no error. `full_path` is for messages. Throws io.
void remove_beneath(int directory, const char* name, const std::string& full_path);
/// The same for everything in a directory, which stays.
void empty_beneath(Descriptor directory, const std::string& full_path);

/// Folders that were opened beneath one root, by their paths, so that each is walked to once in an operation and not
/// once for each value. How many are kept is limited for the whole process. Any thread may call any of it.
class FolderCache {
public:
    using Folder = std::shared_ptr<const Descriptor>;

    FolderCache() = default;
    ~FolderCache() { clear(); }
    FolderCache(const FolderCache&) = delete;
    FolderCache& operator=(const FolderCache&) = delete;

    /// Null when it is not kept.
    [[nodiscard]] Folder find(std::string_view path) const;
    void keep(std::string_view path, const Folder& folder);
    void drop(std::string_view path);
    void clear();

private:
    mutable std::mutex mutex_;
    std::map<std::string, Folder, std::less<>> folders_;
};

}  // namespace tessera
