// Whether all chunks are there that have to be: those of the record that an import, a copy or a restored snapshot left
// (stored_record.h), or all.
#include <fmt/format.h>
#include <tessera/error.h>
#include <tessera/parallel.h>
#include <tessera/shard.h>

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

/// The check for chunks that are not stored, though they have to be, of one array. `stored` are the ascending
/// numbers of the chunks or shards that are, and `units` those of chunks and inner chunks, in unit_grid().
class AbsentChunks {
public:
    AbsentChunks(VerifyRun& run, const std::string& node, const LoadedArray& loaded,
                 std::span<const std::int64_t> stored, std::span<const std::int64_t> units)
        : run_(run), node_(node), loaded_(loaded), grid_(unit_grid(loaded)), stored_(stored), units_(units) {}

    void check_all() {
        const std::int64_t absent = not_stored();
        if (absent == 0) return;
        const std::pair<std::int64_t, std::int64_t> all{0, grid_.chunk_count() - 1};
        const std::int64_t before = run_.report.absent;
        for_each_other(std::span(&all, 1), units_, [&](std::int64_t number) {
            const Index unit = grid_.index(number);
            add(chunk_of(unit), unit, "is not stored, so that its elements read as the fill value");
            return count_ < most_absent;
        });
        run_.report.absent = before + absent;  // a sparse array may lack more than can be listed
    }

    /// By the record at a key of the store.
    void check_record(const std::string& key) {
        try {
            const auto file = run_.store->open(key);
            if (file == nullptr) return add_unknown("no import or copy left a record of stored chunks");
            StoredRecord record = read(*file);
            const StoredGrid now = stored_grid(loaded_);
            const bool same_unit = record.of.unit.empty() || record.of.unit == now.unit;
            if (record.of.grid.rank() != rank() || record.of.chunks != now.chunks || record.of.key != now.key ||
                !same_unit) {
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
    [[nodiscard]] std::int64_t not_stored() const { return grid_.chunk_count() - std::ssize(units_); }

    [[nodiscard]] StoredRecord read(const ByteSource& file) const {
        return read_stored_record(file, [&](const StoredGrid&, std::string_view key) -> std::optional<std::int64_t> {
            const auto index = loaded_.metadata.keys.parse(key, rank());
            return index && in_grid(loaded_.grid, *index) ? std::optional(loaded_.grid.linear(*index)) : std::nullopt;
        });
    }

    /// The chunk or shard that holds a unit, which lies in the grid.
    [[nodiscard]] Index chunk_of(const Index& unit) const {
        if (loaded_.pipeline.shard() == nullptr) return unit;
        Index chunk = grid_.chunk_region(unit).start;
        for (int d = 0; d < chunk.rank(); ++d) chunk[d] = loaded_.grid.chunk_at(d, chunk[d]);
        return chunk;
    }

    /// Where a unit lies in its shard.
    [[nodiscard]] Index inner_of(const Index& chunk, Index unit) const {
        const Index first = first_unit(loaded_, chunk);
        for (int d = 0; d < unit.rank(); ++d) unit[d] -= first[d];
        return unit;
    }

    void compare(StoredRecord& record) {
        const bool of_units = !record.of.unit.empty() || loaded_.pipeline.shard() == nullptr;
        const ChunkGrid& grid = of_units ? grid_ : loaded_.grid;
        const Shape& counted = record.of.counted();
        CountedVector<std::int64_t> known;
        for (const std::int64_t number : of_units ? units_ : stored_) {
            const Index index = grid.index(number);
            if (is_within(index, counted)) known.push_back(number_in(counted, index));
        }
        std::ranges::sort(known);
        std::ranges::sort(record.erased, {}, &ErasedChunk::chunk);
        const Region whole = Region::whole(counted);
        for_each_other(record.ranges, known, [&](std::int64_t number) {
            require_not_stopped();
            const Index unit = index_in(whole, number);
            if (!in_grid(grid, unit)) return true;
            const Index chunk = of_units ? chunk_of(unit) : unit;
            if (!is_within(chunk, record.within) || is_erased(record, chunk, of_units ? unit : Index())) return true;
            add(chunk, of_units ? unit : Index(),
                "is not stored, though it was when the array was imported or copied, so that its elements read as the "
                "fill value");
            return true;
        });
    }

    /// Whether a chunk was erased on purpose; with shards the inner chunk `unit`, or if that is empty all of the shard.
    [[nodiscard]] bool is_erased(const StoredRecord& record, const Index& chunk, const Index& unit) const {
        std::int64_t inner = 0;
        if (loaded_.pipeline.shard() != nullptr && !unit.empty()) {
            inner = loaded_.of(chunk)->pipeline.shard()->grid().linear(inner_of(chunk, unit));
        }
        // Not by equal_range, whose result Clang 14 does not compile.
        const std::int64_t number = loaded_.grid.linear(chunk);
        auto one = std::ranges::lower_bound(record.erased, number, {}, &ErasedChunk::chunk);
        for (; one != record.erased.end() && one->chunk == number; ++one) {
            if (one->first <= inner && inner <= one->last) return true;
        }
        return false;
    }

    /// Adds a finding for an inner chunk, or for all of a chunk that is not there; unless the array has too many.
    void add(const Index& chunk, const Index& unit, std::string_view text) {
        ++run_.report.absent;
        if (count_ >= most_absent) return;
        const std::int64_t number = loaded_.grid.linear(chunk);
        const bool inner = loaded_.pipeline.shard() != nullptr && std::ranges::binary_search(stored_, number);
        if (!inner && loaded_.pipeline.shard() != nullptr && !whole_.insert(number).second) return;
        ++count_;
        run_.add({.kind = FindingKind::absent,
                  .node = node_,
                  .key = join_key(node_, loaded_.metadata.keys.key(chunk)),
                  .chunk = chunk,
                  .inner = inner ? std::optional(inner_of(chunk, unit)) : std::nullopt,
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
    ChunkGrid grid_;
    std::span<const std::int64_t> stored_;
    std::span<const std::int64_t> units_;
    std::set<std::int64_t> whole_;  ///< shards that are not there and were found
    std::int64_t count_ = 0;        ///< of the findings
};

}  // namespace

void verify_complete(VerifyRun& run, const std::string& node, const ArrayState& array, const LoadedArray& loaded,
                     std::span<const std::int64_t> stored, std::span<const std::int64_t> units) {
    AbsentChunks absent(run, node, loaded, stored, units);
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

void note_replaced_chunk(KeyValueStore& store, std::string_view key) {
    note_replaced(store, key);
}

}  // namespace tessera
