// What is found at a place, before it is parsed.
#pragma once

#include <tessera/buffer.h>
#include <tessera/dialect.h>

#include <optional>

namespace tessera {

/// An array's metadata, not parsed yet.
struct FoundArray {
    const Dialect* dialect = nullptr;
    Buffer document;
};

/// The array at `prefix`, as probe_dialect finds it, each document read once; nothing when there is none.
[[nodiscard]] std::optional<FoundArray> find_array(const KeyValueStore& store, std::string_view prefix);
/// Of the document that was read there. Throws what parse throws, naming the key.
[[nodiscard]] ArrayMetadata parse_metadata(const Dialect& dialect, const KeyValueStore& store, std::string_view prefix,
                                           const Buffer& document);

}  // namespace tessera
