// Single elements at indices listed in a file.
#pragma once

#include <memory>

#include <tessera/array_io.h>

namespace tessera {

/// The elements of `array` at `places`, as a 1-d array in the same order. `places` has integers and shape (n, rank),
/// one row of indices for each element; for a 1-d array, also (n,). Negative indices count from the end. Throws
/// invalid_argument for anything else, and out_of_bounds on reading an index outside the array.
[[nodiscard]] std::unique_ptr<ArraySource> elements_at(std::unique_ptr<ArraySource> array,
                                                       std::unique_ptr<ArraySource> places);

}  // namespace tessera
