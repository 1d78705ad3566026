// GDAL_METADATA, TIFF's tag of text for GDAL: what it says of how numbers are packed. Private to core/files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

struct GdalPacking {
    double scale = 1, offset = 0;
};

/// If all bands have one scale and offset, and these are not 1 and 0. GDAL's items are
/// `<Item name="SCALE" sample="0" role="scale">0.1</Item>`.
[[nodiscard]] std::optional<GdalPacking> gdal_packing(std::string_view metadata, std::int64_t bands);

/// The text without these items; empty if there are no others.
[[nodiscard]] std::string without_gdal_packing(std::string_view metadata);

/// The text with these items for each band. `metadata` may be empty, and has none of them.
[[nodiscard]] std::string with_gdal_packing(std::string_view metadata, const GdalPacking& packing, std::int64_t bands);

}  // namespace tessera
