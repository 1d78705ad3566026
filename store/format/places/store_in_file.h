// Stores in single files, and in folders that other programs write.
#pragma once

#include <tessera/key_value_store.h>

#include <filesystem>
#include <memory>

namespace tessera {

/// The store that an open file is, a zip or references; its name() is its path. nullptr for other files. Throws io, or
/// corrupt for a store that cannot be read.
[[nodiscard]] std::shared_ptr<KeyValueStore> store_in_file(const ByteSource& file);

/// The store of references, in JSON or in Parquet, that a path of this machine leads to or into; nullptr if there is
/// none, or maybe another store. Throws as store_in_file().
[[nodiscard]] std::shared_ptr<KeyValueStore> references_at(const std::filesystem::path& path);

/// The place that a folder of this machine is: references in Parquet (also for the folder of one of their arrays), N5,
/// or the folder itself. Throws as store_in_file(). The first looks into folders with .n5 or .parq in their paths
/// alone, so that opening an array of Zarr costs nothing more.
[[nodiscard]] Place store_in_folder(std::shared_ptr<KeyValueStore> folder, const std::filesystem::path& path,
                                    const StoreOptions& options);
[[nodiscard]] Place foreign_store_in_folder(std::shared_ptr<KeyValueStore> folder, const std::filesystem::path& path,
                                            const StoreOptions& options);

}  // namespace tessera
