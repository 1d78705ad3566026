#include <tessera/action.h>
#include <tessera/group.h>

#include <fmt/ranges.h>
#include <tessera/error_text.h>
#include <tessera/folder_walk.h>
#include <tessera/own_names.h>
#include <tessera/place.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>

#include "batch.h"
#include "dialects.h"
#include "group_access.h"
#include "keys.h"
#include "node_files.h"
#include "remove_array.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

void require_absent(const PlaceView& place) {
    if (const auto node = probe_node(place)) {
        throw already_exists("{}: {} ({}) is there already", place.name(),
                             node->kind == NodeKind::array ? "an array" : "a group", node->dialect->name);
    }
}

Value document_at(const ReadableStore& store, const std::string& key, const Buffer& bytes) {
    return in_context([&] { return store.name_of(key); },
                      [&] {
                          return Value::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
                      });
}

/// The documents of one node in the form of consolidated metadata; an empty object if it has none.
Value documents_of(const ReadableStore& store, const Dialect& dialect, std::string_view prefix) {
    Value documents = Value::object();
    Buffer bytes;
    for (const std::string_view name : dialect.documents) {
        const std::string key = join_key(prefix, name);
        if (!store.get(key, bytes, metadata_limit)) continue;
        Value document = document_at(store, key, bytes);
        if (document.is_object()) document.erase("consolidated_metadata");  // v3's: no copy within a copy
        documents.set(name, std::move(document));
    }
    return documents;
}

/// An entry of consolidated metadata, in the form of documents_of().
Value without_nested_copies(Value documents) {
    Value plain = Value::object();
    for (const auto& [name, document] : documents.as_object()) {
        Value copy = document;
        if (copy.is_object()) copy.erase("consolidated_metadata");
        plain.set(name, std::move(copy));
    }
    return plain;
}

using Documents = std::map<std::string, Value>;  ///< by path of the node

/// zarr-python 3 fails on a copy that lists a node but not the groups around it, and does not list such nodes; version
/// 2 lists all.
bool parents_are_listed(const ReadableStore& store, const Dialect& dialect, std::string_view prefix,
                        std::string_view path) {
    if (!dialect.consolidated_key.empty()) return true;
    for (path = parent_of(path); !path.empty(); path = parent_of(path)) {
        if (probe_group_dialect({store, join_key(prefix, path)}) != &dialect) return false;
    }
    return true;
}

Documents documents_below(const ReadableStore& store, const Dialect& dialect, const std::string& prefix) {
    Documents documents;
    for (const Node& node : nodes_below({store, prefix})) {
        if (node.dialect != &dialect || !parents_are_listed(store, dialect, prefix, node.path)) continue;
        documents.emplace(node.path, documents_of(store, dialect, join_key(prefix, node.path)));
    }
    return documents;
}

std::optional<Value> load_consolidated(const NodeState& group) {
    if (group.dialect == nullptr) return std::nullopt;
    return group.dialect->load_consolidated(group);
}

}  // namespace

namespace {

/// If something else is in the place of the lock file, nobody can hold the lock, and this must not prevent removal.
StoreLock lock_to_remove(const PlaceRef& place) {
    try {
        return place.store.lock(place.prefix, 0, LockMode::exclusive);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::corrupt) throw;
        return {};
    }
}

/// Throws for files that belong to no node, and without `force` for metadata that are broken.
void require_only_own(const PlaceView& at, const std::vector<Node>& nodes, const std::vector<std::string>& links,
                      bool force) {
    try {
        require_nothing_foreign(at.store, nodes, links, ErrorCode::invalid_argument,
                                force ? BrokenNodes::guess : BrokenNodes::refuse);
    } catch (const Error& e) {
        if (force || (e.code() != ErrorCode::corrupt && e.code() != ErrorCode::unsupported)) throw;
        throw e.advising(Action::remove, "removes it all the same", at.name());
    }
}

/// The node at a place. `force`: also a group whose document is broken, which could be an array's as well, and what has
/// no document any more.
std::optional<Node> node_to_remove(const PlaceView& at, bool force) {
    auto node = probe_node(at);
    if (!force) return node;
    if (!node && lost_its_metadata(at)) return Node{std::string(at.prefix), NodeKind::array, nullptr};
    if (node && node->kind == NodeKind::array && !child_nodes(at).empty()) node->kind = NodeKind::group;
    return node;
}

/// Adds the arrays below that were being removed, and the plain folders above them.
void add_removals(const PlaceRef& at, std::vector<Node>& nodes) {
    std::set<std::string> known;
    for (const Node& node : nodes) known.insert(node.path);
    FolderWalk walk(at, {});
    while (walk.next()) {
        const std::string prefix = walk.prefix();
        const PlaceView folder{at.store, prefix};
        if (is_being_removed(folder)) {
            nodes.push_back({walk.path(), NodeKind::array, nullptr});
            for (std::string_view above = parent_of(walk.path()); !above.empty(); above = parent_of(above)) {
                if (known.emplace(above).second) nodes.push_back({std::string(above), NodeKind::group, nullptr});
            }
        } else if (probe_dialect(folder) == nullptr) {
            for (const std::string& name : walk.listing().prefixes) {
                if (!is_own_name(name)) walk.enter(name);
            }
        }
    }
}

/// Where each value takes a request: an interrupted removal leaves nodes, and at most one array that says what it was.
void remove_one_by_one(const PlaceRef& at, std::vector<Node> nodes) {
    std::ranges::sort(nodes, std::greater(), &Node::path);  // what lies in a group before it
    for (const Node& node : nodes) {
        const PlaceRef place{at.store, node.path};
        if (node.kind == NodeKind::array) {
            remove_array(place);
            continue;
        }
        const std::string document(node.dialect == nullptr ? "" : node.dialect->group_key);
        const Listing rest = at.store.list(node.path);
        for (const std::string& name : rest.prefixes) at.store.erase_below(place.key(name));
        for (const std::string& name : rest.keys) {
            if (name != document) at.store.erase(place.key(name));
        }
        if (!document.empty()) at.store.erase(place.key(document));
    }
    at.store.sync();
}

}  // namespace

namespace {

/// What lies below a node that is removed.
struct Below {
    std::vector<Node> nodes;
    std::vector<std::string> links;  ///< to nodes elsewhere: removed, but not their targets
};

Below what_lies_below(const PlaceRef& at) {
    Hierarchy hierarchy = hierarchy_below(at, NodeLinks::pass);
    Below below{.nodes = std::move(hierarchy.nodes), .links = {}};
    if (at.store.is_far()) add_removals(at, below.nodes);
    for (const PassedFolder& passed : hierarchy.passed) {
        const std::string place = at.key(passed.path);
        if (passed.why == PassedFolder::Why::too_deep) {
            throw invalid_argument(
                "{}: folders are nested deeper than {}, and what lies there is not looked at: remove the folder "
                "without tessera",
                at.store.name_of(place), deepest_folder);
        }
        if (passed.why == PassedFolder::Why::nowhere || probe_node({at.store, place})) below.links.push_back(place);
    }
    return below;
}

void require_removable(const PlaceRef& at, const std::optional<Node>& node, const Below& below,
                       const RemoveOptions& options) {
    if (!node && below.nodes.empty()) {
        const Error error = absence(at, "array or group");
        throw lost_its_metadata(at) ? error.advising(Action::remove, "removes what is left of an array", at.name())
                                    : error;
    }
    const std::size_t count = below.nodes.size() + below.links.size();
    if (count > 0 && !options.recursive) {
        throw invalid_argument("{}: a group that holds {} arrays and groups", at.name(), count)
            .advising(Action::recursive, "removes them too");
    }
}

/// Metadata first, so that a partly removed node does not open.
void remove_all(const PlaceRef& at, const std::vector<Node>& nodes) {
    for (const Node& one : nodes) {
        if (one.dialect == nullptr) continue;
        const bool is_array = one.kind == NodeKind::array;
        const StoreLock lock = lock_to_remove({at.store, one.path});
        at.store.erase(join_key(one.path, is_array ? one.dialect->metadata_key : one.dialect->group_key));
    }
    at.store.sync();
    at.store.erase_below(at.prefix);
    at.store.sync();
}

}  // namespace

void remove_node(const PlaceRef& at, RemoveOptions options) {
    const StoreLock building = at.store.lock_destination(at.prefix);
    std::optional<Node> node = node_to_remove(at, options.force);
    if (node && at.store.local_files().is_link(at.prefix)) {
        at.store.erase_below(at.prefix);  // the link alone
        at.store.sync();
        return;
    }
    if (!node && is_being_removed(at)) {
        require_nothing_foreign(at.store, {array_at(at)});
        remove_array(at);
        at.store.sync();
        return;
    }
    Below below;
    if (!node || node->kind == NodeKind::group) below = what_lies_below(at);
    require_removable(at, node, below, options);
    std::vector<Node>& all = below.nodes;
    for (Node& one : all) one.path = at.key(one.path);
    all.insert(all.begin(), node.value_or(Node{std::string(at.prefix)}));
    require_only_own(at, all, below.links, options.force);
    if (at.store.is_far()) return remove_one_by_one(at, std::move(all));
    remove_all(at, all);
}

namespace {

/// Finishes recorded batches of the arrays that are moved: as parts of a batch over a group they would not find it any
/// more. The caller holds the lock of the node.
void finish_parts_at(const PlaceRef& place) {
    if (must_finish_batch(place)) finish_batch(place);
    for (const Node& node : nodes_below(place)) {
        const std::string array = place.key(node.path);
        if (node.kind != NodeKind::array || !is_direct({place.store, array}) ||
            !must_finish_batch({place.store, array}))
            continue;
        finish_unlocked_batch({place.store, array});
    }
}

}  // namespace

void move_node(KeyValueStore& store, std::string_view from, std::string_view to) {
    require_node_names(to);
    if (!probe_node({store, from}) && child_nodes({store, from}).empty()) {
        throw not_found("{}: no array or group here to move", store.name_of(from));
    }
    require_movable(store.name(), from, to);
    // In sorted order, so that two opposite moves do not deadlock.
    const std::array<StoreLock, 2> building{store.lock_destination(std::min(fs::path(from), fs::path(to)).string()),
                                            store.lock_destination(std::max(fs::path(from), fs::path(to)).string())};
    require_absent({store, to});
    // An array's writers hold this lock shared and re-check that the array exists. A link is moved as it is.
    const StoreLock lock = store.local_files().is_link(from) ? StoreLock() : store.lock(from, 0, LockMode::exclusive);
    if (!store.local_files().is_link(from)) finish_parts_at({store, from});
    make_parent_groups({store, to});
    store.move(from, to);
    store.sync();
}

void make_parent_groups(const PlaceRef& place) {
    require_node_names(place.prefix);
    std::vector<std::string_view> missing;
    for (std::string_view prefix = place.prefix; !prefix.empty();) {
        prefix = parent_of(prefix);
        const auto above = probe_node({place.store, prefix});
        if (!above) {
            missing.push_back(prefix);
            continue;
        }
        if (above->kind == NodeKind::array) {
            throw already_exists("{}: an array, and nothing can be below it", place.store.name_of(prefix));
        }
        std::ranges::reverse(missing);
        for (const std::string_view group : missing) {
            const StoreLock building = place.store.lock_destination(group);
            const auto versions = place.store.begin_change(group, false);
            if (!probe_node({place.store, group}))
                above->dialect->save_group({place.store, group}, Value::object(), Value::object());
        }
        return;
    }
}

// ---- Group

Group Group::open(const fs::path& path, const StoreOptions& options) {
    return at_place(path, options, [](const Place& place) { return open(place); });
}

Group Group::open(Place place) {
    const std::optional<Node> node = probe_node(place);
    if ((node && node->kind == NodeKind::array) || (!node && child_nodes(place).empty())) {
        throw absence(place, "group");
    }
    // The removal of a group deletes its metadata before its last nodes. The rest is not a plain folder.
    if (!node) require_present({place.store, std::string(place.prefix)});
    return Group(std::make_shared<NodeState>(std::move(place.store), place.prefix, node ? node->dialect : nullptr));
}

Group Group::create(const fs::path& path, const Dialect& dialect, const Value& attributes,
                    const StoreOptions& options) {
    require_node_names(path.string());
    if (auto place = probe_place(path, options)) {
        if (place->store->read_only()) return create(std::move(*place), dialect, attributes);
    }
    const Place seen = enclosing_place(path, options);
    make_parent_groups(seen);
    seen.store->sync();
    Place place = store_kind_of(path).place(path, options);
    return create(std::move(place), dialect, attributes);
}

Group Group::create(const fs::path& path, std::string_view format, const Value& attributes,
                    const StoreOptions& options) {
    return create(path, dialect_named(format), attributes, options);
}

Group Group::create(Place place, const Dialect& dialect, const Value& attributes) {
    if (!dialect.has_groups()) {
        throw unsupported("{}: the format {} has no groups but plain directories; v2 and v3 have", place.name(),
                          dialect.name);
    }
    (void)attributes.as_object();
    require_absent(place);
    make_parent_groups(place);
    const StoreLock building = place.store->lock_destination(place.prefix);
    const auto versions = place.store->begin_change(place.prefix, false);
    require_absent(place);  // re-check: another run may have made one meanwhile
    dialect.save_group(place, attributes, Value::object());
    place.store->sync();
    return Group(std::make_shared<NodeState>(std::move(place.store), place.prefix, &dialect));
}

const std::string& Group::name() const {
    return state_->name;
}

const Dialect* Group::dialect() const {
    return state_->dialect;
}

Value Group::unknown() const {
    const Dialect* d = dialect();
    return d == nullptr ? Value::object() : d->load_group_unknown(*state_);
}

Attributes Group::attributes() const {
    return Attributes(state_);
}

std::vector<Node> Group::children() const {
    return child_nodes(*state_);
}

std::vector<Node> Group::nodes() const {
    return nodes_below(*state_);
}

Array Group::open_array(std::string_view path) const {
    return Array::open({state_->store, state_->key(path)});
}

Group Group::open_group(std::string_view path) const {
    return open({state_->store, state_->key(path)});
}

Array Group::create_array(std::string_view path, ArrayOptions options) {
    const std::string prefix = state_->key(path);
    if (state_->dialect != nullptr) options.format = state_->dialect->name;
    require_absent({*state_->store, prefix});
    make_parent_groups({*state_->store, prefix});
    return Array::create({state_->store, prefix}, options);
}

Group Group::create_group(std::string_view path, const Value& attributes, std::string_view format) {
    const Dialect& dialect = state_->dialect != nullptr ? *state_->dialect : dialect_named(format);
    return create({state_->store, state_->key(path)}, dialect, attributes);
}

void Group::remove(std::string_view path, RemoveOptions options) {
    remove_node({*state_->store, state_->key(path)}, options);
}

void Group::move(std::string_view from, std::string_view to) {
    move_node(*state_->store, state_->key(from), state_->key(to));
}

// ---- consolidated metadata

void Group::consolidate() {
    const Dialect* dialect = state_->dialect;
    if (dialect == nullptr || !dialect->has_groups()) {
        throw unsupported("{}: {} has no consolidated metadata; groups of v2 and v3 have", state_->name,
                          dialect == nullptr ? "a plain directory" : dialect->name);
    }
    state_->change_documents([&] {
        finish_parts_at(*state_);  // a recorded batch may change what is copied
        Value::Object nodes;
        for (auto& [path, documents] : documents_below(*state_->store, *dialect, state_->prefix)) {
            nodes.emplace_back(path, std::move(documents));
        }
        dialect->save_consolidated(*state_, Value(std::move(nodes)));
        state_->store->sync();
    });
}

ConsolidatedState Group::consolidated_state() const {
    const std::optional<Value> consolidated = load_consolidated(*state_);
    if (!consolidated) return {};
    ConsolidatedState state{.present = true, .stale = {}};
    Documents there = documents_below(*state_->store, *state_->dialect, state_->prefix);
    if (consolidated->find("") != nullptr) {
        there.emplace("", documents_of(*state_->store, *state_->dialect, state_->prefix));
    }
    for (const auto& [path, documents] : consolidated->as_object()) {
        const auto found = there.find(path);
        if (found == there.end() || found->second != without_nested_copies(documents)) state.stale.push_back(path);
        if (found != there.end()) there.erase(found);
    }
    for (const auto& [path, documents] : there) state.stale.push_back(path);
    std::ranges::sort(state.stale);
    return state;
}

bool Group::consolidated_matches(std::string_view path) const {
    const std::optional<Value> consolidated = load_consolidated(*state_);
    if (!consolidated) return true;
    const std::string prefix = state_->key(path);
    const auto node = probe_node({*state_->store, prefix});
    const bool listed = node && node->dialect == state_->dialect &&
                        parents_are_listed(*state_->store, *state_->dialect, state_->prefix, path);
    const Value* entry = consolidated->find(path);
    if (entry == nullptr && path.empty()) return true;  // v3 keeps no copy of the group itself
    if (entry == nullptr || !listed) return (entry != nullptr) == listed;
    return without_nested_copies(*entry) == documents_of(*state_->store, *state_->dialect, prefix);
}

namespace {

/// stale_above() for a path in another kind of store.
std::vector<fs::path> stale_elsewhere(const fs::path& path) {
    std::vector<fs::path> stale;
    const Place node = find_place(path, {.read_only = true});
    for (std::string_view above = node.prefix;; above = parent_of(above)) {
        const std::string below = fs::path(node.prefix).lexically_relative(above).generic_string();
        const auto there = probe_node({*node.store, above});
        if (there && there->kind == NodeKind::group &&
            !Group::open({node.store, above}).consolidated_matches(below == "." ? "" : below)) {
            stale.emplace_back(node.store->name_of(above));
        }
        if (above.empty()) return stale;
    }
}

}  // namespace

std::vector<fs::path> stale_above(const fs::path& path) {
    if (!is_local(path)) return stale_elsewhere(path);
    std::vector<fs::path> stale;
    const fs::path node = real_path(path);
    for (fs::path above = node; above != above.root_path(); above = above.parent_path()) {
        const auto store = directory_store(above, {.read_only = true});
        if (probe_group_dialect(*store) == nullptr || probe_dialect(*store) != nullptr) continue;
        const std::string path_below = above == node ? "" : node.lexically_relative(above).generic_string();
        if (!Group::open(store).consolidated_matches(path_below)) stale.push_back(above);
    }
    return stale;
}

const Dialect* format_above(const fs::path& path, const StoreOptions& options) {
    const Place seen = enclosing_place(path, to_read(options));
    for (std::string above = seen.prefix; !above.empty();) {
        above = fs::path(above).parent_path().string();
        if (const Dialect* dialect = probe_group_dialect({*seen.store, above})) return dialect;
    }
    return nullptr;
}

}  // namespace tessera
