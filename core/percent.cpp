#include <tessera/percent.h>

#include <charconv>

namespace tessera {

namespace {

bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~").find(c) != std::string_view::npos;
}

}  // namespace

std::string percent_encoded(std::string_view text, bool slashes) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string encoded;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (is_plain(c) || (c == '/' && slashes)) {
            encoded += c;
        } else {
            encoded += {'%', digits[byte >> 4U], digits[byte & 15U]};
        }
    }
    return encoded;
}

std::string percent_decoded(std::string_view text, bool* broken) {
    std::string decoded;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::string_view digits = text.substr(i).substr(1, 2);
        unsigned byte = 0;
        if (text[i] != '%') {
            decoded += text[i];
        } else if (std::from_chars(digits.begin(), digits.end(), byte, 16).ptr == digits.begin() + 2) {
            decoded += static_cast<char>(byte);
            i += 2;
        } else {
            decoded += '%';
            if (broken != nullptr) *broken = true;
        }
    }
    return decoded;
}

}  // namespace tessera
