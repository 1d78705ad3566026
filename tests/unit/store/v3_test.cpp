#include <gmock/gmock.h>
#include <tessera/array.h>
#include <tessera/array_plan.h>

#include "dialect_test_util.h"
#include "v3_codecs.h"

namespace tessera {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const DialectUnderTest v3{dialect_named("v3"),
                          R"({"shape": [20, 30], "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [10, 10]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
                   {"name": "zstd", "configuration": {"level": 3, "checksum": false}}],
        "attributes": {}, "zarr_format": 3, "node_type": "array", "storage_transformers": []})"};

const std::string little = R"({"name": "bytes", "configuration": {"endian": "little"}})";
const std::string plain = R"([{"name": "bytes"}])";

/// A document for elements of this data type, without compression.
Changes of_type(const std::string& data_type, const std::string& fill, bool ordered = true) {
    return {{"data_type", data_type}, {"fill_value", fill}, {"codecs", ordered ? '[' + little + ']' : plain}};
}

TEST(V3, data_types_in_every_spelling) {
    const auto reads = [](const std::string& data_type, const std::string& fill, const DType& dtype, bool ordered) {
        const Changes changes = of_type(data_type, fill, ordered);
        EXPECT_EQ(v3.load(changes).dtype, dtype) << data_type;
        v3.kept(changes);
    };
    reads("\"bool\"", "true", "|b1", false);
    reads("\"uint8\"", "7", "|u1", false);
    reads("\"int64\"", "-7", "<i8", true);
    reads("\"float16\"", "0.5", "<f2", true);
    reads("\"complex64\"", "[0.0, 1.0]", "<c8", true);
    reads("\"bfloat16\"", "1.5", DType::scalar(Kind::bfloat16, 2, ByteOrder::little), true);
    reads("\"r24\"", "[1, 2, 3]", "V3", false);
    reads(R"({"name": "raw_bytes", "configuration": {"length_bytes": 3}})", "\"AQID\"", "V3", false);
    reads(R"({"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}})", "\"YWI=\"", "S3", false);
    reads(R"({"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}})", "\"\u00e9\"", "<U3", true);
    for (const char* unit : {"Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"}) {
        reads(fmt::format(R"({{"name": "numpy.datetime64", "configuration": {{"unit": "{}", "scale_factor": 10}}}})",
                          unit),
              "-9223372036854775808", fmt::format("<M8[10{}]", unit), true);
    }
    reads(R"({"name": "numpy.timedelta64", "configuration": {"unit": "generic", "scale_factor": 1}})", "5", "<m8",
          true);
    reads(
        R"({"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int8"}, {"name": "b", "data_type":
              {"name": "struct", "configuration": {"fields": [{"name": "c", "data_type": "float64"}]}}}]}})",
        R"({"a": 1, "b": {"c": "0x7ff8000000000001"}})",
        DType::from_descr(Value::parse(R"([["a", "|i1"], ["b", [["c", "<f8"]]]])")), true);
    // zarr-python 3.1's spelling, with its fill and its codec without endian.
    reads(R"({"name": "structured", "configuration": {"fields": [["a", "int8"], ["b", "int16"]]}})", "\"AQID\"",
          DType::from_descr(Value::parse(R"([["a", "|i1"], ["b", "<i2"]])")), false);
    EXPECT_EQ(v3.load({{"data_type", "\"string\""}, {"fill_value", "\"x\""}, {"codecs", R"([{"name": "vlen-utf8"}])"}})
                  .dtype.kind(),
              Kind::variable_text);
    for (const auto& [name, dtype] : {std::pair("complex_float32", "<c8"), std::pair("complex_float64", "<c16")}) {
        const Changes complex{{"data_type", '"' + std::string(name) + '"'}, {"fill_value", "[1.0, 2.0]"}};
        EXPECT_EQ(v3.load(complex).dtype, dtype);
        v3.kept(complex);
    }
    for (const char* name : {"\"variable_length_bytes\"", "\"bytes\""}) {
        const Changes changes{{"data_type", name},
                              {"fill_value", "\"AAE=\""},
                              {"codecs", R"([{"name": "vlen-bytes", "configuration": {}}])"}};
        EXPECT_EQ(v3.load(changes).dtype.kind(), Kind::variable_bytes);
        v3.kept(changes);
    }
}

TEST(V3, small_types_are_the_numbers_that_hold_them) {
    const auto first = [](const ArrayMetadata& m) { return codec_text(m.codecs.front()); };
    const std::string bytes = R"([{"name": "bytes"}])";
    const Changes int4{{"data_type", "\"int4\""}, {"fill_value", "-3"}, {"codecs", bytes}};
    EXPECT_EQ(v3.load(int4).dtype, "|i1");
    EXPECT_EQ(first(v3.load(int4)), "data_type:int4");
    EXPECT_EQ(v3.load(int4).fill.bytes, ElementBytes{std::byte{0xfd}});
    v3.kept(int4);
    for (const char* fill : {"2.0", "\"NaN\"", "\"-Infinity\"", "\"0x7d\"", "-0.0"}) {
        SCOPED_TRACE(fill);
        const Changes changes{{"data_type", "\"float8_e5m2\""}, {"fill_value", fill}, {"codecs", bytes}};
        EXPECT_EQ(v3.load(changes).dtype, "<f4");
        v3.kept(changes);
        // Known by its bytes alone, the fill is spelt the same.
        ArrayMetadata m = v3.load(changes);
        m.fill.spelling.reset();
        const auto store = memory_store();
        v3.dialect.save(*store, m, nullptr);
        EXPECT_EQ(load_metadata(v3.dialect, *store).fill.spelling, Value::parse(fill));
    }
    for (const auto& [endian, dtype] : {std::pair("little", "<c8"), std::pair("big", ">c8")}) {
        const Changes complex{
            {"data_type", "\"complex_float16\""},
            {"fill_value", "[1.5, \"0x7e01\"]"},
            {"codecs", R"([{"name": "bytes", "configuration": {"endian": ")" + std::string(endian) + "\"}}]"}};
        EXPECT_EQ(v3.load(complex).dtype, dtype);
        v3.kept(complex);
    }
    // In a shard the inner chunks are packed, each by itself.
    const Changes shards{{"data_type", "\"uint2\""}, {"fill_value", "3"}, {"codecs", R"([{"name": "sharding_indexed",
        "configuration": {"chunk_shape": [1, 1], "codecs": [{"name": "packbits", "configuration": {"last_bit": 1}}],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
        "index_location": "end"}}])"}};
    EXPECT_EQ(v3.load(shards).codecs.size(), 1U);
    EXPECT_EQ(codec_text(chunk_layout(v3.load(shards)).codecs.front()), "data_type:uint2");
    v3.kept(shards);
    // packbits takes the bits of the type.
    const Changes packed{{"data_type", "\"int2\""}, {"fill_value", "0"}, {"codecs", R"([{"name": "packbits"}])"}};
    EXPECT_EQ(v3.load(packed).codecs.back().configuration.at("last_bit"), Value(1));
    // What has no zero is NaN where 0 is written.
    const Changes no_zero{{"data_type", "\"float8_e8m0fnu\""}, {"fill_value", "0.0"}, {"codecs", bytes}};
    v3.kept(no_zero);
    const auto refused = [](const Changes& changes, std::string_view message) {
        expect_error(ErrorCode::corrupt, message, [&] { (void)v3.load(changes); });
    };
    refused({{"data_type", "\"int4\""}, {"fill_value", "8"}, {"codecs", bytes}}, "int4 has no 8");
    refused({{"data_type", "\"int4\""},
             {"fill_value", "0"},
             {"codecs", R"([{"name": "packbits", "configuration": {"last_bit": 4}}])"}},
            "4 bits");
    refused({{"data_type", "\"float8_e4m3fn\""}, {"fill_value", "[1]"}, {"codecs", bytes}}, "fill_value");
    refused({{"data_type", "\"float8_e4m3fn\""}, {"fill_value", "\"Infinity\""}, {"codecs", bytes}}, "448");
    refused({{"data_type", "\"complex_float8_e5m2\""}, {"fill_value", "1"}, {"codecs", bytes}}, "real, imaginary");
    // The codec that stands for the type is first, and nothing else comes before it.
    ArrayMetadata m = v3.load(int4);
    m.codecs.insert(m.codecs.begin(), parse_codec("delta"));
    expect_error(ErrorCode::unsupported, "data_type", [&] { v3.dialect.require_expressible(m); });
}

TEST(V3, the_byte_order_is_that_of_the_bytes_codec) {
    const auto order = [](const std::string& codecs, bool kept = true) {
        if (kept) v3.kept({{"codecs", codecs}});
        return v3.load({{"codecs", codecs}}).dtype.order();
    };
    const std::string big = R"({"name": "bytes", "configuration": {"endian": "big"}})";
    const std::string turn = R"({"name": "transpose", "configuration": {"order": [1, 0]}})";
    EXPECT_EQ(order('[' + big + ']'), ByteOrder::big);
    EXPECT_EQ(order('[' + little + ']'), ByteOrder::little);
    EXPECT_EQ(order(plain, false), ByteOrder::little);
    EXPECT_EQ(order('[' + turn + ',' + big + ']'), ByteOrder::big);
    EXPECT_EQ(order(R"([{"name": "sharding_indexed", "configuration": {"chunk_shape": [5, 5], "codecs": [)" + turn +
                    ',' + big + R"(], "index_codecs": [)" + little + R"(], "index_location": "end"}}])"),
              ByteOrder::big);
    EXPECT_THAT(v3.load({{"codecs", '[' + big + ']'}}).codecs, ElementsAre(CodecConfig{"bytes"}));
    // A codec that changes the elements keeps the two apart.
    const Changes delta{
        {"codecs", R"([{"name": "numcodecs.delta", "configuration": {"dtype": "<i4", "astype": "<i2"}},)" + big + ']'}};
    EXPECT_EQ(v3.load(delta).dtype, DType("<i4"));
    EXPECT_EQ(v3.load(delta).codecs.back().configuration.at("endian"), Value("big"));
    v3.kept(delta);
    // And where there is none yet, its endian is that of what it gets.
    ArrayMetadata m = v3.load(delta);
    m.codecs.back().configuration.erase("endian");
    EXPECT_EQ(v3.saved(m).at("codecs").as_array().back(), Value::parse(little));
    // The elements have the order of what the filter decodes to, as zarr-python 3 writes it, in shards too.
    const std::string cast = R"({"name": "numcodecs.astype", "configuration": {"decode_dtype": ">i4", "encode_dtype":
                                 "<i8"}})";
    EXPECT_EQ(order('[' + cast + ',' + little + ']'), ByteOrder::big);
    EXPECT_EQ(order('[' + turn + ',' + cast + ',' + big + ']'), ByteOrder::big);
    EXPECT_EQ(order(R"([{"name": "sharding_indexed", "configuration": {"chunk_shape": [5, 5], "codecs": [)" + cast +
                    ',' + little + R"(], "index_codecs": [)" + little + R"(], "index_location": "end"}}])"),
              ByteOrder::big);
    v3.refused("byte order of elements of type >i4", [&](ArrayMetadata& changed) {
        changed.dtype = ">i4";
        changed.codecs = {{"numcodecs.astype", Value::parse(R"({"decode_dtype": "<i4", "encode_dtype": "<i8"})")},
                          {"bytes"}};
    });
}

TEST(V3, fills_of_every_kind) {
    const auto reads = [](const std::string& data_type, const std::string& json, const Value& element) {
        const Changes changes = of_type('"' + data_type + '"', json);
        EXPECT_EQ(fill_of(v3.load(changes)), element) << data_type << ' ' << json;
        v3.kept(changes);
    };
    const double nan = std::numeric_limits<double>::quiet_NaN();
    reads("float32", "0.10000000149011612", 0.1);
    reads("float32", "0.1", 0.1);
    reads("float64", "\"NaN\"", nan);
    reads("float32", "\"-Infinity\"", -std::numeric_limits<double>::infinity());
    reads("float32", "\"0x7fc0beef\"", nan);
    reads("float16", "\"0x3c00\"", 1.0);
    reads("complex128", R"(["NaN", "-Infinity"])", Value::Array{nan, -std::numeric_limits<double>::infinity()});
    reads("uint64", "18446744073709551615", 18446744073709551615ULL);
    // The bits stay, in either byte order, also where they are known by nothing else.
    ArrayMetadata m = v3.load({{"data_type", "\"float32\""},
                               {"fill_value", "\"0x7fc0beef\""},
                               {"codecs", R"([{"name": "bytes", "configuration": {"endian": "big"}}])"}});
    EXPECT_EQ(m.fill.bytes, (ElementBytes{std::byte{0x7F}, std::byte{0xC0}, std::byte{0xBE}, std::byte{0xEF}}));
    m.fill.spelling.reset();
    EXPECT_EQ(v3.saved(m).at("fill_value"), Value("0x7fc0beef"));
    // Python's token is understood, but not written.
    const ArrayMetadata token = v3.load(of_type("\"float32\"", "NaN"));
    EXPECT_EQ(fill_of(token), Value(nan));

    const auto wrong = [](const std::string& data_type, const std::string& json, std::string_view message) {
        SCOPED_TRACE(data_type + ' ' + json);
        const std::string quoted = data_type.starts_with('{') ? data_type : '"' + data_type + '"';
        expect_error(ErrorCode::corrupt, message, [&] { (void)v3.load(of_type(quoted, json)); });
        expect_error(ErrorCode::corrupt, "member \"fill_value\"", [&] { (void)v3.load(of_type(quoted, json)); });
    };
    wrong("int32", "2147483648", "between");
    wrong("int32", "0.5", "");
    wrong("bool", "1", "expected true or false");
    wrong("float32", "\"nan\"", "expected a number, \"NaN\"");
    wrong("float32", "\"0x7fc0\"", "hexadecimal digits");
    wrong("float32", "1e300", "beyond");
    wrong("complex64", "1.0", "expected [real, imaginary]");
    wrong("r16", "[1, 2, 3]", "3 bytes were found, expected 2");
    wrong("r16", "[1, 256]", "expected 0 to 255");
    wrong(R"({"name": "null_terminated_bytes", "configuration": {"length_bytes": 1}})", "\"YWI=\"",
          "stands for 2 bytes");
    wrong(R"({"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int8"}]}})", "{\"b\": 1}",
          "the field 'a' has no value");
    wrong(R"({"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int8"}]}})", "{\"a\": 1000}",
          "the field 'a'");
}

TEST(V3, a_null_fill_is_kept_where_it_is_found) {
    const Changes null{{"fill_value", "null"}};
    v3.kept(null);
    const ArrayMetadata m = v3.load(null);
    EXPECT_EQ(m.fill.bytes, zero_element(m.dtype));
    EXPECT_THAT(v3.dialect.remarks(m), testing::Contains(HasSubstr("fill_value is null")));
    ArrayMetadata filled = m;
    filled.fill = {.bytes = ElementBytes(4, std::byte{1}), .spelling = {}, .error = {}};
    EXPECT_EQ(v3.saved(filled).at("fill_value"), Value(0x01010101));
}

TEST(V3, what_is_wrong_is_named) {
    for (const char* name : {"shape", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs", "zarr_format",
                             "node_type", "data_type"}) {
        v3.wrong(name, "", fmt::format("\"{}\"", name));
    }
    const auto unknown = ErrorCode::unsupported;
    v3.wrong("zarr_format", "2", "member \"zarr_format\": 2 was found, expected 3", unknown);
    v3.wrong("node_type", "\"grape\"", "\"grape\" was found, expected \"array\"");
    v3.wrong("data_type", "\"int5\"", "member \"data_type\": \"int5\" is not known", unknown);
    v3.wrong("data_type", R"({"name": "int4", "configuration": {}})", "\"int4\" is not known", unknown);
    v3.wrong("data_type", "\"r12\"", "multiple of 8");
    v3.wrong("data_type", "\"r0\"", "multiple of 8");
    v3.wrong("data_type", "\"r99999999999\"", "", unknown);
    v3.wrong("data_type", "\"r9999999992\"", "");
    v3.wrong("data_type", "7", "member \"data_type\"");
    v3.wrong("data_type", R"({"name": "raw_bytes"})", "\"length_bytes\" is missing");
    v3.wrong("data_type", R"({"name": "raw_bytes", "configuration": {"length_bytes": 0}})", "no bytes to store",
             unknown);
    v3.wrong("data_type", R"({"name": "raw_bytes", "configuration": {"length_bytes": 4294967296}})", "length_bytes");
    v3.wrong("data_type", R"({"name": "fixed_length_utf32", "configuration": {"length_bytes": 6}})", "multiple of 4");
    v3.wrong("data_type", R"({"name": "numpy.datetime64", "configuration": {"unit": "ns/2", "scale_factor": 1}})",
             "unit");
    v3.wrong("data_type", R"({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 0}})",
             "scale_factor");
    v3.wrong("data_type", R"({"name": "struct", "configuration": {"fields": [["a", "int8"], ["a", "int8"]]}})",
             "twice");
    v3.wrong("data_type", R"({"name": "struct", "configuration": {"fields": [["a", "string"]]}})", "variable length");
    v3.wrong("chunk_grid",
             R"({"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[2], [3]]}})",
             "add up to 2");
    v3.wrong("chunk_grid", R"({"name": "spiral"})", "the grid \"spiral\"", unknown);
    v3.wrong("chunk_grid", R"({"name": "regular"})", "\"chunk_shape\" is missing");
    v3.wrong("chunk_grid", R"({"name": "regular", "configuration": {"chunk_shape": [10, 0]}})", "a length is 0");
    v3.wrong("chunk_grid", R"({"name": "regular", "configuration": {"chunk_shape": [10]}})", "");
    v3.wrong("shape", "[4611686018427387904, 4611686018427387904]", "");
    v3.wrong("chunk_key_encoding", R"({"name": "fan"})", "\"fan\" was found", unknown);
    v3.wrong("chunk_key_encoding", R"({"name": "v2", "configuration": {"separator": "x"}})", "expected one of ., /");
    v3.wrong("storage_transformers", R"([{"name": "x"}])", "storage_transformers", unknown);
    v3.wrong("dimension_names", R"(["y"])", "1 names were found for 2 dimensions");
    v3.wrong("dimension_names", "[1, 2]", "member \"dimension_names\"");
    v3.wrong("codecs", R"([{"name": "bytes", "configuration": {"endian": "middle"}}])", "expected one of little, big");
    v3.wrong("codecs", R"([{"configuration": {}}])", "member \"codecs\"");
    v3.wrong("extension", "{\"a\": 1}", "member \"extension\" is not known", unknown);
    v3.wrong("extension", R"({"must_understand": true})", "member \"extension\" is not known", unknown);
    v3.wrong("extension", "false", "member \"extension\" is not known", unknown);
    Value nested = Value::parse(plain);
    for (int n = 0; n < 10; ++n) nested = Value::Array{codec_to_json(sharding_codec({1, 1}, read_codecs(nested)))};
    v3.wrong("codecs", nested.dump(), "nested more than 8 deep", unknown);
}

TEST(V3, members_that_may_differ_are_kept) {
    v3.kept({{"extension", R"({"must_understand": false, "a": [1]})"}});
    v3.kept({{"dimension_names", R"(["y", null])"}});
    v3.kept({{"attributes", "{}"}});
    for (const auto& [encoding, key] :
         {std::pair(R"({"name": "default", "configuration": {"separator": "."}})", "c.4.2"),
          std::pair(R"({"name": "v2", "configuration": {"separator": "/"}})", "4/2"),
          std::pair(R"({"name": "v2", "configuration": {"separator": "."}})", "4.2")}) {
        v3.kept({{"chunk_key_encoding", encoding}});
        EXPECT_EQ(v3.load({{"chunk_key_encoding", encoding}}).keys.key({4, 2}), key);
    }
    const ArrayMetadata m = v3.load({{"chunk_key_encoding", R"({"name": "v2"})"}});
    EXPECT_EQ(m.keys.key({4, 2}), "4.2");
    EXPECT_EQ(m.keys.zero_d, "0");
    EXPECT_EQ(v3.load(Changes{}).keys.zero_d, "c");
    // What v3 demands is put in where another dialect may leave it out.
    ArrayMetadata bare = v3.load(Changes{});
    bare.codecs = {{"bytes"}, {"blosc", Value::parse(R"({"cname": "lz4"})")}, {"zstd"}, {"crc32c"}};
    EXPECT_EQ(
        v3.saved(bare).at("codecs"),
        Value::parse('[' + little + R"(, {"name": "blosc", "configuration": {"cname": "lz4", "typesize": 4, "clevel": 5,
                  "shuffle": "shuffle", "blocksize": 0}},
                  {"name": "zstd", "configuration": {"level": 0, "checksum": false}}, {"name": "crc32c"}])"));
}

TEST(V3, what_cannot_be_said_is_refused_by_name) {
    v3.refused("fill_value null", [](ArrayMetadata& m) { m.fill.bytes.reset(); });
    v3.refused("no data_type for elements of type <f16", [](ArrayMetadata& m) {
        m.dtype = "<f16";
        m.fill.bytes = zero_element(m.dtype);
    });
    const auto structure = [](const char* descr) {
        return [descr](ArrayMetadata& m) {
            m.dtype = DType::from_descr(Value::parse(descr));
            m.fill.bytes = zero_element(m.dtype);
        };
    };
    v3.refused("padding", structure(R"([["a", "|i1"], ["", "|V3"], ["b", "<i4"]])"));
    v3.refused("padding", structure(R"([["a", "|i1"], ["", "|V3"]])"));
    v3.refused("the sub-array 'a'", structure(R"([["a", "<i4", [2]]])"));
    v3.refused("the title of 'a'", structure(R"([[["t", "a"], "<i4"]])"));
    v3.refused("the byte order of 'a'", structure(R"([["a", ">i4"]])"));
    v3.refused("keys such as __zdata__/0.0.blosc",
               [](ArrayMetadata& m) { m.keys = dialect_named("zmeta").default_keys(); });
    v3.refused("member \"strange\"", [](ArrayMetadata& m) { m.unknown.set("strange", 1); });
    v3.refused("there is no codec \"quux\"", [](ArrayMetadata& m) { m.codecs.push_back({"quux"}); });
    v3.refused(
        "3 names",
        [](ArrayMetadata& m) {
            m.dimension_names = {"x", "y", "z"};
        },
        ErrorCode::corrupt);
}

TEST(V3, structures_have_either_name) {
    const ArrayOptions options{.shape = {3},
                               .dtype = "[('a', '<i4'), ('b', [('c', 'S2'), ('d', '<M8[s]')])]",
                               .fill_value = Value::Array{1, Value::Array{"x", 5}},
                               .format = "v3"};
    const auto document = [&](const std::string& name, const char* prefix,
                              const std::shared_ptr<KeyValueStore>& store) {
        ArrayOptions named = options;
        named.structures = name;
        Array::create({store, prefix}, named);
        return Value::parse(get_text(*store, std::string(prefix) + "/zarr.json"));
    };
    const auto store = memory_store();
    EXPECT_EQ(document("struct", "a", store), document("", "b", store));
    const Value older = document("structured", "c", store);
    EXPECT_EQ(older.at("data_type").dump(),
              R"({"name": "structured", "configuration": {"fields": [["a", "int32"], ["b", {"name": "structured", )"
              R"("configuration": {"fields": [["c", {"name": "null_terminated_bytes", "configuration": )"
              R"({"length_bytes": 2}}], ["d", {"name": "numpy.datetime64", "configuration": {"unit": "s", )"
              R"("scale_factor": 1}}]]}}]]}})");
    EXPECT_EQ(older.at("fill_value"), Value("AQAAAHgABQAAAAAAAAA="));
    for (const char* const prefix : {"a", "b", "c"}) {
        Array array = Array::open({store, prefix});
        EXPECT_EQ(array.dtype(), options.dtype);
        EXPECT_EQ(array.read("0").to_string(), "(1, (b'x', '1970-01-01T00:00:05'))");
        array.attributes().set("x", 1);
    }
    EXPECT_EQ(Value::parse(get_text(*store, "c/zarr.json")).at("data_type"), older.at("data_type"));
    // A copy keeps the name, or takes the one that is asked for.
    const Array from = Array::open({store, "c"});
    for (const auto& [wished, name] : {std::pair<std::optional<std::string>, const char*>({}, "structured"),
                                       {"struct", "struct"},
                                       {"structured", "structured"}}) {
        const PlannedArray plan = plan_array(from, {.structures = wished});
        Array::create({store, std::string("copy") + name + (wished ? "1" : "")}, *plan.dialect, plan.metadata);
        const Value made =
            Value::parse(get_text(*store, std::string("copy") + name + (wished ? "1/" : "/") + "zarr.json"));
        EXPECT_EQ(made.at("data_type").at("name"), Value(name));
        EXPECT_EQ(plan.recode, std::nullopt);
    }
    ArrayOptions wrong = options;
    wrong.structures = "struct_";
    expect_error(ErrorCode::invalid_argument, "expected struct or structured", [&] { (void)make_metadata(wrong); });
    wrong.structures = "structured";
    wrong.format = "v2";
    expect_error(ErrorCode::unsupported, "only v3 has names for structures, not v2",
                 [&] { (void)make_metadata(wrong); });
}

TEST(V3, attributes_are_in_the_document) {
    const auto store = memory_store();
    const Value attributes = Value::parse(R"({"units": "K", "é": [1, null]})");
    const ArrayMetadata m = v3.load({{"dimension_names", R"(["y", "x"])"}});
    v3.dialect.save({*store, "a"}, m, &attributes);
    EXPECT_EQ(v3.dialect.load_attributes({*store, "a"}), attributes);
    v3.dialect.save({*store, "a"}, m, nullptr);
    EXPECT_EQ(v3.dialect.load_attributes({*store, "a"}), attributes) << "those that were there stay";
    EXPECT_THAT(get_text(*store, "a/zarr.json"),
                HasSubstr("\n  \"attributes\": {\n    \"units\": \"K\",\n    \"\\u00e9\""));
    v3.dialect.save_attributes({*store, "a"}, Value::object());
    EXPECT_EQ(v3.dialect.load_attributes({*store, "a"}), Value::object());
    EXPECT_EQ(load_metadata(v3.dialect, {*store, "a"}).dimension_names, m.dimension_names);
    EXPECT_EQ(v3.dialect.load_attributes({*store, "nowhere"}), std::nullopt);
    put_text(*store, "b/zarr.json", v3.changed({{"attributes", "3"}}).dump());
    expect_error(ErrorCode::corrupt, "b/zarr.json: member \"attributes\"", [&] {
        (void)v3.dialect.load_attributes({*store, "b"});
    });
}

TEST(V3, groups_and_consolidated_metadata) {
    const auto store = memory_store();
    v3.dialect.save_group({*store, "g"}, Value::parse(R"({"title": "root"})"), Value::object());
    EXPECT_EQ(
        get_text(*store, "g/zarr.json"),
        "{\n  \"attributes\": {\n    \"title\": \"root\"\n  },\n  \"zarr_format\": 3,\n  \"node_type\": \"group\"\n}");
    EXPECT_EQ(probe_group_dialect({*store, "g"}), &v3.dialect);
    EXPECT_EQ(probe_dialect({*store, "g"}), nullptr);
    expect_error(ErrorCode::corrupt, "\"group\" was found", [&] { (void)load_metadata(v3.dialect, {*store, "g"}); });
    EXPECT_EQ(v3.dialect.load_consolidated({*store, "g"}), std::nullopt);
    const Value nodes = Value::parse(R"({"a": {"zarr.json": {"x": 1}}, "s/t": {"zarr.json": {}}})");
    v3.dialect.save_consolidated({*store, "g"}, nodes);
    EXPECT_EQ(v3.dialect.load_consolidated({*store, "g"}), nodes);
    EXPECT_EQ(Value::parse(get_text(*store, "g/zarr.json")).at("consolidated_metadata"),
              Value::parse(R"({"kind": "inline", "must_understand": false, "metadata": {"a": {"x": 1}, "s/t": {}}})"));
    v3.dialect.save_attributes({*store, "g"}, Value::object());
    EXPECT_EQ(v3.dialect.load_consolidated({*store, "g"}), nodes) << "all other members stay";
    put_text(*store, "g/zarr.json", R"({"node_type": "group", "consolidated_metadata": {"kind": "elsewhere"}})");
    expect_error(ErrorCode::unsupported, "elsewhere", [&] { (void)v3.dialect.load_consolidated({*store, "g"}); });
    // What is damaged is an array that says so when it is loaded.
    put_text(*store, "d/zarr.json", "{");
    EXPECT_EQ(probe_dialect({*store, "d"}), &v3.dialect);
    EXPECT_EQ(probe_group_dialect({*store, "d"}), nullptr);
    // Of an array that kept its old metadata, the newest count.
    put_text(*store, "m/.zarray", "{}");
    put_text(*store, "m/zarr.json", v3.document);
    EXPECT_EQ(probe_dialect({*store, "m"}), &v3.dialect);
}

TEST(V3, a_member_is_found_in_the_outermost_object_alone) {
    const auto store = memory_store();
    const auto is_group = [&](const std::string& document) {
        put_text(*store, "g/zarr.json", document);
        return probe_group_dialect({*store, "g"}) != nullptr;
    };
    for (const char* const text : {R"({"node_type": "group"})", " \n{ \"node_type\" :\t\"group\" }\n",
                                   R"({"a": {"node_type": "array"}, "node_type": "group"})",
                                   R"({"node_type":"group","a":[{"node_type":"array"}]})",
                                   R"({"a": "\\\"}{", "node_type": "group", "b": "]\\"})",
                                   R"({"a": "node_type", "node_type": "group"})", R"({"node_type": "gr\u006fup"})"}) {
        EXPECT_TRUE(is_group(text)) << text;
    }
    for (const char* const text :
         {R"({"node_type": "array"})", R"({"a": {"node_type": "group"}})", R"(["node_type", "group"])",
          R"({"a": "\"node_type\": \"group\""})", R"({"node_type": ["group"]})",
          R"({"node_type": {"node_type": "group"}})", R"({"node_type": "group")", R"({"node_type": "group)",
          R"({"node_type": "group"}})", R"({"node_type": "group"} x)", R"({"node_type":)", R"("node_type": "group")",
          R"({"node_type": "group", "a": [)", ""}) {
        EXPECT_FALSE(is_group(text)) << text;
    }
    put_text(*store, "g/zarr.json",
             R"({"a": {"attributes": {"x": 0}}, "attributes": {"x": [1, "}"], "attributes": 2}, "b": 3})");
    EXPECT_EQ(v3.dialect.load_attributes({*store, "g"}), Value::parse(R"({"x": [1, "}"], "attributes": 2})"));
    put_text(*store, "g/zarr.json", R"({"node_type": "group"})");
    EXPECT_EQ(v3.dialect.load_attributes({*store, "g"}), std::nullopt);
    for (const char* const text : {R"({"attributes": {"x": 1})", R"({"attributes": {"x": }})", "[]", ""}) {
        put_text(*store, "g/zarr.json", text);
        expect_error(ErrorCode::corrupt, "g/zarr.json", [&] { (void)v3.dialect.load_attributes({*store, "g"}); });
    }
}

TEST(V3, owns_what_it_writes) {
    const ArrayMetadata m = v3.load(Changes{});
    for (const char* name : {"zarr.json", "c"}) EXPECT_TRUE(v3.dialect.owns(m, name)) << name;
    for (const char* name : {"c.0.0", "0", "0.0", "notes", "b"}) EXPECT_FALSE(v3.dialect.owns(m, name)) << name;
    ArrayMetadata dots = m;
    dots.keys = m.keys.with_separator(".");
    EXPECT_TRUE(v3.dialect.owns(dots, "c.0.0"));
    EXPECT_FALSE(v3.dialect.owns(dots, "c"));
    EXPECT_THAT(v3.dialect.remarks(m), IsEmpty());
    ArrayMetadata filtered = m;
    filtered.codecs.insert(filtered.codecs.begin(), {"numcodecs.packbits"});
    EXPECT_THAT(v3.dialect.remarks(filtered), Contains(HasSubstr("numcodecs.packbits")));
}

}  // namespace
}  // namespace tessera
