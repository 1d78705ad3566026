// Pixels of pictures: title, axes, colour bar and legend around the slice, and plots of lines and bars.
#include <tessera/picture.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/error_text.h>

#include "axis_marks.h"
#include "canvas.h"

namespace tessera {

namespace {

constexpr Rgb paper{255, 255, 255}, ink{30, 30, 30}, faint{120, 120, 120}, grid_ink{225, 225, 225},
    plot_ink{38, 90, 150};

/// The margins around the slice, in pixels. Text there is cut to fit.
struct Layout {
    explicit Layout(const DrawOptions& options)
        : scale(std::min(options.width, options.height) >= 400 ? 2 : 1),
          letter(glyph_width * scale),
          text(glyph_height * scale),
          gap(4 * scale),
          tick(3 * scale),
          bar(10 * scale),
          left(text + 2 * gap + 7 * letter + tick),
          right(beside_bar() + 10 * letter + gap + text + gap),
          top(2 * (text + gap) + gap),
          bottom(tick + 3 * (text + gap) + gap) {
        for (const int size : {options.width, options.height}) {
            if (size >= least_drawing && size <= most_drawing) continue;
            throw invalid_argument("size: expected a width and a height from {} to {} pixels, found {}×{}",
                                   least_drawing, most_drawing, options.width, options.height);
        }
    }

    /// The distance from the plot to the labels of the colour bar.
    [[nodiscard]] std::int64_t beside_bar() const { return 2 * gap + bar + tick + 2 * scale; }

    int scale, letter, text, gap, tick, bar;
    std::int64_t left, right, top, bottom;
};

/// The least height of a colour bar. A flat slice alone would make it lower.
std::int64_t bar_height_of(const Layout& at) {
    return std::int64_t{4} * at.text;
}

std::string label_of(const std::string& label, const std::string& units) {
    if (units.empty()) return label;
    return label.empty() ? units : fmt::format("{} ({})", label, units);
}

bool needs_legend(const Picture& picture) {
    return picture.has(CellState::nan) || picture.has(CellState::missing);
}

/// The labels of the colour bar.
struct BarMarks {
    std::vector<std::pair<double, std::string>> at;
    std::int64_t width = 0;  ///< of the longest text
};

BarMarks bar_marks(const Picture& picture, std::pair<double, double> range, const Layout& at, std::int64_t height) {
    const int most = std::max<int>(2, static_cast<int>(height / (std::int64_t{2} * at.text)));
    const bool time = picture.dtype.kind() == Kind::datetime || picture.dtype.kind() == Kind::timedelta;
    // Of logarithms, whole decades.
    const bool decades = picture.logarithmic && range.second - range.first >= 2;
    Ticks ticks = round_ticks(range.first, range.second, std::min(most, 9), decades);
    if (time) ticks.at = {range.first, range.second};  // dates are not round where numbers are
    BarMarks marks;
    for (const double v : ticks.at) {
        std::string text = fitted_text(picture_text(picture, v, ticks.step), at.scale, std::int64_t{10} * at.letter);
        marks.width = std::max(marks.width, text_width(text, at.scale));
        marks.at.emplace_back(v, std::move(text));
    }
    return marks;
}

/// A drawing around a plot of some pixels.
class Drawing {
public:
    /// `beside`: pixels for the colour bar and its labels; 0 for none.
    Drawing(const DrawOptions& options, std::int64_t height, std::int64_t width, std::int64_t beside, bool has_legend)
        : at_(options),
          height_(height),
          width_(width),
          // The colour bar is higher than a flat slice.
          bar_height_(std::max<std::int64_t>(height, beside > 0 ? bar_height_of(at_) : 0)),
          canvas_width_(std::max<std::int64_t>(at_.left + width + (beside > 0 ? beside : 4 * at_.letter),
                                               std::min(options.width, 40 * at_.letter))),
          canvas_(at_.top + bar_height_ + at_.bottom - (has_legend ? 0 : at_.text), canvas_width_, paper) {}

    [[nodiscard]] Canvas& canvas() { return canvas_; }
    [[nodiscard]] const Layout& at() const { return at_; }
    [[nodiscard]] NDArray take() && { return std::move(canvas_).take(); }

    void title(const std::string& first, const std::string& second) {
        const std::int64_t room = canvas_width_ - 2 * at_.gap;
        // The end of a long name says more than its beginning.
        canvas_.text(at_.gap, at_.gap + (second.empty() ? at_.text / 2 : 0), fitted_end(first, at_.scale, room),
                     at_.scale, ink);
        canvas_.text(at_.gap, 2 * at_.gap + at_.text, fitted_text(second, at_.scale, room), at_.scale, faint);
    }

    void border() {
        canvas_.frame(at_.left - at_.scale, at_.top - at_.scale, width_ + 2 * at_.scale, height_ + 2 * at_.scale,
                      at_.scale, ink);
    }

    /// A mark below the plot, `x` pixels from its left side.
    void mark_below(std::int64_t x, const std::string& text) {
        const std::int64_t y = at_.top + height_ + at_.scale;
        canvas_.box(at_.left + x, y, at_.scale, at_.tick, ink);
        const std::int64_t wide = text_width(text, at_.scale);
        const std::int64_t from =
            std::clamp<std::int64_t>(at_.left + x - wide / 2, 0, std::max<std::int64_t>(0, canvas_width_ - wide));
        canvas_.text(from, y + at_.tick + at_.scale, text, at_.scale, ink);
    }
    /// A mark on the left, `y` pixels from the plot's upper side.
    void mark_left(std::int64_t y, const std::string& text) {
        canvas_.box(at_.left - at_.scale - at_.tick, at_.top + y, at_.tick, at_.scale, ink);
        const std::string shown = fitted_text(text, at_.scale, std::int64_t{7} * at_.letter);
        canvas_.text(at_.left - 2 * at_.tick - text_width(shown, at_.scale),
                     std::max<std::int64_t>(0, at_.top + y - at_.text / 2 + at_.scale), shown, at_.scale, ink);
    }
    void name_below(const std::string& name) {
        const std::string shown = fitted_text(name, at_.scale, width_ + at_.left / 2);
        canvas_.text(at_.left + std::max<std::int64_t>(0, width_ - text_width(shown, at_.scale)) / 2,
                     at_.top + height_ + at_.tick + at_.text + 2 * at_.gap, shown, at_.scale, ink);
    }
    void name_left(const std::string& name) {
        const std::string shown = fitted_text(name, at_.scale, std::max(height_, std::int64_t{8} * at_.letter));
        canvas_.text_up(at_.gap, at_.top + std::min(bar_height_, (height_ + text_width(shown, at_.scale)) / 2), shown,
                        at_.scale, ink);
    }

    void colour_bar(const Picture& picture, std::pair<double, double> range, ColourMap map, const BarMarks& marks) {
        const std::int64_t x = at_.left + width_ + 2 * at_.gap;
        for (std::int64_t y = 0; y < bar_height_; ++y) {
            const double place = 1 - (static_cast<double>(y) + 0.5) / static_cast<double>(bar_height_);
            canvas_.box(x, at_.top + y, at_.bar, 1, map_colour(map, place));
        }
        canvas_.frame(x - at_.scale, at_.top - at_.scale, at_.bar + 2 * at_.scale, bar_height_ + 2 * at_.scale,
                      at_.scale, ink);
        for (const auto& [v, text] : marks.at) {
            const auto y = static_cast<std::int64_t>((1 - place_in_range(v, range)) *
                                                     static_cast<double>(bar_height_ - at_.scale));
            canvas_.box(x + at_.bar + at_.scale, at_.top + y, at_.tick, at_.scale, ink);
            canvas_.text(at_.left + width_ + at_.beside_bar(), at_.top + y - at_.text / 2 + at_.scale, text, at_.scale,
                         ink);
        }
        const std::string label =
            fitted_text(label_of(picture.label, picture.units), at_.scale, bar_height_ + at_.bottom / 2);
        const std::int64_t wide = text_width(label, at_.scale);
        canvas_.text_up(at_.left + width_ + at_.beside_bar() + marks.width + at_.gap,
                        at_.top + std::max(wide, (bar_height_ + wide) / 2), label, at_.scale, ink);
    }

    void legend(const Picture& picture) {
        std::int64_t x = at_.left;
        const std::int64_t y = at_.top + bar_height_ + at_.bottom - at_.text - at_.gap;
        const std::int64_t side = std::int64_t{7} * at_.scale;
        const auto entry = [&](const std::string& text) {
            canvas_.frame(x - at_.scale, y - at_.scale, side + 2 * at_.scale, side + 2 * at_.scale, at_.scale, faint);
            canvas_.text(x + side + at_.gap, y, text, at_.scale, ink);
            x += side + 4 * at_.gap + text_width(text, at_.scale);
        };
        if (picture.has(CellState::nan)) {
            canvas_.box(x, y, side, side, nan_colour);
            entry(picture.nan_name);
        }
        if (picture.has(CellState::missing)) {
            canvas_.chequer(x, y, side, side);
            entry(picture.missing_name);
        }
    }

private:
    Layout at_;
    std::int64_t height_, width_, bar_height_, canvas_width_;
    Canvas canvas_;
};

/// Letters of the labels beside a plot, and below it.
constexpr std::int64_t letters_beside = 7, letters_below = 19;

/// Marks round places below a plot that is so many pixels wide.
void mark_columns(Drawing& drawing, const PictureAxis& axis, std::int64_t width) {
    const std::int64_t label = widest_mark(axis, letters_below) * drawing.at().letter + 2 * drawing.at().letter;
    mark_axis(axis, width / label, letters_below, [&](double at, const std::string& text) {
        const auto x = static_cast<std::int64_t>(at * static_cast<double>(width) / static_cast<double>(axis.cells()));
        drawing.mark_below(std::min(x, width - 1), text);
    });
    drawing.name_below(axis.title());
}

void mark_rows(Drawing& drawing, const PictureAxis& axis) {
    const std::int64_t most = axis.pixels() / (2 * std::int64_t{drawing.at().text});
    mark_axis(axis, most, letters_beside, [&](double at, const std::string& text) {
        const auto y = static_cast<std::int64_t>(at * static_cast<double>(axis.zoom));
        drawing.mark_left(std::min(y, axis.pixels() - 1), text);
    });
    drawing.name_left(axis.title());
}

void draw_cells(Canvas& canvas, const Layout& at, const Picture& picture, ColourMap map,
                std::pair<double, double> range) {
    const std::int64_t down = picture.rows.zoom;
    const std::int64_t across = picture.columns.zoom;
    for (std::int64_t y = 0; y < picture.rows.pixels(); y += down) {
        const std::int64_t i = picture.rows.cell_at(y);
        for (std::int64_t x = 0; x < picture.columns.pixels(); x += across) {
            const std::int64_t j = picture.columns.cell_at(x);
            switch (picture.state(i, j)) {
                case CellState::missing:
                    canvas.chequer(at.left + x, at.top + y, across, down);
                    break;
                case CellState::nan:
                    canvas.box(at.left + x, at.top + y, across, down, nan_colour);
                    break;
                case CellState::value:
                    canvas.box(at.left + x, at.top + y, across, down, cell_colour(picture, i, j, map, range));
                    break;
            }
        }
    }
}

NDArray draw_slice(const Picture& picture, const DrawOptions& options) {
    const std::pair<double, double> range = picture_range(picture, options.range, options.map);
    const Layout at(options);
    const bool bar = !picture.colours;
    const BarMarks marks =
        bar ? bar_marks(picture, range, at, std::max(picture.rows.pixels(), bar_height_of(at))) : BarMarks{};
    const std::int64_t beside = bar ? at.beside_bar() + marks.width + at.gap + at.text + at.gap : 0;
    Drawing drawing(options, picture.rows.pixels(), picture.columns.pixels(), beside, needs_legend(picture));
    draw_cells(drawing.canvas(), at, picture, options.map, range);
    drawing.border();
    drawing.title(picture.name + " " + picture.slice, picture.how);
    mark_columns(drawing, picture.columns, picture.columns.pixels());
    mark_rows(drawing, picture.rows);
    if (bar) drawing.colour_bar(picture, range, options.map, marks);
    drawing.legend(picture);
    return std::move(drawing).take();
}

/// Plots of lines and bars fill their room.
std::int64_t plot_height(const DrawOptions& options) {
    return drawing_room(options).first;
}

/// Marks values on the left of a plot, and draws lines across it there.
template <class Text>
void mark_values(Drawing& drawing, std::pair<double, double> range, std::int64_t height, std::int64_t width,
                 bool whole_numbers, const Text& text) {
    const Layout& at = drawing.at();
    const int most = static_cast<int>(std::clamp<std::int64_t>(height / (2 * at.text), 2, 8));
    const Ticks ticks = round_ticks(range.first, range.second, most, whole_numbers);
    for (const double v : ticks.at) {
        const auto y =
            static_cast<std::int64_t>((1 - place_in_range(v, range)) * static_cast<double>(height - at.scale));
        drawing.canvas().box(at.left, at.top + y, width, 1, grid_ink);
        drawing.mark_left(y, text(v, ticks.step));
    }
}

/// The range of a line, unless one was asked for with a margin above and below.
std::pair<double, double> line_range(const Picture& picture, const DrawOptions& options) {
    const std::pair<double, double> range = picture_range(picture, options.range, ColourMap::viridis);
    const double air = options.range.empty() ? (range.second - range.first) / 25 : 0;
    return std::isfinite(air) ? std::pair{range.first - air, range.second + air} : range;
}

/// The line itself, with a bar from low to high at each value, and a mark below where there is none.
template <class YOf>
void trace_line(Drawing& drawing, const Picture& picture, std::int64_t height, std::int64_t width, const YOf& y_of) {
    const Layout& at = drawing.at();
    const std::int64_t cells = picture.columns.cells();
    const std::span<const double> low = std::as_const(picture.low).values<double>();
    const std::span<const double> high = std::as_const(picture.high).values<double>();
    std::optional<std::pair<std::int64_t, std::int64_t>> before;
    for (std::int64_t j = 0; j < cells; ++j) {
        const std::int64_t x = at.left + (2 * j + 1) * width / (2 * cells);
        if (picture.state(0, j) != CellState::value) {
            if (picture.state(0, j) == CellState::nan) {
                const std::int64_t from = at.left + j * width / cells;
                drawing.canvas().box(from, at.top + height - 2 * at.scale, at.left + (j + 1) * width / cells - from,
                                     2 * at.scale, nan_colour);
            }
            before.reset();
            continue;
        }
        const auto number = static_cast<std::size_t>(j);
        const std::pair<std::int64_t, std::int64_t> here{x, y_of(picture.value(0, j))};
        if (before) drawing.canvas().line(before->first, before->second, here.first, here.second, at.scale, plot_ink);
        drawing.canvas().line(x, y_of(high[number]), x, y_of(low[number]), at.scale, plot_ink);
        before = here;
    }
}

NDArray draw_line(const Picture& picture, const DrawOptions& options) {
    const std::pair<double, double> range = line_range(picture, options);
    const PictureAxis& axis = picture.columns;
    const std::int64_t height = plot_height(options);
    // There is no colour bar on the right.
    const std::int64_t width =
        std::max(axis.cells(), options.width - Layout(options).left - 4 * Layout(options).letter);
    Drawing drawing(options, height, width, 0, needs_legend(picture));
    const Layout& at = drawing.at();
    mark_values(drawing, range, height, width, picture.logarithmic && range.second - range.first >= 2,
                [&](double v, double step) { return picture_text(picture, v, step); });
    const auto y_of = [&](double v) {
        return at.top +
               static_cast<std::int64_t>((1 - place_in_range(v, range)) * static_cast<double>(height - at.scale));
    };
    trace_line(drawing, picture, height, width, y_of);
    drawing.border();
    drawing.title(picture.name + " " + picture.slice, picture.how);
    mark_columns(drawing, axis, width);
    drawing.name_left(label_of(picture.label, picture.units));
    drawing.legend(picture);
    return std::move(drawing).take();
}

/// Marks round numbers of a range below.
void mark_numbers(Drawing& drawing, std::pair<double, double> range, std::int64_t width) {
    const Layout& at = drawing.at();
    const Ticks ticks =
        round_ticks(range.first, range.second,
                    static_cast<int>(std::clamp<std::int64_t>(width / (std::int64_t{10} * at.letter), 2, 8)));
    const Picture numbers{.dtype = DType::of<double>()};
    for (const double v : ticks.at) {
        drawing.mark_below(static_cast<std::int64_t>(place_in_range(v, range) * static_cast<double>(width - at.scale)),
                           picture_text(numbers, v, ticks.step));
    }
}

}  // namespace

std::pair<std::int64_t, std::int64_t> drawing_room(const DrawOptions& options) {
    const Layout at(options);
    return {options.height - at.top - at.bottom, options.width - at.left - at.right};
}

std::pair<std::int64_t, std::int64_t> drawing_origin(const DrawOptions& options) {
    const Layout at(options);
    return {at.top, at.left};
}

NDArray draw_picture(const Picture& picture, const DrawOptions& options) {
    return picture.line ? draw_line(picture, options) : draw_slice(picture, options);
}

NDArray draw_bars(const Bars& bars, const DrawOptions& options) {
    const std::int64_t room = drawing_room(options).second;
    const std::int64_t height = plot_height(options);
    const std::int64_t n = std::ssize(bars.counts);
    const std::int64_t each = n == 0 ? 1 : std::max<std::int64_t>(1, room / n);
    const std::int64_t width = std::max<std::int64_t>(1, each * n);
    Drawing drawing(options, height, width, 0, false);
    const Layout& at = drawing.at();
    const std::int64_t most = n == 0 ? 1 : std::max<std::int64_t>(1, *std::ranges::max_element(bars.counts));
    const double top = static_cast<double>(most) * 1.05;  // a margin above
    mark_values(drawing, {0, top}, height, width, true, [&](double v, double) { return fmt::format("{:.7g}", v); });
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t count = bars.counts[static_cast<std::size_t>(i)];
        if (count == 0) continue;
        // The smallest count is still visible.
        const auto tall = std::max<std::int64_t>(
            at.scale, static_cast<std::int64_t>(static_cast<double>(count) / top * static_cast<double>(height)));
        drawing.canvas().box(at.left + i * each, at.top + height - tall, std::max<std::int64_t>(1, each - 1), tall,
                             plot_ink);
    }
    drawing.border();
    drawing.title(bars.title, bars.how);
    mark_numbers(drawing, {bars.start, bars.start + bars.width * static_cast<double>(n)}, width);
    drawing.name_below(bars.label);
    return std::move(drawing).take();
}

}  // namespace tessera
