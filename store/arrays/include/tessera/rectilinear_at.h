// Arrays of Zarr v3 whose chunks differ in length: the grid "rectilinear".
#pragma once

#include <memory>

#include <tessera/array_io.h>
#include <tessera/locate.h>

namespace tessera {

/// What was located, if it is an array whose chunks differ in length, of which Located::array() says that it is
/// unsupported: it is read and copied only. Else nullptr. Throws corrupt, and unsupported for a codec that Tessera
/// lacks.
[[nodiscard]] std::unique_ptr<ArraySource> rectilinear_at(const Located& at);

}  // namespace tessera
