#include "font.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "font_data.h"

namespace tessera {

namespace {

/// Reads the character at `at`, and moves `at` behind it. Invalid UTF-8 counts byte by byte.
char32_t next_character(std::string_view text, std::size_t& at) {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    const unsigned first = byte(at);
    const unsigned length = first >= 0xF0U ? 4 : first >= 0xE0U ? 3 : first >= 0xC0U ? 2 : 1;
    char32_t character = length == 1 ? first : first & (0x7FU >> length);
    for (unsigned k = 1; k < length; ++k) {
        if ((byte(at + k) & 0xC0U) != 0x80U) {
            ++at;
            return 0;
        }
        character = character << 6U | (byte(at + k) & 0x3FU);
    }
    at += length;
    return character;
}

const FontGlyph& glyph_of(char32_t character) {
    constexpr char32_t box = 0x25A1;
    const auto glyphs = font_glyphs();
    const auto find = [&](char32_t c) { return std::ranges::lower_bound(glyphs, c, {}, &FontGlyph::character); };
    const auto found = find(character);
    return found != glyphs.end() && found->character == character ? *found : *find(box);
}

/// Calls each(glyph, pen, end) for the letters of a text; each ends before the byte `end`. Returns the width in dots.
template <class Each>
std::int64_t for_each_glyph(std::string_view text, const Each& each) {
    std::int64_t pen = 0;
    for (std::size_t at = 0; at < text.size();) {
        const FontGlyph& glyph = glyph_of(next_character(text, at));
        each(glyph, pen, at);
        pen += glyph.advance;
    }
    return pen;
}

std::int64_t dots_of(std::string_view text) {
    return for_each_glyph(text, [](const FontGlyph&, std::int64_t, std::size_t) {});
}

/// A length in the digits of make_font_data.py.
int length_of(char digit) {
    return digit - '#' - (digit > '?' ? 1 : 0) - (digit > '\\' ? 1 : 0);
}

/// How much of each pixel is covered: a grid over a text that begins `before` pixels before it and `above` pixels above
/// its line. Lengths are in parts of a pixel, font_em of them, and whole numbers: compilers round fractions in their
/// own ways, and a picture is the same everywhere.
class Coverage {
public:
    Coverage(std::int64_t before, std::int64_t width, std::int64_t above, std::int64_t below)
        : before_(before),
          width_(before + width),
          above_(above),
          cells_(static_cast<std::size_t>(width_ * (above + below))) {}

    /// Adds a rectangle between two places; the line begins at 0, 0.
    void add(std::int64_t left, std::int64_t top, std::int64_t right, std::int64_t bottom) {
        spread(top + above_ * font_em, bottom + above_ * font_em, [&](std::int64_t y, std::int64_t high) {
            spread(left + before_ * font_em, right + before_ * font_em, [&](std::int64_t x, std::int64_t wide) {
                if (x < 0 || x >= width_) return;
                const std::int64_t cell = y * width_ + x;
                if (cell >= 0 && cell < std::ssize(cells_)) cells_[static_cast<std::size_t>(cell)] += high * wide;
            });
        });
    }

    template <class Each>
    void for_each(const Each& each) const {
        for (std::size_t cell = 0; cell < cells_.size(); ++cell) {
            const auto at = static_cast<std::int64_t>(cell);
            if (cells_[cell] > 0) each(at % width_ - before_, at / width_ - above_, std::min(whole, cells_[cell]));
        }
    }

    static constexpr std::int64_t whole = std::int64_t{font_em} * font_em;  ///< a pixel

private:
    /// Calls each(pixel, part) for the pixels of which an interval, not below 0, covers a part.
    template <class Each>
    static void spread(std::int64_t from, std::int64_t to, const Each& each) {
        for (std::int64_t pixel = std::max<std::int64_t>(from, 0) / font_em; pixel * font_em < to; ++pixel) {
            const std::int64_t start = pixel * font_em;
            each(pixel, std::min(to, start + font_em) - std::max(from, start));
        }
    }

    std::int64_t before_, width_, above_;
    std::vector<std::int64_t> cells_;
};

}  // namespace

std::int64_t text_pixels(std::string_view text, int em) {
    return (dots_of(text) * em + font_em - 1) / font_em;
}

std::size_t bytes_within(std::string_view text, int em, std::int64_t width) {
    std::size_t bytes = 0;
    for_each_glyph(text, [&](const FontGlyph& glyph, std::int64_t pen, std::size_t end) {
        if ((pen + glyph.advance) * em <= width * font_em) bytes = end;
    });
    return bytes;
}

std::size_t bytes_within_end(std::string_view text, int em, std::int64_t width) {
    const std::int64_t dots = dots_of(text);
    std::size_t first = dots * em <= width * font_em ? 0 : text.size();
    for_each_glyph(text, [&](const FontGlyph& glyph, std::int64_t pen, std::size_t end) {
        if ((dots - pen - glyph.advance) * em <= width * font_em) first = std::min(first, end);
    });
    return text.size() - first;
}

void for_each_text_pixel(std::string_view text, int em,
                         const std::function<void(std::int64_t x, std::int64_t y, int coverage)>& each) {
    // Letters hang over their advances, and accents over capitals, by less than a quarter of the em.
    const std::int64_t over = em / 4 + 1;
    Coverage covered(over, text_pixels(text, em) + over, em + over, em / 2 + 1);
    for_each_glyph(text, [&](const FontGlyph& glyph, std::int64_t pen, std::size_t) {
        int at = 0;  // dots of the box so far
        for (const char* run = glyph.runs; *run != '\0'; run += 2) {
            at += length_of(run[0]);
            for (int left = length_of(run[1]); left > 0;) {
                const int column = at % glyph.width;
                const int row = at / glyph.width;
                const int part = std::min(left, glyph.width - column);
                // A dot is `em` parts wide.
                const std::int64_t x = pen + glyph.left + column;
                const std::int64_t y = row - glyph.top;
                covered.add(x * em, y * em, (x + part) * em, (y + 1) * em);
                at += part;
                left -= part;
            }
        }
    });
    covered.for_each([&](std::int64_t x, std::int64_t y, std::int64_t parts) {
        each(x, y, static_cast<int>((parts * full_coverage + Coverage::whole / 2) / Coverage::whole));
    });
}

}  // namespace tessera
