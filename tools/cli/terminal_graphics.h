// Drawings on terminals that show pixels: by kitty's protocol, and as sixels.
#pragma once

#include <string>

#include <tessera/ndarray.h>

namespace tessera::cli {

/// `pixels`: u1 (height, width, 3). As PNG within kitty's escape sequences.
[[nodiscard]] std::string kitty_text(const NDArray& pixels);
/// The same as sixels, in 256 colours.
[[nodiscard]] std::string sixel_text(const NDArray& pixels);

}  // namespace tessera::cli
