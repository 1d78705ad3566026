// Writing the parity of a seal. Private to the store module.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>
#include <tessera/parity.h>

#include "sums.h"

namespace tessera {

/// Seals `files` with parity: segments, roots and manifest, in the order that leaves the old seal or the new one after
/// a kill at any moment. Returns the bytes of the parity files.
std::uint64_t seal_with_parity(KeyValueStore& store, std::string_view prefix, const std::vector<SummedFile>& files,
                               const Redundancy& redundancy, const IoOptions& io);

/// Removes the parity of a seal, the roots first.
void drop_parity(KeyValueStore& store, std::string_view prefix);

}  // namespace tessera
