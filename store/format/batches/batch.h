// What batches of edits leave to be finished or discarded. Private to the store module.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>

#include "journal.h"
#include "keys.h"

namespace tessera {

/// Where a batch lies until it is in place, below the array.
inline constexpr std::string_view batch_folder = batch_journal_key.substr(0, batch_journal_key.rfind('/'));

// ---- for what makes batches: Edit and undo()

/// The record of the last change, of a batch or a command; nullopt if there is none.
[[nodiscard]] std::optional<Journal> last_record(const PlaceView& place);
[[nodiscard]] std::uint64_t new_batch_id();
/// Where the new value of an entry is staged.
[[nodiscard]] std::string staged_key(std::string_view prefix, const Journal& journal, const Journal::Entry& entry);
/// Where the old value of an entry with this number is kept.
[[nodiscard]] std::string kept_key(std::string_view prefix, std::uint64_t id, std::uint64_t number);
/// Makes `key` the same value as `from`, by a link if possible. An existing value is kept.
void keep_value(KeyValueStore& store, const std::string& from, const std::string& key);
/// Throws corrupt, naming the kept old value at the key `kept` and what it had and has, if it is not the one that was
/// kept for this entry. Compares what identifies it, not its bytes: damage that leaves its size and time goes unseen.
void require_as_kept(const PlaceView& place, const Journal::Entry& entry, const std::string& kept);
/// Whether the value at an entry's key is still as the batch left it.
[[nodiscard]] bool is_as_left(const PlaceView& place, const Journal::Entry& entry);
/// Orders the entries: values first, then the metadata document, then erasures.
void sort_batch(Journal& journal, std::string_view document);
/// Records a batch, which makes it happen, and applies it. Its values are staged, and the caller holds the shape lock
/// exclusively. If it throws Error(recorded), the batch takes effect all the same; after any other error nothing has
/// changed.
void record_batch(const PlaceRef& place, Journal& journal);

// ---- what batches over a group share with others: see group_batch.h

/// The journal of a batch that is to take effect; nullopt if there is none. Throws corrupt if no batch of this array or
/// group could have recorded it, because it may come from an untrusted sender. What is staged is not looked at: see
/// require_applicable().
[[nodiscard]] std::optional<Journal> read_pending(const PlaceView& place);
/// Whether an entry's value is at its key, as far as the staged values tell.
[[nodiscard]] bool is_moved(const PlaceView& place, const Journal& journal, const Journal::Entry& entry);
/// Does all that comes before a journal is written; returns its bytes. After an error nothing has changed.
[[nodiscard]] Buffer prepared(const PlaceRef& place, Journal& journal);
/// Whether this batch is the recorded one; also true if that is unknown.
[[nodiscard]] bool is_recorded(const PlaceView& place, const Journal& journal);
/// Removes the kept old values of a batch that will not happen, if possible.
void try_to_forget(const PlaceRef& place, const Journal& journal);
/// The journal that reverts a recorded batch, which may be partly in place; stages nothing yet. Its entries have the
/// numbers of the batch's entries. If an old value is unknown, throws corrupt, naming it.
[[nodiscard]] Journal way_back(const PlaceView& place, const Journal& journal);

// ---- for what finds one

/// Whether a batch of the array or group at `place` was committed but not yet applied, because its program was
/// stopped. Also true for an array's part of a batch over a group that was not committed. Checks only one key.
[[nodiscard]] bool batch_pending(const PlaceView& place);

/// Whether a writer has to finish it before anything else. In a store far away, a part of a batch that was not recorded
/// may be that of a program at work, and stays.
[[nodiscard]] bool must_finish_batch(const PlaceView& place);

/// As batch_pending(), and tells the two apart. Throws as pending_text.
[[nodiscard]] bool batch_takes_effect(const PlaceView& place);

/// What it would change: "3 values are written (…) and 1 removed (…)". Throws corrupt or unsupported for a journal that
/// cannot be read, or that no batch of this array could have recorded.
[[nodiscard]] std::string pending_text(const PlaceView& place);

/// The keys, below the array, of values that a batch which takes effect has yet to put in place; of a batch over a
/// group, its arrays. None of a batch that takes another back. Throws as read_pending().
[[nodiscard]] std::vector<std::string> keys_to_come(const PlaceView& place);

/// The array as it will be once its pending batch is in place, for reading only; `place` itself if there is none.
/// Throws as pending_text.
[[nodiscard]] Place as_finished(const Place& place);

/// Applies it. The caller holds the shape lock exclusively; of a group's batch, this locks the arrays, unless
/// `arrays_locked`. Discards an array's part of a batch that was not committed, but not far away, where this waits for
/// the lease of the group and finishes the whole batch. Throws as pending_text, and then
/// nothing has changed.
void finish_batch(const PlaceRef& place, bool arrays_locked = false);

/// The same for who does not hold the shape lock.
void finish_unlocked_batch(const PlaceRef& place);

/// A description of it: how many of its changes are in place. Throws corrupt or unsupported, about the journal.
[[nodiscard]] std::string pending_batch(const PlaceView& place);

/// Whether a pending batch is one of this array or group, so that it can be given up, and whether what is staged is as
/// it was recorded, so that it can be finished.
struct WaysOut {
    bool finish = false;
    bool give_up = false;
};
[[nodiscard]] WaysOut ways_out(const PlaceView& place);

/// Reverts it instead, for which what is staged is not needed. `document` is the key of the array's metadata, which is
/// restored after the chunks. Returns the number of values restored or removed. If an old value is unknown, throws
/// corrupt, naming it, and nothing has changed. The caller holds the shape lock exclusively. A batch over a group is
/// reverted at the group, whose arrays this locks; for one of its arrays, throws invalid_argument.
std::int64_t give_up_batch(const PlaceRef& place, std::string_view document);
/// A description of what that would do.
[[nodiscard]] std::string giving_up_batch(const PlaceView& place);

/// Moves a batch with an unreadable journal to `.tessera/damaged`; returns its new place. The caller holds the shape
/// lock exclusively.
std::string set_aside_batch(const PlaceRef& place);

/// For opening an array: finishes a committed batch, and discards the leftovers of an uncommitted one. Returns the
/// place to continue with. If the directory cannot be written, that may be a read-only store with the batch laid over
/// it.
[[nodiscard]] Place settle_batch(Place place);

/// Discards what was staged in a batch that was not recorded. The caller holds the shape lock exclusively.
void drop_batch(const PlaceRef& place);
/// Discards the leftovers of an uncommitted batch, unless its program still runs. Returns whether there were any.
bool discard_batch(const PlaceRef& place);

}  // namespace tessera
