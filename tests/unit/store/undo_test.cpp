// Changes that an Undoable keeps: taken back as a whole, or refused where somebody else wrote since.
#include <tessera/edit.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tessera/error.h>
#include <tessera/group.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "expect_error.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::string text_of(const Region& region) {
    return fmt::format("{}:{}, {}:{}", region.start[0], region.start[0] + region.extent[0], region.start[1],
                       region.start[1] + region.extent[1]);
}

class UndoOf : public testing::TestWithParam<const char*> {
protected:
    UndoOf() : array_(Array::create(path(), options())) {
        std::vector<std::int32_t> values(20 * 18);
        std::iota(values.begin(), values.end(), 1);
        array_.write(Region::whole({20, 18}), view(values, {20, 18}));
        array_.attributes().set("mark", Value(1));
    }

    [[nodiscard]] fs::path path() const { return folder_ / "a"; }
    [[nodiscard]] static ArrayOptions options() {
        ArrayOptions options{.shape = {20, 18}, .chunks = {6, 5}, .dtype = "<i4", .fill_value = Value(7)};
        options.format = std::string(GetParam()) == "sharded" ? "v3" : GetParam();
        if (std::string(GetParam()) == "sharded") options.shards = {12, 10};
        return options;
    }
    [[nodiscard]] Array other() const { return Array::open(path()); }
    static void set(Array& array, const Region& region, std::int32_t value) {
        array.fill(text_of(region), Value(value));
    }
    [[nodiscard]] std::string content() const {
        const Array array = other();
        std::string text = array.shape().to_string() + array.attributes().all().dump();
        const NDArray all = array.read(Selection::all(array.shape()));
        for (const std::int32_t v : all.values<std::int32_t>()) text += ' ' + std::to_string(v);
        return text;
    }

    TemporaryFolder folder_;
    Array array_;
};

TEST_P(UndoOf, ManyChangesIsOfAllOfThem) {
    const std::string before = content();
    {
        const Undoable kept(array_);
        EXPECT_FALSE(kept.has_kept());
        for (const std::int32_t value : {3, 4, 7}) set(array_, {{2, 2}, {9, 9}}, value);  // the same chunks each time
        EXPECT_TRUE(kept.has_kept());
        array_.resize({9, 30});
        array_.resize({25, 20});
        array_.attributes().set("mark", Value(2));
        set(array_, {{0, 0}, {25, 20}}, 7);  // all go
    }
    const std::string after = content();
    for (const std::string& expected : {before, after, before, after}) {
        EXPECT_GT(undo(other()), 3);
        EXPECT_EQ(content(), expected);
    }
}

TEST_P(UndoOf, NothingThatOthersWroteInBetween) {
    {
        const Undoable kept(array_);
        set(array_, {{0, 0}, {2, 2}}, 100);
        Array another = other();
        set(another, {{3, 3}, {1, 1}}, 200);  // in the same chunk
        set(array_, {{0, 0}, {1, 1}}, 101);
    }
    const std::string after = content();
    expect_error(ErrorCode::invalid_argument, "was changed after the command", [&] { undo(other()); });
    EXPECT_EQ(content(), after);
}

TEST_P(UndoOf, ChangesOfManyThreads) {
    const std::string before = content();
    for (int round = 0; round < 5; ++round) {
        {
            const Undoable kept(array_);
            std::vector<std::thread> threads;
            for (std::int32_t n = 0; n < 4; ++n) {
                threads.emplace_back([&, n] {
                    std::mt19937 random(static_cast<unsigned>(round * 10 + n));
                    for (int i = 0; i < 8; ++i) {
                        const auto row = static_cast<std::int64_t>(random() % 15);
                        const auto column = static_cast<std::int64_t>(random() % 13);
                        array_.fill(text_of({{row, column}, {5, 5}}), Value(n));
                    }
                });
            }
            for (std::thread& thread : threads) thread.join();
        }
        undo(other());
        EXPECT_EQ(content(), before);
    }
}

TEST_P(UndoOf, TheLastOneAlone) {
    const auto change = [&](std::int32_t value) {
        const Undoable kept(array_);
        set(array_, {{0, 0}, {3, 3}}, value);
        return content();
    };
    const std::string first = change(1);
    (void)change(2);
    { const Undoable none(array_); }  // which changes nothing
    undo(other());
    EXPECT_EQ(content(), first);
    // One that begins while another goes on is the last one, and the other leaves nothing.
    {
        const Undoable kept(array_);
        set(array_, {{0, 0}, {3, 3}}, 3);
        Array another = other();
        const Undoable later(another);
        set(another, {{13, 13}, {2, 2}}, 4);
        set(array_, {{6, 0}, {3, 3}}, 5);
    }
    const std::string all = content();
    EXPECT_EQ(undo(other()), 1);
    EXPECT_NE(content(), all);
    undo(other());
    EXPECT_EQ(content(), all);
    const auto files = [&] {
        return std::distance(fs::directory_iterator(path() / ".tessera/undo"), fs::directory_iterator());
    };
    EXPECT_EQ(files(), 2) << "an old value and the record";
    {
        const Undoable none(array_, {.keep_old = false});
        set(array_, {{0, 0}, {3, 3}}, 9);
        EXPECT_FALSE(none.has_kept());
    }
    EXPECT_EQ(files(), 0);
    expect_error(ErrorCode::not_found, "nothing to take back", [&] { undo(other()); });
}

TEST_P(UndoOf, WhatIsKeptIsTold) {
    const auto store = directory_store(path());
    EXPECT_FALSE(kept_for_undo(*store));
    {
        const Undoable kept(array_, {.what = "a change"});
        set(array_, {{0, 0}, {3, 3}}, 9);
    }
    const auto kept = kept_for_undo(*store);
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->what, "a change");
    EXPECT_EQ(kept->values, 1);
    EXPECT_GT(kept->bytes, 100U);
}

INSTANTIATE_TEST_SUITE_P(Layouts, UndoOf, testing::Values("zmeta", "v1", "v2", "v3", "sharded"),
                         [](const auto& layout) { return std::string(layout.param); });

TEST(Undo, IsNotOfStoresInMemory) {
    Array array = Array::create(memory_store(), {.shape = {4}, .chunks = {2}, .dtype = "<i4"});
    const Undoable kept(array);
    array.fill(Selection::all({4}), Value(1));
    EXPECT_FALSE(kept.has_kept());
    expect_error(ErrorCode::not_found, "nothing to take back", [&] { undo(array); });
}

TEST(UndoOfAGroup, PutsItsAttributesBack) {
    for (const char* const format : {"v2", "v3"}) {
        const TemporaryFolder folder;
        const Group group = Group::create(folder / "g", format, Value{{"title", "one"}});
        expect_error(ErrorCode::not_found, "nothing to take back", [&] { (void)undo(group); });
        {
            const Undoable keeping(group);
            group.attributes().set("title", "two");
            group.attributes().set("units", "m");
            EXPECT_TRUE(keeping.has_kept());
        }
        EXPECT_EQ(undo(group), 1);
        EXPECT_EQ(group.attributes().all(), (Value{{"title", "one"}}));
        EXPECT_EQ(undo(Group::open(folder / "g")), 1);
        EXPECT_EQ(group.attributes().all(), (Value{{"title", "two"}, {"units", "m"}}));
        group.attributes().set("title", "three");  // not kept
        expect_error(ErrorCode::invalid_argument, "changed after", [&] { (void)undo(group); });
        EXPECT_EQ(group.attributes().get("title"), Value("three"));
    }
}

}  // namespace
}  // namespace tessera
