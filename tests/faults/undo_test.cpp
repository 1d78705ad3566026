// Commands that keep old values for `undo` are killed, and their system calls fail: what they did is taken back as a
// whole or not at all, and keeping never makes a command fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.h"
#include "child.h"
#include "steps.h"

namespace tessera::faults {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

using Words = std::vector<std::string>;

class Undo : public testing::Test {
protected:
    Undo() {
        create_first(folder_ / "first", "v2");
        const std::string source = folder_ / "first";
        commands_ = {{"set", array(), "0:7, :", "5"},
                     {"append", array(), source},
                     {"resize", array(), "3,14"},
                     {"attrs", array(), "set", "mark", "9"}};
    }

    void start_afresh() { folder_.start_afresh(array()); }
    [[nodiscard]] fs::path array() const { return folder_.data() / "array"; }
    [[nodiscard]] Table table() const { return table_of(Array::open(array(), {.read_only = true})); }

    Ended tessera(Words words, const std::optional<Fault>& fault) {
        words.insert(words.begin(), program());
        words.insert(words.end(), {"--threads", "1"});
        return run(folder_, words, fault);
    }

    /// Tries `undo`, and whether it did all or nothing.
    void expect_all_or_nothing(const Table& before, const std::string& what) {
        const Table now = table();
        const Ended undone = tessera({"undo", array(), "--quiet"}, {});
        ASSERT_THAT(undone.code, testing::AnyOf(0, 2)) << what << undone.to_string();
        EXPECT_TRUE(table() == (undone.code == 0 ? before : now)) << what << undone.to_string();
        EXPECT_EQ(tessera({"verify", array(), "--quiet"}, {}).code, 0) << what;
    }

    /// As stride(), for tests with several runs of the program at each call.
    [[nodiscard]] static long step() { return rounds(17, 1); }

    Folder folder_;
    std::vector<Words> commands_;
};

TEST_F(Undo, takes_back_what_a_killed_command_did) {
    int taken_back = 0;
    for (const Words& command : commands_) {
        start_afresh();
        const Table before = table();
        for (const char* const action : {"kill", "tear"}) {
            for (long n = 1; !HasFailure(); n += step()) {
                start_afresh();
                const Fault fault{.calls = action == std::string("tear") ? "write" : "", .at = n, .action = action};
                const Ended ended = tessera(command, fault);
                if (ended.fired.empty()) {
                    EXPECT_EQ(ended.code, 0) << ended.to_string();
                    EXPECT_GT(n, action == std::string("tear") ? 1 : 10);
                    break;
                }
                const bool changed = !(table() == before);
                const Ended undone = tessera({"undo", array(), "--quiet"}, {});
                // Only a command that was killed before its first change left nothing to take back.
                EXPECT_TRUE(undone.code == 0 || !changed) << ended.to_string() << undone.to_string();
                EXPECT_TRUE(table() == before) << ended.to_string();
                EXPECT_EQ(tessera({"verify", array(), "--quiet"}, {}).code, 0) << ended.to_string();
                taken_back += changed && undone.code == 0 ? 1 : 0;
            }
        }
    }
    EXPECT_GT(taken_back, 3);
}

TEST_F(Undo, is_all_or_nothing_when_a_call_fails) {
    const std::vector<std::pair<const char*, int>> failures{{"link", EPERM},    {"open", EMFILE},  {"write", ENOSPC},
                                                            {"unlink", EACCES}, {"mkdir", ENOSPC}, {"close", EIO},
                                                            {"rename", EIO}};
    for (const Words& command : commands_) {
        start_afresh();
        const Table before = table();
        ASSERT_EQ(tessera(command, {}).code, 0);
        const Table after = table();
        for (const auto& [calls, error] : failures) {
            const bool few = calls == std::string_view("link") || calls == std::string_view("unlink");
            for (long n = 1; !HasFailure(); n += few ? rounds(2, 1) : step()) {
                start_afresh();
                const bool sticky = n % 2 == 0;
                const Ended ended =
                    tessera(command, Fault{.calls = calls, .at = n, .action = std::to_string(error), .sticky = sticky});
                if (ended.fired.empty()) break;
                // What concerns the kept values alone fails nothing.
                const bool kept = !sticky && ended.fired.find("/.tessera/undo") != std::string::npos;
                EXPECT_TRUE(!kept || ended.code == 0) << ended.to_string();
                EXPECT_TRUE(ended.code != 0 || table() == after) << ended.to_string();
                expect_all_or_nothing(before, ended.to_string());
            }
        }
    }
}

TEST_F(Undo, says_why_there_is_none_without_hard_links) {
    start_afresh();
    const Ended ended = tessera({"set", array(), "0:7, :", "5"},
                                Fault{.calls = "link", .at = 1, .action = std::to_string(EPERM), .sticky = true});
    EXPECT_EQ(ended.code, 0) << ended.to_string();
    EXPECT_FALSE(ended.fired.empty());
    const Table after = table();
    const Ended undone = tessera({"undo", array()}, {});
    EXPECT_EQ(undone.code, 2);
    EXPECT_THAT(undone.error, HasSubstr("no hard link could be made (Operation not permitted)"));
    EXPECT_TRUE(table() == after);
    int kept = 0;
    for (const auto& entry : fs::directory_iterator(array() / ".tessera/undo")) kept += entry.is_regular_file() ? 1 : 0;
    EXPECT_EQ(kept, 1) << "the record and nothing else";
}

TEST_F(Undo, may_be_killed_itself) {
    // Growing removes the chunk that another program left outside, and undo does not bring it back.
    const auto with_stale = [&] {
        start_afresh();
        fs::copy_file(array() / "0.0", array() / "4.0");
    };
    with_stale();
    const Table before = table();
    for (const Words& command : {Words{"set", array(), "0:7, :", "5"}, Words{"resize", array(), "30,14"}}) {
        for (long n = 1; !HasFailure(); n += step()) {
            with_stale();
            ASSERT_EQ(tessera(command, {}).code, 0);
            const Table after = table();
            const Ended ended = tessera({"undo", array()}, Fault{.calls = "", .at = n, .action = "kill"});
            if (ended.fired.empty()) break;
            ASSERT_EQ(ended.signal, SIGKILL) << ended.to_string();
            const Table now = table();
            EXPECT_TRUE(now == before || now == after) << ended.to_string();
            // The next writer finishes what was recorded, and everything else is as if `undo` had not been.
            EXPECT_EQ(tessera({"repair", array(), "--quiet"}, {}).code, 0);
            EXPECT_TRUE(table() == now) << ended.to_string();
            EXPECT_EQ(tessera({"verify", array(), "--quiet"}, {}).code, 0) << ended.to_string();
        }
    }
}

}  // namespace
}  // namespace tessera::faults
