#include <gmock/gmock.h>
#include <tessera/array.h>

#include "dialect_test_util.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const DialectUnderTest v1{dialect_named("v1"),
                          R"({"chunks": [10, 10], "compression": "blosc", "dtype": "<i4", "fill_value": 0,
                              "compression_opts": {"clevel": 5, "cname": "lz4", "shuffle": 1},
                              "order": "C", "shape": [20, 30], "zarr_format": 1})"};
const std::string lzma_options = R"({"check": 0, "filters": null, "format": 1, "preset": 1})";

TEST(V1, compressors_become_codecs_and_back) {
    const auto chain = [](const std::string& name, const std::string& options) {
        v1.kept({{"compression", '"' + name + '"'}, {"compression_opts", options}});
        return names_of(v1.load({{"compression", '"' + name + '"'}, {"compression_opts", options}}));
    };
    EXPECT_THAT(chain("none", "null"), ElementsAre("bytes"));
    EXPECT_THAT(chain("zlib", "1"), ElementsAre("bytes", "numcodecs.zlib"));
    EXPECT_THAT(chain("bz2", "9"), ElementsAre("bytes", "numcodecs.bz2"));
    EXPECT_THAT(chain("lzma", lzma_options), ElementsAre("bytes", "numcodecs.lzma"));
    EXPECT_THAT(chain("blosc", R"({"clevel": 1, "cname": "zstd", "shuffle": 2})"), ElementsAre("bytes", "blosc"));
    // zarr 1 knew zlib by two names and wrote one.
    const ArrayMetadata gzip = v1.load({{"compression", "\"gzip\""}, {"compression_opts", "3"}});
    EXPECT_EQ(v1.saved(gzip).at("compression"), Value("zlib"));
}

TEST(V1, order_f_is_that_of_the_bytes_with_blosc_only) {
    EXPECT_THAT(names_of(v1.load({{"order", "\"F\""}})), ElementsAre("transpose", "bytes", "blosc"));
    v1.kept({{"order", "\"F\""}});
    const Changes zlib{{"order", "\"F\""}, {"compression", "\"zlib\""}, {"compression_opts", "1"}};
    EXPECT_THAT(names_of(v1.load(zlib)), ElementsAre("bytes", "numcodecs.zlib"));
    EXPECT_THAT(v1.dialect.remarks(v1.load(zlib)), ElementsAre(HasSubstr("C order although")));
    v1.kept(zlib);
    v1.kept({{"order", "\"F\""}, {"shape", "[20]"}, {"chunks", "[10]"}});
    v1.refused("order F with the codecs", [](ArrayMetadata& m) { m.codecs = {reversal(2), {"bytes"}}; });
}

TEST(V1, what_is_wrong_is_named) {
    for (const char* name :
         {"chunks", "compression", "compression_opts", "dtype", "fill_value", "order", "shape", "zarr_format"}) {
        v1.wrong(name, "", fmt::format("the member \"{}\" is missing", name));
    }
    v1.wrong("zarr_format", "2", "member \"zarr_format\": 2 was found, expected 1", ErrorCode::unsupported);
    v1.wrong("compression", "\"quux\"", "expected one of none, zlib");
    v1.wrong("compression_opts", "1", "member \"compression_opts\"");
    v1.wrong("compression_opts", R"({"clevel": 5, "cname": "lz4"})", "\"shuffle\" is missing");
    v1.wrong("compression_opts", R"({"clevel": 5, "cname": "lz4", "shuffle": -1})", "expected 0 to 2");
    v1.wrong("order", "\"A\"", "expected one of C, F");
    v1.wrong("chunks", "[10]", "");
    v1.wrong("chunks", "[4611686018427387904, 4611686018427387904]", "");
    v1.wrong("dtype", "\"|O\"", "v1 has no elements of type", ErrorCode::unsupported);
    expect_error(ErrorCode::corrupt, "expected 0 to 9", [] {
        (void)v1.load({{"compression", "\"zlib\""}, {"compression_opts", "10"}});
    });
}

TEST(V1, what_cannot_be_said_is_refused_by_name) {
    v1.refused("codecs [bytes, blosc, crc32c]", [](ArrayMetadata& m) { m.codecs.push_back({"crc32c"}); });
    v1.refused("codecs [transpose, bytes, blosc]",
               [](ArrayMetadata& m) { m.codecs.insert(m.codecs.begin(), {"transpose"}); });
    v1.refused("the codec zstd", [](ArrayMetadata& m) { m.codecs[1] = {"zstd"}; });
    v1.refused("the codec gzip", [](ArrayMetadata& m) { m.codecs[1] = {"gzip"}; });
    v1.refused("blosc's blocksize", [](ArrayMetadata& m) { m.codecs[1].configuration.set("blocksize", 512); });
    v1.refused("keys such as 0/0", [](ArrayMetadata& m) { m.keys.separator = "/"; });
    v1.refused("dimension_names", [](ArrayMetadata& m) { m.dimension_names = {"y", "x"}; });
    v1.refused("no elements of type", [](ArrayMetadata& m) { m.dtype = DType::variable_text(); });
    v1.refused("without dimensions", [](ArrayMetadata& m) { m.shape = m.chunks = {}; });
}

TEST(V1, fills_are_bare_and_assigned_as_numpy_assigns) {
    const auto reads = [](const std::string& dtype, const std::string& json, const Value& element) {
        const Changes changes{{"dtype", '"' + dtype + '"'}, {"fill_value", json}};
        EXPECT_EQ(fill_of(v1.load(changes)), element) << dtype << ' ' << json;
        v1.kept(changes);
    };
    reads("|u1", "300", 44);
    reads("<f8", "NaN", std::numeric_limits<double>::quiet_NaN());
    reads("<c8", "3", Value::Array{3.0, 0.0});
    reads("|S3", "0", "0");
    EXPECT_FALSE(v1.load({{"dtype", "\"|V3\""}, {"fill_value", "0"}}).fill.error.empty());
}

TEST(V1, attributes_are_always_there) {
    const auto store = memory_store();
    EXPECT_FALSE(v1.dialect.probe({*store, "a"}));
    put_text(*store, "a/meta", v1.document);
    EXPECT_FALSE(v1.dialect.probe({*store, "a"})) << "anything may be called meta";
    v1.dialect.save({*store, "a"}, v1.load(Changes{}), nullptr);
    EXPECT_EQ(get_text(*store, "a/attrs"), "{}");
    EXPECT_EQ(probe_dialect({*store, "a"}), &v1.dialect);
    v1.dialect.save_attributes({*store, "a"}, Value::parse(R"({"b": 1})"));
    v1.dialect.save({*store, "a"}, v1.load(Changes{}), nullptr);
    EXPECT_EQ(v1.dialect.load_attributes({*store, "a"}), Value::parse(R"({"b": 1})"));
}

TEST(V1, arrays_without_dimensions_are_read_but_not_written) {
    const std::shared_ptr<KeyValueStore> store = memory_store();
    put_text(*store, "meta", v1.changed({{"shape", "[]"}, {"chunks", "[]"}, {"fill_value", "7"}}).dump());
    put_text(*store, "attrs", "{}");
    Array array = Array::open(store);
    EXPECT_EQ(array.read("").values<std::int32_t>()[0], 7);
    expect_error(ErrorCode::unsupported, "without dimensions", [&] { array.fill(Selection::parse("", {}), 1); });
    expect_error(ErrorCode::unsupported, "without dimensions", [&] { array.write(Region(), array.read("").view()); });
    EXPECT_EQ(store->list("").keys, (std::vector<std::string>{"attrs", "meta"}));
}

TEST(V1, owns_what_it_writes) {
    const ArrayMetadata m = v1.load(Changes{});
    for (const char* name : {"meta", "attrs", "0.0", "17.3"}) EXPECT_TRUE(v1.dialect.owns(m, name)) << name;
    for (const char* name : {"0", "0.0.0", "00.1", ".zarray", "notes", ""})
        EXPECT_FALSE(v1.dialect.owns(m, name)) << name;
    EXPECT_THAT(v1.dialect.remarks(m), IsEmpty());
}

}  // namespace
}  // namespace tessera
