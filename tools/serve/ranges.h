// Versions and ranges: the part of a whole answer that is sent.
#pragma once

#include <optional>
#include <string_view>

#include "http.h"

namespace tessera::serve {

/// The part of the body that is sent.
struct SentPart {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
};

/// Whether the request's If-None-Match names this version, so that 304 is the answer.
[[nodiscard]] bool is_known(const HttpRequest& request, std::string_view etag);

/// Makes 304, 206 or 416 of a whole answer of status 200 where the request's headers ask for it, and adds the headers
/// that belong to it. Returns the part of the body that is sent.
[[nodiscard]] SentPart apply_conditions(const HttpRequest& request, HttpResponse& response);

}  // namespace tessera::serve
