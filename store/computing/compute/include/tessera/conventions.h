// What attributes say by the conventions of CF and of OME-Zarr (OME-NGFF).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tessera/value.h>

namespace tessera {

class ArraySource;

// The CF conventions: packed numbers and counted times as what they stand for, and back.

/// The attribute of a decoded array that keeps how it was encoded: an object with "dtype" and the attributes that the
/// conventions define.
inline constexpr const char* cf_encoding_attribute = "cf_encoding";

/// The array as its attributes say, computed as it is read: `scale_factor` and `add_offset` are applied, `_FillValue`
/// and `missing_value` (in Zarr v2 the fill, too, where xarray takes it so) become NaN or NaT, and numbers with units
/// such as "days since 2000-01-01" become datetime64, in the coarsest unit that holds them (microseconds for floats).
/// What is packed becomes float64; integers of 8 and 16 bits that only have a marker become float32, those of 32 bits
/// float64. Attributes that described codes are gone, and `_FillValue` is what missing elements read as.
///
/// An array to which none of this applies is returned as it is. Integers of 64 bits that only have a marker stay
/// integers (ArrayInfo::marks_missing), and times of a calendar that datetime64 does not have stay counts. Reading
/// throws invalid_argument for a time that datetime64 does not hold, or before 1582-10-15 in the calendar "standard".
[[nodiscard]] std::unique_ptr<ArraySource> decoded(std::unique_ptr<ArraySource> array);

/// The same for a copy that is encoded again: attributes that are applied move to cf_encoding_attribute; names of
/// dimensions are in `_ARRAY_DIMENSIONS`. Marked integers of 64 bits are returned as they are. So are times of a
/// calendar that datetime64 does not have; `why` then becomes a sentence about it. Reading throws invalid_argument for
/// a time that datetime64 does not hold, or before 1582-10-15 in the calendar "standard".
[[nodiscard]] std::unique_ptr<ArraySource> decode_cf(std::unique_ptr<ArraySource> array, std::string* why = nullptr);

/// The reverse, by cf_encoding_attribute. Without it, datetime64 becomes int64 with units of its own unit since 1970,
/// and any other array is returned as it is. Reading throws invalid_argument for a value that the encoding does not
/// hold: NaN without a `_FillValue`, a number beyond the dtype, a time between two counts.
[[nodiscard]] std::unique_ptr<ArraySource> encode_cf(std::unique_ptr<ArraySource> array);

// Versions of OME-Zarr's metadata (OME-NGFF).

enum class OmeVersion : std::uint8_t {
    v0_4,  ///< in Zarr v2
    v0_5,  ///< in Zarr v3, below the attribute "ome"
    v0_6,  ///< 0.6rc0 of July 2026: with the coordinate systems of RFC-5
};

/// "0.4", "0.5", "0.6" or "0.6rc0". Throws invalid_argument.
[[nodiscard]] OmeVersion ome_version_named(std::string_view text);
/// As metadata say it: "0.6rc0".
[[nodiscard]] std::string_view ome_version_text(OmeVersion version);

/// The attributes of a group of images, labels, plates or wells in a newer version, 0.5 or 0.6; others stay. Equal ones
/// if the group has no such metadata, or has this version. Throws unsupported for versions before 0.4 and after `to`,
/// and corrupt for metadata that are not as their version says.
[[nodiscard]] Value upgraded_ome(const Value& attributes, OmeVersion to);

}  // namespace tessera
