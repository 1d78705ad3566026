// Parallel work, and requests to stop it: the only code that touches threads. Runs on oneTBB; no thread starts before
// the first use.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string_view>

namespace tessera {

/// Receives progress from any worker thread, possibly concurrently: implementations use their own locks or atomics.
///
/// The bytes are those of elements, decoded, as they lie in memory. Two kinds of work count stored bytes instead: the
/// decoding of verify(), and seals. A single read or write of an array reports nothing.
class Progress {
public:
    virtual ~Progress() = default;
    /// `bytes` more of the work's total are done.
    virtual void advance(std::int64_t bytes) = 0;
    /// Called before the first advance of a piece of work, when its total is known.
    virtual void start(std::int64_t total_bytes, std::string_view what) = 0;
};

/// How an operation runs: passed down by argument, never global.
struct IoOptions {
    int threads = 0;               ///< at most one per core; 0 uses all cores; 1 runs in the calling thread
    std::stop_token stop = {};     ///< ask for a stop: the operation throws Error(cancelled) between jobs
    Progress* progress = nullptr;  ///< not owned; outlives the operation
    /// Bytes that an operation on blocks (copy, append, verify) may hold at once; 0: 256 MiB. It is used for planning:
    /// how large blocks are, and how many threads work. A MemoryScope (memory_account.h) is the limit that holds for
    /// everything; see there.
    std::uint64_t max_memory = 0;
};

/// The number of threads for IoOptions::threads: at least 1, at most the number of cores.
[[nodiscard]] int thread_count(const IoOptions& options);

/// Calls job(i) once for each i in [0, count), from up to thread_count(options) threads, in no order. After the first
/// exception no more jobs begin. It is rethrown here once the running jobs have ended. A requested stop does the same
/// with Error(cancelled). Nested calls share the same threads. The threads use the memory account of the caller.
void parallel_for(std::int64_t count, const IoOptions& options, const std::function<void(std::int64_t)>& job);

/// The same, for jobs that may take too much memory to run beside others. A job that throws Error(budget) runs again
/// alone, from its beginning. Fewer jobs then run at once.
void parallel_in_memory(std::int64_t count, const IoOptions& options, const std::function<void(std::int64_t)>& job);

/// As parallel_in_memory(), for jobs that mostly wait for a server: from up to `waiters` threads, also if these are
/// more than thread_count(options).
void parallel_waiting(std::int64_t count, const IoOptions& options, int waiters,
                      const std::function<void(std::int64_t)>& job);

// StopScope: a request to stop that also ends waits for locks, and loops over bytes and folders.
//
//     std::stop_source stop;
//     const StopScope scope(stop.get_token());
//     array.attributes().set("units", "m");  // Error(cancelled) if stop.request_stop() is called while it waits
//
// Like a memory account, the request belongs to the thread and is not an argument, so that no wait can forget it.
// `parallel_for` passes its caller's requests to its threads. Operations that take IoOptions make a scope of their
// `stop`.

/// Scopes of a thread nest: a request in any of them ends its waits. Destroy it in the thread that made it, the inner
/// one first.
class StopScope {
public:
    /// `poll` is asked, too, every few milliseconds of a wait, in the waiting thread: for requests that come by other
    /// ways.
    explicit StopScope(std::stop_token stop, bool (*poll)() = nullptr);
    ~StopScope();
    StopScope(const StopScope&) = delete;
    StopScope& operator=(const StopScope&) = delete;

    /// Whether this scope or one around it is asked to stop.
    [[nodiscard]] bool stop_requested() const;

private:
    std::stop_token stop_;
    bool (*poll_)();
    const StopScope* outer_;
};

/// Whether a scope of this thread is asked to stop.
[[nodiscard]] bool stop_requested();

/// Throws Error(cancelled) if a scope of this thread is asked to stop. Loops that get no IoOptions call it once a
/// piece.
void require_not_stopped();

/// While it lives, require_not_stopped() does nothing in this thread: for what has to be finished once it is begun.
class FinishScope {
public:
    FinishScope();
    ~FinishScope();
    FinishScope(const FinishScope&) = delete;
    FinishScope& operator=(const FinishScope&) = delete;
};

}  // namespace tessera
