// The conventions of OME-Zarr in a hierarchy. Private to store/checks.
#pragma once

#include <tessera/verify.h>

#include <string_view>

namespace tessera {

/// What verify() says with VerifyOptions::ome: every group with such metadata at and below the path.
[[nodiscard]] VerifyReport verify_ome(std::string_view path);

}  // namespace tessera
