// Many regions at once: each chunk that they touch is processed once. Private to the store module.
#pragma once

#include <tessera/array.h>
#include <span>
#include "array_state.h"

namespace tessera {

// See Array::read_many.
void read_many(const ArrayState& array, const LoadedArray& loaded, std::span<const RegionRead> parts,
               const IoOptions& io);
void write_many(const ArrayState& array, const LoadedArray& loaded, std::span<const RegionWrite> parts,
                const IoOptions& io);

}  // namespace tessera
