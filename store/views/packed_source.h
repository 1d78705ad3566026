// Structures without the padding between their fields, as Zarr has them.
#pragma once

#include <memory>

#include <tessera/array_io.h>

namespace tessera {

/// A source of the same elements without padding and titles, at every depth; null if there are none. `source` must
/// outlive it.
[[nodiscard]] std::unique_ptr<ArraySource> packed_source(const ArraySource& source);

}  // namespace tessera
