// What a toy of each kind takes part in once it is in its table: see CMakeLists.txt.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/convert.h>
#include <tessera/measure.h>
#include <tessera/tessera.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <thread>
#include <vector>

#include "conformance/store_suite.h"
#include "temporary_folder.h"

namespace tessera {

extern std::atomic<int> toy_reads;  // of toy_store.cpp
extern std::atomic<int> toy_writes;

namespace {

using testing::HasSubstr;

NDArray numbers() {
    NDArray values("<i4", {10, 7});
    std::iota(values.values<std::int32_t>().begin(), values.values<std::int32_t>().end(), 1);
    return values;
}

Array made(const std::shared_ptr<KeyValueStore>& store, const std::string& format, const std::string& codec) {
    Array array = Array::create({store, "a"},
                                {.shape = {10, 7}, .chunks = {4, 3}, .dtype = "<i4", .codec = codec, .format = format});
    array.write("", numbers().view());
    array.attributes().set("units", "m");
    return array;
}

void expect_numbers(const Array& array) {
    const NDArray wanted = numbers();
    EXPECT_TRUE(std::ranges::equal(array.read().values<std::int32_t>(), wanted.values<std::int32_t>()));
    EXPECT_TRUE(std::ranges::equal(array.read("3:9, 2").values<std::int32_t>(),
                                   std::vector<std::int32_t>{24, 31, 38, 45, 52, 59}));
    EXPECT_EQ(array.attributes().get("units"), Value("m"));
}

std::string text(const ReadableStore& store, std::string_view key) {
    Buffer value;
    EXPECT_TRUE(store.get(key, value)) << key;
    return {reinterpret_cast<const char*>(value.data()), value.size()};
}

/// Damages one chunk; verify finds it, repair sets it aside, and the rest is as it was.
void expect_repaired(const std::shared_ptr<KeyValueStore>& store, std::string_view chunk) {
    EXPECT_TRUE(verify({store, "a"}).sound());
    store->put(chunk, std::as_bytes(std::span("torn", 4)));
    EXPECT_EQ(verify({store, "a"}).count(FindingKind::damage), 1);
    const RepairReport report = repair({store, "a"}, {});
    EXPECT_EQ(report.done, 1);
    EXPECT_GT(report.lost(), 0);
    EXPECT_TRUE(verify({store, "a"}).sound());
    EXPECT_EQ(Array::open({store, "a"}).read("0, 0").values<std::int32_t>()[0], 0);
}

TEST(ToyCodec, is_read_and_written_where_codecs_have_names) {
    for (const auto& [format, spelt] : {std::pair{"v2", R"("compressor": {)"}, {"v3", R"("numcodecs.toy")"}}) {
        SCOPED_TRACE(format);
        const auto store = memory_store();
        made(store, format, "delta,toy:3");
        const Array array = Array::open({store, "a"});
        expect_numbers(array);
        EXPECT_EQ(codec_text(array.metadata().codecs.back()), "toy:3");
        EXPECT_THAT(text(*store, std::string("a/") + std::string(array.dialect().metadata_key)), HasSubstr(spelt));
        expect_repaired(store, std::string(format) == "v2" ? "a/0.0" : "a/c/0/0");
    }
    EXPECT_EQ(parse_codec("toy").configuration.dump(), R"({"by": 1})");
    EXPECT_THROW((void)parse_codec("toy:x"), Error);
    EXPECT_THROW((void)parse_codec("toy:256"), Error);
}

TEST(ToyCodec, gives_way_to_another_compressor_where_it_has_no_name) {
    const Array array = made(memory_store(), "v2", "toy:3");
    const Conversion c =
        convert_metadata(array.metadata(), array.attributes().stored(), array.dialect(), dialect_named("zmeta"));
    EXPECT_EQ(c.metadata.codecs.back().name, "blosc");
    EXPECT_THAT(c.changes, testing::Contains(HasSubstr("toy:3")));
    // Between v2 and v3 chunks stay as they are; not where the configuration is another.
    const Conversion same =
        convert_metadata(array.metadata(), array.attributes().stored(), array.dialect(), dialect_named("v3"));
    EXPECT_EQ(why_recode(array.metadata(), same.metadata), std::nullopt);
    ArrayMetadata other = same.metadata;
    other.codecs.back() = parse_codec("toy:4");
    EXPECT_THAT(why_recode(array.metadata(), other).value_or(""), HasSubstr("toy:4"));
}

TEST(ToyDialect, is_read_and_written_like_its_siblings) {
    const auto store = memory_store();
    made(store, "toy", "delta,zlib:3");
    const Array array = Array::open({store, "a"});
    EXPECT_EQ(array.dialect().name, "toy");
    expect_numbers(array);
    expect_repaired(store, "a/tiles/0.0");
}

TEST(ToyDialect, is_converted_to_and_from_every_other) {
    for (const Dialect* each_to : dialect_table()) {
        const Dialect& to = *each_to;
        if (to.name == "toy") continue;
        SCOPED_TRACE(to.name);
        const Array array = made(memory_store(), "toy", "zlib:3");
        Conversion there = convert_metadata(array.metadata(), array.attributes().stored(), array.dialect(), to);
        Array between = Array::create({memory_store(), "b"}, to, there.metadata, false);
        between.attributes().replace(*there.attributes);
        between.publish();
        copy_array(array, between);
        expect_numbers(between);
        const Conversion back =
            convert_metadata(between.metadata(), between.attributes().stored(), to, dialect_named("toy"));
        Array again = Array::create({memory_store(), "c"}, dialect_named("toy"), back.metadata, false);
        again.attributes().replace(*back.attributes);
        again.publish();
        copy_array(between, again);
        expect_numbers(again);
        EXPECT_EQ(digest(array), digest(again));
    }
}

TEST(ToyDialect, what_is_lost_is_found) {
    const auto store = memory_store();
    made(store, "toy", "none");
    store->erase("a/toy.json");
    const VerifyReport report = verify({store, "a"});
    ASSERT_EQ(report.count(FindingKind::damage), 1);
    EXPECT_THAT(report.findings.front().text, HasSubstr("tiles/ with chunks is there, but toy.json is missing"));
}

TEST(ToyDialect, lies_in_a_zip) {
    const auto path = std::filesystem::temp_directory_path() / fmt::format("tessera-toys-{}.zip", ::getpid());
    const auto zip = zip_store(path, ZipMode::replace);
    made(zip, "toy", "none");  // the attributes change the document, which is held until the end
    zip->finish();
    expect_numbers(Array::open(path / "a"));
    std::filesystem::remove(path);
}

/// A store with nothing in it. All toy stores of these tests share one folder.
std::shared_ptr<KeyValueStore> fresh_toys() {
    static const TemporaryFolder toys;
    static int count = 0;
    ::setenv("TESSERA_TOYS", toys.path().c_str(), 1);
    return find_place(fmt::format("toy:s{}", ++count)).store;
}

TESSERA_STORE_SUITE(ToyKind, fresh_toys())

/// A folder for the toy stores' values, and another one to work in, in which nothing may appear.
class ToyStoreTest : public testing::Test {
protected:
    void SetUp() override {
        std::filesystem::create_directory(root_ / "toys");
        std::filesystem::create_directory(root_ / "here");
        ASSERT_EQ(::setenv("TESSERA_TOYS", (root_ / "toys").c_str(), 1), 0);
        std::filesystem::current_path(root_ / "here");
    }
    void TearDown() override {
        EXPECT_TRUE(std::filesystem::is_empty(root_ / "here"));
        std::filesystem::current_path(before_);
    }
    [[nodiscard]] bool has_values() const { return !std::filesystem::is_empty(root_ / "toys"); }

    static Array made_at(const std::string& path, const std::string& format) {
        Array array = Array::create(
            path,
            {.shape = {10, 7}, .chunks = {4, 3}, .dtype = "<i4", .codec = "blosc:lz4:5:shuffle", .format = format});
        array.write("", numbers().view());
        array.attributes().set("units", "m");
        return array;
    }

private:
    std::filesystem::path before_ = std::filesystem::current_path();
    TemporaryFolder root_;
};

TEST_F(ToyStoreTest, holds_arrays_of_every_format) {
    for (const Dialect* each_dialect : dialect_table()) {
        const Dialect& dialect = *each_dialect;
        for (const std::string path : {"toy:x", "toy:y/deep/down"}) {
            SCOPED_TRACE(path);
            const int writes = toy_writes;
            made_at(path, std::string(dialect.name));
            EXPECT_GT(toy_writes, writes);
            const int reads = toy_reads;
            Array array = Array::open(path);
            EXPECT_EQ(array.name(), path);
            expect_numbers(array);
            EXPECT_GT(toy_reads, reads);
            EXPECT_THROW(made_at(path, "v3"), Error);
            array.resize({12, 7});
            array.resize({10, 7});
            array.append(numbers().view());
            EXPECT_EQ(array.shape(), (Shape{20, 7}));
            array.resize({10, 7});
            expect_numbers(Array::open(path));
            const Place place = find_place(path);
            EXPECT_TRUE(verify(place).sound());
            remove_node(place);
            EXPECT_FALSE(has_values());
        }
    }
}

TEST_F(ToyStoreTest, makes_new_arrays_appear_at_once_and_replaces_old_ones) {
    const ArrayOptions options{.shape = {10, 7}, .chunks = {4, 3}, .dtype = "<i4", .format = "v2"};
    {
        NewArray given_up("toy:x", options, {}, "a test");
        given_up.array().write("", 1);
        EXPECT_EQ(occupant("toy:x"), Occupant::unfinished);
        EXPECT_THROW((void)Array::open("toy:x"), Error);
    }
    EXPECT_FALSE(has_values());
    made_at("toy:x", "v3");
    const Array old = Array::open("toy:x");
    NewArray made("toy:x", options, {.overwrite = true}, "a test");
    made.array().write("", numbers().view());
    made.array().attributes().set("units", "m");
    expect_numbers(Array::open("toy:x"));
    EXPECT_EQ(Array::open("toy:x").dialect().name, "v3");
    const Array array = made.commit();
    EXPECT_EQ(array.dialect().name, "v2");
    expect_numbers(array);
    const Place place = find_place("toy:x");
    EXPECT_THAT(place.store->list("").keys, testing::Not(testing::Contains("zarr.json")));
    EXPECT_TRUE(place.store->list(".tessera").prefixes.empty());
    EXPECT_TRUE(verify(place.store).findings.empty());
    EXPECT_THROW(NewArray("toy:x", options, {}, "a test"), Error);
}

TEST_F(ToyStoreTest, an_unfinished_copy_is_resumed) {
    const ArrayOptions options{.shape = {10, 7}, .chunks = {4, 3}, .dtype = "<i4", .format = "v2"};
    {
        NewArray begun("toy:x/a", options, {}, "a test");
        begun.array().write("0:4, 0:3", 7);
        (void)begun.keep();
    }
    EXPECT_THROW(NewArray("toy:x/a", options, {.resume = true}, "another test"), Error);
    NewArray resumed("toy:x/a", options, {.resume = true}, "a test");
    EXPECT_TRUE(resumed.resumed());
    EXPECT_EQ(resumed.commit().read("0, 0").values<std::int32_t>()[0], 7);
}

TEST_F(ToyStoreTest, an_unfinished_replacement_leaves_the_old_array_until_it_is_resumed) {
    const ArrayOptions options{.shape = {10, 7}, .chunks = {4, 3}, .dtype = "<i4", .format = "v2"};
    made_at("toy:x/a", "v3");
    {
        NewArray begun("toy:x/a", options, {.overwrite = true}, "a test");
        begun.array().write("0:4, 0:3", 7);
        (void)begun.keep();
    }
    expect_numbers(Array::open("toy:x/a"));
    EXPECT_EQ(occupant("toy:x/a"), Occupant::array);
    NewArray resumed("toy:x/a", options, {.overwrite = true, .resume = true}, "a test");
    EXPECT_TRUE(resumed.resumed());
    const Array array = resumed.commit();
    EXPECT_EQ(array.dialect().name, "v2");
    EXPECT_EQ(array.read("0, 0").values<std::int32_t>()[0], 7);
    EXPECT_EQ(array.read("9, 6").values<std::int32_t>()[0], 0);
    const Place place = find_place("toy:x/a");
    EXPECT_TRUE(verify({place.store, "a"}).findings.empty());
}

TEST_F(ToyStoreTest, tells_versions_apart) {
    Array array = made_at("toy:x/a", "v2");
    const std::string before = version_text(find_place("toy:x/a"));
    EXPECT_EQ(version_text(find_place("toy:x/a")), before);
    array.attributes().set("units", "km");
    const std::string renamed = version_text(find_place("toy:x/a"));
    EXPECT_NE(renamed, before);
    array.write("0:4, 0:3", 0);  // a chunk less
    EXPECT_NE(version_text(find_place("toy:x/a")), renamed);
}

TEST_F(ToyStoreTest, holds_groups) {
    Group group = Group::create("toy:g", "v3", Value{{"title", "toys"}});
    group.create_array("sub/a", {.shape = {10, 7}, .chunks = {4, 3}, .dtype = "<i4"}).write("", numbers().view());
    EXPECT_EQ(Group::open("toy:g/sub").dialect()->name, "v3");
    made_at("toy:g/b", "v3");
    EXPECT_EQ(format_above("toy:g/c"), &dialect_named("v3"));
    group.consolidate();
    EXPECT_TRUE(group.consolidated_state().fresh());
    group.move("b", "sub/c");
    EXPECT_EQ(stale_above("toy:g/sub/c"), std::vector<std::filesystem::path>{"toy:g"});
    expect_numbers(Array::open("toy:g/sub/c"));
    Group::create("toy:g/new/deep");
    EXPECT_EQ(Group::open("toy:g").nodes().size(), 5);
    Group::open("toy:g").remove("sub", {.recursive = true});
    EXPECT_EQ(Group::open("toy:g").nodes().size(), 2);
}

TEST_F(ToyStoreTest, loses_nothing_that_threads_write_into_one_chunk) {
    Array::create("toy:x", {.shape = {64}, .chunks = {64}, .dtype = "<i4"});
    std::vector<std::jthread> threads;
    for (std::int64_t first = 0; first < 2; ++first) {
        threads.emplace_back([first] {
            Array array = Array::open("toy:x");
            for (std::int64_t i = first; i < 64; i += 2) array.write(Region({i}, {1}), std::int32_t(i + 1));
        });
    }
    threads.clear();
    const NDArray values = Array::open("toy:x").read();
    for (std::int32_t i = 0; i < 64; ++i) ASSERT_EQ(values.values<std::int32_t>()[static_cast<std::size_t>(i)], i + 1);
}

TEST_F(ToyStoreTest, two_threads_that_make_one_array_take_turns) {
    std::atomic<int> made = 0;
    std::vector<std::jthread> threads;
    for (int n = 0; n < 4; ++n) {
        threads.emplace_back([&made] {
            try {
                made_at("toy:x", "v3");
                ++made;
            } catch (const Error& e) {
                EXPECT_EQ(e.code(), ErrorCode::already_exists);
            }
        });
    }
    threads.clear();
    EXPECT_EQ(made, 1);
    expect_numbers(Array::open("toy:x"));
}

TEST_F(ToyStoreTest, takes_batches_all_or_nothing) {
    made_at("toy:x/a", "v3");
    {
        Edit given_up(Array::open("toy:x/a"));
        given_up->write("", 0);
    }
    expect_numbers(Array::open("toy:x/a"));
    Edit edit(Array::open("toy:x/a"));
    edit->write("0:4, :", 7);
    edit->attributes().set("edited", true);
    edit->append(numbers().view());
    expect_numbers(Array::open("toy:x/a", {.read_only = true}));
    EXPECT_GT(edit.commit(), 0);
    const Array array = Array::open("toy:x/a");
    EXPECT_EQ(array.shape(), (Shape{20, 7}));
    EXPECT_EQ(array.read("3, 6").values<std::int32_t>()[0], 7);
    EXPECT_EQ(array.attributes().get("edited"), Value(true));
}

TEST_F(ToyStoreTest, is_sealed_verified_and_repaired) {
    made_at("toy:x/a", "v3");
    Place place = find_place("toy:x");
    seal({*place.store, "a"});
    EXPECT_TRUE(verify({place.store, "a"}).sound());
    EXPECT_THROW(Array::open("toy:x/a").write("", 1), Error);
    EXPECT_THROW(NewArray("toy:x/a/b", {.shape = {1}, .dtype = "<i4"}, {}, "a test"), Error);
    Array::open("toy:x/a", {.break_seal = true}).write("", numbers().view());
    place.store->erase_below("a/.tessera");
    expect_repaired(place.store, "a/c/0/0");
}

TEST_F(ToyStoreTest, what_needs_folders_refuses_by_name) {
    made_at("toy:x", "v3");
    const auto refused = [](const auto& work, const std::string& what) {
        try {
            work();
            ADD_FAILURE() << what;
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::unsupported);
            EXPECT_THAT(e.what(), HasSubstr(what + " needs a folder on this machine; toy:x"));
        }
    };
    refused([] { create_snapshot("toy:x", "s"); }, "a snapshot");
    refused([] { (void)list_snapshots("toy:x"); }, "a snapshot");
    refused([] { restore_snapshot("toy:x", "s"); }, "a snapshot");
    refused([] { remove_snapshot("toy:x", "s"); }, "a snapshot");
    refused([] { (void)directory_store("toy:x"); }, "a directory store");
    const Place place = find_place("toy:x");
    refused([&] { make_bag(*place.store, "x", "toy:x"); }, "a bag");
    refused([] { copy_hierarchy("toy:x", "toy:x.npy", {}); }, "an array file");
    refused([] { copy_hierarchy("toy:x", "toy:x.zip", {}); }, "a zip");
    EXPECT_THROW((void)undo(Array::open("toy:x")), Error);
    expect_numbers(Array::open("toy:x"));
}

TEST_F(ToyStoreTest, only_a_known_scheme_is_one) {
    for (const std::string name : {"a:b", "toys:x", "./toy:x", "toy"}) {
        SCOPED_TRACE(name);
        made_at(name, "v3");
        EXPECT_TRUE(std::filesystem::is_directory(name));
        expect_numbers(Array::open(name));
        std::filesystem::remove_all("./" + name);
    }
    EXPECT_THROW(made_at("toy:", "v3"), Error);
    EXPECT_THROW(made_at("toy:x/../y", "v3"), Error);
    EXPECT_FALSE(has_values());
}

}  // namespace
}  // namespace tessera
