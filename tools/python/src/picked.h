// NumPy's basic indexing: what a[key] picks.
#pragma once

#include <pybind11/pybind11.h>

#include <tessera/selection.h>
#include <cstdint>
#include <optional>
#include <vector>

namespace tessera::python {

namespace py = pybind11;

/// What a key of integers, slices, `...` and None picks from an array.
struct Picked {
    Selection selection = Selection::all({});
    Shape shape;                    ///< of the result, as NumPy has it
    std::vector<std::int8_t> axes;  ///< of each dimension of the result: the selection's axis, or -1 for None
    bool element = false;           ///< one element, and no array without dimensions: integers alone

    /// The memory of a result as the library takes it: dropped dimensions as 1, none for None.
    [[nodiscard]] Strides strides(const Strides& of_result) const;
};

/// Nothing for a key that holds something else (arrays, lists, bools, names). Throws IndexError as NumPy does.
[[nodiscard]] std::optional<Picked> pick(const py::object& key, const Shape& shape);

}  // namespace tessera::python
