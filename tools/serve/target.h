// The request line's target: path and query, decoded once.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::serve {

/// "/a/b%20c?x=1" taken apart.
struct Target {
    std::vector<std::string> segments;  ///< "a", "b c"; a '/' at the end gives an empty last one
    std::map<std::string, std::string, std::less<>> query;
};

/// nullopt for targets that can name no file, or that would mean something else if they were decoded again: a target
/// that does not begin with '/', a space, an invalid %xx, a part that is "." or "..", an empty part in the middle, and
/// NUL, '/' or '\\' within a part.
[[nodiscard]] std::optional<Target> parse_target(std::string_view target);

/// The most parameters of a query.
constexpr std::ptrdiff_t most_parameters = 500;
/// How many parameters there are.
[[nodiscard]] std::ptrdiff_t count_parameters(std::string_view target);

/// Whether a text can be the name of a header.
[[nodiscard]] bool is_token(std::string_view text);

}  // namespace tessera::serve
