#include "target.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::serve {

namespace {

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

std::optional<std::string> decoded(std::string_view text, bool plus_is_space) {
    std::string plain;
    plain.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '+' && plus_is_space) {
            plain += ' ';
        } else if (text[i] != '%') {
            plain += text[i];
        } else {
            const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
            const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
            if (high < 0 || low < 0) return std::nullopt;
            plain += static_cast<char>(high * 16 + low);
            i += 2;
        }
    }
    return plain;
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
        auto name = decoded(pair.substr(0, equals), true);
        auto value = decoded(pair.substr(std::min(equals + 1, pair.size())), true);
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
        auto part = decoded(path.substr(0, end), false);
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

std::string percent_encoded(std::string_view text) {
    std::string encoded;
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                           c == '.' || c == '_' || c == '~';
        if (plain) {
            encoded += c;
        } else {
            encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
        }
    }
    return encoded;
}

}  // namespace tessera::serve
