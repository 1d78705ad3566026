// One destination has one builder: who waits, who is refused, what stays behind.
#include <gtest/gtest.h>
#include <sys/file.h>
#include <tessera/copy.h>
#include <tessera/destination_lock.h>
#include <tessera/group.h>
#include <tessera/snapshot.h>
#include <tessera/verify.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "expect_error.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// Counts what it is told, and gives up when it is asked to.
class TestWaiter final : public Waiter {
public:
    void waits(const fs::path& path, std::string_view who) override {
        destination = path;
        builder = who;
        ++told;
    }
    [[nodiscard]] bool stopped() const override { return stop; }

    std::atomic<int> told = 0;
    std::atomic<bool> stop = false;
    fs::path destination;
    std::string builder;
};

void wait_until(const auto& condition) {
    while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

const ArrayOptions ten{.shape = {10}, .chunks = {5}, .dtype = DType::of<std::int32_t>()};

class Destinations : public testing::Test {
protected:
    [[nodiscard]] fs::path lock_file(const std::string& name) const { return folder / ("." + name + ".tessera-lock"); }

    TemporaryFolder folder;
};

TEST_F(Destinations, the_second_waits_and_says_for_whom) {
    TestWaiter waiter;
    DestinationLock first(folder / "a");
    EXPECT_TRUE(fs::exists(lock_file("a")));
    std::atomic<bool> got = false;
    std::thread second([&] {
        const DestinationLock lock(folder / "." / "a", {.waiter = &waiter});
        got = true;
    });
    wait_until([&] { return waiter.told == 1; });
    EXPECT_FALSE(got);
    EXPECT_EQ(waiter.destination, folder / "." / "a");
    EXPECT_EQ(waiter.builder, "another thread");
    first.unlock();
    second.join();
    EXPECT_TRUE(got);
    EXPECT_EQ(waiter.told, 1);
    EXPECT_EQ(folder.entries(), 0);
}

TEST_F(Destinations, another_process_is_named) {
    // flock belongs to the open file: as good as another process that holds it.
    std::ofstream(lock_file("a")) << "123456789 elsewhere\n";
    const int file = ::open(lock_file("a").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::flock(file, LOCK_EX), 0);
    TestWaiter waiter;
    waiter.stop = true;
    expect_error(ErrorCode::cancelled, "process 123456789 on elsewhere",
                 [&] { DestinationLock(folder / "a", {.waiter = &waiter}); });
    for (const char* odd : {"", "x\n", "12", "12 no end of the line", "99999999999999999999 host\n"}) {
        std::ofstream(lock_file("a"), std::ios::trunc) << odd;
        expect_error(ErrorCode::cancelled, "another process",
                     [&] { DestinationLock(folder / "a", {.waiter = &waiter}); });
    }
    EXPECT_TRUE(fs::exists(lock_file("a"))) << "it is not ours";
    ::close(file);
    // What a killed run left is taken over, and goes.
    { const DestinationLock lock(folder / "a"); }
    EXPECT_EQ(folder.entries(), 0);
}

TEST_F(Destinations, waiting_can_be_ended) {
    DestinationLock first(folder / "a");
    TestWaiter waiter;
    std::thread second([&] {
        expect_error(ErrorCode::cancelled, "interrupted while waiting",
                     [&] { NewArray(folder / "a", ten, {.store = {.waiter = &waiter}}, "test"); });
    });
    wait_until([&] { return waiter.told == 1; });
    waiter.stop = true;
    second.join();
    first.unlock();
    EXPECT_EQ(folder.entries(), 0);
}

TEST_F(Destinations, nobody_waits_for_himself) {
    const DestinationLock first(folder / "a");
    expect_error(ErrorCode::already_exists, "by this very thread", [&] { DestinationLock(folder / "a"); });
    fs::create_directory_symlink(folder.path(), folder / "link");
    expect_error(ErrorCode::already_exists, "by this very thread", [&] { DestinationLock(folder / "link/a"); });
    first.require_held();
}

TEST_F(Destinations, two_who_take_them_in_two_orders_do_not_wait_for_ever) {
    DestinationLock a(folder / "a");
    std::atomic<bool> holds_b = false;
    std::thread other([&] {
        const DestinationLock b(folder / "b");
        holds_b = true;
        expect_error(ErrorCode::already_exists, "try again", [&] { DestinationLock(folder / "a"); });
    });
    wait_until([&] { return holds_b.load(); });
    DestinationLock b(folder / "b");  // waits: the other one does not
    other.join();
    // Out of order, but free.
    a.unlock();
    const DestinationLock again(folder / "a");
}

TEST_F(Destinations, what_is_in_a_destination_is_another_one) {
    const DestinationLock outer(folder / "group");
    NewArray inner(folder / "group/array", ten, {}, "test");
    (void)inner.commit();
    EXPECT_EQ(Array::open(folder / "group/array").shape(), Shape({10}));
    EXPECT_FALSE(fs::exists(folder / "group/.array.tessera-lock"));
}

TEST_F(Destinations, folders_above_are_made_and_go_again) {
    { const DestinationLock lock(folder / "x/y/a"); }
    EXPECT_EQ(folder.entries(), 0);
    { NewArray left(folder / "x/y/a", ten, {}, "test"); }
    EXPECT_EQ(folder.entries(), 0);
    (void)Array::create(folder / "x/y/a", ten);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder / "x/y"), {}), 1);
}

TEST_F(Destinations, a_link_is_locked_where_it_leads) {
    fs::create_directories(folder / "there/a");
    fs::create_directory_symlink(folder / "there/a", folder / "link");
    const DestinationLock lock(folder / "link");
    EXPECT_EQ(lock.place(), fs::canonical(folder / "there/a"));
    EXPECT_TRUE(fs::exists(folder / "there/.a.tessera-lock"));
    EXPECT_FALSE(fs::exists(lock_file("link")));
}

TEST_F(Destinations, nothing_is_written_through_a_lock_file_that_somebody_put_there) {
    std::ofstream(folder / "victim") << "mine";
    fs::create_symlink("victim", lock_file("a"));
    expect_error(ErrorCode::io, "lock", [&] { DestinationLock(folder / "a"); });
    fs::remove(lock_file("a"));
    fs::create_directory(lock_file("a"));
    expect_error(ErrorCode::io, "lock", [&] { DestinationLock(folder / "a"); });
    fs::remove(lock_file("a"));
    ASSERT_EQ(::mkfifo(lock_file("a").c_str(), 0600), 0);
    expect_error(ErrorCode::already_exists, "no lock file", [&] { DestinationLock(folder / "a"); });
    EXPECT_TRUE(fs::is_fifo(lock_file("a"))) << "what is not ours stays";
    fs::remove(lock_file("a"));
    fs::create_hard_link(folder / "victim", lock_file("a"));
    { const DestinationLock lock(folder / "a"); }
    std::string text;
    std::getline(std::ifstream(folder / "victim"), text);
    EXPECT_EQ(text, "mine");
}

TEST_F(Destinations, names_as_long_as_they_may_be) {
    const std::string long_name(255, 'n');
    const std::string odd = std::string(253, 'n') + "ä";  // the same beginning, and a character that may not be cut
    for (const std::string& name : {long_name, odd}) {
        (void)Array::create(folder / name, ten);
        NewArray again(folder / name, ten, {.overwrite = true}, "test");
        again.array().fill(Selection::all({10}), 3);
        (void)again.commit();
        EXPECT_EQ(Array::open(folder / name).read().values<std::int32_t>()[9], 3);
    }
    EXPECT_EQ(folder.entries(), 2);
    const DestinationLock one(folder / long_name);
    const DestinationLock other(folder / odd);  // another one
}

TEST_F(Destinations, without_locks_between_processes_threads_still_take_turns) {
    std::atomic<int> inside = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int n = 0; n < 20; ++n) {
                const DestinationLock lock(folder / "a", {.process_locks = false});
                EXPECT_EQ(++inside, 1);
                EXPECT_EQ(folder.entries(), 0);
                --inside;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

TEST_F(Destinations, threads_that_replace_one_array_leave_one_of_theirs) {
    const int rounds = 12;
    std::vector<std::thread> threads;
    for (int self = 1; self <= 4; ++self) {
        threads.emplace_back([&, self] {
            for (int n = 0; n < rounds; ++n) {
                NewArray made(folder / "a", ten, {.overwrite = true, .store = {.durability = Durability::none}},
                              "test");
                made.array().fill(Selection::all({10}), self);
                if (n % 3 == 2) continue;  // gives up
                // Once committed, another thread may replace it at any moment.
                const NDArray read = made.array().read();
                for (const std::int32_t value : read.values<std::int32_t>()) EXPECT_EQ(value, self);
                (void)made.commit();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(folder.entries(), 1);
    const NDArray left = Array::open(folder / "a").read();
    const auto values = left.values<std::int32_t>();
    EXPECT_TRUE(values.front() >= 1 && values.front() <= 4) << values.front();
    for (const std::int32_t value : values) EXPECT_EQ(value, values.front());
}

TEST_F(Destinations, a_run_whose_lock_went_does_not_commit_and_removes_nothing_of_others) {
    NewArray made(folder / "a", ten, {}, "test");
    made.array().fill(Selection::all({10}), 1);
    fs::remove(lock_file("a"));
    fs::rename(folder / "a", folder / "aside");
    (void)Array::create(folder / "other", ten);  // as another process would make it
    fs::rename(folder / "other", folder / "a");
    expect_error(ErrorCode::io, "lock was removed", [&] { (void)made.commit(); });
    { const NewArray gone = std::move(made); }
    EXPECT_EQ(Array::open(folder / "a").shape(), Shape({10}));
    EXPECT_TRUE(fs::exists(folder / "aside"));
}

TEST_F(Destinations, a_living_build_is_not_removed) {
    NewArray made(folder / "a", ten, {}, "test");
    TestWaiter waiter;
    std::thread removing([&] {
        expect_error(ErrorCode::not_found, "no unfinished copy",
                     [&] { remove_unfinished(folder / "a", {.waiter = &waiter}); });
    });
    wait_until([&] { return waiter.told == 1; });
    (void)made.commit();
    removing.join();
    EXPECT_EQ(Array::open(folder / "a").shape(), Shape({10}));
}

TEST_F(Destinations, a_group_in_which_something_is_being_made_is_not_removed) {
    Group group = Group::create(folder / "g", dialect_named("v3"));
    (void)group.create_array("old", ten);
    {
        const NewArray made(folder / "g/new", ten, {}, "test");
        expect_error(ErrorCode::invalid_argument, "", [&] {
            remove_node({*directory_store(folder.path()), "g"}, {.recursive = true});
        });
    }
    EXPECT_EQ(group.children().size(), 1U);
}

TEST_F(Destinations, what_killed_runs_left_is_found_and_removed) {
    (void)Group::create(folder / "g", dialect_named("v3"));
    const fs::path left = folder / "g/.a.tessera-lock";
    std::ofstream(left) << "1 here\n";
    const auto store = directory_store(folder / "g");
    const VerifyReport report = verify(store);
    EXPECT_TRUE(report.sound());
    ASSERT_EQ(report.count(FindingKind::leftover), 1);
    const int file = ::open(left.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::flock(file, LOCK_EX), 0);
    (void)repair(store);
    EXPECT_TRUE(fs::exists(left)) << "somebody holds it";
    ::close(file);
    (void)repair(store);
    EXPECT_FALSE(fs::exists(left));
    std::ofstream(left) << "1 here\n";
    remove_node({*directory_store(folder.path()), "g"}, {.recursive = true});
    EXPECT_EQ(folder.entries(), 0);
}

}  // namespace
}  // namespace tessera
