#include "http_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace tessera {

namespace {

constexpr std::chrono::milliseconds longest_absence{60'000};
constexpr std::size_t longest_absent_body = 4'096;
/// What later readers want to know of an answer.
constexpr std::array<std::string_view, 3> kept_lines{"etag", "last-modified", "content-type"};

std::string url_of(const HttpRequest& request) {
    return request.cache_key.empty() ? request.url : request.cache_key;
}
std::string head_key(const HttpRequest& request) {
    return DiskCache::key_of(url_of(request) + "\nhead");
}
bool is_part(const HttpRequest& request) {
    return request.range && !request.range->suffix && !request.if_match.empty();
}
std::string part_key(const HttpRequest& request) {
    return DiskCache::key_of(fmt::format("{}\n{}+{}", url_of(request), request.range->first, request.range->length));
}

bool is_strong(std::string_view etag) {
    return etag.size() > 2 && etag.front() == '"';
}

std::optional<std::uint64_t> number_in(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// The text of an entry: the name of the value, what of it is there, the status, where it begins, the size of the
/// value, and lines of the answer's header.
std::string text_of_entry(const HttpRequest& request, const HttpResponse& response) {
    const std::uint64_t size = response.body.size();
    std::string what = "absent";
    if (response.status < 300) {
        what = response.first == 0 && size == response.total
                   ? "whole"
                   : fmt::format("bytes {}-{}", response.first, response.first + std::max<std::uint64_t>(size, 1) - 1);
    }
    std::string text =
        fmt::format("{}\n{}\n{}\n{}\n{}\n", request.name, what, response.status, response.first, response.total);
    for (const std::string_view name : kept_lines) {
        if (const std::string_view value = response.header(name); !value.empty())
            text += fmt::format("{}:{}\n", name, value);
    }
    return text;
}

std::optional<HttpResponse> response_of(std::string_view text) {
    std::array<std::string_view, 5> lines;
    const auto line = [&] {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view result = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        return result;
    };
    for (std::string_view& each : lines) each = line();
    const auto status = number_in(lines[2]);
    const auto first = number_in(lines[3]);
    const auto total = number_in(lines[4]);
    if (!status || !first || !total) return std::nullopt;
    HttpResponse response;
    response.status = static_cast<int>(*status);
    response.first = *first;
    response.total = *total;
    while (!text.empty()) {
        const std::string_view header = line();
        const std::size_t colon = std::min(header.find(':'), header.size());
        if (colon < header.size()) response.headers.emplace(header.substr(0, colon), header.substr(colon + 1));
    }
    return response;
}

/// Where the bytes that a request asks for lie in those that are there; nullopt if they are not all there.
std::optional<std::pair<std::uint64_t, std::uint64_t>> bytes_for(const HttpRequest& request, std::uint64_t first,
                                                                 std::uint64_t size, std::uint64_t total) {
    std::uint64_t begin = 0;
    std::uint64_t end = total;
    if (request.range && request.range->suffix) {
        begin = total - std::min(total, request.range->length);
    } else if (request.range) {
        if (request.range->first >= total) return std::nullopt;
        begin = request.range->first;
        end = std::min(total - begin, request.range->length) + begin;
    }
    if (begin < first || end > first + size) return std::nullopt;
    return std::pair(begin, end - begin);
}

bool says(std::string_view control, std::string_view word) {
    return control.find(word) != std::string_view::npos;
}

}  // namespace

struct HttpCache::Entry {
    std::string key;
    HttpResponse response;  ///< with the body as it is kept
    std::int64_t checked = 0;
    std::uint64_t begin = 0;  ///< the bytes that were asked for
    std::uint64_t length = 0;
};

std::shared_ptr<HttpCache> HttpCache::of(const RemoteOptions& options) {
    if (options.cache.empty() && !options.offline) return nullptr;
    auto disk = options.cache.empty() ? nullptr : DiskCache::open(options.cache, options.cache_bytes);
    return std::make_shared<HttpCache>(std::move(disk), options.cache_age, options.offline);
}

bool HttpCache::serves(const HttpRequest& request) const {
    return disk_ != nullptr && request.method == "GET" && request.cached &&
           (!request.authorised || !disk_->is_shared());
}

std::optional<HttpCache::Entry> HttpCache::entry(const HttpRequest& request, bool with_body) const {
    const auto read = [&](std::string key, bool is_head) -> std::optional<Entry> {
        // First without the body, which may be more than is wanted.
        auto found = disk_->find(key, false);
        if (!found) return std::nullopt;
        auto response = response_of(found->text);
        if (!response) return std::nullopt;
        Entry entry{.key = std::move(key), .response = *std::move(response), .checked = found->checked};
        const HttpResponse& there = entry.response;
        if (!request.if_match.empty() && there.etag() != request.if_match) return std::nullopt;
        const bool absent = there.status >= 300;
        if (!absent && !(request.stamp && is_head)) {
            const auto bytes = bytes_for(request, there.first, found->size, there.total);
            if (!bytes || bytes->second > request.limit) return std::nullopt;
            entry.begin = bytes->first;
            entry.length = bytes->second;
        }
        if (!with_body) return entry;
        found = disk_->find(entry.key, true);
        if (!found) return std::nullopt;
        response = response_of(found->text);
        // Another process may have replaced it.
        if (!response || response->etag() != there.etag() || response->first != there.first) return std::nullopt;
        entry.response.body = std::move(found->body);
        return entry;
    };
    if (auto head = read(head_key(request), true)) return head;
    return is_part(request) ? read(part_key(request), false) : std::nullopt;
}

std::optional<HttpCache::Found> HttpCache::look(const HttpRequest& request, std::int64_t begun) const {
    const auto found = entry(request, false);
    if (!found) return std::nullopt;
    const bool absent = found->response.status >= 300;
    const std::chrono::milliseconds age = absent ? std::min(age_, longest_absence) : age_;
    const std::int64_t oldest = DiskCache::now() - std::chrono::nanoseconds(age).count();
    const bool pinned = !request.if_match.empty();  // the version is known; its bytes do not change
    const bool recent =
        found->checked >= begun || (!request.always_asks && found->checked >= oldest && age.count() > 0);
    return Found{.etag = is_strong(found->response.etag()) ? std::string(found->response.etag()) : "",
                 .fresh = offline_ || pinned || recent};
}

std::optional<HttpResponse> HttpCache::load(const HttpRequest& request) const {
    auto found = entry(request, true);
    if (!found) return std::nullopt;
    HttpResponse response = std::move(found->response);
    if (response.status >= 300) return response;
    if (request.stamp) {
        response.body = {};
        return response;
    }
    const std::uint64_t skipped = found->begin - response.first;
    if (skipped != 0 || response.body.size() != found->length) {
        response.body = Buffer(response.body.span().subspan(skipped, found->length));
    }
    response.first = found->begin;
    response.status = request.range ? 206 : 200;
    return response;
}

std::shared_ptr<void> HttpCache::claim(const HttpRequest& request) const {
    return disk_->claim(is_part(request) ? part_key(request) : head_key(request));
}

void HttpCache::keep(const HttpRequest& request, const HttpResponse& response, std::uint64_t writes) const {
    const bool absent = response.status == 404 || response.status == 410;
    const std::string_view control = response.header("cache-control");
    if (!absent && response.status != 200 && response.status != 206) return;
    if (absent && response.body.size() > longest_absent_body) return;
    if (says(control, "no-store") || (says(control, "private") && disk_->is_shared())) return;
    const bool part = is_part(request);
    if (part && (absent || response.etag() != request.if_match)) return;
    const bool tail = !request.range || request.range->suffix;
    if (!part && !absent && (!tail || request.stamp || response.first + response.body.size() != response.total)) return;
    // A value that this process wrote meanwhile may be another one.
    const std::int64_t checked = writes == disk_->writes ? DiskCache::now() : 0;
    disk_->store(part ? part_key(request) : head_key(request), text_of_entry(request, response), response.body,
                 checked);
}

void HttpCache::confirm(const HttpRequest& request) const {
    if (const auto found = entry(request, false)) disk_->set_checked(found->key, DiskCache::now());
}

bool HttpCache::forget(const HttpRequest& request) const {
    if (disk_ == nullptr) return false;
    ++disk_->writes;
    HttpRequest value;
    value.url = request.url.substr(0, request.url.find('?'));
    value.cache_key = request.cache_key;
    return disk_->drop(head_key(value));
}

void HttpCache::replace(const HttpRequest& request, const HttpResponse& response) const {
    if (request.body == nullptr || !is_strong(response.etag()) || (request.authorised && disk_->is_shared())) return;
    HttpResponse value;
    value.status = 200;
    value.headers.emplace("etag", response.etag());
    value.total = request.body->size();
    const std::string text = text_of_entry(request, [&] {
        value.body = Buffer(request.body->span());
        return std::move(value);
    }());
    disk_->store(head_key(request), text, *request.body, DiskCache::now());
}

}  // namespace tessera
