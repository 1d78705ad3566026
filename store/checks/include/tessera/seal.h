// Seals: a manifest of SHA-256 sums, with which anybody can tell later whether a file was changed, lost or added.
//
// The manifest is `.tessera/sha256sums.txt` at the root of what is sealed, in sha256sum's own format, so that
// `cd ROOT && sha256sum -c .tessera/sha256sums.txt` checks it without Tessera. It lies in `.tessera/` because nothing
// else looks there: Zarr readers, consolidation, copies and the sealing of a group above all pass it by.
//
// It lists every file below the root, sorted by path, but what Tessera keeps for itself (names that begin with
// ".tessera"), empty lock files of other programs, and chunks outside of their arrays, which nobody reads and `repair`
// sets aside.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>
#include <tessera/parallel.h>
#include <tessera/parity.h>
#include <tessera/place.h>

namespace tessera {

/// Of the manifest, relative to what is sealed.
inline constexpr std::string_view seal_key = ".tessera/sha256sums.txt";

/// What became of the files since they were sealed. Paths are relative to what is sealed, sorted.
struct SealState {
    bool present = false;
    std::int64_t unchanged = 0;
    std::vector<std::string> changed;  ///< other content, or cannot be read
    std::vector<std::string> missing;
    std::vector<std::string> added;
    [[nodiscard]] bool intact() const { return present && changed.empty() && missing.empty() && added.empty(); }
};
/// With parity, what its roots name counts, and not a manifest that is another one. Throws corrupt for a manifest that
/// is none.
[[nodiscard]] SealState seal_state(const KeyValueStore& store, std::string_view prefix, const IoOptions& io = {});

struct Sealed {
    std::int64_t files = 0;
    std::uint64_t bytes = 0;
    bool written = false;            ///< false: it was sealed already, and nothing has changed
    std::uint64_t parity_bytes = 0;  ///< that were written
};
struct SealOptions {
    /// Seals anew what was changed, lost or added since it was sealed; but not damage, which parity knows.
    bool overwrite = false;
    /// Files, below what is sealed, that are sealed as they are now, whatever became of them.
    std::vector<std::string> accept = {};
    /// Whether everything is read, also what has the size and the time of the seal, and all parity.
    bool check = false;
    /// Of a directory. Without, parity that is there is made anew as it was asked for then.
    std::optional<Redundancy> parity = std::nullopt;
    bool drop_parity = false;  ///< the parity that is there goes
    IoOptions io = {};
};
/// Writes the manifest of what lies at `prefix` and below, in parallel, and in one step. Finishes batches of edits that
/// are recorded, and holds the shape locks of all arrays and groups meanwhile: it waits for writers, and they for it.
/// Throws already_exists, naming some, when files have changed since they
/// were sealed, unless `overwrite`; not_found when nothing is there; corrupt for a manifest that is none, unless
/// `overwrite`.
Sealed seal(KeyValueStore& store, std::string_view prefix, bool overwrite = false, const IoOptions& io = {});
/// The same with parity (tools/docs/parity.md). What is sealed, unchanged and has whole parity of the same redundancy
/// is left as it is. Where there is parity, files with the size and time of the seal are not read, and parity of which
/// all files are unchanged stays: sealing again costs what changed. Files that were written after the seal was broken
/// (StoreOptions::break_seal) need no permission. A kill at any moment leaves the old seal or the new one. Throws also
/// already_exists, or corrupt where it turns out late, for files that are damaged and not in `accept`; invalid_argument
/// for a redundancy that would take more than 255 blocks in a group, for a name in `accept` that is none, and for a
/// file that a program writes to meanwhile; io if the disk has less space than the parity takes.
Sealed seal(KeyValueStore& store, std::string_view prefix, const SealOptions& options);

/// The sealed files with the size and time of the seal, as the parity at `prefix` says; empty without parity. Reads no
/// data.
[[nodiscard]] std::vector<std::string> unchanged_since_seal(const KeyValueStore& store, std::string_view prefix);

/// The place of a seal that lies beside what it is of, for seal(), seal_state(), parity_promise(), verify() and
/// repair(): of a zip or an array file, also one that is gone, in `NAME.tessera-seal/`; of a bag (make_bag()) in its
/// tag directory `tessera-seal/`. Keys are names beside the file, or below the bag. nullopt if there is no such seal;
/// with `make`, if `path` is no file either.
[[nodiscard]] std::optional<Place> place_beside(const std::filesystem::path& path, const StoreOptions& options = {},
                                                bool make = false);

/// Makes a BagIt 1.0 bag (RFC 8493) of what lies at `prefix`, in the new directory `bag`: a copy of the files as
/// data/NAME/..., manifest-sha256.txt, tagmanifest-sha256.txt and bag-info.txt with Payload-Oxum and Bagging-Date. It
/// is built beside `bag`, and appears when it is complete; another run that makes the same bag is waited for. Holds
/// locks as seal() does, but of a store that is opened for reading only. `options` say how the bag is written. With
/// `parity`, its tag directory `tessera-seal/` has parity of everything in it but tagmanifest-sha256.txt. Throws
/// already_exists when something is there.
Sealed make_bag(KeyValueStore& store, std::string_view prefix, std::string_view name, const std::filesystem::path& bag,
                const IoOptions& io = {}, const StoreOptions& options = {},
                const std::optional<Redundancy>& parity = std::nullopt);

}  // namespace tessera
