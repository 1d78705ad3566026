// An append that fails leaves neither the new shape nor chunks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/array.h>
#include <tessera/error.h>
#include <tessera/verify.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <stop_token>
#include <string>
#include <vector>

#include "expect_error.h"
#include "forwarding_store.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const StoreOptions quick{.durability = Durability::none};
const IoOptions one_thread{.threads = 1};

/// Fails the N-th time that something is put or made durable.
class FullStore final : public ForwardingStore {
public:
    FullStore(std::shared_ptr<KeyValueStore> inner, int calls) : ForwardingStore(std::move(inner)), left_(calls) {}
    void put(std::string_view key, ByteSpan value) override {
        count("writing " + std::string(key));
        ForwardingStore::put(key, value);
    }
    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override {
        count("writing " + std::string(key));
        return ForwardingStore::create(key);
    }
    void sync() override {
        count("synchronising");
        ForwardingStore::sync();
    }
    [[nodiscard]] bool failed() const { return left_ < 0; }

private:
    void count(const std::string& what) {
        if (left_-- == 0) throw Error(ErrorCode::io, what + ": no space left on device");
    }
    std::atomic<int> left_;
};

/// All files below a folder that are no lock.
std::map<std::string, std::string> files_of(const fs::path& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (!entry.is_regular_file() || entry.path().filename() == "lock") continue;
        std::ifstream file(entry.path(), std::ios::binary);
        files[entry.path().lexically_relative(folder)] = {std::istreambuf_iterator<char>(file), {}};
    }
    return files;
}

struct Kind {
    const char* name;
    Shape shape;
    const char* format = "v2";
    bool fill = true;
    Shape shards = {};
};

void PrintTo(const Kind& kind, std::ostream* out) {
    *out << kind.name;
}

class FailedAppend : public testing::TestWithParam<Kind> {};

TEST_P(FailedAppend, LeavesWhatWasThere) {
    const Kind& kind = GetParam();
    const TemporaryFolder folder;
    {
        ArrayOptions options{.shape = kind.shape,
                             .chunks = {4, 3},
                             .dtype = DType::of<std::int32_t>(),
                             .codec = "none",
                             .format = kind.format};
        options.shards = kind.shards;
        options.fill_value = kind.fill ? Value(0) : Value();
        Array array = Array::create(folder / "a", options, quick);
        // The last column of chunks is absent: an append makes those at the edge.
        if (kind.shape[0] > 0) array.fill(Selection::parse(":, :3", array.shape()), 7);
    }
    const auto before = files_of(folder / "a");
    std::vector<std::int32_t> more(10 * 5);
    std::iota(more.begin(), more.end(), 1);
    int failures = 0;
    for (int calls = 0;; ++calls) {
        const auto store = std::make_shared<FullStore>(directory_store(folder / "a", quick), calls);
        Array array = Array::open(store);
        try {
            (void)array.append(view(more, {10, 5}), 0, one_thread);
        } catch (const Error& e) {
            ++failures;
            EXPECT_THAT(e.what(), testing::HasSubstr("no space left"));
            EXPECT_EQ(array.shape(), kind.shape) << calls;
            const auto after = files_of(folder / "a");
            std::vector<std::string> names_before;
            std::vector<std::string> names_after;
            for (const auto& [name, bytes] : before) names_before.push_back(name);
            for (const auto& [name, bytes] : after) names_after.push_back(name);
            ASSERT_EQ(names_after, names_before) << calls << ": " << e.what();
            const Array again = Array::open(folder / "a");
            EXPECT_EQ(again.shape(), kind.shape);
            if (kind.shape[0] > 0) {
                EXPECT_EQ(again.read("0, 0").values<std::int32_t>()[0], 7);
                EXPECT_EQ(again.read("-1, 2").values<std::int32_t>()[0], 7);
            }
            continue;
        }
        EXPECT_FALSE(store->failed());
        break;
    }
    EXPECT_GE(failures, 5);
    EXPECT_EQ(Array::open(folder / "a").read("-1, -1").values<std::int32_t>()[0], 50);
}

INSTANTIATE_TEST_SUITE_P(Kinds, FailedAppend,
                         testing::Values(Kind{"whole", {8, 5}}, Kind{"edge", {6, 5}}, Kind{"empty", {0, 5}},
                                         Kind{"undefined", {6, 5}, "v2", false}, Kind{"nested", {6, 5}, "v3"},
                                         Kind{"sharded", {6, 5}, "v3", true, {8, 6}}));

TEST(AFailedAppend, KeepsWhatLayAboutBefore) {
    const TemporaryFolder folder;
    (void)Array::create(
        folder / "a",
        {.shape = {4}, .chunks = {2}, .dtype = DType::of<std::int32_t>(), .codec = "none", .format = "v2"}, quick);
    std::ofstream(folder / "a/5") << "somebody's";
    fs::last_write_time(folder / "a/5", fs::file_time_type::clock::now() - std::chrono::hours(1));
    std::vector<std::int32_t> more(10, 3);
    Array array = Array::open(std::make_shared<FullStore>(directory_store(folder / "a", quick), 2));
    expect_error(ErrorCode::io, "no space left", [&] { array.append(view(more), 0, one_thread); });
    const auto left = files_of(folder / "a");
    EXPECT_FALSE(left.contains("2"));
    EXPECT_FALSE(left.contains("3"));
    ASSERT_TRUE(left.contains("5"));
    EXPECT_EQ(left.at("5"), "somebody's");
}

/// Gives some elements, and then an error.
class BadSource final : public ArraySource {
public:
    [[nodiscard]] ArrayInfo info() const override {
        ArrayInfo info;
        info.dtype = DType::of<std::int32_t>();
        info.shape = {8};
        return info;
    }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& /*io*/) const override {
        if (region.start[0] + region.extent[0] > 4) throw corrupt("cannot be read");
        std::memset(out.data, 1, static_cast<std::size_t>(byte_count(out.shape, out.dtype.size())));
    }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    std::string name_ = "bad source";
};

TEST(AFailedAppend, OfASourceThatCannotBeRead) {
    const TemporaryFolder folder;
    Array array = Array::create(
        folder / "a",
        {.shape = {4}, .chunks = {2}, .dtype = DType::of<std::int32_t>(), .codec = "none", .format = "v2"}, quick);
    const auto before = files_of(folder / "a");
    expect_error(ErrorCode::corrupt, "cannot be read", [&] { array.append(BadSource(), 0, one_thread); });
    EXPECT_EQ(files_of(folder / "a"), before);
    std::stop_source stop;
    stop.request_stop();
    std::vector<std::int32_t> more(10, 3);
    expect_error(ErrorCode::cancelled, "",
                 [&] { array.append(view(more), 0, {.threads = 1, .stop = stop.get_token()}); });
    EXPECT_EQ(files_of(folder / "a"), before);
}

}  // namespace
}  // namespace tessera
