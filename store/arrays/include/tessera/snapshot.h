// Snapshots: what an array or a whole hierarchy holds at one moment, kept beside it, and put back when it is wanted.
//
// A snapshot is a plain Zarr store, ROOT.snapshots/NAME, where ROOT is what the path names, or the outermost group
// (with metadata) that this lies in: never inside a hierarchy, whose consolidation would list it. Its chunk files share
// their bytes with the original: as reflinks where the file system has them, else as hard links, else they are copies;
// metadata and attributes are always copies. Tessera only ever replaces files, so that a hard link keeps what it was;
// a program that writes into chunk files in place changes a hard-linked snapshot too, and changed_since_snapshot()
// tells.
//
// NAME/.tessera/snapshot.json says of what it is a snapshot, when and how it was made; NAME/.tessera/snapshot-files.txt
// has a line "SIZE MTIME PATH" for each file: bytes, nanoseconds since 1970, and the path below NAME with backslash and
// the end of a line written as \\ and \n.
//
// A copy of a snapshot that does not keep the files' times (cp -r, some object stores) looks changed. Where SHA-256
// sums are there (NAME/.tessera/snapshot-sums.txt, on request, or the seals that the original had), they tell whether a
// file of another time still has its content. Where there are none, and not one file has its time while all have their
// sizes, it is said that nothing can be told, and accept_snapshot() takes the files for what they are.
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
    std::string node;            ///< of what, as its path below ROOT; empty: of ROOT itself
    std::string made;            ///< when, "2026-11-21T17:05:09Z"
    std::int64_t arrays = 0;
    std::int64_t files = 0;
    std::uint64_t bytes = 0;     ///< of the files
    std::int64_t reflinked = 0;  ///< files that share their blocks with the original
    std::int64_t linked = 0;     ///< files that are those of the original, by hard links
    std::int64_t copied = 0;
};

/// Makes a snapshot of the array or group at `path`, complete and durable as the options say when it appears. Writers
/// of all arrays and groups below wait meanwhile (two file descriptors for each of them are needed), so that it shows
/// one moment; a batch that was committed and interrupted is finished first. Files that belong to no array or group are
/// left out. Throws not_found, already_exists, invalid_argument for a name that is hidden or holds a '/', and for what
/// is a snapshot itself or lies in a zip. With `sums` the SHA-256 sums of the files are recorded too: all are read.
SnapshotInfo create_snapshot(const std::filesystem::path& path, std::string_view name, const StoreOptions& options = {},
                             const IoOptions& io = {}, bool sums = false);

/// Those of the path's ROOT, sorted by name; of the ROOT itself and of whatever is below it.
[[nodiscard]] std::vector<SnapshotInfo> list_snapshots(const std::filesystem::path& path);

/// Puts what a snapshot has of `path` in its place, all at once; the snapshot stays. `path` may be what it was made of,
/// or an array or group that was below that; it need not be there any more. Everything that is there now is lost. Open
/// handles to what was there do not see the new content: what they do ends with not_found until it is opened again.
/// Throws not_found, corrupt for a snapshot whose files were changed, invalid_argument when there are files now that
/// belong to no array or group.
/// With `skip_damaged` files that are not as they were are left out, and what they held reads as the fill; so are
/// arrays whose metadata are not as they were. Returns the paths of what is left out, sorted. Throws corrupt where it
/// is the metadata of a group, or of all there is.
std::vector<std::string> restore_snapshot(const std::filesystem::path& path, std::string_view name,
                                          const StoreOptions& options = {}, const IoOptions& io = {},
                                          bool skip_damaged = false);

/// Records the times that the files of a snapshot have now, after it was copied by a program that does not keep them.
/// Throws corrupt where a file is missing or has another size or content.
void accept_snapshot(const std::filesystem::path& path, std::string_view name, const StoreOptions& options = {},
                     const IoOptions& io = {}, bool sums = false);

/// Removes a snapshot of the path's ROOT. Throws not_found.
void remove_snapshot(const std::filesystem::path& path, std::string_view name, const StoreOptions& options = {});

/// What became of a snapshot's files since it was made. Paths are relative to it.
struct SnapshotState {
    std::int64_t files = 0;
    std::int64_t moved = 0;            ///< of another time, with the same content by their sums
    std::vector<std::string> changed;  ///< of another size or content, or of another time where nothing else tells
    std::vector<std::string> missing;
    std::vector<std::string> untold;  ///< all have their size, none its time, and there is no sum
    [[nodiscard]] bool intact() const { return changed.empty() && missing.empty() && untold.empty(); }
};
/// Nothing when there is no snapshot. Reads files only where their times differ and sums are recorded. Throws corrupt
/// for records that are none.
[[nodiscard]] std::optional<SnapshotState> snapshot_state(const KeyValueStore& store, std::string_view prefix,
                                                          const IoOptions& io = {});
/// The paths of all that are not as they were, or of which that cannot be told.
[[nodiscard]] std::optional<std::vector<std::string>> changed_since_snapshot(const KeyValueStore& store,
                                                                             std::string_view prefix);

/// Whether a folder is one of snapshots, which are no part of a hierarchy around it. `prefix` ends with its name.
[[nodiscard]] bool is_snapshot_folder(const KeyValueStore& store, std::string_view prefix);

}  // namespace tessera
