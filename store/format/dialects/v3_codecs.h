// The codecs of an array of Zarr v3, which hold what the model has in the dtype: the byte order, and the small type
// that elements are stored as. Private to the store module.
#pragma once

#include <optional>
#include <vector>

#include <tessera/small_type.h>

#include "metadata_json.h"

namespace tessera {

[[nodiscard]] std::vector<CodecConfig> read_codecs(const Value& list);
[[nodiscard]] Value plain_codecs_json(const std::vector<CodecConfig>& codecs);

/// Moves the endian of the chain to the dtype, and the small type of the data type to the chain.
void take_codecs(DType& dtype, std::vector<CodecConfig>& codecs, const std::optional<SmallType>& small);
/// The chain as v3 has it. `structured`: structures have the name that zarr-python 3.1 gave them.
[[nodiscard]] Value codecs_json(const ArrayMetadata& m, bool structured);

/// The small type as which the elements are stored.
[[nodiscard]] std::optional<SmallType> stored_type(const ArrayMetadata& m);
/// Throws unsupported if the codec of small types stands elsewhere than where `stored` comes from.
void require_small_type_first(const ArrayMetadata& m, const std::optional<SmallType>& stored);
/// Whether the codec of elements that may be missing, which zarrs has, is in the chain.
[[nodiscard]] bool has_optional_codec(const ArrayMetadata& m);

}  // namespace tessera
