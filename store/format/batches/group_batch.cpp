#include "group_batch.h"

#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "far_batch.h"

namespace tessera {

namespace {

using Entry = Journal::Entry;

std::string folders(std::uint32_t count) {
    return count == 1 ? "one folder" : fmt::format("{} folders", count);
}

void write_journal(const PlaceRef& place, ByteSpan bytes) {
    place.store.put(place.key(batch_journal_key), bytes);
}

/// Checks that an array's part of a batch over a group can be reverted. Returns whether it is in place.
bool require_way_back(const PlaceView& place, std::uint64_t batch) {
    const auto file = place.store.open(place.key(batch_journal_key));
    auto journal = file ? std::optional(read_journal(*file, file->name())) : std::nullopt;
    const bool done = !journal || journal->id != batch;
    if (done) journal = last_record(place);
    const bool known =
        journal && journal->id == batch && !journal->of_command &&
        (!done || std::ranges::all_of(journal->entries, [&](const Entry& e) { return is_as_left(place, e); }));
    if (!known) {
        throw corrupt(
            "{}: the batch cannot be taken back: its part here is in place, and the old values "
            "are not known, or were changed since",
            place.name());
    }
    (void)way_back(place, *journal);
    return done;
}

}  // namespace

Fate fate_of(const PlaceView& place, const Journal& journal) {
    if (journal.group_above == 0) return Fate::takes_effect;
    // First, because the group's journal stays until all values are in place.
    const bool begun =
        std::ranges::any_of(journal.entries, [&](const Entry& e) { return is_moved(place, journal, e); });
    try {
        if (const auto file = open_group_journal(place, journal.group_above)) {
            const Journal group = read_journal(*file, file->name());
            if (group.of_group && group.id == journal.id) return group.gives_up ? Fate::given_up : Fate::takes_effect;
        }
    } catch (const Error& e) {
        if (e.code() != ErrorCode::not_found) throw;
        if (!begun) {
            throw corrupt(
                "{}: a part of a batch over a group is recorded here, and the group is not there, {} above; open the "
                "array in its group",
                place.name(), folders(journal.group_above))
                .advising(Action::repair, "sets the part aside, and the array stays as it is");
        }
    }
    return begun ? Fate::takes_effect : Fate::never;
}

// The journal goes first: one with a staged value missing would say that the batch was recorded.
void retract(const PlaceRef& place, const Journal& journal) {
    place.store.erase(place.key(batch_journal_key));
    place.store.sync();
    try_to_forget(place, journal);
}

void drop_batch(const PlaceRef& place) {
    if (place.store.erase(place.key(batch_journal_key))) place.store.sync();
    place.store.erase_below(place.key(batch_folder));
}

std::uint32_t folders_above(std::string_view path) {
    return static_cast<std::uint32_t>(1 + std::ranges::count(path, '/'));
}

void record_group_batch(const PlaceRef& place, std::vector<BatchPart>& parts) {
    const Journal& first = parts.front().journal;
    Journal whole{.id = first.id, .keeps_old = first.keeps_old, .of_group = true, .what = first.what};
    const std::string batch = place.key(batch_folder);
    std::size_t begun = 0;  // parts whose journal may be there
    try {
        (void)place.store.prepare_replace(place.key(batch_journal_key));  // also makes the folder, for fate_of()
        for (BatchPart& part : parts) {
            const std::string array = place.key(part.path);
            part.journal.group_above = folders_above(part.path);
            const Buffer bytes = prepared({place.store, array}, part.journal);
            ++begun;
            write_journal({place.store, array}, bytes.span());
            whole.entries.push_back({.kind = Entry::Kind::array, .stamp = {}, .key = part.path});
        }
        record_batch(place, whole);
    } catch (const Error& e) {
        for (std::size_t i = 0; i < begun && e.code() != ErrorCode::recorded; ++i) {
            try {
                retract({place.store, place.key(parts[i].path)}, parts[i].journal);
            } catch (const Error&) {
                // Without the group's journal it is nothing: the next opening discards it.
            }
        }
        if (e.code() != ErrorCode::recorded) place.store.erase_below(batch);
        throw;
    }
}

void require_whole(const PlaceView& place, const Journal& journal) {
    if (journal.group_above == 0 || fate_of(place, journal) != Fate::takes_effect) return;
    throw invalid_argument(
        "{}: a part of a batch over the arrays of a group, {} above; give it up there, or finish it here", place.name(),
        folders(journal.group_above));
}

std::int64_t give_up_group(const PlaceRef& place, Journal journal) {
    std::vector<std::string> arrays;
    for (const Entry& entry : journal.entries) arrays.push_back(place.key(entry.key));
    std::ranges::sort(arrays, {}, [](const std::string& path) { return std::filesystem::path(path); });
    std::vector<StoreLock> locks;
    for (const std::string& array : arrays) locks.push_back(place.store.lock(array, 0, LockMode::exclusive));
    if (!journal.gives_up) {
        std::vector<std::string> done;
        for (const std::string& array : arrays) {
            if (require_way_back({place.store, array}, journal.id)) done.push_back(array);
        }
        for (const std::string& array : done) {
            place.store.replace(join_key(array, undo_record_key), join_key(array, batch_journal_key));
        }
        place.store.sync();
        journal.keeps_old = false;
        journal.gives_up = true;
        const Buffer bytes = encode_journal(journal);
        write_journal(place, bytes.span());
        place.store.sync();
    }
    finish_batch(place, true);
    return std::ssize(arrays);
}

}  // namespace tessera
