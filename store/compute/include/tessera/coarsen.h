// Downsampling by whole factors, as an array, and what OME-NGFF says of a pyramid of such arrays.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/value.h>

namespace tessera {

enum class Coarsening : std::uint8_t { mean, max, min, mode, nearest };

/// Throws invalid_argument for a word that is none of these.
[[nodiscard]] Coarsening parse_coarsening(std::string_view word);
[[nodiscard]] std::string_view coarsening_name(Coarsening with);

/// One element for each block of `by` elements; blocks at the end hold what is left. The dtype is the source's: means
/// of integers are rounded half to even, whatever their size; float means are summed as doubles and rounded once. NaN
/// and NaT make the mean, max and min of their block NaN or NaT. `mode` is the most frequent element, the least of
/// those that are equally frequent. `nearest` is the first element of each block, of any dtype: array[::4, ::4].
/// Throws invalid_argument for factors below 1, or not one for each dimension, and unsupported for a dtype that cannot
/// be coarsened so.
[[nodiscard]] std::unique_ptr<ArraySource> coarsen_source(std::unique_ptr<ArraySource> array, const Shape& by,
                                                          Coarsening with);

/// The shape of an array that is coarsened.
[[nodiscard]] Shape coarsened(const Shape& shape, const Shape& by);

/// A pyramid, for multiscales_attributes().
struct Pyramid {
    std::string name;
    std::vector<std::string> axes;                  ///< "z", "y", "x": one of each dimension; t and c, too
    std::vector<std::optional<std::string>> units;  ///< "micrometer"; empty, or one for each axis
    std::vector<double> scale;                      ///< the distance between neighbours in the first level
    std::vector<Shape> factors;                     ///< of each level, of the first one: (1, 1), (2, 2), (4, 4)
    Coarsening with = Coarsening::mean;
};

/// The attributes of the group that holds the levels as arrays 0, 1, 2 …: OME-NGFF multiscales, 0.5 ("ome") where
/// `v3`, else 0.4. The centre of a mean's block, or the place of the first element for `nearest`, is where an element
/// of a level lies: that is its translation. Throws invalid_argument for axes that OME-NGFF does not take: 2 to 5, of
/// which the last 2 or 3 are space (z, y, x), before them at most t and then c.
[[nodiscard]] Value multiscales_attributes(const Pyramid& pyramid, bool v3);

}  // namespace tessera
