// Arrays as tables: a row for each element, with the coordinates of its dimensions.
#pragma once

#include <memory>

#include <tessera/array_io.h>

namespace tessera {

/// A structure for each element in C order: a field for each dimension, with its name and its coordinate (the index,
/// where there is none), and one for the element. Times are text in ISO 8601, and missing elements empty text. Holds
/// all coordinates. Throws invalid_argument for dimensions without names, and what reading coordinates throws.
[[nodiscard]] std::unique_ptr<ArraySource> coordinate_table(std::unique_ptr<ArraySource> array);

}  // namespace tessera
