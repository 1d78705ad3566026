// What batches of edits leave to be finished or discarded. Private to the store module.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <tessera/key_value_store.h>

namespace tessera {

/// Whether a batch of the array at `prefix` was committed but not yet applied, because its program was stopped. One
/// look at one key.
[[nodiscard]] bool batch_pending(const KeyValueStore& store, std::string_view prefix);

/// What it would change: "3 values are written (…) and 1 removed (…)". Throws corrupt or unsupported for a journal that
/// cannot be read, or that says what no batch of this array could have recorded.
[[nodiscard]] std::string pending_text(const KeyValueStore& store, std::string_view prefix);

/// Applies it. The caller holds the shape lock exclusively. Throws what pending_text throws, with nothing changed.
void finish_batch(KeyValueStore& store, std::string_view prefix);

/// For opening an array: finishes a batch that was committed, discards what lies about of one that was not, and gives
/// the store to go on with: for reading only, and where the directory cannot be written, it may be another one, with
/// the batch laid over it.
[[nodiscard]] std::shared_ptr<KeyValueStore> settle_batch(std::shared_ptr<KeyValueStore> store,
                                                          std::string_view prefix);

/// Discards what lies about of a batch that was not committed, unless its program lives. Returns whether something did.
bool discard_batch(KeyValueStore& store, std::string_view prefix);

}  // namespace tessera
