#include <tessera/nodata.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include <tessera/element.h>

namespace tessera {
namespace {

std::string marked(std::string_view text, const DType& dtype) {
    const auto nodata = parse_nodata(text, dtype);
    return nodata ? element_to_text(dtype, nodata->element.data()) : "none";
}

TEST(Nodata, IsSpeltInManyWays) {
    for (const char* const text : {"-9999", " -9999 ", "-9999.0", "-9.999e3", "-9999,0", "-9999\n"}) {
        EXPECT_EQ(marked(text, "<f4"), "-9999.0") << text;
        EXPECT_EQ(marked(text, "<i2"), "-9999") << text;
    }
    for (const char* const text : {"nan", "NaN", "-nan", "-1.#IND", "1.#QNAN", "1.#IND00"}) {
        EXPECT_EQ(marked(text, "<f8"), "NaN") << text;
        EXPECT_EQ(marked(text, "<i4"), "none") << text;
    }
    EXPECT_EQ(marked("1.#INF", "<f4"), "Infinity");
    EXPECT_EQ(marked("-inf", "<f8"), "-Infinity");
    for (const char* const text : {"", " ", "none", "1 2", "-9999 m", "0x10", "1,2,3"}) {
        EXPECT_EQ(marked(text, "<f4"), "none") << text;
        EXPECT_EQ(marked(text, "<u1"), "none") << text;
    }
}

TEST(Nodata, FitsTheDtypeOrMarksNothing) {
    EXPECT_EQ(marked("256", "|u1"), "none");
    EXPECT_EQ(marked("-1", "|u1"), "none");
    EXPECT_EQ(marked("0.5", "<i4"), "none");
    EXPECT_EQ(marked("-9223372036854775808", "<i8"), "-9223372036854775808");
    EXPECT_EQ(marked("18446744073709551615", "<u8"), "18446744073709551615");
    EXPECT_EQ(marked("-1e40", "<f4"), "-Infinity");
    EXPECT_EQ(marked("1e400", "<f8"), "Infinity");
    EXPECT_EQ(marked("1", "|b1"), "true");
    EXPECT_EQ(marked("255", "|b1"), "none");
}

TEST(Nodata, FewDigitsMarkWhatLiesNear) {
    const auto lowest = element_to_text(DType("<f4"), [] {
        static const float value = std::numeric_limits<float>::lowest();
        return reinterpret_cast<const std::byte*>(&value);
    }());
    for (const char* const text : {"-3.40282e+38", "-3.402823e+38", "-3.4028235e+38", "-3.4028234663852886e+38"}) {
        EXPECT_EQ(marked(text, "<f4"), lowest) << text;
    }
    EXPECT_NE(marked("-3.4e+38", "<f4"), lowest);
    EXPECT_GT(parse_nodata("-9999.9", "<f4")->tolerance, 0);
    EXPECT_EQ(parse_nodata("-9999.90039", "<f4")->tolerance, 0);
    EXPECT_EQ(parse_nodata("-9999", "<i4")->tolerance, 0);
}

}  // namespace
}  // namespace tessera
