// From a request to the route that answers it.
#pragma once

#include "http.h"
#include "served.h"

namespace tessera::serve {

/// Answers a request, in the memory of `served`. Errors become documents; nothing is thrown.
[[nodiscard]] HttpResponse dispatch(Served& served, const HttpRequest& request);

}  // namespace tessera::serve
