// Elements at many indices: those of one chunk are read together.
#include <tessera/chunk_grid.h>
#include <tessera/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "convert.h"
#include "handle.h"

namespace tessera::python {

namespace {

/// Up to this many elements of a chunk are read one by one, so that only their blocks are decoded. For more, their
/// bounding box is read, unless it has more than `box_bytes_an_element` for each: unshuffling these takes as long as
/// one more single read.
constexpr std::size_t few = 4;
constexpr std::int64_t box_bytes_an_element = 8192;
/// Bytes of boxes read at once, so that they stay in the processor's cache until their elements are picked.
constexpr std::int64_t box_bytes = 8 << 20;

using Places = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;

/// Rows of an (n, rank) array of int64, in C order: indices inside the array.
struct Points {
    const std::int64_t* first = nullptr;
    std::size_t count = 0;
    int rank = 0;

    [[nodiscard]] const std::int64_t* operator[](std::size_t i) const {
        return first + i * static_cast<std::size_t>(rank);
    }
    [[nodiscard]] Index index(std::size_t i) const {
        return Index(std::span((*this)[i], static_cast<std::size_t>(rank)));
    }
};

Points points_of(const Places& places, const Shape& shape) {
    if (places.ndim() != 2 || places.shape(1) != shape.rank()) {
        throw invalid_argument("places are rows of an index for each dimension");
    }
    const Points points{places.data(), static_cast<std::size_t>(places.shape(0)), shape.rank()};
    for (std::size_t i = 0; i < points.count; ++i) {
        for (int d = 0; d < points.rank; ++d) {
            if (points[i][d] < 0 || points[i][d] >= shape[d]) {
                throw out_of_bounds(
                    fmt::format("{} lies outside the shape {}", points.index(i).to_string(), shape.to_string()));
            }
        }
    }
    return points;
}

/// Points sorted by chunk, and the start of each chunk's points.
struct ByChunk {
    std::vector<std::size_t> order;
    std::vector<std::size_t> begin;  ///< one more entry than chunks with points

    [[nodiscard]] std::span<const std::size_t> of(std::size_t n) const {
        return std::span(order).subspan(begin[n], begin[n + 1] - begin[n]);
    }
};

std::vector<std::int64_t> chunks_of(const Points& points, const ChunkGrid& grid) {
    std::vector<std::int64_t> chunks(points.count);
    for (std::size_t i = 0; i < points.count; ++i) {
        const std::int64_t* const at = points[i];
        std::int64_t number = 0;
        for (int d = 0; d < points.rank; ++d) number = number * grid.grid()[d] + at[d] / grid.chunks()[d];
        chunks[i] = number;
    }
    return chunks;
}

ByChunk by_chunk(const Points& points, const ChunkGrid& grid) {
    const std::vector<std::int64_t> chunks = chunks_of(points, grid);
    ByChunk sorted{.order = std::vector<std::size_t>(points.count), .begin = {}};
    const auto possible = static_cast<std::uint64_t>(grid.chunk_count());
    if (possible <= 4 * points.count + 1024) {
        // Counting sort.
        std::vector<std::size_t> next(static_cast<std::size_t>(possible) + 1);
        for (const std::int64_t chunk : chunks) ++next[static_cast<std::size_t>(chunk) + 1];
        for (std::size_t c = 1; c < next.size(); ++c) {
            if (next[c] != 0) sorted.begin.push_back(next[c - 1]);
            next[c] += next[c - 1];
        }
        for (std::size_t i = 0; i < chunks.size(); ++i) sorted.order[next[static_cast<std::size_t>(chunks[i])]++] = i;
    } else {
        for (std::size_t i = 0; i < sorted.order.size(); ++i) sorted.order[i] = i;
        std::ranges::sort(sorted.order, {}, [&](std::size_t i) { return std::pair(chunks[i], i); });
        for (std::size_t i = 0; i < sorted.order.size(); ++i) {
            if (i == 0 || chunks[sorted.order[i]] != chunks[sorted.order[i - 1]]) sorted.begin.push_back(i);
        }
    }
    sorted.begin.push_back(points.count);
    return sorted;
}

/// The bounding box of these points.
Region box_around(const Points& points, std::span<const std::size_t> chosen) {
    Index low = points.index(chosen.front());
    Index high = low;
    for (const std::size_t i : chosen) {
        for (int d = 0; d < points.rank; ++d) {
            low[d] = std::min(low[d], points[i][d]);
            high[d] = std::max(high[d], points[i][d]);
        }
    }
    for (int d = 0; d < points.rank; ++d) high[d] += 1 - low[d];
    return {low, high};
}

/// Copies elements of `Size` bytes (0: `size`) from a box, each to its place in `to`.
template <std::size_t Size>
void pick(const Region& box, const MutableArrayView& from, const Points& points, std::span<const std::size_t> chosen,
          const MutableArrayView& to) {
    const auto size = static_cast<std::size_t>(from.dtype.size());
    for (const std::size_t i : chosen) {
        const std::int64_t* const at = points[i];
        std::int64_t offset = 0;
        for (int d = 0; d < points.rank; ++d) offset += (at[d] - box.start[d]) * from.strides[d];
        std::memcpy(to.data + static_cast<std::int64_t>(i) * to.strides[0], from.data + offset,
                    Size != 0 ? Size : size);
    }
}

void pick_all(const Region& box, const MutableArrayView& from, const Points& points,
              std::span<const std::size_t> chosen, const MutableArrayView& to) {
    switch (from.dtype.size()) {
        case 1:
            return pick<1>(box, from, points, chosen, to);
        case 2:
            return pick<2>(box, from, points, chosen, to);
        case 4:
            return pick<4>(box, from, points, chosen, to);
        case 8:
            return pick<8>(box, from, points, chosen, to);
        default:
            return pick<0>(box, from, points, chosen, to);
    }
}

RegionRead single_read(const Points& points, std::size_t i, const MutableArrayView& to) {
    MutableArrayView one = to;
    one.data += static_cast<std::int64_t>(i) * to.strides[0];
    one.shape = Shape::filled(points.rank, 1);
    one.strides = Strides::filled(points.rank, to.dtype.size());
    return {Region(points.index(i), one.shape), one};
}

/// Reads boxes, several at once.
class BoxReader {
public:
    BoxReader(const Array& array, const Points& points, const MutableArrayView& to, const IoOptions& io)
        : array_(array), points_(points), to_(to), io_(io) {}

    void add(std::span<const std::size_t> chosen) {
        const Region box = box_around(points_, chosen);
        const std::int64_t bytes = byte_count(box.extent, to_.dtype.size());
        if (chosen.size() <= few || bytes / std::ssize(chosen) > box_bytes_an_element) {
            for (const std::size_t i : chosen) reads_.push_back(single_read(points_, i, to_));
            if (reads_.size() > most) flush();
            return;
        }
        if (used_ + bytes > box_bytes) flush();
        if (memory_.size() < static_cast<std::size_t>(used_ + bytes))
            memory_.reset(static_cast<std::size_t>(std::max(bytes, box_bytes)));
        MutableArrayView v{memory_.data() + used_, to_.dtype, box.extent,
                           contiguous_strides(box.extent, to_.dtype.size()), nullptr};
        used_ += (bytes + alignment - 1) / alignment * alignment;
        boxes_.push_back({reads_.size(), chosen});
        reads_.push_back({box, v});
    }

    void flush() {
        if (!reads_.empty()) array_.read_many(reads_, io_);
        parallel_for(std::ssize(boxes_), io_, [&](std::int64_t n) {
            const Box& box = boxes_[static_cast<std::size_t>(n)];
            const RegionRead& read = reads_[box.read];
            pick_all(read.region, read.out, points_, box.chosen, to_);
        });
        reads_.clear();
        boxes_.clear();
        used_ = 0;
    }

private:
    static constexpr std::size_t most = 1 << 14;  ///< single elements: each takes a kilobyte meanwhile
    static constexpr std::int64_t alignment = 64;
    struct Box {
        std::size_t read = 0;
        std::span<const std::size_t> chosen;
    };
    const Array& array_;
    const Points& points_;
    const MutableArrayView& to_;
    const IoOptions& io_;
    Buffer memory_;
    std::int64_t used_ = 0;
    std::vector<RegionRead> reads_;
    std::vector<Box> boxes_;
};

void read_points(ArrayHandle& handle, const Places& places, const py::array& out, const WorkOptions& options) {
    const auto parts = handle.parts();
    const ArrayInfo info = parts->readable().info();
    const Points points = points_of(places, info.shape);
    const DType& dtype = handle.dtype();
    NDArray slots;
    if (dtype.is_variable()) slots = NDArray(dtype, {static_cast<std::int64_t>(points.count)});
    const MutableArrayView to = dtype.is_variable() ? slots.view() : view_to_write(out, handle.dtype_of(out));
    Work work(options);
    work.run([&](const IoOptions& io) {
        if (points.count == 0) return;
        if (parts->array && !dtype.is_variable() && points.rank > 0) {
            const ByChunk sorted = by_chunk(points, ChunkGrid(info.shape, info.chunks));
            BoxReader reader(*parts->array, points, to, io);
            for (std::size_t n = 0; n + 1 < sorted.begin.size(); ++n) reader.add(sorted.of(n));
            return reader.flush();
        }
        std::vector<RegionRead> reads;
        for (std::size_t i = 0; i < points.count; ++i) reads.push_back(single_read(points, i, to));
        if (parts->array) return parts->array->read_many(reads, io);
        for (const RegionRead& read : reads) parts->source->read_into(read.region, read.out, io);
    });
    if (dtype.is_variable()) slots_to_objects(slots.view(), out);
}

void write_points(ArrayHandle& handle, const Places& places, const py::array& values, const WorkOptions& options) {
    Array array = handle.array();
    const Points points = points_of(places, array.shape());
    std::vector<Index> indices;
    indices.reserve(points.count);
    for (std::size_t i = 0; i < points.count; ++i) indices.push_back(points.index(i));
    const bool variable = handle.dtype().is_variable();
    const NDArray slots = variable ? objects_to_slots(values, handle.dtype()) : NDArray();
    const ArrayView from = variable ? slots.view() : view_to_read(values, handle.dtype_of(values));
    Work(options).run([&](const IoOptions& io) { array.write_points(indices, from, io); });
}

}  // namespace

void bind_points(py::class_<ArrayHandle>& handle) {
    handle.def("read_points", &read_points);
    handle.def("write_points", &write_points);
}

}  // namespace tessera::python
