// Pictures on a terminal: half blocks in true colour, characters, or lines of braille dots.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tessera/picture.h>

namespace tessera::cli {

/// The size of a terminal, and how pictures are drawn on it.
struct Screen {
    int columns = 80;
    int lines = 24;
    bool colour = false;  ///< half blocks, two pixels a character; else two characters a pixel
};

/// Lines around a picture: title, axes, range, and the prompt that follows.
inline constexpr int screen_lines_beside_picture = 5;

/// The screen behind standard output. `colour`: auto, always or never. Throws invalid_argument for another word.
[[nodiscard]] Screen screen_of_output(const std::string& colour);

/// The room for a slice, in pixels (height, width).
[[nodiscard]] std::pair<std::int64_t, std::int64_t> slice_room(const Screen& screen);
[[nodiscard]] std::int64_t line_room(const Screen& screen);

/// The picture as lines of text, with title and range.
[[nodiscard]] std::string picture_lines(const Picture& picture, std::pair<double, double> range, ColourMap map,
                                        const Screen& screen);
/// "\033[38;2;…m": sets the colour of the text that follows, or of its background.
[[nodiscard]] std::string ink_code(Rgb colour);
[[nodiscard]] std::string paper_code(Rgb colour);
inline constexpr const char* plain_code = "\033[0m";

}  // namespace tessera::cli
