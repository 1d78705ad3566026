// Reading and changing the part of a chunk, or of an inner chunk of a shard, that a selection picks. Inline, because
// each chunk passes through most of it. Private to the store module.
#pragma once

#include <fmt/format.h>

#include <tessera/action.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/no_text.h>
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

#include "array_state.h"
#include "chunk_changes.h"

namespace tessera {

/// "grid.zarr: chunk (0, 3), key __zdata__/0.3.blosc": the prefix of errors in a chunk.
inline std::string where(const ArrayState& array, const Index& chunk, const std::string& key) {
    return fmt::format("{}: chunk {}, key {}", array.name, chunk.to_string(), key);
}

/// The caller's view with the array's dtype, in the caller's byte order. Throws if shape or dtype do not fit.
template <class View>
View fitted(const ArrayState& array, const LoadedArray& loaded, const View& v, const Shape& shape) {
    const DType& dtype = loaded.metadata.dtype;
    if (!(v.shape == shape)) {
        throw invalid_argument("{}: the elements given have shape {}, what is picked has {}", array.name,
                               v.shape.to_string(), shape.to_string());
    }
    if (v.dtype.equal_but_order(dtype)) return v;
    if (v.dtype.kind() == Kind::structure && v.dtype.with_padding_named().equal_but_order(dtype)) {
        View named = v;
        named.dtype = v.dtype.with_padding_named();
        return named;
    }
    throw invalid_argument("{}: the elements given are {}, the array is {}; convert them first", array.name,
                           v.dtype.to_string(), dtype.to_string());
}

inline void require_inside(const ArrayState& array, const LoadedArray& loaded, const Region& region) {
    in_context([&] { return array.name; }, [&] { tessera::require_inside(region, loaded.grid.shape()); });
}

/// The view with dropped dimensions restored as length 1. `v` may have them already.
template <class View>
View with_dropped(const Selection& selection, const View& v, const std::string& name) {
    if (v.shape == selection.full_shape()) return v;
    if (!(v.shape == selection.shape())) {
        throw invalid_argument("{}: the elements given have shape {}, the selection [{}] has {}", name,
                               v.shape.to_string(), selection.to_string(), selection.shape().to_string());
    }
    View full = v;
    full.shape = selection.full_shape();
    full.strides = Strides::filled(full.shape.rank(), 0);
    int k = 0;
    for (int d = 0; d < selection.rank(); ++d) {
        if (!selection.axes()[static_cast<std::size_t>(d)].dropped) full.strides[d] = v.strides[k++];
    }
    return full;
}

/// One element for every place of a selection.
class RepeatedElement {
public:
    /// Throws invalid_argument, naming the array, if the value does not fit.
    RepeatedElement(const DType& dtype, const Value& value, const std::string& name)
        : dtype_(dtype),
          bytes_(in_context([&] { return name; }, [&] { return element_from_value(dtype, value, Assign::exact); })),
          slot_{reinterpret_cast<const char*>(bytes_.data()), bytes_.size()} {}
    RepeatedElement(const RepeatedElement&) = delete;
    RepeatedElement& operator=(const RepeatedElement&) = delete;
    ~RepeatedElement() = default;

    /// Repeats it by strides of zero, which takes no memory for any shape.
    [[nodiscard]] ArrayView view(const Shape& shape) const {
        const void* first = dtype_.is_variable() ? static_cast<const void*>(&slot_) : bytes_.data();
        return {first, dtype_, shape, Strides::filled(shape.rank(), 0)};
    }

private:
    DType dtype_;
    ElementBytes bytes_;
    VariableSlot slot_;
};

/// A selection of a whole array, and the memory for it (shape full_shape(), the array's dtype in any byte order).
template <class View>
struct Request {
    const Selection& selection;
    View elements;
};

/// What a selection picks from one box of the array: a chunk, or an inner chunk of a shard.
struct Picked {
    Region in_request;   ///< in units of the selection's steps
    Region in_box;       ///< the bounding region of the picked elements
    bool whole = false;  ///< picks every element of the box
};

/// `box` lies inside the array.
inline Picked picked_from(const Selection& selection, const Region& box) {
    Picked part{Region::whole(box.extent), Region::whole(box.extent), true};
    for (int d = 0; d < box.rank(); ++d) {
        const Selection::Axis& axis = selection.axes()[static_cast<std::size_t>(d)];
        const std::int64_t step = std::abs(axis.step);
        // With a negative step, the picked elements are counted from the other end.
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

/// The elements of a view of `part.in_box` that the selection picks, in the selection's order.
template <class View>
View picked(const View& box, const Picked& part, const Selection& selection) {
    View v = box;
    v.shape = part.in_request.extent;
    for (int d = 0; d < v.shape.rank(); ++d) {
        const std::int64_t step = selection.axes()[static_cast<std::size_t>(d)].step;
        if (step < 0) v.data += (box.shape[d] - 1) * box.strides[d];
        v.strides[d] = box.strides[d] * step;
    }
    return v;
}

/// Elements that were read and are no text become their JSON.
inline void show_json(const LoadedArray& loaded, const MutableArrayView& v) {
    if (!loaded.may_hold_no_text) return;
    const Region all = Region::whole(v.shape);
    for (std::int64_t n = 0; n < all.count(); ++n) {
        const Index index = index_in(all, n);
        std::byte* p = v.data;
        for (int d = 0; d < index.rank(); ++d) p += index[d] * v.strides[d];
        VariableSlot slot;
        std::memcpy(&slot, p, sizeof slot);
        if (!slot.view().starts_with(no_text_mark)) continue;
        slot = {slot.data + 1, slot.size - 1};
        std::memcpy(p, &slot, sizeof slot);
    }
}

/// Throws unsupported for an element that is not text, of a box to be written whose first element is at `start`.
inline void require_text(const LoadedArray& loaded, const ArrayView& v, const Index& start) {
    if (!loaded.may_hold_no_text) return;
    NDArray slots(DType::raw(sizeof(VariableSlot)), v.shape);
    copy_elements({v.data, slots.dtype(), v.shape, v.strides}, slots);  // the slots, without their content
    const auto* slot = reinterpret_cast<const VariableSlot*>(slots.bytes().data());
    const Region all = Region::whole(v.shape);
    for (std::int64_t n = 0; n < all.count(); ++n) {
        const std::string_view element = slot[n].view();
        if (!element.starts_with(no_text_mark)) continue;
        Index place = index_in(all, n);
        for (int d = 0; d < place.rank(); ++d) place[d] += start[d];
        throw unsupported("element {} is no text, but {} in JSON: the chunk that holds it is not rewritten",
                          place.to_string(), element.substr(1, 60))
            .advising(Action::set_element, "gives it a text");
    }
}

/// Reads an absent chunk as the fill, as long as the array has it.
inline void read_absent(const ArrayState& array, const LoadedArray& loaded, const Index& chunk,
                        const MutableArrayView& out) {
    if (array.published) array.require_chunk(loaded, chunk);
    // In v3, "c" is the only chunk of a 0-d array, and the folder of all chunks of any other array.
    if (loaded.grid.shape().rank() == 0) {
        const std::string key = array.chunk_key(loaded, {});
        if (array.store->local_files().folder_id(key)) {
            throw corrupt("{} is a directory, and not a regular file", array.store->name_of(key));
        }
    }
    fill_elements(out, loaded.metadata.dtype, loaded.fill());
}

/// The scratch's chunk array with this shape and uninitialised elements.
inline MutableArrayView chunk_buffer(const LoadedArray& loaded, const Shape& shape, WorkerScratch& scratch) {
    const DType& dtype = loaded.metadata.dtype;
    // A fresh one for variable-length elements, whose arena would otherwise grow with every chunk.
    if (!(scratch.chunk.dtype() == dtype) || !(scratch.chunk.shape() == shape) || dtype.is_variable()) {
        scratch.chunk = NDArray();
        scratch.chunk = NDArray(dtype, shape);
    }
    return scratch.chunk.view();
}

/// The same memory, with the elements of a packed chunk in the order in which they are stored, so that decoding moves
/// none. For memory from which elements are picked afterwards.
inline MutableArrayView laid_out_as(const CodecPipeline& pipeline, MutableArrayView chunk) {
    if (const auto steps = pipeline.element_steps(chunk.dtype)) chunk.strides = *steps;
    return chunk;
}

/// The elements of a stored chunk, in one piece: the bytes that were read if they are not encoded, else decoded. In
/// memory of the scratch; nullopt for an absent chunk. Not for variable-length elements.
inline std::optional<ArrayView> stored_chunk(const ArrayState& array, const LoadedArray& loaded, const std::string& key,
                                             WorkerScratch& scratch) {
    if (!array.store->get(key, scratch.encoded, loaded.pipeline.encoded_limit())) return std::nullopt;
    if (const auto there = loaded.pipeline.elements_in(scratch.encoded)) return there;
    const MutableArrayView chunk = laid_out_as(loaded.pipeline, chunk_buffer(loaded, loaded.grid.chunks(), scratch));
    loaded.pipeline.decode(scratch.encoded, chunk, scratch.codec);
    return chunk;
}

/// What a selection picks from a box in ascending order, for CodecPipeline::decode_part().
struct Ascending {
    Region region;         ///< from the first picked element on; counts them
    Dims steps;            ///< empty if all are 1
    MutableArrayView out;  ///< of the picked elements, turned round where the selection descends

    Ascending(const Selection& selection, const Picked& part, const MutableArrayView& elements)
        : region(part.in_box.start, part.in_request.extent), out(elements) {
        if (selection.is_region()) return;
        bool gaps = false;
        steps = Dims::filled(region.rank(), 1);
        for (int d = 0; d < region.rank(); ++d) {
            const std::int64_t step = selection.axes()[static_cast<std::size_t>(d)].step;
            if (region.extent[d] > 1) steps[d] = std::abs(step);
            gaps = gaps || steps[d] != 1;
            if (step > 0) continue;
            out.data += (out.shape[d] - 1) * out.strides[d];
            out.strides[d] = -out.strides[d];
        }
        if (!gaps) steps = Dims();
    }
};

/// Fills `chunk` with the stored chunk, or with the fill if there is none.
inline bool load_chunk(const ArrayState& array, const LoadedArray& loaded, const std::string& key,
                       const MutableArrayView& chunk, WorkerScratch& scratch) {
    if (array.store->get(key, scratch.encoded, loaded.pipeline.encoded_limit())) {
        loaded.pipeline.decode(scratch.encoded, chunk, scratch.codec);
        return true;
    }
    fill_elements(chunk, loaded.fill());
    return false;
}

/// The fill for elements that nobody reads (beyond the edge); zeros if the metadata's fill is unusable.
inline void fill_unread(const LoadedArray& loaded, const MutableArrayView& chunk) {
    if (loaded.metadata.fill.error.empty()) {
        fill_elements(chunk, loaded.fill());
    } else {
        zero_elements(chunk);
    }
}

/// Stores a chunk, or removes it if all its elements inside the array equal the fill.
inline void store_chunk(const LoadedArray& loaded, const Index& index, const ArrayView& chunk, ChunkOutput& output,
                        WorkerScratch& scratch) {
    const ArrayView inside = chunk.part(Region::whole(loaded.grid.chunk_region(index).extent));
    if (loaded.may_omit() && all_elements_equal(inside, loaded.fill()) && output.erase()) return;
    output.put(loaded.pipeline.encode(chunk, scratch.codec));
}

/// The new elements of a box of the array, as a chunk or inner chunk of shape `whole`; nullopt if the selection picks
/// none. memory(keep) returns memory of that shape with the stored elements or, if `keep` is false, the fill.
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

/// A region that lies inside the array, as a selection.
inline Selection region_selection(const Region& region) {
    std::vector<Selection::Axis> axes;
    for (int d = 0; d < region.rank(); ++d) axes.push_back({.start = region.start[d], .count = region.extent[d]});
    return Selection(std::move(axes));
}

/// Sets all elements of a chunk or inner chunk to the fill, except the leading ones in `inside`.
inline void fill_beyond(const LoadedArray& loaded, const Shape& inside, const MutableArrayView& chunk) {
    for (int d = 0; d < inside.rank(); ++d) {
        if (inside[d] == chunk.shape[d]) continue;
        Region outside = Region::whole(chunk.shape);
        outside.start[d] = inside[d];
        outside.extent[d] = chunk.shape[d] - inside[d];
        fill_elements(chunk.part(outside), loaded.fill());
    }
}

}  // namespace tessera
