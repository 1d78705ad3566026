// N5 containers and data sets, read as Zarr v3.
#pragma once

#include <tessera/key_value_store.h>

#include <filesystem>

namespace tessera {

/// The place at `path` as a store of N5, if that is what lies there; else as it is. A folder of this machine is known
/// by its attributes.json, and one elsewhere by its name (x.n5, x.n5/sub), so that nothing is asked of a server in
/// vain.
[[nodiscard]] Place as_n5(Place place, const std::filesystem::path& path);

}  // namespace tessera
