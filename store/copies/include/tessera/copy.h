// Copies of arrays: what to open, the engine (copy_array.h), and new arrays (new_array.h).
#pragma once

#include <memory>
#include <string_view>

#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/copy_array.h>
#include <tessera/locate.h>
#include <tessera/new_array.h>

namespace tessera {

/// Opens a path as a source: an array in a directory, an array file, "file.npz::member", or a field of structures in
/// any of them, "table.zarr::close". Throws not_found, naming what is at the path instead.
[[nodiscard]] std::unique_ptr<ArraySource> open_source(std::string_view path, const ArrayFileOptions& options = {});
/// The same of what was located, without asking the file system again.
[[nodiscard]] std::unique_ptr<ArraySource> open_source(const Located& at, const ArrayFileOptions& options = {});

}  // namespace tessera
