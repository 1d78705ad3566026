// What batches of edits leave to be finished or discarded. Private to the store module.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tessera/key_value_store.h>

namespace tessera {

/// Whether a batch of the array at `prefix` was committed but not yet applied, because its program was stopped. Checks
/// only one key.
[[nodiscard]] bool batch_pending(const KeyValueStore& store, std::string_view prefix);

/// What it would change: "3 values are written (…) and 1 removed (…)". Throws corrupt or unsupported for a journal that
/// cannot be read, or that no batch of this array could have recorded.
[[nodiscard]] std::string pending_text(const KeyValueStore& store, std::string_view prefix);

/// Applies it. The caller holds the shape lock exclusively. Throws as pending_text, and then nothing has changed.
void finish_batch(KeyValueStore& store, std::string_view prefix);

/// A description of it: how many of its changes are in place. Throws corrupt or unsupported, about the journal.
[[nodiscard]] std::string pending_batch(const KeyValueStore& store, std::string_view prefix);

/// Reverts it instead. `document` is the key of the array's metadata, which is restored after the chunks. Returns the
/// number of values restored or removed. If an old value is unknown, throws corrupt, naming it, and nothing has
/// changed. The caller holds the shape lock exclusively.
std::int64_t give_up_batch(KeyValueStore& store, std::string_view prefix, std::string_view document);
/// A description of what that would do.
[[nodiscard]] std::string giving_up_batch(const KeyValueStore& store, std::string_view prefix);

/// Moves a batch with an unreadable journal to `.tessera/damaged`; returns its new place. The caller holds the shape
/// lock exclusively.
std::string set_aside_batch(KeyValueStore& store, std::string_view prefix);

/// For opening an array: finishes a committed batch, and discards the leftovers of an uncommitted one. Returns the
/// store to continue with. If the directory cannot be written, that may be a read-only store with the batch laid over
/// it.
[[nodiscard]] std::shared_ptr<KeyValueStore> settle_batch(std::shared_ptr<KeyValueStore> store,
                                                          std::string_view prefix);

/// Discards the leftovers of an uncommitted batch, unless its program still runs. Returns whether there were any.
bool discard_batch(KeyValueStore& store, std::string_view prefix);

}  // namespace tessera
