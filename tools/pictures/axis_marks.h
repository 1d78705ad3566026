// Round places along the axes of pictures. Private to the store module.
#pragma once

#include <cstdint>

#include <tessera/picture.h>

namespace tessera {

/// The letters of the longest text that mark_axis() gives.
[[nodiscard]] std::int64_t widest_mark(const PictureAxis& axis, std::int64_t letters);

}  // namespace tessera
