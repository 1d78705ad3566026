// The digest of an OCFL inventory, which lies beside it. Private to the store module.
#pragma once

#include <string>
#include <string_view>

#include <tessera/place.h>

namespace tessera {

/// Why the sidecar in a folder of an object does not say that its inventory has this digest; empty if it does.
[[nodiscard]] std::string sidecar_problem(const PlaceView& object, std::string_view folder, std::string_view algorithm,
                                          std::string_view digest);

}  // namespace tessera
