// The document of an array of Zarr v3. Private to the store module.
#pragma once

#include <string>
#include <vector>

#include "metadata_json.h"

namespace tessera {

/// Parses the content of an array's `zarr.json`. Throws as Dialect::parse.
[[nodiscard]] ArrayMetadata read_v3_document(const Value& meta);
/// The content of an array's `zarr.json`; throws unsupported for metadata that it cannot express.
[[nodiscard]] Value v3_document(const ArrayMetadata& m, Value attributes);
/// Throws unsupported for a member of a document that is not known, unless it says that it need not be.
void require_optional(const Value& unknown);
/// Sentences about what zarr-python, or other programs, cannot read of an array.
[[nodiscard]] std::vector<std::string> what_zarr_python_cannot(const ArrayMetadata& m);

}  // namespace tessera
