// verify: finds damage and leftovers in an array, a hierarchy or an array file. repair: acts on those findings that
// have a remedy.
//
// verify decodes every stored chunk, parses every document, and looks for the purpose of every file. The result is a
// list of findings: no content makes it throw, and no finding ends the search.
//
// repair sets damaged chunks, and chunks outside their array, aside in the array's `.tessera/damaged/`, under their own
// keys. It deletes no data, unless told to drop the chunks that were set aside (RepairOptions::drop_damaged). Where no
// stored chunk of several can be decoded, the metadata are probably wrong, and it leaves the chunks alone. If a link
// that must not be followed (StoreOptions::follow_links) leads to anything to be repaired, it repairs nothing and says
// so.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/error.h>
#include <tessera/key_value_store.h>
#include <tessera/parallel.h>
#include <tessera/shape.h>

namespace tessera {

enum class FindingKind : std::uint8_t {
    damage,     ///< cannot be decoded, or is not what it must be
    changed,    ///< a file that differs from its sealed state: damage, or somebody's edit. repair() leaves it, unless
                ///< RepairOptions::to_seal is set
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
    finish_removal,    ///< remove the rest of an array whose removal was interrupted
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

struct VerifyReport {
    std::vector<Finding> findings;  ///< sorted by kind, then by key
    std::int64_t arrays = 0;        ///< in an array file: its arrays
    std::int64_t groups = 0;        ///< with metadata
    std::int64_t chunks = 0;        ///< stored and in the grid, each decoded; of shards, the inner chunks
    std::int64_t missing = 0;       ///< not stored: they read as the fill
    std::int64_t absent = 0;        ///< of these, the ones that were stored once, or that have to be; all findings
                                    ///< `absent`, and those beyond the first 10,000 of each array
    std::uint64_t bytes = 0;        ///< of the chunks, as stored
    std::int64_t seals = 0;         ///< seals that were checked
    std::int64_t sealed = 0;        ///< files that match their seal

    [[nodiscard]] std::int64_t count(FindingKind kind) const;
    /// Whether there is no damage, everything matches its seal, and everything could be checked.
    [[nodiscard]] bool sound() const;
};

struct VerifyOptions {
    /// io.max_memory limits the decoded chunks of all threads. In addition, 16 bytes for each stored chunk are needed.
    /// What a seal lists lies in a temporary file.
    IoOptions io = {};
    bool seals = true;  ///< compare with existing seals
    /// Every chunk of every array has to be stored. Otherwise those have to be that were stored when the array was
    /// imported, copied or restored, unless Tessera erased them since.
    bool complete = false;
    /// Check the metadata of OME-Zarr in the groups at and below a path, and nothing else: no chunk is read.
    bool ome = false;
    /// The same for the metadata of GeoZarr (multiscales, proj, spatial) in arrays and groups.
    bool geo = false;
    /// If set, a chunk is not decoded if this returns true for its file, given by the path below the verified node.
    /// Called by several threads at once.
    std::function<bool(std::string_view path)> trust = nullptr;
};

/// Verifies the array or group at `place` with everything below it. Takes no lock and changes nothing: while others
/// write, it may see some chunks before a change and some after it. Throws not_found if nothing is there, and
/// cancelled.
[[nodiscard]] VerifyReport verify(const Place& place, const VerifyOptions& options = {});
/// The same for a path: a directory, a zip or a node in one, an array file, or "file.npz::member". Throws not_found,
/// and unsupported for a file of unknown format. With `options.ome`
/// or `geo`, throws not_found for anything but a group; with `geo` alone an array is one, too.
[[nodiscard]] VerifyReport verify(std::string_view path, const VerifyOptions& options = {});

/// Removes the records of stored chunks of the arrays above a key, before a program that leaves such records alone
/// erases the key: verify() must not miss what was erased on purpose.
void forget_stored_chunks(KeyValueStore& store, std::string_view key);
/// Before such a program replaces the value of a key: a shard may lose inner chunks on purpose.
void note_replaced_chunk(KeyValueStore& store, std::string_view key);

/// Files that repair has set aside.
struct SetAside {
    std::int64_t files = 0;
    std::uint64_t bytes = 0;
    SetAside& operator+=(const SetAside& more) {
        files += more.files;
        bytes += more.bytes;
        return *this;
    }
};
/// In one array or group, excluding the nodes below.
[[nodiscard]] SetAside set_aside_in(const PlaceView& place);
/// Deletes them, and returns their number and size.
SetAside drop_set_aside(const PlaceRef& place);

struct RepairOptions {
    IoOptions io = {};
    bool dry_run = false;  ///< only report the actions
    /// Take back a batch that was committed but is not in place yet, instead of finishing it: the array is as before
    /// the batch. A batch whose journal needs a newer version of Tessera is set aside. So is one that
    /// can neither be finished nor be taken back, because both new and old values are lost; then `mended()` is false.
    bool give_up_batches = false;
    /// Delete everything that this run and earlier ones set aside: these data are lost, and their space is freed.
    bool drop_damaged = false;
    /// For a seal with parity: also restore files that may have been edited since (FindingKind::changed, and `lost`).
    /// Where the seal was broken on purpose, only those that `to_seal_names` names.
    bool to_seal = false;
    /// Restrict `to_seal` to these files, by their keys below the repaired node; empty: all.
    std::vector<std::string> to_seal_names = {};
    /// Another copy of what is repaired, which was sealed alike: what parity cannot restore is taken from it, if it has
    /// the sum of the seal here. It is only read, and may itself be damaged elsewhere. Files that may have been edited
    /// are left, unless `to_seal` says otherwise. What cannot be taken is left as it is, and named.
    std::optional<Place> from = std::nullopt;
};

/// One finding, and the result of repairing it.
struct Repaired {
    Finding finding;
    bool done = false;  ///< with dry_run: whether it would be done
    std::string text;   ///< "removed"; or the reason why not
    /// Elements of a damaged chunk that read as the fill value now: nothing here could restore them.
    std::int64_t lost = 0;
};

struct RepairReport {
    std::vector<Repaired> actions;            ///< findings that have a remedy
    std::vector<Finding> remaining;           ///< findings without a remedy, possible edits among them; no notes
    std::int64_t done = 0;                    ///< number of actions that were done
    SetAside set_aside;                       ///< files in `.tessera/damaged` of the nodes afterwards
    SetAside dropped;                         ///< files deleted there, or with dry_run to be deleted
    [[nodiscard]] std::int64_t lost() const;  ///< elements that read as the fill value now
    /// Whether no damage and nothing unchecked remains, and no element was lost.
    [[nodiscard]] bool mended() const;
};

/// Verifies, then repairs array by array, each under its exclusive shape lock, so that it waits for writers and they
/// wait for it. Each finding is re-checked before it is acted on. A crash at any moment leaves each chunk where it was
/// or set aside, and the next run continues. Throws the errors of verify; io if a file cannot be moved; and
/// invalid_argument or unsupported for a store that is not writable.
///
/// A file that differs from its seal and has another time than when it was sealed may be somebody's edit. It is left as
/// it is and listed in RepairReport::remaining, unless RepairOptions::to_seal is set: that restores it, if the seal has
/// parity. A file counts as damaged, and is restored from parity without that, if it still has the time of its seal or
/// cannot be decoded.
RepairReport repair(const Place& place, const RepairOptions& options = {});

}  // namespace tessera
