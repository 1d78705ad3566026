// Finding the documents of an array before parsing them.
#pragma once

#include <tessera/buffer.h>
#include <tessera/dialect.h>

#include <optional>
#include <string_view>

namespace tessera {

/// An array's metadata, not parsed yet.
struct FoundArray {
    const Dialect* dialect = nullptr;
    Buffer document;
};

/// Finds the array at `place` as probe_dialect does, but reads each document only once; nullopt if there is none.
[[nodiscard]] std::optional<FoundArray> find_array(const PlaceView& place);
/// Parses the document that was read there. Throws as parse, naming the key.
[[nodiscard]] ArrayMetadata parse_metadata(const Dialect& dialect, const PlaceView& place, const Buffer& document);

/// Throws invalid_argument if a part of a path to a new node has the name of v3's metadata, which no node may have.
void require_node_names(std::string_view path);

/// Sets the name of v3's data type for structures: "struct", or "structured", which zarr-python before 3.3 reads. Does
/// nothing for other elements. Throws invalid_argument for other names, and unsupported for other dialects.
void name_structures(const Dialect& dialect, ArrayMetadata& metadata, std::string_view name);

}  // namespace tessera
