// SHA-256 sums of files below a prefix, in sha256sum's format: what seals are, and snapshots that record sums. Private
// to the store module.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/key_value_store.h>
#include <tessera/parallel.h>

#include "sha256.h"

namespace tessera {

/// By paths below the prefix.
using FileSums = std::map<std::string, Sha256, std::less<>>;

/// Of a list at `key`; nothing where there is none. Throws corrupt for a list that is none.
[[nodiscard]] std::optional<FileSums> load_sums(const KeyValueStore& store, const std::string& key);
/// Of one file as it is; nothing where there is none.
[[nodiscard]] std::optional<Sha256> sum_of(const KeyValueStore& store, const std::string& key);
/// Lists all that a seal of `prefix` covers at `key`.
void save_sums(KeyValueStore& store, std::string_view prefix, const std::string& key, const IoOptions& io);

}  // namespace tessera
