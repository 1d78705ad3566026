#include <tessera/value.h>

#include <bit>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include <tessera/error.h>

#include "golden_json.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

std::string message_of(std::string_view json) {
    try {
        (void)Value::parse(json);
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::corrupt);
        return e.what();
    }
    return "no error";
}

TEST(Value, ReadsWhatPythonWrites) {
    const auto v = Value::parse(R"( {"a": [NaN, Infinity, -Infinity, 1, 1.0, true, null], "b": {"c": "\u00e9\n"}} )");
    const auto& a = v.at("a").as_array();
    EXPECT_TRUE(std::isnan(a[0].as_double()));
    EXPECT_EQ(a[1], Value(std::numeric_limits<double>::infinity()));
    EXPECT_EQ(a[2], Value(-std::numeric_limits<double>::infinity()));
    EXPECT_TRUE(a[3].is_integer());
    EXPECT_TRUE(a[4].is_double());
    EXPECT_TRUE(a[5].as_bool());
    EXPECT_TRUE(a[6].is_null());
    EXPECT_EQ(v.at("b").at("c").as_string(), "é\n");
    EXPECT_EQ(v.find("z"), nullptr);
}

TEST(Value, KeepsIntegersOfAnySize) {
    EXPECT_EQ(Value::parse("9223372036854775807").as_int64(), INT64_MAX);
    EXPECT_EQ(Value::parse("-9223372036854775808").as_int64(), INT64_MIN);
    EXPECT_EQ(Value::parse("18446744073709551615").as_uint64(), UINT64_MAX);
    for (const std::string text : {"18446744073709551616", "-9223372036854775809"}) {
        const auto v = Value::parse(text);
        ASSERT_TRUE(v.is_big_integer()) << text;
        EXPECT_EQ(v.dump(), text);
        EXPECT_THROW((void)v.as_int64(), Error);
        EXPECT_THROW((void)v.as_uint64(), Error);
    }
    const auto googol = "-1" + std::string(400, '0');  // beyond double, too
    EXPECT_EQ(Value::parse(googol).dump(), googol);
    EXPECT_EQ(Value::parse(googol).as_double(), -std::numeric_limits<double>::infinity());
    EXPECT_EQ(Value::parse("18446744073709551616").as_double(), 18446744073709551616.0);
}

TEST(Value, FloatsBeyondDoubleAreInfiniteAsInPython) {
    EXPECT_EQ(Value::parse("[1e999, -1e999, 1e-999, 0e0, 0e000, -0.0]").dump(),
              "[Infinity, -Infinity, 0.0, 0.0, 0.0, -0.0]");
    EXPECT_EQ(Value::parse("[0e0, NaN, 0e0000000, Infinity]").dump(), "[0.0, NaN, 0.0, Infinity]");
}

TEST(Value, TokensInsideTextStayText) {
    const auto v = Value::parse(R"(["NaN", "a\"NaN", "\\", NaN, {"Infinity": -Infinity}])");
    EXPECT_EQ(v.dump(), R"(["NaN", "a\"NaN", "\\", NaN, {"Infinity": -Infinity}])");
}

TEST(Value, RefusesWhatIsNotJsonAndSaysWhere) {
    for (const auto* text :
         {"",      " ",      "nan",       "NaNN",    "NaN1",        "1NaN",     "-NaN",      "1-Infinity",
          "+1",    "01",     "1.",        ".5",      "[1,]",        "{'a': 1}", "{\"a\" 1}", "{\"a\": 1,}",
          "[1 2]", "\"\n\"", "\"\xff\"",  "\"\\x\"", "\"\\ud800\"", "tru",      "[",         "]",
          "{} x",  "\"abc",  "Infinityx", "0x10",    "1e",          "1L",       "0e0e",      "[0e0e0"}) {
        EXPECT_THAT(message_of(text), HasSubstr("not valid JSON at line ")) << text;
    }
    EXPECT_THAT(message_of("{\n \"a\": 1,\n \"b\": x\n}"), HasSubstr("line 3, column 7"));
    EXPECT_THAT(message_of("[NaN, NaN, x"), HasSubstr("line 1, column 12"));
    EXPECT_THAT(message_of(std::string_view("{}\0x", 4)), HasSubstr("zero byte"));
    EXPECT_THAT(message_of(std::string_view("\"a\0\"", 4)), HasSubstr("not valid JSON"));
}

TEST(Value, EscapesAreReadAndWrittenAsPythonHasThem) {
    const auto v = Value::parse(R"("\"\\\/\b\f\n\r\t\u00E9\uD83D\uDE00\u0000\u007f")");
    EXPECT_EQ(v.as_string(), std::string("\"\\/\b\f\n\r\té😀\0\x7f", 16));
    EXPECT_EQ(v.dump(), "\"\\\"\\\\/\\b\\f\\n\\r\\té😀\\u0000\x7f\"");
    EXPECT_EQ(v.dump({.ascii = true}), R"("\"\\/\b\f\n\r\t\u00e9\ud83d\ude00\u0000\u007f")");
    EXPECT_EQ(Value::parse("\xEF\xBB\xBF\r\n\t[1 ,-0\t]\n").dump(), "[1, 0]");  // a mark of byte order is passed over
    for (const char* text : {R"("\uDE00")", R"("\uD83D\u0041")", R"("\uD83Dx")", R"("\u12")", R"("\u12g4")",
                             R"("\u+123")", R"("\)", R"("\v")", "\"\xC0\x80\"", "\"\xED\xA0\x80\"", "\xEF\xBB[]"}) {
        EXPECT_THAT(message_of(text), HasSubstr("not valid JSON at line ")) << text;
    }
    EXPECT_THROW((void)Value("\xFF").dump(), Error);
}

TEST(Value, DepthIsLimited) {
    const auto nested = [](int n) { return std::string(n, '[') + std::string(n, ']'); };
    EXPECT_EQ(Value::parse(nested(200)).dump(), nested(200));
    EXPECT_THAT(message_of(nested(201)), HasSubstr("column 201: nested deeper than 200 levels"));
    EXPECT_THAT(message_of(std::string(1'000'000, '[')), HasSubstr("nested deeper"));
    EXPECT_EQ(message_of("\"" + std::string(1000, '[') + "\""), "no error");
}

TEST(Value, OfRepeatedKeysTheLastCounts) {
    EXPECT_EQ(Value::parse(R"({"a": 1, "b": 2, "a": 3, "a": 4})").dump(), R"({"a": 4, "b": 2})");
    // Many keys, many repeated: would take minutes if that were quadratic.
    std::string text = "{";
    for (int i = 0; i < 100'000; ++i) text += "\"" + std::to_string(i % 60'000) + "\": 1,";
    text.back() = '}';
    EXPECT_EQ(Value::parse(text).as_object().size(), 60'000u);
}

TEST(Value, PrintsAsPythonDoes) {
    Value v;
    v.set("b", Value::Array{1, 2.5, "x"});
    v.set("a", Value::object());
    v.set("é", Value::array());
    v.set("\U0001F600", "tab\t\"\x7f");
    v.set("Z", nullptr);
    EXPECT_EQ(v.dump(),
              "{\"b\": [1, 2.5, \"x\"], \"a\": {}, \"é\": [], \"\U0001F600\": \"tab\\t\\\"\x7f\", \"Z\": null}");
    // json.dumps(v, indent=4, sort_keys=True) of Python 3.11
    EXPECT_EQ(v.dump(python_json_style),
              "{\n    \"Z\": null,\n    \"a\": {},\n    \"b\": [\n        1,\n        2.5,\n        \"x\"\n    ],\n"
              "    \"\\u00e9\": [],\n    \"\\ud83d\\ude00\": \"tab\\t\\\"\\u007f\"\n}");
    EXPECT_EQ(Value::array().dump(python_json_style), "[]");
    EXPECT_EQ(Value(1e16).dump(), "1e+16");
    EXPECT_THROW((void)Value("\xff").dump(), Error);
}

TEST(Value, FloatsPrintAsInPython) {
    for (const auto& row : numpy_rows("floats.json")) {
        const auto& kind = row.as_array()[0].as_string();
        const auto bits = std::stoull(row.as_array()[1].as_string(), nullptr, 16);
        const auto& text = row.as_array()[2].as_string();
        if (kind == "f8") {
            EXPECT_EQ(python_float_repr(std::bit_cast<double>(std::uint64_t{bits})), text);
        } else if (kind == "f4") {
            EXPECT_EQ(python_float_repr(std::bit_cast<float>(static_cast<std::uint32_t>(bits))), text);
        }
    }
    EXPECT_EQ(python_float_repr(12345678848.0f), "12345679000.0");
}

TEST(Value, AccessSaysWhatWasExpectedAndFound) {
    const auto message = [](auto access) -> std::string {
        try {
            access();
        } catch (const Error& e) {
            return e.what();
        }
        return "no error";
    };
    EXPECT_EQ(message([] { (void)Value("x").as_int64(); }), "expected an integer, found a string");
    EXPECT_EQ(message([] { (void)Value(3.0).as_int64(); }), "expected an integer, found a float");
    EXPECT_EQ(message([] { (void)Value(-1).as_uint64(); }), "expected an integer of 0 or more, found -1");
    EXPECT_EQ(message([] { (void)Value(1).as_array(); }), "expected an array, found an integer");
    EXPECT_EQ(message([] { (void)Value(true).as_double(); }), "expected a number, found true or false");
    EXPECT_THAT(message([] { (void)Value::object().at("shape"); }), HasSubstr("'shape'"));
}

TEST(Value, EqualityKeepsKindsApart) {
    EXPECT_EQ(Value::parse(R"({"a": 1, "b": NaN})"), Value::parse(R"({"b": NaN, "a": 1})"));
    EXPECT_NE(Value(1), Value(1.0));
    EXPECT_NE(Value(0.0), Value(-0.0));
    EXPECT_NE(Value(1), Value(true));
    EXPECT_NE(Value::parse("[1, 2]"), Value::parse("[2, 1]"));
    EXPECT_NE(Value::parse(R"({"a": 1})"), Value::parse(R"({"a": 1, "b": 1})"));
    EXPECT_EQ(Value(std::uint64_t{5}), Value(5));
}

TEST(Value, MembersAreSetInPlaceAndErased) {
    auto v = Value::parse(R"({"a": 1, "b": 2})");
    v.set("a", 3);
    v.set("c", 4);
    EXPECT_EQ(v.dump(), R"({"a": 3, "b": 2, "c": 4})");
    EXPECT_TRUE(v.erase("b"));
    EXPECT_FALSE(v.erase("b"));
    EXPECT_EQ(v.dump(), R"({"a": 3, "c": 4})");
    Value list;
    list.push_back(1);
    list.push_back("x");
    EXPECT_EQ(list.dump(), R"([1, "x"])");
    EXPECT_THROW(list.set("a", 1), Error);
}

}  // namespace
}  // namespace tessera
