// Arrays with their dimensions in another order.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array_io.h>

namespace tessera {

/// Whether `order` has just the names of the array's dimensions, and in another order.
[[nodiscard]] bool reorders(const ArraySource& array, const std::vector<std::optional<std::string>>& order);

/// The array with its dimensions in this order, in which all of them are. Others in it get the length 1. Elements are
/// read as they are stored; a chunk of the result is one of the array.
[[nodiscard]] std::unique_ptr<ArraySource> transposed_source(std::unique_ptr<ArraySource> array,
                                                             const std::vector<std::optional<std::string>>& order);

}  // namespace tessera
