// Snapshots: the state of an array or a hierarchy at one moment, kept beside it, to be restored when needed.
//
// A snapshot is a plain Zarr store, ROOT.snapshots/NAME. ROOT is the outermost group (with metadata) around the path,
// or else the path itself: inside a hierarchy, consolidation would list the snapshot. Chunk files are reflinks of the
// original if the file system supports them, else hard links, else copies. Metadata and attributes are always copies.
// Tessera only ever replaces files, so that a hard link keeps the old content. A program that writes into chunk files
// in place changes a hard-linked snapshot too; changed_since_snapshot() detects that.
//
// NAME/.tessera/snapshot.json records the source, the time and how files were copied; NAME/.tessera/snapshot-files.txt
// has a line "SIZE MTIME PATH" for each file: bytes, nanoseconds since 1970, and the path below NAME, with backslash
// and line feed escaped as \\ and \n.
//
// A copy of a snapshot that does not keep the files' times (cp -r, some object stores) looks changed. SHA-256 sums tell
// whether a file of another time still has its content: NAME/.tessera/snapshot-sums.txt, made on request, or the seals
// of the original. Without sums, if every file has its recorded size but none has its recorded time, the state is
// unknown; accept_snapshot() then accepts the files as they are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>
#include <tessera/parallel.h>

namespace tessera {

struct SnapshotInfo {
    std::string name;
    std::filesystem::path path;  ///< of the snapshot itself: it opens like any other array or group
    std::string node;            ///< path of the source below ROOT; empty: ROOT itself
    std::string made;            ///< when, "2026-11-21T17:05:09Z"
    std::int64_t arrays = 0;
    std::int64_t files = 0;
    std::uint64_t bytes = 0;     ///< of the files
    std::int64_t reflinked = 0;  ///< files that share their blocks with the original
    std::int64_t linked = 0;     ///< files that are hard links to the original
    std::int64_t copied = 0;
    bool sums = false;  ///< whether it has SHA-256 sums of its own
    /// SHA-256 in hexadecimal digits, of its list of files and of its sums. Empty: made by a version without them.
    std::string files_sum = {}, sums_sum = {};
};

struct SnapshotOptions {
    bool sums = false;  ///< read all files, and record their SHA-256 sums
};
struct RestoreOptions {
    bool skip_damaged = false;  ///< leave out what changed instead of refusing it
};

/// Makes a snapshot of the array or group at `path`. When it appears, it is complete, and as durable as the options
/// say. Meanwhile writers of all arrays and groups below wait, so that it shows one moment; this takes two file
/// descriptors for each node. An interrupted commit of a batch is finished first. Files that belong to no array or
/// group are left out. Throws not_found,
/// already_exists, and invalid_argument for a name that is hidden or contains a '/', and for a source that is itself a
/// snapshot or lies in a zip.
SnapshotInfo create_snapshot(const std::filesystem::path& path, std::string_view name, const StoreOptions& options = {},
                             const IoOptions& io = {}, SnapshotOptions how = {});

/// All snapshots of the path's ROOT and of nodes below it, sorted by name.
[[nodiscard]] std::vector<SnapshotInfo> list_snapshots(const std::filesystem::path& path);

/// Replaces `path` with its state in a snapshot, in one step; the snapshot stays. `path` may be the snapshot's source
/// or an array or group that was below it. It need not exist any more; its present content is lost. Operations through
/// old open handles throw not_found until the node is opened again. Throws not_found, corrupt for a snapshot whose
/// files changed, and invalid_argument if files are there now that belong to no array or group. With `skip_damaged`,
/// leaves out files that changed, so that their chunks read as the fill, and arrays whose metadata changed. Returns the
/// paths left out, sorted. Throws corrupt if the changed metadata is that of a group or of `path` itself.
std::vector<std::string> restore_snapshot(const std::filesystem::path& path, std::string_view name,
                                          const StoreOptions& options = {}, const IoOptions& io = {},
                                          RestoreOptions how = {});

/// Records the present times of a snapshot's files, after a program copied them without their times. Throws corrupt if
/// a file is missing or has another size or content. Sums that are gone are made again with SnapshotOptions::sums, and
/// else given up.
void accept_snapshot(const std::filesystem::path& path, std::string_view name, const StoreOptions& options = {},
                     const IoOptions& io = {}, SnapshotOptions how = {});

/// Removes a snapshot of the path's ROOT. Throws not_found.
void remove_snapshot(const std::filesystem::path& path, std::string_view name, const StoreOptions& options = {});

/// How a snapshot's files differ from those recorded. Paths are relative to it.
struct SnapshotState {
    std::int64_t files = 0;
    std::int64_t moved = 0;            ///< of another time, but with the same content by their sums
    std::vector<std::string> changed;  ///< of another size or content, or of another time without a sum
    std::vector<std::string> missing;
    std::vector<std::string> untold;  ///< unknown: every file has its size, none its time, and there are no sums
    [[nodiscard]] bool intact() const { return changed.empty() && missing.empty() && untold.empty(); }
};
/// nullopt if there is no snapshot. Reads all files if the snapshot has sums (SnapshotOptions::sums), else those whose
/// times differ and whose sums are in a seal. Throws corrupt for invalid records, and for sums that are gone.
[[nodiscard]] std::optional<SnapshotState> snapshot_state(const PlaceView& place, const IoOptions& io = {});
/// The paths of all files that changed or whose state is unknown.
[[nodiscard]] std::optional<std::vector<std::string>> changed_since_snapshot(const PlaceView& place);

}  // namespace tessera
