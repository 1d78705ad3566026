// What names say of zips.
#pragma once

#include <filesystem>

namespace tessera {

/// Whether a path with this name is made as a zip: ".zip", or ".ozx" for OME-Zarr (NGFF's RFC-9).
[[nodiscard]] inline bool is_zip_name(const std::filesystem::path& path) {
    return path.extension() == ".zip" || path.extension() == ".ozx";
}

}  // namespace tessera
