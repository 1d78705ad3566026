#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "font.h"
#include "font_data.h"

namespace tessera {
namespace {

std::map<std::pair<std::int64_t, std::int64_t>, int> pixels_of(std::string_view text, int em) {
    std::map<std::pair<std::int64_t, std::int64_t>, int> pixels;
    for_each_text_pixel(text, em, [&](std::int64_t x, std::int64_t y, int coverage) { pixels[{x, y}] = coverage; });
    return pixels;
}

double area_of(std::string_view text, int em) {
    double area = 0;
    for (const auto& [at, coverage] : pixels_of(text, em)) area += coverage;
    return area / full_coverage;
}

TEST(Font, LettersAreBlackAtTheirOwnSizeAndKeepTheirAreaAtEveryOther) {
    const std::string_view text = "Jag0 °µ²ÅÇîΩℓ≤";  // J, î and ℓ begin left of the pen
    for (const auto& [at, coverage] : pixels_of(text, font_em)) {
        EXPECT_EQ(coverage, full_coverage) << at.first << ' ' << at.second;
    }
    const double area = area_of("  " + std::string(text) + "  ", font_em);
    EXPECT_GT(area, 3000);
    for (int em = 1; em <= 3 * font_em; em += 7) {
        const double rounded = 0.5 / full_coverage * static_cast<double>(pixels_of(text, em).size());
        EXPECT_NEAR(area_of(text, em), area * em * em / (font_em * font_em), rounded) << em;
    }
}

TEST(Font, CapitalsStandOnTheLine) {
    for (const auto& [at, coverage] : pixels_of("EHT", 40)) {
        EXPECT_LT(at.second, 0);
        EXPECT_GE(at.second, -30);  // DejaVu Sans: capitals are 0.729 em high
    }
    std::int64_t lowest = 0;
    for (const auto& [at, coverage] : pixels_of("g", 40)) lowest = std::max(lowest, at.second);
    EXPECT_GE(lowest, 5);
}

TEST(Font, WidthsAreThoseOfTheLetters) {
    EXPECT_EQ(text_pixels("", 20), 0);
    EXPECT_LT(text_pixels("iii", 20), text_pixels("WWW", 20));
    EXPECT_EQ(text_pixels("0123456789", font_em), 10 * text_pixels("8", font_em));
}

TEST(Font, LongTextsAreCutBetweenLetters) {
    std::string text;
    for (int n = 0; n < 100'000; ++n) text += "aµ≤";
    for (const int width : {0, 7, 100, 5'000}) {
        const std::size_t first = bytes_within(text, 20, width);
        const std::size_t last = bytes_within_end(text, 20, width);
        EXPECT_LE(text_pixels(text.substr(0, first), 20), width);
        EXPECT_LE(text_pixels(text.substr(text.size() - last), 20), width);
        // The next letter, of at most three bytes, does not fit.
        EXPECT_GT(text_pixels(text.substr(0, first + 3), 20), width);
        EXPECT_GT(text_pixels(text.substr(text.size() - last - 3), 20), width);
        for (const std::size_t at : {first, text.size() - last}) {
            EXPECT_NE(static_cast<unsigned char>(text[at]) & 0xC0U, 0x80U) << width;
        }
    }
    EXPECT_EQ(bytes_within("ab", 20, 1'000), 2U);
    EXPECT_EQ(bytes_within_end("ab", 20, 1'000), 2U);
}

TEST(Font, ABoxStandsForWhatHasNoShape) {
    const auto box = pixels_of("□", 30);
    EXPECT_FALSE(box.empty());
    for (const std::string_view text : {"中", "\n", "\xFF", "\xE2"}) EXPECT_EQ(pixels_of(text, 30), box);
    EXPECT_EQ(text_pixels("\xF0\x9F\x98\x80", 30), text_pixels("□", 30));
}

}  // namespace
}  // namespace tessera
