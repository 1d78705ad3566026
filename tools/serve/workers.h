// Threads that answer requests, with queues of bounded length.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tessera::serve {

/// `soon` is for what a person is looking at: it waits neither behind bulk jobs nor for the threads that these occupy.
enum class Urgency : std::uint8_t { soon, bulk };

/// Thread rule: any thread calls add(); one calls close().
class Workers {
public:
    Workers(int threads, std::size_t longest_queue);
    ~Workers() { close(); }
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    /// Has a thread call `job`, which must not throw. False if the queue is full or closed.
    [[nodiscard]] bool add(std::function<void()> job, Urgency urgency);
    /// Does all jobs that were added, and ends the threads.
    void close();

private:
    using Queue = std::deque<std::function<void()>>;

    void work();
    /// The queue to take a job from; null if there is nothing to do now.
    [[nodiscard]] Queue* next();

    std::size_t longest_;
    std::size_t most_bulk_;
    std::mutex mutex_;
    std::condition_variable changed_;
    Queue soon_;
    Queue bulk_;
    std::size_t bulk_running_ = 0;
    bool closed_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace tessera::serve
