// One thread runs all transfers of the process. It starts few at once, twice as many with each round that goes well,
// and half as many when a server asks for less (429, 503), so that a new host sees few connections at first.
//
// libcurl 7.88: HTTP/2 by prior knowledge fails on connections that are used again, so only TLS negotiates it. A body
// that ends with its connection and states no length looks whole to libcurl; here it is an error.
#include "http_client.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <tessera/byte_io.h>
#include <tessera/error_text.h>
#include <tessera/stop.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "http_cache.h"
#include "remote_activity.h"

namespace tessera {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int most_tries = 10;
constexpr int most_tries_to_connect = 3;
constexpr int most_redirects = 5;
constexpr milliseconds most_time{180'000};
constexpr milliseconds first_delay{100};
constexpr milliseconds longest_delay{20'000};
constexpr long connect_seconds = 10;
constexpr long stall_seconds = 60;
constexpr std::size_t longest_error_body = std::size_t{64} << 10;
/// A server that ignores ranges sends the whole value; so much of it is taken.
constexpr std::uint64_t most_unasked = std::uint64_t{64} << 20;

std::string lower(std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
    return result;
}

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    const std::size_t end = text.find_last_not_of(" \t\r\n") + 1;
    return text.substr(begin, std::max(end, begin) - begin);
}

std::optional<std::uint64_t> number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// "bytes 0-9/100"; for 416 "bytes */100", where first and last are not set.
struct ContentRange {
    std::optional<std::uint64_t> first;
    std::optional<std::uint64_t> last;
    std::optional<std::uint64_t> total;
};

ContentRange content_range(std::string_view text) {
    ContentRange range;
    if (!text.starts_with("bytes ")) return range;
    text.remove_prefix(6);
    const std::size_t slash = std::min(text.find('/'), text.size());
    const std::size_t dash = text.find('-');
    if (dash != std::string_view::npos && dash < slash) {
        range.first = number(text.substr(0, dash));
        range.last = number(text.substr(dash + 1, slash - dash - 1));
    }
    if (slash < text.size()) range.total = number(text.substr(slash + 1));
    return range;
}

bool is_tried_again(int status) {
    return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

bool is_redirect(int status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// How often a failure of libcurl is tried.
int tries_after(CURLcode code) {
    switch (code) {
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_RESOLVE_PROXY:
        case CURLE_COULDNT_CONNECT:
        case CURLE_SSL_CONNECT_ERROR:
            return most_tries_to_connect;
        case CURLE_PARTIAL_FILE:
        case CURLE_OPERATION_TIMEDOUT:
        case CURLE_GOT_NOTHING:
        case CURLE_SEND_ERROR:
        case CURLE_RECV_ERROR:
        case CURLE_HTTP2:
        case CURLE_HTTP2_STREAM:
            return most_tries;
        default:
            return 1;
    }
}

std::string host_of(std::string_view url) {
    const std::size_t begin = url.find("://") + 3;
    return std::string(url.substr(0, std::min(url.find_first_of("/?", begin), url.size())));
}

std::uint64_t limit_of(const HttpRequest& request) {
    return request.range ? std::max(std::min(request.limit, most_unasked), request.range->length) : request.limit;
}

/// A few bodies that were read, whose memory serves the next: the first touch of new memory takes as long as copying
/// it.
class Spares {
public:
    /// An empty buffer, with room for `size` bytes.
    Buffer take(std::size_t size) {
        Buffer buffer;
        {
            const std::lock_guard guard(mutex_);
            const auto found = std::ranges::find_if(
                buffers_, [&](const Buffer& b) { return b.capacity() >= size && b.capacity() / 2 <= size; });
            if (found != buffers_.end()) {
                buffer = std::move(*found);
                buffers_.erase(found);
            }
        }
        buffer.reset(size);
        buffer.resize(0);
        return buffer;
    }
    void give_back(Buffer buffer) {
        const std::lock_guard guard(mutex_);
        if (buffer.capacity() < least || buffer.capacity() > most) return;
        buffers_.push_back(std::move(buffer));
        std::size_t bytes = 0;
        for (const Buffer& each : buffers_) bytes += each.capacity();
        for (; bytes > most; buffers_.erase(buffers_.begin())) bytes -= buffers_.front().capacity();
    }
    void drop() {
        const std::lock_guard guard(mutex_);
        buffers_.clear();
    }

private:
    static constexpr std::size_t least = std::size_t{64} << 10;
    static constexpr std::size_t most = std::size_t{64} << 20;
    std::mutex mutex_;
    std::vector<Buffer> buffers_;
};

/// A request and its answer so far. Belongs to the loop's thread until it is done.
struct Work {
    explicit Work(HttpRequest asked) : request(std::move(asked)), url(request.url), home(host_of(request.url)) {}

    HttpRequest request;
    std::string url;   ///< after redirections
    std::string home;  ///< scheme and host of the first URL
    HttpResponse response;
    Buffer kept;               ///< the beginning of the body, from tries that were cut
    std::string kept_version;  ///< its ETag
    int tries = 0;
    int redirects = 0;
    Clock::time_point begun = Clock::now();
    Clock::time_point not_before = begun;
    bool too_long = false;
    CURL* easy = nullptr;
    Spares* spares = nullptr;
    curl_slist* lines = nullptr;
    std::array<char, CURL_ERROR_SIZE> trouble{};
    std::size_t sent = 0;  ///< of the request's body
    /// What remains to be done with the answer, maybe slowly, in a thread for that; whether to ask again.
    std::function<bool(Work&)> after;

    std::atomic<bool> abandoned = false;
    bool done = false;  ///< with the loop's mutex
    std::exception_ptr failure;
};

std::size_t take_header(char* text, std::size_t size, std::size_t count, void* user) {
    auto& work = *static_cast<Work*>(user);
    const std::string_view line = trimmed({text, size * count});
    if (line.starts_with("HTTP/")) {
        work.response.headers.clear();
    } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
        work.response.headers[lower(line.substr(0, colon))] = trimmed(line.substr(colon + 1));
    }
    return size * count;
}

std::size_t take_body(char* bytes, std::size_t size, std::size_t count, void* user) {
    auto& work = *static_cast<Work*>(user);
    if (work.abandoned) return CURL_WRITEFUNC_ERROR;
    long status = 0;
    ::curl_easy_getinfo(work.easy, CURLINFO_RESPONSE_CODE, &status);
    const std::size_t more = size * count;
    Buffer& body = work.response.body;
    if (status != 200 && status != 206) {
        const std::size_t taken = std::min(more, longest_error_body - std::min(longest_error_body, body.size()));
        body.append({reinterpret_cast<const std::byte*>(bytes), taken});
        return more;
    }
    if (body.size() + work.kept.size() + more > limit_of(work.request)) {
        work.too_long = true;
        return CURL_WRITEFUNC_ERROR;
    }
    try {
        if (body.empty()) {
            curl_off_t stated = 0;
            ::curl_easy_getinfo(work.easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &stated);
            const std::uint64_t most = std::min(limit_of(work.request), most_unasked);
            work.response.fetched = true;
            body = work.spares->take(std::min(most, static_cast<std::uint64_t>(std::max<curl_off_t>(stated, 0))));
        }
        body.append({reinterpret_cast<const std::byte*>(bytes), more});
    } catch (...) {
        work.failure = std::current_exception();
        return CURL_WRITEFUNC_ERROR;
    }
    return more;
}

std::size_t give_body(char* out, std::size_t size, std::size_t count, void* user) {
    auto& work = *static_cast<Work*>(user);
    if (work.abandoned) return CURL_READFUNC_ABORT;
    const std::size_t more = std::min(size * count, work.request.body->size() - work.sent);
    if (more > 0) std::memcpy(out, work.request.body->data() + work.sent, more);
    work.sent += more;
    return more;
}

/// libcurl sends a body again, unasked, if a connection that was used before dies without an answer.
int rewind_body(void* user, curl_off_t offset, int /*origin*/) {
    auto& work = *static_cast<Work*>(user);
    work.sent = static_cast<std::size_t>(offset);
    work.response.unsure = true;
    return CURL_SEEKFUNC_OK;
}

bool is_reading(const HttpRequest& request) {
    return request.method == "GET" || request.method == "HEAD";
}

/// Whether the request has certainly not reached the server.
bool is_before_sending(CURLcode code) {
    return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_COULDNT_CONNECT ||
           code == CURLE_SSL_CONNECT_ERROR;
}

}  // namespace

std::string_view HttpResponse::header(std::string_view name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

// ---- the thread

class HttpClient::Loop {
public:
    Loop() : multi_(::curl_multi_init()) {
        ::curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, long{most_in_flight});
        ::curl_multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
        // It serves until the process ends; nothing of it is ever destroyed.
        std::thread([this] { run(); }).detach();
    }

    void add(std::shared_ptr<Work> work) {
        {
            const std::lock_guard guard(mutex_);
            arrived_.push_back(std::move(work));
        }
        ::curl_multi_wakeup(multi_);
    }

    void abandon(Work& work) {
        work.abandoned = true;
        ::curl_multi_wakeup(multi_);
    }

    void wait_for(Work& work) {
        std::unique_lock guard(mutex_);
        while (!work.done) {
            // By the system's clock: GCC 12's ThreadSanitizer does not see waits by the steady one.
            changed_.wait_until(guard, std::chrono::system_clock::now() + milliseconds(50));
            if (work.done) break;
            guard.unlock();
            require_not_stopped();
            guard.lock();
        }
    }

    void reuse(Buffer body) { spares_.give_back(std::move(body)); }

    [[nodiscard]] HttpCounts counts() const { return {requests_.load(), bytes_.load()}; }
    [[nodiscard]] RemoteActivity activity() {
        constexpr std::chrono::seconds patience{3};
        RemoteActivity result{.requests = requests_, .bytes = bytes_};
        const std::lock_guard guard(mutex_);
        if (oldest_ != nullptr && Clock::now() - last_answer_ > patience) result.waits_for = oldest_->request.name;
        return result;
    }

private:
    using Shared = std::shared_ptr<Work>;

    [[noreturn]] void run() {
        for (;;) {
            take_arrived();
            drop_abandoned();
            start_waiting();
            int running = 0;
            ::curl_multi_perform(multi_, &running);
            for (int left = 0; const CURLMsg* message = ::curl_multi_info_read(multi_, &left);) {
                if (message->msg == CURLMSG_DONE) end_try(message->easy_handle, message->data.result);
            }
            note_oldest();
            if (running_.empty() && waiting_.empty()) spares_.drop();
            ::curl_multi_poll(multi_, nullptr, 0, static_cast<int>(time_to_sleep().count()), nullptr);
        }
    }

    /// For people who wait.
    void note_oldest() {
        const Shared oldest = !running_.empty() ? running_.front() : waiting_.empty() ? nullptr : waiting_.front();
        const std::lock_guard guard(mutex_);
        if (oldest_ == oldest) return;
        oldest_ = oldest;
        last_answer_ = Clock::now();
    }

    void take_arrived() {
        const std::lock_guard guard(mutex_);
        for (Shared& work : arrived_) waiting_.push_back(std::move(work));
        arrived_.clear();
    }

    void drop_abandoned() {
        std::erase_if(waiting_, [](const Shared& work) { return work->abandoned.load(); });
        std::erase_if(running_, [&](const Shared& work) {
            if (!work->abandoned) return false;
            close(*work);
            return true;
        });
    }

    [[nodiscard]] milliseconds time_to_sleep() const {
        milliseconds time{60'000};
        if (running_.size() >= window()) return time;
        const auto now = Clock::now();
        for (const Shared& work : waiting_) {
            time = std::min(time, std::chrono::duration_cast<milliseconds>(work->not_before - now) + milliseconds(1));
        }
        return std::max(time, milliseconds(0));
    }

    [[nodiscard]] std::size_t window() const { return static_cast<std::size_t>(window_); }

    void start_waiting() {
        const auto now = Clock::now();
        for (auto at = waiting_.begin(); at != waiting_.end() && running_.size() < window();) {
            if ((*at)->not_before > now) {
                ++at;
                continue;
            }
            Shared work = std::move(*at);
            at = waiting_.erase(at);
            begin_try(work);
        }
    }

    void begin_try(const Shared& shared) {
        Work& work = *shared;
        ++work.tries;
        work.response = {};
        work.too_long = false;
        work.easy = ::curl_easy_init();
        work.spares = &spares_;
        try {
            set_options(work);
        } catch (...) {
            work.failure = std::current_exception();
            close(work);
            finish(shared);
            return;
        }
        ++requests_;
        ::curl_multi_add_handle(multi_, work.easy);
        running_.push_back(shared);
    }

    static void set_options(Work& work) {
        const HttpRequest& request = work.request;
        const auto set = [&](CURLoption option, auto value) { ::curl_easy_setopt(work.easy, option, value); };
        set(CURLOPT_URL, work.url.c_str());
        set(CURLOPT_PATH_AS_IS, 1L);
        set(CURLOPT_NOSIGNAL, 1L);
        set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
        set(CURLOPT_PROTOCOLS_STR, "http,https");
        set(CURLOPT_CONNECTTIMEOUT, connect_seconds);
        if (request.patience.count() > 0) {
            set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.patience.count()));
            set(CURLOPT_PROXY, "");
        }
        set(CURLOPT_LOW_SPEED_LIMIT, 1L);
        set(CURLOPT_LOW_SPEED_TIME, stall_seconds);
        set(CURLOPT_BUFFERSIZE, 256L << 10);
        set(CURLOPT_ERRORBUFFER, work.trouble.data());
        set(CURLOPT_HEADERFUNCTION, take_header);
        set(CURLOPT_HEADERDATA, static_cast<void*>(&work));
        set(CURLOPT_WRITEFUNCTION, take_body);
        set(CURLOPT_WRITEDATA, static_cast<void*>(&work));
        if (work.url.starts_with("https:")) set(CURLOPT_PIPEWAIT, 1L);
        for (const char* variable : {"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
            const char* bundle = std::getenv(variable);
            if (bundle == nullptr || *bundle == '\0') continue;
            set(CURLOPT_CAINFO, bundle);
            break;
        }
        if (request.method == "HEAD") set(CURLOPT_NOBODY, 1L);
        if (request.body != nullptr) {
            work.sent = 0;
            set(CURLOPT_UPLOAD, 1L);
            set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body->size()));
            set(CURLOPT_READFUNCTION, give_body);
            set(CURLOPT_READDATA, static_cast<void*>(&work));
            set(CURLOPT_SEEKFUNCTION, rewind_body);
            set(CURLOPT_SEEKDATA, static_cast<void*>(&work));
            set(CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
        }
        if (!is_reading(request)) set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
        const auto line = [&](const std::string& text) { work.lines = ::curl_slist_append(work.lines, text.c_str()); };
        line("User-Agent: tessera");
        if (request.body != nullptr) line("Expect:");
        if (const std::string range = range_line(work); !range.empty()) line("Range: " + range);
        const std::string& version = work.kept.empty() ? request.if_match : work.kept_version;
        if (!version.empty()) line("If-Match: " + version);
        if (!request.if_none_match.empty() && work.kept.empty()) line("If-None-Match: " + request.if_none_match);
        if (request.headers && host_of(work.url) == work.home) {
            for (const std::string& text : request.headers(request)) line(text);
        }
        set(CURLOPT_HTTPHEADER, work.lines);
    }

    /// "GET s3://bucket/a/c/0 bytes=0-99: 206, 100 bytes in 12 ms"
    static void tell(const Work& work, CURLcode code) {
        curl_off_t microseconds = 0;
        ::curl_easy_getinfo(work.easy, CURLINFO_TOTAL_TIME_T, &microseconds);
        const std::string range = range_line(work);
        const std::size_t size = work.request.body == nullptr ? work.response.body.size() : work.request.body->size();
        work.request.log(fmt::format(
            "{} {}{}{}: {}, {} bytes in {} ms{}", work.request.method, work.request.name, range.empty() ? "" : " ",
            range, code == CURLE_OK ? std::to_string(work.response.status) : failure_text(work, code), size,
            microseconds / 1000, work.tries > 1 ? fmt::format(", try {}", work.tries) : ""));
    }

    /// The bytes that are still lacking.
    static std::string range_line(const Work& work) {
        const std::uint64_t have = work.kept.size();
        const auto& range = work.request.range;
        if (!range) return have == 0 ? "" : fmt::format("bytes={}-", have);
        if (range->suffix) return fmt::format("bytes=-{}", range->length);
        return fmt::format("bytes={}-{}", range->first + have, range->first + range->length - 1);
    }

    void end_try(CURL* easy, CURLcode code) {
        const auto found = std::ranges::find_if(running_, [&](const Shared& work) { return work->easy == easy; });
        const Shared shared = *found;
        running_.erase(found);
        Work& work = *shared;
        long status = 0;
        ::curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        work.response.status = static_cast<int>(status);
        const char* next = nullptr;
        ::curl_easy_getinfo(easy, CURLINFO_REDIRECT_URL, &next);
        const std::string redirect = next == nullptr ? "" : next;
        curl_off_t stated = -1;
        ::curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &stated);
        long version = 0;
        ::curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
        bytes_ += work.response.body.size();
        if (work.request.log && !work.abandoned) tell(work, code);
        close(work);
        if (work.abandoned) return;
        try {
            if (work.failure) std::rethrow_exception(std::exchange(work.failure, nullptr));
            const bool framed = stated >= 0 || version >= CURL_HTTP_VERSION_2_0 ||
                                lower(work.response.header("transfer-encoding")).ends_with("chunked");
            if (judge(work, code, framed, redirect)) {
                finish(shared);
            } else {
                waiting_.push_back(shared);
            }
        } catch (...) {
            work.failure = std::current_exception();
            finish(shared);
        }
    }

    /// Whether the answer is there; false to try again. Throws what ends the request.
    bool judge(Work& work, CURLcode code, bool framed, const std::string& redirect) {
        const HttpRequest& request = work.request;
        const int status = work.response.status;
        if (work.too_long && request.gives_up) {
            work.response.body = {};
            work.response.total = limit_of(request) + 1;
            return true;
        }
        if (work.too_long) {
            throw corrupt("{}: larger than {} bytes{}", request.name, limit_of(request),
                          status == 200 && request.range ? ", and its server ignores ranges" : "");
        }
        if (request.once && !is_before_sending(code) && (code != CURLE_OK || is_tried_again(status))) {
            if (status == 429 || status == 503) ask_for_less();
            work.response.unsure = true;
            if (code == CURLE_OK) return true;
            work.response.status = 0;
            work.response.trouble = failure_text(work, code);
            return true;
        }
        if (code != CURLE_OK) {
            const bool has_body = status == 200 || status == 206;
            if (has_body) keep_what_came(work);
            return later(work, tries_after(code), failure_text(work, code), false);
        }
        if (is_tried_again(status)) {
            return later(work, most_tries, fmt::format("the server answers {}", status),
                         status == 429 || status == 503);
        }
        if (request.follow && is_redirect(status)) return redirected(work, redirect);
        window_ = std::min<double>(most_in_flight, window_ + (slow_start_ ? 1 : 1 / window_));
        if (!is_reading(request)) return true;
        if (request.method == "HEAD") {
            work.response.total = number(work.response.header("content-length")).value_or(0);
            return true;
        }
        if (status == 412 && !work.kept.empty()) {  // another version: from the beginning
            work.kept = {};
            work.kept_version.clear();
            return later(work, most_tries, "the value is replaced again and again", false);
        }
        if (status == 416) {
            const ContentRange range = content_range(work.response.header("content-range"));
            work.response.total = range.total.value_or(0);
            work.response.body = {};
            return true;
        }
        if (status != 200 && status != 206) return true;
        if (!framed) {
            throw corrupt("{}: the server's answer does not state how long it is, so that it may be cut", request.name);
        }
        if (status == 206) {
            check_part(work);
        } else {
            cut_whole(work);
        }
        return true;
    }

    /// Remembers the bytes of an answer that broke off, if the rest of them can be asked for.
    static void keep_what_came(Work& work) {
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

    static void check_part(Work& work) {
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
            throw corrupt("{}: asked for {}, the server answers \"{}\" with {} bytes", work.request.name,
                          range_line(work), response.header("content-range"), response.body.size());
        }
        if (have > 0) {
            work.kept.append(response.body);
            response.body = std::move(work.kept);
            work.kept = {};
        }
        response.first = *first - have;
        response.total = *total;
    }

    /// The server ignored the range: the body is the whole value.
    static void cut_whole(Work& work) {
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

    bool redirected(Work& work, const std::string& to) {
        const std::string& name = work.request.name;
        if (++work.redirects > most_redirects) throw unsupported("{}: more than {} redirections", name, most_redirects);
        const bool safe = to.starts_with("https://") || (to.starts_with("http://") && work.url.starts_with("http://"));
        if (!safe) throw unsupported("{}: a redirection to \"{}\" is not followed", name, to.substr(0, to.find('?')));
        work.url = to;
        --work.tries;
        return false;
    }

    static std::string failure_text(const Work& work, CURLcode code) {
        const std::string text = work.trouble[0] != '\0' ? work.trouble.data() : ::curl_easy_strerror(code);
        return text;
    }

    void ask_for_less() {
        slow_start_ = false;
        window_ = std::max(1.0, window_ / 2);
    }

    bool later(Work& work, int tries, const std::string& why, bool too_many) {
        if (too_many) ask_for_less();
        const auto now = Clock::now();
        if (work.request.patience.count() > 0) tries = 1;
        if (work.tries >= tries || now - work.begun > most_time) {
            throw Error(ErrorCode::io, fmt::format("{}: {}{}", work.request.name, why,
                                                   work.tries > 1 ? fmt::format(" (tried {} times)", work.tries) : ""));
        }
        // All of the delay is drawn by lot, so that clients that failed together do not come back together.
        const auto most = std::min(longest_delay, first_delay * (1 << std::min(work.tries - 1, 10)));
        auto delay = milliseconds(std::uniform_int_distribution<std::int64_t>(0, most.count())(random_));
        if (const auto asked = number(work.response.header("retry-after"))) {
            delay = std::max(delay, milliseconds(1000 * std::min<std::uint64_t>(*asked, 60)));
        }
        work.not_before = now + delay;
        return false;
    }

    void close(Work& work) const {
        if (work.easy != nullptr) {
            ::curl_multi_remove_handle(multi_, work.easy);
            ::curl_easy_cleanup(std::exchange(work.easy, nullptr));
        }
        ::curl_slist_free_all(std::exchange(work.lines, nullptr));
    }

    void finish(const Shared& work) {
        const std::lock_guard guard(mutex_);
        if (work->after) {
            ended_.push_back(work);
            if (!std::exchange(runs_after_, true)) std::thread([this] { run_after(); }).detach();
            some_ended_.notify_one();
            return;
        }
        work->done = true;
        changed_.notify_all();
    }

    /// Keeps answers on the disk, so that the thread of all transfers never waits for one.
    [[noreturn]] void run_after() {
        for (;;) {
            Shared work;
            {
                std::unique_lock guard(mutex_);
                some_ended_.wait(guard, [&] { return !ended_.empty(); });
                work = std::move(ended_.front());
                ended_.pop_front();
            }
            const auto after = std::exchange(work->after, nullptr);
            if (!work->abandoned && after(*work)) {
                add(std::move(work));
            } else {
                finish(work);
            }
        }
    }

    CURLM* multi_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::condition_variable some_ended_;
    std::deque<Shared> arrived_;
    Shared oldest_;  ///< of those under way
    Clock::time_point last_answer_ = Clock::now();
    std::deque<Shared> ended_;
    Spares spares_;
    bool runs_after_ = false;  ///< the thread for what follows an answer has begun
    std::atomic<std::uint64_t> requests_ = 0;
    std::atomic<std::uint64_t> bytes_ = 0;
    // ---- the thread's own
    std::deque<Shared> waiting_;
    std::vector<Shared> running_;
    double window_ = 16;  ///< how many may run at once
    bool slow_start_ = true;
    std::minstd_rand random_{std::random_device{}()};
};

// ---- HttpClient

class HttpTransfer {
public:
    HttpTransfer(std::shared_ptr<HttpClient::Loop> loop, HttpRequest request)
        : loop_(std::move(loop)), work_(std::make_shared<Work>(std::move(request))), cache_(work_->request.cache) {
        send();
    }
    ~HttpTransfer() {
        if (state_ == State::sent) loop_->abandon(*work_);
    }
    HttpTransfer(const HttpTransfer&) = delete;
    HttpTransfer& operator=(const HttpTransfer&) = delete;

    HttpResponse take() {
        HttpResponse response = answer();
        constexpr int most = 2;
        for (int again = 0; again < most && renews(response); ++again) {
            const bool unsure = response.unsure;  // it may have been sent twice
            work_ = std::make_shared<Work>(std::move(work_->request));
            send();
            response = answer();
            response.unsure = response.unsure || unsure;
        }
        return response;
    }

private:
    enum class State : std::uint8_t {
        sent,          ///< or answered
        kept,          ///< the answer lies in the cache
        others_fetch,  ///< another thread or process is asking for the same
    };

    bool renews(const HttpResponse& response) {
        constexpr std::array<int, 5> statuses{301, 307, 400, 401, 403};
        HttpRequest& request = work_->request;
        return request.renew && std::ranges::find(statuses, response.status) != statuses.end() &&
               request.renew(request, response);
    }

    void send() {
        if (cache_ != nullptr && cache_->serves(work_->request)) {
            begin(true);
            return;
        }
        if (cache_ != nullptr && cache_->is_offline()) {
            refuse();
            return;
        }
        if (cache_ != nullptr && !is_reading(work_->request)) {
            const bool known = cache_->forget(work_->request);
            work_->after = [cache = cache_, known](Work& work) {
                (void)cache->forget(work.request);
                const bool set = !work.failure && work.response.status / 100 == 2 && !work.response.unsure;
                if (known && set && work.request.method == "PUT") cache->replace(work.request, work.response);
                return false;
            };
        }
        loop_->add(work_);
    }

    HttpResponse answer() {
        for (;;) {
            if (state_ == State::others_fetch) {
                wait_for_others();
            } else if (state_ == State::kept) {
                if (auto response = cache_->load(work_->request)) return *std::move(response);
                begin(false);  // it is damaged, or gone
            } else {
                break;
            }
        }
        loop_->wait_for(*work_);
        if (work_->failure) std::rethrow_exception(work_->failure);
        return std::move(work_->response);
    }

    /// Asks the cache, else the server. `look`: an entry may serve without validation.
    void begin(bool look) {
        HttpRequest& request = work_->request;
        std::shared_ptr<void> claim;
        for (;;) {
            const auto found = cache_->look(request, begun_);
            if (look && found && found->fresh) {
                state_ = State::kept;
                return;
            }
            if (cache_->is_offline()) return refuse();
            request.if_none_match = look && found ? found->etag : std::string();
            if (claim != nullptr || alone_) break;
            claim = cache_->claim(request);
            if (claim == nullptr) {
                state_ = State::others_fetch;
                return;
            }
        }
        state_ = State::sent;
        work_->after = [cache = cache_, claim = std::move(claim), writes = cache_->writes()](Work& work) {
            if (work.failure) return false;
            if (work.response.status != 304) {
                cache->keep(work.request, work.response, writes);
                return false;
            }
            cache->confirm(work.request);
            if (auto kept = cache->load(work.request)) {
                work.response = *std::move(kept);
                return false;
            }
            work.request.if_none_match.clear();  // it is damaged, or gone
            return true;
        };
        loop_->add(work_);
    }

    void wait_for_others() {
        constexpr std::chrono::seconds longest{30};
        const auto end = Clock::now() + longest;
        while (state_ == State::others_fetch) {
            require_not_stopped();
            std::this_thread::sleep_for(milliseconds(5));
            alone_ = Clock::now() > end;
            begin(true);
        }
    }

    void refuse() {
        state_ = State::sent;
        work_->failure = std::make_exception_ptr(Error(
            ErrorCode::io, fmt::format("{}: is not in the cache{}, and nothing is asked over the network (offline)",
                                       work_->request.name, cache_->folder().empty() ? "" : " " + cache_->folder())));
        work_->done = true;
    }

    std::shared_ptr<HttpClient::Loop> loop_;
    std::shared_ptr<Work> work_;
    std::shared_ptr<HttpCache> cache_;
    State state_ = State::sent;
    bool alone_ = false;  ///< does not wait for others
    std::int64_t begun_ = DiskCache::now();
};

void AbandonTransfer::operator()(HttpTransfer* transfer) const noexcept {
    delete transfer;
}

HttpClient::HttpClient() {
    ::curl_global_init(CURL_GLOBAL_DEFAULT);
    loop_ = std::make_shared<Loop>();
    set_activity_source([] { return shared().loop_->activity(); });
}

struct HttpClient::Process {
    explicit Process(int of) : number(of) {}
    int number;
    HttpClient client;
};

HttpClient& HttpClient::shared() {
    static std::atomic<Process*> current = nullptr;
    Process* process = current.load();
    while (process == nullptr || process->number != process_number()) {
        auto made = std::make_unique<Process>(process_number());
        if (current.compare_exchange_strong(process, made.get())) process = made.release();
    }
    return process->client;
}

HttpTicket HttpClient::start(HttpRequest request) {
    return HttpTicket(new HttpTransfer(loop_, std::move(request)));
}

HttpResponse HttpClient::wait(HttpTicket ticket) {
    return ticket->take();
}

void HttpClient::reuse(HttpResponse response) {
    if (response.fetched) loop_->reuse(std::move(response.body));
}

HttpCounts HttpClient::counts() const {
    return loop_->counts();
}

}  // namespace tessera
