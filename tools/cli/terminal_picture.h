// Pictures on a terminal: half blocks in true colour, characters, or lines of braille dots.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tessera/picture.h>

namespace tessera::cli {

/// What a terminal shows beside text.
enum class Graphics : std::uint8_t { none, kitty, sixel };

/// The size of a terminal, and how pictures are drawn on it.
struct Screen {
    int columns = 80;
    int lines = 24;
    bool colour = false;       ///< half blocks, two pixels a character; else two characters a pixel
    bool few_colours = false;  ///< the 256 of xterm; else 24 bits
    Graphics graphics = Graphics::none;
    int gutter = 0;         ///< columns beside a slice that it must leave free, for the indices of rows
    bool row_ticks = true;  ///< whether these are written
};

/// Lines around a picture: title, axes, ruler, range, and the prompt that follows.
inline constexpr int screen_lines_beside_picture = 6;
/// Columns beside a slice, for the indices of rows.
inline constexpr int screen_columns_beside_picture = 6;

/// The screen behind standard output. `colour`: auto, always, 256, kitty, sixel or never. Throws invalid_argument for
/// another word.
[[nodiscard]] Screen screen_of_output(const std::string& colour);

/// The room for a slice, in pixels (height, width).
[[nodiscard]] std::pair<std::int64_t, std::int64_t> slice_room(const Screen& screen);
[[nodiscard]] std::int64_t line_room(const Screen& screen);

/// The picture as lines of text, with title and range.
[[nodiscard]] std::string picture_lines(const Picture& picture, std::pair<double, double> range, ColourMap map,
                                        const Screen& screen);
/// "\033[38;2;…m" or "\033[38;5;…m": sets the colour of the text that follows, or of its background.
[[nodiscard]] std::string ink_code(Rgb colour, const Screen& screen);
[[nodiscard]] std::string paper_code(Rgb colour, const Screen& screen);
/// The nearest of xterm's 256 colours, of those from 16 on, and its colour.
[[nodiscard]] std::uint8_t colour_number(Rgb colour);
[[nodiscard]] Rgb numbered_colour(std::uint8_t number);
inline constexpr const char* plain_code = "\033[0m";

}  // namespace tessera::cli
