// References whose files are looked at before they are read, for servers, whose clients may see less than the user who
// runs them.
#pragma once

#include <tessera/store_kind.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace tessera {

/// Is asked about each file that references lead to, when it is opened: its path below their folder, and what it holds.
/// Any thread calls it.
using MayRead = std::function<bool(const std::string& path, const ByteSource& file)>;

/// As reference_store(), but refuses references to files for which `may_read` returns false.
[[nodiscard]] std::shared_ptr<KeyValueStore> reference_store(const std::filesystem::path& path, MayRead may_read);

}  // namespace tessera
