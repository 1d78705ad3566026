// What the jobs of parallel_for inherit from the thread that calls it, beside its memory account: requests to stop,
// options for places over the network, and the locks that it holds while it waits for them.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace tessera {

class StopScope;
class RemoteScope;  // of the module store: options for places over the network

/// A lock that a thread holds.
struct HeldLock {
    const void* table = nullptr;  ///< identifies the array
    int kind = 0;                 ///< what of it is locked; the table's own numbers
    /// Set once it is released. For locks that another thread may release; else null.
    std::shared_ptr<std::atomic<bool>> released = nullptr;
};

/// A thread, or one that runs jobs of a parallel_for. Thread rule: only the thread that it belongs to changes it, and
/// not while a parallel_for that it called runs, because jobs read it.
struct Caller {
    const StopScope* stop = nullptr;  ///< the innermost scope
    const RemoteScope* remote = nullptr;
    std::vector<HeldLock> locks;
    const Caller* outer = nullptr;  ///< the caller of the parallel_for whose jobs this one runs

    /// The innermost one of this thread.
    [[nodiscard]] static Caller& current();
    /// Whether it holds a lock, or one around it does, for which fits(lock) is true.
    template <class Fits>
    [[nodiscard]] bool holds(const Fits& fits) const;
    /// Removes the lock that was added last.
    void drop(const void* table, int kind);
};

/// For the lifetime of the scope, this thread runs jobs of `outer`.
class JobScope {
public:
    explicit JobScope(const Caller& outer);
    ~JobScope();
    JobScope(const JobScope&) = delete;
    JobScope& operator=(const JobScope&) = delete;

private:
    Caller own_;
    Caller* before_;
};

/// Calls body() so that its parallel_for use several threads also where this thread runs a job, which then waits. With
/// what jobs inherit.
void outside_of_jobs(const std::function<void()>& body);

/// Throws Error(cancelled) if this thread is asked to stop, which now waits for a lock.
void throw_if_stopped();

/// How often a wait checks for a request to stop.
constexpr auto between_stops = std::chrono::milliseconds(20);

/// The clock that these waits end by. GCC 12's ThreadSanitizer does not see a mutex that is locked by the steady one.
#ifdef __SANITIZE_THREAD__
using WaitClock = std::chrono::system_clock;
#else
using WaitClock = std::chrono::steady_clock;
#endif

/// Locks a timed mutex. Throws Error(cancelled) if this thread is asked to stop while it waits.
template <class Mutex>
void lock_or_stop(Mutex& mutex) {
    if (mutex.try_lock()) return;
    while (!mutex.try_lock_until(WaitClock::now() + between_stops)) throw_if_stopped();
}

/// The same, shared.
template <class Mutex>
void lock_shared_or_stop(Mutex& mutex) {
    if (mutex.try_lock_shared()) return;
    while (!mutex.try_lock_shared_until(WaitClock::now() + between_stops)) throw_if_stopped();
}

template <class Fits>
bool Caller::holds(const Fits& fits) const {
    for (const Caller* caller = this; caller != nullptr; caller = caller->outer) {
        for (const HeldLock& lock : caller->locks) {
            if ((!lock.released || !*lock.released) && fits(lock)) return true;
        }
    }
    return false;
}

}  // namespace tessera
