// Batches of edits: all or nothing.
//
// How it works
// ------------
// A batch holds the array's shape lock exclusively, so that no other writer changes anything meanwhile. Its writes go
// through a StagedStore, which keeps every new value as a file of its own in `.tessera/batch/`, named by a number, and
// every erasure in memory. Then commit():
//
//   1. makes the staged values durable;
//   2. writes the journal `.tessera/batch/journal`, which lists them (journal.cpp): a redo journal. The rename that
//      gives it its name is the moment at which the batch happens. Before it nothing has changed, after it everything
//      that is needed to go on is on the disk;
//   3. applies it: each old value is kept as `.tessera/undo/ID.N`, a hard link; when all are, and durable, the staged
//      values are renamed over their keys; chunks first, metadata next, erasures last;
//   4. renames the journal to `.tessera/undo/journal`: the batch is over, and the same list now says how to undo it.
//
// Whoever comes after a crash finds either no journal, and discards what is staged, or the journal, and does step 3
// again from the beginning: a staged value that is no more was already renamed, an old value that is kept stays. Both
// are done under the shape lock, which a living batch holds; when an array is opened, and by every writer once it has
// the lock, for another program may have crashed since the array was opened. Before a journal is applied it is checked
// (journal_check.cpp): an array that somebody sent may hold any.
//
// Opened for reading only, nothing is finished: the changes are laid over what is there (StagedStore again). So it is
// where the lock cannot be had because the directory cannot be written.
//
// undo() is a batch too: its staged values are the links to the old ones. It first looks whether every value is still
// the one that the batch put there (size, time and inode, which a rename keeps).
#include "batch.h"

#include <fmt/format.h>
#include <tessera/edit.h>
#include <tessera/error.h>
#include <tessera/parallel.h>

#include <random>

#include "array_state.h"
#include "copy_bytes.h"
#include "journal.h"
#include "journal_check.h"
#include "staged_store.h"

namespace tessera {

namespace {

using Entry = Journal::Entry;

constexpr std::string_view batch_folder = ".tessera/batch";
constexpr std::string_view undo_folder = ".tessera/undo";
constexpr std::uint64_t journal_limit = std::uint64_t{1} << 30;  // at least ten million changes

std::string journal_key(std::string_view prefix, std::string_view folder) {
    return fmt::format("{}/journal", join_key(prefix, folder));
}

/// The journal in a folder, or nothing.
std::optional<Journal> read_journal(const KeyValueStore& store, std::string_view prefix, std::string_view folder) {
    const std::string key = journal_key(prefix, folder);
    Buffer bytes;
    if (!store.get(key, bytes, journal_limit)) return std::nullopt;
    return decode_journal(bytes, join_key(store.name(), key));
}

/// The journal of a batch that is to take effect, or nothing. An array may have been sent by somebody: throws corrupt
/// where it says what no batch of this array could have recorded.
std::optional<Journal> read_pending(const KeyValueStore& store, std::string_view prefix) {
    auto journal = read_journal(store, prefix, batch_folder);
    if (journal) {
        require_applicable(store, prefix, join_key(prefix, batch_folder), *journal,
                           join_key(store.name(), journal_key(prefix, batch_folder)));
    }
    return journal;
}

/// The same for who has no lock: the batch may be finished while it is looked at, and what was staged then be missing.
std::optional<Journal> read_pending_unlocked(const KeyValueStore& store, std::string_view prefix) {
    constexpr int tries = 10;
    for (int n = 0;; ++n) {
        const auto before = store.stamp(journal_key(prefix, batch_folder));
        try {
            return read_pending(store, prefix);
        } catch (const Error&) {
            if (n == tries || store.stamp(journal_key(prefix, batch_folder)) == before) throw;
        }
    }
}

/// Makes `key` what `from` is, without a copy where that can be. What is there stays.
void keep(KeyValueStore& store, const std::string& from, const std::string& key) {
    if (store.link(key, store, from) || store.stamp(key)) return;
    if (const auto value = store.open(from)) copy_bytes(*value, store, key);
}

void apply(KeyValueStore& store, std::string_view prefix, const Journal& journal) {
    const std::string batch = join_key(prefix, batch_folder);
    const std::string undo = join_key(prefix, undo_folder);
    store.erase(journal_key(prefix, undo_folder));  // from now on it describes what is no more
    const auto staged_key = [&](const Entry& entry) { return fmt::format("{}/{}", batch, entry.number); };
    const auto is_done = [&](const Entry& entry) {
        return entry.kind == Entry::Kind::put && !store.stamp(staged_key(entry));
    };
    std::size_t in_place = 0;
    try {
        for (std::size_t i = 0; journal.keeps_old && i < journal.entries.size(); ++i) {
            const Entry& entry = journal.entries[i];
            if (!entry.had_old || is_done(entry)) continue;
            keep(store, join_key(prefix, entry.key), fmt::format("{}/{:016x}.{}", undo, journal.id, i));
        }
        if (journal.keeps_old) store.sync();  // before the names that they have now are gone
        for (const Entry& entry : journal.entries) {
            const std::string key = join_key(prefix, entry.key);
            if (entry.kind == Entry::Kind::erase) {
                store.erase(key);
            } else {
                store.replace(staged_key(entry), key);  // nothing where it is done
            }
            ++in_place;
        }
    } catch (const Error& e) {
        throw Error(e.code(), fmt::format("{}: the batch is recorded, but only {} of its {} changes are in place; "
                                          "the next opening goes on with it: {}",
                                          join_key(store.name(), prefix), in_place, journal.entries.size(), e.what()));
    }
    store.sync();
    if (journal.keeps_old) {
        store.replace(journal_key(prefix, batch_folder), journal_key(prefix, undo_folder));
    } else {
        store.erase(journal_key(prefix, batch_folder));
    }
    store.sync();
    store.erase_below(batch);
    // Old values of batches before this one.
    const std::string own = fmt::format("{:016x}.", journal.id);
    for (const std::string& name : store.list(undo).keys) {
        if (!name.starts_with(own) && (name != "journal" || !journal.keeps_old)) store.erase(join_key(undo, name));
    }
    store.sync();
}

std::uint64_t new_id() {
    std::random_device random;
    return std::uint64_t{random()} << 32 | random();
}

/// Records a batch, at which it happens, and applies it. Its staged values are in place.
void record(KeyValueStore& store, std::string_view prefix, const Journal& journal) {
    store.require_direct(journal_key(prefix, undo_folder));
    const Buffer bytes = encode_journal(journal);
    if (bytes.size() > journal_limit) {
        throw over_budget(fmt::format("{}: {} values change, too many for one batch; use several",
                                      join_key(store.name(), prefix), journal.entries.size()));
    }
    store.sync();
    store.put(journal_key(prefix, batch_folder), bytes);
    store.sync();
    apply(store, prefix, journal);
}

/// batch_pending(); yes too where that cannot be found out.
bool may_be_pending(const KeyValueStore& store, std::string_view prefix) {
    try {
        return batch_pending(store, prefix);
    } catch (const Error&) {
        return true;
    }
}

/// Whether there is anything of a batch: one that lives, was committed, or was left behind.
bool has_batch(const KeyValueStore& store, std::string_view prefix) {
    const Listing listing = store.list(join_key(prefix, batch_folder));
    return !listing.keys.empty() || !listing.prefixes.empty();
}

}  // namespace

bool batch_pending(const KeyValueStore& store, std::string_view prefix) {
    return store.stamp(journal_key(prefix, batch_folder)).has_value();
}

void finish_batch(KeyValueStore& store, std::string_view prefix) {
    if (const auto journal = read_pending(store, prefix)) apply(store, prefix, *journal);
}

bool discard_batch(KeyValueStore& store, std::string_view prefix) {
    if (!has_batch(store, prefix)) return false;
    const auto lock = store.try_lock(prefix);
    // It lives, or was finished meanwhile.
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

/// The store with a pending batch laid over it, for reading only.
std::shared_ptr<KeyValueStore> overlaid(std::shared_ptr<KeyValueStore> store, std::string_view prefix) {
    const auto journal = read_pending_unlocked(*store, prefix);
    if (!journal) return store;
    return std::make_shared<StagedStore>(store, std::string(prefix), join_key(prefix, batch_folder), *journal,
                                         [store, place = std::string(prefix)] { return batch_pending(*store, place); });
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
        // A directory that cannot be written, or that has no locks: it can still be read.
        if (e.code() != ErrorCode::io) throw;
        return overlaid(std::move(store), prefix);
    }
    finish_batch(*store, prefix);
    return store;
}

// ---- Edit

struct Edit::State {
    std::shared_ptr<KeyValueStore> store;
    std::string prefix;
    EditOptions options;
    StoreLock lock;
    std::shared_ptr<StagedStore> staged;
    std::optional<Array> array;
    bool over = false;
};

Edit::Edit(const Array& array, const EditOptions& options) : state_(std::make_unique<State>()) {
    state_->store = array.state_->store;
    state_->prefix = array.state_->prefix;
    state_->options = options;
    if (!array.state_->published) {
        throw invalid_argument(fmt::format("{}: an array that is not complete yet has no batches", array.name()));
    }
    state_->lock = array.state_->lock_shape(LockMode::exclusive);
    const std::string folder = join_key(state_->prefix, batch_folder);
    state_->store->erase_below(folder);  // of a batch that never happened
    state_->staged = std::make_shared<StagedStore>(state_->store, state_->prefix, folder);
    state_->array = Array::open_settled(state_->staged, state_->prefix);
}

Edit::~Edit() {
    if (!state_ || state_->over) return;
    try {
        state_->array.reset();
        state_->store->erase_below(join_key(state_->prefix, batch_folder));
    } catch (const Error&) {
        // Without a journal it is nothing: the next opening discards it.
    }
}

Edit::Edit(Edit&&) noexcept = default;
Edit& Edit::operator=(Edit&&) noexcept = default;

Array& Edit::array() {
    if (state_->over) throw invalid_argument(fmt::format("{}: the batch is over", state_->store->name()));
    return *state_->array;
}

std::int64_t Edit::commit() {
    (void)array();
    const std::string_view document = state_->array->dialect().metadata_key;
    const Journal journal{
        .id = new_id(), .keeps_old = state_->options.keep_old, .entries = state_->staged->changes(document)};
    if (!journal.entries.empty()) {
        try {
            record(*state_->store, state_->prefix, journal);
        } catch (...) {
            // Then what is staged is still needed.
            state_->over = may_be_pending(*state_->store, state_->prefix);
            throw;
        }
    }
    state_->over = true;
    state_->store->erase_below(join_key(state_->prefix, batch_folder));
    state_->lock.unlock();
    return static_cast<std::int64_t>(journal.entries.size());
}

std::int64_t undo(const Array& array) {
    KeyValueStore& store = *array.state_->store;
    const std::string& prefix = array.state_->prefix;
    const StoreLock lock = array.state_->lock_shape(LockMode::exclusive);
    const auto last = read_journal(store, prefix, undo_folder);
    if (!last) {
        throw not_found(
            fmt::format("{}: no batch of edits to take back: only the last one can be, and only with what "
                        "it kept in .tessera/undo",
                        array.name()));
    }
    require_own_keys(store, prefix, *last, join_key(store.name(), journal_key(prefix, undo_folder)));
    const std::string batch = join_key(prefix, batch_folder);
    store.erase_below(batch);
    Journal journal{.id = new_id(), .keeps_old = true, .entries = {}};
    for (std::size_t i = last->entries.size(); i-- > 0;) {
        const Entry& done = last->entries[i];
        const std::string key = join_key(prefix, done.key);
        const auto now = store.stamp(key);
        const bool untouched = done.kind == Entry::Kind::erase ? !now : now && *now == done.stamp;
        if (!untouched) {
            throw invalid_argument(fmt::format(
                "{}: {} was changed after the batch; taking the batch back would lose that", array.name(), done.key));
        }
        if (!now && !done.had_old) continue;
        Entry entry{.kind = done.had_old ? Entry::Kind::put : Entry::Kind::erase,
                    .had_old = now.has_value(),
                    .number = i,
                    .stamp = {},
                    .key = done.key};
        if (done.had_old) {
            const std::string old = fmt::format("{}/{:016x}.{}", join_key(prefix, undo_folder), last->id, i);
            const std::string staged = fmt::format("{}/{}", batch, i);
            keep(store, old, staged);
            const auto stamp = store.stamp(staged);
            if (!stamp) {
                throw corrupt(fmt::format("{}: {} is missing, the old value of {}; the batch cannot be taken back",
                                          array.name(), old, done.key));
            }
            entry.stamp = *stamp;
        }
        journal.entries.push_back(std::move(entry));
    }
    // As in Edit: values, then what says what there is, then erasures.
    const std::string_view document = array.dialect().metadata_key;
    std::ranges::stable_sort(journal.entries, {}, [&](const Entry& e) {
        return e.kind == Entry::Kind::erase ? 2 : e.key == document ? 1 : 0;
    });
    record(store, prefix, journal);
    return static_cast<std::int64_t>(journal.entries.size());
}

}  // namespace tessera
