// Threads that answer requests, with queues of bounded length.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tessera::serve {

/// The most urgent first. A job waits for no less urgent one: some threads are kept free of each urgency for those
/// above it, as far as there are enough threads.
enum class Urgency : std::uint8_t {
    page,      ///< the files of the page
    document,  ///< metadata documents
    soon,      ///< what a person looks at, which may take long to compute
    bulk,      ///< chunks
};

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
    struct Class {
        Queue queue = {};
        int running = 0;
        int most = 0;  ///< threads that it and the classes below it may have
    };

    void work();
    /// The class to take a job from; null if there is nothing to do now.
    [[nodiscard]] Class* next();

    std::size_t longest_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::array<Class, 4> classes_;  ///< by urgency
    bool closed_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace tessera::serve
