#include <tessera/slices.h>

#include <algorithm>

#include <tessera/error.h>

namespace tessera {

namespace {

/// Slices for for_each_slice along the `depth`-th outermost dimension in the source's order, and along further
/// dimensions if one row is too large.
struct Slicer {
    const ArrayInfo& info;
    std::int64_t item;
    std::int64_t most;
    const std::stop_token& stop;
    const std::function<void(const Region& slice)>& body;

    void slice(const Region& region, int depth) const {
        if (stop.stop_requested()) throw cancelled("stopped on request");
        const std::int64_t bytes = region.count() * item;
        if (bytes <= most || depth == region.rank()) {
            body(region);
            return;
        }
        const int d = info.order == Order::C ? depth : region.rank() - 1 - depth;
        const std::int64_t length = region.extent[d];
        const std::int64_t chunk = info.chunks.rank() == region.rank() ? info.chunks[d] : 1;
        const std::int64_t rows = std::max<std::int64_t>(1, most / std::max<std::int64_t>(1, bytes / length));
        Region part = region;
        for (std::int64_t done = 0; done < length; done += part.extent[d]) {
            part.start[d] = region.start[d] + done;
            // Ends at the last border between chunks within these rows, or at the first one behind them.
            const std::int64_t border = (part.start[d] + rows) / chunk * chunk;
            const std::int64_t end = border > part.start[d] ? border : (part.start[d] / chunk + 1) * chunk;
            part.extent[d] = std::min(length - done, end - part.start[d]);
            slice(part, depth + 1);
        }
    }
};

}  // namespace

void for_each_slice(const ArrayInfo& source, std::int64_t item, const Region& region, const std::stop_token& stop,
                    const std::function<void(const Region& slice)>& body, std::int64_t slice_bytes) {
    Slicer{source, item, slice_bytes, stop, body}.slice(region, 0);
}

std::int64_t slice_memory(const ArrayInfo& source, std::int64_t item, std::int64_t slice_bytes) {
    const int rank = source.shape.rank();
    Shape chunk = Shape::filled(rank, 1);
    for (int d = 0; source.chunks.rank() == rank && d < rank; ++d) {
        chunk[d] = std::min(source.chunks[d], std::max<std::int64_t>(1, source.shape[d]));
    }
    return std::min(std::max(slice_bytes, byte_count(chunk, item)), byte_count(source.shape, item));
}

std::int64_t reading_memory(const ArrayInfo& source) {
    constexpr std::int64_t plain = std::int64_t{512} << 10;
    const bool chunked = source.chunks.rank() == source.shape.rank() && !source.chunks.empty();
    const std::int64_t chunks =
        chunked ? checked_multiply(2, byte_count(source.chunks, source.dtype.size()), "memory") : 2 * plain;
    return checked_add(chunks, source.working, "memory");
}

Region within(const Region& region, const Region& slice) {
    Region part = slice;
    for (int d = 0; d < region.rank(); ++d) part.start[d] -= region.start[d];
    return part;
}

DType native_dtype(const DType& dtype) {
    const bool ordered = dtype.kind() == Kind::structure || dtype.order() != ByteOrder::none;
    return ordered ? dtype.with_order(native_order) : dtype;
}

}  // namespace tessera
