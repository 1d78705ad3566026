#include <tessera/unicode.h>

namespace tessera {

void append_utf8(std::string& out, char32_t c) {
    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) c = 0xFFFD;
    const auto put = [&](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
    if (c < 0x80) {
        put(c);
    } else if (c < 0x800) {
        put(0xC0 | (c >> 6));
        put(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        put(0xE0 | (c >> 12));
        put(0x80 | ((c >> 6) & 0x3F));
        put(0x80 | (c & 0x3F));
    } else {
        put(0xF0 | (c >> 18));
        put(0x80 | ((c >> 12) & 0x3F));
        put(0x80 | ((c >> 6) & 0x3F));
        put(0x80 | (c & 0x3F));
    }
}

namespace {

/// Passes each code point to `put`. Returns false at the first byte that is not UTF-8.
template <class Put>
bool decode_utf8(std::string_view text, const Put& put) {
    for (std::size_t i = 0; i < text.size();) {
        const auto lead = static_cast<unsigned char>(text[i]);
        const std::size_t length = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
        constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
        if ((lead >= 0x80 && lead < 0xC0) || lead > 0xF4 || length > text.size() - i) return false;
        char32_t c = length == 1 ? lead : lead & (0x7Fu >> length);
        for (std::size_t k = 1; k < length; ++k) {
            const auto next = static_cast<unsigned char>(text[i + k]);
            if ((next & 0xC0) != 0x80) return false;
            c = (c << 6) | (next & 0x3F);
        }
        if (c < smallest[length] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return false;
        put(c);
        i += length;
    }
    return true;
}

}  // namespace

std::optional<std::u32string> from_utf8(std::string_view text) {
    std::u32string out;
    if (!decode_utf8(text, [&](char32_t c) { out += c; })) return std::nullopt;
    return out;
}

std::optional<std::size_t> count_utf8(std::string_view text) {
    std::size_t n = 0;
    if (!decode_utf8(text, [&](char32_t) { ++n; })) return std::nullopt;
    return n;
}

std::string latin1_to_utf8(std::string_view bytes) {
    std::string out;
    for (const char c : bytes) append_utf8(out, static_cast<unsigned char>(c));
    return out;
}

std::optional<std::string> utf8_to_latin1(std::string_view text) {
    const auto characters = from_utf8(text);
    if (!characters) return std::nullopt;
    std::string out;
    for (const char32_t c : *characters) {
        if (c > 0xFF) return std::nullopt;
        out += static_cast<char>(static_cast<unsigned char>(c));
    }
    return out;
}

}  // namespace tessera
