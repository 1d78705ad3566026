#include "canvas.h"

#include <algorithm>
#include <cstdlib>

#include "font.h"

namespace tessera {

namespace {

/// The size of text, and how far below its upper edge it stands.
constexpr int em_of(int scale) {
    return 10 * scale;
}
constexpr int line_of(int scale) {
    return 7 * scale;
}

/// In place of what is cut off.
constexpr const char* dots = "..";

}  // namespace

Canvas::Canvas(std::int64_t height, std::int64_t width, Rgb background)
    : pixels_(DType::of<std::uint8_t>(), {height, width, 3}), height_(height), width_(width) {
    box(0, 0, width, height, background);
}

void Canvas::pixel(std::int64_t x, std::int64_t y, Rgb colour) {
    if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
    std::byte* p = pixels_.bytes().data() + (y * width_ + x) * 3;
    p[0] = std::byte{colour.red};
    p[1] = std::byte{colour.green};
    p[2] = std::byte{colour.blue};
}

void Canvas::box(std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height, Rgb colour) {
    for (std::int64_t i = std::max<std::int64_t>(y, 0); i < std::min(y + height, height_); ++i) {
        for (std::int64_t j = std::max<std::int64_t>(x, 0); j < std::min(x + width, width_); ++j) pixel(j, i, colour);
    }
}

void Canvas::frame(std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height, int pen, Rgb colour) {
    box(x, y, width, pen, colour);
    box(x, y + height - pen, width, pen, colour);
    box(x, y, pen, height, colour);
    box(x + width - pen, y, pen, height, colour);
}

void Canvas::line(std::int64_t x0, std::int64_t y0, std::int64_t x1, std::int64_t y1, int pen, Rgb colour) {
    const std::int64_t steps = std::max<std::int64_t>({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (std::int64_t k = 0; k <= steps; ++k) {
        box(x0 + (x1 - x0) * k / steps, y0 + (y1 - y0) * k / steps, pen, pen, colour);
    }
}

void Canvas::chequer(std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height) {
    for (std::int64_t i = y; i < y + height; ++i) {
        for (std::int64_t j = x; j < x + width; ++j) pixel(j, i, chequer_colour(j, i));
    }
}

void Canvas::blend(std::int64_t x, std::int64_t y, Rgb colour, int coverage) {
    if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
    auto* const pixel = pixels_.values<std::uint8_t>().data() + (y * width_ + x) * 3;
    const auto mix = [&](std::uint8_t under, std::uint8_t over) {
        return static_cast<std::uint8_t>((under * (full_coverage - coverage) + over * coverage + full_coverage / 2) /
                                         full_coverage);
    };
    pixel[0] = mix(pixel[0], colour.red);
    pixel[1] = mix(pixel[1], colour.green);
    pixel[2] = mix(pixel[2], colour.blue);
}

void Canvas::text(std::int64_t x, std::int64_t y, std::string_view text, int scale, Rgb colour) {
    for_each_text_pixel(text, em_of(scale), [&](std::int64_t right, std::int64_t below, int coverage) {
        blend(x + right, y + line_of(scale) + below, colour, coverage);
    });
}

void Canvas::text_up(std::int64_t x, std::int64_t y, std::string_view text, int scale, Rgb colour) {
    for_each_text_pixel(text, em_of(scale), [&](std::int64_t right, std::int64_t below, int coverage) {
        blend(x + line_of(scale) + below, y - right - 1, colour, coverage);
    });
}

Rgb chequer_colour(std::int64_t x, std::int64_t y) {
    constexpr std::int64_t square = 4;
    constexpr Rgb light{250, 250, 250}, dark{205, 205, 205};
    return (x / square + y / square) % 2 == 0 ? light : dark;
}

std::int64_t text_width(std::string_view text, int scale) {
    return text_pixels(text, em_of(scale));
}

std::string fitted_text(std::string_view text, int scale, std::int64_t width) {
    if (text_width(text, scale) <= width) return std::string(text);
    return std::string(text.substr(0, bytes_within(text, em_of(scale), width - text_width(dots, scale)))) + dots;
}

std::string fitted_end(std::string_view text, int scale, std::int64_t width) {
    if (text_width(text, scale) <= width) return std::string(text);
    const std::size_t bytes = bytes_within_end(text, em_of(scale), width - text_width(dots, scale));
    return dots + std::string(text.substr(text.size() - bytes));
}

}  // namespace tessera
