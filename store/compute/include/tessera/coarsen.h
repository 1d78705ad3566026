// Downsampling by whole factors, as an array, and the OME-NGFF attributes of a pyramid of such arrays.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/dialect.h>
#include <tessera/dimensions.h>
#include <tessera/geo_reference.h>
#include <tessera/ome.h>
#include <tessera/value.h>

namespace tessera {

enum class Coarsening : std::uint8_t { mean, max, min, mode, nearest };

/// Throws invalid_argument for any other word.
[[nodiscard]] Coarsening parse_coarsening(std::string_view word);
[[nodiscard]] std::string_view coarsening_name(Coarsening with);

/// One element for each block of `by` elements; blocks at the end may be smaller. The dtype is the source's: means of
/// integers are rounded half to even, whatever their size; float means are summed as doubles and rounded once. NaN and
/// NaT make the mean, max and min of their block NaN or NaT. `mode` is the most frequent element; in a tie, the
/// smallest. `nearest` is the first element of each block, for any dtype: array[::4, ::4]. A georeference among the
/// attributes (tessera/geo_reference.h) becomes that of the blocks. Throws invalid_argument for
/// factors below 1 or a wrong number of factors, and unsupported if the dtype does not allow this kind of coarsening.
[[nodiscard]] std::unique_ptr<ArraySource> coarsen_source(std::unique_ptr<ArraySource> array, const Shape& by,
                                                          Coarsening with);

/// The factors for an array: "4" for each dimension, "4,2", or "lat=4, lon=2" with 1 for dimensions that are not named.
/// Throws invalid_argument for other text, factors below 1 and names that the array does not have.
[[nodiscard]] Shape parse_factors(std::string_view text, const ArraySource& array);

/// The numbers of the dimensions along which y and x run: those that the georeference names, or the last two. -1 if
/// there are fewer.
[[nodiscard]] std::pair<int, int> geo_dimensions(const GeoReference& reference, const DimensionNames& names, int rank);

/// The shape of a coarsened array.
[[nodiscard]] Shape coarsened(const Shape& shape, const Shape& by);

/// A pyramid, for multiscales_attributes().
struct Pyramid {
    std::string name;
    std::vector<std::string> axes;                  ///< "z", "y", "x": one for each dimension; also "t" and "c"
    std::vector<std::optional<std::string>> units;  ///< "micrometer"; empty, or one for each axis
    std::vector<double> scale;                      ///< the distance between neighbours in the first level
    std::vector<Shape> factors;  ///< one for each level, relative to the first: (1, 1), (2, 2), (4, 4)
    Coarsening with = Coarsening::mean;
};

/// The attributes of the group that holds the levels as arrays 0, 1, 2 …: OME-NGFF multiscales. An element of a level
/// is at the centre of its block, or for `nearest` at the first element of the block; translations follow from that.
/// Throws invalid_argument for axes that OME-NGFF does not allow. It allows 2 to 5 axes: the last 2 or 3 are space (z,
/// y, x); before them, only t and then c may stand.
[[nodiscard]] Value multiscales_attributes(const Pyramid& pyramid, OmeVersion version);

/// The same by GeoZarr's conventions "multiscales", "spatial" and "proj": attributes to set in that group. `reference`
/// is that of the first level, with transform and shape; `y` and `x` are the numbers of the dimensions.
[[nodiscard]] Value geo_attributes(const Pyramid& pyramid, const std::vector<Shape>& shapes,
                                   const GeoReference& reference, int y, int x);

/// Throws already_exists if a pyramid of so many levels, as a group of this dialect, cannot be made in a directory:
/// without `overwrite` if a group is there, with it if anything but the levels of such a group would be replaced.
void require_pyramid_place(const std::string& path, std::size_t levels, const Dialect& dialect, bool overwrite);

}  // namespace tessera
