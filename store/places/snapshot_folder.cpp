#include "snapshot_folder.h"

#include <algorithm>
#include <string>

namespace tessera {

bool is_snapshot(const KeyValueStore& store, std::string_view prefix) {
    return store.contains(join_key(prefix, snapshot_record_key));
}

bool is_snapshot_folder(const KeyValueStore& store, std::string_view prefix) {
    if (!prefix.ends_with(snapshots_suffix)) return false;
    return std::ranges::any_of(store.list(prefix).prefixes,
                               [&](const std::string& name) { return is_snapshot(store, join_key(prefix, name)); });
}

}  // namespace tessera
