// System calls fail one after another: the error names the file, nothing that was acknowledged is lost, and the same
// done again works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "check.h"
#include "child.h"

namespace tessera::faults {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Kind {
    const char* calls;
    std::vector<std::string> actions;
};

/// What can happen to which call.
std::vector<Kind> kinds() {
    const auto number = [](int error) { return std::to_string(error); };
    return {{"open", {number(EMFILE), number(EACCES), number(EIO), number(ENOSPC)}},
            {"write", {number(ENOSPC), number(EIO)}},
            {"read", {number(EIO)}},
            {"sync", {number(EIO), number(ENOSPC)}},
            {"close", {number(EIO), number(ENOSPC)}},
            {"rename", {number(ENOSPC), number(EACCES), number(EIO)}},
            {"unlink", {number(EACCES), number(EIO)}},
            {"mkdir", {number(ENOSPC), number(EACCES)}},
            {"lock", {number(ENOLCK), number(EIO)}}};
}

class Faults : public testing::TestWithParam<const char*> {
protected:
    Faults() { create_first(folder_ / "first", GetParam()); }

    Ended run_steps(const Fault& fault, const char* durability) {
        fs::remove_all(array());
        fs::copy(folder_ / "first", array(), fs::copy_options::recursive);
        return run(folder_,
                   {worker(), "steps", array(), std::to_string(seed), "0", std::to_string(count_), durability, "1"},
                   fault);
    }
    [[nodiscard]] fs::path array() const { return folder_.data() / "array"; }

    /// So that the layouts take different ones where not every call has its turn.
    [[nodiscard]] static long first() { return 1 + static_cast<long>(std::string_view(GetParam()).size()) % stride(); }

    static constexpr unsigned seed = 3;
    int count_ = rounds(7, 30);
    std::vector<Step> steps_ = make_steps(seed, count_);
    std::vector<Table> tables_ = tables_after(steps_);
    Folder folder_;
};

TEST_P(Faults, each_call_fails_once) {
    const int all_actions = rounds(0, 1);
    int reported = 0;
    for (const Kind& kind : kinds()) {
        const std::size_t actions = kind.actions.size();
        for (std::size_t i = 0; i < (all_actions != 0 ? actions : 1); ++i) {
            for (long n = first(); !HasFailure(); n += stride()) {
                const std::string& action = kind.actions[(i + static_cast<std::size_t>(n)) % actions];
                const Ended ended = run_steps({.calls = kind.calls, .at = n, .action = action}, "each");
                // The step that failed was done once more, so that all is there.
                ASSERT_EQ(ended.code, 0) << ended.to_string();
                EXPECT_TRUE(holds(array(), tables_.back())) << ended.to_string();
                if (ended.fired.empty()) break;
                if (ended.error.empty()) continue;  // of no consequence, such as a lock that could not be dropped
                EXPECT_THAT(ended.error, HasSubstr(array().string())) << ended.to_string();
                ++reported;
            }
        }
    }
    EXPECT_GT(reported, 20 * count_ / stride());
}

TEST_P(Faults, no_failure_of_write_sync_close_or_rename_is_dropped) {
    for (const char* calls : {"write", "sync", "rename", "mkdir"}) {
        for (long n = first(); !HasFailure(); n += stride()) {
            const Ended ended = run_steps({.calls = calls, .at = n, .action = std::to_string(EIO)}, "commit");
            if (ended.fired.empty()) break;
            EXPECT_THAT(ended.error, HasSubstr("nput/output error")) << ended.to_string();
        }
    }
}

TEST_P(Faults, from_one_call_on_all_fail) {
    for (const Kind& kind : kinds()) {
        for (long n = first(); !HasFailure(); n += 2 * stride()) {
            const std::string& action = kind.actions[static_cast<std::size_t>(n) % kind.actions.size()];
            const Ended ended = run_steps({.calls = kind.calls, .at = n, .action = action, .sticky = true}, "commit");
            if (ended.fired.empty()) break;
            const auto done = static_cast<std::size_t>(std::ranges::count(ended.out, '\n'));
            if (done < static_cast<std::size_t>(count_)) {
                EXPECT_EQ(ended.code, 1) << ended.to_string();
                EXPECT_THAT(ended.error, HasSubstr(array().string())) << ended.to_string();
            }
            const std::size_t next = std::min(done + 1, tables_.size() - 1);
            EXPECT_TRUE(old_or_next(array(), tables_[done], tables_[next], is_batch(steps_, done)))
                << ended.to_string();
        }
    }
}

TEST_P(Faults, short_counts_and_interrupted_calls_are_gone_on_with) {
    for (const char* calls : {"read", "write", "open", "lock"}) {
        const bool counted = calls == std::string("read") || calls == std::string("write");
        for (const std::string& action :
             {counted ? std::string("short") : std::to_string(EINTR), std::to_string(EINTR)}) {
            for (long n = first(); !HasFailure(); n += stride()) {
                const Ended ended = run_steps({.calls = calls, .at = n, .action = action}, "none");
                ASSERT_EQ(ended.code, 0) << ended.to_string();
                ASSERT_EQ(ended.error, "") << ended.to_string();
                if (ended.fired.empty()) break;
                EXPECT_TRUE(holds(array(), tables_.back())) << ended.to_string();
            }
            // All of them at once.
            const Ended ended = run_steps({.calls = calls, .at = 1, .action = "short", .sticky = true}, "none");
            ASSERT_EQ(ended.code, 0) << ended.to_string();
            EXPECT_TRUE(holds(array(), tables_.back())) << ended.to_string();
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Faults, testing::Values("zmeta", "v2", "v3", "sharded"),
                         [](const auto& layout) { return std::string(layout.param); });

}  // namespace
}  // namespace tessera::faults
