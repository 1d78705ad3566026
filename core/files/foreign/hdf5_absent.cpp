#include "hdf5_absent.h"

#include <algorithm>
#include <array>
#include <utility>

#include <tessera/buffer.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>

#include "../hdf5_index.h"

namespace tessera {

std::optional<Hdf5Absent> Hdf5Absent::find(hid_t file, hid_t dataset, const ByteSource& bytes, const Hdf5Type& type,
                                           const Shape& shape) {
    if (shape.empty() || element_count(shape) == 0) return std::nullopt;
    const Hdf5Id list(H5Dget_create_plist(dataset), H5Pclose);
    const H5D_layout_t layout = H5Pget_layout(list.get());
    const Hdf5Id space(H5Dget_space(dataset), H5Sclose);
    std::array<hsize_t, H5S_MAX_RANK> lengths{}, longest{};
    if (layout == H5D_CHUNKED) H5Pget_chunk(list.get(), shape.rank(), lengths.data());
    H5Sget_simple_extent_dims(space.get(), nullptr, longest.data());
    Shape chunks, most;
    for (int d = 0; d < shape.rank(); ++d) {
        const auto i = static_cast<std::size_t>(d);
        const bool endless = longest[i] == H5S_UNLIMITED;
        if (layout != H5D_CHUNKED) lengths[i] = static_cast<hsize_t>(shape[d]);
        if (std::max(lengths[i], endless ? 1 : longest[i]) > hsize_t{INT64_MAX}) return std::nullopt;
        chunks.push_back(std::max<std::int64_t>(static_cast<std::int64_t>(lengths[i]), 1));
        most.push_back(endless ? -1 : static_cast<std::int64_t>(longest[i]));
    }
    Hdf5Absent absent(ChunkGrid(shape, chunks));
    const bool known = layout == H5D_CHUNKED ? absent.find_chunks(file, dataset, list.get(), bytes, most)
                       : layout == H5D_CONTIGUOUS
                           ? H5Pget_external_count(list.get()) == 0 && H5Dget_offset(dataset) == HADDR_UNDEF
                           : layout == H5D_VIRTUAL && absent.find_sources(list.get());
    if (!known) return std::nullopt;
    absent.read_fill(list.get(), type);
    return absent;
}

/// Whether it is known which are stored, and not all are.
bool Hdf5Absent::find_chunks(hid_t file, hid_t dataset, hid_t list, const ByteSource& bytes, const Shape& most) {
    H5O_info_t own, root;
    const bool here = H5Oget_info(dataset, &own) >= 0 && H5Oget_info(file, &root) >= 0 && own.fileno == root.fileno;
    if (!here) return false;
    const Hdf5Id stored_type(H5Dget_type(dataset), H5Tclose);
    try {
        const std::int64_t bytes_of_chunk =
            byte_count(grid_.chunks(), static_cast<std::int64_t>(H5Tget_size(stored_type.get())));
        const Hdf5Chunks found = read_hdf5_index(bytes, own.addr, grid_.shape(), most, grid_.chunks(), bytes_of_chunk,
                                                 H5Pget_nfilters(list) > 0);
        if (std::ssize(found.chunks) == grid_.chunk_count()) return false;
        held_.add(found.chunks.size() * sizeof(std::int64_t));
        for (const Hdf5Chunk& chunk : found.chunks) stored_.push_back(chunk.number);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::unsupported && e.code() != ErrorCode::budget) throw;
        return false;
    }
    std::ranges::sort(stored_);
    return true;
}

/// Whether the boxes of a virtual dataset's sources are known. It is read by libhdf5.
bool Hdf5Absent::find_sources(hid_t list) {
    std::size_t count = 0;
    if (H5Pget_virtual_count(list, &count) < 0) return false;
    held_.add(count * sizeof(Region));
    for (std::size_t i = 0; i < count; ++i) {
        const Hdf5Id part(H5Pget_virtual_vspace(list, i), H5Sclose);
        std::array<hsize_t, H5S_MAX_RANK> first{}, last{};
        if (H5Sget_select_bounds(part.get(), first.data(), last.data()) < 0) return false;
        Region box;
        for (int d = 0; d < grid_.shape().rank(); ++d) {
            const auto k = static_cast<std::size_t>(d);
            const auto end = std::min(last[k] + 1, static_cast<hsize_t>(grid_.shape()[d]));
            if (first[k] >= end) return false;
            box.start.push_back(static_cast<std::int64_t>(first[k]));
            box.extent.push_back(static_cast<std::int64_t>(end - first[k]));
        }
        sources_.push_back(box);
    }
    stored_.push_back(0);
    return true;
}

Hdf5Absent Hdf5Absent::all(hid_t dataset, const Hdf5Type& type, const Shape& shape) {
    Hdf5Absent absent(ChunkGrid(shape, Shape::filled(shape.rank(), 1)));
    absent.read_fill(Hdf5Id(H5Dget_create_plist(dataset), H5Pclose).get(), type);
    return absent;
}

void Hdf5Absent::read_fill(hid_t list, const Hdf5Type& type) {
    H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
    H5Pfill_value_defined(list, &defined);
    if (!type.dtype.is_variable()) fill_.resize(static_cast<std::size_t>(type.dtype.size()));
    if (defined != H5D_FILL_VALUE_USER_DEFINED) return;
    char* text = nullptr;
    void* const to = type.dtype.is_variable() ? static_cast<void*>(&text) : fill_.data();
    if (H5Pget_fill_value(list, type.memory.get(), to) < 0) throw hdf5_failure("its fill value cannot be read");
    if (text == nullptr) return;
    text_ = text;
    H5free_memory(text);
}

bool Hdf5Absent::any_stored(const Region& chunks) const {
    const int last = chunks.rank() - 1;
    ChunkGrid rows(chunks.extent, [&] {
        Shape row = Shape::filled(chunks.rank(), 1);
        row[last] = std::max<std::int64_t>(chunks.extent[last], 1);
        return row;
    }());
    for (std::int64_t n = 0; n < rows.chunk_count(); ++n) {
        Index first = rows.index(n);
        for (int d = 0; d <= last; ++d) first[d] = chunks.start[d] + (d == last ? 0 : first[d]);
        const std::int64_t number = grid_.linear(first);
        const auto next = std::ranges::lower_bound(stored_, number);
        if (next != stored_.end() && *next < number + chunks.extent[last]) return true;
    }
    return false;
}

void Hdf5Absent::fill(const MutableArrayView& out) const {
    if (!fill_.empty()) return fill_elements(out, fill_.data());
    VariableSlot slot;
    if (!text_.empty()) slot = out.arena->add(text_);
    fill_elements(out, reinterpret_cast<const std::byte*>(&slot));
}

std::optional<std::vector<std::byte>> Hdf5Absent::element() const {
    return fill_.empty() ? std::nullopt : std::optional(fill_);
}

void Hdf5Absent::visit_stored(const std::function<void(const Region&)>& each) const {
    for (const Region& box : sources_) each(box);
    if (!sources_.empty()) return;
    for (const std::int64_t number : stored_) each(grid_.chunk_region(grid_.index(number)));
}

}  // namespace tessera
