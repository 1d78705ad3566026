// Pixels to draw on: rectangles, lines and small text. Private to the store module.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/ndarray.h>
#include <tessera/picture.h>

namespace tessera {

/// Of text, in pixels for each step of its scale.
inline constexpr int glyph_width = 6;   ///< of a character, about
inline constexpr int glyph_height = 8;  ///< the room for what hangs below the line included

/// u1 pixels (height, width, 3). What is drawn outside of them is left out.
class Canvas {
public:
    Canvas(std::int64_t height, std::int64_t width, Rgb background);

    void pixel(std::int64_t x, std::int64_t y, Rgb colour);
    void box(std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height, Rgb colour);
    /// Only its border, one `pen` wide, inside.
    void frame(std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height, int pen, Rgb colour);
    void line(std::int64_t x0, std::int64_t y0, std::int64_t x1, std::int64_t y1, int pen, Rgb colour);
    /// A board of two greys, as pictures show what is transparent.
    void chequer(std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height);
    /// Text whose first character has its upper left corner at x, y; capitals are nearly 7 `scale` pixels high.
    void text(std::int64_t x, std::int64_t y, std::string_view text, int scale, Rgb colour);
    /// The same turned to the left, from x, y upwards.
    void text_up(std::int64_t x, std::int64_t y, std::string_view text, int scale, Rgb colour);

    [[nodiscard]] NDArray take() && { return std::move(pixels_); }

private:
    /// Lets a colour cover a part of a pixel.
    void blend(std::int64_t x, std::int64_t y, Rgb colour, int coverage);

    NDArray pixels_;
    std::int64_t height_, width_;
};

/// The colour of a chequered pixel.
[[nodiscard]] Rgb chequer_colour(std::int64_t x, std::int64_t y);
/// Pixels that a text is wide.
[[nodiscard]] std::int64_t text_width(std::string_view text, int scale);
/// A text cut, with "..", to what fits into a width.
[[nodiscard]] std::string fitted_text(std::string_view text, int scale, std::int64_t width);
/// The same, cut at its beginning.
[[nodiscard]] std::string fitted_end(std::string_view text, int scale, std::int64_t width);

}  // namespace tessera
