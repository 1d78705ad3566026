// Interpolation from one grid of latitudes and longitudes to another.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/regridding.h>
#include <tessera/value.h>

namespace tessera {

/// Latitudes and longitudes of the result, which are those of `like`'s dimensions, or ranges with both ends and a step:
/// "lat=-90:90:1,lon=0:359:1". Exactly one of both is given.
struct RegridTarget {
    const ArraySource* like = nullptr;
    std::optional<std::string> ranges = std::nullopt;
};

struct Regridded {
    std::unique_ptr<ArraySource> source;
    /// The new coordinates by the names of the array's dimensions.
    std::vector<std::pair<std::string, std::shared_ptr<const ArraySource>>> coordinates;
};

/// The array on another grid: its dimensions, of which those of latitudes and longitudes are as long as the target's.
/// Both grids are regular: each has latitudes along one dimension and longitudes along another (GridAxis). Longitudes
/// that run once around the earth go on across their ends.
///
/// bilinear: a target whose four neighbours are not all there is missing; of a grid around the earth, targets beyond
/// its last latitudes have the mean of the four nearest elements by the inverse of their distance. nearest: keeps the
/// dtype. conservative: missing elements do not count; a target without others is missing. bilinear and conservative
/// give floats: float64 of integers.
///
/// Throws invalid_argument for an array, or a target, without these dimensions, as of a curvilinear grid; unsupported
/// for elements that are no real numbers. `memory` is for one call of read_into, beside its result.
[[nodiscard]] Regridded regridded(std::unique_ptr<ArraySource> array, const RegridTarget& target, Regridding how,
                                  std::int64_t memory = std::int64_t{64} << 20);

}  // namespace tessera
