// Groups: the hierarchy above arrays. A thin handle, and changes of the nodes of a store.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array.h>
#include <tessera/dialect.h>
#include <tessera/key_value_store.h>
#include <tessera/place.h>

namespace tessera {

struct RemoveOptions {
    bool recursive = false;  ///< a group goes with the arrays and groups below it
    /// Also an array or group whose metadata are broken, or an array of Tessera's that has lost them, if all names in
    /// it are such as arrays have.
    bool force = false;
};
/// Removes the array or group at `place` with everything below it. Throws not_found if nothing is there, and
/// invalid_argument for a group with nodes below, unless `recursive`. Also throws invalid_argument, naming them, if
/// there are files that belong to no node. Nothing is removed then. A partly removed node does not open.
void remove_node(const PlaceRef& place, RemoveOptions options = {});
/// Moves the array or group at `from` to `to`, with everything below it. Creates missing groups above `to`, as
/// make_parent_groups does. Throws not_found, already_exists (it never replaces anything) and invalid_argument (into
/// itself).
void move_node(KeyValueStore& store, std::string_view from, std::string_view to);
/// If a group with metadata lies above `place`, gives metadata of its dialect to every folder in between that has
/// none, as zarr-python does. Throws already_exists if one of them is an array.
void make_parent_groups(const PlaceRef& place);

/// The format of the nearest group with metadata above a path, which need not exist; nullptr if
/// there is none.
[[nodiscard]] const Dialect* format_above(const std::filesystem::path& path, const StoreOptions& options = {});

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
    [[nodiscard]] static Group open(Place place);
    /// Creates a group; a plain folder that holds nodes becomes one with metadata. Throws already_exists if an array or
    /// a group with metadata is there, and unsupported for a dialect without groups.
    static Group create(const std::filesystem::path& path, const Dialect& dialect,
                        const Value& attributes = Value::object(), const StoreOptions& options = {});
    static Group create(Place place, const Dialect& dialect, const Value& attributes = Value::object());
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
