// tessera view
#include <fmt/format.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>

#include <tessera/array.h>
#include <tessera/array_file.h>
#include <tessera/byte_io.h>
#include <tessera/conventions.h>
#include <tessera/copy.h>
#include <tessera/json.h>
#include <tessera/meaning.h>
#include <tessera/measure.h>
#include <tessera/picture.h>
#include <tessera/place.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "command.h"
#include "element_table.h"
#include "hierarchy.h"
#include "histogram.h"
#include "options.h"
#include "report.h"
#include "selected.h"
#include "settings.h"
#include "terminal_graphics.h"
#include "terminal_picture.h"

namespace tessera::cli {

namespace {

struct ViewOptions {
    std::string path, selection, range, map = "viridis", missing = "auto", color, limit = "2G", bins = "32";
    std::optional<std::string> axes, with, size, png;
    bool hist = false;
    bool raw = false;
    bool chunks = false;
    bool overwrite = false;
    bool log = false;
};

/// "960x720": width and height.
std::optional<std::pair<int, int>> parse_size(const std::optional<std::string>& text) {
    if (!text) return std::nullopt;
    try {
        const std::size_t x = std::min(text->find('x'), text->size());
        return std::pair{parse_number("--size", text->substr(0, x), 1, most_drawing),
                         parse_number("--size", x == text->size() ? "" : text->substr(x + 1), 1, most_drawing)};
    } catch (const Error&) {
        throw invalid_argument("--size: expected WIDTHxHEIGHT, each from 1 to {}, as in 960x720, found '{}'",
                               most_drawing, *text);
    }
}

std::vector<std::string> parse_axis_words(const std::optional<std::string>& text) {
    std::vector<std::string> words;
    if (!text) return words;
    for (std::size_t at = 0; at <= text->size();) {
        const std::size_t end = std::min(text->find(',', at), text->size());
        std::string word = text->substr(at, end - at);
        word.erase(0, std::min(word.size(), word.find_first_not_of(' ')));
        word.erase(word.find_last_not_of(' ') + 1);
        words.push_back(std::move(word));
        at = end + 1;
    }
    return words;
}

PictureOptions picture_options(const ViewOptions& o) {
    PictureOptions options{.selection = o.selection,
                           .axes = parse_axis_words(o.axes),
                           .with = std::nullopt,
                           .missing = o.missing,
                           .raw = o.raw};
    if (o.with) {
        options.with = in_context([] { return "--with"; }, [&] { return parse_coarsening(*o.with); });
        if (options.with == Coarsening::mode) {
            throw invalid_argument("--with: expected mean, min, max or nearest, found 'mode'");
        }
    }
    options.limit =
        static_cast<std::int64_t>(std::min<std::uint64_t>(parse_bytes("--limit", o.limit), std::uint64_t{1} << 60U));
    return options;
}

DrawOptions draw_options(const ViewOptions& o) {
    DrawOptions draw{.map = parse_colour_map(o.map), .range = o.range};
    if (const auto size = parse_size(o.size)) {
        draw.width = size->first;
        draw.height = size->second;
    }
    return draw;
}

/// Throws if the file exists. Called before anything is read.
void require_free(const ViewOptions& o) {
    if (!o.overwrite && std::filesystem::exists(std::filesystem::symlink_status(*o.png))) {
        throw Error(ErrorCode::already_exists,
                    fmt::format("{}: is there already; --overwrite replaces it, another name keeps both", *o.png));
    }
}

Value axis_value(const PictureAxis& axis) {
    Value value = Value::object();
    value.set("name", axis.name);
    value.set("dimension", axis.dimension);
    value.set("start", axis.start);
    value.set("step", axis.step);
    value.set("count", axis.count);
    value.set("window", axis.window);
    value.set("cells", axis.cells());
    if (axis.facts) {
        value.set("title", path_value(axis.title()));
        value.set("first", path_value(axis.text(0)));
        value.set("last", path_value(axis.text(axis.count - 1)));
    }
    return value;
}

Value picture_value(const std::string& path, const Picture& picture, std::pair<double, double> range) {
    Value value = Value::object();
    value.set("path", path_value(path));
    value.set("slice", picture.slice);
    value.set("dtype", picture.dtype.to_string());
    value.set("stored_dtype", picture.stored_dtype.to_string());
    value.set("label", picture.label);
    value.set("units", picture.units);
    value.set("rows", picture.line ? Value() : axis_value(picture.rows));
    value.set("columns", axis_value(picture.columns));
    value.set("cells_are", picture.how);
    value.set("sampled", picture.sampled);
    Value ends = Value::array();
    ends.push_back(range.first);
    ends.push_back(range.second);
    value.set("range", std::move(ends));
    return value;
}

Value colours_value(const Picture& picture, std::int64_t row, std::int64_t column) {
    const Rgb colour = cell_colour(picture, row, column, ColourMap::viridis, {});
    return Value::Array{std::int64_t{colour.red}, std::int64_t{colour.green}, std::int64_t{colour.blue}};
}

/// Rows of values, or of colours: "nan", or null where elements are missing.
Value cells_value(const Picture& picture) {
    Value rows = Value::array();
    for (std::int64_t i = 0; i < picture.rows.cells(); ++i) {
        Value row = Value::array();
        for (std::int64_t j = 0; j < picture.columns.cells(); ++j) {
            const CellState state = picture.state(i, j);
            if (state == CellState::value && picture.colours) {
                row.push_back(colours_value(picture, i, j));
            } else {
                row.push_back(state == CellState::missing ? Value() : Value(picture.value(i, j)));
            }
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

Picture read_slice(Session& session, const ViewOptions& o, const ArraySource& source, const PictureOptions& options) {
    Picture picture = about_path(o.path, [&] {
        return about_options({"axes", "missing"}, [&] { return read_picture(source, options, session.io()); });
    });
    picture.name = o.path;
    return picture;
}

void apply_log(Picture& picture, const ViewOptions& o, bool json) {
    if (!o.log) return;
    if (json && !o.png) {
        throw invalid_argument("--log: --json gives the values themselves; only pictures have logarithmic axes");
    }
    take_logarithms(picture);
}

int save_drawing(Session& session, const ViewOptions& o, const NDArray& drawing, const std::string& text, Value value) {
    const Buffer bytes = encode_png(drawing.view(), *o.png);
    const auto file = create_file(*o.png, session.options().durability != Durability::none);
    file->append(bytes);
    file->finish();
    session.clear_progress();
    value.set("png", path_value(*o.png));
    value.set("width", drawing.shape()[1]);
    value.set("height", drawing.shape()[0]);
    value.set("png_bytes", static_cast<std::int64_t>(bytes.size()));
    report(session, value, fmt::format("{} → {} ({}×{} pixels)", text, *o.png, drawing.shape()[1], drawing.shape()[0]));
    return exit_done;
}

std::string described(const Picture& picture) {
    return printable(picture.name) + " " + picture.slice + (picture.how.empty() ? "" : ", " + picture.how);
}

/// The screen of --size, in characters, or else that of the terminal.
Screen screen_of(const ViewOptions& o) {
    Screen screen = screen_of_output(o.color.empty() ? setting_or("color", "auto") : o.color);
    if (const auto size = parse_size(o.size)) {
        screen.columns = size->first;
        screen.lines = size->second + screen_lines_beside_picture;
        screen.gutter = 0;
        screen.row_ticks = true;
    }
    return screen;
}

int view_slice(Session& session, const ViewOptions& o, const ArraySource& source) {
    PictureOptions options = picture_options(o);
    DrawOptions draw = draw_options(o);
    const Screen screen = screen_of(o);
    const bool pixels = screen.graphics != Graphics::none && !o.png && !session.options().json;
    if (pixels) {
        draw.width = std::clamp(8 * screen.columns, least_drawing, most_drawing);  // a character is about 8×16 pixels
        draw.height = std::clamp(16 * (screen.lines - 1), least_drawing, most_drawing);
    }
    const bool drawn = o.png || pixels;
    std::tie(options.height, options.width) = drawn ? drawing_room(draw) : slice_room(screen);
    // A line is drawn in dots, which are smaller than characters.
    options.line_width = drawn ? options.width : line_room(screen);
    Picture picture = read_slice(session, o, source, options);
    apply_log(picture, o, session.options().json);
    const std::pair<double, double> range = picture_range(picture, o.range, draw.map);
    Value value = picture_value(o.path, picture, range);
    if (o.png) return save_drawing(session, o, draw_picture(picture, draw), described(picture), std::move(value));
    session.clear_progress();
    if (session.options().json) {
        value.set("values", cells_value(picture));
        print_json(value);
    } else if (pixels) {
        const NDArray drawing = draw_picture(picture, draw);
        print(screen.graphics == Graphics::kitty ? kitty_text(drawing) : sixel_text(drawing));
    } else {
        print(picture_lines(picture, range, draw.map, screen));
    }
    return exit_done;
}

/// A histogram counts elements, not means: all of a slice of up to a million, else a regular sample.
PictureOptions histogram_options(const ViewOptions& o) {
    constexpr std::int64_t side = 1024;
    PictureOptions options = picture_options(o);
    options.height = options.width = side;
    options.line_width = side * side;
    options.with = Coarsening::nearest;
    options.colours = false;
    return options;
}

Bars bars_of(const Picture& picture, const Histogram& h) {
    const std::string label = picture.label.empty() ? "value" : picture.label;
    return {.title = picture.name + " " + picture.slice,
            .label = picture.units.empty() ? label : label + " (" + picture.units + ")",
            .how = picture.how,
            .start = h.start,
            .width = h.width,
            .counts = h.counts};
}

int view_histogram(Session& session, const ViewOptions& o, const ArraySource& source) {
    const int bins = parse_number("--bins", o.bins, 4, 10'000);
    const PictureOptions options = histogram_options(o);
    const DrawOptions draw = draw_options(o);
    Picture picture = read_slice(session, o, source, options);
    picture.sampled = !picture.how.empty();
    const auto values = view_source(picture.values.view(), picture.name);
    const Statistics found = statistics(*values, std::nullopt, bins, session.io()).front();
    session.clear_progress();
    const Histogram h = found.histogram.value_or(Histogram{.start = 0, .width = 1, .counts = {}});
    Value value = picture_value(o.path, picture, picture_range(picture, "", ColourMap::viridis));
    value.set(
        "histogram",
        Value{{"start", h.start}, {"width", h.width}, {"counts", Value::Array(h.counts.begin(), h.counts.end())}});
    if (o.png) {
        return save_drawing(session, o, draw_bars(bars_of(picture, h), draw), described(picture), std::move(value));
    }
    if (session.options().json) {
        print_json(value);
        return exit_done;
    }
    print(described(picture) + "\n");
    if (h.counts.empty()) {
        print("no finite values\n");
    } else {
        print_histogram(h);
    }
    return exit_done;
}

Value index_value(const Index& index) {
    return Value::Array(index.begin(), index.end());
}

Value chunk_map_value(const std::string& path, const ChunkMap& map, std::pair<double, double> range) {
    Value value = picture_value(path, map.picture, range);
    value.set("chunks", map.chunks);
    value.set("stored", map.stored);
    value.set("damaged", map.damaged);
    value.set("unchecked", map.unchecked);
    value.set("bytes", map.bytes);
    value.set("decoded_bytes", map.decoded_bytes);
    Value damage = Value::array();
    for (const ChunkMap::Damage& d : map.damage) {
        Value one = Value::object();
        one.set("chunk", index_value(d.chunk));
        one.set("message", path_value(d.text));
        damage.push_back(std::move(one));
    }
    value.set("damage", std::move(damage));
    return value;
}

std::string chunk_map_text(const ChunkMap& map) {
    std::string text = fmt::format("{} of {} stored, {} → {}, ratio {}; {} damaged", map.stored,
                                   count_text(map.chunks, "chunk"), bytes_text(map.decoded_bytes),
                                   bytes_text(map.bytes), ratio_text(map.decoded_bytes, map.bytes), map.damaged);
    if (map.unchecked > 0) text += fmt::format(" of {} decoded", map.stored - map.unchecked);
    text += "\n";
    constexpr std::size_t most = 10;
    for (std::size_t k = 0; k < std::min(most, map.damage.size()); ++k) {
        text += fmt::format("  {} {}\n", map.damage[k].chunk.to_string(), printable(map.damage[k].text));
    }
    if (map.damage.size() > most) {
        text += fmt::format("  and {} more; `tessera verify` lists all\n", map.damage.size() - most);
    }
    return text;
}

int view_chunks(Session& session, const ViewOptions& o) {
    PictureOptions options = picture_options(o);
    const DrawOptions draw = draw_options(o);
    const Screen screen = screen_of(o);
    std::tie(options.height, options.width) = o.png ? drawing_room(draw) : slice_room(screen);
    ChunkMap map = about_path(o.path, [&] {
        return at_place(o.path, session.store(), [&](const Place& place) {
            return about_options({"axes", "missing"}, [&] { return read_chunk_map(place, options, session.io()); });
        });
    });
    map.picture.name = o.path;
    const int code = map.damaged > 0 ? exit_differences : exit_done;
    const std::pair<double, double> range = picture_range(map.picture, o.range, draw.map);
    Value value = chunk_map_value(o.path, map, range);
    if (o.png) {
        save_drawing(session, o, draw_picture(map.picture, draw), described(map.picture), std::move(value));
        return code;
    }
    session.clear_progress();
    if (session.options().json) {
        value.set("values", cells_value(map.picture));
        print_json(value);
    } else {
        print(picture_lines(map.picture, range, draw.map, screen) + chunk_map_text(map));
    }
    return code;
}

/// As text where a number has no spelling for what is missing.
std::unique_ptr<ArraySource> shown_elements(std::unique_ptr<ArraySource> source) {
    if (!has_picture(source->info().dtype)) return source;
    return meaning_of(*source).marks_missing() ? text_source(std::move(source)) : decoded(std::move(source));
}

int view_table(Session& session, const ViewOptions& o, const ArraySource& source) {
    const DType dtype = source.info().dtype;
    const Selection selection = about_path(o.path, [&] { return parse_selection(o.selection, source); });
    if (o.png || o.hist) {
        throw unsupported(
            "{}: elements of {} are shown as text alone, without --png and --hist; "
            "PATH::FIELD shows one field",
            o.path, dtype.to_string());
    }
    if (session.options().json) {
        throw unsupported("{}: `tessera get --json` gives elements of {} as JSON", o.path, dtype.to_string());
    }
    const Screen screen = screen_of(o);
    IoOptions io = session.io();
    io.progress = nullptr;
    print(element_table(source, selection, {.lines = screen.lines - (o.size ? 1 : 0), .columns = screen.columns}, io));
    return exit_done;
}

int view(Session& session, const ViewOptions& o, const Located& at) {
    if (o.png) require_free(o);
    if (o.chunks) return view_chunks(session, o);
    auto source = about_path(o.path, [&] { return open_source(at); });
    const Shape shape = chosen_part(session, o.path, o.selection, source).shape();
    if (!has_picture(source->info().dtype) || shape.empty()) {
        if (!o.raw) source = shown_elements(std::move(source));
        return view_table(session, o, *source);
    }
    return o.hist ? view_histogram(session, o, *source) : view_slice(session, o, *source);
}

/// Which elements are shown.
void add_what(CLI::App& app, ViewOptions& o) {
    app.add_option("PATH", o.path, "an array, an array file, a member or a field of one")->required()->option_text(" ");
    app.add_option("SELECTION", o.selection, fmt::format("{} (default: everything)", selection_forms))
        ->option_text(" ");
    app.add_option("--axes", o.axes,
                   "the dimensions that are shown, down and across, or one for a line, by name or\n"
                   "number: y,x or 0,2 (default: the last two that have more than one element)")
        ->option_text("A,B");
    app.add_option("--with", o.with,
                   "what is shown of several elements: mean, min, max or nearest (default: mean, unless\n"
                   "that takes more than --limit)")
        ->option_text("WORD");
}

/// How their values are shown.
void add_values(CLI::App& app, ViewOptions& o) {
    app.add_option("--range", o.range,
                   "values at the ends of the colour map, numbers or percentiles: -10,50 or 2%,98%\n"
                   "(default: minimum and maximum of what is shown)")
        ->option_text("LOW,HIGH");
    app.add_flag("--log", o.log,
                 "a logarithmic axis of a line, logarithmic colours of a slice; what is not above 0 is missing");
    app.add_option("--missing", o.missing,
                   "values shown as missing: fill (the fill value), none, a number, or auto: those that are marked\n"
                   "(_FillValue, missing_value, nodata), and the fill value unless that is 0 (default auto)")
        ->option_text("VALUE");
    app.add_flag("--raw", o.raw, raw_text);
    app.add_option("--map", o.map,
                   "colours: viridis (default), plasma, inferno, magma, dusk, ocean, forest, copper, rose, grey,\n"
                   "diverging, cyclic or labels; with _r at the end, viridis_r, reversed")
        ->option_text("MAP");
}

/// As what and where they are shown.
void add_pictures(CLI::App& app, ViewOptions& o) {
    app.add_option("--size", o.size, "of the picture in characters, or of --png in pixels (default 960x720)")
        ->option_text("WxH");
    app.add_option("--limit", o.limit,
                   "bytes of elements that may be decoded (default 2G); what would take more is\n"
                   "sampled")
        ->option_text("2G");
    app.add_option("--png", o.png, "draw a PNG picture with axes and a colour bar")->option_text("FILE");
    app.add_flag("--overwrite", o.overwrite, "replace the file of --png");
    app.add_flag("--hist", o.hist, "a histogram of the elements of the slice");
    app.add_option("--bins", o.bins, "at most so many bins of --hist, 4 or more (default 32)")->option_text("N");
    app.add_flag("--chunks", o.chunks,
                 "the chunks that the slice touches: how well each compresses, which are not stored, which are\n"
                 "damaged");
    app.add_option("--color", o.color,
                   "colours and pixels: auto (as the terminal says), always (half blocks in true colour), 256 (in 256 "
                   "colours),\n"
                   "kitty or sixel (pixels by these protocols), never")
        ->option_text("WHEN");
}

}  // namespace

Run declare_view(CLI::App& app) {
    auto o = std::make_shared<ViewOptions>();
    add_what(app, *o);
    add_values(app, *o);
    add_pictures(app, *o);
    return [o](Session& session) {
        return at_located(o->path, [&](const Located& at) {
            return about_options({"axes", "map", "missing", "range", "size"}, [&] { return view(session, *o, at); });
        });
    };
}

}  // namespace tessera::cli
