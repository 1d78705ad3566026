#include "terminal_graphics.h"

#include <fmt/format.h>
#include <tessera/array_file.h>
#include <tessera/codec.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
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

namespace {

/// Rows of numbered colours as lines of sixels, each of six rows.
class Sixels {
public:
    explicit Sixels(const NDArray& pixels) : width_(pixels.shape()[1]), bytes_(pixels.values<std::uint8_t>()) {}

    std::string line(std::int64_t y, std::int64_t rows) {
        rows_ = rows;
        std::array<bool, 256> used{};
        numbers_.resize(static_cast<std::size_t>(rows * width_));
        for (std::int64_t i = 0; i < rows * width_; ++i) {
            const auto at = static_cast<std::size_t>(3 * (y * width_ + i));
            const std::uint8_t number = colour_number({bytes_[at], bytes_[at + 1], bytes_[at + 2]});
            numbers_[static_cast<std::size_t>(i)] = number;
            used.at(number) = true;
        }
        std::string text;
        for (std::size_t number = 0; number < used.size(); ++number) {
            if (used.at(number)) add_colour(text, static_cast<std::uint8_t>(number));
        }
        return text + '-';
    }

private:
    void add_colour(std::string& text, std::uint8_t number) {
        if (!named_.at(number)) {
            const Rgb colour = numbered_colour(number);
            const auto percent = [](int level) { return (level * 100 + 127) / 255; };
            text +=
                fmt::format("#{};2;{};{};{}", number, percent(colour.red), percent(colour.green), percent(colour.blue));
            named_.at(number) = true;
        }
        text += fmt::format("#{}", number);
        for (std::int64_t x = 0; x < width_;) {
            const char sixel = sixel_at(number, x);
            std::int64_t end = x + 1;
            while (end < width_ && sixel_at(number, end) == sixel) ++end;
            if (end - x > 3) {
                text += fmt::format("!{}{}", end - x, sixel);
            } else {
                text.append(static_cast<std::size_t>(end - x), sixel);
            }
            x = end;
        }
        text += '$';
    }

    [[nodiscard]] char sixel_at(std::uint8_t number, std::int64_t x) const {
        int bits = 0;
        for (std::int64_t k = 0; k < rows_; ++k) {
            if (numbers_[static_cast<std::size_t>(k * width_ + x)] == number) bits |= 1 << k;
        }
        return static_cast<char>('?' + bits);
    }

    std::int64_t width_;
    std::span<const std::uint8_t> bytes_;
    std::int64_t rows_ = 0;
    std::vector<std::uint8_t> numbers_;
    std::array<bool, 256> named_{};
};

}  // namespace

std::string sixel_text(const NDArray& pixels) {
    constexpr std::int64_t band = 6;
    const std::int64_t height = pixels.shape()[0];
    std::string text = fmt::format("\033P0;1;0q\"1;1;{};{}", pixels.shape()[1], height);
    Sixels sixels(pixels);
    for (std::int64_t y = 0; y < height; y += band) text += sixels.line(y, std::min(band, height - y));
    return text + "\033\\\n";
}

}  // namespace tessera::cli
