#include "workers.h"

#include <algorithm>
#include <utility>

namespace tessera::serve {

Workers::Workers(int threads, std::size_t longest_queue)
    : longest_(longest_queue), most_bulk_(static_cast<std::size_t>(std::max(1, threads / 2))) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

bool Workers::add(std::function<void()> job, Urgency urgency) {
    const std::lock_guard lock(mutex_);
    Queue& queue = urgency == Urgency::soon ? soon_ : bulk_;
    if (closed_ || queue.size() >= longest_) return false;
    queue.push_back(std::move(job));
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

Workers::Queue* Workers::next() {
    if (!soon_.empty()) return &soon_;
    return !bulk_.empty() && bulk_running_ < most_bulk_ ? &bulk_ : nullptr;
}

void Workers::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        Queue* queue = nullptr;
        changed_.wait(lock, [&] {
            queue = next();
            return queue != nullptr || (closed_ && bulk_.empty());
        });
        if (queue == nullptr) return;
        std::function<void()> job = std::move(queue->front());
        queue->pop_front();
        const bool is_bulk = queue == &bulk_;
        bulk_running_ += is_bulk ? 1 : 0;
        lock.unlock();
        job();
        job = nullptr;
        lock.lock();
        if (!is_bulk) continue;
        --bulk_running_;
        changed_.notify_all();
    }
}

}  // namespace tessera::serve
