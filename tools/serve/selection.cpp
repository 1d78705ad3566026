// The elements of a selection as a file to keep, and the search for nodes by their names.
#include <tessera/array_file.h>
#include <tessera/error_text.h>
#include <tessera/npy.h>
#include <tessera/slices.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "http.h"
#include "served.h"
#include "tiles.h"

namespace tessera::serve {

namespace {

// The most bytes of elements in one answer.
constexpr std::int64_t most_taken = std::int64_t{64} << 20;
// The most elements of one in text, which takes several times their bytes.
constexpr std::int64_t most_written = 1'000'000;

/// A file in memory that only grows. What it holds belongs to `out`.
class MemorySink final : public ByteSink {
public:
    explicit MemorySink(Buffer& out) : out_(out) {}
    [[nodiscard]] bool random_access() const override { return false; }
    void append(ByteSpan bytes) override { out_.append(bytes); }
    void write_at(std::uint64_t /*offset*/, ByteSpan /*bytes*/) override { throw unsupported("it only grows"); }
    void finish() override {}
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    Buffer& out_;
    std::string name_ = "selection";
};

/// The region of the parameters `start` and `count`, numbers for each dimension.
Region region_of(const HttpRequest& request, const Shape& shape) {
    Region region(Index::filled(shape.rank(), 0), shape);
    if (shape.rank() == 0) return region;
    const Index start = numbers_of(request, "start", shape.rank());
    const Index count = numbers_of(request, "count", shape.rank());
    for (int d = 0; d < shape.rank(); ++d) {
        if (start[d] < 0 || start[d] > shape[d] || count[d] < 0 || count[d] > shape[d] - start[d]) {
            throw out_of_bounds("start and count: {} elements from {} reach out of the shape {}", count.to_string(),
                                start.to_string(), shape.to_string());
        }
        region.start[d] = start[d];
        region.extent[d] = count[d];
    }
    return region;
}

/// The lengths of the dimensions that are kept: without those of one element, as an index drops them.
Shape kept(const Shape& extent) {
    Shape shape;
    for (int d = 0; d < extent.rank(); ++d) {
        if (extent[d] != 1) shape.push_back(extent[d]);
    }
    return shape;
}

/// Elements as a .csv or .npy.
Buffer file_of(const NDArray& elements, bool text, const IoOptions& io) {
    Buffer bytes;
    auto file = std::make_unique<MemorySink>(bytes);
    const Shape& shape = elements.shape();
    const auto sink = text ? create_csv(std::move(file), elements.dtype(), shape)
                           : create_npy(std::move(file), elements.dtype(), shape, Order::C);
    if (elements.count() > 0) sink->write(Region::whole(shape), elements.view(), io);
    sink->finish();
    return bytes;
}

}  // namespace

HttpResponse answer_selection(Served& served, const HttpRequest& request) {
    const Shown shown = shown_by(served, request);
    const ArraySource& source = *shown.source;
    const DType dtype = source.info().dtype;
    const Region region = region_of(request, source.info().shape);
    const std::string& as = request.required("as");
    const bool text = as == "csv";
    if (!text && as != "npy") throw invalid_argument("as: expected npy or csv, found '{}'", as);
    const std::int64_t count = region.count();
    if (byte_count(region.extent, dtype.size()) > most_taken || (text && count > most_written)) {
        throw unsupported(
            "{} elements are more than one file from here may have ({}); export the array with the program", count,
            text ? fmt::format("{} elements", most_written) : fmt::format("{} MiB", most_taken >> 20));
    }
    Shape shape = kept(region.extent);
    if (text && shape.rank() == 0) shape = Shape{1};
    NDArray elements(native_dtype(dtype), region.extent);
    source.read_into(region, elements.view(), served.io(request));
    const NDArray flat = std::move(elements).reshaped(shape);
    Buffer bytes = file_of(flat, text, served.io(request));
    HttpResponse response;
    response.type = text ? "text/csv; charset=utf-8" : "application/octet-stream";
    response.headers["Content-Disposition"] =
        text ? "attachment; filename=\"selection.csv\"" : "attachment; filename=\"selection.npy\"";
    response.body = HttpBody(std::move(bytes));
    return response;
}

namespace {

std::string lower(std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return text;
}

/// What lies below a group; nothing if it cannot be read, because the rest can be found all the same.
std::vector<ServedChild> children_at(Served& served, const std::string& path) {
    try {
        return served.children(*served.node(path));
    } catch (const Error& e) {
        if (e.code() == ErrorCode::cancelled || e.code() == ErrorCode::budget) throw;
        return {};
    }
}

bool may_hold_more(ServedKind kind) {
    return kind != ServedKind::array && kind != ServedKind::file && kind != ServedKind::member;
}

}  // namespace

HttpResponse answer_find(Served& served, const HttpRequest& request) {
    constexpr std::size_t most_found = 200;
    constexpr int most_looked_at = 50'000;
    constexpr int deepest = 32;
    const std::string wanted = lower(request.required("name"));
    Value found = Value::array();
    bool all = true;
    int looked_at = 0;
    std::vector<std::pair<std::string, int>> groups{{"", 0}};
    while (!groups.empty() && all) {
        const auto [path, depth] = std::move(groups.back());
        groups.pop_back();
        for (const ServedChild& child : children_at(served, path)) {
            if (request.stop.stop_requested()) throw cancelled("the request was given up");
            if (found.as_array().size() == most_found || ++looked_at > most_looked_at) {
                all = false;
                break;
            }
            const std::string below = path.empty() ? child.name : path + "/" + child.name;
            if (may_hold_more(child.kind) && depth < deepest) groups.emplace_back(below, depth + 1);
            if (lower(below).find(wanted) == std::string::npos) continue;
            Value value = Value::object();
            value.set("name", utf8_text(child.name));
            set_path(value, below);
            value.set("kind", kind_name(child.kind));
            found.push_back(std::move(value));
        }
    }
    return json_response(Value{{"found", std::move(found)}, {"all", all}});
}

}  // namespace tessera::serve
