#include "group_batch.h"

#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "directory_store.h"

namespace tessera {

namespace {

using Entry = Journal::Entry;

std::string folders(std::uint32_t count) {
    return count == 1 ? "one folder" : fmt::format("{} folders", count);
}

void write_journal(KeyValueStore& store, std::string_view prefix, ByteSpan bytes) {
    store.put(join_key(prefix, batch_journal_key), bytes);
}

/// Checks that an array's part of a batch over a group can be reverted. Returns whether it is in place.
bool require_way_back(const KeyValueStore& store, std::string_view prefix, std::uint64_t batch) {
    const auto file = store.open(join_key(prefix, batch_journal_key));
    auto journal = file ? std::optional(read_journal(*file, file->name())) : std::nullopt;
    const bool done = !journal || journal->id != batch;
    if (done) journal = last_record(store, prefix);
    const bool known =
        journal && journal->id == batch && !journal->of_command &&
        (!done || std::ranges::all_of(journal->entries, [&](const Entry& e) { return is_as_left(store, prefix, e); }));
    if (!known) {
        throw corrupt(
            "{}: the batch cannot be taken back: its part here is in place, and the old values "
            "are not known, or were changed since",
            join_key(store.name(), prefix));
    }
    (void)way_back(store, prefix, *journal);
    return done;
}

}  // namespace

Fate fate_of(const KeyValueStore& store, std::string_view prefix, const Journal& journal) {
    if (journal.group_above == 0) return Fate::takes_effect;
    // First, because the group's journal stays until all values are in place.
    const bool begun =
        std::ranges::any_of(journal.entries, [&](const Entry& e) { return is_moved(store, prefix, journal, e); });
    try {
        if (const auto file = open_above(store, prefix, journal.group_above, batch_journal_key)) {
            const Journal group = read_journal(*file, file->name());
            if (group.of_group && group.id == journal.id) return group.gives_up ? Fate::given_up : Fate::takes_effect;
        }
    } catch (const Error& e) {
        if (e.code() != ErrorCode::not_found) throw;
        if (!begun) {
            throw corrupt(
                "{}: a part of a batch over a group is recorded here, and the group is not there, {} above; open the "
                "array in its group",
                join_key(store.name(), prefix), folders(journal.group_above))
                .advising(Action::repair, "sets the part aside, and the array stays as it is");
        }
    }
    return begun ? Fate::takes_effect : Fate::never;
}

// The journal goes first: one with a staged value missing would say that the batch was recorded.
void retract(KeyValueStore& store, std::string_view prefix, const Journal& journal) {
    store.erase(join_key(prefix, batch_journal_key));
    store.sync();
    try_to_forget(store, prefix, journal);
}

void drop_batch(KeyValueStore& store, std::string_view prefix) {
    if (store.erase(join_key(prefix, batch_journal_key))) store.sync();
    store.erase_below(join_key(prefix, batch_folder));
}

std::uint32_t folders_above(std::string_view path) {
    return static_cast<std::uint32_t>(1 + std::ranges::count(path, '/'));
}

void record_group_batch(KeyValueStore& store, std::string_view prefix, std::vector<BatchPart>& parts) {
    const Journal& first = parts.front().journal;
    Journal whole{.id = first.id, .keeps_old = first.keeps_old, .of_group = true, .what = first.what};
    const std::string batch = join_key(prefix, batch_folder);
    std::size_t begun = 0;  // parts whose journal may be there
    try {
        (void)store.prepare_replace(join_key(prefix, batch_journal_key));  // also makes the folder, for fate_of()
        for (BatchPart& part : parts) {
            const std::string array = join_key(prefix, part.path);
            part.journal.group_above = folders_above(part.path);
            const Buffer bytes = prepared(store, array, part.journal);
            ++begun;
            write_journal(store, array, bytes.span());
            whole.entries.push_back({.kind = Entry::Kind::array, .stamp = {}, .key = part.path});
        }
        record_batch(store, prefix, whole);
    } catch (const Error& e) {
        for (std::size_t i = 0; i < begun && e.code() != ErrorCode::recorded; ++i) {
            try {
                retract(store, join_key(prefix, parts[i].path), parts[i].journal);
            } catch (const Error&) {
                // Without the group's journal it is nothing: the next opening discards it.
            }
        }
        if (e.code() != ErrorCode::recorded) store.erase_below(batch);
        throw;
    }
}

void require_whole(const KeyValueStore& store, std::string_view prefix, const Journal& journal) {
    if (journal.group_above == 0 || fate_of(store, prefix, journal) != Fate::takes_effect) return;
    throw invalid_argument(
        "{}: a part of a batch over the arrays of a group, {} above; give it up there, or finish it here",
        join_key(store.name(), prefix), folders(journal.group_above));
}

std::int64_t give_up_group(KeyValueStore& store, std::string_view prefix, Journal journal) {
    std::vector<std::string> arrays;
    for (const Entry& entry : journal.entries) arrays.push_back(join_key(prefix, entry.key));
    std::ranges::sort(arrays, {}, [](const std::string& path) { return std::filesystem::path(path); });
    std::vector<StoreLock> locks;
    for (const std::string& array : arrays) locks.push_back(store.lock(array, 0, LockMode::exclusive));
    if (!journal.gives_up) {
        std::vector<std::string> done;
        for (const std::string& array : arrays) {
            if (require_way_back(store, array, journal.id)) done.push_back(array);
        }
        for (const std::string& array : done) {
            store.replace(join_key(array, undo_record_key), join_key(array, batch_journal_key));
        }
        store.sync();
        journal.keeps_old = false;
        journal.gives_up = true;
        const Buffer bytes = encode_journal(journal);
        write_journal(store, prefix, bytes.span());
        store.sync();
    }
    finish_batch(store, prefix, true);
    return std::ssize(arrays);
}

}  // namespace tessera
