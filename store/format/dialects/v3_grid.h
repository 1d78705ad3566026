// Where the chunks of an array of Zarr v3 begin, and how they are named. Private to the store module.
#pragma once

#include "metadata_json.h"

namespace tessera {

/// Sets the chunks of an array whose shape is known.
void read_chunk_grid(const Value& v, ArrayMetadata& m);
[[nodiscard]] Value chunk_grid_json(const ArrayMetadata& m);

/// The keys of a new array.
[[nodiscard]] KeyScheme v3_keys();
[[nodiscard]] KeyScheme read_key_encoding(const Value& v);
/// Throws unsupported for keys that v3 lacks.
[[nodiscard]] Value key_encoding_json(const KeyScheme& keys);

}  // namespace tessera
