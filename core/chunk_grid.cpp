#include <tessera/chunk_grid.h>

#include <tessera/error_text.h>
#include <algorithm>

namespace tessera {

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
    for (int d = 0; d < chunk.rank(); ++d) {
        r.start[d] = chunk[d] * chunks_[d];
        r.extent[d] = std::min(chunks_[d], shape_[d] - r.start[d]);
    }
    return r;
}

Region ChunkGrid::overlapping(const Region& region) const {
    Region r = region;
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
