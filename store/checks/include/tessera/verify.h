// verify: what is damaged and what was left behind in an array, a hierarchy or an array file.
//
// Every stored chunk is decoded, every document parsed, every file given a reason to be there. What is found is a list:
// no content whatsoever makes it throw, and no finding ends the search for more.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>
#include <tessera/parallel.h>
#include <tessera/shape.h>

namespace tessera {

enum class FindingKind : std::uint8_t {
    damage,     ///< cannot be decoded, or is not what it must be
    changed,    ///< a file that is not as it was sealed: damage, or somebody's edit
    lost,       ///< a file that was sealed and is missing
    added,      ///< a file that was not there when the seal was made
    unchecked,  ///< valid perhaps, but not for us to say: a codec that Tessera lacks, a chunk beyond the memory budget,
                ///< a file that the system did not let us read
    leftover,   ///< of a crash or another program: nothing that is read depends on it
    note,       ///< worth knowing
};
/// "damage", "changed", "lost", "added", "unchecked", "leftover", "note".
[[nodiscard]] std::string_view kind_name(FindingKind kind);
/// Whether such a finding leaves an array sound: leftovers and notes do.
[[nodiscard]] bool is_harmless(FindingKind kind);

/// What repair() does about a finding.
enum class Remedy : std::uint8_t {
    none,
    remove_temporary,  ///< once its writer is dead
    finish_batch,      ///< that was committed and is not in place yet
    discard_batch,     ///< that was never committed
    set_aside_batch,   ///< to .tessera/damaged, because its journal is damaged: what it changed stays as it is
    set_aside,         ///< to .tessera/damaged in the array, so that the chunk reads as the fill
    rewrite_shard,     ///< without the damaged chunks in it; the old one is set aside
    cut_off,           ///< bytes that follow an encoded chunk; the old file is set aside
    consolidate,       ///< consolidated metadata anew
    remove_foreign,    ///< what stands in the place of Tessera's own files and is neither file nor directory
    restore,           ///< from the parity of a seal
};

struct Finding {
    FindingKind kind = FindingKind::damage;
    Remedy remedy = Remedy::none;
    std::string node;                           ///< path of the array or group, below what was verified
    std::string key = {};                       ///< of the file, below what was verified; may be empty
    std::optional<Index> chunk = std::nullopt;  ///< index in the grid of chunks; with shards, of shards
    std::optional<Index> inner = std::nullopt;  ///< of a chunk within the shard
    std::string text = {};                      ///< what is wrong
    bool by_seal = false;                       ///< a comparison with a seal that has parity found it
};

struct VerifyReport {
    std::vector<Finding> findings;  ///< sorted by kind, then by key
    std::int64_t arrays = 0;        ///< in an array file: its arrays
    std::int64_t groups = 0;        ///< with metadata
    std::int64_t chunks = 0;        ///< stored and in the grid, each decoded; with shards, shards
    std::int64_t missing = 0;       ///< not stored: they read as the fill, and are no damage
    std::uint64_t bytes = 0;        ///< of the chunks, as stored
    std::int64_t seals = 0;         ///< that were checked
    std::int64_t sealed = 0;        ///< files that are as they were sealed

    [[nodiscard]] std::int64_t count(FindingKind kind) const;
    /// No damage, all as sealed, and nothing that could not be checked.
    [[nodiscard]] bool sound() const;
};

struct VerifyOptions {
    /// io.max_memory bounds the decoded chunks of all threads; 8 bytes for each stored chunk come on top, and with a
    /// seal the names of all files.
    IoOptions io = {};
    bool seals = true;  ///< compare with the seals that are there
    /// If set, chunks whose files it returns true for, by their path below what is verified, are not decoded. Called by
    /// several threads at once.
    std::function<bool(std::string_view path)> trust = nullptr;
};

/// Verifies the array or group at `prefix` with everything below it. Takes no lock and changes nothing: beside a writer
/// it sees some chunks before and some after. Throws not_found when nothing is there, cancelled.
[[nodiscard]] VerifyReport verify(const std::shared_ptr<KeyValueStore>& store, std::string_view prefix,
                                  const VerifyOptions& options = {});
/// The same for what a path names: a directory, a zip or something in one, an array file, "file.npz::member".
/// Throws not_found, and unsupported for a file of no format that is known.
[[nodiscard]] VerifyReport verify(std::string_view path, const VerifyOptions& options = {});

}  // namespace tessera
