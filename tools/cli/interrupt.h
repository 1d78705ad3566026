// Ctrl-C and SIGTERM as a request to stop.
#pragma once

#include <signal.h>

#include <atomic>
#include <stop_token>
#include <thread>

namespace tessera::cli {

/// While it lives, the first SIGINT or SIGTERM requests a stop, so that the work can clean up; a second one ends the
/// program at once. Create it before any other thread, so that these inherit the blocked signals. Only one may exist at
/// a time.
class Interrupt {
public:
    explicit Interrupt(std::stop_source stop);
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

private:
    void wait();

    std::stop_source source_;
    std::atomic<bool> over_ = false;
    sigset_t previous_;
    std::thread waiter_;
};

}  // namespace tessera::cli
