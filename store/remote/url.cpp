#include "url.h"

#include <tessera/error_text.h>

#include <algorithm>
#include <cctype>

namespace tessera {

std::string percent_encoded(std::string_view text, bool slashes) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string encoded;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                           (byte >= '0' && byte <= '9') || std::string_view("-._~").find(c) != std::string_view::npos ||
                           (c == '/' && slashes);
        if (plain) {
            encoded += c;
        } else {
            encoded += {'%', digits[byte >> 4U], digits[byte & 15U]};
        }
    }
    return encoded;
}

std::string percent_decoded(std::string_view text) {
    const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
    std::string decoded;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool escape = text[i] == '%' && i + 2 < text.size() &&
                            std::isxdigit(static_cast<unsigned char>(text[i + 1])) != 0 &&
                            std::isxdigit(static_cast<unsigned char>(text[i + 2])) != 0;
        if (escape) {
            decoded += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
            i += 2;
        } else {
            decoded += text[i];
        }
    }
    return decoded;
}

std::string Url::of_key(std::string_view key) const {
    std::string url = name();
    if (!key.empty()) url += '/' + percent_encoded(key, true);
    return query.empty() ? url : url + '?' + query;
}

Url parse_url(std::string_view text) {
    const std::string_view shown = text.substr(0, text.find('?'));  // what follows may be a secret
    const std::size_t colon = text.find("://");
    Url url;
    if (colon != std::string_view::npos) url.scheme = text.substr(0, colon);
    if (url.scheme != "http" && url.scheme != "https") {
        throw invalid_argument("{}: expected http://HOST/PATH or https://HOST/PATH", shown);
    }
    text.remove_prefix(colon + 3);
    if (text.find('#') != std::string_view::npos) throw invalid_argument("{}: a '#' in a URL is written %23", shown);
    if (const std::size_t mark = text.find('?'); mark != std::string_view::npos) {
        url.query = text.substr(mark + 1);
        text = text.substr(0, mark);
    }
    const std::size_t slash = std::min(text.find('/'), text.size());
    url.authority = text.substr(0, slash);
    url.path = text.substr(slash, text.find_last_not_of('/') + 1 - std::min(slash, text.find_last_not_of('/') + 1));
    if (url.authority.empty() || url.authority.find('@') != std::string::npos) {
        throw invalid_argument("{}: expected a host after ://, without a user name or password", url.scheme + "://…");
    }
    const auto odd = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7F; };
    if (std::ranges::any_of(url.authority + url.path + url.query, odd)) {
        throw invalid_argument("{}: blanks and control characters in a URL are written %XX", shown);
    }
    return url;
}

}  // namespace tessera
