#include "url.h"

#include <tessera/error_text.h>

#include <algorithm>

namespace tessera {

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
