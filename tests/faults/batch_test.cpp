// A batch of edits by the program, of which one system call after another fails: exit code 2 means that nothing has
// changed, 3 that it takes effect and must not be repeated; and it can be finished and taken back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/edit.h>
#include <tessera/value.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "check.h"
#include "child.h"
#include "steps.h"

namespace tessera::faults {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Batch : public testing::Test {
protected:
    Batch() {
        create_first(folder_ / "first", "v2");
        std::ofstream(folder_ / "script")
            << "set '0:7, :' 5\nresize 12,14\nappend " << (folder_ / "first").string() << "\nattr mark 9\n";
        start_afresh();
        before_ = table();
        EXPECT_EQ(edit({}).code, 0);
        after_ = table();
        EXPECT_FALSE(before_ == after_);
    }

    void start_afresh() { folder_.start_afresh(array()); }
    [[nodiscard]] fs::path array() const { return folder_.data() / "array"; }
    [[nodiscard]] Table table() const { return table_of(Array::open(array(), {.read_only = true})); }
    [[nodiscard]] bool pending() const { return fs::exists(array() / ".tessera/batch/journal"); }

    /// How many staged values there are.
    [[nodiscard]] std::size_t staged() const {
        const fs::path batch = array() / ".tessera/batch";
        if (!fs::exists(batch)) return 0;
        return static_cast<std::size_t>(std::ranges::count_if(fs::directory_iterator(batch), [](const auto& file) {
            return file.path().filename().string().find('.') == 16;  // of the id
        }));
    }

    Ended tessera(std::vector<std::string> words, const std::optional<Fault>& fault) {
        words.insert(words.begin(), program());
        return run(folder_, words, fault);
    }
    Ended edit(const std::optional<Fault>& fault, bool json = false) {
        std::vector<std::string> words{"edit", array(), "--script", folder_ / "script", "--threads", "1"};
        if (json) words.emplace_back("--json");
        return tessera(words, fault);
    }
    /// Leaves a batch that is recorded, and of which a part is in place. How many renames the program could do.
    long leave_pending() {
        for (long& n = enough_;; ++n) {
            start_afresh();
            (void)edit(Fault{.calls = "rename", .at = n, .action = std::to_string(EIO), .sticky = true});
            const Table now = table_of(Array::open(array(), {.read_only = true}));
            if (pending() && now == after_) {
                // Some of its values are in place already, and some are not.
                most_staged_ = std::max(most_staged_, staged());
                if (staged() > 0 && staged() < most_staged_) return n;
            }
            EXPECT_LT(n, 1000);
        }
    }

    Folder folder_;
    Table before_;
    Table after_;
    long enough_ = 1;  ///< renames for leave_pending(), once it has looked for them
    std::size_t most_staged_ = 0;
};

TEST_F(Batch, exit_codes_say_what_becomes_of_it) {
    int recorded = 0;
    int refused = 0;
    for (const auto& [calls, error] : std::vector<std::pair<const char*, int>>{{"rename", ENOSPC},
                                                                               {"sync", EIO},
                                                                               {"write", ENOSPC},
                                                                               {"open", EMFILE},
                                                                               {"unlink", EACCES},
                                                                               {"mkdir", ENOSPC}}) {
        for (const bool sticky : {false, true}) {
            for (long n = 1; !HasFailure(); n += sticky ? 2 * stride() : stride()) {
                start_afresh();
                const bool json = n % 2 == 0;
                const Ended ended =
                    edit(Fault{.calls = calls, .at = n, .action = std::to_string(error), .sticky = sticky}, json);
                if (ended.fired.empty()) break;
                ASSERT_THAT(ended.code, testing::AnyOf(0, 2, 3)) << ended.to_string();
                EXPECT_EQ(table() == before_, ended.code == 2) << ended.to_string();
                EXPECT_EQ(table() == after_, ended.code != 2) << ended.to_string();
                if (ended.code == 3) {
                    ++recorded;
                    EXPECT_THAT(ended.error, HasSubstr("do not repeat it")) << ended.to_string();
                    EXPECT_EQ(json, !ended.out.empty()) << ended.to_string();
                    EXPECT_TRUE(!json || Value::parse(ended.out).at("recorded").as_bool()) << ended.to_string();
                    // The next opening for writing finishes it.
                    EXPECT_EQ(tessera({"info", array(), "--quiet"}, {}).code, 0);
                    EXPECT_EQ(tessera({"attrs", array(), "set", "mark", "9"}, {}).code, 0);
                    EXPECT_FALSE(pending());
                    EXPECT_TRUE(table() == after_);
                } else if (ended.code == 2) {
                    ++refused;
                    // Nothing is left in the way, nor of the old values.
                    EXPECT_EQ(edit({}).code, 0);
                    EXPECT_TRUE(table() == after_);
                    EXPECT_EQ(tessera({"undo", array(), "--quiet"}, {}).code, 0);
                    EXPECT_TRUE(table() == before_);
                }
            }
        }
    }
    EXPECT_GT(recorded, 5);
    EXPECT_GT(refused, 5);
}

TEST_F(Batch, that_is_pending_is_finished_or_taken_back_by_repair) {
    for (const bool give_up : {false, true}) {
        leave_pending();
        std::vector<std::string> words{"repair", array()};
        if (give_up) words.emplace_back("--give-up-batches");
        std::vector<std::string> dry = words;
        dry.emplace_back("--dry-run");
        const Ended planned = tessera(dry, {});
        EXPECT_THAT(planned.out, HasSubstr(give_up ? "would be taken back" : "would be finished"))
            << planned.to_string();
        EXPECT_TRUE(pending());
        const Ended done = tessera(words, {});
        EXPECT_EQ(done.code, 0) << done.to_string();
        EXPECT_FALSE(pending());
        EXPECT_TRUE(table() == (give_up ? before_ : after_)) << done.to_string();
        EXPECT_EQ(tessera({"verify", array()}, {}).code, 0);
        EXPECT_EQ(staged(), 0U);
    }
}

TEST_F(Batch, that_lost_a_staged_value_is_taken_back_as_a_whole) {
    leave_pending();
    bool any = false;
    for (const auto& file : fs::directory_iterator(array() / ".tessera/batch")) {
        if (file.path().filename() == "journal") continue;
        fs::remove(file);
        any = true;
        break;
    }
    ASSERT_TRUE(any);
    const Ended left = tessera({"repair", array()}, {});
    EXPECT_EQ(left.code, 1) << left.to_string();
    EXPECT_THAT(left.out, HasSubstr("--give-up-batches` takes it back"));
    EXPECT_TRUE(pending());
    const Ended done = tessera({"repair", array(), "--give-up-batches"}, {});
    EXPECT_EQ(done.code, 0) << done.to_string();
    EXPECT_FALSE(pending());
    EXPECT_TRUE(table() == before_) << done.to_string();
}

TEST_F(Batch, that_is_pending_is_seen_by_calc_as_what_it_becomes) {
    leave_pending();
    const Ended done = tessera({"calc", array(), "a + 100", "a=" + array().string(), "--in-place", "--quiet"}, {});
    EXPECT_EQ(done.code, 0) << done.to_string();
    Table expected = after_;
    for (std::int32_t& value : expected.values) value += 100;
    EXPECT_TRUE(table() == expected) << done.to_string();
}

TEST_F(Batch, being_taken_back_may_be_killed_and_fail_at_any_call) {
    for (const auto& action : std::vector<std::string>{"kill", std::to_string(EIO)}) {
        for (long n = 1; !HasFailure(); n += stride()) {
            leave_pending();
            const Ended ended =
                tessera({"repair", array(), "--give-up-batches"},
                        Fault{.calls = "rename,unlink,link,open,sync,write", .at = n, .action = action});
            // Either way is whole, and both are still open while nothing was decided.
            const Table now = table();
            EXPECT_TRUE(now == before_ || now == after_) << ended.to_string();
            EXPECT_TRUE(pending() || now == before_) << ended.to_string();
            EXPECT_EQ(tessera({"repair", array(), "--give-up-batches"}, {}).code, 0);
            EXPECT_FALSE(pending());
            EXPECT_TRUE(table() == before_ || now == before_) << ended.to_string();
            if (ended.fired.empty()) break;
        }
    }
}

TEST_F(Batch, that_cannot_be_read_just_now_is_not_removed) {
    // What is looked at first is looked at in every run; the rest when all is tried.
    const long most = stride() == 1 ? 10'000 : 25;
    leave_pending();
    for (long n = 1; n <= most && !HasFailure(); ++n) {
        const Ended ended =
            tessera({"repair", array()}, Fault{.calls = "open", .at = n, .action = std::to_string(EIO)});
        EXPECT_TRUE(table() == after_) << ended.to_string();
        if (ended.fired.empty()) break;
        if (!pending()) leave_pending();
    }
}

// As at the edge of another file system; tests/cli/test_file_systems.py has real ones.
TEST_F(Batch, copies_where_it_cannot_rename) {
    int copied = 0;
    for (long n = 1; !HasFailure(); ++n) {
        start_afresh();
        const Ended ended = edit(Fault{.calls = "rename", .at = n, .action = std::to_string(EXDEV)});
        if (ended.fired.empty()) break;
        EXPECT_EQ(table() == before_, ended.code == 2) << ended.to_string();
        EXPECT_EQ(table() == after_, ended.code != 2) << ended.to_string();
        copied += ended.code == 0 ? 1 : 0;
        EXPECT_EQ(tessera({"verify", array()}, {}).code, 0);
    }
    EXPECT_GT(copied, 3);
}

}  // namespace
}  // namespace tessera::faults
