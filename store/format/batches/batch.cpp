// Batches of edits: all or nothing.
//
// How it works
// ------------
// A batch holds the array's shape lock exclusively, so that no other writer changes anything meanwhile. Its writes go
// through a StagedStore, which keeps every new value as a file of its own in `.tessera/batch/`, named by a number, and
// every erasure in memory. Then commit():
//
//   1. checks every target, creates missing folders, and keeps each old value as `.tessera/undo/ID.N`, a hard link, so
//      that obstacles show up now;
//   2. makes the staged and the kept values durable;
//   3. writes the journal `.tessera/batch/journal`, which lists them (journal.cpp): a redo journal. The batch happens
//      at the moment of the rename that gives the journal its name. Before it nothing has changed; after it everything
//      needed to continue is on the disk. Any failure from here on is ErrorCode::recorded;
//   4. applies it: the staged values are renamed over their keys; chunks first, metadata next, erasures last;
//   5. renames the journal to `.tessera/undo/changes`: the batch is over, and the same list now says how to undo it.
//
// After a crash there is either no journal, and the staged values are discarded, or a journal, and step 4 is repeated
// from the beginning: a missing staged value was already renamed, and a kept old value stays. Both happen under the
// shape lock, which a living batch holds. They happen when an array is opened, and in every writer once it has the
// lock, because another program may have crashed since the array was opened. A journal is checked before it is applied
// (journal_check.cpp), because an array may come from an untrusted sender.
//
// An array that is opened read-only is not finished: the changes are laid over its store (StagedStore again). The same
// happens if the directory is not writable, so that the lock cannot be taken.
//
// undo() is a batch too: see undo.cpp.
//
// A batch over several arrays of a group
// --------------------------------------
// Each array has its values, its journal and its old values in its own folders, as above, but this journal says that it
// is a part of a batch, and how far above the array the group is. It takes effect if the group has a journal of the
// same id. So the batch happens at the moment of the rename that gives the group's journal its name, which is the last
// to be written. Then the parts are applied one after another, each with its own journal, and the group's journal goes
// last. Whoever opens one array alone finds its part, looks at the group's journal, and finishes the part, lays it over
// the array, or discards it. An array that was moved away has no group; if a value of its part is in place, the batch
// was recorded, and its part is finished.
//
// In a store far away a batch holds the metadata documents of arrays that grow together: see far_batch.cpp.
//
// A recorded batch that cannot be put in place would block all writers. give_up_batch() reverts it: a batch that
// restores the old values replaces its journal, in one step, and is applied instead. A batch over a group is given up
// as a whole: parts that are in place become pending again, the group's journal is replaced by one that says so, and
// then each part is given up.
#include "batch.h"

#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/error_text.h>
#include <tessera/parallel.h>
#include <tessera/retry.h>

#include <algorithm>
#include <random>
#include <utility>

#include "copy_bytes.h"
#include "dialects.h"
#include "far_batch.h"
#include "group_batch.h"
#include "journal.h"
#include "journal_check.h"
#include "staged_store.h"
#include "stored_record.h"
#include "versions.h"

namespace tessera {

namespace {

using Entry = Journal::Entry;

}  // namespace

std::optional<Journal> last_record(const PlaceView& place) {
    const std::string key = place.key(undo_record_key);
    const auto file = place.store.open(key);
    if (file == nullptr) return std::nullopt;
    return read_record(*file, place.store.name_of(key));
}

void keep_value(KeyValueStore& store, const std::string& from, const std::string& key) {
    if (store.local_files().link(key, store, from) || store.contains(key)) return;
    if (const auto value = store.open(from)) copy_bytes(*value, store, key);
}

std::string staged_key(std::string_view prefix, const Journal& journal, const Entry& entry) {
    return join_key(join_key(prefix, batch_folder), value_name(journal.id, entry.number));
}

std::string kept_key(std::string_view prefix, std::uint64_t id, std::uint64_t number) {
    return join_key(join_key(prefix, undo_folder), value_name(id, number));
}

void sort_batch(Journal& journal, std::string_view document) {
    std::ranges::stable_sort(journal.entries, {}, [&](const Entry& e) {
        return e.kind == Entry::Kind::erase ? 2 : e.key == document ? 1 : 0;
    });
}

std::optional<Journal> read_pending(const PlaceView& place) {
    const std::string key = place.key(batch_journal_key);
    const auto file = place.store.open(key);
    if (file == nullptr) return std::nullopt;
    const std::string name = place.store.name_of(key);
    Journal journal = read_journal(*file, name);
    if (journal.of_group) {
        require_own_arrays(place, journal, name);
    } else {
        require_own_keys(place, journal, name);
    }
    return journal;
}

namespace {

/// Throws corrupt unless the batch can be put in place.
void require_finishable(const PlaceView& place, const Journal& journal) {
    require_applicable(place, place.key(batch_folder), journal, place.name_of(batch_journal_key));
}

/// Calls body(), which looks at the batch without the lock: somebody may finish it meanwhile, so that values are
/// missing.
template <class Body>
auto unlocked(const PlaceView& place, const Body& body) {
    const auto journal = [&] { return place.store.stamp(place.key(batch_journal_key)); };
    return retry_when_replaced(
        journal, [&](const auto&) { return body(); },
        [&](const auto& before, const Error&) { return journal() != before; });
}

/// Also throws corrupt if it cannot be finished.
std::optional<Journal> read_finishable_unlocked(const PlaceView& place) {
    return unlocked(place, [&] {
        auto journal = read_pending(place);
        if (journal && fate_of(place, *journal) == Fate::takes_effect) require_finishable(place, *journal);
        return journal;
    });
}

}  // namespace

/// Whether an entry's value is at its key, as far as the staged values tell.
bool is_moved(const PlaceView& place, const Journal& journal, const Entry& entry) {
    return entry.kind == Entry::Kind::put && !place.store.contains(staged_key(place.prefix, journal, entry));
}

namespace {

void keep_old_values(const PlaceRef& place, const Journal& journal) {
    if (!journal.keeps_old) return;
    for (const Entry& entry : journal.entries) {
        if (!entry.had_old || is_moved(place, journal, entry)) continue;
        keep_value(place.store, place.key(entry.key), kept_key(place.prefix, journal.id, entry.number));
    }
}

/// Removes the kept old values of a batch that will not happen.
void forget_old_values(const PlaceRef& place, const Journal& journal) {
    if (!journal.keeps_old) return;
    for (const Entry& entry : journal.entries) {
        if (entry.had_old) place.store.erase(kept_key(place.prefix, journal.id, entry.number));
    }
}

/// Puts a recorded batch in place, after its old values were kept.
void put_in_place(const PlaceRef& place, const Journal& journal, bool arrays_locked) {
    std::size_t in_place = 0;
    try {
        std::vector<std::string> erased;
        for (const Entry& entry : journal.entries) {
            if (entry.kind == Entry::Kind::erase) erased.push_back(place.key(entry.key));
        }
        ErasedNotes(place).add(erased);
        for (const Entry& entry : journal.entries) {
            const std::string key = place.key(entry.key);
            if (entry.kind == Entry::Kind::erase) {
                place.store.erase(key);
            } else if (entry.kind == Entry::Kind::array) {
                if (!batch_pending({place.store, key})) continue;
                const StoreLock lock = arrays_locked ? StoreLock() : place.store.lock(key, 0, LockMode::exclusive);
                finish_batch({place.store, key});
            } else {
                place.store.replace(staged_key(place.prefix, journal, entry), key);  // does nothing if already done
            }
            ++in_place;
        }
    } catch (const Error& e) {
        throw e.within(fmt::format("{} of its {} changes are in place", in_place, journal.entries.size()));
    }
}

void apply(const PlaceRef& place, const Journal& journal, bool arrays_locked) {
    const FinishScope finishes;  // what is recorded
    const std::string pending = place.key(batch_journal_key);
    const std::string record = place.key(undo_record_key);
    place.store.erase(record);  // from now on it is outdated
    place.store.sync();
    put_in_place(place, journal, arrays_locked);
    place.store.sync();
    if (journal.keeps_old) {
        place.store.replace(pending, record);
    } else {
        place.store.erase(pending);
    }
    place.store.sync();
    place.store.erase_below(place.key(batch_folder));
    // Old values of earlier changes.
    const std::string undo = place.key(undo_folder);
    const std::string own = fmt::format("{:016x}.", journal.id);
    for (const std::string& name : place.store.list(undo).keys) {
        const std::string key = join_key(undo, name);
        if (!name.starts_with(own) && key != record) place.store.erase(key);
    }
    place.store.sync();
}

}  // namespace

std::uint64_t new_batch_id() {
    std::random_device random;
    return std::uint64_t{random()} << 32 | random();
}

namespace {

/// The stamp of a value, of the same kind as `like`.
std::optional<ValueStamp> stamp_like(const ReadableStore& store, const std::string& key, const ValueStamp& like) {
    const auto stamp = store.stamp(key);
    if (!stamp || stamp->by_content == like.by_content || !like.by_content) return stamp;
    const auto value = store.open(key);
    return value ? std::optional(content_stamp(*value)) : std::nullopt;
}

}  // namespace

void require_as_kept(const PlaceView& place, const Entry& entry, const std::string& kept) {
    const auto found = entry.old_known ? place.store.stamp(kept) : std::nullopt;
    if (!found || may_be_recorded(entry.old, *found)) return;
    const auto shown = [](const ValueStamp& stamp) {
        return stamp.by_content ? fmt::format("{} bytes, SHA-256 {:016x}…", stamp.size, stamp.id)
                                : fmt::format("{} bytes of time {}", stamp.size, stamp.modified);
    };
    throw corrupt(
        "{}: the old value of {}, which it keeps, was changed since: it had {} and has {}; nothing was taken "
        "back",
        place.store.name_of(kept), entry.key, shown(entry.old), shown(*found));
}

bool is_as_left(const PlaceView& place, const Entry& entry) {
    const std::string key = place.key(entry.key);
    if (entry.kind == Entry::Kind::erase) return !place.store.contains(key);
    return stamp_like(place.store, key, entry.stamp) == entry.stamp;
}

namespace {

/// Checks every target of the batch and keeps the old values. Its staged values are in place.
void prepare(const PlaceRef& place, Journal& journal) {
    for (Entry& entry : journal.entries) {
        if (entry.kind == Entry::Kind::array) continue;
        const auto target = place.store.prepare_replace(place.key(entry.key));
        entry.had_old = target.exists;
        if (entry.kind != Entry::Kind::put || !target.crosses) continue;
        if (const auto value = place.store.open(staged_key(place.prefix, journal, entry)))
            entry.stamp = content_stamp(*value);
    }
    keep_old_values(place, journal);
    for (Entry& entry : journal.entries) {
        if (!journal.keeps_old || !entry.had_old) continue;
        const auto old = place.store.stamp(kept_key(place.prefix, journal.id, entry.number));
        entry.old_known = old.has_value();
        if (old) entry.old = *old;
    }
    place.store.sync();
}

}  // namespace

bool is_recorded(const PlaceView& place, const Journal& journal) {
    try {
        const auto file = place.store.open(place.key(batch_journal_key));
        return file != nullptr && read_journal(*file, file->name()).id == journal.id;
    } catch (const Error&) {
        return true;
    }
}

/// As forget_old_values, before an error is thrown.
void try_to_forget(const PlaceRef& place, const Journal& journal) {
    try {
        forget_old_values(place, journal);
    } catch (const Error&) {
        // The next batch does it.
    }
}

/// Does all that comes before a journal is written; returns its bytes. After an error nothing has changed.
Buffer prepared(const PlaceRef& place, Journal& journal) {
    try {
        place.store.local_files().require_direct(place.key(undo_record_key));
        prepare(place, journal);
    } catch (const Error& e) {
        try_to_forget(place, journal);
        throw e.within(fmt::format("{}: the batch cannot be applied; nothing was changed", place.name()));
    }
    Buffer bytes = encode_journal(journal);
    if (bytes.size() > journal_limit) {
        try_to_forget(place, journal);
        throw over_budget("{}: {} values change, too many for one batch; use several", place.name(),
                          journal.entries.size());
    }
    return bytes;
}

void record_batch(const PlaceRef& place, Journal& journal) {
    const Buffer bytes = prepared(place, journal);
    bool begun = false;
    bool recorded = false;
    try {
        const auto file = place.store.create(place.key(batch_journal_key));
        file->append(bytes);
        begun = true;
        file->finish();
        recorded = true;
        place.store.sync();
        apply(place, journal, true);
    } catch (const std::exception& e) {
        if (!begun || (!recorded && !is_recorded(place, journal))) {
            try_to_forget(place, journal);
            throw;
        }
        const std::string name = place.name();
        throw Error(ErrorCode::recorded,
                    fmt::format("{}: the batch is recorded and takes effect, do not repeat it; the next opening goes "
                                "on with it, once this is mended: {}",
                                name, e.what()))
            .advising(Action::repair, "finishes it", name)
            .advising(Action::give_up_batches, "takes it back", name);
    }
}

/// The journal that reverts a recorded batch, which may be partly in place; stages nothing yet. Its entries have the
/// numbers of the batch's entries. If an old value is unknown, throws corrupt, naming it.
Journal way_back(const PlaceView& place, const Journal& journal) {
    Journal back{.id = new_batch_id(), .keeps_old = false, .gives_up = true};
    for (auto at = journal.entries.rbegin(); at != journal.entries.rend(); ++at) {
        const Entry& entry = *at;
        const std::string key = place.key(entry.key);
        const auto now = place.store.stamp(key);
        const std::string kept = kept_key(place.prefix, journal.id, entry.number);
        if (entry.had_old ? place.store.contains(kept) && now == place.store.stamp(kept) : !now)
            continue;  // as before the batch
        if (entry.had_old && !place.store.contains(kept)) {
            if (!is_moved(place, journal, entry) && !is_as_left(place, entry)) continue;
            throw corrupt("{}: the batch cannot be taken back: the old value of {} is not known", place.name(),
                          entry.key);
        }
        if (entry.had_old) require_as_kept(place, entry, kept);
        back.entries.push_back({.kind = entry.had_old ? Entry::Kind::put : Entry::Kind::erase,
                                .had_old = now.has_value(),
                                .number = entry.number,
                                .stamp = {},
                                .key = entry.key});
    }
    return back;
}

namespace {

/// Moves a folder to `.tessera/damaged` under a free name; returns its place.
std::string set_aside(const PlaceRef& place, std::string_view folder) {
    const std::string name(folder.substr(folder.rfind('/') + 1));
    for (int n = 1;; ++n) {
        const std::string aside = place.key(fmt::format(".tessera/damaged/{}.{}", name, n));
        try {
            place.store.move(place.key(folder), aside);
            return aside;
        } catch (const Error& e) {
            if (e.code() != ErrorCode::already_exists) throw;
        }
    }
}

/// Whether there are files of a batch: living, committed, or left behind.
bool has_batch(const PlaceView& place) {
    const Listing listing = place.store.list(place.key(batch_folder));
    return !listing.keys.empty() || !listing.prefixes.empty();
}

}  // namespace

namespace {

/// Reverts a batch of an array, which may be a part of a batch that is given up. Returns the number of changes.
std::int64_t revert(const PlaceRef& place, const Journal& journal, std::string_view document) {
    Journal back = way_back(place, journal);
    for (Entry& entry : back.entries) {
        if (entry.kind == Entry::Kind::erase) continue;
        const std::string staged = staged_key(place.prefix, back, entry);
        keep_value(place.store, kept_key(place.prefix, journal.id, entry.number), staged);
        entry.stamp = place.store.stamp(staged).value_or(ValueStamp{});
    }
    sort_batch(back, document);
    record_batch(place, back);
    return std::ssize(back.entries);
}

/// Of a part of a batch over a group: that its old values are known, without which the group cannot give it up either.
void require_revertible_part(const PlaceView& place, const Journal& journal) {
    if (journal.group_above > 0) (void)way_back(place, journal);
}

std::string_view document_of(const PlaceView& place) {
    const Dialect* const dialect = probe_dialect(place);
    return dialect == nullptr ? "" : dialect->metadata_key;
}

}  // namespace

bool batch_pending(const PlaceView& place) {
    return place.store.contains(place.key(batch_journal_key));
}

bool must_finish_batch(const PlaceView& place) {
    return batch_pending(place) && (!place.store.is_far() || batch_takes_effect(place));
}

bool batch_takes_effect(const PlaceView& place) {
    return unlocked(place, [&] {
        const auto journal = read_pending(place);
        if (!journal) return false;
        const Fate fate = fate_of(place, *journal);
        if (fate == Fate::takes_effect) require_finishable(place, *journal);
        return fate != Fate::never;
    });
}

void finish_unlocked_batch(const PlaceRef& place) {
    // Far away the lease of the group keeps others away. Whoever holds that may wait for the lock of an array.
    const StoreLock lock = place.store.is_far() ? StoreLock() : place.store.lock(place.prefix, 0, LockMode::exclusive);
    finish_batch(place);
}

void finish_batch(const PlaceRef& place, bool arrays_locked) {
    const auto journal = read_pending(place);
    if (!journal) return;
    const Fate fate = fate_of(place, *journal);
    if (place.store.is_far() && !journal->gives_up && (journal->of_group || journal->group_above > 0)) {
        if (fate == Fate::takes_effect) return finish_far_batch(place, *journal);
        if (fate == Fate::never) return;  // its program may be at work
    }
    if (fate == Fate::never) {
        retract(place, *journal);
        place.store.erase_below(place.key(batch_folder));
        place.store.sync();
        return;
    }
    if (fate == Fate::given_up) {
        (void)revert(place, *journal, document_of(place));
        return;
    }
    require_finishable(place, *journal);
    try {
        keep_old_values(place, *journal);
        apply(place, *journal, arrays_locked);
    } catch (const Error& e) {
        const std::string name = place.name();
        throw Error(e.code(),
                    fmt::format("{}: a batch of edits that was recorded before cannot be put in place: {}; once that "
                                "is mended the next opening finishes it",
                                name, e.what()))
            .advising(Action::give_up_batches, "takes it back", name);
    }
}

std::string pending_batch(const PlaceView& place) {
    const auto journal = read_finishable_unlocked(place);
    if (!journal) return "finished by now";
    const auto done = std::ranges::count_if(journal->entries, [&](const Entry& entry) {
        if (entry.kind == Entry::Kind::array) return !batch_pending({place.store, place.key(entry.key)});
        return is_as_left(place, entry);
    });
    if (journal->of_group) return fmt::format("{} of its {} arrays are changed", done, journal->entries.size());
    return fmt::format("{} of its {} changes are in place", done, journal->entries.size());
}

WaysOut ways_out(const PlaceView& place) {
    WaysOut ways;
    const auto works = [&](const auto& check) {
        try {
            return check(), true;
        } catch (const Error& e) {
            if (e.code() != ErrorCode::corrupt && e.code() != ErrorCode::unsupported) throw;
            return false;
        }
    };
    ways.give_up = works([&] {
        unlocked(place, [&] {
            if (const auto journal = read_pending(place)) (void)fate_of(place, *journal);
        });
    });
    ways.finish = ways.give_up && works([&] { (void)read_finishable_unlocked(place); });
    return ways;
}

std::string giving_up_batch(const PlaceView& place) {
    const auto journal = unlocked(place, [&] { return read_pending(place); });
    if (!journal) return "finished by now";
    require_revertible_part(place, *journal);
    require_whole(place, *journal);
    if (journal->of_group) return fmt::format("{} arrays would be as before", journal->entries.size());
    const std::size_t count = journal->gives_up ? journal->entries.size() : way_back(place, *journal).entries.size();
    return fmt::format("{} would be put back or removed", count);
}

std::int64_t give_up_batch(const PlaceRef& place, std::string_view document) {
    auto journal = read_pending(place);
    if (!journal) return 0;
    require_revertible_part(place, *journal);
    require_whole(place, *journal);
    if (journal->of_group) return give_up_group(place, std::move(*journal));
    if (journal->gives_up) {  // an earlier attempt was interrupted
        finish_batch(place);
        return std::ssize(journal->entries);
    }
    return revert(place, *journal, document);
}

std::string set_aside_batch(const PlaceRef& place) {
    // While there is a record of earlier changes, the kept values belong to it, and undo() may need them.
    const std::string undo = place.key(undo_folder);
    const bool kept = !place.store.contains(place.key(undo_record_key)) && !place.store.list(undo).keys.empty();
    const std::string aside = set_aside(place, batch_folder);
    if (kept) (void)set_aside(place, undo_folder);
    place.store.sync();
    return aside;
}

bool discard_batch(const PlaceRef& place) {
    if (!has_batch(place)) return false;
    const auto lock = place.store.try_lock(place.prefix);
    // The batch lives, or was finished meanwhile.
    if (!lock || batch_pending(place) || !has_batch(place)) return false;
    place.store.erase_below(place.key(batch_folder));
    place.store.sync();
    return true;
}

std::vector<std::string> keys_to_come(const PlaceView& place) {
    return unlocked(place, [&] {
        std::vector<std::string> keys;
        const auto journal = read_pending(place);
        if (!journal || journal->gives_up || fate_of(place, *journal) != Fate::takes_effect) return keys;
        for (const Entry& entry : journal->entries) {
            if (entry.kind == Entry::Kind::erase || is_moved(place, *journal, entry)) continue;
            keys.push_back(entry.key);
        }
        return keys;
    });
}

std::string pending_text(const PlaceView& place) {
    const auto journal = read_finishable_unlocked(place);
    return journal ? changes_text(*journal) : "it was finished meanwhile";
}

namespace {

/// What a pending batch changes; nullopt if nothing. Of a part that is given up, the values are the kept ones.
std::optional<Journal> overlay_of(const PlaceView& place) {
    auto journal = read_pending(place);
    if (!journal || journal->of_group) return std::nullopt;
    const Fate fate = fate_of(place, *journal);
    journal->gives_up = false;
    if (fate == Fate::never) return std::nullopt;
    if (fate == Fate::takes_effect) {
        require_finishable(place, *journal);
        return journal;
    }
    Journal back = way_back(place, *journal);
    back.id = journal->id;
    for (Entry& entry : back.entries) {
        entry.stamp = place.store.stamp(kept_key(place.prefix, back.id, entry.number)).value_or(ValueStamp{});
    }
    return back;
}

}  // namespace

Place as_finished(const Place& place) {
    const auto journal = unlocked(place, [&] { return overlay_of(place); });
    if (!journal) return place;
    const std::string_view folder = journal->gives_up ? undo_folder : batch_folder;
    const auto pending = [store = place.store, key = place.key(batch_journal_key), id = journal->id] {
        const auto file = store->open(key);
        const auto now = file ? header_of(*file) : std::nullopt;
        return now && now->id == id;
    };
    return {std::make_shared<StagedStore>(place, place.key(folder), *journal, pending), place.prefix};
}

Place settle_batch(Place place) {
    if (place.store->read_only()) return as_finished(place);
    if (place.store->is_far()) {
        // What lies there of a batch that is not recorded may be that of a program at work.
        if (must_finish_batch(place)) finish_batch(place);
        return place;
    }
    if (!has_batch(place)) return place;
    StoreLock lock;
    try {
        if (!batch_pending(place)) {
            discard_batch(place);
            return place;
        }
        lock = place.store->lock(place.prefix, 0, LockMode::exclusive);
    } catch (const Error& e) {
        // A directory that is not writable, or has no locks, can still be read.
        if (e.code() != ErrorCode::io) throw;
        return as_finished(place);
    }
    finish_batch(place);
    return place;
}

}  // namespace tessera
