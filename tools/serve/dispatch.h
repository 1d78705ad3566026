// From a request to the route that answers it.
#pragma once

#include <tessera/error.h>

#include "http.h"
#include "served.h"

namespace tessera::serve {

/// Answers a request, in the memory of `served`. Errors become documents; nothing is thrown.
[[nodiscard]] HttpResponse dispatch(Served& served, const HttpRequest& request);

/// The document of an error, with the status that fits it (see Route::answer).
[[nodiscard]] HttpResponse response_for(const Served& served, const Error& error);

}  // namespace tessera::serve
