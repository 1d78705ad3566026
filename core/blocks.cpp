#include <tessera/chunk_grid.h>

#include <algorithm>

#include <tessera/error_text.h>

namespace tessera {

Blocks::Blocks(const Shape& shape, const Shape& block, const Shape& halo)
    : grid_(shape, block), halo_(halo.empty() ? Shape::filled(shape.rank(), 0) : halo) {
    if (halo_.rank() != shape.rank()) {
        throw invalid_argument("a halo of {} for blocks of an array of shape {}: expected {} lengths, or none",
                               halo.to_string(), shape.to_string(), shape.rank());
    }
    if (std::ranges::any_of(halo_, [](std::int64_t n) { return n < 0; }))
        throw invalid_argument("a halo of {}: lengths cannot be negative", halo.to_string());
}

Block Blocks::operator[](std::int64_t i) const {
    Block block;
    block.index = grid_.index(i);
    block.region = grid_.chunk_region(block.index);
    Index start = block.region.start;
    Shape extent = block.region.extent;
    Index within = start;
    for (int d = 0; d < start.rank(); ++d) {
        const std::int64_t before = std::min(halo_[d], start[d]);
        const std::int64_t after = std::min(halo_[d], grid_.shape()[d] - start[d] - extent[d]);
        within[d] = before;
        start[d] -= before;
        extent[d] += before + after;
    }
    block.with_halo = Region(start, extent);
    block.in_halo = Region(within, block.region.extent);
    return block;
}

}  // namespace tessera
