// Nodes: the arrays and groups of a store.
//
// A node is an array or a group. A group has metadata of a dialect, or is a plain folder that holds nodes (dialect
// nullptr). So a directory of arrays in zmeta or v1, which have no group metadata, is a group too. A folder whose name
// begins with '.' is a node only if it has metadata, and never if the name contains ".tessera". Snapshots beside an
// array are not nodes of the folder around both.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/dialect.h>
#include <tessera/key_value_store.h>

namespace tessera {

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
