// Which locks are held when: whoever replaces or removes a chunk holds its lock from before the old value is read until
// the new one is in place, and the shape's beside it; whoever changes metadata holds the shape's alone.
#include <gtest/gtest.h>
#include <tessera/tessera.h>
#include <tessera/verify.h>

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "forwarding_store.h"

namespace tessera {
namespace {

const IoOptions one_thread{.threads = 1};

/// Watches one thread at one array.
class LockWatcher final : public ForwardingStore {
public:
    using ForwardingStore::ForwardingStore;

    /// Called while a lock is waited for: what others do in the meantime.
    std::function<void()> meanwhile = [] {};

    [[nodiscard]] StoreLock lock(std::string_view prefix, std::uint64_t slot, LockMode mode) override {
        if (slot == 0) std::exchange(meanwhile, [] {})();
        StoreLock lock = inner().lock(prefix, slot, mode);
        if (slot == 0) {
            EXPECT_FALSE(shape_.has_value()) << "taken twice";
            EXPECT_FALSE(chunk_.has_value()) << "a chunk's lock before the shape's";
            shape_ = mode;
        } else {
            EXPECT_TRUE(shape_.has_value()) << "without the shape's";
            EXPECT_FALSE(chunk_.has_value()) << "two chunks' locks at once";
            chunk_ = slot - 1;
            ++section_;
        }
        return StoreLock([this, slot, held = std::make_shared<StoreLock>(std::move(lock))] {
            slot == 0 ? shape_.reset() : chunk_.reset();
            held->unlock();
        });
    }

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override {
        if (const auto chunk = chunk_of_(key); chunk && changing_) read_in_[std::string(key)] = section_of(*chunk);
        return inner().open(key);
    }
    [[nodiscard]] std::optional<ValueStamp> stamp(std::string_view key) const override { return inner().stamp(key); }
    void put(std::string_view key, ByteSpan value) override {
        change(key);
        inner().put(key, value);
    }
    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override {
        change(key);
        return inner().create(key);
    }
    bool erase(std::string_view key) override {
        change(key);
        return inner().erase(key);
    }

    /// What is to be watched from now on: chunk_of(key) is a chunk's number, `document` the metadata's key.
    void watch(std::function<std::optional<std::int64_t>(std::string_view)> chunk_of, std::string_view document) {
        chunk_of_ = std::move(chunk_of);
        document_ = document;
        changing_ = true;
    }
    /// How many chunks and documents were changed since the last call. What was read before then was for readers.
    std::pair<int, int> changes() {
        read_in_.clear();
        return {std::exchange(chunks_, 0), std::exchange(documents_, 0)};
    }

private:
    /// The number of the critical section in which a chunk is now; 0 for none.
    [[nodiscard]] int section_of(std::int64_t chunk) const {
        if (shape_ == LockMode::exclusive) return -1;
        return chunk_ && static_cast<std::int64_t>(*chunk_) == chunk ? section_ : 0;
    }

    void change(std::string_view key) {
        if (!changing_) return;
        if (key == document_) {
            ++documents_;
            EXPECT_TRUE(shape_ == LockMode::exclusive) << key << " is written beside writers";
        }
        const auto chunk = chunk_of_(key);
        if (!chunk) return;
        ++chunks_;
        EXPECT_TRUE(shape_.has_value()) << key << " is written without the shape's lock";
        EXPECT_NE(section_of(*chunk), 0) << key << " is written without its lock";
        const auto read = read_in_.find(key);
        if (read == read_in_.end()) return;
        EXPECT_EQ(read->second, section_of(*chunk)) << key << " was read before its lock was held";
        read_in_.erase(read);
    }

    std::function<std::optional<std::int64_t>(std::string_view)> chunk_of_ = [](std::string_view) {
        return std::nullopt;
    };
    std::string document_;
    bool changing_ = false;
    std::optional<LockMode> shape_;
    std::optional<std::uint64_t> chunk_;
    int section_ = 0;
    mutable std::map<std::string, int, std::less<>> read_in_;  ///< the section in which a chunk was last read
    int chunks_ = 0;
    int documents_ = 0;
};

struct Layout {
    const char* name;
    const char* format;
    Shape shards = {};
};

class Locking : public testing::TestWithParam<Layout> {
protected:
    Locking()
        : array_(Array::create(store_, {.shape = {10, 9},
                                        .chunks = {4, 4},
                                        .dtype = "<i4",
                                        .fill_value = -1,
                                        .shards = GetParam().shards,
                                        .format = GetParam().format})) {
        array_.fill(Selection::all({10, 9}), 7, one_thread);
        const ArrayMetadata metadata = array_.metadata();
        store_->watch(
            [=, this](std::string_view key) -> std::optional<std::int64_t> {
                const auto chunk = metadata.keys.parse(key, 2);
                // Numbered in the grid that writers see: it is the shape at the beginning of what is watched.
                if (!chunk) return std::nullopt;
                const ChunkGrid grid(array_.metadata().shape, metadata.chunks);
                for (int d = 0; d < 2; ++d) {
                    if ((*chunk)[d] >= grid.grid()[d]) return -1;  // outside: the exclusive lock alone will do
                }
                return grid.linear(*chunk);
            },
            array_.dialect().metadata_key);
    }

    static NDArray block(const Shape& shape, std::int32_t value) {
        NDArray elements(DType::of<std::int32_t>(), shape);
        std::ranges::fill(elements.values<std::int32_t>(), value);
        return elements;
    }

    std::shared_ptr<LockWatcher> store_ = std::make_shared<LockWatcher>(memory_store());
    Array array_;
};

TEST_P(Locking, chunks_are_read_and_replaced_under_their_lock) {
    const auto written = [&](const char* what, const auto& write) {
        SCOPED_TRACE(what);
        write();
        EXPECT_GT(store_->changes().first, 0);
    };
    const NDArray five = block({5, 5}, 5);
    const Region region{{2, 2}, {5, 5}};
    written("a region", [&] { array_.write(region, five.view(), one_thread); });
    written("a selection", [&] { array_.write(Selection::parse("::2, ::2", {10, 9}), five.view(), one_thread); });
    written("one element", [&] { array_.write("3, 3", block({}, 4).view(), one_thread); });
    written("all", [&] { array_.fill(Selection::all({10, 9}), 3, one_thread); });
    written("many regions", [&] {
        const std::vector<RegionWrite> parts{{region, five.view()}};
        array_.write_many(parts, one_thread);
    });
    written("points", [&] {
        const std::vector<Index> points{{1, 1}, {9, 8}};
        array_.write_points(points, block({2}, 4).view(), one_thread);
    });
    written("the fill", [&] { array_.fill(Selection::parse("1:, 1:", {10, 9}), -1, one_thread); });
    written("the fill everywhere", [&] { array_.fill(Selection::all({10, 9}), -1, one_thread); });
    if (array_.shards().empty()) return;
    written("a shard", [&] {
        const auto shard = array_.open_shard(Region{{1, 1}, {5, 5}});
        shard->write(Region{{0, 0}, {5, 5}}, five.view(), one_thread);
        shard->finish();
    });
}

// It reads without a lock: by the stamp it tells, under the lock, whether that is still what is stored.
TEST_P(Locking, a_cache_replaces_chunks_under_their_lock) {
    CachedArray cached(array_);
    for (const std::int32_t value : {5, 6}) {
        cached.write(Region{{2, 2}, {5, 5}}, block({5, 5}, value).view(), one_thread);
        array_.write("5, 5", block({}, 4).view(), one_thread);
        (void)store_->changes();
        cached.flush(one_thread);
        EXPECT_GT(store_->changes().first, 0);
    }
}

TEST_P(Locking, metadata_change_under_the_shape_s_lock_alone) {
    array_.resize({13, 11}, one_thread);
    EXPECT_EQ(store_->changes().second, 1);
    array_.append(block({3, 11}, 5).view(), 0, one_thread);
    EXPECT_EQ(store_->changes().second, 1);
    array_.resize({3, 20}, one_thread);
    EXPECT_EQ(store_->changes().second, 1);
}

TEST_P(Locking, a_writer_that_waited_for_a_resize_writes_into_the_new_shape) {
    store_->meanwhile = [&] { Array::open(store_).resize({3, 3}, one_thread); };
    EXPECT_THROW(array_.write(Region{{8, 8}, {1, 1}}, block({1, 1}, 5).view(), one_thread), Error);
    EXPECT_EQ(array_.stored_size().strays, 0);
}

TEST_P(Locking, repair_looks_again_once_it_has_the_lock) {
    const std::string key = array_.metadata().keys.key({0, 0});
    Buffer good;
    ASSERT_TRUE(store_->get(key, good));
    const std::string text = "damaged";
    store_->watch([](std::string_view) { return std::nullopt; }, "");
    store_->put(key, std::as_bytes(std::span(text)));
    store_->meanwhile = [&] { store_->put(key, good.span()); };  // somebody wrote it anew
    const RepairReport report = repair(store_, {.io = one_thread});
    EXPECT_EQ(report.done, 1);
    EXPECT_EQ(array_.read("0, 0").values<std::int32_t>()[0], 7);
    EXPECT_TRUE(store_->list(".tessera/damaged").keys.empty());
}

const std::vector<Layout> layouts{
    {"zmeta", "zmeta"}, {"v1", "v1"}, {"v2", "v2"}, {"v3", "v3"}, {"sharded", "v3", {8, 8}}};

INSTANTIATE_TEST_SUITE_P(Layouts, Locking, testing::ValuesIn(layouts),
                         [](const auto& layout) { return std::string(layout.param.name); });

}  // namespace
}  // namespace tessera
