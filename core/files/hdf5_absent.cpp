#ifdef TESSERA_HDF5
#include "hdf5_absent.h"

#include <algorithm>
#include <array>
#include <utility>

#include <tessera/buffer.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>

#include "hdf5_index.h"

namespace tessera {

std::optional<Hdf5Absent> Hdf5Absent::find(hid_t file, hid_t dataset, const ByteSource& bytes, const Hdf5Type& type,
                                           const Shape& shape) {
    H5O_info_t own, root;
    const bool here = H5Oget_info(dataset, &own) >= 0 && H5Oget_info(file, &root) >= 0 && own.fileno == root.fileno;
    if (!here || shape.empty() || element_count(shape) == 0) return std::nullopt;
    const Hdf5Id list(H5Dget_create_plist(dataset), H5Pclose);
    const Hdf5Id stored_type(H5Dget_type(dataset), H5Tclose);
    const Hdf5Id space(H5Dget_space(dataset), H5Sclose);
    std::array<hsize_t, H5S_MAX_RANK> lengths{}, longest{};
    H5Pget_chunk(list.get(), shape.rank(), lengths.data());
    H5Sget_simple_extent_dims(space.get(), nullptr, longest.data());
    Shape chunks, most;
    for (std::size_t d = 0; std::cmp_less(d, shape.rank()); ++d) {
        const bool endless = longest[d] == H5S_UNLIMITED;
        if (std::max(lengths[d], endless ? 1 : longest[d]) > hsize_t{INT64_MAX}) return std::nullopt;
        chunks.push_back(std::max<std::int64_t>(static_cast<std::int64_t>(lengths[d]), 1));
        most.push_back(endless ? -1 : static_cast<std::int64_t>(longest[d]));
    }
    Hdf5Absent absent(ChunkGrid(shape, chunks));
    try {
        const std::int64_t bytes_of_chunk =
            byte_count(chunks, static_cast<std::int64_t>(H5Tget_size(stored_type.get())));
        const bool filtered = H5Pget_nfilters(list.get()) > 0;
        const Hdf5Chunks found = read_hdf5_index(bytes, own.addr, shape, most, chunks, bytes_of_chunk, filtered);
        if (std::ssize(found.chunks) == absent.grid_.chunk_count()) return std::nullopt;
        absent.held_.add(found.chunks.size() * sizeof(std::int64_t));
        for (const Hdf5Chunk& chunk : found.chunks) absent.stored_.push_back(chunk.number);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::unsupported && e.code() != ErrorCode::budget) throw;
        return std::nullopt;
    }
    std::ranges::sort(absent.stored_);
    absent.read_fill(list.get(), type);
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

}  // namespace tessera
#endif
