// Tiles, previews and histograms of slices: raw numbers, which the page colours.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/error_text.h>

#include "http.h"
#include "served.h"
#include "tiles.h"

namespace tessera::serve {

namespace {

constexpr std::size_t most_sources = 64;

Buffer copy_of(const NDArray& values) {
    return Buffer(values.bytes());
}

Coarsening reduction_of(const HttpRequest& request) {
    return parse_coarsening(request.parameter("with").value_or("mean"));
}

/// The headers that describe the numbers in a body.
void describe(HttpResponse& response, const DType& dtype, const Shape& shape) {
    response.headers["X-Tessera-Dtype"] = dtype.with_order(ByteOrder::little).str();
    response.headers["X-Tessera-Shape"] = fmt::format("{},{}", shape[0], shape[1]);
}

TileRequest tile_request(const HttpRequest& request, int rank) {
    const Index levels = numbers_of(request, "level", 2);
    const Index place = numbers_of(request, "tile", 2);
    for (const std::int64_t level : levels) {
        if (level < 0 || level > most_tile_level) {
            throw invalid_argument("level: expected 0 to {}, found {}", most_tile_level, level);
        }
    }
    return {.slice = slice_of(request, rank),
            .row_level = static_cast<int>(levels[0]),
            .column_level = static_cast<int>(levels[1]),
            .row = place[0],
            .column = place[1],
            .with = reduction_of(request)};
}

HttpResponse answer_tile(Served& served, const HttpRequest& request) {
    const Shown shown = shown_by(served, request);
    const auto source = served.shelf().source(shown);
    const Tile tile = source->tile(tile_request(request, shown.source->info().shape.rank()), served.io(request));
    HttpResponse response;
    response.body = HttpBody(copy_of(tile.values));
    describe(response, tile.values.dtype(), tile.values.shape());
    response.headers["X-Tessera-Node"] = node_tag(*shown.node);
    response.headers["X-Tessera-Version"] = fmt::format("{:016x}", tile.version);
    response.headers["X-Tessera-Sampled"] = tile.sampled ? "1" : "0";
    response.headers["X-Tessera-Decoded"] = fmt::format("{}", tile.decoded);
    response.headers["X-Tessera-Left"] = fmt::format("{}", tile.left);
    if (tile.sampled) {
        response.cache_control = "no-store";  // the next answer is a better one
    } else {
        response.etag = fmt::format("{:016x}", tile.version);
        if (request.parameter("v")) response.cache_control = "private, max-age=31536000, immutable";
    }
    return response;
}

HttpResponse answer_preview(Served& served, const HttpRequest& request) {
    const Shown shown = shown_by(served, request);
    const auto source = served.shelf().source(shown);
    const TilePreview preview =
        source->preview(slice_of(request, shown.source->info().shape.rank()), served.io(request));
    HttpResponse response;
    NDArray values = NDArray::copy_of(preview.values.view());
    if constexpr (native_order == ByteOrder::big) {
        swap_elements(values.dtype(), values.bytes().data(), values.count());
    }
    response.body = HttpBody(copy_of(values));
    describe(response, values.dtype(), values.shape());
    response.headers["X-Tessera-Node"] = node_tag(*shown.node);
    response.headers["X-Tessera-Sampled"] = "1";
    response.headers["X-Tessera-Window"] = fmt::format("{},{}", preview.row_length, preview.column_length);
    return response;
}

/// The smallest level of which one tile is the whole slice.
int covering_level(std::int64_t length) {
    int level = 0;
    while (level < most_tile_level && (tile_side << level) < length) ++level;
    return level;
}

/// How many values lie in each of so many bins from low to high.
std::vector<std::int64_t> counts_of(const std::vector<double>& values, double low, double high, std::int64_t bins) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(bins));
    const double scale = high > low ? static_cast<double>(bins) / (high - low) : 0;
    for (const double v : values) {
        ++counts[static_cast<std::size_t>(std::clamp<double>((v - low) * scale, 0, static_cast<double>(bins - 1)))];
    }
    return counts;
}

HttpResponse answer_histogram(Served& served, const HttpRequest& request) {
    const Shown shown = shown_by(served, request);
    const auto source = served.shelf().source(shown);
    const Shape shape = shown.source->info().shape;
    const TileSlice slice = slice_of(request, shape.rank());
    const std::int64_t bins = request.integer("bins", 64, 1, 4096);
    TileRequest wanted{.slice = slice, .with = reduction_of(request)};
    wanted.row_level = covering_level(shape[slice.rows]);
    wanted.column_level = covering_level(shape[slice.columns]);
    const Tile tile = source->tile(wanted, served.io(request));
    NDArray numbers(DType::of<double>(), tile.values.shape());
    DType dtype = tile.values.dtype();
    (void)cast_packed(dtype, tile.values.bytes().data(), numbers.dtype(), numbers.bytes().data(), numbers.count(),
                      Cast::unsafe);
    std::vector<double> values;
    for (const double v : std::as_const(numbers).values<double>()) {
        if (std::isfinite(v) && std::ranges::count(source->missing(), v) == 0) values.push_back(v);
    }
    const auto [low, high] =
        values.empty() ? std::pair(0.0, 0.0) : std::pair(std::ranges::min(values), std::ranges::max(values));
    const std::vector<std::int64_t> counts = counts_of(values, low, high, bins);
    Value::Array listed(counts.begin(), counts.end());
    return json_response(
        Value{{"low", low},
              {"high", high},
              {"values", static_cast<std::int64_t>(values.size())},
              {"window", Value::Array{std::int64_t{1} << wanted.row_level, std::int64_t{1} << wanted.column_level}},
              {"sampled", tile.sampled},
              {"counts", std::move(listed)}});
}

HttpResponse answer_cache(Served& served, const HttpRequest& /*request*/) {
    const TileCache& cache = served.shelf().cache();
    return json_response(Value{{"bytes", cache.bytes()}, {"chunks_decoded", cache.chunks_decoded()}});
}

}  // namespace

std::string node_tag(const ServedNode& node) {
    return content_tag(std::as_bytes(std::span(node.version)));
}

namespace {

constexpr Route routes_of_tile[] = {
    {"api/tile", false, answer_tile},           {"api/preview", false, answer_preview},
    {"api/histogram", false, answer_histogram}, {"api/cache", false, answer_cache},
    {"api/value", false, answer_value},         {"api/rows", false, answer_rows},
    {"api/profile", false, answer_profile},     {"api/chunks", false, answer_chunks},
    {"api/picture", false, answer_picture},     {"api/first", false, answer_first},
    {"api/selection", false, answer_selection}, {"api/find", false, answer_find},
    {"api/version", false, answer_version},
};

}  // namespace

std::shared_ptr<const TileSource> TileShelf::source(const Shown& shown) {
    {
        const std::lock_guard lock(mutex_);
        for (auto it = open_.begin(); it != open_.end(); ++it) {
            if (it->shown.node->path != shown.node->path || it->shown.field != shown.field) continue;
            if (it->shown.node->version != shown.node->version) continue;
            open_.splice(open_.begin(), open_, it);
            return open_.front().source;
        }
    }
    const std::string identity = shown.node->path + '\0' + shown.field + '\0' + shown.node->version;
    auto made = std::make_shared<const TileSource>(shown.source, cache_, identity);
    const std::lock_guard lock(mutex_);
    std::erase_if(open_, [&](const Open& open) {
        return open.shown.node->path == shown.node->path && open.shown.field == shown.field;
    });
    open_.push_front({shown, made});
    if (open_.size() > most_sources) open_.pop_back();
    return made;
}

TileShelf& Served::shelf() {
    std::call_once(shelf_made_, [&] { shelf_ = std::make_shared<TileShelf>(options_); });
    return *shelf_;
}

Index numbers_of(const HttpRequest& request, std::string_view name, int count) {
    const std::string& text = request.required(name);
    Index numbers;
    const char* at = text.data();
    const char* end = text.data() + text.size();
    while (numbers.rank() < count) {
        std::int64_t n = 0;
        const auto [next, error] = std::from_chars(at, end, n);
        const bool last = numbers.rank() + 1 == count;
        if (error != std::errc() || (last ? next != end : next == end || *next != ',')) break;
        numbers.push_back(n);
        at = last ? next : next + 1;
    }
    if (numbers.rank() == count && at == end) return numbers;
    throw invalid_argument("{}: expected {} numbers joined by ',', found '{}'", name, count, text);
}

Index index_of(const HttpRequest& request, const Shape& shape) {
    if (!request.parameter("at")) return Index::filled(shape.rank(), 0);
    if (shape.rank() == 0) return {};
    const Index index = numbers_of(request, "at", shape.rank());
    for (int d = 0; d < shape.rank(); ++d) {
        if (index[d] < 0 || index[d] >= shape[d]) {
            throw out_of_bounds("at: the index {} is outside of the shape {}", index.to_string(), shape.to_string());
        }
    }
    return index;
}

TileSlice slice_of(const HttpRequest& request, int rank) {
    const Index axes = numbers_of(request, "axes", 2);
    for (const std::int64_t axis : axes) {
        if (axis < 0 || axis >= rank) {
            throw invalid_argument("axes: expected dimensions from 0 to {}, found {}", rank - 1, axis);
        }
    }
    TileSlice slice{.rows = static_cast<int>(axes[0]), .columns = static_cast<int>(axes[1]), .at = {}};
    if (request.parameter("at")) slice.at = numbers_of(request, "at", rank);
    return slice;
}

std::span<const Route> tile_routes() {
    return routes_of_tile;
}

}  // namespace tessera::serve
