#include <tessera/fmt.h>

#include <gtest/gtest.h>
#include <tessera/ndarray.h>

#include <charconv>
#include <cstddef>
#include <cstring>
#include <deque>
#include <list>
#include <numeric>
#include <ranges>
#include <sstream>
#include <string>
#include <vector>

#include "golden_json.h"

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

/// An array of these bytes, in hex.
NDArray array_of(const DType& dtype, const Shape& shape, std::string_view hex) {
    NDArray array(dtype, shape);
    for (std::size_t i = 0; i < array.bytes().size(); ++i) {
        unsigned char byte = 0;
        std::from_chars(hex.data() + 2 * i, hex.data() + 2 * i + 2, byte, 16);
        array.bytes()[i] = std::byte{byte};
    }
    return array;
}

TEST(Print, ArraysLookAsInNumPy) {
    const auto rows = numpy_rows("printed.json");
    ASSERT_GT(rows.size(), 80U);
    for (const auto& row : rows) {
        const DType dtype = DType::from_descr(row.as_array()[0]);
        Shape shape;
        for (const Value& length : row.as_array()[1].as_array()) shape.push_back(length.as_int64());
        const NDArray array = array_of(dtype, shape, row.as_array()[2].as_string());
        EXPECT_EQ(array.to_string(), row.as_array()[3].as_string()) << dtype << ' ' << shape;
        const NDArray column_major = [&] {
            NDArray copy(dtype, shape, Order::F);
            const MutableArrayView to = copy.view();
            for (std::int64_t n = 0; n < array.count(); ++n) {
                Index at = Index::filled(shape.rank(), 0);
                for (std::int64_t rest = n, d = shape.rank(); d-- > 0; rest /= shape[d]) at[d] = rest % shape[d];
                const Region one(at, Shape::filled(shape.rank(), 1));
                std::memcpy(to.part(one).data, array.view().part(one).data, static_cast<std::size_t>(dtype.size()));
            }
            return copy;
        }();
        EXPECT_EQ(column_major.to_string(), array.to_string());
    }
}

TEST(Print, ATemporaryArrayAndTextsOfVariableLength) {
    const std::vector<std::string> texts{"a", "it's", std::string(3000, 'x')};
    EXPECT_EQ(streamed(NDArray(texts)), "['a' \"it's\"\n '" + std::string(1000, 'x') + "...']");
    std::vector<float> values{1, 2.5F};
    EXPECT_EQ(streamed(view(values)), "[1.  2.5]");
    EXPECT_EQ(streamed(NDArray()), "b''");
    EXPECT_EQ(fmt::format("{}", NDArray(values)), "[1.  2.5]");
}

TEST(Print, ManyDimensionsAreBounded) {
    std::vector<std::uint8_t> one{7};
    const Shape shape = Shape::filled(max_rank, 2);
    const std::string text = view(one.data(), shape, Strides::filled(max_rank, 0)).to_string();
    EXPECT_LT(text.size(), 200'000U);
    EXPECT_EQ(text.substr(0, 34), std::string(32, '[') + "7 ");
    const Shape huge{1'000'000, 1'000'000, 1'000'000};
    const std::string cube = view(one.data(), huge, Strides::filled(3, 0)).to_string();
    EXPECT_EQ(cube.substr(0, 30), "[[[7 7 7 ... 7 7 7]\n  [7 7 7 .");
    EXPECT_LT(cube.size(), 1000U);
}

TEST(NDArray, IsMadeFromARange) {
    const NDArray numbers(std::vector{1.5, 2.5, 3.5, 4.5}, {2, 2});
    EXPECT_EQ(numbers.dtype(), DType("f8"));
    EXPECT_EQ(streamed(numbers), "[[1.5 2.5]\n [3.5 4.5]]");
    EXPECT_EQ(streamed(NDArray(std::list<int>{1, 2, 3})), "[1 2 3]");
    EXPECT_EQ(streamed(NDArray(std::deque<int>{0, 1, 2, 3}, {2, 2})), "[[0 1]\n [2 3]]");
    EXPECT_EQ(streamed(NDArray(std::vector<bool>{true, false})), "[ True False]");
#if !defined(__clang__) || __clang_major__ > 15  // older ones cannot compile libstdc++'s views
    std::istringstream words("3 4 5");
    EXPECT_EQ(streamed(NDArray(std::ranges::istream_view<int>(words))), "[3 4 5]");
#endif
    EXPECT_EQ(NDArray("<i4", {3}).dtype(), DType("i4"));  // not the characters of a text
    EXPECT_THROW(NDArray(std::vector{1, 2, 3}, {2, 2}), Error);
    EXPECT_EQ(NDArray(std::vector<int>(), {0, 5}).shape(), (Shape{0, 5}));
}

TEST(View, OfAPointerWithShapeAndStrides) {
    std::vector<float> memory(20);
    std::iota(memory.begin(), memory.end(), 0.0F);
    const float* first = memory.data();
    EXPECT_EQ(streamed(view(first, {2, 3}, {40, 8})), "[[ 0.  2.  4.]\n [10. 12. 14.]]");
    EXPECT_EQ(streamed(ArrayView(first, {2}, {80 - 4})), "[ 0. 19.]");
    EXPECT_EQ(streamed(ArrayView{first, DType::of<float>(), {4}, {4}}), "[0. 1. 2. 3.]");
    EXPECT_EQ(streamed(view(first, {2, 2}, Order::F)), "[[0. 2.]\n [1. 3.]]");
    const MutableArrayView writable = view(memory.data(), {5, 4});
    writable.typed<float>()(1, 0) = -1;
    EXPECT_EQ(memory[4], -1.0F);
    float array[6] = {1, 2, 3, 4, 5, 6};  // NOLINT: its length is known
    EXPECT_EQ(streamed(view(array, {2, 3})), "[[1. 2. 3.]\n [4. 5. 6.]]");
    EXPECT_THROW((void)view(array, {2, 4}), Error);
}

TEST(Region, IsMadeFromStartAndExtentOrEnd) {
    EXPECT_EQ(streamed(Region::box({10, 0}, {2, 3})), "[10:12, 0:3]");
    EXPECT_EQ(Region::between({10, 0}, {12, 3}), Region::box({10, 0}, {2, 3}));
    EXPECT_THROW((void)Region::between({10}, {9}), Error);
    EXPECT_THROW((void)Region::between({10}, {11, 2}), Error);
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
