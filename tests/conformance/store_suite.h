// What every KeyValueStore must do, as plain functions over a factory. A new store runs them all:
//
//   TESSERA_STORE_SUITE(ZipStore, make_zip_store())
//
// defines one test for each. The factory gives a fresh, empty, writable store each time.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/error.h>
#include <tessera/key_value_store.h>

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "expect_error.h"

namespace tessera::store_suite {

using Store = std::shared_ptr<KeyValueStore>;
using testing::ElementsAre;
using testing::IsEmpty;

inline void put(KeyValueStore& store, std::string_view key, std::string_view text) {
    store.put(key, std::as_bytes(std::span(text)));
}

inline std::string text_of(ByteSpan bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The value of a key, or "(absent)".
inline std::string get(const ReadableStore& store, std::string_view key) {
    Buffer out;
    return store.get(key, out) ? text_of(out) : "(absent)";
}

inline void absent_keys_are_no_error(const Store& store) {
    EXPECT_EQ(store->open("a"), nullptr);
    EXPECT_EQ(store->open("a/b/c"), nullptr);
    EXPECT_EQ(get(*store, "a/b/c"), "(absent)");
    EXPECT_FALSE(store->erase("a/b/c"));
    EXPECT_THAT(store->list("").keys, IsEmpty());
    EXPECT_THAT(store->list("a/b").prefixes, IsEmpty());
    store->erase_below("a/b");
    store->erase_below("");
    store->for_each("a", [](std::string_view name, const auto&) { ADD_FAILURE() << name; });
}

inline void values_are_kept(const Store& store) {
    put(*store, "a", "one");
    put(*store, "b/c/d", "two");
    put(*store, "b/empty", "");
    EXPECT_EQ(get(*store, "a"), "one");
    EXPECT_EQ(get(*store, "b/c/d"), "two");
    EXPECT_EQ(get(*store, "b/empty"), "");
    EXPECT_EQ(get(*store, "a/b"), "(absent)") << "below a value";
    EXPECT_EQ(get(*store, "b/c"), "(absent)") << "a prefix";
    EXPECT_EQ(store->open("b/c"), nullptr) << "a prefix";
    EXPECT_FALSE(store->erase("b/c")) << "a prefix";
    EXPECT_EQ(get(*store, "b/c/d"), "two");
}

inline void memory_of_a_buffer_is_reused(const Store& store) {
    put(*store, "short", "abc");
    put(*store, "exact", std::string(1000, 'x'));
    put(*store, "long", std::string(200'000, 'y'));
    Buffer out;
    for (const char* key : {"short", "exact", "long", "short", "exact", "exact"}) {
        ASSERT_TRUE(store->get(key, out));
        const auto source = store->open(key);
        ASSERT_NE(source, nullptr);
        EXPECT_EQ(text_of(out), text_of(read_all(*source))) << key;
    }
}

inline void get_keeps_to_its_limit(const Store& store) {
    put(*store, "folder/k", "0123456789");
    Buffer room(1000);  // memory that is there must not make a difference
    Buffer none;
    for (Buffer* out : {&none, &room}) {
        for (const std::uint64_t limit : {0, 1, 9}) {
            expect_error(ErrorCode::corrupt, "has 10 bytes, expected at most",
                         [&] { (void)store->get("folder/k", *out, limit); });
        }
    }
    ASSERT_TRUE(store->get("folder/k", room, 10));
    EXPECT_EQ(text_of(room), "0123456789");
    EXPECT_FALSE(store->get("absent", room, 0));
}

inline void put_replaces(const Store& store) {
    put(*store, "k", "a long first value");
    put(*store, "k", "short");
    EXPECT_EQ(get(*store, "k"), "short");
    EXPECT_THAT(store->list("").keys, ElementsAre("k"));
}

inline void put_new_keeps_what_is_there(const Store& store) {
    const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
    EXPECT_TRUE(store->put_new("folder/k", bytes("first")));
    EXPECT_FALSE(store->put_new("folder/k", bytes("second")));
    EXPECT_EQ(get(*store, "folder/k"), "first");
    EXPECT_THAT(store->list("folder").keys, ElementsAre("k"));
}

inline void an_open_value_is_pinned(const Store& store) {
    put(*store, "folder/k", "0123456789");
    const auto source = store->open("folder/k");
    ASSERT_NE(source, nullptr);
    EXPECT_EQ(source->size(), 10U);
    EXPECT_NE(source->name().find("folder/k"), std::string::npos) << source->name();
    put(*store, "folder/k", "another");
    store->erase("folder/k");
    EXPECT_EQ(text_of(read_range(*source, 3, 4)), "3456");
    EXPECT_EQ(text_of(read_all(*source)), "0123456789");
    Buffer out(4);
    expect_error(ErrorCode::corrupt, "folder/k", [&] { source->read(7, out.span()); });
    expect_error(ErrorCode::corrupt, "folder/k", [&] { source->read(UINT64_MAX, out.span()); });
}

inline void erase_removes_one_value(const Store& store) {
    put(*store, "a/b", "1");
    put(*store, "a/c", "2");
    EXPECT_TRUE(store->erase("a/b"));
    EXPECT_FALSE(store->erase("a/b"));
    EXPECT_EQ(get(*store, "a/b"), "(absent)");
    EXPECT_EQ(get(*store, "a/c"), "2");
}

inline void erase_below_removes_a_prefix(const Store& store) {
    for (const char* key : {"a/b", "a/c/d", "a/c/e/f", "ab/c", "a.b", "z"}) put(*store, key, "v");
    store->erase_below("a");
    EXPECT_EQ(get(*store, "a/c/e/f"), "(absent)");
    EXPECT_THAT(store->list("").keys, ElementsAre("a.b", "z"));
    EXPECT_THAT(store->list("").prefixes, ElementsAre("ab"));
    store->erase_below("z");
    EXPECT_EQ(get(*store, "z"), "v") << "a value is not below itself";
    store->erase_below("");
    EXPECT_THAT(store->list("").keys, IsEmpty());
    EXPECT_THAT(store->list("").prefixes, IsEmpty());
    put(*store, "a/b", "again");
    EXPECT_EQ(get(*store, "a/b"), "again");
}

inline void list_shows_one_level_sorted(const Store& store) {
    for (const char* key : {"g/10", "g/2", "g/b/x", "g/a/y/z", "g/a/w", "h", "ga/1"}) put(*store, key, "v");
    EXPECT_THAT(store->list("g").keys, ElementsAre("10", "2"));
    EXPECT_THAT(store->list("g").prefixes, ElementsAre("a", "b"));
    EXPECT_THAT(store->list("").keys, ElementsAre("h"));
    EXPECT_THAT(store->list("").prefixes, ElementsAre("g", "ga"));
    EXPECT_THAT(store->list("h").keys, IsEmpty());
}

inline void for_each_gives_sizes(const Store& store) {
    put(*store, "g/a", "12345");
    put(*store, "g/b", "");
    put(*store, "g/c/d", "123");
    std::map<std::string, std::uint64_t> found;
    store->for_each("g", [&](std::string_view name, const KeyValueStore::ValueSize& size) {
        EXPECT_TRUE(found.emplace(name, size()).second);
        EXPECT_NE(get(*store, "g/a"), "(absent)") << "the store can be used meanwhile";
    });
    EXPECT_EQ(found, (std::map<std::string, std::uint64_t>{{"a", 5}, {"b", 0}}));
}

inline void bad_keys_are_refused(const Store& store) {
    using namespace std::string_view_literals;
    for (const std::string_view key :
         {""sv, "/"sv, "/a"sv, "a/"sv, "a//b"sv, "."sv, ".."sv, "a/.."sv, "../a"sv, "a/./b"sv, "a\0b"sv}) {
        const auto refused = [&](auto&& body) { expect_error(ErrorCode::invalid_argument, "not a key", body); };
        Buffer out;
        refused([&] { (void)store->open(key); });
        refused([&] { (void)store->get(key, out); });
        refused([&] { put(*store, key, "v"); });
        refused([&] { store->erase(key); });
        if (key.empty()) continue;  // as a prefix it is the root
        refused([&] { store->erase_below(key); });
        refused([&] { (void)store->list(key); });
        refused([&] { store->for_each(key, [](std::string_view, const auto&) {}); });
        refused([&] { (void)store->lock(key, 0, LockMode::exclusive); });
    }
    for (const char* key : {"...", "a/..b", ".a", "a b", "é☃", "a\nb", "a:b*?"}) {
        put(*store, key, key);
        EXPECT_EQ(get(*store, key), key);
    }
}

inline void many_keys(const Store& store) {
    constexpr int count = 2000;
    for (int i = 0; i < count; ++i) put(*store, fmt::format("data/{}.{}", i % 7, i), fmt::format("{}", i));
    const Listing listing = store->list("data");
    EXPECT_EQ(listing.keys.size(), std::size_t{count});
    EXPECT_TRUE(std::ranges::is_sorted(listing.keys));
    for (int i = 0; i < count; i += 97) {
        EXPECT_EQ(get(*store, fmt::format("data/{}.{}", i % 7, i)), fmt::format("{}", i));
    }
}

/// A reader sees the old value or the new one, whole, and nothing else, while writers replace it.
inline void readers_see_whole_values(const Store& store) {
    const auto value = [](int n) { return std::string(static_cast<std::size_t>(20'000 + n * 1000), char('a' + n)); };
    put(*store, "g/k", value(0));
    std::atomic<bool> done = false;
    std::atomic<int> reads = 0;
    std::vector<std::thread> threads;
    for (int w = 0; w < 2; ++w) {
        threads.emplace_back([&, w] {
            for (int i = 0; i < 300 || (reads < 50 && i < 100'000); ++i) put(*store, "g/k", value((i * 2 + w) % 20));
            done = true;
        });
    }
    for (int r = 0; r < 2; ++r) {
        threads.emplace_back([&, r] {
            Buffer out;
            while (!done) {
                std::string seen;
                if (r == 0) {
                    ASSERT_TRUE(store->get("g/k", out));
                    seen = text_of(out);
                } else {
                    const auto source = store->open("g/k");
                    ASSERT_NE(source, nullptr);
                    seen = text_of(read_all(*source));
                }
                ASSERT_FALSE(seen.empty());
                ASSERT_EQ(seen, value(seen[0] - 'a'));
                ASSERT_THAT(store->list("g").keys, testing::Each("k")) << "temporary files do not show";
                ++reads;
            }
        });
    }
    for (std::thread& t : threads) t.join();
}

/// Adds to a counter, not atomic, under a lock of the store: lost additions mean that the lock did not exclude.
inline void chunk_locks_exclude(const Store& store) {
    int counter = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 2000; ++i) {
                const StoreLock lock = store->lock("array", 5, LockMode::exclusive);
                const int seen = counter;
                if (i % 100 == 0) std::this_thread::yield();
                counter = seen + 1;
            }
        });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(counter, 8000);
}

/// Takes and releases a lock in another thread; a test that hangs here was not given it.
inline void lock_elsewhere(const PlaceRef& place, std::uint64_t slot, LockMode mode) {
    std::thread([&] { (void)place.store.lock(place.prefix, slot, mode); }).join();
}

inline void shape_locks_share(const Store& store) {
    {
        StoreLock shared = store->lock("a", 0, LockMode::shared);
        lock_elsewhere({*store, "a"}, 0, LockMode::shared);
        lock_elsewhere({*store, "a"}, 1, LockMode::exclusive);  // a chunk is not the shape
        lock_elsewhere({*store, "b"}, 0, LockMode::exclusive);  // another array
        lock_elsewhere(*store, 0, LockMode::exclusive);         // the array above
    }
    // An exclusive one waits until the shared one is gone, and keeps others out until it is.
    std::atomic<int> step = 0;
    StoreLock shared = store->lock("a", 0, LockMode::shared);
    std::thread writer([&] {
        StoreLock exclusive = store->lock("a", 0, LockMode::exclusive);
        EXPECT_EQ(step.load(), 1);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        step = 2;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    step = 1;
    shared.unlock();
    writer.join();
    const StoreLock again = store->lock("a", 0, LockMode::shared);
    EXPECT_EQ(step.load(), 2);
}

}  // namespace tessera::store_suite

#define TESSERA_STORE_TEST(suite, test, make) \
    TEST(suite, test) {                       \
        ::tessera::store_suite::test(make);   \
    }

#define TESSERA_STORE_SUITE(suite, make)                          \
    TESSERA_STORE_TEST(suite, absent_keys_are_no_error, make)     \
    TESSERA_STORE_TEST(suite, values_are_kept, make)              \
    TESSERA_STORE_TEST(suite, memory_of_a_buffer_is_reused, make) \
    TESSERA_STORE_TEST(suite, get_keeps_to_its_limit, make)       \
    TESSERA_STORE_TEST(suite, put_replaces, make)                 \
    TESSERA_STORE_TEST(suite, put_new_keeps_what_is_there, make)  \
    TESSERA_STORE_TEST(suite, an_open_value_is_pinned, make)      \
    TESSERA_STORE_TEST(suite, erase_removes_one_value, make)      \
    TESSERA_STORE_TEST(suite, erase_below_removes_a_prefix, make) \
    TESSERA_STORE_TEST(suite, list_shows_one_level_sorted, make)  \
    TESSERA_STORE_TEST(suite, for_each_gives_sizes, make)         \
    TESSERA_STORE_TEST(suite, bad_keys_are_refused, make)         \
    TESSERA_STORE_TEST(suite, many_keys, make)                    \
    TESSERA_STORE_TEST(suite, readers_see_whole_values, make)     \
    TESSERA_STORE_TEST(suite, chunk_locks_exclude, make)          \
    TESSERA_STORE_TEST(suite, shape_locks_share, make)
