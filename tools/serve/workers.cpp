#include "workers.h"

#include <utility>

namespace tessera::serve {

Workers::Workers(int threads, std::size_t longest_queue) : longest_(longest_queue) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

bool Workers::add(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    if (closed_ || jobs_.size() >= longest_) return false;
    jobs_.push_back(std::move(job));
    changed_.notify_one();
    return true;
}

void Workers::close() {
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        changed_.notify_all();
    }
    for (std::thread& thread : threads_) {
        if (thread.joinable()) thread.join();
    }
}

void Workers::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return closed_ || !jobs_.empty(); });
        if (jobs_.empty()) return;
        std::function<void()> job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        job();
        job = nullptr;
        lock.lock();
    }
}

}  // namespace tessera::serve
