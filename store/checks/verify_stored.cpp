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
#include "verify_run.h"

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

/// The check for chunks that are not stored, though they have to be, of one array. `stored` are the numbers of those
/// that are.
class AbsentChunks {
public:
    AbsentChunks(VerifyRun& run, const std::string& node, const LoadedArray& loaded,
                 const std::vector<std::int64_t>& stored)
        : run_(run), node_(node), loaded_(loaded), stored_(stored) {}

    void check_all() {
        const std::int64_t absent = not_stored();
        if (absent == 0) return;
        CountedVector<std::int64_t> known(stored_.begin(), stored_.end());
        std::ranges::sort(known);
        const std::pair<std::int64_t, std::int64_t> all{0, loaded_.grid.chunk_count() - 1};
        const std::int64_t before = run_.report.absent;
        for_each_other(std::span(&all, 1), known, [&](std::int64_t number) {
            add(loaded_.grid.index(number), "is not stored, so that its elements read as the fill value");
            return count_ < most_absent;
        });
        run_.report.absent = before + absent;  // a sparse array may lack more than can be listed
    }

    /// By the record at a key of the store.
    void check_record(const std::string& key) {
        try {
            const auto file = run_.store->open(key);
            if (file == nullptr) return add_unknown("no import or copy left a record of stored chunks");
            const StoredRecord record = read(*file);
            const StoredGrid now = stored_grid(loaded_);
            if (record.of.grid.rank() != rank() || record.of.chunks != now.chunks || record.of.key != now.key) {
                return add_unknown("another program made another array here since its chunks were recorded");
            }
            compare(record);
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled) throw;
            add_unknown(fmt::format("the record of stored chunks cannot be used ({})", e.what()));
        }
    }

private:
    [[nodiscard]] int rank() const { return loaded_.grid.shape().rank(); }
    [[nodiscard]] std::int64_t not_stored() const { return loaded_.grid.chunk_count() - std::ssize(stored_); }

    [[nodiscard]] StoredRecord read(const ByteSource& file) const {
        return read_stored_record(file, [&](const StoredGrid& of, std::string_view key) -> std::optional<std::int64_t> {
            const auto index = loaded_.metadata.keys.parse(key, rank());
            if (!index || !is_within(*index, of.grid)) return {};
            return number_in(of.grid, *index);
        });
    }

    void compare(const StoredRecord& record) {
        CountedVector<std::int64_t> known = record.erased;
        for (const std::int64_t number : stored_) {
            const Index index = loaded_.grid.index(number);
            if (is_within(index, record.of.grid)) known.push_back(number_in(record.of.grid, index));
        }
        std::ranges::sort(known);
        const Region whole = Region::whole(record.of.grid);
        for_each_other(record.ranges, known, [&](std::int64_t number) {
            require_not_stopped();
            const Index index = index_in(whole, number);
            if (!is_within(index, record.within) || !in_grid(loaded_.grid, index)) return true;
            add(index,
                "is not stored, though it was when the array was imported or copied, so that its elements read as the "
                "fill value");
            return true;
        });
    }

    /// Adds a finding for a chunk, unless the array has too many.
    void add(const Index& index, std::string_view text) {
        ++run_.report.absent;
        if (count_++ >= most_absent) return;
        run_.add({.kind = FindingKind::absent,
                  .node = node_,
                  .key = join_key(node_, loaded_.metadata.keys.key(index)),
                  .chunk = index,
                  .text = std::string(text)});
    }

    void add_unknown(std::string_view why) {
        const std::int64_t missing = not_stored();
        if (missing == 0) return;
        run_.add({.kind = FindingKind::note,
                  .node = node_,
                  .key = join_key(node_, stored_record_key),
                  .text = fmt::format(
                      "{}: whether {} not stored ever {} is not known", why,
                      missing == 1 ? std::string("the chunk that is") : fmt::format("the {} chunks that are", missing),
                      missing == 1 ? "was" : "were")});
    }

    VerifyRun& run_;
    const std::string& node_;
    const LoadedArray& loaded_;
    const std::vector<std::int64_t>& stored_;
    std::int64_t count_ = 0;  ///< of those found
};

}  // namespace

void verify_complete(VerifyRun& run, const std::string& node, const ArrayState& array, const LoadedArray& loaded,
                     const std::vector<std::int64_t>& stored) {
    AbsentChunks absent(run, node, loaded, stored);
    if (run.options.complete) {
        absent.check_all();
    } else if (is_directory_store(*run.store)) {
        absent.check_record(array.key(stored_record_key));
    }
}

void forget_absent_in_seals(VerifyReport& report) {
    std::set<std::string_view> lost;
    for (const Finding& finding : report.findings) {
        if (finding.kind == FindingKind::lost) lost.insert(finding.key);
    }
    report.absent -= static_cast<std::int64_t>(std::erase_if(report.findings, [&](const Finding& finding) {
        return finding.kind == FindingKind::absent && lost.contains(finding.key);
    }));
}

void forget_stored_chunks(KeyValueStore& store, std::string_view key) {
    while (!key.empty()) {
        key = parent_of(key);
        store.erase(join_key(key, stored_record_key));
    }
}

}  // namespace tessera
