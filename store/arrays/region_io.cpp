#include "region_io.h"

#include <fmt/format.h>

#include <tessera/copy_elements.h>
#include <tessera/error.h>
#include <tessera/no_text.h>
#include <tessera/shard.h>
#include <algorithm>
#include <atomic>
#include <optional>

#include "chunk_changes.h"
#include "chunk_memory.h"

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

/// A selection of a whole array, and the memory of what it picks (shape full_shape(), dtype the array's but for order).
template <class View>
struct Request {
    const Selection& selection;
    View elements;
};

/// What a selection picks from one box of the array: a chunk, or an inner chunk of a shard.
struct Picked {
    Region in_request;   ///< in units of the selection's steps
    Region in_box;       ///< the smallest region that holds what is picked
    bool whole = false;  ///< picks every element of the box
};

/// `box` lies inside the array.
Picked picked_from(const Selection& selection, const Region& box) {
    Picked part{Region::whole(box.extent), Region::whole(box.extent), true};
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
        part.in_box.start[d] = count == 0 ? 0 : lowest + first * step - box.start[d];
        part.in_box.extent[d] = count == 0 ? 0 : (count - 1) * step + 1;
        part.whole = part.whole && count == box.extent[d];
    }
    return part;
}

/// Of a view of `part.in_box`, the elements that the selection picks, in the selection's order.
MutableArrayView picked(const MutableArrayView& box, const Picked& part, const Selection& selection) {
    MutableArrayView v = box;
    v.shape = part.in_request.extent;
    for (int d = 0; d < v.shape.rank(); ++d) {
        const std::int64_t step = selection.axes()[static_cast<std::size_t>(d)].step;
        if (step < 0) v.data += (box.shape[d] - 1) * box.strides[d];
        v.strides[d] = box.strides[d] * step;
    }
    return v;
}

/// Throws unsupported for an element that is no text, naming it by `place`, its index in the array from that in `v`.
template <class Place>
void require_text(const LoadedArray& loaded, const ArrayView& v, const Place& place) {
    if (!loaded.may_hold_no_text) return;
    NDArray slots(DType::raw(sizeof(VariableSlot)), v.shape);
    copy_elements({v.data, slots.dtype(), v.shape, v.strides}, slots);  // the slots, without what they lead to
    const auto* slot = reinterpret_cast<const VariableSlot*>(slots.bytes().data());
    const Region all = Region::whole(v.shape);
    for (std::int64_t n = 0; n < all.count(); ++n) {
        const std::string_view element = slot[n].view();
        if (!element.starts_with(no_text_mark)) continue;
        throw unsupported(fmt::format(
            "element {} is no text, but {} in JSON: Tessera neither reads it nor rewrites the chunk that holds it; "
            "`tessera set` gives it a text",
            place(index_in(all, n)).to_string(), element.substr(1, 60)));
    }
}

/// Of the elements that were read, or of a box that is to be written.
void require_text(const LoadedArray& loaded, const ArrayView& box, const Index& start) {
    require_text(loaded, box, [&](Index index) {
        for (int d = 0; d < index.rank(); ++d) index[d] += start[d];
        return index;
    });
}

/// What an absent chunk reads as: the fill, for as long as the array is there. Of one that was removed, or that another
/// took the place of, the chunks go after the metadata.
void read_absent(const ArrayState& array, const LoadedArray& loaded, const MutableArrayView& out) {
    if (array.published && !array.store->contains(join_key(array.prefix, array.dialect->metadata_key))) {
        throw not_found("the array is gone: it was removed, moved, or another took its place; open it again");
    }
    // v3 has "c" for the one chunk of an array without dimensions, and for the folder of all chunks of any other.
    if (loaded.grid.shape().rank() == 0) {
        const std::string key = array.chunk_key(loaded, {});
        if (array.store->folder_id(key)) {
            throw corrupt(fmt::format("{} is a directory, and not a regular file", join_key(array.store->name(), key)));
        }
    }
    fill_elements(out, loaded.metadata.dtype, loaded.fill());
}

/// The scratch's chunk array, of this shape, with indeterminate elements.
MutableArrayView chunk_buffer(const LoadedArray& loaded, const Shape& shape, WorkerScratch& scratch) {
    const DType& dtype = loaded.metadata.dtype;
    // A fresh one for variable-length elements: their arena would grow with every chunk.
    if (!(scratch.chunk.dtype() == dtype) || !(scratch.chunk.shape() == shape) || dtype.is_variable()) {
        scratch.chunk = NDArray();
        scratch.chunk = NDArray(dtype, shape);
    }
    return scratch.chunk.view();
}

/// Calls each(index, what is picked from its chunk or shard, options for the work within, …) for every chunk or shard
/// from which the selection picks something: by run(count, options, job), which calls job(i, …) in parallel.
template <class Run, class Each>
void for_each_picked(const ArrayState& array, const LoadedArray& loaded, const Selection& selection,
                     const IoOptions& io, const Run& run, const Each& each) {
    const Region bounds = selection.bounds();
    require_inside(array, loaded, bounds);
    if (bounds.empty()) return;
    const Region overlapped = loaded.grid.overlapping(bounds);
    // Few shards are taken one after another, and all threads work on the inner chunks of each.
    const bool few = loaded.pipeline.shard() != nullptr && overlapped.count() < thread_count(io);
    IoOptions outer = io;
    IoOptions within = io;
    (few ? outer : within).threads = 1;
    run(overlapped.count(), outer, [&](std::int64_t n, auto&... output) {
        const Index index = index_in(overlapped, n);
        const Picked part = picked_from(selection, loaded.grid.chunk_region(index));
        if (!part.in_request.empty()) each(index, part, within, output...);
    });
}

// ---- inner chunks

/// A stored shard, or nothing.
std::unique_ptr<const Shard> open_shard(const ArrayState& array, const LoadedArray& loaded, const std::string& key) {
    auto source = array.store->open(key);
    return source ? std::make_unique<const Shard>(*loaded.pipeline.shard(), std::move(source)) : nullptr;
}

/// The inner chunks of a shard, which covers the region `shard` of the array, that the selection's bounds touch.
Region touched_inner(const LoadedArray& loaded, const Region& shard, const Selection& selection) {
    Region common = intersection(shard, selection.bounds());
    for (int d = 0; d < common.rank(); ++d) common.start[d] -= shard.start[d];
    return loaded.pipeline.shard()->grid().overlapping(common);
}

/// What an inner chunk covers of the array, cut at the array's edge; empty when it lies beyond.
Region inner_box(const LoadedArray& loaded, const Region& shard, const Index& inner) {
    Region box = loaded.pipeline.shard()->grid().chunk_region(inner);
    for (int d = 0; d < box.rank(); ++d) {
        box.extent[d] = std::clamp<std::int64_t>(shard.extent[d] - box.start[d], 0, box.extent[d]);
        box.start[d] += shard.start[d];
    }
    return box;
}

// ---- reading

/// Reads what is picked from a box of which `whole` is the full shape, by read(region of the box, memory).
template <class Read>
void read_picked(const LoadedArray& loaded, const Request<MutableArrayView>& request, const Picked& part,
                 const Shape& whole, WorkerScratch& scratch, const Read& read) {
    const MutableArrayView out = request.elements.part(part.in_request);
    if (request.selection.is_region()) {
        read(part.in_box, out);
        return;
    }
    const MutableArrayView box = chunk_buffer(loaded, whole, scratch).part(part.in_box);
    read(part.in_box, box);
    copy_elements(picked(box, part, request.selection), out);
}

/// What is picked with gaps from most of a chunk: all of it is decoded, in one piece.
void read_with_gaps(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Picked& part,
                    const Request<MutableArrayView>& request, WorkerScratch& scratch) {
    const MutableArrayView out = request.elements.part(part.in_request);
    if (!array.store->get(key, scratch.encoded, loaded.pipeline.encoded_limit())) {
        read_absent(array, loaded, out);
        return;
    }
    const MutableArrayView chunk = chunk_buffer(loaded, loaded.grid.chunks(), scratch);
    loaded.pipeline.decode(scratch.encoded, chunk, scratch.codec);
    copy_elements(picked(chunk.part(part.in_box), part, request.selection), out);
}

void read_chunk(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Picked& part,
                const Request<MutableArrayView>& request) {
    ScratchPool::Loan scratch(array.scratch);
    const Shape& whole = loaded.grid.chunks();
    if (!request.selection.is_region() && !loaded.metadata.dtype.is_variable() &&
        2 * part.in_box.count() >= element_count(whole)) {
        return read_with_gaps(array, loaded, key, part, request, *scratch);
    }
    read_picked(loaded, request, part, whole, *scratch, [&](const Region& region, const MutableArrayView& out) {
        if (region.extent == whole) {
            if (array.store->get(key, scratch->encoded, loaded.pipeline.encoded_limit())) {
                loaded.pipeline.decode(scratch->encoded, out, scratch->codec);
                return;
            }
        } else if (const auto source = array.store->open(key)) {
            loaded.pipeline.decode_part(*source, region, out, scratch->codec);
            return;
        }
        read_absent(array, loaded, out);
    });
}

void read_shard(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                const Picked& part, const Request<MutableArrayView>& request, const IoOptions& io) {
    const std::unique_ptr<const Shard> shard = open_shard(array, loaded, key);
    if (!shard) {
        read_absent(array, loaded, request.elements.part(part.in_request));
        return;
    }
    const ShardCodec& codec = *loaded.pipeline.shard();
    const Region place = loaded.grid.chunk_region(index);
    const Region touched = touched_inner(loaded, place, request.selection);
    const auto part_of = [&](const Index& inner) {
        return picked_from(request.selection, inner_box(loaded, place, inner));
    };
    std::vector<std::int64_t> chunks;
    for (std::int64_t n = 0; n < touched.count(); ++n) {
        const Index inner = index_in(touched, n);
        if (!part_of(inner).in_request.empty()) chunks.push_back(codec.grid().linear(inner));
    }
    shard->for_each(chunks, io, [&](std::size_t i, const ByteSource* encoded) {
        const Index inner = codec.grid().index(chunks[i]);
        ScratchPool::Loan scratch(array.scratch);
        read_picked(loaded, request, part_of(inner), codec.grid().chunks(), *scratch,
                    [&](const Region& region, const MutableArrayView& out) {
                        shard->read(inner, encoded, region, out, scratch->codec);
                    });
    });
}

// ---- writing

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
void store_chunk(const LoadedArray& loaded, const Index& index, const ArrayView& chunk, ChunkOutput& output,
                 WorkerScratch& scratch) {
    const ArrayView inside = chunk.part(Region::whole(loaded.grid.chunk_region(index).extent));
    if (loaded.may_omit() && all_elements_equal(inside, loaded.fill())) {
        output.erase();
    } else {
        output.put(loaded.pipeline.encode(chunk, scratch.codec));
    }
}

/// The new elements of a box of the array, as a chunk or inner chunk of shape `whole`; nothing where the selection
/// picks nothing. memory(keep) gives memory of that shape, holding what is stored or (keep false) the fill.
template <class Memory>
std::optional<ArrayView> edited(const LoadedArray& loaded, const Request<ArrayView>& request, const Region& box,
                                const Shape& whole, const Memory& memory) {
    if (box.empty()) return std::nullopt;
    const Picked part = picked_from(request.selection, box);
    if (part.in_request.empty()) return std::nullopt;
    const ArrayView in = request.elements.part(part.in_request);
    const bool full = request.selection.is_region() && part.in_box.extent == whole;
    if (full && in.dtype == loaded.metadata.dtype) return in;
    const MutableArrayView chunk = memory(!part.whole);
    copy_elements(in, picked(chunk.part(part.in_box), part, request.selection));
    require_text(loaded, chunk.part(Region::whole(box.extent)), box.start);
    return chunk;
}

/// The new bytes of a chunk that is stored as scratch.encoded, where only its blocks that `part` touches need to be
/// encoded anew. Nothing also where the chunk might become the fill.
std::optional<ByteSpan> encode_touched(const LoadedArray& loaded, const Request<ArrayView>& request, const Picked& part,
                                       WorkerScratch& scratch) {
    if (!request.selection.is_region()) return std::nullopt;
    const ArrayView in = request.elements.part(part.in_request);
    if (loaded.may_omit() && all_elements_equal(in, loaded.fill())) return std::nullopt;
    return loaded.pipeline.encode_part(scratch.encoded, part.in_box, in, scratch.codec);
}

void write_chunk(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                 const Picked& part, const Request<ArrayView>& request, ChunkOutput& output) {
    ScratchPool::Loan scratch(array.scratch);
    output.begin(index, key, !part.whole);
    const Shape& whole = loaded.grid.chunks();
    const bool stored = !part.whole && array.store->get(key, scratch->encoded, loaded.pipeline.encoded_limit());
    if (stored) {
        if (const auto bytes = encode_touched(loaded, request, part, *scratch)) {
            output.put(*bytes);
            return;
        }
    }
    const auto memory = [&](bool keep) {
        require_chunk_memory(loaded, *scratch);
        const MutableArrayView chunk = chunk_buffer(loaded, whole, *scratch);
        if (stored) {
            loaded.pipeline.decode(scratch->encoded, chunk, scratch->codec);
        } else if (keep) {
            fill_elements(chunk, loaded.fill());
        } else {
            fill_unread(loaded, chunk);
        }
        return chunk;
    };
    if (const auto chunk = edited(loaded, request, loaded.grid.chunk_region(index), whole, memory)) {
        store_chunk(loaded, index, *chunk, output, *scratch);
    }
}

/// A shard about to be written anew to `output`, which has begun; what is stored stays, unless all of it is `replaced`.
ShardWriter shard_writer(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                         bool replaced, ChunkOutput& output) {
    const ShardCodec& codec = *loaded.pipeline.shard();
    return {codec, replaced ? nullptr : open_shard(array, loaded, key),
            Region::whole(loaded.grid.chunk_region(index).extent), [&output] { return output.create(); }};
}

/// Writes what is requested of one shard, which covers the region `shard` of the array.
void edit_shard(const LoadedArray& loaded, const Region& shard, const Request<ArrayView>& request, ShardWriter& writer,
                const IoOptions& io) {
    const Shape& whole = loaded.pipeline.shard()->grid().chunks();
    writer.write(
        touched_inner(loaded, shard, request.selection),
        [&](const Index& inner, const ShardWriter::ChunkMemory& memory) {
            return edited(loaded, request, inner_box(loaded, shard, inner), whole, memory);
        },
        io);
}

/// Puts a shard in place, or removes it when there is nothing in it.
void finish_shard(ShardWriter& writer, ChunkOutput& output) {
    if (writer.empty()) {
        output.erase();
    } else {
        writer.finish();
    }
}

void write_shard(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                 bool whole, const Request<ArrayView>& request, ChunkOutput& output, const IoOptions& io) {
    output.begin(index, key, !whole);
    ShardWriter writer = shard_writer(array, loaded, key, index, whole, output);
    edit_shard(loaded, loaded.grid.chunk_region(index), request, writer, io);
    finish_shard(writer, output);
}

/// A region that lies inside the array, as a selection.
Selection region_selection(const Region& region) {
    std::vector<Selection::Axis> axes;
    for (int d = 0; d < region.rank(); ++d) axes.push_back({.start = region.start[d], .count = region.extent[d]});
    return Selection(std::move(axes));
}

/// Sets all elements of a chunk or inner chunk to the fill but for those in `inside`, from the first one on.
void fill_beyond(const LoadedArray& loaded, const Shape& inside, const MutableArrayView& chunk) {
    for (int d = 0; d < inside.rank(); ++d) {
        if (inside[d] == chunk.shape[d]) continue;
        Region outside = Region::whole(chunk.shape);
        outside.start[d] = inside[d];
        outside.extent[d] = chunk.shape[d] - inside[d];
        fill_elements(chunk.part(outside), loaded.fill());
    }
}

void clear_shard_beyond(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                        ChunkOutput& output, const IoOptions& io) {
    ShardWriter writer = shard_writer(array, loaded, key, index, false, output);
    if (writer.old() == nullptr) return;
    const Region shard = loaded.grid.chunk_region(index);
    std::atomic<bool> changed = false;
    writer.write(
        Region::whole(loaded.pipeline.shard()->grid().grid()),
        [&](const Index& inner, const ShardWriter::ChunkMemory& memory) -> std::optional<ArrayView> {
            const Region box = inner_box(loaded, shard, inner);
            const Shape& whole = loaded.pipeline.shard()->grid().chunks();
            if (box.extent == whole || !writer.old()->place(inner).present()) return std::nullopt;
            changed = true;
            const MutableArrayView chunk = memory(!box.empty());
            fill_beyond(loaded, box.extent, chunk);
            return chunk;
        },
        io);
    if (changed) finish_shard(writer, output);
}

/// Of write_marked; merged(chunk, stored) gives a marked chunk's new elements, stored() what there is of it.
template <class Merged>
void write_marked_shard(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                        const std::vector<MarkedChunk>& chunks, const Merged& merged, ChunkOutput& output,
                        const IoOptions& io) {
    ShardWriter writer = shard_writer(array, loaded, key, index, false, output);
    const ChunkGrid& grid = loaded.pipeline.shard()->grid();
    std::vector<const MarkedChunk*> marked(static_cast<std::size_t>(grid.chunk_count()));
    for (const MarkedChunk& chunk : chunks) {
        Index inner = chunk.index;
        for (int d = 0; d < inner.rank(); ++d) inner[d] -= index[d] * grid.grid()[d];
        marked[static_cast<std::size_t>(grid.linear(inner))] = &chunk;
    }
    writer.write(
        Region::whole(grid.grid()),
        [&](const Index& inner, const ShardWriter::ChunkMemory& memory) -> std::optional<ArrayView> {
            const MarkedChunk* const chunk = marked[static_cast<std::size_t>(grid.linear(inner))];
            if (chunk == nullptr) return std::nullopt;
            return merged(*chunk, [&] { return memory(true); });
        },
        io);
    finish_shard(writer, output);
}

/// One chunk of each folder in which a region's chunks lie.
Region one_per_folder(const LoadedArray& loaded, const Region& region) {
    Region chunks = loaded.grid.overlapping(region);
    const int rank = chunks.rank();
    const bool nested = loaded.metadata.keys.separator == "/";
    for (int d = nested ? std::max(rank - 1, 0) : 0; d < rank; ++d)
        chunks.extent[d] = std::min<std::int64_t>(chunks.extent[d], 1);
    return chunks;
}

/// See shard_sink().
class ShardSink final : public ArraySink {
public:
    ShardSink(const ArrayState& array, std::shared_ptr<const LoadedArray> loaded, const Region& region,
              const Index& index, StoreLock shape_lock)
        : array_(array),
          loaded_(std::move(loaded)),
          region_(region),
          index_(index),
          shard_(loaded_->grid.chunk_region(index)),
          key_(array.chunk_key(*loaded_, index)),
          shape_lock_(std::move(shape_lock)),
          output_(begun(array, *loaded_, index, key_)),
          writer_(shard_writer(array, *loaded_, key_, index, region == shard_, output_)) {}

    [[nodiscard]] ArrayInfo info() const override {
        const Shape& chunks = loaded_->pipeline.shard()->grid().chunks();
        Index offset = region_.start;
        for (int d = 0; d < offset.rank(); ++d) offset[d] = (offset[d] - shard_.start[d]) % chunks[d];
        return {.dtype = loaded_->metadata.dtype, .shape = region_.extent, .chunks = chunks, .chunk_offset = offset};
    }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        in_context([&] { return where(array_, index_, key_); },
                   [&] {
                       tessera::require_inside(region, region_.extent);
                       const ArrayView elements = fitted(array_, *loaded_, in, region.extent);
                       if (region.empty()) return;
                       Region moved = region;
                       for (int d = 0; d < moved.rank(); ++d) moved.start[d] += region_.start[d];
                       edit_shard(*loaded_, shard_, {region_selection(moved), elements}, writer_, io);
                   });
    }
    void finish() override {
        in_context([&] { return where(array_, index_, key_); }, [&] { finish_shard(writer_, output_); });
    }
    [[nodiscard]] const std::string& name() const override { return array_.name; }

private:
    static ChunkOutput begun(const ArrayState& array, const LoadedArray& loaded, const Index& index,
                             const std::string& key) {
        ChunkOutput output(array, loaded, nullptr);
        output.begin(index, key, true);
        return output;
    }

    const ArrayState& array_;
    std::shared_ptr<const LoadedArray> loaded_;
    Region region_;
    Index index_;
    Region shard_;
    std::string key_;
    StoreLock shape_lock_;
    ChunkOutput output_;
    ShardWriter writer_;
};

}  // namespace

void read_selected(const ArrayState& array, const LoadedArray& loaded, const Selection& selection,
                   const MutableArrayView& out, const IoOptions& io) {
    const Request<MutableArrayView> request{selection, fitted(array, loaded, out, selection.full_shape())};
    const auto each = [&](const Index& index, const Picked& part, const IoOptions& within) {
        const std::string key = array.chunk_key(loaded, index);
        in_context([&] { return where(array, index, key); },
                   [&] {
                       if (loaded.pipeline.shard() == nullptr) {
                           read_chunk(array, loaded, key, part, request);
                       } else {
                           read_shard(array, loaded, key, index, part, request, within);
                       }
                       require_text(loaded, request.elements.part(part.in_request), [&](Index place) {
                           for (int d = 0; d < place.rank(); ++d) {
                               const Selection::Axis& axis = selection.axes()[static_cast<std::size_t>(d)];
                               place[d] = axis.start + (part.in_request.start[d] + place[d]) * axis.step;
                           }
                           return place;
                       });
                   });
    };
    for_each_picked(array, loaded, selection, io, parallel_in_memory, each);
}

void write_selected(const ArrayState& array, const LoadedArray& loaded, const Selection& selection, const ArrayView& in,
                    const IoOptions& io) {
    const Request<ArrayView> request{selection, fitted(array, loaded, in, selection.full_shape())};
    // Where all chunks share one folder the first that is written finds out whether it may be.
    if (one_per_folder(loaded, selection.bounds()).count() > 1) require_direct(array, loaded, selection.bounds());
    const auto run = [&](std::int64_t count, const IoOptions& outer, const auto& job) {
        change_chunks(array, loaded, count, outer, job);
    };
    const auto each = [&](const Index& index, const Picked& part, const IoOptions& within, ChunkOutput& output) {
        const std::string key = array.chunk_key(loaded, index);
        in_context([&] { return where(array, index, key); },
                   [&] {
                       if (loaded.pipeline.shard() == nullptr) {
                           write_chunk(array, loaded, key, index, part, request, output);
                       } else {
                           write_shard(array, loaded, key, index, part.whole, request, output, within);
                       }
                   });
    };
    for_each_picked(array, loaded, selection, io, run, each);
}

void read_units(const ArrayState& array, const LoadedArray& loaded, const Index& chunk,
                std::span<const std::int64_t> inner, const IoOptions& io, const EachUnit& each) {
    const std::string key = array.chunk_key(loaded, chunk);
    in_context([&] { return where(array, chunk, key); },
               [&] {
                   const std::unique_ptr<const Shard> shard = open_shard(array, loaded, key);
                   const auto read = [&](std::size_t i, const ByteSource* encoded) {
                       each(i, [&](const Region& region, const MutableArrayView& out, WorkerScratch& scratch) {
                           if (!shard) return read_absent(array, loaded, out);
                           const Index index = loaded.pipeline.shard()->grid().index(inner[i]);
                           shard->read(index, encoded, region, out, scratch.codec);
                           Index first = inner_box(loaded, loaded.grid.chunk_region(chunk), index).start;
                           for (int d = 0; d < first.rank(); ++d) first[d] += region.start[d];
                           require_text(loaded, out, first);
                       });
                   };
                   if (shard) return shard->for_each(inner, io, read);
                   for (std::size_t i = 0; i < inner.size(); ++i) read(i, nullptr);
               });
}

void require_direct(const ArrayState& array, const LoadedArray& loaded, const Region& region) {
    require_inside(array, loaded, region);
    const Region chunks = one_per_folder(loaded, region);
    for (std::int64_t n = 0; n < chunks.count(); ++n) {
        array.store->require_direct(array.chunk_key(loaded, index_in(chunks, n)));
    }
}

void read_region(const ArrayState& array, const LoadedArray& loaded, const Region& region, const MutableArrayView& out,
                 const IoOptions& io) {
    require_inside(array, loaded, region);
    read_selected(array, loaded, region_selection(region), out, io);
}

void write_region(const ArrayState& array, const LoadedArray& loaded, const Region& region, const ArrayView& in,
                  const IoOptions& io) {
    require_inside(array, loaded, region);
    write_selected(array, loaded, region_selection(region), in, io);
}

std::unique_ptr<ArraySink> shard_sink(const ArrayState& array, std::shared_ptr<const LoadedArray> loaded,
                                      const Region& region, StoreLock shape_lock) {
    require_inside(array, *loaded, region);
    const Region touched = loaded->grid.overlapping(region);
    if (loaded->pipeline.shard() == nullptr || region.empty() || touched.count() != 1) {
        throw invalid_argument(fmt::format("{}: region {} does not lie in one shard", array.name, region.to_string()));
    }
    return std::make_unique<ShardSink>(array, std::move(loaded), region, touched.start, std::move(shape_lock));
}

StoreLock lock_chunk(const ArrayState& array, const LoadedArray& loaded, const Index& chunk) {
    return array.store->lock(array.prefix, static_cast<std::uint64_t>(loaded.grid.linear(chunk)) + 1,
                             LockMode::exclusive);
}

const Shape& unit_shape(const LoadedArray& loaded) {
    return loaded.pipeline.shard() != nullptr ? loaded.pipeline.shard()->grid().chunks() : loaded.grid.chunks();
}

void read_one_chunk(const ArrayState& array, const LoadedArray& loaded, const Index& index,
                    const MutableArrayView& out) {
    const Region box = ChunkGrid(loaded.grid.shape(), out.shape).chunk_region(index);
    if (!(box.extent == out.shape)) fill_unread(loaded, out);
    read_region(array, loaded, box, out.part(Region::whole(box.extent)), {.threads = 1});
}

void copy_marked(const ArrayView& from, const ArrayView& marks, const MutableArrayView& to) {
    const auto flat = [](auto view) {
        view.shape = {view.count()};
        view.strides = {view.dtype.size()};
        return view;
    };
    const auto source = flat(from);
    const auto target = flat(to);
    const std::span mark(marks.data, static_cast<std::size_t>(source.count()));
    for (auto begin = mark.begin(); begin != mark.end();) {
        begin = std::find(begin, mark.end(), std::byte{1});
        const auto end = std::find(begin, mark.end(), std::byte{0});
        const Region run{{begin - mark.begin()}, {end - begin}};
        copy_elements(source.part(run), target.part(run));
        begin = end;
    }
}

void write_marked(const ArrayState& array, const LoadedArray& loaded, const Index& index,
                  const std::vector<MarkedChunk>& chunks, ChunkOutput& output, const IoOptions& io) {
    const std::string key = array.chunk_key(loaded, index);
    const auto merged = [&](const MarkedChunk& chunk, const auto& stored) -> ArrayView {
        if (chunk.marks.data == nullptr) return chunk.elements;
        const MutableArrayView memory = stored();
        copy_marked(chunk.elements, chunk.marks, memory);
        const Region box = ChunkGrid(loaded.grid.shape(), unit_shape(loaded)).chunk_region(chunk.index);
        require_text(loaded, memory.part(Region::whole(box.extent)), box.start);
        return memory;
    };
    in_context([&] { return where(array, index, key); },
               [&] {
                   if (loaded.pipeline.shard() != nullptr) {
                       write_marked_shard(array, loaded, key, index, chunks, merged, output, io);
                       return;
                   }
                   ScratchPool::Loan scratch(array.scratch);
                   const ArrayView chunk = merged(chunks.front(), [&] {
                       const MutableArrayView memory = chunk_buffer(loaded, loaded.grid.chunks(), *scratch);
                       load_chunk(array, loaded, key, memory, *scratch);
                       return memory;
                   });
                   store_chunk(loaded, index, chunk, output, *scratch);
               });
}

void clear_beyond_edge(const ArrayState& array, const LoadedArray& loaded, const Index& index, ChunkOutput& output,
                       const IoOptions& io) {
    const std::string key = array.chunk_key(loaded, index);
    in_context([&] { return where(array, index, key); },
               [&] {
                   output.begin(index, key, true);
                   if (loaded.pipeline.shard() != nullptr) {
                       clear_shard_beyond(array, loaded, key, index, output, io);
                       return;
                   }
                   ScratchPool::Loan scratch(array.scratch);
                   const MutableArrayView chunk = chunk_buffer(loaded, loaded.grid.chunks(), *scratch);
                   if (!load_chunk(array, loaded, key, chunk, *scratch)) return;
                   fill_beyond(loaded, loaded.grid.chunk_region(index).extent, chunk);
                   output.put(loaded.pipeline.encode(chunk, scratch->codec));
               });
}

void require_direct(const ArrayState& array, const LoadedArray& loaded) {
    const KeyScheme& keys = loaded.metadata.keys;
    const int rank = loaded.grid.shape().rank();
    array.store->require_direct(array.chunk_key(loaded, Index::filled(rank, 0)));
    if (keys.separator != "/") return;
    const std::function<void(const std::string&, int)> walk = [&](const std::string& place, int depth) {
        for (const std::string& name : array.store->list(place).prefixes) {
            if (name.find_first_not_of("0123456789") != std::string::npos) continue;
            array.store->require_direct(join_key(join_key(place, name), "0"));
            if (depth > 1) walk(join_key(place, name), depth - 1);
        }
    };
    const std::size_t slash = keys.prefix.rfind('/');
    if (rank > 1) walk(join_key(array.prefix, keys.prefix.substr(0, slash == std::string::npos ? 0 : slash)), rank - 1);
}

}  // namespace tessera
