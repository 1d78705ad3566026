// Writing the parity of a seal. Private to the store module.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>
#include <tessera/seal.h>

#include "parity_archive.h"
#include "seal_changes.h"
#include "sums.h"

namespace tessera {

/// The part of the existing parity that stays valid.
struct OldParity {
    const ParityArchive* archive = nullptr;  ///< null: nothing
    const FileList* sums = nullptr;          ///< that were sealed
    const SealedParts* parts = nullptr;      ///< of the archive
    /// Of each file: whether it is as sealed, as far as that is known without reading it. Empty: none is.
    std::vector<bool> intact = {};
    bool check = false;  ///< whether all parity blocks are compared with their CRC
};

/// Whether all of the parity is there: the roots, the manifest, and all parity files, by their sizes or, with `check`,
/// byte by byte.
[[nodiscard]] bool is_whole(const ParityArchive& archive, bool check, const IoOptions& io);

/// Seals `files`, which are sorted by path, with parity: segments, roots and manifest, in the order that leaves the old
/// seal or the new one after a kill at any moment. Segments of the old parity stay if all their files are intact. When
/// anything new is sealed, the smallest of these goes, too, so that a long history of small seals does not become one
/// of small segments. Returns the bytes of the parity files that were written. Throws corrupt, naming them, for intact
/// files that were read and have another sum than was sealed; the old seal then stays. Throws io if the disk has less
/// space than the parity takes.
std::uint64_t seal_with_parity(const PlaceRef& place, const FileList& files, const Redundancy& redundancy,
                               const OldParity& old, const IoOptions& io);

/// Removes the parity of a seal, the roots first.
void drop_parity(const PlaceRef& place);

}  // namespace tessera
