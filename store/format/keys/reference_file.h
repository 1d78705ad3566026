// References among other files.
#pragma once

#include <tessera/key_value_store.h>

#include <filesystem>
#include <memory>
#include <vector>

namespace tessera {

/// The store in a regular file of references; nullptr when the file is none: not named .json, or other JSON. Throws io,
/// unsupported for references that are refused, corrupt for what they must not hold.
[[nodiscard]] std::shared_ptr<KeyValueStore> probe_reference_store(const std::filesystem::path& path);
/// The store that a folder of this machine is whose references are in Parquet, with the folder as a store; nullptr for
/// another folder. Paths in it are relative to the folder around it. Throws io, corrupt and unsupported.
[[nodiscard]] std::shared_ptr<KeyValueStore> probe_parquet_references(const std::filesystem::path& folder,
                                                                      const std::shared_ptr<KeyValueStore>& store);
/// The files that the references of such a store lead to; URLs as they are. Empty for another store.
[[nodiscard]] std::vector<std::filesystem::path> referenced_files(const ReadableStore& store);

}  // namespace tessera
