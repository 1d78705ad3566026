// undo(): reverts the last batch of edits, or the last changes that an Undoable kept.
//
// Both leave old values in `.tessera/undo`, and one record of which they are (journal.cpp): a batch the journal that
// made it happen, other changes what a ChangeKeeper noted. The later one replaces it.
//
// Undoing is a batch, whose staged values are links to the old ones. It first checks that every value is still the new
// one. Size, time and inode tell, because a rename keeps them. If times are too coarse for that, or the value had to be
// copied to another file system, it compares the bytes. Changes of an interrupted command may also not have happened;
// then the old value is still in place, and stays.
//
// The kept old values are compared in the same way with what they were when they were kept, before anything is changed.
// Bits that rot without a change of size or time cannot be seen: for that a sum of each old value would be needed, and
// so every write would have to read what it replaces.
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
    std::string_view kind;
    std::vector<Done> done;
    std::string what;
    std::uint64_t id = 0;
    std::uint32_t group_above = 0;  ///< see Journal
    Buffer counted = {};            ///< see Journal
};

std::string record_name(const PlaceView& place) {
    return place.name_of(undo_record_key);
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

/// The changes in a record, one for each key.
LastChange last_change(const PlaceView& at, Journal record, const std::string& name) {
    if (!record.refusal.empty()) {
        throw unsupported("{}: the last change{} cannot be taken back: {}", name,
                          record.what.empty() ? "" : " (" + record.what + ")", record.refusal);
    }
    LastChange last{.kind = record.of_command ? "command" : "batch",
                    .done = {},
                    .what = std::move(record.what),
                    .id = record.id,
                    .group_above = record.group_above,
                    .counted = std::move(record.counted)};
    std::map<std::string_view, std::size_t> places;
    for (const Entry& entry : record.entries) {
        Done done{
            .entry = entry, .kept = kept_key(at.prefix, record.id, entry.number), .may_not_be = record.of_command};
        const auto [place, first] = places.emplace(entry.key, last.done.size());
        if (first) {
            last.done.push_back(std::move(done));
            continue;
        }
        Done& before = last.done[place->second];
        if (!follows(at, before, done.kept, entry.had_old)) changed_since(name, entry.key, last.kind);
        before.entry.kind = entry.kind;
        before.entry.stamp = entry.stamp;
    }
    return last;
}

/// Throws corrupt if the record names anything but parts of the array, because the array may come from an untrusted
/// sender.
void require_own(const PlaceView& place, const LastChange& last) {
    Journal all;
    for (const Done& done : last.done) {
        all.entries.push_back(done.entry);
        all.entries.back().number = all.entries.size();
    }
    require_own_keys(place, all, record_name(place));
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
        require_as_kept(place, done.entry, done.kept);
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

/// What the last change is called to the next undo(), if it took back one called `what`.
std::string description_of_undo(std::string_view what) {
    constexpr std::string_view undo_word = "undo ";
    return std::string(what.starts_with(undo_word) ? what.substr(undo_word.size())
                                                   : fmt::format("{}{}", undo_word, what));
}

/// Stages the value that entry `i` of the last change replaced.
ValueStamp stage_old(const PlaceRef& place, const LastChange& last, std::size_t i, const std::string& staged,
                     const std::string& name) {
    const auto& [done, old, may_not_be] = last.done[i];
    require_as_kept(place, done, old);
    keep_value(place.store, old, staged);
    if (const auto stamp = place.store.stamp(staged)) return *stamp;
    throw corrupt("{}: {} is missing, the old value of {}; the {} cannot be taken back", name, old, done.key,
                  last.kind);
}

/// Stages the batch that reverts the last change, and returns its journal.
Journal stage_undo(const PlaceRef& place, const Dialect& dialect, const LastChange& last, const std::string& name,
                   std::uint64_t id) {
    Journal journal{.id = id, .keeps_old = true, .what = description_of_undo(last.what)};
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
        if (had_old) entry.stamp = stage_old(place, last, i, staged_key(place.prefix, journal, entry), name);
        journal.entries.push_back(std::move(entry));
    }
    sort_batch(journal, dialect.metadata_key);
    return journal;
}

/// Throws invalid_argument if the last change was a part of a batch over a group: wherever the array lies now, the
/// other parts would stay.
void require_own_batch(const LastChange& last, const std::string& name) {
    if (last.group_above == 0) return;
    throw invalid_argument(
        "{}: the last change was a batch over several arrays of the group {}, and a part of it alone is "
        "not taken back",
        name, last.group_above == 1 ? "around it" : fmt::format("{} folders above", last.group_above))
        .advising(Action::undo, "of the group takes it back in all of them");
}

}  // namespace

namespace {

/// Runs `body`. If it fails before its batch is recorded, drops what it staged.
template <class Body, class Drop>
std::int64_t or_drop(const Body& body, const Drop& drop) {
    try {
        return body();
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
}

}  // namespace

std::int64_t undo(const Array& array) {
    KeyValueStore& store = *ArrayAccess::state(array)->store;
    const std::string& prefix = ArrayAccess::state(array)->prefix;
    const StoreLock lock = ArrayAccess::state(array)->lock_shape(LockMode::exclusive);
    const LastChange last = or_drop_lock_file({store, prefix}, [&] {
        auto record = last_record({store, prefix});
        if (!record || record->of_group) {
            throw not_found(
                "{}: nothing to take back: only the last change can be, and only if its old values are in "
                ".tessera/undo",
                array.name());
        }
        LastChange found = last_change({store, prefix}, std::move(*record), array.name());
        require_own({store, prefix}, found);
        require_own_batch(found, array.name());
        return found;
    });
    store.erase_below(join_key(prefix, batch_folder));
    return or_drop(
        [&] {
            Journal journal = stage_undo({store, prefix}, array.dialect(), last, array.name(), new_batch_id());
            if (journal.entries.empty()) {
                store.erase_below(join_key(prefix, undo_folder));
            } else {
                record_batch({store, prefix}, journal);
            }
            return std::ssize(journal.entries);
        },
        [&] { store.erase_below(join_key(prefix, batch_folder)); });
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
        throw corrupt("{}: the record of changes names {}, which holds no attributes of the group", record_name(group),
                      key);
    }
}

/// The documents to restore. Throws if one of them was changed since.
std::vector<OldDocument> old_documents(const NodeState& group, const LastChange& last) {
    std::vector<OldDocument> old;
    for (const Done& done : last.done) {
        if (done.may_not_be && is_as_before(group, done)) continue;
        if (!is_as_left(group, done.entry)) changed_since(group.name, done.entry.key, last.kind);
        old.push_back({.key = group.key(done.entry.key), .was_there = done.entry.had_old});
        if (done.entry.had_old) require_as_kept(group, done.entry, done.kept);
        if (!done.entry.had_old || group.store->get(done.kept, old.back().content, metadata_limit)) continue;
        throw corrupt("{}: {} is missing, the old value of {}; the {} cannot be taken back", group.name, done.kept,
                      done.entry.key, last.kind);
    }
    return old;
}

/// Stages the values that an array of a batch had before, under a new batch's number.
BatchPart stage_part(const NodeState& group, const LockedNodes& locked, const Journal& batch, const std::string& key,
                     std::uint64_t id) {
    KeyValueStore& store = *group.store;
    const std::string array = group.key(key);
    const auto node = std::ranges::find(locked.nodes, array, &Node::path);
    if (node == locked.nodes.end()) changed_since(group.name, key, "batch");
    const std::string name = store.name_of(array);
    const auto file = store.open(join_key(array, undo_record_key));
    const auto header = file ? header_of(*file) : std::nullopt;
    if (!header || header->id != batch.id) changed_since(group.name, key, "batch");
    const LastChange last = last_change({store, array}, read_record(*file, record_name({store, array})), name);
    require_own({store, array}, last);
    store.erase_below(join_key(array, batch_folder));
    return {key, stage_undo({store, array}, *node->dialect, last, name, id)};
}

/// Takes back a batch over the arrays of a group. The caller holds the group's lock.
std::int64_t undo_arrays(const NodeState& group, const Journal& batch) {
    KeyValueStore& store = *group.store;
    const LockedNodes locked = lock_arrays_below({store, group.prefix});
    for (const Node& node : locked.nodes) finish_batch({store, node.path});
    const std::uint64_t id = new_batch_id();
    return or_drop(
        [&] {
            std::vector<BatchPart> parts;
            std::int64_t count = 0;
            for (const Journal::Entry& part : batch.entries) {
                parts.push_back(stage_part(group, locked, batch, part.key, id));
                count += std::ssize(parts.back().journal.entries);
            }
            std::erase_if(parts, [](const BatchPart& part) { return part.journal.entries.empty(); });
            if (!parts.empty()) record_group_batch({store, group.prefix}, parts);
            return count;
        },
        [&] {
            for (const Journal::Entry& part : batch.entries) drop_batch({store, group.key(part.key)});
        });
}

}  // namespace

std::int64_t undo(const Group& group) {
    const NodeState& state = *GroupAccess::state(group);
    const StoreLock lock = state.lock_shape(LockMode::exclusive);
    auto record = or_drop_lock_file(state, [&] {
        if (auto found = last_record(state)) return found;
        throw not_found(
            "{}: nothing to take back: of a group only the last batch over its arrays or change of its "
            "attributes can be, and only if its old values are in .tessera/undo; each array in it has its own",
            state.name);
    });
    if (record->of_group) {
        require_own_arrays(state, *record, record_name(state));
        return undo_arrays(state, *record);
    }
    const LastChange last = last_change(state, std::move(*record), state.name);
    require_own(state, last);
    // All are read before anything is changed, because the first change replaces the record and the values that it
    // kept.
    const std::vector<OldDocument> old = old_documents(state, last);
    const auto keeper = keep_changes(state, description_of_undo(last.what), true);
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

std::optional<KeptForUndo> kept_for_undo(const PlaceView& place) {
    std::optional<KeptForUndo> kept;
    place.store.for_each(place.key(undo_folder), [&](std::string_view name, const auto& size) {
        if (!kept) kept.emplace();
        kept->bytes += size();
        if (join_key(undo_folder, name) != undo_record_key) ++kept->values;
    });
    if (!kept) return kept;
    const auto file = place.store.open(place.key(undo_record_key));
    try {
        if (const auto header = file ? header_of(*file) : std::nullopt) kept->what = header->what;
    } catch (const Error&) {
        // An unreadable record describes nothing: undo() says why.
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
