// Bounds of cells along a dimension, as CF's attribute `bounds` names them, when several cells become one.
#pragma once

#include <cstdint>
#include <memory>

#include <tessera/array_io.h>

namespace tessera {

/// From the shape (n, 2): of each `by` cells the outer ends, elements as they are. null if the cells that become one do
/// not touch, or for another shape or elements that are no real numbers.
[[nodiscard]] std::unique_ptr<ArraySource> coarse_bounds(const ArraySource& bounds, std::int64_t by);

/// The middles of such cells as the values of their coordinate: in its dtype if that is one of floats, else float64.
/// Throws unsupported where coarse_bounds() gives null.
[[nodiscard]] std::unique_ptr<ArraySource> middles_of(const ArraySource& bounds, std::int64_t by,
                                                      const ArraySource& coordinate);

}  // namespace tessera
