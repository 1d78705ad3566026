#include "blocks.h"

#include <tessera/error.h>

namespace tessera::cli {

namespace {

/// Where to divide n > 1 elements of an axis: near the middle, at a chunk boundary if there is one.
std::int64_t middle(const Selection::Axis& axis, std::int64_t begin, std::int64_t n, std::int64_t chunk) {
    const std::int64_t half = n / 2;
    if (chunk < 2 || axis.step != 1) return half;
    const std::int64_t first = axis.start + begin;
    const std::int64_t border = (first + half) / chunk * chunk;
    return border > first ? border - first : half;
}

}  // namespace

void for_each_box(const Selection& selection, const ArrayInfo& info, std::int64_t max_bytes,
                  const std::function<void(const Region& box)>& each) {
    const std::function<void(const Region&)> visit = [&](const Region& box) {
        int axis = 0;
        while (axis < box.rank() && box.extent[axis] <= 1) ++axis;
        if (axis == box.rank() || byte_count(box.extent, info.dtype.size()) <= max_bytes) {
            if (box.empty()) return;
            try {
                each(box);
                return;
            } catch (const Error& e) {
                // The size of variable-length content is known only after reading.
                if (e.code() != ErrorCode::budget || !info.dtype.is_variable() || axis == box.rank()) throw;
            }
        }
        const std::int64_t chunk = info.chunks.rank() == box.rank() ? info.chunks[axis] : 1;
        const std::int64_t n =
            middle(selection.axes()[static_cast<std::size_t>(axis)], box.start[axis], box.extent[axis], chunk);
        Region first = box;
        Region second = box;
        first.extent[axis] = n;
        second.start[axis] += n;
        second.extent[axis] -= n;
        visit(first);
        visit(second);
    };
    visit(Region::whole(selection.full_shape()));
}

Region without_dropped(const Region& box, const Selection& selection) {
    Region kept;
    for (int d = 0; d < box.rank(); ++d) {
        if (selection.axes()[static_cast<std::size_t>(d)].dropped) continue;
        kept.start.push_back(box.start[d]);
        kept.extent.push_back(box.extent[d]);
    }
    return kept;
}

}  // namespace tessera::cli
