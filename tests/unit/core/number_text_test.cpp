// real_from_text beside std::from_chars, which is its model, where the standard library has that.
#include <tessera/number_text.h>

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <system_error>
#include <vector>

namespace tessera {
namespace {

template <class Real>
void compare(const std::string& text) {
    SCOPED_TRACE(text);
    if constexpr (requires(Real & v) { std::from_chars("", "", v); }) {
        Real expected = 7;
        Real found = 7;
        const char* const end = text.data() + text.size();
        const auto model = std::from_chars(text.data(), end, expected);
        const auto own = real_from_text(text.data(), end, found);
        ASSERT_EQ(own.ec, model.ec);
        ASSERT_EQ(own.ptr - text.data(), model.ptr - text.data());
        using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
        if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(found));
        } else {
            ASSERT_EQ(std::bit_cast<Bits>(found), std::bit_cast<Bits>(expected));
        }
    } else {
        GTEST_SKIP() << "there is nothing to compare with";
    }
}

void compare_both(const std::string& text) {
    compare<double>(text);
    compare<float>(text);
}

TEST(NumberText, IsReadAsByFromChars) {
    for (const char* text : {"",
                             "-",
                             ".",
                             "-.",
                             "+1",
                             " 1",
                             "1 ",
                             "1.",
                             ".5",
                             "-.5",
                             "1.5e",
                             "1e+",
                             "1e5",
                             "1E-5",
                             "1e+05",
                             "0x10",
                             "inf",
                             "-INF",
                             "Infinity",
                             "infinit",
                             "nan",
                             "-NaN",
                             "nan(1)",
                             "nan(a b",
                             "nan(?)",
                             "na",
                             "1,5",
                             "1_000",
                             "00012",
                             "-0",
                             "0e9999",
                             "1e400",
                             "-1e400",
                             "1e-400",
                             "-1e-400",
                             "1e39",
                             "-1e39",
                             "1e-46",
                             "4.9e-324",
                             "2.4e-324",
                             "3e-324",
                             "1.4e-45",
                             "0.7e-45",
                             "1e-310",
                             "1e-40",
                             "1.7976931348623157e308",
                             "1.7976931348623159e308",
                             "3.4028234e38",
                             "3.4028236e38",
                             "2.2250738585072011e-308",
                             "9007199254740993",
                             "16777217",
                             "1e23",
                             "8.5899345924e9",
                             "1..2",
                             "1e5e5",
                             "e5"}) {
        compare_both(text);
    }
    compare_both(
        std::string("1\0"
                    "5",
                    3));
    compare_both(std::string(2000, '9'));
    compare_both("0." + std::string(2000, '0') + "1");
    compare_both("0." + std::string(400, '3') + "e5");
}

TEST(NumberText, OfAnyBitsIsReadBack) {
    std::mt19937_64 random(5);
    std::array<char, 1200> text{};
    for (int i = 0; i < 20'000; ++i) {
        const double value = std::bit_cast<double>(random());
        const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
        compare_both({text.data(), end});
        if (!std::isfinite(value)) continue;
        double back = 0;
        ASSERT_EQ(real_from_text(text.data(), end, back).ec, std::errc());
        ASSERT_EQ(std::bit_cast<std::uint64_t>(back), std::bit_cast<std::uint64_t>(value));
        // Digits beyond those that are needed, and a decimal of another magnitude.
        const auto more =
            std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific, 40).ptr;
        compare_both({text.data(), more});
        compare_both(std::to_string(static_cast<std::int64_t>(random())) + "e-" + std::to_string(random() % 60));
    }
}

TEST(NumberText, OfRandomLettersIsReadAsFar) {
    std::mt19937_64 random(6);
    const std::string letters = "0123456789..eE+-infaNty() ";
    for (int i = 0; i < 20'000; ++i) {
        std::string text;
        for (auto size = random() % 12; size > 0; --size) text += letters[random() % letters.size()];
        compare_both(text);
    }
}

}  // namespace
}  // namespace tessera
