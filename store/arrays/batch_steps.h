// The steps of a batch that those over a group share with others. Private to the store module.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "batch.h"

namespace tessera {

/// What becomes of a journal that was found.
enum class Fate : std::uint8_t {
    takes_effect,
    never,     ///< a part of a batch over a group that was not recorded
    given_up,  ///< a part of one that is given up
};

[[nodiscard]] Fate fate_of(const KeyValueStore& store, std::string_view prefix, const Journal& journal);

/// The journal of a batch that is to take effect; nullopt if there is none. Throws corrupt if no batch of this array or
/// group could have recorded it, because it may come from an untrusted sender.
[[nodiscard]] std::optional<Journal> read_pending(const KeyValueStore& store, std::string_view prefix);
/// Whether an entry's value is at its key, as far as the staged values tell.
[[nodiscard]] bool is_moved(const KeyValueStore& store, std::string_view prefix, const Journal& journal,
                            const Journal::Entry& entry);
/// Does all that comes before a journal is written; returns its bytes. After an error nothing has changed.
[[nodiscard]] Buffer prepared(KeyValueStore& store, std::string_view prefix, Journal& journal);
/// Removes the kept old values of a batch that will not happen, if possible.
void try_to_forget(KeyValueStore& store, std::string_view prefix, const Journal& journal);
/// The journal that reverts a recorded batch, which may be partly in place; stages nothing yet. Its entries have the
/// numbers of the batch's entries, for kept_key(). If an old value is unknown, throws corrupt, naming it.
[[nodiscard]] Journal way_back(const KeyValueStore& store, std::string_view prefix, const Journal& journal);

// ---- batches over a group

/// Takes back an array's part of a batch that was not recorded; its staged values stay.
void retract(KeyValueStore& store, std::string_view prefix, const Journal& journal);
/// Throws invalid_argument for a part of a recorded batch over a group.
void require_whole(const KeyValueStore& store, std::string_view prefix, const Journal& journal);
/// Reverts the recorded batch of a group, whose lock the caller holds. Returns the number of its arrays.
std::int64_t give_up_group(KeyValueStore& store, std::string_view prefix, const Journal& journal);

}  // namespace tessera
