#include "terminal_picture.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <tessera/error_text.h>
#include <algorithm>
#include <array>
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
    if (y >= picture.rows.pixels()) return std::nullopt;
    const std::int64_t i = picture.rows.cell_at(y);
    const std::int64_t j = picture.columns.cell_at(x);
    switch (picture.state(i, j)) {
        case CellState::missing:
            return std::nullopt;
        case CellState::nan:
            return nan_colour;
        case CellState::value:
            break;
    }
    return cell_colour(picture, i, j, map, range);
}

/// Round places below a picture, each label under its own; a cell is `cell` characters wide.
std::string ruler(const PictureAxis& axis, double cell, std::size_t indent) {
    constexpr std::int64_t narrow = 20;  // the line above names both ends
    std::string line;
    const auto width = static_cast<std::int64_t>(cell * static_cast<double>(axis.cells()));
    if (width < narrow) return line;
    const std::int64_t letters = std::min<std::int64_t>(19, width / 2);
    std::vector<std::pair<std::int64_t, std::string>> marks;
    const auto find = [&](std::int64_t most) {
        marks.clear();
        mark_axis(axis, most, letters, [&](double at, const std::string& text) {
            marks.emplace_back(static_cast<std::int64_t>(at * cell), text);
        });
    };
    const std::int64_t last = std::max(axis.start, axis.start + axis.step * (axis.count - 1));
    std::size_t widest = std::to_string(last).size();
    if (axis.facts) {
        find(width / 4);
        for (const auto& mark : marks) widest = std::max(widest, mark.second.size());
    }
    find(width / (static_cast<std::int64_t>(widest) + 3));
    for (const auto& [middle, text] : marks) {
        const auto from =
            static_cast<std::size_t>(std::max<std::int64_t>(0, middle - static_cast<std::int64_t>(text.size()) / 2));
        if (indent + from < line.size() + (line.empty() ? 0 : 1)) continue;  // no room beside the one before
        line.resize(indent + from, ' ');
        line += printable(text);
    }
    return line + "\n";
}

/// The round places of rows, by line of text; a line is `rows` rows of pixels.
std::vector<std::string> row_labels(const PictureAxis& axis, std::int64_t rows) {
    std::vector<std::string> labels(static_cast<std::size_t>((axis.pixels() + rows - 1) / rows));
    constexpr std::ptrdiff_t low = 8;
    if (axis.dimension < 0 || std::ssize(labels) < low) return labels;
    constexpr std::int64_t letters = screen_columns_beside_picture - 1;
    mark_axis(axis, std::ssize(labels) / 3, letters, [&](double at, const std::string& text) {
        const auto pixel = std::min(static_cast<std::int64_t>(at * static_cast<double>(axis.zoom)), axis.pixels() - 1);
        const std::string shown = printable(text);
        labels[static_cast<std::size_t>(pixel / rows)] =
            " " + (std::ssize(shown) > letters ? abbreviated(shown, letters - 1) : shown);
    });
    return labels;
}

/// Two rows of pixels, as one line of half blocks.
std::string half_blocks(const Picture& picture, std::int64_t y, std::pair<double, double> range, ColourMap map,
                        const Screen& screen) {
    std::string line;
    std::string codes;  // in effect
    for (std::int64_t x = 0; x < picture.columns.pixels(); ++x) {
        const std::optional<Rgb> upper = pixel_colour(picture, y, x, range, map);
        const std::optional<Rgb> lower = pixel_colour(picture, y + 1, x, range, map);
        std::string wanted = plain_code;
        if (upper || lower) wanted += ink_code(upper ? *upper : *lower, screen);
        if (upper && lower) wanted += paper_code(*lower, screen);
        if (wanted != codes) line += wanted;
        codes = wanted;
        line += upper ? "▀" : lower ? "▄" : " ";
    }
    return line + plain_code;
}

char character_of(double place) {
    const auto n = static_cast<double>(characters.size());
    return characters[static_cast<std::size_t>(std::min(place * n, n - 1))];
}

std::string character_row(const Picture& picture, std::int64_t y, std::pair<double, double> range) {
    std::string line;
    for (std::int64_t x = 0; x < picture.columns.pixels(); ++x) {
        const std::int64_t i = picture.rows.cell_at(y);
        const std::int64_t j = picture.columns.cell_at(x);
        char c = ' ';
        if (picture.state(i, j) == CellState::nan) c = nan_character;
        if (picture.state(i, j) == CellState::value) c = character_of(place_in_range(picture.value(i, j), range));
        line += std::string(2, c);
    }
    return line;
}

std::string axis_text(const PictureAxis& axis) {
    if (axis.facts) {
        const std::string first = axis.text(axis.reversed ? axis.count - 1 : 0);
        const std::string last = axis.text(axis.reversed ? 0 : axis.count - 1);
        return printable(fmt::format("{} {} … {}", axis.title(), first, last));
    }
    return fmt::format("{} {} … {}{}", printable(axis.name), axis.start, axis.start + axis.step * (axis.count - 1),
                       axis.step == 1 ? "" : fmt::format(" in steps of {}", axis.step));
}

std::string units_text(const Picture& picture) {
    return picture.units.empty() ? "" : " " + printable(picture.units);
}

/// How NaN and missing values are drawn.
std::string states_text(const Picture& picture, const Screen& screen) {
    std::string text;
    if (picture.has(CellState::nan)) {
        text += screen.colour ? "   " + paper_code(nan_colour, screen) + "  " + plain_code
                              : fmt::format("   {}", nan_character);
        text += " " + picture.nan_name;
    }
    if (picture.has(CellState::missing)) text += "   blank: " + picture.missing_name;
    return text;
}

/// "236 …scale… 1076 m", and how NaN and missing values are drawn.
std::string range_line(const Picture& picture, std::pair<double, double> range, ColourMap map, const Screen& screen) {
    if (picture.colours) {
        const std::string label = picture.label.empty() ? "red, green and blue" : printable(picture.label);
        return label + (screen.colour ? "" : " as lightness") + states_text(picture, screen) + "\n";
    }
    const double step = (range.second - range.first) / 100;
    std::string line = picture_text(picture, range.first, step) + " ";
    constexpr int wide = 24;
    for (int k = 0; screen.colour && k < wide; ++k) line += paper_code(map_colour(map, (k + 0.5) / wide), screen) + " ";
    line += screen.colour ? std::string(plain_code) : std::string(characters);
    line += " " + picture_text(picture, range.second, step) + units_text(picture);
    if (!picture.label.empty()) line += "  " + printable(picture.label);
    return line + states_text(picture, screen) + "\n";
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

/// The value that line `y` of a plot stands for, on the first, the middle and the last one.
static std::string line_label(const Picture& picture, std::pair<double, double> range, std::int64_t y,
                              std::int64_t height) {
    const double step = (range.second - range.first) / 100;
    std::string label;
    if (y == 0) label = picture_text(picture, range.second, step);
    if (y + 1 == height) label = picture_text(picture, range.first, step);
    if (height >= 7 && y == height / 2) {
        const double middle = 1 - (static_cast<double>(y) + 0.5) / static_cast<double>(height);
        label = picture_text(picture, range.first + (range.second - range.first) * middle, step);
    }
    if (label.size() > label_columns - 1) label.resize(label_columns - 1);
    if (label.ends_with('T')) label.pop_back();  // of a date whose time has no room
    return label;
}

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
    std::string text;
    for (std::int64_t y = 0; y < height; ++y) {
        text += fmt::format("{:>{}} {}\n", line_label(picture, range, y, height), label_columns - 1, plot.row(y));
    }
    return text;
}

int number_of(const char* variable, int otherwise) {
    const char* text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): before any thread is started
    constexpr int most = 1000;
    const int n = text == nullptr ? 0 : std::atoi(text);  // NOLINT(cert-err34-c): 0 where it is no number
    return n > 0 ? std::min(n, most) : otherwise;
}

/// What the terminal says of itself; nothing where standard output is none, or colours are not wanted.
void find_colours(Screen& screen) {
    const auto variable = [](const char* name) {
        const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread is started
        return std::string_view(text == nullptr ? "" : text);
    };
    if (::isatty(STDOUT_FILENO) != 1 || !variable("NO_COLOR").empty()) return;
    const std::string_view term = variable("TERM");
    const bool many = variable("COLORTERM") == "truecolor" || variable("COLORTERM") == "24bit";
    screen.few_colours = !many && term.find("256color") != std::string_view::npos;
    screen.colour = many || screen.few_colours;
    // Within a multiplexer the pixels would not arrive.
    if (!variable("TMUX").empty() || term.starts_with("screen")) return;
    if (term == "xterm-kitty" || term == "xterm-ghostty") screen.graphics = Graphics::kitty;
    if (term.starts_with("foot") || term.starts_with("mlterm") || term.find("sixel") != std::string_view::npos) {
        screen.graphics = Graphics::sixel;
    }
}

}  // namespace

Screen screen_of_output(const std::string& colour) {
    Screen screen{.columns = number_of("COLUMNS", 80), .lines = number_of("LINES", 24)};
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        screen.columns = size.ws_col;
        screen.lines = size.ws_row;
    }
    screen.gutter = screen.columns >= 40 ? screen_columns_beside_picture : 0;
    screen.row_ticks = screen.gutter > 0;
    if (colour == "auto") {
        find_colours(screen);
    } else if (colour == "kitty" || colour == "sixel") {
        screen.colour = true;
        screen.graphics = colour == "kitty" ? Graphics::kitty : Graphics::sixel;
    } else if (colour == "always" || colour == "256") {
        screen.colour = true;
        screen.few_colours = colour == "256";
    } else if (colour != "never") {
        throw invalid_argument("--color: expected auto, always, 256, kitty, sixel or never, found '{}'", colour);
    }
    return screen;
}

std::pair<std::int64_t, std::int64_t> slice_room(const Screen& screen) {
    const std::int64_t lines = std::max(1, screen.lines - screen_lines_beside_picture);
    const int columns = std::max(1, screen.columns - screen.gutter);
    if (screen.colour) return {2 * lines, columns};
    return {lines, std::max(1, columns / 2)};
}

std::int64_t line_room(const Screen& screen) {
    return std::int64_t{2} * std::max(1, screen.columns - label_columns);
}

// The cube of 6×6×6 colours begins at 16, and 24 greys follow it.
constexpr std::array<int, 6> cube_levels{0, 95, 135, 175, 215, 255};
constexpr int first_of_cube = 16, first_grey = 232;

Rgb numbered_colour(std::uint8_t number) {
    const auto level = [](int v) { return static_cast<std::uint8_t>(v); };
    if (number >= first_grey) {
        const std::uint8_t grey = level(8 + 10 * (number - first_grey));
        return {grey, grey, grey};
    }
    const int k = std::max(0, number - first_of_cube);
    const auto at = [&](int i) { return level(cube_levels.at(static_cast<std::size_t>(i))); };
    return {at(k / 36), at(k / 6 % 6), at(k % 6)};
}

std::uint8_t colour_number(Rgb colour) {
    const auto nearest = [](int v) {
        int best = 0;
        for (int k = 1; k < 6; ++k) {
            const auto far = [&](int i) { return std::abs(cube_levels.at(static_cast<std::size_t>(i)) - v); };
            if (far(k) < far(best)) best = k;
        }
        return best;
    };
    const int in_cube = first_of_cube + 36 * nearest(colour.red) + 6 * nearest(colour.green) + nearest(colour.blue);
    const int mean = (colour.red + colour.green + colour.blue) / 3;
    const int grey = first_grey + std::clamp((mean - 3) / 10, 0, 23);
    const auto distance = [&](int number) {
        const Rgb other = numbered_colour(static_cast<std::uint8_t>(number));
        const auto square = [](int v) { return v * v; };
        return square(other.red - colour.red) + square(other.green - colour.green) + square(other.blue - colour.blue);
    };
    return static_cast<std::uint8_t>(distance(grey) < distance(in_cube) ? grey : in_cube);
}

std::string ink_code(Rgb colour, const Screen& screen) {
    if (screen.few_colours) return fmt::format("\033[38;5;{}m", colour_number(colour));
    return fmt::format("\033[38;2;{};{};{}m", colour.red, colour.green, colour.blue);
}

std::string paper_code(Rgb colour, const Screen& screen) {
    if (screen.few_colours) return fmt::format("\033[48;5;{}m", colour_number(colour));
    return fmt::format("\033[48;2;{};{};{}m", colour.red, colour.green, colour.blue);
}

std::string picture_lines(const Picture& picture, std::pair<double, double> range, ColourMap map,
                          const Screen& screen) {
    std::string text = fmt::format("{} {}\n", printable(picture.name), picture.slice);
    if (!picture.how.empty()) text += picture.how + "\n";
    if (picture.line) {
        text += line_plot(picture, range, screen);
        text += ruler(picture.columns, static_cast<double>(picture.columns.zoom) / 2, label_columns);
        text += std::string(label_columns, ' ') + axis_text(picture.columns);
        const std::string label = picture.label + (picture.units.empty() ? "" : " (" + picture.units + ")");
        return text + (label.empty() ? "" : "   " + printable(label)) + "\n";
    }
    if (picture.rows.dimension >= 0) text += fmt::format("down: {}   ", axis_text(picture.rows));
    text += fmt::format("across: {}\n", axis_text(picture.columns));
    const int step = screen.colour ? 2 : 1;
    const std::vector<std::string> labels = row_labels(picture.rows, step);
    for (std::int64_t y = 0; y < picture.rows.pixels(); y += step) {
        std::string line =
            screen.colour ? half_blocks(picture, y, range, map, screen) : character_row(picture, y, range);
        if (screen.row_ticks) line += labels[static_cast<std::size_t>(y / step)];
        text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    text += ruler(picture.columns, static_cast<double>(picture.columns.zoom) * (screen.colour ? 1 : 2), 0);
    if (!picture.has(CellState::value)) return text + "all of it is missing\n";
    return text + range_line(picture, range, map, screen);
}

}  // namespace tessera::cli
