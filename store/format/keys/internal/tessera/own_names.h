// The names of Tessera's own files beside and below arrays and groups.
#pragma once

#include <string_view>

namespace tessera {

/// The folder of Tessera's own files of a node.
inline constexpr std::string_view own_folder = ".tessera";

/// Whether a name directly below an array or group is Tessera's own: ".tessera", temporary files, the hidden
/// directories of arrays that are being replaced (".grid.zarr.tessera-new").
[[nodiscard]] inline bool is_own_name(std::string_view name) {
    return name.starts_with('.') && name.find(own_folder) != std::string_view::npos;
}

}  // namespace tessera
