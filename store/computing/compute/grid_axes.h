// Where the cells of an array lie on the earth, by the coordinates of its dimensions. Private to the store module.
#pragma once

#include <cstdint>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/value.h>

namespace tessera {

inline constexpr double degree = std::numbers::pi / 180;  ///< in radians

/// The latitudes or the longitudes along a dimension, in degrees. Longitudes go on from each to the next, beyond 360 or
/// below 0: 350, 365.
struct GridAxis {
    int dimension = 0;
    std::string name = {};  ///< of the coordinate's array, for messages
    std::vector<double> centres = {};
    std::vector<std::pair<double, double>> bounds = {};  ///< of each cell
    Value attributes = Value::object();                  ///< of the coordinate
};

/// Bounds half-way between neighbours. The ends lie as far beyond the outermost centres as their inner bounds, but
/// within the poles; as in CDO a pole is the end where that is beyond 88 degrees. Throws invalid_argument for values
/// that neither rise nor fall.
void set_midpoints(GridAxis& axis, bool latitudes);

/// The dimension whose coordinate holds latitudes (or longitudes): by its units or standard_name, or without units by
/// the name of the dimension: lat, latitude. Bounds are those that the coordinate names, or set_midpoints(). nullopt
/// if there is none. Throws invalid_argument for a coordinate with missing values or latitudes beyond the poles.
[[nodiscard]] std::optional<GridAxis> latitudes_of(const ArraySource& array);
[[nodiscard]] std::optional<GridAxis> longitudes_of(const ArraySource& array);

}  // namespace tessera
