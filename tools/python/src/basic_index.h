// NumPy's basic indexing: the meaning of a[key].
#pragma once

#include <pybind11/pybind11.h>

#include <tessera/selection.h>
#include <cstdint>
#include <optional>
#include <vector>

namespace tessera::python {

namespace py = pybind11;

/// The part of an array picked by a key of integers, slices, `...` and None.
struct Picked {
    Selection selection = Selection::all({});
    Shape shape;                    ///< of the result in NumPy
    std::vector<std::int8_t> axes;  ///< of each dimension of the result: the selection's axis, or -1 for None
    bool element = false;           ///< the result is an element, not a 0-d array: the key has only integers

    /// The strides of a result for the library: dropped dimensions with length 1, and none for None.
    [[nodiscard]] Strides strides(const Strides& of_result) const;
};

/// nullopt for any other key (with arrays, lists, bools, names). Throws IndexError as NumPy does.
[[nodiscard]] std::optional<Picked> pick(const py::object& key, const Shape& shape);

}  // namespace tessera::python
