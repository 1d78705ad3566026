#include <tessera/dialect.h>
#include <tessera/own_names.h>
#include <tessera/verify.h>

#include <string>
#include <utility>
#include <vector>

#include "move_aside.h"

namespace tessera {

namespace {

/// Adds up the files at a place and below.
void add_files(const PlaceView& place, SetAside& sum) {
    std::vector<std::string> folders{std::string(place.prefix)};
    while (!folders.empty()) {
        const std::string folder = std::move(folders.back());
        folders.pop_back();
        place.store.for_each(folder, [&](std::string_view, const KeyValueStore::ValueSize& size) {
            ++sum.files;
            sum.bytes += size();
        });
        for (const std::string& name : place.store.list(folder).prefixes) {
            const std::string below = join_key(folder, name);
            if (!place.store.local_files().is_link(below)) folders.push_back(below);
        }
    }
}

}  // namespace

SetAside set_aside_in(const PlaceView& place) {
    SetAside sum;
    const std::string folder = place.key(damaged_folder);
    // Repair never makes a link here.
    if (place.store.local_files().is_link(place.key(own_folder)) || place.store.local_files().is_link(folder))
        return sum;
    add_files({place.store, folder}, sum);
    return sum;
}

SetAside drop_set_aside(const PlaceRef& place) {
    const std::string folder = place.key(damaged_folder);
    place.store.local_files().require_direct(folder);
    StoreLock lock;
    if (probe_dialect(place) != nullptr) lock = place.store.lock(place.prefix, 0, LockMode::exclusive);
    const SetAside sum = set_aside_in(place);
    place.store.erase_below(folder);
    place.store.sync();
    return sum;
}

}  // namespace tessera
