// What stands along the dimensions of an array: the coordinates of its group, and the pixel sizes of OME-Zarr.
#pragma once

#include <tessera/array_io.h>
#include <tessera/value.h>

#include "served.h"

namespace tessera::serve {

/// For each dimension of `source`, the elements of `node` or a field of them, an object or null:
///
///     label, units   of the coordinate
///     values         as numbers, of times as seconds, null where one is none; or null, if they are no numbers
///     texts          as text, of times and names; or null
///     every          how many elements apart the listed ones are: there are at most 4096
///     up             whether the picture shows the last element at the top or on the right: true for what rises to the
///                    north or upwards; false for what falls to the east; else null
///     step           the distance of two neighbours, if it is the same everywhere; else null
///
/// A coordinate that cannot be read is as good as none.
[[nodiscard]] Value dimension_facts(Served& served, const ServedNode& node, const ArraySource& source);

}  // namespace tessera::serve
