#include "http.h"

namespace tessera::serve {

std::span<const Route> page_routes() {
    return {};
}

}  // namespace tessera::serve
