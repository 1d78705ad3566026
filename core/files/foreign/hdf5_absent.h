// Chunks of an HDF5 dataset that are not stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tessera/byte_io.h>
#include <tessera/chunk_grid.h>
#include <tessera/memory_account.h>
#include <tessera/view.h>

#include "hdf5_file.h"

namespace tessera {

/// For libhdf5 an absent chunk takes as much time as a stored one. In a file that is open for reading it cannot read
/// absent chunks of texts. A dataset that is not chunked counts as one chunk.
class Hdf5Absent {
public:
    /// nullopt if all is stored, or only libhdf5 knows what. Throws corrupt.
    [[nodiscard]] static std::optional<Hdf5Absent> find(hid_t file, hid_t dataset, const ByteSource& bytes,
                                                        const Hdf5Type& type, const Shape& shape);
    /// Nothing is stored: all is the fill value.
    [[nodiscard]] static Hdf5Absent all(hid_t dataset, const Hdf5Type& type, const Shape& shape);
    [[nodiscard]] const ChunkGrid& grid() const { return grid_; }
    /// Whether a chunk of these numbers along each dimension is stored, or may be.
    [[nodiscard]] bool any_stored(const Region& chunks) const;
    /// Gives elements of absent chunks their value.
    void fill(const MutableArrayView& out) const;
    /// As ArraySource says.
    [[nodiscard]] std::optional<std::vector<std::byte>> element() const;
    void visit_stored(const std::function<void(const Region&)>& each) const;

private:
    explicit Hdf5Absent(ChunkGrid grid) : grid_(std::move(grid)) {}
    bool find_chunks(hid_t file, hid_t dataset, hid_t list, const ByteSource& bytes, const Shape& most);
    bool find_sources(hid_t list);
    void read_fill(hid_t list, const Hdf5Type& type);

    ChunkGrid grid_;
    std::vector<std::int64_t> stored_;  ///< numbers in C order, ascending
    std::vector<Region> sources_;       ///< what a virtual dataset takes from others
    std::vector<std::byte> fill_;       ///< an element; empty for texts
    std::string text_;
    MemoryHold held_;
};

}  // namespace tessera
