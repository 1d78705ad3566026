// URLs as remote stores use them. Private to the store module.
#pragma once

#include <string>
#include <string_view>

#include <tessera/percent.h>

namespace tessera {

/// An http or https URL, taken apart. A value; parts are as a person typed them, escapes and all.
struct Url {
    std::string scheme;     ///< "https"
    std::string authority;  ///< "host:8080"
    std::string path;       ///< "/a/b", without a '/' at its end; may be empty
    std::string query;      ///< what follows '?', added to the URL of each key: signatures, tokens

    /// The URL of a key below this one, with the query.
    [[nodiscard]] std::string of_key(std::string_view key) const;
    /// Without the query, which may be a secret.
    [[nodiscard]] std::string name() const { return scheme + "://" + authority + path; }
};

/// Throws invalid_argument for what is no such URL, for a user name or password in it, and for a fragment.
[[nodiscard]] Url parse_url(std::string_view text);

}  // namespace tessera
