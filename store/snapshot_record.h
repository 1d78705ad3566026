// What a snapshot says of itself. Private to the store module.
#pragma once

#include <tessera/key_value_store.h>
#include <tessera/snapshot.h>

#include <string>
#include <string_view>

namespace tessera {

inline constexpr std::string_view snapshot_record_key = ".tessera/snapshot.json";
inline constexpr std::string_view snapshot_files_key = ".tessera/snapshot-files.txt";

/// The record of a snapshot in a folder of snapshots. Throws not_found, corrupt, unsupported.
[[nodiscard]] SnapshotInfo load_record(const KeyValueStore& folder, const std::string& name);

}  // namespace tessera
