// Places: path resolution, from a path that a user typed to a store and a prefix in it. Nodes: the arrays and groups of
// a store.
//
// A node is an array or a group. A group has metadata of a dialect, or is a plain folder that holds nodes (dialect
// nullptr). So a directory of arrays in zmeta or v1, which have no group metadata, is a group too. A folder whose name
// begins with '.' is a node only if it has metadata, and never if the name contains ".tessera". Snapshots beside an
// array are not nodes of the folder around both.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/dialect.h>
#include <tessera/error.h>
#include <tessera/key_value_store.h>
#include <tessera/retry.h>
#include <tessera/store_kind.h>

namespace tessera {

/// The place that a path names: a directory, a zip store ("data.zarr.zip"), a path inside a zip store
/// ("data.zarr.zip/group/name"), or a place in another kind of store ("toy:group/name", see store_kind.h). A directory
/// is the root of its own store. A path inside a zip or another kind of store need not exist. nullopt if the path is
/// absent or another kind of file. A zip is read-only whatever the options say. Throws io, or corrupt for a zip that
/// cannot be read.
[[nodiscard]] std::optional<Place> probe_place(const std::filesystem::path& path, const StoreOptions& options = {});

/// The same, but throws not_found or invalid_argument, naming what is at the path instead.
[[nodiscard]] Place find_place(const std::filesystem::path& path, const StoreOptions& options = {});

/// Whether the path of the place's directory now leads to another directory, or to none: `copy --overwrite` and
/// restored snapshots exchange directories.
[[nodiscard]] bool was_replaced(const Place& place);
/// Throws not_found if it was replaced.
void require_present(const Place& place);

/// Calls look(place) with the result of find_place(). Retries if look() throws not_found because the directory was
/// replaced meanwhile, so that a path that always leads to some array is never reported as missing.
template <class Look>
auto at_place(const std::filesystem::path& path, const StoreOptions& options, const Look& look) {
    return retry_when_replaced([&] { return find_place(path, options); }, look);
}

/// The error text for a place that has no `wanted` ("array", "group", "array or group"): it states what was expected
/// and what is there.
[[nodiscard]] Error absence(const PlaceView& place, std::string_view wanted);

/// Whether anything is at a path: a file, a folder, or in another kind of store a value at it or below it.
[[nodiscard]] bool is_anything_at(const std::filesystem::path& path, const StoreOptions& options = {});

/// Text that changes when an array does, for much less than reading it: from the stamps of its documents, and the
/// number and sizes of the values directly at the place.
[[nodiscard]] std::string version_text(const Place& place);

/// A path, which need not exist, made absolute, with symbolic links resolved and no '/' at its end. One in another kind
/// of store stays as it is. Throws io.
[[nodiscard]] std::filesystem::path real_path(const std::filesystem::path& path);

/// A path in the file system, which need not exist, relative to the outermost group (with metadata) above it, or else
/// to its parent directory. One in another kind of store, relative to that store.
[[nodiscard]] Place enclosing_place(const std::filesystem::path& path, const StoreOptions& options = {});

enum class NodeKind : std::uint8_t { array, group };

struct Node {
    std::string path;  ///< below the group or prefix that was asked: "sub/b"
    NodeKind kind = NodeKind::group;
    const Dialect* dialect = nullptr;  ///< nullptr for a plain folder
};

/// The array or group with metadata at `place`; its path is the prefix. If there are both, the array.
[[nodiscard]] std::optional<Node> probe_node(const PlaceView& place);
/// The nodes directly below `place`, sorted by name.
[[nodiscard]] std::vector<Node> child_nodes(const PlaceView& place);
/// All nodes below `place`: each group before its members, siblings sorted by name. A group that several paths reach
/// is listed once. Plain folders behind links are not searched.
[[nodiscard]] std::vector<Node> nodes_below(const PlaceView& place);

/// The largest number of folders that a walk descends below its start.
inline constexpr int deepest_folder = 256;

/// A folder, or a link, that a walk did not enter.
struct PassedFolder {
    enum class Why : std::uint8_t {
        second_way,  ///< a link to a folder that the walk visited by another path
        elsewhere,   ///< a link that is not followed
        nowhere,     ///< a link that leads nowhere
        too_deep,    ///< deeper than deepest_folder
    };
    std::string path;  ///< below the start of the walk
    Why why = Why::elsewhere;
    std::string target;  ///< for second_way, the other path; else the text of the link
};

/// The nodes below a prefix, and the folders that the walk did not enter.
struct Hierarchy {
    std::vector<Node> nodes;  ///< as nodes_below
    /// Sorted by path. Excludes links to folders without nodes, and links to arrays, which are nodes themselves.
    std::vector<PassedFolder> passed;
};
enum class NodeLinks : std::uint8_t {
    follow,  ///< a link to an array, or out to a group with metadata, counts as its target
    pass,    ///< no link is followed, and all are in `passed`
};
[[nodiscard]] Hierarchy hierarchy_below(const PlaceView& place, NodeLinks links = NodeLinks::follow);

/// The node at `place` and all below, with their paths in the store.
[[nodiscard]] std::vector<Node> all_nodes(const PlaceView& place);

/// Whether a group (with metadata) is at a path, even while it is being replaced.
[[nodiscard]] bool is_group_at(const std::filesystem::path& path);

}  // namespace tessera
