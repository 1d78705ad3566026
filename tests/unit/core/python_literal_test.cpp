#include "python_literal.h"

#include <gmock/gmock.h>

#include <tessera/error.h>

namespace tessera {
namespace {

std::string json_of(std::string_view text) {
    return parse_python_literal(text).to_value().dump();
}

TEST(PythonLiteral, ReadsHeadersOfNpy) {
    const auto v = parse_python_literal(
        "{'descr': [('a', '<i4'), ('b', '<f8', (2, 3))], 'fortran_order': False, 'shape': (3L,), }   \n");
    ASSERT_EQ(v.kind, PythonLiteral::Kind::dict);
    EXPECT_EQ(v.members[0].key, "descr");
    EXPECT_EQ(v.members[0].value.kind, PythonLiteral::Kind::list);
    EXPECT_EQ(v.members[0].value.items[0].kind, PythonLiteral::Kind::tuple);
    EXPECT_EQ(v.members[2].value.kind, PythonLiteral::Kind::tuple);
    EXPECT_EQ(v.to_value().dump(),
              R"({"descr": [["a", "<i4"], ["b", "<f8", [2, 3]]], "fortran_order": false, "shape": [3]})");
}

TEST(PythonLiteral, ReadsEveryConstant) {
    EXPECT_EQ(json_of("[True, False, None, 1, -2, +3, 4L, 1.5, -1e-7, 18446744073709551615, 99999999999999999999]"),
              "[true, false, null, 1, -2, 3, 4, 1.5, -1e-07, 18446744073709551615, 99999999999999999999]");
    EXPECT_EQ(json_of("()"), "[]");
    EXPECT_EQ(json_of("(1,)"), "[1]");
    EXPECT_EQ(json_of("(1)"), "1");
    EXPECT_EQ(json_of(" { } "), "{}");
    EXPECT_EQ(json_of("[1,\n 2,\t]"), "[1, 2]");
}

TEST(PythonLiteral, ReadsTextAsPythonDoes) {
    EXPECT_EQ(json_of(R"(['a', "b'c", 'd"e', u'f', b'g', U"h", '', 'j' 'k'  "l"])"),
              R"(["a", "b'c", "d\"e", "f", "g", "h", "", "jkl"])");
    EXPECT_EQ(parse_python_literal(R"('\\\'\"\n\t\r\x41\101\0\u00e9\U0001F600\q')").scalar.as_string(),
              std::string("\\'\"\n\t\rAA\0é\U0001F600\\q", 17));
    EXPECT_EQ(parse_python_literal(R"(b'\xe9\u0041')").scalar.as_string(), "é\\u0041");
    EXPECT_EQ(parse_python_literal("'日本é'").scalar.as_string(), "日本é");
}

TEST(PythonLiteral, RefusesEverythingElse) {
    for (const auto* text : {"",
                             "x",
                             "__import__('os').system('true')",
                             "[1",
                             "[1 2]",
                             "{'a' 1}",
                             "{1: 2}",
                             "{'a': 1, 'a': 2}",
                             "'a",
                             "'a\n'",
                             "1 2",
                             "(1, 2",
                             "{'a': }",
                             "[,]",
                             "f'x'",
                             "r'x'",
                             "'\\x4'",
                             "'\\u12'",
                             "'\\ud800'",
                             "'\\N{DASH}'",
                             "1+2",
                             "--1",
                             "1.2.3",
                             "Nonesuch",
                             "'\\",
                             "[1,,2]",
                             "lambda: 0",
                             "1e999x"}) {
        try {
            (void)parse_python_literal(text);
            FAIL() << text;
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::corrupt);
            EXPECT_THAT(e.what(), ::testing::HasSubstr("not a Python literal at character ")) << text;
        }
    }
}

TEST(PythonLiteral, DepthIsLimited) {
    EXPECT_THROW((void)parse_python_literal(std::string(1'000'000, '(')), Error);
    EXPECT_THROW((void)parse_python_literal(std::string(300, '[') + std::string(300, ']')), Error);
    EXPECT_EQ(json_of(std::string(150, '[') + std::string(150, ']')), std::string(150, '[') + std::string(150, ']'));
}

TEST(PythonRepr, IsPythons) {  // expected: what repr() of Python 3.11 gives
    EXPECT_EQ(python_repr("abc"), "'abc'");
    EXPECT_EQ(python_repr("a'b"), "\"a'b\"");
    EXPECT_EQ(python_repr("a\"b"), "'a\"b'");
    EXPECT_EQ(python_repr("a'\"b"), "'a\\'\"b'");
    EXPECT_EQ(python_repr("\x1f\x7f\u0080\u00a0\u00ad\u00e9\n\r\t\\\b"),
              "'\\x1f\\x7f\\x80\\xa0\\xad\u00e9\\n\\r\\t\\\\\\x08'");
    EXPECT_EQ(python_repr("\u1680\u2028\u200b\u3000\ufeff\ue000\U0001f600\U000e0001"),
              "'\\u1680\\u2028\\u200b\\u3000\\ufeff\\ue000\U0001f600\\U000e0001'");
}

}  // namespace
}  // namespace tessera
