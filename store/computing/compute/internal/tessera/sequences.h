// Arrays whose elements are sequences of numbers, of any length ("numcodecs.vlen-array"). Their elements are bytes to
// the library; people see the items. And arrays of characters, which are texts to people.
#pragma once

#include <memory>
#include <optional>

#include <tessera/array_io.h>

namespace tessera {

/// The dtype of the items, if the elements of an array in chunks are sequences. Any thread.
[[nodiscard]] std::optional<DType> items_of(const ArraySource& array);

/// The array with each sequence as the text of a JSON list: "[1, 2, 3]". Any other array as it is.
[[nodiscard]] std::unique_ptr<ArraySource> with_sequences_as_text(std::unique_ptr<ArraySource> array);

/// netCDF's characters, of which the attribute `_Encoding` says how they spell texts, as these: the last dimension is
/// their length, and zeros at the end are none of them. Any other array as it is.
[[nodiscard]] std::unique_ptr<ArraySource> with_characters_as_text(std::unique_ptr<ArraySource> array);

}  // namespace tessera
