#include <tessera/fork.h>

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace tessera {

namespace {

// Constant-initialised and never destroyed, so that it exists whenever a thread forks.
constinit std::array<std::mutex, static_cast<std::size_t>(LibraryMutex::count)> mutexes;
constinit std::array<std::atomic<void (*)()>, 8> children{};

void before() {
    for (std::mutex& mutex : mutexes) mutex.lock();
}

void in_parent() {
    for (std::mutex& mutex : mutexes) mutex.unlock();
}

void in_child() {
    in_parent();
    for (const auto& child : children) {
        if (void (*const function)() = child) function();
    }
}

[[maybe_unused]] const int registered = ::pthread_atfork(before, in_parent, in_child);

}  // namespace

std::mutex& library_mutex(LibraryMutex which) {
    return mutexes[static_cast<std::size_t>(which)];
}

void after_fork_in_child(void (*child)()) {
    for (auto& place : children) {
        void (*expected)() = nullptr;
        if (place.compare_exchange_strong(expected, child)) return;
    }
}

}  // namespace tessera
