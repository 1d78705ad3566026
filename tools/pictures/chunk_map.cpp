#include <tessera/picture.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <tessera/array.h>
#include <tessera/error.h>
#include <tessera/memory_account.h>
#include <tessera/place.h>
#include <tessera/shard.h>

#include "array_state.h"
#include "check_chunk.h"
#include "picture_plan.h"

namespace tessera {

namespace {

// In a larger grid only the first chunk of each cell is looked up.
constexpr std::int64_t most_looked_at = 100'000;

struct Chunk {
    Index index;
    std::int64_t cell = 0;
    std::uint64_t bytes = 0;
    bool stored = false;
    bool checked = false;
    std::string damage = {};
};

/// A value of the store, and the requested chunks in it.
struct StoredValue {
    Index index;  ///< in the grid of values
    std::vector<Chunk> chunks;
};

class Mapper {
public:
    Mapper(const Place& place, const PictureOptions& options, const IoOptions& io)
        : options_(options),
          io_(io),
          source_(Array::open(place)),
          state_(place.store, place.prefix, source_.dialect()),
          loaded_(load_metadata(source_.dialect(), {*place.store, state_.prefix})),
          shard_(loaded_.pipeline.shard()),
          grid_(unit_grid(loaded_)) {}

    ChunkMap run() {
        choose();
        parallel_for(std::ssize(values_), io_, [&](std::int64_t n) { look(values_[static_cast<std::size_t>(n)]); });
        check();
        return summary();
    }

private:
    /// Turns an axis of elements into one of chunks.
    void count_chunks(PictureAxis& axis) const {
        const int d = axis.dimension;
        if (d < 0) return;
        const std::int64_t last = axis.start + axis.step * (axis.count - 1);
        const std::int64_t first = grid_.chunk_at(d, std::min(axis.start, last));
        axis.count = grid_.chunk_at(d, std::max(axis.start, last)) - first + 1;
        axis.start = first;
        axis.step = 1;
    }

    /// The axes in chunks, and the chunks of each value.
    void choose() {
        SliceAxes slice = slice_axes(source_, options_);
        Index fixed;
        for (int d = 0; d < grid_.shape().rank(); ++d) {
            const Selection::Axis& axis = slice.axes[static_cast<std::size_t>(d)];
            const std::int64_t middle = axis.start + axis.step * (axis.count / 2);
            fixed.push_back(grid_.chunk_at(d, middle));
        }
        count_chunks(slice.rows);
        count_chunks(slice.columns);
        fit_axes(slice.rows, slice.columns, options_.height, options_.width);
        rows_ = slice.rows;
        columns_ = slice.columns;
        std::string text;
        for (int d = 0; d < fixed.rank(); ++d) {
            const PictureAxis* axis = d == rows_.dimension ? &rows_ : d == columns_.dimension ? &columns_ : nullptr;
            text +=
                (d == 0 ? "" : ", ") + (axis == nullptr ? std::to_string(fixed[d])
                                                        : fmt::format("{}:{}", axis->start, axis->start + axis->count));
        }
        slice_ = "chunks [" + text + "]";
        sampled_ = rows_.count > most_looked_at / columns_.count;
        gather(fixed);
    }

    void gather(Index at) {
        std::map<std::int64_t, std::size_t> known;  // values by their number
        const std::int64_t looked_at = sampled_ ? rows_.cells() * columns_.cells() : rows_.count * columns_.count;
        held_.add(static_cast<std::uint64_t>(looked_at) * (sizeof(Chunk) + sizeof(StoredValue)));
        for (std::int64_t i = 0; i < rows_.count; i += sampled_ ? rows_.window : 1) {
            for (std::int64_t j = 0; j < columns_.count; j += sampled_ ? columns_.window : 1) {
                if (rows_.dimension >= 0) at[rows_.dimension] = rows_.start + i;
                at[columns_.dimension] = columns_.start + j;
                Index outer = at;
                for (int d = 0; shard_ != nullptr && d < at.rank(); ++d) {
                    outer[d] = loaded_.grid.chunk_at(d, at[d] * shard_->grid().chunks()[d]);
                }
                const auto [place, is_new] = known.emplace(loaded_.grid.linear(outer), values_.size());
                if (is_new) values_.push_back({.index = outer, .chunks = {}});
                values_[place->second].chunks.push_back(
                    {.index = at, .cell = i / rows_.window * columns_.cells() + j / columns_.window});
            }
        }
    }

    [[nodiscard]] Index inner_of(const StoredValue& value, const Index& chunk) const {
        Index inner = chunk;
        const Index first = first_unit(loaded_, value.index);
        for (int d = 0; d < inner.rank(); ++d) inner[d] -= first[d];
        return inner;
    }

    /// Finds out which chunks are stored, and how large they are.
    void look(StoredValue& value) const {
        const std::string key = state_.chunk_key(loaded_, value.index);
        try {
            const auto stamp = state_.store->stamp(key);
            if (!stamp) return;
            if (shard_ == nullptr) {
                value.chunks.front().stored = true;
                value.chunks.front().bytes = stamp->size;
                return;
            }
            const auto own = loaded_.of(value.index);
            const Shard shard(*own->pipeline.shard(), state_.store->open(key));
            for (Chunk& chunk : value.chunks) {
                const ShardCodec::Place& place = shard.place(inner_of(value, chunk.index));
                chunk.stored = place.present();
                chunk.bytes = chunk.stored ? place.size : 0;
            }
        } catch (...) {
            const Fault fault = current_fault();
            for (Chunk& chunk : value.chunks) {
                chunk.stored = true;
                chunk.checked = fault.kind == FindingKind::damage;
                if (chunk.checked) chunk.damage = fault.text;
            }
        }
    }

    /// Decodes stored chunks, as many as the limit allows.
    void check() {
        std::vector<StoredValue*> stored;
        std::uint64_t largest = 0;
        for (StoredValue& value : values_) {
            for (const Chunk& chunk : value.chunks) largest = std::max(largest, chunk.bytes);
            const bool there = std::ranges::any_of(value.chunks, [](const Chunk& c) { return c.stored; });
            if (there) stored.push_back(&value);
        }
        if (stored.empty()) return;
        const std::int64_t affordable =
            std::max<std::int64_t>(1, options_.limit / std::max<std::int64_t>(1, loaded_.chunk_bytes()));
        const std::int64_t step = ceil_div(std::ssize(stored), affordable);
        const std::uint64_t memory = io_.max_memory == 0 ? std::uint64_t{256} << 20U : io_.max_memory;
        IoOptions beside = io_;
        beside.threads = static_cast<int>(
            std::clamp<std::uint64_t>(memory / std::max<std::uint64_t>(1, check_memory(loaded_, largest)), 1,
                                      static_cast<std::uint64_t>(thread_count(io_))));
        parallel_for(ceil_div(std::ssize(stored), step), beside,
                     [&](std::int64_t n) { check_value(*stored[static_cast<std::size_t>(n * step)]); });
    }

    void check_value(StoredValue& value) const {
        IoOptions alone = io_;
        alone.threads = 1;
        const CheckedChunk found = check_chunk(state_, loaded_, value.index, alone);
        for (Chunk& chunk : value.chunks) chunk.checked = chunk.stored;
        for (const CheckedChunk::Bad& bad : found.bad) {
            for (Chunk& chunk : value.chunks) {
                if (!chunk.stored || (bad.inner && !(inner_of(value, chunk.index) == *bad.inner))) continue;
                if (bad.fault.kind == FindingKind::damage) chunk.damage = bad.fault.text;
                if (bad.fault.kind == FindingKind::unchecked) chunk.checked = false;
            }
        }
    }

    [[nodiscard]] ChunkMap summary() {
        ChunkMap map;
        describe(map.picture);
        const auto cells = static_cast<std::size_t>(rows_.cells() * columns_.cells());
        std::vector<Cell> counted(cells);
        for (StoredValue& value : values_) {
            for (Chunk& chunk : value.chunks) count(chunk, map, counted[static_cast<std::size_t>(chunk.cell)]);
        }
        map.decoded_bytes = static_cast<std::uint64_t>(map.stored) * item();
        std::ranges::sort(map.damage, {}, [&](const ChunkMap::Damage& d) { return grid_.linear(d.chunk); });
        draw(map.picture, counted);
        return map;
    }

    /// What is known of the chunks of a cell.
    struct Cell {
        std::uint64_t stored = 0, bytes = 0;
        bool damaged = false;
    };

    /// The bytes of a chunk's elements.
    [[nodiscard]] std::uint64_t item() const {
        return static_cast<std::uint64_t>(byte_count(grid_.chunks(), loaded_.metadata.dtype.size()));
    }

    void describe(Picture& picture) const {
        picture.name = source_.name();
        picture.slice = slice_;
        picture.dtype = picture.stored_dtype = DType::of<double>();
        picture.label = "compression ratio";
        picture.rows = rows_;
        picture.columns = columns_;
        picture.sampled = sampled_;
        picture.nan_name = "damaged";
        picture.missing_name = "not stored";
        const bool blocks = rows_.window > 1 || columns_.window > 1;
        if (blocks) picture.how = fmt::format("{}×{} chunks each", rows_.window, columns_.window);
        if (sampled_) picture.how += ", of which the first was looked at";
    }

    static void count(Chunk& chunk, ChunkMap& map, Cell& cell) {
        ++map.chunks;
        if (!chunk.stored) return;
        ++map.stored;
        ++cell.stored;
        cell.bytes += chunk.bytes;
        map.bytes += chunk.bytes;
        if (!chunk.checked) ++map.unchecked;
        if (chunk.damage.empty()) return;
        ++map.damaged;
        cell.damaged = true;
        map.damage.push_back({chunk.index, std::move(chunk.damage)});
    }

    void draw(Picture& picture, const std::vector<Cell>& cells) const {
        picture.values = NDArray(DType::of<double>(), {rows_.cells(), columns_.cells()});
        picture.states = NDArray(DType::of<std::uint8_t>(), {rows_.cells(), columns_.cells()});
        for (std::size_t k = 0; k < cells.size(); ++k) {
            const Cell& cell = cells[k];
            const CellState state = cell.damaged      ? CellState::nan
                                    : cell.stored > 0 ? CellState::value
                                                      : CellState::missing;
            picture.states.values<std::uint8_t>()[k] = static_cast<std::uint8_t>(state);
            picture.values.values<double>()[k] = state == CellState::value
                                                     ? static_cast<double>(cell.stored * item()) /
                                                           static_cast<double>(std::max<std::uint64_t>(1, cell.bytes))
                                                     : std::numeric_limits<double>::quiet_NaN();
        }
    }

    const PictureOptions& options_;
    IoOptions io_;
    Array source_;
    ArrayState state_;
    LoadedArray loaded_;
    const ShardCodec* shard_;
    ChunkGrid grid_;  ///< of chunks
    PictureAxis rows_, columns_;
    std::string slice_;
    bool sampled_ = false;
    MemoryHold held_;  ///< for these
    std::vector<StoredValue> values_;
};

}  // namespace

ChunkMap read_chunk_map(const Place& place, const PictureOptions& options, const IoOptions& io) {
    return Mapper(place, options, io).run();
}

}  // namespace tessera
