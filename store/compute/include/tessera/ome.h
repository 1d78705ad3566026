// Versions of OME-Zarr's metadata (OME-NGFF).
#pragma once

#include <cstdint>
#include <string_view>

#include <tessera/value.h>

namespace tessera {

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
