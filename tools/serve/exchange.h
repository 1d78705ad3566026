// One request and its response, from the first line until the last byte. Free of the HTTP library's types.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "access.h"
#include "http.h"
#include "ranges.h"

namespace tessera::serve {

using Clock = std::chrono::steady_clock;

enum class Stage : std::uint8_t { reading, working, answered, sending };

/// Thread rule: the network thread and a worker use it by turns; `mutex` guards what the watch looks at too.
class Exchange {
public:
    // The network thread's.
    RawRequest raw;
    bool headers_known = false;
    bool head = false;
    HttpRequest request;

    /// Ends the work.
    std::stop_source stop;
    /// Bytes of the body that were more than could be held, when the request was tried before. A worker's.
    std::uint64_t expected_size = 0;

    void set_stage(Stage stage);
    [[nodiscard]] Stage stage() const;
    [[nodiscard]] Clock::time_point since() const;  ///< the beginning of the stage

    /// The whole answer, and what is sent of it. A small part of a source is read at once. Called by a worker.
    void answer(HttpResponse response);
    /// In stage answered, by the network thread. The body has moved away.
    [[nodiscard]] const HttpResponse& response() const { return response_; }
    [[nodiscard]] std::uint64_t size_to_send() const { return part_.size; }

    enum class Copied : std::uint8_t { some, later, failed };
    /// Copies bytes of what is sent, from `position` on. `later`: they have to be read first, by read_ahead().
    [[nodiscard]] Copied copy(std::uint64_t position, MutableByteSpan out, std::size_t& copied);
    /// Reads the next block of a source, in a worker.
    void read_ahead();

    /// Gives up the response and frees its memory; copy() fails from then on.
    void abandon();
    /// Bytes of the response that are held in memory, and how long nothing of it was taken. 0 if none is held.
    struct Held {
        std::uint64_t bytes = 0;
        Clock::duration stalled{};
        std::uint64_t sent = 0;
    };
    [[nodiscard]] Held held() const;

private:
    static constexpr std::uint64_t block_size = 1U << 20U;

    mutable std::mutex mutex_;
    Stage stage_ = Stage::reading;
    Clock::time_point since_ = Clock::now();
    HttpResponse response_;
    SentPart part_;
    bool failed_ = false;
    Buffer block_;                ///< of a source
    std::uint64_t block_at_ = 0;  ///< its place in the part
    std::uint64_t wanted_ = 0;    ///< where the next block begins
    std::uint64_t sent_ = 0;
    Clock::time_point progress_ = Clock::now();
};

}  // namespace tessera::serve
