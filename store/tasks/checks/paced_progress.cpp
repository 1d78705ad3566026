#include <tessera/paced_progress.h>

#include <algorithm>
#include <thread>

namespace tessera {

void PacedProgress::advance(std::int64_t bytes) {
    if (to_ != nullptr) to_->advance(bytes);
    Clock::time_point due;
    {
        const std::lock_guard lock(mutex_);
        // Time that nobody used is not made up for later.
        due_ = std::max(due_, Clock::now());
        // A wait of years is as good as any longer one, and fits the clock.
        constexpr double longest = 1e8;
        const std::chrono::duration<double> took(std::min(static_cast<double>(bytes) / rate_, longest));
        due_ += std::chrono::duration_cast<Clock::duration>(took);
        due = due_;
    }
    constexpr std::chrono::milliseconds piece(50);
    for (auto now = Clock::now(); now < due; now = Clock::now()) {
        require_not_stopped();
        std::this_thread::sleep_for(std::min<Clock::duration>(piece, due - now));
    }
}

}  // namespace tessera
