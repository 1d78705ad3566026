// One directory of arrays in the place of another, in one step. Private to the store module.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/group.h>
#include <tessera/key_value_store.h>

namespace tessera {

/// What is at `path`, at the end of links. Throws io when that cannot be found out, which is not to be taken for
/// nothing.
[[nodiscard]] std::filesystem::file_status status_of(const std::filesystem::path& path);

/// The directory itself where `path` is a link to it, so that the link stays; without a '/' at the end.
[[nodiscard]] std::filesystem::path resolved(const std::filesystem::path& path);

/// What lies beside an array or group for a moment: ".grid.zarr.tessera-new". Of a long name the end gives way to a
/// hash of it, so that file systems take it.
[[nodiscard]] std::string hidden_name(const std::filesystem::path& node, std::string_view what);

/// Makes a directory and those above it that are missing, durably unless nothing is to be; returns those that were
/// made, the lowest first. Throws io.
std::vector<std::filesystem::path> make_directories(const std::filesystem::path& path, Durability durability);

/// Removes everything at `path`, if anything. Throws io.
void remove_tree(const std::filesystem::path& path);

/// Which directory it is, whatever its name becomes.
struct DirectoryId {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    friend bool operator==(const DirectoryId&, const DirectoryId&) = default;
};
/// Of what a path leads to; nothing when there is nothing.
[[nodiscard]] std::optional<DirectoryId> directory_id(const std::filesystem::path& path);

/// Whether a group (with metadata) lies at a path, also while another one takes its place.
[[nodiscard]] bool is_group_at(const std::filesystem::path& path);

/// A directory that one run builds, and removes when it fails: as long as the path still leads to it.
class BuiltDirectory {
public:
    /// Removes what an earlier attempt left at `path` and makes the directory. The caller holds the DestinationLock of
    /// what it is for.
    BuiltDirectory(std::filesystem::path path, Durability durability);
    ~BuiltDirectory();
    BuiltDirectory(const BuiltDirectory&) = delete;
    BuiltDirectory& operator=(const BuiltDirectory&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    /// It is in its place, or somebody else's to remove.
    void release() { id_.reset(); }

private:
    std::filesystem::path path_;
    std::optional<DirectoryId> id_;
};

/// The node at `prefix` and all below, with their paths in the store.
[[nodiscard]] std::vector<Node> all_nodes(const KeyValueStore& store, std::string_view prefix = "");

/// The nodes of a store, that at its root or prefix among them, and their shape locks, held exclusively.
struct LockedNodes {
    std::vector<Node> nodes;
    std::vector<StoreLock> locks;
};

/// Waits until all writers of all arrays and groups at `prefix` and below are done, and keeps others away. Two file
/// descriptors for each. Empty when there is no node.
[[nodiscard]] LockedNodes lock_nodes(KeyValueStore& store, std::string_view prefix = "");
/// The same, and batches of edits that are recorded are put in place, so that all is as it should be.
[[nodiscard]] LockedNodes lock_settled_nodes(KeyValueStore& store, std::string_view prefix = "");

/// Puts the complete directory `built` in the place of the array or group that `store` has as its root, and removes
/// that. `locked` are the nodes of `store`: writers that wait for one of them find it gone or go on with the new one.
/// What repair has set aside goes on into the new one.
void replace_directory(const std::filesystem::path& built, KeyValueStore& store, LockedNodes locked,
                       const StoreOptions& options);

}  // namespace tessera
