// Arrays as tables: a row for each element, with the coordinates of its dimensions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <tessera/array_io.h>
#include <tessera/ndarray.h>

namespace tessera {

/// The coordinate of a dimension, as it is shown: times are text in ISO 8601, missing ones empty text. nullopt if there
/// is none. Throws unsupported for text of variable length.
[[nodiscard]] std::optional<NDArray> shown_coordinate(const ArraySource& array, const std::string& name,
                                                      std::int64_t length);

/// A structure for each element in C order: a field for each dimension, with its name and its coordinate (the index,
/// where there is none), and one for the element. Times are text in ISO 8601, and missing elements empty text. Holds
/// all coordinates. Throws invalid_argument for dimensions without names, and what reading coordinates throws.
[[nodiscard]] std::unique_ptr<ArraySource> coordinate_table(std::unique_ptr<ArraySource> array);

}  // namespace tessera
