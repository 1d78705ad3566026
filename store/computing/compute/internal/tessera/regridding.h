// The ways to interpolate from one grid to another.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

enum class Regridding : std::uint8_t {
    bilinear,      ///< between the four neighbours: CDO's remapbil
    nearest,       ///< the element whose centre is nearest on the sphere: remapnn
    conservative,  ///< the mean of cells, weighted by the areas that they have in common: remapcon
};
/// By the names of the enumerators. Throws invalid_argument for another word.
[[nodiscard]] Regridding parse_regridding(std::string_view word);

}  // namespace tessera
