// Access of a store to a directory and everything below it. Private to store/format/keys.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <tessera/descriptor.h>
#include <tessera/error.h>
#include <tessera/key_value_store.h>
#include <tessera/system_calls.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "beneath.h"
#include "file_permissions.h"
#include "file_writer.h"
#include "followed_links.h"
#include "keys.h"

namespace tessera {

/// Opens a path below a directory. With `follow`, follows links in parts before the first one that is Tessera's own.
[[nodiscard]] int open_below(int root, const std::string& path, int flags, bool follow);

/// The root of a directory store, and access to the folders, links and values below it. Thread rule: any thread may
/// call any member.
class DirectoryTree {
public:
    DirectoryTree(std::string name, const StoreOptions& options)
        : name_(std::move(name)),
          options_(options),
          sync_(options.durability, name_, folders_),
          permissions_(name_, options.waiter) {}
    ~DirectoryTree();
    DirectoryTree(const DirectoryTree&) = delete;
    DirectoryTree& operator=(const DirectoryTree&) = delete;

protected:
    using Folder = FolderCache::Folder;

    static constexpr int folder_flags = O_RDONLY | O_DIRECTORY;

    /// The full path of a key or prefix, for messages.
    [[nodiscard]] std::string path_of(std::string_view key) const { return join_key(name_, key); }
    void require_writable(std::string_view doing, std::string_view key) const;
    /// The root's descriptor, or -1 if the directory does not exist (yet).
    [[nodiscard]] int find_root() const {
        if (const int fd = root_.load(std::memory_order_acquire); fd >= 0) return fd;
        return open_root();
    }
    [[nodiscard]] int make_root() const;

    // ---- folders

    /// A name and the open folder that contains it, so that system calls on the name pass through no link.
    struct Spot {
        Folder folder;  ///< null for the root
        int fd = -1;    ///< of the folder, or the root; negative if there is none
        std::string name;
        [[nodiscard]] bool is_there() const { return fd >= 0; }
    };
    enum class Make : std::uint8_t {
        no,
        yes,
        for_move,  ///< durable at once: else a power failure could lose the folder that something was moved into
    };
    /// The spot of a key or prefix to be changed. Throws if its folder lies behind a link that must not be followed.
    [[nodiscard]] Spot spot(std::string_view key, Make make) const;
    /// Null if there is no such folder and `make` does not create it.
    [[nodiscard]] Folder folder_at(int root, std::string_view path, Make make) const;
    /// Creates a folder and missing ones above it, and opens it.
    [[nodiscard]] Descriptor make_folder(int root, std::string_view path, Make make) const;
    /// Opens a folder of Tessera's own, and makes it if `make`, without a wait for the disk; on failure none.
    [[nodiscard]] Descriptor own_folder(const std::string& path, bool make) const;
    /// Whether the path of a key contains no link.
    [[nodiscard]] bool is_direct(std::string_view key) const;
    static bool leads_to_folder(const Spot& place) { return is_directory(place.fd, place.name.c_str()); }
    /// fstatat() of one of Tessera's own keys, following no link.
    [[nodiscard]] int stat_own(int root, std::string_view key, struct stat& status) const;
    /// fstatat() that finds nothing behind a link that leads out of StoreOptions::within.
    [[nodiscard]] int stat_within(int root, const std::string& path, struct stat& status) const;
    /// The error for a path that is obstructed by something other than a folder, or by a link that is not followed.
    /// Parts that end before `from` are not examined.
    [[nodiscard]] Error blocked(std::string_view path, std::size_t from = 0) const;
    /// The error for something else in the place of one of Tessera's own files or directories.
    [[nodiscard]] static Error not_ours(const std::string& path, mode_t mode);

    // ---- values

    /// A value's descriptor, or none if the key is absent: the name does not exist, not even as a dangling link.
    [[nodiscard]] Descriptor open_value(std::string_view key) const;
    /// The same after a link was met. If it is not followed, throws unsupported; but none, with errno 0, for what is no
    /// chunk and lies behind a link to a folder, or out of StoreOptions::within.
    [[nodiscard]] Descriptor open_linked(int root, const std::string& key) const;
    /// Whether an open file or folder lies outside of StoreOptions::within.
    [[nodiscard]] bool leads_out(int fd) const;
    /// The text of a link; empty if it is not a link.
    [[nodiscard]] std::string target_of(std::string_view prefix) const;
    void require_no_dead_link(int root, std::string_view path) const;
    /// Called after a value could not be opened: throws unless the key is absent.
    void require_absent(int root, const std::string& key, int error) const;
    [[nodiscard]] Error not_a_file(std::string_view key, mode_t mode) const;
    /// Whether an open file is a value. False for a directory. Throws for a directory in a chunk's place, and for
    /// anything else that is not a file.
    [[nodiscard]] bool is_value(int fd, std::string_view key, struct stat& status) const;
    /// The status of a name, not following links; false if it does not exist.
    [[nodiscard]] bool facts_of(int root, const std::string& path, os::Facts& facts) const;
    /// Whether the key exists, as a file; fetches its present status.
    [[nodiscard]] bool stat_value(std::string_view key, struct stat& status) const;
    static bool is_directory(int at, const char* path);
    /// The status of an entry's target; false if the entry is gone or a dangling link.
    [[nodiscard]] bool stat_entry(int directory, const dirent& entry, std::string_view prefix,
                                  struct stat& status) const;
    /// The type of an entry's target (S_IFDIR, S_IFREG, …), or S_IFLNK for a dangling link. 0 for an entry that is
    /// gone, and among Tessera's own for anything but files and folders.
    [[nodiscard]] mode_t type_of(int directory, const dirent& entry, std::string_view prefix) const;
    /// Whether an entry that leads to a folder is a link. Some file systems do not report this in d_type.
    [[nodiscard]] static bool leads_on(int directory, const dirent& entry);
    [[nodiscard]] FileWriter writer(std::string_view key) const;
    /// A new file under its final name, for what nobody reads before it is complete.
    struct NewFile {
        Spot place;
        Descriptor fd;
    };
    /// nullopt if the key exists.
    [[nodiscard]] std::optional<NewFile> new_file(std::string_view key) const;
    /// Calls `body(directory, entry)` for each entry directly below a prefix, except temporary files.
    template <class Body>
    void each_entry(std::string_view prefix, Body&& body) const {
        each_name(prefix, false, std::forward<Body>(body));
    }
    /// The same for temporary files only, or for all others.
    template <class Body>
    void each_name(std::string_view prefix, bool temporary, Body&& body) const {
        require_prefix(prefix);
        const int root = find_root();
        if (root < 0) return;
        Descriptor fd(open_below(root, prefix.empty() ? "." : std::string(prefix), folder_flags, true));
        if (!fd && errno == ELOOP && own_part(prefix) != prefix.npos) throw blocked(prefix, own_part(prefix));
        // Below Tessera's own names no link is followed, not even a dangling one.
        if (!fd && (errno == ENOENT || errno == ELOOP) && own_part(prefix) == prefix.npos) {
            const int error = errno;
            require_no_dead_link(root, prefix);
            errno = error;
        }
        if ((!fd && is_absent(errno)) || (fd && leads_out(fd.get()))) return;
        const bool listed = fd && each_entry_of(std::move(fd), [&](int directory, const dirent& entry) {
                                const std::string_view name = entry.d_name;
                                if (name.starts_with(temporary_prefix) == temporary && !is_deleted_open(name))
                                    body(directory, entry);
                            });
        if (!listed) throw io_error("listing", path_of(prefix), errno);
    }

    std::string name_;
    StoreOptions options_;
    mutable FolderCache folders_;
    mutable FollowedLinks links_;
    mutable FolderSync sync_;
    mutable FilePermissions permissions_;
    mutable std::atomic<int> root_ = -1;
    Folder drafts_;                                ///< see draft_in()
    std::atomic<ChangeKeeper*> keeper_ = nullptr;  ///< not owned; keeps what is replaced and removed

private:
    [[nodiscard]] int open_root() const;

    mutable std::atomic<bool> reads_links_ = false;  ///< a value was read through a link, and any link is followed
};

}  // namespace tessera
