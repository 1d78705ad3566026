// Batches in stores far away.
//
// How it works
// ------------
// Elements beyond the shape of an array show nowhere. So an append writes them where they belong, and only the metadata
// documents have to change together. The journals are those of any batch over a group (batch.cpp): the new document of
// each array is staged in its folder, with a journal that is a part, and the batch happens when the group gets its own
// journal. That is one request, on the condition that there is none yet. A reader who finds a part asks for the journal
// of the group, and lays the staged document over the array if it is there. To find a part costs no request, because
// opening asks for a journal anyway.
//
// Locks do not reach other machines. The program that makes a batch holds the lease of the group, and so does one that
// finishes the batch of a killed program. A lease may be lost unnoticed, so each document is replaced only if it is
// still the one that the journal names (Entry::old). If it is another one, then it was replaced before, or another
// writer was faster; it stays. A part of a batch that is not recorded may be that of a program at work. So only its own
// program discards it, and a repair or a later append, which wait for the lease of the array.
#include "far_batch.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <tessera/action.h>
#include <tessera/error_text.h>
#include <tessera/parallel.h>
#include <tessera/store_kind.h>

#include "batch.h"
#include "directory_store.h"

namespace tessera {

namespace {

/// The group so many folders above a part. The store may begin at the array.
Place group_above(const PlaceView& part, std::uint32_t levels, bool to_write) {
    std::string path = part.name();
    for (; levels > 0; --levels) {
        const std::size_t slash = path.rfind('/');
        if (slash == std::string::npos || path.substr(0, slash).ends_with('/')) {
            throw not_found("{}: there is no folder that far above", part.name());
        }
        path.resize(slash);
    }
    StoreOptions options = part.store.options_beside();
    options.read_only = !to_write;
    return store_kind_of(path).place(path, options);
}

/// Puts the document of an array in place, if it is not there yet.
void put_part_in_place(const PlaceRef& place, std::uint64_t batch) {
    const auto versions = place.store.begin_change(place.prefix, false);
    const auto journal = read_pending(place);
    if (!journal || journal->id != batch) return;
    try {
        for (const Journal::Entry& entry : journal->entries) {
            const std::string key = place.key(entry.key);
            const bool names_old = entry.old_known && !journal->keeps_old;  // else it was made on a disk
            if (entry.kind == Journal::Entry::Kind::erase) {
                place.store.erase(key);
            } else if (!versions || !names_old || place.store.stamp(key) == entry.old) {
                place.store.replace(staged_key(place.prefix, *journal, entry), key);
            }
        }
    } catch (const Error&) {
        if (!versions || !versions->conflicted()) throw;  // else somebody else was faster
    }
    drop_batch(place);
}

}  // namespace

std::unique_ptr<ByteSource> open_group_journal(const PlaceView& place, std::uint32_t levels) {
    if (!place.store.is_far()) return open_above(place, levels, batch_journal_key);
    const Place group = group_above(place, levels, false);
    return group.store->open(group.key(batch_journal_key));
}

void finish_leased_batch(const PlaceRef& place) {
    const auto journal = read_pending(place);
    if (!journal || !journal->of_group) return;
    const FinishScope finishes;  // what is recorded
    for (const Journal::Entry& entry : journal->entries) {
        put_part_in_place({place.store, place.key(entry.key)}, journal->id);
    }
    place.store.sync();
    drop_batch(place);
    place.store.sync();
}

void finish_far_batch(const PlaceRef& place, const Journal& journal) {
    const auto finish = [](const PlaceRef& group) {
        const StoreLock lease = group.store.lock_destination(group.prefix);
        finish_leased_batch(group);
    };
    if (journal.of_group) return finish(place);
    finish(group_above(place, journal.group_above, true));
}

namespace {

/// Takes back parts of a batch that was not recorded.
void drop_parts(const PlaceRef& place, std::span<const BatchPart> parts) {
    for (const BatchPart& part : parts) {
        try {
            drop_batch({place.store, place.key(part.path)});
        } catch (const Error&) {
            // Without the group's journal it is nothing.
        }
    }
}

/// For a batch that is recorded, or may be.
[[noreturn]] void throw_recorded(const PlaceRef& place, const Error& reason) {
    throw Error(ErrorCode::recorded, fmt::format("{}: the batch is recorded and takes effect, do not repeat it; the "
                                                 "next writer goes on with it: {}",
                                                 place.name(), reason.what()))
        .advising(Action::repair, "finishes it", place.name());
}

}  // namespace

void record_far_batch(const PlaceRef& place, std::vector<BatchPart>& parts,
                      const std::function<void()>& require_current, const std::function<void()>& release) {
    Journal whole{.id = parts.front().journal.id, .of_group = true};
    std::size_t begun = 0;
    bool recorded = false;
    try {
        for (BatchPart& part : parts) {
            part.journal.group_above = folders_above(part.path);
            const Buffer bytes = encode_journal(part.journal);
            ++begun;
            place.store.put(place.key(join_key(part.path, batch_journal_key)), bytes.span());
            whole.entries.push_back({.kind = Journal::Entry::Kind::array, .stamp = {}, .key = part.path});
        }
        require_current();
        if (!place.store.put_new(place.key(batch_journal_key), encode_journal(whole).span())) {
            throw Error(ErrorCode::io,
                        fmt::format("{}: another program took over: nothing of this change shows, and it "
                                    "can be repeated",
                                    place.name()));
        }
        recorded = true;
        release();
        finish_leased_batch(place);
    } catch (const Error& e) {
        if (recorded || is_recorded(place, whole)) throw_recorded(place, e);
        drop_parts(place, std::span(parts).first(begun));
        throw;
    }
}

}  // namespace tessera
