#include <tessera/fmt.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <sstream>

namespace tessera {
namespace {

std::string streamed(const auto& v) {
    std::ostringstream out;
    out << v;
    return out.str();
}

TEST(Print, ShapesRegionsTypesAndValuesAreText) {
    EXPECT_EQ(streamed(Shape{3, 4}), "(3, 4)");
    EXPECT_EQ(streamed(Region({1, 2}, {3, 4})), "[1:4, 2:6]");
    EXPECT_EQ(streamed(DType("float32")), "<f4");
    EXPECT_EQ(streamed(Value{{"a", 1}}), R"({"a": 1})");
}

TEST(Print, FmtTakesThemWithItsOptions) {
    EXPECT_EQ(fmt::format("{:>6}|{}", Shape{3}, DType("i2")), "  (3,)|<i2");
    EXPECT_EQ(fmt::format("{} {}", Region({1}, {3}), Value{{"a", {{"b", "c"}}}}), R"([1:4] {"a": {"b": "c"}})");
}

TEST(Value, AnObjectFromBraces) {
    const Value value{{"title", "x"}, {"year", 2026}, {"title", "y"}};
    ASSERT_TRUE(value.is_object());
    EXPECT_EQ(value.as_object().size(), 2U);
    EXPECT_EQ(value.at("title"), Value("y"));
    EXPECT_TRUE((Value{{"title", "x"}}).is_object());
    EXPECT_TRUE(Value{}.is_null());
    EXPECT_TRUE(Value{"x"}.is_string());
}

TEST(Shape, IsIndexedByAnyInteger) {
    Shape shape{3, 4};
    const std::size_t last = shape.size() - 1;
    EXPECT_EQ(shape[last], 4);
    shape[last] = 5;
    EXPECT_EQ(shape[1], 5);
}

}  // namespace
}  // namespace tessera
