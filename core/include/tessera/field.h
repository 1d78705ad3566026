// One field of structures: a view of it in memory, and a source that presents it as an array of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tessera/array_io.h>
#include <tessera/view.h>

namespace tessera {

/// Where a field lies in each structure.
struct FieldPlace {
    DType dtype;
    Shape shape;  ///< of a sub-array, whose dimensions follow those of the array; rank 0 for none
    std::int64_t offset = 0;
};

/// The field `name`, or "n.x" for field x of the structures in field n. Throws not_found, listing the fields, and
/// invalid_argument for a dtype without fields. `array` is the array's name in messages.
[[nodiscard]] FieldPlace find_field(const DType& dtype, std::string_view name, std::string_view array);

/// A view of the field in existing elements, with the strides of the structures. Moves no data.
[[nodiscard]] ArrayView field_view(const ArrayView& structures, std::string_view name);
[[nodiscard]] MutableArrayView field_view(const MutableArrayView& structures, std::string_view name);

/// Presents a field of an array as an array. Files and chunks hold whole structures, so a read reads the whole
/// structures of its region, but nothing else, in slices that need little memory.
[[nodiscard]] std::unique_ptr<ArraySource> field_source(std::unique_ptr<ArraySource> array, std::string_view name);

}  // namespace tessera
