#include "snapshot_folder.h"

#include <algorithm>
#include <string>

namespace tessera {

bool is_snapshot(const PlaceView& place) {
    return place.store.contains(place.key(snapshot_record_key));
}

bool is_snapshot_folder(const PlaceView& place) {
    if (!place.prefix.ends_with(snapshots_suffix)) return false;
    return std::ranges::any_of(place.store.list(place.prefix).prefixes, [&](const std::string& name) {
        return is_snapshot({place.store, place.key(name)});
    });
}

}  // namespace tessera
