// Whether a journal may be applied to the array in which it lies. Private to the store module.
#pragma once

#include <string>
#include <string_view>

#include <tessera/key_value_store.h>

#include "journal.h"

namespace tessera {

/// Throws corrupt, naming the journal `name`, unless every entry is about the array at `prefix` itself: one of its
/// chunks, its metadata or its attributes, each once, and the metadata are not removed.
void require_own_keys(const KeyValueStore& store, std::string_view prefix, const Journal& journal,
                      std::string_view name);

/// The same, and each value that is put is in `folder`, where values are staged, with the size that the journal says,
/// or already under its key, and lies in the array's grid as it is after the batch.
void require_applicable(const KeyValueStore& store, std::string_view prefix, std::string_view folder,
                        const Journal& journal, std::string_view name);

/// "3 values are written (zarr.json, c/0, c/1) and 1 removed (c/2)".
[[nodiscard]] std::string changes_text(const Journal& journal);

}  // namespace tessera
