// copy_array between arrays and files, within a budget, and arrays that appear only when complete.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/action.h>
#include <tessera/copy_elements.h>
#include <tessera/tessera.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <random>

#include "expect_error.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class Copy : public testing::Test {
protected:
    Copy() {
        dir_ = fs::path(testing::TempDir()) /
               fmt::format("tessera_copy_{}", testing::UnitTest::GetInstance()->current_test_info()->name());
        fs::remove_all(dir_);
        fs::create_directories(dir_);
    }
    ~Copy() override { fs::remove_all(dir_); }

    [[nodiscard]] std::string path(const char* name) const { return (dir_ / name).string(); }
    /// What is in the array's `.tessera`.
    [[nodiscard]] std::vector<std::string> own_files(const char* name) const {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(dir_ / name / ".tessera")) {
            names.push_back(entry.path().filename().string());
        }
        return names;
    }

    fs::path dir_;
};

NDArray ramp(const Shape& shape) {
    NDArray a("<i4", shape);
    std::iota(a.values<std::int32_t>().begin(), a.values<std::int32_t>().end(), 1);
    return a;
}

/// A source or sink that counts what goes through it.
class CountingSink final : public ArraySink {
public:
    CountingSink(ArraySink& inner) : inner_(inner) {}
    ArrayInfo info() const override { return inner_.info(); }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        {
            const std::lock_guard lock(mutex_);
            count(region);
        }
        inner_.write(region, in, io);
    }
    void count(const Region& region) {
        const ArrayInfo i = info();
        largest = std::max<std::int64_t>(largest, byte_count(region.extent, i.dtype.size()));
        for (int d = 0; d < region.rank() && i.chunks.rank() == region.rank(); ++d) {
            aligned = aligned && region.start[d] % i.chunks[d] == 0 &&
                      (region.extent[d] % i.chunks[d] == 0 || region.start[d] + region.extent[d] == i.shape[d]);
        }
        elements += region.count();
    }
    void finish() override {
        inner_.finish();
        ++finished;
    }
    const std::string& name() const override { return inner_.name(); }

    std::int64_t largest = 0;
    std::int64_t elements = 0;
    int finished = 0;
    bool aligned = true;

private:
    ArraySink& inner_;
    std::mutex mutex_;
};

TEST_F(Copy, RandomShapesThroughEveryPairOfSides) {
    std::mt19937 random(5);
    const auto draw = [&](std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    for (int round = 0; round < 60; ++round) {
        const int rank = static_cast<int>(draw(0, 3));
        Shape shape;
        Shape chunks_a;
        Shape chunks_b;
        for (int d = 0; d < rank; ++d) {
            shape.push_back(draw(0, 40));
            chunks_a.push_back(draw(1, 20));
            chunks_b.push_back(draw(1, 20));
        }
        SCOPED_TRACE(fmt::format("round {} shape {} chunks {} {}", round, shape.to_string(), chunks_a.to_string(),
                                 chunks_b.to_string()));
        const NDArray data = ramp(shape);
        Array a = Array::create(memory_store(), {.shape = shape, .chunks = chunks_a, .dtype = "<i4"});
        // The smallest budget that works, so that blocks are as small as they get.
        const CopyOptions small{.io = {.max_memory = (std::uint64_t{5} << 19) + 4 * 20 * 20 * 20}, .selection = {}};
        CountingSink into_a(a);
        copy_array(*view_source(data.view(), "memory"), into_a, small);
        EXPECT_EQ(into_a.elements, data.count());  // each destination element once
        EXPECT_TRUE(into_a.aligned);               // and so each destination chunk
        EXPECT_EQ(into_a.finished, 1);

        Array b = Array::create(memory_store(), {.shape = shape, .chunks = chunks_b, .dtype = ">i4"});
        copy_array(a, b, small);
        EXPECT_TRUE(elements_equal(b.read("").view(), data.view()));

        for (const Order order : {Order::C, Order::F}) {
            for (const char* name : {"x.npy", "x.npz"}) {
                const auto sink =
                    create_array_file(split_array_path(path(name)), "<i4", shape, {.order = order, .deflate_level = 1});
                copy_array(b, *sink, small);
                const auto file = open_source(path(name));
                Array c = Array::create(memory_store(), {.shape = shape, .chunks = chunks_a, .dtype = "<i4"});
                copy_array(*file, c, small);
                ASSERT_TRUE(elements_equal(c.read("").view(), data.view())) << name;
            }
        }
    }
}

TEST_F(Copy, SelectionsWithStepsAndDroppedAxes) {
    const NDArray data = ramp({30, 20, 10});
    Array a = Array::create(memory_store(), {.shape = {30, 20, 10}, .chunks = {7, 6, 5}, .dtype = "<i4"});
    copy_array(*view_source(data.view(), "memory"), a);
    for (const char* text : {"3:29:2, 5, ::-1", "..., 4", "2, 3, 4", "::7, ::-3, 1:9", "5:5, :, :"}) {
        const Selection s = Selection::parse(text, {30, 20, 10});
        const Shape shape = s.shape();
        Array b =
            Array::create(memory_store(), {.shape = shape, .chunks = Shape::filled(shape.rank(), 4), .dtype = "<i4"});
        copy_array(*view_source(data.view(), "memory"), b, {.io = {}, .selection = s});
        Array c =
            Array::create(memory_store(), {.shape = shape, .chunks = Shape::filled(shape.rank(), 3), .dtype = "<i4"});
        copy_array(a, c, {.io = {}, .selection = s});
        EXPECT_TRUE(elements_equal(b.read("").view(), a.read(s).view())) << text;
        EXPECT_TRUE(elements_equal(c.read("").view(), a.read(s).view())) << text;
    }
}

TEST_F(Copy, BlocksStayWithinTheBudget) {
    const NDArray data = ramp({500, 4000});  // 8 MB
    Array a = Array::create(memory_store(), {.shape = {500, 4000}, .chunks = {100, 100}, .dtype = "<i4"});
    for (const std::uint64_t budget : {std::uint64_t{3} << 20, std::uint64_t{5} << 20}) {
        CountingSink counted(a);
        copy_array(*view_source(data.view(), "memory"), counted,
                   {.io = {.threads = 2, .max_memory = budget}, .selection = {}});
        EXPECT_LE(counted.largest, static_cast<std::int64_t>(budget));
        EXPECT_GE(counted.largest, 40'000);
        EXPECT_TRUE(elements_equal(a.read("").view(), data.view()));
    }
}

TEST_F(Copy, ThreadsShareTheBudgetWhereLargeBlocksPay) {
    const NDArray data = ramp({1000, 1000});  // 4 MB
    Array columns = Array::create(memory_store(), {.shape = {1000, 1000}, .chunks = {1000, 4}, .dtype = "<i4"});
    columns.write("", data.view());
    Array rows = Array::create(memory_store(), {.shape = {1000, 1000}, .chunks = {4, 1000}, .dtype = "<i4"});
    constexpr std::int64_t budget = 1 << 20;
    for (const int wanted : {1, 2}) {
        const IoOptions io{.threads = wanted, .max_memory = budget};
        const int threads = thread_count(io);
        CountingSink counted(rows);
        copy_array(columns, counted, {.io = io, .selection = {}});
        EXPECT_LE(threads * counted.largest, budget) << threads << " threads have a block each";
        EXPECT_GE(threads * counted.largest, budget / 8) << "hardly any of the budget is used";
        EXPECT_TRUE(elements_equal(rows.read("").view(), data.view()));
    }
}

TEST_F(Copy, ABudgetBelowOneChunkIsAnErrorThatNamesTheLeast) {
    const NDArray data = ramp({1000, 1000});
    Array a = Array::create(memory_store(), {.shape = {1000, 1000}, .chunks = {1000, 1000}, .dtype = "<i4"});
    try {
        copy_array(*view_source(data.view(), "memory"), a, {.io = {.max_memory = 1 << 20}, .selection = {}});
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::budget);
        ASSERT_EQ(e.advice().size(), 1U);
        EXPECT_EQ(e.advice()[0].action, Action::max_memory);
        EXPECT_EQ(e.advice()[0].value, "17M");
    }
    copy_array(*view_source(data.view(), "memory"), a, {.io = {.max_memory = 17 << 20}, .selection = {}});
    EXPECT_TRUE(elements_equal(a.read("").view(), data.view()));
}

TEST_F(Copy, DisagreeingSidesAreRefused) {
    const NDArray data = ramp({4, 4});
    Array a = Array::create(memory_store(), {.shape = {4, 5}, .chunks = {2, 2}, .dtype = "<i4"});
    EXPECT_THROW(copy_array(*view_source(data.view(), "memory"), a), Error);
    Array b = Array::create(memory_store(), {.shape = {4, 4}, .chunks = {2, 2}, .dtype = "<f4"});
    EXPECT_THROW(copy_array(*view_source(data.view(), "memory"), b), Error);
}

TEST_F(Copy, ReportsProgressAndStops) {
    struct Counter : Progress {
        std::atomic<std::int64_t> total{0};
        std::atomic<std::int64_t> done{0};
        std::stop_source stop;
        bool stop_early = false;
        void advance(std::int64_t bytes) override {
            done += bytes;
            if (stop_early) stop.request_stop();
        }
        void start(std::int64_t bytes, std::string_view) override { total = bytes; }
    };
    const NDArray data = ramp({1000, 1000});
    Array a = Array::create(memory_store(), {.shape = {1000, 1000}, .chunks = {100, 100}, .dtype = "<i4"});
    Counter counter;
    copy_array(*view_source(data.view(), "memory"), a,
               {.io = {.progress = &counter, .max_memory = 3 << 20}, .selection = {}});
    EXPECT_EQ(counter.total, 4'000'000);
    EXPECT_EQ(counter.done, 4'000'000);
    Counter stopping;
    stopping.stop_early = true;
    try {
        copy_array(
            *view_source(data.view(), "memory"), a,
            {.io = {.stop = stopping.stop.get_token(), .progress = &stopping, .max_memory = 3 << 20}, .selection = {}});
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::cancelled);
    }
    EXPECT_LT(stopping.done, 4'000'000);
}

const ArrayOptions small_array{.shape = {4}, .chunks = {2}, .dtype = "<i4"};

TEST_F(Copy, NewArraysAppearWhenTheyAreComplete) {
    {
        NewArray made(path("a.zarr"), small_array, {.overwrite = false}, "a test");
        made.array().fill(Selection::all({4}), 3);
        EXPECT_EQ(occupant(path("a.zarr")), Occupant::unfinished);
        EXPECT_THROW((void)Array::open(path("a.zarr")), Error);
        const Array done = made.commit();
        EXPECT_EQ(done.read("").values<std::int32_t>()[3], 3);
    }
    EXPECT_EQ(occupant(path("a.zarr")), Occupant::array);
    EXPECT_EQ(own_files("a.zarr"), std::vector<std::string>{"stored"});
    {
        NewArray dropped(path("b.zarr"), small_array, {.overwrite = false}, "a test");
        dropped.array().fill(Selection::all({4}), 3);
    }
    EXPECT_FALSE(fs::exists(path("b.zarr")));
}

TEST_F(Copy, OverwritingKeepsTheOldArrayUntilTheNewOneIsComplete) {
    Array::create(path("a.zarr"), small_array).fill(Selection::all({4}), 1);
    EXPECT_THROW(NewArray(path("a.zarr"), small_array, {.overwrite = false}, "a test"), Error);
    {
        NewArray dropped(path("a.zarr"), small_array, {.overwrite = true}, "a test");
        dropped.array().fill(Selection::all({4}), 2);
        EXPECT_EQ(Array::open(path("a.zarr")).read("0").values<std::int32_t>()[0], 1);
    }
    EXPECT_EQ(Array::open(path("a.zarr")).read("0").values<std::int32_t>()[0], 1);
    NewArray made(path("a.zarr"), {.shape = {3}, .dtype = "<i4", .fill_value = 9}, {.overwrite = true}, "a test");
    EXPECT_EQ(made.commit().read("2").values<std::int32_t>()[0], 9);
    EXPECT_EQ(Array::open(path("a.zarr")).shape(), Shape{3});
    EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()), 1);  // nothing left beside it
}

TEST_F(Copy, ArraysThatRestAreCommittedAndTakenBackLikeOthers) {
    std::deque<NewArray> made;
    std::vector<NewArray*> all;
    const auto make = [&](const char* name) {
        made.emplace_back(path(name), small_array, Existing{.together = true}, "a test");
        made.back().array().fill(Selection::all({4}), 3);
        all.push_back(&made.back());
    };
    for (const char* name : {"a", "b"}) make(name);
    rest_together(all);
    EXPECT_TRUE(made[0].rests());
    make("c");  // one that does not rest
    EXPECT_EQ(occupant(path("a")), Occupant::unfinished);
    commit_together(all);
    EXPECT_FALSE(made[0].rests());
    for (const char* name : {"a", "b", "c"}) {
        EXPECT_EQ(Array::open(path(name)).read("").values<std::int32_t>()[3], 3);
        EXPECT_EQ(own_files(name), std::vector<std::string>{"stored"});
    }
    all.clear();
    make("d");
    rest_together(all);
    made.clear();
    EXPECT_FALSE(fs::exists(path("d")));
}

TEST_F(Copy, WhatTookThePlaceOfARestingArrayIsLeftAlone) {
    std::optional<NewArray> made(std::in_place, path("a"), small_array, Existing{.together = true}, "a test");
    made->array().fill(Selection::all({4}), 3);
    NewArray* const all = &*made;
    rest_together({&all, 1});
    remove_unfinished(path("a"));  // as `rm` does, which nothing keeps away
    NewArray another(path("a"), small_array, {}, "another");
    expect_error(ErrorCode::already_exists, "being made already", [&] { commit_together({&all, 1}); });
    (void)another.commit();
    expect_error(ErrorCode::io, "removed or replaced", [&] { commit_together({&all, 1}); });
    made.reset();
    EXPECT_EQ(Array::open(path("a")).read("").values<std::int32_t>()[3], 0);
}

TEST_F(Copy, OverwritingThroughALinkKeepsTheLink) {
    Array::create(path("real.zarr"), small_array);
    fs::create_directory_symlink("real.zarr", path("link.zarr"));
    NewArray(path("link.zarr"), {.shape = {3}, .dtype = "<i4"}, {.overwrite = true}, "a test").commit();
    EXPECT_TRUE(fs::is_symlink(path("link.zarr")));
    EXPECT_EQ(Array::open(path("real.zarr")).shape(), Shape{3});
}

TEST_F(Copy, NothingButArraysIsEverReplaced) {
    fs::create_directories(path("photos"));
    std::ofstream(path("photos/holiday.jpg")) << "x";
    std::ofstream(path("file")) << "x";
    Array::create(path("mixed.zarr"), small_array);
    std::ofstream(path("mixed.zarr/notes.txt")) << "x";
    for (const char* name : {"photos", "file", "mixed.zarr"}) {
        try {
            NewArray made(path(name), small_array, {.overwrite = true}, "a test");
            FAIL() << name;
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::already_exists) << name;
        }
    }
    EXPECT_TRUE(fs::exists(path("photos/holiday.jpg")));
    EXPECT_TRUE(fs::exists(path("mixed.zarr/notes.txt")));
    EXPECT_TRUE(fs::exists(path("file")));
}

TEST_F(Copy, AnUnfinishedCopyOfOurOwnCanBeReplaced) {
    fs::create_directories(path("a.zarr/.tessera"));
    std::ofstream(path("a.zarr/.tessera/unfinished.json")) << "{}";
    fs::create_directories(path("a.zarr/__zdata__"));
    std::ofstream(path("a.zarr/__zdata__/0.blosc")) << "half";
    EXPECT_EQ(occupant(path("a.zarr")), Occupant::unfinished);
    EXPECT_THROW(NewArray(path("a.zarr"), small_array, {.overwrite = false}, "a test"), Error);
    Array a = NewArray(path("a.zarr"), small_array, {.overwrite = true}, "a test").commit();
    EXPECT_EQ(a.stored_size().chunks, 0);
    EXPECT_EQ(a.read("0").values<std::int32_t>()[0], 0);
}

TEST_F(Copy, AnUnfinishedCopyGoesOnWhereItWas) {
    const NDArray data = ramp({100, 100});
    const ArrayOptions options{.shape = {100, 100}, .chunks = {10, 100}, .dtype = "<i4"};
    {
        NewArray made(path("a.zarr"), options, {}, "the ramp");
        made.array().write(Region({0, 0}, {40, 100}), data.view().part({{0, 0}, {40, 100}}));
        EXPECT_EQ(made.keep(), fs::canonical(path("a.zarr")));
    }
    EXPECT_EQ(occupant(path("a.zarr")), Occupant::unfinished);
    // Of another source, or into other metadata, it is another copy.
    EXPECT_THROW(NewArray(path("a.zarr"), options, {.resume = true}, "something else"), Error);
    EXPECT_THROW(NewArray(path("a.zarr"), {.shape = {100, 100}, .chunks = {10, 10}, .dtype = "<i4"}, {.resume = true},
                          "the ramp"),
                 Error);
    NewArray made(path("a.zarr"), options, {.resume = true}, "the ramp");
    ASSERT_TRUE(made.resumed());
    CountingSink counted(made.array());
    copy_array(*view_source(data.view(), "the ramp"), counted,
               {.io = {.max_memory = 1'070'000},
                .done = [&](const Region& region) { return made.array().is_stored(region); }});
    EXPECT_EQ(counted.elements, 6'000);
    EXPECT_TRUE(elements_equal(made.commit().read("").view(), data.view()));
}

TEST_F(Copy, WhatWouldBeUnpackedAgainAndAgainGoesThroughATemporaryFile) {
    const fs::path spool = dir_ / "spool";
    fs::create_directories(spool);
    ::setenv("TMPDIR", spool.c_str(), 1);
    const NDArray data = ramp({32, 200, 200});
    const CopyOptions small{.io = {.max_memory = 3 << 20}};  // a slab of chunks is 5 MB
    for (const Order order : {Order::C, Order::F}) {
        const auto file = create_array_file(split_array_path(path("x.npz")), "<i4", data.shape(),
                                            {.order = order, .deflate_level = 1});
        copy_array(*view_source(data.view(), "memory"), *file, small);
        Array a = Array::create(memory_store(), {.shape = data.shape(), .chunks = {32, 32, 32}, .dtype = "<i4"});
        copy_array(*open_source(path("x.npz")), a, small);
        EXPECT_TRUE(elements_equal(a.read("").view(), data.view()));
        const auto back = create_array_file(split_array_path(path("y.npz")), "<i4", data.shape(),
                                            {.order = order, .deflate_level = 1});
        copy_array(a, *back, small);
        NDArray again("<i4", data.shape());
        open_source(path("y.npz"))->read_into(Region::whole(data.shape()), again.view(), {});
        EXPECT_TRUE(elements_equal(again.view(), data.view()));
    }
    ::unsetenv("TMPDIR");
    EXPECT_TRUE(fs::is_empty(spool));
}

TEST_F(Copy, AFailureDoesNotCostWhatAnEarlierRunWrote) {
    const ArrayOptions options{.shape = {100, 100}, .chunks = {10, 100}, .dtype = "<i4"};
    {
        NewArray made(path("a.zarr"), options, {}, "a test");
        made.array().write("0:10", ramp({10, 100}).view());
        (void)made.keep();
    }
    { NewArray failing(path("a.zarr"), options, {.resume = true}, "a test"); }  // goes as an error takes it away
    EXPECT_EQ(occupant(path("a.zarr")), Occupant::unfinished);
    NewArray again(path("a.zarr"), options, {.resume = true}, "a test");
    EXPECT_TRUE(again.array().is_stored({{0, 0}, {10, 100}}));
}

TEST_F(Copy, OverwritingAnUnfinishedCopyLeavesOtherFilesAlone) {
    {
        NewArray made(path("a.zarr"), small_array, {}, "a test");
        (void)made.keep();
    }
    std::ofstream(path("a.zarr/notes.txt")) << "x";
    EXPECT_THROW(NewArray(path("a.zarr"), small_array, {.overwrite = true}, "a test"), Error);
    EXPECT_TRUE(fs::exists(path("a.zarr/notes.txt")));
    EXPECT_EQ(occupant(path("a.zarr")), Occupant::unfinished);
}

TEST_F(Copy, StructuresWithPaddingBecomeArraysAsZarr04ShowedThem) {
    const DType padded("[('a', 'i1'), ('', 'V7'), ('b', '<f8')]");
    ASSERT_EQ(padded.fields().size(), 2U);
    NDArray data(padded, {10});
    for (std::size_t i = 0; i < data.bytes().size(); ++i) data.bytes()[i] = static_cast<std::byte>(i);
    Array a = Array::create(path("a.zarr"), {.shape = {10}, .chunks = {4}, .dtype = padded});
    copy_array(*view_source(data.view(), "memory"), a);
    a.write("3", data.view().part({{7}, {1}}));
    const NDArray back = Array::open(path("a.zarr")).read("");
    ASSERT_EQ(back.dtype().fields().size(), 3U);
    EXPECT_EQ(back.dtype().fields()[1].name, "f1");
    EXPECT_EQ(std::memcmp(back.bytes().data(), data.bytes().data(), 48), 0);
    EXPECT_EQ(std::memcmp(back.bytes().data() + 48, data.bytes().data() + 112, 16), 0);
}

TEST_F(Copy, AnAppendWritesEachChunkOnce) {
    Array a = Array::create(memory_store(), {.shape = {7, 100}, .chunks = {10, 100}, .dtype = "<i4"});
    const NDArray first = ramp({7, 100});
    a.write("", first.view());
    const NDArray more = ramp({500, 100});
    a.append(more.view(), 0, {.max_memory = 2'100'000});
    EXPECT_TRUE(elements_equal(a.read(":7").view(), first.view()));
    EXPECT_TRUE(elements_equal(a.read("7:").view(), more.view()));
}

}  // namespace
}  // namespace tessera
