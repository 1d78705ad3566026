// Selections with steps, for what takes only regions.
#pragma once

#include <tessera/selection.h>
#include <tessera/view.h>

#include <functional>

namespace tessera {

/// Calls write(region, elements) for boxes that make up the selection: for each index of an axis with a step, its own.
/// `in` has the selection's shape, and outlives the calls. Throws what `write` throws.
void for_each_box(const Selection& selection, const ArrayView& in,
                  const std::function<void(const Region& region, const ArrayView& elements)>& write);

}  // namespace tessera
