// Grey letters of any size. Private to the store module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace tessera {

/// Pixels that UTF-8 text is wide; `em` is its size in pixels. ASCII, Latin-1, Greek and signs of units have shapes; a
/// box stands for any other character.
[[nodiscard]] std::int64_t text_pixels(std::string_view text, int em);

/// How many bytes at the beginning of a text are whole letters that together are at most `width` pixels wide.
[[nodiscard]] std::size_t bytes_within(std::string_view text, int em, std::int64_t width);
/// The same of the end of a text.
[[nodiscard]] std::size_t bytes_within_end(std::string_view text, int em, std::int64_t width);

inline constexpr int full_coverage = 255;

/// Calls each(x, y, coverage) for every pixel that the text touches: x from where it begins (a first letter may hang
/// over that: x is negative), y from the line on which letters stand (above it, y is negative), and how much of the
/// pixel is covered, from 0 to full_coverage.
void for_each_text_pixel(std::string_view text, int em,
                         const std::function<void(std::int64_t x, std::int64_t y, int coverage)>& each);

}  // namespace tessera
