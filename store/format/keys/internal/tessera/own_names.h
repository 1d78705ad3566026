// The names of Tessera's own files beside and below arrays and groups.
#pragma once

#include <cstddef>
#include <string_view>

namespace tessera {

/// The folder of Tessera's own files of a node.
inline constexpr std::string_view own_folder = ".tessera";

/// The page that `seal --readme` puts into a sealed array or group: a part of it, as its metadata are.
inline constexpr std::string_view readme_name = "README.tessera.txt";

/// Whether a name directly below an array or group is Tessera's own: ".tessera", temporary files, the hidden
/// directories of arrays that are being replaced (".grid.zarr.tessera-new").
[[nodiscard]] inline bool is_own_name(std::string_view name) {
    return name.starts_with('.') && name.find(own_folder) != std::string_view::npos;
}

/// The position in a path of the first part that is Tessera's own; npos if there is none.
[[nodiscard]] inline std::size_t own_part(std::string_view path) {
    if (path.find(own_folder) == std::string_view::npos) return path.npos;
    for (std::size_t at = 0;;) {
        const std::size_t slash = path.find('/', at);
        if (is_own_name(path.substr(at, slash - at))) return at;
        if (slash == path.npos) return path.npos;
        at = slash + 1;
    }
}

}  // namespace tessera
