// Chunks whose keys have another separator than the metadata. Private to the store module.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tessera/dialect.h>
#include <tessera/key_value_store.h>

namespace tessera {

/// A chunk of the array at `place`, below its folder `name`, whose key has the form "0/0" although the metadata says
/// "0.0"; nullopt if there is none. zarr-python 2.13 drops "dimension_separator" from .zarray when it appends to or
/// resizes an array, and existing chunks are then not found any more.
[[nodiscard]] std::optional<std::string> chunk_of_lost_separator(const PlaceView& place, const ArrayMetadata& metadata,
                                                                 std::string_view name);

}  // namespace tessera
