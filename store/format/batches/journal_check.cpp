// Which journals may be applied.
//
// An array from an untrusted sender may contain a journal that is applied when the array is opened. The store ensures
// that the journal cannot lead out of the array. This check ensures that it changes only what a batch of edits of that
// array could have recorded.
#include "journal_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/action.h>
#include <tessera/chunk_grid.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>
#include <tessera/own_names.h>

#include <algorithm>
#include <set>
#include <vector>

#include "dialects.h"
#include "keys.h"

namespace tessera {

namespace {

using EntryKind = Journal::Entry::Kind;

/// The array that contains a journal.
struct Owner {
    const Dialect& dialect;
    ArrayMetadata metadata;
};

[[noreturn]] void refuse(std::string_view name, std::string_view why) {
    throw corrupt("{}: the journal of a batch of edits {}: it is not applied, and nothing was changed", name, why);
}

/// Of a journal that is the array's own: it cannot be finished, but the old values do not depend on what was staged.
[[noreturn]] void refuse_to_finish(const PlaceView& place, std::string_view name, std::string_view why) {
    throw corrupt(
        "{}: the journal of a batch of edits {}: the batch cannot be finished, and what is in place stays as it is",
        name, why)
        .advising(Action::give_up_batches, "takes it back", place.name());
}

Owner owner_of(const PlaceView& place, std::string_view name) {
    const Dialect* dialect = probe_dialect(place);
    if (dialect == nullptr) refuse(name, "lies where no array is");
    return {*dialect, load_metadata(*dialect, place)};
}

bool is_document(const Owner& owner, std::string_view key) {
    return key == owner.dialect.metadata_key || key == owner.dialect.documents.back();  // the attributes are the last
}

std::optional<Index> chunk_of(const Owner& owner, std::string_view key) {
    return owner.metadata.keys.parse(key, owner.metadata.shape.rank());
}

std::string kept_value(const PlaceView& place, const Journal& journal, const Journal::Entry& entry) {
    return join_key(place.key(undo_folder), value_name(journal.id, entry.number));
}

void require_own_keys(const Owner& owner, const Journal& journal, std::string_view name) {
    std::set<std::string_view> keys;
    std::set<std::uint64_t> numbers;
    for (const Journal::Entry& entry : journal.entries) {
        if (!is_document(owner, entry.key) && !chunk_of(owner, entry.key)) {
            refuse(name, fmt::format("names {}, which is no part of the array", entry.key));
        }
        if (entry.kind == EntryKind::erase && entry.key == owner.dialect.metadata_key) {
            refuse(name, fmt::format("removes {}, and with it the array", entry.key));
        }
        if (!keys.insert(entry.key).second) refuse(name, fmt::format("names {} twice", entry.key));
        if (!numbers.insert(entry.number).second) {
            refuse(name, fmt::format("gives the number {} to two keys", entry.number));
        }
    }
}

}  // namespace

void require_own_keys(const PlaceView& place, const Journal& journal, std::string_view name) {
    require_own_keys(owner_of(place, name), journal, name);
}

namespace {

/// A batch over one array that is to be finished, and where its staged values lie.
struct Staged {
    const PlaceView& place;
    std::string_view folder;
    const Journal& journal;
    std::string_view name;

    [[nodiscard]] std::string key(const Journal::Entry& entry) const {
        return join_key(folder, value_name(journal.id, entry.number));
    }
    [[nodiscard]] std::string file(const Journal::Entry& entry) const { return place.store.name_of(key(entry)); }

    /// If the batch changes the shape, its chunks are in the new grid.
    void take_metadata(Owner& owner, const Journal::Entry& entry) const {
        Buffer document;
        if (!place.store.get(key(entry), document, metadata_limit)) {
            // In place already, perhaps only since the metadata were read.
            owner.metadata = load_metadata(owner.dialect, place);
            return;
        }
        try {
            owner.metadata = parse_metadata(owner.dialect, place, document);
        } catch (const Error& e) {
            if (e.code() != ErrorCode::corrupt) throw;
            // The error names the document that is in place, which is whole.
            refuse_to_finish(
                place, name,
                fmt::format("gives {} the staged value {}, which is damaged ({})", entry.key, file(entry), e.what()));
        }
    }

    void require_in_grid(const Owner& owner, const ChunkGrid& grid, const Journal::Entry& entry) const {
        if (is_document(owner, entry.key)) return;
        if (const auto chunk = chunk_of(owner, entry.key); chunk && in_grid(grid, *chunk)) return;
        refuse_to_finish(place, name,
                         fmt::format("writes {}, a chunk outside the array, whose shape is {}", entry.key,
                                     owner.metadata.shape.to_string()));
    }

    void require_value(const Journal::Entry& entry) const {
        auto value = place.store.stamp(key(entry));
        const bool staged = value.has_value();
        if (!staged) value = place.store.stamp(place.key(entry.key));
        // A value without its staged file was moved into place, unless the file there is still the one that was kept.
        const bool old = !staged && value && value->id != 0 && !value->by_content && entry.had_old &&
                         value == place.store.stamp(kept_value(place, journal, entry));
        if (value && !old && value->size == entry.stamp.size) {
            if (!staged || may_be_recorded(entry.stamp, *value)) return;
            refuse_to_finish(
                place, name,
                fmt::format("gives {} the staged value {}, which was changed since", entry.key, file(entry)));
        }
        refuse_to_finish(place, name,
                         staged
                             ? fmt::format("gives {} a value of {} bytes, but the one that is staged as {} has {}",
                                           entry.key, entry.stamp.size, file(entry), value->size)
                             : fmt::format("gives {} the staged value {}, which is missing", entry.key, file(entry)));
    }
};

}  // namespace

void require_applicable(const PlaceView& place, std::string_view folder, const Journal& journal,
                        std::string_view name) {
    if (journal.of_group) return require_own_arrays(place, journal, name);
    Owner owner = owner_of(place, name);
    require_own_keys(owner, journal, name);
    const Staged staged{place, folder, journal, name};
    for (const Journal::Entry& entry : journal.entries) {
        if (entry.kind == EntryKind::put && entry.key == owner.dialect.metadata_key) staged.take_metadata(owner, entry);
    }
    const ChunkGrid grid = chunk_grid(owner.metadata);
    for (const Journal::Entry& entry : journal.entries) {
        if (entry.kind != EntryKind::put) continue;
        staged.require_in_grid(owner, grid, entry);
        staged.require_value(entry);
    }
}

void require_own_arrays(const PlaceView& place, const Journal& journal, std::string_view name) {
    if (probe_dialect(place) != nullptr) refuse(name, "is one of a group, and lies in an array");
    std::set<std::string_view> paths;
    for (const Journal::Entry& entry : journal.entries) {
        if (entry.key.find(own_folder) != std::string::npos) {
            refuse(name, fmt::format("names {}, which is no array of the group", entry.key));
        }
        if (!paths.insert(entry.key).second) refuse(name, fmt::format("names {} twice", entry.key));
    }
}

std::string changes_text(const Journal& journal) {
    const auto part = [&](EntryKind kind) {
        constexpr std::size_t shown = 3;
        std::vector<std::string_view> keys;
        std::size_t count = 0;
        for (const Journal::Entry& entry : journal.entries) {
            if (entry.kind == kind && count++ < shown) keys.push_back(entry.key);
        }
        const std::string names =
            count == 0 ? "" : fmt::format(" ({}{})", fmt::join(keys, ", "), count > shown ? ", …" : "");
        return std::pair(count, names);
    };
    if (journal.of_group) {
        const auto [count, names] = part(EntryKind::array);
        return fmt::format("{} {}{}", count, count == 1 ? "array changes" : "arrays change", names);
    }
    const auto [written, written_names] = part(EntryKind::put);
    const auto [removed, removed_names] = part(EntryKind::erase);
    return fmt::format("{} {} written{} and {} removed{}", written, written == 1 ? "value is" : "values are",
                       written_names, removed, removed_names);
}

}  // namespace tessera
