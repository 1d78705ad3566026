// .npy files of Python objects: arrays of str or bytes are read and written through pickle.h. Private to the library.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <tessera/array_io.h>
#include <tessera/byte_io.h>

namespace tessera {

/// An object array of a .npy; its data begin at `offset`. Reads the pickle into memory now. If it holds strings, the
/// source's dtype is variable_text or variable_bytes. Otherwise it keeps the header's dtype, and reading throws an
/// error with the objects found. Throws budget if a region's strings, one copy per element, take more than both
/// io.max_memory (0: 256 MiB) and 16 times the size of the file: a pickle may name one long string many times.
[[nodiscard]] std::unique_ptr<ArraySource> open_object_array(std::shared_ptr<const ByteSource> file,
                                                             const ArrayInfo& header, std::uint64_t offset);

/// A new .npy of str or bytes objects. Takes each element once, in C order, in regions of whole rows; skipped elements
/// are empty. `order` is NumPy's memory order in the header, which is given as it is written.
[[nodiscard]] std::unique_ptr<ArraySink> create_object_array(std::unique_ptr<ByteSink> sink, std::string_view header,
                                                             const DType& dtype, const Shape& shape, Order order);

}  // namespace tessera
