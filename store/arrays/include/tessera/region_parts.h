// Regions to read or write, each with its elements.
#pragma once

#include <tessera/shape.h>
#include <tessera/view.h>

namespace tessera {

/// One of many regions to read, and the memory that receives it. `out` has the region's shape and the array's dtype, in
/// any byte order.
struct RegionRead {
    Region region;
    MutableArrayView out;
};
/// One of many regions to write. `in` as RegionRead::out.
struct RegionWrite {
    Region region;
    ArrayView in;
};

}  // namespace tessera
