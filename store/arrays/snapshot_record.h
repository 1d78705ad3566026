// The records of a snapshot. Private to the store module.
#pragma once

#include <tessera/key_value_store.h>
#include <tessera/snapshot.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

inline constexpr std::string_view snapshot_record_key = ".tessera/snapshot.json";
inline constexpr std::string_view snapshot_files_key = ".tessera/snapshot-files.txt";
inline constexpr std::string_view snapshot_sums_key = ".tessera/snapshot-sums.txt";

/// The record of a snapshot in a folder of snapshots. Throws not_found, corrupt, unsupported.
[[nodiscard]] SnapshotInfo load_record(const KeyValueStore& folder, const std::string& name);

/// One file, as snapshot-files.txt has it.
struct FileRecord {
    std::string path;
    std::uint64_t size = 0;
    std::int64_t modified = 0;
};

/// Its line in that file.
[[nodiscard]] std::string line_of(const FileRecord& file);

/// Calls each(record, present stamp, if any) for every file of the snapshot at `prefix`. Throws corrupt for an invalid
/// list.
void for_each_record(const KeyValueStore& store, std::string_view prefix,
                     const std::function<void(const FileRecord&, const std::optional<ValueStamp>&)>& each);

/// Whether there is a snapshot.
[[nodiscard]] bool is_snapshot(const KeyValueStore& store, std::string_view prefix);

}  // namespace tessera
