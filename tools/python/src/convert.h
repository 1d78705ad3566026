// Between Python and the library: dtypes, JSON values, shapes, and arrays without copies.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <optional>
#include <string_view>

#include <tessera/chunk_grid.h>
#include <tessera/dtype.h>
#include <tessera/ndarray.h>
#include <tessera/selection.h>
#include <tessera/shape.h>
#include <tessera/value.h>

namespace tessera::python {

namespace py = pybind11;

/// The library's dtype of a NumPy dtype. Objects become Kind::object. Throws invalid_argument or unsupported.
[[nodiscard]] DType dtype_from_numpy(const py::dtype& dtype);
/// The dtype of an argument: a NumPy dtype, anything that np.dtype() takes, or a name that NumPy lacks: "bfloat16",
/// "string", "bytes" (the types str and bytes mean the last two).
[[nodiscard]] DType dtype_from_argument(const py::object& dtype);
/// The NumPy dtype that shows elements of `dtype`: objects for variable-length text and bytes, V2 for bfloat16.
[[nodiscard]] py::dtype dtype_to_numpy(const DType& dtype);

/// A str, decoded as by os.fsdecode(): names of files and of members need not be UTF-8.
[[nodiscard]] py::object text_to_python(std::string_view text);
[[nodiscard]] py::object value_to_python(const Value& value);
[[nodiscard]] bool is_mapping(const py::handle& object);
/// None, bool, int, float, str, lists, tuples, mappings with str keys, NumPy scalars and arrays. Throws TypeError.
[[nodiscard]] Value value_from_python(const py::handle& object);

[[nodiscard]] py::tuple shape_to_python(const Dims& shape);
/// An integer or a sequence of integers; None is empty.
/// Lengths of chunks: a shape, or a list of lengths for dimensions along which they differ ([[10, 10, 5], 32]), or
/// either as a text.
[[nodiscard]] ChunkLengths lengths_from_python(const py::object& lengths);
[[nodiscard]] Shape shape_from_python(const py::object& shape);

/// A path: str, bytes or os.PathLike.
[[nodiscard]] std::string path_from_python(const py::object& path);

/// A view of a NumPy array, which must outlive it. `dtype` is the library's dtype of the elements. Throws ValueError
/// for a read-only array.
[[nodiscard]] MutableArrayView view_to_write(const py::array& array, const DType& dtype);
[[nodiscard]] ArrayView view_to_read(const py::array& array, const DType& dtype);

/// Fills an array of objects with the str or bytes of variable-length elements, or with arrays of `items`. Holds the
/// GIL.
void slots_to_objects(const ArrayView& slots, const py::array& objects,
                      const std::optional<DType>& items = std::nullopt);
/// The reverse: str or bytes objects, with `items` sequences of one dimension, or elements of NumPy 2's StringDType, as
/// variable-length elements. Throws TypeError, naming the element.
[[nodiscard]] NDArray objects_to_slots(const py::array& values, const DType& dtype,
                                       const std::optional<DType>& items = std::nullopt);

/// A new, uninitialised NumPy array.
[[nodiscard]] py::array empty_array(const py::dtype& dtype, const Shape& shape, bool fortran = false);

}  // namespace tessera::python
