// Changing an array's shape: resize and append. Private to the store module.
#pragma once

#include "array_state.h"

namespace tessera {

/// Grows or shrinks, or both along different dimensions. Shrinking writes the metadata first and then deletes chunks;
/// growing first prepares the chunks and writes the metadata last. A crash leaves the old shape or the new one, and
/// elements that were outside always show the fill.
void resize_array(ArrayState& array, const Shape& shape, const IoOptions& io);

/// Writes `given` after the present end along `axis`, then the metadata. Returns the old length of `axis`.
std::int64_t append_array(ArrayState& array, const ArraySource& given, int axis, const IoOptions& io);

}  // namespace tessera
