#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/error.h>
#include <tessera/shape.h>

namespace tessera {
namespace {

TEST(Shape, PrintsAsPythonPrintsTuples) {
    EXPECT_EQ(Shape{}.to_string(), "()");
    EXPECT_EQ(Shape{3}.to_string(), "(3,)");
    EXPECT_EQ((Shape{3, 4}).to_string(), "(3, 4)");
}

TEST(Shape, CountsElementsAndRefusesWhatOverflows) {
    EXPECT_EQ(element_count({}), 1);
    EXPECT_EQ(element_count({3, 0, 5}), 0);
    EXPECT_EQ(element_count({1 << 20, 1 << 20}), std::int64_t{1} << 40);
    EXPECT_THROW((void)element_count({INT64_MAX, 2}), Error);
    // A zero length does not excuse an overflow of the others: strides would overflow all the same.
    EXPECT_THROW((void)element_count({INT64_MAX, 2, 0}), Error);
    EXPECT_THROW((void)element_count({3, -1}), Error);
    EXPECT_THROW((void)byte_count({INT64_MAX / 4}, 8), Error);
}

TEST(Shape, RefusesMoreDimensionsThanThereIsRoomFor) {
    Shape s = Shape::filled(max_rank, 1);
    EXPECT_THROW(s.push_back(1), Error);
    EXPECT_THROW((void)Shape::filled(max_rank + 1, 1), Error);
    EXPECT_THROW(Shape(std::vector<std::int64_t>(33, 1)), Error);
}

TEST(Shape, ContiguousStridesInBothOrders) {
    EXPECT_EQ(contiguous_strides({2, 3, 4}, 8), (Strides{96, 32, 8}));
    EXPECT_EQ(contiguous_strides({2, 3, 4}, 8, Order::F), (Strides{8, 16, 48}));
}

TEST(Shape, ParsesWhatPeopleType) {
    EXPECT_EQ(parse_shape("1000,200"), (Shape{1000, 200}));
    EXPECT_EQ(parse_shape(" (1000, 200) "), (Shape{1000, 200}));
    EXPECT_EQ(parse_shape("[3]"), Shape{3});
    EXPECT_EQ(parse_shape("(3,)"), Shape{3});
    EXPECT_EQ(parse_shape("()"), Shape{});
    EXPECT_EQ(parse_shape(""), Shape{});
    for (const char* bad : {"3,-1", "a", "3,,4", "3;4", "99999999999999999999", "3.5"}) {
        EXPECT_THROW((void)parse_shape(bad), Error) << bad;
    }
}

TEST(Region, OutsideTheShapeIsRefusedWithoutOverflow) {
    EXPECT_NO_THROW(require_inside({{0, 2}, {3, 2}}, {3, 4}));
    EXPECT_NO_THROW(require_inside({{3, 4}, {0, 0}}, {3, 4}));
    EXPECT_THROW(require_inside({{0, 3}, {3, 2}}, {3, 4}), Error);
    EXPECT_THROW(require_inside({{-1, 0}, {1, 1}}, {3, 4}), Error);
    EXPECT_THROW(require_inside({{1, 0}, {INT64_MAX, 1}}, {3, 4}), Error);
    EXPECT_THROW(require_inside({{0}, {1}}, {3, 4}), Error);
    EXPECT_THROW(Region({0, 0}, {1}), Error);
}

TEST(Region, Intersection) {
    EXPECT_EQ(intersection({{0, 0}, {4, 4}}, {{2, 1}, {5, 2}}), Region({2, 1}, {2, 2}));
    EXPECT_TRUE(intersection({{0}, {2}}, {{5}, {2}}).empty());
}

}  // namespace
}  // namespace tessera
