// Files of HDF5 and netCDF-4, read by libhdf5: what the functions of their row (array_file.h) do.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array_file.h>
#include <tessera/array_io.h>

namespace tessera {

[[nodiscard]] std::vector<std::string> hdf5_members(const ArrayPath& path);
[[nodiscard]] std::vector<ArrayFileMember> hdf5_listed(const ArrayPath& path);
[[nodiscard]] std::vector<ArrayFileGroup> hdf5_groups(const ArrayPath& path);
[[nodiscard]] std::vector<PackedArray> hdf5_packed(const ArrayPath& path);
[[nodiscard]] std::optional<PackedArray> hdf5_chunked(const ArrayPath& path);
[[nodiscard]] Value hdf5_describe(const ArrayPath& path);
[[nodiscard]] std::unique_ptr<ArraySource> hdf5_open(const ArrayPath& path);

}  // namespace tessera
