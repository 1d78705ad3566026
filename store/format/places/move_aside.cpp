// Files that repair has set aside are in `.tessera/damaged` of each array and group. Somebody may still want them, so
// only repair on request, or the removal of the array, deletes them.
#include "move_aside.h"

#include <fmt/format.h>
#include <tessera/dialect.h>
#include <tessera/error.h>
#include <tessera/own_names.h>

#include <string>
#include <utility>
#include <vector>

#include "copy_bytes.h"
#include "directory_store.h"
#include "node_files.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

bool is_empty(const Listing& listing) {
    return listing.keys.empty() && listing.prefixes.empty();
}

/// Moves a folder to `to`, or if that exists to `to`/replaced.N.
void move_aside(KeyValueStore& store, const std::string& from, const std::string& to) {
    std::string target = to;
    for (int n = 1;; ++n) {
        try {
            store.move(from, target);
            return;
        } catch (const Error& e) {
            if (e.code() != ErrorCode::already_exists) throw;
            target = fmt::format("{}/replaced.{}", to, n);
        }
    }
}

}  // namespace

std::string aside_key(const PlaceView& place, const std::string& key) {
    const std::string name = place.prefix.empty() ? key : key.substr(place.prefix.size() + 1);
    const std::string first = join_key(place.key(damaged_folder), name);
    std::string aside = first;
    const auto is_taken = [&] { return place.store.contains(aside) || place.store.local_files().folder_id(aside); };
    for (int n = 1; is_taken(); ++n) aside = fmt::format("{}.{}", first, n);
    return aside;
}

std::string keep_aside(const PlaceRef& place, const std::string& key) {
    bool there = true;
    try {
        there = place.store.contains(key);
    } catch (const Error&) {
        there = true;  // it cannot be looked at
    }
    if (!there) return "";
    std::string aside = aside_key(place, key);
    if (place.store.local_files().link(aside, place.store, key)) return aside;
    try {
        const auto old = place.store.open(key);
        if (old == nullptr) return "";
        copy_bytes(*old, place.store, aside);
    } catch (const Error& e) {
        if (e.code() == ErrorCode::cancelled) throw;
        (void)place.store.replace(key, aside);
    }
    return aside;
}

std::string move_directory_aside(const PlaceRef& place, const std::string& key) {
    if (!place.store.local_files().folder_id(key)) return "";
    std::string aside = aside_key(place, key);
    (void)place.store.replace(key, aside);
    return aside;
}

void carry_set_aside(const fs::path& from, const fs::path& to, const StoreOptions& options) {
    StoreOptions direct = options;
    direct.follow_links = false;
    std::vector<std::string> nodes{""};
    {
        const auto old = directory_store(from, {.read_only = true});
        for (const Node& node : all_nodes(*old)) {
            if (!node.path.empty() && is_direct({*old, node.path})) nodes.push_back(node.path);
        }
        std::erase_if(nodes, [&](const std::string& node) {
            const std::string damaged = join_key(node, damaged_folder);
            return old->local_files().is_link(join_key(node, own_folder)) || old->local_files().is_link(damaged) ||
                   is_empty(old->list(damaged));
        });
    }
    if (nodes.empty()) return;
    const auto above = directory_store(from.parent_path(), direct);
    const auto present = directory_store(to, {.read_only = true});
    for (const std::string& node : nodes) {
        const std::string damaged = join_key(node, damaged_folder);
        const bool same = node.empty() || (probe_node({*present, node}) && is_direct({*present, node}));
        const std::string place = same ? damaged : join_key(damaged_folder, node);
        move_aside(*above, join_key(from.filename().string(), damaged), join_key(to.filename().string(), place));
    }
    above->sync();
}

void rescue_set_aside(const fs::path& from, const fs::path& to, const StoreOptions& options) {
    std::error_code ignored;
    if (!fs::is_directory(fs::symlink_status(from, ignored)) || !fs::is_directory(to, ignored)) return;
    carry_set_aside(from, to, options);
}

}  // namespace tessera
