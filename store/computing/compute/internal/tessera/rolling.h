// Means and other reductions of windows that move along a dimension, as xarray's rolling().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <tessera/array_io.h>
#include <tessera/reduce.h>

namespace tessera {

struct RollingOptions {
    Reduction with = Reduction::mean;
    double percent = 50;
    int axis = 0;
    std::int64_t length = 1;  ///< of a window, in elements
    /// A window with fewer elements than these, which are neither missing nor outside of the array, is missing;
    /// nullopt: as many as its length.
    std::optional<std::int64_t> least = std::nullopt;
    bool centred = false;                          ///< each window lies around its element, not before it
    std::int64_t memory = std::int64_t{64} << 20;  ///< for one call of read_into, beside its result
};

/// For each element the reduction of the window that ends with it. The shape is the array's, and elements are floats:
/// float64 of integers. Not for argmin, argmax, any and all. Throws invalid_argument for a window below 1 or longer
/// than the dimension, or with fewer elements than the least number; unsupported for other reductions and for elements
/// that are no real numbers.
[[nodiscard]] std::unique_ptr<ArraySource> rolling_source(std::unique_ptr<ArraySource> array,
                                                          const RollingOptions& options);

}  // namespace tessera
