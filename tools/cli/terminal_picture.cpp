#include "terminal_picture.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <tessera/error_text.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "report.h"

namespace tessera::cli {

namespace {

constexpr int label_columns = 12;  ///< of a line's values
// From the least to the most ink. A blank is a missing value.
constexpr std::string_view characters = ".:-=+*#%@";
constexpr char nan_character = '?';

/// The colour of a pixel; nullopt if its value is missing.
std::optional<Rgb> pixel_colour(const Picture& picture, std::int64_t y, std::int64_t x, std::pair<double, double> range,
                                ColourMap map) {
    const std::int64_t i = y / picture.rows.zoom;
    const std::int64_t j = x / picture.columns.zoom;
    if (y >= picture.rows.pixels()) return std::nullopt;
    switch (picture.state(i, j)) {
        case CellState::missing:
            return std::nullopt;
        case CellState::nan:
            return nan_colour;
        case CellState::value:
            break;
    }
    return value_colour(map, picture.value(i, j), range);
}

/// Two rows of pixels, as one line of half blocks.
std::string half_blocks(const Picture& picture, std::int64_t y, std::pair<double, double> range, ColourMap map) {
    std::string line;
    std::string codes;  // in effect
    for (std::int64_t x = 0; x < picture.columns.pixels(); ++x) {
        const std::optional<Rgb> upper = pixel_colour(picture, y, x, range, map);
        const std::optional<Rgb> lower = pixel_colour(picture, y + 1, x, range, map);
        std::string wanted = plain_code;
        if (upper || lower) wanted += ink_code(upper ? *upper : *lower);
        if (upper && lower) wanted += paper_code(*lower);
        if (wanted != codes) line += wanted;
        codes = wanted;
        line += upper ? "▀" : lower ? "▄" : " ";
    }
    return line + plain_code + "\n";
}

char character_of(double place) {
    const auto n = static_cast<double>(characters.size());
    return characters[static_cast<std::size_t>(std::min(place * n, n - 1))];
}

std::string character_row(const Picture& picture, std::int64_t y, std::pair<double, double> range) {
    std::string line;
    for (std::int64_t x = 0; x < picture.columns.pixels(); ++x) {
        const std::int64_t i = y / picture.rows.zoom;
        const std::int64_t j = x / picture.columns.zoom;
        char c = ' ';
        if (picture.state(i, j) == CellState::nan) c = nan_character;
        if (picture.state(i, j) == CellState::value) c = character_of(place_in_range(picture.value(i, j), range));
        line += std::string(2, c);
    }
    return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string axis_text(const PictureAxis& axis) {
    return fmt::format("{} {} … {}{}", printable(axis.name), axis.start, axis.start + axis.step * (axis.count - 1),
                       axis.step == 1 ? "" : fmt::format(" in steps of {}", axis.step));
}

std::string units_text(const Picture& picture) {
    return picture.units.empty() ? "" : " " + printable(picture.units);
}

/// "236 …scale… 1076 m", and how NaN and missing values are drawn.
std::string range_line(const Picture& picture, std::pair<double, double> range, ColourMap map, const Screen& screen) {
    const double step = (range.second - range.first) / 100;
    std::string line = picture_text(picture, range.first, step) + " ";
    constexpr int wide = 24;
    for (int k = 0; screen.colour && k < wide; ++k) line += paper_code(map_colour(map, (k + 0.5) / wide)) + " ";
    line += screen.colour ? std::string(plain_code) : std::string(characters);
    line += " " + picture_text(picture, range.second, step) + units_text(picture);
    if (!picture.label.empty()) line += "  " + printable(picture.label);
    if (picture.has(CellState::nan)) {
        line +=
            screen.colour ? "   " + paper_code(nan_colour) + "  " + plain_code : fmt::format("   {}", nan_character);
        line += " " + picture.nan_name;
    }
    if (picture.has(CellState::missing)) line += "   blank: " + picture.missing_name;
    return line + "\n";
}

/// Dots, eight to a character.
class Braille {
public:
    Braille(std::int64_t height, std::int64_t width)
        : height_(height), width_(width), cells_(static_cast<std::size_t>(height * width), 0) {}

    void dot(std::int64_t y, std::int64_t x) {
        constexpr std::uint8_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
        if (y < 0 || x < 0 || y >= 4 * height_ || x >= 2 * width_) return;
        cells_[static_cast<std::size_t>(y / 4 * width_ + x / 2)] |= bits[y % 4][x % 2];
    }
    void line(std::int64_t y0, std::int64_t x0, std::int64_t y1, std::int64_t x1) {
        const std::int64_t steps = std::max<std::int64_t>({std::abs(y1 - y0), std::abs(x1 - x0), 1});
        for (std::int64_t k = 0; k <= steps; ++k) dot(y0 + (y1 - y0) * k / steps, x0 + (x1 - x0) * k / steps);
    }
    [[nodiscard]] std::string row(std::int64_t y) const {
        std::string text;
        for (std::int64_t x = 0; x < width_; ++x) {
            const unsigned bits = cells_[static_cast<std::size_t>(y * width_ + x)];
            // U+2800 and what follows, as UTF-8.
            text += '\xE2';
            text += static_cast<char>(0xA0U | bits >> 6U);
            text += static_cast<char>(0x80U | (bits & 0x3FU));
        }
        return text;
    }

private:
    std::int64_t height_, width_;
    std::vector<std::uint8_t> cells_;
};

std::string line_plot(const Picture& picture, std::pair<double, double> range, const Screen& screen) {
    const std::int64_t height = std::max(1, screen.lines - screen_lines_beside_picture);
    const std::int64_t width = std::max<std::int64_t>(1, line_room(screen) / 2);
    Braille plot(height, width);
    const auto y_of = [&](double v) {
        return std::lround((1 - place_in_range(v, range)) * static_cast<double>(4 * height - 1));
    };
    std::optional<std::pair<std::int64_t, std::int64_t>> before;
    for (std::int64_t j = 0; j < picture.columns.cells(); ++j) {
        if (picture.state(0, j) != CellState::value) {
            before.reset();
            continue;
        }
        const std::int64_t x = j * picture.columns.zoom + picture.columns.zoom / 2;
        const std::pair<std::int64_t, std::int64_t> here{y_of(picture.value(0, j)), x};
        if (before) plot.line(before->first, before->second, here.first, here.second);
        const auto number = static_cast<std::size_t>(j);
        plot.line(y_of(picture.low.values<double>()[number]), x, y_of(picture.high.values<double>()[number]), x);
        before = here;
    }
    const double step = (range.second - range.first) / 100;
    std::string text;
    for (std::int64_t y = 0; y < height; ++y) {
        std::string label;
        if (y == 0) label = picture_text(picture, range.second, step);
        if (y + 1 == height) label = picture_text(picture, range.first, step);
        if (label.size() > label_columns - 1) label.resize(label_columns - 1);
        text += fmt::format("{:>{}} {}\n", label, label_columns - 1, plot.row(y));
    }
    return text;
}

int number_of(const char* variable, int otherwise) {
    const char* text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): before any thread is started
    constexpr int most = 1000;
    const int n = text == nullptr ? 0 : std::atoi(text);  // NOLINT(cert-err34-c): 0 where it is no number
    return n > 0 ? std::min(n, most) : otherwise;
}

bool shows_colours() {
    // NOLINTBEGIN(concurrency-mt-unsafe): before any thread is started
    const char* refused = std::getenv("NO_COLOR");
    const char* shown = std::getenv("COLORTERM");
    // NOLINTEND(concurrency-mt-unsafe)
    if (::isatty(STDOUT_FILENO) != 1 || (refused != nullptr && *refused != '\0') || shown == nullptr) return false;
    return std::string_view(shown) == "truecolor" || std::string_view(shown) == "24bit";
}

}  // namespace

Screen screen_of_output(const std::string& colour) {
    Screen screen{.columns = number_of("COLUMNS", 80), .lines = number_of("LINES", 24)};
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        screen.columns = size.ws_col;
        screen.lines = size.ws_row;
    }
    if (colour != "auto" && colour != "always" && colour != "never") {
        throw invalid_argument("--color: expected auto, always or never, found '{}'", colour);
    }
    screen.colour = colour == "always" || (colour == "auto" && shows_colours());
    return screen;
}

std::pair<std::int64_t, std::int64_t> slice_room(const Screen& screen) {
    const std::int64_t lines = std::max(1, screen.lines - screen_lines_beside_picture);
    if (screen.colour) return {2 * lines, screen.columns};
    return {lines, std::max(1, screen.columns / 2)};
}

std::int64_t line_room(const Screen& screen) {
    return std::int64_t{2} * std::max(1, screen.columns - label_columns);
}

std::string ink_code(Rgb colour) {
    return fmt::format("\033[38;2;{};{};{}m", colour.red, colour.green, colour.blue);
}

std::string paper_code(Rgb colour) {
    return fmt::format("\033[48;2;{};{};{}m", colour.red, colour.green, colour.blue);
}

std::string picture_lines(const Picture& picture, std::pair<double, double> range, ColourMap map,
                          const Screen& screen) {
    std::string text = fmt::format("{} {}\n", printable(picture.name), picture.slice);
    if (!picture.how.empty()) text += picture.how + "\n";
    if (picture.line) {
        text += line_plot(picture, range, screen);
        text += std::string(label_columns, ' ') + axis_text(picture.columns);
        const std::string label = picture.label + (picture.units.empty() ? "" : " (" + picture.units + ")");
        return text + (label.empty() ? "" : "   " + printable(label)) + "\n";
    }
    if (picture.rows.dimension >= 0) text += fmt::format("down: {}   ", axis_text(picture.rows));
    text += fmt::format("across: {}\n", axis_text(picture.columns));
    const int step = screen.colour ? 2 : 1;
    for (std::int64_t y = 0; y < picture.rows.pixels(); y += step) {
        text += screen.colour ? half_blocks(picture, y, range, map) : character_row(picture, y, range);
    }
    return text + range_line(picture, range, map, screen);
}

}  // namespace tessera::cli
