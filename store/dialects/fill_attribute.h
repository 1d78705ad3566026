// xarray's attribute _FillValue in Zarr v3. Private to the store module.
#pragma once

#include <tessera/dialect.h>
#include <tessera/dtype.h>
#include <tessera/value.h>

namespace tessera {

/// In v3, xarray writes the _FillValue of floats as the base64 of a double (FillValueCoder, since 2024.10), and opens
/// no array that has a number there. Everywhere else it is a number. Any other value stays as it is.
void fill_attribute_for(const Dialect& dialect, const DType& dtype, Value& attributes);
void fill_attribute_as_number(const DType& dtype, Value& attributes);

/// Where the fill marks missing elements in one of two dialects, the attribute does in the other. Zero is a mark only
/// of packed numbers, and NaN needs none. For arrays with names of dimensions, which xarray opens.
void move_missing(const ArrayMetadata& metadata, const Dialect& from, const Dialect& to, Value& attributes);

}  // namespace tessera
