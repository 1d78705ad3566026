#include <gmock/gmock.h>

#include "base64.h"
#include "dialect_test_util.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const DialectUnderTest v2{dialect_named("v2"),
                          R"({"chunks": [10, 10], "compressor": {"id": "zlib", "level": 1}, "dtype": "<i4",
                              "fill_value": 0, "filters": null, "order": "C", "shape": [20, 30], "zarr_format": 2})"};

std::vector<std::string> chain(const Changes& changes) {
    v2.kept(changes);
    return names_of(v2.load(changes));
}

TEST(V2, filters_and_compressor_become_a_chain_and_back) {
    EXPECT_THAT(chain({}), ElementsAre("bytes", "numcodecs.zlib"));
    EXPECT_THAT(chain({{"compressor", "null"}}), ElementsAre("bytes"));
    EXPECT_THAT(chain({{"order", "\"F\""}}), ElementsAre("transpose", "bytes", "numcodecs.zlib"));
    EXPECT_THAT(chain({{"filters",
                        R"([{"id": "delta", "dtype": "<i4", "astype": "<i2"}, {"id": "shuffle", "elementsize": 2}])"}}),
                ElementsAre("numcodecs.delta", "bytes", "numcodecs.shuffle", "numcodecs.zlib"));
    EXPECT_THAT(chain({{"filters", R"([{"id": "crc32"}])"}, {"compressor", "null"}}),
                ElementsAre("bytes", "numcodecs.crc32"));
    EXPECT_THAT(chain({{"compressor", R"({"id": "gzip", "level": 5})"}}), ElementsAre("bytes", "gzip"));
    EXPECT_THAT(chain({{"compressor", R"({"id": "zstd", "level": 5})"}}), ElementsAre("bytes", "zstd"));
    EXPECT_THAT(chain({{"dtype", "\"|O\""}, {"filters", R"([{"id": "vlen-utf8"}])"}, {"fill_value", "\"\""}}),
                ElementsAre("vlen-utf8", "numcodecs.zlib"));
    // A compressor among the filters, with nothing after it, is one.
    const ArrayMetadata m = v2.load({{"filters", R"([{"id": "bz2", "level": 1}])"}, {"compressor", "null"}});
    EXPECT_EQ(v2.saved(m).at("compressor"), Value::parse(R"({"id": "bz2", "level": 1})"));
    // crc32c has the checksum at the end in v3 and, unless told otherwise, here.
    EXPECT_THAT(chain({{"filters", R"([{"id": "crc32c"}])"}, {"compressor", "null"}}), ElementsAre("bytes", "crc32c"));
}

TEST(V2, blosc_shuffles_by_number) {
    const auto blosc = [](const std::string& shuffle) {
        const Changes changes{
            {"compressor",
             R"({"id": "blosc", "blocksize": 0, "clevel": 5, "cname": "lz4", "shuffle": )" + shuffle + "}"}};
        v2.kept(changes);
        return v2.load(changes).codecs.at(1);
    };
    EXPECT_EQ(blosc("0").configuration.at("shuffle"), Value("noshuffle"));
    EXPECT_EQ(blosc("1").configuration.at("shuffle"), Value("shuffle"));
    EXPECT_EQ(blosc("2").configuration.at("shuffle"), Value("bitshuffle"));
    EXPECT_EQ(blosc("2").name, "blosc");
    EXPECT_EQ(blosc("-1").name, "numcodecs.blosc");
    EXPECT_EQ(blosc("3").configuration.at("shuffle"), Value(3)) << "a frame says how it was shuffled";
}

TEST(V2, objects_are_what_their_filter_makes_of_them) {
    const auto kind = [](const std::string& filter) {
        const Changes changes{{"dtype", "\"|O\""}, {"filters", '[' + filter + ']'}, {"fill_value", "0"}};
        v2.kept(changes);
        const ArrayMetadata m = v2.load(changes);
        EXPECT_EQ(fill_of(m), Value("")) << "zarr-python's 0 stands for the empty string";
        return m.dtype.kind();
    };
    EXPECT_EQ(kind(R"({"id": "vlen-utf8"})"), Kind::variable_text);
    EXPECT_EQ(kind(R"({"id": "vlen-bytes"})"), Kind::variable_bytes);
    for (const char* texts : {"json", "json2", "msgpack2"}) {
        EXPECT_EQ(kind(std::string(R"({"id": ")") + texts + "\"}"), Kind::variable_text);
    }
    const auto refused = [](const std::string& filters, std::string_view message) {
        expect_error(ErrorCode::unsupported, message, [&] {
            (void)v2.load({{"dtype", "\"|O\""}, {"filters", filters}});
        });
    };
    refused("null", "no filter says");
    refused(R"([{"id": "pickle", "protocol": 5}])", "encoded by pickle");
    refused(R"([{"id": "delta", "dtype": "<i4"}])", "encoded by delta");
}

TEST(V2, what_is_wrong_is_named) {
    for (const char* name :
         {"chunks", "compressor", "dtype", "fill_value", "filters", "order", "shape", "zarr_format"}) {
        v2.wrong(name, "", fmt::format("the member \"{}\" is missing", name));
    }
    v2.wrong("zarr_format", "3", "member \"zarr_format\": 3 was found, expected 2", ErrorCode::unsupported);
    v2.wrong("order", "\"K\"", "expected one of C, F");
    v2.wrong("dimension_separator", "\"-\"", "member \"dimension_separator\": \"-\" was found, expected one of ., /");
    v2.wrong("dimension_separator", "1", "member \"dimension_separator\"");
    v2.wrong("compressor", "5", "member \"compressor\"");
    v2.wrong("compressor", "{}", "member \"compressor\"");
    v2.wrong("compressor", R"({"id": "quux"})", "there is no codec \"numcodecs.quux\"", ErrorCode::unsupported);
    v2.wrong("filters", R"({"id": "delta"})", "member \"filters\"");
    v2.wrong("filters", R"([{"id": "pickle"}])", "there is no codec \"numcodecs.pickle\"", ErrorCode::unsupported);
    v2.wrong("filters", R"([{"id": "shuffle"}, {"id": "delta", "dtype": "<i4"}])",
             "numcodecs.delta needs elements, but stands after numcodecs.shuffle", ErrorCode::unsupported);
    v2.wrong("dtype", "\"<q9\"", "member \"dtype\"");
    v2.wrong("dtype", R"([["a", "|O"]])", "v2 has no elements of type", ErrorCode::unsupported);
    v2.wrong("shape", "[20, -1]", "member \"shape\": a length is -1");
    v2.wrong("shape", "[4611686018427387904, 4611686018427387904]", "");
    v2.wrong("chunks", "[10, 0]", "member \"chunks\"");
    v2.wrong("chunks", "[10]", "");
    v2.wrong("fill_value", "\"text\"", "member \"fill_value\"");
}

TEST(V2, separators_are_kept_as_they_were_spelt) {
    v2.kept({{"dimension_separator", "\".\""}});
    v2.kept({{"dimension_separator", "\"/\""}});
    EXPECT_EQ(v2.load({{"dimension_separator", "\"/\""}}).keys.key({4, 2}), "4/2");
    ArrayMetadata m = v2.load(Changes{});
    EXPECT_EQ(m.keys.key({4, 2}), "4.2");
    m.keys = m.keys.with_separator("/");
    EXPECT_EQ(v2.saved(m).at("dimension_separator"), Value("/"));
    v2.kept({{"shape", "[20]"}, {"chunks", "[10]"}, {"order", "\"F\""}});
    v2.kept({{"strange", "[1, {}]"}});
}

TEST(V2, fills_of_every_kind) {
    const auto reads = [](const std::string& dtype, const std::string& json, const Value& element) {
        const Changes changes{{"dtype", dtype.starts_with('[') ? dtype : '"' + dtype + '"'}, {"fill_value", json}};
        EXPECT_EQ(fill_of(v2.load(changes)), element) << dtype << ' ' << json;
        v2.kept(changes);
    };
    const double nan = std::numeric_limits<double>::quiet_NaN();
    reads("<f4", "\"NaN\"", nan);
    reads("<f4", "NaN", nan);
    reads("<f8", "\"-Infinity\"", -std::numeric_limits<double>::infinity());
    reads("<f4", "0.10000000149011612", 0.1);
    reads("<c16", "[1.0, \"NaN\"]", Value::Array{1.0, nan});
    reads("|S4", "\"YWL/\"", "ab\u00ff");
    reads("|S4", "\"abc\"", "abc");  // no base64
    reads("|S4", "0", "0");
    reads("|S2", "\"YWJj\"", "ab");
    reads("<U3", "\"YWI=\"", "YWI");
    reads("|V3", "\"AQID\"", "0x010203");
    reads(R"([["a", "<i2"], ["b", "|u1"]])", "\"AQID\"", Value::Array{513, 3});
    reads("<M8[ns]", "-9223372036854775808", std::numeric_limits<std::int64_t>::min());
    reads("|u1", "300", 44);
    reads("|b1", "true", true);
    reads("<i4", "null", 0);
    v2.wrong("fill_value", "[1]", "member \"fill_value\"");
    expect_error(ErrorCode::corrupt, "stands for 3 bytes, expected 4", [] {
        (void)v2.load({{"dtype", "\"|V4\""}, {"fill_value", "\"AQID\""}});
    });
    expect_error(ErrorCode::corrupt, "is no base64", [] {
        (void)v2.load({{"dtype", "\"|V4\""}, {"fill_value", "\"A\""}});
    });
}

TEST(V2, fills_known_by_their_bytes) {
    const auto spelt = [](const DType& dtype, const Value& element) {
        ArrayMetadata m = v2.load({{"compressor", "null"}});
        m.dtype = dtype;
        m.fill = {.bytes = element_from_value(dtype, element, Assign::exact), .spelling = {}, .error = {}};
        if (dtype.is_variable()) {
            m.codecs = {{dtype.kind() == Kind::variable_text ? "vlen-utf8" : "vlen-bytes"}};
        }
        return v2.saved(m).at("fill_value");
    };
    EXPECT_EQ(spelt("<f4", 0.1), Value(0.10000000149011612));
    EXPECT_EQ(spelt("<f2", "NaN"), Value("NaN"));
    EXPECT_EQ(spelt(">c8", Value::Array{1, "Infinity"}), Value::parse(R"([1.0, "Infinity"])"));
    EXPECT_EQ(spelt("S5", "abc"), Value("YWJj"));
    EXPECT_EQ(spelt("V3", "0x010203"), Value("AQID"));
    EXPECT_EQ(spelt(DType::variable_text(), "caf\u00e9"), Value("caf\u00e9"));
    EXPECT_EQ(spelt(DType::variable_bytes(), "\u00ff"), Value("/w=="));
    // A fill as a person gave it, which reads as something else here, is spelt anew.
    ArrayMetadata m = v2.load({{"dtype", "\"|S4\""}, {"fill_value", "\"\""}});
    m.fill = {.bytes = element_from_value(m.dtype, "YWJj", Assign::exact), .spelling = "YWJj", .error = {}};
    EXPECT_EQ(v2.saved(m).at("fill_value"), Value("WVdKag=="));
}

TEST(V2, what_cannot_be_said_is_refused_by_name) {
    v2.refused("codec sharding_indexed", [](ArrayMetadata& m) { m.codecs = {sharding_codec({5, 5}, {{"bytes"}})}; });
    v2.refused("codec transpose", [](ArrayMetadata& m) {
        m.shape = m.chunks = {4, 4, 4};
        CodecConfig rotate{"transpose"};
        rotate.configuration.set("order", Value::Array{1, 2, 0});
        m.codecs.insert(m.codecs.begin(), rotate);
    });
    v2.refused("codec scale_offset", [](ArrayMetadata& m) {
        CodecConfig scale{"scale_offset"};
        scale.configuration.set("offset", 1);
        scale.configuration.set("scale", 2);
        m.codecs.insert(m.codecs.begin(), scale);
    });
    v2.refused("endian \"big\" for elements of type <i4",
               [](ArrayMetadata& m) { m.codecs[0].configuration.set("endian", "big"); });
    v2.refused("blosc's typesize 2", [](ArrayMetadata& m) {
        m.codecs[1] = {"blosc", Value::parse(R"({"cname": "lz4", "typesize": 2})")};
    });
    v2.refused("keys such as c/0/0", [](ArrayMetadata& m) { m.keys = {"c/", "/", "", "c"}; });
    v2.refused("dimension_names", [](ArrayMetadata& m) { m.dimension_names = {"y", "x"}; });
    v2.refused("no elements of type", [](ArrayMetadata& m) { m.dtype = "bfloat16"; });
    v2.refused("a NaN must be the usual one", [](ArrayMetadata& m) {
        m.dtype = "<f4";
        m.fill.bytes = ElementBytes{std::byte{1}, std::byte{0}, std::byte{0xC0}, std::byte{0x7F}};
    });
    // What says the same in other words is no obstacle.
    ArrayMetadata m = v2.load(Changes{});
    m.codecs = {{"bytes", Value::parse(R"({"endian": "little"})")},
                {"zstd", Value::parse(R"({"level": 3, "checksum": false})")}};
    EXPECT_EQ(v2.saved(m).at("compressor"), Value::parse(R"({"id": "zstd", "level": 3})"));
}

TEST(V2, new_arrays) {
    const ArrayMetadata m = v2.load(Changes{});
    EXPECT_EQ(m.keys, v2.dialect.default_keys());
    for (const char* dtype : {"<i4", "|b1", "S3", "<U2", "V4", "i4,f8", "M8[s]", "c8"}) {
        EXPECT_EQ(v2.dialect.default_fill(dtype).bytes, zero_element(dtype)) << dtype;
    }
    EXPECT_THAT(v2.dialect.remarks(m), IsEmpty());
    EXPECT_THAT(v2.dialect.remarks(v2.load({{"compressor", R"({"id": "blosc", "cname": "snappy"})"}})),
                ElementsAre(HasSubstr("snappy")));
}

TEST(V2, owns_what_it_writes) {
    const ArrayMetadata dots = v2.load(Changes{});
    const ArrayMetadata folders = v2.load({{"dimension_separator", "\"/\""}});
    for (const char* name : {".zarray", ".zattrs"}) EXPECT_TRUE(v2.dialect.owns(dots, name));
    for (const char* name : {".zgroup", ".zmetadata", "c", "a.b", "notes"}) EXPECT_FALSE(v2.dialect.owns(dots, name));
    EXPECT_TRUE(v2.dialect.owns(dots, "3.4"));
    EXPECT_FALSE(v2.dialect.owns(dots, "3"));
    EXPECT_TRUE(v2.dialect.owns(folders, "3"));
    EXPECT_FALSE(v2.dialect.owns(folders, "3.4"));
}

TEST(V2, groups_and_consolidated_metadata) {
    const auto store = memory_store();
    v2.dialect.save_group({*store, "g"}, Value::object(), Value::object());
    EXPECT_EQ(get_text(*store, "g/.zgroup"), "{\n    \"zarr_format\": 2\n}");
    EXPECT_EQ(get_text(*store, "g/.zattrs"), "(absent)") << "as zarr-python 2";
    EXPECT_EQ(probe_group_dialect({*store, "g"}), &v2.dialect);
    EXPECT_EQ(probe_dialect({*store, "g"}), nullptr);
    v2.dialect.save_attributes({*store, "g"}, Value::parse(R"({"t": 1})"));
    EXPECT_EQ(v2.dialect.load_consolidated({*store, "g"}), std::nullopt);
    const Value nodes = Value::parse(R"({"a": {".zarray": {}, ".zattrs": {"x": 1}}, "s/t": {".zgroup": {}}})");
    v2.dialect.save_consolidated({*store, "g"}, nodes);
    Value all = nodes;
    all.set("", Value::parse(R"({".zgroup": {"zarr_format": 2}, ".zattrs": {"t": 1}})"));
    EXPECT_EQ(v2.dialect.load_consolidated({*store, "g"}), all) << "the group's own are among them";
    v2.dialect.save_consolidated({*store, "g"}, all);
    EXPECT_EQ(v2.dialect.load_consolidated({*store, "g"}), all);
    EXPECT_EQ(Value::parse(get_text(*store, "g/.zmetadata")),
              Value::parse(R"({"zarr_consolidated_format": 1, "metadata": {".zgroup": {"zarr_format": 2},
                               ".zattrs": {"t": 1}, "a/.zarray": {}, "a/.zattrs": {"x": 1}, "s/t/.zgroup": {}}})"));
    v2.dialect.save_group({*store, "g"}, Value::object(), Value::object());
    EXPECT_EQ(get_text(*store, "g/.zattrs"), "{}") << "what was there does not stay";
    put_text(*store, "g/.zmetadata", R"({"zarr_consolidated_format": 2, "metadata": {}})");
    expect_error(ErrorCode::unsupported, "zarr_consolidated_format", [&] {
        (void)v2.dialect.load_consolidated({*store, "g"});
    });
}

TEST(Base64, as_pythons) {
    const auto decoded = [](std::string_view text) -> std::string {
        const auto bytes = base64_decode(text);
        return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "(wrong)";
    };
    const std::string text = "any carnal pleas";
    for (std::size_t n = 0; n <= text.size(); ++n) {
        EXPECT_EQ(decoded(base64_encode(std::as_bytes(std::span(text).first(n)))), text.substr(0, n));
    }
    // base64.standard_b64decode of Python 3.11.
    EXPECT_EQ(decoded("YW I=\n"), "ab");
    EXPECT_EQ(decoded("YWI"), "(wrong)");
    EXPECT_EQ(decoded("Y"), "(wrong)");
    EXPECT_EQ(decoded("YWI=YWI="), "ab");
    EXPECT_EQ(decoded("=YWJj"), "abc");
    EXPECT_EQ(decoded("Y=WJj"), "abc");
    EXPECT_EQ(decoded("YW=Jj"), "abc");
}

}  // namespace
}  // namespace tessera
