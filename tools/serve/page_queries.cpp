// The page's requests other than tiles: facts about an array, single values, rows of tables, profiles, and the map of
// chunks.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/axis_facts.h>
#include <tessera/calendar.h>
#include <tessera/complex_part.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/meaning.h>
#include <tessera/node_facts.h>
#include <tessera/numbers.h>
#include <tessera/picture.h>
#include <tessera/slices.h>

#include "dimension_facts.h"
#include "http.h"
#include "served.h"
#include "tiles.h"

namespace tessera::serve {

namespace {

// Elements that a profile may decode, in bytes: less than a picture may, because the pointer moves on.
constexpr std::int64_t most_profiled = std::int64_t{256} << 20;
// Chunks that a profile may look for, as many as a tile.
constexpr std::int64_t most_looked_for = 4096;
// The most chunks whose stamps make up the version of an array. With more, each request has a version of its own.
constexpr std::int64_t most_stamped = 4096;
constexpr std::int64_t most_cells = 20'000;  // of a table at once
constexpr std::size_t most_text = 2000;      // bytes of a cell

/// NaN and infinities have no spelling in JSON that every parser takes.
Value number_or_null(double v) {
    return std::isfinite(v) ? Value(v) : Value(nullptr);
}

Value numbers(const NDArray& values) {
    Value list = Value::array();
    for (const double v : values.values<double>()) list.push_back(number_or_null(v));
    return list;
}

std::string shortened(std::string text) {
    if (text.size() <= most_text) return text;
    std::size_t end = most_text;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // not within a character
    text.resize(end);
    return text + "…";
}

/// One element along every dimension.
NDArray read_region(const ArraySource& source, const Region& region, const IoOptions& io) {
    NDArray elements(source.info().dtype, region.extent);
    source.read_into(region, elements.view(), io);
    return elements;
}

std::string axis_label(const std::vector<std::optional<std::string>>& names, int d) {
    const bool named =
        !names.empty() && names[static_cast<std::size_t>(d)] && !names[static_cast<std::size_t>(d)]->empty();
    return named ? *names[static_cast<std::size_t>(d)] : fmt::format("axis {}", d);
}

/// Selects one index along each dimension but those shown, which are whole.
std::string selection_text(const Index& at, const std::vector<int>& shown) {
    std::string text;
    for (int d = 0; d < at.rank(); ++d) {
        const bool whole = std::ranges::find(shown, d) != shown.end();
        text += (d == 0 ? "" : ", ") + (whole ? std::string(":") : std::to_string(at[d]));
    }
    return text;
}

/// Whether version_of() tells that chunks changed.
bool tells_changes(const ServedNode& node) {
    if (!node.array) return true;
    if (!node.stamps_chunks()) return false;
    const ArrayInfo info = node.array->info();
    return ChunkGrid(info.shape, info.shards.empty() ? info.chunks : info.shards).chunk_count() <= most_stamped;
}

/// Text that changes when a chunk does, if there are at most most_stamped.
std::string version_of(const ServedNode& node) {
    std::uint64_t hash = 0xCBF29CE484222325ULL;
    const auto add = [&](std::string_view text) {
        for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
    };
    add(node.version);
    if (node.array) {
        const ArrayInfo info = node.array->info();
        const ChunkGrid grid(info.shape, info.shards.empty() ? info.chunks : info.shards);
        if (!tells_changes(node)) {
            add(fmt::format("{}", std::chrono::steady_clock::now().time_since_epoch().count()));
        } else {
            for (std::int64_t n = 0; n < grid.chunk_count(); ++n) {
                Index chunk = grid.index(n);
                for (int d = 0; d < chunk.rank(); ++d) chunk[d] = chunk[d] * grid.chunks()[d] / info.chunks[d];
                const auto stamp = node.stamp_of(chunk);
                if (stamp) add(fmt::format("{}:{}/", n, stamp_text(*stamp)));
            }
        }
    }
    return fmt::format("{:016x}", hash);
}

/// The number of elements of a window of rows or columns, from parameters `first` and `count`.
struct Window {
    std::int64_t first = 0;
    std::int64_t count = 0;
};
Window window_of(const HttpRequest& request, std::string_view first, std::string_view count, std::int64_t length) {
    Window window;
    window.first = request.integer(first, 0, 0, std::numeric_limits<std::int64_t>::max());
    window.count = std::min(request.integer(count, 50, 1, 1000), std::max<std::int64_t>(0, length - window.first));
    return window;
}

/// The fields of a structure, each as text, for a row of a table.
Value row_of_fields(const DType& dtype, const std::byte* element) {
    Value row = Value::array();
    for (const Field& field : dtype.fields()) {
        const std::byte* at = element + field.offset;
        if (field.shape.empty()) {
            row.push_back(shortened(element_to_text(field.dtype, at)));
            continue;
        }
        std::string text = "[";
        const std::int64_t n = element_count(field.shape);
        for (std::int64_t i = 0; i < n && text.size() < most_text; ++i) {
            text += (i == 0 ? "" : ", ") + element_to_text(field.dtype, at + i * field.dtype.size());
        }
        row.push_back(shortened(text + "]"));
    }
    return row;
}

Value attribute_of(const Value& attributes, std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
        const Value* value = attributes.find(key);
        if (value != nullptr && value->is_string()) return *value;
    }
    return nullptr;
}

/// A node's path as programs take it in the folder that is served: "survey/dem.zarr", "topobathy.npz::topo".
std::string open_path(const ServedNode& node) {
    const auto name_of = [](const std::string& path) {
        const std::size_t slash = path.find_last_not_of('/');
        const std::string whole = path.substr(0, slash == std::string::npos ? 0 : slash + 1);
        return whole.substr(whole.rfind('/') + 1);  // npos + 1 is 0
    };
    if (!node.file_path || !node.file_path->member) return node.path.empty() ? name_of(node.name) : node.path;
    const std::string& member = *node.file_path->member;
    std::string file = node.path.substr(0, node.path.size() - std::min(node.path.size(), member.size()));
    while (file.ends_with('/')) file.pop_back();
    return (file.empty() ? name_of(node.file_path->path.string()) : file) + "::" + member;
}

/// How the numbers are packed; null if they are not.
Value packing_value(const Meaning& meaning) {
    const Packing& packing = meaning.packing;
    if (!packing.scaled) return nullptr;
    return Value{{"scale", packing.scale}, {"offset", packing.offset}};
}

/// How numbers count time by the CF conventions, in days of their calendar; null if they do not.
Value time_value(const Meaning& meaning) {
    if (!meaning.time) return nullptr;
    const auto days = [](Int128 time) {
        return static_cast<double>(static_cast<long double>(time) / attoseconds_of_day);
    };
    return Value{{"calendar", std::string(calendar_name(meaning.time->calendar))},
                 {"start", days(meaning.time->start)},
                 {"unit", days(meaning.time->unit)}};
}

/// Which dimension holds colours, how many, and the number of full intensity; null if none does.
Value colours_value(const ArraySource& source, const Meaning& meaning) {
    const auto colours = find_colour_axis(source, meaning);
    if (!colours) return nullptr;
    return Value{{"axis", colours->dimension}, {"count", colours->count}, {"full", colours->full}};
}

/// Elements as the page lists them: codes, with their sign, and null where they are missing.
class ListedElements {
public:
    ListedElements(const ArraySource& source, NDArray elements)
        : meaning_(meaning_of(source)), stored_(elements.dtype()), elements_(std::move(elements)) {
        const DType native = native_dtype(stored_);
        if (meaning_.says_more(native))
            missing_ = decoded_elements(meaning_, NDArray::copy_of(elements_.view())).missing;
        if (stored_ == native) {
            stored_ = meaning_.stored;
        } else if (!(meaning_.stored == meaning_.held)) {
            stored_ = meaning_.stored.with_order(stored_.order());
        }
    }

    [[nodiscard]] const NDArray& elements() const { return elements_; }
    [[nodiscard]] Value text(std::int64_t i) const {
        if (!missing_.empty() && missing_[static_cast<std::size_t>(i)]) return nullptr;
        return code(i);
    }
    [[nodiscard]] std::string code(std::int64_t i) const {
        return shortened(element_to_text(stored_, elements_.bytes().data() + i * stored_.size()));
    }

private:
    Meaning meaning_;
    DType stored_;
    NDArray elements_;
    std::vector<bool> missing_;
};

/// The fields, of nested structures too, that can be shown as pictures or lines: "close", "position.x".
void add_pictured(Value& names, const DType& dtype, const std::string& before) {
    for (const Field& field : dtype.fields()) {
        if (field.unnamed) continue;
        if (has_picture(field.dtype)) names.push_back(before + field.name);
        if (field.dtype.kind() == Kind::structure && field.shape.empty()) {
            add_pictured(names, field.dtype, before + field.name + ".");
        }
    }
}

/// The first array below a group that can be shown as a picture, or else the first array.
class FirstArray {
public:
    explicit FirstArray(Served& served) : served_(served) {}

    /// Its path.
    std::optional<std::string> find() {
        look(*served_.node(""), 0);
        return best_;
    }

private:
    void look(const ServedNode& node, int depth) {
        constexpr int most_nodes = 200;
        constexpr int deepest = 8;
        if (done_ || depth > deepest || ++looked_at_ > most_nodes) return;
        if (node.is_array()) {
            const ArrayInfo info = node.source().info();
            done_ = info.shape.rank() >= 2 && has_picture(info.dtype) && element_count(info.shape) > 1;
            if (done_ || !best_) best_ = node.path;
            return;
        }
        for (const ServedChild& child : served_.children(node)) {
            try {
                look(*served_.node(node.path.empty() ? child.name : node.path + "/" + child.name), depth + 1);
            } catch (const Error&) {
                continue;  // an array that cannot be opened is not the first to show
            }
            if (done_) return;
        }
    }

    Served& served_;
    int looked_at_ = 0;
    bool done_ = false;
    std::optional<std::string> best_;
};

}  // namespace

HttpResponse answer_first(Served& served, const HttpRequest& /*request*/) {
    Value value = Value::object();
    value.set("path", nullptr);
    if (const auto path = FirstArray(served).find()) set_path(value, *path);
    return json_response(value);
}

namespace {

/// The last two dimensions of more than one element, as in pictures.
Value shown_axes(const Shape& shape) {
    std::vector<int> across;
    for (int d = shape.rank() - 1; d >= 0 && across.size() < 2; --d) {
        if (shape[d] > 1) across.insert(across.begin(), d);
    }
    for (int d = shape.rank() - 1; d >= 0 && across.size() < 2; --d) {
        if (std::ranges::find(across, d) == across.end()) across.insert(std::ranges::upper_bound(across, d), d);
    }
    Value axes = Value::array();
    for (const int d : across) axes.push_back(d);
    return axes;
}

/// What is chosen of an array that has several pictures: fields, or parts of complex numbers.
Value pictures_of(const DType& dtype) {
    Value pictures = Value::array();
    if (dtype.kind() == Kind::structure) add_pictured(pictures, dtype, "");
    if (dtype.kind() == Kind::complex) {
        for (const std::string_view part : complex_parts) pictures.push_back(std::string(part));
    }
    return pictures;
}

Value missing_values(Served& served, const Shown& shown, const ArrayInfo& info) {
    Value missing = Value::array();
    if (has_picture(info.dtype) && info.shape.rank() >= 2) {
        for (const double v : served.shelf().source(shown)->missing()) missing.push_back(number_or_null(v));
    }
    return missing;
}

Value axis_labels(const ArraySource& source) {
    const auto names = dimension_names_of(source);
    Value labels = Value::array();
    for (int d = 0; d < source.info().shape.rank(); ++d) labels.push_back(axis_label(names, d));
    return labels;
}

Value fields_of(const DType& dtype) {
    Value fields = Value::array();
    if (dtype.kind() != Kind::structure) return fields;
    for (const Field& field : dtype.fields()) fields.push_back(field.name);
    return fields;
}

std::string_view kind_shown(const DType& dtype) {
    if (has_picture(dtype)) return dtype.kind() == Kind::boolean ? "bool" : "number";
    return dtype.kind() == Kind::structure ? "structure" : "text";
}

}  // namespace

HttpResponse answer_picture(Served& served, const HttpRequest& request) {
    const Shown shown = shown_by(served, request);
    const NodePointer& node = shown.node;
    const ArraySource& source = *shown.source;
    const ArrayInfo info = source.info();
    const Value attributes = source.attribute_values();
    const Meaning meaning = meaning_of(source);
    Shape middle = info.shape;
    for (std::int64_t& n : middle) n /= 2;
    return json_response(Value{{"path", utf8_text(node->path)},
                               {"shape", shape_value(info.shape)},
                               {"chunks", shape_value(info.chunks)},
                               {"dtype", info.dtype.to_string()},
                               {"kind", kind_shown(info.dtype)},
                               {"complex", info.dtype.kind() == Kind::complex},
                               {"fields", fields_of(info.dtype)},
                               {"pictures", pictures_of(info.dtype)},
                               {"names", axis_labels(source)},
                               {"axes", shown_axes(info.shape)},
                               {"middle", shape_value(middle)},
                               {"missing", missing_values(served, shown, info)},
                               {"label", attribute_of(attributes, {"long_name", "standard_name"})},
                               {"units", attribute_of(attributes, {"units", "unit"})},
                               {"packing", packing_value(meaning)},
                               {"time", time_value(meaning)},
                               {"colours", colours_value(source, meaning)},
                               {"dimensions", dimension_facts(served, *node, source)},
                               {"mapped", node->array.has_value()},
                               {"open_path", utf8_text(open_path(*node))},
                               {"node", node_tag(*node)},
                               {"tells_changes", tells_changes(*node)},
                               {"version", version_of(*node)}});
}

/// What api/picture says of the version, for pages that look whether an array is still the one that they show.
HttpResponse answer_version(Served& served, const HttpRequest& request) {
    const NodePointer node = served.node(request.parameter("path").value_or(""));
    Value value{{"node", node_tag(*node)}, {"version", nullptr}};
    if (node->is_array() && tells_changes(*node)) value.set("version", version_of(*node));
    return json_response(value);
}

HttpResponse answer_value(Served& served, const HttpRequest& request) {
    const Shown shown = shown_by(served, request);
    const ArraySource& source = *shown.source;
    const Index at = index_of(request, source.info().shape);
    const ListedElements element(source,
                                 read_region(source, Region(at, Shape::filled(at.rank(), 1)), served.io(request)));
    return json_response(
        Value{{"at", shape_value(at)}, {"text", element.code(0)}, {"missing", element.text(0).is_null()}});
}

namespace {

/// The rows of a table: of elements along two dimensions, of those along one, or of the fields of structures.
Value rows_of(const ListedElements& listed, std::int64_t rows, std::int64_t columns, const TileSlice& slice) {
    const NDArray& elements = listed.elements();
    const int rank = elements.shape().rank();
    const Strides& strides = elements.view().strides;
    Value list = Value::array();
    for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t at = rank == 0 ? 0 : i * strides[slice.rows];
        if (rank < 2 && elements.dtype().kind() == Kind::structure) {
            list.push_back(row_of_fields(elements.dtype(), elements.bytes().data() + at));
            continue;
        }
        Value row = Value::array();
        for (std::int64_t j = 0; j < columns; ++j) {
            row.push_back(listed.text((at + (rank < 2 ? 0 : j * strides[slice.columns])) / elements.dtype().size()));
        }
        list.push_back(std::move(row));
    }
    return list;
}

}  // namespace

HttpResponse answer_rows(Served& served, const HttpRequest& request) {
    const Shown shown = shown_by(served, request);
    const ArraySource& source = *shown.source;
    const ArrayInfo info = source.info();
    const int rank = info.shape.rank();
    Region region(index_of(request, info.shape), Shape::filled(rank, 1));
    const bool flat = rank < 2;
    const TileSlice slice = flat ? TileSlice{.rows = 0, .columns = 0, .at = {}} : slice_of(request, rank);
    if (!flat && slice.rows == slice.columns) throw invalid_argument("axes: expected two different dimensions");
    const Window rows = window_of(request, "row", "rows", rank == 0 ? 1 : info.shape[slice.rows]);
    const Window columns = flat ? Window{0, 1} : window_of(request, "column", "columns", info.shape[slice.columns]);
    if (rows.count * columns.count > most_cells) {
        throw invalid_argument("a table of at most {} cells, found {} × {}", most_cells, rows.count, columns.count);
    }
    if (rank > 0) region.start[slice.rows] = rows.first, region.extent[slice.rows] = rows.count;
    if (!flat) region.start[slice.columns] = columns.first, region.extent[slice.columns] = columns.count;
    Value list = Value::array();
    if (rows.count > 0 && columns.count > 0) {
        const ListedElements listed(source, read_region(source, region, served.io(request)));
        list = rows_of(listed, rows.count, columns.count, slice);
    }
    return json_response(Value{{"row", rows.first}, {"column", columns.first}, {"rows", std::move(list)}});
}

HttpResponse answer_profile(Served& served, const HttpRequest& request) {
    const Shown shown = shown_by(served, request);
    const ArraySource& source = *shown.source;
    const Shape shape = source.info().shape;
    const Index at = index_of(request, shape);
    const std::int64_t axis = request.integer("axis", 0, 0, std::max(0, shape.rank() - 1));
    PictureOptions options;
    options.selection = selection_text(at, {static_cast<int>(axis)});
    options.axes = {std::to_string(axis)};
    options.width = options.line_width = request.integer("width", 512, 1, 4096);
    options.limit = most_profiled;
    options.most_chunks = most_looked_for;
    options.dates = false;  // the page knows more calendars
    const Picture line = read_picture(source, options, served.io(request));
    return json_response(Value{{"axis", axis},
                               {"name", line.columns.name},
                               {"length", shape[axis]},
                               {"window", line.columns.window},
                               {"sampled", line.sampled},
                               {"how", line.how},
                               {"values", numbers(line.values)},
                               {"low", numbers(line.low)},
                               {"high", numbers(line.high)}});
}

static PictureOptions chunk_map_options(const HttpRequest& request, const Shape& shape) {
    PictureOptions options;
    options.height = options.width = request.integer("size", 256, 1, 1024);
    options.limit = std::int64_t{64} << 20;
    if (shape.rank() >= 2) {
        const TileSlice slice = slice_of(request, shape.rank());
        options.axes = {std::to_string(slice.rows), std::to_string(slice.columns)};
        options.selection = selection_text(index_of(request, shape), {slice.rows, slice.columns});
    }
    return options;
}

HttpResponse answer_chunks(Served& served, const HttpRequest& request) {
    const auto node = served.node(request.parameter("path").value_or(""));
    if (!node->array || !node->place) throw unsupported("only arrays in chunks of a store have a map of chunks");
    const Shape shape = node->source().info().shape;
    const ChunkMap map = read_chunk_map(*node->place, chunk_map_options(request, shape), served.io(request));
    const Picture& picture = map.picture;
    Value states = Value::array();
    for (const std::uint8_t state : picture.states.values<std::uint8_t>()) states.push_back(static_cast<int>(state));
    Value damage = Value::array();
    for (const ChunkMap::Damage& one : map.damage) {
        if (damage.as_array().size() == 20) break;
        damage.push_back(Value{{"chunk", shape_value(one.chunk)}, {"text", served.shown_text(one.text)}});
    }
    return json_response(Value{{"rows", picture.rows.cells()},
                               {"columns", picture.columns.cells()},
                               {"window", Value::Array{picture.rows.window, picture.columns.window}},
                               {"first", Value::Array{picture.rows.start, picture.columns.start}},
                               {"slice", picture.slice},
                               {"how", picture.how},
                               {"sampled", picture.sampled},
                               {"chunks", map.chunks},
                               {"stored", map.stored},
                               {"damaged", map.damaged},
                               {"unchecked", map.unchecked},
                               {"bytes", map.bytes},
                               {"decoded_bytes", map.decoded_bytes},
                               {"ratios", numbers(picture.values)},
                               {"states", std::move(states)},
                               {"damage", std::move(damage)}});
}

}  // namespace tessera::serve
