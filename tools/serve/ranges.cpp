#include "ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

namespace tessera::serve {

namespace {

std::string_view header(const HttpRequest& request, std::string_view name) {
    const auto found = request.headers.find(name);
    return found == request.headers.end() ? std::string_view() : std::string_view(found->second);
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

/// Digits as a number; the largest one if there are too many. nullopt for anything but digits.
std::optional<std::uint64_t> number(std::string_view text) {
    if (text.empty() || !std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) return {};
    std::uint64_t value = 0;
    const auto error = std::from_chars(text.data(), text.data() + text.size(), value).ec;
    return error == std::errc() ? value : UINT64_MAX;
}

struct Range {
    bool satisfiable = false;
    SentPart part;
};

/// One range of bytes; nullopt for none, several, or anything that is not valid: these are answered whole.
std::optional<Range> parse_range(std::string_view text, std::uint64_t size) {
    constexpr std::string_view unit = "bytes=";
    text = trimmed(text);
    const auto same = [](char a, char b) { return (a | 0x20) == b || a == b; };
    if (text.size() < unit.size() || !std::ranges::equal(text.substr(0, unit.size()), unit, same)) return {};
    text = trimmed(text.substr(unit.size()));
    const std::size_t dash = text.find('-');
    if (dash == text.npos) return {};
    const std::string_view before = trimmed(text.substr(0, dash));
    const std::string_view after = trimmed(text.substr(dash + 1));
    const auto first = number(before);
    const auto last = number(after);
    if ((!first && !before.empty()) || (!last && !after.empty()) || (!first && !last)) return {};
    if (!first) {
        const std::uint64_t length = std::min(*last, size);
        return Range{length > 0, {size - length, length}};
    }
    if (last && *last < *first) return {};
    if (*first >= size) return Range{};
    const std::uint64_t end = last && *last < size ? *last + 1 : size;
    return Range{true, {*first, end - *first}};
}

}  // namespace

bool is_known(const HttpRequest& request, std::string_view etag) {
    std::string_view known = header(request, "if-none-match");
    if (etag.empty() || known.empty()) return false;
    if (trimmed(known) == "*") return true;
    const std::string quoted = fmt::format("\"{}\"", etag);
    while (!known.empty()) {
        const std::size_t comma = std::min(known.find(','), known.size());
        std::string_view one = trimmed(known.substr(0, comma));
        if (one.starts_with("W/")) one.remove_prefix(2);
        if (one == quoted) return true;
        known.remove_prefix(std::min(comma + 1, known.size()));
    }
    return false;
}

SentPart apply_conditions(const HttpRequest& request, HttpResponse& response) {
    const std::uint64_t size = response.body.size();
    const SentPart whole{0, size};
    if (!response.cache_control.empty()) response.headers["Cache-Control"] = response.cache_control;
    if (response.status != 200) return whole;
    const std::string tag = response.etag.empty() ? "" : fmt::format("\"{}\"", response.etag);
    if (!tag.empty()) response.headers["ETag"] = tag;
    if (is_known(request, response.etag)) {
        response.status = 304;
        response.body = {};
        return {};
    }
    response.headers["Accept-Ranges"] = "bytes";
    const std::string_view condition = trimmed(header(request, "if-range"));
    if (!condition.empty() && (tag.empty() || condition != tag)) return whole;
    const auto range = parse_range(header(request, "range"), size);
    if (!range) return whole;
    if (!range->satisfiable) {
        response.status = 416;
        response.headers["Content-Range"] = fmt::format("bytes */{}", size);
        response.body = {};
        response.type = "";
        return {};
    }
    response.status = 206;
    response.headers["Content-Range"] =
        fmt::format("bytes {}-{}/{}", range->part.offset, range->part.offset + range->part.size - 1, size);
    return range->part;
}

}  // namespace tessera::serve
