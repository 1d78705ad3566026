// What stands along the axes of a picture, and which axis holds its colours: for pictures, and for the server's page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/coordinates.h>
#include <tessera/meaning.h>
#include <tessera/value.h>

namespace tessera {

/// What stands along a dimension: its coordinate, or the pixel sizes of OME-Zarr.
struct AxisFacts {
    std::string label, units;
    std::vector<double> values = {};      ///< of times seconds; NaN where one is none; empty if they are no numbers
    std::vector<std::string> texts = {};  ///< of times and names; else empty
    std::int64_t every = 1;               ///< how many elements apart the listed ones are: there are at most 4096
    /// Whether a picture shows the last element at the top or on the right: true for what rises to the north or
    /// upwards; false for what falls to the east.
    std::optional<bool> up = std::nullopt;
    std::optional<double> step = std::nullopt;  ///< the distance of two neighbours, if it is the same everywhere
    int rising = 0;                             ///< 1 where values rise throughout, -1 where they fall

    /// The coordinate at an index, which may lie between two. Beyond the ends, as the line goes on. With `rising`.
    [[nodiscard]] double value(double index) const;
    /// The reverse.
    [[nodiscard]] double index(double value) const;
    /// The coordinate of an element as text.
    [[nodiscard]] std::string text(std::int64_t index) const;
};

/// Longer coordinates are not read: a picture is to be there at once.
inline constexpr std::int64_t longest_coordinate = std::int64_t{1} << 22;

/// Of a coordinate that belongs to the dimension `name`. Throws what reading throws.
[[nodiscard]] AxisFacts axis_facts(const Coordinate& coordinate, const std::string& name);
/// Of dimension d, which is so long, of the array `path` in a group with these attributes of OME-Zarr 0.4 or 0.5.
[[nodiscard]] std::optional<AxisFacts> pixel_facts(const Value& group_attributes, std::string_view path, int d,
                                                   std::int64_t length);
/// Of dimension d, by the coordinate beside the array. One that cannot be read is as good as none.
[[nodiscard]] std::optional<AxisFacts> find_axis_facts(const ArraySource& source, int d);

/// The dimension that holds red, green and blue, and perhaps opacity.
struct ColourAxis {
    int dimension = 0;
    std::int64_t count = 3;  ///< or 4
    double full = 255;       ///< the number of full intensity
};
/// The first or last dimension of 3 or 4 elements, of bytes or of a dimension whose name says so. nullopt: none.
[[nodiscard]] std::optional<ColourAxis> find_colour_axis(const ArraySource& source, const Meaning& meaning);

}  // namespace tessera
