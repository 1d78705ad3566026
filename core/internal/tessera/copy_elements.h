// Moving elements between views: strided copy, fill and comparison.
// Loops switch once on the element size. If the dtypes differ in byte order, it is swapped on the way.
#pragma once

#include <functional>

#include <tessera/view.h>

namespace tessera {

/// Copies every element of `from` to the same index of `to`. The views must not overlap. Shapes must be equal, and
/// dtypes equal except for byte order; else throws invalid_argument, naming both. Variable-length content goes into
/// `to.arena`.
void copy_elements(const ArrayView& from, const MutableArrayView& to);

/// Sets every element to the `dtype.size()` bytes at `element` (for variable-length dtypes: a VariableSlot, whose
/// content is copied into the arena once).
void fill_elements(const MutableArrayView& to, const std::byte* element);
/// The same with an element of `dtype`, which may differ from the view's in byte order.
void fill_elements(const MutableArrayView& to, const DType& dtype, const std::byte* element);
/// Sets every byte of every element to 0 (for variable-length dtypes: every element to an empty string).
void zero_elements(const MutableArrayView& to);

/// Whether every element equals `element` bit for bit (variable-length: content for content).
[[nodiscard]] bool all_elements_equal(const ArrayView& v, const std::byte* element);

/// Whether two views of equal shape hold the same elements bit for bit, byte order apart.
[[nodiscard]] bool elements_equal(const ArrayView& a, const ArrayView& b);

/// Calls run(first, step, n) for rows of n elements, `step` bytes apart. The rows cover every element of the view once,
/// in memory order. Packed elements are one row, whatever the order of dimensions.
void for_each_run(const ArrayView& v,
                  const std::function<void(const std::byte* first, std::int64_t step, std::int64_t n)>& run);

}  // namespace tessera
