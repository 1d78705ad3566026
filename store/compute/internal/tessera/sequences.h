// Arrays whose elements are sequences of numbers, of any length ("numcodecs.vlen-array"). Their elements are bytes to
// the library; people see the items.
#pragma once

#include <memory>
#include <optional>

#include <tessera/array_io.h>

namespace tessera {

/// The dtype of the items, if the elements of an array in chunks are sequences. Any thread.
[[nodiscard]] std::optional<DType> items_of(const ArraySource& array);

/// The array with each sequence as the text of a JSON list: "[1, 2, 3]". Any other array as it is.
[[nodiscard]] std::unique_ptr<ArraySource> with_sequences_as_text(std::unique_ptr<ArraySource> array);

}  // namespace tessera
