#include "workers.h"

#include <algorithm>
#include <utility>

namespace tessera::serve {

Workers::Workers(int threads, std::size_t longest_queue) : longest_(longest_queue) {
    const int bulk = std::max(1, threads / 2);
    const int soon = std::max(threads - 2, std::min(threads, bulk + 1));
    const int document = std::max(threads - 1, soon);
    int n = 0;
    for (const int most : {threads, document, soon, bulk}) classes_.at(static_cast<std::size_t>(n++)).most = most;
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

bool Workers::add(std::function<void()> job, Urgency urgency) {
    const std::lock_guard lock(mutex_);
    Queue& queue = classes_.at(static_cast<std::size_t>(urgency)).queue;
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

Workers::Class* Workers::next() {
    int running = 0;  // of the class and those below it
    Class* found = nullptr;
    for (auto one = classes_.rbegin(); one != classes_.rend(); ++one) {
        running += one->running;
        if (running >= one->most)
            found = nullptr;  // those below it count here, too
        else if (!one->queue.empty())
            found = &*one;
    }
    return found;
}

void Workers::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        Class* taken = nullptr;
        changed_.wait(lock, [&] {
            taken = next();
            const auto empty = [](const Class& one) { return one.queue.empty(); };
            return taken != nullptr || (closed_ && std::ranges::all_of(classes_, empty));
        });
        if (taken == nullptr) return;
        std::function<void()> job = std::move(taken->queue.front());
        taken->queue.pop_front();
        ++taken->running;
        lock.unlock();
        job();
        job = nullptr;
        lock.lock();
        --taken->running;
        changed_.notify_all();
    }
}

}  // namespace tessera::serve
