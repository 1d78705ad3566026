// Changes of sealed files, for sealing again. Private to the store module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>
#include <tessera/parallel.h>

#include "parity_archive.h"
#include "sums.h"

namespace tessera {

/// "a, b, c and 12 more"
[[nodiscard]] std::string names_text(const std::vector<std::string>& names);

/// The text for files with the seal's size and time but other content, and the way out.
[[nodiscard]] std::string damaged_text(const std::vector<std::string>& names);
/// An error about such files, with what to do.
[[nodiscard]] Error advise_damaged(const Error& error);

/// When the seal at `place` was broken on purpose, in nanoseconds since 1970; nullopt if it was not.
[[nodiscard]] std::optional<std::int64_t> seal_broken(const PlaceView& place);

/// The files covered by a seal's parity, as far as its indices are readable.
struct SealedParts {
    /// Sorted by path, with what was sealed: once for each extent that a segment has of a file, and those of the
    /// segment that comes first in the root first. A file without bytes in a segment is listed once, with `no_extent`.
    FileList files;
    std::vector<std::optional<std::uint64_t>> bytes;  ///< of each segment
    static constexpr std::uint32_t no_extent = UINT32_MAX;
};
[[nodiscard]] SealedParts sealed_parts(const ParityArchive& archive);

/// Of paths below what is sealed; the lists are sorted.
struct SealChanges {
    std::vector<bool> intact;          ///< of each file that is there: as sealed, by size and time or by content
    std::vector<std::string> edited;   ///< written after the seal was broken
    std::vector<std::string> damaged;  ///< other content with the size and time of the seal
    std::vector<std::string> changed;  ///< otherwise not as sealed, although the seal was not broken before that
    std::vector<std::string> missing;  ///< removed or lost: nothing tells which
    std::vector<std::string> added;
    [[nodiscard]] bool none() const {
        return edited.empty() && damaged.empty() && changed.empty() && missing.empty() && added.empty();
    }
};
/// Compares `files`, all that exist now, with the sealed ones. Reads the files whose size or time is not the sealed
/// one, and those of which no record says these (`records` are those of parity, sorted by path; the first of a path
/// counts); with `check` all.
[[nodiscard]] SealChanges seal_changes(const PlaceView& place, const FileList& files, const FileList& sealed,
                                       const FileList& records, bool check, const IoOptions& io);

}  // namespace tessera
