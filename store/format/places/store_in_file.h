// Stores in single files.
#pragma once

#include <tessera/key_value_store.h>

#include <memory>

namespace tessera {

/// The store that an open file is, a zip or references; its name() is its path. nullptr for other files. Throws io, or
/// corrupt for a store that cannot be read.
[[nodiscard]] std::shared_ptr<KeyValueStore> store_in_file(const ByteSource& file);

}  // namespace tessera
