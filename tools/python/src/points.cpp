// Elements at many indices.
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "convert.h"
#include "handle.h"

namespace tessera::python {

namespace {

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
    return {places.data(), static_cast<std::size_t>(places.shape(0)), shape.rank()};
}

void require_places_inside(const Points& points, const Shape& shape) {
    for (std::size_t i = 0; i < points.count; ++i) {
        for (int d = 0; d < points.rank; ++d) {
            if (points[i][d] < 0 || points[i][d] >= shape[d]) {
                throw out_of_bounds("{} lies outside the shape {}", points.index(i).to_string(), shape.to_string());
            }
        }
    }
}

RegionRead single_read(const Points& points, std::size_t i, const MutableArrayView& to) {
    MutableArrayView one = to;
    one.data += static_cast<std::int64_t>(i) * to.strides[0];
    one.shape = Shape::filled(points.rank, 1);
    one.strides = Strides::filled(points.rank, to.dtype.size());
    return {Region(points.index(i), one.shape), one};
}

void read_points(ArrayHandle& handle, const Places& places, const py::array& out, const WorkOptions& options) {
    const auto parts = handle.parts();
    const ArrayInfo info = parts->readable().info();
    const Points points = points_of(places, info.shape);
    const DType& dtype = handle.dtype();
    NDArray slots;
    MutableArrayView to;
    if (!dtype.is_variable()) to = view_to_write(out, handle.dtype_of(out));
    Work work(options);
    work.run([&](const IoOptions& io) {
        if (dtype.is_variable()) {
            slots = NDArray(dtype, {static_cast<std::int64_t>(points.count)});
            to = slots.view();
        }
        if (points.count == 0) return;
        if (parts->array) {
            const std::span indices(points.first, points.count * static_cast<std::size_t>(points.rank));
            return parts->array->read_points(indices, to, io);
        }
        require_places_inside(points, info.shape);
        for (std::size_t i = 0; i < points.count; ++i) {
            const RegionRead read = single_read(points, i, to);
            parts->source->read_into(read.region, read.out, io);
        }
    });
    if (dtype.is_variable()) slots_to_objects(slots.view(), out, handle.items());
}

/// Into a file or a cache, neither of which has locks for its chunks.
void write_singly(ArrayParts& to, const Points& points, const ArrayView& from, const IoOptions& io) {
    for (std::size_t i = 0; i < points.count; ++i) {
        ArrayView one = from;
        one.data += static_cast<std::int64_t>(i) * from.strides[0];
        one.shape = Shape::filled(points.rank, 1);
        one.strides = Strides::filled(points.rank, from.dtype.size());
        const Region place(points.index(i), one.shape);
        if (to.mapped) {
            copy_elements(one, to.mapped->mutable_view().part(place));
        } else {
            to.cached->write(place, one, io);
        }
    }
}

void write_points(ArrayHandle& handle, const Places& places, const py::array& values, const WorkOptions& options) {
    const auto parts = handle.parts();
    const Shape shape = parts->readable().info().shape;
    const Points points = points_of(places, shape);
    require_places_inside(points, shape);
    const bool variable = handle.dtype().is_variable();
    const NDArray slots = variable ? objects_to_slots(values, handle.dtype(), handle.items()) : NDArray();
    const ArrayView from = variable ? slots.view() : view_to_read(values, handle.dtype_of(values));
    if (parts->mapped || parts->cached != nullptr) {
        Work(options).run([&](const IoOptions& io) { write_singly(*parts, points, from, io); });
        return;
    }
    Array array = handle.array();
    std::vector<Index> indices;
    indices.reserve(points.count);
    for (std::size_t i = 0; i < points.count; ++i) indices.push_back(points.index(i));
    Work(options).run([&](const IoOptions& io) { array.write_points(indices, from, io); });
}

}  // namespace

void bind_points(py::class_<ArrayHandle>& handle) {
    handle.def("read_points", &read_points);
    handle.def("write_points", &write_points);
}

}  // namespace tessera::python
