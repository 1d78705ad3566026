#include <tessera/copy_array.h>

#include <tessera/absent.h>
#include <tessera/action.h>
#include <tessera/apart.h>
#include <tessera/chunk_grid.h>
#include <tessera/derived_source.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "copy_plan.h"
#include "picked_part.h"
#include "region_io.h"

namespace tessera {

namespace {

/// The offset within a chunk of the sink at which a region of this rank begins.
Index begin_in_chunk(const ArrayInfo& sink, int rank) {
    return sink.chunk_offset.rank() == rank ? sink.chunk_offset : Index::filled(rank, 0);
}

/// The shape of the copied region, extended to the start of the sink's first chunk. Blocks are cut from it, so that
/// they end where chunks end.
Shape from_chunk_start(const ArrayInfo& sink, const Shape& shape) {
    const Index begin = begin_in_chunk(sink, shape.rank());
    Shape from = shape;
    for (int d = 0; d < shape.rank(); ++d) from[d] = checked_add(from[d], begin[d], "the length copied");
    return from;
}

/// The part of a selection that yields `block`, a region of its result.
Selection sub_selection(const Selection& selection, const Region& block) {
    std::vector<Selection::Axis> axes = selection.axes();
    for (int d = 0; d < block.rank(); ++d) {
        Selection::Axis& a = axes[static_cast<std::size_t>(d)];
        a.start += block.start[d] * a.step;
        a.count = block.extent[d];
    }
    return Selection(std::move(axes));
}

/// A block's view without dropped dimensions, or with them.
template <class View>
View keep_axes(const View& v, const Selection& selection) {
    View kept = v;
    kept.shape = Shape();
    kept.strides = Strides();
    for (int d = 0; d < v.shape.rank(); ++d) {
        if (selection.axes()[static_cast<std::size_t>(d)].dropped) continue;
        kept.shape.push_back(v.shape[d]);
        kept.strides.push_back(v.strides[d]);
    }
    return kept;
}

Region keep_axes(const Region& r, const Selection& selection) {
    Region kept;
    for (int d = 0; d < r.rank(); ++d) {
        if (selection.axes()[static_cast<std::size_t>(d)].dropped) continue;
        kept.start.push_back(r.start[d]);
        kept.extent.push_back(r.extent[d]);
    }
    return kept;
}

/// A shape without the selection's dropped dimensions, extended by these as length 1.
Shape full_shape(const Shape& kept, const Selection& selection) {
    Shape full;
    int k = 0;
    for (const Selection::Axis& a : selection.axes()) full.push_back(a.dropped ? 1 : kept[k++]);
    return full;
}

/// A sink's chunk shape, extended by the selection's dropped dimensions as length 1.
CopySide with_dropped(CopySide side, const Selection& selection) {
    if (side.chunks.rank() != selection.shape().rank() || selection.rank() == side.chunks.rank()) return side;
    side.chunks = full_shape(side.chunks, selection);
    if (!side.shards.empty()) side.shards = full_shape(side.shards, selection);
    return side;
}

void copy_blocks(const ArraySource& source, ArraySink& sink, const Selection& selection, const CopyPlan& plan,
                 const CopyOptions& options);

/// Copies the selected elements into one shard, block by block.
void copy_shard(const ArraySource& source, ArraySink& shard, const Selection& selection, const CopyOptions& options) {
    const ArrayInfo to = shard.info();
    CopySide side = with_dropped(side_of(to), selection);
    side.in_turn = true;
    const CopyPlan plan = make_copy_plan(from_chunk_start(to, selection.full_shape()), to.dtype.size(),
                                         side_of(source.info()), side, options);
    copy_blocks(source, shard, selection, plan, {.io = options.io, .selection = std::nullopt, .done = nullptr});
    shard.finish();
}

/// The work of copy_blocks.
class BlockCopy {
public:
    BlockCopy(const ArraySource& source, ArraySink& sink, const Selection& selection, const CopyPlan& plan,
              const CopyOptions& options)
        : source_(source),
          sink_(sink),
          selection_(selection),
          plan_(plan),
          options_(options),
          shape_(selection.full_shape()),
          // A structure with padding may become one that shows padding as fields: the sink handles that.
          dtype_(source.info().dtype.equal_but_order(sink.info().dtype) ? sink.info().dtype : source.info().dtype),
          begin_(begin_in_chunk(sink.info(), shape_.rank())),
          blocks_(from_chunk_start(sink.info(), shape_), plan.block),
          io_(options.io) {
        io_.threads = plan.threads;
        io_.progress = nullptr;  // counted here, per block
        if (io_.max_memory == 0) io_.max_memory = default_copy_memory;
        // With too few blocks for all threads, the threads share each block instead.
        each_ = plan.each && blocks_.chunk_count() >= 2 * plan.threads;
        within_ = io_;
        if (each_) within_.threads = 1;
        repeatable_ = options.repeatable && !plan.sink_in_order;
        if (options.skip_absent) find_stored();
        const bool far = is_far(source) || (options.beside != nullptr && is_far(*options.beside));
        if (far && blocks_.chunk_count() > 1) prepare_far();
    }

    void run() {
        try {
            each_ ? run_each() : run_in_turn();
        } catch (const Unrepeatable& e) {
            throw e.error;
        }
    }

private:
    /// An Error(budget) of a sink that does not accept a block twice.
    struct Unrepeatable {
        Error error;
    };

    void run_in_turn() {
        NDArray own;
        NDArray& memory = options_.memory == nullptr ? own : *options_.memory;
        for (std::int64_t n = 0; n < block_count(); ++n) {
            if (io_.stop.stop_requested()) throw cancelled("stopped on request");
            copy(region_of(n), memory);
        }
    }

    void run_each() {
        parallel_in_memory(block_count(), io_, [&](std::int64_t n) {
            NDArray memory = take_idle();
            copy(region_of(n), memory);
            if (dtype_.is_variable()) return;  // variable-length content is not reused
            const std::lock_guard lock(mutex_);
            idle_.push_back(std::move(memory));
        });
    }

    /// Reads from far away: each value once, and what comes next while a block is written.
    void prepare_far() {
        const ArrayInfo from = source_.info();
        const bool whole = selection_.is_region() && shape_ == from.shape;
        kept_ = keep_divided(source_, selection_.bounds(), plan_.block, whole);
        if (kept_ && !plan_.sink_in_order && from.access == Access::any) order_by_chunks(from);
        auto next_block = [this, n = std::int64_t{0}]() mutable {
            while (n < block_count()) {
                if (const Region block = inside(region_of(n++)); !block.empty()) return std::optional(block);
            }
            return std::optional<Region>();
        };
        if (options_.done) return;  // which may be much of it
        const auto room = static_cast<std::uint64_t>(plan_.spare);
        ahead_ = announce_next(source_, room, [this, next_block]() mutable -> std::optional<Selection> {
            const std::optional<Region> block = next_block();
            if (!block) return std::nullopt;
            return sub_selection(selection_, *block);
        });
        if (options_.beside == nullptr || !(options_.beside->info().shape == shape_)) return;
        const Region all = Region::whole(shape_);
        kept_beside_ = keep_divided(*options_.beside, all, plan_.block, true);
        ahead_beside_ = announce_next(*options_.beside, room, [next_block]() mutable -> std::optional<Selection> {
            const std::optional<Region> block = next_block();
            if (!block) return std::nullopt;
            return region_selection(*block);
        });
    }

    /// The part of a block that is copied, without what lies before it in the sink's first chunk.
    [[nodiscard]] Region inside(const Region& region) const {
        Region block = intersection(region, {begin_, shape_});
        if (block.empty()) return block;
        for (int d = 0; d < shape_.rank(); ++d) block.start[d] -= begin_[d];
        return block;
    }

    /// Blocks of one chunk or shard of the source follow each other, so that few of them are in use at once.
    void order_by_chunks(const ArrayInfo& from) {
        const Shape& chunks = from.shards.empty() ? from.chunks : from.shards;
        if (chunks.rank() != shape_.rank()) return;
        Shape tile;
        for (int d = 0; d < shape_.rank(); ++d) {
            tile.push_back(std::clamp<std::int64_t>(chunks[d] / plan_.block[d], 1, blocks_.grid()[d]));
        }
        tiles_ = ChunkGrid(blocks_.grid(), tile);
    }

    /// The index of a block, of which those in one tile follow each other.
    [[nodiscard]] Index index_by_tiles(std::int64_t n) const {
        const Shape& grid = blocks_.grid();
        std::int64_t below = blocks_.chunk_count();  // blocks with the same index in the dimensions before
        std::int64_t beside = 1;                     // of this tile, along the dimensions before
        Region tile;
        for (int d = 0; d < grid.rank(); ++d) {
            below /= grid[d];
            const std::int64_t length = tiles_->chunks()[d];
            const std::int64_t t = n / (beside * length * below);
            n -= t * beside * length * below;
            tile.start.push_back(t * length);
            tile.extent.push_back(std::min(length, grid[d] - t * length));
            beside *= tile.extent[d];
        }
        return index_in(tile, n);
    }

    /// Lists the blocks of which something is stored, if there are many others.
    void find_stored() {
        constexpr std::int64_t many = 4096;
        const bool whole = selection_.is_region() && shape_ == source_.info().shape;
        const bool at_start = std::ranges::all_of(begin_, [](std::int64_t offset) { return offset == 0; });
        const bool known =
            source_.absent_element() && (options_.beside == nullptr || options_.beside->absent_element());
        if (!known || !whole || !at_start || blocks_.chunk_count() < many || plan_.sink_in_order) return;
        CountedVector<std::int64_t> numbers;
        try {
            if (!add_stored_blocks(source_, blocks_, numbers)) return;
            if (options_.beside != nullptr && !add_stored_blocks(*options_.beside, blocks_, numbers)) return;
        } catch (const Error& e) {
            if (e.code() != ErrorCode::budget) throw;
            return;
        }
        std::ranges::sort(numbers);
        // Not std::ranges::unique, of which Clang 14 does not compile the result.
        numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
        if (std::ssize(numbers) < blocks_.chunk_count() / 2) stored_ = std::move(numbers);
    }

    [[nodiscard]] std::int64_t block_count() const { return stored_ ? std::ssize(*stored_) : blocks_.chunk_count(); }

    /// The region of a block, relative to the start of the sink's first chunk.
    [[nodiscard]] Region region_of(std::int64_t n) const {
        if (stored_) return blocks_.chunk_region(blocks_.index((*stored_)[static_cast<std::size_t>(n)]));
        if (tiles_) return blocks_.chunk_region(index_by_tiles(n));
        if (plan_.block_order == Order::C) return blocks_.chunk_region(blocks_.index(n));
        Index index = Index::filled(shape_.rank(), 0);
        for (int d = 0; d < shape_.rank(); ++d) {
            index[d] = n % blocks_.grid()[d];
            n /= blocks_.grid()[d];
        }
        return blocks_.chunk_region(index);
    }

    NDArray take_idle() {
        const std::lock_guard lock(mutex_);
        if (idle_.empty()) return {};
        NDArray memory = std::move(idle_.back());
        idle_.pop_back();
        return memory;
    }

    /// Copies a block, or copies it in parts if its variable-length content does not fit into memory.
    void copy(const Region& region, NDArray& memory) {
        const Region block = inside(region);
        if (block.empty()) return;
        const std::optional<std::pair<Region, Region>> halves =
            dtype_.is_variable() && !plan_.shards ? halves_of(region) : std::nullopt;
        if (!halves || block.count() < too_many_) {
            try {
                copy_block(block, memory);
                return;
            } catch (const Error& e) {
                if (e.code() != ErrorCode::budget || !halves) throw;
                if (block.count() < too_many_) too_many_ = block.count();
            }
        }
        memory = NDArray();
        copy(halves->first, memory);
        copy(halves->second, memory);
    }

    /// A block divided in two, between chunks. For an in-order sink the halves must be consecutive, even inside a
    /// chunk.
    [[nodiscard]] std::optional<std::pair<Region, Region>> halves_of(const Region& region) const {
        const int rank = region.rank();
        for (int k = 0; k < rank; ++k) {
            const int d = plan_.block_order == Order::C ? k : rank - 1 - k;
            const std::int64_t units = ceil_div(region.extent[d], plan_.unit[d]);
            const std::int64_t first =
                units >= 2 ? units / 2 * plan_.unit[d] : (plan_.sink_in_order ? region.extent[d] / 2 : 0);
            if (first == 0) continue;
            std::pair<Region, Region> halves(region, region);
            halves.first.extent[d] = first;
            halves.second.start[d] += halves.first.extent[d];
            halves.second.extent[d] -= halves.first.extent[d];
            return halves;
        }
        return std::nullopt;
    }

    void copy_block(const Region& block, NDArray& memory) {
        const Region place = keep_axes(block, selection_);
        const bool done = options_.done && options_.done(place);
        if (!done && plan_.shards) {
            copy_shard(source_, *sink_.open_shard(place), sub_selection(selection_, block), options_);
            return;
        }
        if (!done) {
            const MutableArrayView view = memory_for(block, memory);
            const Selection part = sub_selection(selection_, block);
            if (part.is_region()) {
                source_.read_into(part.bounds(), view, within_);
            } else {
                read_selection_into(source_, part, view, within_);
            }
            write(place, keep_axes(ArrayView(view), selection_));
        }
        if (options_.io.progress != nullptr) options_.io.progress->advance(byte_count(block.extent, dtype_.size()));
    }

    MutableArrayView memory_for(const Region& block, NDArray& memory) const {
        Shape lengths;
        Dims place_of = plan_.axes;
        for (int k = 0; k < shape_.rank(); ++k) {
            lengths.push_back(block.extent[static_cast<int>(plan_.axes[k])]);
            place_of[static_cast<int>(plan_.axes[k])] = k;
        }
        const bool fits = !memory.bytes().empty() && memory.shape() == lengths && memory.dtype() == dtype_;
        if (!fits || dtype_.is_variable()) {
            memory = NDArray();  // freed before the next is made
            memory = NDArray(dtype_, lengths);
        }
        return memory.view().transposed(place_of);
    }

    void write(const Region& place, const ArrayView& elements) {
        try {
            sink_.write(place, elements, within_);
        } catch (const Error& e) {
            if (e.code() != ErrorCode::budget || repeatable_) throw;
            throw Unrepeatable{e};
        }
    }

    const ArraySource& source_;
    ArraySink& sink_;
    const Selection& selection_;
    const CopyPlan& plan_;
    const CopyOptions& options_;
    Shape shape_;
    DType dtype_;
    Index begin_;
    ChunkGrid blocks_;
    IoOptions io_;
    IoOptions within_;  ///< for the work on one block
    bool each_ = false;
    bool repeatable_ = false;                         ///< the sink takes a block again
    std::atomic<std::int64_t> too_many_ = INT64_MAX;  ///< elements of the smallest block that did not fit into memory
    std::mutex mutex_;
    std::vector<NDArray> idle_;                          ///< blocks of memory that no thread is using
    std::optional<CountedVector<std::int64_t>> stored_;  ///< the numbers of the blocks to be copied; nullopt: all
    std::optional<ChunkGrid> tiles_;                     ///< of indices of blocks, if these follow the source's chunks
    // See KeyValueStore::keep_parts and read_ahead. The last members: requests call functions of this object.
    std::unique_ptr<ReadAhead> kept_;
    std::unique_ptr<ReadAhead> kept_beside_;
    std::unique_ptr<ReadAhead> ahead_;
    std::unique_ptr<ReadAhead> ahead_beside_;
};

void copy_blocks(const ArraySource& source, ArraySink& sink, const Selection& selection, const CopyPlan& plan,
                 const CopyOptions& options) {
    BlockCopy(source, sink, selection, plan, options).run();
}

}  // namespace

void copy_array(const ArraySource& source, ArraySink& sink, const CopyOptions& options) {
    const ArrayInfo from = source.info();
    const ArrayInfo to = sink.info();
    const Selection selection = options.selection ? *options.selection : Selection::all(from.shape);
    if (!(selection.shape() == to.shape)) {
        throw invalid_argument("cannot copy {} to {}: shape {} does not fit shape {}", source.name(), sink.name(),
                               selection.shape().to_string(), to.shape.to_string());
    }
    if (!from.dtype.equal_but_order(to.dtype) && !from.dtype.with_padding_named().equal_but_order(to.dtype)) {
        throw invalid_argument("cannot copy {} to {}: dtype {} is not {}", source.name(), sink.name(),
                               from.dtype.to_string(), to.dtype.to_string());
    }
    const Shape shape = selection.full_shape();
    const std::int64_t item = to.dtype.size();
    if (element_count(shape) > 0) {
        const CopyPlan plan = make_copy_plan(from_chunk_start(to, shape), item, side_of(from),
                                             with_dropped(side_of(to), selection), options);
        if (plan.spool && !to.dtype.is_variable()) {
            copy_array(*spooled(source, options), sink,
                       {.io = options.io, .selection = std::nullopt, .done = options.done});
            return;
        }
        if (options.io.progress != nullptr) options.io.progress->start(byte_count(shape, item), source.name());
        copy_blocks(source, sink, selection, plan, options);
    }
    sink.finish();
}

std::optional<Note> one_thread_note(const ArrayInfo& source, const ArrayInfo& sink, const CopyOptions& options) {
    const Selection selection = options.selection ? *options.selection : Selection::all(source.shape);
    const Shape shape = selection.full_shape();
    if (thread_count(options.io) == 1 || element_count(shape) == 0) return {};
    const CopyPlan plan = make_copy_plan(from_chunk_start(sink, shape), sink.dtype.size(), side_of(source),
                                         with_dropped(side_of(sink), selection), options);
    if (plan.threads > 1 || plan.shards || plan.spool || plan.unit == shape) return {};
    return Note("one thread works, because the memory allowed does not hold what two need",
                {{Action::max_memory, "lets two work", fmt::format("{}M", ceil_div(plan.for_two, mebibyte))}});
}

Shape independent_block(const ArrayInfo& source, const ArrayInfo& sink, const CopyOptions& options) {
    if (source.access != Access::any) {
        throw unsupported(
            "it can only be read from its beginning, so that its parts cannot be copied by themselves; "
            "make an array of it first");
    }
    const Selection selection = options.selection ? *options.selection : Selection::all(source.shape);
    const Shape shape = selection.full_shape();
    Shape block = shape;
    if (element_count(shape) > 0) {
        CopyOptions alone = options;
        alone.io.threads = 1;
        block = make_copy_plan(shape, sink.dtype.size(), side_of(source), with_dropped(side_of(sink), selection), alone)
                    .block;
    }
    Shape kept;
    for (int d = 0; d < block.rank(); ++d) {
        if (!selection.axes()[static_cast<std::size_t>(d)].dropped) kept.push_back(std::max<std::int64_t>(1, block[d]));
    }
    return kept;
}

}  // namespace tessera
