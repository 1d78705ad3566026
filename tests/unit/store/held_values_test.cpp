// Writes that change many chunks wait for the disk once: what others write in the meantime stays, and what fails before
// the wait has changed nothing.
#include <gtest/gtest.h>
#include <tessera/tessera.h>

#include <numeric>
#include <vector>

#include "expect_error.h"
#include "forwarding_store.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

/// Calls `meanwhile` once, where the values of an operation are written and none of them is in place.
class MeanwhileStore final : public ForwardingStore {
public:
    using ForwardingStore::ForwardingStore;
    std::function<void()> meanwhile;

    [[nodiscard]] std::unique_ptr<HeldValues> hold() override {
        class Held final : public HeldValues {
        public:
            Held(MeanwhileStore& store, std::unique_ptr<HeldValues> inner) : store_(store), inner_(std::move(inner)) {}
            [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override {
                return inner_->create(key);
            }
            void sync() override {
                inner_->sync();
                if (auto call = std::exchange(store_.meanwhile, nullptr)) call();
            }
            bool place(std::string_view key) override { return inner_->place(key); }

        private:
            MeanwhileStore& store_;
            std::unique_ptr<HeldValues> inner_;
        };
        return std::make_unique<Held>(*this, inner().hold());
    }
};

struct Layout {
    const char* name;
    const char* format;
    Shape shards = {};
};

void PrintTo(const Layout& layout, std::ostream* out) {
    *out << layout.name;
}

void fill(Array& array, std::string_view selection, std::int32_t value) {
    array.fill(Selection::parse(selection, array.info().shape), value);
}

/// 40×6 sevens in ten rows of chunks, a directory that waits for the disk.
class HeldChunks : public testing::TestWithParam<Layout> {
protected:
    HeldChunks() {
        const Layout& layout = GetParam();
        Array made = Array::create(
            path_,
            {.shape = {40, 6}, .chunks = {4, 6}, .dtype = "<i4", .shards = layout.shards, .format = layout.format});
        fill(made, "...", 7);
        array_ = Array::open(store_);
    }

    void SetUp() override {
        if (directory_store(path_)->hold() == nullptr)
            GTEST_SKIP() << "no call writes this whole file system to the disk";
    }

    [[nodiscard]] std::vector<std::int32_t> now() const {
        const NDArray elements = Array::open(path_).read("...");
        const auto values = elements.values<std::int32_t>();
        return {values.begin(), values.end()};
    }

    [[nodiscard]] std::size_t temporaries() const {
        std::size_t count = 0;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
            count += entry.path().filename().string().starts_with(temporary_prefix) ? 1U : 0U;
        }
        return count;
    }

    TemporaryFolder folder_;
    std::filesystem::path path_ = folder_ / "a";
    std::shared_ptr<MeanwhileStore> store_ = std::make_shared<MeanwhileStore>(directory_store(path_));
    std::optional<Array> array_;
};

INSTANTIATE_TEST_SUITE_P(Layouts, HeldChunks,
                         testing::Values(Layout{"zmeta", "zmeta"}, Layout{"v2", "v2"}, Layout{"v3", "v3"},
                                         Layout{"sharded", "v3", {8, 6}}),
                         [](const auto& layout) { return std::string(layout.param.name); });

TEST_P(HeldChunks, what_others_write_into_the_same_chunks_meanwhile_stays) {
    bool called = false;
    store_->meanwhile = [&] {
        called = true;
        Array other = Array::open(path_);
        fill(other, "::4, 0:2", 1);  // a part of every chunk
    };
    fill(*array_, ":, 2:4", 2);
    ASSERT_TRUE(called);
    std::vector<std::int32_t> expected;
    for (int i = 0; i < 40; ++i) {
        const std::int32_t first = i % 4 == 0 ? 1 : 7;
        expected.insert(expected.end(), {first, first, 2, 2, 7, 7});
    }
    EXPECT_EQ(now(), expected);
    EXPECT_EQ(temporaries(), 0U);
}

TEST_P(HeldChunks, so_it_does_beside_many_regions_at_once) {
    store_->meanwhile = [&] {
        Array other = Array::open(path_);
        fill(other, "20, 0", 1);
    };
    std::vector<std::int32_t> two(40, 2);
    std::vector<RegionWrite> parts;
    for (std::int64_t i = 0; i < 40; ++i) {
        parts.push_back({{{i, 5}, {1, 1}}, view(std::span(two).subspan(static_cast<std::size_t>(i), 1), {1, 1})});
    }
    array_->write_many(parts);
    ASSERT_FALSE(store_->meanwhile);
    std::vector<std::int32_t> expected;
    for (int i = 0; i < 40; ++i) expected.insert(expected.end(), {i == 20 ? 1 : 7, 7, 7, 7, 7, 2});
    EXPECT_EQ(now(), expected);
}

TEST_P(HeldChunks, chunks_that_others_removed_or_made_meanwhile_are_changed_anew) {
    fill(*array_, "0:20", 0);  // the fill: these chunks are removed
    store_->meanwhile = [&] {
        Array other = Array::open(path_);
        fill(other, "0:20, 0", 3);
        fill(other, "20:40", 0);
    };
    fill(*array_, ":, 1", 0);
    std::vector<std::int32_t> expected;
    for (int i = 0; i < 40; ++i) expected.insert(expected.end(), {i < 20 ? 3 : 0, 0, 0, 0, 0, 0});
    EXPECT_EQ(now(), expected);
}

TEST_P(HeldChunks, what_fails_before_the_wait_has_changed_nothing) {
    const std::vector<std::int32_t> before = now();
    store_->meanwhile = [] { throw Error(ErrorCode::io, "the disk is gone"); };
    expect_error(ErrorCode::io, "the disk is gone", [&] { fill(*array_, ":, 2:4", 2); });
    EXPECT_EQ(now(), before);
    EXPECT_EQ(temporaries(), 0U);
}

TEST_P(HeldChunks, a_chunk_that_cannot_be_read_keeps_all_others_as_they_were) {
    const std::vector<std::int32_t> before = now();
    std::filesystem::path last;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
        const std::string name = entry.path().string();
        if (entry.is_regular_file() && name.find(".tessera") == name.npos && name > last.string() &&
            name.find_first_of("0123456789", name.rfind('/')) != name.npos) {
            last = entry.path();
        }
    }
    const std::filesystem::path kept = folder_ / "kept";
    std::filesystem::copy_file(last, kept);
    std::filesystem::resize_file(last, 3);
    EXPECT_THROW(fill(*array_, ":, 2:4", 2), Error);
    std::filesystem::copy_file(kept, last, std::filesystem::copy_options::overwrite_existing);
    EXPECT_EQ(now(), before);
    EXPECT_EQ(temporaries(), 0U);
}

TEST_P(HeldChunks, a_flush_of_what_is_cached_waits_once_and_keeps_what_others_write) {
    CachedArray cached(*array_, 1 << 20);
    std::vector<std::int32_t> twos(80, 2);
    cached.write({{0, 2}, {40, 2}}, view(std::span(twos), {40, 2}));
    store_->meanwhile = [&] {
        Array other = Array::open(path_);
        fill(other, "20, 0", 1);
    };
    cached.flush();
    ASSERT_FALSE(store_->meanwhile);
    std::vector<std::int32_t> expected;
    for (int i = 0; i < 40; ++i) expected.insert(expected.end(), {i == 20 ? 1 : 7, 7, 2, 2, 7, 7});
    EXPECT_EQ(now(), expected);
    const NDArray seen = cached.read({{0, 0}, {40, 6}});
    EXPECT_EQ(std::vector(seen.values<std::int32_t>().begin(), seen.values<std::int32_t>().end()), expected);
    store_->meanwhile = [] { ADD_FAILURE() << "what was flushed is written again"; };
    cached.flush();
}

TEST_P(HeldChunks, what_a_failed_flush_did_not_write_the_next_one_writes) {
    const std::vector<std::int32_t> before = now();
    CachedArray cached(*array_, 1 << 20);
    std::vector<std::int32_t> twos(40, 2);
    cached.write({{0, 2}, {40, 1}}, view(std::span(twos), {40, 1}));
    store_->meanwhile = [] { throw Error(ErrorCode::io, "the disk is gone"); };
    expect_error(ErrorCode::io, "the disk is gone", [&] { cached.flush(); });
    EXPECT_EQ(now(), before);
    cached.flush();
    std::vector<std::int32_t> expected;
    for (int i = 0; i < 40; ++i) expected.insert(expected.end(), {7, 7, 2, 7, 7, 7});
    EXPECT_EQ(now(), expected);
    EXPECT_EQ(temporaries(), 0U);
}

TEST(HeldValues, are_there_only_where_every_value_would_wait_for_the_disk) {
    const TemporaryFolder folder;
    EXPECT_NE(directory_store(folder / "a")->hold(), nullptr);
    EXPECT_EQ(directory_store(folder / "a", {.durability = Durability::none})->hold(), nullptr);
    EXPECT_EQ(directory_store(folder / "a", {.durability = Durability::each})->hold(), nullptr);
    EXPECT_EQ(memory_store()->hold(), nullptr);
}

TEST(HeldValues, get_their_keys_one_by_one) {
    const TemporaryFolder folder;
    const auto store = directory_store(folder / "a");
    const std::string one = "one";
    store->put("x/1", std::as_bytes(std::span(one)));
    {
        const auto held = store->hold();
        if (held == nullptr) GTEST_SKIP() << "no call writes this whole file system to the disk";
        for (const char* const key : {"x/1", "x/2", "y/3"}) {
            const auto sink = held->create(key);
            sink->append(std::as_bytes(std::span(std::string_view(key))));
            sink->finish();
        }
        (void)held->create("never");  // and not finished
        held->sync();
        EXPECT_TRUE(held->place("y/3"));
        EXPECT_FALSE(held->place("y/3"));
        EXPECT_FALSE(held->place("never"));
        EXPECT_TRUE(store->contains("y/3"));
        EXPECT_FALSE(store->contains("x/2"));
    }
    EXPECT_EQ(read_all(*store->open("x/1")).size(), one.size());
    for (const char* const place : {"", "x", "y"})
        EXPECT_TRUE(store->local_files().temporaries(place).empty()) << place;
}

}  // namespace
}  // namespace tessera
