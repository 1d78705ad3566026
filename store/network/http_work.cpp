#include "http_work.h"

#include <fmt/format.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "aws_signature.h"

namespace tessera {

namespace {

constexpr long connect_seconds = 10;
constexpr long stall_seconds = 60;
constexpr std::size_t longest_header = std::size_t{512} << 10;
constexpr std::size_t longest_error_body = std::size_t{64} << 10;
/// A server that ignores ranges sends the whole value; so much of it is taken.
constexpr std::uint64_t most_unasked = std::uint64_t{64} << 20;

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    const std::size_t end = text.find_last_not_of(" \t\r\n") + 1;
    return text.substr(begin, std::max(end, begin) - begin);
}

std::size_t take_header(char* text, std::size_t size, std::size_t count, void* user) {
    auto& work = *static_cast<HttpWork*>(user);
    work.header_bytes += size * count;
    if (work.header_bytes > longest_header) {
        work.failure = std::make_exception_ptr(corrupt("{}: the header of the server's answer has more than {}",
                                                       work.request.name, memory_text(longest_header)));
        return 0;
    }
    const std::string_view line = trimmed({text, size * count});
    if (line.starts_with("HTTP/")) {
        work.response.headers.clear();
    } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
        work.response.headers[lower(line.substr(0, colon))] = trimmed(line.substr(colon + 1));
    }
    return size * count;
}

/// Makes room for the body of an answer, as far as its length is known. Throws what is wrong with it before it comes.
void begin_body(HttpWork& work) {
    if (is_reading(work.request) && !is_framed(work)) {
        throw corrupt("{}: the server's answer does not state how long it is, so that it may be cut",
                      work.request.name);
    }
    curl_off_t stated = 0;
    curl().easy_getinfo(work.easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &stated);
    const auto length = static_cast<std::uint64_t>(std::max<curl_off_t>(stated, 0));
    work.response.fetched = true;
    if (work.account == nullptr || length <= work.request.held) {
        work.response.body = work.spares->take(length);
    } else {
        work.response.body.reset(length);
        work.response.body.resize(0);
    }
}

std::size_t take_body(char* bytes, std::size_t size, std::size_t count, void* user) {
    auto& work = *static_cast<HttpWork*>(user);
    if (work.abandoned) return CURL_WRITEFUNC_ERROR;
    long status = 0;
    curl().easy_getinfo(work.easy, CURLINFO_RESPONSE_CODE, &status);
    const std::size_t more = size * count;
    Buffer& body = work.response.body;
    if (status != 200 && status != 206) {
        const std::size_t taken = std::min(more, longest_error_body - std::min(longest_error_body, body.size()));
        body.append({reinterpret_cast<const std::byte*>(bytes), taken});
        return more;
    }
    curl_off_t stated = 0;
    curl().easy_getinfo(work.easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &stated);
    const std::uint64_t all =
        std::max<std::uint64_t>(body.size() + more, static_cast<std::uint64_t>(std::max<curl_off_t>(stated, 0)));
    if (all + work.kept.size() > limit_of(work.request, static_cast<int>(status))) {
        work.too_long = true;
        return CURL_WRITEFUNC_ERROR;
    }
    try {
        // What the caller has counted is not counted again.
        work.response.counted = work.account != nullptr && all > work.request.held;
        const MemoryScope scope(work.response.counted ? work.account : nullptr);
        if (body.empty()) begin_body(work);
        body.append({reinterpret_cast<const std::byte*>(bytes), more});
    } catch (...) {
        work.failure = std::current_exception();
        return CURL_WRITEFUNC_ERROR;
    }
    return more;
}

std::size_t give_body(char* out, std::size_t size, std::size_t count, void* user) {
    auto& work = *static_cast<HttpWork*>(user);
    if (work.abandoned) return CURL_READFUNC_ABORT;
    const std::size_t more = std::min(size * count, work.request.body->size() - work.sent);
    if (more > 0) std::memcpy(out, work.request.body->data() + work.sent, more);
    work.sent += more;
    return more;
}

/// Before a request is sent whose URL came from a server: its name may lead anywhere.
int check_address(void* user, char* address, char* /*own*/, int port, int /*own_port*/) {
    auto& work = *static_cast<HttpWork*>(user);
    try {
        require_not_inward(work, nearness_of(work.url, address, port));
        return CURL_PREREQFUNC_OK;
    } catch (...) {
        work.failure = std::current_exception();
        return CURL_PREREQFUNC_ABORT;
    }
}

/// libcurl sends a body again, unasked, if a connection that was used before dies without an answer.
int rewind_body(void* user, curl_off_t offset, int /*origin*/) {
    auto& work = *static_cast<HttpWork*>(user);
    work.sent = static_cast<std::size_t>(offset);
    work.response.unsure = true;
    return CURL_SEEKFUNC_OK;
}

}  // namespace

std::string host_of(std::string_view url) {
    const std::size_t begin = url.find("://") + 3;
    return std::string(url.substr(0, std::min(url.find_first_of("/?", begin), url.size())));
}

HttpWork::HttpWork(HttpRequest asked) : request(std::move(asked)), url(request.url), home(host_of(request.url)) {}

std::string lower(std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
    return result;
}

std::optional<std::uint64_t> number_in_header(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

ContentRange content_range(std::string_view text) {
    ContentRange range;
    if (!text.starts_with("bytes ")) return range;
    text.remove_prefix(6);
    const std::size_t slash = std::min(text.find('/'), text.size());
    const std::size_t dash = text.find('-');
    if (dash != std::string_view::npos && dash < slash) {
        range.first = number_in_header(text.substr(0, dash));
        range.last = number_in_header(text.substr(dash + 1, slash - dash - 1));
    }
    if (slash < text.size()) range.total = number_in_header(text.substr(slash + 1));
    return range;
}

bool is_reading(const HttpRequest& request) {
    return request.method == "GET" || request.method == "HEAD";
}

std::uint64_t limit_of(const HttpRequest& request, int status) {
    if (!request.range) return request.limit;
    constexpr int partial = 206;
    if (status == partial) return request.range->length;
    return std::max(std::min(request.limit, most_unasked), request.range->length);
}

bool is_framed(const HttpWork& work) {
    curl_off_t stated = -1;
    curl().easy_getinfo(work.easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &stated);
    long version = 0;
    curl().easy_getinfo(work.easy, CURLINFO_HTTP_VERSION, &version);
    return stated >= 0 || version >= CURL_HTTP_VERSION_2_0 ||
           lower(work.response.header("transfer-encoding")).ends_with("chunked");
}

/// libcurl's own for each transfer, of which there are many: no account counts them.
long buffer_bytes(const HttpWork& work) {
    constexpr std::uint64_t least = std::uint64_t{16} << 10;
    constexpr std::uint64_t most = std::uint64_t{256} << 10;
    constexpr std::uint64_t share = 4'096;
    return static_cast<long>(work.account == nullptr ? most : std::clamp(work.account->limit() / share, least, most));
}

bool is_collision(const HttpResponse& response) {
    constexpr int conflict = 409;
    constexpr std::array<std::string_view, 3> codes{"ConditionalRequestConflict", "OperationAborted",
                                                    "ConcurrentModification"};
    return response.status == conflict &&
           std::ranges::count(codes, std::string_view(xml_element(response.text(), "Code"))) > 0;
}

Nearness nearness_of(const HttpWork& work) {
    const char* address = nullptr;
    long port = 0;
    curl().easy_getinfo(work.easy, CURLINFO_PRIMARY_IP, &address);
    curl().easy_getinfo(work.easy, CURLINFO_PRIMARY_PORT, &port);
    return nearness_of(work.url, address == nullptr ? "" : address, port);
}

void require_not_inward(const HttpWork& work, Nearness to) {
    if (to <= work.origin) return;
    throw unsupported("{}: a redirection to \"{}\" is not followed: it leads {}", work.request.name,
                      work.url.substr(0, work.url.find('?')),
                      to == Nearness::network   ? "from outside into a private network"
                      : to == Nearness::machine ? "from elsewhere to this machine"
                                                : "to a link-local address");
}

namespace {

template <class Argument>
void set(const HttpWork& work, CURLoption option, Argument value) {
    curl().easy_setopt(work.easy, option, value);
}

/// How the server is reached, and how long that may take.
void set_connection(HttpWork& work) {
    const HttpRequest& request = work.request;
    set(work, CURLOPT_URL, work.url.c_str());
    set(work, CURLOPT_PATH_AS_IS, 1L);
    set(work, CURLOPT_NOSIGNAL, 1L);
    set(work, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
    set(work, CURLOPT_PROTOCOLS_STR, "http,https");
    set(work, CURLOPT_CONNECTTIMEOUT, connect_seconds);
    if (request.patience.count() > 0) {
        set(work, CURLOPT_TIMEOUT_MS, static_cast<long>(request.patience.count()));
        set(work, CURLOPT_PROXY, "");
    }
    if (work.redirects > 0) {
        set(work, CURLOPT_PREREQFUNCTION, check_address);
        set(work, CURLOPT_PREREQDATA, static_cast<void*>(&work));
    }
    set(work, CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(work, CURLOPT_LOW_SPEED_TIME, stall_seconds);
    if (work.url.starts_with("https:")) set(work, CURLOPT_PIPEWAIT, 1L);
    for (const char* variable : {"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
        const char* bundle = std::getenv(variable);
        if (bundle == nullptr || *bundle == '\0') continue;
        set(work, CURLOPT_CAINFO, bundle);
        break;
    }
}

/// What takes and gives the bytes.
void set_bodies(HttpWork& work) {
    const HttpRequest& request = work.request;
    set(work, CURLOPT_BUFFERSIZE, buffer_bytes(work));
    set(work, CURLOPT_ERRORBUFFER, work.trouble.data());
    set(work, CURLOPT_HEADERFUNCTION, take_header);
    set(work, CURLOPT_HEADERDATA, static_cast<void*>(&work));
    set(work, CURLOPT_WRITEFUNCTION, take_body);
    set(work, CURLOPT_WRITEDATA, static_cast<void*>(&work));
    if (request.method == "HEAD") set(work, CURLOPT_NOBODY, 1L);
    if (request.body != nullptr) {
        work.sent = 0;
        set(work, CURLOPT_UPLOAD, 1L);
        set(work, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body->size()));
        set(work, CURLOPT_READFUNCTION, give_body);
        set(work, CURLOPT_READDATA, static_cast<void*>(&work));
        set(work, CURLOPT_SEEKFUNCTION, rewind_body);
        set(work, CURLOPT_SEEKDATA, static_cast<void*>(&work));
        set(work, CURLOPT_UPLOAD_BUFFERSIZE, buffer_bytes(work));
    }
    if (!is_reading(request)) set(work, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

void set_header(HttpWork& work) {
    const HttpRequest& request = work.request;
    const auto line = [&](const std::string& text) { work.lines = curl().slist_append(work.lines, text.c_str()); };
    line("User-Agent: tessera");
    if (request.body != nullptr) line("Expect:");
    if (const std::string range = range_line(work); !range.empty()) line("Range: " + range);
    const std::string& version = work.kept.empty() ? request.if_match : work.kept_version;
    if (!version.empty()) line("If-Match: " + version);
    if (!request.if_none_match.empty() && work.kept.empty()) line("If-None-Match: " + request.if_none_match);
    if (request.headers && host_of(work.url) == work.home) {
        for (const std::string& text : request.headers(request)) line(text);
    }
    set(work, CURLOPT_HTTPHEADER, work.lines);
}

}  // namespace

void set_options(HttpWork& work) {
    set_connection(work);
    set_bodies(work);
    set_header(work);
}

std::string range_line(const HttpWork& work) {
    const std::uint64_t have = work.kept.size();
    const auto& range = work.request.range;
    if (!range) return have == 0 ? "" : fmt::format("bytes={}-", have);
    if (range->suffix) return fmt::format("bytes=-{}", range->length);
    return fmt::format("bytes={}-{}", range->first + have, range->first + range->length - 1);
}

void tell(const HttpWork& work, CURLcode code) {
    curl_off_t microseconds = 0;
    curl().easy_getinfo(work.easy, CURLINFO_TOTAL_TIME_T, &microseconds);
    const std::string range = range_line(work);
    const std::size_t size = work.request.body == nullptr ? work.response.body.size() : work.request.body->size();
    work.request.log(fmt::format("{} {}{}{}: {}, {} bytes in {} ms{}", work.request.method, work.request.name,
                                 range.empty() ? "" : " ", range,
                                 code == CURLE_OK ? std::to_string(work.response.status) : failure_text(work, code),
                                 size, microseconds / 1000, work.tries > 1 ? fmt::format(", try {}", work.tries) : ""));
}

std::string failure_text(const HttpWork& work, CURLcode code) {
    const std::string text = work.trouble[0] != '\0' ? work.trouble.data() : curl().easy_strerror(code);
    return text;
}

void keep_what_came(HttpWork& work) {
    HttpResponse& response = work.response;
    const std::string version(response.etag());
    const bool strong = version.size() > 2 && version.front() == '"';
    const bool suffix = work.request.range && work.request.range->suffix;
    if (!strong || suffix || (response.status == 200 && work.request.range)) return;
    if (response.status == 206) {
        const std::uint64_t begin = (work.request.range ? work.request.range->first : 0) + work.kept.size();
        if (content_range(response.header("content-range")).first != begin) return;
    } else {
        work.kept = {};
    }
    work.kept.append(response.body);
    work.kept_version = version;
}

void check_part(HttpWork& work) {
    HttpResponse& response = work.response;
    const ContentRange got = content_range(response.header("content-range"));
    const auto& asked = work.request.range;
    const std::uint64_t have = work.kept.size();
    const auto total = got.total;
    std::optional<std::uint64_t> first;
    std::optional<std::uint64_t> last;
    if (total) {
        if (!asked) {
            first = have;
            last = *total - 1;
        } else if (asked->suffix) {
            first = *total - std::min(*total, asked->length);
            last = *total - 1;
        } else {
            first = asked->first + have;
            last = std::min(*total, asked->first + asked->length) - 1;
        }
    }
    if (!first || got.first != first || got.last != last || response.body.size() != *last - *first + 1) {
        throw corrupt("{}: asked for {}, the server answers \"{}\" with {} bytes", work.request.name, range_line(work),
                      response.header("content-range"), response.body.size());
    }
    if (have > 0) {
        work.kept.append(response.body);
        response.body = std::move(work.kept);
        work.kept = {};
    }
    response.first = *first - have;
    response.total = *total;
}

void cut_whole(HttpWork& work) {
    HttpResponse& response = work.response;
    response.total = response.body.size();
    const auto& asked = work.request.range;
    if (!asked) return;
    const std::uint64_t first = asked->suffix ? response.total - std::min(response.total, asked->length)
                                              : std::min(response.total, asked->first);
    const std::uint64_t length = std::min(asked->length, response.total - first);
    response.body = Buffer(response.body.span().subspan(first, length));
    response.first = first;
}

}  // namespace tessera
