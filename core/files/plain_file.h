// Array files that are a header, packed elements, and perhaps trailing bytes: .npy and .ra. Private.
#pragma once

#include <memory>
#include <string_view>

#include <tessera/array_io.h>
#include <tessera/byte_io.h>

#include "plain_array.h"

namespace tessera {

/// The elements of `file` in the given layout, which the caller has checked against the file's size. The source has the
/// layout's name.
[[nodiscard]] std::unique_ptr<ArraySource> plain_source(std::shared_ptr<const ByteSource> file, PlainLayout layout,
                                                        Value attributes = Value::object());

/// A new file: `header`, then elements of this dtype and shape, then `trailing`. Regions come in any order if the sink
/// is random-access, else in memory order. Elements never written are zero.
[[nodiscard]] std::unique_ptr<ArraySink> plain_sink(std::unique_ptr<ByteSink> sink, std::string_view header,
                                                    const DType& dtype, const Shape& shape, Order order,
                                                    ByteSpan trailing = {});

/// The elements of one array in a new file of several, which lie where the layout says. The caller writes the rest of
/// `file` and finishes it; it must outlive the result.
[[nodiscard]] std::unique_ptr<ArraySink> part_sink(ByteSink& file, PlainLayout layout);

}  // namespace tessera
