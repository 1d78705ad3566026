// A batch over three arrays of a group, a time series, whose program is killed or whose system calls fail: no array
// ever is longer than another, whoever opens them in whatever order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/edit.h>
#include <tessera/group.h>
#include <tessera/verify.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "child.h"

namespace tessera::faults {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t rows_before = 6;
constexpr std::int64_t rows_more = 5;

class GroupBatch : public testing::TestWithParam<const char*> {
protected:
    GroupBatch() {
        const std::string layout = GetParam();
        if (layout == "v2" || layout == "v3") (void)Group::create(folder_ / "first", layout);
        std::ofstream script(folder_ / "script");
        for (const std::string name : {"time", "level", "sub/heat"}) {
            ArrayOptions options{.shape = {0}, .chunks = {4}, .dtype = "<i4", .format = layout};
            if (layout == "sharded") options.format = "v3", options.shards = {8};
            const std::string more = "more-" + name.substr(name.rfind('/') + 1);
            fs::create_directories((folder_ / "first" / name).parent_path());
            append(Array::create(folder_ / "first" / name, options), 0, rows_before);
            append(Array::create(folder_ / more, options), rows_before, rows_more);
            script << "array " << name << "\nattr rows 11\nappend " << (folder_ / more).string() << "\n";
        }
        script.close();
        start_afresh();
    }

    static void append(Array array, std::int32_t first, std::int64_t count) {
        std::vector<std::int32_t> values(static_cast<std::size_t>(count));
        std::iota(values.begin(), values.end(), first);
        array.append(view(values, {count}), 0);
    }

    void start_afresh() { folder_.start_afresh(group()); }
    [[nodiscard]] fs::path group() const { return folder_.data() / "group"; }
    Ended tessera(std::vector<std::string> words, const std::optional<Fault>& fault = {}) {
        words.insert(words.begin(), program());
        return run(folder_, words, fault);
    }
    [[nodiscard]] std::vector<std::string> edit() const {
        return {"edit", group(), "--script", folder_ / "script", "--threads", "1", "--quiet"};
    }

    /// How far apart the calls are at which something happens: each is followed by many openings.
    [[nodiscard]] static long step() { return rounds(13, 1); }

    /// The length of an array that holds what it should.
    [[nodiscard]] std::int64_t rows(const std::string& name, bool read_only) const {
        const Array array = Array::open(group() / name, {.read_only = read_only});
        const NDArray all = array.read();
        const auto values = all.values<std::int32_t>();
        for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], static_cast<std::int32_t>(i)) << name;
        EXPECT_EQ(array.attributes().get("rows").has_value(), array.shape()[0] > rows_before) << name;
        return array.shape()[0];
    }

    /// Each array is opened alone, in the given order, first by readers and then by writers. Returns their length.
    std::int64_t expect_equal(std::mt19937& random, const Ended& ended) {
        std::vector<std::string> names{"time", "level", "sub/heat"};
        std::ranges::shuffle(names, random);
        const std::int64_t length = rows(names[0], true);
        EXPECT_THAT(length, testing::AnyOf(rows_before, rows_before + rows_more)) << ended.to_string();
        for (const std::string& name : names) EXPECT_EQ(rows(name, true), length) << name << ended.to_string();
        // Those who finish it, or discard it: one array after another, or all at once.
        if (random() % 4 == 0) {
            EXPECT_EQ(tessera({"repair", group(), "--quiet"}).code, 0) << ended.to_string();
        } else {
            for (const std::string& name : names) {
                EXPECT_EQ(rows(name, false), length) << name << ended.to_string();
                for (const std::string& other : names) EXPECT_EQ(rows(other, true), length) << other << name;
            }
        }
        for (const std::string& name : names) {
            EXPECT_FALSE(fs::exists(group() / name / ".tessera/batch/journal")) << name << ended.to_string();
        }
        { const Edit all(Group::open(group())); }
        EXPECT_FALSE(fs::exists(group() / ".tessera/batch/journal")) << ended.to_string();
        for (const std::string& name : names) EXPECT_EQ(rows(name, true), length) << name << ended.to_string();
        for (const Finding& finding : verify(directory_store(group(), {.read_only = true})).findings) {
            EXPECT_TRUE(finding.kind == FindingKind::leftover || finding.kind == FindingKind::note) << finding.text;
        }
        return length;
    }

    /// Runs words with a fault at one system call after another. `prepare` comes before each.
    template <class Prepare>
    void at_each_call(const std::vector<std::string>& words, const Fault& like, const Prepare& prepare) {
        int old = 0;
        int fresh = 0;
        for (long n = 1 + static_cast<long>(std::string_view(GetParam()).size()) % step(); !HasFailure(); n += step()) {
            prepare();
            Fault fault = like;
            fault.at = n;
            const Ended ended = tessera(words, fault);
            const std::int64_t length = expect_equal(random_, ended);
            (length == rows_before ? old : fresh) += 1;
            if (ended.fired.empty()) break;
        }
        EXPECT_GT(old, 0);
        EXPECT_GT(fresh, 0);
    }

    Folder folder_;
    std::mt19937 random_{1};
};

TEST_P(GroupBatch, killed_at_every_system_call) {
    at_each_call(edit(), {.action = "kill"}, [&] { start_afresh(); });
}

TEST_P(GroupBatch, taken_back_killed_at_every_system_call) {
    at_each_call({"undo", group(), "--quiet"}, {.action = "kill"}, [&] {
        start_afresh();
        ASSERT_EQ(tessera(edit()).code, 0);
    });
    ASSERT_EQ(tessera({"undo", group(), "--quiet"}).code, 0) << "what was taken back is made again";
    std::mt19937 random(1);
    EXPECT_EQ(expect_equal(random, {}), rows_before + rows_more);
}

TEST_P(GroupBatch, given_up_killed_at_every_system_call) {
    const std::vector<std::string> repair{"repair", group(), "--give-up-batches", "--quiet"};
    int pending = 0;
    for (long n = 1; !HasFailure(); n += rounds(3, 1)) {
        const auto leave_pending = [&] {
            start_afresh();
            return tessera(edit(), Fault{.calls = "rename", .at = n, .action = "kill"});
        };
        if (leave_pending().fired.empty()) break;
        if (!fs::exists(group() / ".tessera/batch/journal")) continue;
        // It is recorded, and none, some or all of its parts are in place.
        if (pending++ % rounds(20, 1) == 0) at_each_call(repair, {.action = "kill"}, [&] { (void)leave_pending(); });
        (void)leave_pending();
        const Ended whole = tessera(repair);
        EXPECT_EQ(whole.code, 0) << whole.to_string();
        EXPECT_EQ(expect_equal(random_, whole), rows_before);
    }
    EXPECT_GT(pending, 3);
}

TEST_P(GroupBatch, whose_system_calls_fail) {
    for (const auto& [calls, error] : std::vector<std::pair<const char*, int>>{
             {"rename", ENOSPC}, {"sync", EIO}, {"write", ENOSPC}, {"open", EMFILE}, {"unlink", EACCES}}) {
        for (long n = 1; !HasFailure(); n += step()) {
            start_afresh();
            const Ended ended =
                tessera(edit(), Fault{.calls = calls, .at = n, .action = std::to_string(error), .sticky = n % 2 == 0});
            if (ended.fired.empty()) break;
            ASSERT_THAT(ended.code, testing::AnyOf(0, 2, 3)) << ended.to_string();
            EXPECT_EQ(expect_equal(random_, ended), ended.code == 2 ? rows_before : rows_before + rows_more)
                << ended.to_string();
        }
    }
}

TEST_P(GroupBatch, killed_at_random_moments) {
    start_afresh();
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(tessera(edit(), Fault{}).code, 0);
    const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
    for (int i = 0; i < rounds(4, 250) && !HasFailure(); ++i) {  // in four layouts
        start_afresh();
        std::vector<std::string> words = edit();
        words.insert(words.begin(), program());
        Child child(folder_, words, Fault{});
        std::this_thread::sleep_for(std::chrono::microseconds(random_() % static_cast<unsigned>(whole.count())));
        child.kill();
        (void)expect_equal(random_, child.wait());
    }
}

INSTANTIATE_TEST_SUITE_P(Layouts, GroupBatch, testing::Values("zmeta", "v2", "v3", "sharded"),
                         [](const auto& layout) { return std::string(layout.param); });

}  // namespace
}  // namespace tessera::faults
