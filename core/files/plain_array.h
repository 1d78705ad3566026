// A packed array at some offset of a file, read and written by region: the part of a .npy after its header.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <tessera/byte_io.h>
#include <tessera/dtype.h>
#include <tessera/parallel.h>
#include <tessera/shape.h>
#include <tessera/view.h>

namespace tessera {

struct PlainLayout {
    std::string name;               ///< of the file, for messages
    std::uint64_t data_offset = 0;  ///< of the first element
    DType dtype;                    ///< of fixed size
    Shape shape;
    Order order = Order::C;
    std::int64_t row_stride = 0;  ///< bytes between indices of the first dimension; 0: packed. For Order::C.
};

/// Reads a region into `out` (any strides; the layout's dtype, except for byte order). Large runs go straight into the
/// caller's memory, others through at most 1 MiB of scratch per thread. Large regions use several threads if the source
/// allows it. Throws out_of_bounds, invalid_argument, and the source's errors.
void read_plain(const ByteSource& source, const PlainLayout& layout, const Region& region, const MutableArrayView& out,
                const IoOptions& io);

/// Writes a region as runs of bytes with put(offset in the file, bytes): from several threads at once, or with
/// `ascending` from the calling thread in ascending order of the offsets.
void write_plain(const PlainLayout& layout, const Region& region, const ArrayView& in, bool ascending,
                 const IoOptions& io, const std::function<void(std::uint64_t, ByteSpan)>& put);

/// Whether C and Fortran order are the same for this shape: at most one dimension is longer than 1.
[[nodiscard]] bool order_is_moot(const Shape& shape);

}  // namespace tessera
