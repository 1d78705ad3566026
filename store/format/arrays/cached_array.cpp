// Why no write is lost
// --------------------
// A chunk in memory has the version stamp of the stored value that it was read from, and a dirty mask of the elements
// that were written since. A write never reads: it sets elements and their places in the mask. A read compares the
// stamp with that of the stored value. If they differ, or nothing was read yet, the chunk is read and the dirty
// elements are laid over it. The stamp is taken before the value is read, so that at worst it is too old and the chunk
// is read again.
//
// Writing back holds the chunk's lock. If the stamp is still that of the stored value, the chunk in memory is encoded
// as it is; otherwise the dirty elements alone are put into the chunk that is stored now. The new stamp is taken and
// the mask cleared once the value is in its place and before the lock is released. Many values are put in place
// together (chunk_changes.h); a failure before that keeps the mask. Inner chunks of the same shard that did not change
// get the new stamp too.
#include <tessera/cached_array.h>

#include <fmt/format.h>
#include <tessera/caller.h>
#include <tessera/copy_elements.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/shard.h>

#include <algorithm>
#include <cstdio>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "array_access.h"
#include "chunk_changes.h"
#include "element_mask.h"
#include "marked_chunks.h"
#include "picked_part.h"
#include "region_io.h"
#include "resize.h"

namespace tessera {

namespace {

struct IndexLess {
    bool operator()(const Index& a, const Index& b) const { return std::ranges::lexicographical_compare(a, b); }
};

/// A chunk in memory.
struct CachedChunk {
    Index index = {};             ///< in the grid of chunks
    NDArray elements = {};        ///< of a whole chunk; empty before the first use
    ElementMask dirty_mask = {};  ///< the written elements; empty: none
    bool all = false;             ///< all elements were written
    bool loaded = false;          ///< clean elements are those of the value with `stamp`
    std::optional<ValueStamp> stamp = std::nullopt;
    std::uint64_t bytes = 0;  ///< size counted against the budget
    std::uint64_t arena = 0;  ///< bytes of variable-length content when last packed

    [[nodiscard]] bool dirty() const { return all || !dirty_mask.empty(); }
};

std::uint64_t arena_bytes(CachedChunk& entry) {
    const MutableArrayView view = entry.elements.view();
    return view.arena == nullptr ? 0 : view.arena->bytes();
}

}  // namespace

struct ChunkCache {
    ChunkCache(std::shared_ptr<ArrayState> array, std::uint64_t budget)
        : array_(std::move(array)), budget_(budget), loaded_(array_->refresh()) {
        adopt(loaded_);
        if (unit_bytes_ > budget_) {
            throw Error(ErrorCode::budget,
                        fmt::format("{}: a chunk needs {} bytes of memory, but the budget of the cache is {}",
                                    array_->name, unit_bytes_, budget_));
        }
        const auto bytes = static_cast<std::size_t>(byte_count(grid_->chunks(), loaded_->metadata.dtype.size()));
        if (grid_->regular() && bytes > 0 && bytes <= BufferPool::slab_size / 4 &&
            budget_ / 8 >= BufferPool::slab_size) {
            element_memory_.emplace(bytes);
        }
    }

    void read(const Region& region, const MutableArrayView& out, const IoOptions& io) {
        const StopScope scope(io.stop);
        const auto guard = take_turn();
        require_fitting(region, out);
        for_each_entry(region, io, [&](CachedChunk& entry, const ChunkPart& part) {
            load(entry);
            copy_elements(entry.elements.view().part(part.in_chunk), out.part(part.in_request));
        });
    }

    void write(const Region& region, const ArrayView& in, const IoOptions& io) {
        const StopScope scope(io.stop);
        const auto guard = take_turn();
        require_fitting(region, in);
        for_each_entry(region, io, [&](CachedChunk& entry, const ChunkPart& part) {
            if (entry.elements.bytes().empty()) entry.elements = fresh_elements(entry);
            copy_elements(in.part(part.in_request), entry.elements.view().part(part.in_chunk));
            mark(entry, part);
            pack(entry);
        });
    }

    void read(const Selection& selection, const MutableArrayView& out, const IoOptions& io) {
        const StopScope scope(io.stop);
        const auto guard = take_turn();
        require_fitting(selection, out);
        for_each_entry(selection.bounds(), io, [&](CachedChunk& entry, const ChunkPart&) {
            const Picked part = picked_from(selection, grid_->chunk_region(entry.index));
            if (part.in_request.empty()) return;
            load(entry);
            copy_elements(picked(entry.elements.view().part(part.in_box), part, selection), out.part(part.in_request));
        });
    }

    void write(const Selection& selection, const ArrayView& in, const IoOptions& io) {
        const StopScope scope(io.stop);
        const auto guard = take_turn();
        require_fitting(selection, in);
        for_each_entry(selection.bounds(), io, [&](CachedChunk& entry, const ChunkPart&) {
            const Picked part = picked_from(selection, grid_->chunk_region(entry.index));
            if (part.in_request.empty()) return;
            if (entry.elements.bytes().empty()) entry.elements = fresh_elements(entry);
            copy_elements(in.part(part.in_request), picked(entry.elements.view().part(part.in_box), part, selection));
            if (!entry.all) {
                if (!entry.dirty()) entry.dirty_mask = ElementMask(grid_->chunk_shape(entry.index));
                mark_steps(entry.dirty_mask, selection, part.in_box, 0);
            }
            pack(entry);
        });
    }

    void flush(const IoOptions& io) {
        const StopScope scope(io.stop);
        const auto guard = take_turn();
        write_back([&] { return entries_.begin(); }, io);
        array_->sync();
    }

    void refresh() {
        const auto guard = take_turn();
        adopt(array_->refresh());
    }

    [[nodiscard]] std::shared_ptr<const LoadedArray> loaded() const {
        const auto guard = take_turn();
        return loaded_;
    }
    [[nodiscard]] const ArrayState& array() const { return *array_; }
    [[nodiscard]] Array handle() const { return ArrayAccess::handle(array_); }

private:
    using Entries = std::list<CachedChunk>;  ///< the most recently used first

    /// Waits until no other thread uses the cache.
    [[nodiscard]] std::unique_lock<std::timed_mutex> take_turn() const {
        std::unique_lock guard(mutex_, std::defer_lock);
        lock_or_stop(guard);
        return guard;
    }

    // ---- what is there

    void adopt(std::shared_ptr<const LoadedArray> loaded) {
        // Where chunks differ in length, the longest may be new: refresh() has compared them.
        if (grid_ && grid_->regular() && !(unit_shape(*loaded) == grid_->chunks())) {
            throw invalid_argument("{}: the array was replaced by another one; open it again", array_->name);
        }
        if (loaded != loaded_) {
            for (CachedChunk& entry : entries_) {
                entry.loaded = false;
                if (entry.all) mark_all(entry);  // all elements inside the old shape
            }
        }
        loaded_ = std::move(loaded);
        grid_ = unit_grid(*loaded_);
        unit_bytes_ = static_cast<std::uint64_t>(byte_count(grid_->chunks(), loaded_->metadata.dtype.size())) +
                      ElementMask::bytes(element_count(grid_->chunks()));
        for (auto entry = entries_.begin(); entry != entries_.end();) {
            entry = in_grid(*grid_, entry->index) ? std::next(entry) : drop(entry);
        }
    }

    template <class View>
    void require_fitting(const Region& region, const View& elements) {
        const Region whole = Region::whole(grid_->shape());
        if (region.rank() == whole.rank() && !(intersection(region, whole).extent == region.extent)) {
            adopt(array_->refresh());  // perhaps it has grown
        }
        in_context([&] { return array_->name; }, [&] { require_inside(region, grid_->shape()); });
        if (elements.shape == region.extent && elements.dtype.equal_but_order(loaded_->metadata.dtype)) return;
        throw invalid_argument("{}: the elements given are {} of shape {}, expected {} of shape {}", array_->name,
                               elements.dtype.to_string(), elements.shape.to_string(),
                               loaded_->metadata.dtype.to_string(), region.extent.to_string());
    }

    template <class View>
    void require_fitting(const Selection& selection, const View& elements) {
        View bounds = elements;  // of the shape that the region around the selection has
        if (elements.shape == selection.full_shape()) bounds.shape = selection.bounds().extent;
        require_fitting(selection.bounds(), bounds);
    }

    // ---- which chunks are in memory

    /// Calls each(entry, part of the region) for every chunk of a region, in parallel, as many at a time as fit.
    template <class Each>
    void for_each_entry(const Region& region, const IoOptions& io, const Each& each) {
        if (region.empty()) return;
        const Region overlapped = grid_->overlapping(region);
        const auto at_once = static_cast<std::int64_t>(budget_ / std::max<std::uint64_t>(unit_bytes_, 1));
        for (std::int64_t first = 0; first < overlapped.count(); first += at_once) {
            const std::int64_t count = std::min(at_once, overlapped.count() - first);
            make_room_for(overlapped, first, count, io);
            require_inside(region, grid_->shape());  // making room may have refreshed the shape
            std::vector<CachedChunk*> used;
            for (std::int64_t n = 0; n < count; ++n) used.push_back(&use(index_in(overlapped, first + n)));
            IoOptions within = io;
            if (is_quick(region, used)) within.threads = 1;
            parallel_for(count, within, [&](std::int64_t n) {
                each(*used[static_cast<std::size_t>(n)], chunk_part(*grid_, region, overlapped, first + n));
            });
            for (CachedChunk* entry : used) count_bytes(*entry, unit_bytes_ + arena_bytes(*entry));
        }
    }

    /// Whether there is so little to copy that threads would not pay off.
    [[nodiscard]] bool is_quick(const Region& region, const std::vector<CachedChunk*>& used) const {
        constexpr std::int64_t little = 1 << 20;
        return region.count() * loaded_->metadata.dtype.size() < little &&
               std::ranges::none_of(used, [](const CachedChunk* entry) { return entry->elements.bytes().empty(); });
    }

    /// The entry of a chunk, moved to the front.
    CachedChunk& use(const Index& index) {
        const auto found = places_.find(index);
        if (found != places_.end()) {
            entries_.splice(entries_.begin(), entries_, found->second);
        } else {
            entries_.push_front({.index = index});
            count_bytes(entries_.front(), unit_bytes_);
            places_.emplace(index, entries_.begin());
        }
        return entries_.front();
    }

    void count_bytes(CachedChunk& entry, std::uint64_t bytes) {
        bytes_ += bytes - entry.bytes;
        entry.bytes = bytes;
    }

    Entries::iterator drop(Entries::iterator entry) {
        count_bytes(*entry, 0);
        places_.erase(entry->index);
        return entries_.erase(entry);
    }

    /// Evicts least recently used chunks until there is room for `count` chunks of a box from number `first` on. Does
    /// not evict these.
    void make_room_for(const Region& box, std::int64_t first, std::int64_t count, const IoOptions& io) {
        std::size_t stay = 0;
        for (std::int64_t n = 0; n < count; ++n) {
            const auto found = places_.find(index_in(box, first + n));
            if (found == places_.end()) continue;
            entries_.splice(entries_.begin(), entries_, found->second);
            ++stay;
        }
        const std::uint64_t room = (static_cast<std::uint64_t>(count) - stay) * unit_bytes_;
        if (bytes_ + room <= budget_) return;
        // Evicts somewhat more than needed, so that chunks are written back in parallel.
        const std::uint64_t most = budget_ - budget_ / 8;
        const auto first_to_leave = [&] {
            auto leaving = entries_.end();
            std::uint64_t left = bytes_ + room;
            for (std::size_t n = entries_.size(); n > stay && left > most; --n) left -= (--leaving)->bytes;
            return leaving;
        };
        write_back(first_to_leave, io);
        for (auto entry = first_to_leave(); entry != entries_.end();) entry = drop(entry);
    }

    // ---- elements

    /// Memory for the elements of a chunk.
    [[nodiscard]] NDArray fresh(const CachedChunk& entry) const {
        const DType& dtype = loaded_->metadata.dtype;
        return element_memory_ ? NDArray(dtype, grid_->chunks(), element_memory_->take())
                               : NDArray(dtype, grid_->chunk_shape(entry.index));
    }

    NDArray fresh_elements(const CachedChunk& entry) const {
        NDArray elements = fresh(entry);
        // Elements beyond the array's edge are stored too, and must not be uninitialised memory.
        if (!(inside(entry).extent == elements.shape())) zero_elements(elements.view());
        return elements;
    }

    /// Loads the present elements of the array, and lays the dirty ones over them.
    void load(CachedChunk& entry) const {
        if (entry.all) return;
        const std::optional<ValueStamp> now = array_->store->stamp(array_->chunk_key(*loaded_, unit_place(entry)));
        if (entry.loaded && entry.stamp == now) return;
        NDArray elements = fresh(entry);
        read_one_chunk(*array_, *loaded_, entry.index, elements.view());
        if (entry.dirty()) copy_marked(entry.elements.view(), entry.dirty_mask, elements.view());
        entry.elements = std::move(elements);
        entry.stamp = now;
        entry.loaded = true;
    }

    void mark(CachedChunk& entry, const ChunkPart& part) const {
        if (entry.all) return;
        if (part.whole) {
            entry.all = true;
            entry.dirty_mask = {};
            return;
        }
        if (!entry.dirty()) entry.dirty_mask = ElementMask(grid_->chunk_shape(entry.index));
        entry.dirty_mask.mark(part.in_chunk);
    }

    /// Marks the elements of a region that lie on the steps of a selection, from axis `axis` on.
    static void mark_steps(ElementMask& mask, const Selection& selection, const Region& region, int axis) {
        if (axis == region.rank()) return mask.mark(region);
        const std::int64_t step = std::abs(selection.axes()[static_cast<std::size_t>(axis)].step);
        if (step == 1 || region.extent[axis] == 1) return mark_steps(mask, selection, region, axis + 1);
        Region one = region;
        one.extent[axis] = 1;
        for (; one.start[axis] < region.start[axis] + region.extent[axis]; one.start[axis] += step) {
            mark_steps(mask, selection, one, axis + 1);
        }
    }

    void mark_all(CachedChunk& entry) const {
        entry.dirty_mask = ElementMask(grid_->chunk_shape(entry.index));
        entry.dirty_mask.mark(inside(entry));
        entry.all = false;
    }

    /// The part of a chunk inside the array.
    [[nodiscard]] Region inside(const CachedChunk& entry) const {
        return Region::whole(grid_->chunk_region(entry.index).extent);
    }

    /// Checks whether the writes have covered all elements.
    void complete(CachedChunk& entry) const {
        if (entry.all || !entry.dirty()) return;
        entry.all = entry.dirty_mask.covers(inside(entry));
    }

    /// Replaced variable-length content stays in the arena. Copies the elements if that is too much.
    static void pack(CachedChunk& entry) {
        constexpr std::uint64_t slack = 1 << 16;
        if (arena_bytes(entry) <= 2 * entry.arena + slack) return;
        entry.elements = NDArray::copy_of(entry.elements.view());
        entry.arena = arena_bytes(entry);
    }

    // ---- writing back

    /// The chunk or shard in which an entry is stored.
    [[nodiscard]] Index unit_place(const CachedChunk& entry) const {
        if (!loaded_->grid.regular()) return loaded_->grid.overlapping(grid_->chunk_region(entry.index)).start;
        Index place = entry.index;
        for (int d = 0; d < place.rank(); ++d) place[d] /= loaded_->grid.chunks()[d] / grid_->chunks()[d];
        return place;
    }

    /// Writes the dirty entries from `first()` on, and others in the same shards. Calls `first` only once a changed
    /// shape can no longer remove entries.
    template <class First>
    void write_back(const First& first, const IoOptions& io) {
        const auto any_dirty = [&] {
            return std::any_of(first(), entries_.end(), [](const CachedChunk& e) { return e.dirty(); });
        };
        if (!any_dirty()) return;
        const StoreLock lock = array_->lock_shape(LockMode::shared);
        adopt(array_->refresh());
        require_writable(*array_, *array_->loaded());
        std::map<Index, std::vector<CachedChunk*>, IndexLess> stored;
        for (auto entry = first(); entry != entries_.end(); ++entry) {
            if (entry->dirty()) stored.try_emplace(unit_place(*entry));
        }
        for (CachedChunk& entry : entries_) {
            const auto found = stored.find(unit_place(entry));
            if (found != stored.end()) found->second.push_back(&entry);
        }
        std::vector<StoredUnit> units;
        for (auto& [place, entries] : stored) {
            units.push_back({.key = array_->chunk_key(*loaded_, place), .place = place, .entries = std::move(entries)});
        }
        const SharedThreads threads = share_threads(*loaded_, std::ssize(units), io);
        change_chunks(
            *array_, *loaded_, std::ssize(units), threads.outer,
            [&](std::int64_t n, ChunkOutput& output) {
                write_unit(units[static_cast<std::size_t>(n)], output, threads.within);
            },
            [&](std::int64_t n) { settle(units[static_cast<std::size_t>(n)]); });
    }

    /// A chunk or shard that is written back.
    struct StoredUnit {
        std::string key;
        Index place;
        std::vector<CachedChunk*> entries;                ///< its entries in memory
        std::optional<ValueStamp> before = std::nullopt;  ///< of what is stored
    };

    /// Whether an entry is loaded from the value with the stamp `before`, or needs no stored elements.
    static bool is_current(const CachedChunk& entry, const std::optional<ValueStamp>& before) {
        return entry.all || (entry.loaded && entry.stamp == before);
    }

    /// Writes the dirty elements of one chunk or shard.
    void write_unit(StoredUnit& unit, ChunkOutput& output, const IoOptions& io) const {
        output.begin(unit.place, unit.key, true);
        unit.before = array_->store->stamp(unit.key);
        for (CachedChunk* entry : unit.entries) complete(*entry);
        std::vector<MarkedChunk> chunks;
        for (CachedChunk* entry : unit.entries) {
            if (!entry->dirty()) continue;
            chunks.push_back(
                {entry->index, entry->elements.view(), is_current(*entry, unit.before) ? nullptr : &entry->dirty_mask});
        }
        write_marked(*array_, *loaded_, unit.place, chunks, output, io);
    }

    /// Marks entries as equal to the stored value.
    void settle(const StoredUnit& unit) const {
        const std::optional<ValueStamp> after = array_->store->stamp(unit.key);
        for (CachedChunk* entry : unit.entries) {
            entry->loaded = is_current(*entry, unit.before);
            entry->stamp = after;
            entry->all = false;
            entry->dirty_mask = {};
        }
    }

    mutable std::timed_mutex mutex_;
    std::shared_ptr<ArrayState> array_;
    std::uint64_t budget_;
    std::shared_ptr<const LoadedArray> loaded_;
    std::optional<ChunkGrid> grid_;                     ///< grid of chunks, with shards of inner chunks
    std::uint64_t unit_bytes_ = 0;                      ///< of an entry
    std::uint64_t bytes_ = 0;                           ///< of all entries
    mutable std::optional<BufferPool> element_memory_;  ///< nullopt if slabs would take too much of the budget
    Entries entries_;
    std::map<Index, Entries::iterator, IndexLess> places_;
};

CachedArray::CachedArray(Array array, std::uint64_t budget)
    : cache_(std::make_unique<ChunkCache>(ArrayAccess::state(array), budget)) {}

CachedArray::~CachedArray() {
    try {
        cache_->flush({});
    } catch (const std::exception& e) {
        fmt::print(stderr, "tessera: what was written to a cached array is lost: {}\n", e.what());
    }
}

ArrayInfo CachedArray::info() const {
    return array_info(*cache_->loaded());
}
const std::string& CachedArray::name() const {
    return cache_->array().name;
}
Value CachedArray::attribute_values() const {
    return cache_->array().attributes().value_or(Value::object());
}

NDArray CachedArray::read(const Region& region, const IoOptions& io) const {
    NDArray out(cache_->loaded()->metadata.dtype, region.extent);
    read_into(region, out.view(), io);
    return out;
}
void CachedArray::read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const {
    cache_->read(region, out, io);
}
void CachedArray::write(const Region& region, const ArrayView& in, const IoOptions& io) {
    cache_->write(region, in, io);
}
Selection CachedArray::named(SelectionText selection) const {
    return parse_selection(selection, cache_->handle());
}
NDArray CachedArray::read(SelectionText selection, const IoOptions& io) const {
    return read(named(selection), io);
}
NDArray CachedArray::read(const Selection& selection, const IoOptions& io) const {
    NDArray out(cache_->loaded()->metadata.dtype, selection.shape());
    read_into(selection, out.view(), io);
    return out;
}
void CachedArray::read_into(const Selection& selection, const MutableArrayView& out, const IoOptions& io) const {
    const MutableArrayView full = with_dropped(selection, out, name());
    if (selection.is_region()) return cache_->read(selection.bounds(), full, io);
    cache_->read(selection, full, io);
}
void CachedArray::read_into(SelectionText selection, const MutableArrayView& out, const IoOptions& io) const {
    read_into(named(selection), out, io);
}
void CachedArray::write(const Selection& selection, const ArrayView& in, const IoOptions& io) {
    const ArrayView full = with_dropped(selection, in, name());
    if (selection.is_region()) return cache_->write(selection.bounds(), full, io);
    cache_->write(selection, full, io);
}
void CachedArray::write(SelectionText selection, const ArrayView& in, const IoOptions& io) {
    write(named(selection), in, io);
}
void CachedArray::fill(const Selection& selection, const Value& value, const IoOptions& io) {
    const RepeatedElement element(info().dtype, value, name());
    write(selection, element.view(selection.full_shape()), io);
}

void CachedArray::fill(const Selection& selection, const ArrayView& element, const IoOptions& io) {
    // By its value only where the bytes are others: the fields of a structure have no units of their own.
    if (element.dtype.kind() == Kind::structure || element.dtype.equal_but_order(info().dtype)) {
        const Shape shape = selection.full_shape();
        return write(selection, {element.data, element.dtype, shape, Strides::filled(shape.rank(), 0)}, io);
    }
    fill(selection, element_to_assign(element.dtype, element.data), io);
}
void CachedArray::flush(const IoOptions& io) {
    cache_->flush(io);
}
void CachedArray::refresh() {
    cache_->refresh();
}

}  // namespace tessera
