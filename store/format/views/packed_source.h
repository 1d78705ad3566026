// Structures without the padding between their fields, as Zarr has them.
#pragma once

#include <memory>

#include <tessera/array_io.h>

namespace tessera {

/// A source of the same elements without padding and titles, at every depth, and if `raw_bfloat16` with two bytes in
/// place of each bfloat16; null if there are none of these. `source` must outlive it.
[[nodiscard]] std::unique_ptr<ArraySource> packed_source(const ArraySource& source, bool raw_bfloat16);

}  // namespace tessera
