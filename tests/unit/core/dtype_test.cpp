#include <tessera/dtype.h>

#include <gmock/gmock.h>

#include <tessera/error.h>

#include "golden_json.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

std::string message_of(std::string_view text) {
    try {
        (void)DType::parse(text);
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::invalid_argument) << text;
        return e.what();
    }
    return "no error";
}

TEST(DType, UnderstandsWhatNumPyUnderstands) {
    const auto rows = numpy_rows("dtypes.json");
    ASSERT_GT(rows.size(), 300u);
    for (const auto& row : rows) {
        const auto& text = row.as_array()[0].as_string();
        const auto& expected = row.as_array()[1];
        if (expected.is_null()) {
            EXPECT_THAT(message_of(text), HasSubstr("'" + text + "'"));
            continue;
        }
        ASSERT_NO_THROW({
            const auto d = DType::parse(text);
            EXPECT_EQ(d.str(), expected.as_array()[0].as_string()) << text;
            EXPECT_EQ(d.descr(), expected.as_array()[1]) << text;
            EXPECT_EQ(d.size(), expected.as_array()[2].as_int64()) << text;
            EXPECT_EQ(DType::parse(d.to_string()), d) << text;
            EXPECT_EQ(DType::from_descr(d.descr()), d) << text;
        }) << text;
    }
}

TEST(DType, ListsOfFieldsAreNumPys) {
    for (const auto& row : numpy_rows("descrs.json")) {
        const auto& descr = row.as_array()[0];
        if (row.as_array()[1].is_null()) {
            EXPECT_THROW((void)DType::from_descr(descr, DType::Padding::name), Error) << descr.dump();
            continue;
        }
        const auto& expected = row.as_array()[1].as_array();
        const auto d = DType::from_descr(descr, DType::Padding::name);
        Value::Array names;
        for (const auto& f : d.fields()) names.emplace_back(f.name);
        EXPECT_EQ(d.size(), expected[1].as_int64());
        EXPECT_EQ(Value(names), expected[2]) << descr.dump();
        EXPECT_EQ(d.to_string(), expected[3].as_string());
        EXPECT_EQ(DType::parse(d.to_string()), d) << d.to_string();
    }
}

TEST(DType, PaddingIsSkippedOrNamed) {
    const auto descr = Value::parse(R"([["a", "<i4"], ["", "|V7"], ["b", "<f8"]])");
    const auto skipped = DType::from_descr(descr);
    ASSERT_EQ(skipped.fields().size(), 2u);
    EXPECT_EQ(skipped.fields()[1].offset, 11);
    EXPECT_EQ(skipped.to_string(), "[('a', '<i4'), ('', '|V7'), ('b', '<f8')]");
    EXPECT_EQ(skipped.descr(), descr);

    const auto named = DType::from_descr(descr, DType::Padding::name);
    ASSERT_EQ(named.fields().size(), 3u);
    EXPECT_EQ(named.fields()[1].name, "f1");
    EXPECT_TRUE(named.fields()[1].unnamed);
    EXPECT_EQ(named.descr(), descr);  // spelt "" again
    EXPECT_EQ(named.to_string(), "[('a', '<i4'), ('f1', '|V7'), ('b', '<f8')]");
    EXPECT_NE(named, skipped);
    EXPECT_EQ(named, DType("[('a', '<i4'), ('f1', '|V7'), ('b', '<f8')]"));

    // At the end, too; and an unnamed field that is no V is a field in both modes.
    EXPECT_EQ(DType::from_descr(Value::parse(R"([["a", "u1"], ["", "V3"]])")).size(), 4);
    EXPECT_EQ(DType::from_descr(Value::parse(R"([["", "u1"]])")).fields()[0].name, "f0");
}

TEST(DType, ReadsPairsAndDicts) {
    EXPECT_EQ(DType("[('a', ('<i4', (2,)), (3,))]").fields()[0].shape, (Shape{3, 2}));
    EXPECT_EQ(DType("[('a', ([('x', 'u1')], 2))]").fields()[0].size(), 2);
    const DType d(
        "{'names': ['a', 'b'], 'formats': ['u1', '<i8'], 'offsets': [0, 8], 'itemsize': 24, 'aligned': True}");
    EXPECT_EQ(d.to_string(), "[('a', '|u1'), ('', '|V7'), ('b', '<i8'), ('', '|V8')]");
    EXPECT_THAT(message_of("{'names': ['a', 'b'], 'formats': ['<i4', '<i4'], 'offsets': [0, 2]}"),
                HasSubstr("overlaps"));
    EXPECT_THAT(message_of("{'names': ['a'], 'formats': ['<i4'], 'itemsize': 2}"),
                HasSubstr("need 4 bytes, its size is 2"));
    EXPECT_THAT(message_of("{'names': ['a'], 'formats': ['<i4'], 'offsets': [-4]}"), HasSubstr("negative offset"));
}

TEST(DType, RefusesWhatCannotBe) {
    EXPECT_THAT(message_of("(2,3)f8"), HasSubstr("sub-array"));
    EXPECT_THAT(message_of("S2147483648"), HasSubstr("2147483648 bytes"));
    EXPECT_THAT(message_of("U536870912"), HasSubstr("2147483648 bytes"));
    EXPECT_THAT(message_of("U9223372036854775807"), HasSubstr("bytes is not possible"));
    EXPECT_THAT(message_of("S99999999999999999999"), HasSubstr("not understood"));
    EXPECT_THAT(message_of("(99999999999,99999999999)i4,i4"), HasSubstr("64 bits"));
    EXPECT_THAT(message_of("S2147483647,S2147483647"), HasSubstr("4294967294 bytes"));
    EXPECT_THAT(message_of("[('a', 'V0', (2000000000,))]"), HasSubstr("0 bytes each"));
    EXPECT_THAT(message_of("[('a', 'string')]"), HasSubstr("variable length"));
    EXPECT_THAT(message_of("[('a', 'i4'"), HasSubstr("Python literal"));
    EXPECT_THAT(message_of("[('a', 5)]"), HasSubstr("found an integer"));
    std::string deep = "'u1'";
    for (int i = 0; i < 90; ++i) deep = "[('a', " + deep + ")]";
    EXPECT_THAT(message_of(deep), HasSubstr("nested deeper"));
    EXPECT_THAT(message_of(std::string(100'000, '(')), HasSubstr("not understood"));
    EXPECT_THROW((void)DType::scalar(Kind::integer, 3), Error);
    EXPECT_THROW((void)DType::scalar(Kind::text, 6), Error);
    EXPECT_THROW((void)DType::scalar(Kind::integer, 4, ByteOrder::none), Error);
    EXPECT_THROW((void)DType::time(Kind::integer, {}), Error);
    EXPECT_THROW((void)DType::time(Kind::datetime, {TimeUnit::Base::s, 0}), Error);
    EXPECT_THROW((void)DType("i4").with_order(ByteOrder::none), Error);
    EXPECT_THROW((void)DType::structure({Field{"", {}, DType("i4"), {}, 0}}, 4), Error);
}

TEST(DType, KindsOfOurOwn) {
    EXPECT_EQ(DType("bfloat16").str(), native_order == ByteOrder::little ? "<bfloat16" : ">bfloat16");
    EXPECT_EQ(DType(">bfloat16").order(), ByteOrder::big);
    EXPECT_EQ(DType("string").kind(), Kind::variable_text);
    EXPECT_EQ(DType("bytes").kind(), Kind::variable_bytes);
    EXPECT_EQ(DType("string").str(), "string");
    EXPECT_EQ(DType::variable_bytes().str(), "bytes");
    EXPECT_EQ(DType("bytes").size(), 16);
}

TEST(DType, ByteOrders) {
    EXPECT_EQ(DType("i1").order(), ByteOrder::none);
    EXPECT_EQ(DType(">U0").order(), ByteOrder::big);
    const DType d("[('a', '>i4'), ('b', [('c', '<U2'), ('d', 'S3')], (2,))]");
    EXPECT_FALSE(d.is_native());
    EXPECT_TRUE(d.with_order(native_order).is_native());
    EXPECT_EQ(d.with_order(ByteOrder::big).to_string(), "[('a', '>i4'), ('b', [('c', '>U2'), ('d', '|S3')], (2,))]");
    EXPECT_TRUE(d.equal_but_order(d.with_order(ByteOrder::little)));
    EXPECT_FALSE(d.equal_but_order(DType("[('a', '>i4'), ('b', [('c', '<U2'), ('e', 'S3')], (2,))]")));
    EXPECT_FALSE(DType("M8[s]").equal_but_order(DType(">M8[ms]")));
    EXPECT_NE(DType("<i4"), DType(">i4"));
}

TEST(DType, SwapUnits) {
    const std::pair<const char*, int> units[] = {{"i4", 4},   {"U5", 4},    {"c16", 8},      {"c32", 16},
                                                 {"f16", 16}, {"M8[s]", 8}, {"S8", 1},       {"?", 1},
                                                 {"V4", 1},   {"i4,i4", 1}, {"bfloat16", 2}, {"string", 1}};
    for (const auto& [text, unit] : units) EXPECT_EQ(DType(text).swap_unit(), unit) << text;
}

TEST(DType, FromTypes) {
    EXPECT_EQ(DType::of<bool>(), DType("?"));
    EXPECT_EQ(DType::of<std::int16_t>(), DType("=i2"));
    EXPECT_EQ(DType::of<std::uint64_t>(), DType("u8"));
    EXPECT_EQ(DType::of<float>(), DType("f4"));
    EXPECT_EQ(DType::of<std::complex<double>>(), DType("c16"));
    EXPECT_EQ(DType(), DType("V0"));
}

}  // namespace
}  // namespace tessera
