// The shapes of letters: DejaVu Sans, made by make_font_data.py. Private to the store module.
#pragma once

#include <cstddef>
#include <span>

namespace tessera {

/// Dots of a shape for one em.
inline constexpr int font_em = 72;

/// A letter in black and white, in dots.
struct FontGlyph {
    char32_t character;
    int advance;       ///< to the next letter
    int left, top;     ///< where its box begins: behind the pen, above the line
    int width;         ///< of the box
    const char* runs;  ///< lengths of white and black runs in turn, through all rows of the box; make_font_data.py
                       ///< tells the digits
};

/// In the order of their characters.
[[nodiscard]] std::span<const FontGlyph> font_glyphs();

}  // namespace tessera
