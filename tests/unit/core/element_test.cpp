#include <tessera/element.h>

#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <tessera/error.h>
#include <tessera/view.h>

#include "golden_json.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

std::string hex(const ElementBytes& bytes) {
    std::string text;
    for (const auto b : bytes) text += fmt::format("{:02x}", std::to_integer<int>(b));
    return text;
}

// The bytes in hex, or the message of the error.
std::string assigned(const DType& dtype, std::string_view json, Assign rule) {
    try {
        return hex(element_from_value(dtype, Value::parse(json), rule));
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
        return std::string("error: ") + e.what();
    }
}

std::string typed(const DType& dtype, std::string_view text) {
    return hex(element_from_text(dtype, text));
}

DType little(std::string_view text) {
    return DType::parse(text).with_order(ByteOrder::little);
}

TEST(Element, AssignsAsNumPyDoes) {
    const auto rows = numpy_rows("assignments.json");
    ASSERT_GT(rows.size(), 1000u);
    for (const auto& row : rows) {
        const auto dtype = DType::from_descr(row.as_array()[0]);
        const auto& json = row.as_array()[1].as_string();
        const auto found = assigned(dtype, json, Assign::numpy);
        if (row.as_array()[2].is_null()) {
            EXPECT_THAT(found, HasSubstr("error: ")) << dtype.to_string() << " from " << json;
        } else {
            EXPECT_EQ(found, row.as_array()[2].as_string()) << dtype.to_string() << " from " << json;
        }
    }
}

TEST(Element, ExactKeepsTheValueOrRefuses) {
    const auto exact = [](const char* dtype, const char* json) { return assigned(little(dtype), json, Assign::exact); };
    EXPECT_EQ(exact("u1", "255"), "ff");
    EXPECT_EQ(exact("i4", "3.0"), "03000000");
    EXPECT_EQ(exact("u8", "18446744073709551615"), "ffffffffffffffff");
    EXPECT_EQ(exact("f4", "0.1"), "cdcccc3d");
    EXPECT_EQ(exact("f4", "Infinity"), "0000807f");
    EXPECT_EQ(exact("f8", "\"NaN\""), "000000000000f87f");
    EXPECT_EQ(exact("c8", "[1, -2]"), "0000803f000000c0");
    EXPECT_EQ(exact("c8", "\"1-2j\""), "0000803f000000c0");
    EXPECT_EQ(exact("S3", "\"é\""), "e90000");
    EXPECT_EQ(exact("V2", "\"0xABcd\""), "abcd");
    EXPECT_EQ(exact("?", "1"), "01");
    EXPECT_EQ(exact("m8[ns]", "\"2 us\""), "d007000000000000");
    EXPECT_EQ(exact("[('a', 'u1'), ('b', 'S1', (2,))]", "{\"b\": [\"x\", \"y\"], \"a\": 7}"), "077879");
    EXPECT_EQ(exact("[('a', 'u1'), ('', 'V2'), ('b', 'u1')]", "[1, 2]"), "01000002");

    const std::pair<const char*, const char*> refused[] = {
        {"u1", "256"},
        {"u1", "-1"},
        {"i1", "-129"},
        {"i8", "9223372036854775808"},
        {"i4", "3.5"},
        {"i4", "NaN"},
        {"i4", "true"},
        {"i4", "\"3\""},
        {"f4", "1e300"},
        {"f2", "65520"},
        {"f8", "\"1.5\""},
        {"c8", "[1, 2, 3]"},
        {"S3", "\"abcd\""},
        {"S3", "\"日\""},
        {"S3", "1"},
        {"U2", "\"abc\""},
        {"V2", "\"0xab\""},
        {"V2", "\"0xabcg\""},
        {"V2", "\"abcd\""},
        {"?", "2"},
        {"M8[D]", "\"2020-01-31T12\""},
        {"M8[D]", "1.0"},
        {"m8[s]", "\"1 Y\""},
        {"m8[s]", "\"5 ns\""},
        {"M8[2D]", "\"1970-01-02\""},
        {"i4", "null"},
        {"i4", "[1]"},
        {"u1,u1", "1"},
        {"u1,u1", "[1]"},
        {"u1,u1", "[1, 2, 3]"},
        {"u1,u1", "{\"f0\": 1, \"x\": 2}"},
        {"(2,)u1,u1", "[1, 2]"},
        {"(2,)u1,u1", "[[1], 2]"},
        {"f8", "{}"},
        {"m8", "\"x\""},
        {"string", "1"},
        {"bytes", "\"日\""},
    };
    for (const auto& [dtype, json] : refused) EXPECT_THAT(exact(dtype, json), HasSubstr("error: ")) << dtype << json;
    EXPECT_THAT(exact("u1", "256"), HasSubstr("256 cannot be an element of dtype |u1: it is not between 0 and 255"));
}

// The number itself is rounded, not the double nearest to it, which may lie halfway between two smaller floats.
TEST(Element, JsonNumbersAreRoundedOnce) {
    const auto exact = [](const DType& dtype, std::string_view json) { return assigned(dtype, json, Assign::exact); };
    const DType f4 = little("f4");
    EXPECT_EQ(exact(f4, "1.000000059604644775390625"), "0000803f") << "halfway: to even";
    EXPECT_EQ(exact(f4, "1.00000005960464477539062500000000000000000000000001"), "0100803f");
    EXPECT_EQ(exact(f4, "1.0000000596046448"), "0100803f");
    EXPECT_EQ(exact(f4, "-1.0000000596046448"), "010080bf");
    EXPECT_EQ(exact(f4, "1.00000017881393432617187499999999999999"), "0100803f");
    EXPECT_EQ(exact(f4, "1.000000178813934326171875"), "0200803f") << "halfway: to even";
    EXPECT_EQ(exact(f4, "100000005.9604644775390625e-8"), "0000803f");
    EXPECT_EQ(exact(f4, "0.0000000010000000596046448E+9"), "0100803f");
    EXPECT_EQ(exact(f4, "1.00000005960464477539062500000000000000000000000001e0"), "0100803f");
    EXPECT_EQ(exact(f4, "9007199791611905"), "0100005a") << "an integer beyond a double";
    EXPECT_EQ(exact(f4, "9007199791611904"), "0000005a");
    EXPECT_EQ(exact(f4, "36893490346442358785"), "01000060") << "an integer beyond 64 bits";
    EXPECT_EQ(exact(f4, "7.006492321624086e-46"), "01000000") << "half the least float, and a little more";
    EXPECT_EQ(exact(f4, "7.0064923216240853e-46"), "00000000");
    EXPECT_EQ(exact(f4, "3.4028235677973366e38"), "ffff7f7f") << "below halfway to what no float holds";
    EXPECT_THAT(exact(f4, "3.4028235677973367e38"), HasSubstr("beyond what that float holds"));
    EXPECT_EQ(exact(little("f2"), "1.000488281250000000000000000001"), "013c");
    EXPECT_EQ(exact(little("f2"), "1.00048828125"), "003c");
    EXPECT_EQ(exact("bfloat16", "1.003906250000000000000000000001"), "813f");
    EXPECT_EQ(exact("bfloat16", "1.00390625"), "803f");
    EXPECT_EQ(exact(little("c8"), "[1.0000000596046448, 1.000000059604644775390625]"), "0100803f0000803f");
    EXPECT_EQ(exact(little("f8"), "1.0000000596046448"), exact(little("f8"), "1.000000059604644775390625"));
    EXPECT_EQ(assigned(f4, "1.0000000596046448", Assign::numpy), "0000803f") << "as Python's float becomes a float32";
    EXPECT_EQ(Value::parse("1.0000000596046448").dump(), "1.0000000596046448");
    EXPECT_EQ(Value::parse("1.0000000596046448"), Value::parse("1.000000059604644775390625"));
}

TEST(Element, NumPysRuleKeepsItsLimits) {
    EXPECT_EQ(assigned("[('a', '>i4'), ('b', 'S2', (2,))]", "0", Assign::numpy), "0000000030003000");
    EXPECT_THAT(assigned("V4", "0", Assign::numpy), HasSubstr("error: 0 cannot be an element of dtype |V4"));
    EXPECT_THAT(assigned("i4", "null", Assign::numpy), HasSubstr("null"));
    EXPECT_THAT(assigned("i4", "[1]", Assign::numpy), HasSubstr("error: "));
    EXPECT_THAT(assigned("S2", "{}", Assign::numpy), HasSubstr("error: "));
    EXPECT_THROW((void)element_from_value("O", 0, Assign::numpy), Error);
}

TEST(Element, TypedText) {
    EXPECT_EQ(typed("<i4", "3"), "03000000");
    EXPECT_EQ(typed("<f8", "NaN"), "000000000000f87f");
    EXPECT_EQ(typed("<f8", "-inf"), "000000000000f0ff");
    EXPECT_EQ(typed("<c16", "1e-5-2j"), hex(element_from_value("<c16", Value::Array{1e-5, -2}, Assign::exact)));
    EXPECT_EQ(typed("S4", "2020"), "32303230");
    EXPECT_EQ(typed("S4", "null"), "6e756c6c");
    EXPECT_EQ(typed("S4", "\"a\\n\""), "610a0000");
    EXPECT_EQ(typed("<U2", "é\""), "e900000022000000");
    EXPECT_EQ(typed("<M8[D]", "2020-01-31"), "7447000000000000");
    EXPECT_EQ(typed("<M8[D]", "\"2020-01-31\""), "7447000000000000");
    EXPECT_EQ(typed("<M8[D]", "5"), "0500000000000000");
    EXPECT_EQ(typed("<M8[D]", "NaT"), "0000000000000080");
    EXPECT_EQ(typed("<m8[10ns]", "50 ns"), "0500000000000000");
    EXPECT_EQ(typed("string", "a b"), "612062");
    EXPECT_EQ(typed("u1,S2", "[1, \"x\"]"), "017800");
    EXPECT_EQ(typed("V1", "0xff"), "ff");
    EXPECT_THROW((void)typed("i4", "abc"), Error);
    EXPECT_THROW((void)typed("?", "yes"), Error);
}

TEST(Element, ReadsBackWhatWasWritten) {
    const std::pair<const char*, const char*> cases[] = {
        {"?", "true"},
        {"i1", "-128"},
        {">u2", "65535"},
        {">i8", "-9223372036854775808"},
        {"u8", "18446744073709551615"},
        {"f2", "0.1"},
        {">f4", "0.1"},
        {"f8", "1e-300"},
        {"f4", "NaN"},
        {"f2", "-Infinity"},
        {"bfloat16", "0.1"},
        {">bfloat16", "3e+38"},
        {"f16", "0.1"},
        {">f16", "-1e+300"},
        {"f16", "5e-324"},
        {"f16", "-Infinity"},
        {"f16", "NaN"},
        {"f16", "-0.0"},
        {">c8", "[0.1, -2.0]"},
        {"c32", "[1.5, 2.0]"},
        {">M8[ns]", "123"},
        {"m8", "-5"},
        {"S4", "\"ab\""},
        {"S2", "\"\\u00ff\\u0001\""},
        {">U3", "\"a\\u00e9\\ud83d\\ude00\""},
        {"V2", "\"0x00ff\""},
        {"[('a', '>i2', (2, 2)), ('b', [('c', '>U1')])]", "[[[1, 2], [3, 4]], [\"x\"]]"},
        {"S0", "\"\""},
        {"V0", "\"0x\""},
        {"i4,S2", "[-1, \"xy\"]"}};
    for (const auto& [dtype, json] : cases) {
        const auto bytes = element_from_value(dtype, Value::parse(json), Assign::exact);
        EXPECT_EQ(bytes.size(), static_cast<std::size_t>(DType(dtype).size()));
        EXPECT_EQ(element_to_value(dtype, bytes.data()).dump({.ascii = true}), json) << dtype;
        // Any alignment.
        ElementBytes shifted(1);
        shifted.insert(shifted.end(), bytes.begin(), bytes.end());
        EXPECT_EQ(element_to_value(dtype, shifted.data() + 1).dump({.ascii = true}), json) << dtype;
    }
}

TEST(Element, TextForPeople) {
    const auto shown = [](const char* dtype, const char* json) {
        return element_to_text(dtype, element_from_value(dtype, Value::parse(json), Assign::exact).data());
    };
    EXPECT_EQ(shown(">M8[D]", "18292"), "2020-01-31");
    EXPECT_EQ(shown("M8[s]", "\"NaT\""), "NaT");
    EXPECT_EQ(shown("m8[10ns]", "5"), "50 ns");
    EXPECT_EQ(shown("m8", "5"), "5");
    EXPECT_EQ(shown("M8", "5"), "5");
    EXPECT_EQ(shown("c8", "[1, 2]"), "1+2j");
    EXPECT_EQ(shown(">c16", "[0.5, -1e-7]"), "0.5-1e-07j");
    EXPECT_EQ(shown("U3", "\"a\\nb\""), "a\nb");
    EXPECT_EQ(shown("f4", "0.1"), "0.1");
    EXPECT_EQ(shown("f4", "NaN"), "NaN");
    EXPECT_EQ(shown("[('a', '<M8[Y]', (2,)), ('b', 'S2'), ('c', '>c8')]", "[[0, 1], \"x\", [1, 2]]"),
              "[[1970, 1971], x, 1+2j]");
}

TEST(Element, TimesPrintAsInNumPy) {
    for (const auto& row : numpy_rows("times.json")) {
        const auto& text = row.as_array()[2].as_string();
        const DType dtype(row.as_array()[0].as_string());
        const auto bytes = element_from_value(dtype, row.as_array()[1], Assign::exact);
        EXPECT_EQ(element_to_text(dtype, bytes.data()), text) << dtype.str();
        EXPECT_EQ(element_from_value(dtype, text, Assign::numpy), bytes) << dtype.str() << text;
    }
}

TEST(Element, SmallFloatsAreExact) {
    for (const auto& row : numpy_rows("floats.json")) {
        if (row.as_array()[0].as_string() != "f2") continue;
        const auto bits = static_cast<std::uint16_t>(std::stoul(row.as_array()[1].as_string(), nullptr, 16));
        EXPECT_EQ(element_to_value("=f2", reinterpret_cast<const std::byte*>(&bits)).dump(),
                  row.as_array()[2].as_string());
    }
    for (unsigned i = 0; i < 0x10000; ++i) {
        const auto bits = static_cast<std::uint16_t>(i);
        ASSERT_TRUE(std::isnan(half_to_float(bits)) || double_to_half(half_to_float(bits)) == bits) << i;
        ASSERT_TRUE(std::isnan(bfloat16_to_float(bits)) || double_to_bfloat16(bfloat16_to_float(bits)) == bits) << i;
    }
    EXPECT_TRUE(std::isnan(half_to_float(double_to_half(NAN))));
    EXPECT_TRUE(std::isnan(bfloat16_to_float(double_to_bfloat16(NAN))));
    // Halfway goes to even, and a double is rounded once, not through float.
    EXPECT_EQ(double_to_bfloat16(1 + 1.0 / 256), 0x3F80);
    EXPECT_EQ(double_to_bfloat16(1 + 3.0 / 256), 0x3F82);
    EXPECT_EQ(double_to_bfloat16(1 + 1.0 / 256 + 1e-12), 0x3F81);
    EXPECT_EQ(double_to_bfloat16(3.4e38), 0x7F80);
    EXPECT_EQ(double_to_half(1 + 1.0 / 2048 + 1e-12), 0x3C01);
}

TEST(Element, VariableContent) {
    const std::string content = "é";
    const VariableSlot slot{content.data(), content.size()};
    const auto* p = reinterpret_cast<const std::byte*>(&slot);
    EXPECT_EQ(element_to_value("string", p), Value("é"));
    EXPECT_EQ(element_to_value("bytes", p), Value("Ã©"));
    EXPECT_EQ(hex(element_from_value("string", "é", Assign::exact)), "c3a9");
    EXPECT_EQ(hex(element_from_value("bytes", "é", Assign::exact)), "e9");
    EXPECT_TRUE(zero_element("string").empty());
    const VariableSlot empty;
    EXPECT_EQ(element_to_text("string", reinterpret_cast<const std::byte*>(&empty)), "");
}

TEST(Element, HostileTextBecomesJson) {
    const std::uint32_t characters[] = {0x110000, 0xD800, 'a'};
    EXPECT_EQ(element_to_value("=U3", reinterpret_cast<const std::byte*>(characters)).dump(), "\"\uFFFD\uFFFDa\"");
}

TEST(Element, Swapping) {
    const auto swapped = [](const char* dtype, std::initializer_list<int> in) {
        ElementBytes bytes;
        for (const int v : in) bytes.push_back(static_cast<std::byte>(v));
        const DType d(dtype);
        swap_elements(d, bytes.data(), static_cast<std::int64_t>(bytes.size()) / d.size());
        return hex(bytes);
    };
    EXPECT_EQ(swapped("<i2", {1, 2, 3, 4}), "02010403");
    EXPECT_EQ(swapped(">f4", {1, 2, 3, 4, 5, 6, 7, 8}), "0403020108070605");
    EXPECT_EQ(swapped("<c8", {1, 2, 3, 4, 5, 6, 7, 8}), "0403020108070605");
    EXPECT_EQ(swapped("<u8", {1, 2, 3, 4, 5, 6, 7, 8}), "0807060504030201");
    EXPECT_EQ(swapped("<U2", {1, 2, 3, 4, 5, 6, 7, 8}), "0403020108070605");
    EXPECT_EQ(swapped("<f16", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}),
              "100f0e0d0c0b0a090807060504030201");
    EXPECT_EQ(swapped("S3", {1, 2, 3}), "010203");
    // Structures: each field, wherever it lies; padding and one-byte parts stay.
    EXPECT_EQ(swapped("[('a', '<i2', (2,)), ('', 'V1'), ('b', [('c', 'u1'), ('d', '>i2')])]",
                      {1, 2, 3, 4, 9, 5, 6, 7, 11, 12, 13, 14, 19, 15, 16, 17}),
              "02010403090507060c0b0e0d130f1110");
}

}  // namespace
}  // namespace tessera
