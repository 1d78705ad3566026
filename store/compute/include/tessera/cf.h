// The CF conventions: packed numbers and counted times as what they stand for, and back.
#pragma once

#include <memory>
#include <string>

#include <tessera/array_io.h>

namespace tessera {

/// The attribute of a decoded array that keeps how it was encoded: an object with "dtype" and the attributes that the
/// conventions define.
inline constexpr const char* cf_encoding_attribute = "cf_encoding";

/// The array as its attributes say, computed as it is read: `scale_factor` and `add_offset` are applied, `_FillValue`
/// and `missing_value` (in Zarr v2 the fill, too) become NaN or NaT, and numbers with units such as
/// "days since 2000-01-01" become datetime64, in the coarsest unit that holds them (microseconds for floats). As in
/// xarray, packed integers of 8 and 16 bits become float32 if they have no offset or a missing value, all other ones
/// float64. Attributes that are applied move to cf_encoding_attribute; names of dimensions are in `_ARRAY_DIMENSIONS`.
///
/// An array to which none of this applies is returned as it is. So is one of times of a calendar that datetime64 does
/// not have; `why` then becomes a sentence about it. Reading throws invalid_argument for a time that datetime64 does
/// not hold, or before 1582-10-15 in the calendar "standard".
[[nodiscard]] std::unique_ptr<ArraySource> decode_cf(std::unique_ptr<ArraySource> array, std::string* why = nullptr);

/// The reverse, by cf_encoding_attribute. Without it, datetime64 becomes int64 with units of its own unit since 1970,
/// and any other array is returned as it is. Reading throws invalid_argument for a value that the encoding does not
/// hold: NaN without a `_FillValue`, a number beyond the dtype, a time between two counts.
[[nodiscard]] std::unique_ptr<ArraySource> encode_cf(std::unique_ptr<ArraySource> array);

}  // namespace tessera
