#include "parking.h"

#include <new>
#include <utility>

namespace tessera::serve {

bool Parking::park(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    jobs_.push_back(std::move(job));
    return true;
}

void Parking::wake(std::size_t most) {
    const std::lock_guard lock(mutex_);
    for (; most > 0 && !jobs_.empty(); --most) {
        try {
            if (!workers_.add(jobs_.front(), Urgency::bulk)) return;  // the queue is full: later
        } catch (const std::bad_alloc&) {
            return;
        }
        jobs_.pop_front();
    }
}

void Parking::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (auto& job : jobs_) {
        if (!workers_.add(job, Urgency::bulk)) job();
    }
    jobs_.clear();
}

}  // namespace tessera::serve
