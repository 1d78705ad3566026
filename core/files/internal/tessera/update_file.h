// Elements of an array file changed in place.
#pragma once

#include <memory>

#include <tessera/array_file.h>
#include <tessera/array_io.h>

namespace tessera {

/// An existing .npy or uncompressed .ra as a sink that changes elements in the file, in any order. Nothing of the old
/// elements is kept: if a write fails, those before it stay. If `durable`, finish() waits for the disk. Throws
/// unsupported for other formats and for Python objects, not_found, io and corrupt. Thread rule: one thread.
[[nodiscard]] std::unique_ptr<ArraySink> update_array_file(const ArrayPath& path, bool durable = true);

}  // namespace tessera
