#include <tessera/parallel.h>

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include <tessera/caller.h>
#include <tessera/error.h>
#include <tessera/fork.h>
#include <tessera/memory_account.h>

namespace tessera {

namespace {

// Set while this thread runs a job: a parallel_for inside a job runs its jobs one after another in this thread.
// Splitting it further would gain nothing. A wait inside a job that holds a lock could pick up another job that wants
// it.
thread_local bool inside_job = false;

// oneTBB's workers do not survive in a forked child, and oneTBB starts no others. So children of a process that had
// workers do not use oneTBB.
std::atomic<bool> workers_started = false;
std::atomic<bool> workers_lost = false;

/// Notes the first start of oneTBB's workers.
void note_workers() {
    if (workers_started.exchange(true)) return;
    after_fork_in_child([] { workers_lost = true; });
}

/// The arena of this thread's calls. One arena per call would make memory grow with every call: oneTBB frees an arena
/// only when a worker finds it empty, which may be after the next one is made. One arena for all threads would not do
/// either: a thread that waits in it could get another thread's job, and wait for the locks of that job.
oneapi::tbb::task_arena& own_arena(int threads) {
    // In a forked child there is no oneTBB left to take it back.
    struct Release {
        void operator()(oneapi::tbb::task_arena* arena) const {
            if (!workers_lost) delete arena;
        }
    };
    thread_local std::unique_ptr<oneapi::tbb::task_arena, Release> arena;
    if (!arena || arena->max_concurrency() != threads) arena.reset(new oneapi::tbb::task_arena(threads));
    return *arena;
}

/// Calls body() in this thread and in threads of its own.
void run_in_own_threads(int threads, const std::function<void()>& body) {
    std::vector<std::jthread> others;
    try {
        while (std::ssize(others) + 1 < threads) others.emplace_back(body);
    } catch (const std::system_error&) {
        // The work also gets done with fewer threads.
    }
    body();
}

struct Shared {
    std::atomic<std::int64_t> next{0};
    std::atomic<bool> stopped{false};
    // oneTBB's own synchronisation is invisible to ThreadSanitizer. These two make the same order visible to it: jobs
    // see what the caller did before, and the caller sees what the jobs did.
    std::atomic<int> begun{0};
    std::atomic<int> ended{0};
    std::mutex mutex;
    std::exception_ptr first;
    std::shared_ptr<MemoryAccount> account = MemoryAccount::current();  // the caller's
    const Caller& caller = Caller::current();
};

void work(Shared& shared, std::int64_t count, const IoOptions& options, const std::function<void(std::int64_t)>& job) {
    (void)shared.begun.load(std::memory_order_acquire);
    inside_job = true;
    const MemoryScope scope(shared.account);
    const JobScope jobs(shared.caller);
    const StopScope stop(options.stop);
    try {
        while (!shared.stopped.load(std::memory_order_relaxed)) {
            const std::int64_t i = shared.next.fetch_add(1, std::memory_order_relaxed);
            if (i >= count) break;
            if (options.stop.stop_requested()) throw cancelled("stopped on request");
            job(i);
        }
    } catch (...) {
        const std::lock_guard lock(shared.mutex);
        if (!shared.first) shared.first = std::current_exception();
        shared.stopped = true;
    }
    inside_job = false;
    shared.ended.fetch_add(1, std::memory_order_release);
}

}  // namespace

int thread_count(const IoOptions& options) {
    if (options.threads == 1) return 1;
    // oneTBB has no more workers than cores, and complains on stderr if asked for more. The cores are counted once, as
    // in oneTBB, because the C library opens a system file for it.
    static const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    return options.threads > 0 ? std::min(options.threads, cores) : cores;
}

void parallel_for(std::int64_t count, const IoOptions& options, const std::function<void(std::int64_t)>& job) {
    const int threads = count > 1 ? static_cast<int>(std::min<std::int64_t>(count, thread_count(options))) : 1;
    if (threads <= 1 || inside_job) {
        std::optional<StopScope> stop;
        if (options.stop.stop_possible()) stop.emplace(options.stop);
        for (std::int64_t i = 0; i < count; ++i) {
            if (options.stop.stop_requested()) throw cancelled("stopped on request");
            job(i);
        }
        return;
    }
    Shared shared;
    shared.begun.store(1, std::memory_order_release);
    if (workers_lost) {
        run_in_own_threads(threads, [&] { work(shared, count, options, job); });
    } else {
        note_workers();
        own_arena(thread_count(options)).execute([&] {
            oneapi::tbb::parallel_for(
                0, threads, 1, [&](int) { work(shared, count, options, job); }, oneapi::tbb::simple_partitioner());
        });
    }
    (void)shared.ended.load(std::memory_order_acquire);
    if (shared.first) std::rethrow_exception(shared.first);
}

void outside_of_jobs(const std::function<void()>& body) {
    if (!inside_job) return body();
    std::exception_ptr failed;
    const auto run = [&, account = MemoryAccount::current(), caller = &Caller::current()] {
        const MemoryScope scope(account);
        const JobScope jobs(*caller);
        try {
            body();
        } catch (...) {
            failed = std::current_exception();
        }
    };
    std::jthread thread;
    try {
        thread = std::jthread(run);
    } catch (const std::system_error&) {
        return body();  // with this thread alone
    }
    thread.join();
    if (failed) std::rethrow_exception(failed);
}

namespace {

/// Calls job(i) once for each i in [0, count) by run(threads, body), which calls body(n) in that many threads; with
/// fewer of them after a job threw Error(budget), which runs again alone.
template <class Run>
void in_rounds(std::int64_t count, const IoOptions& options, int threads, const Run& run,
               const std::function<void(std::int64_t)>& job) {
    std::atomic<std::int64_t> next{0};
    for (; next < count; threads = std::max(1, threads / 2)) {
        std::atomic<bool> ended = false;
        std::mutex mutex;
        std::vector<std::int64_t> again;
        run(threads, [&](std::int64_t) {
            for (std::int64_t n = 0; !ended && (n = next++) < count;) {
                try {
                    if (options.stop.stop_requested()) throw cancelled("stopped on request");
                    job(n);
                } catch (const Error& e) {
                    ended = true;
                    if (e.code() != ErrorCode::budget) throw;
                    const std::lock_guard lock(mutex);
                    again.push_back(n);
                } catch (...) {
                    ended = true;
                    throw;
                }
            }
        });
        for (const std::int64_t n : again) job(n);
    }
}

}  // namespace

void parallel_in_memory(std::int64_t count, const IoOptions& options, const std::function<void(std::int64_t)>& job) {
    const auto threads = static_cast<int>(std::min<std::int64_t>(count, thread_count(options)));
    if (threads <= 1 || inside_job || !MemoryAccount::current()) return parallel_for(count, options, job);
    const auto run = [&](int some, const std::function<void(std::int64_t)>& body) {
        IoOptions round = options;
        round.threads = some;
        parallel_for(some, round, body);
    };
    in_rounds(count, options, threads, run, job);
}

void parallel_waiting(std::int64_t count, const IoOptions& options, int waiters,
                      const std::function<void(std::int64_t)>& job) {
    const auto threads = static_cast<int>(std::min<std::int64_t>(count, waiters));
    if (threads <= thread_count(options) || inside_job) return parallel_in_memory(count, options, job);
    const auto run = [&](int some, const std::function<void(std::int64_t)>& body) {
        Shared shared;
        shared.begun.store(1, std::memory_order_release);
        run_in_own_threads(some, [&] { work(shared, some, options, body); });
        (void)shared.ended.load(std::memory_order_acquire);
        if (shared.first) std::rethrow_exception(shared.first);
    };
    in_rounds(count, options, threads, run, job);
}

}  // namespace tessera
