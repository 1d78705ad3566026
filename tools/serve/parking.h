// Requests that wait for memory.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <mutex>

#include "workers.h"

namespace tessera::serve {

/// Jobs that are tried again once memory was freed. Thread rule: any thread.
class Parking {
public:
    explicit Parking(Workers& workers) : workers_(workers) {}

    /// Keeps a job; false once it is closed.
    [[nodiscard]] bool park(std::function<void()> job);
    /// Gives the workers up to `most` jobs, the longest waiting ones first.
    void wake(std::size_t most);
    /// Gives the workers all jobs, and takes no more.
    void close();

private:
    Workers& workers_;
    std::mutex mutex_;
    std::list<std::function<void()>> jobs_;
    bool closed_ = false;
};

}  // namespace tessera::serve
