// Numbers of bytes and spans of time as people type them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace tessera {

/// "512M": a whole number of bytes above 0. K, M, G, T and KiB … are units of 1024, kB, MB … of 1000. Throws
/// invalid_argument, beginning with `what`, for other texts.
[[nodiscard]] std::uint64_t parse_bytes(std::string_view what, std::string_view text);
/// "0", "90" and "90s" (seconds), "500ms", "15m", "6h" or "7d". Throws invalid_argument, beginning with `what`, for
/// other texts.
[[nodiscard]] std::chrono::milliseconds parse_duration(std::string_view what, std::string_view text);

}  // namespace tessera
