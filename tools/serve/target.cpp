#include "target.h"

#include <tessera/percent.h>

#include <algorithm>
#include <utility>

namespace tessera::serve {

namespace {

std::optional<std::string> decoded(std::string_view text) {
    bool broken = false;
    std::string plain = percent_decoded(text, &broken);
    return broken ? std::nullopt : std::optional(std::move(plain));
}

std::optional<std::string> decoded_in_query(std::string_view text) {
    std::string spaced(text);
    std::ranges::replace(spaced, '+', ' ');
    return decoded(spaced);
}

bool is_name(std::string_view part) {
    return part != "." && part != ".." && part.find('\0') == part.npos && part.find_first_of("/\\") == part.npos;
}

bool parse_query(std::string_view text, Target& target) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('&'), text.size());
        const std::string_view pair = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (pair.empty()) continue;
        const std::size_t equals = std::min(pair.find('='), pair.size());
        auto name = decoded_in_query(pair.substr(0, equals));
        auto value = decoded_in_query(pair.substr(std::min(equals + 1, pair.size())));
        if (!name || !value) return false;
        target.query.insert_or_assign(*std::move(name), *std::move(value));
    }
    return true;
}

}  // namespace

std::optional<Target> parse_target(std::string_view text) {
    if (!text.starts_with('/') || text.find(' ') != text.npos) return std::nullopt;
    const std::size_t question = std::min(text.find('?'), text.size());
    std::string_view path = text.substr(1, question - 1);
    Target target;
    if (question < text.size() && !parse_query(text.substr(question + 1), target)) return std::nullopt;
    while (true) {
        const std::size_t end = std::min(path.find('/'), path.size());
        auto part = decoded(path.substr(0, end));
        const bool last = end == path.size();
        if (!part || !is_name(*part) || (part->empty() && !last)) return std::nullopt;
        target.segments.push_back(*std::move(part));
        if (last) return target;
        path.remove_prefix(end + 1);
    }
}

std::ptrdiff_t count_parameters(std::string_view target) {
    const std::size_t question = std::min(target.find('?'), target.size());
    return question == target.size() ? 0 : std::ranges::count(target.substr(question), '&') + 1;
}

bool is_token(std::string_view text) {
    static constexpr std::string_view others = "!#$%&'*+-.^_`|~";
    return !text.empty() && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               others.find(c) != others.npos;
    });
}

}  // namespace tessera::serve
