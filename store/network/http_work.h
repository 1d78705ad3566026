// HttpWork: one request and its answer so far, as libcurl asks and answers it. Private to the store module.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/memory_account.h>

#include "http_client.h"
#include "loaded_curl.h"
#include "nearness.h"

namespace tessera {

/// A few bodies that were read and that no account counts, whose memory serves the next: the first touch of new memory
/// takes as long as copying it.
class HttpSpares {
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
    /// `limit` is that of the caller's account.
    void give_back(Buffer buffer, std::uint64_t limit) {
        const std::uint64_t most = std::min(most_bytes, limit / 8);
        if (buffer.capacity() < least || buffer.capacity() > most) return;
        const std::lock_guard guard(mutex_);
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
    static constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;
    std::mutex mutex_;
    std::vector<Buffer> buffers_;
};

/// A request and its answer so far. Belongs to the loop's thread until it is done.
struct HttpWork {
    explicit HttpWork(HttpRequest asked);

    HttpRequest request;
    std::string url;   ///< after redirections
    std::string home;  ///< scheme and host of the first URL
    HttpResponse response;
    Buffer kept;               ///< the beginning of the body, from tries that were cut
    std::string kept_version;  ///< its ETag
    int tries = 0;
    int redirects = 0;
    Nearness origin = Nearness::anywhere;  ///< of the first URL, once it leads elsewhere
    std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point not_before = begun;
    bool too_long = false;
    CURL* easy = nullptr;
    HttpSpares* spares = nullptr;
    std::shared_ptr<MemoryAccount> account = MemoryAccount::current();  ///< of who asks: counts the body
    std::size_t header_bytes = 0;
    curl_slist* lines = nullptr;
    std::array<char, CURL_ERROR_SIZE> trouble{};
    std::size_t sent = 0;  ///< of the request's body
    /// What remains to be done with the answer, maybe slowly, in a thread for that; whether to ask again.
    std::function<bool(HttpWork&)> after;

    std::atomic<bool> abandoned = false;
    bool done = false;  ///< with the loop's mutex
    std::exception_ptr failure;
};

/// "bytes 0-9/100"; for 416 "bytes */100", where first and last are not set.
struct ContentRange {
    std::optional<std::uint64_t> first;
    std::optional<std::uint64_t> last;
    std::optional<std::uint64_t> total;
};

[[nodiscard]] ContentRange content_range(std::string_view text);
[[nodiscard]] std::string lower(std::string_view text);
[[nodiscard]] std::optional<std::uint64_t> number_in_header(std::string_view text);
[[nodiscard]] bool is_reading(const HttpRequest& request);
/// How long the body of an answer may get.
[[nodiscard]] std::uint64_t limit_of(const HttpRequest& request, int status);
/// Whether an answer says where its body ends.
[[nodiscard]] bool is_framed(const HttpWork& work);

/// Scheme and host.
[[nodiscard]] std::string host_of(std::string_view url);
/// Of where the last try was sent.
[[nodiscard]] Nearness nearness_of(const HttpWork& work);
/// Throws unsupported for a redirection that leads further inside than where it comes from.
void require_not_inward(const HttpWork& work, Nearness to);
/// The server says that the value was being changed just now: S3, and Ceph.
[[nodiscard]] bool is_collision(const HttpResponse& response);
/// Prepares `work.easy` for the next try.
void set_options(HttpWork& work);
/// The bytes that are still lacking, as the header asks for them.
[[nodiscard]] std::string range_line(const HttpWork& work);
/// "GET s3://bucket/a/c/0 bytes=0-99: 206, 100 bytes in 12 ms", to the request's log.
void tell(const HttpWork& work, CURLcode code);
[[nodiscard]] std::string failure_text(const HttpWork& work, CURLcode code);

/// Remembers the bytes of an answer that broke off, if the rest of them can be asked for.
void keep_what_came(HttpWork& work);
/// Joins an answer with 206 to what came before. Throws corrupt unless it is what was asked for.
void check_part(HttpWork& work);
/// The server ignored the range: the body is the whole value.
void cut_whole(HttpWork& work);

}  // namespace tessera
