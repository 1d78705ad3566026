// undo(): reverts the last batch of edits, or the last changes that an Undoable kept.
//
// Both leave old values in `.tessera/undo`, and a record of which they are: a batch its journal (batch.cpp), other
// changes theirs (kept_changes.cpp). There is one of the two at most, because the later one removes the earlier.
//
// Undoing is a batch, whose staged values are links to the old ones. It first checks that every value is still the one
// that was put there, by size, time and inode, which a rename keeps. If times are too coarse for that, or the value had
// to be copied to another file system, it compares the bytes. Changes of an interrupted command may also not have
// happened; then the old value is still in place, and stays.
#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/edit.h>
#include <tessera/error_text.h>
#include <tessera/group.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array_access.h"
#include "array_state.h"
#include "batch.h"
#include "dialects.h"
#include "directory_store.h"
#include "group_access.h"
#include "group_batch.h"
#include "journal.h"
#include "journal_check.h"
#include "kept_changes.h"
#include "replace_directory.h"
#include "resize.h"

namespace tessera {

namespace {

using Entry = Journal::Entry;

/// A change to be taken back: what was done last at a key, and where the value from before is kept.
struct Done {
    Entry entry;
    std::string kept;         ///< if the entry had an old value
    bool may_not_be = false;  ///< the change may not have happened
};

struct LastChange {
    std::string record;  ///< key of the record
    std::string_view kind;
    std::vector<Done> done;
    Buffer counted = {};            ///< see KeptChanges
    std::uint64_t id = 0;           ///< of a batch
    std::uint32_t group_above = 0;  ///< see Journal
};

std::string changes_key(std::string_view prefix) {
    return join_key(join_key(prefix, undo_folder), changes_name);
}

/// Whether a change replaced the value that the change before it at the same key left, or found.
bool follows(const PlaceView& place, const Done& before, const std::string& kept, bool had_old) {
    const bool nothing = before.entry.kind == Entry::Kind::erase;
    if (!had_old) return nothing || !before.entry.had_old;
    const auto old = place.store.stamp(kept);
    return (!nothing && old == before.entry.stamp) ||
           (before.entry.had_old && old == place.store.stamp(place.key(before.kept)));
}

[[noreturn]] void changed_since(std::string_view name, std::string_view key, std::string_view kind) {
    throw invalid_argument("{}: {} was changed after the {}; taking the {} back would lose that", name, key, kind,
                           kind);
}

/// The changes in the record of an Undoable, one for each key.
LastChange last_changes(const PlaceView& at, const ByteSource& file, const std::string& name) {
    LastChange last{.record = changes_key(at.prefix), .kind = "command", .done = {}};
    KeptChanges read = read_kept_changes(file, at.store.name_of(last.record));
    if (!read.refusal.empty()) {
        throw unsupported("{}: the last change{} cannot be taken back: {}", name,
                          read.what.empty() ? "" : " (" + read.what + ")", read.refusal);
    }
    last.counted = std::move(read.counted);
    std::map<std::string_view, std::size_t> places;
    for (const KeptChange& change : read.changes) {
        Done done{.entry = {.kind = change.erases ? Entry::Kind::erase : Entry::Kind::put,
                            .had_old = change.had_old,
                            .number = 0,
                            .stamp = change.stamp,
                            .key = change.key},
                  .kept = kept_key(at.prefix, read.id, change.number),
                  .may_not_be = true};
        const auto [place, first] = places.emplace(change.key, last.done.size());
        if (first) {
            last.done.push_back(std::move(done));
            continue;
        }
        Done& before = last.done[place->second];
        if (!follows(at, before, done.kept, change.had_old)) changed_since(name, change.key, last.kind);
        before.entry.kind = done.entry.kind;
        before.entry.stamp = done.entry.stamp;
    }
    return last;
}

/// The last change. Throws not_found if there is none.
LastChange last_change(const PlaceView& place, const std::string& name) {
    if (const auto file = place.store.open(changes_key(place.prefix))) return last_changes(place, *file, name);
    const auto journal = journal_in(place, undo_folder);
    if (!journal || journal->of_group) {
        throw not_found(
            "{}: nothing to take back: only the last change can be, and only if its old values are in .tessera/undo",
            name);
    }
    LastChange last{.record = journal_key(place.prefix, undo_folder),
                    .kind = "batch",
                    .done = {},
                    .id = journal->id,
                    .group_above = journal->group_above};
    for (std::size_t i = 0; i < journal->entries.size(); ++i) {
        last.done.push_back({.entry = journal->entries[i], .kept = kept_key(place.prefix, journal->id, i)});
    }
    return last;
}

/// Throws corrupt if the record names anything but parts of the array, because the array may come from an untrusted
/// sender.
void require_own(const PlaceView& place, const LastChange& last) {
    Journal all{.id = 0, .keeps_old = false, .entries = {}};
    for (const Done& done : last.done) {
        all.entries.push_back(done.entry);
        all.entries.back().number = all.entries.size();
    }
    require_own_keys(place, all, place.store.name_of(last.record));
}

/// Whether the value at the key is still the one from before the change.
bool is_as_before(const PlaceView& place, const Done& done) {
    const auto now = place.store.stamp(place.key(done.entry.key));
    return done.entry.had_old ? now && now == place.store.stamp(done.kept) : !now;
}

/// The metadata from before, if the change replaced them.
std::optional<ArrayMetadata> metadata_before(const PlaceView& place, const Dialect& dialect, const LastChange& last) {
    for (const Done& done : last.done) {
        Buffer document;
        if (done.entry.key != dialect.metadata_key || !done.entry.had_old) continue;
        if (place.store.get(done.kept, document, metadata_limit)) return parse_metadata(dialect, place, document);
    }
    return {};
}

/// Whether a key is a chunk outside the grid that the array has once the change is taken back. Growing removes such
/// chunks of other programs, and they stay removed: a batch writes no chunk that is no part of the array.
bool is_stale(const std::optional<ArrayMetadata>& before, std::string_view key) {
    if (!before) return false;
    const auto chunk = before->keys.parse(key, before->shape.rank());
    return chunk && !in_grid(chunk_grid(*before), *chunk);
}

/// Stages the batch that reverts the last change, and returns its journal.
Journal stage_undo(const PlaceRef& place, const Dialect& dialect, const LastChange& last, const std::string& name,
                   std::uint64_t id) {
    Journal journal{.id = id, .keeps_old = true, .entries = {}};
    const auto metadata = metadata_before(place, dialect, last);
    for (std::size_t i = last.done.size(); i-- > 0;) {
        const Entry& done = last.done[i].entry;
        if (last.done[i].may_not_be && is_as_before(place, last.done[i])) continue;
        if (!is_as_left(place, done)) changed_since(name, done.key, last.kind);
        const bool now = done.kind == Entry::Kind::put;
        const bool had_old = done.had_old && !is_stale(metadata, done.key);
        if (!now && !had_old) continue;
        Entry entry{.kind = had_old ? Entry::Kind::put : Entry::Kind::erase,
                    .had_old = now,
                    .number = i,
                    .stamp = {},
                    .key = done.key};
        if (had_old) {
            const std::string& old = last.done[i].kept;
            const std::string staged = staged_key(place.prefix, journal, entry);
            keep_value(place.store, old, staged);
            const auto stamp = place.store.stamp(staged);
            if (!stamp) {
                throw corrupt("{}: {} is missing, the old value of {}; the {} cannot be taken back", name, old,
                              done.key, last.kind);
            }
            entry.stamp = *stamp;
        }
        journal.entries.push_back(std::move(entry));
    }
    sort_batch(journal, dialect.metadata_key);
    return journal;
}

/// Throws invalid_argument if the last change was a batch over a group that still has its record.
void require_own_batch(const PlaceView& place, const LastChange& last, const std::string& name) {
    if (last.group_above == 0) return;
    for (const std::string_view folder : {undo_folder, batch_folder}) {
        try {
            const auto file = open_above(place, last.group_above, journal_key("", folder));
            if (file == nullptr || journal_id(*file) != last.id) continue;
        } catch (const Error& e) {
            if (e.code() == ErrorCode::not_found) return;  // the array has left the group
            throw;
        }
        throw invalid_argument("{}: the last change was a batch over several arrays of the group {}", name,
                               last.group_above == 1 ? "around it" : fmt::format("{} folders above", last.group_above))
            .advising(Action::undo, "of the group takes it back in all of them");
    }
}

/// An undo is described as what it took back with this before it, and an undo of that without it.
constexpr std::string_view undo_word = "undo ";

std::string description_of_undo(const std::optional<KeptForUndo>& kept) {
    const std::string what = kept ? kept->what : "";
    return what.starts_with(undo_word) ? what.substr(undo_word.size()) : std::string(undo_word) + what;
}

/// The description of a batch that undo() made, beside its journal.
std::string description_key(std::string_view prefix, std::uint64_t id) {
    return fmt::format("{}/{:016x}.what", join_key(prefix, undo_folder), id);
}

/// Tells the next undo() what this one is. Before the batch with this id is recorded, so that a failure changes
/// nothing; what is left of it then goes with the next record.
void describe_undo(const PlaceRef& place, std::uint64_t id, const std::string& what) {
    place.store.put(description_key(place.prefix, id), std::as_bytes(std::span(what)));
}

}  // namespace

std::int64_t undo(const Array& array) {
    KeyValueStore& store = *ArrayAccess::state(array)->store;
    const std::string& prefix = ArrayAccess::state(array)->prefix;
    const StoreLock lock = ArrayAccess::state(array)->lock_shape(LockMode::exclusive);
    const LastChange last = last_change({store, prefix}, array.name());
    require_own({store, prefix}, last);
    require_own_batch({store, prefix}, last, array.name());
    const std::string batch = join_key(prefix, batch_folder);
    const std::string what = description_of_undo(kept_for_undo({store, prefix}));
    store.erase_below(batch);
    try {
        Journal journal = stage_undo({store, prefix}, array.dialect(), last, array.name(), new_batch_id());
        if (journal.entries.empty()) {
            store.erase_below(join_key(prefix, undo_folder));
        } else {
            describe_undo({store, prefix}, journal.id, what);
            record_batch({store, prefix}, journal);
        }
        return static_cast<std::int64_t>(journal.entries.size());
    } catch (const Error& e) {
        if (e.code() != ErrorCode::recorded) {
            try {
                store.erase_below(batch);
            } catch (const Error&) {
                // Without a journal it is nothing: the next opening discards it.
            }
        }
        throw;
    }
}

namespace {

/// A document of a group as it was before.
struct OldDocument {
    std::string key;
    bool was_there = false;
    Buffer content = {};
};

/// Throws corrupt if the record names anything but the group's documents, because the group may come from an untrusted
/// sender.
void require_own(const NodeState& group, const LastChange& last) {
    for (const Done& done : last.done) {
        const std::string& key = done.entry.key;
        const bool document = group.dialect != nullptr && key == group.dialect->group_key;
        const bool attributes = group.dialect != nullptr && key == group.dialect->documents.back();
        if ((document || attributes) && (!document || (done.entry.had_old && done.entry.kind == Entry::Kind::put))) {
            continue;
        }
        throw corrupt("{}: the record of changes names {}, which holds no attributes of the group",
                      group.store->name_of(last.record), key);
    }
}

/// The documents to restore. Throws if one of them was changed since.
std::vector<OldDocument> old_documents(const NodeState& group, const LastChange& last) {
    std::vector<OldDocument> old;
    for (const Done& done : last.done) {
        if (done.may_not_be && is_as_before(group, done)) continue;
        if (!is_as_left(group, done.entry)) changed_since(group.name, done.entry.key, last.kind);
        old.push_back({.key = join_key(group.prefix, done.entry.key), .was_there = done.entry.had_old});
        if (!done.entry.had_old || group.store->get(done.kept, old.back().content, metadata_limit)) continue;
        throw corrupt("{}: {} is missing, the old value of {}; the {} cannot be taken back", group.name, done.kept,
                      done.entry.key, last.kind);
    }
    return old;
}

/// Takes back a batch over the arrays of a group. The caller holds the group's lock.
std::int64_t undo_arrays(const NodeState& group, const Journal& batch) {
    KeyValueStore& store = *group.store;
    const LockedNodes locked = lock_arrays_below({store, group.prefix});
    for (const Node& node : locked.nodes) finish_batch({store, node.path});
    const std::uint64_t id = new_batch_id();
    std::vector<BatchPart> parts;
    const auto drop = [&] {
        for (const Journal::Entry& part : batch.entries) {
            drop_batch({store, join_key(group.prefix, part.key)});
        }
    };
    std::int64_t count = 0;
    try {
        for (const Journal::Entry& part : batch.entries) {
            const std::string array = join_key(group.prefix, part.key);
            const auto node = std::ranges::find(locked.nodes, array, &Node::path);
            if (node == locked.nodes.end()) changed_since(group.name, part.key, "batch");
            const std::string name = store.name_of(array);
            const auto record = journal_in({store, array}, undo_folder);
            if (!record || record->id != batch.id) changed_since(group.name, part.key, "batch");
            const LastChange last = last_change({store, array}, name);
            require_own({store, array}, last);
            store.erase_below(join_key(array, batch_folder));
            parts.push_back({part.key, stage_undo({store, array}, *node->dialect, last, name, id)});
            count += std::ssize(parts.back().journal.entries);
        }
        std::erase_if(parts, [](const BatchPart& part) { return part.journal.entries.empty(); });
        const std::string what = description_of_undo(kept_for_undo({store, group.prefix}));
        if (!parts.empty()) {
            describe_undo({store, group.prefix}, id, what);
            record_group_batch({store, group.prefix}, parts);
        }
    } catch (const Error& e) {
        if (e.code() != ErrorCode::recorded) {
            try {
                drop();
            } catch (const Error&) {
                // Without a journal it is nothing: the next opening discards it.
            }
        }
        throw;
    }
    return count;
}

}  // namespace

std::int64_t undo(const Group& group) {
    const NodeState& state = *GroupAccess::state(group);
    const StoreLock lock = state.lock_shape(LockMode::exclusive);
    const auto file = state.store->open(changes_key(state.prefix));
    if (const auto batch = file ? std::nullopt : journal_in(state, undo_folder)) {
        require_own_arrays(state, *batch, join_key(state.name, ".tessera/undo/journal"));
        return undo_arrays(state, *batch);
    }
    if (!file) {
        throw not_found(
            "{}: nothing to take back: of a group only the last batch over its arrays or change of its "
            "attributes can be, and only if its old values are in .tessera/undo; each array in it has its own",
            state.name);
    }
    const LastChange last = last_changes(state, *file, state.name);
    require_own(state, last);
    // All are read before anything is changed, because the first change replaces the record and the values that it
    // kept.
    const std::vector<OldDocument> old = old_documents(state, last);
    const std::string what = description_of_undo(kept_for_undo(state));
    const auto keeper = keep_changes(state, what, true);
    for (const OldDocument& document : old) {
        if (document.was_there) {
            state.store->put(document.key, document.content.span());
        } else {
            state.store->erase(document.key);
        }
    }
    state.store->sync();
    return std::ssize(old);
}

namespace {

/// The description that undo() left of the batch with this journal; empty if there is none, or it cannot be read.
std::string described_undo(const PlaceView& place, const ByteSource& journal) {
    try {
        constexpr std::uint64_t most = std::uint64_t{64} << 10;
        const auto id = journal_id(journal);
        Buffer text;
        if (!id || !place.store.get(description_key(place.prefix, *id), text, most)) return {};
        return {reinterpret_cast<const char*>(text.data()), text.size()};
    } catch (const Error&) {
        return {};
    }
}

}  // namespace

std::optional<KeptForUndo> kept_for_undo(const PlaceView& place) {
    std::optional<KeptForUndo> kept;
    place.store.for_each(place.key(undo_folder), [&](std::string_view name, const auto& size) {
        if (!kept) kept.emplace();
        kept->bytes += size();
        if (name != changes_name && name != "journal" && !name.ends_with(".what")) ++kept->values;
    });
    if (!kept) return kept;
    if (const auto file = place.store.open(changes_key(place.prefix))) {
        kept->what = description_of(*file);
    } else if (const auto batch = place.store.open(journal_key(place.prefix, undo_folder))) {
        kept->what = described_undo(place, *batch);
    }
    return kept;
}

// ---- Undoable

struct Undoable::State {
    State(std::shared_ptr<NodeState> n, const UndoOptions& options)
        : node(std::move(n)), keeper(keep_changes(*node, options.what, options.keep_old)) {}

    std::shared_ptr<NodeState> node;
    std::shared_ptr<const ChangeKeeper> keeper;  ///< ends before the store
};

Undoable::Undoable(const Array& array, const UndoOptions& options)
    : state_(std::make_unique<State>(ArrayAccess::state(array), options)) {}

Undoable::Undoable(const Group& group, const UndoOptions& options)
    : state_(std::make_unique<State>(GroupAccess::state(group), options)) {}

bool Undoable::has_kept() const {
    return state_->keeper != nullptr && state_->keeper->has_kept();
}

Undoable::~Undoable() = default;
Undoable::Undoable(Undoable&&) noexcept = default;
Undoable& Undoable::operator=(Undoable&&) noexcept = default;

}  // namespace tessera
