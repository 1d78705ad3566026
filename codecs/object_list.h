// Elements of Python's object arrays as a nested list: what json2, json and msgpack2 hold.
#pragma once

#include <tessera/shape.h>
#include <tessera/value.h>
#include <tessera/view.h>

namespace tessera {

/// Puts the texts of a list, nested as the shape is, into `out`. After them the list has NumPy's dtype and, with
/// `ends_with_shape`, the shape. An element that is no text becomes no_text_mark and its JSON. Throws corrupt.
void take_objects(const Value& list, const Shape& shape, bool ends_with_shape, const JsonStyle& style,
                  const MutableArrayView& out);

}  // namespace tessera
