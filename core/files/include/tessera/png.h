// PNG files made in memory, for pictures that need not be files: see array_file.h for those that are.
#pragma once

#include <string>

#include <tessera/buffer.h>
#include <tessera/view.h>

namespace tessera {

/// The bytes of a PNG file of u1 or u2 pixels: (height, width), or (height, width, 2 to 4) with alpha and colours.
/// Messages call it `name`. Throws unsupported for other elements and shapes, and in a build without libpng.
[[nodiscard]] Buffer encode_png(const ArrayView& pixels, const std::string& name);

}  // namespace tessera
