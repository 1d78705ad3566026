#include <tessera/dtype_of.h>
#include <tessera/view.h>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "expect_error.h"

namespace {

struct Reading {
    std::int64_t time;
    float value;
    std::uint8_t quality;
};

struct Station {
    char name[5];
    double position[2];
    Reading last;
    std::array<std::array<std::int16_t, 3>, 2> levels;
    bool active;
};

struct OneByte {
    std::uint8_t only;
};

}  // namespace

TESSERA_STRUCTURE(Reading, time, value, quality);
TESSERA_STRUCTURE(Station, name, position, last, levels, active);
TESSERA_STRUCTURE(OneByte, only);

namespace tessera {
namespace {

TEST(Structure, HasItsFieldsWhereTheCompilerPutTheMembers) {
    const DType dtype = DType::of<Reading>();
    EXPECT_EQ(dtype.size(), 16);
    ASSERT_EQ(dtype.fields().size(), 3U);
    EXPECT_EQ(dtype.fields()[0].name, "time");
    EXPECT_EQ(dtype.fields()[0].dtype, DType::of<std::int64_t>());
    EXPECT_EQ(dtype.fields()[1].offset, 8);
    EXPECT_EQ(dtype.fields()[2].offset, 12);
    EXPECT_EQ(dtype.fields()[2].dtype, DType::of<std::uint8_t>());
    EXPECT_EQ(DType::of<OneByte>().size(), 1);
}

TEST(Structure, HoldsArraysTextAndOtherStructures) {
    const DType dtype = DType::of<Station>();
    EXPECT_EQ(dtype.size(), static_cast<std::int64_t>(sizeof(Station)));
    const auto fields = dtype.fields();
    ASSERT_EQ(fields.size(), 5U);
    EXPECT_EQ(fields[0].dtype, DType::bytes(5));
    EXPECT_EQ(fields[1].shape, Shape{2});
    EXPECT_EQ(fields[1].offset, static_cast<std::int64_t>(offsetof(Station, position)));
    EXPECT_EQ(fields[2].dtype, DType::of<Reading>());
    EXPECT_EQ(fields[3].shape, (Shape{2, 3}));
    EXPECT_EQ(fields[4].dtype, DType("bool"));
}

TEST(Structure, IsViewedAsItIs) {
    const std::vector<Reading> readings{{1, 0.5F, 2}, {3, 1.5F, 4}};
    const auto seen = view(readings).typed<Reading>();
    EXPECT_EQ(seen(1).time, 3);
    EXPECT_EQ(seen(1).quality, 4);
    const ArrayView elements = view(readings);
    expect_error(ErrorCode::invalid_argument, "", [&] { (void)elements.typed<OneByte>(); });
}

// What must not compile is in tests/misuse.
using detail::all_members;
using detail::MemberPlace;
static_assert(all_members(std::array{MemberPlace{0, 8, 8}, MemberPlace{8, 4, 4}, MemberPlace{12, 1, 1}}, 16, 8));
static_assert(!all_members(std::array{MemberPlace{0, 8, 8}, MemberPlace{12, 1, 1}}, 16, 8), "one is missing between");
static_assert(!all_members(std::array{MemberPlace{0, 8, 8}}, 16, 8), "the last is missing");
static_assert(!all_members(std::array{MemberPlace{8, 8, 8}}, 16, 8), "the first is missing");
static_assert(!all_members(std::array{MemberPlace{8, 8, 8}, MemberPlace{0, 8, 8}}, 16, 8), "in another order");

}  // namespace
}  // namespace tessera
