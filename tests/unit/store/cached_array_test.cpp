#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <tessera/cached_array.h>
#include <tessera/copy_elements.h>
#include <tessera/snapshot.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>
#include <random>
#include <thread>

#include "expect_error.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const IoOptions one_thread{.threads = 1};
const StoreOptions fast{.durability = Durability::none};

class CachedArrays : public testing::Test {
protected:
    [[nodiscard]] Array open() const { return Array::open(folder / "a", fast); }

    TemporaryFolder folder;
};

ArrayOptions options(const std::string& format, const Shape& shape, const Shape& chunks, const Shape& shards = {}) {
    return {.shape = shape,
            .chunks = chunks,
            .dtype = DType::of<std::int32_t>(),
            .fill_value = -1,
            .shards = shards,
            .format = format};
}

struct Layout {
    const char* name;
    const char* format;
    Shape shards;
    std::uint64_t budget;  ///< an entry takes 5 * 7 * 5 bytes
};

class CachedArraysOf : public CachedArrays, public testing::WithParamInterface<Layout> {};

// Three writers, two of them with caches of their own, each of which owns every third column, so that they share all
// chunks; whatever each reads of its own columns must be what it wrote, and in the end all of it must be there.
TEST_P(CachedArraysOf, writers_of_the_same_chunks_lose_nothing) {
    const Layout& layout = GetParam();
    const Shape shape{33, 41};
    (void)Array::create(folder / "a", options(layout.format, shape, {5, 7}, layout.shards), fast);
    NDArray model(DType::of<std::int32_t>(), shape);
    std::ranges::fill(model.values<std::int32_t>(), -1);
    std::mt19937 random(7);
    const auto below = [&](std::int64_t n) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(n));
    };
    {
        Array plain = open();
        CachedArray first(open(), layout.budget);
        CachedArray second(open(), layout.budget);
        const std::vector<ArraySink*> sinks{&plain, &first, &second};
        const std::vector<const ArraySource*> sources{&plain, &first, &second};
        for (std::int32_t step = 0; step < 1000; ++step) {
            const std::int64_t who = below(3);
            const std::int64_t column = below(13) * 3 + who;
            const std::int64_t row = below(33);
            const Region region{{row, column}, {1 + below(33 - row), 1}};
            const MutableArrayView part = model.view().part(region);
            if (below(3) == 0) {
                NDArray got(model.dtype(), region.extent);
                sources[static_cast<std::size_t>(who)]->read_into(region, got.view(), one_thread);
                ASSERT_TRUE(elements_equal(got.view(), part)) << "step " << step << ", writer " << who;
            } else {
                fill_elements(part, reinterpret_cast<const std::byte*>(&step));
                sinks[static_cast<std::size_t>(who)]->write(region, part, one_thread);
            }
            if (below(200) == 0) sinks[static_cast<std::size_t>(who)]->finish();
        }
    }
    EXPECT_TRUE(elements_equal(open().read().view(), model.view()));
}
INSTANTIATE_TEST_SUITE_P(Layouts, CachedArraysOf,
                         testing::Values(Layout{"zmeta", "zmeta", {}, 1 << 20}, Layout{"v2_small", "v2", {}, 2000},
                                         Layout{"v3_one_chunk", "v3", {}, 5 * 7 * 5},
                                         Layout{"shards", "v3", {10, 21}, 1 << 20},
                                         Layout{"shards_small", "v3", {15, 14}, 1000}),
                         [](const auto& layout) { return std::string(layout.param.name); });

TEST_F(CachedArrays, processes_that_share_chunks_lose_nothing) {
    (void)Array::create(folder / "a", options("v3", {64, 64}, {8, 8}, {32, 32}), fast);
    constexpr int writers = 4;
    std::vector<pid_t> children;
    for (int who = 0; who < writers; ++who) {
        children.push_back(::fork());
        if (children.back() != 0) continue;
        std::mt19937 random(static_cast<unsigned>(who));
        {
            CachedArray cached(open(), 4000);
            for (int step = 0; step < 300; ++step) {
                const auto n = static_cast<std::int64_t>(random() % 1024);
                const Region element{{n / 16, n % 16 * 4 + who}, {1, 1}};
                NDArray value = cached.read(element, one_thread);
                ++value.values<std::int32_t>()[0];
                cached.write(element, value.view(), one_thread);
                if (step % 50 == 0) cached.flush(one_thread);
            }
            cached.flush(one_thread);
        }
        ::_exit(0);
    }
    for (const pid_t child : children) {
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    std::int64_t sum = 0;
    const NDArray all = open().read();
    for (const std::int32_t v : all.values<std::int32_t>()) sum += v + 1;
    EXPECT_EQ(sum, writers * 300);
}

TEST_F(CachedArrays, threads_take_turns) {
    (void)Array::create(folder / "a", options("v2", {40, 40}, {10, 10}), fast);
    CachedArray cached(open(), 2000);
    std::vector<std::thread> threads;
    for (std::int64_t who = 0; who < 4; ++who) {
        threads.emplace_back([&cached, who] {
            for (std::int32_t step = 0; step < 500; ++step) {
                const Region element{{step % 40, step / 40 % 10 * 4 + who}, {1, 1}};
                cached.write(element, view(std::vector<std::int32_t>{step}, {1, 1}), one_thread);
                EXPECT_EQ(cached.read(element, one_thread).values<std::int32_t>()[0], step);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    cached.flush();
    const NDArray all = open().read();
    for (std::int32_t step = 400; step < 500; ++step) {  // the last round
        for (std::int64_t who = 0; who < 4; ++who) {
            const std::int64_t at = step % 40 * 40 + step / 40 % 10 * 4 + who;
            EXPECT_EQ(all.values<std::int32_t>()[static_cast<std::size_t>(at)], step);
        }
    }
}

NDArray filled(const Shape& shape, std::int32_t value) {
    NDArray array(DType::of<std::int32_t>(), shape);
    std::ranges::fill(array.values<std::int32_t>(), value);
    return array;
}

TEST_F(CachedArrays, nothing_is_stored_before_it_is_flushed) {
    (void)Array::create(folder / "a", options("v2", {20}, {10}), fast);
    const auto store = directory_store(folder / "a");
    CachedArray cached(open());
    for (std::int64_t i = 0; i < 10; ++i) cached.write({{i}, {1}}, filled({1}, 5).view());
    EXPECT_FALSE(store->stamp("0")) << "all in memory";
    cached.flush();
    const auto stamp = store->stamp("0");
    EXPECT_TRUE(stamp);
    cached.flush();
    EXPECT_EQ(store->stamp("0"), stamp) << "what was not touched is not written again";
    EXPECT_FALSE(store->stamp("1"));
    cached.write({{0}, {10}}, filled({10}, -1).view());
    cached.flush();
    EXPECT_FALSE(store->stamp("0")) << "a chunk that equals the fill is not stored";
}

TEST_F(CachedArrays, what_others_write_shows) {
    Array other = Array::create(folder / "a", options("v2", {20}, {10}), fast);
    CachedArray cached(open());
    EXPECT_EQ(cached.read({{3}, {1}}).values<std::int32_t>()[0], -1);
    for (std::int32_t value = 0; value < 200; ++value) {  // quicker than a file system's clock
        other.write({{3}, {1}}, filled({1}, value).view());
        other.write({{4}, {1}}, filled({1}, value).view());
        cached.write({{5}, {1}}, filled({1}, value).view());
        ASSERT_EQ(cached.read({{3}, {1}}).values<std::int32_t>()[0], value);
        ASSERT_EQ(cached.read({{5}, {1}}).values<std::int32_t>()[0], value);
    }
    cached.flush();
    EXPECT_EQ(other.read("3").values<std::int32_t>()[0], 199);
    EXPECT_EQ(other.read("5").values<std::int32_t>()[0], 199);
}

TEST_F(CachedArrays, follow_a_shape_that_others_change) {
    Array other = Array::create(folder / "a", options("v3", {25}, {10}), fast);
    CachedArray cached(open());
    cached.write({{0}, {25}}, filled({25}, 1).view());
    other.resize({40});
    other.write({{25}, {5}}, filled({5}, 2).view());
    cached.flush();
    EXPECT_EQ(cached.info().shape, Shape{40});
    const NDArray all = other.read();
    EXPECT_EQ(all.values<std::int32_t>()[24], 1);
    EXPECT_EQ(all.values<std::int32_t>()[25], 2) << "what was beyond the edge when the chunk was written";
    EXPECT_EQ(all.values<std::int32_t>()[30], -1);

    cached.write({{0}, {40}}, filled({40}, 3).view());
    other.resize({12});
    cached.flush();
    EXPECT_EQ(cached.info().shape, Shape{12});
    other.resize({40});
    EXPECT_EQ(other.read("11").values<std::int32_t>()[0], 3);
    EXPECT_EQ(other.read("12").values<std::int32_t>()[0], -1);
    EXPECT_EQ(other.read("39").values<std::int32_t>()[0], -1);
    EXPECT_EQ(cached.read({{39}, {1}}).values<std::int32_t>()[0], -1) << "an access beyond the old shape looks again";
    expect_error(ErrorCode::out_of_bounds, "a: ", [&] { (void)cached.read({{40}, {1}}); });
}

TEST_F(CachedArrays, regions_larger_than_the_budget_are_done_in_parts) {
    (void)Array::create(folder / "a", options("v3", {100, 100}, {10, 10}, {50, 50}), fast);
    CachedArray cached(open(), 4000);
    NDArray values(DType::of<std::int32_t>(), {100, 100});
    std::int32_t n = 0;
    for (std::int32_t& v : values.values<std::int32_t>()) v = n++;
    cached.write(Region::whole({100, 100}), values.view());
    EXPECT_TRUE(elements_equal(cached.read(Region::whole({100, 100})).view(), values.view()));
    cached.flush();
    EXPECT_TRUE(elements_equal(open().read().view(), values.view()));
    expect_error(ErrorCode::budget, "413 bytes", [&] { CachedArray(open(), 412); });
}

TEST_F(CachedArrays, text_that_is_replaced_again_and_again_takes_no_more_room) {
    (void)Array::create(folder / "a", {.shape = {8}, .chunks = {4}, .dtype = DType::variable_text(), .format = "v3"},
                        fast);
    CachedArray cached(open());
    const std::string text(10'000, 'x');
    for (int i = 0; i < 500; ++i) {
        const std::string value = text + std::to_string(i);
        const VariableSlot slot{value.data(), value.size()};
        cached.write({{1}, {1}}, view_bytes(reinterpret_cast<const std::byte*>(&slot), DType::variable_text(), {1}));
    }
    cached.flush();
    const NDArray all = open().read();
    const auto* slots = reinterpret_cast<const VariableSlot*>(all.bytes().data());
    EXPECT_EQ(slots[1].view(), text + "499");
    EXPECT_EQ(slots[0].view(), "");
}

TEST(CachedArraysOfText, chunks_at_the_edge_of_an_array_of_text_or_bytes) {
    for (const DType& dtype : {DType::variable_text(), DType::variable_bytes()}) {
        Array array = Array::create(memory_store(), {.shape = {6}, .chunks = {4}, .dtype = dtype, .format = "v3"});
        const std::string text = "z";
        const VariableSlot slot{text.data(), text.size()};
        const auto element = view_bytes(reinterpret_cast<const std::byte*>(&slot), dtype, {1});
        array.write({{5}, {1}}, element);
        {
            CachedArray cached(array);
            cached.write({{4}, {1}}, element);
            cached.flush();
            cached.write({{0}, {6}}, array.read().view());
        }
        const NDArray all = array.read();
        const auto* slots = reinterpret_cast<const VariableSlot*>(all.bytes().data());
        EXPECT_EQ(slots[3].view(), "");
        EXPECT_EQ(slots[4].view(), "z");
        EXPECT_EQ(slots[5].view(), "z");
    }
}

TEST_F(CachedArrays, a_failed_flush_is_an_error_and_keeps_what_was_written) {
    (void)Array::create(folder / "a", options("v2", {20}, {10}), fast);
    testing::internal::CaptureStderr();
    {
        CachedArray cached(open());
        cached.write({{3}, {1}}, filled({1}, 5).view());
        fs::rename(folder / "a/.zarray", folder / "kept");
        expect_error(ErrorCode::not_found, "gone", [&] { cached.flush(); });
        fs::rename(folder / "kept", folder / "a/.zarray");
        cached.flush();
        EXPECT_EQ(open().read("3").values<std::int32_t>()[0], 5);
        cached.write({{4}, {1}}, filled({1}, 6).view());
        fs::remove_all(folder / "a");
    }
    EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("lost: "));
}

TEST_F(CachedArrays, of_an_array_that_was_put_back_say_so) {
    Array array = Array::create(folder / "a", options("v2", {20}, {10}), fast);
    array.write(Region::whole({20}), filled({20}, 1).view());
    (void)create_snapshot(folder / "a", "one", fast);
    testing::internal::CaptureStderr();
    {
        CachedArray cached(open());
        EXPECT_EQ(cached.read({{3}, {1}}).values<std::int32_t>()[0], 1);
        cached.write({{3}, {1}}, filled({1}, 2).view());
        restore_snapshot(folder / "a", "one", fast);
        expect_error(ErrorCode::not_found, "", [&] { cached.flush(); });
        expect_error(ErrorCode::not_found, "gone", [&] { (void)cached.read({{4}, {1}}); });
    }
    EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("lost: "));
}

TEST_F(CachedArrays, arrays_without_dimensions_and_other_byte_orders) {
    (void)Array::create(folder / "a", {.shape = {}, .dtype = DType::parse(">i4"), .format = "v2"}, fast);
    CachedArray cached(open());
    cached.write({}, filled({}, 77).view());
    cached.flush();
    EXPECT_EQ(open().read().bytes()[3], std::byte{77});
    expect_error(ErrorCode::invalid_argument, "expected >i4", [&] {
        const double value = 1;
        cached.write({}, view_bytes(reinterpret_cast<const std::byte*>(&value), DType::of<double>(), {}));
    });
}

TEST_F(CachedArrays, take_selections_as_text_and_in_steps) {
    (void)Array::create(folder / "a", options("v3", {23, 17}, {5, 4}, {10, 8}), fast);
    Array plain = Array::create({memory_store(), "b"}, options("v2", {23, 17}, {5, 4}));
    std::mt19937 random(11);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    const auto slice = [&](int n) {
        const int step = (below(4) + 1) * (below(2) == 0 ? 1 : -1);
        if (below(5) == 0) return fmt::format("{}", below(n));
        return fmt::format("{}::{}", below(n), step);
    };
    CachedArray cached(open(), 700);
    for (int step = 0; step < 200; ++step) {
        const std::string text = fmt::format("{}, {}", slice(23), slice(17));
        if (below(2) == 0) {
            cached.write(text, step);
            plain.write(text, step);
        } else {
            std::vector<std::int32_t> values(static_cast<std::size_t>(plain.read(text).count()));
            std::iota(values.begin(), values.end(), step * 1000);
            cached.write(text, values);
            plain.write(text, values);
        }
        const std::string other = fmt::format("{}, {}", slice(23), slice(17));
        ASSERT_EQ(cached.read(other).to_string(), plain.read(other).to_string()) << other << " after " << text;
        if (below(20) == 0) cached.flush();
    }
    EXPECT_TRUE(std::ranges::equal(cached.read().values<std::int32_t>(), plain.read().values<std::int32_t>()));
    cached.flush();
    EXPECT_TRUE(std::ranges::equal(open().read().values<std::int32_t>(), plain.read().values<std::int32_t>()));
    expect_error(ErrorCode::out_of_bounds, "", [&] { cached.write("23", 1); });
    expect_error(ErrorCode::invalid_argument, "shape", [&] { cached.write("0, :3", std::vector<std::int32_t>{1}); });
}

}  // namespace
}  // namespace tessera
