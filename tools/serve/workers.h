// Threads that answer requests, with a queue of bounded length.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tessera::serve {

/// Thread rule: any thread calls add(); one calls close().
class Workers {
public:
    Workers(int threads, std::size_t longest_queue);
    ~Workers() { close(); }
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    /// Has a thread call `job`, which must not throw. False if the queue is full or closed.
    [[nodiscard]] bool add(std::function<void()> job);
    /// Does all jobs that were added, and ends the threads.
    void close();

private:
    void work();

    std::size_t longest_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> jobs_;
    bool closed_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace tessera::serve
