// In what order the program changes directories and asks for the disk: of what is made or replaced as a whole, where
// only a power failure at the wrong moment would show a swapped step. Other orders: tests/unit/store/order_test.cpp.
#include "order.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "child.h"
#include "steps.h"

namespace tessera::faults {
namespace {

namespace fs = std::filesystem;
using Kind = Event::Kind;

/// The keys of a trace (see disk.h) are relative to the directory that it is about. A write is a put of its file; a
/// sync has the name under which its file was made, if that was in the course of the trace. The lock file beside what
/// is made is left out: nothing of it has to outlive the process.
std::vector<Event> events_of(const std::string& trace, const fs::path& root) {
    const auto below = [&](const std::string& path) { return fs::path(path).lexically_relative(root).string(); };
    std::vector<Event> events;
    std::map<std::string, std::string> files;  // by inode
    std::istringstream lines(trace);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream in(line);
        std::string what, first, second;
        in >> what >> first >> second;
        if (what == "create") files[second] = below(first);
        if (what == "write") events.push_back({Kind::put, files[first]});
        if (what == "rename") events.push_back({Kind::replace, below(second), below(first)});
        if (what == "exchange") events.push_back({Kind::move, below(second), below(first)});
        if (what == "link") events.push_back({Kind::link, below(second), below(first)});
        if (what == "unlink") events.push_back({Kind::erase, below(first)});
        if (what == "sync") events.push_back({Kind::sync, files[first]});
        if (what == "syncfs") events.push_back({Kind::sync});
    }
    std::erase_if(events, [](const Event& e) { return e.key.ends_with(".tessera-lock"); });
    return events;
}

class ProgramOrder : public testing::Test {
protected:
    ProgramOrder() { create_first(array(), "v2"); }

    [[nodiscard]] fs::path array() const { return folder_.data() / "a.zarr"; }
    [[nodiscard]] std::string other(const char* name) const { return folder_.data() / name; }

    std::vector<Event> run_program(std::vector<std::string> words) const {
        words.insert(words.begin(), program());
        const Ended ended = run(folder_, words, Fault{.trace = true});
        EXPECT_EQ(ended.code, 0) << ended.to_string();
        return events_of(text_of(folder_ / "child" / "trace"), folder_.data());
    }

    Folder folder_;
};

/// What gets this name, in the directory that is made.
Which named(const std::string& end) {
    return [end](const Event& e) { return e.kind == Kind::replace && ("/" + e.key).ends_with("/" + end); };
}
bool is_chunk(const Event& e) {
    const std::string name = e.key.substr(e.key.rfind('/') + 1);
    return (e.kind == Kind::replace || e.kind == Kind::link) && !name.empty() &&
           name.find_first_not_of("0123456789.") == std::string::npos;
}
bool is_exchange(const Event& e) {
    return e.kind == Kind::move;
}
bool is_erase(const Event& e) {
    return e.kind == Kind::erase;
}
const Which marker = named(".tessera/unfinished.json");
bool is_marker_gone(const Event& e) {
    return e.kind == Kind::erase && e.key.ends_with(".tessera/unfinished.json");
}

void expect_built_in_order(const std::vector<Event>& events) {
    EXPECT_TRUE(in_turn(events, marker, is_chunk, true)) << "chunks without a marker are nobody's";
    EXPECT_TRUE(in_turn(events, is_chunk, named(".zarray"), true)) << "an array opens whose chunks are not there";
    EXPECT_TRUE(in_turn(events, named(".zarray"), is_marker_gone, true));
    EXPECT_TRUE(then_durable(events, is_marker_gone));
}

TEST_F(ProgramOrder, a_value_is_on_the_disk_before_it_gets_its_name) {
    const std::vector<std::vector<std::string>> commands{{"set", array(), "0:9, 0:9", "5"},
                                                         {"set", array(), "0:9, 0:9", "5", "--durability", "each"},
                                                         {"resize", array(), "25,9"},
                                                         {"attrs", array(), "set", "units", "1"},
                                                         {"seal", array()}};
    for (const auto& words : commands) {
        const auto events = run_program(words);
        int named = 0;
        for (auto rename = events.begin(); rename != events.end(); ++rename) {
            if (rename->kind != Kind::replace) continue;
            ++named;
            // A sync without a name is one of the whole file system.
            const auto last = std::find_if(std::reverse_iterator(rename), events.rend(), [&](const Event& e) {
                return e.key == rename->from || (e.kind == Kind::sync && e.key.empty());
            });
            EXPECT_TRUE(last != events.rend() && last->kind == Kind::sync)
                << words[0] << ": " << rename->to_string() << " without a sync of what was written";
        }
        EXPECT_GT(named, 0) << words[0];
        EXPECT_TRUE(then_durable(events, [](const Event& e) { return e.kind == Kind::replace; }));
    }
}

TEST_F(ProgramOrder, a_new_array_gets_its_metadata_last) {
    expect_built_in_order(run_program({"copy", array(), other("b.zarr"), "--chunks", "7,5"}));
}

TEST_F(ProgramOrder, the_metadata_of_a_new_array_are_on_the_disk_before_they_get_their_name) {
    for (const char* const durability : {"commit", "each"}) {
        const auto events =
            run_program({"copy", array(), other(durability), "--chunks", "7,5", "--durability", durability});
        const auto rename = std::ranges::find_if(events, named(".zarray"));
        ASSERT_TRUE(rename != events.end());
        const auto last = std::find_if(std::reverse_iterator(rename), events.rend(), [&](const Event& e) {
            return e.key == rename->from || (e.kind == Kind::sync && e.key.empty());
        });
        EXPECT_TRUE(last != events.rend() && last->kind == Kind::sync) << durability;
        EXPECT_TRUE(then_durable(events, [](const Event& e) { return e.kind == Kind::replace; })) << durability;
    }
}

TEST_F(ProgramOrder, an_array_is_replaced_by_one_that_is_complete) {
    create_first(other("b.zarr"), "v3");
    const auto events = run_program({"copy", array(), other("b.zarr"), "--chunks", "7,5", "--overwrite"});
    expect_built_in_order(events);
    EXPECT_TRUE(in_turn(events, is_marker_gone, is_exchange, true));
    EXPECT_TRUE(in_turn(
        events, is_exchange, [](const Event& e) { return is_erase(e) && e.key.ends_with("zarr.json"); }, true))
        << "the old array goes before the new one is there for good";
}

TEST_F(ProgramOrder, a_snapshot_appears_when_it_is_complete) {
    const auto events = run_program({"snapshot", array(), "create", "one"});
    EXPECT_TRUE(in_turn(events, is_chunk, named("a.zarr.snapshots/one"), true));
    EXPECT_TRUE(in_turn(events, named(".zarray"), named("a.zarr.snapshots/one"), true));
    EXPECT_TRUE(in_turn(events, named(".tessera/snapshot.json"), named("a.zarr.snapshots/one"), true));
    EXPECT_TRUE(then_durable(events, named("a.zarr.snapshots/one")));
}

TEST_F(ProgramOrder, a_snapshot_is_put_back_as_a_whole) {
    (void)run_program({"snapshot", array(), "create", "one"});
    (void)run_program({"set", array(), "0:9, 0:9", "5"});
    const auto events = run_program({"snapshot", array(), "restore", "one"});
    EXPECT_TRUE(in_turn(events, is_chunk, is_exchange, true));
    EXPECT_TRUE(in_turn(events, named(".zarray"), is_exchange, true));
    EXPECT_TRUE(in_turn(
        events, is_exchange, [](const Event& e) { return is_erase(e) && e.key.ends_with("/.zarray"); }, true));
}

TEST_F(ProgramOrder, a_snapshot_loses_its_name_before_its_files) {
    (void)run_program({"snapshot", array(), "create", "one"});
    const auto events = run_program({"snapshot", array(), "rm", "one"});
    const Which hidden = [](const Event& e) { return e.kind == Kind::replace && e.from == "a.zarr.snapshots/one"; };
    EXPECT_TRUE(in_turn(
        events, hidden, [](const Event& e) { return is_erase(e) && e.key.ends_with("/.zarray"); }, true));
    EXPECT_TRUE(then_durable(events, is_erase));
}

TEST_F(ProgramOrder, a_bag_appears_when_it_is_complete) {
    const auto events = run_program({"seal", array(), "--bagit", other("bag")});
    EXPECT_TRUE(in_turn(events, is_chunk, named("bag"), true));
    EXPECT_TRUE(in_turn(events, named("tagmanifest-sha256.txt"), named("bag"), true));
    EXPECT_TRUE(then_durable(events, named("bag")));
}

TEST_F(ProgramOrder, an_exported_file_gets_its_name_when_it_is_on_the_disk) {
    for (const char* name : {"out.npy", "out.npz"}) {
        const auto events = run_program({"export", array(), other(name), "--durability", "commit"});
        EXPECT_TRUE(in_turn(
            events, [](const Event& e) { return e.kind == Kind::put && e.key.starts_with(".tessera-tmp-"); },
            named(name), true));
        EXPECT_TRUE(then_durable(events, named(name)));
    }
}

}  // namespace
}  // namespace tessera::faults
