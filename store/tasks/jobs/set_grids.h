// The grids of latitudes and longitudes that the arrays of a data set lie on.
#pragma once

#include <map>
#include <set>
#include <string>

#include <tessera/data_set.h>

namespace tessera {

/// Which arrays have latitudes along one dimension and longitudes along another.
struct SetGrids {
    std::set<std::string> arrays = {};  ///< data alone
    /// Coordinates of these dimensions, each with an array that lies along it.
    std::map<std::string, std::string> coordinates = {};
};

/// Of some arrays of a set. Throws as latitudes_of().
[[nodiscard]] SetGrids grids_of(const DataSet& set, const std::set<std::string>& names);

/// The array at `path`; or of a data set there one that lies on its only grid. Throws invalid_argument for a set
/// without one, or with several.
[[nodiscard]] std::string grid_at(const std::string& path);

}  // namespace tessera
