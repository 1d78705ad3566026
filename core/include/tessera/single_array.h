// What is said to "path::name" where the path is one array.
#pragma once

#include <string>
#include <string_view>

#include <tessera/dtype.h>

namespace tessera {

/// The message for an array called `path` that has no member `name`; where `name` is a field of its structures, how to
/// come by that.
[[nodiscard]] std::string single_array_message(std::string_view path, const DType& dtype, std::string_view name);

}  // namespace tessera
