// A progress bar on stderr, only if that is a terminal.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include <tessera/parallel.h>

namespace tessera::cli {

/// Thread rule: as Progress; `clear` from any thread.
class ProgressBar final : public Progress {
public:
    /// Whether stderr is a terminal.
    [[nodiscard]] static bool wanted();

    ProgressBar();
    ~ProgressBar() override;
    void start(std::int64_t total_bytes, std::string_view what) override;
    void advance(std::int64_t bytes) override;
    void clear();

private:
    void draw();
    void watch(const std::stop_token& ended);

    using Clock = std::chrono::steady_clock;
    std::mutex drawing_;
    std::string what_;
    std::int64_t total_ = 0;
    Clock::time_point begun_;
    bool drawn_ = false;
    std::atomic<std::int64_t> done_ = 0;
    std::atomic<std::int64_t> next_draw_ = 0;  // milliseconds after begun_
    std::condition_variable_any ends_;
    std::jthread watcher_;  ///< says what is waited for, even if nothing advances
};

}  // namespace tessera::cli
