#include <tessera/chunk_statistics.h>

#include <tessera/chunk_grid.h>
#include <tessera/chunk_index.h>
#include <tessera/conventions.h>
#include <tessera/counted.h>
#include <tessera/error_text.h>
#include <tessera/numbers.h>
#include <tessera/shard.h>
#include <tessera/slices.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array_access.h"
#include "column_summary.h"
#include "index_bytes.h"
#include "stored_chunks.h"

namespace tessera {

namespace {

NDArray zeros(const DType& dtype, const Shape& shape) {
    NDArray made(dtype, shape);
    std::ranges::fill(made.bytes(), std::byte{0});
    return made;
}

/// What is stored, and how many bytes it takes.
class StoredSizes {
public:
    StoredSizes(const Array& array, ChunkStatistics& to)
        : state_(*ArrayAccess::state(array)), loaded_(state_.loaded()), units_(unit_grid(*loaded_)), to_(to) {
        to_.stored = zeros(DType::of<bool>(), units_.grid());
        to_.stored_bytes = zeros(DType::of<std::int64_t>(), units_.grid());
    }

    void find(const IoOptions& io) {
        CountedVector<std::int64_t> shards;
        const bool sharded = loaded_->pipeline.shard() != nullptr;
        for_each_stored(state_, *loaded_,
                        {.each =
                             [&](const Index& chunk, const std::string&, const KeyValueStore::ValueSize& size) {
                                 if (!in_grid(loaded_->grid, chunk)) return;
                                 const std::int64_t number = loaded_->grid.linear(chunk);
                                 sharded ? shards.push_back(number) : put(number, size());
                             },
                         .in_the_way =
                             [&](const Index* chunk, const std::string& key, const std::string& text) {
                                 if (chunk != nullptr && in_grid(loaded_->grid, *chunk))
                                     throw corrupt("{}: {}", state_.store->name_of(state_.key(key)), text);
                             }});
        parallel_in_memory(std::ssize(shards), io,
                           [&](std::int64_t n) { look_into(shards[static_cast<std::size_t>(n)]); });
    }

private:
    void put(std::int64_t unit, std::uint64_t bytes) {
        const auto at = static_cast<std::size_t>(unit);
        to_.stored.values<bool>()[at] = true;
        to_.stored_bytes.values<std::int64_t>()[at] = static_cast<std::int64_t>(bytes);
    }

    void look_into(std::int64_t shard) {
        const Index index = loaded_->grid.index(shard);
        const auto own = loaded_->of(index);
        const ShardCodec& codec = *own->pipeline.shard();
        const auto bytes = state_.store->open(state_.chunk_key(*loaded_, index));
        if (bytes == nullptr) return;  // it went meanwhile
        const std::vector<ShardCodec::Place> places = codec.read_index(*bytes);
        const Index first = first_unit(*loaded_, index);
        for (std::int64_t i = 0; i < codec.grid().chunk_count(); ++i) {
            Index unit = codec.grid().index(i);
            const ShardCodec::Place& place = places[codec.number(unit)];
            for (int d = 0; d < unit.rank(); ++d) unit[d] += first[d];
            if (place.present() && in_grid(units_, unit)) put(units_.linear(unit), place.size);
        }
    }

    const ArrayState& state_;
    std::shared_ptr<const LoadedArray> loaded_;
    ChunkGrid units_;
    ChunkStatistics& to_;
};

/// The summaries of all chunks, put in their places.
class ElementsOfChunks {
public:
    ElementsOfChunks(const ArraySource& elements, const ChunkGrid& units)
        : elements_(elements), info_(elements.info()), dtype_(native_dtype(info_.dtype)), units_(units) {
        const auto integers = [&] { return zeros(DType::of<std::int64_t>(), units_.grid()); };
        to_ = {.count = integers(),
               .missing = integers(),
               .min = zeros(dtype_, units_.grid()),
               .max = zeros(dtype_, units_.grid()),
               .mean = zeros(DType::of<double>(), units_.grid()),
               .lacks = zeros(DType::of<bool>(), units_.grid()),
               .may_lack = info_.marks_missing || is_time(dtype_) || dtype_.kind() == Kind::real ||
                           dtype_.kind() == Kind::bfloat16};
    }

    /// False if nothing was done, because what is stored cannot be told.
    [[nodiscard]] bool by_index(const ChunkIndex& index, IndexUse use, const IoOptions& io) {
        const auto absent = index.absent_element();
        if (!absent) return false;
        const auto one = make();
        one->add(absent->data(), dtype_.size(), 1, nullptr);
        const Statistics found = one->result();
        for (std::int64_t n = 0; n < units_.chunk_count(); ++n) {
            put(n, found, units_.chunk_region(units_.index(n)).count());
        }
        const auto entries = use == IndexUse::use ? ChunkIndex::Entries::use : ChunkIndex::Entries::ignore;
        const auto seen = index.for_each_unit(
            {.region = Region::whole(info_.shape), .entries = entries},
            [&](const Region& unit, std::string_view saved) {
                const auto summary = make();
                IndexReader from(saved);
                summary->load(from, unit.count());
                put(units_.linear(units_.overlapping(unit).start), summary->result(), 1);
            },
            io);
        return seen.has_value();
    }

    /// By reading all.
    void read(const IoOptions& io) {
        parallel_in_memory(units_.chunk_count(), io, [&](std::int64_t n) {
            const Region region = units_.chunk_region(units_.index(n));
            NDArray elements(dtype_, region.extent);
            elements_.read_into(region, elements.view(), {.threads = 1, .stop = io.stop});
            const auto summary = make();
            summary->add(elements.bytes().data(), dtype_.size(), elements.count(), nullptr);
            put(n, summary->result(), 1);
        });
    }

    [[nodiscard]] ChunkStatistics::Elements result() { return std::move(to_); }

private:
    [[nodiscard]] std::unique_ptr<ColumnSummary> make() const {
        return ColumnSummary::make(dtype_, 0, info_.marks_missing);
    }

    /// What `times` as many such elements amount to.
    void put(std::int64_t unit, const Statistics& found, std::int64_t times) {
        const auto at = static_cast<std::size_t>(unit);
        to_.count.values<std::int64_t>()[at] = (found.count - found.nans) * times;
        to_.missing.values<std::int64_t>()[at] = found.nans * times;
        to_.mean.values<double>()[at] = found.mean.value_or(std::numeric_limits<double>::quiet_NaN());
        to_.lacks.values<bool>()[at] = found.min_bytes.empty();
        const std::size_t to = at * static_cast<std::size_t>(dtype_.size());
        std::ranges::copy(found.min_bytes, to_.min.bytes().begin() + static_cast<std::ptrdiff_t>(to));
        std::ranges::copy(found.max_bytes, to_.max.bytes().begin() + static_cast<std::ptrdiff_t>(to));
    }

    const ArraySource& elements_;
    ArrayInfo info_;
    DType dtype_;
    const ChunkGrid& units_;
    ChunkStatistics::Elements to_;
};

}  // namespace

ChunkStatistics chunk_statistics(const Array& array, bool raw, IndexUse use, const IoOptions& io) {
    ChunkStatistics found;
    StoredSizes(array, found).find(io);
    std::unique_ptr<ArraySource> elements = std::make_unique<Array>(array);
    if (!raw) elements = decoded(std::move(elements));
    const DType dtype = elements->info().dtype;
    if (dtype.kind() == Kind::complex || (!is_number(dtype) && !is_time(dtype))) return found;
    const ChunkGrid units = unit_grid(*ArrayAccess::state(array)->loaded());
    ElementsOfChunks chunks(*elements, units);
    const auto index = ChunkIndex::of(array, raw);
    if (index == nullptr || !chunks.by_index(*index, use, io)) chunks.read(io);
    found.elements = chunks.result();
    return found;
}

}  // namespace tessera
