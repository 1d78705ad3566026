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

/// Thread rule: the network thread and a worker use it in turn; `mutex` guards the members that the watch reads, too.
class Exchange {
public:
    // The network thread's.
    RawRequest raw;
    bool headers_known = false;
    bool head = false;
    HttpRequest request;

    /// Ends the work.
    std::stop_source stop;
    /// The size of the body, if an earlier try found that it does not fit into memory. Used by the worker alone.
    std::uint64_t expected_size = 0;

    void set_stage(Stage stage);
    [[nodiscard]] Stage stage() const;
    [[nodiscard]] Clock::time_point since() const;  ///< the beginning of the stage

    /// Takes the whole answer, and determines the part of it that is sent. A small part of a source is read at once.
    /// Called by a worker.
    void answer(HttpResponse response);
    /// Called by the network thread in stage answered. The body has been moved out.
    [[nodiscard]] const HttpResponse& response() const { return response_; }
    [[nodiscard]] std::uint64_t size_to_send() const { return part_.size; }

    enum class Copied : std::uint8_t { some, later, failed };
    /// Copies bytes of the part that is sent, from `position` on. `later`: read_ahead() has to read them first.
    [[nodiscard]] Copied copy(std::uint64_t position, MutableByteSpan out, std::size_t& copied);
    /// Reads the next block of a source, in a worker.
    void read_ahead();

    /// Gives up the response and frees its memory; copy() fails from then on.
    void abandon();
    [[nodiscard]] bool abandoned() const;
    /// Bytes of the response that are held in memory (0 if none), and how long the client has taken none of them.
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
