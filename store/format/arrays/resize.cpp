#include "resize.h"

#include <fmt/format.h>

#include <tessera/action.h>
#include <tessera/copy_array.h>
#include <tessera/copy_elements.h>
#include <tessera/derived_source.h>
#include <tessera/error_text.h>
#include <tessera/parallel.h>
#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <random>
#include <span>

#include "chunk_changes.h"
#include "region_io.h"
#include "shard_io.h"
#include "stored_chunks.h"
#include "stored_record.h"

namespace tessera {

namespace {

std::shared_ptr<const LoadedArray> with_shape(const LoadedArray& loaded, const Shape& shape) {
    ArrayMetadata m = loaded.metadata;
    m.shape = shape;
    for (std::size_t d = 0; d < m.edges.size(); ++d) m.edges[d] = m.edges[d].reaching(shape[static_cast<int>(d)]);
    if (!m.edges.empty()) set_edges(m, std::move(m.edges));
    return std::make_shared<const LoadedArray>(std::move(m));
}

std::shared_ptr<const LoadedArray> with_all_stored(const LoadedArray& loaded) {
    ArrayMetadata m = loaded.metadata;
    m.fill.always_stored = true;
    return std::make_shared<const LoadedArray>(std::move(m));
}

/// Calls each(chunk) for every chunk of `box` (a region of the grid).
void for_each_index(const Region& box, const IoOptions& io, const std::function<void(const Index&)>& each) {
    parallel_in_memory(box.count(), io, [&](std::int64_t n) { each(index_in(box, n)); });
}

/// Removes stored chunks for which `unwanted` is true, whoever wrote them.
void erase_chunks(const ArrayState& array, const LoadedArray& loaded, const IoOptions& io,
                  const std::function<bool(const Index&)>& unwanted) {
    std::vector<std::string> keys;  // collected first: listing while removing is undefined
    for_each_stored(array, loaded,
                    {.each =
                         [&](const Index& chunk, const std::string& key, const auto&) {
                             if (unwanted(chunk)) keys.push_back(key);
                         },
                     .in_the_way = [](const Index*, const std::string&, const std::string&) {}});
    erase_values(*array.store, keys, io);
}

/// Before a resize from `old` to `grown`, which may be shorter in other dimensions. Chunks at the old edge have
/// arbitrary elements beyond it, and stale chunks may exist outside the old grid (zarr 0.4 left them). Neither may
/// become visible.
struct NewlyExposed {
    const ArrayState& array;
    const LoadedArray& old;
    const LoadedArray& grown;
    const IoOptions& io;

    void clear() const {
        constexpr std::int64_t few = 1000;  // below this, checking each key is faster than listing all
        const auto boxes = boxes_of(few);
        if (!boxes) return clear_listed();
        for (const Region& box : *boxes) {
            change_chunks(array, old, box.count(), io,
                          [&](std::int64_t n, ChunkOutput& output) { clear_chunk(index_in(box, n), output); });
        }
    }

private:
    /// Chunks of the new grid that are not whole chunks of the old one, if there are no more than `most`.
    [[nodiscard]] std::optional<std::vector<Region>> boxes_of(std::int64_t most) const {
        const Shape& from = old.grid.shape();
        const Shape& to = grown.grid.shape();
        std::vector<Region> boxes;
        std::int64_t count = 0;
        for (int d = 0; d < to.rank(); ++d) {
            if (to[d] <= from[d]) continue;
            Region box = Region::whole(grown.grid.grid());
            box.start[d] = grown.grid.chunk_at(d, from[d]);
            box.extent[d] -= box.start[d];
            if (__builtin_add_overflow(count, box.count(), &count) || count > most) return std::nullopt;
            boxes.push_back(box);
        }
        return boxes;
    }

    void clear_chunk(const Index& chunk, ChunkOutput& output) const {
        if (in_grid(old.grid, chunk)) {
            clear_beyond_edge(array, old, chunk, output, io);
        } else if (array.store->has_versions()) {
            cover_with_fill(array, grown, chunk, output);
        } else {
            array.store->erase(array.chunk_key(grown, chunk));
        }
    }

    [[nodiscard]] bool is_at_grown_edge(const Index& chunk) const {
        const Region inside = old.grid.chunk_region(chunk);
        const Shape whole = old.grid.chunk_shape(chunk);
        for (int d = 0; d < whole.rank(); ++d) {
            if (grown.grid.shape()[d] > old.grid.shape()[d] && inside.extent[d] < whole[d]) return true;
        }
        return false;
    }

    void clear_listed() const {
        std::vector<Index> edge;
        if (!array.store->has_versions()) {
            erase_chunks(array, old, io,
                         [&](const Index& chunk) { return !in_grid(old.grid, chunk) && in_grid(grown.grid, chunk); });
        }
        const auto keep_edge = [&](const Index& chunk, const std::string&, const auto&) {
            if (!in_grid(grown.grid, chunk)) return;
            // A stale one is covered rather than erased.
            if (!in_grid(old.grid, chunk) || is_at_grown_edge(chunk)) edge.push_back(chunk);
        };
        for_each_stored(array, old,
                        {.each = keep_edge, .in_the_way = [](const Index*, const std::string&, const std::string&) {}});
        change_chunks(array, old, std::ssize(edge), io, [&](std::int64_t i, ChunkOutput& output) {
            clear_chunk(edge[static_cast<std::size_t>(i)], output);
        });
    }
};

/// Writes into an array at an offset.
class OffsetSink final : public ArraySink {
public:
    OffsetSink(const ArrayState& array, std::shared_ptr<const LoadedArray> loaded, Region place)
        : array_(array), loaded_(std::move(loaded)), place_(std::move(place)) {}

    [[nodiscard]] ArrayInfo info() const override {
        ArrayInfo info = array_info(*loaded_);
        info.shape = place_.extent;
        info.chunk_offset = place_.start;
        const Index first = loaded_->grid.overlapping({place_.start, Shape::filled(place_.rank(), 1)}).start;
        const Region chunk = place_.empty() ? place_ : loaded_->grid.chunk_region(first);
        for (int d = 0; d < place_.rank(); ++d) info.chunk_offset[d] -= chunk.start[d];
        return info;
    }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        write_region(array_, *loaded_, moved(region), in, io);
    }
    [[nodiscard]] std::unique_ptr<ArraySink> open_shard(const Region& region) override {
        return shard_sink(array_, loaded_, moved(region), {});  // append_array holds the shape lock
    }
    void finish() override {}
    [[nodiscard]] const std::string& name() const override { return array_.name; }

private:
    [[nodiscard]] Region moved(Region region) const {
        for (int d = 0; d < region.rank(); ++d) region.start[d] += place_.start[d];
        return region;
    }

    const ArrayState& array_;
    std::shared_ptr<const LoadedArray> loaded_;
    Region place_;
};

// ---- an append that fails

/// The chunks of `grown` from `first` on along the axis, `count` of them, and all of them along the others.
Region chunks_along(const LoadedArray& grown, int axis, std::int64_t first, std::int64_t count) {
    Region box = Region::whole(grown.grid.grid());
    box.start[axis] = first;
    box.extent[axis] = count;
    return box;
}

/// Everything needed to roll back an append.
class Append {
public:
    Append(ArrayState& array, std::shared_ptr<const LoadedArray> old, std::shared_ptr<const LoadedArray> grown,
           int axis, const IoOptions& io)
        : array_(array),
          old_(std::move(old)),
          grown_(std::move(grown)),
          axis_(axis),
          io_{.threads = io.threads},  // no stop: it may be the reason
          begun_(std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now())) {
        // A chunk at the old edge that equals the fill can be removed. Without a fill, record which chunks existed.
        if (old_->may_omit() || array_.store->has_versions()) return;
        for_each_edge([&](const std::string& key, const Index&) {
            if (!array_.store->contains(key)) absent_.push_back(key);
        });
    }

    /// Restores the old shape, if the new one is visible, and removes the chunks that the append wrote. Stale chunks
    /// that it did not replace stay. The caller holds the shape lock exclusively, so that no other writer of Tessera
    /// wrote any. Throws if it fails.
    void take_back() {
        // Others may be writing there by now. What was appended shows nowhere, and is cleared before the array grows.
        if (array_.store->has_versions()) return;
        const auto present = array_.refresh();
        if (present->grid.shape() == grown_->grid.shape()) {
            array_.save(old_);
            array_.sync();
        } else if (present->grid.shape() != old_->grid.shape()) {
            return;  // another program changed the shape, and may own the chunks
        }
        const std::int64_t first = old_->grid.grid()[axis_];
        const Region added = chunks_along(*grown_, axis_, first, grown_->grid.grid()[axis_] - first);
        constexpr std::int64_t few = 1000;  // below this, checking each key is faster than listing all
        const auto erase = [&](const std::string& key) {
            if (is_new(key)) array_.store->erase(key);
        };
        if (added.count() <= few) {
            for_each_index(added, io_, [&](const Index& chunk) { erase(array_.chunk_key(*grown_, chunk)); });
        } else {
            std::vector<std::string> keys;
            const auto keep = [&](const Index& chunk, const std::string& key, const auto&) {
                if (in_grid(grown_->grid, chunk) && !in_grid(old_->grid, chunk)) keys.push_back(key);
            };
            for_each_stored(array_, *grown_,
                            {.each = keep, .in_the_way = [](const Index*, const std::string&, const std::string&) {}});
            parallel_for(std::ssize(keys), io_, [&](std::int64_t i) { erase(keys[static_cast<std::size_t>(i)]); });
        }
        for_each_edge([&](const std::string& key, const Index& chunk) { take_back_edge(key, chunk); });
        array_.sync();
    }

private:
    /// Calls each(key, chunk) for the chunks at the old edge that the append changes.
    template <class Each>
    void for_each_edge(const Each& each) const {
        if (old_->grid.beyond_edge(axis_) == 0) return;
        const Region edge = chunks_along(*grown_, axis_, old_->grid.grid()[axis_] - 1, 1);
        for (std::int64_t n = 0; n < edge.count(); ++n) {
            const Index index = index_in(edge, n);
            each(array_.chunk_key(*grown_, index), index);
        }
    }

    /// Whether a stored value is no older than the append. Compares whole seconds, because some file systems keep no
    /// more.
    [[nodiscard]] bool is_new(const std::string& key) const {
        const auto stamp = array_.store->stamp(key);
        const std::chrono::nanoseconds begun = begun_.time_since_epoch();
        return stamp && (stamp->modified == 0 || stamp->modified >= begun.count());
    }

    /// Elements appended to a chunk at the old edge are invisible and stay. Removes the chunk if the append created it.
    void take_back_edge(const std::string& key, const Index& chunk) {
        if (!is_new(key)) return;
        bool made = std::ranges::find(absent_, key) != absent_.end();
        if (old_->may_omit()) {
            const Region inside = old_->grid.chunk_region(chunk);
            NDArray elements(old_->metadata.dtype, inside.extent);
            read_region(array_, *old_, inside, elements.view(), io_);
            made = all_elements_equal(elements.view(), old_->fill());
        }
        if (!made) return;
        ErasedNotes(array_).add({&key, 1});
        array_.store->erase(key);
    }

    ArrayState& array_;
    std::shared_ptr<const LoadedArray> old_;
    std::shared_ptr<const LoadedArray> grown_;
    int axis_;
    IoOptions io_;
    std::chrono::time_point<std::chrono::system_clock, std::chrono::seconds> begun_;
    std::vector<std::string> absent_;  ///< missing chunks at the old edge, recorded if there is no fill
};

/// Rolls back an append that failed for `reason`. If that fails too, throws an error with both reasons.
void take_back(Append& append, ErrorCode code, std::string_view reason) {
    try {
        append.take_back();
    } catch (const std::exception& e) {
        throw Error(code, fmt::format("{}; chunks that were appended by then are left, because removing them failed "
                                      "too: {}; they show nowhere",
                                      reason, e.what()))
            .advising(Action::repair, "sets them aside");
    }
}

}  // namespace

/// Keeps others from changing the shape while it lives. Where there are versions, locks keep no other program away, and
/// one that holds the lease may be so slow that another takes over. So the document first becomes another version, of
/// the same content: whoever began earlier can no longer set a shape, and whoever begins later stops this one from
/// doing so. Nothing beyond the shape is written before.
class ShapeChange {
public:
    explicit ShapeChange(ArrayState& array) : array_(array) {
        const bool versions = array.published && array.store->has_versions();
        if (versions) lease_ = array.store->lock_destination(array.prefix);
        lock_ = array.lock_shape(LockMode::exclusive);
        if (array.published) versions_ = array.store->begin_change(array.prefix, true);
        old_ = array.refresh();
        if (versions) begin_version();
    }

    ~ShapeChange() {
        if (saved_) return;
        try {
            drop_lock_file(array_);
        } catch (const Error&) {  // it only lies there
        }
    }
    ShapeChange(const ShapeChange&) = delete;
    ShapeChange& operator=(const ShapeChange&) = delete;

    [[nodiscard]] const std::shared_ptr<const LoadedArray>& old() const { return old_; }
    [[nodiscard]] bool conflicted() const { return versions_ != nullptr && versions_->conflicted(); }

    void save(std::shared_ptr<const LoadedArray> changed) {
        saved_ = true;
        guarded([&] { array_.save(std::move(changed)); });
    }

private:
    template <class Body>
    void guarded(const Body& body) {
        try {
            body();
        } catch (const Error& e) {
            if (!conflicted()) throw;
            throw Error(ErrorCode::io, fmt::format("{}: another writer changed its metadata meanwhile: nothing of this "
                                                   "change shows, and it can be repeated",
                                                   array_.name));
        }
    }

    void begin_version() {
        const std::string key = array_.key(array_.dialect->metadata_key);
        Buffer document;
        if (!array_.store->get(key, document, metadata_limit)) throw not_found("{}: {} is gone", array_.name, key);
        std::string text(reinterpret_cast<const char*>(document.data()), document.size());
        text.erase(text.find_last_not_of(" \t\r\n") + 1);
        text += '\n';
        std::random_device lots;
        for (std::uint32_t bits = lots() | 1U; bits != 0; bits >>= 1U) text += (bits & 1U) != 0 ? '\t' : ' ';
        guarded([&] { array_.store->put(key, std::as_bytes(std::span(text))); });
    }

    ArrayState& array_;
    StoreLock lease_;
    StoreLock lock_;
    std::unique_ptr<ValueChange> versions_;
    std::shared_ptr<const LoadedArray> old_;
    bool saved_ = false;
};

void resize_array(ArrayState& array, const Shape& shape, const IoOptions& io) {
    const StopScope scope(io.stop);
    ShapeChange change(array);
    const auto old = change.old();
    const Shape from = old->grid.shape();
    if (shape.rank() != from.rank()) {
        throw invalid_argument("{}: cannot resize shape {} to {}: the number of dimensions stays {}", array.name,
                               from.to_string(), shape.to_string(), from.rank());
    }
    const auto target = in_context([&] { return array.name; },
                                   [&] {
                                       (void)byte_count(shape, old->metadata.dtype.size());
                                       return with_shape(*old, shape);
                                   });
    if (shape == from) return;
    require_writable(array, *old);
    require_direct(array, *old);
    // The metadata changes once, so that a crash leaves the old or the new shape, even if one dimension grows and
    // another shrinks. Newly visible chunks are cleared before, invisible ones removed after.
    note_grid(array, old->grid.grid());
    note_grid(array, target->grid.grid());
    NewlyExposed{array, *old, *target, io}.clear();
    array.sync();
    change.save(target);
    array.sync();
    bool shrinks = false;
    for (int d = 0; d < shape.rank(); ++d) shrinks = shrinks || shape[d] < from[d];
    if (!shrinks) return;
    erase_chunks(array, *target, io, [&](const Index& chunk) { return !in_grid(target->grid, chunk); });
    array.sync();
}

namespace {

int axis_of(const ArrayState& array, int axis, int rank) {
    const int from_start = axis < 0 ? axis + rank : axis;
    if (from_start < 0 || from_start >= rank) {
        throw invalid_argument("{}: no axis {} in an array of {} dimensions", array.name, from_start, rank);
    }
    return from_start;
}

void require_same_lengths(const ArrayState& array, const ArraySource& in, const Shape& given, const Shape& from,
                          int axis) {
    const Shape shape = in.info().shape;
    bool fits = shape.rank() == from.rank();
    for (int d = 0; fits && d < from.rank(); ++d) fits = d == axis || shape[d] == from[d];
    if (fits) return;
    throw invalid_argument("{}: cannot append {} of shape {} to shape {} along axis {}: every other length must agree",
                           array.name, in.name(), given.to_string(), from.to_string(), axis);
}

/// The array with the length that it has then.
std::shared_ptr<const LoadedArray> grown_by(const ArrayState& array, const LoadedArray& old, int axis,
                                            std::int64_t length) {
    Shape shape = old.grid.shape();
    shape[axis] = checked_add(shape[axis], length, "the new length");
    return in_context([&] { return array.name; },
                      [&] {
                          (void)byte_count(shape, old.metadata.dtype.size());
                          return with_shape(old, shape);
                      });
}

}  // namespace

namespace {

/// Where what is appended is written. Where others may be late, a chunk of fill is stored, too: then nothing of theirs
/// can come into its place.
OffsetSink sink_for(const ArrayState& array, const std::shared_ptr<const LoadedArray>& grown, const Region& place) {
    const bool stores_all = array.published && array.store->has_versions();
    return {array, stores_all ? with_all_stored(*grown) : grown, place};
}

/// A source with one dimension less is a frame: `axis` is added with length 1. Null for any other.
std::unique_ptr<ArraySource> frame_of(const ArraySource& given, int axis, int rank) {
    return given.info().shape.rank() + 1 == rank ? with_new_axis(given, axis) : nullptr;
}

}  // namespace

std::int64_t append_array(ArrayState& array, const ArraySource& given, int axis, const IoOptions& io) {
    const StopScope scope(io.stop);
    ShapeChange change(array);
    const auto old = change.old();
    require_writable(array, *old);
    const Shape from = old->grid.shape();
    axis = axis_of(array, axis, from.rank());
    const auto frame = frame_of(given, axis, from.rank());
    const ArraySource& in = frame ? *frame : given;
    require_same_lengths(array, in, given.info().shape, from, axis);
    Region place{Index::filled(from.rank(), 0), in.info().shape};
    place.start[axis] = from[axis];
    const auto grown = grown_by(array, *old, axis, place.extent[axis]);
    // Chunks outside the old grid are written as a whole, so stale ones need no clearing. At the old edge the appended
    // elements cover the whole newly exposed part.
    OffsetSink sink = sink_for(array, grown, place);
    if (!place.empty()) require_direct(array, *grown, place);
    note_grid(array, old->grid.grid());
    Append append(array, old, grown, axis, io);
    try {
        copy_array(in, sink, {.io = io, .selection = {}});
        array.sync();
        change.save(grown);
        array.sync();
    } catch (const Error& e) {
        take_back(append, e.code(), e.what());
        throw;
    } catch (const std::exception& e) {
        take_back(append, ErrorCode::io, e.what());
        throw;
    }
    return from[axis];
}

HeldAppend::HeldAppend(std::shared_ptr<ArrayState> array)
    : array_(std::move(array)), change_(std::make_unique<ShapeChange>(*array_)), grown_(change_->old()) {}

HeldAppend::~HeldAppend() = default;

const LoadedArray& HeldAppend::old() const {
    return *change_->old();
}

bool HeldAppend::was_overtaken() const {
    return change_->conflicted();
}

void HeldAppend::write(std::span<const std::unique_ptr<ArraySource>> parts, int axis, const IoOptions& io) {
    const StopScope scope(io.stop);
    const LoadedArray& before = old();
    const Shape from = before.grid.shape();
    require_writable(*array_, before);
    std::int64_t length = 0;
    for (const auto& part : parts) {
        require_same_lengths(*array_, *part, part->info().shape, from, axis);
        length = checked_add(length, part->info().shape[axis], "the new length");
    }
    grown_ = grown_by(*array_, before, axis, length);
    Region place{Index::filled(from.rank(), 0), from};
    place.start[axis] = from[axis];
    for (const auto& part : parts) {
        place.extent = part->info().shape;
        OffsetSink sink = sink_for(*array_, grown_, place);
        copy_array(*part, sink, {.io = io, .selection = {}});
        place.start[axis] += place.extent[axis];
    }
    array_->sync();
}

}  // namespace tessera
