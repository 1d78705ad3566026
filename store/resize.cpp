#include "resize.h"

#include <fmt/format.h>

#include <tessera/copy.h>
#include <tessera/copy_elements.h>
#include <tessera/error.h>
#include <algorithm>

#include "region_io.h"

namespace tessera {

namespace {

std::shared_ptr<const LoadedArray> with_shape(const LoadedArray& loaded, const Shape& shape) {
    ArrayMetadata m = loaded.metadata;
    m.shape = shape;
    return std::make_shared<const LoadedArray>(std::move(m));
}

/// Calls each(chunk) for every chunk of `box` (a region of the grid).
void for_each_index(const Region& box, const IoOptions& io, const std::function<void(const Index&)>& each) {
    parallel_for(box.count(), io, [&](std::int64_t n) { each(index_in(box, n)); });
}

/// Removes stored chunks for which `unwanted` holds, wherever they came from.
void erase_chunks(const ArrayState& array, const LoadedArray& loaded, const IoOptions& io,
                  const std::function<bool(const Index&)>& unwanted) {
    std::vector<std::string> keys;  // collected first: what a listing gives while entries vanish is undefined
    for_each_stored(
        array, loaded,
        [&](const Index& chunk, const std::string& key, const auto&) {
            if (unwanted(chunk)) keys.push_back(key);
        },
        [](const std::string&) {});
    parallel_for(static_cast<std::int64_t>(keys.size()), io,
                 [&](std::int64_t i) { array.store->erase(keys[static_cast<std::size_t>(i)]); });
}

/// Before a resize from `old` to `grown`, which may be shorter elsewhere: chunks at the old edge hold arbitrary bytes
/// beyond it, and chunks outside the old grid may lie about since the array was larger (zarr 0.4 left them). Neither
/// may show.
void clear_newly_exposed(const ArrayState& array, const LoadedArray& old, const LoadedArray& grown,
                         const IoOptions& io) {
    const Shape& from = old.grid.shape();
    const Shape& to = grown.grid.shape();
    std::int64_t candidates = 0;  // chunks of the new grid that are not whole chunks of the old one
    bool enumerable = true;
    for (int d = 0; d < to.rank(); ++d) {
        if (to[d] <= from[d]) continue;
        Region box = Region::whole(grown.grid.grid());
        box.start[d] = from[d] / grown.grid.chunks()[d];
        box.extent[d] -= box.start[d];
        std::int64_t more = box.count();
        enumerable = enumerable && !__builtin_add_overflow(candidates, more, &candidates);
    }
    const auto clear = [&](const Index& chunk) {
        if (in_grid(old.grid, chunk)) {
            clear_beyond_edge(array, old, chunk, io);
        } else {
            array.store->erase(array.chunk_key(grown, chunk));
        }
    };
    constexpr std::int64_t few = 1000;  // asking for each is then quicker than listing everything
    if (enumerable && candidates <= few) {
        for (int d = 0; d < to.rank(); ++d) {
            if (to[d] <= from[d]) continue;
            Region box = Region::whole(grown.grid.grid());
            box.start[d] = from[d] / grown.grid.chunks()[d];
            box.extent[d] -= box.start[d];
            for_each_index(box, io, clear);
        }
        return;
    }
    erase_chunks(array, old, io,
                 [&](const Index& chunk) { return !in_grid(old.grid, chunk) && in_grid(grown.grid, chunk); });
    std::vector<Index> edge;
    for_each_stored(
        array, old,
        [&](const Index& chunk, const std::string&, const auto&) {
            if (!in_grid(old.grid, chunk) || !in_grid(grown.grid, chunk)) return;
            const Region inside = old.grid.chunk_region(chunk);
            for (int d = 0; d < to.rank(); ++d) {
                if (to[d] > from[d] && inside.extent[d] < old.grid.chunks()[d]) {
                    edge.push_back(chunk);
                    return;
                }
            }
        },
        [](const std::string&) {});
    parallel_for(static_cast<std::int64_t>(edge.size()), io,
                 [&](std::int64_t i) { clear(edge[static_cast<std::size_t>(i)]); });
}

/// Writes into an array at an offset, as if that place were an array of its own.
class OffsetSink final : public ArraySink {
public:
    OffsetSink(const ArrayState& array, std::shared_ptr<const LoadedArray> loaded, Region place)
        : array_(array), loaded_(std::move(loaded)), place_(std::move(place)) {}

    [[nodiscard]] ArrayInfo info() const override {
        ArrayInfo info = array_info(*loaded_);
        info.shape = place_.extent;
        info.chunk_offset = place_.start;
        for (int d = 0; d < place_.rank(); ++d) info.chunk_offset[d] %= loaded_->metadata.chunks[d];
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

}  // namespace

bool in_grid(const ChunkGrid& grid, const Index& chunk) {
    if (chunk.rank() != grid.grid().rank()) return false;
    for (int d = 0; d < chunk.rank(); ++d) {
        if (chunk[d] < 0 || chunk[d] >= grid.grid()[d]) return false;
    }
    return true;
}

void resize_array(ArrayState& array, const Shape& shape, const IoOptions& io) {
    const StoreLock lock = array.lock_shape(LockMode::exclusive);
    const auto old = array.refresh();
    const Shape from = old->grid.shape();
    if (shape.rank() != from.rank()) {
        throw invalid_argument(fmt::format("{}: cannot resize shape {} to {}: the number of dimensions stays {}",
                                           array.name, from.to_string(), shape.to_string(), from.rank()));
    }
    const auto target = in_context([&] { return array.name; },
                                   [&] {
                                       (void)byte_count(shape, old->metadata.dtype.size());
                                       return with_shape(*old, shape);
                                   });
    if (shape == from) return;
    require_direct(array, *old);
    // The metadata change once, so that a crash leaves the old shape or the new one even where one dimension grows and
    // another shrinks. What becomes visible is brought into shape before, what becomes invisible goes after.
    clear_newly_exposed(array, *old, *target, io);
    array.sync();
    array.save(target);
    array.sync();
    bool shrinks = false;
    for (int d = 0; d < shape.rank(); ++d) shrinks = shrinks || shape[d] < from[d];
    if (!shrinks) return;
    erase_chunks(array, *target, io, [&](const Index& chunk) { return !in_grid(target->grid, chunk); });
    array.sync();
}

std::int64_t append_array(ArrayState& array, const ArraySource& in, int axis, const IoOptions& io) {
    const StoreLock lock = array.lock_shape(LockMode::exclusive);
    const auto old = array.refresh();
    const Shape from = old->grid.shape();
    const ArrayInfo info = in.info();
    if (axis < 0) axis += from.rank();
    if (axis < 0 || axis >= from.rank()) {
        throw invalid_argument(
            fmt::format("{}: no axis {} in an array of {} dimensions", array.name, axis, from.rank()));
    }
    bool fits = info.shape.rank() == from.rank();
    for (int d = 0; fits && d < from.rank(); ++d) fits = d == axis || info.shape[d] == from[d];
    if (!fits) {
        throw invalid_argument(
            fmt::format("{}: cannot append {} of shape {} to shape {} along axis {}: every other length must agree",
                        array.name, in.name(), info.shape.to_string(), from.to_string(), axis));
    }
    Region place{Index::filled(from.rank(), 0), info.shape};
    place.start[axis] = from[axis];
    Shape shape = from;
    shape[axis] = checked_add(from[axis], info.shape[axis], "the new length");
    const auto grown = in_context([&] { return array.name; },
                                  [&] {
                                      (void)byte_count(shape, old->metadata.dtype.size());
                                      return with_shape(*old, shape);
                                  });
    // Chunks outside the old grid are written as a whole, so stale ones need no clearing; at the old edge the appended
    // elements cover all that is newly exposed.
    OffsetSink sink(array, grown, place);
    if (!place.empty()) require_direct(array, *grown, place);
    copy_array(in, sink, {.io = io, .selection = {}});
    array.sync();
    array.save(grown);
    array.sync();
    return from[axis];
}

}  // namespace tessera
