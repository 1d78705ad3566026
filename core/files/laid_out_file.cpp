#include <tessera/laid_out_file.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include <tessera/error_text.h>

namespace tessera {

namespace {

struct Overlap {
    std::uint64_t begin = 0, end = 0;
    [[nodiscard]] bool empty() const { return begin >= end; }
};

Overlap overlap(std::uint64_t offset, std::uint64_t size, std::uint64_t begin, std::uint64_t end) {
    return {std::max(offset, begin), std::min(offset + size, end)};
}

Dims reversed(Dims dims) {
    std::reverse(dims.begin(), dims.end());
    return dims;
}

/// The index of the element of a number, in C order.
Index index_of(const Shape& shape, std::int64_t number) {
    Index index = Dims::filled(shape.rank(), 0);
    for (int d = shape.rank(); d-- > 0;) {
        index[d] = number % shape[d];
        number /= shape[d];
    }
    return index;
}

std::uint64_t bytes_of(const PackedArray& array) {
    return static_cast<std::uint64_t>(byte_count(array.shape, array.dtype.size()));
}

/// Of an array whose rows lie apart: the bytes of one.
std::uint64_t row_bytes(const PackedArray& array) {
    return array.shape[0] == 0 ? 0 : bytes_of(array) / static_cast<std::uint64_t>(array.shape[0]);
}

}  // namespace

void for_each_run_box(const Shape& shape, Order order, std::int64_t first, std::int64_t count,
                      const std::function<void(const Region& box, std::int64_t after)>& each) {
    const Shape slow_first = order == Order::C ? shape : reversed(shape);
    const std::int64_t end = first + count;
    for (std::int64_t at = first; at < end;) {
        Region box(index_of(slow_first, at), Dims::filled(shape.rank(), 1));
        // Whole rows, planes and so on, as long as the next element begins one and all of it is wanted.
        std::int64_t step = 1;
        for (int d = shape.rank(); d-- > 0;) {
            const std::int64_t n = std::max<std::int64_t>(1, std::min((end - at) / step, slow_first[d] - box.start[d]));
            box.extent[d] = n;
            if (n < slow_first[d]) break;
            step *= n;
        }
        const std::int64_t after = at - first;
        at += box.count();
        each(order == Order::C ? box : Region(reversed(box.start), reversed(box.extent)), after);
    }
}

LaidOutFile::LaidOutFile(std::string name, FileLayout layout, std::vector<std::shared_ptr<const ArraySource>> sources,
                         IoOptions io)
    : name_(std::move(name)), layout_(std::move(layout)), sources_(std::move(sources)), io_(std::move(io)) {}

void LaidOutFile::read(std::uint64_t offset, MutableByteSpan out) const {
    if (offset > size() || out.size() > size() - offset) {
        throw corrupt("{}: {} bytes at {} are wanted, and it has {}", name_, out.size(), offset, size());
    }
    std::ranges::fill(out, std::byte{0});
    const Overlap header = overlap(offset, out.size(), 0, layout_.header.size());
    if (!header.empty()) std::memcpy(out.data(), layout_.header.data() + header.begin, header.end - header.begin);
    for (std::size_t i = 0; i < layout_.arrays.size(); ++i) {
        const PackedArray& array = layout_.arrays[i];
        if (array.row_stride != 0) {
            read_rows(i, offset, out);
            continue;
        }
        const Overlap part = overlap(offset, out.size(), array.offset, array.offset + bytes_of(array));
        if (part.empty()) continue;
        read_array(i, part.begin - array.offset, out.subspan(part.begin - offset, part.end - part.begin));
    }
}

void LaidOutFile::read_rows(std::size_t which, std::uint64_t offset, MutableByteSpan out) const {
    const PackedArray& array = layout_.arrays[which];
    const std::uint64_t stride = static_cast<std::uint64_t>(array.row_stride);
    const std::uint64_t row = row_bytes(array);
    const auto rows = static_cast<std::uint64_t>(array.shape[0]);
    for (std::uint64_t r = offset < array.offset ? 0 : (offset - array.offset) / stride; r < rows; ++r) {
        const std::uint64_t begin = array.offset + r * stride;
        if (begin >= offset + out.size()) break;
        const Overlap part = overlap(offset, out.size(), begin, begin + row);
        if (part.empty()) continue;
        read_array(which, r * row + part.begin - begin, out.subspan(part.begin - offset, part.end - part.begin));
    }
}

void LaidOutFile::read_array(std::size_t which, std::uint64_t first, MutableByteSpan out) const {
    const auto size = static_cast<std::uint64_t>(layout_.arrays[which].dtype.size());
    std::vector<std::byte> element(size);
    const auto partly = [&](std::uint64_t from, MutableByteSpan to) {
        read_elements(which, static_cast<std::int64_t>(from / size), element);
        std::memcpy(to.data(), element.data() + from % size, to.size());
    };
    if (first % size != 0) {
        const std::uint64_t n = std::min<std::uint64_t>(size - first % size, out.size());
        partly(first, out.first(n));
        out = out.subspan(n);
        first += n;
    }
    const std::uint64_t whole = out.size() / size * size;
    if (whole > 0) read_elements(which, static_cast<std::int64_t>(first / size), out.first(whole));
    if (whole < out.size()) partly(first + whole, out.subspan(whole));
}

void LaidOutFile::read_elements(std::size_t which, std::int64_t first, MutableByteSpan out) const {
    const PackedArray& array = layout_.arrays[which];
    const std::int64_t size = array.dtype.size();
    for_each_run_box(array.shape, layout_.order, first, std::ssize(out) / size,
                     [&](const Region& box, std::int64_t after) {
                         sources_[which]->read_into(
                             box, view_bytes(out.data() + after * size, array.dtype, box.extent, layout_.order), io_);
                     });
}

void LaidOutFile::write(std::uint64_t offset, ByteSpan bytes, ArraySink& sink) const {
    const PackedArray& array = layout_.arrays.front();
    if (offset > size() || bytes.size() > size() - offset) {
        throw invalid_argument("{}: it has {} bytes, and does not grow; resize the array", name_, size());
    }
    if (offset < array.offset) {
        const std::size_t n = std::min<std::uint64_t>(array.offset - offset, bytes.size());
        if (std::memcmp(layout_.header.data() + offset, bytes.data(), n) != 0) {
            throw invalid_argument("{}: its header says what the array is, and cannot be written", name_);
        }
        bytes = bytes.subspan(n);
        offset += n;
    }
    if (bytes.empty()) return;
    // Whole elements, with what the first and the last have beside the bytes.
    const auto size = static_cast<std::uint64_t>(array.dtype.size());
    const std::uint64_t begin = (offset - array.offset) / size * size;
    const std::uint64_t end = (offset - array.offset + bytes.size() + size - 1) / size * size;
    std::vector<std::byte> elements(end - begin);
    if (elements.size() != bytes.size()) {
        read_elements(0, static_cast<std::int64_t>(begin / size), std::span(elements).first(size));
        read_elements(0, static_cast<std::int64_t>(end / size) - 1, std::span(elements).last(size));
    }
    std::memcpy(elements.data() + (offset - array.offset - begin), bytes.data(), bytes.size());
    for_each_run_box(array.shape, layout_.order, static_cast<std::int64_t>(begin / size),
                     static_cast<std::int64_t>((end - begin) / size), [&](const Region& box, std::int64_t after) {
                         const std::byte* const at = elements.data() + after * array.dtype.size();
                         sink.write(box, view_bytes(at, array.dtype, box.extent, layout_.order), io_);
                     });
}

}  // namespace tessera
