// What concurrent readers and writers see
// ---------------------------------------
// The two directories are exchanged atomically (renameat2, RENAME_EXCHANGE): a path leads to the old array or to the
// new one. A process that has the old directory open keeps it. Therefore its metadata and its lock files are removed
// before its locks are released. A writer that waited for the lock then finds that the locked file has no name any
// more. It looks for the array again, and continues with the new one or throws not_found. A reader that finds no chunk
// checks that the metadata still exists before it assumes the fill value. The rest of the old directory is removed
// last. A crash before the exchange leaves the old array, a crash after it the new one. Leftovers beside it have a
// hidden name, and the next attempt removes them.
#include "replace_directory.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/descriptor.h>
#include <tessera/error_text.h>
#include <tessera/place.h>
#include <tessera/system_calls.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "batch.h"
#include "beneath.h"
#include "copy_folder.h"
#include "directory_store.h"
#include "move_aside.h"
#include "node_files.h"
#include "seal_mark.h"

namespace tessera {

namespace fs = std::filesystem;

void exchange_directories(const fs::path& built, const fs::path& old) {
    if (os::exchange(built.c_str(), old.c_str())) return;
    if (errno != EINVAL && errno != ENOSYS && errno != EXDEV) throw io_error("cannot replace", old.string(), errno);
    // Without support for the exchange: two steps. Between them neither is in place, but both are complete.
    fs::path aside = old;
    aside.replace_filename(hidden_name(old, "old"));
    if (::rename(old.c_str(), aside.c_str()) != 0) {
        if (errno != EXDEV) throw io_error("cannot replace", old.string(), errno);
        remove_tree(aside);
        move_folder(old, aside);
    }
    if (::rename(built.c_str(), old.c_str()) != 0) {
        const int error = errno;
        const bool back = ::rename(aside.c_str(), old.c_str()) == 0;
        throw io_error("cannot replace",
                       back ? old.string() : fmt::format("{}, which is now {}", old.string(), aside.string()), error);
    }
    if (::rename(aside.c_str(), built.c_str()) != 0) throw io_error("cannot move", aside.string(), errno);
}

namespace {

fs::path real_place(const PlaceView& place) {
    return real_path(fs::path(place.store.name()) / place.prefix);
}

/// The nodes that have locks, by real path, so that a linked directory is locked once and the order is the same for
/// all.
std::map<fs::path, std::string> lock_places(const ReadableStore& store, const std::vector<Node>& nodes) {
    std::map<fs::path, std::string> places;
    for (const Node& node : nodes) {
        // Nodes behind a link are read, but not locked there; inside the hierarchy they also have their own path.
        if (node.dialect == nullptr || !is_direct({store, node.path})) continue;
        // Nobody writes into a bag or an OCFL object, and a lock would be a file that it does not list.
        fs::path place = real_place({store, node.path});
        if (package_holding(place.string()).empty()) places.emplace(std::move(place), node.path);
    }
    return places;
}

/// The keys of metadata and lock files of all nodes, except linked ones that lie elsewhere.
std::vector<std::string> vital_keys(const ReadableStore& store, const std::vector<Node>& nodes) {
    std::vector<std::string> keys;
    const fs::path root = real_place(store);
    for (const Node& node : nodes) {
        if (node.dialect == nullptr) continue;
        if (real_place({store, node.path}) != (node.path.empty() ? root : root / node.path)) continue;
        const bool is_array = node.kind == NodeKind::array;
        keys.push_back(join_key(node.path, is_array ? node.dialect->metadata_key : node.dialect->group_key));
        keys.push_back(join_key(node.path, ".tessera/lock"));
    }
    return keys;
}

}  // namespace

BuiltDirectory::BuiltDirectory(fs::path path, Durability durability) : path_(std::move(path)) {
    remove_tree(path_);
    (void)make_directories(path_, durability);
    id_ = folder_id(path_);
}

BuiltDirectory::~BuiltDirectory() {
    if (!id_ || folder_id(path_) != id_) return;
    try {
        remove_tree(path_);
    } catch (const Error&) {
        // Its name is hidden, and the next attempt removes it.
    }
}

namespace {

/// Locks the nodes that `list` returns.
template <class List>
LockedNodes lock_listed(KeyValueStore& store, const List& list) {
    LockedNodes locked{.nodes = list(), .locks = {}};
    for (;;) {
        const auto places = lock_places(store, locked.nodes);
        for (const auto& [path, node] : places) locked.locks.push_back(store.lock(node, 0, LockMode::exclusive));
        // Detects nodes that appeared or vanished while waiting for others.
        std::vector<Node> now = list();
        const bool same = lock_places(store, now) == places;
        locked.nodes = std::move(now);
        if (same) return locked;
        locked.locks.clear();
    }
}

}  // namespace

LockedNodes lock_nodes(const PlaceRef& place) {
    return lock_listed(place.store, [&] { return all_nodes(place); });
}

LockedNodes lock_arrays_below(const PlaceRef& place) {
    return lock_listed(place.store, [&] {
        std::vector<Node> nodes = nodes_below(place);
        for (Node& node : nodes) node.path = place.key(node.path);
        std::erase_if(nodes, [&](const Node& node) {
            return node.kind != NodeKind::array || !is_direct({place.store, node.path});
        });
        return nodes;
    });
}

LockedNodes lock_settled_nodes(const PlaceRef& place) {
    LockedNodes locked = lock_nodes(place);
    for (const Node& node : locked.nodes) {
        if (node.kind != NodeKind::array) continue;
        if (is_direct({place.store, node.path})) {
            finish_batch({place.store, node.path});
        } else if (batch_pending({place.store, node.path})) {
            throw invalid_argument(
                "{}: a batch of edits is pending, and a link leads there; open the array by its own name first",
                place.store.name_of(node.path))
                .advising(Action::follow_links, "allows it");
        }
    }
    return locked;
}

void replace_directory(const fs::path& built, KeyValueStore& store, LockedNodes locked, const StoreOptions& options) {
    const fs::path place = store.name();
    const std::vector<std::string> vital = vital_keys(store, locked.nodes);
    exchange_directories(built, place);
    const fs::path above = fs::absolute(place).parent_path();
    if (options.durability != Durability::none && !sync_directory(AT_FDCWD, above.c_str())) {
        throw io_error("writing to the disk", above.string(), errno);
    }
    in_context([&] { return fmt::format("the old one is in {} still", built.string()); },
               [&] { carry_set_aside(built, place, options); });
    for (const std::string& key : vital) store.erase(key);  // of the old directory, which the store keeps open
    locked.locks.clear();
    close_idle_locks(store);
    remove_tree(built);
}

}  // namespace tessera
