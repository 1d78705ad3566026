#include <tessera/store_kind.h>
#include <tessera/tessera.h>

#include <map>
#include <mutex>

#include "conformance/store_suite.h"

namespace tessera {
namespace {

/// The five functions that a program writes, over a map.
class MapStore final : public SimpleStore {
public:
    explicit MapStore(std::string name, const StoreOptions& options = {}) : SimpleStore(std::move(name), options) {}

    std::map<std::string, Buffer, std::less<>> values;

protected:
    [[nodiscard]] std::optional<Buffer> load(std::string_view key) const override {
        const std::lock_guard guard(mutex_);
        const auto found = values.find(key);
        return found == values.end() ? std::nullopt : std::optional(Buffer(found->second.span()));
    }
    void store(std::string_view key, ByteSpan value) override {
        const std::lock_guard guard(mutex_);
        values.insert_or_assign(std::string(key), Buffer(value));
    }
    bool remove(std::string_view key) override {
        const std::lock_guard guard(mutex_);
        return values.erase(std::string(key)) > 0;
    }
    [[nodiscard]] std::vector<std::string> keys(std::string_view prefix) const override {
        const std::lock_guard guard(mutex_);
        std::vector<std::string> names;
        for (const auto& [key, value] : values) {
            if (prefix.empty() || key.starts_with(fmt::format("{}/", prefix))) names.push_back(key);
        }
        return names;
    }

private:
    mutable std::mutex mutex_;
};

std::shared_ptr<KeyValueStore> fresh_map_store() {
    static int count = 0;
    return std::make_shared<MapStore>(fmt::format("map:{}", ++count));
}

TESSERA_STORE_SUITE(SimpleStore, fresh_map_store())

TEST(SimpleStore, may_be_read_only) {
    MapStore store("map:constant", {.read_only = true});
    expect_error(ErrorCode::invalid_argument, "map:constant/a/b: opened for reading only",
                 [&] { store_suite::put(store, "a/b", "x"); });
    expect_error(ErrorCode::invalid_argument, "reading only", [&] { (void)store.create("a"); });
    expect_error(ErrorCode::invalid_argument, "reading only", [&] { store.erase("a"); });
}

TEST(SimpleStore, loses_nothing_that_threads_write_into_one_chunk) {
    const auto store = fresh_map_store();
    (void)Array::create({store, "a"}, {.shape = {64}, .chunks = {64}, .dtype = "<i4"});
    std::vector<std::jthread> threads;
    for (std::int64_t first = 0; first < 2; ++first) {
        threads.emplace_back([&store, first] {
            Array array = Array::open({store, "a"});
            for (std::int64_t i = first; i < 64; i += 2) array.write({{i}, {1}}, std::int32_t(i + 1));
        });
    }
    threads.clear();
    const NDArray values = Array::open({store, "a"}).read();
    for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(values.values<std::int32_t>()[i], std::int32_t(i) + 1);
}

TEST(StoreKinds, paths_are_split_at_the_first_slash) {
    using Parts = std::pair<std::string, std::string>;
    EXPECT_EQ(split_store_path("mem:a"), Parts("mem:a", ""));
    EXPECT_EQ(split_store_path("mem:a/b/c/"), Parts("mem:a", "b/c"));
    for (const char* const bad : {"mem:", "mem:/", "mem:/a", "a", "mem:a/../b", "mem:a//b"}) {
        expect_error(ErrorCode::invalid_argument, bad, [&] { (void)split_store_path(bad); });
    }
}

// tools/examples/extensions.cpp adds one in time.
TEST(StoreKinds, takes_no_more_once_it_is_read) {
    EXPECT_TRUE(is_local("late:x"));
    const auto place = [](const std::filesystem::path& path, const StoreOptions&) {
        return Place{memory_store(), path.string()};
    };
    expect_error(ErrorCode::invalid_argument, "before anything is opened",
                 [&] { add_store_kind({.scheme = "late", .about = "", .place = place}); });
    for (const char* const bad : {"", "c", "Mem", "a:b", "1a", "a/b"}) {
        expect_error(ErrorCode::invalid_argument, "scheme",
                     [&] { add_store_kind({.scheme = bad, .about = "", .place = place}); });
    }
    expect_error(ErrorCode::invalid_argument, "place()",
                 [&] { add_store_kind({.scheme = "none", .about = "", .place = {}}); });
}

}  // namespace
}  // namespace tessera
