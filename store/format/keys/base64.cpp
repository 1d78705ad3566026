#include "base64.h"

#include <cstddef>
#include <cstdint>

namespace tessera {

std::string base64_encode(std::span<const std::byte> bytes) {
    std::string text;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        const std::size_t n = std::min<std::size_t>(3, bytes.size() - at);
        std::uint32_t bits = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            bits = bits << 8 | (i < n ? std::to_integer<std::uint32_t>(bytes[at + i]) : 0);
        }
        for (std::size_t i = 0; i < 4; ++i) text += i <= n ? base64_alphabet[bits >> (18 - 6 * i) & 63] : '=';
    }
    return text;
}

std::optional<std::vector<std::byte>> base64_decode(std::string_view text) {
    std::vector<std::byte> bytes;
    std::uint32_t bits = 0;
    int digits = 0;  // of the group of four that is being read
    int pads = 0;
    for (const char c : text) {
        if (c == '=') {
            if (digits >= 2 && digits + ++pads >= 4) return bytes;
            continue;
        }
        const std::size_t digit = base64_alphabet.find(c);
        if (digit == std::string_view::npos) continue;
        pads = 0;
        bits = bits << 6 | static_cast<std::uint32_t>(digit);
        // Each digit but the first completes a byte.
        if (digits > 0) bytes.push_back(static_cast<std::byte>(bits >> (6 - 2 * digits) & 0xFF));
        digits = (digits + 1) % 4;
    }
    return digits == 0 ? std::optional(bytes) : std::nullopt;
}

}  // namespace tessera
