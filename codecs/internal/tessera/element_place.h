// Where single elements of a chunk lie, and where they go.
#pragma once

#include <cstddef>

namespace tessera {

/// One element: where it begins in the bytes of a decoded chunk, and where it goes.
struct ElementPlace {
    std::size_t from;
    std::byte* to;
};

}  // namespace tessera
