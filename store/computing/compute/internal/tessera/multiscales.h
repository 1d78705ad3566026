// The attributes of a pyramid of coarsened arrays, by OME-NGFF and by GeoZarr.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/conventions.h>
#include <tessera/dialect.h>
#include <tessera/dimensions.h>
#include <tessera/geo_reference.h>
#include <tessera/reduce.h>
#include <tessera/value.h>

namespace tessera {

/// The numbers of the dimensions along which y and x run: those that the georeference names, or the last two. -1 if
/// there are fewer.
[[nodiscard]] std::pair<int, int> geo_dimensions(const GeoReference& reference, const DimensionNames& names, int rank);

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
