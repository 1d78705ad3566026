#include "http.h"

namespace tessera::serve {

std::span<const Route> tile_routes() {
    return {};
}

}  // namespace tessera::serve
