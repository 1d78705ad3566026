// Secrets in URLs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// The pieces of a text, such as a path or a message, that may be secrets in the URLs that it holds: user names and
/// passwords before hosts, with the '@', and the queries of HTTP (signatures, tokens), with the '?'.
[[nodiscard]] std::vector<std::string_view> secrets_in(std::string_view text);
/// The text without them.
[[nodiscard]] std::string without_secrets(std::string_view text);

}  // namespace tessera
