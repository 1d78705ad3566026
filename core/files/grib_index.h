// The fields of a GRIB file as variables along axes, grouped into data sets as cfgrib does. Private to core/files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <tessera/byte_io.h>
#include <tessera/error.h>
#include <tessera/memory_account.h>
#include <tessera/ndarray.h>
#include <tessera/shape.h>
#include <tessera/value.h>

#include "grib_format.h"

namespace tessera {

/// What fields stand along, in the order of dimensions.
enum class GribAxis : std::uint8_t { number, time, step, level, direction, frequency };
inline constexpr std::size_t grib_axes = 6;
/// Counts; hours for step.
using GribPlaces = std::array<std::vector<double>, grib_axes>;

struct GribGrid {
    std::string key;                ///< differs between grids
    std::vector<std::string> dims;  ///< names
    std::int64_t rows = 0, columns = 0;
    bool by_columns = false, zigzag = false;  ///< how a message has the points
    bool positions = false;                   ///< whether they are known

    /// latitude(latitude) and longitude(longitude), not one of each for each point.
    [[nodiscard]] bool is_regular() const { return dims.front() == "latitude"; }
    [[nodiscard]] Shape shape() const;
};

struct GribVariable {
    std::string name;
    std::string level_name;  ///< of GribAxis::level
    Value attributes;
    bool wide = false;  ///< float64, because float32 does not hold what is packed
    GribPlaces axes;    ///< values in order; empty where fields do not say them; a single one is no dimension
    GribGrid grid;
    std::unordered_map<std::int64_t, std::size_t> fields;  ///< by the index along the axes in C order
    std::size_t first = 0;                                 ///< one of them
    std::optional<Error> error;                            ///< why it cannot be read

    [[nodiscard]] std::string axis_name(std::size_t axis) const;
    [[nodiscard]] Shape shape() const;
    [[nodiscard]] std::vector<std::string> dims() const;
};

/// Variables whose coordinates of one name are the same.
struct GribGroup {
    std::string name;  ///< "": the file
    Value attributes;
    std::vector<GribVariable> variables;
};

struct GribIndex {
    std::vector<GribField> fields;
    std::vector<GribGroup> groups;
    MemoryHold held = MemoryHold();
};

/// Asks helpers what the messages say. Throws corrupt for a message that cannot be read, naming it.
[[nodiscard]] GribIndex read_grib_index(const ByteSource& file);
/// latitude or longitude of a variable's grid, as the grid's shape or along its one dimension.
[[nodiscard]] NDArray grib_positions(const ByteSource& file, const GribIndex& index, const GribVariable& variable,
                                     bool latitude);
/// All values of a field, with NaN where they are missing, in the grid's shape.
[[nodiscard]] NDArray grib_values(const ByteSource& file, const GribField& field, const GribVariable& variable);

}  // namespace tessera
