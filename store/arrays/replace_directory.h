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

#include "directories.h"

namespace tessera {

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
