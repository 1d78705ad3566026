// What batches of edits leave to be finished or discarded. Private to the store module.
#pragma once

#include <memory>
#include <string_view>

#include <tessera/key_value_store.h>

namespace tessera {

/// Whether a batch of the array at `prefix` was committed but not yet applied, because its program was stopped. One
/// look at one key.
[[nodiscard]] bool batch_pending(const KeyValueStore& store, std::string_view prefix);

/// Applies it. The caller holds the shape lock exclusively.
void finish_batch(KeyValueStore& store, std::string_view prefix);

/// For opening an array: finishes a batch that was committed, discards what lies about of one that was not, and gives
/// the store to go on with, which for reading only may be another one, with the batch laid over it.
[[nodiscard]] std::shared_ptr<KeyValueStore> settle_batch(std::shared_ptr<KeyValueStore> store,
                                                          std::string_view prefix);

/// Discards what lies about of a batch that was not committed, unless its program lives. Returns whether something did.
bool discard_batch(KeyValueStore& store, std::string_view prefix);

}  // namespace tessera
