#include <gtest/gtest.h>
#include <tessera/error.h>
#include <tessera/parallel.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tessera {
namespace {

TEST(ParallelFor, RunsEachJobOnce) {
    for (const int threads : {1, 2, 7}) {
        std::vector<std::atomic<int>> seen(1000);
        parallel_for(1000, {.threads = threads}, [&](std::int64_t i) { ++seen[static_cast<std::size_t>(i)]; });
        for (const auto& n : seen) EXPECT_EQ(n, 1);
    }
    parallel_for(0, {}, [](std::int64_t) { FAIL(); });
}

TEST(StopScope, EndsLoopsOfAllThreadsThatGetNoOptions) {
    std::stop_source source;
    const std::stop_token token = source.get_token();
    const StopScope scope(token);
    EXPECT_NO_THROW(require_not_stopped());
    source.request_stop();
    EXPECT_THROW(require_not_stopped(), Error);
    for (const int threads : {1, 4}) {
        std::atomic<int> ended = 0;
        parallel_for(8, {.threads = threads}, [&](std::int64_t) {
            try {
                require_not_stopped();
            } catch (const Error& e) {
                if (e.code() == ErrorCode::cancelled) ++ended;
            }
        });
        EXPECT_EQ(ended, 8) << threads;
    }
    const FinishScope finishes;
    EXPECT_NO_THROW(require_not_stopped());
}

TEST(ParallelFor, WhatJobsWroteIsSeenByTheCaller) {
    std::vector<int> out(5000);  // plain memory: ThreadSanitizer checks the order
    for (int round = 0; round < 20; ++round) {
        for (int& v : out) v = -1;
        parallel_for(5000, {.threads = 4},
                     [&](std::int64_t i) { out[static_cast<std::size_t>(i)] = static_cast<int>(i); });
        for (int i = 0; i < 5000; ++i) ASSERT_EQ(out[static_cast<std::size_t>(i)], i);
    }
}

TEST(ParallelFor, UsesSeveralThreads) {
    if (std::thread::hardware_concurrency() < 2) return;
    std::mutex mutex;
    std::set<std::thread::id> ids;
    std::atomic<int> inside{0};
    std::atomic<int> most{0};
    // A busy machine may take its time to start the second thread: the first waits for it.
    const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    parallel_for(200, {.threads = 2}, [&](std::int64_t) {
        const int now = ++inside;
        int old = most;
        while (now > old && !most.compare_exchange_weak(old, now)) {
        }
        while (most < 2 && std::chrono::steady_clock::now() < latest) std::this_thread::yield();
        --inside;
        const std::lock_guard lock(mutex);
        ids.insert(std::this_thread::get_id());
    });
    EXPECT_EQ(ids.size(), 2U);
    EXPECT_EQ(most, 2);
}

TEST(ParallelFor, RethrowsTheFirstErrorAndBeginsNoMore) {
    std::atomic<int> ran{0};
    try {
        parallel_for(100'000, {.threads = 2}, [&](std::int64_t i) {
            ++ran;
            if (i == 10) throw corrupt("job 10");
        });
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::corrupt);
        EXPECT_STREQ(e.what(), "job 10");
    }
    EXPECT_LT(ran, 100'000);
    // The pool is as good as before.
    std::atomic<int> after{0};
    parallel_for(100, {.threads = 2}, [&](std::int64_t) { ++after; });
    EXPECT_EQ(after, 100);
    EXPECT_THROW(parallel_for(5, {.threads = 2}, [](std::int64_t) { throw std::runtime_error("other"); }),
                 std::runtime_error);
}

TEST(ParallelFor, StopsOnRequest) {
    for (const int threads : {1, 2}) {
        std::stop_source source;
        std::atomic<int> ran{0};
        try {
            parallel_for(1000, {.threads = threads, .stop = source.get_token()}, [&](std::int64_t) {
                if (++ran == 5) source.request_stop();
            });
            FAIL();
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::cancelled);
        }
        EXPECT_LT(ran, 1000);
    }
}

TEST(ParallelFor, NestedCallsStayInTheSameThread) {
    std::atomic<int> total{0};
    parallel_for(8, {.threads = 2}, [&](std::int64_t) {
        const auto me = std::this_thread::get_id();
        parallel_for(50, {.threads = 2}, [&](std::int64_t) {
            EXPECT_EQ(std::this_thread::get_id(), me);
            ++total;
        });
    });
    EXPECT_EQ(total, 400);
}

}  // namespace
}  // namespace tessera
