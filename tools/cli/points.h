// Single elements at places that a file lists.
#pragma once

#include <memory>

#include <tessera/array_io.h>

namespace tessera::cli {

/// The elements of `array` at `places`, as an array of one dimension in their order. `places` are integers of shape
/// (n, rank), a row of indices for each, negative ones counted from the end; of an array of one dimension (n,) too.
/// Throws invalid_argument for others; out_of_bounds when an element that is none is read.
[[nodiscard]] std::unique_ptr<ArraySource> elements_at(std::unique_ptr<ArraySource> array,
                                                       std::unique_ptr<ArraySource> places);

}  // namespace tessera::cli
