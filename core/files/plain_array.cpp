#include "plain_array.h"

#include <algorithm>

#include <tessera/copy_elements.h>
#include <tessera/error_text.h>

namespace tessera {

namespace {

constexpr std::int64_t scratch_bytes = 1 << 20;  // of one thread
constexpr std::int64_t job_bytes = 4 << 20;      // a region up to this is one job
constexpr std::int64_t gap_bytes = 4 << 10;      // gaps up to this are cheaper to read than to skip
constexpr std::int64_t direct_bytes = 64 << 10;  // rows of at least this get a system call of their own

/// A part of the region: its elements in the caller's memory, and the offset of the first one in the file. Dimensions
/// are ordered slowest first in the file, whatever the file's order.
template <class View>
struct Box {
    std::uint64_t offset = 0;
    View view;
};

/// Rows [begin, end) along one axis. `strides` are the file's.
template <class View>
Box<View> slice(Box<View> box, const Strides& strides, int axis, std::int64_t begin, std::int64_t end) {
    box.offset += static_cast<std::uint64_t>(begin * strides[axis]);
    box.view.data += begin * box.view.strides[axis];
    box.view.shape[axis] = end - begin;
    return box;
}

/// The layout in the file of a box of this shape.
struct Extent {
    std::int64_t span = 0;  ///< bytes from its first to its last element
    std::int64_t gap = 0;   ///< the longest run of other bytes in between
    int axis = 0;           ///< the first that has more than one row; the rank for one element
};

Extent extent_of(const Shape& shape, const Strides& strides, std::int64_t item) {
    Extent e{item, 0, shape.rank()};
    for (int d = shape.rank(); d-- > 0;) {
        if (shape[d] == 1) continue;
        e.gap = std::max(e.gap, strides[d] - e.span);
        e.span += (shape[d] - 1) * strides[d];
        e.axis = d;
    }
    return e;
}

/// Calls body(box) for the box in slices of `rows` rows.
template <class View, class Body>
void for_each_slice(const Box<View>& box, const Strides& strides, int axis, std::int64_t rows, const Body& body) {
    const std::int64_t count = box.view.shape[axis];
    for (std::int64_t i = 0; i < count; i += rows) body(slice(box, strides, axis, i, std::min(i + rows, count)));
}

struct PlainReader {
    const ByteSource& source;
    const DType& dtype;
    const Strides& strides;
    Buffer scratch = {};

    bool direct(const Box<MutableArrayView>& box, const Extent& e) const {
        return e.gap == 0 && box.view.dtype == dtype && box.view.contiguous();
    }

    void read(const Box<MutableArrayView>& box) {
        const Extent e = extent_of(box.view.shape, strides, dtype.size());
        if (direct(box, e)) {
            source.read(box.offset, {box.view.data, static_cast<std::size_t>(e.span)});
            return;
        }
        const bool one_element = e.axis == box.view.shape.rank();
        const bool row_by_row = !one_element && (e.gap > gap_bytes || rows_are_direct(box, e.axis));
        if (one_element || (!row_by_row && e.span <= scratch_bytes)) {
            scratch.reset(static_cast<std::size_t>(e.span));
            source.read(box.offset, scratch.span());
            copy_elements({scratch.data(), dtype, box.view.shape, strides}, box.view);
            return;
        }
        const std::int64_t row_span = e.span - (box.view.shape[e.axis] - 1) * strides[e.axis];
        const std::int64_t rows =
            row_by_row ? 1 : 1 + std::max<std::int64_t>(0, scratch_bytes - row_span) / strides[e.axis];
        for_each_slice(box, strides, e.axis, rows, [&](const auto& part) { read(part); });
    }

    /// Whether each row along `axis` can be read without scratch, and is long enough to be worth it.
    bool rows_are_direct(const Box<MutableArrayView>& box, int axis) const {
        const Box<MutableArrayView> row = slice(box, strides, axis, 0, 1);
        const Extent e = extent_of(row.view.shape, strides, dtype.size());
        return e.span >= direct_bytes && direct(row, e);
    }
};

struct Writer {
    const std::function<void(std::uint64_t, ByteSpan)>& put;
    const DType& dtype;
    const Strides& strides;
    Buffer scratch = {};

    void write(const Box<ArrayView>& box) {
        const Extent e = extent_of(box.view.shape, strides, dtype.size());
        if (e.gap > 0) {
            for_each_slice(box, strides, e.axis, 1, [&](const auto& part) { write(part); });
        } else if (box.view.dtype == dtype && box.view.contiguous()) {
            put(box.offset, {box.view.data, static_cast<std::size_t>(e.span)});
        } else if (e.span <= scratch_bytes || e.axis == box.view.shape.rank()) {
            scratch.reset(static_cast<std::size_t>(e.span));
            copy_elements(box.view, view_bytes(scratch.data(), dtype, box.view.shape));
            put(box.offset, scratch.span());
        } else {
            const std::int64_t rows = std::max<std::int64_t>(1, scratch_bytes / strides[e.axis]);
            for_each_slice(box, strides, e.axis, rows, [&](const auto& part) { write(part); });
        }
    }
};

/// Cuts the box into jobs of about job_bytes and runs them: in parallel, or in ascending order of the file.
template <class View>
void for_each_job(const Box<View>& box, const Strides& strides, std::int64_t item, bool ascending, const IoOptions& io,
                  const std::function<void(const Box<View>&)>& job) {
    const Shape& shape = box.view.shape;
    if (shape.empty()) return job(box);
    const std::int64_t wanted = ceil_div(byte_count(shape, item), job_bytes);
    std::int64_t outer = 1;
    int axis = 0;
    while (axis + 1 < shape.rank() && outer * shape[axis] < wanted) outer *= shape[axis++];
    const std::int64_t rows = std::max<std::int64_t>(1, outer * shape[axis] / wanted);
    const std::int64_t pieces = ceil_div(shape[axis], rows);
    const auto run = [&](std::int64_t i) {
        const std::int64_t begin = i % pieces * rows;
        Box<View> part = slice(box, strides, axis, begin, std::min(begin + rows, shape[axis]));
        std::int64_t row = i / pieces;
        for (int d = axis; d-- > 0; row /= shape[d]) part = slice(part, strides, d, row % shape[d], row % shape[d] + 1);
        job(part);
    };
    if (!ascending) return parallel_for(outer * pieces, io, run);
    for (std::int64_t i = 0; i < outer * pieces; ++i) {
        if (io.stop.stop_requested()) throw cancelled("stopped on request");
        run(i);
    }
}

Dims reversed(Dims d) {
    std::reverse(d.begin(), d.end());
    return d;
}

void require_fit(const PlainLayout& layout, const Region& region, const ArrayView& view) {
    require_inside(region, layout.shape);
    if (!(view.shape == region.extent)) {
        throw invalid_argument("region {} does not fit memory of shape {}", region.to_string(), view.shape.to_string());
    }
    if (!view.dtype.equal_but_order(layout.dtype)) {
        throw invalid_argument("the file has dtype {} and the memory {}; they may differ in byte order only",
                               layout.dtype.to_string(), view.dtype.to_string());
    }
}

/// The region as one box, its axes in file order, and the file's strides in that order.
template <class View>
std::pair<Box<View>, Strides> make_box(const PlainLayout& layout, const Region& region, const View& view) {
    in_context([&] { return layout.name; }, [&] { require_fit(layout, region, view); });
    Strides strides = contiguous_strides(layout.shape, layout.dtype.size(), layout.order);
    if (layout.row_stride != 0) strides[0] = layout.row_stride;
    Box<View> box{layout.data_offset, view};
    for (int d = 0; d < region.rank(); ++d) box.offset += static_cast<std::uint64_t>(region.start[d] * strides[d]);
    if (layout.order == Order::F) {
        box.view.shape = reversed(box.view.shape);
        box.view.strides = reversed(box.view.strides);
        strides = reversed(strides);
    }
    return {box, strides};
}

}  // namespace

void read_plain(const ByteSource& source, const PlainLayout& layout, const Region& region, const MutableArrayView& out,
                const IoOptions& io) {
    const auto [box, strides] = make_box(layout, region, out);
    const std::int64_t item = layout.dtype.size();
    if (region.empty() || item == 0) return;
    const Strides& file = strides;
    for_each_job<MutableArrayView>(box, file, item, source.sequential(), io, [&](const Box<MutableArrayView>& part) {
        PlainReader{source, layout.dtype, file}.read(part);
    });
}

void write_plain(const PlainLayout& layout, const Region& region, const ArrayView& in, bool ascending,
                 const IoOptions& io, const std::function<void(std::uint64_t, ByteSpan)>& put) {
    const auto [box, strides] = make_box(layout, region, in);
    const std::int64_t item = layout.dtype.size();
    if (region.empty() || item == 0) return;
    const Strides& file = strides;
    for_each_job<ArrayView>(box, file, item, ascending, io, [&](const Box<ArrayView>& part) {
        Writer{put, layout.dtype, file}.write(part);
    });
}

bool order_is_moot(const Shape& shape) {
    return element_count(shape) == 0 || std::count_if(shape.begin(), shape.end(), [](auto n) { return n > 1; }) <= 1;
}

}  // namespace tessera
