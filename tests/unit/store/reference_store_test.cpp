// References as a store. What programs do with them, and what hostile ones are refused for, is in cli/test_virtual.py.
#include <tessera/outside.h>
#include <tessera/store_kind.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/array.h>
#include <tessera/copy.h>
#include <tessera/error.h>
#include <tessera/references.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "expect_error.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

using testing::ElementsAre;

class References : public testing::Test {
protected:
    void write(const std::string& name, const std::string& text) {
        std::filesystem::create_directories((folder_ / name).parent_path());
        std::ofstream(folder_ / name) << text;
    }
    std::string get(const ReadableStore& store, std::string_view key) {
        Buffer value;
        if (!store.get(key, value)) return "absent";
        return {reinterpret_cast<const char*>(value.data()), value.size()};
    }

    TemporaryFolder folder_;
};

TEST_F(References, AreKeysAndValues) {
    write("data", "0123456789");
    write("deep/more", "abc");
    write("x.json", R"({"version": 1, "refs": {"a/.zarray": "{}", "a/0": ["data", 2, 3], "a/1": ["deep/more"],
                       "b": "base64:AAEC", "a.b": "text"}})");
    const auto store = reference_store(folder_ / "x.json");
    EXPECT_EQ(get(*store, "a/0"), "234");
    EXPECT_EQ(get(*store, "a/1"), "abc");
    EXPECT_EQ(get(*store, "b"), std::string("\0\1\2", 3));
    EXPECT_EQ(get(*store, "a/2"), "absent");
    EXPECT_TRUE(store->read_only());
    EXPECT_TRUE(store->contains("a/0"));
    EXPECT_EQ(store->stamp("a/1")->size, 3U);
    EXPECT_THAT(store->list("").keys, ElementsAre("a.b", "b"));
    EXPECT_THAT(store->list("").prefixes, ElementsAre("a"));
    std::uint64_t bytes = 0;
    store->for_each("a", [&](std::string_view, const KeyValueStore::ValueSize& size) { bytes += size(); });
    EXPECT_EQ(bytes, 2U + 3U + 3U);
    EXPECT_THROW(store->put("a/0", {}), Error);
    EXPECT_THROW(static_cast<void>(store->erase("a/0")), Error);
    EXPECT_EQ(get(*store, "a/0"), "234");
}

TEST_F(References, LeadOutOnlyWhereAllowed) {
    write("secret", "0123456789");
    write("in/x.json", R"({"version": 1, "refs": {"a": ["../secret"]}})");
    expect_error(ErrorCode::unsupported, "below", [&] { (void)reference_store(folder_ / "in/x.json"); });
    EXPECT_EQ(get(*reference_store(folder_ / "in/x.json", {.allow_outside = true}), "a"), "0123456789");
    EXPECT_FALSE(outside_allowed());
}

TEST_F(References, AFileThatIsGoneOrShorterIsNoAbsentValue) {
    write("data", "0123456789");
    write("x.json", R"({"version": 1, "refs": {"a": ["data", 5, 5], "b": ["gone"]}})");
    const auto store = reference_store(folder_ / "x.json");
    EXPECT_EQ(get(*store, "a"), "56789");
    expect_error(ErrorCode::corrupt, "gone: references lead to this file", [&] { (void)get(*store, "b"); });
    write("short", "0123");
    write("x.json", R"({"version": 1, "refs": {"a": ["short", 2, 5]}})");
    expect_error(ErrorCode::corrupt, "expected 5 bytes at offset 2",
                 [&] { (void)get(*reference_store(folder_ / "x.json"), "a"); });
}

TEST_F(References, ManyFilesAsOneArray) {
    std::vector<std::string> files;
    for (std::int32_t i = 0; i < 100; ++i) {  // more than are kept open
        const std::vector<std::int32_t> values{i, -i, 2 * i};
        files.push_back((folder_ / fmt::format("{}.npy", i)).string());
        const auto sink = create_array_file({files.back(), {}}, DType::of<std::int32_t>(), {3}, {});
        copy_array(*view_source(view(values), "values"), *sink);
    }
    const Value refs = joined_references(files, {.axis = 0, .new_axis = true, .folder = folder_.path()});
    write("x.refs.json", refs.dump());
    const Array array = Array::open(folder_ / "x.refs.json");
    EXPECT_EQ(array.shape(), (Shape{100, 3}));
    const NDArray all = array.read();
    for (std::int32_t i = 0; i < 100; ++i) {
        const auto values = all.values<std::int32_t>().subspan(static_cast<std::size_t>(i) * 3, 3);
        EXPECT_THAT(std::vector(values.begin(), values.end()), ElementsAre(i, -i, 2 * i));
    }
}

}  // namespace
}  // namespace tessera
