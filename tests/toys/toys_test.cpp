// What a toy of each kind takes part in once it is in its table: see CMakeLists.txt.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/convert.h>
#include <tessera/digest.h>
#include <tessera/tessera.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <vector>

namespace tessera {
namespace {

using testing::HasSubstr;

NDArray numbers() {
    NDArray values("<i4", {10, 7});
    std::iota(values.values<std::int32_t>().begin(), values.values<std::int32_t>().end(), 1);
    return values;
}

Array made(const std::shared_ptr<KeyValueStore>& store, const std::string& format, const std::string& codec) {
    Array array = Array::create(store, "a",
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

std::string text(const KeyValueStore& store, std::string_view key) {
    Buffer value;
    EXPECT_TRUE(store.get(key, value)) << key;
    return {reinterpret_cast<const char*>(value.data()), value.size()};
}

/// Damages one chunk; verify finds it, repair sets it aside, and the rest is as it was.
void expect_repaired(const std::shared_ptr<KeyValueStore>& store, std::string_view chunk) {
    EXPECT_TRUE(verify(store, "a").sound());
    store->put(chunk, std::as_bytes(std::span("torn", 4)));
    EXPECT_EQ(verify(store, "a").count(FindingKind::damage), 1);
    EXPECT_TRUE(repair(store, "a", {}).mended());
    EXPECT_TRUE(verify(store, "a").sound());
    EXPECT_EQ(Array::open(store, "a").read("0, 0").values<std::int32_t>()[0], 0);
}

TEST(ToyCodec, is_read_and_written_where_codecs_have_names) {
    for (const auto& [format, spelt] : {std::pair{"v2", R"("compressor": {)"}, {"v3", R"("numcodecs.toy")"}}) {
        SCOPED_TRACE(format);
        const auto store = memory_store();
        made(store, format, "delta,toy:3");
        const Array array = Array::open(store, "a");
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
    const Array array = Array::open(store, "a");
    EXPECT_EQ(array.dialect().name, "toy");
    expect_numbers(array);
    expect_repaired(store, "a/tiles/0.0");
}

TEST(ToyDialect, is_converted_to_and_from_every_other) {
    for (const Dialect& to : dialect_table()) {
        if (to.name == "toy") continue;
        SCOPED_TRACE(to.name);
        const Array array = made(memory_store(), "toy", "zlib:3");
        Conversion there = convert_metadata(array.metadata(), array.attributes().stored(), array.dialect(), to);
        Array between = Array::create(memory_store(), "b", to, there.metadata, false);
        between.attributes().replace(*there.attributes);
        between.publish();
        copy_array(array, between);
        expect_numbers(between);
        const Conversion back =
            convert_metadata(between.metadata(), between.attributes().stored(), to, dialect_named("toy"));
        Array again = Array::create(memory_store(), "c", dialect_named("toy"), back.metadata, false);
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
    const VerifyReport report = verify(store, "a");
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

}  // namespace
}  // namespace tessera
