#include "basic_index.h"

#include <pybind11/numpy.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tessera::python {

namespace {

/// Whether an item of a key is basic.
bool is_basic(const py::handle& item) {
    if (item.is_none() || PySlice_Check(item.ptr()) != 0 || item.is(py::ellipsis())) return true;
    if (py::isinstance<py::bool_>(item) || py::isinstance<py::str>(item) || PyIndex_Check(item.ptr()) == 0)
        return false;
    if (PyLong_Check(item.ptr()) != 0) return true;
    // Of NumPy's objects: integers, and 0-d arrays of them. (np.bool_ has an __index__ that warns.)
    if (!py::isinstance<py::array>(item)) return py::dtype::from_args(py::type::of(item)).kind() != 'b';
    const auto array = py::reinterpret_borrow<py::array>(item);
    return array.ndim() == 0 && (array.dtype().kind() == 'i' || array.dtype().kind() == 'u');
}

Selection::Axis integer_axis(const py::handle& item, std::int64_t length, int axis) {
    const Py_ssize_t index = PyNumber_AsSsize_t(item.ptr(), PyExc_IndexError);
    if (index == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
    if (index < -length || index >= length) {
        throw py::index_error(fmt::format("index {} is out of bounds for axis {} with size {}",
                                          static_cast<std::int64_t>(index), axis, length));
    }
    return {.start = index < 0 ? index + length : index, .step = 1, .count = 1, .dropped = true};
}

Selection::Axis slice_axis(const py::handle& item, std::int64_t length) {
    Py_ssize_t start = 0;
    Py_ssize_t stop = 0;
    Py_ssize_t step = 0;
    if (PySlice_Unpack(item.ptr(), &start, &stop, &step) < 0) throw py::error_already_set();
    const Py_ssize_t count = PySlice_AdjustIndices(length, &start, &stop, step);
    // A step beyond the array would only overflow.
    if (count <= 1) step = 1;
    return {.start = count == 0 ? 0 : start, .step = step, .count = count, .dropped = false};
}

}  // namespace

Strides Picked::strides(const Strides& of_result) const {
    Strides strides = Strides::filled(selection.rank(), 0);
    for (std::size_t d = 0; d < axes.size(); ++d) {
        if (axes[d] >= 0) strides[axes[d]] = of_result[static_cast<int>(d)];
    }
    return strides;
}

namespace {

struct KeyCount {
    int given = 0;  ///< items that take a dimension
    bool arrays_only = true;
};

/// Counts the items of a key; nullopt if it is not basic.
std::optional<KeyCount> count_items(const py::tuple& items, int rank) {
    KeyCount count;
    int ellipses = 0;
    for (const py::handle item : items) {
        if (!is_basic(item)) return std::nullopt;
        const bool ellipsis = item.is(py::ellipsis());
        ellipses += ellipsis ? 1 : 0;
        count.given += ellipsis || item.is_none() ? 0 : 1;
        count.arrays_only = count.arrays_only && !ellipsis && !item.is_none() && PySlice_Check(item.ptr()) == 0;
    }
    if (ellipses > 1) throw py::index_error("an index can only have a single ellipsis ('...')");
    if (count.given > rank) {
        throw py::index_error(
            fmt::format("too many indices for array: array is {}-dimensional, but {} were indexed", rank, count.given));
    }
    return count;
}

}  // namespace

std::optional<Picked> pick(const py::object& key, const Shape& shape) {
    const py::tuple items =
        PyTuple_Check(key.ptr()) != 0 ? py::reinterpret_borrow<py::tuple>(key) : py::make_tuple(key);
    const auto count = count_items(items, shape.rank());
    if (!count) return std::nullopt;
    Picked picked;
    std::vector<Selection::Axis> axes;
    const auto keep = [&](const Selection::Axis& axis) {
        picked.axes.push_back(static_cast<std::int8_t>(axes.size()));
        picked.shape.push_back(axis.count);
        axes.push_back(axis);
    };
    const auto length = [&] { return shape[static_cast<int>(axes.size())]; };
    const auto keep_all = [&](int dimensions) {
        for (; dimensions > 0; --dimensions) keep({.start = 0, .step = 1, .count = length(), .dropped = false});
    };
    for (const py::handle item : items) {
        if (item.is(py::ellipsis())) {
            keep_all(shape.rank() - count->given);
        } else if (item.is_none()) {
            picked.axes.push_back(-1);
            picked.shape.push_back(1);
        } else if (PySlice_Check(item.ptr()) != 0) {
            keep(slice_axis(item, length()));
        } else {
            axes.push_back(integer_axis(item, length(), static_cast<int>(axes.size())));
        }
    }
    keep_all(shape.rank() - static_cast<int>(axes.size()));
    picked.element = count->arrays_only && count->given == shape.rank();
    picked.selection = Selection(std::move(axes));
    return picked;
}

}  // namespace tessera::python
