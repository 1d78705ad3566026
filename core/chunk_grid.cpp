#include <tessera/chunk_grid.h>

#include <fmt/format.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

namespace tessera {

// ---- lengths that differ

namespace {

void require_length(std::int64_t length) {
    if (length < 1) throw invalid_argument("a chunk length must be at least 1, and {} was found", length);
}

}  // namespace

ChunkEdges::ChunkEdges(std::int64_t length) : endless_(true) {
    require_length(length);
    chunks_ = INT64_MAX / length;
    end_ = INT64_MAX;
    runs_.push_back({0, 0, length, chunks_});
}

ChunkEdges::ChunkEdges(std::span<const Run> runs) {
    for (const Run& run : runs) add(run);
    if (runs_.empty()) throw invalid_argument("there are no lengths of chunks");
}

void ChunkEdges::add(const Run& run) {
    require_length(run.length);
    if (run.count < 1) {
        throw invalid_argument("{} chunks of length {}: expected at least 1", run.count, run.length);
    }
    const std::int64_t chunks = checked_add(chunks_, run.count, "the number of chunks");
    const std::int64_t length = checked_multiply(run.length, run.count, "the lengths of chunks");
    const std::int64_t end = checked_add(end_, length, "the lengths of chunks");
    if (!runs_.empty() && runs_.back().length == run.length) {
        runs_.back().count += run.count;
    } else {
        runs_.push_back({chunks_, end_, run.length, run.count});
    }
    chunks_ = chunks;
    end_ = end;
}

std::vector<ChunkEdges::Run> ChunkEdges::runs() const {
    std::vector<Run> all;
    for (const Place& run : runs_) all.push_back({run.length, run.count});
    return all;
}

ChunkEdges::Chunk ChunkEdges::at(std::int64_t position) const {
    const auto run = std::prev(std::ranges::upper_bound(runs_, position, {}, &Place::start));
    return run->chunk((position - run->start) / run->length);
}

ChunkEdges::Chunk ChunkEdges::numbered(std::int64_t index) const {
    const auto run = std::prev(std::ranges::upper_bound(runs_, index, {}, &Place::index));
    return run->chunk(index - run->index);
}

std::int64_t ChunkEdges::longest(std::int64_t extent) const {
    std::int64_t longest = runs_.front().length;
    for (const Place& run : runs_) {
        if (run.start < extent) longest = std::max(longest, run.length);
    }
    return longest;
}

ChunkEdges ChunkEdges::reaching(std::int64_t extent) const {
    ChunkEdges longer = *this;
    if (extent > end_) longer.add({runs_.back().length, ceil_div(extent - end_, runs_.back().length)});
    return longer;
}

bool ChunkEdges::continues(const ChunkEdges& other) const {
    if (endless_ || other.endless_) return *this == other;
    const auto& [shorter, longer] = chunks_ < other.chunks_ ? std::tie(*this, other) : std::tie(other, *this);
    for (std::size_t n = 0; n < shorter.runs_.size(); ++n) {
        const Place& a = shorter.runs_[n];
        const Place& b = longer.runs_[n];
        const bool last = n + 1 == shorter.runs_.size();
        if (a.length != b.length || a.index != b.index || (last ? a.count > b.count : a.count != b.count)) return false;
    }
    return true;
}

// ---- notation

namespace {

/// A reader of "[31]+[28,31]*3, 32".
class LengthsReader {
public:
    explicit LengthsReader(std::string_view text) : text_(text), rest_(text) {}

    std::vector<ChunkEdges> all() {
        std::vector<ChunkEdges> edges;
        while (!at_end()) {
            edges.push_back(next() == '[' ? list() : ChunkEdges(number()));
            if (!at_end()) take(',');
        }
        return edges;
    }

private:
    using Runs = std::vector<ChunkEdges::Run>;
    static constexpr std::size_t most_runs = 1'000'000;  // below the 64 MiB that a document may have

    [[nodiscard]] Error bad(std::string_view why) const {
        return invalid_argument(
            "\"{}\" are no lengths of chunks: {}; write a length, or those of all chunks in brackets, for each "
            "dimension: "
            "[10,10,5]*4,32",
            text_, why);
    }
    void skip_blanks() {
        while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
    }
    bool at_end() {
        skip_blanks();
        return rest_.empty();
    }
    char next() { return at_end() ? '\0' : rest_.front(); }
    void take(char wanted) {
        if (next() != wanted) {
            throw bad(
                fmt::format("expected '{}' {}", wanted, rest_.empty() ? "at the end" : "before " + std::string(rest_)));
        }
        rest_.remove_prefix(1);
    }
    bool takes(char wanted) {
        if (next() != wanted) return false;
        rest_.remove_prefix(1);
        return true;
    }
    std::int64_t number() {
        skip_blanks();
        std::int64_t n = 0;
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
        if (error != std::errc() || n < 1) {
            throw bad(rest_.empty() ? "a number is missing at the end"
                                    : fmt::format("expected a number from 1 to 2^63-1 before {}", rest_));
        }
        rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
        return n;
    }

    ChunkEdges list() {
        Runs runs;
        do {
            repeated(runs);
        } while (takes('+'));
        return ChunkEdges(runs);
    }
    void repeated(Runs& runs) {
        take('[');
        Runs one;
        do {
            add(one, {number(), 1});
        } while (takes(',') && next() != ']');
        take(']');
        const std::int64_t times = takes('*') ? number() : 1;
        if (one.size() == 1) {
            add(runs, {one[0].length, checked_multiply(one[0].count, times, "the number of chunks")});
            return;
        }
        for (std::int64_t n = 0; n < times; ++n) {
            for (const ChunkEdges::Run& run : one) add(runs, run);
        }
    }
    void add(Runs& runs, const ChunkEdges::Run& run) const {
        if (!runs.empty() && runs.back().length == run.length) {
            runs.back().count = checked_add(runs.back().count, run.count, "the number of chunks");
            return;
        }
        if (runs.size() == most_runs) throw bad(fmt::format("there are more than {} different ones", most_runs));
        runs.push_back(run);
    }

    std::string_view text_, rest_;
};

}  // namespace

ChunkLengths parse_chunk_lengths(std::string_view text) {
    std::string_view inside = text;
    const auto trim = [&] {
        while (!inside.empty() && inside.front() == ' ') inside.remove_prefix(1);
        while (!inside.empty() && inside.back() == ' ') inside.remove_suffix(1);
    };
    trim();
    // Brackets around everything, as Python writes lists and tuples.
    bool stripped = false;
    if (inside.size() >= 2 && ((inside.front() == '(' && inside.back() == ')') || inside.starts_with("[["))) {
        if (inside.front() != '(' && inside.back() != ']')
            throw invalid_argument("\"{}\": the last ] is missing", text);
        inside = inside.substr(1, inside.size() - 2);
        stripped = true;
        trim();
    }
    const std::size_t bracket = inside.find('[');
    const bool whole = bracket == 0 && inside.find(']') == inside.size() - 1;  // "[10,20]" is a shape
    if (bracket == std::string_view::npos || (whole && !stripped)) return {.shape = parse_shape(text), .edges = {}};
    return {.shape = {}, .edges = LengthsReader(inside).all()};
}

std::string lengths_text(std::span<const ChunkEdges> edges) {
    constexpr std::int64_t few = 3;
    std::string text;
    for (const ChunkEdges& along : edges) {
        if (!text.empty()) text += ',';
        const std::vector<ChunkEdges::Run> runs = along.runs();
        if (along.endless()) {
            text += std::to_string(runs.front().length);
            continue;
        }
        bool open = false;
        for (const ChunkEdges::Run& run : runs) {
            const bool listed = run.count <= few;
            if (!open && &run != &runs.front()) text += '+';
            if (open) text += listed ? "," : "]+";
            if (!open || !listed) text += '[';
            text += std::to_string(run.length);
            for (std::int64_t n = 1; listed && n < run.count; ++n) text += "," + std::to_string(run.length);
            if (!listed) text += "]*" + std::to_string(run.count);
            open = listed;
        }
        if (open) text += ']';
    }
    return edges.size() == 1 ? text + "," : text;  // "[10,5]" would be a shape
}

// ---- the grid

ChunkGrid ChunkGrid::of_edges(const Shape& shape, std::vector<ChunkEdges> edges) {
    if (std::cmp_not_equal(edges.size(), shape.rank())) {
        throw invalid_argument("chunk lengths of {} dimensions, and shape {} has {}", edges.size(), shape.to_string(),
                               shape.rank());
    }
    (void)element_count(shape);
    ChunkGrid grid;
    grid.shape_ = shape;
    for (int d = 0; d < shape.rank(); ++d) {
        const ChunkEdges& along = edges[static_cast<std::size_t>(d)];
        if (along.end() < shape[d]) {
            throw invalid_argument("the lengths of chunks along dimension {} add up to {}, and the array has {}", d,
                                   along.end(), shape[d]);
        }
        grid.chunks_.push_back(along.longest(shape[d]));
        grid.grid_.push_back(along.count(shape[d]));
    }
    (void)element_count(grid.chunks_);
    grid.count_ = element_count(grid.grid_);
    grid.edges_ = std::make_shared<const std::vector<ChunkEdges>>(std::move(edges));
    return grid;
}

Shape ChunkGrid::chunk_shape(const Index& chunk) const {
    Shape lengths = chunks_;
    if (edges_ == nullptr) return lengths;
    for (int d = 0; d < chunk.rank(); ++d) {
        lengths[d] = (*edges_)[static_cast<std::size_t>(d)].numbered(chunk[d]).length;
    }
    return lengths;
}

std::int64_t ChunkGrid::beyond_edge(int d) const {
    if (grid_[d] == 0) return 0;
    if (edges_ == nullptr) return (chunks_[d] - shape_[d] % chunks_[d]) % chunks_[d];
    const ChunkEdges::Chunk last = (*edges_)[static_cast<std::size_t>(d)].numbered(grid_[d] - 1);
    return last.length - (shape_[d] - last.start);
}

ChunkGrid ChunkGrid::about(const Index& chunk) const {
    ChunkGrid grid = *this;
    grid.chunks_ = chunk_shape(chunk);
    return grid;
}

ChunkGrid::ChunkGrid(const Shape& shape, const Shape& chunks) : shape_(shape), chunks_(chunks) {
    if (shape.rank() != chunks.rank()) {
        throw invalid_argument("chunks {} have {} dimensions, shape {} has {}", chunks.to_string(), chunks.rank(),
                               shape.to_string(), shape.rank());
    }
    (void)element_count(shape);
    for (int d = 0; d < shape.rank(); ++d) {
        if (chunks[d] < 1) {
            throw invalid_argument("chunks {}: a chunk length must be at least 1, dimension {} has {}",
                                   chunks.to_string(), d, chunks[d]);
        }
        grid_.push_back(ceil_div(shape[d], chunks[d]));
    }
    (void)element_count(chunks);
    count_ = element_count(grid_);
}

std::int64_t ChunkGrid::linear(const Index& chunk) const {
    std::int64_t n = 0;
    for (int d = 0; d < grid_.rank(); ++d) n = n * grid_[d] + chunk[d];
    return n;
}

Index ChunkGrid::index(std::int64_t linear) const {
    Index chunk = Index::filled(grid_.rank(), 0);
    for (int d = grid_.rank() - 1; d >= 0; --d) {
        chunk[d] = linear % grid_[d];
        linear /= grid_[d];
    }
    return chunk;
}

Region ChunkGrid::chunk_region(const Index& chunk) const {
    Region r = Region::whole(chunks_);
    if (edges_ != nullptr) {
        for (int d = 0; d < chunk.rank(); ++d) {
            const ChunkEdges::Chunk along = (*edges_)[static_cast<std::size_t>(d)].numbered(chunk[d]);
            r.start[d] = along.start;
            r.extent[d] = std::min(along.length, shape_[d] - along.start);
        }
        return r;
    }
    for (int d = 0; d < chunk.rank(); ++d) {
        r.start[d] = chunk[d] * chunks_[d];
        r.extent[d] = std::min(chunks_[d], shape_[d] - r.start[d]);
    }
    return r;
}

Region ChunkGrid::overlapping(const Region& region) const {
    Region r = region;
    if (edges_ != nullptr) {
        for (int d = 0; d < region.rank(); ++d) {
            // A position at the end of the array, where nothing is touched, has no chunk.
            if (region.extent[d] == 0) {
                r.start[d] = 0;
                continue;
            }
            r.start[d] = chunk_at(d, region.start[d]);
            r.extent[d] = chunk_at(d, region.start[d] + region.extent[d] - 1) - r.start[d] + 1;
        }
        return r;
    }
    for (int d = 0; d < region.rank(); ++d) {
        r.start[d] = region.start[d] / chunks_[d];
        // A region's end cannot overflow: it lies inside the shape.
        r.extent[d] =
            region.extent[d] == 0 ? 0 : (region.start[d] + region.extent[d] - 1) / chunks_[d] - r.start[d] + 1;
    }
    return r;
}

Index index_in(const Region& box, std::int64_t n) {
    Index index = box.start;
    for (int d = box.rank() - 1; d >= 0; --d) {
        index[d] += n % box.extent[d];
        n /= box.extent[d];
    }
    return index;
}

ChunkPart chunk_part(const ChunkGrid& grid, const Region& region, const Region& overlapped, std::int64_t n) {
    ChunkPart part;
    part.chunk = index_in(overlapped, n);
    const Region chunk = grid.chunk_region(part.chunk);
    const Region common = intersection(chunk, region);
    part.whole = common == chunk;
    part.in_chunk = common;
    part.in_request = common;
    for (int d = 0; d < common.rank(); ++d) {
        part.in_chunk.start[d] -= chunk.start[d];
        part.in_request.start[d] -= region.start[d];
    }
    return part;
}

bool in_grid(const ChunkGrid& grid, const Index& chunk) {
    if (chunk.rank() != grid.grid().rank()) return false;
    for (int d = 0; d < chunk.rank(); ++d) {
        if (chunk[d] < 0 || chunk[d] >= grid.grid()[d]) return false;
    }
    return true;
}

Shape choose_chunks(const Shape& shape, std::int64_t item_size, std::int64_t target_bytes) {
    Shape chunks = shape;
    const std::int64_t target = std::max<std::int64_t>(1, target_bytes / std::max<std::int64_t>(item_size, 1));
    // A dimension that is empty now is expected to grow.
    for (std::int64_t& n : chunks) n = n == 0 ? target : n;
    // Halve the longest length until the chunk is small enough. Chunks come out nearly cubic, which suits slices along
    // every axis, and short dimensions stay whole.
    const auto count = [&] {
        double c = 1;
        for (const std::int64_t n : chunks) c *= static_cast<double>(n);
        return c;
    };
    while (chunks.rank() > 0 && count() > static_cast<double>(target)) {
        std::int64_t& longest = *std::max_element(chunks.begin(), chunks.end());
        if (longest == 1) break;
        longest = ceil_div(longest, 2);
    }
    return chunks;
}

}  // namespace tessera
