// Finding: what verify() has to say of one file, and what repair() does about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/error.h>
#include <tessera/shape.h>

namespace tessera {

enum class FindingKind : std::uint8_t {
    damage,     ///< cannot be decoded, or is not what it must be
    changed,    ///< a file that differs from its sealed state: damage, or somebody's edit
    lost,       ///< a file that was sealed and is missing
    absent,     ///< a chunk that is not stored, though it was when the array was imported or copied, or all have to be
    added,      ///< a file that was not there when the seal was made
    unchecked,  ///< perhaps valid, but it could not be checked: a codec that Tessera lacks, a chunk beyond the memory
                ///< budget, a file without permission to read it
    leftover,   ///< remains of a crash or another program, which no reader needs
    note,       ///< worth knowing
};
/// "damage", "changed", "lost", "absent", "added", "unchecked", "leftover", "note".
[[nodiscard]] std::string_view kind_name(FindingKind kind);
/// Whether an array with such a finding still counts as sound: true for leftovers and notes.
[[nodiscard]] bool is_harmless(FindingKind kind);

/// What repair() does about a finding.
enum class Remedy : std::uint8_t {
    none,
    remove_temporary,  ///< remove a temporary file once its writer has ended
    finish_batch,      ///< finish a batch that was committed but is not in place yet
    discard_batch,     ///< discard a batch that was never committed
    set_aside_batch,   ///< move a batch with a damaged journal to .tessera/damaged; its changes so far stay
    set_aside,         ///< move a chunk to the array's .tessera/damaged, so that it reads as the fill
    rewrite_shard,     ///< rewrite a shard without its damaged chunks; the old one is set aside
    cut_off,           ///< remove bytes that follow an encoded chunk; the old file is set aside
    consolidate,       ///< write consolidated metadata anew
    remove_foreign,    ///< remove an entry in place of Tessera's own files that is neither file nor directory
    restore,           ///< restore a file from the parity of a seal
};

struct Finding {
    FindingKind kind = FindingKind::damage;
    Remedy remedy = Remedy::none;
    std::string node;                           ///< path of the array or group, below the verified node
    std::string key = {};                       ///< of the file, below the verified node; may be empty
    std::optional<Index> chunk = std::nullopt;  ///< index in the grid of chunks; with shards, of shards
    std::optional<Index> inner = std::nullopt;  ///< of a chunk within the shard
    std::string text = {};                      ///< what is wrong
    std::vector<Advice> advice = {};            ///< what to do
    bool by_seal = false;                       ///< found by comparison with a seal that has parity
    std::string_view rule = {};                 ///< of a convention, which is broken: rule_name()
};

}  // namespace tessera
