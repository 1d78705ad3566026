// How much each element of an array counts in a mean, as sources for ReduceOptions::weights.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <tessera/array_io.h>

namespace tessera {

/// Whether a text names weights, and no path: letters, digits and underscores.
[[nodiscard]] bool is_weights_name(std::string_view text);

/// By a name. "area": the areas of the array's cells on a sphere, whose corners are joined by great circles, from the
/// bounds of its latitudes and longitudes; see GridAxis. Otherwise the cosine of the coordinate of that name, which
/// holds degrees. Throws invalid_argument if the array has no such dimension or coordinate.
[[nodiscard]] std::shared_ptr<const ArraySource> weights_named(const ArraySource& array, const std::string& name);

/// An array of numbers that has some of the array's dimensions: those of its names, or without names as many of the
/// last ones as it has. Throws invalid_argument if lengths differ, or the coordinates of both along a dimension.
[[nodiscard]] std::shared_ptr<const ArraySource> weights_from(const ArraySource& array,
                                                              std::unique_ptr<ArraySource> weights);

}  // namespace tessera
