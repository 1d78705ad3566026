// The elements at many indices. Private to the store module.
#pragma once

#include <cstdint>
#include <span>
#include "array_state.h"

namespace tessera {

/// See Array::read_points.
void read_points(const ArrayState& array, const LoadedArray& loaded, std::span<const std::int64_t> indices,
                 const MutableArrayView& out, const IoOptions& io);

}  // namespace tessera
