// What `tessera info --json` and api/info both say of an array, in the same words.
#pragma once

#include <vector>

#include <tessera/metadata.h>
#include <tessera/value.h>

namespace tessera::serve {

/// The fill as JSON; null where it is undefined or unusable.
[[nodiscard]] Value fill_json(const ArrayMetadata& metadata);
/// The fields of a structure as NumPy's descr; an empty list for other dtypes.
[[nodiscard]] Value fields_json(const DType& dtype);
/// [{"name": …, "configuration": …}, …]
[[nodiscard]] Value codecs_json(const std::vector<CodecConfig>& codecs);

}  // namespace tessera::serve
