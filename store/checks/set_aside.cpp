#include <tessera/dialect.h>
#include <tessera/own_names.h>
#include <tessera/repair.h>

#include <string>
#include <utility>
#include <vector>

#include "move_aside.h"

namespace tessera {

namespace {

/// Adds up the files at a prefix and below.
void add_files(const KeyValueStore& store, const std::string& prefix, SetAside& sum) {
    std::vector<std::string> folders{prefix};
    while (!folders.empty()) {
        const std::string folder = std::move(folders.back());
        folders.pop_back();
        store.for_each(folder, [&](std::string_view, const KeyValueStore::ValueSize& size) {
            ++sum.files;
            sum.bytes += size();
        });
        for (const std::string& name : store.list(folder).prefixes) {
            const std::string below = join_key(folder, name);
            if (!store.is_link(below)) folders.push_back(below);
        }
    }
}

}  // namespace

SetAside set_aside_in(const KeyValueStore& store, std::string_view prefix) {
    SetAside sum;
    const std::string folder = join_key(prefix, damaged_folder);
    // Repair never makes a link here.
    if (store.is_link(join_key(prefix, own_folder)) || store.is_link(folder)) return sum;
    add_files(store, folder, sum);
    return sum;
}

SetAside drop_set_aside(KeyValueStore& store, std::string_view prefix) {
    const std::string folder = join_key(prefix, damaged_folder);
    store.require_direct(folder);
    StoreLock lock;
    if (probe_dialect(store, prefix) != nullptr) lock = store.lock(prefix, 0, LockMode::exclusive);
    const SetAside sum = set_aside_in(store, prefix);
    store.erase_below(folder);
    store.sync();
    return sum;
}

}  // namespace tessera
