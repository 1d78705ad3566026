// HttpClient: many HTTP requests at once over libcurl's multi interface, with retries, by one thread of its own.
// Private to the store module. Facts: libcurl 7.88's documentation; RFC 9110 (ranges, conditions, Retry-After).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/buffer.h>
#include <tessera/key_value_store.h>

namespace tessera {

/// Bytes [first, first + length) of a value, or its last `length` bytes.
struct HttpRange {
    std::uint64_t first = 0;
    std::uint64_t length = 0;
    bool suffix = false;
};

class HttpCache;
struct HttpResponse;

/// Keeps what answers tell about times. Thread rule: every member may be called from any thread.
class TimesOfAnswers {
public:
    void note(const std::string& name, const HttpResponse& response);
    [[nodiscard]] SeenTimes seen() const;

private:
    mutable std::mutex mutex_;
    SeenTimes seen_;
};

struct HttpRequest {
    std::string method = "GET";  ///< GET, HEAD, PUT, POST or DELETE
    std::string url;
    std::string name;  ///< for messages: the URL without secrets
    std::optional<HttpRange> range = std::nullopt;
    std::string if_match = {};         ///< an ETag that the value must still have; empty: any
    std::uint64_t limit = UINT64_MAX;  ///< bytes of the body; more is an error, and not read
    bool gives_up = false;             ///< more is no error: the answer has no body, and a `total` above the limit
    /// Bytes of the body that are counted already, by who asks. What is beyond counts against its account.
    std::uint64_t held = 0;
    /// More header lines, made anew for every try, because signatures hold the time. Called in the client's thread.
    std::function<std::vector<std::string>(const HttpRequest&)> headers = nullptr;
    /// Called by wait() with an answer of 301, 307, 400, 401 or 403: whether to send the request again, which happens
    /// twice at most, with another URL or other `headers`. May send requests itself. Throws what ends the request.
    std::function<bool(HttpRequest&, const HttpResponse&)> renew = nullptr;
    bool follow = true;                            ///< redirections, which get none of `headers` on another host
    std::shared_ptr<const Buffer> body = nullptr;  ///< of a PUT or POST
    /// Not to be carried out twice: where it may have been, HttpResponse::unsure says so, instead of another try.
    bool once = false;
    /// If not 0: one try alone, without a proxy, within this time.
    std::chrono::milliseconds patience{0};
    std::shared_ptr<TimesOfAnswers> times = nullptr;  ///< of values that are read; may be null
    /// Called with a line for each answer; may be null.
    std::function<void(std::string_view line)> log = nullptr;

    // ---- for a cache on the disk (http_cache.h)
    std::shared_ptr<HttpCache> cache = nullptr;  ///< for requests that change values, too
    std::string cache_key = {};                  ///< the value's name in it, unless that is the URL
    bool cached = false;                         ///< a GET whose answer may come from it
    bool always_asks = false;                    ///< not without asking the server
    bool stamp = false;                          ///< only the size and the ETag of the answer are wanted
    bool authorised = false;                     ///< it has a signature, a query or a header that not everybody has
    std::string if_none_match = {};              ///< set by the client, to validate an entry
};

struct HttpResponse {
    int status = 0;
    std::map<std::string, std::string, std::less<>> headers;  ///< by names in lower case
    Buffer body;
    bool fetched = false;     ///< the body came over the network, and
    bool counted = false;     ///< counts against the account of who asked
    std::uint64_t first = 0;  ///< of the value: where the body begins
    std::uint64_t total = 0;  ///< of the value: its size
    /// For a request that is sent once: it may have been carried out, or more than once. With status 0 no answer came.
    bool unsure = false;
    std::string trouble;  ///< with status 0: why
    [[nodiscard]] std::string_view header(std::string_view name) const;
    [[nodiscard]] std::string_view text() const { return {reinterpret_cast<const char*>(body.data()), body.size()}; }
    [[nodiscard]] std::string_view etag() const { return header("etag"); }
};

/// A request under way. Destroying it abandons the request.
class HttpTransfer;
struct AbandonTransfer {
    void operator()(HttpTransfer* transfer) const noexcept;
};
using HttpTicket = std::unique_ptr<HttpTransfer, AbandonTransfer>;

struct HttpCounts {
    std::uint64_t requests = 0;  ///< tries, as a server sees them
    std::uint64_t bytes = 0;     ///< of bodies
};

/// Thread rule: every member may be called from any thread. After a fork the child begins with connections of its own.
class HttpClient {
public:
    /// The one of this process.
    static HttpClient& shared();

    /// Begins a request; it may wait until others are done (at most `most_in_flight` run at once).
    [[nodiscard]] HttpTicket start(HttpRequest request);
    /// Waits for the answer, of any status but those that are tried again. A GET's body is just the range that was
    /// asked for, or all of the value. Throws io if there is no whole answer after all tries, corrupt for an answer to
    /// another question, cancelled when a StopScope of this thread is asked to stop.
    [[nodiscard]] HttpResponse wait(HttpTicket ticket);
    [[nodiscard]] HttpResponse send(HttpRequest request) { return wait(start(std::move(request))); }

    /// Takes the memory of a body that was read, for the next.
    void reuse(HttpResponse response);

    /// How many bytes come from a URL's host in the time of one more request, by the answers that came from there;
    /// without any, by what is usual.
    [[nodiscard]] std::uint64_t worth_a_request(const std::string& url) const;

    [[nodiscard]] HttpCounts counts() const;

    static constexpr int most_in_flight = 256;

    HttpClient(const HttpClient&) = delete;
    HttpClient& operator=(const HttpClient&) = delete;

private:
    HttpClient();
    ~HttpClient() = default;
    friend class HttpTransfer;
    class Loop;
    struct Process;
    std::shared_ptr<Loop> loop_;
};

}  // namespace tessera
