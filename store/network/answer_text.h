// What an answer over HTTP is, where it is not what was asked for. Private to the store module.
#pragma once

#include <string>
#include <string_view>

#include "remote_service.h"

namespace tessera {

/// "text/html, 17 bytes": its type, as its server says or as it looks, and its size.
[[nodiscard]] std::string what_came(const HttpResponse& response);

/// Throws corrupt, with what came, for the answer to a document of a node that is a page or nothing, if the server
/// answers so for what cannot be there, too; and unsupported for a value that the server packed unasked.
void require_plain(const RemoteService& service, const HttpResponse& response, std::string_view key);

}  // namespace tessera
