// Arrays in files whose chunks Zarr v2 can say (HDF5), as arrays of chunks: these are copied as they are, or decoded by
// all threads. Private to the store module.
#pragma once

#include <memory>

#include <tessera/array.h>
#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/value.h>

namespace tessera {

/// Zarr v2's `.zarray` of such an array. `shape` and `chunks` are those of the whole, if it is a part of one.
[[nodiscard]] Value chunked_document(const PackedArray& array, const Shape& shape, const Shape& chunks);
/// Its `.zattrs`: what the fill value says is left out.
[[nodiscard]] Value chunked_attributes(const PackedArray& array);

/// Whether it is such an array. Its Zarr v2 is a view: a copy has the format of other data from files.
[[nodiscard]] bool is_in_file(const Array& array);

/// open_array_file(), but an array of such chunks is an Array.
[[nodiscard]] std::unique_ptr<ArraySource> open_file_source(const ArrayPath& path, const ArrayFileOptions& options);

}  // namespace tessera
