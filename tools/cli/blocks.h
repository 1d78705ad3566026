// Dividing a selection into parts that fit in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <tessera/array_io.h>
#include <tessera/ndarray.h>
#include <tessera/selection.h>

namespace tessera::cli {

/// Calls `each` with boxes that cover selection.full_shape(), in C order. Each box is contiguous in that order, and has
/// at most `max_bytes` or one element. Boxes end at chunk boundaries where possible. If `each` throws Error(budget) for
/// a box of variable-length elements, it is called again with two halves.
void for_each_box(const Selection& selection, const ArrayInfo& info, std::int64_t max_bytes,
                  const std::function<void(const Region& box)>& each);

/// A box without the dimensions that the selection drops: a region of selection.shape().
[[nodiscard]] Region without_dropped(const Region& box, const Selection& selection);

}  // namespace tessera::cli
