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
#include <tessera/stop.h>

#include <algorithm>
#include <random>
#include <utility>

#include "copy_bytes.h"
#include "dialects.h"
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

std::optional<Journal> last_record(const KeyValueStore& store, std::string_view prefix) {
    const std::string key = join_key(prefix, undo_record_key);
    const auto file = store.open(key);
    if (file == nullptr) return std::nullopt;
    return read_record(*file, join_key(store.name(), key));
}

void keep_value(KeyValueStore& store, const std::string& from, const std::string& key) {
    if (store.link(key, store, from) || store.contains(key)) return;
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

/// The journal of a batch that is to take effect; nullopt if there is none. Throws corrupt if no batch of this array
/// could have recorded it, because the array may come from an untrusted sender.
std::optional<Journal> read_pending(const KeyValueStore& store, std::string_view prefix) {
    const std::string key = join_key(prefix, batch_journal_key);
    const auto file = store.open(key);
    if (file == nullptr) return std::nullopt;
    const std::string name = join_key(store.name(), key);
    Journal journal = read_journal(*file, name);
    require_applicable(store, prefix, join_key(prefix, batch_folder), journal, name);
    return journal;
}

namespace {

/// Calls body(), which looks at the batch without the lock: somebody may finish it meanwhile, so that values are
/// missing.
template <class Body>
auto unlocked(const KeyValueStore& store, std::string_view prefix, const Body& body) {
    const auto journal = [&] { return store.stamp(join_key(prefix, batch_journal_key)); };
    return retry_when_replaced(
        journal, [&](const auto&) { return body(); },
        [&](const auto& before, const Error&) { return journal() != before; });
}

std::optional<Journal> read_pending_unlocked(const KeyValueStore& store, std::string_view prefix) {
    return unlocked(store, prefix, [&] { return read_pending(store, prefix); });
}

}  // namespace

/// Whether an entry's value is at its key, as far as the staged values tell.
bool is_moved(const KeyValueStore& store, std::string_view prefix, const Journal& journal, const Entry& entry) {
    return entry.kind == Entry::Kind::put && !store.contains(staged_key(prefix, journal, entry));
}

namespace {

void keep_old_values(KeyValueStore& store, std::string_view prefix, const Journal& journal) {
    if (!journal.keeps_old) return;
    for (const Entry& entry : journal.entries) {
        if (!entry.had_old || is_moved(store, prefix, journal, entry)) continue;
        keep_value(store, join_key(prefix, entry.key), kept_key(prefix, journal.id, entry.number));
    }
}

/// Removes the kept old values of a batch that will not happen.
void forget_old_values(KeyValueStore& store, std::string_view prefix, const Journal& journal) {
    if (!journal.keeps_old) return;
    for (const Entry& entry : journal.entries) {
        if (entry.had_old) store.erase(kept_key(prefix, journal.id, entry.number));
    }
}

/// Puts a recorded batch in place, after its old values were kept.
void put_in_place(KeyValueStore& store, std::string_view prefix, const Journal& journal, bool arrays_locked) {
    std::size_t in_place = 0;
    try {
        std::vector<std::string> erased;
        for (const Entry& entry : journal.entries) {
            if (entry.kind == Entry::Kind::erase) erased.push_back(join_key(prefix, entry.key));
        }
        ErasedNotes(store, prefix).add(erased);
        for (const Entry& entry : journal.entries) {
            const std::string key = join_key(prefix, entry.key);
            if (entry.kind == Entry::Kind::erase) {
                store.erase(key);
            } else if (entry.kind == Entry::Kind::array) {
                if (!batch_pending(store, key)) continue;
                const StoreLock lock = arrays_locked ? StoreLock() : store.lock(key, 0, LockMode::exclusive);
                finish_batch(store, key);
            } else {
                store.replace(staged_key(prefix, journal, entry), key);  // does nothing if already done
            }
            ++in_place;
        }
    } catch (const Error& e) {
        throw e.within(fmt::format("{} of its {} changes are in place", in_place, journal.entries.size()));
    }
}

void apply(KeyValueStore& store, std::string_view prefix, const Journal& journal, bool arrays_locked) {
    const FinishScope finishes;  // what is recorded
    const std::string pending = join_key(prefix, batch_journal_key);
    const std::string record = join_key(prefix, undo_record_key);
    store.erase(record);  // from now on it is outdated
    store.sync();
    put_in_place(store, prefix, journal, arrays_locked);
    store.sync();
    if (journal.keeps_old) {
        store.replace(pending, record);
    } else {
        store.erase(pending);
    }
    store.sync();
    store.erase_below(join_key(prefix, batch_folder));
    // Old values of earlier changes.
    const std::string undo = join_key(prefix, undo_folder);
    const std::string own = fmt::format("{:016x}.", journal.id);
    for (const std::string& name : store.list(undo).keys) {
        const std::string key = join_key(undo, name);
        if (!name.starts_with(own) && key != record) store.erase(key);
    }
    store.sync();
}

}  // namespace

std::uint64_t new_batch_id() {
    std::random_device random;
    return std::uint64_t{random()} << 32 | random();
}

namespace {

/// The stamp of a value, of the same kind as `like`.
std::optional<ValueStamp> stamp_like(const KeyValueStore& store, const std::string& key, const ValueStamp& like) {
    const auto stamp = store.stamp(key);
    if (!stamp || stamp->by_content == like.by_content || !like.by_content) return stamp;
    const auto value = store.open(key);
    return value ? std::optional(content_stamp(*value)) : std::nullopt;
}

}  // namespace

bool is_as_left(const KeyValueStore& store, std::string_view prefix, const Entry& entry) {
    const std::string key = join_key(prefix, entry.key);
    if (entry.kind == Entry::Kind::erase) return !store.contains(key);
    return stamp_like(store, key, entry.stamp) == entry.stamp;
}

namespace {

/// Checks every target of the batch and keeps the old values. Its staged values are in place.
void prepare(KeyValueStore& store, std::string_view prefix, Journal& journal) {
    for (Entry& entry : journal.entries) {
        if (entry.kind == Entry::Kind::array) continue;
        const auto target = store.prepare_replace(join_key(prefix, entry.key));
        entry.had_old = target.exists;
        if (entry.kind != Entry::Kind::put || !target.crosses) continue;
        if (const auto value = store.open(staged_key(prefix, journal, entry))) entry.stamp = content_stamp(*value);
    }
    keep_old_values(store, prefix, journal);
    store.sync();
}

/// Whether this batch is the recorded one; also true if that is unknown.
bool is_recorded(const KeyValueStore& store, std::string_view prefix, const Journal& journal) {
    try {
        const auto file = store.open(join_key(prefix, batch_journal_key));
        return file != nullptr && read_journal(*file, file->name()).id == journal.id;
    } catch (const Error&) {
        return true;
    }
}

}  // namespace

/// As forget_old_values, before an error is thrown.
void try_to_forget(KeyValueStore& store, std::string_view prefix, const Journal& journal) {
    try {
        forget_old_values(store, prefix, journal);
    } catch (const Error&) {
        // The next batch does it.
    }
}

/// Does all that comes before a journal is written; returns its bytes. After an error nothing has changed.
Buffer prepared(KeyValueStore& store, std::string_view prefix, Journal& journal) {
    try {
        store.require_direct(join_key(prefix, undo_record_key));
        prepare(store, prefix, journal);
    } catch (const Error& e) {
        try_to_forget(store, prefix, journal);
        throw e.within(
            fmt::format("{}: the batch cannot be applied; nothing was changed", join_key(store.name(), prefix)));
    }
    Buffer bytes = encode_journal(journal);
    if (bytes.size() > journal_limit) {
        try_to_forget(store, prefix, journal);
        throw over_budget("{}: {} values change, too many for one batch; use several", join_key(store.name(), prefix),
                          journal.entries.size());
    }
    return bytes;
}

void record_batch(KeyValueStore& store, std::string_view prefix, Journal& journal) {
    const Buffer bytes = prepared(store, prefix, journal);
    bool begun = false;
    bool recorded = false;
    try {
        const auto file = store.create(join_key(prefix, batch_journal_key));
        file->append(bytes);
        begun = true;
        file->finish();
        recorded = true;
        store.sync();
        apply(store, prefix, journal, true);
    } catch (const std::exception& e) {
        if (!begun || (!recorded && !is_recorded(store, prefix, journal))) {
            try_to_forget(store, prefix, journal);
            throw;
        }
        const std::string name = join_key(store.name(), prefix);
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
Journal way_back(const KeyValueStore& store, std::string_view prefix, const Journal& journal) {
    Journal back{.id = new_batch_id(), .keeps_old = false, .gives_up = true};
    for (auto at = journal.entries.rbegin(); at != journal.entries.rend(); ++at) {
        const Entry& entry = *at;
        const std::string key = join_key(prefix, entry.key);
        const auto now = store.stamp(key);
        const std::string kept = kept_key(prefix, journal.id, entry.number);
        if (entry.had_old ? store.contains(kept) && now == store.stamp(kept) : !now) continue;  // as before the batch
        if (entry.had_old && !store.contains(kept)) {
            if (!is_moved(store, prefix, journal, entry) && !is_as_left(store, prefix, entry)) continue;
            throw corrupt("{}: the batch cannot be taken back: the old value of {} is not known",
                          join_key(store.name(), prefix), entry.key);
        }
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
std::string set_aside(KeyValueStore& store, std::string_view prefix, std::string_view folder) {
    const std::string name(folder.substr(folder.rfind('/') + 1));
    for (int n = 1;; ++n) {
        const std::string aside = join_key(prefix, fmt::format(".tessera/damaged/{}.{}", name, n));
        try {
            store.move(join_key(prefix, folder), aside);
            return aside;
        } catch (const Error& e) {
            if (e.code() != ErrorCode::already_exists) throw;
        }
    }
}

/// Whether there are files of a batch: living, committed, or left behind.
bool has_batch(const KeyValueStore& store, std::string_view prefix) {
    const Listing listing = store.list(join_key(prefix, batch_folder));
    return !listing.keys.empty() || !listing.prefixes.empty();
}

}  // namespace

namespace {

/// Reverts a batch of an array, which may be a part of a batch that is given up. Returns the number of changes.
std::int64_t revert(KeyValueStore& store, std::string_view prefix, const Journal& journal, std::string_view document) {
    Journal back = way_back(store, prefix, journal);
    for (Entry& entry : back.entries) {
        if (entry.kind == Entry::Kind::erase) continue;
        const std::string staged = staged_key(prefix, back, entry);
        keep_value(store, kept_key(prefix, journal.id, entry.number), staged);
        entry.stamp = store.stamp(staged).value_or(ValueStamp{});
    }
    sort_batch(back, document);
    record_batch(store, prefix, back);
    return std::ssize(back.entries);
}

std::string_view document_of(const KeyValueStore& store, std::string_view prefix) {
    const Dialect* const dialect = probe_dialect(store, prefix);
    return dialect == nullptr ? "" : dialect->metadata_key;
}

}  // namespace

bool batch_pending(const KeyValueStore& store, std::string_view prefix) {
    return store.contains(join_key(prefix, batch_journal_key));
}

bool batch_takes_effect(const KeyValueStore& store, std::string_view prefix) {
    return unlocked(store, prefix, [&] {
        const auto journal = read_pending(store, prefix);
        return journal && fate_of(store, prefix, *journal) != Fate::never;
    });
}

void finish_batch(KeyValueStore& store, std::string_view prefix, bool arrays_locked) {
    const auto journal = read_pending(store, prefix);
    if (!journal) return;
    const Fate fate = fate_of(store, prefix, *journal);
    if (fate == Fate::never) {
        retract(store, prefix, *journal);
        store.erase_below(join_key(prefix, batch_folder));
        store.sync();
        return;
    }
    if (fate == Fate::given_up) {
        (void)revert(store, prefix, *journal, document_of(store, prefix));
        return;
    }
    try {
        keep_old_values(store, prefix, *journal);
        apply(store, prefix, *journal, arrays_locked);
    } catch (const Error& e) {
        const std::string name = join_key(store.name(), prefix);
        throw Error(e.code(),
                    fmt::format("{}: a batch of edits that was recorded before cannot be put in place: {}; once that "
                                "is mended the next opening finishes it",
                                name, e.what()))
            .advising(Action::give_up_batches, "takes it back", name);
    }
}

std::string pending_batch(const KeyValueStore& store, std::string_view prefix) {
    const auto journal = read_pending_unlocked(store, prefix);
    if (!journal) return "finished by now";
    const auto done = std::ranges::count_if(journal->entries, [&](const Entry& entry) {
        if (entry.kind == Entry::Kind::array) return !batch_pending(store, join_key(prefix, entry.key));
        return is_as_left(store, prefix, entry);
    });
    if (journal->of_group) return fmt::format("{} of its {} arrays are changed", done, journal->entries.size());
    return fmt::format("{} of its {} changes are in place", done, journal->entries.size());
}

std::string giving_up_batch(const KeyValueStore& store, std::string_view prefix) {
    const auto journal = read_pending_unlocked(store, prefix);
    if (!journal) return "finished by now";
    require_whole(store, prefix, *journal);
    if (journal->of_group) return fmt::format("{} arrays would be as before", journal->entries.size());
    const std::size_t count =
        journal->gives_up ? journal->entries.size() : way_back(store, prefix, *journal).entries.size();
    return fmt::format("{} would be put back or removed", count);
}

std::int64_t give_up_batch(KeyValueStore& store, std::string_view prefix, std::string_view document) {
    auto journal = read_pending(store, prefix);
    if (!journal) return 0;
    require_whole(store, prefix, *journal);
    if (journal->of_group) return give_up_group(store, prefix, std::move(*journal));
    if (journal->gives_up) {  // an earlier attempt was interrupted
        finish_batch(store, prefix);
        return std::ssize(journal->entries);
    }
    return revert(store, prefix, *journal, document);
}

std::string set_aside_batch(KeyValueStore& store, std::string_view prefix) {
    // While there is a record of earlier changes, the kept values belong to it, and undo() may need them.
    const std::string undo = join_key(prefix, undo_folder);
    const bool kept = !store.contains(join_key(prefix, undo_record_key)) && !store.list(undo).keys.empty();
    const std::string aside = set_aside(store, prefix, batch_folder);
    if (kept) (void)set_aside(store, prefix, undo_folder);
    store.sync();
    return aside;
}

bool discard_batch(KeyValueStore& store, std::string_view prefix) {
    if (!has_batch(store, prefix)) return false;
    const auto lock = store.try_lock(prefix);
    // The batch lives, or was finished meanwhile.
    if (!lock || batch_pending(store, prefix) || !has_batch(store, prefix)) return false;
    store.erase_below(join_key(prefix, batch_folder));
    store.sync();
    return true;
}

std::string pending_text(const KeyValueStore& store, std::string_view prefix) {
    const auto journal = read_pending_unlocked(store, prefix);
    return journal ? changes_text(*journal) : "it was finished meanwhile";
}

namespace {

/// What a pending batch changes; nullopt if nothing. Of a part that is given up, the values are the kept ones.
std::optional<Journal> overlay_of(const KeyValueStore& store, std::string_view prefix) {
    auto journal = read_pending(store, prefix);
    if (!journal || journal->of_group) return std::nullopt;
    const Fate fate = fate_of(store, prefix, *journal);
    journal->gives_up = false;
    if (fate == Fate::takes_effect) return journal;
    if (fate == Fate::never) return std::nullopt;
    Journal back = way_back(store, prefix, *journal);
    back.id = journal->id;
    for (Entry& entry : back.entries) {
        entry.stamp = store.stamp(kept_key(prefix, back.id, entry.number)).value_or(ValueStamp{});
    }
    return back;
}

/// The store with a pending batch laid over it, for reading only.
std::shared_ptr<KeyValueStore> overlaid(std::shared_ptr<KeyValueStore> store, std::string_view prefix) {
    const auto journal = unlocked(*store, prefix, [&] { return overlay_of(*store, prefix); });
    if (!journal) return store;
    const std::string_view folder = journal->gives_up ? undo_folder : batch_folder;
    return std::make_shared<StagedStore>(store, std::string(prefix), join_key(prefix, folder), *journal,
                                         [store, key = join_key(prefix, batch_journal_key), id = journal->id] {
                                             const auto file = store->open(key);
                                             const auto now = file ? header_of(*file) : std::nullopt;
                                             return now && now->id == id;
                                         });
}

}  // namespace

std::shared_ptr<KeyValueStore> settle_batch(std::shared_ptr<KeyValueStore> store, std::string_view prefix) {
    if (store->read_only()) return overlaid(std::move(store), prefix);
    if (!has_batch(*store, prefix)) return store;
    StoreLock lock;
    try {
        if (!batch_pending(*store, prefix)) {
            discard_batch(*store, prefix);
            return store;
        }
        lock = store->lock(prefix, 0, LockMode::exclusive);
    } catch (const Error& e) {
        // A directory that is not writable, or has no locks, can still be read.
        if (e.code() != ErrorCode::io) throw;
        return overlaid(std::move(store), prefix);
    }
    finish_batch(*store, prefix);
    return store;
}

}  // namespace tessera
