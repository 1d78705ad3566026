// A directory as a store, where there is one. Private to the store module.
#pragma once

#include <span>

#include <tessera/key_value_store.h>

namespace tessera {

/// directory_store() of a directory that is there, opened at once; nullptr when `root` is absent or something else.
/// Throws io for one that cannot be opened.
[[nodiscard]] std::shared_ptr<KeyValueStore> probe_directory_store(const std::filesystem::path& root,
                                                                   const StoreOptions& options);

/// sync() of several stores after their sync_later(), and again after that: one wait for each file system.
void sync_together(std::span<KeyValueStore* const> stores);

/// The same for stores that nobody uses for a while, and of which no lock is held: what they have open is closed, and
/// opened again by name.
void rest_together(std::span<KeyValueStore* const> stores);

/// Whether a directory_store() has a directory open to which its path does not lead any more.
[[nodiscard]] bool has_lost_its_name(const KeyValueStore& store);

}  // namespace tessera
