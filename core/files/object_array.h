// .npy files of Python objects: arrays of str or bytes are read and written through pickle.h. Private to the library.
#pragma once

#include <memory>

#include <tessera/array_io.h>
#include <tessera/byte_io.h>
#include <tessera/npy.h>

namespace tessera {

/// The file behind a header whose dtype holds objects. The pickle is read here and now, into memory. Strings: the
/// source's dtype is variable_text or variable_bytes. Anything else: the dtype stays that of the header, and reading
/// elements throws what was found. Throws budget when a region's strings, a copy for each element, take more than both
/// io.max_memory (0: 256 MiB) and 16 times what the file holds: a pickle may name one long string many times.
[[nodiscard]] std::unique_ptr<ArraySource> open_object_array(std::shared_ptr<const ByteSource> file,
                                                             const NpyHeader& header);

/// A new .npy of str or bytes objects. Takes its elements once each, in C order, regions of whole rows; those skipped
/// are empty. `order` is what the header says of NumPy's memory order.
[[nodiscard]] std::unique_ptr<ArraySink> create_object_array(std::unique_ptr<ByteSink> sink, const DType& dtype,
                                                             const Shape& shape, Order order);

}  // namespace tessera
