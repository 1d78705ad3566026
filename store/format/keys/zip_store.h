// Zip stores among other files.
#pragma once

#include <tessera/key_value_store.h>

#include <filesystem>
#include <memory>

namespace tessera {

/// The zip store in an open file, whose name() is its path. nullptr if the file is no zip archive, or one of array
/// files (named .npz, or with .npy members only). Throws io, or corrupt for a zip archive that cannot be read.
[[nodiscard]] std::shared_ptr<KeyValueStore> probe_zip_store(const ByteSource& file);

/// zip_store() for a new archive. `durable` as for create_file().
[[nodiscard]] std::shared_ptr<KeyValueStore> new_zip_store(const std::filesystem::path& path, ZipMode mode,
                                                           bool durable);

}  // namespace tessera
