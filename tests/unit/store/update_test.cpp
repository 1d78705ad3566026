// Array::update: elements changed by what they are, chunk by chunk, each under its lock.
#include <gtest/gtest.h>
#include <tessera/tessera.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "../../expect_error.h"
#include "../../temporary_folder.h"

namespace tessera {
namespace {

Array counts(const std::shared_ptr<KeyValueStore>& store, bool sharded) {
    return Array::create({store, "counts"}, {.shape = {10, 13},
                                             .chunks = {3, 4},
                                             .dtype = "<i4",
                                             .shards = sharded ? Shape{6, 8} : Shape{},
                                             .format = sharded ? "v3" : "v2"});
}

void add_one(const Region& /*place*/, const MutableArrayView& elements) {
    std::int32_t* p = reinterpret_cast<std::int32_t*>(elements.data);
    for (std::int64_t i = 0; i < elements.count(); ++i) ++p[i];
}

std::vector<std::int32_t> all_of(const Array& array) {
    const NDArray read = array.read();
    const auto values = read.values<std::int32_t>();
    return {values.begin(), values.end()};
}

TEST(Update, ChangesWhatIsPickedAndNothingElse) {
    for (const bool sharded : {false, true}) {
        Array array = counts(memory_store(), sharded);
        std::vector<std::int32_t> expected(130);
        std::iota(expected.begin(), expected.end(), 1);
        array.write(Region::whole({10, 13}), view(expected, {10, 13}));
        const auto selection = Selection::parse("8:0:-3, 1::5", array.shape());
        array.update(selection, add_one);
        for (const std::int64_t row : {8, 5, 2}) {
            for (const std::int64_t column : {1, 6, 11}) ++expected[static_cast<std::size_t>(row * 13 + column)];
        }
        EXPECT_EQ(all_of(array), expected) << sharded;
    }
}

TEST(Update, SaysWhereAPartLies) {
    Array array = counts(memory_store(), false);
    const auto selection = Selection::parse("9:1:-2, 3", array.shape());  // rows 9 7 5 3
    std::atomic<int> parts = 0;
    array.update(selection, [&](const Region& place, const MutableArrayView& elements) {
        ++parts;
        EXPECT_EQ(place.extent, elements.shape);
        EXPECT_EQ(elements.shape[1], 1);
        for (std::int64_t i = 0; i < place.extent[0]; ++i) {
            reinterpret_cast<std::int32_t*>(elements.data)[i] = static_cast<std::int32_t>(place.start[0] + i + 1);
        }
    });
    EXPECT_EQ(parts, 3);  // chunks of rows 9, 6 to 8, 3 to 5
    const NDArray read = array.read(selection);
    EXPECT_EQ(std::vector<std::int32_t>(read.values<std::int32_t>().begin(), read.values<std::int32_t>().end()),
              (std::vector<std::int32_t>{1, 2, 3, 4}));
}

TEST(Update, WhatTheFunctionThrowsLeavesItsChunkAsItWas) {
    for (const bool sharded : {false, true}) {
        Array array = counts(memory_store(), sharded);
        array.update(Selection::all(array.shape()), add_one);
        expect_error(ErrorCode::unsupported, "no more", [&] {
            array.update(Selection::all(array.shape()),
                         [](const Region& place, const MutableArrayView& elements) {
                             add_one(place, elements);
                             if (place.start[0] > 0) throw unsupported("no more");
                         },
                         {.threads = 1});
        });
        const auto values = all_of(array);
        EXPECT_EQ(values[0], 2) << sharded;
        EXPECT_EQ(values.back(), 1) << sharded;
        for (const std::int32_t value : values) EXPECT_TRUE(value == 1 || value == 2);
    }
}

TEST(Update, ChunksThatBecomeTheFillGo) {
    Array array = counts(memory_store(), false);
    array.update(Selection::all(array.shape()), add_one);
    EXPECT_EQ(array.stored_size().chunks, 16);
    array.update(Selection::all(array.shape()), [](const Region&, const MutableArrayView& elements) {
        std::memset(elements.data, 0, static_cast<std::size_t>(elements.count()) * 4);
    });
    EXPECT_EQ(array.stored_size().chunks, 0);
    array.update(Selection::parse("3:3, :", array.shape()), add_one);  // nothing
    EXPECT_EQ(array.stored_size().chunks, 0);
}

TEST(Update, TextOfAnyLength) {
    Array array =
        Array::create({memory_store(), "words"}, {.shape = {4}, .chunks = {3}, .dtype = "string", .format = "v3"});
    const auto longer = [](const Region&, const MutableArrayView& elements) {
        auto* slot = reinterpret_cast<VariableSlot*>(elements.data);
        for (std::int64_t i = 0; i < elements.count(); ++i) {
            slot[i] = elements.arena->add(std::string(slot[i].view()) + "x");
        }
    };
    for (int i = 0; i < 3; ++i) array.update(Selection::parse("1:", array.shape()), longer);
    const NDArray read = array.read();
    const auto* slot = reinterpret_cast<const VariableSlot*>(read.bytes().data());
    EXPECT_EQ(slot[0].view(), "");
    EXPECT_EQ(slot[3].view(), "xxx");
}

/// What a function of update() may try with its own array, which would wait for itself.
TEST(Update, AFunctionThatMeetsItsOwnLockFails) {
    const TemporaryFolder folder;
    for (const bool in_memory : {true, false}) {
        const auto store =
            in_memory ? memory_store() : directory_store(folder.path(), {.durability = Durability::none});
        Array array = counts(store, false);
        Array again = Array::open({store, "counts"});
        Array other = Array::create({store, "other"}, {.shape = {10, 13}, .chunks = {10, 13}, .dtype = "<i4"});
        CachedArray cached(again);
        const NDArray ones = NDArray::copy_of(view(std::vector<std::int32_t>(130, 1), {10, 13}));
        const auto write = [&](const Region&, const MutableArrayView&) {
            again.write("0, 0", ones.view().part({{0, 0}, {1, 1}}));
        };
        const std::vector<Array::Change> functions{
            write,
            [&](const Region&, const MutableArrayView&) { array.fill("...", 1); },
            [&](const Region&, const MutableArrayView&) {
                again.resize({20, 20});
            },
            [&](const Region&, const MutableArrayView&) { again.append(ones); },
            [&](const Region&, const MutableArrayView&) { again.attributes().set("a", 1); },
            [&](const Region&, const MutableArrayView&) { again.update("...", add_one); },
            [&](const Region&, const MutableArrayView&) { Edit edit(again); },
            [&](const Region&, const MutableArrayView&) { undo(again); },
            [&](const Region&, const MutableArrayView&) {
                cached.write({{0, 0}, {10, 13}}, ones);
                cached.flush();
            },
            // By way of another array, in other threads too.
            [&](const Region&, const MutableArrayView&) { other.update("...", write); },
            [&](const Region&, const MutableArrayView&) {
                parallel_for(8, {}, [&](std::int64_t) { again.write("5", ones.view().part({{0, 0}, {1, 13}})); });
            },
        };
        for (std::size_t i = 0; i < functions.size(); ++i) {
            SCOPED_TRACE(i);
            for (const int threads : {1, 0}) {
                expect_error(ErrorCode::invalid_argument, "update()",
                             [&] { array.update("...", functions[i], {.threads = threads}); });
            }
        }
        // Nothing is held afterwards, and other arrays may be written to.
        array.update("...", [&](const Region& place, const MutableArrayView& elements) {
            add_one(place, elements);
            other.write("...", ones);
        });
        EXPECT_EQ(all_of(array), std::vector<std::int32_t>(130, 1));
        cached.flush();
        array.resize({10, 13});
    }
}

TEST(Update, AStopEndsWaits) {
    const TemporaryFolder folder;
    for (const bool in_memory : {true, false}) {
        const auto store =
            in_memory ? memory_store() : directory_store(folder.path(), {.durability = Durability::none});
        Array array = counts(store, false);
        CachedArray cached(Array::open({store, "counts"}));
        std::stop_source stop;
        const NDArray one = NDArray::copy_of(view(std::vector<std::int32_t>{1}, {1, 1}));
        cached.write({{0, 0}, {1, 1}}, one);
        // Each waits for a lock that this thread holds: of a chunk, or of the shape.
        const auto expect_end = [&](const std::function<void(Array & again)>& work) {
            std::thread([&] {
                Array again = Array::open({store, "counts"});
                const StopScope scope(stop.get_token());
                expect_error(ErrorCode::cancelled, "while waiting", [&] { work(again); });
            }).join();
        };
        array.update("0:1, 0:1", [&](const Region&, const MutableArrayView&) {
            stop.request_stop();
            std::thread([&] {
                const IoOptions io{.stop = stop.get_token()};
                expect_error(ErrorCode::cancelled, "while waiting", [&] {
                    Array::open({store, "counts"}).resize({5, 5}, io);
                });
            }).join();
            expect_end([](Array& again) { again.update("0:1, 0:1", add_one); });
            expect_end([&](Array& /*again*/) { cached.flush(); });
            expect_end([](Array& again) { again.attributes().set("a", 1); });
            expect_end([&](Array& again) {
                parallel_for(4, {}, [&](std::int64_t) { again.write({{0, 0}, {1, 1}}, one); });
            });
        });
        const Edit edit(array);
        expect_end([&](Array& again) { again.write({{0, 0}, {1, 1}}, one); });
    }
}

TEST(Update, ThreadsLoseNoIncrement) {
    for (const bool sharded : {false, true}) {
        const auto store = memory_store();
        counts(store, sharded);
        constexpr int threads = 8;
        constexpr int times = 25;
        std::vector<std::thread> all;
        for (int t = 0; t < threads; ++t) {
            all.emplace_back([&] {
                Array own = Array::open({store, "counts"});
                for (int i = 0; i < times; ++i) own.update(Selection::parse("1:9, 2:11", own.shape()), add_one);
            });
        }
        for (std::thread& thread : all) thread.join();
        const NDArray read = Array::open({store, "counts"}).read("1:9, 2:11");
        for (const std::int32_t value : read.values<std::int32_t>()) ASSERT_EQ(value, threads * times) << sharded;
    }
}

}  // namespace
}  // namespace tessera
