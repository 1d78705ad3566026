#include <tessera/folder_walk.h>
#include <tessera/place.h>
#include <tessera/retry.h>

#include <algorithm>
#include <map>

#include "directory_store.h"
#include "keys.h"
#include "snapshot_folder.h"

namespace tessera {

namespace {

/// Orders paths by their parts, so that a group comes before its members.
bool by_parts(std::string_view a, std::string_view b) {
    const auto rank = [](char c) { return c == '/' ? 0 : static_cast<int>(static_cast<unsigned char>(c)) + 1; };
    return std::ranges::lexicographical_compare(a, b, {}, rank, rank);
}

/// A folder that walks skip: snapshots, and hidden folders without metadata.
bool is_passed_over(const ReadableStore& store, const FolderWalk& walk, bool is_node) {
    return (!is_node && walk.name().starts_with('.')) || is_snapshot_folder({store, walk.prefix()});
}

/// Whether a folder, itself neither a link nor a node, holds any node.
bool holds_nodes(const PlaceView& place) {
    FolderWalk walk(place, [&](const std::string& link) {
        return !place.store.local_files().leads_back(link) && probe_node({place.store, link});
    });
    while (walk.next()) {
        const bool is_node = !walk.path().empty() && probe_node({place.store, walk.prefix()});
        if (!walk.path().empty() && is_passed_over(place.store, walk, is_node)) continue;
        if (is_node) return true;
        for (const std::string& name : walk.listing().prefixes) {
            if (!is_own_name(name)) walk.enter(name);
        }
    }
    return false;
}

/// For a folder that is not a node: the dialect of an array whose metadata document exists but cannot be read (a FIFO,
/// a dangling link). Opening that array fails, and it must not be reported as absent.
const Dialect* unreadable_array(const ReadableStore& store, FolderWalk& walk) {
    for (const Dialect* dialect : dialect_table()) {
        const std::string key(dialect->metadata_key);
        if (std::ranges::binary_search(walk.listing().keys, key) && !store.contains(join_key(walk.prefix(), key))) {
            return dialect;
        }
    }
    return nullptr;
}

using NodesByPath = std::map<std::string, Node, decltype(&by_parts)>;

/// Adds the plain folders above nodes.
void add_folders(NodesByPath& nodes) {
    std::vector<std::string> folders;
    for (const auto& [path, node] : nodes) {
        for (std::string_view above = parent_of(path); !above.empty(); above = parent_of(above)) {
            folders.emplace_back(above);
        }
    }
    for (std::string& folder : folders) {
        nodes.try_emplace(folder, Node{.path = folder, .kind = NodeKind::group, .dialect = nullptr});
    }
}

/// Turns passed links to arrays into nodes, and drops irrelevant ones.
void settle(const PlaceView& place, NodesByPath& nodes, std::vector<PassedFolder>& passed) {
    const auto is_array = [&](const PassedFolder& folder) {
        if (folder.why != PassedFolder::Why::second_way) return false;
        const auto known = nodes.find(folder.target);
        if (known == nodes.end() || known->second.kind != NodeKind::array) return false;
        const Node node{.path = folder.path, .kind = NodeKind::array, .dialect = known->second.dialect};
        nodes.try_emplace(folder.path, node);
        return true;
    };
    std::erase_if(passed, is_array);
    add_folders(nodes);
    std::erase_if(passed, [&](const PassedFolder& folder) {
        const bool hidden = folder.path.substr(folder.path.rfind('/') + 1).starts_with('.');
        if (folder.why != PassedFolder::Why::second_way)
            return hidden || is_snapshot_folder({place.store, place.key(folder.path)});
        return !folder.target.empty() && !nodes.contains(folder.target);
    });
    std::ranges::sort(passed, by_parts, &PassedFolder::path);
}

void enter_folders(FolderWalk& walk) {
    const Listing& listing = walk.listing();
    for (const auto* names : {&listing.prefixes, &listing.links}) {
        const bool all = names == &listing.prefixes;
        for (const std::string& name : *names) {
            // The other links are among the prefixes.
            if (!is_own_name(name) && (all || std::ranges::binary_search(listing.keys, name))) walk.enter(name);
        }
    }
}

}  // namespace

std::optional<Node> probe_node(const PlaceView& place) {
    if (const Dialect* array = probe_dialect(place)) return Node{std::string(place.prefix), NodeKind::array, array};
    const Dialect* group = probe_group_dialect(place);
    if (group == nullptr) return std::nullopt;
    return Node{std::string(place.prefix), NodeKind::group, group};
}

std::vector<Node> child_nodes(const PlaceView& place) {
    std::vector<Node> nodes;
    const Listing listing = place.store.list(place.prefix);
    for (const std::string& name : listing.prefixes) {
        const std::string child = place.key(name);
        if (is_own_name(name) || is_snapshot_folder({place.store, child})) continue;
        if (const auto node = probe_node({place.store, child})) {
            nodes.push_back({name, node->kind, node->dialect});
        } else if (!name.starts_with('.') && !std::ranges::binary_search(listing.links, name) &&
                   holds_nodes({place.store, child})) {
            nodes.push_back({name, NodeKind::group, nullptr});
        }
    }
    return nodes;
}

Hierarchy hierarchy_below(const PlaceView& place, NodeLinks links) {
    FolderWalk::Follow follow;
    if (links == NodeLinks::follow)
        follow = [&](const std::string& link) { return probe_node({place.store, link}).has_value(); };
    FolderWalk walk(place, follow);
    NodesByPath nodes(&by_parts);
    while (walk.next()) {
        if (!walk.path().empty()) {
            const auto node = probe_node({place.store, walk.prefix()});
            if (is_passed_over(place.store, walk, node.has_value())) continue;
            if (node) nodes.try_emplace(walk.path(), Node{walk.path(), node->kind, node->dialect});
            if (node && node->kind == NodeKind::array) continue;
            const Dialect* unreadable = node || !follow ? nullptr : unreadable_array(place.store, walk);
            if (unreadable != nullptr) {
                nodes.try_emplace(walk.path(), Node{walk.path(), NodeKind::array, unreadable});
                continue;
            }
        }
        enter_folders(walk);
    }
    Hierarchy hierarchy{.nodes = {}, .passed = walk.passed()};
    if (links == NodeLinks::follow) {
        settle(place, nodes, hierarchy.passed);
    } else {
        add_folders(nodes);
    }
    for (auto& [path, node] : nodes) hierarchy.nodes.push_back(std::move(node));
    return hierarchy;
}

std::vector<Node> nodes_below(const PlaceView& place) {
    return hierarchy_below(place).nodes;
}

std::vector<Node> all_nodes(const PlaceView& place) {
    const std::optional<Node> root = probe_node(place);
    if (root && root->kind == NodeKind::array) return {*root};
    std::vector<Node> nodes = nodes_below(place);
    for (Node& node : nodes) node.path = place.key(node.path);
    if (root || !nodes.empty()) nodes.insert(nodes.begin(), root.value_or(Node{.path = std::string(place.prefix)}));
    return nodes;
}

bool is_group_at(const std::filesystem::path& path) {
    return retry_when_replaced([&] { return Place(directory_store(path, {.read_only = true})); },
                               [](const Place& place) {
                                   if (probe_group_dialect(*place.store) != nullptr) return true;
                                   require_present(place);
                                   return false;
                               });
}

}  // namespace tessera
