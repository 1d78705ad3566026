// Downsampling by whole factors, as an array.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <tessera/array_io.h>
#include <tessera/shape.h>

namespace tessera {

enum class Coarsening : std::uint8_t { mean, max, min, mode, nearest };

/// Throws invalid_argument for any other word.
[[nodiscard]] Coarsening parse_coarsening(std::string_view word);
[[nodiscard]] std::string_view coarsening_name(Coarsening with);

/// One element for each block of `by` elements; blocks at the end may be smaller. The dtype is the source's: means of
/// integers are rounded half to even, whatever their size; float means are summed as doubles and rounded once. NaN and
/// NaT make the mean, max and min of their block NaN or NaT. `mode` is the most frequent element; in a tie, the
/// smallest. `nearest` is the first element of each block, for any dtype: array[::4, ::4]. A georeference among the
/// attributes (GeoZarr) becomes that of the blocks. Throws invalid_argument for factors below 1 or a wrong number of
/// factors, and unsupported if the dtype does not allow this kind of coarsening.
[[nodiscard]] std::unique_ptr<ArraySource> coarsen_source(std::unique_ptr<ArraySource> array, const Shape& by,
                                                          Coarsening with);

/// The factors for an array: "4" for each dimension, "4,2", or "lat=4, lon=2" with 1 for dimensions that are not named.
/// Throws invalid_argument for other text, factors below 1 and names that the array does not have.
[[nodiscard]] Shape parse_factors(std::string_view text, const ArraySource& array);

/// The shape of a coarsened array.
[[nodiscard]] Shape coarsened(const Shape& shape, const Shape& by);

}  // namespace tessera
