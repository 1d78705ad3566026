// The attributes that an array has in an array file.
#pragma once

#include <tessera/array_io.h>
#include <tessera/value.h>

namespace tessera {

/// With the names of dimensions and the fill, which are attributes there. Thread rule: any thread.
[[nodiscard]] Value attributes_with_names(const ArraySource& source);

}  // namespace tessera
