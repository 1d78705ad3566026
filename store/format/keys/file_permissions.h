// The permissions of the files and folders that a directory store makes; see file_permissions.cpp. Private to the store
// module.
#pragma once

#include <tessera/key_value_store.h>
#include <tessera/permissions.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// Thread rule: any thread may call any member.
class FilePermissions {
public:
    /// `store` is the store's path, for messages. `waiter` is notified of a group that cannot be given, once.
    FilePermissions(const std::string& store, Waiter* waiter) : store_(store), waiter_(waiter) {}
    FilePermissions(const FilePermissions&) = delete;
    FilePermissions& operator=(const FilePermissions&) = delete;

    /// The permissions of a file that is about to be made.
    struct Wanted {
        std::optional<Permissions> all;  ///< nullopt: what the system gives it
        bool only_group = false;         ///< the folder has an access list for new files, which decides the rest
        /// The mode to make it with, so that it is at no time open to more people than in the end.
        [[nodiscard]] mode_t mode() const { return all && !only_group ? all->mode & 0666U : 0666U; }
    };
    /// For a new file under `key`, which is `name` in the open folder `folder`. `root` is the store's descriptor.
    [[nodiscard]] Wanted of(int root, std::string_view key, int folder, const char* name);
    /// For a new file without a predecessor in one of Tessera's own folders below the node at `prefix`.
    void give_own(int root, std::string_view prefix, int file);
    /// Gives a file that was just made for `key` in `folder` what it is to have.
    void give(int file, std::string_view key, int folder, const Wanted& wanted);
    /// Gives a folder that was just made as `path` in `above` what that one has.
    void give_folder(int root, std::string_view path, int above, int made);
    /// Before a file gets the name of another one by replace(): gives it the permissions of that one.
    void keep(int from_folder, const char* from, int to_folder, const char* to);

    /// For a store that holds nothing but a new array: all it makes follows the mask.
    void follow_mask() { follows_mask_ = true; }
    /// For a store that becomes a copy or the successor of another one, whose root is open as `model_root`: its own
    /// root gets the permissions of that, and files without metadata beside them those of the other store's. `model`
    /// must outlive this.
    void share_like(FilePermissions& model, int model_root, int own_root);

    /// An operation has ended: what is known of folders and documents may change.
    void forget();
    /// The other store of share_like() goes.
    void forget_model() { model_ = nullptr; }

private:
    /// What new files in a folder get from the system.
    struct Folder {
        std::optional<bool> has_default_list;
        mode_t asked = 0;
        mode_t got = 0;
        uid_t owner = 0;
        gid_t group = 0;
        bool known = false;                              ///< the four above
        bool made = false;                               ///< by the operation that is under way
        bool has_node = false;                           ///< `node` is known
        std::optional<Permissions> node = std::nullopt;  ///< of its metadata document
    };
    /// Of a regular file; nullopt if there is none.
    [[nodiscard]] std::optional<Permissions> of_file(int folder, const char* name);
    /// Of the metadata document of the node that a key belongs to; nullopt if there is none.
    [[nodiscard]] std::optional<Permissions> of_node(int root, std::string_view key);
    /// The same, or what the model has.
    [[nodiscard]] std::optional<Permissions> of_node_or_model(int root, std::string_view key);
    [[nodiscard]] bool has_default_list(std::string_view folder_path, int folder);
    [[nodiscard]] Permissions fresh(int file, std::string_view folder_path, int folder, mode_t asked);
    [[nodiscard]] std::optional<Permissions> of_document(int root, std::string_view prefix);
    [[nodiscard]] std::optional<Permissions> find_node(int root, std::string_view key);
    /// Whether the name is that of a chunk, and why it has no predecessor.
    enum class Chunk : std::uint8_t { no, of_new_array, in_new_folder };
    [[nodiscard]] Chunk kind_of(std::string_view key, std::string_view name);
    void withheld(const std::string& path, gid_t group);

    const std::string& store_;
    Waiter* waiter_;
    bool follows_mask_ = false;  ///< this and the model are set before the first file is made
    FilePermissions* model_ = nullptr;
    int model_root_ = -1;
    std::atomic<bool> lists_ = true;  ///< the file system may have access lists
    std::mutex mutex_;                ///< for what follows
    bool told_ = false;
    std::map<std::string, Folder, std::less<>> folders_;
    std::map<std::string, std::optional<Permissions>, std::less<>> documents_;  ///< by prefix
};

}  // namespace tessera
