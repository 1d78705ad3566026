// Base64 (RFC 4648), as Python's base64 module writes and reads it. Private to the store module.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// The digits, in order.
inline constexpr std::string_view base64_alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

[[nodiscard]] std::string base64_encode(std::span<const std::byte> bytes);
/// As Python's standard_b64decode: characters that are none of base64's are passed over, and what follows the padding
/// is not read. Nothing where the padding is wrong.
[[nodiscard]] std::optional<std::vector<std::byte>> base64_decode(std::string_view text);

}  // namespace tessera
