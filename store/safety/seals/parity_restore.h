// Checks a sealed archive by its parity, and restores files from it. Private to the store module.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>
#include <tessera/parallel.h>
#include <tessera/seal.h>

#include "parity_archive.h"
#include "parity_decode.h"

namespace tessera {

/// A file that is not as it was sealed.
struct Differing {
    enum class Kind : std::uint8_t {
        missing,
        damaged,  ///< size and time are the sealed ones, or it cannot be read or decoded
        changed,  ///< perhaps somebody's edit
    };
    std::string path;
    Kind kind = Kind::changed;
    bool solvable = false;  ///< it can be computed
};

struct ParityState {
    std::vector<Differing> files;
    bool broken = false;      ///< the seal was broken on purpose: what differs may be meant, and none is damage
    bool times_prove = true;  ///< most intact files have the time that they had when they were sealed
    bool roots_good = true;   ///< all copies of the root and the manifest
    std::int64_t blocks = 0;
    std::int64_t bad_blocks = 0;     ///< parity blocks that are damaged or missing
    std::int64_t bad_files = 0;      ///< parity files of which anything is damaged or missing
    std::int64_t lost_segments = 0;  ///< of which no index is whole
    [[nodiscard]] bool whole() const { return roots_good && bad_files == 0 && lost_segments == 0; }
};
/// If the seal was broken, no file counts as damaged. `sealed` says which files differ; `undecodable` which of them
/// hold a chunk or document that cannot be decoded.
[[nodiscard]] ParityState parity_state(const ParityArchive& archive, const SealState& sealed,
                                       const PathSet& undecodable, const IoOptions& io);

/// The outcome for one file to restore, or for parity to renew.
struct Restored {
    std::string path;  ///< below what is sealed
    bool done = false;
    std::string text;
    std::string kept = {};  ///< the damaged file, below what is sealed, too; empty if there was none
    ValueStamp stamp = {};  ///< of the restored file
};
/// Computes the files of `wanted` and puts them in place, if their SHA-256 is the sealed one; the old ones are kept in
/// `.tessera/damaged`. Then makes parity files, roots and the manifest anew that are damaged, as far as all data of
/// their segment are as sealed. `differing` are all files that may not be as sealed. A kill at any moment leaves each
/// file old or restored. With `dry_run` nothing is written.
[[nodiscard]] std::vector<Restored> restore_from_parity(const PlaceRef& place, const PathSet& differing,
                                                        const PathSet& wanted, bool dry_run, const IoOptions& io);

}  // namespace tessera
