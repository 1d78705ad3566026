// The records of a snapshot, and the files that it shares. Private to the store module.
#pragma once

#include <tessera/key_value_store.h>
#include <tessera/snapshot.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "snapshot_folder.h"

namespace tessera {

inline constexpr std::string_view snapshot_files_key = ".tessera/snapshot-files.txt";
inline constexpr std::string_view snapshot_sums_key = ".tessera/snapshot-sums.txt";

/// The record of a snapshot in a folder of snapshots. Throws not_found, corrupt, unsupported.
[[nodiscard]] SnapshotInfo load_record(const ReadableStore& folder, const std::string& name);

/// Saves it, with the present sums of both lists in it and in `info`, or without any.
void save_record(const PlaceRef& place, SnapshotInfo& info, bool with_sums = true);
/// Makes the sums of exactly the files in its list.
void save_sums(const PlaceRef& place, const IoOptions& io);

/// One file, as snapshot-files.txt has it.
struct FileRecord {
    std::string path;
    std::uint64_t size = 0;
    std::int64_t modified = 0;
};

/// Its line in that file.
[[nodiscard]] std::string line_of(const FileRecord& file);

/// Calls each(record, present stamp, if any) for every file of the snapshot at `place`. Throws corrupt for an invalid
/// list.
void for_each_record(const PlaceView& place,
                     const std::function<void(const FileRecord&, const std::optional<ValueStamp>&)>& each);

/// Whether its sums are there, and as they were written.
[[nodiscard]] bool sums_are_whole(const PlaceView& place, const SnapshotInfo& info);

/// As snapshot_state(), of a snapshot with this record. Of the files outside of `part`, a path in the snapshot, it
/// reads only those whose time is another.
[[nodiscard]] SnapshotState snapshot_state_of(const PlaceView& place, const SnapshotInfo& info, std::string_view part,
                                              const IoOptions& io);

/// A chunk of which a repair replaced the damaged file.
struct MendedFile {
    std::string path;  ///< below the array or group
    std::string kept;  ///< the damaged file, below it, too: another name of the same inode where the store has links
    ValueStamp stamp;  ///< of the file that is right
    std::vector<std::string> snapshots = {};  ///< mend_snapshots() replaced it in these
};
/// Replaces the file of a chunk in every snapshot that shares its damaged inode, by a hard link to the right one. One
/// that was written again meanwhile is left as it is. `path` is the array or group, no lock of which may be held.
void mend_snapshots(const std::filesystem::path& path, std::vector<MendedFile>& files);

}  // namespace tessera
