// Array through its public interface: regions, steps, fills, edges, attributes, resize, append, several threads.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/tessera.h>

#include <filesystem>
#include <numeric>
#include <thread>

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

ErrorCode code_of(const std::function<void()>& run, std::string* message = nullptr) {
    try {
        run();
    } catch (const Error& e) {
        if (message != nullptr) *message = e.what();
        return e.code();
    }
    ADD_FAILURE() << "no error";
    return ErrorCode::io;
}

TEST(Array, TheExampleOfTheDesign) {
    auto grid = Array::create({memory_store(), "grid"},
                              {.shape = {1'000, 100}, .chunks = {100, 10}, .dtype = "<i4", .fill_value = 42});
    std::vector<std::int32_t> values(100);
    std::iota(values.begin(), values.end(), 0);
    grid.write(Region({0, 0}, {10, 10}), view(values, {10, 10}));
    const NDArray part = grid.read("5:15, ::2");
    EXPECT_EQ(part.shape(), (Shape{10, 50}));
    EXPECT_EQ(part.values<std::int32_t>()[0], 50);
    EXPECT_EQ(part.values<std::int32_t>()[4], 58);
    EXPECT_EQ(part.values<std::int32_t>()[5], 42);
    EXPECT_EQ(part.values<std::int32_t>()[499], 42);
    grid.attributes().set("units", "m");
    EXPECT_EQ(*grid.attributes().get("units"), Value("m"));
    EXPECT_EQ(grid.stored_size().chunks, 1);
    EXPECT_EQ(grid.stored_size().chunks_possible, 100);
}

TEST(Array, ChunksThatBecomeTheFillAreErasedBitForBit) {
    Array a = Array::create(memory_store(), {.shape = {10}, .chunks = {5}, .dtype = "<f8", .fill_value = 0.0});
    std::vector<double> values(10, 1.0);
    a.write("", view(values));
    EXPECT_EQ(a.stored_size().chunks, 2);
    std::fill(values.begin(), values.end(), 0.0);
    a.write("", view(values));
    EXPECT_EQ(a.stored_size().chunks, 0);
    values[7] = -0.0;  // equal to 0.0, but other bits
    a.write("", view(values));
    EXPECT_EQ(a.stored_size().chunks, 1);
    EXPECT_TRUE(std::signbit(a.read("7").values<double>()[0]));
}

TEST(Array, BeyondANumberOfChunksSizesAreOfASample) {
    Array a = Array::create(memory_store(),
                            {.shape = {1000}, .chunks = {1}, .dtype = "|u1", .codec = "none", .format = "v2"});
    std::vector<std::uint8_t> ones(1000, 1);
    a.write("", view(ones));
    const StoredSize all = a.stored_size();
    EXPECT_EQ(std::tuple(all.chunks, all.sized, all.bytes), std::tuple(1000, 1000, 1000U));
    const StoredSize some = a.stored_size(360);  // and ten of the 640 others, each for 64
    EXPECT_EQ(std::tuple(some.chunks, some.sized, some.bytes), std::tuple(1000, 370, 1000U));
    EXPECT_EQ(a.stored_size(0).chunks, 1000);
}

TEST(Array, WithAnUndefinedFillNothingIsErased) {
    Array a = Array::create(memory_store(), {.shape = {10}, .chunks = {5}, .dtype = "<i4", .fill_value = Value()});
    EXPECT_EQ(a.read("").values<std::int32_t>()[3], 0);
    a.fill(Selection::all({10}), 0);
    EXPECT_EQ(a.stored_size().chunks, 2);
}

TEST(Array, AFillThatCannotBeAssignedIsAnErrorOnlyWhenItIsNeeded) {
    const auto store = memory_store();
    const std::string meta =
        R"({"chunks": [2], "clevel": 5, "cname": "lz4", "dtype": "<i4", "fill_value": NaN, "shape": [4], "shuffle": 1})";
    store->put("__zmeta__", std::as_bytes(std::span(meta)));
    Array a = Array::open(store);
    std::vector<std::int32_t> two = {1, 2};
    a.write("0:2", view(two));
    EXPECT_EQ(a.read("1").values<std::int32_t>()[0], 2);
    EXPECT_EQ(code_of([&] { (void)a.read("3"); }), ErrorCode::invalid_argument);
}

TEST(Array, RefusesWhatDoesNotFit) {
    Array a = Array::create(memory_store(), {.shape = {4, 4}, .chunks = {2, 2}, .dtype = "<i4"});
    std::vector<float> floats(16);
    std::vector<std::int32_t> ints(16);
    EXPECT_EQ(code_of([&] { a.write("", view(floats, {4, 4})); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { a.write("0:2", view(ints, {4, 4})); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { a.write(Region({2, 2}, {4, 4}), view(ints, {4, 4})); }), ErrorCode::out_of_bounds);
    EXPECT_EQ(code_of([&] { a.resize({4}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { a.resize({4, -1}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { a.resize({INT64_MAX, 4}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { a.append(view(ints, {2, 8})); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { a.append(view(ints, {4, 4}), 2); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { a.append(view(floats, {4, 4})); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { a.fill(Selection::all({4, 4}), 3.5); }), ErrorCode::invalid_argument);
    EXPECT_EQ(a.shape(), (Shape{4, 4}));
    EXPECT_EQ(a.stored_size().chunks, 0);
    for (const Shape& bad : {Shape{0, 2}, Shape{2}, Shape{-1, 2}}) {
        EXPECT_EQ(code_of([&] {
                      Array::create(memory_store(), {.shape = {4, 4}, .chunks = bad, .dtype = "<i4"});
                  }),
                  ErrorCode::invalid_argument);
    }
}

TEST(Array, ADamagedChunkIsNamed) {
    const auto store = memory_store();
    Array a = Array::create({store, "group/grid"}, {.shape = {4, 4}, .chunks = {2, 2}, .dtype = "<i4"});
    a.fill(Selection::all({4, 4}), 7);
    const std::string garbage = "not a blosc frame at all";
    store->put("group/grid/__zdata__/1.0.blosc", std::as_bytes(std::span(garbage)));
    std::string message;
    EXPECT_EQ(code_of([&] { (void)a.read(""); }, &message), ErrorCode::corrupt);
    EXPECT_THAT(message, HasSubstr("group/grid"));
    EXPECT_THAT(message, HasSubstr("(1, 0)"));
    EXPECT_THAT(message, HasSubstr("__zdata__/1.0.blosc"));
    EXPECT_THAT(message, HasSubstr("blosc"));
    // The others are as good as before, and a whole write mends the damaged one.
    EXPECT_EQ(a.read("3, 3").values<std::int32_t>()[0], 7);
    EXPECT_EQ(code_of([&] { a.write("3, 0", view(std::vector<std::int32_t>{5}, Shape{})); }), ErrorCode::corrupt);
    a.fill(Selection::parse("2:, :2", {4, 4}), 8);
    EXPECT_EQ(a.read("3, 0").values<std::int32_t>()[0], 8);
}

TEST(Array, AFileOfAbsurdSizeIsRefusedBeforeMemoryIsTakenForIt) {
    const fs::path dir = fs::path(testing::TempDir()) / "tessera_absurd.zarr";
    fs::remove_all(dir);
    Array a = Array::create(dir, {.shape = {8}, .chunks = {4}, .dtype = "<i4"});
    a.fill(Selection::all({8}), 1);
    fs::resize_file(dir / "__zdata__" / "0.blosc", std::uintmax_t{1} << 40);  // sparse: takes no space
    EXPECT_EQ(code_of([&] { (void)a.read("0:4"); }), ErrorCode::corrupt);
    EXPECT_EQ(code_of([&] { (void)a.read("0:2"); }), ErrorCode::corrupt);
    fs::resize_file(dir / "__zmeta__", std::uintmax_t{1} << 40);
    EXPECT_EQ(code_of([&] { (void)Array::open(dir); }), ErrorCode::corrupt);
    fs::remove_all(dir);
}

TEST(Array, StaleChunksOfALargerPastNeverShow) {
    const auto store = memory_store();
    Array a = Array::create(store, {.shape = {10}, .chunks = {4}, .dtype = "<i4", .fill_value = -1});
    a.fill(Selection::all({10}), 5);
    Buffer edge;
    ASSERT_TRUE(store->get("__zdata__/1.blosc", edge));
    // zarr 0.4 shrank by writing the shape alone.
    Buffer meta;
    ASSERT_TRUE(store->get("__zmeta__", meta));
    std::string text(reinterpret_cast<const char*>(meta.data()), meta.size());
    text.replace(text.find("10"), 2, "3");
    store->put("__zmeta__", std::as_bytes(std::span(text)));
    EXPECT_EQ(Array::open(store).stored_size().strays, 2);
    Array b = Array::open(store);
    b.resize({12});
    const NDArray all = b.read("");
    const auto values = all.values<std::int32_t>();
    EXPECT_THAT(std::vector<std::int32_t>(values.begin(), values.end()),
                testing::ElementsAre(5, 5, 5, -1, -1, -1, -1, -1, -1, -1, -1, -1));
}

// Where so many chunks come in that those that are stored are listed instead.
TEST(Array, GrowingByThousandsOfChunksShowsNothingButTheFill) {
    for (const Shape& shards : {Shape{}, Shape{6, 6}}) {
        Array a = Array::create(memory_store(), {.shape = {40, 40},
                                                 .chunks = {3, 3},
                                                 .dtype = "<i2",
                                                 .fill_value = -1,
                                                 .shards = shards,
                                                 .codec = "none",
                                                 .format = "v3"});
        a.fill(Selection::all({40, 40}), 5);
        a.resize({31, 31});  // fives stay in the last chunks, beyond the edge
        a.resize({400, 400});
        const NDArray all = a.read("");
        const auto values = all.values<std::int16_t>();
        EXPECT_EQ(std::ranges::count(values, 5), 31 * 31);
        EXPECT_EQ(std::ranges::count(values, -1), 400 * 400 - 31 * 31);
    }
}

TEST(Array, AnotherHandleSeesAResizeBeforeItWrites) {
    const auto store = memory_store();
    Array a = Array::create(store, {.shape = {4}, .chunks = {2}, .dtype = "<i4"});
    Array b = Array::open(store);
    b.resize({8});
    a.write("7", view(std::vector<std::int32_t>{9}, Shape{}));
    EXPECT_EQ(b.read("7").values<std::int32_t>()[0], 9);
    a.resize({2});
    EXPECT_EQ(code_of([&] { b.write("7", view(std::vector<std::int32_t>{9}, Shape{})); }), ErrorCode::out_of_bounds);
}

TEST(Array, ARefreshIsNotFooledByAShapeThatComesBack) {
    const auto store = memory_store();
    Array a = Array::create(store, {.shape = {10}, .chunks = {5}, .dtype = "<i4"});
    Array b = Array::open(store);
    a.resize({20});
    b.resize({10});
    a.refresh();
    EXPECT_EQ(a.shape(), Shape{10});
    EXPECT_EQ(a.append(view(std::vector<std::int32_t>{1})), 10);
}

TEST(Array, AFillThatDoesNotFitIsRefused) {
    for (const auto& [dtype, fill] :
         {std::pair<const char*, Value>{"u1", 300}, {"<i4", 3.5}, {"S2", "abcdef"}, {"<i4", "x"}}) {
        EXPECT_EQ(code_of([&, d = dtype, f = fill] {
                      Array::create(memory_store(), {.shape = {2}, .dtype = d, .fill_value = f});
                  }),
                  ErrorCode::invalid_argument)
            << dtype;
    }
}

TEST(ArrayThreads, WritersOfOneChunkLoseNothing) {
    // Eight threads, through two handles, each writing its own elements of shared chunks, one element at a time.
    const auto store = memory_store();
    Array a = Array::create(store, {.shape = {64}, .chunks = {16}, .dtype = "<i4"});
    Array b = Array::open(store);
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&, t] {
            Array& mine = t % 2 ? a : b;
            for (int i = t; i < 64; i += 8) {
                const std::int32_t v = i + 1;
                mine.write(Region({i}, {1}), view(std::span(&v, 1)), {.threads = 1});
            }
        });
    }
    for (auto& t : threads) t.join();
    const NDArray all = a.read("");
    for (int i = 0; i < 64; ++i) EXPECT_EQ(all.values<std::int32_t>()[static_cast<std::size_t>(i)], i + 1);
}

TEST(ArrayThreads, ReadersSeeEachChunkWhole) {
    const fs::path dir = fs::path(testing::TempDir()) / "tessera_readers.zarr";
    fs::remove_all(dir);
    Array a = Array::create(dir, {.shape = {4096}, .chunks = {4096}, .dtype = "<i4"});
    std::atomic<bool> done{false};
    std::thread writer([&] {
        for (int v = 1; v <= 200; ++v) a.fill(Selection::all({4096}), v, {.threads = 1});
        done = true;
    });
    int last = 0;
    while (!done) {
        const NDArray all = Array::open(dir).read("", {.threads = 1});
        const auto values = all.values<std::int32_t>();
        ASSERT_TRUE(std::all_of(values.begin(), values.end(), [&](std::int32_t v) { return v == values[0]; }));
        ASSERT_GE(values[0], last);
        last = values[0];
    }
    writer.join();
    fs::remove_all(dir);
}

TEST(ArrayThreads, ConcurrentAppendsAreSerialised) {
    const auto store = memory_store();
    Array::create(store, {.shape = {0}, .chunks = {7}, .dtype = "<i4"});
    std::vector<std::thread> threads;
    for (int t = 1; t <= 4; ++t) {
        threads.emplace_back([&, t] {
            Array mine = Array::open(store);
            for (int k = 0; k < 25; ++k) mine.append(view(std::vector<std::int32_t>(3, t)), 0, {.threads = 1});
        });
    }
    for (auto& t : threads) t.join();
    const Array a = Array::open(store);
    ASSERT_EQ(a.shape(), Shape{300});
    const NDArray all = a.read("");
    std::map<std::int32_t, int> seen;
    for (std::size_t i = 0; i < 300; i += 3) {
        ASSERT_EQ(all.values<std::int32_t>()[i], all.values<std::int32_t>()[i + 2]);
        ++seen[all.values<std::int32_t>()[i]];
    }
    for (int t = 1; t <= 4; ++t) EXPECT_EQ(seen[t], 25);
}

TEST(ArrayThreads, ParallelRegionsReadAndWrite) {
    Array a = Array::create(memory_store(), {.shape = {200, 300}, .chunks = {16, 32}, .dtype = "<f4"});
    std::vector<float> values(200 * 300);
    std::iota(values.begin(), values.end(), 0.0F);
    a.write("", view(values, {200, 300}), {.threads = 4});
    std::vector<float> out(values.size());
    a.read_into(Region::whole({200, 300}), view(out, {200, 300}), {.threads = 4});
    EXPECT_EQ(out, values);
    const NDArray stepped = a.read("::-3, 7::5", {.threads = 4});
    EXPECT_EQ(stepped.view().typed<float>()(1, 2), values[196 * 300 + 17]);
}

}  // namespace
}  // namespace tessera
