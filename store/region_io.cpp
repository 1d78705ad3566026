#include "region_io.h"

#include <fmt/format.h>

#include <tessera/copy_elements.h>
#include <tessera/error.h>
#include <algorithm>

namespace tessera {

namespace {

/// "grid.zarr: chunk (0, 3), key __zdata__/0.3.blosc", put before what went wrong in a chunk.
std::string where(const ArrayState& array, const Index& chunk, const std::string& key) {
    return fmt::format("{}: chunk {}, key {}", array.name, chunk.to_string(), key);
}

/// The caller's view as one of the array's dtype, byte order apart. Throws when shape or dtype do not fit.
template <class View>
View fitted(const ArrayState& array, const LoadedArray& loaded, const View& v, const Shape& shape) {
    const DType& dtype = loaded.metadata.dtype;
    if (!(v.shape == shape)) {
        throw invalid_argument(fmt::format("{}: the elements given have shape {}, what is picked has {}", array.name,
                                           v.shape.to_string(), shape.to_string()));
    }
    if (v.dtype.equal_but_order(dtype)) return v;
    if (v.dtype.kind() == Kind::structure && v.dtype.with_padding_named().equal_but_order(dtype)) {
        View named = v;
        named.dtype = v.dtype.with_padding_named();
        return named;
    }
    throw invalid_argument(fmt::format("{}: the elements given are {}, the array is {}; convert them first", array.name,
                                       v.dtype.to_string(), dtype.to_string()));
}

void require_inside(const ArrayState& array, const LoadedArray& loaded, const Region& region) {
    in_context([&] { return array.name; }, [&] { tessera::require_inside(region, loaded.grid.shape()); });
}

void read_chunk(const ArrayState& array, const LoadedArray& loaded, const ChunkPart& part, const MutableArrayView& out,
                WorkerScratch& scratch) {
    const std::string key = array.chunk_key(loaded, part.chunk);
    in_context([&] { return where(array, part.chunk, key); },
               [&] {
                   if (part.in_chunk.extent == loaded.grid.chunks()) {
                       if (array.store->get(key, scratch.encoded, loaded.pipeline.encoded_limit())) {
                           loaded.pipeline.decode(scratch.encoded, out, scratch.codec);
                           return;
                       }
                   } else if (const auto source = array.store->open(key)) {
                       loaded.pipeline.decode_part(*source, part.in_chunk, out, scratch.codec);
                       return;
                   }
                   fill_elements(out, loaded.fill());
               });
}

/// The scratch's chunk array, of the array's chunk shape, with indeterminate elements.
MutableArrayView chunk_buffer(const LoadedArray& loaded, WorkerScratch& scratch) {
    const DType& dtype = loaded.metadata.dtype;
    // A fresh one for variable-length elements: their arena would grow with every chunk.
    if (!(scratch.chunk.dtype() == dtype) || !(scratch.chunk.shape() == loaded.grid.chunks()) || dtype.is_variable()) {
        scratch.chunk = NDArray();
        scratch.chunk = NDArray(dtype, loaded.grid.chunks());
    }
    return scratch.chunk.view();
}

/// Fills `chunk` with what is stored, or with the fill where nothing is.
bool load_chunk(const ArrayState& array, const LoadedArray& loaded, const std::string& key,
                const MutableArrayView& chunk, WorkerScratch& scratch) {
    if (array.store->get(key, scratch.encoded, loaded.pipeline.encoded_limit())) {
        loaded.pipeline.decode(scratch.encoded, chunk, scratch.codec);
        return true;
    }
    fill_elements(chunk, loaded.fill());
    return false;
}

/// The fill for elements that nobody reads (beyond the edge): zeros where the metadata's fill is no use.
void fill_unread(const LoadedArray& loaded, const MutableArrayView& chunk) {
    if (loaded.metadata.fill.error.empty()) {
        fill_elements(chunk, loaded.fill());
    } else {
        fill_elements(chunk, zero_element(loaded.metadata.dtype).data());
    }
}

/// Puts a chunk's elements in place, or removes the chunk when all inside the array equal the fill.
void store_chunk(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const ArrayView& chunk,
                 const ArrayView& inside, WorkerScratch& scratch) {
    if (loaded.may_omit() && all_elements_equal(inside, loaded.fill())) {
        array.store->erase(key);
    } else {
        array.store->put(key, loaded.pipeline.encode(chunk, scratch.codec));
    }
}

/// The elements of a chunk that lie inside the array.
ArrayView inside_array(const LoadedArray& loaded, const Index& index, const ArrayView& chunk) {
    return chunk.part(Region::whole(loaded.grid.chunk_region(index).extent));
}

StoreLock lock_chunk(const ArrayState& array, const LoadedArray& loaded, const Index& chunk) {
    return array.store->lock(array.prefix, static_cast<std::uint64_t>(loaded.grid.linear(chunk)) + 1,
                             LockMode::exclusive);
}

void write_chunk(const ArrayState& array, const LoadedArray& loaded, const ChunkPart& part, const ArrayView& in,
                 WorkerScratch& scratch) {
    const std::string key = array.chunk_key(loaded, part.chunk);
    in_context([&] { return where(array, part.chunk, key); },
               [&] {
                   const StoreLock lock = lock_chunk(array, loaded, part.chunk);
                   const bool full = part.in_chunk.extent == loaded.grid.chunks();
                   if (full && in.dtype == loaded.metadata.dtype) {
                       store_chunk(array, loaded, key, in, in, scratch);
                       return;
                   }
                   const MutableArrayView chunk = chunk_buffer(loaded, scratch);
                   if (!part.whole) {
                       load_chunk(array, loaded, key, chunk, scratch);
                   } else if (!full) {
                       fill_unread(loaded, chunk);
                   }
                   copy_elements(in, chunk.part(part.in_chunk));
                   store_chunk(array, loaded, key, chunk, inside_array(loaded, part.chunk, chunk), scratch);
               });
}

/// What a selection with steps picks from one chunk.
struct SteppedPart {
    Region in_request;   ///< in units of the selection's steps
    Region in_chunk;     ///< the smallest box that holds what is picked
    bool whole = false;  ///< picks every element of the chunk that lies inside the array
};

SteppedPart stepped_part(const LoadedArray& loaded, const Selection& selection, const Index& chunk) {
    const Region box = loaded.grid.chunk_region(chunk);
    SteppedPart part{Region::whole(box.extent), Region::whole(box.extent), true};
    for (int d = 0; d < box.rank(); ++d) {
        const Selection::Axis& axis = selection.axes()[static_cast<std::size_t>(d)];
        const std::int64_t step = std::abs(axis.step);
        // With a negative step the picked places are counted from the other end.
        const std::int64_t lowest = axis.step > 0 ? axis.start : axis.start + (axis.count - 1) * axis.step;
        const std::int64_t first = box.start[d] <= lowest ? 0 : ceil_div(box.start[d] - lowest, step);
        const std::int64_t last_place = box.start[d] + box.extent[d] - 1 - lowest;
        const std::int64_t end = last_place < 0 ? 0 : std::min(axis.count, last_place / step + 1);
        const std::int64_t count = std::max<std::int64_t>(end - first, 0);
        part.in_request.extent[d] = count;
        part.in_request.start[d] = axis.step > 0 ? first : axis.count - first - count;
        part.in_chunk.start[d] = count == 0 ? 0 : lowest + first * step - box.start[d];
        part.in_chunk.extent[d] = count == 0 ? 0 : (count - 1) * step + 1;
        part.whole = part.whole && count == box.extent[d];
    }
    return part;
}

/// Of a view of `part.in_chunk`, the elements that the selection picks, in the selection's order.
MutableArrayView picked(const MutableArrayView& box, const SteppedPart& part, const Selection& selection) {
    MutableArrayView v = box;
    v.shape = part.in_request.extent;
    for (int d = 0; d < v.shape.rank(); ++d) {
        const std::int64_t step = selection.axes()[static_cast<std::size_t>(d)].step;
        if (step < 0) v.data += (box.shape[d] - 1) * box.strides[d];
        v.strides[d] = box.strides[d] * step;
    }
    return v;
}

/// Calls each(chunk, part) in parallel for every chunk from which the selection picks something.
void for_each_stepped(const ArrayState& array, const LoadedArray& loaded, const Selection& selection,
                      const IoOptions& io, const std::function<void(const Index&, const SteppedPart&)>& each) {
    const Region bounds = selection.bounds();
    require_inside(array, loaded, bounds);
    if (bounds.empty()) return;
    const Region overlapped = loaded.grid.overlapping(bounds);
    parallel_for(overlapped.count(), io, [&](std::int64_t n) {
        const Index chunk = chunk_part(loaded.grid, bounds, overlapped, n).chunk;
        const SteppedPart part = stepped_part(loaded, selection, chunk);
        if (!part.in_request.empty()) each(chunk, part);
    });
}

}  // namespace

void read_region(const ArrayState& array, const LoadedArray& loaded, const Region& region, const MutableArrayView& out,
                 const IoOptions& io) {
    require_inside(array, loaded, region);
    const MutableArrayView elements = fitted(array, loaded, out, region.extent);
    if (region.empty()) return;
    const Region overlapped = loaded.grid.overlapping(region);
    parallel_for(overlapped.count(), io, [&](std::int64_t n) {
        const ChunkPart part = chunk_part(loaded.grid, region, overlapped, n);
        ScratchPool::Loan scratch(array.scratch);
        read_chunk(array, loaded, part, elements.part(part.in_request), *scratch);
    });
}

void write_region(const ArrayState& array, const LoadedArray& loaded, const Region& region, const ArrayView& in,
                  const IoOptions& io) {
    require_inside(array, loaded, region);
    const ArrayView elements = fitted(array, loaded, in, region.extent);
    if (region.empty()) return;
    const Region overlapped = loaded.grid.overlapping(region);
    parallel_for(overlapped.count(), io, [&](std::int64_t n) {
        const ChunkPart part = chunk_part(loaded.grid, region, overlapped, n);
        ScratchPool::Loan scratch(array.scratch);
        write_chunk(array, loaded, part, elements.part(part.in_request), *scratch);
    });
}

void read_stepped(const ArrayState& array, const LoadedArray& loaded, const Selection& selection,
                  const MutableArrayView& out, const IoOptions& io) {
    const MutableArrayView elements = fitted(array, loaded, out, selection.full_shape());
    for_each_stepped(array, loaded, selection, io, [&](const Index& chunk, const SteppedPart& part) {
        ScratchPool::Loan scratch(array.scratch);
        const MutableArrayView box = chunk_buffer(loaded, *scratch).part(part.in_chunk);
        read_chunk(array, loaded, {.chunk = chunk, .in_chunk = part.in_chunk}, box, *scratch);
        copy_elements(picked(box, part, selection), elements.part(part.in_request));
    });
}

void write_stepped(const ArrayState& array, const LoadedArray& loaded, const Selection& selection, const ArrayView& in,
                   const IoOptions& io) {
    const ArrayView elements = fitted(array, loaded, in, selection.full_shape());
    for_each_stepped(array, loaded, selection, io, [&](const Index& index, const SteppedPart& part) {
        const std::string key = array.chunk_key(loaded, index);
        in_context([&] { return where(array, index, key); },
                   [&] {
                       ScratchPool::Loan scratch(array.scratch);
                       const StoreLock lock = lock_chunk(array, loaded, index);
                       const MutableArrayView chunk = chunk_buffer(loaded, *scratch);
                       if (part.whole) {
                           fill_unread(loaded, chunk);
                       } else {
                           load_chunk(array, loaded, key, chunk, *scratch);
                       }
                       copy_elements(elements.part(part.in_request),
                                     picked(chunk.part(part.in_chunk), part, selection));
                       store_chunk(array, loaded, key, chunk, inside_array(loaded, index, chunk), *scratch);
                   });
    });
}

void change_chunk(const ArrayState& array, const LoadedArray& loaded, const Index& chunk,
                  const std::function<void(const MutableArrayView&)>& change) {
    const std::string key = array.chunk_key(loaded, chunk);
    in_context([&] { return where(array, chunk, key); },
               [&] {
                   ScratchPool::Loan scratch(array.scratch);
                   const StoreLock lock = lock_chunk(array, loaded, chunk);
                   const MutableArrayView elements = chunk_buffer(loaded, *scratch);
                   if (!load_chunk(array, loaded, key, elements, *scratch)) return;
                   change(elements);
                   array.store->put(key, loaded.pipeline.encode(elements, scratch->codec));
               });
}

void for_each_stored(const ArrayState& array, const LoadedArray& loaded,
                     const std::function<void(const Index&, const std::string&, std::uint64_t)>& each,
                     const std::function<void(const std::string&, std::uint64_t)>& stray) {
    const KeyScheme& keys = loaded.metadata.keys;
    const int rank = loaded.grid.shape().rank();
    // With '/' between the indices chunks lie in nested folders.
    const std::function<void(const std::string&, int)> walk = [&](const std::string& below, int depth) {
        const std::string place = join_key(array.prefix, below);
        array.store->for_each(place, [&](std::string_view name, std::uint64_t size) {
            const std::string key = join_key(below, name);
            if (const auto chunk = keys.parse(key, rank)) {
                each(*chunk, join_key(array.prefix, key), size);
            } else {
                stray(key, size);
            }
        });
        if (depth <= 0) return;
        for (const std::string& folder : array.store->list(place).prefixes) {
            if (!below.empty() || folder != ".tessera") walk(join_key(below, folder), depth - 1);
        }
    };
    const std::string& first = rank == 0 ? keys.zero_d : keys.prefix;
    const std::size_t slash = first.rfind('/');
    walk(slash == std::string::npos ? "" : first.substr(0, slash), keys.separator == "/" ? rank - 1 : 0);
}

}  // namespace tessera
