// System calls fail one after another: the error names the file, nothing that was acknowledged is lost, and the same
// done again works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <set>

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
    std::vector<Kind> kinds = {{"open", {number(EMFILE), number(EACCES), number(EIO), number(ENOSPC)}},
                               {"write", {number(ENOSPC), number(EIO)}},
                               {"read", {number(EIO)}},
                               {"sync", {number(EIO), number(ENOSPC)}},
                               {"close", {number(EIO), number(ENOSPC)}},
                               {"rename", {number(ENOSPC), number(EACCES), number(EIO)}},
                               {"unlink", {number(EACCES), number(EIO)}},
                               {"mkdir", {number(ENOSPC), number(EACCES)}},
                               {"lock", {number(ENOLCK), number(EIO)}},
                               {"stat", {number(EIO), number(EACCES)}},
                               {"list", {number(EIO)}}};
    if (rounds(0, 1) == 0) kinds.resize(kinds.size() - 2);  // many calls, few places in the code
    return kinds;
}

class Faults : public testing::TestWithParam<const char*> {
protected:
    Faults() { create_first(folder_ / "first", GetParam()); }

    Ended run_steps(const Fault& fault, const char* durability, int steps = count) {
        folder_.start_afresh(array());
        return run(folder_,
                   {worker(), "steps", array(), std::to_string(seed_), "0", std::to_string(steps), durability, "1"},
                   fault);
    }
    [[nodiscard]] fs::path array() const { return folder_.data() / "array"; }

    /// Runs the steps with a fault at one call after another, until they run untouched; check(how it ended) for each.
    /// The actions take turns; in tests/soak each call fails with each of them, but for those that go on failing.
    template <class Check>
    void each_call(const Kind& kind, bool sticky, const char* durability, const Check& check) {
        const auto seeds = static_cast<unsigned>(rounds(1, 2));
        const std::size_t turns = sticky ? 1 : rounds(1, static_cast<int>(kind.actions.size()));
        for (seed_ = 3; seed_ < 3 + seeds; ++seed_) {
            for (std::size_t turn = 0; turn < turns; ++turn) {
                for (long n = first(); !HasFailure(); n += sticky ? rounds(2, 1) * stride() : stride()) {
                    const auto& action = kind.actions[(turn + static_cast<std::size_t>(n)) % kind.actions.size()];
                    const Ended ended =
                        run_steps({.calls = kind.calls, .at = n, .action = action, .sticky = sticky}, durability);
                    check(ended);
                    if (ended.fired.empty()) break;
                }
            }
        }
    }
    /// The step that failed was done once more, so that all is there.
    void expect_all_done(const Ended& ended) const {
        EXPECT_EQ(ended.code, 0) << ended.to_string();
        EXPECT_TRUE(holds(array(), states_after(make_steps(seed_, count)).back())) << ended.to_string();
    }

    /// So that the layouts take different ones where not every call has its turn.
    [[nodiscard]] static long first() { return 1 + static_cast<long>(std::string_view(GetParam()).size()) % stride(); }

    static constexpr int count = all_kinds;
    unsigned seed_ = 0;
    Folder folder_;
};

TEST_P(Faults, each_call_fails_once) {
    int reported = 0;
    for (const Kind& kind : kinds()) {
        // Others may be of no consequence, such as a lock that could not be dropped.
        const bool never_dropped = std::set<std::string>{"write", "sync", "rename", "mkdir"}.contains(kind.calls);
        each_call(kind, false, "each", [&](const Ended& ended) {
            expect_all_done(ended);
            // What a lock file says is for the message of who waits: on a full disk, what makes room must go on.
            const bool says_who = ended.fired.find(".tessera-lock") != std::string::npos;
            if (ended.fired.empty() || (ended.error.empty() && (!never_dropped || says_who))) return;
            EXPECT_THAT(ended.error, HasSubstr(folder_.data().string())) << ended.to_string();
            ++reported;
        });
    }
    EXPECT_GT(reported, 15 * count / stride());
}

TEST_P(Faults, no_error_of_a_value_that_is_written_is_dropped) {
    seed_ = 3;
    for (const char* calls : {"write", "sync", "close"}) {
        int reported = 0;
        for (long n = 1; !HasFailure(); ++n) {
            const Ended ended = run_steps({.calls = calls, .at = n, .action = std::to_string(EIO)}, "each", 1);
            if (ended.fired.empty()) break;
            // What else is closed was only read, or locked.
            if (ended.fired.find(".tessera-tmp-") == std::string::npos && calls != std::string_view("sync")) continue;
            EXPECT_THAT(ended.error, HasSubstr(folder_.data().string())) << ended.to_string();
            EXPECT_EQ(ended.code, 0) << ended.to_string();
            EXPECT_TRUE(holds(array(), states_after(make_steps(seed_, 1)).back())) << ended.to_string();
            ++reported;
        }
        EXPECT_GE(reported, 2) << calls;
    }
}

TEST_P(Faults, from_one_call_on_all_fail) {
    for (const Kind& kind : kinds()) {
        each_call(kind, true, "commit", [&](const Ended& ended) {
            const auto done = static_cast<std::size_t>(std::ranges::count(ended.out, '\n'));
            if (done < static_cast<std::size_t>(count)) {
                EXPECT_EQ(ended.code, 1) << ended.to_string();
                EXPECT_THAT(ended.error, HasSubstr(folder_.data().string())) << ended.to_string();
            }
            EXPECT_TRUE(old_or_next(array(), make_steps(seed_, count), done)) << ended.to_string();
        });
    }
}

TEST_P(Faults, short_counts_and_interrupted_calls_are_gone_on_with) {
    const std::string interrupted = std::to_string(EINTR);
    const auto check = [&](const Ended& ended) {
        EXPECT_EQ(ended.error, "") << ended.to_string();
        expect_all_done(ended);
    };
    for (const char* calls : {"read", "write"}) {
        each_call({calls, {"short", interrupted}}, false, "none", check);
        check(run_steps({.calls = calls, .at = 1, .action = "short", .sticky = true}, "none"));  // all of them
    }
    for (const char* calls : {"open", "lock"}) each_call({calls, {interrupted}}, false, "none", check);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Faults, testing::Values("zmeta", "v2", "v3", "sharded"),
                         [](const auto& layout) { return std::string(layout.param); });

}  // namespace
}  // namespace tessera::faults
