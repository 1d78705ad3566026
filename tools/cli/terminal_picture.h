// Pictures on a terminal: half blocks in true colour, characters, or lines of braille dots.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tessera/picture.h>

namespace tessera::cli {

/// How a terminal is drawn on.
struct Screen {
    int columns = 80;
    int lines = 24;
    bool colour = false;  ///< half blocks, two pixels a character; else two characters a pixel
};

/// Lines that are written beside a picture: what it is, axes, range, and the prompt that follows.
inline constexpr int screen_lines_beside_picture = 5;

/// What standard output is: its size, and whether it shows all colours. `colour`: auto, always or never.
/// Throws invalid_argument for another word.
[[nodiscard]] Screen screen_of_output(const std::string& colour);

/// How many pixels (height, width) a slice has on it, and a line.
[[nodiscard]] std::pair<std::int64_t, std::int64_t> slice_room(const Screen& screen);
[[nodiscard]] std::int64_t line_room(const Screen& screen);

/// The lines that show it, with what it is and its range.
[[nodiscard]] std::string picture_lines(const Picture& picture, std::pair<double, double> range, ColourMap map,
                                        const Screen& screen);
/// "\033[38;2;…m": what follows is drawn in the colour, or on it.
[[nodiscard]] std::string ink_code(Rgb colour);
[[nodiscard]] std::string paper_code(Rgb colour);
inline constexpr const char* plain_code = "\033[0m";

}  // namespace tessera::cli
