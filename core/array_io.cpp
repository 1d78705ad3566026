#include <tessera/array_io.h>

#include <algorithm>

#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>

namespace tessera {

namespace {

constexpr std::int64_t scratch_bytes = 8 << 20;  // read at once for a selection with steps
constexpr std::int64_t gap_bytes = 64 << 10;     // gaps up to this are cheaper to read than to skip

/// Part of a selection with positive steps, and the destination of its elements. The view's shape is the counts.
struct Part {
    Index start;
    MutableArrayView out;
};

struct SelectionReader {
    const ArraySource& source;
    const IoOptions& io;
    DType dtype;
    Dims steps;
    Dims chunks;  // all 1 for a plain file

    void read(const Part& part) const {
        const Shape& counts = part.out.shape;
        Shape extent = counts;
        for (int d = 0; d < extent.rank(); ++d) extent[d] = (extent[d] - 1) * steps[d] + 1;
        const Region bounds(part.start, extent);
        if (extent == counts) return source.read_into(bounds, part.out, io);
        for (int d = 0; d < counts.rank(); ++d) {
            const std::int64_t rows = rows_at_once(bounds, d);
            if (rows_from(part, d, 0, rows) == counts[d]) continue;
            for (std::int64_t i = 0, n = 0; i < counts[d]; i += n) {
                n = rows_from(part, d, i, rows);
                Part slice = part;
                slice.start[d] += i * steps[d];
                slice.out.data += i * part.out.strides[d];
                slice.out.shape[d] = n;
                read(slice);
            }
            return;
        }
        NDArray scratch(dtype, extent);
        source.read_into(bounds, scratch.view(), io);
        ArrayView picked = scratch.view();
        picked.shape = counts;
        for (int d = 0; d < counts.rank(); ++d) picked.strides[d] *= steps[d];
        copy_elements(picked, part.out);
    }

    /// How many picked indices along axis `d` are read at once, gaps included.
    std::int64_t rows_at_once(const Region& bounds, int d) const {
        const std::int64_t row = std::max<std::int64_t>(1, bounds.count() / bounds.extent[d] * dtype.size());
        if ((steps[d] - 1) * static_cast<double>(row) > gap_bytes) return 1;
        return 1 + std::max<std::int64_t>(0, scratch_bytes / row - 1) / steps[d];
    }

    /// `rows` indices from index `i` on, and more in the chunk of the last one, so that each chunk is read once.
    std::int64_t rows_from(const Part& part, int d, std::int64_t i, std::int64_t rows) const {
        const std::int64_t left = part.out.shape[d] - i;
        if (rows >= left) return left;
        const std::int64_t last = part.start[d] + (i + rows - 1) * steps[d];
        const std::int64_t chunk_end = (last / chunks[d] + 1) * chunks[d];
        return std::min(left, rows + (chunk_end - 1 - last) / steps[d]);
    }
};

}  // namespace

Value attributes_beside_model(const ArraySource& source) {
    Value found = Value::object();
    if (source.model() == nullptr) return found;
    const Value before = source.model()->attribute_values();
    const Value after = source.attribute_values();
    for (const auto& [name, value] : after.as_object()) {
        const Value* same = before.find(name);
        if (same == nullptr || *same != value) found.set(name, value);
    }
    return found;
}

void ArraySource::read_picked(const Selection& selection, const MutableArrayView& out, const IoOptions& io) const {
    const ArrayInfo info = this->info();
    if (selection.rank() != info.shape.rank() || !(out.shape == selection.full_shape())) {
        throw invalid_argument("{}: a selection of shape {} does not fit memory of shape {}", name(),
                               selection.full_shape().to_string(), out.shape.to_string());
    }
    if (out.count() == 0) return;
    const int rank = info.shape.rank();
    Part part{Index::filled(rank, 0), out};
    Dims steps = Dims::filled(rank, 1);
    for (int d = 0; d < rank; ++d) {
        const Selection::Axis& axis = selection.axes()[static_cast<std::size_t>(d)];
        part.start[d] = axis.start;
        if (axis.count > 1) steps[d] = axis.step;
        if (steps[d] < 0) {  // the same elements from the other end, into memory that runs backwards
            part.start[d] += (axis.count - 1) * steps[d];
            part.out.data += (axis.count - 1) * out.strides[d];
            part.out.strides[d] = -out.strides[d];
            steps[d] = -steps[d];
        }
    }
    const Dims chunks = info.chunks.rank() == rank ? info.chunks : Dims::filled(rank, 1);
    SelectionReader{*this, io, info.dtype, steps, chunks}.read(part);
}

NDArray ArraySource::read_points(std::span<const Index> points, const IoOptions& io) const {
    const DType dtype = info().dtype;
    NDArray elements(dtype, {std::ssize(points)});
    for (std::int64_t i = 0; i < std::ssize(points); ++i) {
        const Index& place = points[static_cast<std::size_t>(i)];
        const Shape one = Shape::filled(place.rank(), 1);
        MutableArrayView element = elements.view().part({{i}, {1}});
        element.shape = one;
        element.strides = contiguous_strides(one, dtype.size());
        read_into({place, one}, element, io);
    }
    return elements;
}

void read_selection_into(const ArraySource& source, const Selection& selection, const MutableArrayView& out,
                         const IoOptions& io) {
    source.read_picked(selection, out, io);
}

NDArray read_selection(const ArraySource& source, const Selection& selection, const IoOptions& io) {
    NDArray result(source.info().dtype, selection.full_shape());
    read_selection_into(source, selection, result.view(), io);
    return std::move(result).reshaped(selection.shape());
}

}  // namespace tessera
