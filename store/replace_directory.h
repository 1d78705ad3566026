// One directory of arrays in the place of another, in one step. Private to the store module.
#pragma once

#include <filesystem>
#include <memory>
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

/// What lies beside an array or group for a moment: ".grid.zarr.tessera-new".
[[nodiscard]] std::string hidden_name(const std::filesystem::path& node, std::string_view what);

/// Removes everything at `path`, if anything. Throws io.
void remove_tree(const std::filesystem::path& path);

/// The nodes of a store: that at its root, with path "", and all below.
[[nodiscard]] std::vector<Node> all_nodes(const KeyValueStore& store);

/// The nodes of a store, that at its root among them (path ""), and their shape locks, held exclusively.
struct LockedNodes {
    std::vector<Node> nodes;
    std::vector<StoreLock> locks;
};

/// Waits until all writers of all arrays and groups in a store are done, and keeps others away. Two file descriptors
/// for each. Empty when there is no node.
[[nodiscard]] LockedNodes lock_nodes(KeyValueStore& store);

/// Puts the complete directory `built` in the place of the array or group that `store` has as its root, and removes
/// that. `locked` are the nodes of `store`: writers that wait for one of them find it gone or go on with the new one.
void replace_directory(const std::filesystem::path& built, KeyValueStore& store, LockedNodes locked,
                       const StoreOptions& options);

}  // namespace tessera
