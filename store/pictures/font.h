// Letters of 5×7 dots. Private to the store module.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera {

/// Five columns from left to right; bit 0 is the uppermost dot, bit 7 hangs below the line.
using Glyph = std::array<std::uint8_t, 5>;

/// One glyph for each character of UTF-8 text: ASCII and a few signs of units; a box for any other.
[[nodiscard]] std::vector<Glyph> glyphs_of(std::string_view text);

}  // namespace tessera
