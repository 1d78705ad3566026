// Work that leaves a disk to others for most of the time.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string_view>

#include <tessera/parallel.h>

namespace tessera {

/// Passes progress on, and lets each thread that reports some wait until so many bytes were due: all threads together
/// advance by no more than `rate` bytes a second. What counts as a byte is for the work to say; verify() counts stored
/// ones. Waits end when a stop is requested: advance() then throws Error(cancelled).
class PacedProgress final : public Progress {
public:
    /// `rate` is above 0. `to` may be null, and outlives this.
    explicit PacedProgress(std::uint64_t rate, Progress* to) : rate_(static_cast<double>(rate)), to_(to) {}

    void start(std::int64_t total_bytes, std::string_view what) override {
        if (to_ != nullptr) to_->start(total_bytes, what);
    }
    void advance(std::int64_t bytes) override;

private:
    using Clock = std::chrono::steady_clock;
    double rate_;
    Progress* to_;
    std::mutex mutex_;
    Clock::time_point due_ = Clock::now();  ///< when everything is due that was reported
};

}  // namespace tessera
