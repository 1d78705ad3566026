// Folders of snapshots, which lie beside what they were made of. Private to the store module.
#pragma once

#include <string_view>

#include <tessera/key_value_store.h>

namespace tessera {

/// What the name of the folder with a node's snapshots ends with.
inline constexpr std::string_view snapshots_suffix = ".snapshots";
inline constexpr std::string_view snapshot_record_key = ".tessera/snapshot.json";

/// Whether there is a snapshot.
[[nodiscard]] bool is_snapshot(const PlaceView& place);
/// Whether a folder holds snapshots, which are not part of a hierarchy around it. Its name ends the prefix.
[[nodiscard]] bool is_snapshot_folder(const PlaceView& place);

}  // namespace tessera
