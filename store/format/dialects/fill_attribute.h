// xarray's attribute _FillValue in Zarr v3. Private to the store module.
#pragma once

#include <optional>

#include <tessera/dialect.h>
#include <tessera/dtype.h>
#include <tessera/value.h>

namespace tessera {

/// In v3, xarray writes the _FillValue of floats as the base64 of a double (FillValueCoder, since 2024.10), and opens
/// no array that has a number there. Everywhere else it is a number. Any other value stays as it is.
void fill_attribute_for(const Dialect& dialect, const DType& dtype, Value& attributes);
void fill_attribute_as_number(const DType& dtype, Value& attributes);

/// The fill, where it marks missing elements: in v2. Zero does only in packed numbers, because it is the default.
[[nodiscard]] std::optional<Value> missing_by_fill(const ArrayMetadata& metadata, const Dialect& dialect,
                                                   const Value& attributes);

/// NaN needs no mark, and v2's attributes would have it as a bare NaN, which is no JSON.
void erase_nan_mark(Value& attributes);

/// Where the fill marks missing elements in one of two dialects, the attribute does in the other. It stays beside the
/// fill, which marks nothing in images. NaN needs none. For arrays with names of dimensions, which xarray opens.
void move_missing(const ArrayMetadata& metadata, const Dialect& from, const Dialect& to, Value& attributes);

}  // namespace tessera
