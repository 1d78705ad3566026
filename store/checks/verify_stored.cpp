// Whether all chunks are there that have to be: those of the record that an import, a copy or a restored snapshot left
// (stored_record.h), or all.
#include <fmt/format.h>
#include <tessera/error.h>
#include <tessera/parallel.h>

#include <algorithm>
#include <set>
#include <span>

#include "directory_store.h"
#include "keys.h"
#include "stored_chunks.h"
#include "stored_record.h"
#include "verifier.h"

namespace tessera {

namespace {

constexpr std::int64_t most_absent = 10'000;  ///< findings for one array

/// Calls each(number) for the numbers of sorted ranges that are not among the sorted `known`.
template <class Each>
void for_each_other(std::span<const std::pair<std::int64_t, std::int64_t>> ranges, std::span<const std::int64_t> known,
                    const Each& each) {
    auto next = known.begin();
    for (const auto& [first, last] : ranges) {
        for (std::int64_t number = first; number <= last; ++number) {
            next = std::lower_bound(next, known.end(), number);
            if (next != known.end() && *next == number) continue;
            if (!each(number)) return;
        }
    }
}

std::int64_t number_in(const Shape& grid, const Index& index) {
    std::int64_t number = 0;
    for (int d = 0; d < grid.rank(); ++d) number = number * grid[d] + index[d];
    return number;
}

bool is_within(const Index& index, const Shape& grid) {
    return std::ranges::equal(index, grid, std::ranges::less());
}

}  // namespace

void Verifier::add_absent(const std::string& path, const LoadedArray& loaded, const Index& index, std::string_view text,
                          std::int64_t& count) {
    ++report_.absent;
    if (count++ >= most_absent) return;
    add({.kind = FindingKind::absent,
         .node = path,
         .key = join_key(path, loaded.metadata.keys.key(index)),
         .chunk = index,
         .text = std::string(text)});
}

void Verifier::forget_absent_in_seals() {
    std::set<std::string_view> lost;
    for (const Finding& finding : report_.findings) {
        if (finding.kind == FindingKind::lost) lost.insert(finding.key);
    }
    report_.absent -= static_cast<std::int64_t>(std::erase_if(report_.findings, [&](const Finding& finding) {
        return finding.kind == FindingKind::absent && lost.contains(finding.key);
    }));
}

void Verifier::check_complete(const std::string& path, const ArrayState& array, const LoadedArray& loaded,
                              const std::vector<std::int64_t>& stored) {
    if (options_.complete) {
        check_all_stored(path, loaded, stored);
    } else if (is_directory_store(*store_)) {
        check_record(path, array, loaded, stored);
    }
}

void Verifier::check_all_stored(const std::string& path, const LoadedArray& loaded,
                                const std::vector<std::int64_t>& stored) {
    const std::int64_t absent = loaded.grid.chunk_count() - std::ssize(stored);
    if (absent == 0) return;
    CountedVector<std::int64_t> known(stored.begin(), stored.end());
    std::ranges::sort(known);
    std::int64_t count = 0;
    const std::pair<std::int64_t, std::int64_t> all{0, loaded.grid.chunk_count() - 1};
    const std::int64_t before = report_.absent;
    for_each_other(std::span(&all, 1), known, [&](std::int64_t number) {
        add_absent(path, loaded, loaded.grid.index(number),
                   "is not stored, so that its elements read as the fill value", count);
        return count < most_absent;
    });
    report_.absent = before + absent;  // a sparse array may lack more than can be listed
}

void Verifier::check_record(const std::string& path, const ArrayState& array, const LoadedArray& loaded,
                            const std::vector<std::int64_t>& stored) {
    const auto unknown = [&](std::string_view why) {
        const std::int64_t missing = loaded.grid.chunk_count() - std::ssize(stored);
        if (missing == 0) return;
        add({.kind = FindingKind::note,
             .node = path,
             .key = join_key(path, stored_record_key),
             .text = fmt::format(
                 "{}: whether {} not stored ever {} is not known", why,
                 missing == 1 ? std::string("the chunk that is") : fmt::format("the {} chunks that are", missing),
                 missing == 1 ? "was" : "were")});
    };
    try {
        const auto file = store_->open(join_key(array.prefix, stored_record_key));
        if (file == nullptr) return unknown("no import or copy left a record of stored chunks");
        const int rank = loaded.grid.shape().rank();
        const StoredRecord record =
            read_stored_record(*file, [&](const StoredGrid& of, std::string_view key) -> std::optional<std::int64_t> {
                const auto index = loaded.metadata.keys.parse(key, rank);
                if (!index || !is_within(*index, of.grid)) return {};
                return number_in(of.grid, *index);
            });
        const StoredGrid now = stored_grid(loaded);
        if (record.of.grid.rank() != rank || record.of.chunks != now.chunks || record.of.key != now.key) {
            return unknown("another program made another array here since its chunks were recorded");
        }
        CountedVector<std::int64_t> known = record.erased;
        for (const std::int64_t number : stored) {
            const Index index = loaded.grid.index(number);
            if (is_within(index, record.of.grid)) known.push_back(number_in(record.of.grid, index));
        }
        std::ranges::sort(known);
        const Region whole = Region::whole(record.of.grid);
        std::int64_t count = 0;
        for_each_other(record.ranges, known, [&](std::int64_t number) {
            require_not_stopped();
            const Index index = index_in(whole, number);
            if (!is_within(index, record.within) || !in_grid(loaded.grid, index)) return true;
            add_absent(path, loaded, index,
                       "is not stored, though it was when the array was imported or copied, so that its elements read "
                       "as the fill value",
                       count);
            return true;
        });
    } catch (const Error& e) {
        if (e.code() == ErrorCode::cancelled) throw;
        unknown(fmt::format("the record of stored chunks cannot be used ({})", e.what()));
    }
}

void forget_stored_chunks(KeyValueStore& store, std::string_view key) {
    while (!key.empty()) {
        key = parent_of(key);
        store.erase(join_key(key, stored_record_key));
    }
}

}  // namespace tessera
