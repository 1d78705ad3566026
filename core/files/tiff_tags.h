// TIFF's tags and attributes: descriptions, missing values and georeference (GeoTIFF), both ways. Private to
// core/files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tiff_format.h"

namespace tessera {

/// A tag to be written: `count` values of a type in `bytes`, little-endian.
struct TiffValues {
    TiffTag tag;
    std::uint16_t type = 0;
    std::uint64_t count = 0;
    std::string bytes;
};

/// The attributes of an image: _ARRAY_DIMENSIONS, and of the first one _FillValue, scale_factor and add_offset (GDAL's,
/// where all bands have the same), GeoZarr's "spatial:…" and "proj:…", and what these do not say as "tiff": {NAME OF A
/// TAG: value}.
[[nodiscard]] Value tiff_attributes(const ByteSource& file, const TiffFile& tiff, const TiffImage& image);

/// The reverse, for a new image. A georeference for another size ("spatial:shape") is left out.
[[nodiscard]] std::vector<TiffValues> tags_of_attributes(const Value& attributes, const DType& dtype,
                                                         std::int64_t height, std::int64_t width, std::int64_t pages,
                                                         std::int64_t samples);

/// Integers of 2 bytes (type 3), 4 (type 4) or 8 (type 16).
[[nodiscard]] TiffValues integer_tag(TiffTag tag, std::uint16_t type, const std::vector<std::uint64_t>& numbers);
[[nodiscard]] TiffValues text_tag(TiffTag tag, std::string text);

}  // namespace tessera
