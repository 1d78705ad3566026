// A selection in parts that fit in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <tessera/array_io.h>
#include <tessera/ndarray.h>
#include <tessera/selection.h>

namespace tessera::cli {

/// The part of a selection that `box` names: a region of selection.full_shape().
[[nodiscard]] Selection part_of(const Selection& selection, const Region& box);

/// Calls `each` with boxes of selection.full_shape() that together cover it, in C order, each run of elements
/// contiguous in that order, and none over `max_bytes` unless it is a single element. Boxes end at borders of chunks
/// where they can. A box of elements of variable length for which `each` throws Error(budget) is given again, in two.
void for_each_box(const Selection& selection, const ArrayInfo& info, std::int64_t max_bytes,
                  const std::function<void(const Region& box)>& each);

/// A box without the dimensions that the selection drops: a region of selection.shape().
[[nodiscard]] Region without_dropped(const Region& box, const Selection& selection);

/// What a selection picks, read by the means that is best for the source.
[[nodiscard]] NDArray read_part(const ArraySource& source, const Selection& selection, const IoOptions& io);

}  // namespace tessera::cli
