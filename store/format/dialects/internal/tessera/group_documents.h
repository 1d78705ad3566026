// The documents of groups in Zarr v2 and v3, and those that hold the metadata of all nodes below.
#pragma once

#include <tessera/value.h>

namespace tessera {

/// `.zgroup`.
[[nodiscard]] Value v2_group_document();
/// `.zmetadata`, with the documents of the group and of all below by their keys.
[[nodiscard]] Value v2_consolidated_document(Value documents);
/// `zarr.json` of a group.
[[nodiscard]] Value v3_group_document(Value attributes);
/// Its member `consolidated_metadata`, with the documents of all nodes below by their paths.
[[nodiscard]] Value v3_consolidated_metadata(Value documents);

}  // namespace tessera
