// Replaces a directory of arrays by another one, atomically. Private to the store module.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>
#include <tessera/place.h>

#include "directories.h"

namespace tessera {

/// A directory that is being built. Unless released, the destructor removes it, if the path still leads to it.
class BuiltDirectory {
public:
    /// Removes the leftovers of an earlier attempt at `path` and creates the directory. The caller holds the
    /// DestinationLock of the final path.
    BuiltDirectory(std::filesystem::path path, Durability durability);
    ~BuiltDirectory();
    BuiltDirectory(const BuiltDirectory&) = delete;
    BuiltDirectory& operator=(const BuiltDirectory&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    /// It was moved into place, or somebody else removes it.
    void release() { id_.reset(); }

private:
    std::filesystem::path path_;
    std::optional<FileId> id_;
};

/// Exchanges two directories atomically; where the file system cannot, in steps, between which both are complete but
/// neither is in place. Throws io.
void exchange_directories(const std::filesystem::path& built, const std::filesystem::path& old);

/// The nodes of a store, including the one at its root or prefix, and their shape locks, held exclusively.
struct LockedNodes {
    std::vector<Node> nodes;
    std::vector<StoreLock> locks;
};

/// Locks all arrays and groups at `place` and below: waits for their writers and excludes others. Takes two file
/// descriptors for each. Empty if there is no node.
[[nodiscard]] LockedNodes lock_nodes(const PlaceRef& place);
/// Locks all arrays below the group at `place`, whose own lock the caller holds. Arrays behind links are not among
/// `nodes`.
[[nodiscard]] LockedNodes lock_arrays_below(const PlaceRef& place);
/// As lock_nodes, and also finishes recorded batches of edits.
[[nodiscard]] LockedNodes lock_settled_nodes(const PlaceRef& place);

/// Replaces the root node of `store` by the complete directory `built`, and removes the old one. `locked` are the nodes
/// of `store`; writers that wait for one of them find it gone or continue with the new one. Files that repair has set
/// aside move to the new one.
void replace_directory(const std::filesystem::path& built, KeyValueStore& store, LockedNodes locked,
                       const StoreOptions& options);

}  // namespace tessera
