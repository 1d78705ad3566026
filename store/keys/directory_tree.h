// A directory and what lies below it, as a store reaches it. Private to store/keys.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <tessera/error.h>
#include <tessera/key_value_store.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "beneath.h"
#include "descriptor.h"
#include "file_writer.h"
#include "keys.h"

namespace tessera {

/// Where in a path the first part begins that Tessera keeps for itself; npos for a path without.
[[nodiscard]] std::size_t own_part(std::string_view path);

/// Opens what lies below a directory. With `follow` links on the way are followed, but none from the first part on that
/// is Tessera's own.
[[nodiscard]] int open_below(int root, const std::string& path, int flags, bool follow);

/// The root of a directory store, and the way to what lies below it: folders, links, values that are opened or made.
/// Thread rule: any thread may call any of it.
class DirectoryTree {
public:
    DirectoryTree(std::string name, const StoreOptions& options)
        : name_(std::move(name)), options_(options), sync_(options.durability, name_, folders_) {}
    ~DirectoryTree();
    DirectoryTree(const DirectoryTree&) = delete;
    DirectoryTree& operator=(const DirectoryTree&) = delete;

protected:
    using Folder = FolderCache::Folder;

    static constexpr int folder_flags = O_RDONLY | O_DIRECTORY;

    /// The full path of a key or prefix, for messages.
    [[nodiscard]] std::string path_of(std::string_view key) const { return join_key(name_, key); }
    void require_writable(std::string_view doing, std::string_view key) const;
    /// The root's descriptor, or -1 when there is no such directory (yet).
    [[nodiscard]] int find_root() const {
        if (const int fd = root_.load(std::memory_order_acquire); fd >= 0) return fd;
        return open_root();
    }
    [[nodiscard]] int make_root() const;

    // ---- folders

    /// A name and the folder that it lies in: relative to that descriptor nothing passes through a link.
    struct Spot {
        Folder folder;  ///< null for the root
        int fd = -1;    ///< of the folder, or the root; negative when there is none
        std::string name;
        [[nodiscard]] bool is_there() const { return fd >= 0; }
    };
    enum class Make : std::uint8_t {
        no,
        yes,
        for_move,  ///< durable at once: else a power failure could leave what was moved there, and not the folder
    };
    /// Of a key or prefix that is to be changed. Throws where a link leads to the folder that must not be followed.
    [[nodiscard]] Spot spot(std::string_view key, Make make) const;
    /// Null when there is no such folder, unless it is to be made.
    [[nodiscard]] Folder folder_at(int root, std::string_view path, Make make) const;
    /// Makes a folder, and those above that are missing, and opens it.
    [[nodiscard]] Descriptor make_folder(int root, std::string_view path, Make make) const;
    /// Whether the way to a key passes through no link.
    [[nodiscard]] bool is_direct(std::string_view key) const;
    static bool leads_to_folder(const Spot& place) { return is_directory(place.fd, place.name.c_str()); }
    /// fstatat() of a key of Tessera's own, which follows no link.
    [[nodiscard]] int stat_own(int root, std::string_view key, struct stat& status) const;
    /// The error for a path at or above which something stands that is no folder, or a link that is not followed. With
    /// `from` what stands before that place of the path is none of it.
    [[nodiscard]] Error blocked(std::string_view path, std::size_t from = 0) const;
    /// The error for something else in the place of a file or directory that Tessera keeps for itself.
    [[nodiscard]] static Error not_ours(const std::string& path, mode_t mode);

    // ---- values

    /// A value's descriptor, or none when the key is absent: nothing has the name, not even a link that leads nowhere.
    [[nodiscard]] Descriptor open_value(std::string_view key) const;
    /// What a link says that it leads to; empty for what is no link.
    [[nodiscard]] std::string target_of(std::string_view prefix) const;
    void require_no_dead_link(int root, std::string_view path) const;
    /// After a value could not be opened: throws unless nothing is there.
    void require_absent(int root, const std::string& key, int error) const;
    [[nodiscard]] Error not_a_file(std::string_view key, mode_t mode) const;
    /// Whether an open file is a value: a directory is none, unless it stands in a chunk's place, and anything else
    /// that is no file is refused.
    [[nodiscard]] bool is_value(int fd, std::string_view key, struct stat& status) const;
    /// Of what has the name, links not followed; false when nothing has it.
    [[nodiscard]] bool stat_extended(int root, const std::string& path, struct statx& status) const;
    /// Whether the key is there: a file, as it is now.
    [[nodiscard]] bool stat_value(std::string_view key, struct stat& status) const;
    static bool is_directory(int at, const char* path);
    /// The status of what an entry leads to; false when it is gone, or a link to nothing.
    [[nodiscard]] bool stat_entry(int directory, const dirent& entry, std::string_view prefix,
                                  struct stat& status) const;
    /// S_IFDIR, S_IFREG or another type of what an entry leads to, S_IFLNK for a link that leads nowhere. 0 for an
    /// entry that is gone, and for what is no file and no folder among what Tessera keeps for itself.
    [[nodiscard]] mode_t type_of(int directory, const dirent& entry, std::string_view prefix) const;
    /// Whether an entry that leads to a folder is a link. Some file systems do not say so in d_type.
    [[nodiscard]] static bool leads_on(int directory, const dirent& entry);
    [[nodiscard]] FileWriter writer(std::string_view key) const;
    /// A new temporary file; none with errno set where it cannot be made.
    [[nodiscard]] static Descriptor create_temporary(const Spot& place, std::string& name);
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
        Descriptor fd(open_below(root, prefix.empty() ? "." : std::string(prefix), folder_flags, true));
        if (!fd && errno == ELOOP && own_part(prefix) != prefix.npos) throw blocked(prefix, own_part(prefix));
        // Among what Tessera keeps for itself no link is followed, not even one that leads nowhere.
        if (!fd && (errno == ENOENT || errno == ELOOP) && own_part(prefix) == prefix.npos) {
            const int error = errno;
            require_no_dead_link(root, prefix);
            errno = error;
        }
        if (!fd && is_absent(errno)) return;
        const bool listed = fd && each_entry_of(std::move(fd), [&](int directory, const dirent& entry) {
                                if (std::string_view(entry.d_name).starts_with(temporary_prefix) == temporary)
                                    body(directory, entry);
                            });
        if (!listed) throw io_error("listing", path_of(prefix), errno);
    }

    std::string name_;
    StoreOptions options_;
    mutable FolderCache folders_;
    mutable FolderSync sync_;
    mutable std::atomic<int> root_ = -1;

private:
    [[nodiscard]] int open_root() const;

    mutable std::atomic<bool> reads_links_ = false;  ///< a value was read through a link
};

}  // namespace tessera
