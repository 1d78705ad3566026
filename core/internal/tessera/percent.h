// Percent-encoding (RFC 3986).
#pragma once

#include <string>
#include <string_view>

namespace tessera {

/// Each byte other than letters, digits and "-._~" as %XX; '/' too unless `slashes` stay.
[[nodiscard]] std::string percent_encoded(std::string_view text, bool slashes = false);

/// The bytes that a text with %XX stands for. A '%' without two hexadecimal digits stays, and sets `*broken`.
[[nodiscard]] std::string percent_decoded(std::string_view text, bool* broken = nullptr);

}  // namespace tessera
