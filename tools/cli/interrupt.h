// Ctrl-C and SIGTERM as a request to stop.
#pragma once

#include <signal.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <stop_token>
#include <thread>

namespace tessera::cli {

/// While it lives, the first SIGINT or SIGTERM requests a stop, so that the work can clean up; a second one ends the
/// program at once. Create it before any other thread, so that these inherit the blocked signals. Only one may exist at
/// a time.
class Interrupt {
public:
    /// With `grace`, the first SIGTERM or SIGUSR1 only sets is_preempted(). The stop is requested by the next one, or
    /// after that time.
    explicit Interrupt(std::stop_source stop, std::optional<std::chrono::milliseconds> grace = std::nullopt);
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    [[nodiscard]] bool is_preempted() const { return preempted_; }

private:
    void wait();
    [[nodiscard]] sigset_t signals() const;

    std::stop_source source_;
    std::optional<std::chrono::milliseconds> grace_;
    std::atomic<bool> preempted_ = false;
    std::atomic<bool> over_ = false;
    sigset_t previous_;
    std::thread waiter_;
};

}  // namespace tessera::cli
