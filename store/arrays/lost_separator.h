// Chunks whose keys have another separator than the metadata say. Private to the store module.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tessera/key_value_store.h>
#include <tessera/metadata.h>

namespace tessera {

/// The key of a chunk of the array at `prefix`, below its folder `name`, in the form "0/0" where the metadata have
/// "0.0". zarr-python 2.13 drops "dimension_separator" from .zarray when it appends to or resizes an array, and the
/// chunks that are there are then not found any more. nullopt where there is none.
[[nodiscard]] std::optional<std::string> chunk_of_lost_separator(const KeyValueStore& store, std::string_view prefix,
                                                                 const ArrayMetadata& metadata, std::string_view name);

}  // namespace tessera
