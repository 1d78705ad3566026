// A path that led to an array before and leads to one after is never empty in between, for whoever opens it; and what
// repair has set aside outlives the array that it came from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/copy.h>
#include <tessera/dialect.h>
#include <tessera/group.h>
#include <tessera/place.h>
#include <tessera/snapshot.h>
#include <tessera/verify.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "expect_error.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const StoreOptions quick{.durability = Durability::none};
const IoOptions one_thread{.threads = 1};

/// A new array in the place of what is there.
void replace(const fs::path& path, const std::string& format) {
    NewArray made(path,
                  {.shape = {40},
                   .chunks = {2},
                   .dtype = DType::of<std::int32_t>(),
                   .codec = "none",
                   .format = format,
                   .attributes = Value::parse(R"({"of": "all"})")},
                  {.overwrite = true, .store = quick}, "a test");
    made.array().fill(Selection::all({40}), 1);
    (void)made.commit();
}

TEST(Replaced, WhatIsNotFoundInADirectoryThatWasReplacedIsLookedForAgain) {
    const TemporaryFolder folder;
    const fs::path path = folder / "a";
    replace(path, "v2");
    int calls = 0;
    const auto kind = at_place(path, {.read_only = true}, [&](const Place& place) {
        if (++calls == 1) {
            EXPECT_FALSE(was_replaced(place));
            replace(path, "v3");
            EXPECT_TRUE(was_replaced(place));
            expect_error(ErrorCode::not_found, "replaced", [&] { require_present(place); });
        }
        return Array::open(place).dialect().name;
    });
    EXPECT_EQ(kind, "v3");
    EXPECT_EQ(calls, 2);
    calls = 0;
    expect_error(ErrorCode::not_found, "really", [&] {
        at_place(path, {}, [&](const Place&) {
            ++calls;
            throw Error(ErrorCode::not_found, "really");
        });
    });
    EXPECT_EQ(calls, 1);
    expect_error(ErrorCode::not_found, "no such file", [&] {
        at_place(path, {}, [&](const Place&) {
            fs::rename(path, folder / "b");
            throw Error(ErrorCode::not_found, "really");
        });
    });
}

TEST(Replaced, AttributesOfAnArrayThatIsGoneAreNotNone) {
    const TemporaryFolder folder;
    replace(folder / "a", "v2");
    const Array array = Array::open(folder / "a", {.read_only = true});
    replace(folder / "a", "v2");
    expect_error(ErrorCode::not_found, "was removed or replaced", [&] { (void)array.attributes().all(); });
}

TEST(Replaced, AGroupThatIsBeingRemovedIsNoPlainFolder) {
    const TemporaryFolder folder;
    const fs::path path = folder / "g";
    (void)Group::create(path, dialect_named("v3"), Value::object(), quick)
        .create_array("x", {.shape = {2}, .chunks = {2}, .dtype = DType::of<std::int32_t>()});
    int calls = 0;
    const Dialect* found = at_place(path, {.read_only = true}, [&](const Place& place) {
        if (++calls == 1) {  // another in its place; of the old one the metadata are gone, its array is not yet
            fs::rename(path, folder / "old");
            fs::remove(folder / "old" / "zarr.json");
            (void)Group::create(path, dialect_named("v2"), Value::object(), quick);
        }
        return Group::open(place).dialect();
    });
    EXPECT_EQ(calls, 2);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->name, "v2");
}

TEST(Replaced, WhereThereIsNoExchangeReadersWait) {
    const TemporaryFolder folder;
    replace(folder / "a", "v2");
    const fs::path moved = folder / ".a.tessera-old";
    fs::rename(folder / "a", moved);
    std::thread back([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        fs::rename(moved, folder / "a");
    });
    EXPECT_EQ(Array::open(folder / "a").shape(), Shape{40});
    back.join();
    fs::rename(folder / "a", moved);
    expect_error(ErrorCode::not_found, ".a.tessera-old back, which is the old content",
                 [&] { (void)Array::open(folder / "a"); });
}

TEST(ReplacedParallel, WhoeverOpensItAlwaysFindsAnArray) {
    const TemporaryFolder folder;
    const fs::path group = folder / "g";
    (void)Group::create(group, dialect_named("v2"), Value::object(), quick);
    const fs::path path = group / "a";
    replace(path, "v2");
    (void)create_snapshot(group, "kept", quick, one_thread);
    std::atomic<bool> over = false;
    std::mutex mutex;
    std::set<std::string> failures;
    std::atomic<int> opened = 0;
    const std::vector<std::function<void(int)>> uses{
        [&](int) { EXPECT_EQ(Array::open(path, {.read_only = true}).shape(), Shape{40}); },
        [&](int) { EXPECT_EQ(open_source(path.string())->info().shape, Shape{40}); },
        [&](int) { (void)Group::open(group, {.read_only = true}); },
        [&](int n) {
            const std::string name = "s" + std::to_string(n);
            (void)create_snapshot(path, name, quick, one_thread);
            EXPECT_EQ(Array::open(folder / "g.snapshots" / name).shape(), Shape{40});
            remove_snapshot(path, name, quick);
        }};
    std::vector<std::thread> readers;
    for (const auto& use : uses) {
        readers.emplace_back([&] {
            for (int n = 0; !over; ++n) {
                try {
                    use(n);
                    ++opened;
                } catch (const std::exception& e) {
                    const std::lock_guard guard(mutex);
                    failures.insert(e.what());
                }
            }
        });
    }
    for (int n = 0; n < 6; ++n) {
        replace(path, n % 2 == 0 ? "v3" : "v2");
        replace(path, "v2");
        restore_snapshot(group, "kept", quick, one_thread);
        restore_snapshot(path, "kept", quick, one_thread);
    }
    over = true;
    for (std::thread& reader : readers) reader.join();
    EXPECT_THAT(failures, testing::IsEmpty());
    EXPECT_GT(opened, 0);
}

// ---- what repair has set aside

void put(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
}

std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(SetAside, OutlivesTheArrayThatItCameFrom) {
    const TemporaryFolder folder;
    replace(folder / "a", "v2");
    (void)create_snapshot(folder / "a", "one", quick, one_thread);
    put(folder / "a/77", "lost");
    (void)repair(directory_store(folder / "a", quick));
    EXPECT_EQ(text_of(folder / "a/.tessera/damaged/77"), "lost");
    replace(folder / "a", "v3");
    EXPECT_EQ(text_of(folder / "a/.tessera/damaged/77"), "lost");
    restore_snapshot(folder / "a", "one", quick, one_thread);
    EXPECT_EQ(text_of(folder / "a/.tessera/damaged/77"), "lost");
    EXPECT_EQ(folder.entries(), 2) << "the array and its snapshots";

    // A run that was killed after the exchange: what it left has what was not carried on yet.
    fs::create_directories(folder / ".a.tessera-new/.tessera");
    fs::rename(folder / "a/.tessera/damaged", folder / ".a.tessera-new/.tessera/damaged");
    replace(folder / "a", "v2");
    EXPECT_EQ(text_of(folder / "a/.tessera/damaged/77"), "lost");
    EXPECT_EQ(folder.entries(), 2);
}

TEST(SetAside, OfAGroupGoesToTheSameNodes) {
    const TemporaryFolder folder;
    (void)Group::create(folder / "g", dialect_named("v2"), Value::object(), quick);
    replace(folder / "g/a", "v2");
    (void)create_snapshot(folder / "g", "one", quick, one_thread);
    replace(folder / "g/later", "v2");
    put(folder / "g/a/77", "lost");
    put(folder / "g/later/78", "lost too");
    put(folder / "victim/file", "safe");
    replace(folder / "g/b", "v2");
    const RepairReport report = repair(directory_store(folder / "g", quick));
    EXPECT_EQ(report.set_aside.files, 2);
    EXPECT_EQ(report.set_aside.bytes, 12U);
    fs::create_directories(folder / "g/b/.tessera");
    fs::create_directory_symlink(folder / "victim", folder / "g/b/.tessera/damaged");
    restore_snapshot(folder / "g", "one", quick, one_thread);
    EXPECT_EQ(text_of(folder / "g/a/.tessera/damaged/77"), "lost");
    EXPECT_EQ(text_of(folder / "g/.tessera/damaged/later/78"), "lost too");
    EXPECT_EQ(text_of(folder / "victim/file"), "safe");
}

TEST(SetAside, IsCountedAndDroppedOnRequest) {
    const TemporaryFolder folder;
    (void)Group::create(folder / "g", dialect_named("v2"), Value::object(), quick);
    replace(folder / "g/a", "v2");
    const auto store = directory_store(folder / "g", quick);
    put(folder / "g/a/77", "lost");
    EXPECT_EQ(set_aside_in({*store, "a"}).files, 0);
    EXPECT_EQ(repair(store).set_aside.files, 1);
    put(folder / "g/a/78", "and more");
    RepairReport report = repair(store, {.dry_run = true, .drop_damaged = true});
    EXPECT_EQ(report.dropped.files, 1);
    EXPECT_EQ(set_aside_in({*store, "a"}).files, 1);
    EXPECT_EQ(set_aside_in({*store, "a"}).bytes, 4U);
    report = repair(store, {.drop_damaged = true});
    EXPECT_EQ(report.dropped.files, 2);
    EXPECT_EQ(report.dropped.bytes, 12U);
    EXPECT_EQ(report.set_aside.files, 0);
    EXPECT_FALSE(fs::exists(folder / "g/a/.tessera/damaged"));
    EXPECT_TRUE(verify(store).findings.empty());
    // A link in its place is removed, and what it leads to stays.
    put(folder / "victim/file", "safe");
    fs::create_directory_symlink(folder / "victim", folder / "g/a/.tessera/damaged");
    (void)repair(store, {.drop_damaged = true});
    EXPECT_FALSE(fs::is_symlink(folder / "g/a/.tessera/damaged"));
    EXPECT_EQ(text_of(folder / "victim/file"), "safe");
}

}  // namespace
}  // namespace tessera
