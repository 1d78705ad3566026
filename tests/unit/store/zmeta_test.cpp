#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/dialect.h>
#include <tessera/error.h>

#include <cstring>
#include <filesystem>
#include <limits>

#include "expect_error.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Dialect& zmeta() {
    return dialect_named("zmeta");
}

const fs::path golden = fs::path(TESSERA_GOLDEN) / "zarr0";

std::string get_text(const ReadableStore& store, std::string_view key) {
    Buffer bytes;
    if (!store.get(key, bytes)) return "(absent)";
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void put_text(KeyValueStore& store, std::string_view key, std::string_view text) {
    store.put(key, std::as_bytes(std::span(text)));
}

// ---- what zarr 0.4 wrote

const Value& manifest() {
    static const Value value = Value::parse(get_text(*directory_store(golden), "manifest.json"));
    return value;
}

class Golden : public testing::TestWithParam<int> {
protected:
    [[nodiscard]] static const Value& info() {
        return manifest().at("cases").as_array()[static_cast<std::size_t>(GetParam())];
    }
    [[nodiscard]] static bool is(std::string_view flag) {
        const Value* v = info().find(flag);
        return v && v->is_bool() && v->as_bool();
    }
};

TEST_P(Golden, metadata_and_attributes_are_written_back_byte_for_byte) {
    const std::string path = info().at("path").as_string();
    SCOPED_TRACE(path);
    const auto store = directory_store(golden);
    EXPECT_EQ(probe_dialect({*store, path}), &zmeta());
    if (path.starts_with("error_meta")) {
        expect_error(ErrorCode::corrupt, path + "/__zmeta__", [&] { (void)load_metadata(zmeta(), {*store, path}); });
        expect_error(ErrorCode::corrupt, "zarr 0.4 failed", [&] { (void)load_metadata(zmeta(), {*store, path}); });
        return;
    }
    if (is("metadata_is_pickle")) {
        expect_error(ErrorCode::unsupported, "zarr 0.3", [&] { (void)load_metadata(zmeta(), {*store, path}); });
        return;
    }
    const ArrayMetadata m = load_metadata(zmeta(), {*store, path});
    const auto copy = memory_store();
    zmeta().require_expressible(m);
    zmeta().save({*copy, "there"}, m, nullptr);
    EXPECT_EQ(get_text(*copy, "there/__zmeta__"), get_text(*store, path + "/__zmeta__"));

    const auto attributes = zmeta().load_attributes({*store, path});
    if (attributes) zmeta().save_attributes({*copy, "there"}, *attributes);
    EXPECT_EQ(get_text(*copy, "there/__zattr__"), get_text(*store, path + "/__zattr__"));

    // The model agrees with the manifest, and every chunk that is stored has a place in it. (What the chunks hold:
    // fixtures_test.cpp.)
    EXPECT_EQ(Value(Value::Array(m.shape.begin(), m.shape.end())), info().at("shape"));
    EXPECT_EQ(Value(Value::Array(m.chunks.begin(), m.chunks.end())), info().at("chunks"));
    if (m.dtype.kind() != Kind::structure) {
        EXPECT_EQ(m.dtype, DType::from_descr(info().at("dtype")));
    }
    for (const std::string& name : store->list(path + "/__zdata__").keys) {
        const std::string key = "__zdata__/" + name;
        const auto index = m.keys.parse(key, m.shape.rank());
        EXPECT_EQ(index.has_value(), key.ends_with(".blosc")) << key;
        if (index) {
            EXPECT_EQ(m.keys.key(*index), key);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
    Zmeta, Golden, testing::Range(0, static_cast<int>(manifest().at("cases").as_array().size())),
    [](const auto& param) {
        return manifest().at("cases").as_array()[static_cast<std::size_t>(param.param)].at("name").as_string();
    });

// ---- reading

/// A `__zmeta__` with some members replaced ("" removes one).
ArrayMetadata load(const std::vector<std::pair<std::string, std::string>>& changes) {
    Value meta = Value::parse(R"({"shape": [20, 30], "chunks": [10, 10], "dtype": "<i4", "fill_value": 0,
                                  "cname": "lz4", "clevel": 3, "shuffle": 1})");
    for (const auto& [name, json] : changes) {
        if (json.empty()) {
            meta.erase(name);
        } else {
            meta.set(name, Value::parse(json));
        }
    }
    const auto store = memory_store();
    put_text(*store, "__zmeta__", meta.dump());
    return load_metadata(zmeta(), *store);
}

TEST(Zmeta, the_example_of_the_specification) {
    const char* text = R"({
    "chunks": [
        10000,
        100
    ],
    "clevel": 3,
    "cname": "lz4",
    "dtype": "<i4",
    "fill_value": 42,
    "shape": [
        1000000,
        1000
    ],
    "shuffle": 1
})";
    const auto store = memory_store();
    put_text(*store, "example.zarr/__zmeta__", text);
    ArrayMetadata m = load_metadata(zmeta(), {*store, "example.zarr"});
    EXPECT_EQ(m.shape, (Shape{1'000'000, 1000}));
    EXPECT_EQ(m.chunks, (Shape{10'000, 100}));
    EXPECT_EQ(m.dtype, DType("<i4"));
    EXPECT_EQ(element_to_value(m.dtype, fill_element(m).data()), Value(42));
    ASSERT_EQ(m.codecs.size(), 2U);
    EXPECT_EQ(codec_text(m.codecs[1]), "blosc:lz4:3:shuffle");
    EXPECT_EQ(m.keys.key({4, 2}), "__zdata__/4.2.blosc");
    EXPECT_THAT(zmeta().remarks(m), IsEmpty());
    // The same again, made from options as a new array is.
    m = {.dtype = "i4",
         .shape = {1'000'000, 1000},
         .chunks = {10'000, 100},
         .edges = {},
         .fill = {.bytes = element_from_value("<i4", 42, Assign::exact), .spelling = {}, .error = {}},
         .codecs = complete_codecs("<i4", 1, Order::C, parse_codecs("blosc:lz4:3")),
         .keys = zmeta().default_keys(),
         .dimension_names = {},
         .unknown = Value::object()};
    zmeta().save({*store, "again"}, m, nullptr);
    EXPECT_EQ(get_text(*store, "again/__zmeta__"), text);
}

TEST(Zmeta, an_array_that_is_not_there) {
    const auto store = memory_store();
    EXPECT_EQ(probe_dialect({*store, "nowhere"}), nullptr);
    EXPECT_FALSE(zmeta().probe({*store, "nowhere"}));
    expect_error(ErrorCode::not_found, "nowhere/__zmeta__", [&] { (void)load_metadata(zmeta(), {*store, "nowhere"}); });
    EXPECT_EQ(zmeta().load_attributes({*store, "nowhere"}), std::nullopt);
    expect_error(ErrorCode::invalid_argument, "choose one of zmeta", [] { (void)dialect_named("v9"); });
}

TEST(Zmeta, what_is_wrong_is_named) {
    const auto wrong = [](const std::string& name, const std::string& json, std::string_view message,
                          ErrorCode code = ErrorCode::corrupt) {
        SCOPED_TRACE(name + ": " + json);
        expect_error(code, message, [&] { (void)load({{name, json}}); });
        expect_error(code, "memory/__zmeta__: ", [&] { (void)load({{name, json}}); });
    };
    for (const char* name : {"shape", "chunks", "dtype", "fill_value", "cname", "clevel", "shuffle"}) {
        wrong(name, "", fmt::format("the member \"{}\" is missing", name));
    }
    wrong("shape", "20", "member \"shape\"");
    wrong("shape", "[20, \"30\"]", "member \"shape\"");
    wrong("shape", "[20, 30.0]", "member \"shape\"");
    wrong("shape", "[20, -1]", "member \"shape\": a length is -1, expected at least 0");
    wrong("shape", "[20, 9223372036854775808]", "member \"shape\"");
    wrong("shape", "[20, 36893488147419103232]", "member \"shape\"");
    wrong("shape", "[4611686018427387904, 2]", "");
    wrong("shape", "[4611686018427387904, 1]", "");
    wrong("shape", "[20]", "");
    wrong("chunks", "[10, 0]", "member \"chunks\": a length is 0, expected at least 1");
    wrong("chunks", "[10, -1]", "member \"chunks\"");
    wrong("chunks", "[10]", "");
    wrong("chunks", "10", "member \"chunks\"");
    wrong("chunks", "[4611686018427387904, 4611686018427387904]", "");
    wrong("dtype", "\"i3\"", "member \"dtype\"");
    wrong("dtype", "5", "member \"dtype\"");
    wrong("dtype", "[[\"a\"]]", "member \"dtype\"");
    wrong("dtype", "\"|O\"", "zmeta has no elements of type", ErrorCode::unsupported);
    wrong("dtype", "[[\"a\", \"<i4\"], [\"b\", \"|O\"]]", "zmeta has no elements", ErrorCode::unsupported);
    wrong("dtype", "\"|S0\"", "no bytes to store", ErrorCode::unsupported);
    wrong("cname", "\"LZ4\"", "expected one of blosclz, lz4, lz4hc, snappy, zlib, zstd");
    wrong("cname", "3", "member \"cname\"");
    wrong("clevel", "10", "member \"clevel\": 10 was found, expected 0 to 9");
    wrong("clevel", "-1", "member \"clevel\"");
    wrong("clevel", "\"5\"", "member \"clevel\"");
    wrong("shuffle", "3", "member \"shuffle\": 3 was found, expected 0 to 2");
    wrong("shuffle", "\"shuffle\"", "member \"shuffle\"");
    std::string deep_shape = "[1";
    for (int d = 0; d < max_rank; ++d) deep_shape += ", 1";
    deep_shape += "]";
    wrong("shape", deep_shape, "", ErrorCode::unsupported);
}

TEST(Zmeta, text_that_is_no_object_or_cut_short) {
    const auto store = memory_store();
    for (const char* text : {"", "[]", "3", "null", "{", "{}", "{\"shape\": [1]", "hello", "{} {}"}) {
        put_text(*store, "__zmeta__", text);
        expect_error(ErrorCode::corrupt, "memory/__zmeta__", [&] { (void)load_metadata(zmeta(), *store); });
    }
    const std::string whole = get_text(*directory_store(golden), "attrs_some/__zmeta__");
    for (std::size_t n = 0; n < whole.size(); ++n) {
        put_text(*store, "__zmeta__", whole.substr(0, n));
        EXPECT_THROW((void)load_metadata(zmeta(), *store), Error) << n;
    }
    put_text(*store, "__zattr__", "[1]");
    expect_error(ErrorCode::corrupt, "memory/__zattr__", [&] { (void)zmeta().load_attributes(*store); });
    put_text(*store, "__zattr__", "");
    expect_error(ErrorCode::corrupt, "memory/__zattr__", [&] { (void)zmeta().load_attributes(*store); });
}

TEST(Zmeta, dtypes_in_every_spelling) {
    const auto dtype = [](const std::string& json) { return load({{"dtype", json}, {"fill_value", "null"}}).dtype; };
    EXPECT_EQ(dtype("\"float\""), DType("<f8"));
    EXPECT_EQ(dtype("\"int32\""), DType("<i4"));
    EXPECT_EQ(dtype("\"=i4\""), DType("i4"));
    EXPECT_EQ(dtype("\"|i4\""), DType("i4"));
    const DType padded = dtype(R"([["a", "|i1"], ["", "|V7"], ["b", "<f8"]])");
    ASSERT_EQ(padded.fields().size(), 3U);
    EXPECT_EQ(padded.fields()[1].name, "f1");
    EXPECT_EQ(padded.size(), 16);
    const DType nested = dtype(R"([["a", [["x", "<f4", [3]]], [2, 2]], [["title", "b"], ">i2"]])");
    EXPECT_EQ(nested.size(), 50);
}

/// What is saved for this metadata, parsed; through a save and a load so that both agree.
Value saved(const ArrayMetadata& m) {
    const auto store = memory_store();
    zmeta().save(*store, m, nullptr);
    EXPECT_EQ(load_metadata(zmeta(), *store).dtype, m.dtype);
    return Value::parse(get_text(*store, "__zmeta__"));
}

TEST(Zmeta, dtypes_are_written_as_descr) {
    for (const char* json : {R"([["a", "|i1"], ["", "|V7"], ["b", "<f8"]])", R"([["a", "<i4", [3]]])",
                             R"([["a", [["x", "<f4", [3]], ["", "|V2"]], [2, 2]], [["title", "b"], ">i2"]])",
                             R"("<M8[10ns]")", R"("|V12")", R"("<U3")"}) {
        EXPECT_EQ(saved(load({{"dtype", json}, {"fill_value", "null"}})).at("dtype"), Value::parse(json)) << json;
    }
    // Gaps, which a dtype from elsewhere may have, become padding.
    ArrayMetadata m = load({{"fill_value", "null"}});
    m.dtype = DType::from_descr(Value::parse(R"([["a", "|i1"], ["", "|V3"], ["b", "<i4"], ["", "|V4"]])"));
    ASSERT_EQ(m.dtype.fields().size(), 2U);
    const auto store = memory_store();
    zmeta().save(*store, m, nullptr);
    EXPECT_EQ(Value::parse(get_text(*store, "__zmeta__")).at("dtype"),
              Value::parse(R"([["a", "|i1"], ["", "|V3"], ["b", "<i4"], ["", "|V4"]])"));
}

TEST(Zmeta, unknown_members_are_kept) {
    const ArrayMetadata m = load({{"zz", "[1, {\"é\": null}]"}, {"aa", "1e400"}});
    EXPECT_EQ(m.unknown.as_object().size(), 2U);
    const Value meta = saved(m);
    EXPECT_EQ(meta.at("zz"), Value::parse("[1, {\"é\": null}]"));
    EXPECT_EQ(meta.as_object().front().first, "aa");
}

// ---- fill values

TEST(Zmeta, fills_are_assigned_as_numpy_assigns_and_stay_as_they_were_spelt) {
    const auto reads = [](const std::string& dtype, const std::string& json, const Value& element) {
        SCOPED_TRACE(dtype + " " + json);
        const ArrayMetadata m = load({{"dtype", '"' + dtype + '"'}, {"fill_value", json}});
        EXPECT_EQ(element_to_value(m.dtype, fill_element(m).data()), element);
        EXPECT_EQ(saved(m).at("fill_value"), Value::parse(json));
    };
    reads("|u1", "300", 44);
    reads("<i4", "3.7", 3);
    reads("<f4", "1e300", std::numeric_limits<double>::infinity());
    reads("<f8", "-3", -3.0);
    reads("<f8", "NaN", std::numeric_limits<double>::quiet_NaN());
    reads("<f8", "-Infinity", -std::numeric_limits<double>::infinity());
    reads("|S3", "0", "0");
    reads("<U3", "0", "0");
    reads("|S3", "\"long text\"", "lon");
    reads("|b1", "5", true);
    reads("<u8", "18446744073709551615", 18446744073709551615ULL);
    reads("<M8[D]", "0", 0);
    reads("<i4", "null", 0);
}

TEST(Zmeta, fills_that_numpy_cannot_assign_are_errors_when_needed) {
    for (const auto& [dtype, json] :
         std::vector<std::pair<std::string, std::string>>{{"\"|V7\"", "0"},
                                                          {"\"<i4\"", "NaN"},
                                                          {"\"<i4\"", "1e300"},
                                                          {"\"<i4\"", "\"text\""},
                                                          {"\"<f8\"", "[1, 2]"},
                                                          {"\"<c16\"", "[1, 2]"},
                                                          {"\"<i4\"", "{}"},
                                                          {"\"|S3\"", "\"\\u00e9\""},
                                                          {R"([["a", "<i4"], ["", "|V4"]])", "0"}}) {
        SCOPED_TRACE(fmt::format("{} {}", dtype, json));
        const ArrayMetadata m = load({{"dtype", dtype}, {"fill_value", json}});
        EXPECT_FALSE(m.fill.bytes);
        EXPECT_FALSE(m.fill.error.empty());
        expect_error(ErrorCode::invalid_argument, "the fill value", [&] { (void)fill_element(m); });
        EXPECT_EQ(saved(m).at("fill_value"), Value::parse(json)) << "and written back as it was";
    }
}

/// Metadata whose fill is known by its bytes only.
ArrayMetadata with_fill(const DType& dtype, ElementBytes bytes, std::optional<Value> spelling = {}) {
    ArrayMetadata m = load({});
    m.dtype = dtype;
    m.fill = {.bytes = std::move(bytes), .spelling = std::move(spelling), .error = {}};
    return m;
}

template <class T>
ElementBytes bytes_of(const T& v) {
    ElementBytes bytes(sizeof(T));
    std::memcpy(bytes.data(), &v, sizeof(T));
    return bytes;
}

ElementBytes text_bytes(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

TEST(Zmeta, fills_known_by_bytes_are_written_as_the_shortest_text) {
    const auto writes = [](const DType& dtype, const ElementBytes& bytes, std::string_view json) {
        const Value fill = saved(with_fill(dtype, bytes)).at("fill_value");
        EXPECT_EQ(fill.dump(python_json_style), json) << dtype.to_string();
    };
    writes("f4", bytes_of(0.1F), "0.1");
    writes("f4", bytes_of(3.0F), "3.0");
    writes("f4", bytes_of(-0.0F), "-0.0");
    writes("f4", bytes_of(1e10F), "10000000000.0");
    writes("f8", bytes_of(0.1), "0.1");
    writes("f8", bytes_of(1e300), "1e+300");
    writes("f8", bytes_of(-std::numeric_limits<double>::infinity()), "-Infinity");
    writes("f8", bytes_of(std::numeric_limits<double>::quiet_NaN()), "NaN");
    writes("f4", bytes_of(std::numeric_limits<float>::quiet_NaN()), "NaN");
    writes("f2", bytes_of(std::uint16_t{0x2e66}), "0.1");
    writes("i4", bytes_of(-7), "-7");
    writes("u8", bytes_of(UINT64_MAX), "18446744073709551615");
    writes("?", {std::byte{1}}, "true");
    writes("?", {std::byte{0}}, "false");
    writes("M8[ns]", bytes_of(std::int64_t{1234}), "1234");
    writes("m8[s]", bytes_of(std::int64_t{-5}), "-5");
    writes("M8[ns]", bytes_of(INT64_MIN), "-9223372036854775808");
    writes("S4", text_bytes(std::string_view("ab\0\0", 4)), "\"ab\"");
    writes("S4", text_bytes(std::string_view("a\0b\0", 4)), "\"a\\u0000b\"");
    writes("<U2", text_bytes(std::string_view("\xe9\0\0\0\0\0\0\0", 8)), "\"\\u00e9\"");
    writes("c16", bytes_of(std::complex<double>(2, 0)), "2.0");
    writes("f16", ElementBytes(16), "0");
    writes(DType::from_descr(Value::parse(R"([["a", "<i4"], ["b", "<f8"]])")), ElementBytes(12), "0");
}

TEST(Zmeta, a_spelling_counts_only_while_it_reads_as_the_bytes) {
    EXPECT_EQ(saved(with_fill("|u1", {std::byte{44}}, Value(300))).at("fill_value"), Value(300));
    EXPECT_EQ(saved(with_fill("|u1", {std::byte{45}}, Value(300))).at("fill_value"), Value(45));
    // Spellings of other dialects: a pair, base64.
    EXPECT_EQ(saved(with_fill("c16", bytes_of(std::complex<double>(2, 0)), Value::parse("[2, 0]"))).at("fill_value"),
              Value(2.0));
    EXPECT_EQ(saved(with_fill("S2", text_bytes("ab"), Value("YWI="))).at("fill_value"), Value("ab"));
}

TEST(Zmeta, fills_that_cannot_be_said_are_refused_by_name) {
    const auto refused = [](const DType& dtype, const ElementBytes& bytes, std::string_view why) {
        const auto store = memory_store();
        const ArrayMetadata m = with_fill(dtype, bytes);
        SCOPED_TRACE(dtype.to_string());
        expect_error(ErrorCode::unsupported, "fill_value", [&] { zmeta().save(*store, m, nullptr); });
        expect_error(ErrorCode::unsupported, why, [&] { zmeta().require_expressible(m); });
        EXPECT_EQ(get_text(*store, "__zmeta__"), "(absent)") << "nothing is written";
    };
    refused("c16", bytes_of(std::complex<double>(1, 2)), "real number");
    refused("c16", bytes_of(std::complex<double>(1, -0.0)), "real number");
    refused("f4", bytes_of(std::bit_cast<float>(0x7fc00001U)), "NaN");
    refused("f8", bytes_of(-std::numeric_limits<double>::quiet_NaN()), "NaN");
    refused("S2", text_bytes("\xe9z"), "ASCII");
    refused("V2", text_bytes("ab"), "null");
    refused("V2", ElementBytes(2), "null");
    refused(DType::from_descr(Value::parse(R"([["a", "<i2"]])")), text_bytes("ab"), "structure");
    refused("?", {std::byte{2}}, "");
}

TEST(Zmeta, default_fills) {
    const auto fill = [](const DType& dtype) {
        const FillValue f = zmeta().default_fill(dtype);
        EXPECT_EQ(f.error, "");
        if (f.bytes) {
            EXPECT_EQ(*f.bytes, zero_element(dtype)) << dtype.to_string();
        }
        EXPECT_EQ(f.bytes.has_value(), !f.spelling->is_null());
        return f.spelling->dump();
    };
    EXPECT_EQ(fill("i4"), "0");
    EXPECT_EQ(fill(">f8"), "0");
    EXPECT_EQ(fill("c8"), "0");
    EXPECT_EQ(fill("f16"), "0");
    EXPECT_EQ(fill("M8[s]"), "0");
    EXPECT_EQ(fill("?"), "false");
    EXPECT_EQ(fill("S3"), "\"\"");
    EXPECT_EQ(fill("U3"), "\"\"");
    EXPECT_EQ(fill("V3"), "null");
    EXPECT_EQ(fill("i4,f8"), "null");
}

// ---- what the dialect cannot express

TEST(Zmeta, other_members_that_cannot_be_said_are_refused_by_name) {
    const auto refused = [](std::string_view message, auto&& change, ErrorCode code = ErrorCode::unsupported) {
        ArrayMetadata m = load({});
        change(m);
        expect_error(code, message, [&] { zmeta().require_expressible(m); });
    };
    refused("codecs [bytes]", [](ArrayMetadata& m) { m.codecs = {{"bytes"}}; });
    refused("codecs [bytes, zstd]", [](ArrayMetadata& m) { m.codecs = {{"bytes"}, {"zstd"}}; });
    refused("codecs [transpose, bytes, blosc]",
            [](ArrayMetadata& m) { m.codecs.insert(m.codecs.begin(), {"transpose"}); });
    refused("typesize 2", [](ArrayMetadata& m) { m.codecs[1].configuration.set("typesize", 2); });
    refused("blocksize 1024", [](ArrayMetadata& m) { m.codecs[1].configuration.set("blocksize", 1024); });
    refused("dimension_names", [](ArrayMetadata& m) { m.dimension_names = {"y", std::nullopt}; });
    refused("keys such as c/0/0", [](ArrayMetadata& m) { m.keys = {"c/", "/", "", ""}; });
    refused("no elements of type", [](ArrayMetadata& m) { m.dtype = DType::variable_text(); });
    refused("no elements of type", [](ArrayMetadata& m) { m.dtype = "bfloat16"; });
    refused(
        "", [](ArrayMetadata& m) { m.chunks = {10}; }, ErrorCode::invalid_argument);
    refused(
        "",
        [](ArrayMetadata& m) {
            m.chunks = {10, 0};
        },
        ErrorCode::invalid_argument);

    ArrayMetadata m = load({});  // what says the same in other words is no obstacle
    m.codecs[1].configuration.set("typesize", 4);
    m.codecs[1].configuration.set("blocksize", 0);
    m.codecs[0].configuration.set("endian", "little");
    m.dimension_names = {std::nullopt, std::nullopt};
    zmeta().require_expressible(m);
}

TEST(Zmeta, remarks_say_what_the_original_could_not_read) {
    const auto remarks = [](const std::vector<std::pair<std::string, std::string>>& changes) {
        return zmeta().remarks(load(changes));
    };
    EXPECT_THAT(remarks({}), IsEmpty());
    EXPECT_THAT(remarks({{"cname", "\"zstd\""}}), ElementsAre(HasSubstr("zstd")));
    EXPECT_THAT(remarks({{"shape", "[]"}, {"chunks", "[]"}}), ElementsAre(HasSubstr("without dimensions")));
    EXPECT_THAT(remarks({{"dtype", R"([["a", [["x", "<f4", [3]]]]])"}, {"fill_value", "null"}}),
                ElementsAre(HasSubstr("sub-array")));
}

TEST(Zmeta, attributes_absent_and_empty_are_kept_apart) {
    const auto store = memory_store();
    EXPECT_EQ(zmeta().load_attributes({*store, "a"}), std::nullopt);
    zmeta().save_attributes({*store, "a"}, Value::object());
    EXPECT_EQ(get_text(*store, "a/__zattr__"), "{}");
    EXPECT_EQ(zmeta().load_attributes({*store, "a"}), Value::object());
    zmeta().save_attributes({*store, "a"}, Value::parse(R"({"foo": 42, "bar": 4.2, "baz": "quux"})"));
    EXPECT_EQ(get_text(*store, "a/__zattr__"), "{\n    \"bar\": 4.2,\n    \"baz\": \"quux\",\n    \"foo\": 42\n}");
    expect_error(ErrorCode::invalid_argument, "", [&] { zmeta().save_attributes({*store, "a"}, 3); });
}

TEST(Zmeta, owns_what_it_writes) {
    const ArrayMetadata m = load({});
    for (const char* name : {"__zmeta__", "__zattr__", "__zdata__", "__zattr__.lock"})
        EXPECT_TRUE(zmeta().owns(m, name));
    for (const char* name : {"meta", "notes.txt", ".zarray", "0.0.blosc", ""}) EXPECT_FALSE(zmeta().owns(m, name));
    ArrayMetadata without_dimensions;
    without_dimensions.keys = zmeta().default_keys();
    EXPECT_TRUE(zmeta().owns(without_dimensions, "__zdata__"));
}

}  // namespace
}  // namespace tessera
