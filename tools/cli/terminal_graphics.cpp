#include "terminal_graphics.h"

#include <fmt/format.h>
#include <tessera/array_file.h>
#include <tessera/codec.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "terminal_picture.h"

namespace tessera::cli {

std::string kitty_text(const NDArray& pixels) {
    const Buffer png = encode_png(pixels.view(), "the picture");
    Buffer letters;
    find_codec("numcodecs.base64")->bytes_to_bytes(Value::object(), 1)->encode(png.span(), letters);
    std::string_view left(reinterpret_cast<const char*>(letters.data()), letters.size());
    constexpr std::size_t most = 4096;  // letters in one sequence
    std::string text;
    for (bool first = true; first || !left.empty(); first = false) {
        const std::string_view part = left.substr(0, most);
        left.remove_prefix(part.size());
        text += fmt::format("\033_G{}m={};{}\033\\", first ? "a=T,f=100," : "", left.empty() ? 0 : 1, part);
    }
    return text + "\n";
}

std::string sixel_text(const NDArray& pixels) {
    const std::int64_t height = pixels.shape()[0];
    const std::int64_t width = pixels.shape()[1];
    const auto bytes = pixels.values<std::uint8_t>();
    std::string text = fmt::format("\033P0;1;0q\"1;1;{};{}", width, height);
    std::array<bool, 256> named{};
    constexpr std::int64_t band = 6;  // rows of a line of sixels
    std::vector<std::uint8_t> numbers(static_cast<std::size_t>(band * width));
    for (std::int64_t y = 0; y < height; y += band) {
        const std::int64_t rows = std::min(band, height - y);
        std::array<bool, 256> used{};
        for (std::int64_t i = 0; i < rows * width; ++i) {
            const auto at = static_cast<std::size_t>(3 * (y * width + i));
            const std::uint8_t number = colour_number({bytes[at], bytes[at + 1], bytes[at + 2]});
            numbers[static_cast<std::size_t>(i)] = number;
            used.at(number) = true;
        }
        for (std::size_t number = 0; number < used.size(); ++number) {
            if (!used.at(number)) continue;
            if (!named.at(number)) {
                const Rgb colour = numbered_colour(static_cast<std::uint8_t>(number));
                const auto percent = [](int level) { return (level * 100 + 127) / 255; };
                text += fmt::format("#{};2;{};{};{}", number, percent(colour.red), percent(colour.green),
                                    percent(colour.blue));
                named.at(number) = true;
            }
            text += fmt::format("#{}", number);
            const auto sixel_at = [&](std::int64_t x) {
                int bits = 0;
                for (std::int64_t k = 0; k < rows; ++k) {
                    if (numbers[static_cast<std::size_t>(k * width + x)] == number) bits |= 1 << k;
                }
                return static_cast<char>('?' + bits);
            };
            for (std::int64_t x = 0; x < width;) {
                const char sixel = sixel_at(x);
                std::int64_t end = x + 1;
                while (end < width && sixel_at(end) == sixel) ++end;
                if (end - x > 3) {
                    text += fmt::format("!{}{}", end - x, sixel);
                } else {
                    text.append(static_cast<std::size_t>(end - x), sixel);
                }
                x = end;
            }
            text += '$';
        }
        text += '-';
    }
    return text + "\033\\\n";
}

}  // namespace tessera::cli
