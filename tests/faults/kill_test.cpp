// A process is killed while it writes: what it acknowledged is there, and every chunk has its old or its new value.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <thread>

#include "check.h"
#include "child.h"

namespace tessera::faults {
namespace {

namespace fs = std::filesystem;

class Kill : public testing::TestWithParam<const char*> {
protected:
    Kill() { create_first(folder_ / "first", GetParam()); }

    void start_afresh() { folder_.start_afresh(array()); }
    [[nodiscard]] fs::path array() const { return folder_.data() / "array"; }
    [[nodiscard]] std::vector<std::string> steps(unsigned seed, int count, int threads) const {
        return {worker(), "steps",
                array(),  std::to_string(seed),
                "0",      std::to_string(count),
                "commit", std::to_string(threads)};
    }
    void expect_old_or_next(const std::vector<Step>& steps, const Ended& ended) const {
        const auto done = static_cast<std::size_t>(std::ranges::count(ended.out, '\n'));
        EXPECT_TRUE(old_or_next(array(), steps, done)) << ended.to_string();
    }

    /// So that the layouts take different ones where not every call has its turn.
    [[nodiscard]] static long first() { return 1 + static_cast<long>(std::string_view(GetParam()).size()) % stride(); }

    Folder folder_;
};

TEST_P(Kill, at_every_system_call) {
    constexpr int count = all_kinds;
    for (unsigned seed = 1; seed <= static_cast<unsigned>(rounds(1, 4)); ++seed) {
        const auto steps_done = make_steps(seed, count);
        for (const char* action : {"kill", "tear"}) {
            for (long n = first(); !HasFailure(); n += stride()) {
                start_afresh();
                const Fault fault{.calls = action == std::string("tear") ? "write" : "", .at = n, .action = action};
                const Ended ended = run(folder_, steps(seed, count, 1), fault);
                if (ended.fired.empty()) {
                    EXPECT_EQ(ended.code, 0) << ended.to_string();
                    EXPECT_TRUE(holds(array(), states_after(steps_done).back()));
                    EXPECT_GT(n, 10);
                    break;
                }
                ASSERT_EQ(ended.signal, SIGKILL) << ended.to_string();
                expect_old_or_next(steps_done, ended);
            }
        }
    }
}

TEST_P(Kill, at_random_moments) {
    constexpr int count = 30;
    std::mt19937 random(1);
    start_afresh();
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(run(folder_, steps(0, count, 2), Fault{}).code, 0);
    const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
    for (int i = 0; i < rounds(20, 200) && !HasFailure(); ++i) {
        start_afresh();
        Child child(folder_, steps(static_cast<unsigned>(i), count, 2), Fault{});
        std::this_thread::sleep_for(std::chrono::microseconds(random() % whole.count()));
        child.kill();
        const Ended ended = child.wait();
        if (ended.signal == SIGKILL) expect_old_or_next(make_steps(static_cast<unsigned>(i), count), ended);
    }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Kill, testing::Values("zmeta", "v1", "v2", "v3", "sharded"),
                         [](const auto& layout) { return std::string(layout.param); });

}  // namespace
}  // namespace tessera::faults
