// The header of netCDF-3: classic (CDF-1), 64-bit offset (CDF-2) and 64-bit data (CDF-5). Private to core/files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/byte_io.h>
#include <tessera/dtype.h>
#include <tessera/error.h>
#include <tessera/memory_account.h>
#include <tessera/value.h>

#include "plain_array.h"

namespace tessera {

inline constexpr std::string_view netcdf_dimensions = "_ARRAY_DIMENSIONS";
inline constexpr std::string_view netcdf_fill = "_FillValue";

/// The dtype of a netCDF type number, big-endian as in the file; nullopt for a number that is none.
[[nodiscard]] std::optional<DType> netcdf_dtype(std::uint32_t type);
/// The reverse; nullopt if netCDF-3 has no such type. A Boolean is a byte; S n is n characters.
[[nodiscard]] std::optional<std::uint32_t> netcdf_type(const DType& dtype);
/// The error for an array whose elements a format ("netCDF-3", "HDF5") has no type for.
[[nodiscard]] Error no_netcdf_type(std::string_view array, std::string_view format, const DType& dtype);
/// Takes the unlimited_attribute out of the attributes of a new array: its names.
[[nodiscard]] std::vector<std::string> take_unlimited(Value& attributes);
/// Whether readers expect this attribute in the type of its variable.
[[nodiscard]] bool has_variables_type(std::string_view name);
/// Whether only CDF-5 has the type.
[[nodiscard]] bool is_cdf5_type(std::uint32_t type);

struct NetcdfDimension {
    std::string name;
    std::uint64_t length = 0;  ///< of the record dimension: the number of records
};

struct NetcdfVariable {
    std::string name;
    std::vector<std::uint64_t> dimensions;  ///< indices
    Value attributes = Value::object();     ///< with _ARRAY_DIMENSIONS
    PlainLayout layout;
    std::optional<Error> error;  ///< why it cannot be read
};

struct NetcdfHeader {
    int version = 1;  ///< 1, 2 or 5
    std::uint64_t records = 0;
    std::optional<std::uint64_t> record_dimension;
    std::vector<NetcdfDimension> dimensions;
    Value attributes = Value::object();
    std::vector<NetcdfVariable> variables;
    MemoryHold held;  ///< memory of all of this
};

/// Throws corrupt or unsupported, naming the file. What concerns one variable is in its `error`.
[[nodiscard]] NetcdfHeader read_netcdf_header(const ByteSource& file);

}  // namespace tessera
