// Groups: the hierarchy above arrays. A thin handle, and functions on the nodes of a store.
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

#include <tessera/array.h>
#include <tessera/dialect.h>
#include <tessera/folder_walk.h>
#include <tessera/key_value_store.h>

namespace tessera {

enum class NodeKind : std::uint8_t { array, group };

struct Node {
    std::string path;  ///< below the group or prefix that was asked: "sub/b"
    NodeKind kind = NodeKind::group;
    const Dialect* dialect = nullptr;  ///< nullptr for a plain folder
};

/// The array or group with metadata at `prefix`; its path is `prefix`. If there are both, the array.
[[nodiscard]] std::optional<Node> probe_node(const KeyValueStore& store, std::string_view prefix);
/// The nodes directly below `prefix`, sorted by name.
[[nodiscard]] std::vector<Node> child_nodes(const KeyValueStore& store, std::string_view prefix);
/// All nodes below `prefix`: each group before its members, siblings sorted by name. A group that several paths reach
/// is listed once. Plain folders behind links are not searched.
[[nodiscard]] std::vector<Node> nodes_below(const KeyValueStore& store, std::string_view prefix);

/// The nodes below a prefix, and the folders that the walk did not enter (see folder_walk.h).
struct Hierarchy {
    std::vector<Node> nodes;  ///< as nodes_below
    /// Sorted by path. Excludes links to folders without nodes, and links to arrays, which are nodes themselves.
    std::vector<PassedFolder> passed;
};
enum class NodeLinks : std::uint8_t {
    follow,  ///< a link to an array, or out to a group with metadata, counts as its target
    pass,    ///< no link is followed, and all are in `passed`
};
[[nodiscard]] Hierarchy hierarchy_below(const KeyValueStore& store, std::string_view prefix,
                                        NodeLinks links = NodeLinks::follow);

struct RemoveOptions {
    bool recursive = false;  ///< a group goes with the arrays and groups below it
};
/// Removes the array or group at `prefix` with everything below it. Throws not_found if nothing is there, and
/// invalid_argument for a group with nodes below, unless `recursive`. Also throws invalid_argument, naming them, if
/// there are files that belong to no node. Nothing is removed then. A partly removed node does not open.
void remove_node(KeyValueStore& store, std::string_view prefix, RemoveOptions options = {});
/// Moves the array or group at `from` to `to`, with everything below it. Creates missing groups above `to`, as
/// make_parent_groups does. Throws not_found, already_exists (it never replaces anything) and invalid_argument (into
/// itself).
void move_node(KeyValueStore& store, std::string_view from, std::string_view to);
/// If a group with metadata lies above `prefix`, gives metadata of its dialect to every folder in between that has
/// none, as zarr-python does. Throws already_exists if one of them is an array.
void make_parent_groups(KeyValueStore& store, std::string_view prefix);

/// The format of the nearest group with metadata above a path, which need not exist; nullptr if
/// there is none.
[[nodiscard]] const Dialect* format_above(const std::filesystem::path& path);

/// Whether the consolidated metadata of a group matches the nodes below it.
struct ConsolidatedState {
    bool present = false;
    std::vector<std::string> stale;  ///< paths of nodes whose entry is outdated, missing or orphaned; sorted
    [[nodiscard]] bool fresh() const { return present && stale.empty(); }
};

/// A handle to a group; copies are the same group. Reads the nodes themselves, never consolidated metadata, which may
/// be stale. Thread rule: as Array.
class Group {
public:
    /// Opens an existing group, which may be a plain folder that holds nodes. Throws not_found (naming what is at the
    /// path instead), corrupt, unsupported.
    [[nodiscard]] static Group open(const std::filesystem::path& path, const StoreOptions& options = {});
    [[nodiscard]] static Group open(std::shared_ptr<KeyValueStore> store, std::string_view prefix = "");
    /// Creates a group; a plain folder that holds nodes becomes one with metadata. Throws already_exists if an array or
    /// a group with metadata is there, and unsupported for a dialect without groups.
    static Group create(const std::filesystem::path& path, const Dialect& dialect,
                        const Value& attributes = Value::object(), const StoreOptions& options = {});
    static Group create(std::shared_ptr<KeyValueStore> store, std::string_view prefix, const Dialect& dialect,
                        const Value& attributes = Value::object());
    /// The same by the format's name: `Group::create("survey.zarr", "v3", {{"title", "Survey"}})`.
    static Group create(const std::filesystem::path& path, std::string_view format = "v3",
                        const Value& attributes = Value::object(), const StoreOptions& options = {});

    [[nodiscard]] const std::string& name() const;
    [[nodiscard]] const Dialect* dialect() const;  ///< nullptr for a plain folder
    /// An object with the members of its document that the dialect does not know, such as extensions or NCZarr's.
    [[nodiscard]] Value unknown() const;
    /// Setting attributes of a plain folder throws unsupported.
    [[nodiscard]] Attributes attributes() const;

    [[nodiscard]] std::vector<Node> children() const;
    [[nodiscard]] std::vector<Node> nodes() const;  ///< as nodes_below
    [[nodiscard]] Array open_array(std::string_view path) const;
    [[nodiscard]] Group open_group(std::string_view path) const;
    /// Creates an array or group below this one, and missing groups in between. They have this group's dialect,
    /// whatever `options.format` says; below a plain folder, the given format.
    Array create_array(std::string_view path, ArrayOptions options);
    Group create_group(std::string_view path, const Value& attributes = Value::object(),
                       std::string_view format = "v3");
    void remove(std::string_view path, RemoveOptions options = {});
    void move(std::string_view from, std::string_view to);

    /// Writes consolidated metadata of all nodes of this dialect below. Throws unsupported for a dialect without
    /// consolidated metadata.
    void consolidate();
    [[nodiscard]] ConsolidatedState consolidated_state() const;
    /// Whether the consolidated metadata, if any, match the node (or its absence) at `path`, "" for this group.
    [[nodiscard]] bool consolidated_matches(std::string_view path) const;

private:
    friend struct GroupAccess;  ///< for the rest of the library
    explicit Group(std::shared_ptr<struct NodeState> state) : state_(std::move(state)) {}
    std::shared_ptr<struct NodeState> state_;
};

/// The groups at and above a path whose consolidated metadata no longer match the node there. Returned as paths,
/// nearest first.
[[nodiscard]] std::vector<std::filesystem::path> stale_above(const std::filesystem::path& path);

}  // namespace tessera
